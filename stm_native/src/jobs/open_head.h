/* The head of an open job: taken, and left when it has committed or not. */
#ifndef SPECSTREAM_OPEN_HEAD_H
#define SPECSTREAM_OPEN_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/commit.h"

struct ss_early;
struct ss_engine;
struct ss_transaction;
struct ss_worker;

/* With the turn: takes the head, finished or not, for a commit or a run in place; NULL: neither. */
struct ss_transaction *ss_queue_take_head(struct ss_engine *engine, bool *finished);
/* With the turn: runs it on the committed state; false: it did not come to its end, and each span begins
 * with the first of its events that has not run. */
bool ss_run_spans_in_place(struct ss_worker *worker, struct ss_transaction *transaction,
                           int64_t number);
/* What has run in place so far is final. */
void ss_early_note_final(struct ss_early *early, const struct ss_transaction *transaction);
/* The head has come to an end, good or bad. */
void ss_queue_leave_head(struct ss_engine *engine, struct ss_transaction *transaction,
                         enum ss_progress progress);
/* With the mutex: what was due has fired, or not all. */
void ss_queue_leave_timers(struct ss_worker *worker, uint64_t before);
/* Fires what is due at the frontier. False: nothing has, or not all. */
bool ss_queue_fire_at_frontier(struct ss_worker *worker);
/* With the turn: the transaction runs in place, and somebody is about to look how far it is. */
void ss_queue_tell_applied(struct ss_engine *engine, struct ss_transaction *transaction);

#endif
