/* Events that take longer, and a record of when each was dequeued and committed.
 *
 * A *pace* stands around a compiled entry: each event has work beside its accesses, a busy loop or
 * sleep. Who sleeps leaves its core to others, and keeps its conflicts: so more threads than cores
 * can be looked at. The work comes after the accesses, as in Listing 4.2 of Brito 2010, or some of
 * it before them. What has been read has to hold until the work is done, and the commit; so where
 * the work stands is how long a conflict has time to happen. A run that ends in its accesses, as it
 * is dropped or raises, has no work after them.
 *
 * At both ends of each run the pace notes how far the engine has committed. A worker that has run
 * something commits and then takes the next event, so these looks are close to the commits that
 * they see; they never come before them. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "specstream.h"

enum { MOST_PACES = 64 };

struct work {
    int64_t sleep; /* nanoseconds; 0: none */
    int64_t rounds;
};

struct pace {
    const uint64_t *state; /* tells whose run it is */
    struct ss_engine *engine;
    int64_t (*progress)(struct ss_engine *engine);
    ss_entry entries[SS_VARIANTS];
    struct work before; /* of the accesses of an event */
    struct work after;
    _Atomic int64_t asked; /* nanoseconds of sleep asked for so far, by all threads together */
    _Atomic int64_t slept; /* and what they took */
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

static void nap(struct pace *pace, int64_t nanoseconds)
{
    static _Thread_local int punctual;
    /* Else a thread oversleeps by fifty microseconds. */
    if (!punctual)
        punctual = prctl(PR_SET_TIMERSLACK, 1000UL) == 0;
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    int64_t began = now();
    nanosleep(&time, NULL);
    atomic_fetch_add_explicit(&pace->slept, now() - began, memory_order_relaxed);
    atomic_fetch_add_explicit(&pace->asked, nanoseconds, memory_order_relaxed);
}

static void do_work(struct pace *pace, const struct work *work)
{
    if (work->sleep > 0)
        nap(pace, work->sleep);
    volatile uint64_t busy = 1;
    uint64_t turned = busy;
    for (int64_t round = 0; round < work->rounds; round++)
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
        do_work(pace, &pace->before);
        status = pace->entries[variant](next, fault, run, row, row + 1);
        if (*next == row)
            break; /* it has not come to its end */
        do_work(pace, &pace->after);
        /* Under locks nothing commits: an event is over when it has run. */
        if (variant == SS_LOCKED && row < pace->rows)
            atomic_store_explicit(&pace->committed[row], now(), memory_order_relaxed);
        row++;
        if (__atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0 && variant != SS_EAGER)
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

/* Stands around an entry; the result is to be the engine's. */
ss_entry pace_entry(struct pace *pace, enum ss_variant variant, ss_entry entry)
{
    pace->entries[variant] = entry;
    return paced_entries[variant];
}

/* Before a job: the work of an event from now on, and for how many of its rows to note the times. */
bool pace_set(struct pace *pace, struct work before, struct work after, int64_t rows)
{
    pace->before = before;
    pace->after = after;
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

/* Nanoseconds of sleep asked for so far, and what they took. */
int64_t pace_asked(const struct pace *pace)
{
    return atomic_load(&pace->asked);
}

int64_t pace_slept(const struct pace *pace)
{
    return atomic_load(&pace->slept);
}
