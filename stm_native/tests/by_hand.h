/* Transactions by hand: the test calls, from one thread, what compiled code and the scheduler would.
 *
 * Number 0 has committed; 1 and 2 have begun, the first of them the earlier one. The test has the turn,
 * so either can commit when it says so. */
#ifndef SPECSTREAM_TESTS_BY_HAND_H
#define SPECSTREAM_TESTS_BY_HAND_H

#include "specstream.h"
#include "steps.h"

extern struct ss_engine *engine;

/* An engine over the state of a configuration, which also says the protocol and the limits of the logs;
 * the rest is filled in here. `first` is what transaction 0 does; NULL: nothing. */
void hand_open(const char *name, struct ss_config config, void (*first)(void));
/* Whatever has begun is dropped. */
void hand_close(void);
/* Its run ends and is undone; a second time, nothing is left to undo. */
void hand_drop(int number);

bool is_eager(void);
struct ss_run *run_of(int number);
struct ss_transaction *transaction_of(int number);
void begin(int number);
/* Whether the run got to its end. */
bool finishes(int number);
/* The same, and was still valid, and is published. */
bool commits(int number);
/* An event of the head, in place, on a worker whose transaction has not begun or is dropped; then its
 * end. */
void begin_in_place(int number, int64_t event);
void end_in_place(int number, bool undone);

#endif
