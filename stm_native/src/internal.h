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
    SS_IN_PLACE = 3, /* whoever holds the turn runs it as the head, or commits it (`eager`) */
    SS_WAITING = 4   /* dropped, to be run again once `waits_for` has committed (`eager`) */
};

/* A record that a transaction has locked, and the version that the record held before. */
struct ss_owned {
    uint64_t record;
    _Atomic uint64_t version;
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
    /* Atomic, because who looks for work reads it before the slot is his. */
    _Atomic int64_t waits_for; /* number of the transaction it lost to, or -1 */
};

static inline uint64_t ss_status_word(int64_t number, enum ss_status status)
{
    return (uint64_t)number << 3 | (uint64_t)status;
}

/* ---- a worker ---- */

struct ss_worker {
    _Alignas(SS_CACHE_LINE) struct ss_run run;
    struct ss_engine *engine;
    struct ss_transaction *transaction; /* that it runs speculatively, under `eager` */
    uint64_t index;
    pthread_t thread;
    uint32_t epoch;
    uint64_t *rows; /* emit buffer of SS_MODE_LOCKED */
    uint64_t undo_entries; /* room in the undo log */
    struct ss_statistics statistics; /* own figures; added up when nobody runs */
};

/* ---- a protocol ---- */

/* How conflicts are found: what the scheduler asks of a protocol. The two differ in this table and
 * in nothing else that the scheduler knows. */
struct ss_protocol {
    enum ss_variant variant; /* the entry of a speculative run */
    /* The head speculates like everyone else, and a run dropped for a conflict speculates again:
     * false for `value`, whose head runs in place. */
    bool head_speculates;
    void (*begin)(struct ss_worker *worker, struct ss_transaction *transaction);
    uint64_t (*load)(struct ss_run *run, uint64_t word);
    void (*store)(struct ss_run *run, uint64_t word, uint64_t value);
    /* The entry has returned; the verdict may still become SS_ABORTED. */
    void (*finish)(struct ss_worker *worker, struct ss_transaction *transaction);
    /* With the turn, as the head. False: it read something else than the head would; sets reason. */
    bool (*validate)(const struct ss_engine *engine, struct ss_transaction *transaction);
    void (*publish)(struct ss_engine *engine, struct ss_transaction *transaction);
    /* Takes back what others may see of a run that does not commit; idempotent. */
    void (*roll_back)(struct ss_engine *engine, struct ss_transaction *transaction);
    /* Tells the speculators of the words that one event of an in-place run of `number` has stored
     * to: those between undo_base and `end`. NULL: they notice by themselves. */
    void (*disturb)(struct ss_worker *worker, int64_t number, const struct ss_undo *end);
};

struct ss_engine {
    struct ss_config config;
    const struct ss_protocol *protocol;
    ss_entry entries[SS_VARIANTS];
    struct ss_worker *workers;
    struct ss_transaction *ring;
    uint64_t ring_size;
    pthread_mutex_t *locks;
    _Atomic uint64_t *records; /* the lock array of protocol `eager` */
    uint64_t record_mask;
    uint64_t owned_limit; /* records that a speculative run may lock */

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
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t clock; /* `eager`: commits that changed the state */
    /* `eager`: 1: somewhere between the head and next_start a run may have to be repeated. */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t retries;
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

static inline struct ss_transaction *ss_slot_of(const struct ss_engine *engine, int64_t number)
{
    return &engine->ring[(uint64_t)number & (engine->ring_size - 1)];
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
    return atomic_load_explicit(&transaction->status, memory_order_acquire) ==
           ss_status_word(number, status);
}

static inline bool ss_has_committed(struct ss_engine *engine, int64_t number)
{
    return atomic_load_explicit(&engine->next_commit, memory_order_acquire) > number;
}

/* redo_log.c */
void ss_redo_begin(struct ss_worker *worker, struct ss_transaction *transaction);
/* The slot of the index that holds `word`, or the empty one where it belongs. */
struct ss_slot *ss_redo_find(struct ss_run *run, uint64_t word);
void ss_redo_publish(struct ss_engine *engine, const struct ss_transaction *transaction);

/* value.c */
extern const struct ss_protocol ss_protocol_value;

/* eager.c */
extern const struct ss_protocol ss_protocol_eager;
bool ss_eager_open(struct ss_engine *engine);
/* Length of the lock array. */
uint64_t ss_eager_records(const struct ss_config *config);
/* Records that a speculative run may lock. */
uint64_t ss_eager_owned_limit(const struct ss_config *config);
/* Whether an earlier transaction has taken a lock from this run, and which. */
bool ss_eager_is_doomed(struct ss_transaction *transaction, int64_t number, int64_t *thief);

/* undo_log.c */
void ss_undo_roll_back(struct ss_run *run);

/* emit.c */
bool ss_rows_append(struct ss_engine *engine, const uint64_t *rows, uint64_t words);
bool ss_rows_reserve(struct ss_engine *engine, uint64_t words);

/* scheduler.c */
void ss_run_ordered(struct ss_worker *worker);
enum ss_abort_reason ss_reason_of(uint32_t verdict);
/* Counts a dropped run, and takes back what others see of it. */
void ss_drop(struct ss_worker *worker, struct ss_transaction *transaction,
             enum ss_abort_reason reason);

/* wait_queue.c */
/* Puts a dropped transaction back, until the one that it waits for has committed. */
void ss_put_back(struct ss_engine *engine, struct ss_transaction *transaction, int64_t number);
/* The earliest transaction of the wait queue that may run again; -1: none. With `take`, its slot is
 * the caller's, and RUNNING. */
int64_t ss_find_retry(struct ss_worker *worker, bool take);

/* fault.c */
/* Runs events [first, last); gives the first one that did not complete. */
int64_t ss_call(struct ss_worker *worker, enum ss_variant variant, int64_t first, int64_t last);

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
