/* Records as objects.
 *
 * Objects that forward are found by their place, in a table of the event's that grows with them. An
 * object in two places at once is rare, and soon over: a swap stores one before the other is
 * overwritten. They are found by their second place, in a table of the same size. Of a third place
 * nothing is known: to the state these are copies.
 *
 * One that goes to its second place may find an object there, which somebody has asked for meanwhile.
 * From then on it is the same as that one. */
#include <assert.h>
#include <stddef.h>

#include "core/engine.h"
#include "core/protocol.h"
#include "core/state_words.h"
#include "core/worker.h"
#include "local/arena.h"
#include "local/local_elements.h"
#include "specstream.h"
#include "specstream_containers.h"
#include "specstream_objects.h"

enum { HEAD_WORDS = sizeof(struct ss_object) / sizeof(uint64_t), LEAST_BUCKETS = 16 };

struct ss_objects {
    uint64_t count; /* that forward */
    uint64_t second; /* that have a second place */
    uint64_t mask;
    struct ss_object **buckets; /* by place; NULL ends a chain */
    struct ss_object **also;
};

static uint64_t bucket_of(const struct ss_objects *objects, uint64_t place)
{
    /* Places are multiples of a width and more: the high bits of a product depend on all of them. */
    return (place * UINT64_C(0x9E3779B97F4A7C15) >> 32) & objects->mask;
}

static void link(struct ss_objects *objects, struct ss_object *object)
{
    struct ss_object **bucket = &objects->buckets[bucket_of(objects, object->forward)];
    object->next = *bucket;
    *bucket = object;
}

static void link_also(struct ss_objects *objects, struct ss_object *object)
{
    struct ss_object **bucket = &objects->also[bucket_of(objects, object->also)];
    object->next_also = *bucket;
    *bucket = object;
}

static struct ss_object **new_buckets(struct ss_run *run, uint64_t count)
{
    struct ss_object **made = (struct ss_object **)ss_arena_take(run, count);
    for (uint64_t i = 0; made != NULL && i < count; i++)
        made[i] = NULL;
    return made;
}

/* Both tables anew, with so many buckets. */
static bool rebuild(struct ss_run *run, struct ss_objects *objects, uint64_t count)
{
    struct ss_objects before = *objects;
    uint64_t old = before.buckets == NULL ? 0 : before.mask + 1;
    objects->buckets = new_buckets(run, count);
    objects->also = objects->buckets == NULL ? NULL : new_buckets(run, count);
    if (objects->also == NULL) {
        *objects = before;
        return false;
    }
    objects->mask = count - 1;
    for (uint64_t i = 0; i < old; i++) {
        for (struct ss_object *at = before.buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            link(objects, at);
        }
        for (struct ss_object *at = before.also[i], *next; at != NULL; at = next) {
            next = at->next_also;
            link_also(objects, at);
        }
    }
    ss_arena_give(run, (uint64_t *)before.buckets, old);
    ss_arena_give(run, (uint64_t *)before.also, old);
    return true;
}

/* The event's table, with room for one more. NULL: no memory. */
static struct ss_objects *with_room(struct ss_run *run)
{
    struct ss_objects *objects = run->objects;
    if (objects == NULL) {
        objects = (struct ss_objects *)ss_arena_take(run, sizeof *objects / sizeof(uint64_t));
        if (objects == NULL)
            return NULL;
        *objects = (struct ss_objects){0};
        if (!rebuild(run, objects, LEAST_BUCKETS))
            return NULL;
        run->objects = objects;
    }
    if (objects->count > objects->mask && !rebuild(run, objects, 2 * (objects->mask + 1)))
        return NULL;
    return objects;
}

static void forward(struct ss_objects *objects, struct ss_object *object, uint64_t place)
{
    object->forward = place;
    link(objects, object);
    objects->count++;
}

struct ss_object *ss_object_new(struct ss_run *run, uint64_t kinds)
{
    struct ss_object *made =
        (struct ss_object *)ss_arena_take(run, HEAD_WORDS + ss_width_of(kinds));
    if (made != NULL)
        *made = (struct ss_object){
            .forward = SS_NOWHERE, .also = SS_NOWHERE, .kinds = kinds, .run = run};
    return made;
}

struct ss_object *ss_object_resolved(struct ss_object *object)
{
    while (object->same != NULL)
        object = object->same;
    return object;
}

/* The object that forwards to a place: there is one at most. */
static struct ss_object *find(const struct ss_objects *objects, uint64_t place)
{
    struct ss_object *at = objects->buckets[bucket_of(objects, place)];
    while (at != NULL && at->forward != place)
        at = at->next;
    return at;
}

