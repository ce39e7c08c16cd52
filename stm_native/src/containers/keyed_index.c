/* The index of a keyed container: from keys to entries.
 *
 * Open addressing, in native memory of the engine. A slot says where an entry is, and half of
 * the hash of the key that it had when the slot was filled. It is a *hint*: the entry itself
 * says by its stamp and its key whether it is the one. One thing must hold: whatever entry is
 * there is found on its key's way through the index. So removals leave it alone, and what an
 * event in place has stored can be taken back without it: a slot whose entry is dead, or has
 * another key by now, is passed by.
 *
 * Slots are never emptied. When too many are full, a new index is made of the entries that are
 * there, twice as large, or as large as before if most slots were of no use. Whoever inserts
 * does so: the head, or who holds the container's lock. Entries that the event has removed are
 * not in it, so if it is undone, the index of before is put back: what was inserted since is
 * undone as well.
 *
 * Speculative runs may look at an index that was replaced. It is freed when none can any more:
 * each worker counts its speculative runs, at their beginnings and ends, and its count is even,
 * or another one than when the index was replaced. Threads that look without being a worker are
 * counted. */
#include "containers/keyed_index.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "containers/keyed.h"
#include "core/engine.h"
#include "core/state_words.h"
#include "core/worker.h"
#include "processor/fault.h"
#include "processor/figure.h"
#include "specstream_containers.h"

enum { LEAST_SLOTS = 64 };

/* Full to five eighths at most; a new one to three eighths. */
static uint64_t room_of(const struct ss_index *index)
{
    return (index->mask + 1) / 8 * 5;
}

static uint64_t slots_for(uint64_t entries)
{
    uint64_t slots = LEAST_SLOTS;
    while (slots / 8 * 3 < entries)
        slots *= 2;
    return slots;
}

static struct ss_index *new_index(const struct ss_engine *engine, struct ss_keyed *keyed,
                                  uint64_t slots)
{
    uint64_t bytes = sizeof(struct ss_index) +
                     (slots + engine->config.threads) * sizeof(uint64_t);
    struct ss_index *index = calloc(1, bytes);
    if (index == NULL)
        return NULL;
    index->mask = slots - 1;
    index->bytes = bytes;
    index->seen = (uint64_t *)index->slots + slots;
    ss_grow(&keyed->index_bytes, keyed->index_bytes + bytes);
    return index;
}

static void enter(struct ss_index *index, uint64_t hash, uint64_t first)
{
    uint64_t wanted = (hash & ss_tag_bits) | first;
    for (uint64_t at = hash & index->mask;; at = (at + 1) & index->mask) {
        /* Relaxed: only who inserts fills slots. */
        uint64_t slot = atomic_load_explicit(&index->slots[at], memory_order_relaxed);
        if (slot == wanted)
            return; /* the entry had this key before */
        if (slot != 0)
            continue;
        /* Release: who sees the slot sees the key. */
        atomic_store_explicit(&index->slots[at], wanted, memory_order_release);
        index->filled++;
        return;
    }
}

void ss_index_enter(struct ss_keyed *keyed, uint64_t hash, uint64_t first)
{
    /* Relaxed: only who inserts replaces it. */
    enter(atomic_load_explicit(&keyed->index, memory_order_relaxed), hash, first);
}

static void enter_all(const struct ss_engine *engine, const struct ss_keyed *keyed,
                      struct ss_index *index)
{
    const uint64_t *state = engine->state;
    const struct ss_container *of = &keyed->of;
    uint64_t used = ss_word_read(&state[of->header + SS_HEADER_USED]);
    uint64_t end = of->region + used * of->entry_words;
    for (uint64_t first = of->region; first < end; first += of->entry_words)
        /* One that was removed early may come back with its key. */
        if (engine->early != NULL || ss_word_read(&state[first]) != 0)
            enter(index, ss_hash_key(&state[first + SS_KEY_WORD], of->key_words), first);
}

/* ---- indices that were replaced ---- */

