/* An open job: what there is to do.
 *
 * Whoever changes anything under the mutex works it out anew (ss_queue_refresh), so that idle workers, and who
 * waits outside, look at one word only. */
#include "jobs/queue_work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "containers/timer_heap.h"
#include "core/engine.h"
#include "core/horizon.h"
#include "core/parking.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/early.h"
#include "jobs/early_order.h"
#include "jobs/queue.h"
#include "specstream.h"

bool ss_queue_head_is_pending(const struct ss_engine *engine)
{
    const struct ss_queue *queue = engine->queue;
    return queue->pending_count > 0 &&
           (queue->active_count == 0 ||
            ss_is_before(ss_pending_key(queue), ss_first_key(ss_active_at(engine, 0))));
}

bool ss_queue_head_is_safe(const struct ss_engine *engine)
{
    const struct ss_queue *queue = engine->queue;
    if (engine->early != NULL) {
        if (engine->early->count > 0 && ss_applied_at(engine->early, 0)->of_time &&
            ss_queue_is_safe(queue, ss_applied_at(engine->early, 0)->last))
            return true;
        const struct ss_span *first = ss_early_first_span(engine);
        if (first == NULL)
            return false;
        /* Nothing becomes final before somebody has said what a tentative one is; one that was
         * withdrawn is soon out of the way. Of a transaction the first event counts: where the frontier
         * divides it, it is about to be divided. */
        return first->segment->is_withdrawn ||
               (!first->segment->is_tentative &&
                ss_queue_is_safe(queue, ss_key_at(first->segment, first->first)));
    }
    if (ss_queue_head_is_pending(engine))
        return ss_queue_is_safe(queue, ss_pending_key(queue));
    return queue->active_count > 0 && ss_queue_is_safe(queue, ss_first_key(ss_active_at(engine, 0)));
}

bool ss_queue_head_is_for_us(const struct ss_engine *engine)
{
    return ss_queue_head_is_pending(engine) && ss_queue_is_safe(engine->queue, ss_pending_key(engine->queue)) &&
           (!engine->protocol->head_speculates || engine->job.horizon == 0);
}

bool ss_queue_head_is_finished(const struct ss_engine *engine)
{
    if (ss_queue_head_is_pending(engine) || engine->queue->active_count == 0)
        return false;
    struct ss_transaction *head = ss_active_at(engine, 0);
    return ss_status_of(head) == SS_FINISHED && ss_queue_is_safe(engine->queue, ss_last_key(head));
}

bool ss_queue_has_slot(const struct ss_engine *engine, uint64_t place)
{
    const struct ss_queue *queue = engine->queue;
    return queue->unused_count > 1 ||
           (place == 0 && engine->early == NULL && ss_queue_is_safe(queue, ss_pending_key(queue)));
}

bool ss_queue_can_claim(const struct ss_engine *engine)
{
    const struct ss_queue *queue = engine->queue;
    if (engine->job.horizon == 0 || queue->pending_count == 0 ||
        (queue->failed && engine->early == NULL))
        return false;
    uint64_t place = ss_active_before(engine, ss_pending_key(queue));
    if (place > (uint64_t)ss_reach(engine))
        return false;
    /* What a dissolved transaction gives back may belong before the events that we would take. */
    for (uint64_t i = 0; queue->dissolving > 0 && i < place; i++)
        if (ss_is_dissolving(ss_active_at(engine, i)))
            return false;
    if (engine->early != NULL && !ss_early_may_claim(engine))
        return false;
    if (ss_queue_has_slot(engine, place))
        return true;
    /* The latest one makes room. Not with a hook, which would have to be called under the mutex. */
    if (engine->hooks.kinds != 0)
        return false;
    uint64_t last = queue->active_count - 1;
    uint64_t status = ss_status_of(ss_active_at(engine, last));
    return place <= last && (status == SS_FINISHED || status == SS_WAITING);
}

bool ss_queue_timers_are_due(const struct ss_engine *engine)
{
    const struct ss_queue *queue = engine->queue;
    if (!ss_has_timers(engine) || !queue->has_frontier || queue->failed || ss_queue_head_is_safe(engine))
        return false;
    int64_t time = queue->frontier.timestamp;
    int64_t next = ss_timers_next(engine->timers);
    return time == INT64_MAX ? !queue->has_ended : next <= time;
}

