/* Finished runs that are looked at again before they are the head. */
#ifndef SPECSTREAM_REVALIDATION_H
#define SPECSTREAM_REVALIDATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/engine.h"

struct ss_worker;

/* With the turn: `head` has read what has changed since, and is about to run again. Those that have finished
 * behind it become doubtful. */
void ss_doubt_behind(const struct ss_worker *worker, int64_t head);
static inline bool ss_has_doubtful(struct ss_engine *engine)
{
    /* Relaxed: a hint; the exchange of the status decides. */
    return atomic_load_explicit(&engine->next_doubtful, memory_order_relaxed) <
           atomic_load_explicit(&engine->last_doubtful, memory_order_relaxed);
}
/* Looks at the next doubtful one; false: there is none. `number`: it is dropped, its slot is RUNNING and the
 * caller's, who has to run it; -1: it holds, and has finished as before. */
bool ss_revalidate_one(struct ss_worker *worker, int64_t *number);

#endif
