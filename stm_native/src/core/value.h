/* The default protocol: conflicts are found by comparing values. */
#ifndef SPECSTREAM_VALUE_H
#define SPECSTREAM_VALUE_H

#include "core/protocol.h"

extern const struct ss_protocol ss_protocol_value;

#endif
