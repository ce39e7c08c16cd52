/* specstream: ordered speculative execution of one stateful operator.
 *
 * This is the whole public interface of the native runtime. It knows neither Python nor Spark: an
 * operator is three machine-code entries over a range of events, its state is an array of 64-bit
 * words, its input is an array of column pointers, and its output is an array of rows.
 *
 * The words used here (head, horizon, chunk, finished, turn ...) are those of docs/contributing/architecture.md.
 */
#ifndef SPECSTREAM_H
#define SPECSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compiled code that was kept on disk fits a runtime whose public headers are the same to the letter:
 * stm_native/build.py makes SS_ABI of them, and the compiler's cache is keyed by it. To the letter,
 * as what a function called by compiled code means stands in its comment. */

/* How an entry ended. */
enum ss_verdict {
    SS_COMPLETED = 0, /* every event of the range ran, or the entry was asked to yield between two */
    SS_RAISED = 1,    /* the operator raised at event `run->event` */
    SS_LOG_FULL = 2,  /* a run passed the limit of a log or of its emit buffer; none in place has one */
    SS_KILLED = 3,    /* ss_poll said in a loop that it has to end */
    SS_ABORTED = 4,   /* the protocol dropped the run at a load or store */
    SS_FAULTED = 5,   /* the processor refused an instruction; see src/processor/fault.c */
    SS_NO_MEMORY = 6  /* a log or buffer could not grow: there was no memory */
};

/* What a run finds in `kill`. */
enum ss_kill {
    SS_LEAVE = 1,  /* leave the event at once */
    SS_SUSPECT = 2 /* it has been the head for long: does what it has read still hold? */
};

/* Why a speculative run was dropped (indices into ss_statistics.aborts). */
enum ss_abort_reason {
    SS_ABORT_CONFLICT = 0, /* what it read had changed when it became the head (reason iii) */
    SS_ABORT_RAISED = 1,   /* it raised, and what a speculative run raises is not believed */
    SS_ABORT_LOG_FULL = 2, /* it passed a limit, or there was no memory */
    SS_ABORT_RUNAWAY = 3,  /* it was the head for long, on values that did not hold; see src/core/watchdog.c */
    /* Protocol `eager` only; the numerals are those of Brito 2010, 4.2.2. */
    SS_ABORT_INCONSISTENT_SNAPSHOT = 4, /* i: what it was about to read never coexisted with the rest */
    SS_ABORT_LOCKED = 5, /* ii: an earlier transaction had locked what it was about to access */
    SS_ABORT_STOLEN = 6, /* iv: an earlier transaction took a lock that it held */
    SS_ABORT_REORDERED = 7, /* open jobs: an event came that belongs between those of its chunk */
    SS_ABORT_HOOK = 8,      /* the on_commit hook asked for it */
    SS_ABORT_FAULT = 9,     /* it faulted, perhaps on values that never coexisted */
    /* It had worked on a boosted field whose shadow was given up: an inverse has failed, or operations
     * commute less than they were said to. */
    SS_ABORT_SHADOW = 10,
    SS_ABORT_TIMER = 11, /* a timer is due between its events */
    SS_ABORT_REVOKED = 12, /* early results: an event came before it, and it has read what that changed */
    SS_ABORT_REASONS = 13
};

/* How conflicts are found. */
enum ss_protocol_kind {
    SS_PROTOCOL_VALUE = 0, /* by comparing values at commit; see src/core/value.c */
    SS_PROTOCOL_EAGER = 1  /* by ownership records, at the access; see src/protocols/eager.c */
};

/* An entry of a log is about a word of the state, or about the bytes of it that hold narrow
 * elements (src/core/narrow.h): bit i of `bytes` stands for byte i of the little-endian word, and 0 for
 * all of it. Under protocol `value` SS_RANGE as `bytes` makes it the head of a range
 * (src/core/ranges.c): so many words as `value` says, which follow, two in an entry. `site` says where
 * in the operator the access stands, and is 0 but in a profiling variant. Compiled code writes
 * `word` as 64 bits, and so the rest as well. */
struct ss_read {
    uint32_t word; /* its index */
    uint16_t bytes;
    uint16_t site;
    uint64_t value; /* of the whole word; under `eager`: the version of its record */
};

struct ss_write {
    uint32_t word;
    uint32_t bytes : 8;
    uint32_t delta : 4; /* enum ss_delta; 0: a store of `value`, which is all that compiled code writes */
    uint32_t is_last : 1; /* of a chain: the entries of one word, some of them deltas; src/protocols/delta.c */
    uint32_t next : 19;   /* its place in the log; of the last one: the first's */
    uint64_t value;       /* of a delta: the operand */
};

