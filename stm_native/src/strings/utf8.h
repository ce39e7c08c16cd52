/* Whether bytes are a text. */
#ifndef SPECSTREAM_UTF8_H
#define SPECSTREAM_UTF8_H

#include <stdbool.h>
#include <stdint.h>

bool ss_is_utf8(const uint8_t *bytes, uint64_t length);

#endif
