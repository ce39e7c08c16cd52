/* A worker: a thread of the pool, and all that is its own. */
#ifndef SPECSTREAM_WORKER_H
#define SPECSTREAM_WORKER_H

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "containers/keyed_changes.h"
#include "containers/keyed_entries.h"
#include "core/profile.h"
#include "processor/processor.h"
#include "processor/stack.h"
#include "specstream.h"

struct ss_engine;
struct ss_transaction;
struct ss_way_back;

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

    /* Faults; see fault.c. */
    volatile sig_atomic_t inside; /* 1: a fault now is that of compiled code */
    struct ss_way_back *way_back; /* the innermost */
    struct ss_fault fault; /* the last one: of the run in place whose verdict is SS_FAULTED */
    fenv_t arithmetic;     /* as it was when the thread began */
    struct ss_stacks stacks;
    stack_t signal_stack_before;
};

#endif
