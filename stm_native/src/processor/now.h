/* The time, in nanoseconds since some instant. */
#ifndef SPECSTREAM_NOW_H
#define SPECSTREAM_NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t ss_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