/* What a delta does to an element: 1 + 3 * operation + number. */
enum ss_operation { SS_ADD = 0, SS_MINIMUM = 1, SS_MAXIMUM = 2 };
enum ss_number { SS_SIGNED = 0, SS_UNSIGNED = 1, SS_FLOAT = 2 };
enum ss_delta { SS_NO_DELTA = 0, SS_FIRST_DELTA = 1, SS_LAST_DELTA = 9, SS_SETTLED = 10, SS_FORESEEN = 11 };
enum { SS_MOST_LINKED = 524288 }; /* entries of a log that `next` can tell apart */

/* In the place of a delta: the entry is the head of a range that is stored (src/core/ranges.c), so many
 * words as `value` says, which follow, two in an entry. */
enum { SS_STORED_RANGE = 12 };

struct ss_undo {
    uint64_t *address;
    uint64_t value;
};

/* One entry of the redo log's index. `key` is (epoch << 32 | word): an entry of an earlier epoch is
 * empty, so that beginning a transaction clears the index by one increment. Epochs are even; the bit
 * that this leaves free says that deltas of the word are pending. */
struct ss_slot {
    uint64_t key;
    /* In the redo log, in words, and less by one: of the word's value, which is that of an entry or
     * lies in a range. Pending: of the last entry of its chain. */
    uint64_t position;
};

/* Arguments of an operation on a boosted structure, at most. */
enum { SS_OPERANDS = 4 };
/* Words of what the text of a raised exception is made of: the kinds of the parts, and the parts. */
enum { SS_ERROR_WORDS = 7 };

struct ss_keyed;

/* What compiled code sees of a running transaction. One per worker, so that all of it stays in that
 * core's cache; the logs it points to belong to the transaction. */
struct ss_run {
    uint64_t *state;
    void *const *columns;
    uint64_t *scratch;
    int64_t event; /* row of the event that runs */
    int64_t first_sequence;
    uint64_t seed;

    uint64_t *emit_top;
    uint64_t *emit_end;
    uint64_t *emit_mark; /* emit_top when the event began */

    struct ss_undo *undo_top;
    struct ss_undo *undo_end;
    struct ss_undo *undo_base;

    struct ss_read *read_top;
    struct ss_read *read_end;

    struct ss_slot *slots;
    uint64_t slot_mask;
    uint64_t epoch_key; /* epoch << 32 */
    struct ss_write *redo;
    uint64_t redo_count;
    uint64_t redo_limit;
    uint64_t delta_count; /* entries that are or were deltas */

    uint32_t verdict;
    uint32_t kill;  /* atomic; polled in loops: enum ss_kill; not 0: call ss_poll */
    uint32_t yield; /* atomic; polled between events, but for `eager`: return to the runtime */
    uint32_t speculative;
    struct ss_worker *worker;
    uint16_t site; /* kept by a profiling variant: where in the operator the run is */
    uint32_t changed; /* by the operation that was called: 0: nothing, as it has reported */
    uint32_t boosting; /* operations of an in-place run on boosted structures are followed */
    uint64_t operands[SS_OPERANDS + 1]; /* of the operation that is called; an inverse gets its result, too */
    uint32_t raised; /* by the operation that was called: its status, 0: nothing */
    struct ss_arena *arena; /* NULL: the operator makes no lists, dicts and sets of its own */
    uint64_t arena_words;   /* that the event has taken of it */
    uint32_t arena_dirty;   /* not 0: ss_arena_clear comes before the next event */
    struct ss_objects *objects; /* of the event, in the arena; NULL: none yet. See src/containers/object.c */
    uint64_t told[SS_ERROR_WORDS]; /* what the text of the exception that was raised last is made of */
    /* The key of a dict or set that the event has looked up last, and its entry: most that is done to
     * one is done twice. Compiled code looks here first, and forgets it when an event begins. */
    uint64_t found_in; /* the container's number, plus 1; 0: nothing is remembered */
    uint64_t found_key[2];
    uint64_t found_entry;
    uint64_t calls; /* of interpreted vertices, in the phase that runs */
    const uint64_t *given; /* words that such a vertex gets of its event */
    uint64_t *sent; /* the rows that it has sent, in the arena */
    uint64_t sent_rows;
    uint64_t sent_room; /* rows for which there is memory */
    struct ss_keyed *keyed; /* the containers of the engine; src/containers/keyed.h */
    struct ss_ahead *ahead; /* what was looked up ahead, for each of them; likewise */
    uint64_t answered; /* so many answers the event has had; see src/jobs/answers.c */
    uint32_t asks;     /* it has left its event to have one */
    uint32_t fires;    /* it is what a timer runs */
};

/* What somebody outside says to an event that asks: a word, or the status that it raises there. */
struct ss_answer_word {
    uint64_t word;
    uint64_t status; /* 0: it raises nothing */
};

/* A compiled range of events, with the calling convention of Numba: runs events [first, last) and
 * stores into *next the first one that did not complete. `fault` is written and never read. */
typedef int32_t (*ss_entry)(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                            int64_t last);

/* An operation on a boosted structure, or the inverse of one: works on `run->state`, directly and with
 * the undo log, takes its arguments from `run->operands`, sets `run->changed`, and stores what it
 * returns, as the bits of a word. 0: it has not raised. */
