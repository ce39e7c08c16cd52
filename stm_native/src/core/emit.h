/* Rows on their way into the output. */
#ifndef SPECSTREAM_EMIT_H
#define SPECSTREAM_EMIT_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;

bool ss_rows_append(struct ss_engine *engine, const uint64_t *rows, uint64_t words);
bool ss_rows_reserve(struct ss_engine *engine, uint64_t words);

#endif
