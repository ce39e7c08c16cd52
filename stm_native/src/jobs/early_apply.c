/* Early results: the head is applied.
 *
 * It has run like any other, and is compared with the applied image; if what it has read is there, its words
 * are published, and its logs are kept (early.c). If not, it runs again. What cannot run otherwise, as it
 * needs more room than its logs have, is a *barrier*: it runs in place when everything before it is final. */
#include "jobs/early_apply.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "containers/keyed_changes.h"
#include "containers/keyed_entries.h"
#include "containers/timer_heap.h"
#include "core/call.h"
#include "core/commit.h"
#include "core/drop.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/undo_log.h"
#include "core/worker.h"
#include "jobs/answers.h"
#include "jobs/early.h"
#include "jobs/forming.h"
#include "jobs/hooks.h"
#include "jobs/open_head.h"
#include "jobs/queue.h"
#include "jobs/queue_work.h"
#include "jobs/timer_firing.h"
#include "processor/figure.h"
#include "processor/processor.h"
#include "protocols/counter_prediction.h"
#include "protocols/delta.h"
#include "specstream.h"

/* A run of the head is over. Whether it did what the sequential one would: then it has read what there
 * is, whatever has become of it. `beyond`: what it has done does not fit, and only now it knows. */
static bool run_holds(struct ss_engine *engine, struct ss_transaction *transaction, bool *beyond)
{
    *beyond = false;
    /* Who was killed was asked to leave; and ABORTED is a run that a revocation has met. */
    if (transaction->verdict == SS_KILLED || transaction->verdict == SS_ABORTED ||
        !engine->protocol->validate(engine, transaction))
        return false;
    if (transaction->verdict == SS_COMPLETED &&
        (!ss_delta_fits(engine, transaction) || !ss_changes_fit(engine, transaction))) {
        transaction->verdict = SS_RAISED; /* which shows only now */
        *beyond = true;
    }
    return true;
}

/* What is applied, out of a run that holds; NULL: out of memory. */
static struct ss_applied *make_applied(struct ss_engine *engine, struct ss_transaction *transaction)
{
    struct ss_applied *applied =
        ss_applied_new(engine, transaction, ss_first_key(transaction), ss_last_key(transaction));
    if (applied == NULL)
        return NULL;
    if (!ss_applied_reserve(engine, applied)) {
        free(applied);
        return NULL;
    }
    if (applied->raised)
        engine->protocol->roll_back(engine, transaction);
    else
        transaction->change_count = 0; /* its entries are the other's */
    ss_applied_publish(engine, applied);
    return applied;
}

static void undo_in_place(struct ss_worker *worker)
{
    ss_early_begin_back(worker->engine);
    ss_undo_roll_back(&worker->run);
    ss_early_end_back(worker->engine);
    ss_touched_settle(worker, true);
}

/* Operations on boosted fields leave no log, and what an event has asked for depends on more than its log
 * tells: such an event runs in place on the applied image, and is taken back by what it has overwritten.
 * False: it was to stop. */
static bool run_on_image(struct ss_worker *worker, struct ss_transaction *transaction,
                         struct ss_applied **applied)
{
    struct ss_engine *engine = worker->engine;
    struct ss_run *run = &worker->run;
    struct ss_span *span = &transaction->spans[0];
    uint64_t row_words = engine->row_words;
    assert(transaction->span_count == 1 && span->last - span->first == 1);
    /* Relaxed: as in run_range_in_place. */
    __atomic_store_n(&run->speculative, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&run->yield, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&run->kill, 0, __ATOMIC_RELAXED);
    /* Dekker with stop: the flag is down before we look who asked. */
    atomic_thread_fence(memory_order_seq_cst);
    transaction->verdict = SS_COMPLETED;
    if (atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0)
        return false;
    ss_use_segment(run, span->segment);
    transaction->least_timer = INT64_MAX;
    if (ss_has_timers(engine))
        engine->timers->until = INT64_MIN; /* one event: nothing follows that it has to stop for */
    ss_touched_settle(worker, false);
    ss_count(&worker->statistics.head_runs, 1);
    do {
        run->verdict = SS_COMPLETED;
        run->emit_top = run->emit_mark = engine->rows + row_words;
        run->emit_end = engine->rows + engine->row_capacity;
        worker->is_early = true;
        ss_call(worker, SS_PLAIN, span->first, span->last);
        worker->is_early = false;
        engine->row_words = row_words;
        if (run->verdict != SS_COMPLETED) {
            undo_in_place(worker);
            run->emit_top = engine->rows + row_words;
        }
    } while (ss_find_answers(worker, span->first, NULL));
    ss_forget_answers(engine);
    transaction->verdict = run->verdict;
    bool is_complete = run->verdict == SS_COMPLETED;
    if (is_complete || run->verdict == SS_RAISED)
        *applied = ss_applied_in_place(worker, ss_first_key(transaction), ss_last_key(transaction),
                                       &(struct ss_in_place){.span = span, .raised = !is_complete});
    if (is_complete && *applied == NULL)
        undo_in_place(worker);
    else if (is_complete)
        ss_touched_keep(worker);
    return run->verdict != SS_KILLED;
}

