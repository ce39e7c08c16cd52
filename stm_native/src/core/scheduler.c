/* The ordered scheduler.
 *
 * A job is a row of transactions 0, 1, 2 ..., each a chunk of consecutive events. Three counters
 * tell everything:
 *
 *     committed | next_commit = the head | ... claimed ... | next_start | ... not yet claimed ...
 *
 * A worker, again and again, does the first of these that it can:
 *
 *   1. Take the *turn* (turn.c) and advance the head (commit.c). The turn is a lock that is only ever
 *      tried, never waited for, and that exactly one thread holds; who holds it is the only one who
 *      changes the state. It commits every finished transaction at the front of the wait queue, and where the
 *      head is not claimed by anybody, claims it and runs it in place.
 *   2. Claim the next transaction, at most `horizon` beyond the head, and run it speculatively. At
 *      its end it is FINISHED and waits; the worker goes on with something else.
 *   3. Spin for about one event, then sleep (parking.c).
 *
 * The wait queue is the ring of transactions itself: with one ordered source, the number of a
 * transaction is its place, and "next in the queue" is the slot of `next_commit`.
 *
 * A slot goes FREE -> RUNNING -> FINISHED -> FREE, or FREE -> IN_PLACE -> FREE when the head claims
 * it. A transaction that finished with anything but SS_COMPLETED, or whose values no longer hold
 * when it becomes the head, is dropped and run in place at once by whoever holds the turn: there
 * it cannot fail again. Whoever has run one asks at its end whether its values still hold, and if not, runs
 * it once more at once; and finished ones are looked at again while a head runs in place
 * (revalidation.c): so what has to run again seldom keeps all others waiting.
 *
 * Under protocol `eager` the head speculates as well, and a run dropped for a conflict is repeated as
 * a transaction (Brito 2010, 4.2.1 and 4.2.2): FINISHED -> WAITING -> RUNNING, or RUNNING -> WAITING.
 * One that met an earlier transaction directly stays in the retry queue (retry_queue.c) until that one
 * has committed, one that did so indirectly runs again at once; whoever looks for work takes these
 * before it claims a new one. A finished run whose lock was stolen is repeated likewise, without waiting to be the
 * head: so the holder of the turn must first win it (FINISHED -> IN_PLACE) before it commits. The
 * head has nobody to wait for, and nothing changes beside it: its second run is its last.
 *
 * Nobody may sleep while the head could advance. A finisher stores FINISHED, fences, and tries the
 * turn; a holder gives the turn back, fences, and looks at the head once more. Of the two fences
 * one is first, so either the finisher gets the turn or the holder sees it FINISHED.
 *
 * Runaway runs: a speculative run may have read values that never existed together and loop for ever.
 * Such a run ends as soon as it is suspected (watchdog.c); it then counts as finished, and is run in
 * place.
 */
#include "core/scheduler.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/call.h"
#include "core/commit.h"
#include "core/drop.h"
#include "core/engine.h"
#include "core/horizon.h"
#include "core/job_kind.h"
#include "core/parking.h"
#include "core/protocol.h"
#include "core/statistics.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/watchdog.h"
#include "core/worker.h"
#include "jobs/hooks.h"
#include "jobs/prefetch.h"
#include "jobs/recorder.h"
#include "jobs/timer_firing.h"
#include "processor/figure.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "protocols/boosting.h"
#include "protocols/counter_prediction.h"
#include "protocols/retry_queue.h"
#include "protocols/revalidation.h"
#include "specstream.h"

/* ---- the head ---- */

/* True when the slot of the head is FREE and nobody has claimed it. */
static bool head_is_unclaimed(struct ss_engine *engine, int64_t head)
{
    /* Relaxed: a guess; the exchange in `advance` decides. */
    return engine->job.mode == SS_MODE_ORDERED &&
           (!engine->protocol->head_speculates || engine->job.horizon == 0) &&
           atomic_load_explicit(&engine->next_start, memory_order_relaxed) == head;
}