/* Whether somebody may have begun to look at it before it was replaced. */
static bool is_looked_at(struct ss_engine *engine, const struct ss_index *index)
{
    /* Acquire: whoever has gone is done with it. */
    if (atomic_load_explicit(&engine->lookers, memory_order_acquire) != 0)
        return true;
    for (uint64_t i = 0; i < engine->config.threads; i++) {
        uint64_t runs = atomic_load_explicit(&engine->workers[i].runs, memory_order_acquire);
        if (runs % 2 != 0 && runs == index->seen[i])
            return true;
    }
    return false;
}

static void free_retired(struct ss_engine *engine, struct ss_keyed *keyed)
{
    struct ss_index **link = &keyed->retired;
    while (*link != NULL) {
        struct ss_index *index = *link;
        if (is_looked_at(engine, index)) {
            link = &index->next;
            continue;
        }
        *link = index->next;
        ss_grow(&keyed->index_bytes, keyed->index_bytes - index->bytes);
        free(index);
    }
}

/* The new one is published. */
static void retire(struct ss_engine *engine, struct ss_keyed *keyed, struct ss_index *index)
{
    /* Dekker with run_once and ss_engine_find: the new index is there before we see who is in a
     * run. */
    atomic_thread_fence(memory_order_seq_cst);
    for (uint64_t i = 0; i < engine->config.threads; i++)
        /* Relaxed: whoever has gone meanwhile is looked at again. */
        index->seen[i] = atomic_load_explicit(&engine->workers[i].runs, memory_order_relaxed);
    index->next = keyed->retired;
    keyed->retired = index;
    free_retired(engine, keyed);
}

/* ---- growth ---- */

static bool replace(struct ss_engine *engine, struct ss_keyed *keyed, uint64_t slots,
                    bool may_be_undone)
{
    struct ss_index *old = atomic_load_explicit(&keyed->index, memory_order_relaxed);
    struct ss_index *made = new_index(engine, keyed, slots);
    if (made == NULL)
        return false;
    enter_all(engine, keyed, made);
    /* Release: who sees the index sees its slots. */
    atomic_store_explicit(&keyed->index, made, memory_order_release);
    if (may_be_undone && keyed->before == NULL)
        keyed->before = old;
    else
        retire(engine, keyed, old);
    return true;
}

bool ss_index_reserve(struct ss_engine *engine, struct ss_keyed *keyed, uint64_t more,
                      bool may_be_undone)
{
    const struct ss_index *index = atomic_load_explicit(&keyed->index, memory_order_relaxed);
    if (index->filled + more <= room_of(index))
        return true;
    uint64_t at = engine->early != NULL ? SS_HEADER_USED : SS_HEADER_COUNT;
    uint64_t count = ss_word_read(&engine->state[keyed->of.header + at]);
    sig_atomic_t was = ss_step_outside();
    bool done = replace(engine, keyed, slots_for(count + more), may_be_undone);
    ss_step_inside(was);
    return done;
}

void ss_index_settle(struct ss_engine *engine, struct ss_keyed *keyed, bool undone)
{
    struct ss_index *before = keyed->before;
    if (before == NULL)
        return;
    struct ss_index *gone = before;
    if (undone) {
        gone = atomic_load_explicit(&keyed->index, memory_order_relaxed);
        /* Release: as in replace. */
        atomic_store_explicit(&keyed->index, before, memory_order_release);
    }
    keyed->before = NULL;
    sig_atomic_t was = ss_step_outside();
    retire(engine, keyed, gone);
    ss_step_inside(was);
}

bool ss_index_renew(struct ss_engine *engine, struct ss_keyed *keyed, uint64_t count)
{
    struct ss_index *old = atomic_load_explicit(&keyed->index, memory_order_relaxed);
    if (old != NULL)
        return replace(engine, keyed, slots_for(count), false);
    old = new_index(engine, keyed, slots_for(count));
    if (old == NULL)
        return false;
    enter_all(engine, keyed, old);
    /* Release: as in replace. */
    atomic_store_explicit(&keyed->index, old, memory_order_release);
    return true;
}

void ss_index_close(struct ss_keyed *keyed)
{
    free(atomic_load_explicit(&keyed->index, memory_order_relaxed));
    free(keyed->before);
    while (keyed->retired != NULL) {
        struct ss_index *next = keyed->retired->next;
        free(keyed->retired);
        keyed->retired = next;
    }
}