typedef int32_t (*ss_operation_entry)(int64_t *returned, void **fault, struct ss_run *run);

struct ss_boosted {
    ss_operation_entry entry;
    ss_operation_entry inverse; /* NULL: it changes nothing */
    uint64_t first;             /* word of the field */
    uint64_t words;
};

/* Which entry runs where. */
enum ss_variant {
    SS_PLAIN = 0,         /* direct access with an undo log: the head, and horizon 0 */
    SS_TRANSACTIONAL = 1, /* access through the logs of protocol `value`: speculation */
    SS_LOG_FREE = 2,      /* direct access, no undo log: the baseline of every ratio */
    SS_LOCKED = 3,        /* direct access with the operator's own locks: the rival */
    SS_EAGER = 4,         /* access through the records of protocol `eager`: speculation */
    SS_TIMER = 5,         /* what runs when a timer fires: as SS_PLAIN; see src/jobs/timer_firing.c */
    SS_VARIANTS = 6
};

enum ss_mode {
    SS_MODE_ORDERED = 0,     /* speculation within the horizon; horizon 0 runs plain */
    SS_MODE_SPECULATE = 1,   /* as above, but the head is never run in place at its first try */
    SS_MODE_LOG_FREE = 2,    /* one thread, one native loop */
    SS_MODE_LOCKED = 3,      /* all threads, no order: whoever takes a chunk runs it */
    SS_MODE_OPEN = 4         /* events come while the job runs, in any order; see src/jobs/open_job.c */
};

/* Words of the state that share records alike: those from `first` up to the next region. */
struct ss_region {
    uint64_t first;
    uint64_t shift; /* 2^shift neighbouring words share one record, counted from `first` */
};

struct ss_container;

struct ss_config {
    uint64_t *state; /* owned by the caller, outlives the engine */
    uint64_t state_words; /* less than 2^32 */
    uint64_t scratch_words;
    uint64_t emit_words; /* words of an emitted row, the event's row included */
    bool emits_to_sinks; /* the first word behind that says which one a row is for */
    uint64_t threads;
    uint64_t locks;       /* how many locks SS_MODE_LOCKED offers */
    uint64_t read_limit;  /* entries of a read log */
    uint64_t redo_limit;  /* entries of a redo log */
    uint64_t emit_limit;  /* rows a speculative run may emit */
    uint64_t element_limit; /* words of own lists, dicts and sets; 0: the operator makes none */
    uint64_t seed;
    enum ss_protocol_kind protocol;
    uint64_t record_shift; /* `eager`: 2^record_shift neighbouring words share one record */
    uint64_t records;      /* `eager`: most records, a power of two; 0: a bound of the runtime's own */
    /* `eager`: sorted by `first`, the first one at word 0; the engine copies them. None: the state is
     * one region of record_shift. */
    const struct ss_region *regions;
    uint64_t region_count;
    uint64_t operations;    /* on boosted structures; see src/protocols/boosting.c */
    uint64_t boosted_first; /* their fields lie within the words [boosted_first, boosted_end) */
    uint64_t boosted_end;
    const struct ss_container *containers; /* specstream_containers.h; the engine copies them */
    uint64_t container_count;
    uint64_t timers; /* which is the first of them that holds timers, plus 1; 0: none does */
};

struct ss_job {
    void *const *columns;
    int64_t count; /* events */
    int64_t first_sequence;
    int64_t chunk;
    int64_t horizon;
    /* While threads starve because the head takes long, the horizon doubles, up to this; conflicts shorten
     * it again. 0: it stays as it is. */
    int64_t longest_horizon;
    enum ss_mode mode;
    bool ends_input; /* no event follows those of the job: the timers that are left then fire */
    /* SS_MODE_OPEN: events are applied as they come, and final later; see src/jobs/early.c. So many bytes may
     * be held for those that are applied and not final; 0: none are. */
    uint64_t early_bytes;
};

/* Events of one source that come together, ordered by timestamp. The caller keeps it, and what it
 * points to, until `left` is 0. */
struct ss_segment {
    /* Shifted: element `first` of a column is the first event's. Column 0 holds the timestamps. */
    void *const *columns;
    int64_t first; /* rows [first, last); row numbers run on from segment to segment */
    int64_t last;
    int64_t source;
    int64_t first_sequence; /* an event's sequence number is its row plus this */
    int64_t left;           /* kept by the runtime: events that are not yet applied */
    int64_t ahead;          /* with the turn: of these, so many are: the head lends it in their midst */
    int64_t untold;         /* likewise: applied, and on_post_commit is still to be told of them */
    bool submitted;         /* set by ss_engine_submit: its caller may be interrupted */
    /* Of one event, with early results: it may still be changed or withdrawn, and is not final before
     * ss_engine_confirm was told of it. */
    bool is_tentative;
    bool is_withdrawn; /* set by ss_engine_withdraw */
    /* A tentative one with the same key, which is withdrawn at the instant at which this one comes: else
     * what is behind could be final in between. NULL: none. */
    struct ss_segment *replaces;
};

