/* A kind of job, seen from the engine, the scheduler and the commit. */
#ifndef SPECSTREAM_JOB_KIND_H
#define SPECSTREAM_JOB_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"

struct ss_engine;
struct ss_worker;

/* The kinds differ in this table and in nothing else that the scheduler and the commit know. No function of
 * it is called at an access to the state, but once for each transaction at most, or when somebody looks. Of a
 * kind without transactions (SS_MODE_LOG_FREE, SS_MODE_LOCKED) those about transactions are NULL. */
struct ss_job_kind {
    /* Transactions are in the order of the keys of their first events, and their numbers do not tell it. */
    bool by_key;
    bool is_endless; /* it ends when it is stopped; how long it was busy the workers say */
    /* Memory for a job; false: there is none. NULL: it needs none of its own. */
    bool (*open)(struct ss_engine *engine);
    /* One worker is enough for it; NULL: no. */
    bool (*is_for_one)(const struct ss_engine *engine);
    /* What a worker does until the job is over. */
    void (*run)(struct ss_worker *worker);

    /* ---- a transaction ---- */

    /* Runs its events speculatively, to the end or to a verdict; when it began, or 0: nobody wants to know. */
    int64_t (*run_events)(struct ss_worker *worker, struct ss_transaction *transaction,
                          int64_t number);
    /* A speculative run is over: the transaction is FINISHED, or is WAITING to be run again. */
    void (*settle)(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number,
                   enum ss_status status);
    /* With the turn: runs it on the committed state; false: it did not come to its end. */
    bool (*run_in_place)(struct ss_worker *worker, struct ss_transaction *transaction,
                         int64_t number);
    /* With the turn, which is about to be lent while it runs in place. NULL: nobody looks how far it is. */
    void (*before_lending)(struct ss_engine *engine, struct ss_transaction *transaction);
    /* Row of its first event. */
    int64_t (*row_of)(const struct ss_transaction *transaction);
    /* Timestamp of its first event, or its last. */
    int64_t (*time_of)(const struct ss_engine *engine, const struct ss_transaction *transaction,
                       bool of_last);

    /* ---- the watchdog ---- */

    /* Without the turn: whether a head that nobody runs could be committed, or be run in place. */
    bool (*head_is_ready)(struct ss_engine *engine, int64_t head);
    /* What a transaction takes, in nanoseconds; `committed` of them have by then. */
    int64_t (*mean)(const struct ss_engine *engine, int64_t at, int64_t committed);

    /* ---- hooks, and who looks ---- */

    /* A hook has failed: nothing commits until somebody has heard of it. */
    void (*fail)(struct ss_engine *engine);
    /* On_post_commit has been told of the worker's commit. NULL: nobody waits for that. */
    void (*told)(struct ss_worker *worker);
    /* With the queue's mutex: how many transactions wait. */
    uint64_t (*waiting)(struct ss_engine *engine);
    /* What has failed. NULL: the engine says it. */
    void (*report)(const struct ss_engine *engine, struct ss_outcome *outcome);
};

#endif
