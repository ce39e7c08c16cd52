/* What runs on more cores: events that read some words of a state, write some of them, and take so long.
 *
 * It is compiled twice. On the virtual machine (stm_native/forecast) an event's time passes on its core's clock. For real
 * it passes asleep, so that many threads fit on few cores, or in a busy loop. */
#include <stdlib.h>
#include <string.h>
#ifdef MACHINE
#include "machine.h"
#else
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#endif

#include "../access.h"

enum { ROW_WORDS = 2 };

struct cores_load {
    int64_t threads, horizon, chunk;
    int64_t longest;      /* horizon to which it may grow; 0: it stays */
    int64_t count;        /* events */
    int64_t warm;         /* so many of these run once before it is measured */
    int64_t reads;        /* words that each reads */
    int64_t run;          /* so many of these are neighbours */
    int64_t writes;       /* of these, so many are written */
    int64_t words;        /* of the state */
    int64_t is_asleep;    /* for real: it sleeps, instead of being busy */
    int64_t is_forced;    /* the head is never run in place at its first try */
    int64_t *seeds;       /* of each event's words */
    int64_t *times;       /* of each event, nanoseconds */
    const int64_t *costs; /* the machine's, as machine.h has them; not for real */
};

struct cores_result {
    int64_t nanoseconds; /* -1: out of memory */
    int64_t transfers;   /* lines that went from core to core; for real 0 */
    int64_t working, looking, awake; /* of all cores, as machine.h has them; for real 0 */
    int64_t queued;      /* that threads were ready and had no core, together; on the machine 0 */
    uint64_t sum;        /* of the state, and of what was emitted: the same on all settings */
    struct ss_statistics statistics; /* of all events */
};

static const struct cores_load *load;

#ifdef MACHINE
static int64_t now(void)
{
    return machine_now();
}

static void work(int64_t nanoseconds)
{
    machine_work(nanoseconds);
}
#else
static int64_t now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static void work(int64_t nanoseconds)
{
    int64_t until = now() + nanoseconds;
    const struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    if (load->is_asleep)
        nanosleep(&time, NULL);
    else
        while (now() < until)
            continue;
}

/* Nanoseconds for which the threads that there are have waited for a core, as the kernel counts. */
static int64_t queued(void)
{
    int64_t sum = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *one; threads != NULL && (one = readdir(threads)) != NULL;) {
        char path[300];
        long long waited = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", one->d_name);
        FILE *counts = fopen(path, "r");
        if (counts == NULL)
            continue;
        if (fscanf(counts, "%*d %lld", &waited) == 1)
            sum += waited;
        fclose(counts);
    }
    if (threads != NULL)
        closedir(threads);
    return sum;
}
#endif

INLINE bool process(const struct fixed *fixed, struct ss_run *run, int64_t row, bool plain)
{
    uint64_t at = (uint64_t)load->seeds[row], sum = 0, word = 0;
    uint64_t places = (uint64_t)(load->words - load->run + 1);
    work(load->times[row]);
    for (int64_t i = 0; i < load->reads; i++, word++) {
        uint64_t value;
        if (i % load->run == 0) {
            at = scramble(at);
            word = (at >> 32) % places;
        }
        if (plain)
            value = fixed->state[word];
        else if (!load_transactional(fixed, run, word, &value))
            return false;
        sum += value;
        if (i < load->writes && !(plain ? store_plain(fixed, run, word, value + at)
                                        : store_transactional(fixed, run, word, value + at)))
            return false;
        if (!plain && __atomic_load_n(&run->kill, __ATOMIC_RELAXED) != 0 && ss_poll(run))
            return false;
    }
    if (run->emit_top + ROW_WORDS > run->emit_end && !ss_emit_grow(run))
        return false;
    run->emit_top[0] = (uint64_t)row;
    run->emit_top[1] = sum;
    run->emit_top += ROW_WORDS;
    return true;
}

INLINE int32_t process_range(int64_t *next, struct ss_run *run, int64_t first, int64_t last, bool plain)
{
    const struct fixed fixed = fixed_of(run);
    int64_t row = first;
    for (; row < last; row++) {
        run->event = row;
        run->emit_mark = run->emit_top;
        if (plain)
            run->undo_top = run->undo_base;
        if (!process(&fixed, run, row, plain))
            break;
        if (__atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0) {
            row++;
            break;
        }
    }
    *next = row;
    return 0;
}

static int32_t plain_entry(int64_t *next, void **exception, struct ss_run *run, int64_t first,
                           int64_t last)
{
    (void)exception;
    return process_range(next, run, first, last, true);
}

static int32_t transactional_entry(int64_t *next, void **exception, struct ss_run *run, int64_t first,
                                   int64_t last)
{
    (void)exception;
    return process_range(next, run, first, last, false);
}

