/* What the test is doing, for whoever has to say so: a failed check, or nobody at all.
 *
 * A scheduler's worst fault is to stand still, and then no thread of the test is left to report it.
 * So one thread does nothing but look whether the test still moves. */
#ifndef SPECSTREAM_TESTS_PATIENCE_H
#define SPECSTREAM_TESTS_PATIENCE_H

#include <stdint.h>

#include "specstream.h"

void patience_start(int64_t patience_seconds);
void patience_stop(void);
/* A new step of the test: `engine` is at work on what the text describes. NULL: between engines. */
__attribute__((format(printf, 2, 3))) void patience_note(struct ss_engine *engine,
                                                         const char *format, ...);
/* Prints the message and the last note, and ends the process with status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);

#endif
