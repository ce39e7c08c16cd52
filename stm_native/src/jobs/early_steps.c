/* Early results: the steps that whoever holds the turn takes, one after the other (early_order.c says which).
 *
 * The mutex is held where a step looks at the queue and changes the row, and not while it changes words. */
#include "jobs/early_steps.h"

#include <pthread.h>
#include <stdlib.h>

#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/early.h"
#include "jobs/early_apply.h"
#include "jobs/early_budget.h"
#include "jobs/early_final.h"
#include "jobs/early_order.h"
#include "jobs/forming.h"
#include "jobs/hooks.h"
#include "jobs/open_head.h"
#include "jobs/queue.h"
#include "jobs/queue_work.h"
#include "jobs/timer_firing.h"
#include "processor/figure.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "specstream.h"

/* Takes a revoked one out of the row: its events are pending again. */
static void dissolve_applied(struct ss_engine *engine, uint64_t place)
{
    struct ss_queue *queue = engine->queue;
    struct ss_applied *applied = ss_early_remove(engine->early, place);
    const struct ss_transaction spans = {.spans = applied->spans,
                                         .span_count = applied->span_count};
    queue->claimed_spans -= applied->span_count;
    queue->failed = queue->failed || applied->refused;
    /* First: of its segments nothing may be left behind this. */
    ss_early_void(engine, applied);
    ss_queue_give_back(queue, &spans, applied->refused);
    if (applied->refused) {
        engine->early->has_final = true;
        engine->early->final = applied->last;
    }
    ss_applied_drop(engine, applied);
    free(applied);
}

/* Takes out those of no event from a place on, which were revoked: they fire anew. */
static void drop_firings(struct ss_engine *engine, uint64_t place)
{
    struct ss_early *early = engine->early;
    struct ss_applied **row = early->row + early->first;
    uint64_t kept = place;
    for (uint64_t i = place; i < early->count; i++) {
        struct ss_applied *applied = row[i];
        if (!applied->of_time) {
            row[kept++] = applied;
            continue;
        }
        ss_early_leave(early, applied);
        early->untold = place < early->untold ? place : early->untold;
        ss_applied_drop(engine, applied);
        ss_early_void(engine, applied);
        free(applied);
    }
    early->count = kept;
}

/* Takes back all that are applied behind the earliest event that is not, or behind the first one that is
 * divided, and it as well. */
static void take_back(struct ss_engine *engine)
{
    struct ss_queue *queue = engine->queue;
    struct ss_early *early = engine->early;
    struct ss_key key;
    int64_t since = ss_now();
    if (ss_next_unapplied(engine, &key) != SS_NEXT_NOBODY && ss_is_late(early, key)) {
        uint64_t before = ss_applied_before(early, key);
        if (before > 0 && ss_is_before(key, ss_applied_at(early, before - 1)->last))
            ss_early_divide(early, ss_applied_at(early, before - 1));
    }
    uint64_t place = ss_early_standing(engine);
    if (place < early->applied)
        ss_budget_note_late(early, (uint64_t)ss_applied_at(early, early->applied - 1)->last.timestamp -
                            (uint64_t)ss_applied_at(early, place)->first.timestamp);
    early->figures.passes += place < early->applied;
    early->figures.revoked += early->applied - place;
    /* Whether a timer is still due is known again when it is known what comes next. */
    while (place > 0 && ss_applied_at(early, place - 1)->of_time)
        place--;
    pthread_mutex_unlock(&queue->mutex);
    ss_early_begin_back(engine);
    for (uint64_t i = early->applied; i-- > place;)
        ss_applied_revoke(engine, ss_applied_at(early, i));
    ss_early_end_back(engine);
    for (uint64_t i = place; ss_has_timers(engine) && i < early->applied; i++) {
        const struct ss_applied *applied = ss_applied_at(early, i);
        ss_timers_note(engine, applied->undo, applied->undo + applied->undo_count, true);
    }
    pthread_mutex_lock(&queue->mutex);
    early->applied = place;
    early->fires_in_place = false;
    if (ss_has_timers(engine))
        drop_firings(engine, place);
    for (uint64_t i = place; i < early->count && early->divided > 0;) {
        if (ss_applied_at(early, i)->divided)
            dissolve_applied(engine, i);
        else
            i++;
    }
    /* What could not run otherwise may do so on another state. */
    for (uint64_t i = 0; i < queue->active_count; i++)
        ss_active_at(engine, i)->barrier = false;
    early->figures.nanoseconds += (uint64_t)(ss_now() - since);
}

static bool timer_comes_first(const struct ss_engine *engine, int64_t time)
{
    if (!ss_has_timers(engine))
        return false;
    int64_t clock = ss_timers_clock(engine);
    return ss_timers_next(engine->timers) <= (time > clock ? time : clock);
}

