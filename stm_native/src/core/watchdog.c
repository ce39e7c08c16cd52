/* The watchdog: no run keeps the head from advancing for ever.
 *
 * A speculative run may have read values that never existed together, and loop for ever on them. Such
 * a run must end; a healthy one that merely takes long must not, for it would be paid for twice while
 * all others wait, and with many threads some event is always long.
 *
 * What tells them apart is what they have read. While a run is the head, nobody else changes the
 * state. If then all that it has read still holds, it has seen what the sequential run sees, and may
 * take as long as that one would. If not, it will never commit, and ends at once.
 *
 * Whoever has nothing to do, and the thread that waits for the job, looks at the head (ss_watch). One
 * that has not advanced for longer than its budget is *suspected*: the flag that compiled code polls
 * in its loops goes up. The run itself then takes the turn, so that the state stands still whatever
 * kind of job this is, and goes through its read log as a commit would (ss_poll). A run that is
 * cleared gets a new budget; looking through a log costs nothing beside it.
 *
 * Two kinds of runs cannot be cleared like this. Results of operations on boosted structures are in no
 * log, and their declarations may be wrong: a run that has used some is cleared a few times and then
 * ends. And where the head is ready, the turn is free, and all workers are in runs beyond it (a reader
 * had the turn when the head finished, or the head of an open job came when all were at work),
 * somebody has to stop for it: of those runs the one that began last. */
#include "core/watchdog.h"

#include <signal.h>
#include <stdatomic.h>

#include "core/engine.h"
#include "core/parking.h"
#include "core/profile.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/worker.h"
#include "processor/fault.h"
#include "processor/now.h"
#include "protocols/boosting.h"
#include "specstream.h"

enum { SLACK_NANOSECONDS = 2000000, BUDGET_IN_MEANS = 16 };
/* How often a run is cleared whose log does not tell everything. */
enum { MOST_CLEARED = 16 };

int64_t ss_mean_transaction(const struct ss_engine *engine, int64_t at, int64_t committed)
{
    /* Relaxed: a term of a mean. */
    int64_t lost = atomic_load_explicit(&engine->overstayed_nanoseconds, memory_order_relaxed);
    return committed == 0 ? 0 : (at - engine->started_at - lost) / committed;
}

/* ---- from within a run ---- */

/* With the turn: whether the run has read what the head reads, as far as its logs can tell. */
static bool holds(struct ss_run *run, struct ss_transaction *transaction)
{
    struct ss_worker *worker = run->worker;
    transaction->read_count = (uint64_t)(run->read_top - transaction->reads);
    transaction->redo_count = run->redo_count;
    transaction->delta_count = run->delta_count;
    if (ss_boost_is_stolen(transaction))
        return false;
    if (worker->engine->protocol->validate(worker->engine, transaction))
        return true;
    if (transaction->reason == SS_ABORT_CONFLICT)
        ss_hot_note(worker, transaction->conflict);
    return false;
}

/* With the turn; false: the run has to end. */
static bool clear(struct ss_run *run)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_transaction *transaction = run->worker->transaction;
    /* Relaxed: with the turn nobody commits. In an open job an earlier event may come and be the head
     * at any time, which makes no difference: with the turn held it does not commit either. */
    if (atomic_load_explicit(&engine->next_commit, memory_order_relaxed) != transaction->number)
        return true; /* meant for an earlier run of this worker */
    int64_t since = atomic_load_explicit(&engine->head_since, memory_order_relaxed);
    bool healthy = holds(run, transaction);
    if (ss_boost_has_performed(transaction) && transaction->cleared++ >= MOST_CLEARED)
        healthy = false;
    /* Relaxed: a term of a mean. */
    if (since != 0)
        atomic_fetch_add_explicit(&engine->overstayed_nanoseconds, ss_now() - since,
                                  memory_order_relaxed);
    /* A new budget; or whoever looks next gives it. */
    atomic_store_explicit(&engine->head_since, 0, memory_order_relaxed);
    return healthy;
}