/* An order key without its sequence number. */
struct ss_frontier {
    int64_t timestamp;
    int64_t source;
};

/* Hooks (Brito 2010, 4.2.4). With any of them a transaction is one event. */
enum ss_hook_kind {
    SS_ON_ABORT = 1,      /* a run was dropped; before the next one */
    SS_ON_COMMIT = 2,     /* after the last validation, in order; nobody commits meanwhile */
    SS_ON_POST_COMMIT = 4 /* after the commit, in no order; others may commit meanwhile */
};

struct ss_occasion {
    enum ss_hook_kind kind;
    enum ss_abort_reason reason; /* of SS_ON_ABORT */
    int64_t row;                 /* of the event */
    const uint64_t *rows;        /* that it emitted, of SS_ON_COMMIT */
    uint64_t row_count;
};

enum ss_answer {
    SS_PROCEED = 0,
    SS_RUN_AGAIN = 1, /* of SS_ON_COMMIT: the run is dropped */
    SS_FAIL = 2       /* the hook raised; of SS_ON_COMMIT: like an event that raises */
};

/* Called in a worker thread; returns an enum ss_answer. */
typedef int32_t (*ss_hook)(void *context, const struct ss_occasion *occasion);

/* The processor refused an instruction of an operator. */
struct ss_fault {
    int32_t signal; /* SIGSEGV, SIGBUS, SIGFPE or SIGILL; 0: there was no fault */
    bool stack_overflow;
    bool has_address;
    uint64_t address; /* that was accessed */
    int64_t event;    /* row of the job */
};

/* What an operator did wrong with its locks; see src/protocols/locks.c. */
enum ss_lock_fault_kind {
    SS_LOCK_NO_FAULT = 0,
    SS_LOCK_DEADLOCK = 1,    /* each of `locks` is held by who waits for the next one */
    SS_LOCK_TAKEN_TWICE = 2, /* by the event that held it already */
    SS_LOCK_NOT_HELD = 3,    /* and given back */
    SS_LOCK_KEPT = 4,        /* when the events were over */
    SS_LOCK_UNKNOWN = 5
};

struct ss_lock_fault {
    enum ss_lock_fault_kind kind;
    int64_t event; /* row of the job */
    uint64_t count;
    uint64_t locks[8]; /* the first of them */
};

/* What keeps an open job from going on, where it is no event. */
enum ss_no_row {
    SS_NO_ROW_FOR_MEMORY = -1, /* memory ran out */
    SS_NO_ROW_FOR_HOOK = -2,   /* on_abort or on_post_commit failed */
    SS_NO_ROW_FOR_TIMER = -3   /* what a timer runs has failed */
};

/* A timer that has fired. Rows that it emitted have INT64_MIN + number for their event's row. */
struct ss_firing {
    int64_t number; /* so many have fired before */
    int64_t time;   /* the larger of its time and those of the events and firings before */
    int64_t at;     /* its time */
    int64_t clock;  /* the largest time of events and firings before; INT64_MIN: there were none */
    uint64_t stamp; /* that its entry had; 0: there was no memory, and it is still set */
    uint64_t key[8]; /* SS_MOST_KEY_WORDS */
    uint64_t container; /* that it was in */
};

struct ss_outcome {
    uint64_t job;         /* which it is of, counted from 1: tells whether one has been started */
    int64_t consumed;     /* events applied, a prefix of the job */
    bool failed;          /* the operator raised at event `failed_row`, on committed state */
    int64_t failed_row;   /* `consumed`; in an open job also an enum ss_no_row */
    struct ss_fault fault; /* if it did not raise but fault */
    struct ss_lock_fault lock_fault; /* SS_MODE_LOCKED: if that is why it failed */
    bool no_memory;       /* if it did not raise, but there was no memory for what it did */
    const uint64_t *rows; /* emitted rows of the applied events, valid until the next job */
    uint64_t row_count;
    uint64_t edition;     /* of the rows: another one once they were cleared, or a job was started */
    bool timer_failed;    /* if it was no event: what `failed_timer` ran */
    struct ss_firing failed_timer;
    uint64_t ending;      /* the stamp up to which timers fire at the end that has begun; 0: it has not */
    const struct ss_firing *firings; /* that have emitted rows, in order; valid as long as these */
    uint64_t firing_count;
};

struct ss_statistics {
    uint64_t events;
    uint64_t commits; /* transactions */
    uint64_t head_runs;  /* transactions run in place by the head at their first try */
    uint64_t reruns;     /* runs that take the place of a dropped one */
    uint64_t speculative_runs;
    uint64_t head_aborts; /* `eager`: runs that began as the head and were dropped for a conflict */
    uint64_t aborts[SS_ABORT_REASONS];
    uint64_t timers;     /* that have fired */
    uint64_t parks;      /* times a worker went to sleep inside a job */
    uint64_t nanoseconds; /* from the start of each job to its end, added up */
};

