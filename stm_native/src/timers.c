/* Timers.
 *
 * A timer is an entry of a keyed container whose value is a time. It *fires* before the first event
 * that is not before its time, or when no event before its time can come any more; those that are due at
 * once, in the order of (time, stamp). What it then runs is a unit of its own. It is always run in place by
 * whoever holds the turn: it commits, or is undone. Its entry is removed before, and stays removed.
 *
 * So that rows do not depend on how the input is cut, the time of a firing is not that of the event
 * that brought it about, which may be known or not; it is the larger of the timer's own and of all events
 * and firings before. That clock and the number of firings are words of the container's header: part of
 * the state, written by the head only, and read by nobody else.
 *
 * There may be several containers of timers, one for each vertex of a pipeline that has some. They have one
 * clock and one number of firings, in the header of the first one, and one heap. Of those due at once the
 * order is (time, rank, stamp), where the rank says which container.
 *
 * When one is due next, the heap knows. It belongs to the engine and is made of the entries; it is touched
 * with the turn only. An entry comes into it when the event that has set it is final: out of the list of
 * what the event in place has touched (keyed_entries.c), or has inserted as a speculative run
 * (keyed_changes.c). An item whose entry has another stamp by now has been cancelled or set anew, and
 * is passed by.
 *
 * A speculative run knows nothing of this. When it commits, first everything fires that is due before
 * its first event; then what it has read is compared as always, so that what the timers have changed
 * is a conflict like any other. If one is due between its own events, which may have set it, it
 * is dropped, and run in place, which stops where one is due.
 *
 * At the end of the input those fire that wait then, once; those that they set stay. */
#include "timers.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "early.h"
#include "engine.h"
#include "fault.h"
#include "keyed.h"
#include "keyed_entries.h"
#include "look.h"
#include "narrow.h"
#include "open_job.h"
#include "processor.h"
#include "protocol.h"
#include "ranges.h"
#include "redo_log.h"
#include "specstream.h"
#include "specstream_containers.h"
#include "state_words.h"
#include "statistics.h"
#include "transaction.h"
#include "turn.h"
#include "undo_log.h"
#include "worker.h"

_Static_assert(SS_TIMER_PLACE == 3 + SS_MOST_KEY_WORDS, "a column for each word of a key");
_Static_assert(SS_TIMER_COLUMNS == SS_TIMER_PLACE + 1, "the last column");

static const uint64_t first_capacity = 64;
/* The clock of a new state, whose words are 0, is INT64_MIN. */
static const uint64_t sign_bit = UINT64_C(1) << 63;

/* ---- the words ---- */

/* Of the header that has the clock. */
static uint64_t *header_word(const struct ss_engine *engine, uint64_t at)
{
    return &engine->state[engine->timers->keyed->of.header + at];
}

static uint64_t time_word(const struct ss_keyed *keyed, uint64_t entry)
{
    return entry + SS_KEY_WORD + keyed->of.key_words;
}

static int64_t clock_of(const struct ss_engine *engine)
{
    /* Without timers nothing asks for it. */
    if (engine->timers->keyed == NULL)
        return INT64_MIN;
    return (int64_t)(ss_word_read(header_word(engine, SS_HEADER_CLOCK)) ^ sign_bit);
}

static void pass(struct ss_engine *engine, int64_t time)
{
    if (time > engine->timers->latest)
        engine->timers->latest = time;
    if (engine->timers->keyed != NULL && time > clock_of(engine))
        ss_word_write(header_word(engine, SS_HEADER_CLOCK), (uint64_t)time ^ sign_bit);
}

static bool goes_by_time(const struct ss_keyed *keyed)
{
    return keyed->of.rank != 0 || (keyed->of.kind == SS_KEYED && keyed->of.expires != 0);
}

static int64_t later(int64_t time, int64_t by)
{
    return time > INT64_MAX - by ? INT64_MAX : time + by;
}

/* From the last write of an entry to its end, in the unit of the times. What is between two times is
 * rounded up. */
static int64_t lifetime_of(const struct ss_engine *engine, const struct ss_keyed *keyed)
{
    int64_t expires = keyed->of.expires;
    /* Written before the first event, and never again while events run. */
    int64_t tick = (int64_t)ss_word_read(&engine->state[keyed->of.header + SS_HEADER_TICK]);
    return tick == 0 ? expires : expires / tick + (expires % tick != 0);
}

