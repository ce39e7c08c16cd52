/* BLAKE2b, of which a string's code is the first eight bytes.
 *
 * Saarinen and Aumasson, RFC 7693: a text is cut into blocks of 128 bytes, and each of them is worked into a
 * state of eight words by twelve rounds of additions, exclusive ors and rotations. The digest has eight bytes
 * here, which is a parameter of the function (it is not a longer digest, cut off), there is no key, and
 * all there is of the digest is the state's first word.
 *
 * One string after the other, a processor waits for the result of each addition. So where it has AVX2, four
 * strings are hashed at once, one in each lane of the vectors: the same steps on the same words, hence the
 * same bits. Strings of different lengths go together: a lane that has come to its end keeps its state
 * while others go on. */
#include "blake2b.h"

#include <string.h>

enum { BLOCK = 128, WORDS = BLOCK / 8, STATE = 8 };

static const uint64_t initial[STATE] = {
    UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b),
    UINT64_C(0xa54ff53a5f1d36f1), UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
    UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179)};

/* No key, one leaf, and the length of the digest. */
static const uint64_t parameters = UINT64_C(0x01010000) ^ 8;

/* A round mixes the four columns and then the four diagonals of the state as a square, with the words of
 * the block in an order of its own; the last two have those of the first two. */
#define ROUND(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                                      \
    MIX(0, 4, 8, 12, a, b)                                                                         \
    MIX(1, 5, 9, 13, c, d)                                                                         \
    MIX(2, 6, 10, 14, e, f)                                                                        \
    MIX(3, 7, 11, 15, g, h)                                                                        \
    MIX(0, 5, 10, 15, i, j)                                                                        \
    MIX(1, 6, 11, 12, k, l)                                                                        \
    MIX(2, 7, 8, 13, m, n)                                                                         \
    MIX(3, 4, 9, 14, o, p)
#define ROUNDS                                                                                     \
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)                                    \
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)                                    \
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)                                    \
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)                                    \
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)                                    \
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)                                    \
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)                                    \
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)                                    \
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)                                    \
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)                                    \
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)                                    \
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)

static uint64_t blocks_of(const struct ss_octets *text)
{
    return text->length == 0 ? 1 : (text->length - 1) / BLOCK + 1;
}

static uint64_t little_endian(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(word);
#else
    return word;
#endif
}

/* The words of a block, zeros behind the end of the text. How much of the text is worked in with it. */
static uint64_t read_block(const struct ss_octets *text, uint64_t block, uint64_t *words)
{
    uint64_t done = block * BLOCK, left = text->length - done;
    uint64_t bytes = left < BLOCK ? left : BLOCK;
    memset(words, 0, BLOCK);
    if (bytes != 0)
        memcpy(words, text->bytes + done, bytes);
    for (int i = 0; i < WORDS; i++)
        words[i] = little_endian(words[i]);
    return done + bytes;
}

/* 0 stands for no string. */
static uint64_t code_of(uint64_t word)
{
    return word == 0 ? 1 : word;
}

static uint64_t rotated(uint64_t word, int by)
{
    return word >> by | word << (64 - by);
}

static uint64_t hash(const struct ss_octets *text)
{
    uint64_t state[STATE], m[WORDS], blocks = blocks_of(text);
    memcpy(state, initial, sizeof state);
    state[0] ^= parameters;
    for (uint64_t block = 0; block < blocks; block++) {
        uint64_t v[2 * STATE];
        memcpy(v, state, sizeof state);
        memcpy(v + STATE, initial, sizeof initial);
        v[12] ^= read_block(text, block, m);
        if (block == blocks - 1)
            v[14] = ~v[14];
#define MIX(a, b, c, d, x, y)                                                                      \
    v[a] += v[b] + m[x];                                                                           \
    v[d] = rotated(v[d] ^ v[a], 32);                                                               \
    v[c] += v[d];                                                                                  \
    v[b] = rotated(v[b] ^ v[c], 24);                                                               \
    v[a] += v[b] + m[y];                                                                           \
    v[d] = rotated(v[d] ^ v[a], 16);                                                               \
    v[c] += v[d];                                                                                  \
    v[b] = rotated(v[b] ^ v[c], 63);
        ROUNDS
#undef MIX
        for (int i = 0; i < STATE; i++)
            state[i] ^= v[i] ^ v[i + STATE];
    }
    return code_of(state[0]);
}

void ss_blake2b_plain(const struct ss_octets *texts, uint64_t count, uint64_t *codes)
{
    for (uint64_t i = 0; i < count; i++)
        codes[i] = hash(&texts[i]);
}

#if defined(__x86_64__)

#include <immintrin.h>

enum { LANES = 4 };

#define IN_LANES __attribute__((target("avx2")))