struct ss_object *ss_object_of(struct ss_run *run, uint64_t kinds, uint64_t place)
{
    struct ss_objects *objects = with_room(run);
    if (objects == NULL)
        return NULL;
    struct ss_object *made = find(objects, place);
    if (made != NULL)
        return made;
    made = ss_object_new(run, kinds);
    if (made != NULL)
        forward(objects, made, place);
    return made;
}

/* The second places in a chain that lie within these words are no places of the objects any more. */
static void forget_also(struct ss_objects *objects, struct ss_object **chain, uint64_t place,
                        uint64_t words)
{
    while (*chain != NULL) {
        struct ss_object *object = *chain;
        if (object->also - place >= words) {
            chain = &object->next_also;
            continue;
        }
        *chain = object->next_also;
        object->also = SS_NOWHERE;
        objects->second--;
    }
}

static void unlink_also(struct ss_objects *objects, struct ss_object *object)
{
    struct ss_object **chain = &objects->also[bucket_of(objects, object->also)];
    while (*chain != object)
        chain = &(*chain)->next_also;
    *chain = object->next_also;
    object->also = SS_NOWHERE;
    objects->second--;
}

/* Those of a chain that forward into these words no longer do. The ones that have no other place are
 * put before `left`. */
static struct ss_object *leave(struct ss_objects *objects, struct ss_object **chain,
                               uint64_t place, uint64_t words, struct ss_object *left)
{
    struct ss_object *gone = NULL;
    while (*chain != NULL) {
        struct ss_object *object = *chain;
        if (object->forward - place >= words) {
            chain = &object->next;
            continue;
        }
        *chain = object->next;
        object->next = gone;
        gone = object;
    }
    for (struct ss_object *next; gone != NULL; gone = next) {
        next = gone->next;
        if (gone->also != SS_NOWHERE) {
            uint64_t to = gone->also;
            struct ss_object *there = find(objects, to);
            unlink_also(objects, gone);
            gone->forward = to;
            if (there == NULL) {
                link(objects, gone);
            } else {
                gone->same = there;
                objects->count--;
            }
            continue;
        }
        gone->words[0] = gone->forward;
        gone->forward = SS_NOWHERE;
        objects->count--;
        gone->next = left;
        left = gone;
    }
    return left;
}

struct ss_object *ss_object_leave(struct ss_run *run, uint64_t place)
{
    struct ss_objects *objects = run->objects;
    if (objects == NULL || objects->count == 0)
        return NULL;
    uint64_t at = bucket_of(objects, place);
    if (objects->second != 0)
        forget_also(objects, &objects->also[at], place, 1);
    return leave(objects, &objects->buckets[at], place, 1, NULL);
}

struct ss_object *ss_objects_leave(struct ss_run *run, uint64_t first, uint64_t words)
{
    struct ss_objects *objects = run->objects;
    struct ss_object *left = NULL;
    if (objects == NULL || objects->count == 0)
        return NULL;
    for (uint64_t i = 0; objects->second != 0 && i <= objects->mask; i++)
        forget_also(objects, &objects->also[i], first, words);
    for (uint64_t i = 0; i <= objects->mask; i++)
        left = leave(objects, &objects->buckets[i], first, words, left);
    return left;
}

bool ss_object_settle(struct ss_object *object, uint64_t place)
{
    struct ss_objects *objects = with_room(object->run);
    if (objects == NULL)
        return false;
    assert(object->same == NULL);
    if (object->forward == SS_NOWHERE) {
        forward(objects, object, place);
        return true;
    }
    if (object->also != SS_NOWHERE)
        unlink_also(objects, object);
    object->also = place;
    link_also(objects, object);
    objects->second++;
    return true;
}

void ss_object_moved(struct ss_run *run, uint64_t from, uint64_t to)
{
    struct ss_objects *objects = run->objects;
    if (objects == NULL || objects->count == 0)
        return;
    uint64_t at = bucket_of(objects, from);
    for (struct ss_object **chain = &objects->buckets[at]; *chain != NULL;) {
        struct ss_object *object = *chain;
        if (object->forward != from) {
            chain = &object->next;
            continue;
        }
        *chain = object->next;
        object->forward = to;
        link(objects, object);
    }
    for (struct ss_object **chain = &objects->also[at]; *chain != NULL;) {
        struct ss_object *object = *chain;
        if (object->also != from) {
            chain = &object->next_also;
            continue;
        }
        *chain = object->next_also;
        object->also = to;
        link_also(objects, object);
    }
}

uint64_t ss_object_word(const struct ss_object *object, uint64_t at)
{
    while (object->same != NULL)
        object = object->same;
    struct ss_run *run = object->run;
    uint64_t word = object->forward + at;
    if (object->forward == SS_NOWHERE)
        return object->words[at];
    if (run->speculative)
        return run->worker->engine->protocol->load(run, word);
    return ss_word_read(&run->state[word]);
}
