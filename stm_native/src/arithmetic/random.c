/* Philox4x64-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011).
 *
 * Randomness inside an operator is a function of the engine's seed and the event's order key, so
 * that a run that is repeated draws the same numbers. Bits, integers and normal numbers have streams
 * of their own, the second word of the key: event.random(0) says nothing of event.normal(0). */
#include <math.h>

#include "specstream.h"

__extension__ typedef unsigned __int128 uint128_t;

enum stream { BITS = 0, INTEGERS = 1, NORMAL = 2 };

struct block {
    uint64_t word[4];
};

static struct block philox(struct block counter, uint64_t seed, uint64_t stream)
{
    uint64_t key[2] = {seed, stream};

    for (int round = 0; round < 10; round++) {
        const uint64_t *word = counter.word;
        const uint128_t product0 = (uint128_t)UINT64_C(0xD2E7470EE14C6C93) * word[0];
        const uint128_t product1 = (uint128_t)UINT64_C(0xCA5A826395121157) * word[2];
        counter = (struct block){{(uint64_t)(product1 >> 64) ^ word[1] ^ key[0], (uint64_t)product1,
                                  (uint64_t)(product0 >> 64) ^ word[3] ^ key[1],
                                  (uint64_t)product0}};
        key[0] += UINT64_C(0x9E3779B97F4A7C15);
        key[1] += UINT64_C(0xBB67AE8584CAA73B);
    }
    return counter;
}

static struct block counter_of(int64_t timestamp, int64_t source, int64_t sequence, int64_t draw)
{
    return (struct block){
        {(uint64_t)timestamp, (uint64_t)source, (uint64_t)sequence, (uint64_t)draw}};
}

uint64_t ss_random_bits(uint64_t seed, int64_t timestamp, int64_t source, int64_t sequence,
                        int64_t draw)
{
    return philox(counter_of(timestamp, source, sequence, draw), seed, BITS).word[0];
}

/* Lemire (2019): the upper word of word * count, but for those lower words that one result too many
 * would come of. Then the next word is taken: of this block, or of those that follow it by the
 * stream's upper half. */
int32_t ss_random_integer(uint64_t seed, int64_t timestamp, int64_t source, int64_t sequence,
                          int64_t draw, int64_t low, int64_t high, int64_t *result)
{
    if (low >= high)
        return 1;
    const uint64_t count = (uint64_t)high - (uint64_t)low;
    const uint64_t rejected = (0 - count) % count;
    const struct block counter = counter_of(timestamp, source, sequence, draw);

    for (uint64_t at = 0;; at++) {
        const struct block block = philox(counter, seed, INTEGERS + (at << 32));
        for (int i = 0; i < 4; i++) {
            const uint128_t product = (uint128_t)block.word[i] * count;
            if ((uint64_t)product >= rejected) {
                *result = (int64_t)((uint64_t)low + (uint64_t)(product >> 64));
                return 0;
            }
        }
    }
}

/* Box and Muller (1958), of the first two words. */
double ss_random_normal(uint64_t seed, int64_t timestamp, int64_t source, int64_t sequence,
                        int64_t draw)
{
    const struct block block =
        philox(counter_of(timestamp, source, sequence, draw), seed, NORMAL);
    const double above_zero = (double)((block.word[0] >> 11) + 1) * 0x1p-53; /* in (0, 1] */
    const double turn = (double)(block.word[1] >> 11) * 0x1p-53;             /* in [0, 1) */

    return sqrt(-2.0 * log(above_zero)) * cos(0x1.921fb54442d18p+2 * turn);
}
