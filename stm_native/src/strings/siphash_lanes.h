/* SipHash-1-3 of LANES strings of one length at once, one in each lane of the vectors: for siphash.c, which includes this
 * once for each width, with LANES and the processor's TARGET. */

typedef uint64_t VECTOR __attribute__((vector_size(8 * LANES)));

__attribute__((target(TARGET))) static void
SS_NAMED(hash, LANES)(const uint64_t *secret, const struct ss_octets *texts, uint64_t *hashes)
{
    VECTOR a = START_A - (VECTOR){0}, b = START_B - (VECTOR){0};
    VECTOR c = START_C - (VECTOR){0}, d = START_D - (VECTOR){0};
    uint64_t length = texts[0].length;
    for (uint64_t i = 0; i <= length / 8; i++) {
#define WORD(lane) word_of(texts[lane].bytes, length, i)
        VECTOR word = SS_EACH_LANE(WORD);
#undef WORD
        d ^= word;
        ROUND
        a ^= word;
    }
    c ^= 0xff;
    ROUND
    ROUND
    ROUND
    VECTOR found = a ^ b ^ c ^ d;
    memcpy(hashes, &found, sizeof found);
}

#undef LANES
#undef TARGET
