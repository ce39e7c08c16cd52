/* Memory of string tables. */
#ifndef SPECSTREAM_STRING_MEMORY_H
#define SPECSTREAM_STRING_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* So many bytes, zeros if asked for, to be given to free; NULL: there are none. */
void *ss_string_memory(uint64_t bytes, bool zeros);

#endif
