/* SipHash-1-3: where in an index a string is, as only this process knows.
 *
 * Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012). Who does not know the secret cannot find
 * strings that meet in one place of an index, and who does not see the hashes needs no more rounds than
 * one for each word and three at the end; so do the dicts of CPython and Rust. The texts of a stream come
 * from strangers, and with a hash that these can compute as well, they could make every look-up walk past
 * all of their strings. */
#include "siphash.h"

#include <string.h>

static inline uint64_t rotated(uint64_t word, int by)
{
    return word << by | word >> (64 - by);
}

static inline uint64_t read_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

#define ROUND                                                                                      \
    a += b;                                                                                        \
    b = rotated(b, 13) ^ a;                                                                        \
    a = rotated(a, 32);                                                                            \
    c += d;                                                                                        \
    d = rotated(d, 16) ^ c;                                                                        \
    a += d;                                                                                        \
    d = rotated(d, 21) ^ a;                                                                        \
    c += b;                                                                                        \
    b = rotated(b, 17) ^ c;                                                                        \
    c = rotated(c, 32);

uint64_t ss_siphash(const uint64_t *secret, const uint8_t *bytes, uint64_t length)
{
    uint64_t a = secret[0] ^ UINT64_C(0x736f6d6570736575);
    uint64_t b = secret[1] ^ UINT64_C(0x646f72616e646f6d);
    uint64_t c = secret[0] ^ UINT64_C(0x6c7967656e657261);
    uint64_t d = secret[1] ^ UINT64_C(0x7465646279746573);
    uint64_t last = length << 56;
    uint64_t at = 0;
    for (; length - at >= 8; at += 8) {
        uint64_t word = read_word(bytes + at);
        d ^= word;
        ROUND
        a ^= word;
    }
    for (int shift = 0; at < length; at++, shift += 8)
        last |= (uint64_t)bytes[at] << shift;
    d ^= last;
    ROUND
    a ^= last;
    c ^= 0xff;
    ROUND
    ROUND
    ROUND
    return a ^ b ^ c ^ d;
}
