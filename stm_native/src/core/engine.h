/* An engine: its setting, its workers and ring, and the job that they are in. */
#ifndef SPECSTREAM_ENGINE_H
#define SPECSTREAM_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/job_kind.h"
#include "core/transaction.h"
#include "processor/processor.h"
#include "specstream.h"

struct ss_boost;
struct ss_early;
struct ss_string_table;
struct ss_keyed;
struct ss_lock;
struct ss_protocol;
struct ss_queue;
struct ss_record_region;
struct ss_recorder;
struct ss_timers;
struct ss_worker;

enum ss_rerunning {
    SS_RERUN_NONE = 0,
    SS_RERUN_ONCE = 1, /* the head runs again */
    SS_RERUN_AGAIN = 2 /* as the one before it did */
};

/* A word that is predicted. */
struct ss_counter {
    _Atomic uint64_t name;  /* the word's index, plus 1; 0: this one is free */
    _Atomic int64_t number; /* of the transaction that begins with `value`; -1: not known */
    _Atomic uint64_t value;
    _Atomic uint64_t usual; /* what a committed transaction has added of late, in parts of one */
    uint64_t samples;       /* that this is the mean of; of who may change a note */
};

/* Whether there is a counter. Relaxed: who sees it late predicts worse. */
static inline bool ss_predicts(const struct ss_counter *counters)
{
    return atomic_load_explicit(&counters[0].name, memory_order_relaxed) != 0;
}

struct ss_engine {
    struct ss_config config;
    const struct ss_protocol *protocol;
    /* What the head changes: the owner's words, or with early results the applied image of them. */
    uint64_t *state;
    struct ss_early *early; /* NULL: this job has no early results */
    struct ss_string_table *strings; /* of its events and its state; NULL: none was given */
    ss_entry entries[SS_VARIANTS];
    struct ss_worker *workers;
    struct ss_transaction *ring;
    uint64_t ring_size;
    struct ss_lock *locks;
    pthread_mutex_t output; /* of SS_MODE_LOCKED: guards the rows and what was consumed */
    _Atomic uint64_t *records; /* the lock array of protocol `eager` */
    uint64_t record_mask;
    struct ss_record_region *regions; /* in the order of their words */
    uint64_t owned_limit; /* records that a speculative run may lock */

    /* the job */
    struct ss_job job;
    const struct ss_job_kind *kind; /* of the job */
    int64_t transactions; /* in this job */
    int64_t started_at;
    int64_t long_nanoseconds; /* a run of so long is worth waking somebody, and a longer horizon */
    int64_t doubt_nanoseconds; /* of the time of a run, for each that is looked at again; revalidation.c */
    bool cuts_heads; /* a run stops between two events when it has become the head; scheduler.c */
    int64_t cut_nanoseconds; /* where a run takes so long */
    _Atomic int64_t busy; /* time inside jobs with an end of their own; see statistics.c */

    /* Written with every commit, by whoever holds the turn: on lines that nobody else looks at. */
    _Alignas(SS_CACHE_LINE) uint64_t *rows; /* output of the job */
    uint64_t row_words;
    uint64_t row_edition; /* of the rows from the first on; see struct ss_outcome */
    uint64_t row_capacity;
    int64_t consumed;
    bool failed;
    bool was_rerun; /* the last finished transaction that became the head had to run again */
    struct ss_fault fault; /* that made it fail */
    struct ss_lock_fault lock_fault;
    bool no_memory;
    uint64_t stamp; /* the last one given out */

    _Alignas(SS_CACHE_LINE) struct ss_queue *queue; /* of an open job; never NULL */
    struct ss_recorder *recorder; /* NULL: nothing is recorded */
    struct ss_boost *boost; /* NULL: no field is boosted */
    struct ss_keyed *keyed; /* one for each container */
    struct ss_ahead *ahead; /* one for each of each worker */
    struct ss_timers *timers; /* NULL: the operator has none */
    pthread_mutex_t containers_mutex; /* guards what follows from the words being made of them */
    _Atomic uint32_t containers_stale; /* 1: it has to be */
    struct {
        uint32_t kinds;
        ss_hook hook;
        void *context;
    } hooks;
    struct {
        ss_answering ask; /* NULL: nobody answers */
        void *context;
        const struct ss_answer_word *answers; /* with the turn, while `row` says that there are none */
        uint64_t count;
        _Atomic int64_t row; /* of the event that they are for; below 0: see src/jobs/answers.c */
    } answering;
    struct {
        ss_interpreter run;
        void *context;
    } interpreter; /* of an operator that is not compiled */

