/* Timers fire.
 *
 * What a timer runs is a unit of its own. It is always run in place by whoever holds the turn: it commits, or
 * is undone. Its entry is removed before, and stays removed.
 *
 * A speculative run knows nothing of this. When it commits, first everything fires that is due before
 * its first event; then what it has read is compared as always, so that what the timers have changed
 * is a conflict like any other. If one is due between its own events, which may have set it, it
 * is dropped, and run in place, which stops where one is due.
 *
 * At the end of the input those fire that wait then, once; those that they set stay. */
#include "jobs/timer_firing.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "containers/keyed.h"
#include "containers/keyed_entries.h"
#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/call.h"
#include "core/engine.h"
#include "core/job_kind.h"
#include "core/narrow.h"
#include "core/protocol.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/undo_log.h"
#include "core/version.h"
#include "core/worker.h"
#include "jobs/answers.h"
#include "jobs/early.h"
#include "jobs/early_final.h"
#include "processor/figure.h"
#include "processor/processor.h"
#include "specstream.h"
#include "specstream_containers.h"

_Static_assert(SS_TIMER_PLACE == 3 + SS_MOST_KEY_WORDS, "a column for each word of a key");
_Static_assert(SS_TIMER_COLUMNS == SS_TIMER_PLACE + 1, "the last column");

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
    if (!ahead && !ss_timers_have_room(run))
        return SS_TIMER_IS_SET;
    entry = ss_keyed_insert(run, container, key);
    if (entry == SS_NOWHERE)
        return run->raised == SS_FULL ? SS_TIMERS_FULL : SS_TIMER_IS_SET;
    uint64_t word = ss_timer_time_word(keyed, entry);
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
    ss_timers_stop_for(run, at);
    return SS_TIMER_IS_SET;
}

/* ---- firing ---- */

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
    int64_t number = ss_goes_by_key(engine)
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
        engine->fault = worker->containment.fault;
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
        if (item.rank == 0 && ss_due_is_set(engine, &item) &&
            ss_due_at(engine, ss_due_container(engine, &item), item.entry) <= time &&
            !expire(worker, &item))
            return false;
    }
    return true;
}

/* What is known of a timer that is about to fire, and the one row that it is. */
static void describe(struct ss_engine *engine, const struct ss_due *item)
{
    struct ss_timers *timers = engine->timers;
    const struct ss_keyed *keyed = ss_due_container(engine, item);
    int64_t clock = ss_timers_clock(engine);
    timers->firing = (struct ss_firing){
        .number = (int64_t)ss_word_read(ss_timers_word(engine, SS_HEADER_FIRED)),
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
    const struct ss_keyed *keyed = ss_due_container(engine, &item);
    struct ss_undo undos[MOST_UNDOS];
    uint64_t rows = engine->row_words;

    describe(engine, &item);
    if (!expire_aside(worker, timers->firing.time))
        return SS_FIRING_ENDED;
    ss_touched_settle(worker, false);
    int taken = ss_timers_reserve_firing(timers) ? take_out(worker, &item, undos) : -1;
    if (taken < 0) {
        fail_before(worker);
        return SS_FIRING_ENDED;
    }
    ss_heap_pop(timers);
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
    ss_word_write(ss_timers_word(engine, SS_HEADER_FIRED), (uint64_t)timers->firing.number + 1);
    ss_timers_move_clock(engine, timers->firing.time);
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
        ss_timers_have_room(run) ? ss_keyed_insert(run, firing->container, firing->key) : SS_NOWHERE;
    bool done = entry != SS_NOWHERE;
    if (done) {
        ss_word_write(&engine->state[entry], firing->stamp);
        ss_word_write(&engine->state[ss_timer_time_word(keyed, entry)], (uint64_t)firing->at);
        ss_word_write(ss_timers_word(engine, SS_HEADER_FIRED), (uint64_t)firing->number);
        ss_timers_set_clock(engine, firing->clock);
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
    while ((item = ss_heap_first(engine)) != NULL) {
        if (end == 0)
            return item->at <= time ? item : NULL;
        if (item->rank != 0 && item->stamp <= end)
            return item;
        timers->aside[timers->aside_count++] = *item;
        ss_heap_pop(timers);
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
                if (engine->kind->before_lending != NULL)
                    engine->kind->before_lending(engine, lend);
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
                ss_heap_pop(timers);
                outcome = expire(worker, &due) ? SS_FIRED : SS_FIRING_ENDED;
                if (outcome != SS_FIRED)
                    ss_heap_push(timers, due); /* it is still there */
            }
            ss_version_end(engine);
            has_fired = true;
        }
    }
    while (timers->aside_count > 0)
        ss_heap_push(timers, timers->aside[--timers->aside_count]);
    ss_timers_tell_next(timers);
    return outcome;
}

bool ss_timers_before(struct ss_worker *worker, struct ss_transaction *transaction,
                      const void *times, int64_t first, int64_t *last)
{
    struct ss_engine *engine = worker->engine;
    struct ss_timers *timers = engine->timers;
    int64_t clock = ss_timers_clock(engine);
    int64_t time = ss_time_at(times, first);
    time = time > clock ? time : clock;
    timers->end = 0;
    if (ss_timers_next(timers) <= time && fire_all(worker, transaction, time, 0) != SS_FIRED)
        return false;
    int64_t low = first + 1, high = *last;
    int64_t next = ss_timers_next(timers);
    while (low < high) { /* the first event that is not before the next one */
        int64_t middle = low + (high - low) / 2;
        if (ss_time_at(times, middle) < next)
            low = middle + 1;
        else
            high = middle;
    }
    *last = low;
    /* Events may be before the clock, where the input had ended: a timer is due by that. */
    clock = ss_timers_clock(engine);
    timers->until = ss_time_at(times, low - 1);
    timers->until = timers->until > clock ? timers->until : clock;
    return true;
}

enum ss_fired ss_timers_before_commit(struct ss_worker *worker, struct ss_transaction *transaction,
                                      int64_t number)
{
    struct ss_engine *engine = worker->engine;
    int64_t clock = ss_timers_clock(engine);
    int64_t time = engine->kind->time_of(engine, transaction, false);
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
    int64_t last = engine->kind->time_of(engine, transaction, true);
    int64_t clock = ss_timers_clock(engine);
    bool is_one = transaction->last - transaction->first == 1;
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
    if (outcome == SS_FIRED && engine->kind->is_endless)
        timers->end = 0;
    return outcome;
}

/* ---- early results (early.c) ---- */

/* It has not fired. */
static void unfire(struct ss_worker *worker, const struct ss_due *item, const struct ss_undo *undos,
                   int count)
{
    ss_early_begin_back(worker->engine);
    ss_undo_roll_back(&worker->run);
    put_back(worker, undos, count);
    ss_early_end_back(worker->engine);
    ss_touched_settle(worker, true);
    ss_timers_push(worker->engine, ss_due_container(worker->engine, item), item->entry);
}

static enum ss_fired_early fire_early(struct ss_worker *worker, int64_t time, struct ss_key after,
                                      struct ss_key before, struct ss_applied **applied, bool *answered)
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
    ss_heap_pop(timers);
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
        uint64_t *fired = ss_timers_word(engine, SS_HEADER_FIRED);
        uint64_t *clock = ss_timers_word(engine, SS_HEADER_CLOCK);
        undos[all++] = (struct ss_undo){fired, ss_word_read(fired)};
        ss_word_write(fired, ss_word_read(fired) + 1);
        undos[all++] = (struct ss_undo){clock, ss_word_read(clock)};
        ss_timers_move_clock(engine, timers->firing.time);
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
