/* Dicts and sets of the state: what compiled code calls.
 *
 * In place (the head, and the variants without speculation) an operation works on the words. A
 * speculative run depends on no more than it asks for:
 *
 * - that a key has an entry: on the stamp of that entry. An entry keeps its key as long as it
 *   has its stamp, and no stamp comes twice.
 * - that a key has none: under `value` the read log says so, and the head looks the key up
 *   again. Under `eager` the key has a word of absence, which many keys share; it is read, and
 *   whoever inserts or removes a key stores to its word, always 0.
 * - how many there are, or which: on COUNT, or CHANGES.
 *
 * COUNT is updated unread (delta.c), so two runs that insert different keys do not conflict. */
#include "containers/keyed.h"

#include <assert.h>
#include <stdatomic.h>

#include "containers/keyed_changes.h"
#include "containers/keyed_entries.h"
#include "containers/keyed_index.h"
#include "containers/timer_heap.h"
#include "core/engine.h"
#include "core/narrow.h"
#include "core/protocol.h"
#include "core/redo_index.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/undo_log.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "specstream.h"
#include "specstream_containers.h"

enum { ADD_INT = SS_FIRST_DELTA + 3 * SS_ADD + SS_SIGNED };

static struct ss_keyed *container_of(const struct ss_run *run, uint64_t container)
{
    assert(container < run->worker->engine->config.container_count);
    return &run->keyed[container];
}

/* ---- in place ---- */

static void put(struct ss_run *run, const struct ss_keyed *keyed, uint64_t word, uint64_t value)
{
    if (keyed->undone)
        ss_store_in_place(run, (struct ss_unit){word, 0, 0}, value);
    else
        ss_word_write(&run->state[word], value);
}

static uint64_t header_word(const struct ss_run *run, const struct ss_keyed *keyed, uint64_t at)
{
    return ss_word_read(&run->state[keyed->of.header + at]);
}

static uint64_t next_stamp(struct ss_engine *engine, const struct ss_keyed *keyed)
{
    /* Relaxed: a number is all there is to win. Without locks, only who holds the turn counts. */
    if (SS_UNLIKELY(keyed->locked))
        return __atomic_add_fetch(&engine->stamp, 1, __ATOMIC_RELAXED);
    return ++engine->stamp;
}

/* The last that an operation does. */
static void count_in_place(struct ss_run *run, const struct ss_keyed *keyed, uint64_t hash,
                           uint64_t more, uint64_t stamp)
{
    put(run, keyed, keyed->of.header + SS_HEADER_COUNT,
        header_word(run, keyed, SS_HEADER_COUNT) + more);
    if (SS_UNLIKELY(keyed->eager))
        put(run, keyed, ss_absence_word(keyed, hash), 0);
    /* Whoever sees the number sees what has come or gone. */
    atomic_thread_fence(memory_order_release);
    put(run, keyed, keyed->of.header + SS_HEADER_CHANGES, stamp);
}

static uint64_t insert_in_place(struct ss_run *run, struct ss_keyed *keyed, const uint64_t *key)
{
    struct ss_engine *engine = run->worker->engine;
    uint64_t words = keyed->of.key_words;
    uint64_t hash = ss_hash_key(key, words);
    run->raised = 0;
    if (header_word(run, keyed, SS_HEADER_COUNT) >= keyed->of.limit) {
        run->raised = SS_FULL;
        run->verdict = SS_RAISED;
        return SS_NOWHERE;
    }
    if (keyed->undone && !ss_touch_begin(run))
        return SS_NOWHERE;
    if (!ss_index_reserve(engine, keyed, 1, keyed->undone)) {
        run->verdict = SS_NO_MEMORY;
        return SS_NOWHERE;
    }
    uint64_t entry = ss_entry_take_in_place(run, keyed);
    if (SS_UNLIKELY(entry == SS_NOWHERE)) {
        /* What is removed is not free before that is final: it has to wait until then. */
        assert(engine->early != NULL);
        run->verdict = SS_LOG_FULL;
        return SS_NOWHERE;
    }
    if (SS_UNLIKELY(keyed->before != NULL))
        run->worker->touched.has_grown = true;
    for (uint64_t i = 0; i < words; i++)
        put(run, keyed, entry + SS_KEY_WORD + i, key[i]);
    /* Whoever sees the stamp sees the key. */
    atomic_thread_fence(memory_order_release);
    uint64_t stamp = next_stamp(engine, keyed);
    put(run, keyed, entry + SS_STAMP_WORD, stamp);
    ss_index_enter(keyed, hash, entry);
    count_in_place(run, keyed, hash, 1, stamp);
    return run->verdict == SS_COMPLETED ? entry : SS_NOWHERE;
}

