/* A batch of events that come out of order, from several sources, while the job runs. */
#ifndef SPECSTREAM_TESTS_RANDOM_OPEN_JOB_H
#define SPECSTREAM_TESTS_RANDOM_OPEN_JOB_H

#include "random_operator.h"
#include "specstream.h"

struct open_batch {
    struct ss_engine *engine;
    const uint64_t *state;
    uint64_t emit_words;
    const struct shape *shape;
    struct model *model;
    const uint64_t *seeds;
    const uint8_t *tempers;
    const uint64_t *keys[3];
    int64_t time; /* no event is before it; in the end that of the last one */
    int64_t count;
    struct dice dice;
    /* found out */
    uint64_t rows;
    uint64_t failures;
    uint64_t failed_timers;
    uint64_t early_checks; /* of what was told, against a sequential run from scratch */
};

/* Draws sources, timestamps and the order of arrival, runs the job, and compares it again and again
 * with the sequential run in the order of the keys. */
struct ss_outcome run_open_batch(struct open_batch *open, const struct ss_job *job);

#endif
