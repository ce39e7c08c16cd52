/* An open job, seen from outside: events and frontiers come, and somebody waits for what becomes of them. */
#include "jobs/submitting.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "containers/timer_heap.h"
#include "core/engine.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/watchdog.h"
#include "core/worker.h"
#include "jobs/early.h"
#include "jobs/early_budget.h"
#include "jobs/queue.h"
#include "jobs/queue_work.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "specstream.h"

static const int64_t listener_nanoseconds = 50000;

/* Notes which of those that are applied an event of the segment divides. */
static void divide_applied(struct ss_engine *engine, const struct ss_segment *segment)
{
    struct ss_early *early = engine->early;
    uint64_t first = ss_applied_before(early, ss_key_at(segment, segment->first));
    uint64_t end = ss_applied_before(early, ss_key_at(segment, segment->last - 1));
    int64_t row = segment->first;
    for (uint64_t i = first > 0 ? first - 1 : 0; i < end; i++) {
        struct ss_applied *applied = ss_applied_at(early, i);
        if (applied->events <= 1)
            continue;
        while (row < segment->last && ss_is_before(ss_key_at(segment, row), applied->first))
            row++;
        if (row < segment->last && ss_is_before(ss_key_at(segment, row), applied->last))
            ss_early_divide(early, applied);
    }
}

/* With the mutex: has what refers to the event be taken back, and then forgotten. */
static void withdraw(struct ss_engine *engine, struct ss_segment *segment)
{
    struct ss_early *early = engine->early;
    struct ss_key key = ss_key_at(segment, segment->first);
    assert(segment->is_tentative && segment->last - segment->first == 1);
    segment->is_withdrawn = true;
    uint64_t place = ss_applied_before(early, key);
    if (place < early->count && !ss_applied_at(early, place)->of_time &&
        ss_applied_at(early, place)->spans[0].segment == segment)
        ss_early_divide(early, ss_applied_at(early, place)); /* as a late event would */
    else if (early->applied > 0 && ss_applied_at(early, early->applied - 1)->of_time)
        ss_early_divide(early, ss_applied_at(early, early->applied - 1)); /* it may have fired for this event */
    for (place = ss_active_before(engine, key); place < engine->queue->active_count; place++) {
        if (ss_is_before(key, ss_first_key(ss_active_at(engine, place))))
            break;
        if (ss_active_at(engine, place)->spans[0].segment == segment) {
            ss_ask_to_dissolve(engine, place);
            break;
        }
    }
}

bool ss_engine_submit(struct ss_engine *engine, struct ss_segment *segment)
{
    struct ss_queue *queue = engine->queue;
    segment->left = segment->last - segment->first;
    segment->ahead = segment->untold = 0;
    segment->submitted = segment->left == 0;
    if (segment->submitted)
        return true;
    pthread_mutex_lock(&queue->mutex);
    if (!ss_queue_reserve(queue, 1)) {
        pthread_mutex_unlock(&queue->mutex);
        return false;
    }
    assert(segment->is_tentative || !ss_queue_is_safe(queue, ss_key_at(segment, segment->first)) ||
           ss_key_at(segment, segment->first).source == queue->frontier.source);
    for (uint64_t i = queue->active_count; i-- > 0;) {
        struct ss_key first = ss_first_key(ss_active_at(engine, i));
        struct ss_key last = ss_last_key(ss_active_at(engine, i));
        int64_t low = segment->first, high = segment->last;
        while (low < high) { /* the segment's first event after the chunk's first one */
            int64_t middle = low + (high - low) / 2;
            if (ss_is_before(ss_key_at(segment, middle), first))
                low = middle + 1;
            else
                high = middle;
        }
        if (low < segment->last && ss_is_before(ss_key_at(segment, low), last))
            ss_ask_to_dissolve(engine, i);
    }
    if (segment->replaces != NULL && !segment->replaces->is_withdrawn)
        withdraw(engine, segment->replaces);
    if (engine->early != NULL) {
        engine->early->ends = false;
        divide_applied(engine, segment);
        ss_budget_note_newest(engine->early, ss_key_at(segment, segment->last - 1).timestamp);
    }
    ss_queue_push(queue, (struct ss_span){segment, segment->first, segment->last, segment->first});
    segment->submitted = true;
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return true;
}

void ss_engine_confirm(struct ss_engine *engine, struct ss_segment *segment)
{
    pthread_mutex_lock(&engine->queue->mutex);
    segment->is_tentative = false;
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&engine->queue->mutex);
}

void ss_engine_withdraw(struct ss_engine *engine, struct ss_segment *segment)
{
    pthread_mutex_lock(&engine->queue->mutex);
    withdraw(engine, segment);
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&engine->queue->mutex);
}

void ss_engine_advance(struct ss_engine *engine, struct ss_frontier frontier)
{
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->frontier = frontier;
    queue->has_frontier = true;
    if (frontier.timestamp != INT64_MAX && frontier.timestamp > queue->reached)
        queue->reached = frontier.timestamp;
    if (engine->early != NULL && queue->has_ended)
        engine->early->ends = false;
    queue->has_ended = false;
    for (uint64_t i = 0; i < queue->active_count; i++) {
        const struct ss_transaction *transaction = ss_active_at(engine, i);
        if (!ss_queue_is_safe(queue, ss_first_key(transaction)))
            break;
        if (!ss_queue_is_safe(queue, ss_last_key(transaction))) {
            ss_ask_to_dissolve(engine, i);
            break; /* the one that the frontier divides; all others are beyond it */
        }
    }
    for (uint64_t i = 0; engine->early != NULL && i < engine->early->count; i++) {
        struct ss_applied *applied = ss_applied_at(engine->early, i);
        if (ss_queue_is_safe(queue, applied->last))
            continue;
        if (ss_queue_is_safe(queue, applied->first))
            ss_early_divide(engine->early, applied);
        break;
    }
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
}

