/* Figures that anybody may look at while an engine works. */
#ifndef SPECSTREAM_STATISTICS_H
#define SPECSTREAM_STATISTICS_H

#include <stdint.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/now.h"

/* A worker's figures are its own to write, and read by others while it works. */
static inline void ss_count(uint64_t *figure, uint64_t more)
{
    __atomic_store_n(figure, *figure + more, __ATOMIC_RELAXED);
}

/* Adds to a figure that only ever has one writer at a time; others read it meanwhile. */
static inline void ss_grow(uint64_t *figure, uint64_t to)
{
    __atomic_store_n(figure, to, __ATOMIC_RELAXED);
}

static inline uint64_t ss_counted(const uint64_t *figure)
{
    return __atomic_load_n(figure, __ATOMIC_RELAXED);
}

/* A job that ends by itself begins, or its last worker has left it. */
void ss_clock_in(struct ss_engine *engine);
void ss_clock_out(struct ss_engine *engine);
/* With the turn, or where there are no turns: `events` more have been applied. */
static inline void ss_apply(struct ss_worker *worker, int64_t events)
{
    worker->engine->consumed += events;
    ss_count(&worker->statistics.events, (uint64_t)events);
}

/* When a run begins, if anybody wants to know how long it takes: a recorder, and for the mean every 64th
 * is enough. 0: nobody. */
static inline int64_t ss_time_run(struct ss_worker *worker)
{
    if (worker->sample_in != 0) {
        worker->sample_in--;
        if (worker->engine->recorder == NULL)
            return 0;
    }
    return ss_now();
}

static inline void ss_sample(struct ss_worker *worker, int64_t nanoseconds)
{
    if (worker->sample_in != 0)
        return;
    int64_t mean = worker->run_nanoseconds;
    worker->run_nanoseconds = mean == 0 ? nanoseconds : mean + (nanoseconds - mean) / 4;
    worker->sample_in = 63;
}

#endif
