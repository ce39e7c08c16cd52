/* Philox4x64-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011).
 *
 * Randomness inside an operator is a function of the engine's seed and the event's order key, so
 * that a run that is repeated draws the same numbers. */
#include "specstream.h"

uint64_t ss_random_bits(uint64_t seed, int64_t timestamp, int64_t source, int64_t sequence,
                        int64_t draw)
{
    uint64_t counter[4] = {(uint64_t)timestamp, (uint64_t)source, (uint64_t)sequence,
                           (uint64_t)draw};
    uint64_t key[2] = {seed, 0};
    for (int round = 0; round < 10; round++) {
        __extension__ unsigned __int128 product0 =
            (unsigned __int128)UINT64_C(0xD2E7470EE14C6C93) * counter[0];
        __extension__ unsigned __int128 product1 =
            (unsigned __int128)UINT64_C(0xCA5A826395121157) * counter[2];
        uint64_t next0 = (uint64_t)(product1 >> 64) ^ counter[1] ^ key[0];
        uint64_t next2 = (uint64_t)(product0 >> 64) ^ counter[3] ^ key[1];
        counter[0] = next0;
        counter[1] = (uint64_t)product1;
        counter[2] = next2;
        counter[3] = (uint64_t)product0;
        key[0] += UINT64_C(0x9E3779B97F4A7C15);
        key[1] += UINT64_C(0xBB67AE8584CAA73B);
    }
    return counter[0];
}
