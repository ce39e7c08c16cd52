/* Out of order: the events of an open job (Brito 2010, 4.3.1).
 *
 * Events come in segments, one source each, while the job runs; a later segment may hold earlier
 * events. They run as they come and wait; they commit when the *frontier* has passed them: from then
 * on no earlier event can come.
 *
 * So the place of a transaction is not known when it is formed, and a number cannot tell it. What is
 * a ring in an ordered job is two structures here, both ordered by key (timestamp, source, sequence):
 *
 *     pending  a heap of spans: consecutive events of one segment that nobody has claimed
 *     active   the transactions that are running or wait, a row sorted by their first event's key
 *
 * The head is the least of both. A claim takes the least pending events, up to a chunk; they form a
 * transaction, whose place is wherever its key belongs: perhaps before others that have finished long
 * ago. That needs no more than the commit in order does: those read what they read, and when they
 * become the head it is compared with what there is.
 *
 * The events of a transaction must follow each other: no event, claimed or not, lies between them.
 * Where the frontier has not passed the last one, one may still come. Then the transaction is
 * *dissolved*: its run is dropped, its events are pending again. The same happens where the frontier
 * comes to stand between its events, or the first ones would wait for the last. A chunk that begins
 * below the frontier ends there.
 *
 * Numbers. A transaction still has one: count * slots + slot. It is its identity and says which slot
 * is its; it says nothing about order. Under protocol `eager` the order of two transactions is that
 * of their keys.
 *
 * What is committed, how, and by whom is as in scheduler.c; the same functions do it. The mutex is
 * taken for a claim, at the end of a run and for each commit, never while an operator runs. Whoever
 * changes anything under it works out what there is to do next (`work`), so that idle workers look at
 * one word only.
 *
 * It is one file, long as it is, because all of it works on one structure (struct ss_queue) under one
 * mutex, and whatever changes a part of that has to work out `work` from the whole. */
#include "open_job.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers.h"
#include "boosting.h"
#include "commit.h"
#include "counter_prediction.h"
#include "delta.h"
#include "early.h"
#include "engine.h"
#include "fault.h"
#include "hooks.h"
#include "keyed_changes.h"
#include "keyed_entries.h"
#include "now.h"
#include "parking.h"
#include "processor.h"
#include "protocol.h"
#include "retry_queue.h"
#include "scheduler.h"
#include "specstream.h"
#include "statistics.h"
#include "timers.h"
#include "transaction.h"
#include "turn.h"
#include "undo_log.h"
#include "watchdog.h"
#include "worker.h"

enum work {
    WORK_ADVANCE = 1, /* the head can be committed, or run in place */
    WORK_CLAIM = 2    /* there is an event within the horizon */
};

static const uint64_t first_pending = 64;
static const uint64_t first_spans = 8;
/* Without speculation the chunk is no unit of anything: as many events as are there, within reason. */
static const int64_t plain_chunk = 1024;
static const int64_t idle_nanoseconds = 50000000;
static const int64_t listener_nanoseconds = 50000;

/* ---- keys ---- */

static struct ss_key first_key(const struct ss_transaction *transaction)
{
    return ss_key_at(transaction->spans[0].segment, transaction->spans[0].first);
}

static struct ss_key last_key(const struct ss_transaction *transaction)
{
    const struct ss_span *span = &transaction->spans[transaction->span_count - 1];
    return ss_key_at(span->segment, span->last - 1);
}

/* The event of the frontier itself counts: its own source sends no second one before it. */
static bool is_safe(const struct ss_queue *queue, struct ss_key key)
{
    if (!queue->has_frontier)
        return false;
    return key.timestamp != queue->frontier.timestamp ? key.timestamp < queue->frontier.timestamp
                                                      : key.source <= queue->frontier.source;
}

/* ---- pending spans ---- */

static bool starts_before(const struct ss_span *a, const struct ss_span *b)
{
    return ss_is_before(ss_key_at(a->segment, a->first), ss_key_at(b->segment, b->first));
}

