/* Calls of compiled code, from which a fault leads back. */
#ifndef SPECSTREAM_CALL_H
#define SPECSTREAM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"

struct ss_worker;

/* Runs events [first, last); gives the first one that did not complete. */
int64_t ss_call(struct ss_worker *worker, enum ss_variant variant, int64_t first, int64_t last);
/* Calls an operation on a boosted structure, or an inverse; false: it has not come to its end, and the
 * run's verdict says so unless it has raised. */
bool ss_call_operation(struct ss_run *run, ss_operation_entry entry, uint64_t *returned);

#endif
