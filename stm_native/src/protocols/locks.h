/* The operator's own locks. */
#ifndef SPECSTREAM_LOCKS_H
#define SPECSTREAM_LOCKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processor/processor.h"
#include "specstream.h"

struct ss_engine;
struct ss_worker;

/* One of the locks of SS_MODE_LOCKED. */
struct ss_lock {
    _Alignas(SS_CACHE_LINE) pthread_mutex_t mutex;
    _Atomic uint64_t owner; /* number of the worker that holds it, from 1 on; 0: nobody */
};

#define SS_LOCKS_NAMED (sizeof((struct ss_lock_fault){0}.locks) / sizeof(uint64_t))

bool ss_locks_open(struct ss_engine *engine);
void ss_locks_close(struct ss_engine *engine);
size_t ss_locks_bytes(const struct ss_config *config);
/* After an entry has returned: gives back what is held still. Events that have completed should not
 * hold any: they then fail. */
void ss_locks_give_back(struct ss_worker *worker);

#endif
