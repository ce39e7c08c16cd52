/* Forced abort (Brito 2010, 4.2.2, reason iv; case 8 of Table 4.1).
 *
 * An earlier transaction that wants a record which a later one has locked takes the lock over, with the
 * version, and *dooms* the later one: it sets a word in the descriptor of the run that it has taken the
 * lock from. The victim sees it at its next load or store, when its run ends, or when somebody is about
 * to commit it. The word carries the incarnation of the run, so that a slot's next run is not hit, and
 * how far away the thief is, which the victim then waits for (retry_queue.c). */
#include "protocols/forced_abort.h"

#include <stdatomic.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "protocols/ownership_records.h"
#include "specstream.h"

void ss_eager_abort(struct ss_run *run, enum ss_abort_reason reason, int64_t lost_to)
{
    struct ss_transaction *transaction = run->worker->transaction;
    run->verdict = SS_ABORTED;
    transaction->reason = reason;
    /* Relaxed: read by this thread, or with the status of the dropped run, which releases it. */
    atomic_store_explicit(&transaction->waits_for, lost_to, memory_order_relaxed);
}

void ss_doom(struct ss_engine *engine, uint64_t content, int64_t thief)
{
    /* Never 0: two transactions have two slots, and their numbers say which. */
    uint64_t distance =
        (uint64_t)(ss_number_of_owner(engine, thief, content) - thief) & UINT32_MAX;
    uint64_t incarnation = content >> (1 + SS_SLOT_BITS + SS_POSITION_BITS);
    uint64_t alive = incarnation << 32;
    /* Relaxed: see ss_is_doomed; that the victim has the right incarnation is all it needs.
     * Release: who takes the hint down sees the doom. */
    if (atomic_compare_exchange_strong_explicit(&ss_owner_of(engine, content)->doom, &alive,
                                                alive | distance, memory_order_relaxed,
                                                memory_order_relaxed))
        /* A finished run that is doomed need not wait until it is the head. */
        atomic_store_explicit(&engine->retries, 1, memory_order_release);
}