/* Runs events; their rows are added up. False: out of memory. */
static bool run_events(struct ss_engine *engine, int64_t count, uint64_t *sum)
{
    void *columns[] = {load->seeds};
    struct ss_job job = {.columns = columns,
                         .count = count,
                         .chunk = load->chunk,
                         .horizon = load->horizon,
                         .longest_horizon = load->longest,
                         .mode = load->is_forced ? SS_MODE_SPECULATE : SS_MODE_ORDERED};
    if (!ss_engine_start(engine, &job))
        return false;
    while (!ss_engine_wait(engine, 50))
        continue;
    struct ss_outcome outcome = ss_engine_outcome(engine);
    for (uint64_t row = 0; row < outcome.row_count; row++)
        *sum = *sum * 31 + outcome.rows[row * ROW_WORDS + 1];
    return true;
}

static int64_t *copy_of(const int64_t *numbers)
{
    size_t bytes = (size_t)load->count * sizeof *numbers;
    int64_t *copy = malloc(bytes + sizeof *numbers);
    return copy == NULL ? NULL : memcpy(copy, numbers, bytes);
}

static void measure(void *into)
{
    struct cores_result *result = into;
    /* In the machine's memory. */
    struct cores_load own = *load;
    own.seeds = copy_of(load->seeds);
    own.times = copy_of(load->times);
    load = &own;
    uint64_t words = (uint64_t)load->words;
    uint64_t *state = calloc(words, sizeof *state);
    struct ss_config config = {.state = state,
                               .state_words = words,
                               .emit_words = ROW_WORDS,
                               .threads = (uint64_t)load->threads,
                               .locks = 1,
                               .read_limit = 1 << 14,
                               .redo_limit = 1 << 12,
                               .emit_limit = 1 << 10,
                               .protocol = SS_PROTOCOL_VALUE};
    bool has_memory = own.seeds != NULL && own.times != NULL && state != NULL;
    struct ss_engine *engine = has_memory ? ss_engine_new(&config) : NULL;
    result->nanoseconds = -1;
    if (engine != NULL) {
        ss_engine_set_entry(engine, SS_PLAIN, plain_entry);
        ss_engine_set_entry(engine, SS_TRANSACTIONAL, transactional_entry);
        bool runs = run_events(engine, load->warm, &result->sum);
        int64_t began = now();
#ifdef MACHINE
        struct machine_times before = machine_times();
#else
        int64_t before = queued();
#endif
        runs = runs && run_events(engine, load->count, &result->sum);
        if (runs)
            result->nanoseconds = now() - began;
#ifdef MACHINE
        struct machine_times times = machine_times();
        result->working = times.working - before.working;
        result->looking = times.looking - before.looking;
        result->awake = times.awake - before.awake;
#else
        result->queued = queued() - before;
#endif
        result->statistics = ss_engine_statistics(engine);
        for (uint64_t word = 0; word < words; word++)
            result->sum = result->sum * 31 + state[word];
        ss_engine_free(engine);
    }
    free(own.seeds);
    free(own.times);
    free(state);
}

/* One at a time. */
struct cores_result cores_measure(const struct cores_load *what)
{
    struct cores_result result = {0};
    load = what;
#ifdef MACHINE
    struct costs costs;
    memcpy(&costs, what->costs, sizeof costs);
    if (machine_run(&costs, measure, &result) != 0)
        result.nanoseconds = -1;
    result.transfers = machine_transfers();
#else
    /* Else each sleep is longer by 50 microseconds. Threads that are created take it over. */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    measure(&result);
    prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0); /* as it was */
#endif
    return result;
}

#ifndef MACHINE
/* ---- what the machine's costs are here ---- */

enum { WAKES = 2000 };
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    int64_t since, sum, calling;
    int round;
} bed = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0};

static void *lie(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&bed.mutex);
    for (int round = 1; round <= WAKES; round++) {
        while (bed.round < round)
            pthread_cond_wait(&bed.woken, &bed.mutex);
        bed.sum += now() - bed.since;
    }
    pthread_mutex_unlock(&bed.mutex);
    return NULL;
}

/* Nanoseconds from waking a thread until it runs, and what waking takes; negative: no thread. */
double cores_wake(double *call)
{
    pthread_t other;
    bed.round = 0;
    bed.sum = bed.calling = 0;
    if (pthread_create(&other, NULL, lie, NULL) != 0)
        return -1;
    for (int round = 1; round <= WAKES; round++) {
        const struct timespec pause = {0, 100000};
        nanosleep(&pause, NULL); /* it has gone to sleep */
        pthread_mutex_lock(&bed.mutex);
        bed.round = round;
        bed.since = now();
        pthread_mutex_unlock(&bed.mutex);
        pthread_cond_signal(&bed.woken);
        int64_t called = now();
        bed.calling += called - bed.since;
    }
    pthread_join(other, NULL);
    *call = (double)bed.calling / WAKES;
    return (double)bed.sum / WAKES;
}
#endif
