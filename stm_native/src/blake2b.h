/* The codes of strings: BLAKE2b with a digest of eight bytes. */
#ifndef SPECSTREAM_BLAKE2B_H
#define SPECSTREAM_BLAKE2B_H

#include <stdbool.h>
#include <stdint.h>

struct ss_octets {
    const uint8_t *bytes;
    uint64_t length;
};

/* The code of each, never 0: in lanes where the processor has them. */
void ss_blake2b_codes(const struct ss_octets *texts, uint64_t count, uint64_t *codes);
/* The two ways, which give the same; lanes only where the processor has them. */
void ss_blake2b_plain(const struct ss_octets *texts, uint64_t count, uint64_t *codes);
void ss_blake2b_lanes(const struct ss_octets *texts, uint64_t count, uint64_t *codes);
bool ss_blake2b_has_lanes(void);

#endif
