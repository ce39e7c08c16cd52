/* Rows and slices that are read or stored as a whole. */
#ifndef SPECSTREAM_RANGES_H
#define SPECSTREAM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"

struct ss_engine;
struct ss_place;

enum { SS_RANGE = 0x8000 };
/* Entries of a log that hold the words of a range. */
static inline uint64_t ss_range_entries(uint64_t count)
{
    return (count + 1) / 2;
}
/* Entries from one of the redo log to the next one that is not words of a range. */
static inline uint64_t ss_redo_step(const struct ss_write *write)
{
    return write->delta == SS_STORED_RANGE ? 1 + ss_range_entries(write->value) : 1;
}
/* Words that an entry of the redo log is about: neighbours. */
static inline uint64_t ss_redo_words(const struct ss_write *write)
{
    return write->delta == SS_STORED_RANGE ? write->value : 1;
}
/* With the turn: writes the words of a stored range. */
void ss_range_publish(uint64_t *state, const struct ss_write *head);
/* Whether the run has stored to a word of the range; then it is read word by word. */
bool ss_range_is_own(struct ss_run *run, uint64_t word, uint64_t count);
const uint64_t *ss_range_by_words(struct ss_run *run, uint64_t word, uint64_t count);
/* With the turn: whether a range still holds what was read; if not, `conflict` is where. */
bool ss_range_unchanged(const struct ss_engine *engine, const struct ss_read *head,
                        struct ss_place *conflict);

#endif
