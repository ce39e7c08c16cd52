/* Records as objects, from one thread: against objects that places point to, over random steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "local/arena.h"
#include "specstream.h"
#include "specstream_containers.h"
#include "specstream_local.h"
#include "specstream_objects.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "FAILED: %s: line %d: %s\n", scenario, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
static const char *scenario;

enum { WIDTH = 2, PLACES = 40, NAMES = 60, STEPS = 3000, FIRST = 7 };
static const uint64_t kinds = SS_KIND_INT | SS_KIND_FLOAT << 4;

static struct ss_run run;
static uint64_t state[FIRST + PLACES * WIDTH];

/* The model: each name and each place has an object. */
struct plain {
    uint64_t words[WIDTH];
};
static struct plain *names[NAMES], *places[PLACES];
static struct ss_object *objects[NAMES];
static struct plain all[NAMES + PLACES + STEPS * 2];
static uint64_t made;

static uint64_t place_of(uint64_t at)
{
    return FIRST + at * WIDTH;
}

static uint64_t get(const struct ss_object *object, uint64_t at)
{
    uint64_t word = ss_object_word(object, at);
    while (object->same != NULL)
        object = object->same;
    CHECK(word == (object->forward == SS_NOWHERE ? object->words[at]
                                                 : state[object->forward + at]));
    return word;
}

static void set(struct ss_object *object, uint64_t at, uint64_t word)
{
    object = ss_object_resolved(object);
    if (object->forward == SS_NOWHERE)
        object->words[at] = word;
    else
        state[object->forward + at] = word;
}

/* What compiled code does with a chain. */
static void take_along(struct ss_object *left)
{
    for (struct ss_object *next; left != NULL; left = next) {
        uint64_t from = left->words[0];
        next = left->next;
        CHECK(left->forward == SS_NOWHERE && left->also == SS_NOWHERE);
        for (uint64_t at = 0; at < WIDTH; at++)
            left->words[at] = state[from + at];
    }
}

static void put(uint64_t at, struct ss_object *object)
{
    uint64_t place = place_of(at), words[WIDTH];
    object = ss_object_resolved(object);
    if (object->forward == place)
        return;
    take_along(ss_object_leave(&run, place));
    for (uint64_t i = 0; i < WIDTH; i++)
        words[i] = get(object, i);
    for (uint64_t i = 0; i < WIDTH; i++)
        state[place + i] = words[i];
    CHECK(ss_object_settle(object, place));
}

static struct ss_object *read(uint64_t at)
{
    struct ss_object *object = ss_object_of(&run, kinds, place_of(at));
    CHECK(object != NULL && object == ss_object_of(&run, kinds, place_of(at)));
    return object;
}

static void fill(struct ss_object *object, struct plain *plain, struct dice *dice)
{
    for (uint64_t at = 0; at < WIDTH; at++) {
        plain->words[at] = roll(dice);
        set(object, at, plain->words[at]);
    }
}

static void new_name(uint64_t name, struct dice *dice)
{
    objects[name] = ss_object_new(&run, kinds);
    CHECK(objects[name] != NULL);
    names[name] = &all[made++];
    fill(objects[name], names[name], dice);
}

static bool is_somewhere(const struct plain *plain)
{
    for (uint64_t at = 0; at < PLACES; at++)
        if (places[at] == plain)
            return true;
    return false;
}

static void store(uint64_t at, uint64_t name)
{
    if (is_somewhere(names[name]) && places[at] != names[name])
        return; /* an object in two places is two copies */
    put(at, objects[name]);
    places[at] = names[name];
}

/* Of some places: each gets the next one's object, as a swap or a sort does it. */
static void rotate(struct dice *dice)
{
    uint64_t ring[4], count = 2 + below(dice, 3);
    struct ss_object *held[4];
    struct plain *plain[4];
    for (uint64_t i = 0; i < count; i++) {
        ring[i] = below(dice, PLACES);
        for (uint64_t j = 0; j < i; j++)
            if (ring[i] == ring[j])
                return;
    }
    for (uint64_t i = 0; i < count; i++) {
        held[i] = read(ring[(i + 1) % count]);
        plain[i] = places[ring[(i + 1) % count]];
    }
    for (uint64_t i = 0; i < count; i++) {
        put(ring[i], held[i]);
        places[ring[i]] = plain[i];
    }
}

