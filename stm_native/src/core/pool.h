/* Threads that sleep between jobs. */
#ifndef SPECSTREAM_POOL_H
#define SPECSTREAM_POOL_H

#include <stdbool.h>

struct ss_engine;

bool ss_pool_start(struct ss_engine *engine);
/* The job of the engine begins. */
void ss_pool_call(struct ss_engine *engine);
bool ss_pool_is_running(struct ss_engine *engine);
void ss_pool_stop(struct ss_engine *engine);

#endif