/* An element that speculative runs were dropped for, accessed at one site; see src/core/profile.c. */
struct ss_hot_place {
    uint32_t word;
    uint16_t bytes; /* as in struct ss_read */
    uint16_t site;
    uint64_t aborts; /* at most */
    uint64_t others; /* so many of which may belong to places that are forgotten */
};

/* Bytes of logs, buffers and indices. */
struct ss_memory {
    uint64_t fixed;        /* of the engine itself */
    uint64_t thread;       /* of each thread */
    uint64_t transaction;  /* of each transaction in the ring */
    uint64_t transactions; /* in the ring */
    uint64_t total;
};

struct ss_engine;

/* NULL where memory or threads are not to be had. */
struct ss_engine *ss_engine_new(const struct ss_config *config);
void ss_engine_set_entry(struct ss_engine *engine, enum ss_variant variant, ss_entry entry);
/* `number` is below config.operations; before the first job. Those of one field are neighbours. */
void ss_engine_set_operation(struct ss_engine *engine, uint64_t number,
                             const struct ss_boosted *operation);
/* Between jobs: the caller has changed the state. */
void ss_engine_state_changed(struct ss_engine *engine);
/* `kinds`: a sum of enum ss_hook_kind. Between jobs. */
void ss_engine_set_hook(struct ss_engine *engine, uint32_t kinds, ss_hook hook, void *context);
/* Called in a worker's thread that has the turn, for an event that has asked and is rolled back, or for a
 * timer (`firing`; the row means nothing): returns how many answers there are for it, and sets `answers`, which
 * stand until the next call; -1: there are none, and it has failed. */
typedef int64_t (*ss_answering)(void *context, int64_t row, const struct ss_firing *firing,
                                const struct ss_answer_word **answers);
/* Between jobs. */
void ss_engine_set_answering(struct ss_engine *engine, ss_answering answering, void *context);
/* A worker's thread, by its number, as pthread_self gives it: only these call hooks. */
uint64_t ss_engine_thread(const struct ss_engine *engine, uint64_t index);
/* Waits for the job in flight, ends the threads and frees everything but the state. Nobody may use
 * the engine meanwhile or later, and no worker may call it. */
void ss_engine_free(struct ss_engine *engine);

/* One job at a time: start (false: out of memory), wait until it says true, read the outcome. */
bool ss_engine_start(struct ss_engine *engine, const struct ss_job *job);
bool ss_engine_wait(struct ss_engine *engine, int64_t milliseconds);
struct ss_outcome ss_engine_outcome(struct ss_engine *engine);
/* Asks the job to end at the next event boundary of the head. */
void ss_engine_stop(struct ss_engine *engine);
/* Asks the job to end now: the event in flight at the head is rolled back. */
void ss_engine_kill(struct ss_engine *engine);

/* An open job takes its events while it runs. It is started like any other, with a count of 0, and
 * ends when it is stopped; events that are not applied by then are forgotten. */

/* No event of the segment may be below the frontier. False: out of memory, nothing is submitted. */
bool ss_engine_submit(struct ss_engine *engine, struct ss_segment *segment);
/* From now on every event that comes is above (timestamp, source), or at it with a higher sequence
 * number: what is at it or below may commit. It moves back only as far as the last event that has
 * come: where nothing was to come any more, and a source joins after all. */
void ss_engine_advance(struct ss_engine *engine, struct ss_frontier frontier);
/* Before the open job is told of a frontier, or while there is no job: the end, when it comes, is one that
 * had begun before, an outcome's `ending`; 0: it is another one. */
void ss_engine_go_on_ending(struct ss_engine *engine, uint64_t stamp);
/* Waits until there are emitted rows, an event has failed, or something has committed since the rows
 * were last cleared and nothing below the frontier is left. True: one of these. */
bool ss_engine_await(struct ss_engine *engine, int64_t nanoseconds);
/* With the turn: nothing below the frontier is left, and on_post_commit has been told of all. */
bool ss_engine_is_settled(struct ss_engine *engine);
/* How many transactions the open job has formed so far; and of those that are not committed, and may be
 * running, the first: so many were formed before it. */
struct ss_formed {
    int64_t all;
    int64_t before_first;
};
struct ss_formed ss_engine_formed(struct ss_engine *engine);
/* With the turn: forgets the emitted rows. */
void ss_engine_clear_rows(struct ss_engine *engine);
/* Goes on after a failure, an outcome's `failed_row`: its event is not applied. Nothing if another
 * failure has come since, which nobody has heard of. */
void ss_engine_resume(struct ss_engine *engine, int64_t failed_row);
/* With the turn, after a job that has ended with a failed timer, an outcome's `failed_timer`, of which
 * nobody will hear: it has not fired, and is set as it was. May be called again. Nothing where stores in place
 * cannot be taken back. False: out of memory, it has fired. */