/* A run of places is removed, those behind it move up, and new ones come at the end. */
static void shift(struct dice *dice)
{
    uint64_t first = below(dice, PLACES), count = 1 + below(dice, PLACES - first);
    uint64_t end = first + count, rest = PLACES - end;
    if (count == 1 && chance(dice, 2))
        take_along(ss_object_leave(&run, place_of(first)));
    else
        take_along(ss_objects_leave(&run, place_of(first), count * WIDTH));
    memmove(&state[place_of(first)], &state[place_of(end)], rest * WIDTH * sizeof *state);
    memmove(&places[first], &places[end], rest * sizeof *places);
    for (uint64_t at = end; at < PLACES; at++)
        ss_object_moved(&run, place_of(at), place_of(at - count));
    for (uint64_t at = first + rest; at < PLACES; at++) {
        places[at] = &all[made++];
        for (uint64_t i = 0; i < WIDTH; i++)
            places[at]->words[i] = state[place_of(at) + i] = roll(dice);
    }
}

static void check(void)
{
    for (uint64_t at = 0; at < PLACES; at++)
        CHECK(memcmp(&state[place_of(at)], places[at]->words, sizeof places[at]->words) == 0);
    for (uint64_t name = 0; name < NAMES; name++)
        for (uint64_t i = 0; i < WIDTH; i++)
            CHECK(get(objects[name], i) == names[name]->words[i]);
    for (uint64_t name = 0; name < NAMES; name++)
        for (uint64_t other = 0; other < NAMES; other++)
            CHECK((objects[name] == objects[other]) == (names[name] == names[other]));
}

static void objects_behave_as_python_has_them(uint64_t seed)
{
    scenario = "objects behave as Python has them";
    struct dice dice = dice_for(seed, 0);
    memset(&run, 0, sizeof run);
    struct ss_config config = {.element_limit = 1 << 22};
    CHECK(ss_arena_open(&run, &config, false));
    run.state = state;
    made = 0;
    for (uint64_t at = 0; at < PLACES; at++) {
        places[at] = &all[made++];
        for (uint64_t i = 0; i < WIDTH; i++)
            places[at]->words[i] = state[place_of(at) + i] = roll(&dice);
    }
    for (uint64_t name = 0; name < NAMES; name++)
        new_name(name, &dice);
    for (uint64_t step = 0; step < STEPS; step++) {
        uint64_t name = below(&dice, NAMES), at = below(&dice, PLACES);
        switch (below(&dice, 16)) {
        case 0:
            if (made < sizeof all / sizeof *all - PLACES)
                new_name(name, &dice);
            break;
        case 1:
        case 2:
        case 3:
            objects[name] = read(at);
            names[name] = places[at];
            break;
        case 4:
        case 5:
        case 6:
            store(at, name);
            break;
        case 7:
        case 8:
            fill(objects[name], names[name], &dice);
            break;
        case 9:
        case 10:
        case 11:
            rotate(&dice);
            break;
        case 12:
            if (made < sizeof all / sizeof *all - PLACES)
                shift(&dice);
            break;
        case 13:
            state[place_of(at)] = places[at]->words[0] = roll(&dice);
            break;
        default:
            objects[name] = objects[at % NAMES];
            names[name] = names[at % NAMES];
        }
        check();
    }
    ss_arena_clear(&run);
    CHECK(run.objects == NULL);
    ss_arena_close(&run);
}

/* In two places at once: the first is what its name stands for, and when that is gone the second; a
 * third place forgets the second. */
