/* No run keeps the head from advancing for ever. */
#ifndef SPECSTREAM_WATCHDOG_H
#define SPECSTREAM_WATCHDOG_H

#include <stdint.h>

struct ss_engine;

/* Suspects a head that has not advanced for longer than its budget. Called by whoever has nothing
 * better to do. */
void ss_watch(struct ss_engine *engine);
/* Nanoseconds of a transaction, up to the instant `at`. Without that for which heads have overstayed: as the
 * budget is a multiple of the mean, they would otherwise make each other's budgets grow without
 * bound. */
int64_t ss_mean_transaction(const struct ss_engine *engine, int64_t at, int64_t committed);

#endif
