/* Shared by the files of the runtime, seen by nobody else. */
#ifndef SPECSTREAM_INTERNAL_H
#define SPECSTREAM_INTERNAL_H

#include <assert.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "narrow.h"
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
    uint32_t record;
    uint16_t site; /* of the store that locked it */
    _Atomic uint64_t version;
};

/* Where in the state, and where in the operator; as in struct ss_read. */
struct ss_place {
    uint32_t word;
    uint16_t bytes;
    uint16_t site;
};

struct ss_key {
    int64_t timestamp;
    int64_t source;
    int64_t sequence;
};

/* Consecutive events of one segment. */
struct ss_span {
    struct ss_segment *segment;
    int64_t first;
    int64_t last;
    int64_t done; /* of a run in place: the first event that has not run */
};

enum { SS_COUNTERS = 4 }; /* words that are predicted; see prediction.c */
#define SS_NOT_ROBBED INT64_MIN

struct ss_transaction {
    /* number << 3 | status. One word, so that a worker that comes back late from a speculative run
     * cannot mistake the slot's next tenant for its own transaction. */
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t status;
    int64_t first; /* events [first, last) of the job */
    int64_t last;
    /* An open job: the events are those of the spans, in the order of their keys. */
    struct ss_span *spans;
    uint64_t span_count;
    uint64_t span_capacity;
    _Atomic uint32_t dissolved; /* an event has come that belongs between those of the spans */
    uint32_t verdict;
    uint64_t read_count;
    uint64_t redo_count;
    uint64_t delta_count; /* entries of the redo log that are or were deltas */
    uint64_t row_words;
    uint32_t cleared; /* how often its run was suspected and went on */
    _Atomic uint64_t increments[SS_COUNTERS]; /* of its run; atomic, because later ones look */
    struct { /* an open job: what a counter will be when it begins, if that is known */
        bool known;
        uint64_t value;
    } foretold[SS_COUNTERS];
    struct ss_performed *performed; /* operations on boosted structures; see boosting.c */
    _Atomic uint32_t performed_count;
    _Atomic int64_t robbed_by; /* number of the transaction that took one of its locks, or -1 */
    struct ss_place conflict; /* what it was dropped for, if it was for a word */
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

/* ---- a worker ---- */

/* The size of the memory of what runs were dropped for; see profile.c. */
enum { SS_HOT_GROUPS = 64, SS_HOT_ENTRIES = 8 };

enum { SS_SIGNAL_STACK_BYTES = 64 << 10 };

struct ss_stacks {
    char *mapping; /* all of it */
    size_t bytes;
    char *stack; /* lowest byte of the thread's stack */
    size_t stack_bytes;
    stack_t signal_stack;
};

/* One of the locks of SS_MODE_LOCKED; see locks.c. */
struct ss_lock {
    _Alignas(SS_CACHE_LINE) pthread_mutex_t mutex;
    _Atomic uint64_t owner; /* number of the worker that holds it, from 1 on; 0: nobody */
};

#define SS_LOCKS_NAMED (sizeof((struct ss_lock_fault){0}.locks) / sizeof(uint64_t))

/* To where compiled code was called from; see fault.c. */
struct ss_way_back {
    struct ss_way_back *outer; /* of what has called us from inside */
    char *stack;               /* where the stack is free once the code has been left */
    sigjmp_buf registers;
};

struct ss_worker {
    _Alignas(SS_CACHE_LINE) struct ss_run run;
    struct ss_engine *engine;
    struct ss_transaction *transaction; /* that it runs speculatively */
    uint64_t index;
    pthread_t thread;
    pthread_cond_t called; /* a job is there for it, or shutdown */
    uint32_t epoch;
    int64_t committed_row; /* that on_post_commit has to be told of; -1: none */
    struct ss_segment *committed_segment; /* of an open job: where that row is */
    uint64_t seen_changes; /* of an open job's queue, when it last looked for a run to repeat */
    uint64_t *rows; /* emit buffer of SS_MODE_LOCKED */
    uint64_t locks_held;
    uint32_t has_followed; /* its run in place has done operations on them */
    _Atomic uint64_t wants; /* the lock that it waits for, plus 1; 0: none */
    struct ss_lock_fault lock_fault;
    uint64_t undo_entries; /* room in the undo log */
    uint64_t *buffer; /* what is being copied; see buffer.c */
    uint64_t buffer_words;
    struct ss_statistics statistics; /* own figures; see figures.c */
    struct ss_hot_place hot[SS_HOT_GROUPS * SS_HOT_ENTRIES];