static bool reserve(struct ss_queue *queue, uint64_t more)
{
    uint64_t needed = queue->pending_count + queue->claimed_spans + more;
    if (needed <= queue->pending_capacity)
        return true;
    uint64_t capacity = 2 * needed;
    struct ss_span *grown = realloc(queue->pending, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    queue->pending = grown;
    queue->pending_capacity = capacity;
    return true;
}

static void push(struct ss_queue *queue, struct ss_span span)
{
    struct ss_span *heap = queue->pending;
    assert(queue->pending_count < queue->pending_capacity);
    uint64_t at = queue->pending_count++;
    for (; at > 0 && starts_before(&span, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = span;
}

static struct ss_span pop(struct ss_queue *queue)
{
    struct ss_span *heap = queue->pending;
    struct ss_span top = heap[0];
    struct ss_span last = heap[--queue->pending_count];
    uint64_t at = 0;
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= queue->pending_count)
            break;
        if (child + 1 < queue->pending_count && starts_before(&heap[child + 1], &heap[child]))
            child++;
        if (!starts_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

static struct ss_key pending_key(const struct ss_queue *queue)
{
    return ss_key_at(queue->pending[0].segment, queue->pending[0].first);
}

/* The least pending event has not been withdrawn; or there is none. */
static void drop_withdrawn(struct ss_queue *queue)
{
    while (queue->pending_count > 0 && queue->pending[0].segment->is_withdrawn)
        pop(queue).segment->left = 0;
}

/* ---- active transactions ---- */

static struct ss_transaction *active_at(const struct ss_engine *engine, uint64_t position)
{
    const struct ss_queue *queue = &engine->queue;
    return &engine->ring[queue->active[queue->active_first + position]];
}

/* How many active transactions begin before the key. */
static uint64_t place_of(const struct ss_engine *engine, struct ss_key key)
{
    uint64_t low = 0, high = engine->queue.active_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (ss_is_before(first_key(active_at(engine, middle)), key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of one that is active. Of a key there may be two: one was withdrawn. */
static uint64_t position_of(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    uint64_t position = place_of(engine, first_key(transaction));
    while (active_at(engine, position) != transaction)
        position++;
    return position;
}

static void insert(struct ss_queue *queue, uint64_t position, uint64_t slot)
{
    /* The row wanders to the right as its front is taken off; it has twice the room it needs. */
    if (queue->active_first + queue->active_count == 2 * queue->slots) {
        memmove(queue->active, queue->active + queue->active_first,
                queue->active_count * sizeof *queue->active);
        queue->active_first = 0;
    }
    uint64_t *at = queue->active + queue->active_first + position;
    memmove(at + 1, at, (queue->active_count - position) * sizeof *at);
    *at = slot;
    queue->active_count++;
}

static void remove_at(struct ss_queue *queue, uint64_t position)
{
    uint64_t *at = queue->active + queue->active_first + position;
    if (position == 0)
        queue->active_first++;
    else
        memmove(at, at + 1, (queue->active_count - position - 1) * sizeof *at);
    queue->active_count--;
}

static uint64_t status_of(struct ss_transaction *transaction)
{
    /* Acquire: who sees that a run is over sees its logs. */
    return atomic_load_explicit(&transaction->status, memory_order_acquire) & 7;
}

/* The transaction is over; its slot is free. */
static void discard(struct ss_engine *engine, uint64_t position)
{
    struct ss_queue *queue = &engine->queue;
    struct ss_transaction *transaction = active_at(engine, position);
    queue->claimed_spans -= transaction->span_count;
    remove_at(queue, position);
    queue->unused[(queue->unused_first + queue->unused_count++) % queue->slots] =
        (uint64_t)(transaction - engine->ring);
    ss_set_status(transaction, transaction->number, SS_FREE);
}

/* Events that have not run are pending again; the first of them is not, where it has failed. */
static void give_back(struct ss_queue *queue, const struct ss_transaction *transaction,
                      bool but_one)
{
    for (uint64_t i = 0; i < transaction->span_count; i++) {
        struct ss_span span = transaction->spans[i];
        span.first = span.done;
        if (span.first == span.last)
            continue;
        if (but_one) {
            queue->failed_segment = span.segment;
            queue->failed_row = span.first;
            span.first++;
            but_one = false;
        }
        span.done = span.first;
        if (span.first < span.last)
            push(queue, span);
    }
}

/* `status`: what it is, or would be now; the run of one that is WAITING was dropped before. */
static void dissolve(struct ss_engine *engine, uint64_t position, uint64_t status)
{
    struct ss_queue *queue = &engine->queue;
    struct ss_transaction *transaction = active_at(engine, position);
    engine->protocol->roll_back(engine, transaction);
    ss_boost_roll_back(engine, transaction);
    ss_count(&queue->reordered, status != SS_WAITING);
    queue->claimed_spans -= transaction->span_count;
    give_back(queue, transaction, false);
    queue->claimed_spans += transaction->span_count;
    discard(engine, position);
}

/* Its run is to be dropped as soon as it is over; its events may be withdrawn. */
static bool is_dissolving(const struct ss_transaction *transaction)
{
    /* Relaxed: written with the mutex, which we hold. */
    return atomic_load_explicit(&transaction->dissolved, memory_order_relaxed) != 0;
}

/* Drops a transaction's run, now or as soon as it is over. */
static void ask_to_dissolve(struct ss_engine *engine, uint64_t position)
{
    struct ss_transaction *transaction = active_at(engine, position);
    if (is_dissolving(transaction))
        return;
    uint64_t status = status_of(transaction);
    if (status != SS_RUNNING) {
        dissolve(engine, position, status);
        return;
    }
    engine->queue.dissolving++;
    atomic_store_explicit(&transaction->dissolved, 1, memory_order_relaxed);
    /* Dekker with run_once: the wish is there before the flag is up. */
    atomic_thread_fence(memory_order_seq_cst);
    /* Relaxed: whoever claimed or repeats the run has set it with the mutex; the flag is only
     * polled, and the fence has put it behind the wish. */
    struct ss_worker *owner = atomic_load_explicit(&transaction->owner, memory_order_relaxed);
    if (owner != NULL)
        __atomic_store_n(&owner->run.kill, SS_LEAVE, __ATOMIC_RELAXED);
}

/* ---- early results: what comes next (early.c) ---- */

/* Nothing of it changes any more, once all before it is final. */
static bool is_decided(const struct ss_queue *queue, const struct ss_applied *applied)
{
    for (uint64_t i = 0; i < applied->span_count; i++)
        if (applied->spans[i].segment->is_tentative)
            return false;
    return is_safe(queue, applied->last);
}

/* Who has the earliest event that is not applied. */
enum next { NEXT_NOBODY, NEXT_PENDING, NEXT_ACTIVE, NEXT_REVOKED };

static enum next next_unapplied(const struct ss_engine *engine, struct ss_key *key)
{
    const struct ss_queue *queue = &engine->queue;
    const struct ss_early *early = engine->early;
    enum next next = NEXT_NOBODY;
    if (queue->pending_count > 0) {
        *key = pending_key(queue);
        next = NEXT_PENDING;
    }
    if (queue->active_count > 0) {
        struct ss_key first = first_key(active_at(engine, 0));
        if (next == NEXT_NOBODY || ss_is_before(first, *key)) {
            *key = first;
            next = NEXT_ACTIVE;
        }
    }
    if (early->applied < early->count) {
        struct ss_key first = ss_applied_at(early, early->applied)->first;
        if (next == NEXT_NOBODY || ss_is_before(first, *key)) {
            *key = first;
            next = NEXT_REVOKED;
        }
    }
    return next;
}

static bool is_late(const struct ss_early *early, struct ss_key key)
{
    return early->applied > 0 && ss_is_before(key, ss_applied_at(early, early->applied - 1)->last);
}

enum early_step {
    EARLY_NOTHING,
    EARLY_FINISH,    /* the first of the row is final */
    EARLY_REVOKE,    /* some are taken back, for an event that belongs before or within them */
    EARLY_REPUBLISH, /* one that was revoked is the head */
    EARLY_APPLY,     /* a transaction that has run is */
    EARLY_RUN,       /* events that are pending are */
    EARLY_WAIT,      /* likewise, but first the latest run has to be over: the watchdog sees to that */
    EARLY_DISSOLVE,  /* what was revoked behind a barrier is given up: it may wait for long */
    EARLY_FIRE,      /* a timer that is due before what comes next */
    EARLY_FIRE_IN_PLACE, /* likewise, where everything before it is final */
    EARLY_IN_PLACE   /* what cannot run otherwise is, and everything before it is final */
};

/* Up to which time timers fire before what comes next; false: none does. `final`: only those that
 * nothing can come before. */
static bool timers_time(const struct ss_engine *engine, enum next next, struct ss_key key, bool final,
                        int64_t *time)
{
    const struct ss_queue *queue = &engine->queue;
    bool is_first = next != NEXT_NOBODY && is_safe(queue, key);
    /* What was revoked is published again however late it is. */
    bool is_held = next != NEXT_REVOKED && ss_is_held(engine->early, key.timestamp);
    bool counts = is_first || (next != NEXT_NOBODY && !final && !is_held);
    int64_t clock = ss_timers_clock(engine);
    *time = INT64_MIN;
    /* Nothing fires for events that may be withdrawn. */
    if (next == NEXT_ACTIVE && is_dissolving(active_at(engine, 0)))
        return false;
    /* It has lent the turn, and sees to what is due between its events itself. */
    if (next == NEXT_ACTIVE && status_of(active_at(engine, 0)) == SS_IN_PLACE)
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
static bool timer_is_next(const struct ss_engine *engine, enum next next, struct ss_key key,
                          bool has_room, enum early_step *step)
{
    const struct ss_early *early = engine->early;
    int64_t time;
    if (!ss_has_timers(engine) || !timers_time(engine, next, key, false, &time))
        return false;
    bool is_final = early->count == 0 && !engine->queue.failed &&
                    timers_time(engine, next, key, true, &time);
    *step = EARLY_NOTHING;
    if (is_final)
        *step = EARLY_FIRE_IN_PLACE;
    else if (!early->fires_in_place)
        *step = has_room ? EARLY_FIRE : EARLY_NOTHING;
    else if (early->applied < early->count)
        *step = EARLY_DISSOLVE;
    return true;
}

/* With the mutex. */
static enum early_step early_step(const struct ss_engine *engine)
{
    const struct ss_queue *queue = &engine->queue;
    const struct ss_early *early = engine->early;
    struct ss_key key = {0, 0, 0};
    if (queue->failed && queue->failed_row == SS_NO_ROW_FOR_MEMORY)
        return EARLY_NOTHING;
    enum next next = next_unapplied(engine, &key);
    if (early->divided > 0 || (next != NEXT_NOBODY && is_late(early, key)))
        return EARLY_REVOKE;
    /* An event that has failed keeps others from being final, and from nothing else. */
    if (!queue->failed && early->applied > 0 && is_decided(queue, ss_applied_at(early, 0)))
        return EARLY_FINISH;
    bool has_room = early->bytes < early->limit || early->applied < early->count;
    enum early_step step;
    if (timer_is_next(engine, next, key, has_room, &step))
        return step;
    if (next == NEXT_REVOKED)
        return EARLY_REPUBLISH;
    if (next != NEXT_NOBODY && ss_is_held(early, key.timestamp) && !is_safe(queue, key))
        return EARLY_NOTHING;
    if (next == NEXT_PENDING) {
        /* Where no slot is left, the latest run has to be over before its events can make room. */
        bool has_slot = queue->unused_count > 0 ||
                        status_of(active_at(engine, queue->active_count - 1)) == SS_FINISHED;
        return !has_room ? EARLY_NOTHING : has_slot ? EARLY_RUN : EARLY_WAIT;
    }
    if (next == NEXT_NOBODY || status_of(active_at(engine, 0)) != SS_FINISHED)
        return EARLY_NOTHING;
    if (active_at(engine, 0)->barrier && early->applied < early->count)
        return EARLY_DISSOLVE;
    if (active_at(engine, 0)->barrier)
        return !queue->failed && early->count == 0 &&
                       is_safe(queue, last_key(active_at(engine, 0))) &&
                       !active_at(engine, 0)->spans[0].segment->is_tentative
                   ? EARLY_IN_PLACE
                   : EARLY_NOTHING;
    return has_room ? EARLY_APPLY : EARLY_NOTHING;
}

static bool end_is_due(const struct ss_engine *engine);

/* Nothing runs that is to be applied, and nobody has anything to do. */
static bool early_is_settled(const struct ss_engine *engine)
{
    struct ss_key key;
    if (early_step(engine) != EARLY_NOTHING || end_is_due(engine))
        return false;
    return next_unapplied(engine, &key) != NEXT_ACTIVE ||
           status_of(active_at(engine, 0)) == SS_FINISHED;
}

/* Not while a late event waits for its place, and no farther than there is room. */
static bool may_claim_early(const struct ss_engine *engine)
{
    const struct ss_early *early = engine->early;
    struct ss_key key = pending_key(&engine->queue);
    return early->applied == early->count && early->divided == 0 && early->bytes < early->limit &&
           !is_late(early, key) &&
           (!ss_is_held(early, key.timestamp) || is_safe(&engine->queue, key));
}

/* ---- what there is to do ---- */

static bool head_is_pending(const struct ss_engine *engine)
{
    const struct ss_queue *queue = &engine->queue;
    return queue->pending_count > 0 &&
           (queue->active_count == 0 ||
            ss_is_before(pending_key(queue), first_key(active_at(engine, 0))));
}

/* With early results: the first of all events that are not final, applied or not; NULL: there is none. */
static const struct ss_span *first_span(const struct ss_engine *engine)
{
    const struct ss_queue *queue = &engine->queue;
    const struct ss_early *early = engine->early;
    const struct ss_span *first =
        early->count > 0 && !ss_applied_at(early, 0)->of_time ? ss_applied_at(early, 0)->spans : NULL;
    if (queue->pending_count > 0 && (first == NULL || starts_before(queue->pending, first)))
        first = queue->pending;
    if (queue->active_count > 0) {
        const struct ss_span *active = active_at(engine, 0)->spans;
        first = first == NULL || starts_before(active, first) ? active : first;
    }
    return first;
}

static bool head_is_safe(const struct ss_engine *engine)
{
    const struct ss_queue *queue = &engine->queue;
    if (engine->early != NULL) {
        if (engine->early->count > 0 && ss_applied_at(engine->early, 0)->of_time &&
            is_safe(queue, ss_applied_at(engine->early, 0)->last))
            return true;
        const struct ss_span *first = first_span(engine);
        if (first == NULL)
            return false;
        /* Nothing becomes final before somebody has said what a tentative one is; one that was
         * withdrawn is soon out of the way. Of a transaction the first event counts: where the frontier
         * divides it, it is about to be divided. */
        return first->segment->is_withdrawn ||
               (!first->segment->is_tentative && is_safe(queue, ss_key_at(first->segment, first->first)));
    }
    if (head_is_pending(engine))
        return is_safe(queue, pending_key(queue));
    return queue->active_count > 0 && is_safe(queue, first_key(active_at(engine, 0)));
}

/* The head is to be run in place by whoever holds the turn. */
static bool head_is_for_us(const struct ss_engine *engine)
{
    return head_is_pending(engine) && is_safe(&engine->queue, pending_key(&engine->queue)) &&
           (!engine->protocol->head_speculates || engine->job.horizon == 0);
}

static bool head_is_finished(const struct ss_engine *engine)
{
    if (head_is_pending(engine) || engine->queue.active_count == 0)
        return false;
    struct ss_transaction *head = active_at(engine, 0);
    return status_of(head) == SS_FINISHED && is_safe(&engine->queue, last_key(head));
}

/* One slot is kept for the head, which must never wait for one: nothing comes before it any more, so
 * it is the only one that takes the last slot. With early results nothing is so sure, and that slot is
 * for who has the turn. */
static bool has_slot(const struct ss_engine *engine, uint64_t place)
{
    const struct ss_queue *queue = &engine->queue;
    return queue->unused_count > 1 ||
           (place == 0 && engine->early == NULL && is_safe(queue, pending_key(queue)));
}

static bool can_claim(const struct ss_engine *engine)
{
    const struct ss_queue *queue = &engine->queue;
    if (engine->job.horizon == 0 || queue->pending_count == 0 ||
        (queue->failed && engine->early == NULL))
        return false;
    uint64_t place = place_of(engine, pending_key(queue));
    if (place > (uint64_t)ss_reach(engine))
        return false;
    /* What a dissolved transaction gives back may belong before the events that we would take. */
    for (uint64_t i = 0; queue->dissolving > 0 && i < place; i++)
        if (is_dissolving(active_at(engine, i)))
            return false;
    if (engine->early != NULL && !may_claim_early(engine))
        return false;
    if (has_slot(engine, place))
        return true;
    /* The latest one makes room. Not with a hook, which would have to be called under the mutex. */
    if (engine->hooks.kinds != 0)
        return false;
    uint64_t last = queue->active_count - 1;
    uint64_t status = status_of(active_at(engine, last));
    return place <= last && (status == SS_FINISHED || status == SS_WAITING);
}

/* Timers fire now: no event that is not before them can commit, and none will come. */
static bool timers_are_due(const struct ss_engine *engine)
{
    const struct ss_queue *queue = &engine->queue;
    if (!ss_has_timers(engine) || !queue->has_frontier || queue->failed || head_is_safe(engine))
        return false;
    int64_t time = queue->frontier.timestamp;
    int64_t next = ss_timers_next(engine->timers);
    return time == INT64_MAX ? !queue->has_ended : next <= time;
}

/* With early results: all that fires before the end has, and all that was is final. */
static bool end_is_due(const struct ss_engine *engine)
{
    struct ss_key key;
    return engine->early->count == 0 && timers_are_due(engine) &&
           engine->queue.frontier.timestamp == INT64_MAX &&
           next_unapplied(engine, &key) == NEXT_NOBODY && early_step(engine) == EARLY_NOTHING;
}

/* Some are about to fire. With early results those that are due may wait for what is tentative before
 * them. */
static bool timers_will_fire(const struct ss_engine *engine)
{
    return timers_are_due(engine) &&
           (engine->early == NULL || engine->queue.dissolving > 0 || end_is_due(engine) ||
            early_step(engine) != EARLY_NOTHING);
}

/* Works out what there is to do, and tells who waits for it. With the mutex. */
static void refresh(struct ss_engine *engine)
{
    struct ss_queue *queue = &engine->queue;
    drop_withdrawn(queue);
    uint32_t work = can_claim(engine) ? WORK_CLAIM : 0;
    bool pending = head_is_pending(engine);
    bool ready = pending && !queue->failed && is_safe(queue, pending_key(queue));
    if (engine->early != NULL) {
        struct ss_key key;
        enum early_step step = early_step(engine);
        pending = next_unapplied(engine, &key) != NEXT_ACTIVE;
        ready = pending && step != EARLY_NOTHING;
        work |= step != EARLY_NOTHING && step != EARLY_WAIT ? WORK_ADVANCE : 0;
    } else if (!queue->failed && (head_is_for_us(engine) || head_is_finished(engine)))
        work |= WORK_ADVANCE;
    bool timers = timers_will_fire(engine);
    if (engine->early == NULL ? timers : end_is_due(engine))
        work |= WORK_ADVANCE;
    /* Release: the watchdog and who asks for progress look without the mutex, and see the head's
     * slot as it is now. The same holds for the next one. */
    atomic_store_explicit(&engine->next_commit,
                          pending || queue->active_count == 0 ? -1 : active_at(engine, 0)->number,
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
        (queue->has_moved && !timers && !head_is_safe(engine));
    atomic_store_explicit(&queue->has_news, has_news, memory_order_release);
    bool is_settled = engine->early != NULL && early_is_settled(engine);
    atomic_store_explicit(&queue->is_settled, is_settled, memory_order_release);
    if ((has_news || is_settled) && queue->listeners > 0)
        pthread_cond_broadcast(&queue->news);
}

/* ---- forming transactions ---- */

static bool add_span(struct ss_queue *queue, struct ss_transaction *transaction,
                     struct ss_span span)
{
    if (transaction->span_count == transaction->span_capacity) {
        uint64_t capacity =
            transaction->span_capacity == 0 ? first_spans : 2 * transaction->span_capacity;
        struct ss_span *grown = realloc(transaction->spans, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        transaction->spans = grown;
        transaction->span_capacity = capacity;
    }
    span.done = span.first;
    transaction->spans[transaction->span_count++] = span;
    queue->claimed_spans++;
    return true;
}

/* Takes the least pending events into a transaction, up to a chunk of them that nothing lies
 * between. False: out of memory, and nothing has changed. */
static bool take_events(struct ss_engine *engine, struct ss_transaction *transaction,
                        uint64_t place, int64_t most)
{
    struct ss_queue *queue = &engine->queue;
    bool only_safe = is_safe(queue, pending_key(queue));
    bool has_next = place < queue->active_count;
    struct ss_key next = {0, 0, 0};
    if (has_next)
        next = first_key(active_at(engine, place));
    if (engine->early != NULL && engine->early->applied < engine->early->count) {
        struct ss_key revoked = ss_applied_at(engine->early, engine->early->applied)->first;
        next = !has_next || ss_is_before(revoked, next) ? revoked : next;
        has_next = true;
    }

    transaction->span_count = 0;
    int64_t count = 0;
    while (queue->pending_count > 0 && count < most) {
        struct ss_key key = pending_key(queue);
        if ((only_safe && !is_safe(queue, key)) || (has_next && ss_is_before(next, key)))
            break;
        /* A transaction of its own: what is behind it must not wait for what is said of it. */
        bool is_tentative = queue->pending[0].segment->is_tentative;
        if (is_tentative && count > 0)
            break;
        if (!reserve(queue, 2) || !add_span(queue, transaction, queue->pending[0]))
            break;
        struct ss_span rest = pop(queue);
        int64_t row = rest.first;
        do {
            row++;
            count++;
            if (row == rest.last || count == most)
                break;
            key = ss_key_at(rest.segment, row);
        } while (!(only_safe && !is_safe(queue, key)) && !(has_next && ss_is_before(next, key)) &&
                 (queue->pending_count == 0 || ss_is_before(key, pending_key(queue))));
        transaction->spans[transaction->span_count - 1].last = row;
        rest.first = rest.done = row;
        if (rest.first < rest.last)
            push(queue, rest);
        drop_withdrawn(queue);
        if (is_tentative)
            break;
    }
    transaction->first = 0;
    transaction->last = count;
    return count > 0;
}

/* For counters: what the transaction at this place will find. */
static void look_ahead(struct ss_engine *engine, uint64_t position)
{
    struct ss_queue *queue = &engine->queue;
    if (SS_UNLIKELY(ss_predicts(engine->counters)))
        ss_prediction_look_ahead(engine, active_at(engine, position),
                                 queue->active + queue->active_first, position);
}

/* With the mutex. An event that has failed is heard of first: with early results others run meanwhile. */
static void fail_for_memory(struct ss_queue *queue)
{
    if (!queue->failed)
        queue->failed_row = SS_NO_ROW_FOR_MEMORY;
    queue->failed = true;
}

/* Forms the transaction of the least pending events; NULL: out of memory. */
static struct ss_transaction *form(struct ss_engine *engine, enum ss_status status)
{
    struct ss_queue *queue = &engine->queue;
    uint64_t place = place_of(engine, pending_key(queue));
    int64_t most = engine->job.chunk;
    if (engine->job.horizon == 0 && most < plain_chunk && engine->hooks.kinds == 0)
        most = plain_chunk;
    if (engine->early != NULL) {
        most = engine->early->singly > 0 || engine->boost != NULL ? 1 : engine->job.chunk;
        engine->early->singly -= engine->early->singly > 0;
    }
    assert(queue->unused_count > 0);
    uint64_t slot = queue->unused[queue->unused_first % queue->slots];
    struct ss_transaction *transaction = &engine->ring[slot];
    if (!take_events(engine, transaction, place, most)) {
        fail_for_memory(queue);
        return NULL;
    }
    queue->unused_first = (queue->unused_first + 1) % queue->slots;
    queue->unused_count--;
    transaction->number = queue->claims++ * (int64_t)engine->ring_size + (int64_t)slot;
    transaction->began_as_head = engine->protocol->head_speculates && place == 0 &&
                                 is_safe(queue, last_key(transaction));
    transaction->barrier = false;
    /* Relaxed: the slot is ours, and the release of its status, below, shows all of it. */
    atomic_store_explicit(&transaction->dissolved, 0, memory_order_relaxed);
    atomic_store_explicit(&transaction->owner, NULL, memory_order_relaxed);
    struct ss_key key = first_key(transaction);
    /* Pairs with the fence in eager.c's is_still: who still follows a reference to the last tenant
     * and sees this key also sees that the reference is gone. */
    atomic_thread_fence(memory_order_release);
    /* Relaxed: ordered by the fence above; a stale look is told from a true one by looking at
     * the record again. */
    atomic_store_explicit(&transaction->key.timestamp, key.timestamp, memory_order_relaxed);
    atomic_store_explicit(&transaction->key.source, key.source, memory_order_relaxed);
    atomic_store_explicit(&transaction->key.sequence, key.sequence, memory_order_relaxed);
    ss_set_status(transaction, transaction->number, status);
    insert(queue, place, slot);
    look_ahead(engine, place);
    return transaction;
}

/* ---- the worker ---- */

/* As in an ordered job; but where the head waits for a frontier, no horizon is too short. */
static bool lengthens(struct ss_engine *engine)
{
    struct ss_queue *queue = &engine->queue;
    pthread_mutex_lock(&queue->mutex);
    bool longer = engine->job.horizon > 0 && engine->early == NULL && queue->pending_count > 0 &&
                  !queue->failed && queue->active_count > 0 && head_is_safe(engine) &&
                  place_of(engine, pending_key(queue)) > (uint64_t)ss_reach(engine) &&
                  ss_lengthen(engine, ss_queue_mean(engine));
    if (longer)
        refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return longer;
}

static int64_t claim(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    int64_t number = -1;
    pthread_mutex_lock(&queue->mutex);
    if (can_claim(engine)) {
        if (!has_slot(engine, place_of(engine, pending_key(queue))))
            dissolve(engine, queue->active_count - 1,
                     status_of(active_at(engine, queue->active_count - 1)));
        struct ss_transaction *transaction = form(engine, SS_RUNNING);
        if (transaction != NULL) {
            /* Relaxed: a watcher that sees the owner before asks the wrong worker, which costs a
             * rerun at most. */
            atomic_store_explicit(&transaction->owner, worker, memory_order_relaxed);
            number = transaction->number;
        }
        refresh(engine);
    }
    pthread_mutex_unlock(&queue->mutex);
    return number;
}

/* The earliest dropped or doomed transaction that may run again (protocol `eager`); -1: none. */
static int64_t retry(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
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
        struct ss_transaction *transaction = active_at(engine, i);
        uint64_t status;
        bool waits = false;
        bool ready = ss_can_retry(engine, transaction, transaction->number, &status, &waits);
        /* The head waits for nobody: what it lost to is gone, or was later. */
        if (waits && i == 0 && !head_is_pending(engine))
            ready = true;
        later = later || (waits && !ready);
        if (!ready)
            continue;
        found = transaction->number;
        doomed = (status & 7) == SS_FINISHED ? transaction : NULL;
        is_head = i == 0 && !head_is_pending(engine) && is_safe(queue, last_key(transaction));
        /* Relaxed: as in claim. */
        atomic_store_explicit(&transaction->owner, worker, memory_order_relaxed);
        ss_set_status(transaction, found, SS_RUNNING);
        look_ahead(engine, i);
        refresh(engine);
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

void ss_queue_settle(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number,
                     enum ss_status status)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    pthread_mutex_lock(&queue->mutex);
    if (is_dissolving(transaction)) {
        queue->dissolving--;
        dissolve(engine, position_of(engine, transaction), status);
    } else {
        if (SS_UNLIKELY(ss_early_is_mixed(engine, transaction)))
            transaction->verdict = SS_ABORTED; /* the head runs it again */
        ss_set_status(transaction, number, status);
        /* Release: as in ss_put_back. */
        if (status == SS_WAITING)
            atomic_store_explicit(&engine->retries, 1, memory_order_release);
    }
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    /* Dekker with release_turn: what there is to do is visible before we try the turn. */
    atomic_thread_fence(memory_order_seq_cst);
}

/* With the turn: takes the head, finished or not, for a commit or a run in place; NULL: neither. */
static struct ss_transaction *take_head(struct ss_engine *engine, bool *finished)
{
    struct ss_queue *queue = &engine->queue;
    struct ss_transaction *transaction = NULL;
    pthread_mutex_lock(&queue->mutex);
    *finished = head_is_finished(engine);
    if (queue->failed) {
        ; /* until somebody has heard of it */
    } else if (*finished) {
        transaction = active_at(engine, 0);
        ss_set_status(transaction, transaction->number, SS_IN_PLACE);
    } else if (head_is_for_us(engine)) {
        transaction = form(engine, SS_IN_PLACE);
    }
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return transaction;
}

/* What has run in place so far is final. */
static void note_final(struct ss_early *early, const struct ss_transaction *transaction)
{
    for (uint64_t i = 0; i < transaction->span_count; i++) {
        const struct ss_span *span = &transaction->spans[i];
        if (span->done == span->first)
            continue;
        early->has_final = true;
        early->final = ss_key_at(span->segment, span->done - 1);
    }
}

/* Its events leave the segments when all of them have committed, as until then their keys say where the
 * transaction belongs. */
void ss_queue_tell_applied(struct ss_engine *engine, struct ss_transaction *transaction)
{
    if (SS_UNLIKELY(engine->early != NULL))
        note_final(engine->early, transaction);
    for (uint64_t i = 0; i < transaction->span_count; i++)
        transaction->spans[i].segment->ahead = 0;
    for (uint64_t i = 0; i < transaction->span_count; i++) {
        const struct ss_span *span = &transaction->spans[i];
        span->segment->ahead += span->done - span->first;
    }
}

/* The head has come to an end, good or bad. */
static void leave_head(struct ss_engine *engine, struct ss_transaction *transaction,
                       enum ss_progress progress)
{
    struct ss_queue *queue = &engine->queue;
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
            give_back(queue, transaction, engine->failed && !of_timer);
            if (of_timer)
                queue->failed_row = SS_NO_ROW_FOR_TIMER;
            engine->failed = false;
            queue->claimed_spans += transaction->span_count;
        }
        /* The front of the row: nothing is earlier than the head. */
        assert(active_at(engine, 0) == transaction);
        if (SS_UNLIKELY(ss_predicts(engine->counters)))
            ss_prediction_fold_open(engine, progress == SS_COMMITTED ? transaction->last : 0);
        discard(engine, 0);
        queue->has_moved = true;
    }
    queue->has_rows = engine->row_words > 0;
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
}

/* With the mutex: what was due has fired, or not all. */
static void leave_timers(struct ss_worker *worker, uint64_t before)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    if (engine->failed) {
        queue->failed = true;
        queue->failed_row = SS_NO_ROW_FOR_TIMER;
        engine->failed = false;
    }
    queue->has_moved = queue->has_moved || worker->statistics.timers != before;
    queue->has_rows = engine->row_words > 0;
}

/* Fires what is due at the frontier. False: nothing has, or not all. */
static bool fire_at_frontier(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    pthread_mutex_lock(&queue->mutex);
    bool due = engine->early == NULL ? timers_are_due(engine) : end_is_due(engine);
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
    leave_timers(worker, before);
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return fired == SS_FIRED;
}

/* ---- early results: the steps ---- */

static void divide(struct ss_early *early, struct ss_applied *applied)
{
    early->divided += !applied->divided;
    applied->divided = true;
}

/* Takes a revoked one out of the row: its events are pending again. */
static void dissolve_applied(struct ss_engine *engine, uint64_t place)
{
    struct ss_queue *queue = &engine->queue;
    struct ss_applied *applied = ss_early_remove(engine->early, place);
    const struct ss_transaction spans = {.spans = applied->spans,
                                         .span_count = applied->span_count};
    queue->claimed_spans -= applied->span_count;
    queue->failed = queue->failed || applied->refused;
    /* First: of its segments nothing may be left behind this. */
    ss_early_void(engine, applied);
    give_back(queue, &spans, applied->refused);
    if (applied->refused) {
        engine->early->has_final = true;
        engine->early->final = applied->last;
    }
    ss_applied_drop(engine, applied);
    free(applied);
}

/* How many are applied that no event belongs before or within. */
static uint64_t standing(const struct ss_engine *engine)
{
    const struct ss_early *early = engine->early;
    struct ss_key key;
    uint64_t place = early->applied;
    if (next_unapplied(engine, &key) != NEXT_NOBODY && is_late(early, key)) {
        place = ss_applied_before(early, key);
        place -= place > 0 && ss_is_before(key, ss_applied_at(early, place - 1)->last);
    }
    for (uint64_t i = 0; early->divided > 0 && i < place; i++)
        if (ss_applied_at(early, i)->divided)
            return i;
    return place;
}

/* Takes back all that are applied behind the earliest event that is not, or behind the first one that is
 * divided, and it as well. */
static void take_back(struct ss_engine *engine)
{
    struct ss_queue *queue = &engine->queue;
    struct ss_early *early = engine->early;
    struct ss_key key;
    int64_t since = ss_now();
    if (next_unapplied(engine, &key) != NEXT_NOBODY && is_late(early, key)) {
        uint64_t before = ss_applied_before(early, key);
        if (before > 0 && ss_is_before(key, ss_applied_at(early, before - 1)->last))
            divide(early, ss_applied_at(early, before - 1));
    }
    uint64_t place = standing(engine);
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
        ss_early_drop_firings(engine, place);
    for (uint64_t i = place; i < early->count && early->divided > 0;) {
        if (ss_applied_at(early, i)->divided)
            dissolve_applied(engine, i);
        else
            i++;
    }
    /* What could not run otherwise may do so on another state. */
    for (uint64_t i = 0; i < queue->active_count; i++)
        active_at(engine, i)->barrier = false;
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
    struct ss_queue *queue = &engine->queue;
    struct ss_early *early = engine->early;
    struct ss_key until = {0, 0, 0};
    uint64_t place = early->applied;
    uint64_t end = early->count - place < AT_ONCE ? early->count : place + AT_ONCE;
    bool holds = true;
    int64_t since = ss_now();
    if (queue->pending_count > 0 || queue->active_count > 0) {
        if (queue->pending_count > 0)
            until = pending_key(queue);
        if (queue->active_count > 0 &&
            (queue->pending_count == 0 || ss_is_before(first_key(active_at(engine, 0)), until)))
            until = first_key(active_at(engine, 0));
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
    struct ss_queue *queue = &engine->queue;
    struct ss_early *early = engine->early;
    uint64_t count = 0, done = 0;
    uint64_t most = engine->hooks.kinds == 0 ? AT_ONCE : 1;
    struct ss_applied *first = ss_applied_at(early, 0);
    if (first->of_time && first->raised) {
        /* As it will never fire otherwise, it is fired once more, to be heard of. */
        divide(early, first);
        take_back(engine);
        early->fires_in_place = true;
        return true;
    }
    while (count < early->applied && count < most &&
           is_decided(queue, ss_applied_at(early, count)) &&
           !(count > 0 && (ss_applied_at(early, count - 1)->raised ||
                           ss_applied_at(early, count)->raised)))
        count++;
    pthread_mutex_unlock(&queue->mutex);
    if (SS_UNLIKELY(ss_has_hook(engine, SS_ON_COMMIT)) && !first->raised && !first->of_time &&
        !is_welcome(worker, first)) {
        pthread_mutex_lock(&queue->mutex);
        divide(early, first); /* it runs again, or has failed; in any case it is taken back first */
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
        fail_for_memory(queue);
    return done == count;
}

/* A run of the head is over. Whether it did what the sequential one would: then it has read what there
 * is, whatever has become of it. `reruns`: its log does not tell why it raises. */
static bool run_holds(struct ss_engine *engine, struct ss_transaction *transaction, bool *reruns)
{
    *reruns = false;
    /* Who was killed was asked to leave; and ABORTED is a run that a revocation has met. */
    if (transaction->verdict == SS_KILLED || transaction->verdict == SS_ABORTED ||
        !engine->protocol->validate(engine, transaction))
        return false;
    if (transaction->verdict == SS_COMPLETED &&
        (!ss_delta_fits(engine, transaction) || !ss_changes_fit(engine, transaction))) {
        transaction->verdict = SS_RAISED; /* which shows only now */
        *reruns = true;
    }
    return true;
}

/* What is applied, out of a run that holds; NULL: out of memory. */
static struct ss_applied *make_applied(struct ss_engine *engine, struct ss_transaction *transaction,
                                       bool reruns)
{
    struct ss_applied *applied = ss_applied_new(engine, transaction, first_key(transaction),
                                                last_key(transaction), reruns);
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
        *applied = ss_applied_in_place(worker, first_key(transaction), last_key(transaction),
                                       &(struct ss_in_place){.span = span, .raised = !is_complete});
    if (is_complete && *applied == NULL)
        undo_in_place(worker);
    else if (is_complete)
        ss_touched_keep(worker);
    return run->verdict != SS_KILLED;
}

/* The worker runs the head when it has given the turn back: an event may take long, or never end, and
 * who wants to look meanwhile need not wait for it. With the mutex. */
static void run_next(struct ss_worker *worker, struct ss_transaction *transaction)
{
    /* Of the head nothing is foretold: what it is wrong about it would be wrong about again. */
    for (int i = 0; i < SS_COUNTERS; i++)
        transaction->foretold[i].known = false;
    ss_set_status(transaction, transaction->number, SS_RUNNING);
    /* Relaxed: as in claim. */
    atomic_store_explicit(&transaction->owner, worker, memory_order_relaxed);
    worker->runs_next = transaction->number;
}

/* Applies the head, which has run, or has it run again. */
static void apply(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    struct ss_early *early = engine->early;
    struct ss_applied *applied = NULL;
    bool reruns = false;
    if (!ss_early_reserve(early)) {
        fail_for_memory(queue);
        dissolve(engine, position_of(engine, transaction), SS_WAITING);
        return;
    }
    /* As if it ran: who wants it dissolved tells us so, and does not do it. */
    ss_set_status(transaction, transaction->number, SS_RUNNING);
    /* Relaxed: as in claim. */
    atomic_store_explicit(&transaction->owner, NULL, memory_order_relaxed);
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    bool in_place = engine->boost != NULL;
    bool holds = in_place || run_holds(engine, transaction, &reruns);
    if (!in_place && holds && transaction->asks && transaction->last == 1) {
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
        applied = make_applied(engine, transaction, reruns);
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
    bool dissolved = is_dissolving(transaction);
    uint64_t position = position_of(engine, transaction);
    queue->dissolving -= dissolved;
    if (applied != NULL) {
        applied->divided = dissolved;
        early->divided += dissolved;
        ss_early_insert(early, early->applied++, applied);
        if (SS_UNLIKELY(ss_predicts(engine->counters)))
            ss_prediction_fold_open(engine, transaction->last);
        discard(engine, position);
        queue->claimed_spans += applied->span_count;
        /* What could not run otherwise may find something else now. */
        if (queue->active_count > 0)
            active_at(engine, 0)->barrier = false;
        return;
    }
    if (holds && fits) /* but there is no memory for it */
        fail_for_memory(queue);
    if (dissolved || (holds && (fits || raised || divides)) || (in_place && !holds)) {
        if ((raised || divides) && !fits)
            early->singly += (uint64_t)transaction->last; /* one of them raises: which one? */
        dissolve(engine, position, SS_WAITING);
    } else if (holds) {
        transaction->barrier = true;
        ss_set_status(transaction, transaction->number, SS_FINISHED);
    } else {
        run_next(worker, transaction);
    }
}

/* The head cannot run but in place, and everything before it is final. */
static void apply_in_place(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_engine *engine = worker->engine;
    ss_set_status(transaction, transaction->number, SS_IN_PLACE);
    refresh(engine);
    pthread_mutex_unlock(&engine->queue.mutex);
    if (engine->boost == NULL)
        ss_drop(worker, transaction, ss_reason_of(transaction->verdict));
    bool done = ss_run_in_place(worker, transaction, transaction->number);
    ss_count(&worker->statistics.commits, done);
    note_final(engine->early, transaction);
    if (done && SS_UNLIKELY(ss_has_hook(engine, SS_ON_POST_COMMIT))) {
        worker->committed_row = ss_row_of(engine, transaction);
        worker->committed_segment = transaction->spans[0].segment;
    }
    leave_head(engine, transaction, done ? SS_COMMITTED : SS_ENDED);
    pthread_mutex_lock(&engine->queue.mutex);
    const struct ss_queue *queue = &engine->queue;
    if (queue->failed && queue->failed_segment != NULL) {
        engine->early->has_final = true;
        engine->early->final = ss_key_at(queue->failed_segment, queue->failed_row);
    }
}

/* Fires the next timer that is due, or removes what has expired. With the mutex. */
static void fire_next(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    struct ss_early *early = engine->early;
    struct ss_key key = {0, 0, 0}, after = {INT64_MIN, INT64_MIN, INT64_MIN};
    struct ss_key before = {INT64_MAX, INT64_MAX, INT64_MAX};
    struct ss_applied *applied = NULL;
    int64_t time;
    enum next next = next_unapplied(engine, &key);
    if (!timers_time(engine, next, key, false, &time))
        return;
    if (early->applied > 0)
        after = ss_applied_at(early, early->applied - 1)->last;
    else if (early->has_final)
        after = early->final;
    if (next != NEXT_NOBODY)
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
    timers_time(engine, next_unapplied(engine, &key), key, false, &time);
    if (time < due)
        divide(early, applied);
}

/* The same where everything before it is final. */
static void fire_in_place(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    struct ss_key key = {0, 0, 0};
    uint64_t before = worker->statistics.timers;
    int64_t time;
    enum next next = next_unapplied(engine, &key);
    bool due = timers_time(engine, next, key, true, &time);
    pthread_mutex_unlock(&queue->mutex);
    if (due)
        ss_timers_at(worker, time);
    pthread_mutex_lock(&queue->mutex);
    engine->early->fires_in_place = false;
    leave_timers(worker, before);
}

/* With the turn: one step; false: there is none. */
static bool advance_early(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    struct ss_early *early = engine->early;
    struct ss_transaction *transaction;
    pthread_mutex_lock(&queue->mutex);
    ss_budget_settle(early);
    enum early_step step = early_step(engine);
    bool full = early->bytes >= early->limit;
    switch (step) {
    case EARLY_NOTHING:
        break;
    case EARLY_WAIT:
        step = EARLY_NOTHING;
        break;
    case EARLY_FINISH:
        if (!finish_first(worker))
            step = EARLY_NOTHING;
        break;
    case EARLY_REVOKE:
        take_back(engine);
        break;
    case EARLY_REPUBLISH:
        republish(worker);
        break;
    case EARLY_APPLY:
    case EARLY_RUN:
        /* The latest ones make room for it. */
        if (full)
            dissolve_applied(engine, early->count - 1);
        if (step == EARLY_RUN && queue->unused_count == 0)
            dissolve(engine, queue->active_count - 1, SS_FINISHED);
        transaction = step == EARLY_RUN ? form(engine, SS_RUNNING) : active_at(engine, 0);
        if (transaction == NULL)
            step = EARLY_NOTHING;
        else if (step == EARLY_RUN && engine->boost == NULL)
            run_next(worker, transaction);
        else
            apply(worker, transaction);
        break;
    case EARLY_DISSOLVE:
        while (early->applied < early->count)
            dissolve_applied(engine, early->count - 1);
        break;
    case EARLY_IN_PLACE:
        apply_in_place(worker, active_at(engine, 0));
        break;
    case EARLY_FIRE:
        if (full && early->applied < early->count)
            dissolve_applied(engine, early->count - 1);
        fire_next(worker);
        break;
    case EARLY_FIRE_IN_PLACE:
        fire_in_place(worker);
        break;
    }
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return step != EARLY_NOTHING && worker->runs_next < 0;
}

uint64_t ss_queue_standing(struct ss_engine *engine, bool *settled)
{
    struct ss_queue *queue = &engine->queue;
    pthread_mutex_lock(&queue->mutex);
    uint64_t count = standing(engine);
    *settled = early_is_settled(engine);
    pthread_mutex_unlock(&queue->mutex);
    return count;
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
            bool moved = advance_early(worker);
            if (worker->runs_next >= 0 || worker->committed_row >= 0)
                return;
            if (!moved && (!ss_has_timers(engine) || !fire_at_frontier(worker)))
                return;
            continue;
        }
        if ((transaction = take_head(engine, &finished)) == NULL) {
            if (!ss_has_timers(engine) || !fire_at_frontier(worker))
                return;
            continue;
        }
        enum ss_progress progress;
        if (finished) {
            progress = ss_commit(worker, transaction, transaction->number);
        } else {
            ss_count(&worker->statistics.head_runs, 1);
            progress = ss_run_in_place(worker, transaction, transaction->number) ? SS_COMMITTED
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
        leave_head(engine, transaction, progress);
        if (SS_UNLIKELY(worker->committed_row >= 0))
            return;
    }
}

bool ss_queue_can_advance(struct ss_engine *engine)
{
    /* Acquire: pairs with the release in refresh. Of `stop` nothing but itself is wanted. */
    return (atomic_load_explicit(&engine->queue.work, memory_order_acquire) & WORK_ADVANCE) != 0 ||
           atomic_load_explicit(&engine->stop, memory_order_relaxed) != 0;
}

bool ss_queue_head_is_unclaimed(struct ss_engine *engine)
{
    /* Acquire: pairs with the release in refresh. */
    return atomic_load_explicit(&engine->queue.head_is_unclaimed, memory_order_acquire) != 0;
}

static bool has_work(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    /* Acquire, here and below: who sees the end of the job, or work, sees what has led to it.
     * The turn is only guessed at: who takes it acquires it. */
    if (atomic_load_explicit(&engine->over, memory_order_acquire) != 0)
        return true;
    if ((atomic_load_explicit(&engine->queue.work, memory_order_acquire) & WORK_CLAIM) != 0)
        return true;
    /* Something may be repeated, and we have not looked since the last change. */
    if (atomic_load_explicit(&engine->retries, memory_order_relaxed) != 0 &&
        atomic_load_explicit(&engine->queue.changes, memory_order_acquire) != worker->seen_changes)
        return true;
    return atomic_load_explicit(&engine->turn, memory_order_relaxed) == 0 &&
           !ss_reader_comes_first(engine) && ss_queue_can_advance(engine);
}

void ss_run_open(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_queue *queue = &engine->queue;
    /* Acquire: pairs with the release in ss_end_job. */
    while (atomic_load_explicit(&engine->over, memory_order_acquire) == 0) {
        int64_t number;
        int64_t since = ss_now();
        if (ss_queue_can_advance(engine) && ss_try_turn(engine)) {
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

int64_t ss_queue_mean(struct ss_engine *engine)
{
    /* Relaxed: the two need not belong together. */
    uint64_t runs = atomic_load_explicit(&engine->queue.runs, memory_order_relaxed);
    int64_t nanoseconds = atomic_load_explicit(&engine->queue.nanoseconds, memory_order_relaxed);
    return runs == 0 ? 0 : nanoseconds / (int64_t)runs;
}

/* ---- the job, seen from outside ---- */

bool ss_queue_open(struct ss_engine *engine)
{
    struct ss_queue *queue = &engine->queue;
    ss_queue_close(engine);
    queue->slots = engine->ring_size;
    queue->pending = malloc(first_pending * sizeof *queue->pending);
    queue->active = malloc(2 * queue->slots * sizeof *queue->active);
    queue->unused = malloc(queue->slots * sizeof *queue->unused);
    if (queue->pending == NULL || queue->active == NULL || queue->unused == NULL) {
        ss_queue_close(engine);
        return false;
    }
    queue->pending_capacity = first_pending;
    queue->unused_count = queue->slots;
    /* Relaxed: nobody is in the job yet, and the pool's mutex hands it to the workers. */
    atomic_store_explicit(&queue->runs, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->nanoseconds, 0, memory_order_relaxed);
    for (uint64_t i = 0; i < queue->slots; i++)
        queue->unused[i] = i;
    return true;
}

/* Forgets everything but the figures. */
void ss_queue_close(struct ss_engine *engine)
{
    struct ss_queue *queue = &engine->queue;
    free(queue->pending);
    free(queue->active);
    free(queue->unused);
    queue->pending = NULL;
    queue->active = queue->unused = NULL;
    queue->pending_count = queue->pending_capacity = queue->claimed_spans = 0;
    queue->active_first = queue->active_count = 0;
    queue->unused_first = queue->unused_count = 0;
    queue->dissolving = queue->untold = 0;
    queue->has_frontier = queue->has_ended = false;
    queue->reached = INT64_MIN;
    queue->has_rows = queue->has_moved = queue->failed = false;
    queue->failed_segment = NULL;
    /* Relaxed: nobody is in a job, and who waits for news takes the mutex before it acts. */
    atomic_store_explicit(&queue->work, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->has_news, 1, memory_order_relaxed);
    atomic_store_explicit(&queue->is_settled, 1, memory_order_relaxed);
}

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
            divide(early, applied);
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
        divide(early, ss_applied_at(early, place)); /* as a late event would */
    else if (early->applied > 0 && ss_applied_at(early, early->applied - 1)->of_time)
        divide(early, ss_applied_at(early, early->applied - 1)); /* it may have fired for this event */
    for (place = place_of(engine, key); place < engine->queue.active_count; place++) {
        if (ss_is_before(key, first_key(active_at(engine, place))))
            break;
        if (active_at(engine, place)->spans[0].segment == segment) {
            ask_to_dissolve(engine, place);
            break;
        }
    }
}

bool ss_engine_submit(struct ss_engine *engine, struct ss_segment *segment)
{
    struct ss_queue *queue = &engine->queue;
    segment->left = segment->last - segment->first;
    segment->ahead = segment->untold = 0;
    segment->submitted = segment->left == 0;
    if (segment->submitted)
        return true;
    pthread_mutex_lock(&queue->mutex);
    if (!reserve(queue, 1)) {
        pthread_mutex_unlock(&queue->mutex);
        return false;
    }
    assert(segment->is_tentative || !is_safe(queue, ss_key_at(segment, segment->first)) ||
           ss_key_at(segment, segment->first).source == queue->frontier.source);
    for (uint64_t i = queue->active_count; i-- > 0;) {
        struct ss_key first = first_key(active_at(engine, i));
        struct ss_key last = last_key(active_at(engine, i));
        int64_t low = segment->first, high = segment->last;
        while (low < high) { /* the segment's first event after the chunk's first one */
            int64_t middle = low + (high - low) / 2;
            if (ss_is_before(ss_key_at(segment, middle), first))
                low = middle + 1;
            else
                high = middle;
        }
        if (low < segment->last && ss_is_before(ss_key_at(segment, low), last))
            ask_to_dissolve(engine, i);
    }
    if (segment->replaces != NULL && !segment->replaces->is_withdrawn)
        withdraw(engine, segment->replaces);
    if (engine->early != NULL) {
        engine->early->ends = false;
        divide_applied(engine, segment);
        ss_budget_note_newest(engine->early, ss_key_at(segment, segment->last - 1).timestamp);
    }
    push(queue, (struct ss_span){segment, segment->first, segment->last, segment->first});
    segment->submitted = true;
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
    return true;
}

void ss_engine_confirm(struct ss_engine *engine, struct ss_segment *segment)
{
    pthread_mutex_lock(&engine->queue.mutex);
    segment->is_tentative = false;
    refresh(engine);
    pthread_mutex_unlock(&engine->queue.mutex);
}

void ss_engine_withdraw(struct ss_engine *engine, struct ss_segment *segment)
{
    pthread_mutex_lock(&engine->queue.mutex);
    withdraw(engine, segment);
    refresh(engine);
    pthread_mutex_unlock(&engine->queue.mutex);
}

void ss_engine_advance(struct ss_engine *engine, struct ss_frontier frontier)
{
    struct ss_queue *queue = &engine->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->frontier = frontier;
    queue->has_frontier = true;
    if (frontier.timestamp != INT64_MAX && frontier.timestamp > queue->reached)
        queue->reached = frontier.timestamp;
    if (engine->early != NULL && queue->has_ended)
        engine->early->ends = false;
    queue->has_ended = false;
    for (uint64_t i = 0; i < queue->active_count; i++) {
        const struct ss_transaction *transaction = active_at(engine, i);
        if (!is_safe(queue, first_key(transaction)))
            break;
        if (!is_safe(queue, last_key(transaction))) {
            ask_to_dissolve(engine, i);
            break; /* the one that the frontier divides; all others are beyond it */
        }
    }
    for (uint64_t i = 0; engine->early != NULL && i < engine->early->count; i++) {
        struct ss_applied *applied = ss_applied_at(engine->early, i);
        if (is_safe(queue, applied->last))
            continue;
        if (is_safe(queue, applied->first))
            divide(engine->early, applied);
        break;
    }
    refresh(engine);
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
    struct ss_queue *queue = &engine->queue;
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
    return await(engine, &engine->queue.has_news, nanoseconds);
}

bool ss_engine_await_early(struct ss_engine *engine, int64_t nanoseconds)
{
    /* Without revocations nobody else looks whether the head need still be held back. */
    pthread_mutex_lock(&engine->queue.mutex);
    if (engine->early != NULL) {
        ss_budget_settle(engine->early);
        refresh(engine);
    }
    pthread_mutex_unlock(&engine->queue.mutex);
    return await(engine, &engine->queue.is_settled, nanoseconds);
}

bool ss_engine_is_settled(struct ss_engine *engine)
{
    /* A head in place is active until it has committed, and its worker has the turn until then. */
    assert(ss_turn_is_held(engine));
    pthread_mutex_lock(&engine->queue.mutex);
    bool settled = !head_is_safe(engine) && !timers_will_fire(engine) && engine->queue.untold == 0;
    pthread_mutex_unlock(&engine->queue.mutex);
    return settled;
}

struct ss_formed ss_engine_formed(struct ss_engine *engine)
{
    struct ss_queue *queue = &engine->queue;
    pthread_mutex_lock(&queue->mutex);
    struct ss_formed formed = {queue->claims, queue->claims};
    for (uint64_t i = 0; i < queue->active_count; i++) {
        int64_t before = active_at(engine, i)->number / (int64_t)engine->ring_size;
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
    pthread_mutex_lock(&engine->queue.mutex);
    engine->queue.has_rows = engine->queue.has_moved = false;
    refresh(engine);
    pthread_mutex_unlock(&engine->queue.mutex);
}

void ss_queue_fail(struct ss_engine *engine)
{
    struct ss_queue *queue = &engine->queue;
    pthread_mutex_lock(&queue->mutex);
    if (!queue->failed)
        queue->failed_row = SS_NO_ROW_FOR_HOOK;
    queue->failed = true;
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
}

void ss_queue_told(struct ss_engine *engine, struct ss_segment *segment)
{
    struct ss_queue *queue = &engine->queue;
    pthread_mutex_lock(&queue->mutex);
    segment->untold--;
    queue->untold--;
    /* Who waits for it has seen the commit already. */
    if (queue->untold == 0)
        queue->has_moved = true;
    refresh(engine);
    pthread_mutex_unlock(&queue->mutex);
}

void ss_engine_resume(struct ss_engine *engine, int64_t failed_row)
{
    struct ss_queue *queue = &engine->queue;
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
        refresh(engine);
    }
    pthread_mutex_unlock(&queue->mutex);
}
