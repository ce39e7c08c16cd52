/* The operator `updates` of bench/workloads.py as one would write it in C.
 *
 * It shows what the runtime itself can do: whatever a compiled operator reaches less than this is the
 * compiler's doing. So every variant accesses the state exactly as compiled operators do
 * (specstream/compiler/backend/memory.py): the first probe of the redo log's index, appending to the read
 * log, the redo log and the undo log stand here, and only the rest is a call.
 *
 * An event (value, rounds) turns a busy loop, then adds one to as many words as the entry is made
 * for; a hash of the value says which. It emits what the busy loop came to. */
#include "../access.h"

enum { STATE_WORDS = 1 << 20 }; /* 8 MB; see UPDATED_WORDS */
enum { ROW_WORDS = 2 };         /* the event's row, and one value */

INLINE bool in_place(enum ss_variant variant)
{
    return variant != SS_TRANSACTIONAL && variant != SS_EAGER;
}

/* What compiled code does in each loop of a speculative run. */
INLINE bool killed(struct ss_run *run, enum ss_variant variant)
{
    if (in_place(variant) || LIKELY(__atomic_load_n(&run->kill, __ATOMIC_RELAXED) == 0))
        return false;
    return ss_poll(run);
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
    const int64_t *values = run->columns[0], *rounds = run->columns[1];
    uint64_t busy = (uint64_t)values[row];
    uint64_t at = busy;
    for (int64_t round = rounds[row]; round > 0; round--) {
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
    const struct fixed fixed = fixed_of(run);
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
        if (variant != SS_EAGER && UNLIKELY(__atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0))
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

/* For a test: what the entries do, one access at a time. */
uint64_t speed_load(struct ss_run *run, uint64_t word)
{
    struct fixed fixed = fixed_of(run);
    uint64_t value = 0;
    load_transactional(&fixed, run, word, &value);
    return value;
}

void speed_store(struct ss_run *run, uint64_t word, uint64_t value)
{
    struct fixed fixed = fixed_of(run);
    store_transactional(&fixed, run, word, value);
}