/* The column of a segment is shifted: an address outside of it must not be formed as a pointer. */
static int64_t time_at(const void *times, int64_t row)
{
    return *(const int64_t *)((uintptr_t)times + (uintptr_t)row * sizeof(int64_t));
}

static int64_t time_of(const struct ss_engine *engine, const struct ss_transaction *transaction,
                       bool of_last)
{
    if (!ss_is_open(engine))
        return time_at(engine->job.columns[0],
                       of_last ? transaction->last - 1 : transaction->first);
    const struct ss_span *span = &transaction->spans[of_last ? transaction->span_count - 1 : 0];
    return time_at(span->segment->columns[0], of_last ? span->last - 1 : span->first);
}

/* ---- the heap ---- */

static const struct ss_keyed *container_of(const struct ss_engine *engine,
                                           const struct ss_due *item)
{
    return &engine->keyed[item->container];
}

/* What expires at the time of a timer has gone when that fires. */
static bool is_before(const struct ss_due *a, const struct ss_due *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->rank != b->rank ? a->rank < b->rank : a->stamp < b->stamp;
}

static bool is_set(const struct ss_engine *engine, const struct ss_due *item)
{
    return ss_word_read(&engine->state[item->entry]) == item->stamp;
}

static void tell_next(struct ss_timers *timers)
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

