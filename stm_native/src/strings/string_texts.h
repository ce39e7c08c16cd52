/* Texts as Arrow lays them out. */
#ifndef SPECSTREAM_STRING_TEXTS_H
#define SPECSTREAM_STRING_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

struct ss_texts;

/* So many texts with so many bytes together; false: no memory, and there is nothing to free. */
bool ss_texts_make(struct ss_texts *texts, int64_t count, int64_t bytes, bool with_nulls);

#endif
