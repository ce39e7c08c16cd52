#include "long_sleep.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/engine.h"
#include "processor/now.h"

static const int64_t sleep_nanoseconds = 10000000000;

static struct ss_engine *_Atomic sleepy;
static _Atomic uint64_t missed;

int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    struct ss_engine *engine = atomic_load_explicit(&sleepy, memory_order_relaxed);
    if (engine == NULL || condition != &engine->park_condition)
        return __real_pthread_cond_timedwait(condition, mutex, until);
    int64_t at = ss_now() + sleep_nanoseconds;
    struct timespec later = {(time_t)(at / 1000000000), (long)(at % 1000000000)};
    int error = __real_pthread_cond_timedwait(condition, mutex, &later);
    if (error == ETIMEDOUT)
        atomic_fetch_add_explicit(&missed, 1, memory_order_relaxed);
    return error;
}

void long_sleep_in(struct ss_engine *engine)
{
    atomic_store_explicit(&sleepy, engine, memory_order_relaxed);
}

uint64_t long_sleep_missed(void)
{
    return atomic_load_explicit(&missed, memory_order_relaxed);
}
