/* The retry queue: dropped transactions that are to run again, protocol `eager` only. The dissertation
 * keeps them in one "wait queue" with the finished ones (Brito 2010, 4.2.1
 * and 4.2.2).
 *
 * A finished transaction waits in the ring under its own number. So does a dropped one, but under the
 * number of the transaction that it lost to: before that has committed, it would most likely lose
 * again. The ring is the queue for both; what is here finds the dropped ones in it.
 *
 * They are few, and a search looks at a whole horizon of slots. Hence a hint, `retries`: it is up
 * whenever there may be something to find. It goes up after a transaction is put back or doomed, and
 * only a search that has found nothing takes it down. */
#include "protocols/retry_queue.h"

#include <stdatomic.h>

#include "core/drop.h"
#include "core/engine.h"
#include "core/parking.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "protocols/forced_abort.h"
#include "specstream.h"

void ss_put_back(struct ss_engine *engine, struct ss_transaction *transaction, int64_t number)
{
    /* Relaxed: this thread has stored it. */
    int64_t waits_for = atomic_load_explicit(&transaction->waits_for, memory_order_relaxed);
    ss_set_status(transaction, number, SS_WAITING);
    /* Release: who takes the hint down sees what it was about. */
    atomic_store_explicit(&engine->retries, 1, memory_order_release);
    /* Dekker with advance: WAITING is visible before we look whether it is too late for the wake-up
     * that comes with the commit. */
    atomic_thread_fence(memory_order_seq_cst);
    if (ss_has_committed(engine, waits_for))
        ss_wake(engine);
}

bool ss_can_retry(struct ss_engine *engine, struct ss_transaction *transaction, int64_t number,
                  uint64_t *status, bool *later)
{
    int64_t waits_for;
    /* Acquire: the slot as its last run has left it, with what it waits for. */
    *status = atomic_load_explicit(&transaction->status, memory_order_acquire);
    if (*status == ss_status_word(number, SS_WAITING))
        waits_for = atomic_load_explicit(&transaction->waits_for, memory_order_relaxed);
    else if (*status != ss_status_word(number, SS_FINISHED) ||
             !ss_is_doomed(transaction, number, &waits_for))
        return false;
    bool ready = ss_has_committed(engine, waits_for);
    *later = *later || !ready;
    return ready;
}

/* The earliest transaction that may run again. `later`: there is one that has to wait. */
static int64_t scan_queue(struct ss_worker *worker, bool take, bool *later)
{
    struct ss_engine *engine = worker->engine;
    int64_t found = -1;
    /* Relaxed: what is claimed meanwhile has not been dropped yet. Acquire: as everywhere, the
     * head's slot as the commit before has left it. */
    int64_t end = atomic_load_explicit(&engine->next_start, memory_order_relaxed);
    for (int64_t number = atomic_load_explicit(&engine->next_commit, memory_order_acquire);
         number < end && found < 0; number++) {
        struct ss_transaction *transaction = ss_slot_of(engine, number);
        uint64_t status;
        if (!ss_can_retry(engine, transaction, number, &status, later))
            continue;
        bool was_finished = (status & 7) == SS_FINISHED;
        /* Acquire: the slot as the last run left it. */
        if (take && !atomic_compare_exchange_strong_explicit(
                        &transaction->status, &status, ss_status_word(number, SS_RUNNING),
                        memory_order_acquire, memory_order_relaxed))
            continue;
        if (take && was_finished) {
            int64_t thief;
            if (!ss_is_doomed(transaction, number, &thief)) {
                /* Between our look and our grip somebody else has repeated it: this is a new run. */
                ss_set_status(transaction, number, SS_FINISHED);
                ss_wake(engine);
                continue;
            }
            ss_drop(worker, transaction,
                 transaction->verdict == SS_COMPLETED ? SS_ABORT_STOLEN
                                                      : ss_reason_of(transaction->verdict));
        }
        found = number;
    }
    return found;
}

int64_t ss_find_retry(struct ss_worker *worker, bool take)
{
    struct ss_engine *engine = worker->engine;
    bool later = false;
    /* Relaxed: a hint; who raises it wakes those who have gone to sleep without it. */
    if (!engine->protocol->head_speculates ||
        atomic_load_explicit(&engine->retries, memory_order_relaxed) == 0)
        return -1;
    int64_t found = scan_queue(worker, take, &later);
    if (!take || found >= 0 || later)
        return found;
    /* Nothing: the hint goes down, and then we look again, so that either we see what is put back now
     * or who puts it back finds the hint down and raises it. Acquire: what was put back before. */
    atomic_exchange_explicit(&engine->retries, 0, memory_order_acq_rel);
    found = scan_queue(worker, take, &later);
    if (found >= 0 || later) {
        atomic_store_explicit(&engine->retries, 1, memory_order_release);
        ss_wake(engine); /* who looked while it was down may have gone to sleep */
    }
    return found;
}
