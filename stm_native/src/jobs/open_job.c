/* Out of order: the events of an open job (Brito 2010, 4.3.1).
 *
 * Events come in segments, one source each, while the job runs; a later segment may hold earlier
 * events. They run as they come and wait; they commit when the *frontier* has passed them: from then
 * on no earlier event can come.
 *
 * So the place of a transaction is not known when it is formed, and a number cannot tell it. What is
 * a ring in an ordered job is two structures here (queue.c), both ordered by key: events that are pending, and
 * transactions that are active. The head is the least of both. A claim takes the least pending events, up to a chunk; they form a
 * transaction, whose place is wherever its key belongs: perhaps before others that have finished long
 * ago. That needs no more than the commit in order does: those read what they read, and when they
 * become the head it is compared with what there is.
 *
 * The events of a transaction must follow each other: no event, claimed or not, lies between them.
 * Where the frontier has not passed the last one, one may still come. Then the transaction is
 * *dissolved*: its run is dropped, its events are pending again. The same happens where the frontier
 * comes to stand between its events, or the first ones would wait for the last (forming.c).
 *
 * What is committed, how, and by whom is as in scheduler.c; the same functions do it. The mutex is
 * taken for a claim, at the end of a run and for each commit, never while an operator runs. Whoever
 * changes anything under it works out what there is to do next (queue_work.c). */
#include "jobs/open_job.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "containers/timer_heap.h"
#include "core/commit.h"
#include "core/drop.h"
#include "core/engine.h"
#include "core/horizon.h"
#include "core/job_kind.h"
#include "core/parking.h"
#include "core/protocol.h"
#include "core/scheduler.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/worker.h"
#include "jobs/early.h"
#include "jobs/early_steps.h"
#include "jobs/forming.h"
#include "jobs/hooks.h"
#include "jobs/open_head.h"
#include "jobs/queue.h"
#include "jobs/queue_work.h"
#include "jobs/submitting.h"
#include "processor/figure.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "protocols/retry_queue.h"
#include "specstream.h"

static const int64_t idle_nanoseconds = 50000000;

static int64_t mean_of_runs(const struct ss_engine *engine)
{
    /* Relaxed: the two need not belong together. */
    uint64_t runs = atomic_load_explicit(&engine->queue->runs, memory_order_relaxed);
    int64_t nanoseconds = atomic_load_explicit(&engine->queue->nanoseconds, memory_order_relaxed);
    return runs == 0 ? 0 : nanoseconds / (int64_t)runs;
}

/* As in an ordered job; but where the head waits for a frontier, no horizon is too short. */
static bool lengthens(struct ss_engine *engine)
{
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    bool longer = engine->job.horizon > 0 && engine->early == NULL && queue->pending_count > 0 &&
                  !queue->failed && queue->active_count > 0 && ss_queue_head_is_safe(engine) &&
                  ss_active_before(engine, ss_pending_key(queue)) > (uint64_t)ss_reach(engine) &&
                  ss_lengthen(engine, mean_of_runs(engine));
    if (longer)
        ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return longer;
}

static int64_t claim(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    int64_t number = -1;
    pthread_mutex_lock(&queue->mutex);
    if (ss_queue_can_claim(engine)) {
        if (!ss_queue_has_slot(engine, ss_active_before(engine, ss_pending_key(queue))))
            ss_dissolve(engine, queue->active_count - 1,
                        ss_status_of(ss_active_at(engine, queue->active_count - 1)));
        struct ss_transaction *transaction = ss_queue_form(engine, SS_RUNNING);
        if (transaction != NULL) {
            /* Relaxed: a watcher that sees the owner before asks the wrong worker, which costs a
             * rerun at most. */
            atomic_store_explicit(&transaction->owner, worker, memory_order_relaxed);
            number = transaction->number;
        }
        ss_queue_refresh(engine);
    }
    pthread_mutex_unlock(&queue->mutex);
    return number;
}