/* Makes sure that nobody but us touches a finished transaction. */
static bool win_finished(struct ss_engine *engine, struct ss_transaction *transaction,
                         int64_t number)
{
    /* Acquire: pairs with the release in ss_set_status. */
    uint64_t finished = atomic_load_explicit(&transaction->status, memory_order_acquire);
    if (finished != ss_status_word(number, SS_DOUBTFUL)) {
        if (finished != ss_status_word(number, SS_FINISHED))
            return false;
        if (!engine->protocol->head_speculates)
            return true; /* only holders of the turn take it out of the queue, or make it doubtful */
    }
    /* Acquire: the logs of the run that finished, which may be a later one than has_status saw. */
    return atomic_compare_exchange_strong_explicit(
        &transaction->status, &finished, ss_status_word(number, SS_IN_PLACE), memory_order_acquire,
        memory_order_relaxed);
}

static bool head_can_advance(struct ss_engine *engine)
{
    /* Acquire: the slot of this head as the commit before it has left it. `stop` brings nothing
     * with it. */
    int64_t head = atomic_load_explicit(&engine->next_commit, memory_order_acquire);
    return head == engine->transactions ||
           atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0 ||
           ss_has_finished(ss_slot_of(engine, head), head) || head_is_unclaimed(engine, head);
}

/* The head is still running: it stops between two events. What it has done so far commits, and the rest is
 * run in place (ss_run_rest). There it needs no logs, and nothing can make it wrong any more; and others
 * see what it has done so much sooner. Of two threads each so runs about half of its events as if it were
 * alone. */
static void ask_to_stop(const struct ss_worker *worker, struct ss_transaction *transaction,
                        int64_t head)
{
    const struct ss_engine *engine = worker->engine;
    if (!engine->cuts_heads || worker->run_nanoseconds < engine->cut_nanoseconds ||
        !ss_has_status(transaction, head, SS_RUNNING))
        return;
    /* Relaxed, both: hints. Who has gone on to another one looks which is the head. */
    struct ss_worker *owner = atomic_load_explicit(&transaction->owner, memory_order_relaxed);
    __atomic_store_n(&owner->run.yield, 1, __ATOMIC_RELAXED);
}

/* There is nothing to claim before the head has ended. So whoever has nothing to do may as well look at those
 * behind it: what the last commits have made wrong runs again beside the head, and not as the head. */
static void doubt_while_idle(const struct ss_worker *worker, int64_t head)
{
    struct ss_engine *engine = worker->engine;
    int64_t number;
    if (ss_can_claim(engine, &number) || ss_has_doubtful(engine))
        return;
    ss_doubt_behind(worker, head);
}

