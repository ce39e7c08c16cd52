/* A figure: a word with one writer, at which others look while it works. */
#ifndef SPECSTREAM_FIGURE_H
#define SPECSTREAM_FIGURE_H

#include <stdint.h>

/* A worker's figures are its own to write, and read by others while it works. */
static inline void ss_count(uint64_t *figure, uint64_t more)
{
    __atomic_store_n(figure, *figure + more, __ATOMIC_RELAXED);
}

/* Adds to a figure that only ever has one writer at a time; others read it meanwhile. */
static inline void ss_grow(uint64_t *figure, uint64_t to)
{
    __atomic_store_n(figure, to, __ATOMIC_RELAXED);
}

static inline uint64_t ss_counted(const uint64_t *figure)
{
    return __atomic_load_n(figure, __ATOMIC_RELAXED);
}

#endif
