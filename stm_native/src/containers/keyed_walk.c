/* All entries of a keyed container, in the order of their insertion.
 *
 * That is the order of the stamps. Entries mostly lie in that order already, but for those that
 * were taken anew; so the stamps are merged run by run, which costs little where there are few
 * runs.
 *
 * A speculative run depends on CHANGES, read before the stamps, and not on each stamp: the
 * number is another one whenever an entry has come or gone, and it is stored after that. What it
 * meets in between may be a mixture, and then it has read a number that is not valid. */
#include <stdatomic.h>

#include "containers/keyed.h"
#include "containers/keyed_changes.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/redo_index.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "local/arena.h"
#include "specstream.h"
#include "specstream_containers.h"

struct stamped {
    uint64_t stamp;
    uint64_t entry;
};

/* The first place behind an ascending run that begins at `from`. */
static uint64_t end_of_run(const struct stamped *found, uint64_t from, uint64_t count)
{
    uint64_t end = from + 1;
    while (end < count && found[end - 1].stamp < found[end].stamp)
        end++;
    return end < count ? end : count;
}

/* Merges the runs two by two; returns whether there was more than one. */
static bool merge_runs(const struct stamped *from, struct stamped *to, uint64_t count)
{
    bool merged = false;
    for (uint64_t at = 0; at < count;) {
        uint64_t left = at;
        uint64_t middle = end_of_run(from, at, count);
        uint64_t right = middle;
        uint64_t end = middle < count ? end_of_run(from, middle, count) : count;
        merged = merged || middle < count;
        while (left < middle && right < end)
            to[at++] = from[left].stamp < from[right].stamp ? from[left++] : from[right++];
        while (left < middle)
            to[at++] = from[left++];
        while (right < end)
            to[at++] = from[right++];
    }
    return merged;
}

/* Those of the state, as the run sees them; `room` is more than there can be. */
static uint64_t collect(struct ss_run *run, const struct ss_keyed *keyed, struct stamped *found,
                        uint64_t room)
{
    const struct ss_container *of = &keyed->of;
    uint64_t used = ss_word_read(&run->state[of->header + SS_HEADER_USED]);
    uint64_t end = of->region + used * of->entry_words;
    bool has_own = run->speculative && run->worker->transaction->change_count != 0;
    uint64_t count = 0;
    for (uint64_t entry = of->region; entry < end && count < room; entry += of->entry_words) {
        uint64_t stamp = ss_word_read(&run->state[entry + SS_STAMP_WORD]);
        if (stamp == 0)
            continue;
        /* The run itself has removed it. */
        if (has_own && ss_redo_find(run, entry)->key == (run->epoch_key | entry))
            continue;
        found[count++] = (struct stamped){stamp, entry};
    }
    return count;
}

static uint64_t collect_own(const struct ss_run *run, const struct ss_keyed *keyed,
                            uint64_t *entries)
{
    const struct ss_transaction *transaction = run->worker->transaction;
    uint64_t container = (uint64_t)(keyed - run->keyed);
    uint64_t count = 0;
    for (uint64_t i = 0; run->speculative && i < transaction->change_count; i++) {
        const struct ss_change *change = &transaction->changes[i];
        if (change->kind != SS_INSERTED || change->container != container)
            continue;
        if (entries != NULL)
            entries[count] = change->entry;
        count++;
    }
    return count;
}

static struct ss_keyed_walk *walk(struct ss_run *run, const struct ss_keyed *keyed,
                                  uint64_t changes)
{
    uint64_t room = ss_word_read(&run->state[keyed->of.header + SS_HEADER_COUNT]);
    if (room > keyed->of.limit)
        room = keyed->of.limit; /* an event in place that is not over may have more */
    struct stamped *found = (struct stamped *)ss_buffer(run, 4 * room + 1);
    if (found == NULL)
        return NULL;
    struct stamped *other = found + room;
    uint64_t count = collect(run, keyed, found, room);
    while (merge_runs(found, other, count)) {
        struct stamped *merged = other;
        other = found;
        found = merged;
    }
    uint64_t own = collect_own(run, keyed, NULL);
    uint64_t words = sizeof(struct ss_keyed_walk) / sizeof(uint64_t);
    struct ss_keyed_walk *made =
        (struct ss_keyed_walk *)ss_arena_take(run, words + count + own);
    if (made == NULL)
        return NULL;
    made->count = count + own;
    made->changes = changes;
    made->entries = (uint64_t *)made + words;
    for (uint64_t i = 0; i < count; i++)
        made->entries[i] = found[i].entry;
    collect_own(run, keyed, made->entries + count);
    return made;
}

struct ss_keyed_walk *ss_keyed_entries(struct ss_run *run, uint64_t container)
{
    struct ss_keyed *keyed = &run->keyed[container];
    uint64_t changes = ss_keyed_changes(run, container);
    if (run->speculative) {
        ss_log_walk(run);
        run->worker->engine->protocol->load(run, keyed->of.header + SS_HEADER_CHANGES);
        if (run->verdict != SS_COMPLETED)
            return NULL;
        /* Without the fence stamps could be read before the number that stands for them. */
        atomic_thread_fence(memory_order_acquire);
    }
    ss_keyed_lock(keyed);
    struct ss_keyed_walk *made = walk(run, keyed, changes);
    ss_keyed_unlock(keyed);
    return made;
}
