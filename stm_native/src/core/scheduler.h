/* Claims, speculative runs, and the end of a job. */
#ifndef SPECSTREAM_SCHEDULER_H
#define SPECSTREAM_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;
struct ss_worker;

void ss_run_ordered(struct ss_worker *worker);
void ss_end_job(struct ss_engine *engine);
int64_t ss_reach(const struct ss_engine *engine);
/* Nothing but the horizon keeps a thread from claiming, and runs take so long. True: it has grown. */
bool ss_lengthen(struct ss_engine *engine, int64_t run_nanoseconds);
/* A run was dropped for a conflict. */
void ss_shorten(struct ss_engine *engine);
/* The caller is about to run an event. If there are more, within the horizon and long enough to be worth
 * it, one of those who sleep is woken; who takes one calls the next. */
void ss_call_for_help(const struct ss_worker *worker);
/* Runs a claimed transaction until it is finished or has to wait. */
void ss_run_speculatively(struct ss_worker *worker, int64_t number);
/* Spins for about one event, then sleeps, until there is work or the time is up. */
void ss_await_work(struct ss_worker *worker, bool (*has_work)(struct ss_worker *),
                   int64_t nanoseconds);

#endif
