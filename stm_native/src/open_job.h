/* Open jobs: events come while they run, in any order. */
#ifndef SPECSTREAM_OPEN_JOB_H
#define SPECSTREAM_OPEN_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"
#include "transaction.h"

struct ss_engine;
struct ss_worker;

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
    _Atomic uint32_t work; /* what there is to do; see enum work */
    _Atomic uint64_t changes; /* times that it was worked out */
    _Atomic uint32_t head_is_unclaimed; /* 1: an event below the frontier is next, and pending */
    _Atomic uint32_t is_settled; /* 1: who waits for early results need not wait */
    _Atomic uint32_t has_news; /* 1: who waits outside the pool need not wait */
    _Atomic uint64_t runs; /* that ended, and what they took */
    _Atomic int64_t nanoseconds;
};

bool ss_queue_open(struct ss_engine *engine);
void ss_queue_close(struct ss_engine *engine);
void ss_run_open(struct ss_worker *worker);
/* A speculative run is over: the transaction waits, or its events go back to the pending ones. */
void ss_queue_settle(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number,
                     enum ss_status status);
/* With the turn: the transaction runs in place, and somebody is about to look how far it is. */
void ss_queue_tell_applied(struct ss_engine *engine, struct ss_transaction *transaction);
int64_t ss_queue_mean(struct ss_engine *engine); /* nanoseconds of a run */
bool ss_queue_can_advance(struct ss_engine *engine);
/* Where no transaction is the head: whether there is an event below the frontier that could be. */
bool ss_queue_head_is_unclaimed(struct ss_engine *engine);
/* A hook has failed: nothing commits until somebody has heard of it. */
void ss_queue_fail(struct ss_engine *engine);
/* With the turn: how many are applied that no event belongs before or within which is still to be applied;
 * `settled`: as struct ss_early_told says. */
uint64_t ss_queue_standing(struct ss_engine *engine, bool *settled);
/* On_post_commit has been told of a committed event of the segment. */
void ss_queue_told(struct ss_engine *engine, struct ss_segment *segment);

static inline void ss_use_segment(struct ss_run *run, const struct ss_segment *segment)
{
    run->columns = segment->columns;
    run->first_sequence = segment->first_sequence;
}

#endif
