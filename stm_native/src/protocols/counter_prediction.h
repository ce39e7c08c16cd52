/* Predicted counters. */
#ifndef SPECSTREAM_COUNTER_PREDICTION_H
#define SPECSTREAM_COUNTER_PREDICTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/redo_log.h"
#include "specstream.h"

struct ss_engine;
struct ss_transaction;

enum { SS_COUNTERS = 4 }; /* words that are predicted */

/* A word that is predicted. */
struct ss_counter {
    _Atomic uint64_t name;  /* the word's index, plus 1; 0: this one is free */
    _Atomic int64_t number; /* of the transaction that begins with `value`; -1: not known */
    _Atomic uint64_t value;
    _Atomic uint64_t usual; /* what a committed transaction has added of late, in parts of one */
    uint64_t samples;       /* that this is the mean of; of who may change a note */
};

/* In place of the mask of bytes, of a logged read that is no read but a prediction: only the head can
 * tell whether it holds. */
enum { SS_PREDICTION = 0x100 };
/* An increment by a speculative run. `read`: how its protocol reads one that the run has
 * updated before. */
uint64_t ss_predict_increment(struct ss_run *run, uint64_t word, ss_reader read);
/* Whether there is a counter. Relaxed: who sees it late predicts worse. */
static inline bool ss_predicts(const struct ss_counter *counters)
{
    return atomic_load_explicit(&counters[0].name, memory_order_relaxed) != 0;
}
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
