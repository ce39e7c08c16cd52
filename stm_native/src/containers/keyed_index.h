/* From keys to entries. */
#ifndef SPECSTREAM_KEYED_INDEX_H
#define SPECSTREAM_KEYED_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "containers/keyed.h"
#include "core/state_words.h"
#include "specstream.h"
#include "specstream_containers.h"

struct ss_engine;

struct ss_index {
    uint64_t mask;   /* slots, less by one */
    uint64_t filled; /* of them; kept by whoever inserts */
    uint64_t bytes;  /* of memory */
    struct ss_index *next; /* of the retired ones */
    uint64_t *seen;        /* when it was retired: runs of each worker */
    /* Upper half of the key's hash; first word of the entry in the state. 0: empty. */
    _Atomic uint64_t slots[];
};

static const uint64_t ss_tag_bits = UINT64_C(0xffffffff00000000);

static inline uint64_t ss_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Each half of the product depends on all bits of the key: the upper one on the lower bits, and
 * the other way round. So neither small numbers, nor multiples of powers of two, nor what has
 * been hashed before falls together. */
static inline uint64_t ss_hash_word(uint64_t word)
{
    return ss_fold(word ^ UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93));
}

static inline uint64_t ss_hash_key(const uint64_t *key, uint64_t words)
{
    uint64_t hash = ss_hash_word(key[0]);
    for (uint64_t i = 1; i < words; i++)
        hash = ss_fold(hash + UINT64_C(0x9e3779b97f4a7c15), key[i] ^ UINT64_C(0xa0761d6478bd642f));
    return hash;
}

/* The word that stands for the absence of keys of this hash. */
static inline uint64_t ss_absence_word(const struct ss_keyed *keyed, uint64_t hash)
{
    return keyed->of.header + SS_HEADER_WORDS + (hash >> 32) % SS_ABSENCE_WORDS;
}

static inline bool ss_key_is(const uint64_t *entry, const uint64_t *key, uint64_t words)
{
    for (uint64_t i = 0; i < words; i++)
        if (ss_word_read(&entry[SS_KEY_WORD + i]) != key[i])
            return false;
    return true;
}

/* An entry with its stamp. */
struct ss_found {
    uint64_t first; /* SS_NOWHERE: there is none */
    uint64_t stamp;
};

/* The entry of a key in the words of the state. */
static inline struct ss_found ss_index_find(const struct ss_keyed *keyed, const uint64_t *state,
                                            const uint64_t *key, uint64_t words, uint64_t hash)
{
    /* Acquire: who sees the index sees its slots. */
    const struct ss_index *index = atomic_load_explicit(&keyed->index, memory_order_acquire);
    for (uint64_t at = hash;; at++) {
        /* Acquire: who sees the slot of an entry sees what its key was then. */
        uint64_t slot =
            atomic_load_explicit(&index->slots[at & index->mask], memory_order_acquire);
        if (slot == 0)
            return (struct ss_found){SS_NOWHERE, 0};
        if (((slot ^ hash) & ss_tag_bits) != 0)
            continue;
        uint64_t first = slot & ~ss_tag_bits;
        /* Acquire: who sees the stamp sees the key, which stays while the stamp does. */
        uint64_t stamp = __atomic_load_n(&state[first], __ATOMIC_ACQUIRE);
        if (stamp != 0 && ss_key_is(&state[first], key, words))
            return (struct ss_found){first, stamp};
    }
}

/* Where the entry of a key with this hash may be; 0: nowhere. Three of its slots are looked at,
 * and without a jump, as nobody can foresee where it would go. */
static inline uint64_t ss_index_hint(const struct ss_index *index, uint64_t hash)
{
    /* Acquire: as in ss_index_find. */
    uint64_t slot =
        atomic_load_explicit(&index->slots[hash & index->mask], memory_order_acquire);
    uint64_t next =
        atomic_load_explicit(&index->slots[(hash + 1) & index->mask], memory_order_acquire);
    uint64_t other = -(uint64_t)(((slot ^ hash) & ss_tag_bits) != 0);
    slot = (slot & ~other) | (next & other);
    next = atomic_load_explicit(&index->slots[(hash + 2) & index->mask], memory_order_acquire);
    other = -(uint64_t)(((slot ^ hash) & ss_tag_bits) != 0);
    return ((slot & ~other) | (next & other)) & ~ss_tag_bits;
}

/* The entry of the running event's key: where it was looked up ahead if it is there still, or else
 * as ss_index_find finds it. */
static inline struct ss_found ss_keyed_look_up(const struct ss_run *run,
                                               const struct ss_keyed *keyed, const uint64_t *key,
                                               uint64_t words, uint64_t hash)
{
    uint64_t first = run->ahead[keyed - run->keyed].entries[run->event & (SS_AHEAD - 1)];
    if (first != 0) {
        /* Acquire: as in ss_index_find. */
        uint64_t stamp = __atomic_load_n(&run->state[first], __ATOMIC_ACQUIRE);
        if (stamp != 0 && ss_key_is(&run->state[first], key, words))
            return (struct ss_found){first, stamp};
    }
    return ss_index_find(keyed, run->state, key, words, hash);
}

/* Whoever inserts: makes sure of room for so many more slots; `events`: the index of before is
 * needed until the event is over. False: out of memory. */
bool ss_index_reserve(struct ss_engine *engine, struct ss_keyed *keyed, uint64_t more,
                      bool may_be_undone);
/* There is room. */
void ss_index_enter(struct ss_keyed *keyed, uint64_t hash, uint64_t first);
/* The event in place is over: undone, or not. */
void ss_index_settle(struct ss_engine *engine, struct ss_keyed *keyed, bool undone);
/* No job runs: an index of the entries that are there, which are `count`. False: out of memory, and
 * nothing has changed. */
bool ss_index_renew(struct ss_engine *engine, struct ss_keyed *keyed, uint64_t count);
/* Frees all. */
void ss_index_close(struct ss_keyed *keyed);

#endif
