/* What becomes of the head. */
#ifndef SPECSTREAM_COMMIT_H
#define SPECSTREAM_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"

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
/* With the turn: runs a transaction on the committed state; false: it did not come to its end. In an
 * open job each span then begins with the first of its events that has not run. */
bool ss_run_in_place(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number);
/* With the turn, after the commit of a run that has stopped before the end of its chunk: what is left of
 * that, in place; false: it did not come to its end. */
bool ss_run_rest(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number);
enum ss_abort_reason ss_reason_of(uint32_t verdict);
/* Counts a dropped run, and takes back what others see of it. */
void ss_drop(struct ss_worker *worker, struct ss_transaction *transaction,
             enum ss_abort_reason reason);

#endif
