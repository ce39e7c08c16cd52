/* Ownership records, the dissertation's lock array (Brito 2010, 2.2).
 *
 * Each word maps to an ownership *record*, one entry of the lock array; neighbouring words
 * may share one, in each region of the state so many as its shift says. A record holds either
 *
 *     the version:   the time of the last commit that changed one of its words           ...0
 *     a reference:   incarnation | position | slot of the transaction that has locked it ...1
 *
 * While it is locked, the version is kept in the owner's entry `position` (struct ss_owned).
 *
 * Who is the earlier one follows from the reference alone: the ring is longer than twice the
 * horizon, so a slot less than half a ring ahead of mine belongs to a later transaction. In an open
 * job (open_job.c) the slots tell nothing, and the keys of the two are compared.
 *
 * Reclamation. A thread may look at a descriptor whose run has just ended. The descriptors are the
 * slots of the ring, and their memory is never anything else while a job runs, so a late look is
 * never wild; it may only be stale. Hence: read the record, read the owner's entry, read the record
 * again. If the reference is still the same, the entry belonged to it, because every run of a slot
 * has an incarnation of its own, and gives all records back before the next one writes an entry.
 * The few bits of an incarnation in a reference cannot wrap during one look: who looks is itself a
 * transaction that has not committed, and until it has, the slot of another one within the horizon
 * has no further tenant (quiescence: the ring is longer than twice the horizon), while each rerun
 * of the same tenant takes a commit of an earlier transaction, of which there are at most a horizon. */
#include "protocols/ownership_records.h"

#include <assert.h>
#include <stdlib.h>

#include "core/engine.h"
#include "specstream.h"

static const uint64_t most_records = UINT64_C(1) << 20;

/* The regions of the configuration; without any, the whole state is one. */
static uint64_t region_count(const struct ss_config *config)
{
    return config->region_count != 0 ? config->region_count : 1;
}

static struct ss_region region_at(const struct ss_config *config, uint64_t at)
{
    return config->region_count != 0 ? config->regions[at]
                                     : (struct ss_region){0, config->record_shift};
}

/* Gives each region records of its own, as long as there are enough; where there are fewer, they are
 * used again. Returns how many it takes; `made` may be NULL. */
static uint64_t number_records(const struct ss_config *config, struct ss_record_region *made)
{
    uint64_t used = 0;
    uint64_t count = region_count(config);
    assert(region_at(config, 0).first == 0);
    for (uint64_t i = 0; i < count; i++) {
        struct ss_region region = region_at(config, i);
        uint64_t end = i + 1 < count ? region_at(config, i + 1).first : config->state_words;
        assert(region.first < end && region.shift <= 32);
        if (made != NULL)
            /* The bias makes (word + bias) >> shift count on where the region before ends. */
            made[i] = (struct ss_record_region){.end = i + 1 < count ? end : UINT64_MAX,
                                                .bias = (used << region.shift) - region.first,
                                                .shift = region.shift};
        used += ((end - region.first - 1) >> region.shift) + 1;
    }
    return used;
}

uint64_t ss_record_count(const struct ss_config *config)
{
    uint64_t most = config->records != 0 ? config->records : most_records;
    uint64_t used = number_records(config, NULL);
    uint64_t count = 1;
    while (count < most && count < used)
        count *= 2;
    return count;
}

uint64_t ss_record_region_bytes(const struct ss_config *config)
{
    return region_count(config) * sizeof(struct ss_record_region);
}

uint64_t ss_owned_limit(const struct ss_config *config)
{
    return config->redo_limit < ss_position_mask ? config->redo_limit : ss_position_mask;
}

bool ss_records_open(struct ss_engine *engine)
{
    uint64_t count = ss_record_count(&engine->config);
    engine->record_mask = count - 1;
    engine->owned_limit = ss_owned_limit(&engine->config);
    engine->records = calloc(count, sizeof *engine->records);
    engine->regions = malloc(ss_record_region_bytes(&engine->config));
    if (engine->records == NULL || engine->regions == NULL)
        return false;
    number_records(&engine->config, engine->regions);
    return true;
}
