/* Finished runs that are looked at again before they are the head; protocol `value`.
 *
 * What a finished run has read may change while it waits, which shows only when it becomes the head: then it
 * runs once more, in place, and everything behind it waits. Where a long head has kept many waiting, their
 * commits come in one burst, and each that an earlier one of the burst has made wrong costs the time of a
 * run, one after the other: of 32 threads whose events take 200 us, three in a hundred of which run again,
 * half are idle.
 *
 * So the first such head calls the others. Who holds the turn marks those that have finished behind it as
 * doubtful, and then runs the head. Whoever looks for work takes a doubtful one (FINISHED -> DOUBTFUL ->
 * RUNNING), compares what it has read with the state, and runs it again at once if it does not hold; if it
 * does, it has finished as before. That it holds now proves nothing for later: the head asks again.
 *
 * One that nobody has taken is committed like any other; only its status has then to be won, as somebody
 * may be about to take it. Two counters say which are doubtful. They are a hint: whoever takes one wins its
 * status. To mark one gets its line from the core that has run it, so they are no more than an eighth of a
 * run pays for: where runs are short, none. */
#include "protocols/revalidation.h"

#include <stdatomic.h>

#include "core/drop.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "specstream.h"

void ss_doubt_behind(const struct ss_worker *worker, int64_t head)
{
    struct ss_engine *engine = worker->engine;
    if (engine->protocol->is_outdated == NULL || ss_goes_by_key(engine))
        return;
    int64_t most = worker->run_nanoseconds / engine->doubt_nanoseconds;
    /* Relaxed: what is claimed meanwhile has not finished. */
    int64_t end = atomic_load_explicit(&engine->next_start, memory_order_relaxed);
    int64_t last = head + 1;
    for (int64_t number = head + 1; number < end && most > 0; number++, most--) {
        struct ss_transaction *transaction = ss_slot_of(engine, number);
        if (!ss_has_status(transaction, number, SS_FINISHED))
            continue;
        ss_set_status(transaction, number, SS_DOUBTFUL);
        last = number + 1;
    }
    /* Relaxed: hints. With the old end beside the new beginning, somebody looks at slots that hold none. */
    atomic_store_explicit(&engine->next_doubtful, head + 1, memory_order_relaxed);
    atomic_store_explicit(&engine->last_doubtful, last, memory_order_relaxed);
}

static bool take_next(struct ss_engine *engine, int64_t *number)
{
    *number = atomic_load_explicit(&engine->next_doubtful, memory_order_relaxed);
    do {
        if (!ss_has_doubtful(engine))
            return false;
        /* Relaxed: the number is all there is to win. */
    } while (!atomic_compare_exchange_weak_explicit(&engine->next_doubtful, number, *number + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool ss_revalidate_one(struct ss_worker *worker, int64_t *number)
{
    struct ss_engine *engine = worker->engine;
    while (take_next(engine, number)) {
        struct ss_transaction *transaction = ss_slot_of(engine, *number);
        uint64_t doubtful = ss_status_word(*number, SS_DOUBTFUL);
        /* Acquire: the logs, as its last run has left them. */
        if (!atomic_compare_exchange_strong_explicit(&transaction->status, &doubtful,
                                                     ss_status_word(*number, SS_RUNNING),
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        if (engine->protocol->is_outdated(engine, transaction)) {
            ss_drop(worker, transaction, SS_ABORT_CONFLICT);
            return true;
        }
        ss_set_status(transaction, *number, SS_FINISHED);
        /* Dekker with release_turn, as at the end of a run: the caller looks at the head next. */
        atomic_thread_fence(memory_order_seq_cst);
        *number = -1;
        return true;
    }
    return false;
}
