/* Early results: what comes next, as far as it can be told from the queue and the row of those that are
 * applied. Nothing is changed here; the mutex is held. What is done about it is in early_steps.c. */
#include "jobs/early_order.h"

#include <stddef.h>

#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/early.h"
#include "jobs/early_budget.h"
#include "jobs/queue.h"
#include "specstream.h"

bool ss_is_decided(const struct ss_queue *queue, const struct ss_applied *applied)
{
    for (uint64_t i = 0; i < applied->span_count; i++)
        if (applied->spans[i].segment->is_tentative)
            return false;
    return ss_queue_is_safe(queue, applied->last);
}

enum ss_next ss_next_unapplied(const struct ss_engine *engine, struct ss_key *key)
{
    const struct ss_queue *queue = engine->queue;
    const struct ss_early *early = engine->early;
    enum ss_next next = SS_NEXT_NOBODY;
    if (queue->pending_count > 0) {
        *key = ss_pending_key(queue);
        next = SS_NEXT_PENDING;
    }
    if (queue->active_count > 0) {
        struct ss_key first = ss_first_key(ss_active_at(engine, 0));
        if (next == SS_NEXT_NOBODY || ss_is_before(first, *key)) {
            *key = first;
            next = SS_NEXT_ACTIVE;
        }
    }
    if (early->applied < early->count) {
        struct ss_key first = ss_applied_at(early, early->applied)->first;
        if (next == SS_NEXT_NOBODY || ss_is_before(first, *key)) {
            *key = first;
            next = SS_NEXT_REVOKED;
        }
    }
    return next;
}

bool ss_is_late(const struct ss_early *early, struct ss_key key)
{
    return early->applied > 0 && ss_is_before(key, ss_applied_at(early, early->applied - 1)->last);
}

bool ss_early_timers_time(const struct ss_engine *engine, enum ss_next next, struct ss_key key, bool final,
                          int64_t *time)
{
    const struct ss_queue *queue = engine->queue;
    bool is_first = next != SS_NEXT_NOBODY && ss_queue_is_safe(queue, key);
    /* What was revoked is published again however late it is. */
    bool is_held = next != SS_NEXT_REVOKED && ss_is_held(engine->early, key.timestamp);
    bool counts = is_first || (next != SS_NEXT_NOBODY && !final && !is_held);
    int64_t clock = ss_timers_clock(engine);
    *time = INT64_MIN;
    /* Nothing fires for events that may be withdrawn. */
    if (next == SS_NEXT_ACTIVE && ss_is_dissolving(ss_active_at(engine, 0)))
        return false;
    /* It has lent the turn, and sees to what is due between its events itself. */
    if (next == SS_NEXT_ACTIVE && ss_status_of(ss_active_at(engine, 0)) == SS_IN_PLACE)
        return false;
    /* That the input has ended is something else: then those fire that were never due. */
    if (queue->has_frontier && !is_first)
        *time = queue->frontier.timestamp != INT64_MAX ? queue->frontier.timestamp
                : engine->early->ends                  ? INT64_MIN
                                                       : queue->reached;
    if (counts && key.timestamp > *time)
        *time = key.timestamp;
    if (counts && clock > *time)
        *time = clock;
    return (counts || queue->has_frontier) && ss_timers_next(engine->timers) <= *time;
}

/* True: a timer comes next, and this is what becomes of it. */
static bool timer_is_next(const struct ss_engine *engine, enum ss_next next, struct ss_key key,
                          bool has_room, enum ss_early_step *step)
{
    const struct ss_early *early = engine->early;
    int64_t time;
    if (!ss_has_timers(engine) || !ss_early_timers_time(engine, next, key, false, &time))
        return false;
    bool is_final = early->count == 0 && !engine->queue->failed &&
                    ss_early_timers_time(engine, next, key, true, &time);
    *step = SS_EARLY_NOTHING;
    if (is_final)
        *step = SS_EARLY_FIRE_IN_PLACE;
    else if (!early->fires_in_place)
        *step = has_room ? SS_EARLY_FIRE : SS_EARLY_NOTHING;
    else if (early->applied < early->count)
        *step = SS_EARLY_DISSOLVE;
    return true;
}