/* Whether one is due between the events of a transaction, once those before it have fired. */
static bool timer_divides(const struct ss_engine *engine, const struct ss_applied *applied)
{
    return applied->events > 1 && (timer_comes_first(engine, applied->last.timestamp) ||
                                   applied->least_timer <= applied->last.timestamp);
}

/* The event is to run again. */
static void tell_revoked(struct ss_worker *worker, const struct ss_applied *applied)
{
    ss_count(&worker->statistics.aborts[SS_ABORT_REVOKED], 1);
    ss_count(&worker->statistics.reruns, 1);
    ss_tell_abort(worker->engine, applied->spans[0].first, SS_ABORT_REVOKED);
}

/* Publishes again, up to the next event that is to be run, as far as they hold. */
static void republish(struct ss_worker *worker)
{
    enum { AT_ONCE = 256 };
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    struct ss_early *early = engine->early;
    struct ss_key until = {0, 0, 0};
    uint64_t place = early->applied;
    uint64_t end = early->count - place < AT_ONCE ? early->count : place + AT_ONCE;
    bool holds = true;
    int64_t since = ss_now();
    if (queue->pending_count > 0 || queue->active_count > 0) {
        if (queue->pending_count > 0)
            until = ss_pending_key(queue);
        if (queue->active_count > 0 &&
            (queue->pending_count == 0 || ss_is_before(ss_first_key(ss_active_at(engine, 0)), until)))
            until = ss_first_key(ss_active_at(engine, 0));
        uint64_t before = ss_applied_before(early, until);
        end = before < end ? before : end;
    }
    pthread_mutex_unlock(&queue->mutex);
    for (; holds && place < end; place += holds) {
        struct ss_applied *applied = ss_applied_at(early, place);
        if (timer_comes_first(engine, applied->first.timestamp))
            break;
        holds = ss_applied_holds(engine, applied) && !timer_divides(engine, applied) &&
                ss_applied_reserve(engine, applied);
        if (holds)
            ss_applied_publish(engine, applied);
        else
            tell_revoked(worker, applied);
    }
    pthread_mutex_lock(&queue->mutex);
    early->figures.republished += place - early->applied;
    early->figures.rerun += !holds;
    early->applied = place;
    if (!holds)
        dissolve_applied(engine, place);
    early->figures.nanoseconds += (uint64_t)(ss_now() - since);
}

/* The on_commit hook is asked about the first of the row; false: it wants it to run again, or has failed. */
static bool is_welcome(struct ss_worker *worker, struct ss_applied *applied)
{
    struct ss_engine *engine = worker->engine;
    int64_t row = applied->spans[0].first;
    enum ss_answer answer = ss_ask_commit(engine, row, applied->rows, applied->row_words);
    if (answer == SS_PROCEED)
        return true;
    applied->refused = answer == SS_FAIL;
    if (answer == SS_RUN_AGAIN) {
        ss_count(&worker->statistics.aborts[SS_ABORT_HOOK], 1);
        ss_count(&worker->statistics.reruns, 1);
        ss_tell_abort(engine, row, SS_ABORT_HOOK);
    }
    return false;
}

/* The first ones of the row are final. False: out of memory. */
static bool finish_first(struct ss_worker *worker)
{
    enum { AT_ONCE = 64 };
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    struct ss_early *early = engine->early;
    uint64_t count = 0, done = 0;
    uint64_t most = engine->hooks.kinds == 0 ? AT_ONCE : 1;
    struct ss_applied *first = ss_applied_at(early, 0);
    if (first->of_time && first->raised) {
        /* As it will never fire otherwise, it is fired once more, to be heard of. */
        ss_early_divide(early, first);
        take_back(engine);
        early->fires_in_place = true;
        return true;
    }
    while (count < early->applied && count < most &&
           ss_is_decided(queue, ss_applied_at(early, count)) &&
           !(count > 0 && (ss_applied_at(early, count - 1)->raised ||
                           ss_applied_at(early, count)->raised)))
        count++;
    pthread_mutex_unlock(&queue->mutex);
    if (SS_UNLIKELY(ss_has_hook(engine, SS_ON_COMMIT)) && !first->raised && !first->of_time &&
        !is_welcome(worker, first)) {
        pthread_mutex_lock(&queue->mutex);
        ss_early_divide(early, first); /* it runs again, or has failed; in any case it is taken back first */
        return true;
    }
    while (done < count && ss_applied_finish(worker, ss_applied_at(early, done)))
        done++;
    pthread_mutex_lock(&queue->mutex);
    early->applied -= done;
    for (uint64_t at = 0; at < done; at++) {
        struct ss_applied *applied = ss_early_remove(early, 0);
        queue->claimed_spans -= applied->span_count;
        ss_count(&worker->statistics.commits, !applied->of_time);
        if (applied->raised) {
            queue->failed = true;
            queue->failed_segment = applied->spans[0].segment;
            queue->failed_row = applied->spans[0].first;
        }
        for (uint64_t i = 0; i < applied->span_count && !applied->raised; i++)
            applied->spans[i].segment->left -= applied->spans[i].last - applied->spans[i].first;
        if (SS_UNLIKELY(ss_has_hook(engine, SS_ON_POST_COMMIT)) && !applied->raised &&
            !applied->of_time) {
            worker->committed_row = applied->spans[0].first;
            worker->committed_segment = applied->spans[0].segment;
            worker->committed_segment->untold++;
            queue->untold++;
        }
        free(applied);
    }
    queue->has_moved = true;
    queue->has_rows = engine->row_words > 0;
    if (done < count)
        ss_queue_fail_for_memory(queue);
    return done == count;
}

