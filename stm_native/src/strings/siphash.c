/* SipHash-1-3: where in an index a string is, as only this process knows.
 *
 * Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012). Who does not know the secret cannot find
 * strings that meet in one place of an index, and who does not see the hashes needs no more rounds than
 * one for each word and three at the end; so do the dicts of CPython and Rust. The texts of a stream come
 * from strangers, and with a hash that these can compute as well, they could make every look-up walk past
 * all of their strings.
 *
 * As with BLAKE2b (blake2b.c), strings are hashed four or eight at once where the processor has lanes, if they
 * are equally long, as identifiers are. */
#include "strings/siphash.h"

#include <string.h>

#include "strings/lanes.h"
#include "strings/octets.h"

static inline uint64_t read_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Word i of a text; the last one has the bytes behind the whole words, and the length above them. */
static inline uint64_t word_of(const uint8_t *bytes, uint64_t length, uint64_t i)
{
    uint64_t at = 8 * i, word = length << 56;
    if (length >= at + 8)
        return read_word(bytes + at);
    if (length >= 8)
        /* They are the last ones of a word that begins before them; a shift by 64 is none. */
        return word | read_word(bytes + length - 8) >> 8 * (at + 7 - length) >> 8;
    for (; at < length; at++)
        word |= (uint64_t)bytes[at] << 8 * at;
    return word;
}

#define ROTATED(word, by) ((word) << (by) | (word) >> (64 - (by)))
#define ROUND                                                                                      \
    a += b;                                                                                        \
    b = ROTATED(b, 13) ^ a;                                                                        \
    a = ROTATED(a, 32);                                                                            \
    c += d;                                                                                        \
    d = ROTATED(d, 16) ^ c;                                                                        \
    a += d;                                                                                        \
    d = ROTATED(d, 21) ^ a;                                                                        \
    c += b;                                                                                        \
    b = ROTATED(b, 17) ^ c;                                                                        \
    c = ROTATED(c, 32);

#define START_A (secret[0] ^ UINT64_C(0x736f6d6570736575))
#define START_B (secret[1] ^ UINT64_C(0x646f72616e646f6d))
#define START_C (secret[0] ^ UINT64_C(0x6c7967656e657261))
#define START_D (secret[1] ^ UINT64_C(0x7465646279746573))

uint64_t ss_siphash(const uint64_t *secret, const uint8_t *bytes, uint64_t length)
{
    uint64_t a = START_A, b = START_B, c = START_C, d = START_D;
    for (uint64_t i = 0; i <= length / 8; i++) {
        uint64_t word = word_of(bytes, length, i);
        d ^= word;
        ROUND
        a ^= word;
    }
    c ^= 0xff;
    ROUND
    ROUND
    ROUND
    return a ^ b ^ c ^ d;
}

static void hash_1(const uint64_t *secret, const struct ss_octets *texts, uint64_t *hashes)
{
    *hashes = ss_siphash(secret, texts->bytes, texts->length);
}

#if defined(__x86_64__)

#define LANES 4
#define TARGET "avx2"
#include "strings/siphash_lanes.h"

#define LANES 8
#define TARGET "avx512f"
#include "strings/siphash_lanes.h"

#else

#define hash_4 hash_1
#define hash_8 hash_1

#endif

void ss_siphash_in_lanes(uint64_t lanes, const uint64_t *secret, const struct ss_octets *texts,
                         uint64_t count, uint64_t *hashes)
{
    void (*hash_some)(const uint64_t *, const struct ss_octets *, uint64_t *) =
        lanes == 8 ? hash_8 : lanes == 4 ? hash_4 : hash_1;
    uint64_t at = 0;
    while (at < count) {
        uint64_t some = lanes <= count - at ? lanes : 1;
        for (uint64_t i = 0; i < some; i++)
            if (texts[at + i].length != texts[at].length)
                some = 1;
        (some == 1 ? hash_1 : hash_some)(secret, texts + at, hashes + at);
        at += some;
    }
}

void ss_siphash_all(const uint64_t *secret, const struct ss_octets *texts, uint64_t count,
                    uint64_t *hashes)
{
    ss_siphash_in_lanes(ss_lanes(), secret, texts, count, hashes);
}
