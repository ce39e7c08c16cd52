/* A hash that nobody can foresee who does not know the secret. */
#ifndef SPECSTREAM_SIPHASH_H
#define SPECSTREAM_SIPHASH_H

#include <stdint.h>

struct ss_octets;

/* SipHash-1-3 of so many bytes, under a secret of two words. */
uint64_t ss_siphash(const uint64_t *secret, const uint8_t *bytes, uint64_t length);
/* Of many strings: in lanes where the processor has them. */
void ss_siphash_all(const uint64_t *secret, const struct ss_octets *texts, uint64_t count,
                    uint64_t *hashes);
/* The same, so many at once: eight, four (the processor can do no more than ss_lanes), or one. */
void ss_siphash_in_lanes(uint64_t lanes, const uint64_t *secret, const struct ss_octets *texts,
                         uint64_t count, uint64_t *hashes);

#endif