/* Fires the next timer that is due, or removes what has expired. With the mutex. */
static void fire_next(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    struct ss_early *early = engine->early;
    struct ss_key key = {0, 0, 0}, after = {INT64_MIN, INT64_MIN, INT64_MIN};
    struct ss_key before = {INT64_MAX, INT64_MAX, INT64_MAX};
    struct ss_applied *applied = NULL;
    int64_t time;
    enum ss_next next = ss_next_unapplied(engine, &key);
    if (!ss_early_timers_time(engine, next, key, false, &time))
        return;
    if (early->applied > 0)
        after = ss_applied_at(early, early->applied - 1)->last;
    else if (early->has_final)
        after = early->final;
    if (next != SS_NEXT_NOBODY)
        before = (struct ss_key){key.timestamp, key.source, key.sequence - 1};
    bool has_place = ss_early_reserve(early);
    pthread_mutex_unlock(&queue->mutex);
    enum ss_fired_early fired =
        has_place ? ss_timers_fire_early(worker, time, after, before, &applied) : SS_FIRED_LATER;
    pthread_mutex_lock(&queue->mutex);
    early->fires_in_place = fired == SS_FIRED_LATER;
    if (applied == NULL)
        return;
    ss_early_insert(early, early->applied++, applied);
    /* The event that it has fired for may have been withdrawn meanwhile. */
    int64_t due = time;
    ss_early_timers_time(engine, ss_next_unapplied(engine, &key), key, false, &time);
    if (time < due)
        ss_early_divide(early, applied);
}

/* The same where everything before it is final. */
static void fire_in_place(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    struct ss_key key = {0, 0, 0};
    uint64_t before = worker->statistics.timers;
    int64_t time;
    enum ss_next next = ss_next_unapplied(engine, &key);
    bool due = ss_early_timers_time(engine, next, key, true, &time);
    pthread_mutex_unlock(&queue->mutex);
    if (due)
        ss_timers_at(worker, time);
    pthread_mutex_lock(&queue->mutex);
    engine->early->fires_in_place = false;
    ss_queue_leave_timers(worker, before);
}

bool ss_early_advance(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    struct ss_early *early = engine->early;
    struct ss_transaction *transaction;
    pthread_mutex_lock(&queue->mutex);
    ss_budget_settle(early);
    enum ss_early_step step = ss_early_step(engine);
    bool full = early->bytes >= early->limit;
    switch (step) {
    case SS_EARLY_NOTHING:
        break;
    case SS_EARLY_WAIT:
        step = SS_EARLY_NOTHING;
        break;
    case SS_EARLY_FINISH:
        if (!finish_first(worker))
            step = SS_EARLY_NOTHING;
        break;
    case SS_EARLY_REVOKE:
        take_back(engine);
        break;
    case SS_EARLY_REPUBLISH:
        republish(worker);
        break;
    case SS_EARLY_APPLY:
    case SS_EARLY_RUN:
        /* The latest ones make room for it. */
        if (full)
            dissolve_applied(engine, early->count - 1);
        if (step == SS_EARLY_RUN && queue->unused_count == 0)
            ss_dissolve(engine, queue->active_count - 1, SS_FINISHED);
        transaction = step == SS_EARLY_RUN ? ss_queue_form(engine, SS_RUNNING) : ss_active_at(engine, 0);
        if (transaction == NULL)
            step = SS_EARLY_NOTHING;
        else if (step == SS_EARLY_RUN && engine->boost == NULL)
            ss_early_run_next(worker, transaction);
        else
            ss_early_apply(worker, transaction);
        break;
    case SS_EARLY_DISSOLVE:
        while (early->applied < early->count)
            dissolve_applied(engine, early->count - 1);
        break;
    case SS_EARLY_IN_PLACE:
        ss_early_apply_in_place(worker, ss_active_at(engine, 0));
        break;
    case SS_EARLY_FIRE:
        if (full && early->applied < early->count)
            dissolve_applied(engine, early->count - 1);
        fire_next(worker);
        break;
    case SS_EARLY_FIRE_IN_PLACE:
        fire_in_place(worker);
        break;
    }
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return step != SS_EARLY_NOTHING && worker->runs_next < 0;
}