bool ss_engine_take_back_timer(struct ss_engine *engine);

/* ---- early results: a job with `early_bytes` ---- */

/* Of an event. */
struct ss_key {
    int64_t timestamp;
    int64_t source;
    int64_t sequence;
};

/* The event of a tentative segment is as it is. */
void ss_engine_confirm(struct ss_engine *engine, struct ss_segment *segment);
/* It never came: what depends on it is taken back. `left` is 0 when nothing refers to it any more. */
void ss_engine_withdraw(struct ss_engine *engine, struct ss_segment *segment);

/* What has changed since it was last told: rows of so many words more than they are emitted with. The
 * first of these are the order key of the event, of a timer its time, 0 and its number; the last one
 * numbers the rows that it has emitted, to one sink, from 0. */
#define SS_KEY_WORDS 4
struct ss_early_told {
    bool is_whole;   /* nothing is revoked for the moment, and no late event waits; else there are no `news` */
    bool is_settled; /* all that was submitted is applied, or waits until earlier events are final */
    bool no_memory;
    uint64_t edition; /* of the rows: another one once they were told */
    const uint64_t *voids; /* rows that were told, and are not there any more */
    uint64_t void_count;
    const uint64_t *kept; /* rows that were told, and are final since */
    uint64_t kept_count;
    const uint64_t *finals; /* rows that are final since, and were never told */
    uint64_t final_count;
    const uint64_t *news; /* rows of events that were applied since, and are not final */
    uint64_t news_count;
    bool has_applied; /* then: the last event that is */
    struct ss_key applied_to;
    bool has_final;
    struct ss_key final_to;
};

/* With the turn: what there is to tell, valid until it is given back; and: it was told, without the news
 * or with them. From the first call on it is kept. */
struct ss_early_told ss_engine_tell_early(struct ss_engine *engine);
void ss_engine_told_early(struct ss_engine *engine, bool news);
/* Waits until everything submitted is applied, or can be only when earlier events are final, or an event
 * has failed. True: one of these. */
bool ss_engine_await_early(struct ss_engine *engine, int64_t nanoseconds);

struct ss_early_figures {
    uint64_t transactions; /* applied and not final, now */
    uint64_t bytes;        /* that are held for them */
    uint64_t most_bytes;   /* that ever were, in this job */
    uint64_t passes;       /* revocations */
    uint64_t revoked;      /* transactions that were, and what became of them: */
    uint64_t republished;
    uint64_t rerun;
    uint64_t nanoseconds; /* of revoking and publishing again */
    uint64_t held;        /* order time by which the head is held back, as that takes too long; or 0 */
};
struct ss_early_figures ss_engine_early_figures(struct ss_engine *engine);

/* With the turn: the state as it is applied, in the owner's layout; NULL: there are no early results. */
const uint64_t *ss_engine_early_image(struct ss_engine *engine);
/* With the turn: the values that applied transactions have read, stored, overwritten and emitted, and the
 * rows that are told or wait to be, in no order. Copies as many as there is room for; how many there are. */
uint64_t ss_engine_early_words(struct ss_engine *engine, uint64_t *to, uint64_t capacity);

/* Between the two the state stands still and holds a whole number of events. After one reader, the
 * workers come first. */
void ss_engine_take_turn(struct ss_engine *engine);
/* Gives up after a while; true: the turn is taken. Then, and only then, it also sets `held`: for a
 * caller that may be interrupted before it sees what is returned. */
bool ss_engine_try_turn(struct ss_engine *engine, int64_t milliseconds, bool *held);
void ss_engine_release_turn(struct ss_engine *engine);

/* Figures may be asked for at any time, by any thread, also while a job starts, runs and ends;
 * nobody is stopped for it, and none of these is ever less than before, but for the nanoseconds at
 * a job's end. A plain run counts its events when it comes back: see ss_engine_ask. */
struct ss_statistics ss_engine_statistics(struct ss_engine *engine);
/* Has a plain run count the events that it has done, and waits at most so long until it has. Returns
 * at once where none is in flight. */
void ss_engine_ask(struct ss_engine *engine, int64_t nanoseconds);
/* Length of the wait queue: transactions that have run and are not committed. */
uint64_t ss_engine_waiting(struct ss_engine *engine);
/* The places that runs were dropped for, as far as they are remembered, in no order; one may be there
 * once for each thread. Returns how many there are; writes no more than `room`. */
uint64_t ss_engine_hot_places(struct ss_engine *engine, struct ss_hot_place *places, uint64_t room);
/* Bytes of logs, buffers and indices that the engine holds, the state not counted. */
uint64_t ss_engine_memory(struct ss_engine *engine);
/* What it will hold with that horizon, before the undo logs and the output grow: they follow what
 * one event writes and one job emits, and have no limit. */
struct ss_memory ss_memory_needed(const struct ss_config *config, int64_t horizon,
                                  enum ss_mode mode);
