/* Commutative updates: add, minimum and maximum.
 *
 * An update whose result nobody looks at need not know what it is applied to. A speculative run logs
 * it as a *delta*, an entry of the redo log that holds an operand in place of a value, and reads
 * nothing. The head applies the deltas of a transaction one by one when it publishes, to the values
 * that are then committed: what the sequential run would have done, in its order, float sums bit for
 * bit. So two transactions that only update a word never conflict.
 *
 * In the log. Several deltas to one word are several entries; adding up their operands would round
 * differently, and hide that a narrow integer overflows in between. Of wide integers, which wrap,
 * it does neither: there an update like the last one joins its entry. Entries are applied in the order
 * of the log, so only finding them needs more than a store does. The slot of their word is marked
 * *pending* and holds the place of the last one; the entries are linked in a ring, the last one to
 * the first. Where elements are narrow, the ring is that of a word: it may hold stores to other
 * elements as well.
 *
 * Looking at the element after all, or storing to it, *settles* the ring: the element is read like
 * any other, the deltas are applied to it, and one entry that stores the result stands for all.
 * From then on it is a read and a write, with a conflict like every other. A delta to an element that
 * the run has stored to is applied to the store at once.
 *
 * A sum that a narrow integer cannot hold raises, and that shows only when the head applies it: a
 * transaction whose deltas do not fit is dropped like one that has raised, and run in place.
 *
 * Protocol `eager`: a delta locks nothing, at the access; publication gives the records of its
 * words a new version, as for an event that ran in place (eager.c). */
#include "delta.h"

#include <assert.h>
#include <string.h>

#include "engine.h"
#include "narrow.h"
#include "ranges.h"
#include "redo_log.h"
#include "specstream.h"
#include "state_words.h"
#include "transaction.h"
#include "worker.h"

enum { MOST_ENTRIES = 1 << 19 }; /* that `next` can tell apart */

static const uint64_t nan_bits = UINT64_C(0x7ff8000000000000);
static const uint32_t narrow_nan_bits = UINT32_C(0x7fc00000);

static enum ss_number number_of(uint32_t delta)
{
    return (enum ss_number)((delta - SS_FIRST_DELTA) % 3);
}

static enum ss_operation operation_of(uint32_t delta)
{
    return (enum ss_operation)((delta - SS_FIRST_DELTA) / 3);
}

static bool is_delta(const struct ss_write *write)
{
    return write->delta >= SS_FIRST_DELTA && write->delta <= SS_LAST_DELTA;
}

static struct ss_unit unit_of(const struct ss_write *write)
{
    uint32_t shift = write->bytes == 0 ? 0 : 8 * (uint32_t)__builtin_ctz(write->bytes);
    return (struct ss_unit){write->word, write->bytes, shift};
}

static bool overlaps(const struct ss_write *write, struct ss_unit unit)
{
    return unit.bytes == 0 || (write->bytes & unit.bytes) != 0;
}

/* ---- arithmetic: what the oracle does ---- */

/* Bits of an element. */
static uint32_t width(struct ss_unit unit)
{
    return unit.bytes == 0 ? 64 : 8 * (uint32_t)__builtin_popcount(unit.bytes);
}

static double combine_floats(enum ss_operation operation, double own, double given)
{
    switch (operation) {
    case SS_MINIMUM:
        return given < own ? given : own;
    case SS_MAXIMUM:
        return given > own ? given : own;
    default:
        return own + given;
    }
}

static uint64_t apply_float(enum ss_operation operation, bool is_narrow, uint64_t own_bits,
                            uint64_t operand)
{
    double own, given;
    float narrow;
    uint32_t narrow_bits = (uint32_t)own_bits;
    memcpy(&given, &operand, sizeof given);
    if (is_narrow) {
        memcpy(&narrow, &narrow_bits, sizeof narrow);
        own = narrow;
    } else {
        memcpy(&own, &own_bits, sizeof own);
    }
    double result = combine_floats(operation, own, given);
    if (result != result) /* which NaN it is would be the processor's choice */
        return is_narrow ? narrow_nan_bits : nan_bits;
    if (!is_narrow) {
        memcpy(&own_bits, &result, sizeof result);
        return own_bits;
    }
    narrow = (float)result;
    memcpy(&narrow_bits, &narrow, sizeof narrow);
    return narrow_bits;
}

