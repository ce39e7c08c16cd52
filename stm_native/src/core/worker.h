/* A worker: a thread of the pool, and all that is its own. */
#ifndef SPECSTREAM_WORKER_H
#define SPECSTREAM_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/profile.h"
#include "processor/fault.h"
#include "processor/processor.h"
#include "specstream.h"

struct ss_engine;
struct ss_transaction;

/* The entries that an event in place has taken or removed, of all containers. */
struct ss_touched {
    uint64_t *entries; /* container << 32 | first word; and SS_WAS_THERE, before the event */
    uint64_t count;
    uint64_t capacity;
    uint64_t cursor;      /* where the search for a free one has ended */
    int64_t event;        /* which event; -1: none */
    uint64_t first_stamp; /* all stamps above it are of this event */
    bool has_grown;       /* an index was replaced */
};

/* Where a run looks for what it has inserted: groups by hash. */
struct ss_inserted {
    uint64_t groups; /* bit i: there is one in group i */
    uint32_t last[64]; /* the last one of each, plus 1 */
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
    int64_t runs_next; /* with early results: the head, which it runs when it has given the turn back; -1 */
    bool is_early; /* what it runs in place may be revoked: what that removes is not free before it is final */
    int64_t run_nanoseconds; /* of a run, the mean of samples, of which the last count most; 0: none yet */
    uint32_t sample_in; /* runs until the next sample */
    uint64_t seen_changes; /* of an open job's queue, when it last looked for a run to repeat */
    uint64_t *rows; /* emit buffer of SS_MODE_LOCKED */
    uint64_t locks_held;
    uint32_t has_followed; /* its run in place has done operations on them */
    _Atomic uint64_t wants; /* the lock that it waits for, plus 1; 0: none */
    struct ss_lock_fault lock_fault;
    uint64_t undo_entries; /* room in the undo log */
    uint64_t *buffer; /* what is being copied; see buffer.c */
    uint64_t buffer_words;
    _Atomic uint64_t runs; /* speculative ones, counted at their beginnings and ends */
    struct ss_touched touched;   /* by its event in place */
    struct ss_inserted inserted; /* by its speculative run */
    struct ss_statistics statistics; /* own figures; see statistics.c */
    struct ss_hot_place hot[SS_HOT_GROUPS * SS_HOT_ENTRIES];
    struct ss_containment containment; /* its way out of compiled code */
};

#endif
