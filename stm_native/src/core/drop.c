/* A run that does not commit is dropped: it is counted, its logs mean nothing, and who waits for what it holds
 * goes on. Whoever drops it says what becomes of the transaction. */
#include "core/drop.h"

#include "core/engine.h"
#include "core/horizon.h"
#include "core/profile.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/hooks.h"
#include "processor/figure.h"
#include "protocols/boosting.h"
#include "specstream.h"

void ss_drop(struct ss_worker *worker, struct ss_transaction *transaction,
             enum ss_abort_reason reason)
{
    ss_count(&worker->statistics.aborts[reason], 1);
    ss_count(&worker->statistics.reruns, 1);
    if (reason != SS_ABORT_HOOK && reason != SS_ABORT_SHADOW && reason != SS_ABORT_TIMER &&
        (transaction->verdict == SS_COMPLETED || transaction->verdict == SS_ABORTED))
        ss_count(&worker->statistics.head_aborts, transaction->began_as_head);
    transaction->reason = reason;
    worker->engine->protocol->roll_back(worker->engine, transaction);
    ss_boost_roll_back(worker->engine, transaction);
    if (reason == SS_ABORT_CONFLICT || reason == SS_ABORT_INCONSISTENT_SNAPSHOT ||
        reason == SS_ABORT_LOCKED || reason == SS_ABORT_STOLEN || reason == SS_ABORT_SHADOW) {
        ss_hot_note(worker, transaction->conflict);
        ss_shorten(worker->engine);
    }
    ss_tell_dropped(worker->engine, transaction, reason);
}
