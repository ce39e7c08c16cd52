/* Figures that anybody may look at while an engine works. */
#ifndef SPECSTREAM_STATISTICS_H
#define SPECSTREAM_STATISTICS_H

#include <stdint.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/figure.h"
#include "processor/now.h"

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
