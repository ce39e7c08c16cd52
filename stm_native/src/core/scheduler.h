/* Claims, speculative runs, and the end of a job. */
#ifndef SPECSTREAM_SCHEDULER_H
#define SPECSTREAM_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/job_kind.h"

struct ss_engine;
struct ss_worker;

/* SS_MODE_ORDERED and SS_MODE_SPECULATE. */
extern const struct ss_job_kind ss_ordered_job;

void ss_end_job(struct ss_engine *engine);
/* Runs a claimed transaction until it is finished or has to wait. */
void ss_run_speculatively(struct ss_worker *worker, int64_t number);
/* Runs events [first, last) as part of a transaction; returns the first one that has not run, after a
 * verdict or where it has become the head. */
int64_t ss_run_events(struct ss_worker *worker, int64_t number, int64_t first, int64_t last);
/* Spins for about one event, then sleeps, until there is work or the time is up. */
void ss_await_work(struct ss_worker *worker, bool (*has_work)(struct ss_worker *),
                   int64_t nanoseconds);

#endif
