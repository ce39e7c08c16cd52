/* Which entries of a keyed container are free.
 *
 * Where an entry lies means nothing; so who takes which one is no part of the state, is not
 * logged and cannot conflict. Entries that have been removed are linked by the first word of
 * their key; all behind the high-water mark in the header have never been taken. Whoever inserts
 * takes a few at a time, and has them at hand. A speculative run stores to an entry that it has
 * taken by its redo log: nobody else has it, and if the run does not commit, the entry is given
 * back.
 *
 * Speculative runs could hold all that there are, while the head may insert as long as there are
 * fewer than `limit`. So the region has room for more than the limit, and they never hold more
 * than that surplus.
 *
 * An event in place may be undone. What it removes is free only when it is over, and what it has
 * taken is free if it was undone. Both show in the same way: the entry is one that the event has
 * touched, and in the end its stamp is 0. That an event is over shows when the next one works on
 * a container, or the range of events ends. An event that finds nothing free but what it has
 * removed itself takes that: if it is undone, the old key comes back with all other words. */
#include "containers/keyed_entries.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "containers/keyed.h"
#include "containers/keyed_index.h"
#include "containers/timer_heap.h"
#include "core/engine.h"
#include "core/state_words.h"
#include "core/worker.h"
#include "processor/fault.h"
#include "processor/figure.h"
#include "processor/processor.h"
#include "specstream.h"
#include "specstream_containers.h"

/* ---- free entries ---- */

/* With the mutex. SS_NOWHERE: none. */
static uint64_t take_one(struct ss_keyed *keyed, uint64_t *state)
{
    uint64_t entry = keyed->free;
    uint64_t *used = &state[keyed->of.header + SS_HEADER_USED];
    if (entry != 0) {
        keyed->free = ss_word_read(&state[entry + SS_KEY_WORD]);
        return entry;
    }
    if (ss_word_read(used) >= keyed->of.room)
        return SS_NOWHERE;
    entry = keyed->of.region + ss_word_read(used) * keyed->of.entry_words;
    ss_word_write(used, ss_word_read(used) + 1);
    return entry;
}

/* Puts some at hand of a worker. */
static void fill(struct ss_engine *engine, struct ss_keyed *keyed, struct ss_keyed_part *part)
{
    uint64_t spare = keyed->of.room - keyed->of.limit;
    uint64_t wanted = spare / (4 * engine->config.threads);
    wanted = wanted < 1 ? 1 : wanted > SS_ENTRIES_AT_HAND ? SS_ENTRIES_AT_HAND : wanted;
    /* Relaxed, here and below: it only grows with the mutex. */
    uint64_t lent = atomic_load_explicit(&keyed->lent, memory_order_relaxed);
    if (lent + wanted > spare)
        wanted = lent < spare ? spare - lent : 0;
    while (part->count < wanted) {
        uint64_t entry = take_one(keyed, engine->state);
        if (entry == SS_NOWHERE)
            break;
        part->entries[part->count++] = (uint32_t)entry;
    }
    /* The first is used first: entries lie in the order of their stamps, mostly. */
    for (uint64_t i = 0, j = part->count; i + 1 < j; i++) {
        uint32_t entry = part->entries[i];
        part->entries[i] = part->entries[--j];
        part->entries[j] = entry;
    }
    atomic_fetch_add_explicit(&keyed->lent, part->count, memory_order_relaxed);
}

uint64_t ss_entry_take(struct ss_run *run, struct ss_keyed *keyed)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_keyed_part *part = &keyed->parts[run->worker->index];
    if (part->count == 0) {
        sig_atomic_t was = ss_step_outside();
        pthread_mutex_lock(&keyed->mutex);
        fill(engine, keyed, part);
        pthread_mutex_unlock(&keyed->mutex);
        ss_step_inside(was);
        if (part->count == 0)
            return SS_NOWHERE;
    }
    return part->entries[--part->count];
}

/* What this event has removed itself. */
static uint64_t take_removed(const struct ss_run *run, const struct ss_keyed *keyed)
{
    struct ss_touched *touched = &run->worker->touched;
    uint64_t container = (uint64_t)(keyed - run->keyed);
    for (uint64_t i = 0; i < touched->count; i++) {
        touched->cursor = touched->cursor + 1 < touched->count ? touched->cursor + 1 : 0;
        uint64_t entry = touched->entries[touched->cursor] & UINT32_MAX;
        if (ss_touched_container(touched->entries[touched->cursor]) == container &&
            ss_word_read(&run->state[entry]) == 0)
            return entry;
    }
    return SS_NOWHERE;
}

uint64_t ss_entry_take_in_place(struct ss_run *run, struct ss_keyed *keyed)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_keyed_part *part = &keyed->parts[run->worker->index];
    uint64_t entry = SS_NOWHERE;
    if (part->count == 0) {
        sig_atomic_t was = ss_step_outside();
        pthread_mutex_lock(&keyed->mutex);
        fill(engine, keyed, part);
        if (part->count == 0)
            entry = take_one(keyed, engine->state);
        pthread_mutex_unlock(&keyed->mutex);
        ss_step_inside(was);
    }
    if (part->count != 0) {
        atomic_fetch_sub_explicit(&keyed->lent, 1, memory_order_relaxed);
        entry = part->entries[--part->count];
    }
    if (entry == SS_NOWHERE) /* touched already; twice, and it would be given twice */
        return run->worker->is_early ? SS_NOWHERE : take_removed(run, keyed);
    if (keyed->undone)
        ss_touch(run, keyed, entry, false);
    return entry;
}

