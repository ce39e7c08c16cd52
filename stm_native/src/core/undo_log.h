/* What the head overwrites. */
#ifndef SPECSTREAM_UNDO_LOG_H
#define SPECSTREAM_UNDO_LOG_H

struct ss_run;

void ss_undo_roll_back(struct ss_run *run);

#endif
