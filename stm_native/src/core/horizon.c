/* The horizon: how far beyond the head a transaction may start, and who is woken for that.
 *
 * It is what the job was started with, and grows to its longest where threads would wait for the head, as long
 * as few runs are dropped for conflicts. */
#include "core/horizon.h"

#include <stdatomic.h>

#include "core/engine.h"
#include "core/parking.h"
#include "core/worker.h"
#include "protocols/revalidation.h"
#include "specstream.h"

/* How far beyond the head a transaction may start. While one head after the other is run again, no
 * farther than one for each other thread. Where all neighbours conflict, threads fall into step: one
 * runs the head again while another runs the next one, both end together, and the next one has read
 * too early as well, for ever. Who waits for the end of such a head starts a little after it, and
 * reads after it. */
int64_t ss_reach(const struct ss_engine *engine)
{
    int64_t others = (int64_t)engine->config.threads - 1;
    /* Relaxed, both: hints; seen late, one transaction starts too far ahead. */
    int64_t reach = atomic_load_explicit(&engine->reach, memory_order_relaxed);
    if (atomic_load_explicit(&engine->rerunning, memory_order_relaxed) != SS_RERUN_AGAIN ||
        others >= reach)
        return reach;
    return others > 0 ? others : 1;
}

bool ss_can_claim(struct ss_engine *engine, int64_t *number)
{
    int64_t next = atomic_load_explicit(&engine->next_start, memory_order_relaxed);
    /* Acquire: a slot freed by the commit that moved the head is seen as free. */
    int64_t head = atomic_load_explicit(&engine->next_commit, memory_order_acquire);
    *number = next;
    /* Without a horizon there is no speculation at all, not even of the head itself while a reader
     * has the turn: such an engine may have no code for it. */
    if (engine->job.horizon == 0 && engine->job.mode == SS_MODE_ORDERED)
        return false;
    return next < engine->transactions && next <= head + ss_reach(engine);
}

bool ss_lengthen(struct ss_engine *engine, int64_t run_nanoseconds)
{
    int64_t longest = engine->job.longest_horizon;
    /* Relaxed: a hint, and of two that starve one lengthens it. */
    int64_t reach = atomic_load_explicit(&engine->reach, memory_order_relaxed);
    if (reach >= longest || run_nanoseconds < engine->long_nanoseconds ||
        atomic_load_explicit(&engine->rerunning, memory_order_relaxed) != SS_RERUN_NONE)
        return false;
    atomic_compare_exchange_strong_explicit(&engine->reach, &reach,
                                            reach < longest - reach ? 2 * reach : longest,
                                            memory_order_relaxed, memory_order_relaxed);
    return true;
}

/* With T threads a conflict in T transactions costs about what one more thread is worth, and they are the
 * more the longer the horizon: it stops growing where some ten conflicts come in one length of it. */
void ss_shorten(struct ss_engine *engine)
{
    /* Relaxed: a hint, and who loses against another one has shortened it by as much. */
    int64_t reach = atomic_load_explicit(&engine->reach, memory_order_relaxed);
    int64_t shorter = reach - reach / 16 - 1;
    if (reach > engine->job.horizon)
        atomic_compare_exchange_strong_explicit(
            &engine->reach, &reach, shorter < engine->job.horizon ? engine->job.horizon : shorter,
            memory_order_relaxed, memory_order_relaxed);
}

void ss_call_for_help(const struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    int64_t number;
    /* Relaxed: a hint. Who was about to sleep and is missed looks up by itself, or is woken with the
     * next one. In an open job everybody is woken as soon as there is something to claim. */
    if (atomic_load_explicit(&engine->sleepers, memory_order_relaxed) != 0 && !ss_goes_by_key(engine) &&
        worker->run_nanoseconds >= engine->long_nanoseconds &&
        (ss_can_claim(engine, &number) || ss_has_doubtful(engine)))
        ss_wake_one(engine);
}
