/* Open jobs: events come while they run, in any order. */
#ifndef SPECSTREAM_OPEN_JOB_H
#define SPECSTREAM_OPEN_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"

struct ss_engine;
struct ss_worker;

void ss_run_open(struct ss_worker *worker);
/* A speculative run is over: the transaction waits, or its events go back to the pending ones. */
void ss_queue_settle(struct ss_worker *worker, struct ss_transaction *transaction, int64_t number,
                     enum ss_status status);
int64_t ss_queue_mean(struct ss_engine *engine); /* nanoseconds of a run */
bool ss_queue_can_advance(struct ss_engine *engine);
/* Where no transaction is the head: whether there is an event below the frontier that could be. */
bool ss_queue_head_is_unclaimed(struct ss_engine *engine);

#endif