void ss_engine_go_on_ending(struct ss_engine *engine, uint64_t stamp)
{
    /* Nobody looks at it before there is a frontier, which the mutex brings with it. */
    engine->timers->end = stamp;
    if (engine->early != NULL)
        engine->early->ends = stamp != 0;
}

/* Until a flag of the queue is up. */
static bool await(struct ss_engine *engine, const _Atomic uint32_t *flag, int64_t nanoseconds)
{
    struct ss_queue *queue = engine->queue;
    struct timespec until;
    int64_t now = ss_now();
    int64_t at = now + nanoseconds;
    /* One event is often done before a thread has gone to sleep and been woken. */
    int64_t spin = nanoseconds > 0 ? now + listener_nanoseconds : 0;
    /* Acquire: pairs with the release in refresh; what counts is the look with the mutex, below. */
    while (atomic_load_explicit(flag, memory_order_acquire) == 0 && ss_now() < spin)
        ss_relax();
    until.tv_sec = (time_t)(at / 1000000000);
    until.tv_nsec = (long)(at % 1000000000);
    pthread_mutex_lock(&queue->mutex);
    queue->listeners++;
    int rc = 0;
    bool news;
    /* Relaxed: with the mutex it does not change. */
    while (!(news = atomic_load_explicit(flag, memory_order_relaxed) != 0) && rc == 0)
        rc = pthread_cond_timedwait(&queue->news, &queue->mutex, &until);
    queue->listeners--;
    /* All workers may be in runaway runs at once; then nobody else is left to notice. With the mutex,
     * so that the ring is not replaced meanwhile by a job that follows. */
    if (!news)
        ss_watch(engine);
    pthread_mutex_unlock(&queue->mutex);
    return news;
}

bool ss_engine_await(struct ss_engine *engine, int64_t nanoseconds)
{
    return await(engine, &engine->queue->has_news, nanoseconds);
}

bool ss_engine_await_early(struct ss_engine *engine, int64_t nanoseconds)
{
    /* Without revocations nobody else looks whether the head need still be held back. */
    pthread_mutex_lock(&engine->queue->mutex);
    if (engine->early != NULL) {
        ss_budget_settle(engine->early);
        ss_queue_refresh(engine);
    }
    pthread_mutex_unlock(&engine->queue->mutex);
    return await(engine, &engine->queue->is_settled, nanoseconds);
}

bool ss_engine_is_settled(struct ss_engine *engine)
{
    /* A head in place is active until it has committed, and its worker has the turn until then. */
    assert(ss_turn_is_held(engine));
    pthread_mutex_lock(&engine->queue->mutex);
    bool settled = !ss_queue_head_is_safe(engine) && !ss_queue_timers_will_fire(engine) &&
                   engine->queue->untold == 0;
    pthread_mutex_unlock(&engine->queue->mutex);
    return settled;
}

struct ss_formed ss_engine_formed(struct ss_engine *engine)
{
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    struct ss_formed formed = {queue->claims, queue->claims};
    for (uint64_t i = 0; i < queue->active_count; i++) {
        int64_t before = ss_active_at(engine, i)->number / (int64_t)engine->ring_size;
        if (before < formed.before_first)
            formed.before_first = before;
    }
    pthread_mutex_unlock(&queue->mutex);
    return formed;
}

void ss_engine_clear_rows(struct ss_engine *engine)
{
    assert(ss_turn_is_held(engine));
    engine->row_words = 0;
    engine->row_edition++;
    if (ss_has_timers(engine))
        engine->timers->firing_count = 0;
    pthread_mutex_lock(&engine->queue->mutex);
    engine->queue->has_rows = engine->queue->has_moved = false;
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&engine->queue->mutex);
}

void ss_queue_fail(struct ss_engine *engine)
{
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    if (!queue->failed)
        queue->failed_row = SS_NO_ROW_FOR_HOOK;
    queue->failed = true;
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
}

void ss_queue_told(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    worker->committed_segment->untold--;
    queue->untold--;
    /* Who waits for it has seen the commit already. */
    if (queue->untold == 0)
        queue->has_moved = true;
    ss_queue_refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
}

void ss_engine_resume(struct ss_engine *engine, int64_t failed_row)
{
    struct ss_queue *queue = engine->queue;
    pthread_mutex_lock(&queue->mutex);
    /* A head that had lent the turn when a hook failed may itself have failed since. */
    if (queue->failed && queue->failed_row == failed_row) {
        if (failed_row == SS_NO_ROW_FOR_TIMER) {
            engine->fault = (struct ss_fault){0};
            engine->no_memory = engine->timers->failed = false;
        }
        if (queue->failed_segment != NULL) {
            engine->fault = (struct ss_fault){0};
            engine->no_memory = false;
            queue->failed_segment->left--;
        }
        queue->failed_segment = NULL;
        queue->failed = false;
        ss_queue_refresh(engine);
    }
    pthread_mutex_unlock(&queue->mutex);
}
