/* Shared by the files of the runtime, seen by nobody else. */
#ifndef SPECSTREAM_INTERNAL_H
#define SPECSTREAM_INTERNAL_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "specstream.h"

#define SS_CACHE_LINE 64

#if defined(__GNUC__)
#define SS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define SS_UNLIKELY(x) (x)
#endif

/* State words are plain memory to the user and shared memory to speculators: the head writes them
 * while others read. Every access from C is therefore atomic and relaxed; what orders accesses is
 * the turn, never the word itself. */
static inline uint64_t ss_word_read(const uint64_t *address)
{
    return __atomic_load_n(address, __ATOMIC_RELAXED);
}

static inline void ss_word_write(uint64_t *address, uint64_t value)
{
    __atomic_store_n(address, value, __ATOMIC_RELAXED);
}

static inline int64_t ss_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Tells the core that this is a waiting loop. */
static inline void ss_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- a transaction: one slot of the ring, used again every `ring` transactions ---- */

enum ss_status {
    SS_FREE = 0,     /* nobody's; may be claimed for the next transaction that maps to it */
    SS_RUNNING = 1,  /* a worker runs it speculatively */
    SS_FINISHED = 2, /* in the wait queue */
    SS_IN_PLACE = 3 /* whoever holds the turn runs it as the head */
};

struct ss_transaction {
    /* number << 3 | status. One word, so that a worker that comes back late from a speculative run
     * cannot mistake the slot's next tenant for its own transaction. */
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t status;
    int64_t first; /* events [first, last) of the job */
    int64_t last;
    uint32_t verdict;
    uint64_t read_count;
    uint64_t redo_count;
    uint64_t row_words;
    /* Atomic, because a watcher may look at it while the slot already has its next tenant. */
    struct ss_worker *_Atomic owner;
    struct ss_read *reads;
    struct ss_write *redo;
    uint64_t *rows;
};

static inline uint64_t ss_status_word(int64_t number, enum ss_status status)
{
    return (uint64_t)number << 3 | (uint64_t)status;
}

/* ---- a worker ---- */

struct ss_worker {
    _Alignas(SS_CACHE_LINE) struct ss_run run;
    struct ss_engine *engine;
    uint64_t index;
    pthread_t thread;
    uint32_t epoch;
    uint64_t *rows; /* emit buffer of SS_MODE_LOCKED */
    struct ss_statistics statistics; /* own figures; added up when nobody runs */
};

struct ss_engine {
    struct ss_config config;
    ss_entry entries[SS_VARIANTS];
    struct ss_worker *workers;
    struct ss_transaction *ring;
    uint64_t ring_size;
    pthread_mutex_t *locks;

    /* the job */
    struct ss_job job;
    int64_t transactions; /* in this job */
    int64_t started_at;
    int64_t spin_nanoseconds;
    struct ss_statistics statistics; /* of the jobs that ended */

    /* output of the job; written by whoever holds the turn */
    uint64_t *rows;
    uint64_t row_words;
    uint64_t row_capacity;
    int64_t consumed;
    bool failed;

    _Alignas(SS_CACHE_LINE) _Atomic int64_t next_start;  /* first transaction not yet claimed */
    _Alignas(SS_CACHE_LINE) _Atomic int64_t next_commit; /* the head */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t turn;       /* 1: somebody holds the right to commit */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t over;       /* 1: nothing of this job runs any more */
    _Atomic uint32_t stop;    /* end at the next event boundary */
    _Atomic uint32_t readers; /* threads outside the pool that wait for the turn or hold it */
    _Atomic uint32_t sleepers;
    _Atomic int64_t head_since; /* when the running head was first seen overstaying; 0: not yet */
    _Atomic int64_t runaway_nanoseconds; /* that the head of this job stood still in killed runs */

    _Alignas(SS_CACHE_LINE) pthread_mutex_t park_mutex;
    pthread_cond_t park_condition;

    pthread_mutex_t pool_mutex;
    pthread_cond_t pool_start; /* a job is there, or shutdown */
    pthread_cond_t pool_done;  /* the last worker left the job */
    uint64_t job_number;
    uint64_t threads_started;
    uint64_t active;
    bool shutdown;
};

/* The invariants of docs/architecture.md, checked where NDEBUG is not set: in the stress programs. */
static inline bool ss_turn_is_held(struct ss_engine *engine)
{
    return atomic_load_explicit(&engine->turn, memory_order_relaxed) == 1;
}

/* redo_log.c */
void ss_redo_begin(struct ss_worker *worker, struct ss_transaction *transaction);

/* value.c */
void ss_value_begin(struct ss_worker *worker, struct ss_transaction *transaction);
void ss_value_finish(struct ss_worker *worker, struct ss_transaction *transaction);
bool ss_value_validate(const struct ss_engine *engine, const struct ss_transaction *transaction);
void ss_value_publish(struct ss_engine *engine, const struct ss_transaction *transaction);

/* undo_log.c */
void ss_undo_roll_back(struct ss_run *run);

/* emit.c */
bool ss_rows_append(struct ss_engine *engine, const uint64_t *rows, uint64_t words);
bool ss_rows_reserve(struct ss_engine *engine, uint64_t words);

/* scheduler.c */
void ss_run_ordered(struct ss_worker *worker);

/* direct.c */
void ss_run_log_free(struct ss_worker *worker);
void ss_run_locked(struct ss_worker *worker);

/* parking.c */
void ss_wake(struct ss_engine *engine);
void ss_park(struct ss_worker *worker, bool (*ready)(struct ss_worker *), int64_t nanoseconds);

/* pool.c */
bool ss_pool_start(struct ss_engine *engine);
void ss_pool_stop(struct ss_engine *engine);

#endif
