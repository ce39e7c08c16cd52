/* Sleeping inside a job without losing a wake-up. */
#ifndef SPECSTREAM_PARKING_H
#define SPECSTREAM_PARKING_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;
struct ss_worker;

/* After a change that others may wait for: all of them look again. */
void ss_wake(struct ss_engine *engine);
/* Somebody may help; without fences, so who is about to sleep may be missed. */
void ss_wake_one(struct ss_engine *engine);
void ss_park(struct ss_worker *worker, bool (*ready)(struct ss_worker *), int64_t nanoseconds);

#endif
