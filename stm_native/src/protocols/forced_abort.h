/* Stolen locks: how an earlier transaction makes a later one abort. */
#ifndef SPECSTREAM_FORCED_ABORT_H
#define SPECSTREAM_FORCED_ABORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "specstream.h"

struct ss_engine;

/* The run ends here. The conflict of a stolen lock is found when it is rolled back; else it is set
 * before. */
void ss_eager_abort(struct ss_run *run, enum ss_abort_reason reason, int64_t lost_to);
/* Forces the run that `content` refers to to abort; another run of the slot is left alone. */
void ss_doom(struct ss_engine *engine, uint64_t content, int64_t thief);

/* Whether an earlier transaction has taken a lock from this run, and which. */
static inline bool ss_is_doomed(struct ss_transaction *transaction, int64_t number, int64_t *thief)
{
    /* Relaxed: seeing it late only makes the run last longer. That the commit sees it follows from
     * the turn: the thief has committed before, and it doomed before that. */
    uint64_t doom = atomic_load_explicit(&transaction->doom, memory_order_relaxed);
    *thief = number - (int32_t)(doom & UINT32_MAX);
    return SS_UNLIKELY((doom & UINT32_MAX) != 0);
}

static inline bool ss_leave_if_doomed(struct ss_run *run)
{
    struct ss_transaction *transaction = run->worker->transaction;
    int64_t thief;
    if (!ss_is_doomed(transaction, transaction->number, &thief))
        return false;
    ss_eager_abort(run, SS_ABORT_STOLEN, thief);
    return true;
}

#endif
