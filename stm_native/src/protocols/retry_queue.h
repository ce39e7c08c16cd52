/* Dropped transactions that are to run again. */
#ifndef SPECSTREAM_RETRY_QUEUE_H
#define SPECSTREAM_RETRY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;
struct ss_transaction;
struct ss_worker;

/* Puts a dropped transaction back, until the one that it waits for has committed. */
void ss_put_back(struct ss_engine *engine, struct ss_transaction *transaction, int64_t number);
/* Whether the transaction was dropped, or is going to be, and nothing keeps it from running again.
 * Its status is then the one found; `later`: it was dropped and has to wait. */
bool ss_can_retry(struct ss_engine *engine, struct ss_transaction *transaction, int64_t number,
                  uint64_t *status, bool *later);
/* The earliest transaction of the retry queue that may run again; -1: none. With `take`, its slot is
 * the caller's, and RUNNING. */
int64_t ss_find_retry(struct ss_worker *worker, bool take);

#endif