/* No worker is in a job. For a process forked from the engine's, where its threads and the owners of
 * its mutexes do not exist and nothing else may be asked but ss_engine_statistics and the outcome. */
bool ss_engine_is_idle(struct ss_engine *engine);
/* Transactions committed in the job so far; for progress displays. */
int64_t ss_engine_progress(struct ss_engine *engine);

/* What one run of a transaction did; see src/jobs/recorder.c. */
struct ss_record {
    int64_t first; /* events [first, last) of the job */
    int64_t last;
    int64_t nanoseconds;
    bool speculative;
    bool dropped;   /* it did not complete, and was run again in place */
    uint64_t entry; /* its reads, then its writes, of a speculative run */
    uint64_t reads; /* words or elements where they are taken down; else entries of the logs */
    uint64_t writes;
    uint64_t row_words; /* that it emitted */
};

struct ss_recorder {
    struct ss_record *records;
    uint64_t record_capacity;
    uint64_t record_count;
    /* Writes as well, with their kind, an enum ss_delta, for a site; NULL: they are counted only. */
    struct ss_read *entries;
    uint64_t entry_capacity;
    uint64_t entry_count;
    bool full; /* something was left out */
};

/* Between jobs; NULL: no longer. Engines of more than one thread record nothing. */
void ss_engine_record(struct ss_engine *engine, struct ss_recorder *recorder);

/* Nanoseconds of reading the clock, which each record does twice: half of it is in its time. */
int64_t ss_clock_nanoseconds(void);

/* Sleeps for so long, and reads the clock then (CLOCK_MONOTONIC): for a thread of Python's, which has no
 * lock of the interpreter meanwhile, and learns from the clock behind this call how long it waited for it. */
int64_t ss_sleep(int64_t nanoseconds);

/* Nanoseconds that a cache line takes from core to core: alone, and as one of many. */
struct ss_transfer {
    double latency;
    double bulk;
};

/* False: there are no two cores to measure with. */
bool ss_measure_transfer(struct ss_transfer *found);

/* ---- what compiled code calls, by symbol name ---- */

/* Slow paths of the transactional variant; see src/core/redo_log.c. */
uint64_t ss_load(struct ss_run *run, uint64_t word);
void ss_store(struct ss_run *run, uint64_t word, uint64_t value);
/* The same for an element of `size` 1, 2 or 4 bytes at byte offset `byte`, a multiple of its size; it
 * comes and goes as the low bits of a word, a loaded one with zeros above. All accesses to one word
 * have one size. */
uint64_t ss_load_bytes(struct ss_run *run, uint64_t byte, uint64_t size);
void ss_store_bytes(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t value);
/* Neighbouring words that are read together, as one entry of the read log; NULL: the run ends. What is
 * returned holds until the next call, or that of ss_buffer. See src/core/ranges.c. */
const uint64_t *ss_load_range(struct ss_run *run, uint64_t word, uint64_t count);
/* Where to put neighbouring words that are stored together, as one entry of the redo log; the
 * caller writes all of them before it accesses one in another way. NULL: they are to be stored one
 * by one, if the verdict says that the run may go on. See src/core/ranges.c. */
uint64_t *ss_store_range(struct ss_run *run, uint64_t word, uint64_t count);
/* All accesses of the eager variant; see src/protocols/eager.c. The verdict says whether the run may go on. */
uint64_t ss_eager_load(struct ss_run *run, uint64_t word);
void ss_eager_store(struct ss_run *run, uint64_t word, uint64_t value);
uint64_t ss_eager_load_bytes(struct ss_run *run, uint64_t byte, uint64_t size);
void ss_eager_store_bytes(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t value);
const uint64_t *ss_eager_load_range(struct ss_run *run, uint64_t word, uint64_t count);
uint64_t *ss_eager_store_range(struct ss_run *run, uint64_t word, uint64_t count);
/* A commutative update of an element of `size` 1, 2, 4 or 8 bytes; see src/protocols/delta.c. `delta` is an enum
 * ss_delta; the operand is an int64, a uint64 or the bits of a double, whatever the size. */
void ss_delta(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t delta, uint64_t operand);
void ss_eager_delta(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t delta,
                    uint64_t operand);
/* Where in the index of the redo log the search for a word begins; the slots are counted on from 0, so
 * what it gives is taken modulo their number (`slot_mask`). Compiled code works it out by itself
 * (specstream/compiler/backend/memory.py) and must agree: a test compares the two. */
uint64_t ss_index_hash(uint64_t word);

/* Adds one to a word and gives the sum, by a prediction of what it is; see src/protocols/counter_prediction.c. */
uint64_t ss_increment(struct ss_run *run, uint64_t word);
uint64_t ss_eager_increment(struct ss_run *run, uint64_t word);
/* An operation on a boosted structure by a speculative run; what it returns, unless the verdict says
 * that the run ends. SS_RAISED: the operation has raised what `raised` says, and a run that catches it
 * may go on. See src/protocols/boosting.c. */
