/* BLAKE2b of LANES strings at once, one in each lane of the vectors: for blake2b.c, which includes this once
 * for each width, with LANES, the processor's TARGET and a way to ROTATE. */

typedef uint64_t VECTOR __attribute__((vector_size(8 * LANES)));

__attribute__((target(TARGET))) static void SS_NAMED(hash, LANES)(const struct ss_octets *texts,
                                                               uint64_t *codes)
{
    VECTOR state[STATE], v[2 * STATE], m[WORDS] = {0}, blocks, length;
    uint64_t most = 0;
    for (int lane = 0; lane < LANES; lane++) {
        length[lane] = texts[lane].length;
        blocks[lane] = blocks_of(&texts[lane]);
        most = blocks[lane] > most ? blocks[lane] : most;
    }
    for (int i = 0; i < STATE; i++)
        state[i] = initial[i] - (VECTOR){0};
    state[0] ^= parameters;
    for (uint64_t block = 0; block < most; block++) {
        int used = 0;
        for (int lane = 0; lane < LANES; lane++) {
            int more = words_of(&texts[lane], block);
            used = more > used ? more : used;
        }
#define WORD(lane) word_of(&texts[lane], block, i)
        for (int i = 0; i < used; i++)
            m[i] = (VECTOR)SS_EACH_LANE(WORD);
#undef WORD
        for (int i = used; i < WORDS; i++)
            m[i] = (VECTOR){0};
        VECTOR done = (block + 1) * BLOCK - (VECTOR){0};
        for (int i = 0; i < STATE; i++) {
            v[i] = state[i];
            v[i + STATE] = initial[i] - (VECTOR){0};
        }
        VECTOR ends = (VECTOR)(length <= done);
        v[12] ^= (length & ends) | (done & ~ends);
        v[14] ^= (VECTOR)(blocks == block + 1);
#define MIX(a, b, c, d, x, y)                                                                      \
    v[a] += m[x] + v[b];                                                                           \
    v[d] = ROTATE(v[d] ^ v[a], 32);                                                                \
    v[c] += v[d];                                                                                  \
    v[b] = ROTATE(v[b] ^ v[c], 24);                                                                \
    v[a] += m[y] + v[b];                                                                           \
    v[d] = ROTATE(v[d] ^ v[a], 16);                                                                \
    v[c] += v[d];                                                                                  \
    v[b] = ROTATE(v[b] ^ v[c], 63);
        ROUNDS
#undef MIX
        /* Who has come to the end keeps the state. */
        VECTOR goes_on = (VECTOR)(blocks > block);
        for (int i = 0; i < STATE; i++)
            state[i] ^= (v[i] ^ v[i + STATE]) & goes_on;
    }
    for (int lane = 0; lane < LANES; lane++)
        codes[lane] = code_of(state[0][lane]);
}

#undef LANES
#undef TARGET
#undef ROTATE