    /* Faults; see fault.c. */
    volatile sig_atomic_t inside; /* 1: a fault now is that of compiled code */
    struct ss_way_back *way_back; /* the innermost */
    struct ss_fault fault; /* the last one: of the run in place whose verdict is SS_FAULTED */
    fenv_t arithmetic;     /* as it was when the thread began */
    struct ss_stacks stacks;
    stack_t signal_stack_before;
};

/* A worker's figures are its own to write, and read by others while it works. */
static inline void ss_count(uint64_t *figure, uint64_t more)
{
    __atomic_store_n(figure, *figure + more, __ATOMIC_RELAXED);
}

/* Adds to a figure that only ever has one writer at a time; others read it meanwhile. */
static inline void ss_grow(uint64_t *figure, uint64_t to)
{
    __atomic_store_n(figure, to, __ATOMIC_RELAXED);
}

static inline uint64_t ss_counted(const uint64_t *figure)
{
    return __atomic_load_n(figure, __ATOMIC_RELAXED);
}

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
    /* With the turn, as the head. False: it read something else than the head would; sets reason and
     * conflict. */
    bool (*validate)(const struct ss_engine *engine, struct ss_transaction *transaction);
    void (*publish)(struct ss_engine *engine, struct ss_transaction *transaction);
    /* Takes back what others may see of a run that does not commit; idempotent. */
    void (*roll_back)(struct ss_engine *engine, struct ss_transaction *transaction);
    /* Tells the speculators of the words that one event of an in-place run of `number` has stored
     * to: those between undo_base and `end`. NULL: they notice by themselves. */
    void (*disturb)(struct ss_worker *worker, int64_t number, const struct ss_undo *end);
};

/* ---- the events of an open job; see arrivals.c ---- */

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
    bool has_rows;
    bool has_moved; /* since somebody last took the rows, something has committed */
    bool failed; /* nothing commits until somebody has heard of it */
    int64_t failed_row;
    struct ss_segment *failed_segment; /* counts the failed event as left until it was heard of */
    uint64_t untold; /* committed events that on_post_commit is still to be told of */
    _Atomic uint32_t work; /* what there is to do; see enum work */
    _Atomic uint64_t changes; /* times that it was worked out */
    _Atomic uint32_t head_is_unclaimed; /* 1: an event below the frontier is next, and pending */
    _Atomic uint32_t has_news; /* 1: who waits outside the pool need not wait */
    _Atomic uint64_t runs; /* that ended, and what they took */
    _Atomic int64_t nanoseconds;
};

/* A region of the state, as the mapping from words to records needs it; see eager.c. */
struct ss_record_region {
    uint64_t end; /* the word behind its last */
    uint64_t bias;
    uint64_t shift;
};

/* A word that is predicted; see prediction.c. */
struct ss_counter {
    _Atomic uint64_t name;  /* the word's index, plus 1; 0: this one is free */
    _Atomic int64_t number; /* of the transaction that begins with `value`; -1: not known */
    _Atomic uint64_t value;
    _Atomic uint64_t usual; /* what the last committed transaction has added */
};

struct ss_engine {
    struct ss_config config;
    const struct ss_protocol *protocol;
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
    int64_t transactions; /* in this job */
    int64_t started_at;
    int64_t spin_nanoseconds;
    _Atomic int64_t busy; /* time inside jobs with an end of their own; see figures.c */

    /* output of the job; written by whoever holds the turn */
    uint64_t *rows;
    uint64_t row_words;
    uint64_t row_capacity;
    int64_t consumed;
    bool failed;
    bool was_rerun; /* the last finished transaction that became the head had to run again */
    struct ss_fault fault; /* that made it fail */
    struct ss_lock_fault lock_fault;
    bool no_memory;
    struct ss_queue queue;
    struct ss_recorder *recorder; /* NULL: nothing is recorded */
    struct ss_boost *boost; /* NULL: no field is boosted */
    struct {
        uint32_t kinds;
        ss_hook hook;
        void *context;
    } hooks;

