/* Sleeping and waking inside a job.
 *
 * Machines are shared: a worker with nothing to do spins for about one event and then sleeps here.
 * The danger is the lost wake-up: A looks, finds nothing, goes to sleep; B changes what A looked at
 * just before A sleeps, sees no sleeper, and does not wake. The remedy is Dekker's: A announces
 * itself, then fence, then looks once more; B changes, then fence, then looks for sleepers. Of two
 * sequentially consistent fences one comes first, so at least one side sees the other. */
#include "core/parking.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/figure.h"
#include "processor/now.h"

void ss_wake(struct ss_engine *engine)
{
    /* Pairs with the fence in ss_park: orders the caller's change before the look at sleepers. */
    atomic_thread_fence(memory_order_seq_cst);
    /* Relaxed: the fence orders it. */
    if (atomic_load_explicit(&engine->sleepers, memory_order_relaxed) == 0)
        return;
    /* Taking the mutex closes the gap between a sleeper's last look and its wait. */
    pthread_mutex_lock(&engine->park_mutex);
    pthread_cond_broadcast(&engine->park_condition);
    pthread_mutex_unlock(&engine->park_mutex);
}

void ss_wake_one(struct ss_engine *engine)
{
    pthread_mutex_lock(&engine->park_mutex);
    pthread_cond_signal(&engine->park_condition);
    pthread_mutex_unlock(&engine->park_mutex);
}

void ss_park(struct ss_worker *worker, bool (*ready)(struct ss_worker *), int64_t nanoseconds)
{
    struct ss_engine *engine = worker->engine;
    struct timespec until;
    pthread_mutex_lock(&engine->park_mutex);
    atomic_fetch_add_explicit(&engine->sleepers, 1, memory_order_relaxed);
    /* Pairs with the fence in ss_wake: orders the announcement before the last look. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!ready(worker)) {
        int64_t at = ss_now() + nanoseconds;
        until.tv_sec = (time_t)(at / 1000000000);
        until.tv_nsec = (long)(at % 1000000000);
        ss_count(&worker->statistics.parks, 1);
        pthread_cond_timedwait(&engine->park_condition, &engine->park_mutex, &until);
    }
    /* Relaxed: seen late, it costs a wake-up of nobody. */
    atomic_fetch_sub_explicit(&engine->sleepers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&engine->park_mutex);
}
