/* Which words runs were dropped for. */
#ifndef SPECSTREAM_PROFILE_H
#define SPECSTREAM_PROFILE_H

#include "core/transaction.h"

struct ss_worker;

/* The size of the memory of what runs were dropped for; see profile.c. */
enum { SS_HOT_GROUPS = 64, SS_HOT_ENTRIES = 8 };

/* Remembers that a run was dropped for a place. */
void ss_hot_note(struct ss_worker *worker, struct ss_place place);

#endif
