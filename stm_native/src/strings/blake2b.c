/* BLAKE2b, of which a string's code is the first eight bytes.
 *
 * Saarinen and Aumasson, RFC 7693: a text is cut into blocks of 128 bytes, and each of them is worked into a
 * state of eight words by twelve rounds of additions, exclusive ors and rotations. The digest has eight bytes
 * here, which is a parameter of the function (it is not a longer digest, cut off), there is no key, and
 * all there is of the digest is the state's first word.
 *
 * One string after the other, a processor waits for the result of each addition. So where it has AVX2, four
 * strings are hashed at once, and with AVX-512 eight, one in each lane of the vectors: the same steps on the
 * same words, hence the same bits. Strings of different lengths go together: a lane that has come to its end
 * keeps its state while others go on. */
#include "strings/blake2b.h"

#include <string.h>

#include "strings/lanes.h"
#include "strings/octets.h"

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

/* Words of a block that are not all behind the end of the text. */
static int words_of(const struct ss_octets *text, uint64_t block)
{
    uint64_t done = block * BLOCK;
    uint64_t words = text->length <= done ? 0 : (text->length - done - 1) / 8 + 1;
    return words < WORDS ? (int)words : WORDS;
}

/* One of them; what is behind the end counts as zeros. */
static inline uint64_t word_of(const struct ss_octets *text, uint64_t block, int number)
{
    uint64_t at = block * BLOCK + 8 * (uint64_t)number, word = 0;
    if (text->length >= at + 8)
        memcpy(&word, text->bytes + at, 8);
    else if (text->length >= 8 && text->length > at) {
        memcpy(&word, text->bytes + text->length - 8, 8);
        return little_endian(word) >> 8 * (at + 8 - text->length);
    } else if (text->length > at)
        memcpy(&word, text->bytes + at, text->length - at);
    return little_endian(word);
}

/* How much of the text has been worked in with this block. */
static uint64_t done_with(const struct ss_octets *text, uint64_t block)
{
    return block == blocks_of(text) - 1 ? text->length : (block + 1) * BLOCK;
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

static void hash_1(const struct ss_octets *text, uint64_t *code)
{
    uint64_t state[STATE], m[WORDS], blocks = blocks_of(text);
    memcpy(state, initial, sizeof state);
    state[0] ^= parameters;
    for (uint64_t block = 0; block < blocks; block++) {
        uint64_t v[2 * STATE];
        memcpy(v, state, sizeof state);
        memcpy(v + STATE, initial, sizeof initial);
        for (int i = 0; i < WORDS; i++)
            m[i] = word_of(text, block, i);
        v[12] ^= done_with(text, block);
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
    *code = code_of(state[0]);
}

#if defined(__x86_64__)

#include <immintrin.h>

/* AVX2 rotates by whole bytes as it permutes them. */
#define BYTES_24 3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10
#define BYTES_16 2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9
#define ROTATE_32(x) (vector_4) _mm256_shuffle_epi32((__m256i)(x), 0xb1)
#define ROTATE_24(x)                                                                               \
    (vector_4) _mm256_shuffle_epi8((__m256i)(x), _mm256_setr_epi8(BYTES_24, BYTES_24))
#define ROTATE_16(x)                                                                               \
    (vector_4) _mm256_shuffle_epi8((__m256i)(x), _mm256_setr_epi8(BYTES_16, BYTES_16))
#define ROTATE_63(x) (((x) + (x)) | (x) >> 63)

#define LANES 4
#define TARGET "avx2"
#define ROTATE(x, by) ROTATE_##by(x)
#include "strings/blake2b_lanes.h"

#define LANES 8
#define TARGET "avx512f"
#define ROTATE(x, by) (vector_8) _mm512_ror_epi64((__m512i)(x), by)
#include "strings/blake2b_lanes.h"

#else

#define hash_4 hash_1
#define hash_8 hash_1

#endif

void ss_blake2b_in_lanes(uint64_t lanes, const struct ss_octets *texts, uint64_t count,
                         uint64_t *codes)
{
    void (*hash_some)(const struct ss_octets *, uint64_t *) =
        lanes == 8 ? hash_8 : lanes == 4 ? hash_4 : hash_1;
    uint64_t at = 0;
    for (; at + lanes <= count; at += lanes)
        hash_some(texts + at, codes + at);
    if (count - at == 1)
        hash_1(texts + at, codes + at);
    else if (count - at > 1) {
        /* Empty strings in the lanes that are left. */
        struct ss_octets last[SS_MOST_LANES] = {{NULL, 0}};
        uint64_t found[SS_MOST_LANES];
        memcpy(last, texts + at, (count - at) * sizeof *last);
        hash_some(last, found);
        memcpy(codes + at, found, (count - at) * sizeof *codes);
    }
}

void ss_blake2b_codes(const struct ss_octets *texts, uint64_t count, uint64_t *codes)
{
    ss_blake2b_in_lanes(ss_lanes(), texts, count, codes);
}
