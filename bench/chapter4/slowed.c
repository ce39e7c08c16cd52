/* Events that take longer, and a record of when each was dequeued and committed.
 *
 * A *pace* stands in front of a compiled entry: before each event its thread turns a busy loop, or
 * sleeps. Who sleeps leaves its core to others, and keeps its conflicts: so more threads than cores
 * can be looked at. At both ends of each run the pace notes how far the engine has committed. A
 * worker that has run something commits and then takes the next event, so these looks are close to
 * the commits that they see; they never come before them. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "specstream.h"

enum { MOST_PACES = 64 };

struct pace {
    const uint64_t *state; /* tells whose run it is */
    struct ss_engine *engine;
    int64_t (*progress)(struct ss_engine *engine);
    ss_entry entries[SS_VARIANTS];
    int64_t sleep; /* nanoseconds; 0: none */
    int64_t rounds;
    int64_t rows; /* room in the two below */
    _Atomic int64_t *dequeued; /* when a row's first run began; 0: not yet */
    _Atomic int64_t *committed; /* when all rows up to this one were first seen committed */
    _Atomic int64_t seen;
};

static struct pace paces[MOST_PACES];

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Notes the rows that were committed since somebody last looked. Chunks have one event each. */
static void look(struct pace *pace)
{
    if (pace->rows == 0)
        return;
    int64_t upto = pace->progress(pace->engine);
    int64_t seen = atomic_load_explicit(&pace->seen, memory_order_relaxed);
    int64_t at = now();
    while (seen < upto && seen < pace->rows)
        if (atomic_compare_exchange_weak_explicit(&pace->seen, &seen, seen + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            atomic_store_explicit(&pace->committed[seen++], at, memory_order_relaxed);
}

static void linger(const struct pace *pace)
{
    static _Thread_local int punctual;
    if (pace->sleep > 0) {
        /* Else a thread oversleeps by fifty microseconds. */
        if (!punctual)
            punctual = prctl(PR_SET_TIMERSLACK, 1000UL) == 0;
        struct timespec nap = {pace->sleep / 1000000000, pace->sleep % 1000000000};
        nanosleep(&nap, NULL);
    }
    volatile uint64_t busy = 1;
    uint64_t turned = busy;
    for (int64_t round = 0; round < pace->rounds; round++)
        turned = (turned ^ (turned >> 32)) * UINT64_C(6364136223846793005);
    busy = turned;
}

static int32_t paced(enum ss_variant variant, int64_t *next, void **fault, struct ss_run *run,
                     int64_t first, int64_t last)
{
    struct pace *pace = paces;
    while (pace->state != run->state)
        pace++;
    int32_t status = 0;
    int64_t row = first;
    while (row < last) {
        look(pace);
        if (row < pace->rows) {
            int64_t none = 0;
            atomic_compare_exchange_strong_explicit(&pace->dequeued[row], &none, now(),
                                                    memory_order_relaxed, memory_order_relaxed);
        }
        linger(pace);
        status = pace->entries[variant](next, fault, run, row, row + 1);
        if (*next == row)
            break;
        row++;
        if (__atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0 && variant != SS_TRANSACTIONAL &&
            variant != SS_EAGER)
            break;
    }
    look(pace);
    *next = row;
    return status;
}

#define PACED(variant, name)                                                                       \
    static int32_t name(int64_t *next, void **fault, struct ss_run *run, int64_t first,           \
                        int64_t last)                                                              \
    {                                                                                              \
        return paced(variant, next, fault, run, first, last);                                      \
    }

PACED(SS_PLAIN, paced_plain)
PACED(SS_TRANSACTIONAL, paced_transactional)
PACED(SS_LOG_FREE, paced_log_free)
PACED(SS_LOCKED, paced_locked)
PACED(SS_EAGER, paced_eager)

static const ss_entry paced_entries[SS_VARIANTS] = {
    [SS_PLAIN] = paced_plain,       [SS_TRANSACTIONAL] = paced_transactional,
    [SS_LOG_FREE] = paced_log_free, [SS_LOCKED] = paced_locked,
    [SS_EAGER] = paced_eager,
};

/* NULL: there are too many already. */
struct pace *pace_open(struct ss_engine *engine, const uint64_t *state,
                       int64_t (*progress)(struct ss_engine *engine))
{
    for (struct pace *pace = paces; pace < paces + MOST_PACES; pace++)
        if (pace->state == NULL) {
            pace->engine = engine;
            pace->progress = progress;
            pace->state = state;
            return pace;
        }
    return NULL;
}

void pace_close(struct pace *pace)
{
    free((void *)pace->dequeued);
    free((void *)pace->committed);
    *pace = (struct pace){0};
}

/* Stands in front of an entry; the result is to be the engine's. */
ss_entry pace_entry(struct pace *pace, enum ss_variant variant, ss_entry entry)
{
    pace->entries[variant] = entry;
    return paced_entries[variant];
}

/* Before a job: how long events take from now on, and for how many of its rows to note the times. */
bool pace_set(struct pace *pace, int64_t sleep, int64_t rounds, int64_t rows)
{
    pace->sleep = sleep;
    pace->rounds = rounds;
    free((void *)pace->dequeued);
    free((void *)pace->committed);
    pace->rows = rows;
    pace->dequeued = calloc((size_t)rows + 1, sizeof *pace->dequeued);
    pace->committed = calloc((size_t)rows + 1, sizeof *pace->committed);
    atomic_store(&pace->seen, 0);
    return pace->dequeued != NULL && pace->committed != NULL;
}

/* After the job: nanoseconds from a row's dequeuing to its commit. */
void pace_read(struct pace *pace, int64_t *taken)
{
    look(pace);
    for (int64_t row = 0; row < pace->rows; row++)
        taken[row] = atomic_load(&pace->committed[row]) - atomic_load(&pace->dequeued[row]);
}
