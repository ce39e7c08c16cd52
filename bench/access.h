/* Access to the state as compiled operators have it (specstream/compiler/backend/memory.py): the first probe of
 * the redo log's index, appending to the read log, the redo log and the undo log stand here, and only
 * the rest is a call. For what is written in C and to be compared with compiled operators. */
#ifndef SPECSTREAM_BENCH_ACCESS_H
#define SPECSTREAM_BENCH_ACCESS_H

#include "specstream.h"

#define INLINE static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What stays the same while an entry runs. */
struct fixed {
    uint64_t *state;
    struct ss_slot *slots;
    uint64_t slot_mask;
    uint64_t epoch_key;
    struct ss_write *redo;
    uint64_t redo_limit;
    struct ss_read *read_end;
};

INLINE struct fixed fixed_of(const struct ss_run *run)
{
    return (struct fixed){
        .state = run->state,
        .slots = run->slots,
        .slot_mask = run->slot_mask,
        .epoch_key = run->epoch_key,
        .redo = run->redo,
        .redo_limit = run->redo_limit,
        .read_end = run->read_end,
    };
}

/* The shift keeps the sign, as Python's does. */
INLINE uint64_t scramble(uint64_t x)
{
    return (x ^ (uint64_t)((int64_t)x >> 32)) * UINT64_C(6364136223846793005);
}

/* As ss_index_hash, which is not inlined; a test has each find what the other has stored. */
INLINE struct ss_slot *first_slot(const struct fixed *fixed, uint64_t word)
{
    return &fixed->slots[(word ^ (word >> 11)) & fixed->slot_mask];
}

/* Of an earlier epoch. The age of a word with pending deltas is 1: neither found nor empty, C knows. */
INLINE bool is_empty(const struct fixed *fixed, uint64_t key)
{
    return (key ^ fixed->epoch_key) >> 32 > 1;
}

INLINE uint64_t *value_in(const struct fixed *fixed, const struct ss_slot *slot)
{
    return (uint64_t *)fixed->redo + slot->position + 1;
}

INLINE bool load_transactional(const struct fixed *fixed, struct ss_run *run, uint64_t word,
                               uint64_t *value)
{
    struct ss_slot *slot = first_slot(fixed, word);
    uint64_t key = slot->key;
    if (LIKELY(is_empty(fixed, key) && run->read_top != fixed->read_end)) {
        /* Relaxed: one load, as the head may write the word; validation orders it. */
        *value = __atomic_load_n(&fixed->state[word], __ATOMIC_RELAXED);
        *run->read_top++ = (struct ss_read){.word = word, .value = *value};
        return true;
    }
    if (key == (fixed->epoch_key | word)) {
        *value = *value_in(fixed, slot);
        return true;
    }
    *value = ss_load(run, word);
    return run->verdict == SS_COMPLETED;
}

INLINE bool store_transactional(const struct fixed *fixed, struct ss_run *run, uint64_t word,
                                uint64_t value)
{
    struct ss_slot *slot = first_slot(fixed, word);
    uint64_t key = slot->key;
    if (key == (fixed->epoch_key | word)) {
        *value_in(fixed, slot) = value;
        return true;
    }
    if (LIKELY(is_empty(fixed, key) && run->redo_count != fixed->redo_limit)) {
        *slot = (struct ss_slot){.key = fixed->epoch_key | word, .position = 2 * run->redo_count};
        fixed->redo[run->redo_count++] = (struct ss_write){.word = word, .value = value};
        return true;
    }
    ss_store(run, word, value);
    return run->verdict == SS_COMPLETED;
}

INLINE bool store_plain(const struct fixed *fixed, struct ss_run *run, uint64_t word,
                        uint64_t value)
{
    uint64_t *address = &fixed->state[word];
    if (UNLIKELY(run->undo_top == run->undo_end) && !ss_undo_grow(run))
        return false;
    *run->undo_top++ = (struct ss_undo){.address = address, .value = *address};
    /* Relaxed: atomic for the speculators that read at the same moment. */
    __atomic_store_n(address, value, __ATOMIC_RELAXED);
    return true;
}

#endif