/* The wide types wrap, of the narrow ones those that do not hold the result: false. */
static bool apply_integer(uint32_t delta, uint32_t bits, uint64_t own, uint64_t given,
                          uint64_t *result)
{
    bool is_signed = number_of(delta) == SS_SIGNED;
    uint64_t sign = UINT64_C(1) << (bits - 1);
    if (is_signed)
        own = (own ^ sign) - sign;
    /* Whatever is narrow is an int64 once it is read. */
    bool is_less = is_signed || bits < 64 ? (int64_t)given < (int64_t)own : given < own;
    switch (operation_of(delta)) {
    case SS_MINIMUM:
        *result = is_less ? given : own;
        break;
    case SS_MAXIMUM:
        *result = is_less ? own : given;
        break;
    default:
        *result = own + given;
    }
    if (bits == 64)
        return true;
    uint64_t kept = *result & (sign * 2 - 1);
    uint64_t widened = is_signed ? (kept ^ sign) - sign : kept;
    bool fits = widened == *result;
    *result = kept;
    return fits;
}

static bool apply(struct ss_unit unit, uint32_t delta, uint64_t operand, uint64_t *word)
{
    uint64_t own = ss_extract(*word, unit);
    uint64_t result;
    if (number_of(delta) == SS_FLOAT)
        result = apply_float(operation_of(delta), unit.bytes != 0, own, operand);
    else if (!apply_integer(delta, width(unit), own, operand, &result))
        return false;
    *word = ss_merge(*word, unit.bytes, result << unit.shift);
    return true;
}

bool ss_delta_apply(const struct ss_write *delta, uint64_t *word)
{
    return apply(unit_of(delta), delta->delta, delta->value, word);
}

/* ---- rings of entries ---- */

/* Puts an entry behind those of its word that the slot knows; false: the run passes its limit. */
static bool append(struct ss_run *run, struct ss_slot *slot, struct ss_write write)
{
    uint64_t position = run->redo_count;
    bool is_first = ss_slot_is_empty(run, slot);
    if (position == run->redo_limit || position >= MOST_ENTRIES) {
        run->verdict = SS_LOG_FULL;
        return false;
    }
    write.is_last = 1;
    write.next = (uint32_t)position;
    if (!is_first) {
        struct ss_write *last = ss_slot_entry(run, slot);
        bool is_pending = (slot->key & SS_PENDING) != 0;
        write.next = is_pending ? last->next : (uint32_t)(slot->position / 2);
        last->next = (uint32_t)position;
        last->is_last = 0;
    }
    *slot = (struct ss_slot){run->epoch_key | SS_PENDING | write.word, 2 * position};
    run->redo[run->redo_count++] = write;
    run->delta_count++;
    return true;
}

/* The last entry of a pending word that is about an element; NULL: none is. */
static struct ss_write *last_about(struct ss_run *run, const struct ss_slot *slot,
                                   struct ss_unit unit)
{
    struct ss_write *last = ss_slot_entry(run, slot);
    if (overlaps(last, unit))
        return last;
    struct ss_write *found = NULL;
    for (struct ss_write *entry = &run->redo[last->next]; entry != last;
         entry = &run->redo[entry->next])
        if (overlaps(entry, unit))
            found = entry;
    return found;
}

/* One entry of a ring, applied to what the earlier ones have made of the word. `known`: the bytes
 * that are in it; others are read first. */
static bool settle_entry(struct ss_run *run, const struct ss_write *entry, ss_reader read,
                         uint64_t *word, uint32_t *known)
{
    struct ss_unit unit = unit_of(entry);
    uint32_t bytes = unit.bytes == 0 ? UINT8_MAX : unit.bytes;
    if (!is_delta(entry)) {
        *word = ss_merge(*word, unit.bytes, entry->value);
        *known |= bytes;
        return true;
    }
    if ((*known & bytes) == 0) {
        uint64_t before = read(run, unit);
        if (run->verdict != SS_COMPLETED)
            return false;
        *word = ss_merge(*word, unit.bytes, before);
        *known |= bytes;
    }
    if (ss_delta_apply(entry, word))
        return true;
    run->verdict = SS_RAISED;
    return false;
}

