/* How long a cache line takes from one core to another, measured.
 *
 * Two threads on two cores. *Latency*: a flag goes to and fro, and each waits for the other. *Bulk*:
 * one writes many lines, the other reads them all, each independent of the others, so that several
 * are on their way at once. What is reported is the least of many rounds: anything else that the
 * machine does only adds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "processor/now.h"
#include "processor/processor.h"
#include "specstream.h"

enum { LINES = 512, TRIPS = 50, ROUNDS = 40 };
enum { SPINS = 2000 }; /* without an answer, before the core is given up for a moment */

struct line {
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t word;
};

struct pair {
    struct line flag;
    struct line lines[LINES];
    int cores[2];
};

static void stay_on(int core)
{
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
#else
    (void)core;
#endif
}

static void await(struct pair *pair, uint64_t value)
{
    /* Acquire: the lines that were written before the flag. */
    for (int spin = 1; atomic_load_explicit(&pair->flag.word, memory_order_acquire) != value; spin++)
        if (spin % SPINS == 0)
            sched_yield();
}

static void tell(struct pair *pair, uint64_t value)
{
    /* Release: see await. */
    atomic_store_explicit(&pair->flag.word, value, memory_order_release);
}

/* Answers each odd value with the next even one; before, in the rounds for it, writes all lines. */
static void *partner(void *argument)
{
    struct pair *pair = argument;
    stay_on(pair->cores[1]);
    uint64_t value = 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int trip = 0; trip < TRIPS; trip++, value += 2) {
            await(pair, value);
            tell(pair, value + 1);
        }
        await(pair, value);
        /* Relaxed: ordered by the flag. */
        for (int i = 0; i < LINES; i++)
            atomic_store_explicit(&pair->lines[i].word, value, memory_order_relaxed);
        tell(pair, value + 1);
        value += 2;
    }
    return NULL;
}

static void *measure(void *argument)
{
    struct ss_transfer *found = ((void **)argument)[0];
    struct pair *pair = ((void **)argument)[1];
    stay_on(pair->cores[0]);
    uint64_t value = 1, sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t began = ss_now();
        for (int trip = 0; trip < TRIPS; trip++, value += 2) {
            tell(pair, value);
            await(pair, value + 1);
        }
        double latency = (double)(ss_now() - began) / (2.0 * TRIPS);
        tell(pair, value);
        await(pair, value + 1);
        value += 2;
        began = ss_now();
        /* Relaxed: ordered by the flag. */
        for (int i = 0; i < LINES; i++)
            sum += atomic_load_explicit(&pair->lines[i].word, memory_order_relaxed);
        double bulk = (double)(ss_now() - began) / LINES;
        if (round == 0 || latency < found->latency)
            found->latency = latency;
        if (round == 0 || bulk < found->bulk)
            found->bulk = bulk;
    }
    return (void *)(uintptr_t)(sum & 1);
}

bool ss_measure_transfer(struct ss_transfer *found)
{
    struct pair *pair = aligned_alloc(SS_CACHE_LINE, sizeof *pair);
    int cores = 0;
    *found = (struct ss_transfer){0};
    if (pair == NULL)
        return false;
    atomic_init(&pair->flag.word, 0);
    for (int i = 0; i < LINES; i++)
        atomic_init(&pair->lines[i].word, 0);
#if defined(__linux__)
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int core = 0; core < CPU_SETSIZE && cores < 2; core++)
        if (CPU_ISSET(core, &set))
            pair->cores[cores++] = core;
#endif
    /* Threads of their own: the caller's stays where it may run. */
    pthread_t threads[2];
    void *arguments[2] = {found, pair};
    bool started = cores == 2 && pthread_create(&threads[1], NULL, partner, pair) == 0;
    if (started) {
        if (pthread_create(&threads[0], NULL, measure, arguments) == 0)
            pthread_join(threads[0], NULL);
        else
            measure(arguments); /* the partner waits for it */
        pthread_join(threads[1], NULL);
    }
    free(pair);
    return started;
}