static void push(struct ss_timers *timers, struct ss_due item)
{
    struct ss_due *heap = timers->heap;
    assert(timers->count < timers->capacity);
    uint64_t at = timers->count++;
    for (; at > 0 && is_before(&item, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

static void pop(struct ss_timers *timers)
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
        if (is_set(engine, &heap[i]) &&
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
        if (goes_by_time(&engine->keyed[i]))
            entries += ss_word_read(
                &engine->state[engine->keyed[i].of.header + SS_HEADER_COUNT]);
    return entries;
}

/* When a timer fires, or an entry expires. */
static int64_t due_at(const struct ss_engine *engine, const struct ss_keyed *keyed, uint64_t entry)
{
    const uint64_t *state = engine->state;
    int64_t time = (int64_t)ss_word_read(&state[entry + keyed->of.entry_words - 1]);
    return later(time, lifetime_of(engine, keyed));
}

void ss_timers_push(struct ss_engine *engine, const struct ss_keyed *keyed, uint64_t entry)
{
    struct ss_timers *timers = engine->timers;
    if (!goes_by_time(keyed))
        return;
    const uint64_t *state = engine->state;
    /* Who sets the same timers anew again and again leaves one item behind each time. Not while an
     * event runs, which may be undone: what it has cancelled is set again then. */
    if (timers->count > 2 * entries_of(engine) + first_capacity)
        sweep(engine);
    push(timers, (struct ss_due){due_at(engine, keyed, entry), ss_word_read(&state[entry]),
                                 (uint32_t)entry, (uint16_t)(keyed - engine->keyed),
                                 (uint16_t)keyed->of.rank});
    tell_next(timers);
}

/* An event in place: makes sure of an item for each entry that it touches, and two. False: its
 * verdict says that there is no memory. */
static bool has_room(struct ss_run *run)
{
    if (ss_timers_reserve(run->worker->engine, run->worker->touched.count + 2))
        return true;
    run->verdict = SS_NO_MEMORY;
    return false;
}

/* An event in place has set something for then: the run stops behind it, if that is due before the
 * last of its events. */
static void stop_for(struct ss_run *run, int64_t at)
{
    /* Relaxed: this thread looks at it, between this event and the next. */
    if (at <= run->worker->engine->timers->until)
        __atomic_store_n(&run->yield, 1, __ATOMIC_RELAXED);
}

bool ss_timers_expect(struct ss_run *run, const struct ss_keyed *keyed, uint64_t entry)
{
    struct ss_worker *worker = run->worker;
    struct ss_engine *engine = worker->engine;
    int64_t now = time_at(run->columns[0], run->event);
    int64_t at = later(now, lifetime_of(engine, keyed));
    if (run->speculative) {
        if (at < worker->transaction->least_timer)
            worker->transaction->least_timer = at;
        return true;
    }
    if (!has_room(run))
        return false;
    if (!keyed->undone) {
        ss_word_write(&run->state[entry + keyed->of.entry_words - 1], (uint64_t)now);
        ss_timers_push(engine, keyed, entry);
    }
    stop_for(run, at);
    return true;
}

void ss_timers_rewound(struct ss_run *run, uint64_t container, uint64_t entry)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_keyed *keyed = &engine->keyed[container];
    int64_t at = later(time_at(run->columns[0], run->event), lifetime_of(engine, keyed));
    assert(run->speculative == 0);
    if (!has_room(run))
        return;
    /* At once: if the event is undone, the item is one whose entry was written since. */
    push(engine->timers, (struct ss_due){at, ss_word_read(&run->state[entry]), (uint32_t)entry,
                                         (uint16_t)container, 0});
    tell_next(engine->timers);
    stop_for(run, at);
}

/* Whether a word is the time of an entry that is there, and goes back to `value`. */
static bool rewinds(const struct ss_engine *engine, uint64_t word, uint64_t value)
{
    const uint64_t *state = engine->state;
    for (uint64_t i = 0; i < engine->config.container_count; i++) {
        const struct ss_container *of = &engine->keyed[i].of;
        if (of->kind != SS_KEYED || of->expires == 0 || word < of->region ||
            word >= of->region + of->room * of->entry_words)
            continue;
        uint64_t entry = word - (word - of->region) % of->entry_words;
        return word - entry == of->entry_words - 1 && ss_word_read(&state[entry]) != 0 &&
               (int64_t)ss_word_read(&state[word]) > (int64_t)value;
    }
    return false;
}

bool ss_timers_rewind(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    if (time_of(engine, transaction, false) >= engine->timers->latest)
        return false;
    const struct ss_write *end = transaction->redo + transaction->redo_count;
    for (const struct ss_write *write = transaction->redo; write != end; write++) {
        if (write->delta == SS_STORED_RANGE)
            write += ss_range_entries(write->value);
        else if (write->delta == SS_NO_DELTA && rewinds(engine, write->word, write->value))
            return true;
    }
    return false;
}

/* The first that is set and in the heap; NULL: none. */
static const struct ss_due *first(struct ss_engine *engine)
{
    struct ss_timers *timers = engine->timers;
    while (timers->count > 0) {
        struct ss_due item = timers->heap[0];
        if (!is_set(engine, &item)) {
            pop(timers);
            continue;
        }
        int64_t at = due_at(engine, container_of(engine, &item), item.entry);
        if (at == item.at)
            break;
        /* It was written since. Written with an earlier time, it has come into the heap once more. */
        item.at = at;
        sink(timers, 0, item);
    }
    tell_next(timers);
    return timers->count > 0 ? &timers->heap[0] : NULL;
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
    tell_next(timers);
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
        if (!goes_by_time(&engine->keyed[at]))
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
    tell_next(timers);
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
    if (engine->job.mode == SS_MODE_OPEN)
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

/* ---- setting one ---- */

uint64_t ss_timer_set(struct ss_run *run, uint64_t container, const uint64_t *key, int64_t at)
{
    struct ss_worker *worker = run->worker;
    struct ss_engine *engine = worker->engine;
    const struct ss_timers *timers = engine->timers;
    const struct ss_keyed *keyed = &engine->keyed[container];
    bool ahead = run->speculative != 0;
    /* Those of other containers are no matter of who set the one that fires. */
    if (!ahead && timers->fires && container == timers->firing.container &&
        at <= timers->firing.at)
        return SS_TIMER_TOO_EARLY;
    uint64_t entry = ss_keyed_find(run, container, key);
    if (entry != SS_NOWHERE)
        ss_keyed_remove(run, container, entry);
    if (run->verdict != SS_COMPLETED)
        return SS_TIMER_IS_SET;
    if (!ahead && !has_room(run))
        return SS_TIMER_IS_SET;
    entry = ss_keyed_insert(run, container, key);
    if (entry == SS_NOWHERE)
        return run->raised == SS_FULL ? SS_TIMERS_FULL : SS_TIMER_IS_SET;
    uint64_t word = time_word(keyed, entry);
    if (ahead) {
        engine->protocol->store(run, word, (uint64_t)at);
        if (at < worker->transaction->least_timer)
            worker->transaction->least_timer = at;
        return SS_TIMER_IS_SET;
    }
    if (keyed->undone) {
        ss_store_in_place(run, (struct ss_unit){word, 0, 0}, (uint64_t)at);
    } else {
        ss_word_write(&run->state[word], (uint64_t)at);
        ss_timers_push(engine, keyed, entry);
    }
    stop_for(run, at);
    return SS_TIMER_IS_SET;
}

/* ---- firing ---- */

/* Room for one more that has emitted rows. */
static bool reserve_firing(struct ss_timers *timers)
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

/* For those that wait for stores in place to be told of. A job of its own number: earlier than all that
 * run. */
static void tell_readers(struct ss_worker *worker, const struct ss_undo *end)
{
    struct ss_engine *engine = worker->engine;
    /* Without a horizon the head may run ahead of itself: of the timers that come before it. */
    if (engine->protocol->invalidate_readers == NULL ||
        (engine->job.horizon == 0 && engine->job.mode != SS_MODE_SPECULATE))
        return;
    /* Relaxed: only holders of the turn move the head. */
    int64_t number = ss_is_open(engine)
                         ? -1
                         : atomic_load_explicit(&engine->next_commit, memory_order_relaxed) - 1;
    engine->protocol->invalidate_readers(worker, number, end);
}

enum { MOST_UNDOS = 8 };

/* Takes the entry out, and gives what that has overwritten; -1: out of memory. */
static int take_out(struct ss_worker *worker, const struct ss_due *item, struct ss_undo *undos)
{
    struct ss_run *run = &worker->run;
    run->event = 0;
    run->verdict = SS_COMPLETED;
    run->undo_top = run->undo_base;
    ss_keyed_remove(run, item->container, item->entry);
    int count = (int)(run->undo_top - run->undo_base);
    assert(count <= MOST_UNDOS);
    if (run->verdict != SS_COMPLETED) {
        ss_undo_roll_back(run);
        return -1;
    }
    memcpy(undos, run->undo_base, (size_t)count * sizeof *undos);
    tell_readers(worker, run->undo_top);
    return count;
}

static void put_back(struct ss_worker *worker, const struct ss_undo *undos, int count)
{
    struct ss_run *run = &worker->run;
    memcpy(run->undo_base, undos, (size_t)count * sizeof *undos);
    run->undo_top = run->undo_base + count;
    ss_undo_roll_back(run);
    tell_readers(worker, run->undo_base + count);
}

static void fail(struct ss_worker *worker, bool no_memory)
{
    struct ss_engine *engine = worker->engine;
    engine->failed = engine->timers->failed = true;
    engine->no_memory = no_memory;
    if (worker->run.verdict == SS_FAULTED)
        engine->fault = worker->fault;
}

/* No memory for taking an entry out: nothing has fired. */
static void fail_before(struct ss_worker *worker)
{
    worker->engine->timers->firing.stamp = 0;
    fail(worker, true);
}

/* Runs what a timer runs; its entry is out. */
static void run_timer(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    struct ss_run *run = &worker->run;
    void *const *columns = run->columns;
    int64_t first_sequence = run->first_sequence;
    uint64_t row_words = engine->row_words;
    run->columns = timers->columns;
    run->first_sequence = timers->firing.number;
    run->verdict = SS_COMPLETED;
    run->emit_top = run->emit_mark = engine->rows + engine->row_words;
    run->emit_end = engine->rows + engine->row_capacity;
    timers->fires = true;
    ss_call(worker, SS_TIMER, 0, 1);
    timers->fires = false;
    run->columns = columns;
    run->first_sequence = first_sequence;
    /* Where its rows begin: a buffer that grew meanwhile has counted them in. */
    engine->row_words = row_words;
}

/* The same, and again with answers where it asks; the end of its undo log. */
static const struct ss_undo *run_until_answered(struct ss_worker *worker)
{
    struct ss_run *run = &worker->run;
    ss_forget_answers(worker->engine);
    while (true) {
        run_timer(worker);
        const struct ss_undo *end = run->undo_top;
        if (run->verdict != SS_COMPLETED) {
            ss_undo_roll_back(run);
            run->emit_top = run->emit_mark;
        }
        if (run->verdict != SS_RAISED ||
            !ss_find_answers(worker, 0, &worker->engine->timers->firing)) {
            ss_forget_answers(worker->engine);
            return end;
        }
        tell_readers(worker, end);
        ss_touched_settle(worker, true);
    }
}

/* What it has emitted is of no event. */
static void take_rows(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    uint64_t end = (uint64_t)(worker->run.emit_top - engine->rows);
    if (end == engine->row_words)
        return;
    for (uint64_t row = engine->row_words; row < end; row += engine->config.emit_words)
        engine->rows[row] = (uint64_t)(INT64_MIN + timers->firing.number);
    engine->row_words = end;
    timers->firings[timers->firing_count++] = timers->firing;
}

/* Removes an entry that has expired; it is out of the heap. False: out of memory. */
static bool expire(struct ss_worker *worker, const struct ss_due *item)
{
    struct ss_undo undos[MOST_UNDOS];
    ss_touched_settle(worker, false);
    int taken = take_out(worker, item, undos);
    if (taken < 0) {
        fail_before(worker);
        return false;
    }
    ss_touched_settle(worker, false);
    if (SS_UNLIKELY(worker->engine->early != NULL))
        ss_early_copy_words(worker->engine, undos, undos + taken);
    return true;
}

/* Of those that are aside, what has gone by that time. */
static bool expire_aside(struct ss_worker *worker, int64_t time)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    for (uint64_t i = 0; i < timers->aside_count; i++) {
        struct ss_due item = timers->aside[i];
        if (item.rank == 0 && is_set(engine, &item) &&
            due_at(engine, container_of(engine, &item), item.entry) <= time &&
            !expire(worker, &item))
            return false;
    }
    return true;
}

/* What is known of a timer that is about to fire, and the one row that it is. */
static void describe(struct ss_engine *engine, const struct ss_due *item)
{
    struct ss_timers *timers = engine->timers;
    const struct ss_keyed *keyed = container_of(engine, item);
    int64_t clock = clock_of(engine);
    timers->firing = (struct ss_firing){
        .number = (int64_t)ss_word_read(header_word(engine, SS_HEADER_FIRED)),
        .time = item->at > clock ? item->at : clock,
        .at = item->at,
        .clock = clock,
        .stamp = item->stamp,
        .container = item->container,
    };
    for (uint64_t i = 0; i < keyed->of.key_words; i++)
        timers->firing.key[i] = ss_word_read(&engine->state[item->entry + SS_KEY_WORD + i]);
    timers->row[0] = timers->firing.time;
    timers->row[1] = INT64_MIN;
    timers->row[2] = item->at;
    memcpy(&timers->row[3], timers->firing.key, sizeof timers->firing.key);
    timers->row[SS_TIMER_PLACE] = item->rank - 1;
}

/* Fires the first of the heap. */
static enum ss_fired fire(struct ss_worker *worker, struct ss_due item)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    struct ss_run *run = &worker->run;
    const struct ss_keyed *keyed = container_of(engine, &item);
    struct ss_undo undos[MOST_UNDOS];
    uint64_t rows = engine->row_words;

    describe(engine, &item);
    if (!expire_aside(worker, timers->firing.time))
        return SS_FIRING_ENDED;
    ss_touched_settle(worker, false);
    int taken = reserve_firing(timers) ? take_out(worker, &item, undos) : -1;
    if (taken < 0) {
        fail_before(worker);
        return SS_FIRING_ENDED;
    }
    pop(timers);
    const struct ss_undo *end = run_until_answered(worker);
    tell_readers(worker, end);
    if (run->verdict == SS_KILLED) {
        /* The job ends in its midst; or the flag was meant for a speculative run of this worker that is
         * long over. It has not fired. */
        put_back(worker, undos, taken);
        ss_touched_settle(worker, true);
        ss_timers_push(engine, keyed, item.entry);
        /* Relaxed: as in run_range_in_place. */
        return atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0 ? SS_FIRING_ENDED
                                                                              : SS_FIRED;
    }
    ss_touched_settle(worker, run->verdict != SS_COMPLETED);
    take_rows(worker);
    ss_word_write(header_word(engine, SS_HEADER_FIRED), (uint64_t)timers->firing.number + 1);
    pass(engine, timers->firing.time);
    if (item.stamp == timers->counted)
        timers->counted = 0;
    else
        ss_count(&worker->statistics.timers, 1);
    if (SS_UNLIKELY(engine->early != NULL)) {
        ss_early_copy_words(engine, undos, undos + taken);
        ss_early_copy(worker, end, rows, NULL, &timers->firing);
        ss_timers_copy_clock(engine);
    }
    if (run->verdict == SS_COMPLETED)
        return SS_FIRED;
    fail(worker, run->verdict == SS_NO_MEMORY);
    return SS_FIRING_ENDED;
}

bool ss_engine_take_back_timer(struct ss_engine *engine)
{
    struct ss_timers *timers = engine->timers;
    if (timers == NULL || !timers->failed || timers->firing.stamp == 0)
        return true;
    const struct ss_firing *firing = &timers->firing;
    const struct ss_keyed *keyed = &engine->keyed[firing->container];
    if (!keyed->undone)
        return true;
    struct ss_worker *worker = &engine->workers[0];
    struct ss_run *run = &worker->run;
    /* Relaxed: no worker is in a job, and the pool's mutex hands it to them. */
    __atomic_store_n(&run->speculative, 0, __ATOMIC_RELAXED);
    run->event = 0;
    run->verdict = SS_COMPLETED;
    run->undo_top = run->undo_base;
    ss_version_begin(engine);
    /* Its entry may be somebody else's by now; where it lies means nothing. */
    uint64_t entry =
        has_room(run) ? ss_keyed_insert(run, firing->container, firing->key) : SS_NOWHERE;
    bool done = entry != SS_NOWHERE;
    if (done) {
        ss_word_write(&engine->state[entry], firing->stamp);
        ss_word_write(&engine->state[time_word(keyed, entry)], (uint64_t)firing->at);
        ss_word_write(header_word(engine, SS_HEADER_FIRED), (uint64_t)firing->number);
        ss_word_write(header_word(engine, SS_HEADER_CLOCK), (uint64_t)firing->clock ^ sign_bit);
        timers->counted = firing->stamp;
        timers->failed = false;
    } else {
        ss_undo_roll_back(run);
    }
    ss_touched_settle(worker, !done);
    ss_version_end(engine);
    return done;
}

/* The next one that is due by `time`; where nothing is to come any more, by its stamp. NULL: none. */
static const struct ss_due *next_due(struct ss_engine *engine, int64_t time, uint64_t end)
{
    struct ss_timers *timers = engine->timers;
    const struct ss_due *item;
    while ((item = first(engine)) != NULL) {
        if (end == 0)
            return item->at <= time ? item : NULL;
        if (item->rank != 0 && item->stamp <= end)
            return item;
        timers->aside[timers->aside_count++] = *item;
        pop(timers);
    }
    return NULL;
}

/* Fires what is due by `time`, or has a stamp up to `end`. Between two it leaves the turn to readers, or
 * has `lend` lend it. */
static enum ss_fired fire_all(struct ss_worker *worker, struct ss_transaction *lend, int64_t time,
                              uint64_t end)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    struct ss_run *run = &worker->run;
    const struct ss_due *item;
    enum ss_fired outcome = SS_FIRED;
    bool has_fired = false;

    /* Relaxed, here and below: the fence orders them. */
    __atomic_store_n(&run->speculative, 0, __ATOMIC_RELAXED);
    while (outcome == SS_FIRED && (item = next_due(engine, time, end)) != NULL) {
        __atomic_store_n(&run->yield, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&run->kill, 0, __ATOMIC_RELAXED);
        /* Dekker with take_turn and stop: the flags are down before we look who asked. */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0) {
            outcome = SS_FIRING_ENDED;
        } else if (has_fired && engine->job.mode != SS_MODE_LOG_FREE &&
                   ss_reader_comes_first(engine)) {
            if (lend == NULL) {
                outcome = SS_FIRED_SOME;
            } else {
                if (ss_is_open(engine))
                    ss_queue_tell_applied(engine, lend);
                ss_lend_turn(engine);
                has_fired = false;
            }
        } else {
            ss_let_look(engine);
            ss_version_begin(engine);
            struct ss_due due = *item;
            if (due.rank != 0) {
                outcome = fire(worker, due);
            } else {
                pop(timers);
                outcome = expire(worker, &due) ? SS_FIRED : SS_FIRING_ENDED;
                if (outcome != SS_FIRED)
                    push(timers, due); /* it is still there */
            }
            ss_version_end(engine);
            has_fired = true;
        }
    }
    while (timers->aside_count > 0)
        push(timers, timers->aside[--timers->aside_count]);
    tell_next(timers);
    return outcome;
}

