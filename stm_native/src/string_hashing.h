/* The codes of many strings, on several threads. */
#ifndef SPECSTREAM_STRING_HASHING_H
#define SPECSTREAM_STRING_HASHING_H

#include <stdint.h>

struct ss_octets;

/* Those of all texts, by so many threads at most, of which the caller's is one. */
void ss_hash_texts(const struct ss_octets *texts, uint64_t count, uint64_t threads,
                   uint64_t *codes);

#endif
