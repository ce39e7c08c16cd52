/* What a speculative run inserts into keyed containers, and removes.
 *
 * It stores the words of a new entry as it does others, to its redo log. What is special is the
 * stamp: which one it gets is known only when the run is published; until then the run has a
 * mark of its own there, which publication passes over. And nobody finds the entry in the index.
 * So besides the redo log a run has a list of its changes. It looks for a key there first; the
 * head, when it publishes, gives out stamps and fills the index by it, in the order of the
 * insertions.
 *
 * All that could fail is asked before: whether a container would hold more than its limit, and
 * memory for the index. */
#include "containers/keyed_changes.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "containers/keyed.h"
#include "containers/keyed_entries.h"
#include "containers/keyed_index.h"
#include "containers/timer_heap.h"
#include "core/engine.h"
#include "core/ranges.h"
#include "core/redo_index.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "specstream.h"
#include "specstream_containers.h"

/* ---- the run ---- */

void ss_changes_begin(struct ss_worker *worker)
{
    assert(worker->transaction->change_count == 0);
    worker->inserted.groups = 0;
    worker->transaction->walked = 0;
    worker->run.found_in = 0;
}

static uint64_t group_of(uint32_t tag)
{
    return tag >> 26;
}

static bool has_key(struct ss_run *run, uint64_t entry, const uint64_t *key, uint64_t words)
{
    for (uint64_t i = 0; i < words; i++)
        if (*ss_slot_value(run, ss_redo_find(run, entry + SS_KEY_WORD + i)) != key[i])
            return false;
    return true;
}

uint64_t ss_changes_find(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key,
                         uint64_t hash)
{
    const struct ss_inserted *inserted = &run->worker->inserted;
    const struct ss_change *changes = run->worker->transaction->changes;
    uint32_t tag = (uint32_t)(hash >> 32);
    uint64_t container = (uint64_t)(keyed - run->keyed);
    if ((inserted->groups >> group_of(tag) & 1) == 0)
        return SS_NOWHERE;
    for (uint32_t at = inserted->last[group_of(tag)]; at != 0; at = changes[at - 1].next) {
        const struct ss_change *change = &changes[at - 1];
        if (change->kind == SS_INSERTED && change->tag == tag && change->container == container &&
            has_key(run, change->entry, key, keyed->of.key_words))
            return change->entry;
    }
    return SS_NOWHERE;
}

bool ss_changes_add(struct ss_run *run, const struct ss_keyed *keyed, uint64_t entry, uint64_t hash,
                    enum ss_change_kind kind)
{
    struct ss_transaction *transaction = run->worker->transaction;
    struct ss_inserted *inserted = &run->worker->inserted;
    if (transaction->change_count == run->redo_limit) {
        run->verdict = SS_LOG_FULL;
        return false;
    }
    struct ss_change *change = &transaction->changes[transaction->change_count++];
    *change = (struct ss_change){.entry = (uint32_t)entry, .tag = (uint32_t)(hash >> 32)};
    change->container = (uint32_t)(keyed - run->keyed) & UINT32_C(0xfffffff);
    change->kind = (uint32_t)kind & 15;
    keyed->parts[run->worker->index].changes++;
    if (kind != SS_INSERTED)
        return true;
    uint64_t group = group_of(change->tag);
    change->next = inserted->groups >> group & 1 ? inserted->last[group] : 0;
    inserted->groups |= UINT64_C(1) << group;
    inserted->last[group] = (uint32_t)transaction->change_count;
    return true;
}

static void log_key(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key,
                    uint64_t word, uint16_t kind)
{
    uint64_t words = keyed->of.key_words;
    uint64_t entries = 1 + ss_range_entries(words);
    if ((uint64_t)(run->read_end - run->read_top) < entries) {
        run->verdict = SS_LOG_FULL;
        return;
    }
    *run->read_top =
        (struct ss_read){(uint32_t)word, kind, run->site, (uint64_t)(keyed - run->keyed)};
    memcpy(run->read_top + 1, key, words * sizeof *key);
    run->read_top += entries;
}

void ss_log_absence(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key)
{
    log_key(run, keyed, key, keyed->of.header, SS_ABSENT);
}

void ss_log_presence(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key,
                     uint64_t entry)
{
    log_key(run, keyed, key, entry, SS_PRESENT);
}

void ss_log_walk(struct ss_run *run)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_transaction *transaction = run->worker->transaction;
    /* Acquire: the entries are looked at afterwards. */
    if (engine->early != NULL && transaction->walked == 0)
        transaction->walked =
            1 + atomic_load_explicit(&engine->revocations, memory_order_acquire);
}

/* ---- the head ---- */