static void remove_in_place(struct ss_run *run, struct ss_keyed *keyed, uint64_t entry)
{
    struct ss_engine *engine = run->worker->engine;
    uint64_t *state = run->state;
    uint64_t stamp = ss_word_read(&state[entry + SS_STAMP_WORD]);
    uint64_t hash = ss_hash_key(&state[entry + SS_KEY_WORD], keyed->of.key_words);
    if (stamp == 0 || (keyed->undone && !ss_touch_begin(run)))
        return;
    put(run, keyed, entry + SS_STAMP_WORD, 0);
    if (!keyed->undone) {
        struct ss_chain chain = {0, 0, 0};
        ss_chain_add(state, &chain, entry);
        ss_entries_give(engine, keyed, &chain, 0);
    } else if (stamp <= run->worker->touched.first_stamp) {
        ss_touch(run, keyed, entry, true);
    }
    count_in_place(run, keyed, hash, UINT64_MAX, next_stamp(engine, keyed));
}

/* ---- a speculative run ---- */

static uint64_t load(struct ss_run *run, uint64_t word)
{
    return run->worker->engine->protocol->load(run, word);
}

static void store(struct ss_run *run, uint64_t word, uint64_t value)
{
    if (run->verdict == SS_COMPLETED)
        run->worker->engine->protocol->store(run, word, value);
}

static bool is_eager(const struct ss_run *run)
{
    return run->worker->engine->protocol->variant == SS_EAGER;
}

/* What the run itself has put in place of a stamp; false: nothing. */
static bool own_stamp(struct ss_run *run, uint64_t entry, uint64_t *stamp)
{
    uint64_t word = entry + SS_STAMP_WORD;
    const struct ss_slot *slot = ss_redo_find(run, word);
    if (slot->key != (run->epoch_key | word))
        return false;
    *stamp = *ss_slot_value(run, slot);
    return true;
}

/* What the index says, once the run depends on it; SS_NOWHERE: no entry, or the run ends. Repeated
 * where another one's commit comes between. */
static uint64_t find_committed(struct ss_run *run, const struct ss_keyed *keyed,
                               const uint64_t *key, uint64_t hash, bool *own)
{
    for (;;) {
        struct ss_found found =
            ss_keyed_look_up(run, keyed, key, keyed->of.key_words, hash);
        if (found.first == SS_NOWHERE)
            return SS_NOWHERE;
        /* Without the fence the stamp could be read before the key that it is to confirm. */
        atomic_thread_fence(memory_order_acquire);
        uint64_t mine;
        *own = own_stamp(run, found.first, &mine);
        if (*own)
            return SS_NOWHERE; /* removed by the run itself, which depends on the entry since */
        if (SS_UNLIKELY(run->worker->engine->early != NULL)) {
            ss_log_presence(run, keyed, key, found.first);
            return run->verdict == SS_COMPLETED ? found.first : SS_NOWHERE;
        }
        if (load(run, found.first + SS_STAMP_WORD) == found.stamp)
            return run->verdict == SS_COMPLETED ? found.first : SS_NOWHERE;
        if (run->verdict != SS_COMPLETED)
            return SS_NOWHERE;
    }
}

static uint64_t find_ahead(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key)
{
    uint64_t hash = ss_hash_key(key, keyed->of.key_words);
    bool own = false;
    uint64_t entry = ss_changes_find(run, keyed, key, hash);
    if (entry != SS_NOWHERE)
        return entry;
    entry = find_committed(run, keyed, key, hash, &own);
    if (entry != SS_NOWHERE || own || run->verdict != SS_COMPLETED)
        return entry;
    if (!is_eager(run)) {
        ss_log_absence(run, keyed, key);
        return SS_NOWHERE;
    }
    load(run, ss_absence_word(keyed, hash));
    if (run->verdict != SS_COMPLETED)
        return SS_NOWHERE;
    /* Only now: what was inserted before the word was read is seen here, and what comes later gives
     * it another version. */
    return find_committed(run, keyed, key, hash, &own);
}

static void count_ahead(struct ss_run *run, const struct ss_keyed *keyed, uint64_t hash,
                        uint64_t more)
{
    uint64_t byte = 8 * (keyed->of.header + SS_HEADER_COUNT);
    if (is_eager(run))
        store(run, ss_absence_word(keyed, hash), 0);
    if (run->verdict != SS_COMPLETED)
        return;
    if (is_eager(run))
        ss_eager_delta(run, byte, 8, ADD_INT, more);
    else
        ss_delta(run, byte, 8, ADD_INT, more);
}

