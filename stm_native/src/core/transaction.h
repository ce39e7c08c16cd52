/* A transaction: one slot of the ring, used again every `ring` transactions. */
#ifndef SPECSTREAM_TRANSACTION_H
#define SPECSTREAM_TRANSACTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "processor/processor.h"
#include "specstream.h"

struct ss_change;
struct ss_owned;
struct ss_performed;
struct ss_segment;
struct ss_worker;

enum ss_status {
    SS_FREE = 0,     /* nobody's; may be claimed for the next transaction that maps to it */
    SS_RUNNING = 1,  /* a worker runs it speculatively */
    SS_FINISHED = 2, /* in the wait queue */
    SS_IN_PLACE = 3, /* whoever holds the turn runs it as the head, or commits it (`eager`) */
    SS_WAITING = 4,  /* dropped, to be run again once `waits_for` has committed (`eager`) */
    SS_DOUBTFUL = 5   /* finished; what it has read may have changed (`value`) */
};

/* Where in the state, and where in the operator; as in struct ss_read. */
struct ss_place {
    uint32_t word;
    uint16_t bytes;
    uint16_t site;
};

static inline bool ss_is_before(struct ss_key a, struct ss_key b)
{
    if (a.timestamp != b.timestamp)
        return a.timestamp < b.timestamp;
    return a.source != b.source ? a.source < b.source : a.sequence < b.sequence;
}

/* Consecutive events of one segment. */
struct ss_span {
    struct ss_segment *segment;
    int64_t first;
    int64_t last;
    int64_t done; /* of a run in place: the first event that has not run */
};

static inline struct ss_key ss_key_at(const struct ss_segment *segment, int64_t row)
{
    /* The column is shifted: an address outside of it must not be formed as a pointer. */
    const int64_t *timestamp =
        (const int64_t *)((uintptr_t)segment->columns[0] + (uintptr_t)row * sizeof(int64_t));
    return (struct ss_key){*timestamp, segment->source, row + segment->first_sequence};
}

static inline struct ss_place ss_place_of(const struct ss_read *read)
{
    /* A prediction is of the whole word. */
    return (struct ss_place){read->word, read->bytes & UINT8_MAX, read->site};
}

enum { SS_COUNTERS = 4 }; /* words that are predicted */

#define SS_NOT_STOLEN INT64_MIN

struct ss_transaction {
    /* The first two lines are all that a commit without words of containers has to get from the core
     * that has run it, beside the logs.
     *
     * number << 3 | status. One word, so that a worker that comes back late from a speculative run
     * cannot mistake the slot's next tenant for its own transaction. */
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t status;
    int64_t first; /* events [first, last) of the job */
    int64_t last;
    uint64_t read_count;
    uint64_t redo_count;
    uint64_t delta_count; /* entries of the redo log that are or were deltas */
    uint64_t row_words;
    uint32_t verdict;
    _Atomic uint32_t performed_count;

    _Alignas(SS_CACHE_LINE) struct ss_read *reads;
    struct ss_write *redo;
    uint64_t *rows;
    uint64_t change_count;
    int64_t least_timer; /* the earliest for which its run sets a timer; INT64_MAX: none */
    _Atomic int64_t stolen_by; /* number of the transaction that took one of its locks, or -1 */
    /* An open job: the events are those of the spans, in the order of their keys. */
    struct ss_span *spans;
    uint64_t span_count;

    uint64_t span_capacity;
    _Atomic uint32_t dissolved; /* an event has come that belongs between those of the spans */
    bool asks;    /* its run has left for an answer; see answers.c */
    bool barrier; /* with early results: the head, which can only run in place, on what it has read */
    uint64_t walked; /* with early results: revocations when it first went through a container, plus 1 */
    uint32_t cleared; /* how often its run was suspected and went on */
    _Atomic uint64_t increments[SS_COUNTERS]; /* of its run; atomic, because later ones look */
    _Atomic uint64_t expected[SS_COUNTERS]; /* of it, as a run that was dropped had them, or unknown */
    _Atomic uint64_t counted; /* number of the transaction that these are of, plus 1; 0: of none */
    struct { /* an open job: what a counter will be when it begins, if that is known */
        bool known;
        uint64_t value;
    } foretold[SS_COUNTERS];
    struct ss_performed *performed; /* operations on boosted structures; see boosting.c */
    struct ss_place conflict; /* what it was dropped for, if it was for a word */
    /* Atomic, because a watcher may look at it while the slot already has its next tenant. */
    struct ss_worker *_Atomic owner;
    struct ss_change *changes; /* insertions and removals in keyed containers; keyed_changes.c */