/* Makes one store of all that is pending for a word; false: the run ends. */
static bool settle(struct ss_run *run, struct ss_slot *slot, ss_reader read)
{
    struct ss_write *last = ss_slot_entry(run, slot);
    struct ss_write *entry = &run->redo[last->next];
    bool is_whole = last->bytes == 0;
    uint64_t word = 0;
    uint32_t known = 0;
    for (;; entry = &run->redo[entry->next]) {
        if (!settle_entry(run, entry, read, &word, &known))
            return false;
        if (entry == last)
            break;
        entry->delta = SS_SETTLED;
    }
    *last = (struct ss_write){
        .word = last->word, .bytes = is_whole ? 0 : known & UINT8_MAX, .value = word};
    slot->key &= ~SS_PENDING;
    return true;
}

const struct ss_write *ss_delta_find(struct ss_run *run, struct ss_slot *slot, struct ss_unit unit,
                                     ss_reader read)
{
    const struct ss_write *entry = last_about(run, slot, unit);
    if (entry == NULL || !is_delta(entry))
        return entry;
    return settle(run, slot, read) ? ss_slot_entry(run, slot) : NULL;
}

bool ss_delta_store(struct ss_run *run, struct ss_slot *slot, struct ss_unit unit, uint64_t value,
                    ss_reader read)
{
    struct ss_write *entry = last_about(run, slot, unit);
    if (entry == NULL)
        return append(run, slot, ss_store_entry(unit, value));
    if (is_delta(entry)) {
        settle(run, slot, read);
        return false;
    }
    entry->value = ss_merge(entry->value, unit.bytes, value << unit.shift);
    return true;
}

void ss_delta_log(struct ss_run *run, struct ss_unit unit, uint32_t delta, uint64_t operand)
{
    struct ss_slot *slot = ss_redo_find(run, unit.word);
    if (slot->key == (run->epoch_key | unit.word) && unit.bytes == 0) {
        if (!apply(unit, delta, operand, ss_slot_value(run, slot)))
            run->verdict = SS_RAISED;
        return;
    }
    if (!ss_slot_is_empty(run, slot)) {
        bool is_pending = (slot->key & SS_PENDING) != 0;
        struct ss_write *own = ss_slot_entry(run, slot);
        if (is_pending)
            own = last_about(run, slot, unit);
        if (own != NULL && !is_delta(own) && overlaps(own, unit)) {
            if (!apply(unit, delta, operand, &own->value))
                run->verdict = SS_RAISED;
            return;
        }
        /* Of wide integers two updates are one, in whatever order they are put together. */
        if (own != NULL && unit.bytes == 0 && own->bytes == 0 && own->delta == (delta & 15) &&
            number_of(delta) != SS_FLOAT) {
            apply(unit, delta, operand, &own->value);
            return;
        }
    }
    struct ss_write write = {.word = (uint32_t)unit.word, .bytes = unit.bytes, .value = operand};
    write.delta = delta & 15;
    append(run, slot, write);
}

void ss_delta(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t delta, uint64_t operand)
{
    struct ss_unit unit = ss_unit_at(byte, size);
    assert(unit.word < run->worker->engine->config.state_words); /* invariant 5 */
    if (run->speculative) {
        ss_delta_log(run, unit, (uint32_t)delta, operand);
        return;
    }
    uint64_t word = ss_word_read(&run->state[unit.word]);
    if (apply(unit, (uint32_t)delta, operand, &word))
        ss_store_in_place(run, unit, ss_extract(word, unit));
    else
        run->verdict = SS_RAISED;
}

/* ---- the head ---- */

bool ss_delta_chain(const struct ss_engine *engine, const struct ss_transaction *transaction,
                    const struct ss_write *last, uint64_t *word, uint32_t *bytes)
{
    const struct ss_write *log = transaction->redo;
    *word = ss_word_read(&engine->state[last->word]);
    *bytes = 0;
    for (const struct ss_write *entry = &log[last->next];; entry = &log[entry->next]) {
        *bytes |= entry->bytes;
        if (!is_delta(entry))
            *word = ss_merge(*word, entry->bytes, entry->value);
        else if (!ss_delta_apply(entry, word))
            return false;
        if (entry == last)
            return true;
    }
}

bool ss_delta_fits(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    const struct ss_write *log = transaction->redo;
    if (transaction->delta_count == 0)
        return true;
    for (uint64_t i = 0; i < transaction->redo_count; i += ss_redo_step(&log[i])) {
        const struct ss_write *last = &log[i];
        if (last->is_last == 0 || last->bytes == 0)
            continue;
        uint64_t word;
        uint32_t bytes;
        if (!ss_delta_chain(engine, transaction, last, &word, &bytes))
            return false;
    }
    return true;
}
