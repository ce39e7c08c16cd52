/* The codes of strings: BLAKE2b with a digest of eight bytes. */
#ifndef SPECSTREAM_BLAKE2B_H
#define SPECSTREAM_BLAKE2B_H

#include <stdint.h>

struct ss_octets;

/* The code of each, never 0: in lanes where the processor has them. */
void ss_blake2b_codes(const struct ss_octets *texts, uint64_t count, uint64_t *codes);
/* The same, so many at once: eight, four (the processor can do no more than ss_lanes), or one. */
void ss_blake2b_in_lanes(uint64_t lanes, const struct ss_octets *texts, uint64_t count,
                         uint64_t *codes);

#endif
