/* The index of the redo log.
 *
 * Everyone but the head writes to a private redo log. A load must find an earlier store of its own
 * transaction, and a linear search of the log made long transactions quadratic; so each worker has
 * an index, an open-addressing hash table from word to log position. Three properties matter:
 *
 * - Beginning a transaction must be cheap: the key of an entry carries the worker's epoch, and an
 *   entry of an earlier epoch counts as empty. Only when 32 bits of epochs are used up is the
 *   table really cleared.
 * - The index belongs to the worker, the log to the transaction: the index stays in the worker's
 *   cache, and the committer reads a log that is dense and in order.
 * - Neighbouring words share cache lines of the index, as they share those of the state: the hash
 *   keeps the low bits and only folds the high ones in.
 *
 * The index is keyed by word also where the elements are narrow: one entry collects the stores to all
 * elements of its word, and says which bytes it has.
 *
 * Words that are stored together are one entry (ranges.c), and each has a slot of its own all the same:
 * only so does the first probe tell that a word is not the state's. A slot says where the value lies,
 * wherever that is: hence it counts in words of the log, not in entries.
 *
 * Compiled code inlines the case where the first probe decides (specstream/compiler/backend/memory.py, which
 * must agree with ss_index_hash); it calls the functions here for the rest.
 */
#include "core/redo_index.h"

#include <assert.h>
#include <stddef.h>

#include "core/narrow.h"
#include "specstream.h"

static inline uint64_t hash(uint64_t word)
{
    return word ^ (word >> 11);
}

/* Not what `find` calls: a function that others see is not inlined into a shared library. */
uint64_t ss_index_hash(uint64_t word)
{
    return hash(word);
}

/* The slot that holds `word`, pending or not, or the empty one where it belongs. The table has four
 * times as many slots as the log has entries, and an entry holds two words at most: there is always
 * an empty one. */
static inline struct ss_slot *find(const struct ss_run *run, uint64_t word)
{
    uint64_t key = run->epoch_key | word;
    uint64_t at = hash(word) & run->slot_mask;
    for (;;) {
        struct ss_slot *slot = &run->slots[at];
        if ((slot->key & ~SS_PENDING) == key || ss_slot_is_empty(run, slot))
            return slot;
        at = (at + 1) & run->slot_mask;
    }
}

struct ss_slot *ss_redo_find(struct ss_run *run, uint64_t word)
{
    return find(run, word);
}

void ss_redo_mark(struct ss_run *run, uint64_t word, uint64_t count)
{
    uint64_t position = 2 * run->redo_count + 1;
    for (uint64_t i = word; i < word + count; i++)
        *find(run, i) = (struct ss_slot){run->epoch_key | i, position++};
}

uint64_t *ss_redo_find_range(struct ss_run *run, uint64_t word, uint64_t count)
{
    uint64_t position = find(run, word)->position;
    /* From the last one on: most that are not there end where nothing was stored, or elsewhere. */
    for (uint64_t i = count; i-- > 0;) {
        const struct ss_slot *slot = find(run, word + i);
        if (slot->key != (run->epoch_key | (word + i)) || slot->position != position + i)
            return NULL;
    }
    return (uint64_t *)run->redo + position + 1;
}

void ss_redo_merge(struct ss_run *run, const struct ss_slot *slot, struct ss_unit unit,
                   uint64_t value)
{
    struct ss_write *write = ss_slot_entry(run, slot);
    assert(write->bytes != 0); /* the word is never accessed as a whole */
    write->value = ss_merge(write->value, unit.bytes, value << unit.shift);
    write->bytes |= unit.bytes;
}
