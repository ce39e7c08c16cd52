/* The memory of an event's own lists, dicts and sets. */
#ifndef SPECSTREAM_ARENA_H
#define SPECSTREAM_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"
#include "specstream_local.h"

struct ss_arena;

/* A block of so many words or more; NULL: none is to be had, and the run's verdict says why. */
uint64_t *ss_arena_take(struct ss_run *run, uint64_t words);
/* Gives back a block that was taken for so many words. */
void ss_arena_give(struct ss_run *run, uint64_t *block, uint64_t words);

/* What an event, or an operation outside of one, starts with. Compiled code does the same. */
static inline void ss_arena_begin(struct ss_run *run)
{
    if (run->arena_dirty != 0)
        ss_arena_clear(run);
}

/* A worker's arena, where operators of this configuration use one; false: no memory. `bounded`: the
 * limit of speculative runs holds for all that it runs. */
bool ss_arena_open(struct ss_run *run, const struct ss_config *config, bool bounded);
void ss_arena_close(struct ss_run *run);
/* The worker leaves its job: what has grown is given back to the system. */
void ss_arena_shrink(struct ss_run *run);
/* Bytes that a worker's arena holds now; and those that speculative runs can make it hold. */
uint64_t ss_arena_bytes(const struct ss_run *run);
uint64_t ss_arena_most_bytes(const struct ss_config *config);

#endif
