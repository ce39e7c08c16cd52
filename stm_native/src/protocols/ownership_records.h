/* Ownership records: which transaction has locked a word, or when the word was last changed. */
#ifndef SPECSTREAM_OWNERSHIP_RECORDS_H
#define SPECSTREAM_OWNERSHIP_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "processor/processor.h"

enum { SS_SLOT_BITS = 18, SS_POSITION_BITS = 20, SS_INCARNATION_BITS = 25 };

static const uint64_t ss_slot_mask = (UINT64_C(1) << SS_SLOT_BITS) - 1;
static const uint64_t ss_position_mask = (UINT64_C(1) << SS_POSITION_BITS) - 1;
static const uint64_t ss_incarnation_mask = (UINT64_C(1) << SS_INCARNATION_BITS) - 1;

/* A record that a transaction has locked, and the version that the record held before. */
struct ss_owned {
    uint32_t record;
    uint16_t site; /* of the store that locked it */
    _Atomic uint64_t version;
};

/* A region of the state, as the mapping from words to records needs it. */
struct ss_record_region {
    uint64_t end; /* the word behind its last */
    uint64_t bias;
    uint64_t shift;
};

/* The record of a word. Regions are few: the fields that say how their words share records, and what
 * lies between them. */
static inline uint64_t ss_record_of(const struct ss_engine *engine, uint64_t word)
{
    const struct ss_record_region *region = engine->regions;
    while (SS_UNLIKELY(word >= region->end))
        region++;
    return (word + region->bias) >> region->shift & engine->record_mask;
}

/* Length of the lock array. */
uint64_t ss_record_count(const struct ss_config *config);
/* Records that a speculative run may lock. */
uint64_t ss_owned_limit(const struct ss_config *config);
uint64_t ss_record_region_bytes(const struct ss_config *config);
/* False: out of memory. */
bool ss_records_open(struct ss_engine *engine);

static inline bool ss_is_locked(uint64_t content)
{
    return (content & 1) != 0;
}

static inline uint64_t ss_unlocked(uint64_t version)
{
    return version << 1;
}

static inline uint64_t ss_slot_index(const struct ss_engine *engine,
                                  const struct ss_transaction *transaction)
{
    return (uint64_t)(transaction - engine->ring);
}

static inline uint64_t ss_reference(const struct ss_engine *engine,
                                 const struct ss_transaction *transaction, uint64_t position)
{
    return transaction->incarnation << (1 + SS_SLOT_BITS + SS_POSITION_BITS) |
           position << (1 + SS_SLOT_BITS) | ss_slot_index(engine, transaction) << 1 | 1;
}

static inline struct ss_transaction *ss_owner_of(const struct ss_engine *engine, uint64_t content)
{
    return &engine->ring[content >> 1 & ss_slot_mask];
}

static inline uint64_t ss_position_of(uint64_t content)
{
    return content >> (1 + SS_SLOT_BITS) & ss_position_mask;
}

/* Acquire: who sees a version sees the words that were written before it, and who sees a reference
 * sees the owner's entry. */
static inline uint64_t ss_read_record(const struct ss_engine *engine, uint64_t record)
{
    return atomic_load_explicit(&engine->records[record], memory_order_acquire);
}

/* Whether the record still holds `content`, after what was read meanwhile. */
static inline bool ss_is_still(const struct ss_engine *engine, uint64_t record, uint64_t content)
{
    /* Without the fence the second look could be done before the reads that it is to confirm: the
     * value of a later commit would pass under an earlier version, and the run would go on with
     * values that never coexisted, or with the version of another owner's entry. */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&engine->records[record], memory_order_relaxed) == content;
}

/* How far the owner in `content` is ahead of `number` on the ring: 0: it is the same; a horizon at
 * most: it is later; else it is `ring_size` minus the result earlier. */
static inline uint64_t ss_distance_to(const struct ss_engine *engine, int64_t number,
                                      uint64_t content)
{
    return ((content >> 1 & ss_slot_mask) - (uint64_t)number) & (engine->ring_size - 1);
}

/* Who has locked a record, seen from a transaction. A stale look at a key may call a later one
 * earlier, which costs a rerun; that it is later is believed only where the record is looked at once
 * more and still refers to it. */
enum ss_relation { SS_SELF, SS_EARLIER, SS_LATER };

static inline enum ss_relation ss_relation_to(const struct ss_engine *engine,
                                        const struct ss_transaction *transaction, uint64_t content)
{
    const struct ss_transaction *owner = ss_owner_of(engine, content);
    if (owner == transaction)
        return SS_SELF;
    bool earlier = ss_goes_by_key(engine)
                       ? ss_has_earlier_key(owner, transaction)
                       : ss_distance_to(engine, transaction->number, content) >=
                             engine->ring_size / 2;
    return earlier ? SS_EARLIER : SS_LATER;
}

/* The number of the owner, seen from `number`. */
static inline int64_t ss_number_of_owner(const struct ss_engine *engine, int64_t number,
                                      uint64_t content)
{
    if (ss_goes_by_key(engine))
        /* Relaxed: a number that is wrong by now belongs to a transaction that is gone; who
         * waits for it does not wait. */
        return (int64_t)(atomic_load_explicit(&ss_owner_of(engine, content)->status,
                                              memory_order_relaxed) >>
                         3);
    uint64_t distance = ss_distance_to(engine, number, content);
    return number + (int64_t)distance -
           (distance >= engine->ring_size / 2 ? (int64_t)engine->ring_size : 0);
}

/* The version below a lock. Relaxed: the acquire of the reference ordered it, and whether it is of
 * that owner is for ss_is_still, or for the exchange that takes the lock over, to say. */
static inline uint64_t ss_version_below(const struct ss_engine *engine, uint64_t content)
{
    const struct ss_transaction *owner = ss_owner_of(engine, content);
    return atomic_load_explicit(&owner->owned[ss_position_of(content)].version,
                                memory_order_relaxed);
}

#endif