/* The earliest dropped or doomed transaction that may run again (protocol `eager`); -1: none. */
static int64_t retry(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    int64_t found = -1;
    bool later = false;
    struct ss_transaction *doomed = NULL;
    bool is_head = false;
    /* The hint goes down before we look: who raises it afterwards is looked for the next time.
     * Acquire: what it was raised for. */
    worker->seen_changes = atomic_load_explicit(&queue->changes, memory_order_acquire);
    if (!engine->protocol->head_speculates ||
        atomic_exchange_explicit(&engine->retries, 0, memory_order_acq_rel) == 0)
        return -1;
    pthread_mutex_lock(&queue->mutex);
    for (uint64_t i = 0; i < queue->active_count && found < 0; i++) {
        struct ss_transaction *transaction = ss_active_at(engine, i);
        uint64_t status;
        bool waits = false;
        bool ready = ss_can_retry(engine, transaction, transaction->number, &status, &waits);
        /* The head waits for nobody: what it lost to is gone, or was later. */
        if (waits && i == 0 && !ss_queue_head_is_pending(engine))
            ready = true;
        later = later || (waits && !ready);
        if (!ready)
            continue;
        found = transaction->number;
        doomed = (status & 7) == SS_FINISHED ? transaction : NULL;
        is_head = i == 0 && !ss_queue_head_is_pending(engine) &&
                  ss_queue_is_safe(queue, ss_last_key(transaction));
        /* Relaxed: as in claim. */
        atomic_store_explicit(&transaction->owner, worker, memory_order_relaxed);
        ss_set_status(transaction, found, SS_RUNNING);
        ss_queue_look_ahead(engine, i);
        ss_queue_refresh(engine);
    }
    pthread_mutex_unlock(&queue->mutex);
    /* Not under the mutex: a hook may be told of it. */
    if (doomed != NULL)
        ss_drop(worker, doomed,
                doomed->verdict == SS_COMPLETED ? SS_ABORT_STOLEN : ss_reason_of(doomed->verdict));
    if (found >= 0)
        ss_slot_of(engine, found)->began_as_head = is_head;
    /* Release: as in ss_put_back. */
    if (found >= 0 || later)
        atomic_store_explicit(&engine->retries, 1, memory_order_release);
    return found;
}

static void settle(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number,
                   enum ss_status status)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    if (ss_is_dissolving(transaction)) {
        queue->dissolving--;
        ss_dissolve(engine, ss_active_position(engine, transaction), status);
    } else {
        if (SS_UNLIKELY(ss_early_is_mixed(engine, transaction)))
            transaction->verdict = SS_ABORTED; /* the head runs it again */
        ss_set_status(transaction, number, status);
        /* Release: as in ss_put_back. */
        if (status == SS_WAITING)
            atomic_store_explicit(&engine->retries, 1, memory_order_release);
    }
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    /* Dekker with release_turn: what there is to do is visible before we try the turn. */
    atomic_thread_fence(memory_order_seq_cst);
}

static void advance(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_transaction *transaction;
    bool finished;
    /* As in the scheduler's: one at least. */
    for (bool committed = false;; committed = true) {
        assert(ss_turn_is_held(engine));
        /* Relaxed: a wish, which brings nothing with it. */
        if (atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0) {
            ss_end_job(engine);
            return;
        }
        if (committed && ss_reader_comes_first(engine))
            return;
        if (SS_UNLIKELY(engine->early != NULL)) {
            bool moved = ss_early_advance(worker);
            if (worker->runs_next >= 0 || worker->committed_row >= 0)
                return;
            if (!moved && (!ss_has_timers(engine) || !ss_queue_fire_at_frontier(worker)))
                return;
            continue;
        }
        if ((transaction = ss_queue_take_head(engine, &finished)) == NULL) {
            if (!ss_has_timers(engine) || !ss_queue_fire_at_frontier(worker))
                return;
            continue;
        }
        enum ss_progress progress;
        if (finished) {
            progress = ss_commit(worker, transaction, transaction->number);
        } else {
            ss_count(&worker->statistics.head_runs, 1);
            progress = ss_run_spans_in_place(worker, transaction, transaction->number) ? SS_COMMITTED
                                                                                 : SS_ENDED;
        }
        if (progress == SS_COMMITTED)
            ss_count(&worker->statistics.commits, 1);
        /* Relaxed: who looks meanwhile counts from its own first look. */
        atomic_store_explicit(&engine->head_since, 0, memory_order_relaxed);
        if (progress == SS_COMMITTED && SS_UNLIKELY(ss_has_hook(engine, SS_ON_POST_COMMIT))) {
            worker->committed_row = ss_row_of(engine, transaction);
            worker->committed_segment = transaction->spans[0].segment;
        }
        ss_queue_leave_head(engine, transaction, progress);
        if (SS_UNLIKELY(worker->committed_row >= 0))
            return;
    }
}

static bool can_advance(struct ss_engine *engine)
{
    /* Acquire: pairs with the release in refresh. Of `stop` nothing but itself is wanted. */
    return (atomic_load_explicit(&engine->queue->work, memory_order_acquire) & SS_WORK_ADVANCE) != 0 ||
           atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0;
}

