/* Elements of an event's own lists, dicts and sets: equality, order, hashes. */
#ifndef SPECSTREAM_LOCAL_ELEMENTS_H
#define SPECSTREAM_LOCAL_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Words of an element. */
static inline uint64_t ss_width_of(uint64_t kinds)
{
    return kinds == 0 ? 0 : (67 - (uint64_t)__builtin_clzll(kinds)) / 4;
}

bool ss_elements_are_equal(uint64_t kinds, const uint64_t *left, const uint64_t *right);
/* Less than 0, 0 or more than 0; there is no NaN among them. */
int ss_elements_order(uint64_t kinds, const uint64_t *left, const uint64_t *right);
bool ss_has_nan(uint64_t kinds, const uint64_t *element);
/* Equal keys have equal hashes. */
uint64_t ss_hash_of(uint64_t kinds, const uint64_t *key);

#endif