uint64_t ss_boost(struct ss_run *run, uint64_t operation, const uint64_t *operands);
/* An in-place run that is `boosting` has done an operation on the state, which returned `result`. */
void ss_boost_follow(struct ss_run *run, uint64_t operation, const uint64_t *operands,
                     uint64_t result);
/* Makes room in the undo log of an in-place run; false: out of memory. */
bool ss_undo_grow(struct ss_run *run);
/* Takes back what was stored since the undo log had so many bytes. */
void ss_undo_back(struct ss_run *run, uint64_t bytes);
/* Memory for so many words, until the run asks again; NULL: there is none, and the run ends. */
uint64_t *ss_buffer(struct ss_run *run, uint64_t words);
/* Where `kill` was found up: whether the run has to leave its event, with the verdict SS_KILLED. */
uint32_t ss_poll(struct ss_run *run);
/* What somebody outside says to the event, who is asked anew each time. NULL: nobody has said it; unless
 * the event `can_do_without`, it has to be left at once, and runs again as the head, with the answers. */
const struct ss_answer_word *ss_answer(struct ss_run *run, uint64_t can_do_without);
/* Makes room for one emitted row; false: the run passed its limit. */
bool ss_emit_grow(struct ss_run *run);

/* First output word of Philox4x64-10 at counter (timestamp, source, sequence, draw), key (seed, 0). */
uint64_t ss_random_bits(uint64_t seed, int64_t timestamp, int64_t source, int64_t sequence,
                        int64_t draw);
/* An integer in [low, high), all equally likely; 1: there is none. */
int32_t ss_random_integer(uint64_t seed, int64_t timestamp, int64_t source, int64_t sequence,
                          int64_t draw, int64_t low, int64_t high, int64_t *result);
/* A normal number of mean 0 and variance 1. */
double ss_random_normal(uint64_t seed, int64_t timestamp, int64_t source, int64_t sequence,
                        int64_t draw);

/* ---- operators that are not compiled; see src/jobs/interpreted.c ---- */

/* Runs events [first, last) of a variant; gives the first one that did not complete. For each of them it
 * calls ss_interpreted_begin; what the verdict says and `yield` asks is its business, as it is that of
 * compiled code. */
typedef int64_t (*ss_interpreter)(void *context, struct ss_run *run, int32_t variant, int64_t first,
                                  int64_t last);
/* Has the workers call it in place of compiled code, for every variant but SS_LOCKED. */
void ss_engine_interpret(struct ss_engine *engine, ss_interpreter interpreter, void *context);
void ss_interpreted_begin(struct ss_run *run, int64_t row);

/* What an interpreter is called for in place of a variant, where a pipeline is compiled and some of its
 * vertices are not: `first` is the number of the vertex, `last` whether the phase is that of a timer. */
enum ss_vertex_call {
    SS_VERTEX_ROW = 16,   /* it has a row */
    SS_VERTEX_TIMER = 17, /* its timer fires */
    SS_PHASE_RAISED = 18  /* a compiled vertex has raised; there is no vertex to run */
};

/* The interpreter of such vertices. */
void ss_engine_interpret_vertices(struct ss_engine *engine, ss_interpreter interpreter, void *context);
/* Compiled code calls it where the vertex stands. What that has sent is in `sent` then, until a list of
 * the event's own is made. Not 0: the run ends, as the verdict says. */
int32_t ss_vertex_interpret(struct ss_run *run, int64_t call, int64_t vertex, int64_t in_timer,
                            const uint64_t *given);
/* Where a compiled vertex has raised: tells the interpreter. */
void ss_phase_raised(struct ss_run *run, int64_t in_timer);
/* Room for one more row of so many words that the vertex sends; NULL: the run ends. */
uint64_t *ss_vertex_send(struct ss_run *run, uint64_t words);
/* An element of the state of `size` bytes at byte offset `byte`, whatever the run is: in place, or
 * speculative under either protocol. The verdict says whether it may go on. */
uint64_t ss_interpreted_load(struct ss_run *run, uint64_t byte, uint64_t size);
void ss_interpreted_store(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t value);
/* Neighbouring words, copied: false: the run ends. */
bool ss_interpreted_load_range(struct ss_run *run, uint64_t word, uint64_t count, uint64_t *into);
bool ss_interpreted_store_range(struct ss_run *run, uint64_t word, uint64_t count,
                                const uint64_t *values);
/* A new row, which the caller fills behind its first word; NULL: the run ends. */
uint64_t *ss_interpreted_emit(struct ss_run *run);
uint64_t ss_interpreted_emit_words(const struct ss_run *run);

/* Locks of SS_MODE_LOCKED; false: the event cannot go on; see src/protocols/locks.c. */
bool ss_lock(struct ss_run *run, uint64_t lock);
bool ss_unlock(struct ss_run *run, uint64_t lock);

#endif
