/* The way into compiled code. */
#include "internal.h"

int64_t ss_call(struct ss_worker *worker, enum ss_variant variant, int64_t first, int64_t last)
{
    int64_t next = first;
    void *fault = NULL;
    worker->engine->entries[variant](&next, &fault, &worker->run, first, last);
    return next;
}