uint64_t ss_early_standing(const struct ss_engine *engine)
{
    const struct ss_early *early = engine->early;
    struct ss_key key;
    uint64_t place = early->applied;
    if (ss_next_unapplied(engine, &key) != SS_NEXT_NOBODY && ss_is_late(early, key)) {
        place = ss_applied_before(early, key);
        place -= place > 0 && ss_is_before(key, ss_applied_at(early, place - 1)->last);
    }
    for (uint64_t i = 0; early->divided > 0 && i < place; i++)
        if (ss_applied_at(early, i)->divided)
            return i;
    return place;
}

enum ss_early_step ss_early_step(const struct ss_engine *engine)
{
    const struct ss_queue *queue = engine->queue;
    const struct ss_early *early = engine->early;
    struct ss_key key = {0, 0, 0};
    if (queue->failed && queue->failed_row == SS_NO_ROW_FOR_MEMORY)
        return SS_EARLY_NOTHING;
    enum ss_next next = ss_next_unapplied(engine, &key);
    if (early->divided > 0 || (next != SS_NEXT_NOBODY && ss_is_late(early, key)))
        return SS_EARLY_REVOKE;
    /* An event that has failed keeps others from being final, and from nothing else. */
    if (!queue->failed && early->applied > 0 && ss_is_decided(queue, ss_applied_at(early, 0)))
        return SS_EARLY_FINISH;
    bool has_room = early->bytes < early->limit || early->applied < early->count;
    enum ss_early_step step;
    if (timer_is_next(engine, next, key, has_room, &step))
        return step;
    if (next == SS_NEXT_REVOKED)
        return SS_EARLY_REPUBLISH;
    if (next != SS_NEXT_NOBODY && ss_is_held(early, key.timestamp) && !ss_queue_is_safe(queue, key))
        return SS_EARLY_NOTHING;
    if (next == SS_NEXT_PENDING) {
        /* Where no slot is left, the latest run has to be over before its events can make room. */
        bool has_slot = queue->unused_count > 0 ||
                        ss_status_of(ss_active_at(engine, queue->active_count - 1)) == SS_FINISHED;
        return !has_room ? SS_EARLY_NOTHING : has_slot ? SS_EARLY_RUN : SS_EARLY_WAIT;
    }
    if (next == SS_NEXT_NOBODY || ss_status_of(ss_active_at(engine, 0)) != SS_FINISHED)
        return SS_EARLY_NOTHING;
    if (ss_active_at(engine, 0)->barrier && early->applied < early->count)
        return SS_EARLY_DISSOLVE;
    if (ss_active_at(engine, 0)->barrier)
        return !queue->failed && early->count == 0 &&
                       ss_queue_is_safe(queue, ss_last_key(ss_active_at(engine, 0))) &&
                       !ss_active_at(engine, 0)->spans[0].segment->is_tentative
                   ? SS_EARLY_IN_PLACE
                   : SS_EARLY_NOTHING;
    return has_room ? SS_EARLY_APPLY : SS_EARLY_NOTHING;
}

bool ss_early_may_claim(const struct ss_engine *engine)
{
    const struct ss_early *early = engine->early;
    struct ss_key key = ss_pending_key(engine->queue);
    return early->applied == early->count && early->divided == 0 && early->bytes < early->limit &&
           !ss_is_late(early, key) &&
           (!ss_is_held(early, key.timestamp) || ss_queue_is_safe(engine->queue, key));
}

const struct ss_span *ss_early_first_span(const struct ss_engine *engine)
{
    const struct ss_queue *queue = engine->queue;
    const struct ss_early *early = engine->early;
    const struct ss_span *first =
        early->count > 0 && !ss_applied_at(early, 0)->of_time ? ss_applied_at(early, 0)->spans : NULL;
    if (queue->pending_count > 0 && (first == NULL || ss_span_starts_before(queue->pending, first)))
        first = queue->pending;
    if (queue->active_count > 0) {
        const struct ss_span *active = ss_active_at(engine, 0)->spans;
        first = first == NULL || ss_span_starts_before(active, first) ? active : first;
    }
    return first;
}