static bool has_work(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    /* Acquire, here and below: who sees the end of the job, or work, sees what has led to it.
     * The turn is only guessed at: who takes it acquires it. */
    if (atomic_load_explicit(&engine->over, memory_order_acquire) != 0)
        return true;
    if ((atomic_load_explicit(&engine->queue->work, memory_order_acquire) & SS_WORK_CLAIM) != 0)
        return true;
    /* Something may be repeated, and we have not looked since the last change. */
    if (atomic_load_explicit(&engine->retries, memory_order_relaxed) != 0 &&
        atomic_load_explicit(&engine->queue->changes, memory_order_acquire) != worker->seen_changes)
        return true;
    return atomic_load_explicit(&engine->turn, memory_order_relaxed) == 0 &&
           !ss_reader_comes_first(engine) && can_advance(engine);
}

static void run(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    /* Acquire: pairs with the release in ss_end_job. */
    while (atomic_load_explicit(&engine->over, memory_order_acquire) == 0) {
        int64_t number;
        int64_t since = ss_now();
        if (can_advance(engine) && ss_try_turn(engine)) {
            advance(worker);
            ss_release_turn(engine);
            ss_wake(engine);
            ss_after_commit(worker);
            if ((number = worker->runs_next) >= 0) {
                worker->runs_next = -1;
                ss_run_speculatively(worker, number);
            }
        } else if ((number = retry(worker)) >= 0 || (number = claim(worker)) >= 0) {
            ss_run_speculatively(worker, number);
            /* Relaxed, here and below: they are added up for a mean, and nothing is read on
             * their account. */
            atomic_fetch_add_explicit(&queue->runs, 1, memory_order_relaxed);
        } else if (!lengthens(engine)) {
            /* A dropped run that has to wait is looked for again soon; a new event wakes. */
            bool waits = atomic_load_explicit(&engine->retries, memory_order_relaxed) != 0;
            ss_await_work(worker, has_work, waits ? 1000000 : idle_nanoseconds);
            continue;
        }
        int64_t taken = ss_now() - since;
        atomic_fetch_add_explicit(&queue->nanoseconds, taken, memory_order_relaxed);
        ss_count(&worker->statistics.nanoseconds, (uint64_t)taken);
    }
}

/* ---- what the core asks ---- */

static int64_t run_events(struct ss_worker *worker, struct ss_transaction *transaction,
                          int64_t number)
{
    struct ss_run *run = &worker->run;
    for (uint64_t i = 0; i < transaction->span_count && run->verdict == SS_COMPLETED; i++) {
        const struct ss_span *span = &transaction->spans[i];
        ss_use_segment(run, span->segment);
        ss_run_events(worker, number, span->first, span->last);
    }
    return 0;
}

static int64_t row_of(const struct ss_transaction *transaction)
{
    return transaction->spans[0].first;
}

static int64_t time_of(const struct ss_engine *engine, const struct ss_transaction *transaction,
                       bool of_last)
{
    (void)engine;
    return of_last ? ss_last_key(transaction).timestamp : ss_first_key(transaction).timestamp;
}

static bool head_is_ready(struct ss_engine *engine, int64_t head)
{
    if (head >= 0)
        return ss_has_finished(ss_slot_of(engine, head), head) && can_advance(engine);
    /* No transaction is the head: is there an event below the frontier that could be? Acquire: pairs with
     * the release in ss_queue_refresh. */
    return atomic_load_explicit(&engine->queue->head_is_unclaimed, memory_order_acquire) != 0;
}

static int64_t mean(const struct ss_engine *engine, int64_t at, int64_t committed)
{
    (void)at;
    (void)committed;
    return mean_of_runs(engine);
}

static uint64_t waiting(struct ss_engine *engine)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < engine->queue->active_count; i++) {
        struct ss_transaction *transaction = ss_active_at(engine, i);
        count += ss_waits(transaction, transaction->number);
    }
    return count;
}

static void report(const struct ss_engine *engine, struct ss_outcome *outcome)
{
    outcome->failed = engine->queue->failed;
    outcome->failed_row = engine->queue->failed_row;
}

const struct ss_job_kind ss_open_job = {
    .by_key = true,
    .is_endless = true,
    .open = ss_queue_open,
    .run = run,
    .run_events = run_events,
    .settle = settle,
    .run_in_place = ss_run_spans_in_place,
    .before_lending = ss_queue_tell_applied,
    .row_of = row_of,
    .time_of = time_of,
    .head_is_ready = head_is_ready,
    .mean = mean,
    .fail = ss_queue_fail,
    .told = ss_queue_told,
    .waiting = waiting,
    .report = report,
};