/* Word i of each lane's block, in vector i. */
IN_LANES static inline void transpose(const uint64_t blocks[LANES][WORDS], __m256i *m)
{
    for (int i = 0; i < WORDS; i += LANES) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(blocks[0] + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(blocks[1] + i));
        __m256i c = _mm256_loadu_si256((const __m256i *)(blocks[2] + i));
        __m256i d = _mm256_loadu_si256((const __m256i *)(blocks[3] + i));
        __m256i ab0 = _mm256_unpacklo_epi64(a, b), ab1 = _mm256_unpackhi_epi64(a, b);
        __m256i cd0 = _mm256_unpacklo_epi64(c, d), cd1 = _mm256_unpackhi_epi64(c, d);
        m[i] = _mm256_permute2x128_si256(ab0, cd0, 0x20);
        m[i + 1] = _mm256_permute2x128_si256(ab1, cd1, 0x20);
        m[i + 2] = _mm256_permute2x128_si256(ab0, cd0, 0x31);
        m[i + 3] = _mm256_permute2x128_si256(ab1, cd1, 0x31);
    }
}

IN_LANES static void hash_lanes(const struct ss_octets *texts, uint64_t *codes)
{
    /* Rotations by whole bytes are permutations of them. */
    const __m256i by_24 = _mm256_setr_epi8(3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10, 3,
                                           4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10);
    const __m256i by_16 = _mm256_setr_epi8(2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9, 2,
                                           3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9);
    uint64_t blocks[LANES], most = 0, words[LANES][WORDS];
    for (int lane = 0; lane < LANES; lane++) {
        blocks[lane] = blocks_of(&texts[lane]);
        most = blocks[lane] > most ? blocks[lane] : most;
    }
    __m256i state[STATE], v[2 * STATE], m[WORDS];
    for (int i = 0; i < STATE; i++)
        state[i] = _mm256_set1_epi64x((int64_t)initial[i]);
    state[0] = _mm256_xor_si256(state[0], _mm256_set1_epi64x((int64_t)parameters));
    for (uint64_t block = 0; block < most; block++) {
        int64_t done[LANES], last[LANES], over[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            over[lane] = -(int64_t)(block >= blocks[lane]);
            last[lane] = -(int64_t)(block == blocks[lane] - 1);
            if (over[lane] == 0)
                done[lane] = (int64_t)read_block(&texts[lane], block, words[lane]);
            else
                done[lane] = 0;
            if (over[lane] != 0 && block == blocks[lane])
                memset(words[lane], 0, BLOCK);
        }
        transpose((const uint64_t(*)[WORDS])words, m);
        for (int i = 0; i < STATE; i++) {
            v[i] = state[i];
            v[i + STATE] = _mm256_set1_epi64x((int64_t)initial[i]);
        }
        v[12] = _mm256_xor_si256(v[12], _mm256_loadu_si256((const __m256i *)done));
        v[14] = _mm256_xor_si256(v[14], _mm256_loadu_si256((const __m256i *)last));
#define MIX(a, b, c, d, x, y)                                                                      \
    v[a] = _mm256_add_epi64(_mm256_add_epi64(v[a], m[x]), v[b]);                                   \
    v[d] = _mm256_shuffle_epi32(_mm256_xor_si256(v[d], v[a]), 0xb1);                               \
    v[c] = _mm256_add_epi64(v[c], v[d]);                                                           \
    v[b] = _mm256_shuffle_epi8(_mm256_xor_si256(v[b], v[c]), by_24);                               \
    v[a] = _mm256_add_epi64(_mm256_add_epi64(v[a], m[y]), v[b]);                                   \
    v[d] = _mm256_shuffle_epi8(_mm256_xor_si256(v[d], v[a]), by_16);                               \
    v[c] = _mm256_add_epi64(v[c], v[d]);                                                           \
    v[b] = _mm256_xor_si256(v[b], v[c]);                                                           \
    v[b] = _mm256_or_si256(_mm256_srli_epi64(v[b], 63), _mm256_add_epi64(v[b], v[b]));
        ROUNDS
#undef MIX
        __m256i keep = _mm256_loadu_si256((const __m256i *)over);
        for (int i = 0; i < STATE; i++) {
            __m256i next = _mm256_xor_si256(state[i], _mm256_xor_si256(v[i], v[i + STATE]));
            state[i] = _mm256_blendv_epi8(next, state[i], keep);
        }
    }
    uint64_t found[LANES];
    _mm256_storeu_si256((__m256i *)found, state[0]);
    for (int lane = 0; lane < LANES; lane++)
        codes[lane] = code_of(found[lane]);
}

bool ss_blake2b_has_lanes(void)
{
    return __builtin_cpu_supports("avx2");
}

void ss_blake2b_lanes(const struct ss_octets *texts, uint64_t count, uint64_t *codes)
{
    uint64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        hash_lanes(texts + at, codes + at);
    if (count - at > 1) {
        /* Empty strings in the lanes that are left. */
        struct ss_octets last[LANES] = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
        uint64_t found[LANES];
        memcpy(last, texts + at, (count - at) * sizeof *last);
        hash_lanes(last, found);
        memcpy(codes + at, found, (count - at) * sizeof *codes);
    } else
        ss_blake2b_plain(texts + at, count - at, codes + at);
}

#else

bool ss_blake2b_has_lanes(void)
{
    return false;
}

void ss_blake2b_lanes(const struct ss_octets *texts, uint64_t count, uint64_t *codes)
{
    ss_blake2b_plain(texts, count, codes);
}

#endif

void ss_blake2b_codes(const struct ss_octets *texts, uint64_t count, uint64_t *codes)
{
    if (ss_blake2b_has_lanes())
        ss_blake2b_lanes(texts, count, codes);
    else
        ss_blake2b_plain(texts, count, codes);
}