    /* Protocol `eager`; see eager.c. On a line of its own: earlier transactions look at it. */
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t doom; /* incarnation << 32 | distance to the thief */
    uint64_t incarnation; /* which of the runs in this slot */
    int64_t number;
    uint64_t valid_from; /* the validity interval, in ticks of the clock */
    uint64_t valid_to;
    struct ss_owned *owned;
    uint64_t owned_count;
    enum ss_abort_reason reason; /* of an SS_ABORTED run */
    bool began_as_head;
    struct { /* of an open job's first event; atomic, because others compare it with theirs */
        _Atomic int64_t timestamp;
        _Atomic int64_t source;
        _Atomic int64_t sequence;
    } key;
    /* Atomic, because who looks for work reads it before the slot is his. */
    _Atomic int64_t waits_for; /* number of the transaction it lost to, or -1 */
};

static inline uint64_t ss_status_word(int64_t number, enum ss_status status)
{
    return (uint64_t)number << 3 | (uint64_t)status;
}

static inline void ss_set_status(struct ss_transaction *transaction, int64_t number,
                              enum ss_status status)
{
    /* Release: who sees FINISHED also sees the logs; who sees FREE may write them. */
    atomic_store_explicit(&transaction->status, ss_status_word(number, status),
                          memory_order_release);
}

static inline bool ss_has_status(struct ss_transaction *transaction, int64_t number,
                              enum ss_status status)
{
    /* Acquire: pairs with the release in ss_set_status. */
    return atomic_load_explicit(&transaction->status, memory_order_acquire) ==
           ss_status_word(number, status);
}

/* It waits for its turn to commit. */
static inline bool ss_has_finished(struct ss_transaction *transaction, int64_t number)
{
    return ss_has_status(transaction, number, SS_FINISHED) ||
           ss_has_status(transaction, number, SS_DOUBTFUL);
}

/* Its turn, or another transaction's commit. */
static inline bool ss_waits(struct ss_transaction *transaction, int64_t number)
{
    return ss_has_finished(transaction, number) || ss_has_status(transaction, number, SS_WAITING);
}

/* Why a run is dropped that has ended with this verdict. */
static inline enum ss_abort_reason ss_reason_of(uint32_t verdict)
{
    switch (verdict) {
    case SS_RAISED:
        return SS_ABORT_RAISED;
    case SS_LOG_FULL:
    case SS_NO_MEMORY:
        return SS_ABORT_LOG_FULL;
    case SS_KILLED:
        return SS_ABORT_RUNAWAY;
    case SS_FAULTED:
        return SS_ABORT_FAULT;
    default:
        return SS_ABORT_CONFLICT;
    }
}

/* Of two transactions of an open job: by their first events. */
static inline bool ss_has_earlier_key(const struct ss_transaction *a,
                                      const struct ss_transaction *b)
{
    int64_t difference[2];
    /* Relaxed: a stale key costs a rerun; see ss_relation_to. */
    difference[0] = atomic_load_explicit(&a->key.timestamp, memory_order_relaxed);
    difference[1] = atomic_load_explicit(&b->key.timestamp, memory_order_relaxed);
    if (difference[0] == difference[1]) {
        difference[0] = atomic_load_explicit(&a->key.source, memory_order_relaxed);
        difference[1] = atomic_load_explicit(&b->key.source, memory_order_relaxed);
    }
    if (difference[0] == difference[1]) {
        difference[0] = atomic_load_explicit(&a->key.sequence, memory_order_relaxed);
        difference[1] = atomic_load_explicit(&b->key.sequence, memory_order_relaxed);
    }
    return difference[0] < difference[1];
}

#endif
