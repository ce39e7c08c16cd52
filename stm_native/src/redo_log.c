/* The redo log and its index.
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
 * Compiled code inlines the case where the first probe decides (specstream/compiler/access.py must
 * agree with `hash` below); it calls the functions here for the rest.
 */
#include <string.h>

#include "internal.h"

static inline uint64_t hash(uint64_t word)
{
    return word ^ (word >> 11);
}

void ss_redo_begin(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_run *run = &worker->run;
    if (SS_UNLIKELY(++worker->epoch == 0)) {
        memset(run->slots, 0, (run->slot_mask + 1) * sizeof *run->slots);
        worker->epoch = 1;
    }
    run->epoch_key = (uint64_t)worker->epoch << 32;
    run->redo = transaction->redo;
    run->redo_count = 0;
}

/* The slot that holds `word`, or the empty one where it belongs. The table has four times as many
 * slots as the log has entries, so there is always an empty one. */
struct ss_slot *ss_redo_find(struct ss_run *run, uint64_t word)
{
    uint64_t key = run->epoch_key | word;
    uint64_t at = hash(word) & run->slot_mask;
    for (;;) {
        struct ss_slot *slot = &run->slots[at];
        if (slot->key == key || (slot->key ^ run->epoch_key) >> 32 != 0)
            return slot;
        at = (at + 1) & run->slot_mask;
    }
}

uint64_t ss_load(struct ss_run *run, uint64_t word)
{
    assert(word < run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative)
        return ss_word_read(&run->state[word]);
    struct ss_slot *slot = ss_redo_find(run, word);
    if (slot->key == (run->epoch_key | word))
        return run->redo[slot->position].value;
    uint64_t value = ss_word_read(&run->state[word]);
    if (SS_UNLIKELY(run->read_top == run->read_end)) {
        run->verdict = SS_LOG_FULL;
        return value;
    }
    *run->read_top++ = (struct ss_read){word, value};
    return value;
}

void ss_store(struct ss_run *run, uint64_t word, uint64_t value)
{
    assert(word < run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative) {
        uint64_t *address = &run->state[word];
        if (run->undo_top == run->undo_end && !ss_undo_grow(run))
            return;
        *run->undo_top++ = (struct ss_undo){address, ss_word_read(address)};
        ss_word_write(address, value);
        return;
    }
    struct ss_slot *slot = ss_redo_find(run, word);
    if (slot->key == (run->epoch_key | word)) {
        run->redo[slot->position].value = value;
        return;
    }
    if (SS_UNLIKELY(run->redo_count == run->redo_limit)) {
        run->verdict = SS_LOG_FULL;
        return;
    }
    *slot = (struct ss_slot){run->epoch_key | word, run->redo_count};
    run->redo[run->redo_count++] = (struct ss_write){word, value};
}

void ss_redo_publish(struct ss_engine *engine, const struct ss_transaction *transaction)
{
    assert(ss_turn_is_held(engine)); /* invariant 1: the state is changed by the head only */
    uint64_t *state = engine->config.state;
    const struct ss_write *end = transaction->redo + transaction->redo_count;
    for (const struct ss_write *write = transaction->redo; write != end; write++)
        ss_word_write(&state[write->word], write->value);
}
