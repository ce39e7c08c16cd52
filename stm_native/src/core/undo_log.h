/* What the head overwrites. */
#ifndef SPECSTREAM_UNDO_LOG_H
#define SPECSTREAM_UNDO_LOG_H

#include <stdint.h>

#include "core/narrow.h"

struct ss_run;

void ss_undo_roll_back(struct ss_run *run);

/* The head's own store: the old word goes into the undo log. */
void ss_store_in_place(struct ss_run *run, struct ss_unit unit, uint64_t value);

#endif
