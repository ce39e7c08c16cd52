/* Makes lost wake-ups visible.
 *
 * A parked worker wakes by itself after a millisecond, so that a wake-up that got lost costs a
 * little time and no test notices. The linker lets this file stand between the runtime and
 * pthread_cond_timedwait: it draws a worker's sleep out to many seconds. Every change a worker may
 * wait for comes with a wake-up long before that; a worker that sleeps to the end missed one. */
#ifndef SPECSTREAM_TESTS_LONG_SLEEP_H
#define SPECSTREAM_TESTS_LONG_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;

/* Only the sleep of this engine's workers is drawn out; NULL: nobody's. */
void long_sleep_in(struct ss_engine *engine);
/* How many sleeps came to their end by themselves. */
uint64_t long_sleep_missed(void);

#endif
