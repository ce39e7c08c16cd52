/* Predicted counters. */
#ifndef SPECSTREAM_COUNTER_PREDICTION_H
#define SPECSTREAM_COUNTER_PREDICTION_H

#include <stdint.h>

#include "core/redo_index.h"
#include "specstream.h"

struct ss_engine;
struct ss_transaction;

/* In place of the mask of bytes, of a logged read that is no read but a prediction: only the head can
 * tell whether it holds. */
enum { SS_PREDICTION = 0x100 };
/* An increment by a speculative run. `read`: how its protocol reads one that the run has
 * updated before. */
uint64_t ss_predict_increment(struct ss_run *run, uint64_t word, ss_reader read);
void ss_prediction_begin(struct ss_transaction *transaction);
/* With the turn: transaction `number` is the head. */
void ss_prediction_fold(struct ss_engine *engine, int64_t number);
void ss_prediction_start(struct ss_engine *engine, int64_t chunk_before);
/* The same in an open job, with its mutex. What a transaction begins with that comes after `count`
 * others, given by their slots: */
void ss_prediction_look_ahead(struct ss_engine *engine, struct ss_transaction *transaction,
                              const uint64_t *earlier, uint64_t count);
/* With the turn as well: the head has come to an end; how many events have committed with it, 0: not
 * all of them. */
void ss_prediction_fold_open(struct ss_engine *engine, int64_t events);

#endif