    _Alignas(SS_CACHE_LINE) struct ss_counter counters[SS_COUNTERS];
    _Alignas(SS_CACHE_LINE) _Atomic int64_t next_start;  /* first transaction not yet claimed */
    _Alignas(SS_CACHE_LINE) _Atomic int64_t next_commit; /* the head */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t turn;       /* 1: somebody holds the right to commit */
    /* All look at these all the time, and they seldom change. */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t over; /* 1: nothing of this job runs any more */
    _Atomic uint32_t stop;    /* end at the next event boundary */
    _Atomic uint32_t readers; /* threads outside the pool that wait for the turn or hold it */
    _Atomic int64_t reach;    /* the horizon, as it has grown */

    _Alignas(SS_CACHE_LINE) _Atomic uint64_t clock; /* `eager`: commits that changed the state */

    /* They change where somebody sleeps, and where runs are dropped. */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t sleepers;
    /* `eager`: 1: somewhere between the head and next_start a run may have to be repeated. */
    _Atomic uint32_t retries;
    _Atomic uint32_t rerunning; /* the head, enum ss_rerunning */
    _Atomic uint64_t revocations; /* with early results: begun and ended; odd while words are taken back */
    _Atomic int64_t next_doubtful; /* finished runs in [next, last) are to be looked at again; revalidation.c */
    _Atomic int64_t last_doubtful;
    _Atomic int64_t head_since; /* when the head was first seen overstaying; 0: not yet; watchdog.c */
    _Atomic int64_t overstayed_nanoseconds; /* heads of this job, until they were suspected */

    /* Written with every commit, and read by those outside the pool. */
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t version; /* odd: the state is being changed; look.c */
    int64_t spin_nanoseconds; /* of a worker without work; atomic builtins */
    _Atomic uint32_t turned_away; /* 1: since a worker last had the turn, a reader kept one from it */
    _Atomic int64_t share_end;    /* readers wait until then */
    int64_t owed;                 /* to the workers when they come; with the turn */
    int64_t reading_since;        /* that a reader holds the turn; with the turn */
    int64_t patience_nanoseconds; /* of a reader, until a worker has come */
    _Atomic uint32_t lookers; /* threads outside the pool that look into an index */
    _Atomic uint32_t looking; /* those that have not yet seen it whole; look.c */

    _Alignas(SS_CACHE_LINE) pthread_mutex_t park_mutex;
    pthread_cond_t park_condition;

    pthread_mutex_t pool_mutex;
    pthread_cond_t pool_done; /* the last worker left the job */
    uint64_t job_number;
    uint64_t threads_started;
    uint64_t called; /* workers that have a part in the job, from the first on */
    uint64_t active; /* of them, those that are in it */
    bool running;    /* a job has begun and not ended */
    bool shutdown;
};

static inline struct ss_transaction *ss_slot_of(const struct ss_engine *engine, int64_t number)
{
    return &engine->ring[(uint64_t)number & (engine->ring_size - 1)];
}

/* Of two transactions their keys say which is earlier, and not their numbers. */
static inline bool ss_goes_by_key(const struct ss_engine *engine)
{
    return engine->kind->by_key;
}

/* Of a job with an end: the events of the whole chunk. */
static inline void ss_set_range(const struct ss_engine *engine, struct ss_transaction *transaction,
                                int64_t number)
{
    transaction->number = number;
    transaction->first = number * engine->job.chunk;
    transaction->last = transaction->first + engine->job.chunk;
    if (transaction->last > engine->job.count)
        transaction->last = engine->job.count;
}

/* Where numbers do not tell the order, a slot's number still is its tenant's; and transactions that were
 * dissolved count as gone, too. */
static inline bool ss_has_committed(struct ss_engine *engine, int64_t number)
{
    if (!ss_goes_by_key(engine))
        /* Acquire, here and below: who sees that it has committed sees the state that it has
         * left. */
        return atomic_load_explicit(&engine->next_commit, memory_order_acquire) > number;
    if (number < 0)
        return true;
    uint64_t status =
        atomic_load_explicit(&ss_slot_of(engine, number)->status, memory_order_acquire);
    return status >> 3 != (uint64_t)number || (status & 7) == SS_FREE;
}

#endif
