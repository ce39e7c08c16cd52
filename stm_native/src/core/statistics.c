/* Figures, for who looks at an engine while it works.
 *
 * A look stops nobody and waits for no turn. That is easy for what only grows and is written by one
 * worker at a time: it is an own figure of that worker, stored and loaded as a whole, and a look adds
 * up the workers'. What is added up is never set back, so of two looks the later one sees no less;
 * who watches rates relies on that.
 *
 * Two figures are not of that kind. The time inside jobs goes on by itself while a job runs. It is one
 * word: while no job runs, the nanoseconds so far; while one does, the same less the instant at which
 * the job began. The clock has been running for longer than any engine has worked, so the sign tells
 * which of the two it is, and no look can fall between two words that belong together. A look at the
 * very end of a job may still read a later clock than the worker that ends it, so the time, and it
 * alone, may go back a little. (An open job may be idle most of the time: there, workers add up what
 * they do.) And a plain run counts its events
 * when it comes back, which may be at the end of the batch: ss_engine_ask makes it come back between
 * two events, as a reader of the state does, but does not take the turn from it. */
#include "core/statistics.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/queue.h"
#include "processor/figure.h"
#include "processor/now.h"
#include "specstream.h"

void ss_clock_in(struct ss_engine *engine)
{
    /* Relaxed, here and in ss_clock_out: the word is all there is, and jobs come one by one. */
    int64_t before = atomic_load_explicit(&engine->busy, memory_order_relaxed);
    if (!engine->kind->is_endless)
        atomic_store_explicit(&engine->busy, before - engine->started_at, memory_order_relaxed);
}

void ss_clock_out(struct ss_engine *engine)
{
    int64_t before = atomic_load_explicit(&engine->busy, memory_order_relaxed);
    if (!engine->kind->is_endless)
        atomic_store_explicit(&engine->busy, before + ss_now(), memory_order_relaxed);
}

static uint64_t busy_nanoseconds(struct ss_engine *engine)
{
    /* Relaxed: as above. */
    int64_t busy = atomic_load_explicit(&engine->busy, memory_order_relaxed);
    return (uint64_t)(busy < 0 ? busy + ss_now() : busy);
}

static uint64_t events_applied(const struct ss_engine *engine)
{
    uint64_t events = 0;
    for (uint64_t i = 0; i < engine->config.threads; i++)
        events += ss_counted(&engine->workers[i].statistics.events);
    return events;
}

struct ss_statistics ss_engine_statistics(struct ss_engine *engine)
{
    struct ss_statistics sum = {.nanoseconds = busy_nanoseconds(engine)};
    for (uint64_t i = 0; i < engine->config.threads; i++) {
        const struct ss_statistics *own = &engine->workers[i].statistics;
        sum.events += ss_counted(&own->events);
        sum.commits += ss_counted(&own->commits);
        sum.head_runs += ss_counted(&own->head_runs);
        sum.reruns += ss_counted(&own->reruns);
        sum.speculative_runs += ss_counted(&own->speculative_runs);
        sum.head_aborts += ss_counted(&own->head_aborts);
        sum.timers += ss_counted(&own->timers);
        sum.parks += ss_counted(&own->parks);
        sum.nanoseconds += ss_counted(&own->nanoseconds);
        for (int reason = 0; reason < SS_ABORT_REASONS; reason++)
            sum.aborts[reason] += ss_counted(&own->aborts[reason]);
    }
    uint64_t reordered = ss_counted(&engine->queue->reordered);
    sum.aborts[SS_ABORT_REORDERED] += reordered;
    sum.reruns += reordered;
    return sum;
}

void ss_engine_ask(struct ss_engine *engine, int64_t nanoseconds)
{
    uint64_t before = events_applied(engine);
    int64_t until = ss_now() + nanoseconds;
    /* Relaxed: only how it looks now. */
    while (atomic_load_explicit(&engine->busy, memory_order_relaxed) < 0 &&
           events_applied(engine) == before && ss_now() < until) {
        /* Each time anew: a run that was about to begin has taken the flag down. */
        for (uint64_t i = 0; i < engine->config.threads; i++)
            __atomic_store_n(&engine->workers[i].run.yield, 1, __ATOMIC_RELAXED);
        struct timespec backoff = {0, 20000};
        nanosleep(&backoff, NULL);
    }
}

/* The mutex keeps the ring where it is: without it, the next job might replace it meanwhile. */
uint64_t ss_engine_waiting(struct ss_engine *engine)
{
    struct ss_queue *queue = engine->queue;
    uint64_t count = 0;
    pthread_mutex_lock(&queue->mutex);
    /* What the last job has left behind waits for nothing. */
    if (atomic_load_explicit(&engine->over, memory_order_relaxed) == 0 && engine->kind->waiting != NULL)
        count = engine->kind->waiting(engine);
    pthread_mutex_unlock(&queue->mutex);
    return count;
}
