/* Timers, and when one is due next.
 *
 * A timer is an entry of a keyed container whose value is a time. It *fires* before the first event
 * that is not before its time, or when no event before its time can come any more (timer_firing.c); those
 * that are due at once, in the order of (time, rank, stamp), where the rank says which container.
 *
 * When one is due next, the heap knows. It belongs to the engine and is made of the entries; it is touched
 * with the turn only. An entry comes into it when the event that has set it is final: out of the list of
 * what the event in place has touched (keyed_entries.c), or has inserted as a speculative run
 * (keyed_changes.c). An item whose entry has another stamp by now has been cancelled or set anew, and
 * is passed by. An entry of any other container that expires has an item as well. */
#include "containers/timer_heap.h"

#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "containers/keyed.h"
#include "containers/timer_words.h"
#include "core/engine.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "processor/fault.h"
#include "processor/figure.h"
#include "processor/processor.h"
#include "specstream.h"
#include "specstream_containers.h"

static const uint64_t first_capacity = 64;

/* What expires at the time of a timer has gone when that fires. */
static bool is_before(const struct ss_due *a, const struct ss_due *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->rank != b->rank ? a->rank < b->rank : a->stamp < b->stamp;
}

void ss_timers_tell_next(struct ss_timers *timers)
{
    /* Relaxed: see ss_timers_next. */
    atomic_store_explicit(&timers->next, timers->count == 0 ? INT64_MAX : timers->heap[0].at,
                          memory_order_relaxed);
}

static void sink(struct ss_timers *timers, uint64_t at, struct ss_due item)
{
    struct ss_due *heap = timers->heap;
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &item))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
}

