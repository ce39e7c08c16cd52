/* Whether bytes are UTF-8, as Python decodes it.
 *
 * The Unicode Standard, table 3-7: no longer form than is needed, no surrogates, nothing above U+10FFFF.
 * What the second byte may be depends on the first one; all others are from 0x80 to 0xbf. */
#include "strings/utf8.h"

#include <string.h>

static const uint64_t high_bits = UINT64_C(0x8080808080808080);

/* Bytes of the character that begins here, or 0: there is none. */
static uint64_t character(const uint8_t *at, uint64_t left)
{
    uint8_t first = at[0];
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    uint64_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (left < bytes)
        return 0;
    uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < least || at[1] > most)
        return 0;
    for (uint64_t i = 2; i < bytes; i++)
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    return bytes;
}

bool ss_is_utf8(const uint8_t *bytes, uint64_t length)
{
    for (uint64_t at = 0; at < length;) {
        uint64_t word;
        if (length - at >= sizeof word) {
            memcpy(&word, bytes + at, sizeof word);
            if ((word & high_bits) == 0) {
                at += sizeof word;
                continue;
            }
        }
        uint64_t step = character(bytes + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}
