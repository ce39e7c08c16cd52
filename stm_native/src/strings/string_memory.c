/* Memory of string tables: on huge pages where it is large.
 *
 * A look-up in a large index goes to a place that nobody can foresee, and from there to another one, where a
 * string is. With pages of 4 KB the processor knows neither's page and walks its tables for each; that takes
 * longer than the look-up. The system gives huge pages where it is asked to and has some, else small ones. */
#include "strings/string_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint64_t huge_page = UINT64_C(1) << 21;

void *ss_string_memory(uint64_t bytes, bool zeros)
{
    if (bytes < huge_page)
        return zeros ? calloc(1, bytes) : malloc(bytes);
    void *memory = NULL;
    if (posix_memalign(&memory, huge_page, bytes) != 0)
        return NULL;
#if defined(MADV_HUGEPAGE)
    madvise(memory, bytes, MADV_HUGEPAGE); /* a hint, which may have no effect */
#endif
    if (zeros)
        memset(memory, 0, bytes);
    return memory;
}
