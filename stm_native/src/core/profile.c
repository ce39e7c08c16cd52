/* What runs were dropped for.
 *
 * A run that is dropped for a conflict names the element that it lost by, and where in the operator it
 * was accessed; `value` finds it when it validates, `eager` at the access. To count them all would
 * take memory without bound, and what matters is the few that cost the most. So each worker keeps a
 * sketch of fixed size after "Space-Saving" (Metwally, Agrawal, El Abbadi 2005): a new place takes the
 * entry of the one counted least, and its count with it. No count is ever too low, an entry says by
 * how much it may be too high, and a place that causes more than an eighth of the aborts of its group
 * is never forgotten.
 *
 * Places are spread over groups by a hash, so that a note looks at eight entries only. It is taken
 * when a run is dropped, which costs the whole run; a run that commits pays nothing.
 *
 * Entries are written by their worker alone and may be read meanwhile, hence the atomics. Who reads
 * while an entry changes hands sees the count of one place at another, for once. */
#include "core/profile.h"

#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "processor/figure.h"
#include "specstream.h"

static inline uint64_t packed(struct ss_place place)
{
    return (uint64_t)place.site << 48 | (uint64_t)place.bytes << 32 | place.word;
}

static inline void write_entry(struct ss_hot_place *entry, struct ss_place place)
{
    /* Relaxed, here and where it is read: who looks while it changes may see the place of one
     * entry with the count of another, and a sketch can bear that. */
    __atomic_store_n(&entry->word, place.word, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->bytes, place.bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->site, place.site, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->others, entry->aborts, __ATOMIC_RELAXED);
}

void ss_hot_note(struct ss_worker *worker, struct ss_place place)
{
    /* The upper bits of a product depend on all bits of the factor. */
    uint64_t hash = packed(place) * UINT64_C(0x9e3779b97f4a7c15);
    struct ss_hot_place *group = &worker->hot[(hash >> 32) % SS_HOT_GROUPS * SS_HOT_ENTRIES];
    struct ss_hot_place *least = group;
    for (int i = 0; i < SS_HOT_ENTRIES; i++) {
        struct ss_hot_place *entry = &group[i];
        struct ss_place own = {entry->word, entry->bytes, entry->site};
        if (entry->aborts != 0 && packed(own) == packed(place)) {
            ss_count(&entry->aborts, 1);
            return;
        }
        if (entry->aborts < least->aborts)
            least = entry;
    }
    write_entry(least, place);
    ss_count(&least->aborts, 1);
}

uint64_t ss_engine_hot_places(struct ss_engine *engine, struct ss_hot_place *places, uint64_t room)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < engine->config.threads; i++)
        for (int entry = 0; entry < SS_HOT_GROUPS * SS_HOT_ENTRIES; entry++) {
            const struct ss_hot_place *hot = &engine->workers[i].hot[entry];
            uint64_t aborts = ss_counted(&hot->aborts);
            if (aborts == 0)
                continue;
            if (count < room)
                places[count] = (struct ss_hot_place){
                    .word = __atomic_load_n(&hot->word, __ATOMIC_RELAXED),
                    .bytes = __atomic_load_n(&hot->bytes, __ATOMIC_RELAXED),
                    .site = __atomic_load_n(&hot->site, __ATOMIC_RELAXED),
                    .aborts = aborts,
                    .others = ss_counted(&hot->others),
                };
            count++;
        }
    return count;
}
