/* A protocol, seen from the scheduler. */
#ifndef SPECSTREAM_PROTOCOL_H
#define SPECSTREAM_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"

struct ss_engine;
struct ss_transaction;
struct ss_worker;

/* How conflicts are found: what the scheduler asks of a protocol. The two differ in this table and
 * in nothing else that the scheduler knows. */
struct ss_protocol {
    enum ss_variant variant; /* the entry of a speculative run */
    /* The head speculates like everyone else, and a run dropped for a conflict speculates again:
     * false for `value`, whose head runs in place. */
    bool head_speculates;
    void (*begin)(struct ss_worker *worker, struct ss_transaction *transaction);
    uint64_t (*load)(struct ss_run *run, uint64_t word);
    void (*store)(struct ss_run *run, uint64_t word, uint64_t value);
    /* The entry has returned; the verdict may still become SS_ABORTED. */
    void (*finish)(struct ss_worker *worker, struct ss_transaction *transaction);
    /* By whoever has run it, at any time: it has read what has changed since. NULL: nobody need ask. */
    bool (*is_outdated)(const struct ss_engine *engine, struct ss_transaction *transaction);
    /* With the turn, as the head. False: it read something else than the head would; sets reason and
     * conflict. */
    bool (*validate)(const struct ss_engine *engine, struct ss_transaction *transaction);
    void (*publish)(struct ss_engine *engine, struct ss_transaction *transaction);
    /* Takes back what others may see of a run that does not commit; idempotent. */
    void (*roll_back)(struct ss_engine *engine, struct ss_transaction *transaction);
    /* Tells the speculators of the words that one event of an in-place run of `number` has stored
     * to: those between undo_base and `end`. NULL: they notice by themselves. */
    void (*invalidate_readers)(struct ss_worker *worker, int64_t number, const struct ss_undo *end);
};

#endif