static void an_object_in_two_places(void)
{
    scenario = "an object in two places";
    memset(&run, 0, sizeof run);
    struct ss_config config = {.element_limit = 1 << 12};
    CHECK(ss_arena_open(&run, &config, false));
    run.state = state;
    struct dice dice = dice_for(1, 2);
    struct ss_object *object = ss_object_new(&run, kinds), *other = ss_object_new(&run, kinds);
    CHECK(ss_objects_leave(&run, 0, UINT64_MAX) == NULL && ss_object_leave(&run, 7) == NULL);
    struct plain plain;
    fill(object, &plain, &dice);
    fill(other, &plain, &dice);
    put(0, object), put(1, object), put(2, object);
    CHECK(object->forward == place_of(0) && object->also == place_of(2));
    for (uint64_t place = 0; place < 40; place++) /* the table grows, and both are found in it */
        CHECK(ss_object_of(&run, kinds, sizeof state + place) != NULL);
    take_along(ss_object_leave(&run, place_of(2)));
    CHECK(object->forward == place_of(0) && object->also == SS_NOWHERE);
    put(2, object);
    CHECK(object == read(0));
    put(0, other);
    CHECK(object->forward == place_of(2) && object->also == SS_NOWHERE);
    put(1, object);
    CHECK(object->forward == place_of(2) && object->also == place_of(1));
    ss_object_moved(&run, place_of(1), place_of(6));
    CHECK(object->also == place_of(6));
    take_along(ss_object_leave(&run, place_of(6)));
    CHECK(object->forward == place_of(2) && object->also == SS_NOWHERE);
    put(1, object);
    struct ss_object *met = read(1);
    take_along(ss_object_leave(&run, place_of(2)));
    CHECK(met != object && ss_object_resolved(object) == met && read(1) == met);
    put(3, object);
    put(1, other);
    set(object, 0, 77);
    CHECK(met->forward == place_of(3) && get(met, 0) == 77 && state[place_of(3)] == 77);
    take_along(ss_objects_leave(&run, 0, place_of(PLACES)));
    CHECK(met->forward == SS_NOWHERE && met->also == SS_NOWHERE && get(object, 0) == 77);
    ss_arena_close(&run);
}

static void a_list_compares_them(void)
{
    scenario = "a list compares them";
    memset(&run, 0, sizeof run);
    struct ss_config config = {.element_limit = 1 << 10};
    CHECK(ss_arena_open(&run, &config, false));
    run.state = state;
    double nan = __builtin_nan("");
    struct ss_object *pair[2];
    uint64_t word[2];
    for (int i = 0; i < 2; i++) {
        pair[i] = ss_object_new(&run, kinds);
        set(pair[i], 0, 3);
        set(pair[i], 1, i == 0 ? 0 : UINT64_C(1) << 63); /* 0.0 and -0.0 */
        word[i] = (uint64_t)(uintptr_t)pair[i];
    }
    put(3, pair[0]);
    CHECK(ss_elements_compare(SS_KIND_OBJECT, &word[0], SS_KIND_OBJECT, &word[1], SS_EQUAL));
    set(pair[1], 0, 4);
    CHECK(ss_elements_compare(SS_KIND_OBJECT, &word[0], SS_KIND_OBJECT, &word[1], SS_UNEQUAL));
    uint64_t bits;
    memcpy(&bits, &nan, sizeof bits);
    set(pair[0], 1, bits);
    CHECK(ss_elements_compare(SS_KIND_OBJECT, &word[0], SS_KIND_OBJECT, &word[0], SS_UNEQUAL));
    ss_arena_close(&run);
}

static void memory_may_run_out(void)
{
    scenario = "memory may run out";
    for (uint64_t limit = 8; limit < 4096; limit += 24) {
        memset(&run, 0, sizeof run);
        struct ss_config config = {.element_limit = limit};
        CHECK(ss_arena_open(&run, &config, false));
        run.state = state;
        run.speculative = 1;
        uint64_t place = 0;
        while (ss_object_of(&run, kinds, place) != NULL)
            place += WIDTH;
        CHECK(run.verdict == SS_LOG_FULL);
        for (uint64_t at = 0; run.objects != NULL && at < place; at += WIDTH)
            take_along(ss_object_leave(&run, FIRST));
        ss_arena_close(&run);
    }
}

int main(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        objects_behave_as_python_has_them(seed);
    an_object_in_two_places();
    a_list_compares_them();
    memory_may_run_out();
    printf("objects: passed\n");
    return 0;
}
