/* What becomes of the head, with the turn held: it is committed, or run in place.
 *
 * A finished transaction commits if everything that it has read, done and asked still stands; all of
 * these questions are put in one function, `ss_commit`, cheapest first. If one is answered with no, its
 * run is dropped, and it is run in place at once, on the committed state, where it cannot fail again; or
 * it is put back, where the head speculates too (`eager`).
 *
 * A run in place sees a whole state and changes it directly. Between two of its events the turn may be
 * lent to a reader, and the job may end; an event that raises is undone and ends the job. */
#include "core/commit.h"

#include <assert.h>
#include <stdatomic.h>

#include "containers/keyed_changes.h"
#include "containers/keyed_entries.h"
#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/call.h"
#include "core/drop.h"
#include "core/emit.h"
#include "core/engine.h"
#include "core/horizon.h"
#include "core/protocol.h"
#include "core/statistics.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/undo_log.h"
#include "core/version.h"
#include "core/worker.h"
#include "jobs/answers.h"
#include "jobs/early_final.h"
#include "jobs/hooks.h"
#include "jobs/recorder.h"
#include "jobs/timer_firing.h"
#include "processor/figure.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "protocols/boosting.h"
#include "protocols/delta.h"
#include "protocols/retry_queue.h"
#include "protocols/revalidation.h"
#include "specstream.h"

/* The on_commit hook of an event that was run in place; it may want it undone. */
static void ask_in_place(struct ss_worker *worker, int64_t row, int64_t *next)
{
    struct ss_run *run = &worker->run;
    enum ss_answer answer = ss_ask_commit(worker->engine, row, run->emit_mark,
                                          (uint64_t)(run->emit_top - run->emit_mark));
    if (answer == SS_PROCEED)
        return;
    run->verdict = answer == SS_RUN_AGAIN ? SS_ABORTED : SS_RAISED;
    *next = row;
}

bool ss_run_range_in_place(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number, int64_t *first, int64_t last)
{
    struct ss_engine *engine = worker->engine;
    struct ss_run *run = &worker->run;
    /* Where speculators have to be told of the stores: the undo log knows those of one event. */
    bool one_by_one = (engine->protocol->invalidate_readers != NULL && engine->job.horizon > 0) ||
                      ss_has_hook(engine, SS_ON_COMMIT) || engine->early != NULL;

    assert(ss_turn_is_held(engine)); /* invariant 1 */
    __atomic_store_n(&run->speculative, 0, __ATOMIC_RELAXED);
    ss_forget_answers(engine);
    while (*first < last) {
        int64_t from = *first, end_of_range = last;
        /* Relaxed: the fence below orders them. */
        __atomic_store_n(&run->yield, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&run->kill, 0, __ATOMIC_RELAXED);
        /* Dekker with take_turn and stop: the flags are down before we look who asked. */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0)
            return false;
        if (ss_reader_comes_first(engine)) {
            if (engine->kind->before_lending != NULL)
                engine->kind->before_lending(engine, transaction);
            ss_lend_turn(engine);
        }
        ss_let_look(engine);

        if (ss_has_timers(engine) &&
            !ss_timers_before(worker, transaction, run->columns[0], from, &end_of_range))
            return false;
        uint64_t rows = engine->row_words;
        ss_version_begin(engine);
        run->verdict = SS_COMPLETED;
        run->emit_top = run->emit_mark = engine->rows + engine->row_words;
        run->emit_end = engine->rows + engine->row_capacity;
        *first = ss_call(worker, SS_PLAIN, from, one_by_one ? from + 1 : end_of_range);
        if (run->verdict == SS_COMPLETED && SS_UNLIKELY(ss_has_hook(engine, SS_ON_COMMIT)))
            ask_in_place(worker, from, first);
        const struct ss_undo *end = run->undo_top;
        if (run->verdict != SS_COMPLETED) {
            ss_undo_roll_back(run);
            run->emit_top = run->emit_mark;
            ss_boost_undo_head(worker);
        }
        ss_touched_settle(worker, run->verdict != SS_COMPLETED);
        if (engine->protocol->invalidate_readers != NULL && engine->job.horizon > 0)
            engine->protocol->invalidate_readers(worker, number, end);
        engine->row_words = (uint64_t)(run->emit_top - engine->rows);
        if (SS_UNLIKELY(engine->early != NULL) && run->verdict == SS_COMPLETED)
            ss_early_copy(worker, end, rows, transaction->spans, NULL);
        ss_version_end(engine);
        ss_apply(worker, *first - from);
        if (ss_has_timers(engine) && *first > from) {
            ss_timers_pass_row(engine, run->columns[0], *first - 1);
            if (engine->early != NULL)
                ss_timers_copy_clock(engine);
        }
        if (run->verdict == SS_COMPLETED) {
            ss_forget_answers(engine);
            continue;
        }
        if (run->verdict == SS_KILLED) {
            /* Relaxed: where the wish is not seen yet, the next turn of the loop looks behind
             * its fence. */
            if (atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0)
                return false;
            continue; /* meant for a speculative run of this worker that is long over */
        }
        if (run->verdict == SS_ABORTED) {
            ss_count(&worker->statistics.aborts[SS_ABORT_HOOK], 1);
            ss_count(&worker->statistics.reruns, 1);
            ss_tell_abort(engine, from, SS_ABORT_HOOK);
            continue;
        }
        assert(!run->speculative); /* invariant 4: only a head run on committed state raises */
        if (ss_find_answers(worker, *first, NULL))
            continue;
        engine->failed = true;
        engine->no_memory = run->verdict == SS_NO_MEMORY;
        if (run->verdict == SS_FAULTED)
            engine->fault = worker->containment.fault;
        return false;
    }
    return true;
}