/* With the turn held: everything that can be committed or run as the head. */
static void advance(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    /* Who has come for its share commits one at least, however late it wakes up. */
    for (bool committed = false; atomic_load_explicit(&engine->over, memory_order_relaxed) == 0;
         committed = true) {
        /* Only holders of the turn change next_commit, so we read our own or our predecessor's. */
        assert(ss_turn_is_held(engine));
        int64_t head = atomic_load_explicit(&engine->next_commit, memory_order_relaxed);
        /* Relaxed: a wish, which brings nothing with it. */
        if (head == engine->transactions ||
            atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0) {
            /* A wish to stop is seen there as well. */
            if (ss_has_timers(engine) && head == engine->transactions && engine->job.ends_input &&
                ss_timers_at(worker, INT64_MAX) == SS_FIRED_SOME)
                return;
            ss_end_job(engine);
            return;
        }
        if (committed && ss_reader_comes_first(engine))
            return;

        struct ss_transaction *transaction = ss_slot_of(engine, head);
        enum ss_progress progress;
        if (win_finished(engine, transaction, head)) {
            ss_prefetch_behind(engine, head);
            progress = ss_commit(worker, transaction, head);
            if (progress == SS_COMMITTED && engine->cuts_heads &&
                !ss_run_rest(worker, transaction, head))
                progress = SS_ENDED;
        } else {
            int64_t unclaimed = head;
            /* Relaxed: the number is all there is to win; the slot came with the turn. */
            if (!head_is_unclaimed(engine, head) ||
                !atomic_compare_exchange_strong_explicit(&engine->next_start, &unclaimed, head + 1,
                                                         memory_order_relaxed,
                                                         memory_order_relaxed)) {
                ask_to_stop(worker, transaction, head);
                doubt_while_idle(worker, head);
                return;
            }
            ss_set_status(transaction, head, SS_IN_PLACE);
            ss_set_range(engine, transaction, head);
            ss_count(&worker->statistics.head_runs, 1);
            ss_call_for_help(worker);
            progress = ss_run_chunk_in_place(worker, transaction, head) ? SS_COMMITTED : SS_ENDED;
        }
        if (progress == SS_PUT_BACK)
            return;
        int64_t row = transaction->first;
        ss_set_status(transaction, head, SS_FREE);
        if (progress == SS_ENDED) {
            ss_end_job(engine);
            return;
        }
        ss_count(&worker->statistics.commits, 1);
        /* Relaxed: who looks meanwhile counts from its own first look. */
        if (SS_UNLIKELY(atomic_load_explicit(&engine->head_since, memory_order_relaxed) != 0))
            atomic_store_explicit(&engine->head_since, 0, memory_order_relaxed);
        if (SS_UNLIKELY(ss_predicts(engine->counters)))
            ss_prediction_fold(engine, head + 1);
        /* Release: who sees the new head sees the state it starts from, and the slot FREE. */
        atomic_store_explicit(&engine->next_commit, head + 1, memory_order_release);
        if (((head + 1) & 63) == 0) {
            int64_t spin = ss_mean_transaction(engine, ss_now(), head + 1);
            spin = spin < 200 ? 200 : spin > 20000 ? 20000 : spin;
            /* Relaxed: a hint. */
            __atomic_store_n(&engine->spin_nanoseconds, spin, __ATOMIC_RELAXED);
        }
        if (SS_UNLIKELY(ss_has_hook(engine, SS_ON_POST_COMMIT))) {
            worker->committed_row = row;
            return;
        }
        /* Not everybody is woken here, though the horizon has moved: whoever releases the turn does
         * that. A wake for each commit cost half the speed where two workers share a core. */
    }
}

/* ---- speculation ---- */

/* Nothing but the horizon keeps it from claiming, and that has grown. */
static bool lengthens(const struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    /* Relaxed: both grow while one looks, which costs one more look. */
    int64_t next = atomic_load_explicit(&engine->next_start, memory_order_relaxed);
    int64_t head = atomic_load_explicit(&engine->next_commit, memory_order_relaxed);
    return engine->job.horizon > 0 && next < engine->transactions &&
           next > head + ss_reach(engine) &&
           ss_lengthen(engine, worker->run_nanoseconds);
}

