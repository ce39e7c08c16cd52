/* The redo log.
 *
 * Everyone but the head writes to a private redo log; the head writes in place, and notes what was there
 * before. Where compiled code cannot tell by itself, it calls the functions here: the cases that its first
 * look into the index does not decide (redo_index.c), elements narrower than a word, and counters. */
#include "core/redo_log.h"

#include <assert.h>
#include <string.h>

#include "containers/keyed_changes.h"
#include "core/engine.h"
#include "core/narrow.h"
#include "core/ranges.h"
#include "core/redo_index.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/undo_log.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "protocols/counter_prediction.h"
#include "protocols/delta.h"
#include "specstream.h"

void ss_redo_begin(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_run *run = &worker->run;
    if (SS_UNLIKELY((worker->epoch += 2) == 0)) {
        memset(run->slots, 0, (run->slot_mask + 1) * sizeof *run->slots);
        worker->epoch = 2;
    }
    run->epoch_key = (uint64_t)worker->epoch << 32;
    worker->transaction = transaction;
    run->redo = transaction->redo;
    run->redo_count = 0;
    run->delta_count = 0;
    ss_changes_begin(worker);
    if (SS_UNLIKELY(ss_predicts(worker->engine->counters)))
        ss_prediction_begin(transaction);
}

const struct ss_write *ss_redo_find_unit(struct ss_run *run, struct ss_unit unit, ss_reader read)
{
    struct ss_slot *slot = ss_redo_find(run, unit.word);
    if (slot->key == (run->epoch_key | SS_PENDING | unit.word))
        return ss_delta_find(run, slot, unit, read);
    if (slot->key != (run->epoch_key | unit.word))
        return NULL;
    const struct ss_write *own = ss_slot_entry(run, slot);
    return (own->bytes & unit.bytes) != 0 ? own : NULL;
}

static uint64_t read_word(struct ss_run *run, struct ss_unit unit)
{
    uint64_t value = ss_word_read(&run->state[unit.word]);
    if (SS_UNLIKELY(run->read_top == run->read_end))
        run->verdict = SS_LOG_FULL;
    else
        *run->read_top++ =
            (struct ss_read){(uint32_t)unit.word, (uint16_t)unit.bytes, run->site, value};
    return value;
}

uint64_t ss_load(struct ss_run *run, uint64_t word)
{
    assert(word < run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative)
        return ss_word_read(&run->state[word]);
    struct ss_slot *slot = ss_redo_find(run, word);
    if (slot->key == (run->epoch_key | word))
        return *ss_slot_value(run, slot);
    struct ss_unit whole = ss_unit_at(8 * word, 8);
    if (slot->key == (run->epoch_key | SS_PENDING | word)) {
        const struct ss_write *settled = ss_delta_find(run, slot, whole, read_word);
        return settled != NULL ? settled->value : 0;
    }
    return read_word(run, whole);
}

uint64_t ss_load_bytes(struct ss_run *run, uint64_t byte, uint64_t size)
{
    struct ss_unit unit = ss_unit_at(byte, size);
    assert(unit.word < run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative)
        return ss_extract(ss_word_read(&run->state[unit.word]), unit);
    const struct ss_write *own = ss_redo_find_unit(run, unit, read_word);
    return ss_extract(own != NULL ? own->value : read_word(run, unit), unit);
}

void ss_store(struct ss_run *run, uint64_t word, uint64_t value)
{
    assert(word < run->worker->engine->config.state_words); /* invariant 5 */
    struct ss_unit whole = ss_unit_at(8 * word, 8);
    if (!run->speculative) {
        ss_store_in_place(run, whole, value);
        return;
    }
    struct ss_slot *slot = ss_redo_find(run, word);
    if (slot->key == (run->epoch_key | SS_PENDING | word) &&
        (ss_delta_store(run, slot, whole, value, read_word) || run->verdict != SS_COMPLETED))
        return;
    if (slot->key == (run->epoch_key | word)) {
        *ss_slot_value(run, slot) = value;
        return;
    }
    if (SS_UNLIKELY(run->redo_count == run->redo_limit)) {
        run->verdict = SS_LOG_FULL;
        return;
    }
    ss_redo_append(run, slot, ss_store_entry(whole, value));
}

void ss_store_bytes(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t value)
{
    struct ss_unit unit = ss_unit_at(byte, size);
    assert(unit.word < run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative) {
        ss_store_in_place(run, unit, value);
        return;
    }
    struct ss_slot *slot = ss_redo_find(run, unit.word);
    if (slot->key == (run->epoch_key | SS_PENDING | unit.word) &&
        (ss_delta_store(run, slot, unit, value, read_word) || run->verdict != SS_COMPLETED))
        return;
    if (slot->key == (run->epoch_key | unit.word)) {
        ss_redo_merge(run, slot, unit, value);
        return;
    }
    if (SS_UNLIKELY(run->redo_count == run->redo_limit)) {
        run->verdict = SS_LOG_FULL;
        return;
    }
    ss_redo_append(run, slot, ss_store_entry(unit, value));
}

uint64_t ss_increment(struct ss_run *run, uint64_t word)
{
    assert(word < run->worker->engine->config.state_words); /* invariant 5 */
    if (run->speculative)
        return ss_predict_increment(run, word, read_word);
    uint64_t value = ss_word_read(&run->state[word]) + 1;
    ss_store_in_place(run, ss_unit_at(8 * word, 8), value);
    return value;
}

void ss_redo_publish(uint64_t *state, const struct ss_transaction *transaction)
{
    const struct ss_write *end = transaction->redo + transaction->redo_count;
    for (const struct ss_write *write = transaction->redo; write != end; write++) {
        uint64_t value = write->value;
        if (SS_UNLIKELY(write->delta == SS_SETTLED || write->delta == SS_STAMP))
            continue;
        if (SS_UNLIKELY(write->delta == SS_STORED_RANGE)) {
            ss_range_publish(state, write);
            write += ss_range_entries(write->value);
            continue;
        }
        if (SS_UNLIKELY(write->delta != SS_NO_DELTA && write->delta != SS_FORESEEN)) {
            value = ss_word_read(&state[write->word]);
            bool fits = ss_delta_apply(write, &value);
            assert(fits); /* ss_delta_fits has seen to it */
            (void)fits;
        } else if (write->bytes != 0)
            value = ss_merge(ss_word_read(&state[write->word]), write->bytes, value);
        ss_word_write(&state[write->word], value);
    }
}
