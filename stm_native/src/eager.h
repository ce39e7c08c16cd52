/* The dissertation's protocol: conflicts are found at the access. */
#ifndef SPECSTREAM_EAGER_H
#define SPECSTREAM_EAGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "processor.h"
#include "protocol.h"

struct ss_transaction;

/* A record that a transaction has locked, and the version that the record held before. */
struct ss_owned {
    uint32_t record;
    uint16_t site; /* of the store that locked it */
    _Atomic uint64_t version;
};

/* A region of the state, as the mapping from words to records needs it; see eager.c. */
struct ss_record_region {
    uint64_t end; /* the word behind its last */
    uint64_t bias;
    uint64_t shift;
};

extern const struct ss_protocol ss_protocol_eager;
bool ss_eager_open(struct ss_engine *engine);

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
uint64_t ss_eager_records(const struct ss_config *config);
/* Records that a speculative run may lock. */
uint64_t ss_eager_owned_limit(const struct ss_config *config);
uint64_t ss_eager_region_bytes(const struct ss_config *config);
/* Whether an earlier transaction has taken a lock from this run, and which. */
bool ss_eager_is_doomed(struct ss_transaction *transaction, int64_t number, int64_t *thief);

#endif
