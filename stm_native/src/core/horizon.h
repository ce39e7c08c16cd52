/* How far beyond the head a transaction may start. */
#ifndef SPECSTREAM_HORIZON_H
#define SPECSTREAM_HORIZON_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;
struct ss_worker;

/* Whether the next transaction may be claimed, and its number. */
bool ss_can_claim(struct ss_engine *engine, int64_t *number);
int64_t ss_reach(const struct ss_engine *engine);
/* Nothing but the horizon keeps a thread from claiming, and runs take so long. True: it has grown. */
bool ss_lengthen(struct ss_engine *engine, int64_t run_nanoseconds);
/* A run was dropped for a conflict. */
void ss_shorten(struct ss_engine *engine);
/* The caller is about to run an event. If there are more, within the horizon and long enough to be worth
 * it, one of those who sleep is woken; who takes one calls the next. */
void ss_call_for_help(const struct ss_worker *worker);

#endif
