/* The threads that live beside an engine in real use: one that reads the state while a job runs, one
 * that watches the figures, and one that wants the job to end. */
#ifndef SPECSTREAM_TESTS_COMPANIONS_H
#define SPECSTREAM_TESTS_COMPANIONS_H

#include <pthread.h>
#include <stdatomic.h>

#include "random_operator.h"

enum request { REQUEST_NONE, REQUEST_STOP, REQUEST_KILL };

struct companions {
    struct ss_engine *engine;
    const struct shape *shape;
    const uint64_t *state;
    uint64_t seed;
    bool reading; /* whether there is a reader at all: it slows the job down */
    bool looking; /* the watcher looks keys up, without the turn */
    pthread_t reader;
    pthread_t watcher;
    pthread_t stopper;
    _Atomic uint64_t unordered; /* odd: a job runs that does not say when it changes the state */
    _Atomic bool over;
    uint64_t turns_taken; /* to be read after the end */
    uint64_t keys_seen;   /* without the turn; likewise */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum request request;
    uint64_t delay_nanoseconds;
};

/* The caller has filled in the fields up to `looking`. */
void companions_start(struct companions *companions);
void companions_end(struct companions *companions);
/* To be called after the job's start, as a request before it belongs to no job. */
void companions_request(struct companions *companions, enum request request,
                        uint64_t delay_nanoseconds);
/* Waits until the request was made, so that it cannot reach the next job. */
void companions_settle(struct companions *companions);

#endif
