/* A small random generator (splitmix64), so that a seed names one test on every machine. */
#ifndef SPECSTREAM_TESTS_DICE_H
#define SPECSTREAM_TESTS_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

static inline uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

static inline uint64_t roll(struct dice *dice)
{
    dice->state += UINT64_C(0x9E3779B97F4A7C15);
    return mix(dice->state);
}

/* Uniform enough in [0, sides); sides > 0. */
static inline uint64_t below(struct dice *dice, uint64_t sides)
{
    return roll(dice) % sides;
}

/* Each power of two up to `most` is as likely as the next: small numbers are where limits are met,
 * and large ones where time is spent. */
static inline uint64_t spread(struct dice *dice, uint64_t most)
{
    uint64_t bits = 0;
    while (bits < 63 && (most >> bits) > 1)
        bits++;
    uint64_t bound = UINT64_C(2) << below(dice, bits + 1);
    return below(dice, bound > most ? most + 1 : bound);
}

static inline bool chance(struct dice *dice, uint64_t one_in)
{
    return below(dice, one_in) == 0;
}

/* A generator of its own for part `part` of what `seed` names: what one part draws, and how often,
 * does not shift the draws of the next. */
static inline struct dice dice_for(uint64_t seed, uint64_t part)
{
    return (struct dice){mix(seed ^ mix(part + UINT64_C(0x6A09E667F3BCC909)))};
}

#endif
