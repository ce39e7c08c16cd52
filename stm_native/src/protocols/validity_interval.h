/* The validity interval: when everything that a transaction has read was current. */
#ifndef SPECSTREAM_VALIDITY_INTERVAL_H
#define SPECSTREAM_VALIDITY_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"

struct ss_engine;
struct ss_transaction;

/* Whether everything read is still current; if not, the first that is not is the conflict. */
bool ss_reads_hold(const struct ss_engine *engine, struct ss_transaction *transaction,
                   const struct ss_read *end);
/* Extends the interval so far that it holds `version`, or aborts. The read is in the log already:
 * validated without it, it could have changed in between. */
void ss_extend_interval(struct ss_run *run, uint64_t version);

#endif