static bool claim(struct ss_engine *engine, int64_t *number)
{
    while (ss_can_claim(engine, number)) {
        int64_t next = *number;
        /* Relaxed: the number is all there is to win; ss_can_claim has acquired the slot with the
         * head. */
        if (atomic_compare_exchange_weak_explicit(&engine->next_start, &next, next + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            /* The ring is longer than the horizon: the slot's last tenant has committed. */
            return true;
    }
    return false;
}

int64_t ss_run_events(struct ss_worker *worker, int64_t number, int64_t first, int64_t last)
{
    struct ss_engine *engine = worker->engine;
    struct ss_run *run = &worker->run;
    int64_t next = first;
    for (;;) {
        next = ss_call(worker, engine->protocol->variant, next, last);
        if (run->verdict != SS_COMPLETED || next == last)
            return next;
        /* Relaxed, both: hints. Whoever wants the turn asks all workers to yield, and means the one who
         * has it. */
        __atomic_store_n(&run->yield, 0, __ATOMIC_RELAXED);
        /* What is foretold of counters is that of whole chunks. There may be none before this run. */
        if (engine->cuts_heads && !ss_predicts(engine->counters) &&
            atomic_load_explicit(&engine->next_commit, memory_order_relaxed) == number)
            return next;
    }
}

/* ---- a transaction that is a chunk of the job's ---- */

static int64_t run_chunk(struct ss_worker *worker, struct ss_transaction *transaction,
                         int64_t number)
{
    int64_t began = ss_time_run(worker);
    int64_t next = ss_run_events(worker, number, transaction->first, transaction->last);
    if (worker->run.verdict == SS_COMPLETED)
        transaction->last = next;
    return began;
}

static void settle(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number,
                   enum ss_status status)
{
    if (status == SS_WAITING) {
        ss_put_back(worker->engine, transaction, number);
        return;
    }
    ss_set_status(transaction, number, SS_FINISHED);
    /* Dekker with release_turn: FINISHED is visible before we try the turn. */
    atomic_thread_fence(memory_order_seq_cst);
}

static int64_t row_of(const struct ss_transaction *transaction)
{
    return transaction->first;
}

static int64_t time_of(const struct ss_engine *engine, const struct ss_transaction *transaction,
                       bool of_last)
{
    return ss_time_at(engine->job.columns[0], of_last ? transaction->last - 1 : transaction->first);
}

static bool head_is_ready(struct ss_engine *engine, int64_t head)
{
    return ss_has_finished(ss_slot_of(engine, head), head);
}

/* Without a horizon there is only ever the head. */
static bool is_for_one(const struct ss_engine *engine)
{
    return engine->job.horizon == 0;
}

static uint64_t waiting(struct ss_engine *engine)
{
    uint64_t count = 0;
    /* Acquire: the slots from there on as they were then. Relaxed: how far claims have come is a guess. */
    int64_t number = atomic_load_explicit(&engine->next_commit, memory_order_acquire);
    int64_t end = atomic_load_explicit(&engine->next_start, memory_order_relaxed);
    /* The two belong together only roughly. */
    if (end > number + (int64_t)engine->ring_size)
        end = number + (int64_t)engine->ring_size;
    for (; number < end; number++)
        count += ss_waits(ss_slot_of(engine, number), number);
    return count;
}

/* ---- one run ---- */

enum { MOST_RUNS = 2 };

/* One speculative run. */
static void run_once(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number)
{
    struct ss_engine *engine = worker->engine;
    struct ss_run *run = &worker->run;
    const struct ss_protocol *protocol = engine->protocol;
    int64_t began = 0; /* 0: nobody wants to know */

    if (!ss_goes_by_key(engine))
        ss_set_range(engine, transaction, number); /* anew: the last run may have stopped before its end */
    int64_t whole = transaction->last - transaction->first;
    run->verdict = SS_COMPLETED;
    run->emit_top = run->emit_mark = transaction->rows;
    run->emit_end = transaction->rows + engine->config.emit_limit * engine->config.emit_words;
    transaction->cleared = 0;
    transaction->least_timer = INT64_MAX;
    protocol->begin(worker, transaction);
    ss_boost_begin(transaction);
    /* Relaxed: the fence below orders it, and ss_set_status releases what the run begins with. */
    __atomic_store_n(&run->kill, 0, __ATOMIC_RELAXED);
    /* Relaxed, as only this thread counts; and Dekker with retire, in keyed_index.c: the run is counted
     * before it sees an index. */
    uint64_t runs = atomic_load_explicit(&worker->runs, memory_order_relaxed);
    atomic_store_explicit(&worker->runs, runs + 1, memory_order_relaxed);
    ss_set_status(transaction, number, SS_RUNNING);
    /* Dekker with end_job and stop: the flag is down before we look whether there is still a job. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&engine->over, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&transaction->dissolved, memory_order_relaxed) != 0)
        run->verdict = SS_KILLED;
    else
        began = engine->kind->run_events(worker, transaction, number);
    /* Release: who sees that the run is over may free the indices that it looked at. */
    atomic_store_explicit(&worker->runs, runs + 2, memory_order_release);
    protocol->finish(worker, transaction);
    if (SS_UNLIKELY(run->verdict != SS_COMPLETED))
        ss_boost_roll_back(engine, transaction); /* others need not wait for what cannot commit */
    transaction->row_words = (uint64_t)(run->emit_top - transaction->rows);
    transaction->verdict = run->verdict;
    transaction->asks = run->verdict == SS_RAISED && run->asks != 0;
    if (SS_UNLIKELY(began != 0)) {
        int64_t taken = ss_now() - began;
        int64_t events = transaction->last - transaction->first;
        ss_sample(worker, events == whole ? taken : taken / events * whole);
        if (engine->recorder != NULL)
            ss_record_speculative(engine, transaction, taken);
    }
    ss_count(&worker->statistics.speculative_runs, 1);
}

/* What it has read has changed: it would be run again as the head, while everybody waits. */
static bool is_to_run_again(struct ss_worker *worker, struct ss_transaction *transaction,
                            int64_t number, int *runs)
{
    struct ss_engine *engine = worker->engine;
    const struct ss_protocol *protocol = engine->protocol;
    return protocol->is_outdated != NULL && transaction->verdict == SS_COMPLETED &&
           !ss_goes_by_key(engine) && ++*runs < MOST_RUNS &&
           !ss_has_committed(engine, number - 1) && protocol->is_outdated(engine, transaction);
}

void ss_run_speculatively(struct ss_worker *worker, int64_t number)
{
    struct ss_engine *engine = worker->engine;
    int runs = 0;
    struct ss_transaction *transaction = ss_slot_of(engine, number);

    enum ss_status status = SS_FINISHED;
    /* Relaxed: a watcher that sees the owner before asks the wrong worker, which costs a rerun
     * at most. Who stops the job looks at `speculative` behind its fence, and we look for its
     * wish behind ours. */
    atomic_store_explicit(&transaction->owner, worker, memory_order_relaxed);
    __atomic_store_n(&worker->run.speculative, 1, __ATOMIC_RELAXED);
    for (;;) {
        run_once(worker, transaction, number);
        if (is_to_run_again(worker, transaction, number, &runs)) {
            ss_drop(worker, transaction, SS_ABORT_CONFLICT);
            continue;
        }
        /* Under `value` only operations on boosted structures end a run, and the head repeats it. */
        if (transaction->verdict != SS_ABORTED || !engine->protocol->head_speculates)
            break;
        ss_drop(worker, transaction, transaction->reason);
        /* Relaxed: this thread has stored it. */
        int64_t waits_for = atomic_load_explicit(&transaction->waits_for, memory_order_relaxed);
        if (!ss_has_committed(engine, waits_for)) {
            status = SS_WAITING;
            break;
        }
    }
    engine->kind->settle(worker, transaction, number, status);
}

static bool has_work(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    int64_t number;
    /* Acquire: as in run. */
    if (atomic_load_explicit(&engine->over, memory_order_acquire) != 0 ||
        ss_can_claim(engine, &number) || ss_find_retry(worker, false) >= 0 || ss_has_doubtful(engine))
        return true;
    /* Relaxed: a guess; who takes the turn acquires it. */
    return atomic_load_explicit(&engine->turn, memory_order_relaxed) == 0 &&
           !ss_reader_comes_first(engine) && head_can_advance(engine);
}

void ss_await_work(struct ss_worker *worker, bool (*has_work)(struct ss_worker *),
                   int64_t nanoseconds)
{
    struct ss_engine *engine = worker->engine;
    /* Relaxed: a hint. */
    int64_t until =
        ss_now() + __atomic_load_n(&engine->spin_nanoseconds, __ATOMIC_RELAXED);
    do {
        for (int i = 0; i < 32; i++) {
            if (has_work(worker))
                return;
            ss_relax();
        }
    } while (ss_now() < until);
    ss_watch(engine);
    ss_park(worker, has_work, nanoseconds);
}

/* Who runs something in place wakes nobody for short events, and who sleeps would miss hundreds of them: the
 * first backoff is short, and each that was in vain is followed by one twice as long. */
enum { FIRST_BACKOFF = 62500, LONGEST_BACKOFF = 1000000 }; /* nanoseconds */

static void run(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    int64_t number;
    int64_t backoff = FIRST_BACKOFF;
    /* Acquire: who sees the end of the job sees what it has left. */
    while (atomic_load_explicit(&engine->over, memory_order_acquire) == 0) {
        if (head_can_advance(engine) && ss_try_turn(engine)) {
            advance(worker);
            ss_release_turn(engine);
            ss_wake(engine);
            ss_after_commit(worker);
        } else if (ss_revalidate_one(worker, &number)) {
            ss_call_for_help(worker);
            if (number >= 0)
                ss_run_speculatively(worker, number);
        } else if ((number = ss_find_retry(worker, true)) >= 0 || claim(engine, &number)) {
            ss_call_for_help(worker);
            ss_run_speculatively(worker, number);
        } else if (!lengthens(worker)) {
            ss_await_work(worker, has_work, backoff);
            backoff = backoff < LONGEST_BACKOFF ? 2 * backoff : backoff;
            continue;
        }
        backoff = FIRST_BACKOFF;
    }
}

/* ---- the job, seen from outside ---- */

void ss_end_job(struct ss_engine *engine)
{
    atomic_store_explicit(&engine->over, 1, memory_order_release);
    /* Dekker with run_speculatively: the job is over before the flags are up. */
    atomic_thread_fence(memory_order_seq_cst);
    for (uint64_t i = 0; i < engine->config.threads; i++)
        __atomic_store_n(&engine->workers[i].run.kill, SS_LEAVE, __ATOMIC_RELAXED);
}

void ss_engine_stop(struct ss_engine *engine)
{
    atomic_store_explicit(&engine->stop, 1, memory_order_relaxed);
    /* Dekker with run_in_place and run_speculatively: the wish is there before the flags are up and
     * before we look who speculates. */
    atomic_thread_fence(memory_order_seq_cst);
    for (uint64_t i = 0; i < engine->config.threads; i++) {
        struct ss_run *run = &engine->workers[i].run;
        __atomic_store_n(&run->yield, 1, __ATOMIC_RELAXED);
        /* Without speculation the event in flight may complete; what is speculative is dropped. */
        if (__atomic_load_n(&run->speculative, __ATOMIC_RELAXED) != 0)
            __atomic_store_n(&run->kill, SS_LEAVE, __ATOMIC_RELAXED);
    }
    ss_wake(engine);
}

void ss_engine_kill(struct ss_engine *engine)
{
    atomic_store_explicit(&engine->stop, 1, memory_order_relaxed);
    /* As in stop. */
    atomic_thread_fence(memory_order_seq_cst);
    for (uint64_t i = 0; i < engine->config.threads; i++) {
        struct ss_run *run = &engine->workers[i].run;
        /* Relaxed: they are polled; the fence has put them behind the wish. */
        __atomic_store_n(&run->yield, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&run->kill, SS_LEAVE, __ATOMIC_RELAXED);
    }
    ss_wake(engine);
}

bool ss_engine_wait(struct ss_engine *engine, int64_t milliseconds)
{
    struct timespec until;
    int64_t at = ss_now() + milliseconds * 1000000;
    until.tv_sec = (time_t)(at / 1000000000);
    until.tv_nsec = (long)(at % 1000000000);
    pthread_mutex_lock(&engine->pool_mutex);
    int rc = 0;
    while (engine->running && rc == 0)
        rc = pthread_cond_timedwait(&engine->pool_done, &engine->pool_mutex, &until);
    bool done = !engine->running;
    pthread_mutex_unlock(&engine->pool_mutex);
    /* All workers may be in runaway runs at once; then nobody else is left to notice. */
    if (!done && atomic_load_explicit(&engine->over, memory_order_relaxed) == 0)
        ss_watch(engine);
    return done;
}

int64_t ss_engine_progress(struct ss_engine *engine)
{
    /* Relaxed: a figure, for who watches. */
    return atomic_load_explicit(&engine->next_commit, memory_order_relaxed);
}

const struct ss_job_kind ss_ordered_job = {
    .is_for_one = is_for_one,
    .run = run,
    .run_events = run_chunk,
    .settle = settle,
    .run_in_place = ss_run_chunk_in_place,
    .row_of = row_of,
    .time_of = time_of,
    .head_is_ready = head_is_ready,
    .mean = ss_mean_transaction,
    .fail = ss_engine_stop,
    .waiting = waiting,
};
