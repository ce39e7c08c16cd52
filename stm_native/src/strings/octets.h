/* Bytes that lie somewhere. */
#ifndef SPECSTREAM_OCTETS_H
#define SPECSTREAM_OCTETS_H

#include <stdint.h>

struct ss_octets {
    const uint8_t *bytes;
    uint64_t length;
};

#endif
