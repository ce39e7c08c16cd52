/* Runs that do not commit. */
#ifndef SPECSTREAM_DROP_H
#define SPECSTREAM_DROP_H

#include "core/transaction.h"
#include "specstream.h"

struct ss_transaction;
struct ss_worker;

/* Counts a dropped run, and takes back what others see of it. */
void ss_drop(struct ss_worker *worker, struct ss_transaction *transaction,
             enum ss_abort_reason reason);

#endif