uint32_t ss_poll(struct ss_run *run)
{
    struct ss_worker *worker = run->worker;
    uint32_t asked = SS_SUSPECT;
    bool leaves;
    /* Relaxed, here and wherever the flag goes up: it brings nothing with it. */
    if (__atomic_load_n(&run->kill, __ATOMIC_RELAXED) == SS_LEAVE) {
        run->verdict = SS_KILLED;
        return 1;
    }
    /* The turn must be given back, and waking takes a mutex. */
    sig_atomic_t was = ss_step_outside();
    if (!run->speculative) {
        leaves = false; /* in place by now: on committed state there is nothing to suspect */
    } else if (ss_try_turn(worker->engine)) {
        leaves = !clear(run);
        ss_release_turn(worker->engine);
        /* Who wanted the turn meanwhile may sleep, and the next to look is us. */
        ss_wake(worker->engine);
    } else {
        ss_step_inside(was);
        return 0; /* the flag stays up: once more at the next turn of the loop */
    }
    /* Fails where the run was asked to leave since; that must not be lost. */
    if (!__atomic_compare_exchange_n(&run->kill, &asked, 0, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        leaves = leaves || asked == SS_LEAVE;
    ss_step_inside(was);
    if (leaves)
        run->verdict = SS_KILLED;
    return leaves;
}

/* ---- from outside ---- */

static void ask_to_leave(struct ss_worker *worker)
{
    /* Relaxed: it is polled. */
    __atomic_store_n(&worker->run.kill, SS_LEAVE, __ATOMIC_RELAXED);
}

static void suspect(struct ss_worker *worker)
{
    uint32_t nothing = 0;
    /* Never over SS_LEAVE. */
    __atomic_compare_exchange_n(&worker->run.kill, &nothing, SS_SUSPECT, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

/* Of the transactions beyond the head that run: the owner of the one that began last. */
static struct ss_worker *owner_of_latest(struct ss_engine *engine)
{
    struct ss_worker *found = NULL;
    uint64_t latest = 0;
    for (uint64_t i = 0; i < engine->ring_size; i++) {
        struct ss_transaction *transaction = &engine->ring[i];
        /* Acquire: with the status its owner, as it was when the run began. */
        uint64_t status = atomic_load_explicit(&transaction->status, memory_order_acquire);
        if ((status & 7) != SS_RUNNING || (found != NULL && status < latest))
            continue;
        struct ss_worker *owner =
            atomic_load_explicit(&transaction->owner, memory_order_relaxed);
        if (owner != NULL) {
            found = owner;
            latest = status;
        }
    }
    return found;
}

void ss_watch(struct ss_engine *engine)
{
    /* Acquire: the slot that the head has. */
    int64_t head = atomic_load_explicit(&engine->next_commit, memory_order_acquire);
    if (head >= engine->transactions)
        return;
    struct ss_transaction *transaction = ss_slot_of(engine, head);
    bool running = ss_has_status(transaction, head, SS_RUNNING);
    bool ready = engine->kind->head_is_ready != NULL && engine->kind->head_is_ready(engine, head);
    /* Relaxed: a look that may be late; it is only acted upon when it has been the same for
     * long. */
    bool left_alone = ready && atomic_load_explicit(&engine->turn, memory_order_relaxed) == 0 &&
                      !ss_reader_comes_first(engine);
    if (!running && !left_alone)
        return;
    /* Two clocks in one word: its last bit says what was seen at that time. */
    int64_t now = (ss_now() & ~INT64_C(1)) | running;
    /* Relaxed: the word is all there is. */
    int64_t since = atomic_load_explicit(&engine->head_since, memory_order_relaxed);
    if (since == 0 || (since & 1) != running) {
        /* Relaxed: who sees it late begins to count late. */
        atomic_compare_exchange_strong_explicit(&engine->head_since, &since, now,
                                                memory_order_relaxed, memory_order_relaxed);
        return;
    }
    /* The mean when the head was first seen overstaying: one that went on counting would let the
     * budget of an early transaction grow faster than the time that passes. */
    int64_t mean = engine->kind->mean(engine, since, head);
    if (now - since <= SLACK_NANOSECONDS + BUDGET_IN_MEANS * mean)
        return;
    /* Relaxed: a slot that has a next tenant by now costs its run a rerun at most. */
    struct ss_worker *worker =
        running ? atomic_load_explicit(&transaction->owner, memory_order_relaxed)
                : owner_of_latest(engine);
    if (worker == NULL)
        return;
    if (running)
        suspect(worker);
    else
        ask_to_leave(worker);
}