void ss_early_run_next(struct ss_worker *worker, struct ss_transaction *transaction)
{
    /* Of the head nothing is foretold: what it is wrong about it would be wrong about again. */
    for (int i = 0; i < SS_COUNTERS; i++)
        transaction->foretold[i].known = false;
    ss_set_status(transaction, transaction->number, SS_RUNNING);
    /* Relaxed: as in claim. */
    atomic_store_explicit(&transaction->owner, worker, memory_order_relaxed);
    worker->runs_next = transaction->number;
}

void ss_early_apply(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    struct ss_early *early = engine->early;
    struct ss_applied *applied = NULL;
    bool beyond = false;
    if (!ss_early_reserve(early)) {
        ss_queue_fail_for_memory(queue);
        ss_dissolve(engine, ss_active_position(engine, transaction), SS_WAITING);
        return;
    }
    /* As if it ran: who wants it dissolved tells us so, and does not do it. */
    ss_set_status(transaction, transaction->number, SS_RUNNING);
    /* Relaxed: as in claim. */
    atomic_store_explicit(&transaction->owner, NULL, memory_order_relaxed);
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    bool in_place = engine->boost != NULL;
    bool holds = in_place || run_holds(engine, transaction, &beyond);
    /* What raises for a limit does so in place, where the function can catch it. */
    if (!in_place && holds && (transaction->asks || beyond) && transaction->last == 1) {
        ss_drop(worker, transaction, SS_ABORT_RAISED);
        transaction->asks = false;
        in_place = true;
    }
    if (in_place)
        holds = run_on_image(worker, transaction, &applied);
    bool raised = transaction->verdict == SS_RAISED;
    bool fits = transaction->verdict == SS_COMPLETED || (raised && transaction->last == 1);
    /* Timers that are due between its events fire there. */
    bool divides = holds && fits && ss_has_timers(engine) && ss_timers_divide(engine, transaction);
    fits = fits && !divides;
    if (in_place)
        ; /* applied, or not */
    else if (holds && fits)
        applied = make_applied(engine, transaction);
    else if (!holds || divides || raised)
        ss_drop(worker, transaction,
                divides            ? SS_ABORT_TIMER
                : raised && !holds ? SS_ABORT_CONFLICT
                                   : ss_reason_of(transaction->verdict));
    /* Of a barrier the log is kept; what it has taken is not. */
    if (applied == NULL)
        engine->protocol->roll_back(engine, transaction);
    /* Relaxed: who looks meanwhile counts from its own first look. */
    atomic_store_explicit(&engine->head_since, 0, memory_order_relaxed);
    pthread_mutex_lock(&queue->mutex);
    bool dissolved = ss_is_dissolving(transaction);
    uint64_t position = ss_active_position(engine, transaction);
    queue->dissolving -= dissolved;
    if (applied != NULL) {
        applied->divided = dissolved;
        early->divided += dissolved;
        ss_early_insert(early, early->applied++, applied);
        if (SS_UNLIKELY(ss_predicts(engine->counters)))
            ss_prediction_fold_open(engine, transaction->last);
        ss_active_discard(engine, position);
        queue->claimed_spans += applied->span_count;
        /* What could not run otherwise may find something else now. */
        if (queue->active_count > 0)
            ss_active_at(engine, 0)->barrier = false;
        return;
    }
    if (holds && fits) /* but there is no memory for it */
        ss_queue_fail_for_memory(queue);
    if (dissolved || (holds && (fits || raised || divides)) || (in_place && !holds)) {
        if ((raised || divides) && !fits)
            early->singly += (uint64_t)transaction->last; /* one of them raises: which one? */
        ss_dissolve(engine, position, SS_WAITING);
    } else if (holds) {
        transaction->barrier = true;
        ss_set_status(transaction, transaction->number, SS_FINISHED);
    } else {
        ss_early_run_next(worker, transaction);
    }
}

void ss_early_apply_in_place(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_engine *engine = worker->engine;
    ss_set_status(transaction, transaction->number, SS_IN_PLACE);
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&engine->queue->mutex);
    if (engine->boost == NULL)
        ss_drop(worker, transaction, ss_reason_of(transaction->verdict));
    bool done = ss_run_spans_in_place(worker, transaction, transaction->number);
    ss_count(&worker->statistics.commits, done);
    ss_early_note_final(engine->early, transaction);
    if (done && SS_UNLIKELY(ss_has_hook(engine, SS_ON_POST_COMMIT))) {
        worker->committed_row = ss_row_of(engine, transaction);
        worker->committed_segment = transaction->spans[0].segment;
    }
    ss_queue_leave_head(engine, transaction, done ? SS_COMMITTED : SS_ENDED);
    pthread_mutex_lock(&engine->queue->mutex);
    const struct ss_queue *queue = engine->queue;
    if (queue->failed && queue->failed_segment != NULL) {
        engine->early->has_final = true;
        engine->early->final = ss_key_at(queue->failed_segment, queue->failed_row);
    }
}
