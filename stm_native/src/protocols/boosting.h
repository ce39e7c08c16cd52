/* Operations with inverses, on a shadow of their fields. */
#ifndef SPECSTREAM_BOOSTING_H
#define SPECSTREAM_BOOSTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"
#include "specstream.h"

struct ss_engine;
struct ss_worker;

bool ss_boost_open(struct ss_engine *engine);
void ss_boost_close(struct ss_engine *engine);
uint64_t ss_boost_bytes(const struct ss_config *config);
uint64_t ss_boost_transaction_bytes(const struct ss_config *config);
/* No job runs: the state was changed by its owner. */
void ss_boost_state_changed(struct ss_engine *engine);
/* The job begins. */
void ss_boost_start(struct ss_engine *engine);
/* A speculative run begins. */
void ss_boost_begin(struct ss_transaction *transaction);
/* Takes back the operations of a run that does not commit; idempotent. */
void ss_boost_roll_back(struct ss_engine *engine, struct ss_transaction *transaction);
/* With the turn, of the head: whether an operation of its was taken back. Relaxed: the thief had the
 * turn or the latch before. */
static inline bool ss_boost_is_stolen(const struct ss_transaction *transaction)
{
    return atomic_load_explicit(&transaction->stolen_by, memory_order_relaxed) != SS_NOT_STOLEN;
}
/* Whether results of operations are part of what a run has seen. Relaxed: asked by the run itself. */
static inline bool ss_boost_has_performed(const struct ss_transaction *transaction)
{
    return atomic_load_explicit(&transaction->performed_count, memory_order_relaxed) != 0;
}
/* Likewise: why; sets the conflict. */
enum ss_abort_reason ss_boost_loss(struct ss_engine *engine, struct ss_transaction *transaction);
/* With the turn: does the head's operations on the state. False: they return something else, and
 * nothing is done; sets reason and conflict. */
bool ss_boost_commit(struct ss_worker *worker, struct ss_transaction *transaction);
/* With the turn: an event that ran in place was taken back. */
void ss_boost_undo_head(struct ss_worker *worker);

#endif
