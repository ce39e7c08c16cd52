#include "companions.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "patience.h"
#include "specstream.h"

static void backoff(uint64_t nanoseconds)
{
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    if (nanoseconds > 0)
        nanosleep(&time, NULL);
}

/* Plain loads: whoever holds the turn needs no more, and ThreadSanitizer checks that it is so. */
static void *read_state(void *argument)
{
    struct companions *companions = argument;
    struct dice dice = dice_for(companions->seed, 1);
    while (!atomic_load_explicit(&companions->over, memory_order_relaxed)) {
        uint64_t times = chance(&dice, 16) ? below(&dice, 20) : 1;
        for (uint64_t i = 0; i < times; i++) {
            ss_engine_take_turn(companions->engine);
            const char *violation = shape_violation(companions->shape, companions->state);
            if (violation != NULL)
                fail("with the turn taken while a job runs, %s", violation);
            if (chance(&dice, 8))
                backoff(spread(&dice, 200000));
            ss_engine_release_turn(companions->engine);
            companions->turns_taken++;
        }
        backoff(spread(&dice, 3000000));
    }
    return NULL;
}

/* Figures are whole, and never less than before, whatever the engine does meanwhile. */
static void *watch_figures(void *argument)
{
    struct companions *companions = argument;
    struct dice dice = dice_for(companions->seed, 2);
    struct ss_statistics before = {0};
    while (!atomic_load_explicit(&companions->over, memory_order_relaxed)) {
        if (chance(&dice, 4))
            ss_engine_ask(companions->engine, (int64_t)spread(&dice, 200000));
        struct ss_statistics now = ss_engine_statistics(companions->engine);
        before.nanoseconds = 0; /* the one that may go back */
        /* The struct is nothing but figures. */
        const uint64_t *old = (const uint64_t *)&before, *new = (const uint64_t *)&now;
        for (size_t i = 0; i < sizeof now / sizeof *new; i++)
            if (new[i] < old[i])
                fail("figure %zu went back from %" PRIu64 " to %" PRIu64, i, old[i], new[i]);
        before = now;
        if (ss_engine_waiting(companions->engine) > 1 << 20 ||
            ss_engine_memory(companions->engine) == 0)
            fail("a wait queue or memory of impossible length");
        for (uint64_t looks = companions->looking ? below(&dice, 50) : 0; looks > 0; looks--)
            companions->keys_seen +=
                container_look_up(&companions->shape->containers, companions->engine,
                                  companions->state, &dice, &companions->unordered);
        backoff(spread(&dice, 1000000));
    }
    return NULL;
}

static void *stop_jobs(void *argument)
{
    struct companions *companions = argument;
    pthread_mutex_lock(&companions->mutex);
    while (!atomic_load_explicit(&companions->over, memory_order_relaxed)) {
        enum request request = companions->request;
        if (request == REQUEST_NONE) {
            pthread_cond_wait(&companions->changed, &companions->mutex);
            continue;
        }
        uint64_t delay = companions->delay_nanoseconds;
        pthread_mutex_unlock(&companions->mutex);
        backoff(delay);
        if (request == REQUEST_STOP)
            ss_engine_stop(companions->engine);
        else
            ss_engine_kill(companions->engine);
        pthread_mutex_lock(&companions->mutex);
        companions->request = REQUEST_NONE;
        pthread_cond_broadcast(&companions->changed);
    }
    pthread_mutex_unlock(&companions->mutex);
    return NULL;
}

void companions_start(struct companions *companions)
{
    companions->turns_taken = companions->keys_seen = 0;
    companions->request = REQUEST_NONE;
    atomic_store(&companions->over, false);
    pthread_mutex_init(&companions->mutex, NULL);
    pthread_cond_init(&companions->changed, NULL);
    if ((companions->reading &&
         (pthread_create(&companions->reader, NULL, read_state, companions) != 0 ||
          pthread_create(&companions->watcher, NULL, watch_figures, companions) != 0)) ||
        pthread_create(&companions->stopper, NULL, stop_jobs, companions) != 0)
        fail("cannot start a thread");
}

void companions_end(struct companions *companions)
{
    pthread_mutex_lock(&companions->mutex);
    atomic_store(&companions->over, true);
    pthread_cond_broadcast(&companions->changed);
    pthread_mutex_unlock(&companions->mutex);
    pthread_join(companions->stopper, NULL);
    if (companions->reading) {
        pthread_join(companions->reader, NULL);
        pthread_join(companions->watcher, NULL);
    }
    pthread_cond_destroy(&companions->changed);
    pthread_mutex_destroy(&companions->mutex);
}

void companions_request(struct companions *companions, enum request request,
                        uint64_t delay_nanoseconds)
{
    pthread_mutex_lock(&companions->mutex);
    companions->request = request;
    companions->delay_nanoseconds = delay_nanoseconds;
    pthread_cond_broadcast(&companions->changed);
    pthread_mutex_unlock(&companions->mutex);
}

void companions_settle(struct companions *companions)
{
    pthread_mutex_lock(&companions->mutex);
    while (companions->request != REQUEST_NONE)
        pthread_cond_wait(&companions->changed, &companions->mutex);
    pthread_mutex_unlock(&companions->mutex);
}
