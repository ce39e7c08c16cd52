/* What a speculative run writes, and finding it again. */
#ifndef SPECSTREAM_REDO_LOG_H
#define SPECSTREAM_REDO_LOG_H

#include <stdint.h>

#include "core/narrow.h"
#include "core/redo_index.h"
#include "specstream.h"

struct ss_engine;
struct ss_transaction;
struct ss_worker;

void ss_redo_begin(struct ss_worker *worker, struct ss_transaction *transaction);
/* The entry that holds an element which this run has stored to; NULL: it has not. Deltas of the
 * element are settled first. */
const struct ss_write *ss_redo_find_unit(struct ss_run *run, struct ss_unit unit, ss_reader read);
/* With the turn: writes what a run has stored into the state, or the image of it. */
void ss_redo_publish(uint64_t *state, const struct ss_transaction *transaction);

#endif