bool ss_timers_before(struct ss_worker *worker, struct ss_transaction *transaction,
                      const void *times, int64_t first, int64_t *last)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    int64_t clock = clock_of(engine);
    int64_t time = time_at(times, first);
    time = time > clock ? time : clock;
    timers->end = 0;
    if (ss_timers_next(timers) <= time && fire_all(worker, transaction, time, 0) != SS_FIRED)
        return false;
    int64_t low = first + 1, high = *last;
    int64_t next = ss_timers_next(timers);
    while (low < high) { /* the first event that is not before the next one */
        int64_t middle = low + (high - low) / 2;
        if (time_at(times, middle) < next)
            low = middle + 1;
        else
            high = middle;
    }
    *last = low;
    /* Events may be before the clock, where the input had ended: a timer is due by that. */
    clock = clock_of(engine);
    timers->until = time_at(times, low - 1);
    timers->until = timers->until > clock ? timers->until : clock;
    return true;
}

enum ss_fired ss_timers_before_commit(struct ss_worker *worker, struct ss_transaction *transaction,
                                      int64_t number)
{
    struct ss_engine *engine = worker->engine;
    int64_t clock = clock_of(engine);
    int64_t time = time_of(engine, transaction, false);
    time = time > clock ? time : clock;
    engine->timers->end = 0;
    if (ss_timers_next(engine->timers) > time)
        return SS_FIRED;
    /* While the turn is lent to a reader, whoever gets hold of it must not commit it. */
    ss_set_status(transaction, number, SS_IN_PLACE);
    return fire_all(worker, transaction, time, 0);
}

