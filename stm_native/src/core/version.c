/* The version of the committed state.
 *
 * It is odd while whoever holds the turn changes the state: publishes a run, or runs events in place. Who looks
 * without the turn (look.c) reads it before and after. */
#include "core/version.h"

#include <stdatomic.h>

#include "core/engine.h"
#include "processor/processor.h"

enum { WAIT_FOR_LOOKERS = 64 };

void ss_wait_for_lookers(struct ss_engine *engine)
{
    /* Relaxed: a hint; who has not finished tries once more. */
    for (int i = 0; i < WAIT_FOR_LOOKERS; i++) {
        if (atomic_load_explicit(&engine->looking, memory_order_relaxed) == 0)
            return;
        ss_relax();
    }
}
