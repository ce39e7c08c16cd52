/* How C accesses the words of the state. */
#ifndef SPECSTREAM_STATE_WORDS_H
#define SPECSTREAM_STATE_WORDS_H

#include <stdint.h>

/* State words are plain memory to the user and shared memory to speculators: the head writes them
 * while others read. Every access from C is therefore atomic and relaxed; what orders accesses is
 * the turn, never the word itself. */
static inline uint64_t ss_word_read(const uint64_t *address)
{
    return __atomic_load_n(address, __ATOMIC_RELAXED);
}

static inline void ss_word_write(uint64_t *address, uint64_t value)
{
    __atomic_store_n(address, value, __ATOMIC_RELAXED);
}

#endif