void ss_chain_add(uint64_t *state, struct ss_chain *chain, uint64_t entry)
{
    assert(ss_word_read(&state[entry + SS_STAMP_WORD]) == 0);
    /* Whoever reads the link in place of a key finds that the stamp has gone. */
    atomic_thread_fence(memory_order_release);
    ss_word_write(&state[entry + SS_KEY_WORD], chain->first);
    chain->first = entry;
    if (chain->count++ == 0)
        chain->last = entry;
}

void ss_entries_give(struct ss_engine *engine, struct ss_keyed *keyed, struct ss_chain *chain,
                     uint64_t lent)
{
    uint64_t *state = engine->state;
    if (chain->count != 0 || lent != 0) {
        sig_atomic_t was = ss_step_outside();
        pthread_mutex_lock(&keyed->mutex);
        if (chain->count != 0) {
            ss_word_write(&state[chain->last + SS_KEY_WORD], keyed->free);
            keyed->free = chain->first;
        }
        atomic_fetch_sub_explicit(&keyed->lent, lent, memory_order_relaxed);
        pthread_mutex_unlock(&keyed->mutex);
        ss_step_inside(was);
    }
    *chain = (struct ss_chain){0, 0, 0};
}

/* ---- what an event in place touches ---- */

static bool grow(struct ss_touched *touched)
{
    uint64_t capacity = touched->capacity == 0 ? 64 : 2 * touched->capacity;
    sig_atomic_t was = ss_step_outside();
    uint64_t *grown = realloc(touched->entries, capacity * sizeof *grown);
    ss_step_inside(was);
    if (grown == NULL)
        return false;
    touched->entries = grown;
    ss_grow(&touched->capacity, capacity);
    return true;
}

bool ss_touch_begin(struct ss_run *run)
{
    struct ss_touched *touched = &run->worker->touched;
    if (touched->event != run->event) {
        ss_touched_settle(run->worker, false);
        touched->event = run->event;
        touched->first_stamp = run->worker->engine->stamp;
    }
    if (SS_UNLIKELY(touched->count == touched->capacity) && !grow(touched)) {
        run->verdict = SS_NO_MEMORY;
        return false;
    }
    return true;
}

void ss_touch(struct ss_run *run, const struct ss_keyed *keyed, uint64_t entry, bool was_there)
{
    struct ss_touched *touched = &run->worker->touched;
    touched->entries[touched->count++] =
        (uint64_t)(keyed - run->keyed) << 32 | entry | (was_there ? SS_WAS_THERE : 0);
}

static void forget(struct ss_worker *worker, bool undone)
{
    struct ss_touched *touched = &worker->touched;
    struct ss_engine *engine = worker->engine;
    for (uint64_t i = 0; touched->has_grown && i < engine->config.container_count; i++)
        ss_index_settle(engine, &engine->keyed[i], undone);
    touched->count = touched->cursor = 0;
    touched->has_grown = false;
    touched->event = -1;
}

void ss_touched_keep(struct ss_worker *worker)
{
    const struct ss_touched *touched = &worker->touched;
    struct ss_engine *engine = worker->engine;
    for (uint64_t i = 0; ss_has_timers(engine) && i < touched->count; i++) {
        uint64_t entry = touched->entries[i] & UINT32_MAX;
        if (ss_word_read(&engine->state[entry]) != 0)
            ss_timers_push(engine, &engine->keyed[ss_touched_container(touched->entries[i])], entry);
    }
    forget(worker, false);
}

void ss_touched_settle(struct ss_worker *worker, bool undone)
{
    struct ss_touched *touched = &worker->touched;
    struct ss_engine *engine = worker->engine;
    uint64_t *state = engine->state;
    undone = undone && touched->event == worker->run.event;
    for (uint64_t i = 0; i < touched->count;) {
        uint64_t container = ss_touched_container(touched->entries[i]);
        struct ss_keyed *keyed = &engine->keyed[container];
        struct ss_chain chain = {0, 0, 0};
        for (; i < touched->count && ss_touched_container(touched->entries[i]) == container; i++) {
            uint64_t entry = touched->entries[i] & UINT32_MAX;
            if (ss_word_read(&state[entry]) == 0)
                ss_chain_add(state, &chain, entry);
            else if (ss_has_timers(engine) && !undone)
                ss_timers_push(engine, keyed, entry);
        }
        if (undone)
            /* Who has seen what is undone has read the number of then, or the one from before,
             * which is there again. Release: who sees this number sees the entries as they are. */
            __atomic_store_n(&state[keyed->of.header + SS_HEADER_CHANGES], ++engine->stamp,
                             __ATOMIC_RELEASE);
        ss_entries_give(engine, keyed, &chain, 0);
    }
    forget(worker, undone);
}

/* ---- between jobs ---- */

uint64_t ss_entries_renew(struct ss_engine *engine, struct ss_keyed *keyed, uint64_t *last_stamp)
{
    uint64_t *state = engine->state;
    const struct ss_container *of = &keyed->of;
    uint64_t there = 0;
    uint64_t used = ss_word_read(&state[of->header + SS_HEADER_USED]);
    for (uint64_t i = 0; i < engine->config.threads; i++)
        keyed->parts[i].count = 0;
    keyed->free = 0;
    atomic_store_explicit(&keyed->lent, 0, memory_order_relaxed);
    /* From the last one on, so that the first is taken first. */
    for (uint64_t i = used; i-- > 0;) {
        uint64_t entry = of->region + i * of->entry_words;
        uint64_t stamp = ss_word_read(&state[entry]);
        if (stamp == 0) {
            ss_word_write(&state[entry + SS_KEY_WORD], keyed->free);
            keyed->free = entry;
            continue;
        }
        there++;
        if (stamp > *last_stamp)
            *last_stamp = stamp;
    }
    return there;
}
