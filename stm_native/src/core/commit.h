/* What becomes of the head. */
#ifndef SPECSTREAM_COMMIT_H
#define SPECSTREAM_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

struct ss_transaction;
struct ss_worker;

/* What became of the head. */
enum ss_progress {
    SS_COMMITTED,
    SS_PUT_BACK, /* it is to be run again, as a transaction */
    SS_ENDED     /* the job ends here */
};

/* With the turn: commits a finished transaction, or reruns it. */
enum ss_progress ss_commit(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number);
/* With the turn: runs events [*first, last) of a transaction on the committed state; false: the job ends
 * here, *first has not run. */
bool ss_run_range_in_place(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number, int64_t *first, int64_t last);
/* The same with a transaction that is a chunk of the job's. */
bool ss_run_chunk_in_place(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number);
/* With the turn, after the commit of a run that has stopped before the end of its chunk: what is left of
 * that, in place; false: it did not come to its end. */
bool ss_run_rest(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number);

#endif