bool ss_timers_divide(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    int64_t last = time_of(engine, transaction, true);
    int64_t clock = clock_of(engine);
    bool is_one = ss_is_open(engine)
                      ? transaction->span_count == 1 &&
                            transaction->spans[0].last - transaction->spans[0].first == 1
                      : transaction->last - transaction->first == 1;
    last = last > clock ? last : clock;
    return !is_one &&
           (ss_timers_next(engine->timers) <= last || transaction->least_timer <= last);
}

enum ss_fired ss_timers_at(struct ss_worker *worker, int64_t time)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    if (time != INT64_MAX)
        return fire_all(worker, NULL, time, 0);
    if (timers->end == 0)
        timers->end = engine->stamp;
    enum ss_fired outcome = fire_all(worker, NULL, time, timers->end);
    /* The end of a batch is over when its caller has heard of it (ss_engine_go_on_ending). */
    if (outcome == SS_FIRED && ss_is_open(engine))
        timers->end = 0;
    return outcome;
}

void ss_timers_pass_transaction(struct ss_engine *engine, const struct ss_transaction *transaction)
{
    pass(engine, time_of(engine, transaction, true));
}

void ss_timers_pass_row(struct ss_engine *engine, const void *times, int64_t row)
{
    pass(engine, time_at(times, row));
}