bool ss_queue_end_is_due(const struct ss_engine *engine)
{
    struct ss_key key;
    return engine->early->count == 0 && ss_queue_timers_are_due(engine) &&
           engine->queue->frontier.timestamp == INT64_MAX &&
           ss_next_unapplied(engine, &key) == SS_NEXT_NOBODY && ss_early_step(engine) == SS_EARLY_NOTHING;
}

bool ss_queue_timers_will_fire(const struct ss_engine *engine)
{
    return ss_queue_timers_are_due(engine) &&
           (engine->early == NULL || engine->queue->dissolving > 0 || ss_queue_end_is_due(engine) ||
            ss_early_step(engine) != SS_EARLY_NOTHING);
}

/* Nothing runs that is to be applied, and nobody has anything to do. */
static bool early_is_settled(const struct ss_engine *engine)
{
    struct ss_key key;
    if (ss_early_step(engine) != SS_EARLY_NOTHING || ss_queue_end_is_due(engine))
        return false;
    return ss_next_unapplied(engine, &key) != SS_NEXT_ACTIVE ||
           ss_status_of(ss_active_at(engine, 0)) == SS_FINISHED;
}

void ss_queue_refresh(struct ss_engine *engine)
{
    struct ss_queue *queue = engine->queue;
    ss_queue_drop_withdrawn(queue);
    uint32_t work = ss_queue_can_claim(engine) ? SS_WORK_CLAIM : 0;
    bool pending = ss_queue_head_is_pending(engine);
    bool ready = pending && !queue->failed && ss_queue_is_safe(queue, ss_pending_key(queue));
    if (engine->early != NULL) {
        struct ss_key key;
        enum ss_early_step step = ss_early_step(engine);
        pending = ss_next_unapplied(engine, &key) != SS_NEXT_ACTIVE;
        ready = pending && step != SS_EARLY_NOTHING;
        work |= step != SS_EARLY_NOTHING && step != SS_EARLY_WAIT ? SS_WORK_ADVANCE : 0;
    } else if (!queue->failed && (ss_queue_head_is_for_us(engine) || ss_queue_head_is_finished(engine)))
        work |= SS_WORK_ADVANCE;
    bool timers = ss_queue_timers_will_fire(engine);
    if (engine->early == NULL ? timers : ss_queue_end_is_due(engine))
        work |= SS_WORK_ADVANCE;
    /* Release: the watchdog and who asks for progress look without the mutex, and see the head's
     * slot as it is now. The same holds for the next one. */
    atomic_store_explicit(&engine->next_commit,
                          pending || queue->active_count == 0 ? -1 : ss_active_at(engine, 0)->number,
                          memory_order_release);
    atomic_store_explicit(&queue->head_is_unclaimed, ready, memory_order_release);
    /* Release, here and for what follows: who looks without the mutex sees what has led to it.
     * The mutex orders those who work it out, so nothing needs to be acquired. */
    uint32_t before = atomic_exchange_explicit(&queue->work, work, memory_order_acq_rel);
    atomic_fetch_add_explicit(&queue->changes, 1, memory_order_release);
    if ((work & ~before) != 0)
        ss_wake(engine);
    bool has_news =
        queue->has_rows || queue->failed ||
        (queue->has_moved && !timers && !ss_queue_head_is_safe(engine));
    atomic_store_explicit(&queue->has_news, has_news, memory_order_release);
    bool is_settled = engine->early != NULL && early_is_settled(engine);
    atomic_store_explicit(&queue->is_settled, is_settled, memory_order_release);
    if ((has_news || is_settled) && queue->listeners > 0)
        pthread_cond_broadcast(&queue->news);
}

uint64_t ss_queue_standing(struct ss_engine *engine, bool *settled)
{
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    uint64_t count = ss_early_standing(engine);
    *settled = early_is_settled(engine);
    pthread_mutex_unlock(&queue->mutex);
    return count;
}
