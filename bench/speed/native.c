/* The operator `updates` of bench/workloads.py as one would write it in C.
 *
 * It shows what the runtime itself can do: whatever a compiled operator reaches less than this is the
 * compiler's doing. So every variant accesses the state exactly as compiled operators do
 * (specstream/compiler/memory.py): the first probe of the redo log's index, appending to the read
 * log, the redo log and the undo log stand here, and only the rest is a call.
 *
 * An event (value, rounds) turns a busy loop, then adds one to as many words as the entry is made
 * for; a hash of the value says which. It emits what the busy loop came to. */
#include "specstream.h"

#define INLINE static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { STATE_WORDS = 1 << 20 }; /* 8 MB; see UPDATED_WORDS */
enum { ROW_WORDS = 2 };         /* the event's row, and one value */

/* What stays the same while an entry runs. */
struct fixed {
    uint64_t *state;
    const int64_t *values;
    const int64_t *rounds;
    struct ss_slot *slots;
    uint64_t slot_mask;
    uint64_t epoch_key;
    struct ss_write *redo;
    uint64_t redo_limit;
    struct ss_read *read_end;
};

/* The shift keeps the sign, as Python's does. */
INLINE uint64_t scramble(uint64_t x)
{
    return (x ^ (uint64_t)((int64_t)x >> 32)) * UINT64_C(6364136223846793005);
}

INLINE bool in_place(enum ss_variant variant)
{
    return variant != SS_TRANSACTIONAL && variant != SS_EAGER;
}

/* What compiled code does in each loop of a speculative run. */
INLINE bool killed(struct ss_run *run, enum ss_variant variant)
{
    if (in_place(variant) || LIKELY(__atomic_load_n(&run->kill, __ATOMIC_RELAXED) == 0))
        return false;
    run->verdict = SS_KILLED;
    return true;
}

INLINE struct ss_slot *first_slot(const struct fixed *fixed, uint64_t word)
{
    return &fixed->slots[(word ^ (word >> 11)) & fixed->slot_mask];
}

INLINE bool load_transactional(const struct fixed *fixed, struct ss_run *run, uint64_t word,
                               uint64_t *value)
{
    struct ss_slot *slot = first_slot(fixed, word);
    uint64_t key = slot->key;
    if (LIKELY((key ^ fixed->epoch_key) >> 32 != 0 && run->read_top != fixed->read_end)) {
        /* Relaxed: one load, as the head may write the word; validation orders it. */
        *value = __atomic_load_n(&fixed->state[word], __ATOMIC_RELAXED);
        *run->read_top++ = (struct ss_read){.word = word, .value = *value};
        return true;
    }
    if (key == (fixed->epoch_key | word)) {
        *value = fixed->redo[slot->position].value;
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
        fixed->redo[slot->position].value = value;
        return true;
    }
    if (LIKELY((key ^ fixed->epoch_key) >> 32 != 0 && run->redo_count != fixed->redo_limit)) {
        *slot = (struct ss_slot){.key = fixed->epoch_key | word, .position = run->redo_count};
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

INLINE bool increment(const struct fixed *fixed, struct ss_run *run, enum ss_variant variant,
                      uint64_t word)
{
    uint64_t value;
    switch (variant) {
    case SS_TRANSACTIONAL:
        return load_transactional(fixed, run, word, &value) &&
               store_transactional(fixed, run, word, value + 1);
    case SS_EAGER:
        value = ss_eager_load(run, word);
        if (run->verdict != SS_COMPLETED)
            return false;
        ss_eager_store(run, word, value + 1);
        return run->verdict == SS_COMPLETED;
    case SS_PLAIN:
        return store_plain(fixed, run, word, fixed->state[word] + 1);
    default:
        fixed->state[word]++;
        return true;
    }
}

INLINE bool emit(struct ss_run *run, uint64_t value)
{
    if (UNLIKELY(run->emit_top + ROW_WORDS > run->emit_end) && !ss_emit_grow(run))
        return false;
    run->emit_top[0] = (uint64_t)run->event;
    run->emit_top[1] = value;
    run->emit_top += ROW_WORDS;
    return true;
}

/* False: it did not complete, and the verdict says why. */
INLINE bool process(const struct fixed *fixed, struct ss_run *run, int64_t row,
                    enum ss_variant variant, int updates)
{
    uint64_t busy = (uint64_t)fixed->values[row];
    uint64_t at = busy;
    for (int64_t round = fixed->rounds[row]; round > 0; round--) {
        if (killed(run, variant))
            return false;
        busy = scramble(busy);
    }
    if (variant == SS_LOCKED)
        ss_lock(run, 0);
    for (int i = 0; i < updates; i++) {
        at = scramble(at);
        if (killed(run, variant) ||
            !increment(fixed, run, variant, (uint64_t)((int64_t)at >> 32) % STATE_WORDS))
            return false;
    }
    if (variant == SS_LOCKED)
        ss_unlock(run, 0);
    return emit(run, busy);
}

INLINE int32_t run_range(int64_t *next, struct ss_run *run, int64_t first, int64_t last,
                         enum ss_variant variant, int updates)
{
    const struct fixed fixed = {
        .state = run->state,
        .values = run->columns[0],
        .rounds = run->columns[1],
        .slots = run->slots,
        .slot_mask = run->slot_mask,
        .epoch_key = run->epoch_key,
        .redo = run->redo,
        .redo_limit = run->redo_limit,
        .read_end = run->read_end,
    };
    int64_t row = first;
    while (row < last) {
        run->event = row;
        run->emit_mark = run->emit_top;
        if (variant == SS_PLAIN)
            run->undo_top = run->undo_base;
        if (!process(&fixed, run, row, variant, updates))
            break;
        row++;
        /* Relaxed: only a hint to return to the runtime, which looks again. */
        if (in_place(variant) && UNLIKELY(__atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0))
            break;
    }
    *next = row;
    return 0;
}

#define ENTRY(variant, name, updates)                                                             \
    static int32_t name##_##updates(int64_t *next, void **fault, struct ss_run *run,              \
                                    int64_t first, int64_t last)                                  \
    {                                                                                             \
        (void)fault;                                                                              \
        return run_range(next, run, first, last, variant, updates);                               \
    }

#define ENTRIES(updates)                                                                          \
    ENTRY(SS_PLAIN, plain, updates)                                                               \
    ENTRY(SS_TRANSACTIONAL, transactional, updates)                                               \
    ENTRY(SS_LOG_FREE, log_free, updates)                                                         \
    ENTRY(SS_LOCKED, locked, updates)                                                             \
    ENTRY(SS_EAGER, eager, updates)                                                               \
    static const ss_entry entries_##updates[SS_VARIANTS] = {                                      \
        [SS_PLAIN] = plain_##updates,       [SS_TRANSACTIONAL] = transactional_##updates,         \
        [SS_LOG_FREE] = log_free_##updates, [SS_LOCKED] = locked_##updates,                       \
        [SS_EAGER] = eager_##updates,                                                             \
    };

/* The number of updates is a constant to the compiler, as it is to the operator's. */
ENTRIES(5)
ENTRIES(20)
ENTRIES(100)

/* NULL: there is none for so many updates. */
ss_entry speed_entry(int updates, enum ss_variant variant)
{
    switch (updates) {
    case 5:
        return entries_5[variant];
    case 20:
        return entries_20[variant];
    case 100:
        return entries_100[variant];
    default:
        return NULL;
    }
}