bool ss_is_still_there(const struct ss_engine *engine, const struct ss_read *read,
                       struct ss_place *conflict)
{
    const struct ss_keyed *keyed = &engine->keyed[read->value];
    const uint64_t *key = (const uint64_t *)(read + 1);
    uint64_t words = keyed->of.key_words;
    uint64_t entry = read->word;
    bool there;
    if (read->bytes == SS_PRESENT) {
        const uint64_t *at = &engine->state[entry];
        there = ss_word_read(at + SS_STAMP_WORD) != 0 && ss_key_is(at, key, words);
    } else {
        entry =
            ss_index_find(keyed, engine->state, key, words, ss_hash_key(key, words)).first;
        there = entry == SS_NOWHERE;
    }
    if (!there)
        *conflict = (struct ss_place){(uint32_t)entry, 0, read->site};
    return there;
}

/* Goes through the changes as the events did one after the other. */
static bool limits_hold(struct ss_engine *engine, const struct ss_transaction *transaction)
{
    const struct ss_change *end = transaction->changes + transaction->change_count;
    for (const struct ss_change *change = transaction->changes; change != end; change++) {
        struct ss_keyed *keyed = &engine->keyed[change->container];
        keyed->running = ss_word_read(&engine->state[keyed->of.header + SS_HEADER_COUNT]);
    }
    for (const struct ss_change *change = transaction->changes; change != end; change++) {
        struct ss_keyed *keyed = &engine->keyed[change->container];
        if (change->kind >= SS_REMOVED)
            keyed->running--;
        else if (keyed->running++ >= keyed->of.limit)
            return false;
    }
    return true;
}

bool ss_changes_fit(struct ss_engine *engine, struct ss_transaction *transaction)
{
    if (SS_UNLIKELY(transaction->change_count != 0)) {
        if (!limits_hold(engine, transaction)) {
            transaction->verdict = SS_RAISED; /* which shows only now */
            transaction->reason = SS_ABORT_RAISED;
            return false;
        }
        for (uint64_t i = 0; i < transaction->change_count; i++) {
            struct ss_keyed *keyed = &engine->keyed[transaction->changes[i].container];
            if (!ss_index_reserve(engine, keyed, transaction->change_count, false)) {
                transaction->reason = SS_ABORT_LOG_FULL;
                return false;
            }
        }
    }
    return true;
}

static void publish(struct ss_engine *engine, struct ss_keyed *keyed,
                    const struct ss_change *change, struct ss_chain *chain)
{
    uint64_t *state = engine->state;
    uint64_t entry = change->entry;
    if (change->kind == SS_INSERTED) {
        /* Release: who sees the stamp sees the key. */
        __atomic_store_n(&state[entry + SS_STAMP_WORD], ++engine->stamp, __ATOMIC_RELEASE);
        ss_index_enter(keyed, ss_hash_key(&state[entry + SS_KEY_WORD], keyed->of.key_words), entry);
        if (ss_has_timers(engine))
            ss_timers_push(engine, keyed, entry);
    } else if (change->kind != SS_REMOVED_OWN) {
        ss_chain_add(state, chain, entry);
    }
}

void ss_changes_publish(struct ss_engine *engine, const struct ss_transaction *transaction)
{
    assert(ss_turn_is_held(engine)); /* invariant 1 */
    uint64_t *state = engine->state;
    for (uint64_t i = 0; i < transaction->change_count;) {
        uint32_t container = transaction->changes[i].container;
        struct ss_keyed *keyed = &engine->keyed[container];
        struct ss_chain chain = {0, 0, 0};
        uint64_t lent = 0;
        for (; i < transaction->change_count && transaction->changes[i].container == container;
             i++) {
            lent += transaction->changes[i].kind < SS_REMOVED;
            publish(engine, keyed, &transaction->changes[i], &chain);
        }
        /* Release: who sees the number sees what has come and gone. */
        __atomic_store_n(&state[keyed->of.header + SS_HEADER_CHANGES], ++engine->stamp,
                         __ATOMIC_RELEASE);
        ss_entries_give(engine, keyed, &chain, lent);
    }
}

void ss_changes_roll_back(struct ss_engine *engine, struct ss_transaction *transaction)
{
    for (uint64_t i = 0; i < transaction->change_count;) {
        uint32_t container = transaction->changes[i].container;
        struct ss_chain chain = {0, 0, 0};
        for (; i < transaction->change_count && transaction->changes[i].container == container; i++)
            if (transaction->changes[i].kind < SS_REMOVED)
                ss_chain_add(engine->state, &chain, transaction->changes[i].entry);
        ss_entries_give(engine, &engine->keyed[container], &chain, chain.count);
    }
    transaction->change_count = 0;
}

size_t ss_changes_bytes(const struct ss_config *config)
{
    return config->container_count > 0 ? config->redo_limit * sizeof(struct ss_change) : 0;
}
