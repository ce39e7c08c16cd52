/* Open jobs, step by step: the events of steps.h, which come when the test says.
 *
 * Event k is the k-th to arrive, and row k of its segment; its place in the order is told by its
 * timestamp and source. At the end the job must be as the sequential run in that order. */
#ifndef SPECSTREAM_TESTS_OPEN_STEPS_H
#define SPECSTREAM_TESTS_OPEN_STEPS_H

#include "core/transaction.h"
#include "specstream.h"
#include "steps.h"

struct place {
    int64_t timestamp;
    int64_t source;
};

/* Starts an open job on the stage, whose mode is SS_MODE_OPEN. */
void open_start(const row *events, const struct place *places, int64_t count);
/* Events [first, last) come, all of one source. */
void open_submit(int64_t first, int64_t last);
void open_advance(int64_t timestamp, int64_t source);
/* Events that are neither applied nor have failed and been heard of. */
int64_t open_left(void);
/* With the turn: those of them that are not applied, though their chunk be in its midst. */
int64_t open_not_applied(void);
void await_left(int64_t events);
/* Waits until the transaction that holds the event has that status, and returns its number; -1 where
 * `status` is SS_FREE and none holds it. */
int64_t await_event(int64_t event, enum ss_status status);
/* Waits for an event that fails, and returns its row. */
int64_t await_failure(void);
/* Lets everything go and everything commit, and compares. */
struct ss_outcome open_end(void);

#endif