static uint64_t insert_ahead(struct ss_run *run, struct ss_keyed *keyed, const uint64_t *key)
{
    const struct ss_transaction *transaction = run->worker->transaction;
    uint64_t words = keyed->of.key_words;
    uint64_t hash = ss_hash_key(key, words);
    run->raised = 0;
    /* Before the entry is taken: the list is how it is given back. */
    if (transaction->change_count == run->redo_limit) {
        run->verdict = SS_LOG_FULL;
        return SS_NOWHERE;
    }
    uint64_t entry = ss_entry_take(run, keyed);
    if (entry == SS_NOWHERE) {
        run->verdict = SS_LOG_FULL;
        return SS_NOWHERE;
    }
    ss_changes_add(run, keyed, entry, hash, SS_INSERTED);
    for (uint64_t i = 0; i < words; i++)
        store(run, entry + SS_KEY_WORD + i, key[i]);
    store(run, entry + SS_STAMP_WORD, ss_own_stamp | (transaction->change_count - 1));
    if (run->verdict == SS_COMPLETED)
        ss_slot_entry(run, ss_redo_find(run, entry + SS_STAMP_WORD))->delta = SS_STAMP;
    count_ahead(run, keyed, hash, 1);
    return run->verdict == SS_COMPLETED ? entry : SS_NOWHERE;
}

/* A word of an entry's key: its own insertion's, or the state's. */
static uint64_t key_word(struct ss_run *run, uint64_t entry, uint64_t at)
{
    uint64_t word = entry + SS_KEY_WORD + at;
    const struct ss_slot *slot = run->speculative ? ss_redo_find(run, word) : NULL;
    if (slot != NULL && slot->key == (run->epoch_key | word))
        return *ss_slot_value(run, slot);
    return ss_word_read(&run->state[word]);
}

static void remove_ahead(struct ss_run *run, struct ss_keyed *keyed, uint64_t entry)
{
    uint64_t key[SS_MOST_KEY_WORDS] = {0};
    uint64_t stamp = 0;
    bool own = own_stamp(run, entry, &stamp);
    if (own && stamp == 0)
        return;
    for (uint64_t i = 0; i < keyed->of.key_words; i++)
        key[i] = key_word(run, entry, i);
    uint64_t hash = ss_hash_key(key, keyed->of.key_words);
    if (!ss_changes_add(run, keyed, entry, hash, own ? SS_REMOVED_OWN : SS_REMOVED))
        return;
    store(run, entry + SS_STAMP_WORD, 0);
    if (own)
        run->worker->transaction->changes[stamp & ~ss_own_stamp].kind = SS_INSERTED_IN_VAIN;
    count_ahead(run, keyed, hash, UINT64_MAX);
}

/* All that are there, and its own. */
static void clear_ahead(struct ss_run *run, struct ss_keyed *keyed)
{
    const struct ss_container *of = &keyed->of;
    const struct ss_transaction *transaction = run->worker->transaction;
    uint64_t container = (uint64_t)(keyed - run->keyed);
    uint64_t own = transaction->change_count;
    ss_log_walk(run);
    load(run, of->header + SS_HEADER_CHANGES);
    /* As in find_committed: the entries are looked at after the number that stands for them. */
    atomic_thread_fence(memory_order_acquire);
    uint64_t end = of->region + header_word(run, keyed, SS_HEADER_USED) * of->entry_words;
    for (uint64_t entry = of->region; entry < end && run->verdict == SS_COMPLETED;
         entry += of->entry_words)
        if (ss_word_read(&run->state[entry + SS_STAMP_WORD]) != 0)
            remove_ahead(run, keyed, entry);
    for (uint64_t i = 0; i < own && run->verdict == SS_COMPLETED; i++) {
        const struct ss_change *change = &transaction->changes[i];
        if (change->kind == SS_INSERTED && change->container == container)
            remove_ahead(run, keyed, change->entry);
    }
}

/* ---- the operations ---- */

/* Not where other threads may remove it. */
static uint64_t remembered(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key,
                           uint64_t entry)
{
    uint64_t words = keyed->of.key_words;
    if (entry == SS_NOWHERE || words > 2 || keyed->locked)
        return entry;
    run->found_in = (uint64_t)(keyed - run->keyed) + 1;
    run->found_key[0] = key[0];
    run->found_key[1] = key[words - 1];
    run->found_entry = entry;
    return entry;
}

/* Not inlined: it would take registers from the way that most go. */
__attribute__((noinline)) static uint64_t find_otherwise(struct ss_run *run, struct ss_keyed *keyed,
                                                         const uint64_t *key)
{
    uint64_t words = keyed->of.key_words;
    if (run->speculative)
        return find_ahead(run, keyed, key);
    ss_keyed_lock(keyed);
    uint64_t hash = ss_hash_key(key, words);
    uint64_t found = ss_keyed_look_up(run, keyed, key, words, hash).first;
    ss_keyed_unlock(keyed);
    return found;
}

