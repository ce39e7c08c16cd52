/* What the next commits need, fetched while this one goes on. */
#ifndef SPECSTREAM_PREFETCH_H
#define SPECSTREAM_PREFETCH_H

#include <stdint.h>

struct ss_engine;

/* With the turn, before the finished head is committed. */
void ss_prefetch_behind(struct ss_engine *engine, int64_t head);

#endif