void ss_heap_push(struct ss_timers *timers, struct ss_due item)
{
    struct ss_due *heap = timers->heap;
    assert(timers->count < timers->capacity);
    uint64_t at = timers->count++;
    for (; at > 0 && is_before(&item, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

void ss_heap_pop(struct ss_timers *timers)
{
    struct ss_due last = timers->heap[--timers->count];
    if (timers->count > 0)
        sink(timers, 0, last);
}

static int in_order(const void *left, const void *right)
{
    const struct ss_due *a = left, *b = right;
    if (is_before(a, b) || is_before(b, a))
        return is_before(a, b) ? -1 : 1;
    return a->entry < b->entry ? -1 : a->entry > b->entry;
}

/* Leaves out what is no longer set; and, where a revocation may have brought it twice, one of two. */
static void sweep(struct ss_engine *engine)
{
    struct ss_timers *timers = engine->timers;
    struct ss_due *heap = timers->heap;
    uint64_t kept = 0;
    if (engine->early != NULL)
        qsort(heap, timers->count, sizeof *heap, in_order);
    for (uint64_t i = 0; i < timers->count; i++)
        if (ss_due_is_set(engine, &heap[i]) &&
            (engine->early == NULL || kept == 0 || in_order(&heap[kept - 1], &heap[i]) != 0))
            heap[kept++] = heap[i];
    timers->count = kept;
    for (uint64_t i = kept / 2; i-- > 0;)
        sink(timers, i, timers->heap[i]);
}

bool ss_timers_reserve(struct ss_engine *engine, uint64_t more)
{
    struct ss_timers *timers = engine->timers;
    uint64_t held = timers->count + timers->aside_count;
    if (held + more <= timers->capacity)
        return true;
    uint64_t capacity = 2 * timers->capacity > held + more ? 2 * timers->capacity : 2 * (held + more);
    sig_atomic_t was = ss_step_outside();
    struct ss_due *heap = realloc(timers->heap, capacity * sizeof *heap);
    timers->heap = heap != NULL ? heap : timers->heap;
    struct ss_due *aside = realloc(timers->aside, capacity * sizeof *aside);
    timers->aside = aside != NULL ? aside : timers->aside;
    ss_step_inside(was);
    if (heap == NULL || aside == NULL)
        return false;
    ss_grow(&timers->capacity, capacity);
    return true;
}

/* Of all containers that go by time. */
static uint64_t entries_of(const struct ss_engine *engine)
{
    uint64_t entries = 0;
    for (uint64_t i = 0; i < engine->config.container_count; i++)
        if (ss_goes_by_time(&engine->keyed[i]))
            entries += ss_word_read(
                &engine->state[engine->keyed[i].of.header + SS_HEADER_COUNT]);
    return entries;
}

void ss_timers_push(struct ss_engine *engine, const struct ss_keyed *keyed, uint64_t entry)
{
    struct ss_timers *timers = engine->timers;
    if (!ss_goes_by_time(keyed))
        return;
    const uint64_t *state = engine->state;
    /* Who sets the same timers anew again and again leaves one item behind each time. Not while an
     * event runs, which may be undone: what it has cancelled is set again then. */
    if (timers->count > 2 * entries_of(engine) + first_capacity)
        sweep(engine);
    ss_heap_push(timers, (struct ss_due){ss_due_at(engine, keyed, entry), ss_word_read(&state[entry]),
                                 (uint32_t)entry, (uint16_t)(keyed - engine->keyed),
                                 (uint16_t)keyed->of.rank});
    ss_timers_tell_next(timers);
}

/* An event in place: makes sure of an item for each entry that it touches, and two. False: its
 * verdict says that there is no memory. */
bool ss_timers_have_room(struct ss_run *run)
{
    if (ss_timers_reserve(run->worker->engine, run->worker->touched.count + 2))
        return true;
    run->verdict = SS_NO_MEMORY;
    return false;
}

/* An event in place has set something for then: the run stops behind it, if that is due before the
 * last of its events. */
void ss_timers_stop_for(struct ss_run *run, int64_t at)
{
    /* Relaxed: this thread looks at it, between this event and the next. */
    if (at <= run->worker->engine->timers->until)
        __atomic_store_n(&run->yield, 1, __ATOMIC_RELAXED);
}

bool ss_timers_expect(struct ss_run *run, const struct ss_keyed *keyed, uint64_t entry)
{
    struct ss_worker *worker = run->worker;
    struct ss_engine *engine = worker->engine;
    int64_t now = ss_time_at(run->columns[0], run->event);
    int64_t at = ss_due_after(engine, keyed, now);
    if (run->speculative) {
        if (at < worker->transaction->least_timer)
            worker->transaction->least_timer = at;
        return true;
    }
    if (!ss_timers_have_room(run))
        return false;
    if (!keyed->undone) {
        ss_word_write(&run->state[entry + keyed->of.entry_words - 1], (uint64_t)now);
        ss_timers_push(engine, keyed, entry);
    }
    ss_timers_stop_for(run, at);
    return true;
}

void ss_timers_rewound(struct ss_run *run, uint64_t container, uint64_t entry)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_keyed *keyed = &engine->keyed[container];
    int64_t at = ss_due_after(engine, keyed, ss_time_at(run->columns[0], run->event));
    assert(run->speculative == 0);
    if (!ss_timers_have_room(run))
        return;
    /* At once: if the event is undone, the item is one whose entry was written since. */
    ss_heap_push(engine->timers, (struct ss_due){at, ss_word_read(&run->state[entry]), (uint32_t)entry,
                                         (uint16_t)container, 0});
    ss_timers_tell_next(engine->timers);
    ss_timers_stop_for(run, at);
}

const struct ss_due *ss_heap_first(struct ss_engine *engine)
{
    struct ss_timers *timers = engine->timers;
    while (timers->count > 0) {
        struct ss_due item = timers->heap[0];
        if (!ss_due_is_set(engine, &item)) {
            ss_heap_pop(timers);
            continue;
        }
        int64_t at = ss_due_at(engine, ss_due_container(engine, &item), item.entry);
        if (at == item.at)
            break;
        /* It was written since. Written with an earlier time, it has come into the heap once more. */
        item.at = at;
        sink(timers, 0, item);
    }
    ss_timers_tell_next(timers);
    return timers->count > 0 ? &timers->heap[0] : NULL;
}

bool ss_timers_reserve_firing(struct ss_timers *timers)
{
    if (timers->firing_count < timers->firing_capacity)
        return true;
    uint64_t capacity =
        timers->firing_capacity == 0 ? first_capacity : 2 * timers->firing_capacity;
    struct ss_firing *grown = realloc(timers->firings, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    timers->firings = grown;
    ss_grow(&timers->firing_capacity, capacity);
    return true;
}

bool ss_timers_keep_firing(struct ss_engine *engine, const struct ss_firing *firing)
{
    if (!ss_timers_reserve_firing(engine->timers))
        return false;
    engine->timers->firings[engine->timers->firing_count++] = *firing;
    return true;
}

/* ---- one of the engine's parts ---- */

bool ss_timers_open(struct ss_engine *engine)
{
    bool expires = false;
    for (uint64_t i = 0; i < engine->config.container_count; i++)
        expires = expires || engine->keyed[i].of.expires != 0;
    if (engine->config.timers == 0 && !expires)
        return true;
    struct ss_timers *timers = aligned_alloc(SS_CACHE_LINE, sizeof *timers);
    if (timers == NULL)
        return false;
    memset(timers, 0, sizeof *timers);
    if (engine->config.timers != 0)
        timers->keyed = &engine->keyed[engine->config.timers - 1];
    for (int i = 0; i < SS_TIMER_COLUMNS; i++)
        timers->columns[i] = &timers->row[i];
    engine->timers = timers;
    ss_timers_tell_next(timers);
    return ss_timers_reserve(engine, first_capacity);
}

void ss_timers_close(struct ss_engine *engine)
{
    if (engine->timers == NULL)
        return;
    free(engine->timers->heap);
    free(engine->timers->aside);
    free(engine->timers->firings);
    free(engine->timers);
}

/* Makes the heap of the entries; there is room. */
static void collect(struct ss_engine *engine)
{
    struct ss_timers *timers = engine->timers;
    const uint64_t *state = engine->state;
    timers->count = 0;
    for (uint64_t at = 0; at < engine->config.container_count; at++) {
        const struct ss_container *of = &engine->keyed[at].of;
        if (!ss_goes_by_time(&engine->keyed[at]))
            continue;
        uint64_t used = ss_word_read(&state[of->header + SS_HEADER_USED]);
        for (uint64_t i = 0; i < used; i++) {
            uint64_t entry = of->region + i * of->entry_words;
            if (ss_word_read(&state[entry]) == 0)
                continue;
            ss_timers_push(engine, &engine->keyed[at], entry);
            int64_t time = (int64_t)ss_word_read(&state[entry + of->entry_words - 1]);
            if (of->expires != 0 && time > timers->latest)
                timers->latest = time;
        }
    }
    ss_timers_tell_next(timers);
}

bool ss_timers_renew(struct ss_engine *engine)
{
    struct ss_timers *timers = engine->timers;
    if (timers == NULL)
        return true;
    timers->count = timers->aside_count = timers->counted = 0;
    timers->latest = INT64_MIN;
    if (!ss_timers_reserve(engine, entries_of(engine)))
        return false;
    collect(engine);
    return true;
}

void ss_timers_state_changed(struct ss_engine *engine)
{
    if (engine->timers != NULL)
        engine->timers->end = 0;
}

void ss_timers_start(struct ss_engine *engine)
{
    struct ss_timers *timers = engine->timers;
    if (timers == NULL)
        return;
    /* Where what a timer ran has failed at the end of the input, the next job goes on. An open job is
     * told of ends itself: its own, or one to go on with. */
    if (engine->kind->is_endless)
        timers->end = 0;
    timers->failed = false;
    timers->firing_count = 0;
}

uint64_t ss_timers_bytes(const struct ss_config *config)
{
    bool has_timers = config->timers != 0;
    for (uint64_t i = 0; config->containers != NULL && i < config->container_count; i++)
        has_timers = has_timers || config->containers[i].expires != 0;
    if (!has_timers)
        return 0;
    return sizeof(struct ss_timers) + 4 * first_capacity * sizeof(struct ss_due);
}

uint64_t ss_timers_grown(const struct ss_engine *engine)
{
    const struct ss_timers *timers = engine->timers;
    if (timers == NULL)
        return 0;
    /* The engine has the containers no longer, by which the first of it is known. */
    return sizeof *timers - ss_timers_bytes(&engine->config) +
           2 * ss_counted(&timers->capacity) * sizeof(struct ss_due) +
           ss_counted(&timers->firing_capacity) * sizeof(struct ss_firing);
}

/* ---- early results (early.c) ---- */

/* The container that goes by time and has the word in one of its entries; NULL: none has. */
static const struct ss_keyed *container_with(const struct ss_engine *engine, uint64_t word)
{
    for (uint64_t i = 0; i < engine->config.container_count; i++) {
        const struct ss_container *of = &engine->keyed[i].of;
        if (ss_goes_by_time(&engine->keyed[i]) && word >= of->region &&
            word < of->region + of->room * of->entry_words)
            return &engine->keyed[i];
    }
    return NULL;
}

void ss_timers_note(struct ss_engine *engine, const struct ss_undo *first, const struct ss_undo *end,
                    bool taken_back)
{
    struct ss_timers *timers = engine->timers;
    for (const struct ss_undo *undo = first; undo != end; undo++) {
        uint64_t word = (uint64_t)(undo->address - engine->state);
        const struct ss_keyed *keyed = container_with(engine, word);
        if (keyed == NULL)
            continue;
        uint64_t at = (word - keyed->of.region) % keyed->of.entry_words;
        uint64_t entry = word - at;
        bool is_time = at == keyed->of.entry_words - 1;
        /* A later time it finds when the earlier one has come. */
        bool is_earlier = is_time && (taken_back || (int64_t)ss_word_read(undo->address) < (int64_t)undo->value);
        if ((at != SS_STAMP_WORD && !is_earlier) || ss_word_read(&engine->state[entry]) == 0)
            continue;
        if (timers->count + timers->aside_count == timers->capacity) {
            /* Never more entries than there were, and each of them had an item. */
            collect(engine);
            return;
        }
        ss_timers_push(engine, keyed, entry);
    }
}
