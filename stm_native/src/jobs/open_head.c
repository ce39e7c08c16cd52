/* The head of an open job: it is taken by whoever holds the turn, and left when it has committed or not; and
 * timers that fire at the frontier, where no event is the head. */
#include "jobs/open_head.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#include "containers/timer_heap.h"
#include "core/commit.h"
#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/early.h"
#include "jobs/forming.h"
#include "jobs/hooks.h"
#include "jobs/queue.h"
#include "jobs/queue_work.h"
#include "jobs/timer_firing.h"
#include "processor/processor.h"
#include "protocols/counter_prediction.h"
#include "specstream.h"

struct ss_transaction *ss_queue_take_head(struct ss_engine *engine, bool *finished)
{
    struct ss_queue *queue = engine->queue;
    struct ss_transaction *transaction = NULL;
    pthread_mutex_lock(&queue->mutex);
    *finished = ss_queue_head_is_finished(engine);
    if (queue->failed) {
        ; /* until somebody has heard of it */
    } else if (*finished) {
        transaction = ss_active_at(engine, 0);
        ss_set_status(transaction, transaction->number, SS_IN_PLACE);
    } else if (ss_queue_head_is_for_us(engine)) {
        transaction = ss_queue_form(engine, SS_IN_PLACE);
    }
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return transaction;
}

void ss_early_note_final(struct ss_early *early, const struct ss_transaction *transaction)
{
    for (uint64_t i = 0; i < transaction->span_count; i++) {
        const struct ss_span *span = &transaction->spans[i];
        if (span->done == span->first)
            continue;
        early->has_final = true;
        early->final = ss_key_at(span->segment, span->done - 1);
    }
}

bool ss_run_spans_in_place(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number)
{
    for (uint64_t i = 0; i < transaction->span_count; i++) {
        struct ss_span *span = &transaction->spans[i];
        ss_use_segment(&worker->run, span->segment);
        if (!ss_run_range_in_place(worker, transaction, number, &span->done, span->last))
            return false;
    }
    return true;
}

/* Its events leave the segments when all of them have committed, as until then their keys say where the
 * transaction belongs. */
void ss_queue_tell_applied(struct ss_engine *engine, struct ss_transaction *transaction)
{
    if (SS_UNLIKELY(engine->early != NULL))
        ss_early_note_final(engine->early, transaction);
    for (uint64_t i = 0; i < transaction->span_count; i++)
        transaction->spans[i].segment->ahead = 0;
    for (uint64_t i = 0; i < transaction->span_count; i++) {
        const struct ss_span *span = &transaction->spans[i];
        span->segment->ahead += span->done - span->first;
    }
}

void ss_queue_leave_head(struct ss_engine *engine, struct ss_transaction *transaction,
                         enum ss_progress progress)
{
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    if (progress != SS_PUT_BACK) {
        for (uint64_t i = 0; i < transaction->span_count; i++) {
            struct ss_span *span = &transaction->spans[i];
            if (progress == SS_COMMITTED)
                span->done = span->last;
            span->segment->left -= span->done - span->first;
            span->segment->ahead = 0;
        }
        if (progress == SS_COMMITTED && SS_UNLIKELY(ss_has_hook(engine, SS_ON_POST_COMMIT))) {
            /* With a hook a transaction is one event. */
            transaction->spans[0].segment->untold++;
            queue->untold++;
        }
        if (progress == SS_ENDED) {
            queue->claimed_spans -= transaction->span_count;
            queue->failed = queue->failed || engine->failed;
            bool of_timer = ss_has_timers(engine) && engine->timers->failed;
            ss_queue_give_back(queue, transaction, engine->failed && !of_timer);
            if (of_timer)
                queue->failed_row = SS_NO_ROW_FOR_TIMER;
            engine->failed = false;
            queue->claimed_spans += transaction->span_count;
        }
        /* The front of the row: nothing is earlier than the head. */
        assert(ss_active_at(engine, 0) == transaction);
        if (SS_UNLIKELY(ss_predicts(engine->counters)))
            ss_prediction_fold_open(engine, progress == SS_COMMITTED ? transaction->last : 0);
        ss_active_discard(engine, 0);
        queue->has_moved = true;
    }
    queue->has_rows = engine->row_words > 0;
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
}

void ss_queue_leave_timers(struct ss_worker *worker, uint64_t before)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    if (engine->failed) {
        queue->failed = true;
        queue->failed_row = SS_NO_ROW_FOR_TIMER;
        engine->failed = false;
    }
    queue->has_moved = queue->has_moved || worker->statistics.timers != before;
    queue->has_rows = engine->row_words > 0;
}

bool ss_queue_fire_at_frontier(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    bool due = engine->early == NULL ? ss_queue_timers_are_due(engine) : ss_queue_end_is_due(engine);
    int64_t time = queue->frontier.timestamp;
    int64_t reached = queue->reached;
    pthread_mutex_unlock(&queue->mutex);
    if (!due)
        return false;
    uint64_t before = worker->statistics.timers;
    enum ss_fired fired = SS_FIRED;
    /* The end may come while there are some that were due before it: those fire as such, and what they
     * set as well, however fast we are. Once it has begun, what is due by then was set at the end. */
    if (time == INT64_MAX && engine->timers->end == 0)
        fired = ss_timers_at(worker, reached);
    if (fired == SS_FIRED && engine->early != NULL) {
        pthread_mutex_lock(&queue->mutex);
        engine->early->ends = true;
        pthread_mutex_unlock(&queue->mutex);
    }
    if (fired == SS_FIRED)
        fired = ss_timers_at(worker, time);
    pthread_mutex_lock(&queue->mutex);
    if (fired == SS_FIRED && time == INT64_MAX)
        queue->has_ended = queue->frontier.timestamp == time;
    ss_queue_leave_timers(worker, before);
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return fired == SS_FIRED;
}
