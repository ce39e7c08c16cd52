/* Early results, a step at a time. */
#ifndef SPECSTREAM_EARLY_STEPS_H
#define SPECSTREAM_EARLY_STEPS_H

#include <stdbool.h>

struct ss_worker;

/* With the turn: one step; false: there is none. */
bool ss_early_advance(struct ss_worker *worker);

#endif
