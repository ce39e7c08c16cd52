/* Commutative updates: logged unread, applied by the head. */
#ifndef SPECSTREAM_DELTA_H
#define SPECSTREAM_DELTA_H

#include <stdbool.h>
#include <stdint.h>

#include "core/narrow.h"
#include "core/redo_index.h"
#include "specstream.h"

struct ss_engine;
struct ss_transaction;

/* Logs a delta, or applies it to what this run has stored. */
void ss_delta_log(struct ss_run *run, struct ss_unit unit, uint32_t delta, uint64_t operand);
/* Puts a store to a word whose deltas are pending into its chain, or settles them. True: done; false:
 * `slot` is no longer pending, or the verdict says that the run ends. */
bool ss_delta_store(struct ss_run *run, struct ss_slot *slot, struct ss_unit unit, uint64_t value,
                    ss_reader read);
/* The entry of a pending word that holds an element; NULL: none does, or the run ends. */
const struct ss_write *ss_delta_find(struct ss_run *run, struct ss_slot *slot, struct ss_unit unit,
                                     ss_reader read);
/* With the turn: what a delta makes of a word; false: the element cannot hold it. */
bool ss_delta_apply(const struct ss_write *delta, uint64_t *word);
/* With the turn: what a chain of entries, given by its last one, makes of its word, and which bytes
 * of it they are about; false: an element cannot hold it. */
bool ss_delta_chain(const struct ss_engine *engine, const struct ss_transaction *transaction,
                    const struct ss_write *last, uint64_t *word, uint32_t *bytes);
/* With the turn: whether all deltas of a finished run can be applied. */
bool ss_delta_fits(const struct ss_engine *engine, const struct ss_transaction *transaction);

#endif
