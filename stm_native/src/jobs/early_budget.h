/* Early results: how long taking back takes. */
#ifndef SPECSTREAM_EARLY_BUDGET_H
#define SPECSTREAM_EARLY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/early.h"

/* ---- with the mutex ---- */

/* Events up to this time have come. */
void ss_budget_note_newest(struct ss_early *early, int64_t timestamp);
/* An event is so late that some were revoked. */
void ss_budget_note_late(struct ss_early *early, uint64_t lateness);
/* Looks from time to time how much of it revoking takes: beyond a quarter, the head is held back by as
 * much as most late events are late; far below it, by half as much as before. */
void ss_budget_settle(struct ss_early *early);
/* Whether an event that is not safe is to wait for others before it. */
static inline bool ss_is_held(const struct ss_early *early, int64_t timestamp)
{
    const struct ss_budget *budget = &early->budget;
    return budget->held != 0 && budget->has_newest && timestamp <= budget->newest &&
           (uint64_t)budget->newest - (uint64_t)timestamp < budget->held;
}

#endif
