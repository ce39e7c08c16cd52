/* The queue of an open job: pending events and active transactions, by key. */
#ifndef SPECSTREAM_QUEUE_H
#define SPECSTREAM_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "specstream.h"

struct ss_engine;

struct ss_queue {
    pthread_mutex_t mutex; /* guards everything here that is not atomic */
    pthread_cond_t news;   /* for who waits outside the pool */
    uint64_t listeners;
    /* A heap by the key of a span's first event: claimed by nobody. It has room for the spans of all
     * transactions besides, so that what is dissolved can always come back. */
    struct ss_span *pending;
    uint64_t pending_count;
    uint64_t pending_capacity;
    uint64_t claimed_spans;
    uint64_t *active; /* slots of the transactions that are not committed, by key */
    uint64_t active_first;
    uint64_t active_count;
    uint64_t *unused; /* slots, a ring */
    uint64_t unused_first;
    uint64_t unused_count;
    uint64_t slots;      /* how many there are */
    uint64_t dissolving; /* transactions that are dissolved as soon as their run is over */
    uint64_t reordered;  /* runs dropped for that; read without the mutex */
    int64_t claims;      /* transactions formed so far */
    struct ss_frontier frontier;
    bool has_frontier;
    int64_t reached; /* the last time that the frontier came to before the end; INT64_MIN: none */
    bool has_ended; /* the timers have fired that waited when no event was to come any more */
    bool has_rows;
    bool has_moved; /* since somebody last took the rows, something has committed */
    bool failed; /* nothing commits until somebody has heard of it */
    int64_t failed_row;
    struct ss_segment *failed_segment; /* counts the failed event as left until it was heard of */
    uint64_t untold; /* committed events that on_post_commit is still to be told of */
    _Atomic uint32_t work; /* what there is to do; see enum ss_work */
    _Atomic uint64_t changes; /* times that it was worked out */
    _Atomic uint32_t head_is_unclaimed; /* 1: an event below the frontier is next, and pending */
    _Atomic uint32_t is_settled; /* 1: who waits for early results need not wait */
    _Atomic uint32_t has_news; /* 1: who waits outside the pool need not wait */
    _Atomic uint64_t runs; /* that ended, and what they took */
    _Atomic int64_t nanoseconds;
};

static inline void ss_use_segment(struct ss_run *run, const struct ss_segment *segment)
{
    run->columns = segment->columns;
    run->first_sequence = segment->first_sequence;
}

/* ---- keys ---- */

static inline struct ss_key ss_first_key(const struct ss_transaction *transaction)
{
    return ss_key_at(transaction->spans[0].segment, transaction->spans[0].first);
}

static inline struct ss_key ss_last_key(const struct ss_transaction *transaction)
{
    const struct ss_span *span = &transaction->spans[transaction->span_count - 1];
    return ss_key_at(span->segment, span->last - 1);
}

/* The event of the frontier itself counts: its own source sends no second one before it. */
static inline bool ss_queue_is_safe(const struct ss_queue *queue, struct ss_key key)
{
    if (!queue->has_frontier)
        return false;
    return key.timestamp != queue->frontier.timestamp ? key.timestamp < queue->frontier.timestamp
                                                      : key.source <= queue->frontier.source;
}

static inline bool ss_span_starts_before(const struct ss_span *a, const struct ss_span *b)
{
    return ss_is_before(ss_key_at(a->segment, a->first), ss_key_at(b->segment, b->first));
}

static inline struct ss_key ss_pending_key(const struct ss_queue *queue)
{
    return ss_key_at(queue->pending[0].segment, queue->pending[0].first);
}

static inline struct ss_transaction *ss_active_at(const struct ss_engine *engine, uint64_t position)
{
    const struct ss_queue *queue = engine->queue;
    return &engine->ring[queue->active[queue->active_first + position]];
}

static inline uint64_t ss_status_of(struct ss_transaction *transaction)
{
    /* Acquire: who sees that a run is over sees its logs. */
    return atomic_load_explicit(&transaction->status, memory_order_acquire) & 7;
}

/* Its run is to be dropped as soon as it is over; its events may be withdrawn. */
static inline bool ss_is_dissolving(const struct ss_transaction *transaction)
{
    /* Relaxed: written with the mutex, which we hold. */
    return atomic_load_explicit(&transaction->dissolved, memory_order_relaxed) != 0;
}

bool ss_queue_reserve(struct ss_queue *queue, uint64_t more);
void ss_queue_push(struct ss_queue *queue, struct ss_span span);
struct ss_span ss_queue_pop(struct ss_queue *queue);
/* The least pending event has not been withdrawn; or there is none. */
void ss_queue_drop_withdrawn(struct ss_queue *queue);
/* How many active transactions begin before the key. */
uint64_t ss_active_before(const struct ss_engine *engine, struct ss_key key);
/* Of one that is active. Of a key there may be two: one was withdrawn. */
uint64_t ss_active_position(const struct ss_engine *engine, const struct ss_transaction *transaction);
void ss_active_insert(struct ss_queue *queue, uint64_t position, uint64_t slot);
/* The transaction is over; its slot is free. */
void ss_active_discard(struct ss_engine *engine, uint64_t position);
/* Events that have not run are pending again; the first of them is not, where it has failed. */
void ss_queue_give_back(struct ss_queue *queue, const struct ss_transaction *transaction,
                        bool but_one);
/* `status`: what it is, or would be now; the run of one that is WAITING was dropped before. */
void ss_dissolve(struct ss_engine *engine, uint64_t position, uint64_t status);
/* Drops a transaction's run, now or as soon as it is over. */
void ss_ask_to_dissolve(struct ss_engine *engine, uint64_t position);
/* False: out of memory. */
bool ss_queue_open(struct ss_engine *engine);
void ss_queue_close(struct ss_engine *engine);

#endif