uint64_t ss_keyed_find(struct ss_run *run, uint64_t container, const uint64_t *key)
{
    struct ss_keyed *keyed = &run->keyed[container];
    if (run->speculative || keyed->locked || keyed->of.key_words != 1)
        return remembered(run, keyed, key, find_otherwise(run, keyed, key));
    uint64_t found = ss_keyed_look_up(run, keyed, key, 1, ss_hash_word(key[0])).first;
    if (found != SS_NOWHERE) {
        run->found_in = container + 1;
        run->found_key[0] = key[0];
        run->found_entry = found;
    }
    return found;
}

__attribute__((always_inline)) static inline void
look_ahead(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *const *columns,
           uint64_t words, int64_t first, int64_t end)
{
    uint32_t *entries = run->ahead[keyed - run->keyed].entries;
    /* Acquire: as in ss_index_find. */
    const struct ss_index *index = atomic_load_explicit(&keyed->index, memory_order_acquire);
    for (int64_t row = first; row < end; row++) {
        uint64_t key[SS_MOST_AHEAD_WORDS] = {0};
        for (uint64_t i = 0; i < words; i++)
            key[i] = columns[i][row];
        uint64_t entry = ss_index_hint(index, ss_hash_key(key, words));
        __builtin_prefetch(&run->state[entry]);
        entries[row & (SS_AHEAD - 1)] = (uint32_t)entry;
    }
}

void ss_keyed_ahead(struct ss_run *run, uint64_t container, uint64_t columns, int64_t first,
                    int64_t last)
{
    const struct ss_keyed *keyed = container_of(run, container);
    uint64_t words = keyed->of.key_words;
    const uint64_t *of[SS_MOST_AHEAD_WORDS] = {0};
    assert(words <= SS_MOST_AHEAD_WORDS && !keyed->locked);
    for (uint64_t i = 0; i < words; i++)
        of[i] = run->columns[columns >> (16 * i) & UINT16_MAX];
    int64_t end = (first | (SS_AHEAD - 1)) + 1;
    end = last < end ? last : end;
    /* No row waits for what another one loads. Most keys are one word, and a loop without a loop
     * within it. */
    if (words == 1)
        look_ahead(run, keyed, of, 1, first, end);
    else
        look_ahead(run, keyed, of, words, first, end);
}

uint64_t ss_keyed_insert(struct ss_run *run, uint64_t container, const uint64_t *key)
{
    struct ss_keyed *keyed = container_of(run, container);
    uint64_t entry;
    if (run->speculative) {
        entry = insert_ahead(run, keyed, key);
    } else {
        ss_keyed_lock(keyed);
        entry = insert_in_place(run, keyed, key);
        ss_keyed_unlock(keyed);
    }
    if (SS_UNLIKELY(keyed->of.expires != 0) && entry != SS_NOWHERE &&
        !ss_timers_expect(run, keyed, entry))
        return SS_NOWHERE;
    return remembered(run, keyed, key, entry);
}

void ss_keyed_remove(struct ss_run *run, uint64_t container, uint64_t entry)
{
    struct ss_keyed *keyed = container_of(run, container);
    run->found_in = 0;
    if (run->speculative) {
        remove_ahead(run, keyed, entry);
        return;
    }
    ss_keyed_lock(keyed);
    remove_in_place(run, keyed, entry);
    ss_keyed_unlock(keyed);
}

void ss_keyed_clear(struct ss_run *run, uint64_t container)
{
    struct ss_keyed *keyed = container_of(run, container);
    const struct ss_container *of = &keyed->of;
    run->found_in = 0;
    if (run->speculative) {
        clear_ahead(run, keyed);
        return;
    }
    ss_keyed_lock(keyed);
    uint64_t end = of->region + header_word(run, keyed, SS_HEADER_USED) * of->entry_words;
    for (uint64_t entry = of->region; entry < end && run->verdict == SS_COMPLETED;
         entry += of->entry_words)
        if (ss_word_read(&run->state[entry + SS_STAMP_WORD]) != 0)
            remove_in_place(run, keyed, entry);
    ss_keyed_unlock(keyed);
}

uint64_t ss_keyed_count(struct ss_run *run, uint64_t container)
{
    const struct ss_keyed *keyed = container_of(run, container);
    if (run->speculative)
        return load(run, keyed->of.header + SS_HEADER_COUNT);
    return header_word(run, keyed, SS_HEADER_COUNT);
}

uint64_t ss_keyed_changes(struct ss_run *run, uint64_t container)
{
    const struct ss_keyed *keyed = container_of(run, container);
    if (run->speculative)
        return keyed->parts[run->worker->index].changes;
    return header_word(run, keyed, SS_HEADER_CHANGES);
}

uint64_t ss_keyed_key(struct ss_run *run, uint64_t container, uint64_t entry, uint64_t at)
{
    (void)container;
    return key_word(run, entry, at);
}
