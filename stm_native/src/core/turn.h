/* The turn: the right to commit. */
#ifndef SPECSTREAM_TURN_H
#define SPECSTREAM_TURN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/engine.h"

/* The invariants of docs/contributing/architecture.md, checked where NDEBUG is not set: in the stress programs. */
static inline bool ss_turn_is_held(struct ss_engine *engine)
{
    /* Relaxed: whoever asserts it holds it. */
    return atomic_load_explicit(&engine->turn, memory_order_relaxed) == 1;
}

bool ss_try_turn(struct ss_engine *engine);
/* Whether workers are to leave the turn to a thread outside the pool. */
bool ss_reader_comes_first(struct ss_engine *engine);
void ss_release_turn(struct ss_engine *engine);
/* A reader outside the pool wants the state to stand still between two events of a long in-place
 * run. The transaction stays ours (IN_PLACE), so nobody else can advance the head meanwhile. */
void ss_lend_turn(struct ss_engine *engine);

#endif
