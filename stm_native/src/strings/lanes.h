/* Strings that are hashed at once, one in each lane of the processor's vectors.
 *
 * What is written for LANES of them is included once for each width. */
#ifndef SPECSTREAM_LANES_H
#define SPECSTREAM_LANES_H

#include <stdint.h>

enum { SS_MOST_LANES = 8 };

/* Eight, four, or one: there are no vectors. */
static inline uint64_t ss_lanes(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? 8 : __builtin_cpu_supports("avx2") ? 4 : 1;
#else
    return 1;
#endif
}

#define SS_NAMED_(name, lanes) name##_##lanes
#define SS_NAMED(name, lanes) SS_NAMED_(name, lanes)
#define VECTOR SS_NAMED(vector, LANES)

/* A vector of what `of` is for each lane. Words that are stored one by one and loaded as a vector take twice
 * as long: the load waits until all stores have reached the cache. */
#define SS_EACH_LANE(of) SS_NAMED(SS_EACH_OF, LANES)(of)
#define SS_EACH_OF_4(of) {of(0), of(1), of(2), of(3)}
#define SS_EACH_OF_8(of) {of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)}

#endif
