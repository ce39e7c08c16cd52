/* Entries of an operator that is written in C: what the compiler makes of one that is in Python. */
#ifndef SPECSTREAM_ENTRIES_H
#define SPECSTREAM_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "specstream.h"

/* `run_range`: one event after the other by `process`, which is false where the event is left. */
#define RUN_EACH_EVENT(process)                                                                    \
    static int32_t run_range(int64_t *next, struct ss_run *run, int64_t first, int64_t last,       \
                             enum ss_variant variant)                                              \
    {                                                                                              \
        for (*next = first; *next < last; ++*next) {                                               \
            if (variant != SS_EAGER && *next != first &&                                           \
                __atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0)                               \
                return 0;                                                                          \
            run->event = *next;                                                                    \
            run->emit_mark = run->emit_top;                                                        \
            run->undo_top = run->undo_base;                                                        \
            if (!process(run, variant, *next))                                                     \
                return 1;                                                                          \
        }                                                                                          \
        return 0;                                                                                  \
    }

/* The entry of one variant, by the file's own `run_range`. */
#define ENTRY(name, variant)                                                                       \
    static int32_t name(int64_t *next, void **fault, struct ss_run *run, int64_t first,            \
                        int64_t last)                                                              \
    {                                                                                              \
        *fault = NULL;                                                                             \
        return run_range(next, run, first, last, variant);                                         \
    }

#endif
