/* Figures that anybody may look at while an engine works. */
#ifndef SPECSTREAM_STATISTICS_H
#define SPECSTREAM_STATISTICS_H

#include <stdint.h>

#include "engine.h"
#include "worker.h"

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

#endif
