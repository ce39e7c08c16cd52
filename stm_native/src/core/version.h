/* The version of the committed state: for who looks at it without the turn. */
#ifndef SPECSTREAM_VERSION_H
#define SPECSTREAM_VERSION_H

#include <stdatomic.h>

#include "core/engine.h"
#include "processor/processor.h"

/* With the turn: what it holds is about to change, and need not be a whole number of events meanwhile. */
static inline void ss_version_begin(struct ss_engine *engine)
{
    /* Relaxed: only who holds the turn writes it. */
    uint64_t version = atomic_load_explicit(&engine->version, memory_order_relaxed);
    atomic_store_explicit(&engine->version, version | 1, memory_order_relaxed);
    /* Release: who sees anything of the change sees the odd number. */
    atomic_thread_fence(memory_order_release);
}

static inline void ss_version_end(struct ss_engine *engine)
{
    uint64_t version = atomic_load_explicit(&engine->version, memory_order_relaxed);
    /* Release: who sees the even number sees all of the change. */
    atomic_store_explicit(&engine->version, (version | 1) + 1, memory_order_release);
}

void ss_wait_for_lookers(struct ss_engine *engine);

/* With the turn, between two events that run in place: one after the other they leave hardly an instant
 * in which the state is whole. Who looks gets one, if he is quick. */
static inline void ss_let_look(struct ss_engine *engine)
{
    /* Relaxed: behind the fence of run_range_in_place, which pairs with that of ss_engine_look. */
    if (SS_UNLIKELY(atomic_load_explicit(&engine->looking, memory_order_relaxed) != 0))
        ss_wait_for_lookers(engine);
}

#endif
