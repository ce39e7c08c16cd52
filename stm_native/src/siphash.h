/* A hash that nobody can foresee who does not know the secret. */
#ifndef SPECSTREAM_SIPHASH_H
#define SPECSTREAM_SIPHASH_H

#include <stdint.h>

/* SipHash-1-3 of so many bytes, under a secret of two words. */
uint64_t ss_siphash(const uint64_t *secret, const uint8_t *bytes, uint64_t length);

#endif