    _Alignas(SS_CACHE_LINE) struct ss_counter counters[SS_COUNTERS];
    _Alignas(SS_CACHE_LINE) _Atomic int64_t next_start;  /* first transaction not yet claimed */
    _Alignas(SS_CACHE_LINE) _Atomic int64_t next_commit; /* the head */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t turn;       /* 1: somebody holds the right to commit */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t over;       /* 1: nothing of this job runs any more */
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t clock; /* `eager`: commits that changed the state */
    /* `eager`: 1: somewhere between the head and next_start a run may have to be repeated. */
    _Alignas(SS_CACHE_LINE) _Atomic uint32_t retries;
    _Atomic uint32_t rerunning; /* 1: the head runs again, as the one before it did */
    _Atomic uint32_t stop;    /* end at the next event boundary */
    _Atomic uint32_t readers; /* threads outside the pool that wait for the turn or hold it */
    _Atomic uint32_t turned_away; /* 1: since a worker last had the turn, a reader kept one from it */
    _Atomic int64_t share_end;    /* readers wait until then */
    int64_t owed;                 /* to the workers when they come; with the turn */
    int64_t reading_since;        /* that a reader holds the turn; with the turn */
    int64_t patience_nanoseconds; /* of a reader, until a worker has come */
    _Atomic uint32_t sleepers;
    _Atomic int64_t head_since; /* when the head was first seen overstaying; 0: not yet; watchdog.c */
    _Atomic int64_t overstayed_nanoseconds; /* heads of this job, until they were suspected */

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

static inline bool ss_is_open(const struct ss_engine *engine)
{
    return engine->job.mode == SS_MODE_OPEN;
}

/* In an open job the numbers do not tell the order; but a slot's number is its tenant's, and
 * transactions that were dissolved count as gone, too. */
static inline bool ss_has_committed(struct ss_engine *engine, int64_t number)
{
    if (!ss_is_open(engine))
        return atomic_load_explicit(&engine->next_commit, memory_order_acquire) > number;
    if (number < 0)
        return true;
    uint64_t status =
        atomic_load_explicit(&ss_slot_of(engine, number)->status, memory_order_acquire);
    return status >> 3 != (uint64_t)number || (status & 7) == SS_FREE;
}

/* Of two transactions of an open job: by their first events. */
static inline bool ss_has_earlier_key(const struct ss_transaction *a,
                                      const struct ss_transaction *b)
{
    int64_t difference[2];
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

/* Set in a slot's key where deltas of its word are pending: the value is not known before they are
 * settled. Compiled code then finds neither the word nor an empty slot, and calls C. */
#define SS_PENDING (UINT64_C(1) << 32)

/* Nobody's: of an earlier epoch. */
static inline bool ss_slot_is_empty(const struct ss_run *run, const struct ss_slot *slot)
{
    return (slot->key ^ run->epoch_key) >> 33 != 0;
}

/* What a slot refers to: the value of a word that the run has stored to. */
static inline uint64_t *ss_slot_value(const struct ss_run *run, const struct ss_slot *slot)
{
    return (uint64_t *)run->redo + slot->position + 1;
}
/* Its entry, of a pending word or of one with narrow elements: these lie in no range. */
static inline struct ss_write *ss_slot_entry(const struct ss_run *run, const struct ss_slot *slot)
{
    return &run->redo[slot->position / 2];
}

/* redo_log.c */
void ss_redo_begin(struct ss_worker *worker, struct ss_transaction *transaction);
/* The slot of the index that holds `word`, deltas pending or not, or the empty one where it belongs. */
struct ss_slot *ss_redo_find(struct ss_run *run, uint64_t word);
/* A word read from the state for the sake of an element of it, and logged as the protocol does; the
 * verdict says whether the run may go on. */
typedef uint64_t (*ss_reader)(struct ss_run *run, struct ss_unit unit);
/* The entry that holds an element which this run has stored to; NULL: it has not. Deltas of the
 * element are settled first. */
const struct ss_write *ss_redo_find_unit(struct ss_run *run, struct ss_unit unit, ss_reader read);
/* Puts an element into the entry that `slot` refers to. */
void ss_redo_merge(struct ss_run *run, const struct ss_slot *slot, struct ss_unit unit,
                   uint64_t value);
/* A new entry, in an empty slot of the index; the log has room. */
static inline void ss_redo_append(struct ss_run *run, struct ss_slot *slot, struct ss_write write)
{
    *slot = (struct ss_slot){run->epoch_key | write.word, 2 * run->redo_count};
    run->redo[run->redo_count++] = write;
}
static inline struct ss_write ss_store_entry(struct ss_unit unit, uint64_t value)
{
    return (struct ss_write){
        .word = (uint32_t)unit.word, .bytes = unit.bytes, .value = value << unit.shift};
}
/* The head's own store: the old word goes into the undo log. */
void ss_store_in_place(struct ss_run *run, struct ss_unit unit, uint64_t value);
void ss_redo_publish(struct ss_engine *engine, const struct ss_transaction *transaction);
/* Where neighbouring words lie one behind the other in the log; NULL: they do not. */
uint64_t *ss_redo_find_range(struct ss_run *run, uint64_t word, uint64_t count);
/* Has the slots of neighbouring words refer to the range whose head is the next entry of the log. */
void ss_redo_mark(struct ss_run *run, uint64_t word, uint64_t count);

/* delta.c */
/* Logs a delta, or applies it to what this run has stored. */
void ss_delta_log(struct ss_run *run, struct ss_unit unit, uint32_t delta, uint64_t operand);
/* Puts a store to a word whose deltas are pending into its chain, or settles them. True: done; false:
 * `slot` is no longer pending, or the verdict says that the run ends. */
bool ss_delta_store(struct ss_run *run, struct ss_slot *slot, struct ss_unit unit, uint64_t value,
                    ss_reader read);
/* The entry of a pending word that holds an element; NULL: none does, or the run ends. */
const struct ss_write *ss_delta_find(struct ss_run *run, struct ss_slot *slot, struct ss_unit unit,
                                     ss_reader read);
/* With the turn: what a delta makes of a word; false: the element cannot hold it. */
bool ss_delta_apply(const struct ss_write *delta, uint64_t *word);
/* With the turn: what a chain of entries, given by its last one, makes of its word, and which bytes
 * of it they are about; false: an element cannot hold it. */
bool ss_delta_chain(const struct ss_engine *engine, const struct ss_transaction *transaction,
                    const struct ss_write *last, uint64_t *word, uint32_t *bytes);
/* With the turn: whether all deltas of a finished run can be applied. */
bool ss_delta_fits(const struct ss_engine *engine, const struct ss_transaction *transaction);

/* prediction.c */
/* The mask of bytes of a logged read that is no read but a prediction (`eager`). */
enum { SS_PREDICTION = 0x100 };
/* An increment by a speculative run. `read_as`: how its protocol logs the prediction; `read`: how it
 * reads a word that cannot be predicted. */
uint64_t ss_predict_increment(struct ss_run *run, uint64_t word, uint16_t read_as, ss_reader read);
/* Whether there is a counter. Relaxed: who sees it late predicts worse. */
static inline bool ss_predicts(const struct ss_engine *engine)
{
    return atomic_load_explicit(&engine->counters[0].name, memory_order_relaxed) != 0;
}
void ss_prediction_begin(struct ss_transaction *transaction);
/* With the turn: transaction `number` is the head. */
void ss_prediction_fold(struct ss_engine *engine, int64_t number);
void ss_prediction_start(struct ss_engine *engine, int64_t chunk_before);
/* The same in an open job, with its mutex. What a transaction begins with that comes after `count`
 * others, given by their slots: */
void ss_prediction_look_ahead(struct ss_engine *engine, struct ss_transaction *transaction,
                              const uint64_t *earlier, uint64_t count);
/* With the turn as well: the head has come to an end; how many events have committed with it, 0: not
 * all of them. */
void ss_prediction_fold_open(struct ss_engine *engine, int64_t events);

/* boosting.c */
bool ss_boost_open(struct ss_engine *engine);
void ss_boost_close(struct ss_engine *engine);
uint64_t ss_boost_bytes(const struct ss_config *config);
uint64_t ss_boost_transaction_bytes(const struct ss_config *config);
/* The job begins. */
void ss_boost_start(struct ss_engine *engine);
/* A speculative run begins. */
void ss_boost_begin(struct ss_transaction *transaction);
/* Takes back the operations of a run that does not commit; idempotent. */
void ss_boost_roll_back(struct ss_engine *engine, struct ss_transaction *transaction);
/* With the turn, of the head: whether an operation of its was taken back. */
static inline bool ss_boost_is_robbed(const struct ss_transaction *transaction)
{
    return atomic_load_explicit(&transaction->robbed_by, memory_order_relaxed) != SS_NOT_ROBBED;
}
/* Whether results of operations are part of what a run has seen. Relaxed: asked by the run itself. */
static inline bool ss_boost_has_performed(const struct ss_transaction *transaction)
{
    return atomic_load_explicit(&transaction->performed_count, memory_order_relaxed) != 0;
}
/* Likewise: why; sets the conflict. */
enum ss_abort_reason ss_boost_loss(struct ss_engine *engine, struct ss_transaction *transaction);
/* With the turn: does the head's operations on the state. False: they return something else, and
 * nothing is done; sets reason and conflict. */
bool ss_boost_commit(struct ss_worker *worker, struct ss_transaction *transaction);
/* With the turn: an event that ran in place was taken back. */
void ss_boost_undo_head(struct ss_worker *worker);

/* ranges.c */
enum { SS_RANGE = 0x8000 };
/* Entries of a log that hold the words of a range. */
static inline uint64_t ss_range_entries(uint64_t count)
{
    return (count + 1) / 2;
}
/* Entries from one of the redo log to the next one that is not words of a range. */
static inline uint64_t ss_redo_step(const struct ss_write *write)
{
    return write->delta == SS_STORED_RANGE ? 1 + ss_range_entries(write->value) : 1;
}
/* Words that an entry of the redo log is about: neighbours. */
static inline uint64_t ss_redo_words(const struct ss_write *write)
{
    return write->delta == SS_STORED_RANGE ? write->value : 1;
}
/* With the turn: writes the words of a stored range. */
void ss_range_publish(struct ss_engine *engine, const struct ss_write *head);
/* Whether the run has stored to a word of the range; then it is read word by word. */
bool ss_range_is_own(struct ss_run *run, uint64_t word, uint64_t count);
const uint64_t *ss_range_by_words(struct ss_run *run, uint64_t word, uint64_t count);
/* With the turn: whether a range still holds what was read; if not, `conflict` is where. */
bool ss_range_unchanged(const struct ss_engine *engine, const struct ss_read *head,
                        struct ss_place *conflict);

/* value.c */
extern const struct ss_protocol ss_protocol_value;

/* eager.c */
extern const struct ss_protocol ss_protocol_eager;
bool ss_eager_open(struct ss_engine *engine);

/* The record of a word. Regions are few: the fields that say how their words share records, and what
 * lies between them. */
static inline uint64_t ss_record_of(const struct ss_engine *engine, uint64_t word)
{
    const struct ss_record_region *region = engine->regions;
    while (SS_UNLIKELY(word >= region->end))
        region++;
    return (word + region->bias) >> region->shift & engine->record_mask;
}
/* Length of the lock array. */
uint64_t ss_eager_records(const struct ss_config *config);
/* Records that a speculative run may lock. */
uint64_t ss_eager_owned_limit(const struct ss_config *config);
uint64_t ss_eager_region_bytes(const struct ss_config *config);
/* Whether an earlier transaction has taken a lock from this run, and which. */
bool ss_eager_is_doomed(struct ss_transaction *transaction, int64_t number, int64_t *thief);

static inline struct ss_place ss_place_of(const struct ss_read *read)
{
    return (struct ss_place){read->word, read->bytes, read->site};
}

/* profile.c */
/* Remembers that a run was dropped for a place. */
void ss_hot_note(struct ss_worker *worker, struct ss_place place);

/* undo_log.c */
void ss_undo_roll_back(struct ss_run *run);

/* emit.c */
bool ss_rows_append(struct ss_engine *engine, const uint64_t *rows, uint64_t words);
bool ss_rows_reserve(struct ss_engine *engine, uint64_t words);

/* scheduler.c */
void ss_run_ordered(struct ss_worker *worker);
bool ss_try_turn(struct ss_engine *engine);
/* Whether workers are to leave the turn to a thread outside the pool. */
bool ss_reader_comes_first(struct ss_engine *engine);
void ss_release_turn(struct ss_engine *engine);
void ss_end_job(struct ss_engine *engine);
int64_t ss_reach(const struct ss_engine *engine);
/* Runs a claimed transaction until it is finished or has to wait. */
void ss_run_speculatively(struct ss_worker *worker, int64_t number);

/* What became of the head. */
enum ss_progress {
    SS_COMMITTED,
    SS_PUT_BACK, /* it is to be run again, as a transaction */
    SS_ENDED     /* the job ends here */
};

/* With the turn: commits a finished transaction, or reruns it. */
enum ss_progress ss_commit(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number);
/* With the turn: runs a transaction on the committed state; false: it did not come to its end. In an
 * open job each span then begins with the first of its events that has not run. */
bool ss_run_in_place(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number);
/* Spins for about one event, then sleeps, until there is work or the time is up. */
void ss_await_work(struct ss_worker *worker, bool (*has_work)(struct ss_worker *),
                   int64_t nanoseconds);
enum ss_abort_reason ss_reason_of(uint32_t verdict);
/* Counts a dropped run, and takes back what others see of it. */
void ss_drop(struct ss_worker *worker, struct ss_transaction *transaction,
             enum ss_abort_reason reason);

/* watchdog.c */
/* Suspects a head that has not advanced for longer than its budget. Called by whoever has nothing
 * better to do. */
void ss_watch(struct ss_engine *engine);
/* Nanoseconds of a transaction, up to the instant `at`. Without that for which heads have overstayed: as the
 * budget is a multiple of the mean, they would otherwise make each other's budgets grow without
 * bound. */
int64_t ss_mean_transaction(const struct ss_engine *engine, int64_t at, int64_t committed);

/* arrivals.c */
bool ss_queue_open(struct ss_engine *engine);
void ss_queue_close(struct ss_engine *engine);
void ss_run_open(struct ss_worker *worker);
/* A speculative run is over: the transaction waits, or its events go back to the pending ones. */
void ss_queue_settle(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number,
                     enum ss_status status);
/* With the turn: the transaction runs in place, and somebody is about to look how far it is. */
void ss_queue_tell_applied(struct ss_transaction *transaction);
int64_t ss_queue_mean(struct ss_engine *engine); /* nanoseconds of a run */
bool ss_queue_can_advance(struct ss_engine *engine);
/* Where no transaction is the head: whether there is an event below the frontier that could be. */
bool ss_queue_head_is_unclaimed(struct ss_engine *engine);
/* A hook has failed: nothing commits until somebody has heard of it. */
void ss_queue_fail(struct ss_engine *engine);
/* On_post_commit has been told of a committed event of the segment. */
void ss_queue_told(struct ss_engine *engine, struct ss_segment *segment);

static inline void ss_use_segment(struct ss_run *run, const struct ss_segment *segment)
{
    run->columns = segment->columns;
    run->first_sequence = segment->first_sequence;
}

/* hooks.c */
static inline bool ss_has_hook(const struct ss_engine *engine, enum ss_hook_kind kind)
{
    return (engine->hooks.kinds & (uint32_t)kind) != 0;
}

void ss_tell_abort(struct ss_engine *engine, int64_t row, enum ss_abort_reason reason);
void ss_tell_dropped(struct ss_engine *engine, const struct ss_transaction *transaction,
                     enum ss_abort_reason reason);
/* Without the turn, after it was given back: tells of the commit that it was held for. */
void ss_after_commit(struct ss_worker *worker);
/* With the turn: whether the event of a row may commit. */
enum ss_answer ss_ask_commit(struct ss_engine *engine, int64_t row, const uint64_t *rows,
                             uint64_t words);
enum ss_answer ss_ask_finished(struct ss_engine *engine, const struct ss_transaction *transaction);
/* The event of a transaction, where hooks are set. */
int64_t ss_row_of(const struct ss_engine *engine, const struct ss_transaction *transaction);

/* wait_queue.c */
/* Puts a dropped transaction back, until the one that it waits for has committed. */
void ss_put_back(struct ss_engine *engine, struct ss_transaction *transaction, int64_t number);
/* Whether the transaction was dropped, or is going to be, and nothing keeps it from running again.
 * Its status is then the one found; `later`: it was dropped and has to wait. */
bool ss_can_retry(struct ss_engine *engine, struct ss_transaction *transaction, int64_t number,
                  uint64_t *status, bool *later);
/* The earliest transaction of the wait queue that may run again; -1: none. With `take`, its slot is
 * the caller's, and RUNNING. */
int64_t ss_find_retry(struct ss_worker *worker, bool take);

/* fault.c */
/* Runs events [first, last); gives the first one that did not complete. */
int64_t ss_call(struct ss_worker *worker, enum ss_variant variant, int64_t first, int64_t last);
/* Catches faults from now on, before everybody else; false: out of thread-local keys. */
bool ss_fault_open(void);
/* Calls an operation on a boosted structure, or an inverse; false: it has not come to its end, and the
 * run's verdict says so unless it has raised. */
bool ss_call_operation(struct ss_run *run, ss_operation_entry entry, uint64_t *returned);
/* Called by the worker's own thread, or by another one that it is lent to; false: out of memory. */
bool ss_fault_open_thread(struct ss_worker *worker);
/* NULL: the thread is not opened. */
struct ss_worker *ss_this_worker(void);
void ss_fault_close_thread(struct ss_worker *worker);
/* In a signal handler. True: it was an operator's fault, and the run ends when the handler returns. */
bool ss_fault_bring_back(int signal, const siginfo_t *info, void *context);
/* Around what compiled code calls and must not leave half-way: the allocator, what keeps a lock. */
sig_atomic_t ss_step_outside(void);
void ss_step_inside(sig_atomic_t was);

/* signal_chain.c */
void ss_signals_take_front(void);

/* stack.c */
/* The worker's stacks, put into the attributes of its thread; false: out of memory. */
bool ss_stacks_map(struct ss_worker *worker, pthread_attr_t *attributes);
/* After the thread has been joined. */
void ss_stacks_unmap(struct ss_worker *worker);
/* Whether touching the address means that the worker's stack is used up. */
bool ss_stacks_guard_holds(const struct ss_worker *worker, const void *address);

/* direct.c */
void ss_run_log_free(struct ss_worker *worker);
void ss_run_locked(struct ss_worker *worker);

/* recorder.c: with a recorder only. */
void ss_record_in_place(struct ss_engine *engine, const struct ss_transaction *transaction,
                        int64_t nanoseconds);
void ss_record_speculative(struct ss_engine *engine, const struct ss_transaction *transaction,
                           int64_t nanoseconds);

/* locks.c */
bool ss_locks_open(struct ss_engine *engine);
void ss_locks_close(struct ss_engine *engine);
size_t ss_locks_bytes(const struct ss_config *config);
/* After an entry has returned: gives back what is held still. Events that have completed should not
 * hold any: they then fail. */
void ss_locks_give_back(struct ss_worker *worker);

/* parking.c */
void ss_wake(struct ss_engine *engine);
void ss_park(struct ss_worker *worker, bool (*ready)(struct ss_worker *), int64_t nanoseconds);

/* figures.c */
/* A job that ends by itself begins, or its last worker has left it. */
void ss_clock_in(struct ss_engine *engine);
void ss_clock_out(struct ss_engine *engine);
/* With the turn, or where there are no turns: `events` more have been applied. */
static inline void ss_apply(struct ss_worker *worker, int64_t events)
{
    worker->engine->consumed += events;
    ss_count(&worker->statistics.events, (uint64_t)events);
}

/* pool.c */
bool ss_pool_start(struct ss_engine *engine);
/* The job of the engine begins. */
void ss_pool_call(struct ss_engine *engine);
bool ss_pool_is_running(struct ss_engine *engine);
void ss_pool_stop(struct ss_engine *engine);

#endif