bool ss_run_chunk_in_place(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number)
{
    struct ss_engine *engine = worker->engine;
    int64_t next = transaction->first;
    assert(next == engine->consumed); /* invariant 2: commits in order */
    int64_t began = ss_time_run(worker);
    bool done = ss_run_range_in_place(worker, transaction, number, &next, transaction->last);
    if (SS_UNLIKELY(began != 0)) {
        int64_t taken = ss_now() - began;
        ss_sample(worker, taken);
        if (engine->recorder != NULL)
            ss_record_in_place(engine, transaction, taken);
    }
    return done;
}

bool ss_run_rest(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number)
{
    int64_t next = transaction->last;
    ss_set_range(worker->engine, transaction, number);
    if (next == transaction->last)
        return true;
    ss_set_status(transaction, number, SS_IN_PLACE); /* it may lend the turn, as below */
    ss_call_for_help(worker);
    return ss_run_range_in_place(worker, transaction, number, &next, transaction->last);
}

enum ss_progress ss_commit(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number)
{
    struct ss_engine *engine = worker->engine;
    const struct ss_protocol *protocol = engine->protocol;
    enum ss_abort_reason reason = transaction->verdict == SS_ABORTED
                                      ? transaction->reason
                                      : ss_reason_of(transaction->verdict);
    enum ss_answer answer = SS_PROCEED;
    bool in_place = true;
    if (ss_has_timers(engine) && transaction->verdict == SS_COMPLETED &&
        ss_timers_before_commit(worker, transaction, number) != SS_FIRED) {
        protocol->roll_back(engine, transaction);
        ss_boost_roll_back(engine, transaction);
        return SS_ENDED;
    }
    if (transaction->verdict == SS_COMPLETED) {
        if (ss_has_timers(engine) && ss_timers_divide(engine, transaction)) {
            reason = SS_ABORT_TIMER;
        } else if (ss_has_timers(engine) && ss_timers_rewind(engine, transaction)) {
            reason = SS_ABORT_TIMER;
        } else if (!protocol->validate(engine, transaction)) {
            reason = transaction->reason;
            in_place = !protocol->head_speculates;
        } else if (ss_boost_is_stolen(transaction)) {
            reason = ss_boost_loss(engine, transaction);
            in_place = reason == SS_ABORT_SHADOW || !protocol->head_speculates;
        } else if (!ss_delta_fits(engine, transaction)) {
            transaction->verdict = SS_RAISED; /* which shows only now */
            reason = SS_ABORT_RAISED;
        } else if (!ss_changes_fit(engine, transaction)) {
            reason = transaction->reason;
        } else if (ss_has_timers(engine) &&
                   !ss_timers_reserve(engine, transaction->change_count)) {
            reason = SS_ABORT_LOG_FULL;
        } else if ((answer = ss_ask_finished(engine, transaction)) != SS_PROCEED) {
            reason = SS_ABORT_HOOK;
        } else if (!ss_rows_reserve(engine, transaction->row_words)) {
            reason = SS_ABORT_LOG_FULL; /* the run in place needs room as well, and tells who has none */
        } else if (!ss_boost_commit(worker, transaction)) {
            reason = transaction->reason;
        } else {
            ss_rows_append(engine, transaction->rows, transaction->row_words);
            assert(ss_goes_by_key(engine) || transaction->first == engine->consumed); /* invariant 2 */
            ss_version_begin(engine);
            protocol->publish(engine, transaction);
            if (ss_has_timers(engine))
                ss_timers_pass_transaction(engine, transaction);
            ss_version_end(engine);
            engine->was_rerun = false;
            ss_apply(worker, transaction->last - transaction->first);
            return SS_COMMITTED;
        }
    }
    if (answer == SS_FAIL) {
        protocol->roll_back(engine, transaction);
        engine->failed = true;
        return SS_ENDED;
    }
    ss_drop(worker, transaction, reason);
    if (!in_place) {
        /* Relaxed: the status that ss_put_back sets releases it. */
        atomic_store_explicit(&transaction->waits_for, -1, memory_order_relaxed);
        ss_put_back(engine, transaction, number);
        return SS_PUT_BACK;
    }
    /* No longer FINISHED: while the rerun lends the turn to a reader, who else gets hold of it must
     * not commit the dropped run, or run the chunk a second time. (`rerunning` is relaxed: it is but a
     * hint for the horizon.) */
    ss_set_status(transaction, number, SS_IN_PLACE);
    atomic_store_explicit(&engine->rerunning, engine->was_rerun ? SS_RERUN_AGAIN : SS_RERUN_ONCE,
                          memory_order_relaxed);
    engine->was_rerun = true;
    if (reason == SS_ABORT_CONFLICT)
        ss_doubt_behind(worker, number);
    ss_call_for_help(worker);
    if (engine->cuts_heads)
        ss_set_range(engine, transaction, number); /* timed as a whole, though its run may have stopped before */
    bool done = engine->kind->run_in_place(worker, transaction, number);
    atomic_store_explicit(&engine->rerunning, SS_RERUN_NONE, memory_order_relaxed);
    return done ? SS_COMMITTED : SS_ENDED;
}