/* ---- early results (early.c) ---- */

int64_t ss_timers_clock(const struct ss_engine *engine)
{
    return clock_of(engine);
}

uint64_t *ss_timers_clock_word(const struct ss_engine *engine)
{
    return engine->timers->keyed == NULL ? NULL : header_word(engine, SS_HEADER_CLOCK);
}

void ss_timers_copy_clock(struct ss_engine *engine)
{
    static const uint64_t words[] = {SS_HEADER_CLOCK, SS_HEADER_FIRED};
    for (int i = 0; engine->timers->keyed != NULL && i < 2; i++) {
        const uint64_t *word = header_word(engine, words[i]);
        ss_word_write(&engine->config.state[word - engine->state], ss_word_read(word));
    }
}

void ss_timers_pass(struct ss_engine *engine, int64_t time)
{
    engine->timers->end = 0;
    pass(engine, time);
}

/* The container that goes by time and has the word in one of its entries; NULL: none has. */
static const struct ss_keyed *container_with(const struct ss_engine *engine, uint64_t word)
{
    for (uint64_t i = 0; i < engine->config.container_count; i++) {
        const struct ss_container *of = &engine->keyed[i].of;
        if (goes_by_time(&engine->keyed[i]) && word >= of->region &&
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

/* It has not fired. */
static void unfire(struct ss_worker *worker, const struct ss_due *item, const struct ss_undo *undos,
                   int count)
{
    ss_early_begin_back(worker->engine);
    ss_undo_roll_back(&worker->run);
    put_back(worker, undos, count);
    ss_early_end_back(worker->engine);
    ss_touched_settle(worker, true);
    ss_timers_push(worker->engine, container_of(worker->engine, item), item->entry);
}

static enum ss_fired_early fire_early(struct ss_worker *worker, int64_t time, struct ss_key after,
                                      struct ss_key before, struct ss_applied **applied,
                                      bool *answered)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    struct ss_run *run = &worker->run;
    struct ss_undo undos[MOST_UNDOS + 2];
    const struct ss_due *due = next_due(engine, time, 0);
    if (due == NULL)
        return SS_FIRED_NOTHING;
    struct ss_due item = *due;
    /* Relaxed: as in fire_all. */
    __atomic_store_n(&run->speculative, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&run->yield, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&run->kill, 0, __ATOMIC_RELAXED);
    /* Dekker with stop: the flag is down before we look who asked. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0)
        return SS_FIRED_NOTHING;
    if (item.rank != 0)
        describe(engine, &item);
    timers->until = INT64_MIN; /* nothing follows that it has to stop for */
    ss_touched_settle(worker, false);
    int taken = take_out(worker, &item, undos);
    if (taken < 0)
        return SS_FIRED_LATER;
    pop(timers);
    run->undo_top = run->undo_base;
    run->emit_top = run->emit_mark = engine->rows + engine->row_words;
    worker->is_early = true;
    if (item.rank != 0)
        run_timer(worker);
    worker->is_early = false;
    uint32_t verdict = run->verdict;
    if (verdict != SS_COMPLETED && verdict != SS_RAISED && verdict != SS_FAULTED) {
        unfire(worker, &item, undos, taken);
        return verdict == SS_KILLED ? SS_FIRED_NOTHING : SS_FIRED_LATER;
    }
    if (verdict != SS_COMPLETED) {
        ss_early_begin_back(engine);
        ss_undo_roll_back(run);
        ss_early_end_back(engine);
        run->emit_top = run->emit_mark;
    }
    *answered = item.rank != 0 && ss_find_answers(worker, 0, &timers->firing);
    if (*answered) {
        unfire(worker, &item, undos, taken);
        return SS_FIRED_NOTHING;
    }
    int all = taken;
    if (item.rank != 0) {
        uint64_t *fired = header_word(engine, SS_HEADER_FIRED);
        uint64_t *clock = header_word(engine, SS_HEADER_CLOCK);
        undos[all++] = (struct ss_undo){fired, ss_word_read(fired)};
        ss_word_write(fired, ss_word_read(fired) + 1);
        undos[all++] = (struct ss_undo){clock, ss_word_read(clock)};
        pass(engine, timers->firing.time);
    }
    struct ss_key key = {item.at, INT64_MIN, timers->firing.number};
    if (item.rank == 0)
        key.sequence = INT64_MIN;
    /* One that is due by the clock may be so before an event of an earlier time than its own. */
    key = ss_is_before(before, key) ? before : key;
    key = ss_is_before(key, after) ? after : key;
    *applied = ss_applied_in_place(
        worker, key, key,
        &(struct ss_in_place){.words = undos,
                              .word_count = (uint64_t)all,
                              .firing = item.rank != 0 ? &timers->firing : NULL,
                              .raised = verdict != SS_COMPLETED,
                              .expired = item.rank == 0});
    if (*applied == NULL) {
        for (int i = all; i-- > taken;)
            ss_word_write(undos[i].address, undos[i].value);
        unfire(worker, &item, undos, taken);
        return SS_FIRED_LATER;
    }
    ss_touched_keep(worker);
    return SS_FIRED_ONE;
}

enum ss_fired_early ss_timers_fire_early(struct ss_worker *worker, int64_t time, struct ss_key after,
                                         struct ss_key before, struct ss_applied **applied)
{
    struct ss_timers *timers = worker->engine->timers;
    struct ss_firing last = timers->firing;
    enum ss_fired_early fired;
    bool answered;
    do {
        answered = false;
        fired = fire_early(worker, time, after, before, applied, &answered);
    } while (answered);
    ss_forget_answers(worker->engine);
    timers->firing = last; /* perhaps somebody is still to hear of that one */
    return fired;
}

bool ss_timers_keep_firing(struct ss_engine *engine, const struct ss_firing *firing)
{
    if (!reserve_firing(engine->timers))
        return false;
    engine->timers->firings[engine->timers->firing_count++] = *firing;
    return true;
}
