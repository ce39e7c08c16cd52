/* The index of the redo log: from words to entries. */
#ifndef SPECSTREAM_REDO_INDEX_H
#define SPECSTREAM_REDO_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/narrow.h"
#include "specstream.h"

/* Set in a slot's key where deltas of its word are pending: the value is not known before they are
 * settled. Compiled code then finds neither the word nor an empty slot, and calls C. */
#define SS_PENDING (UINT64_C(1) << 32)

/* Nobody's: of an earlier epoch. */
static inline bool ss_slot_is_empty(const struct ss_run *run, const struct ss_slot *slot)
{
    return (slot->key ^ run->epoch_key) >> 33 != 0;
}

/* What a slot refers to: the value of a word that the run has stored to. */
static inline uint64_t *ss_slot_value(const struct ss_run *run, const struct ss_slot *slot)
{
    return (uint64_t *)run->redo + slot->position + 1;
}

/* Its entry, of a pending word or of one with narrow elements: these lie in no range. */
static inline struct ss_write *ss_slot_entry(const struct ss_run *run, const struct ss_slot *slot)
{
    return &run->redo[slot->position / 2];
}

/* The slot of the index that holds `word`, deltas pending or not, or the empty one where it belongs. */
struct ss_slot *ss_redo_find(struct ss_run *run, uint64_t word);
/* A word read from the state for the sake of an element of it, and logged as the protocol does; the
 * verdict says whether the run may go on. */
typedef uint64_t (*ss_reader)(struct ss_run *run, struct ss_unit unit);
/* Puts an element into the entry that `slot` refers to. */
void ss_redo_merge(struct ss_run *run, const struct ss_slot *slot, struct ss_unit unit,
                   uint64_t value);
/* A new entry, in an empty slot of the index; the log has room. */
static inline void ss_redo_append(struct ss_run *run, struct ss_slot *slot, struct ss_write write)
{
    *slot = (struct ss_slot){run->epoch_key | write.word, 2 * run->redo_count};
    run->redo[run->redo_count++] = write;
}
static inline struct ss_write ss_store_entry(struct ss_unit unit, uint64_t value)
{
    return (struct ss_write){
        .word = (uint32_t)unit.word, .bytes = unit.bytes, .value = value << unit.shift};
}
/* Where neighbouring words lie one behind the other in the log; NULL: they do not. */
uint64_t *ss_redo_find_range(struct ss_run *run, uint64_t word, uint64_t count);
/* Has the slots of neighbouring words refer to the range whose head is the next entry of the log. */
void ss_redo_mark(struct ss_run *run, uint64_t word, uint64_t count);

#endif
