/* Deterministic locks: those that an event touches are known before it runs, and are asked for in the
 * order of the events, as the ordered locking of the literature does.
 *
 * An event waits for its turn, by its number; in its turn it draws a ticket for each of its locks,
 * and gives the turn to the next event. Then it waits until each lock serves its ticket, runs, and
 * has them serve the next ones. So each key is touched in the order of the events that touch it, and
 * what comes out is what one thread makes of them. Nobody waits for a later event: the first of all
 * that run has every lock that it asked for, and there is no deadlock.
 *
 * An event that raises serves nobody: those that wait for it give up, and the job ends. */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "specstream.h"

enum { MOST_ENGINES = 64, MOST_KEYS = 32, LOOKS = 64, CACHE_LINE = 64 };
/* Between two looks whether the job is over. */
enum { WAIT_NANOSECONDS = 10000000 };

/* Serves one number after the other. */
struct gate {
    _Alignas(CACHE_LINE) _Atomic uint32_t serves;
    _Atomic uint32_t asleep;
    uint32_t tickets; /* drawn so far; guarded by the turn */
};

struct ordered {
    const uint64_t *state; /* tells whose run it is */
    ss_entry entry;
    uint32_t count;
    struct gate *locks;
    struct gate turn;
    const int32_t *keys; /* of the rows of the job, `width` of each; -1: none */
    int64_t width;
    _Atomic uint32_t broken; /* an event has not come to its end: nobody serves its tickets */
};

static struct ordered engines[MOST_ENGINES];

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* False: the job is over, or somebody has given up whose number will never be served. */
static bool wait_for(struct ordered *ordered, struct gate *gate, uint32_t number,
                     struct ss_run *run)
{
    /* Acquire, here and below: what those before have stored is seen. */
    for (int look = 0; look < LOOKS; look++) {
        if (atomic_load_explicit(&gate->serves, memory_order_acquire) == number)
            return true;
        relax();
    }
    bool over = false;
    /* Dekker with `serve_next`: we are counted before we look once more. */
    atomic_fetch_add(&gate->asleep, 1);
    for (;;) {
        uint32_t now = atomic_load(&gate->serves);
        if (now == number)
            break;
        /* Relaxed: both are polled. */
        over = __atomic_load_n(&run->kill, __ATOMIC_RELAXED) != 0 ||
               atomic_load_explicit(&ordered->broken, memory_order_relaxed) != 0;
        if (over)
            break;
        struct timespec time = {0, WAIT_NANOSECONDS};
        syscall(SYS_futex, &gate->serves, FUTEX_WAIT_PRIVATE, now, &time, NULL, 0);
    }
    /* Relaxed: who counts one too many wakes nobody. */
    atomic_fetch_sub_explicit(&gate->asleep, 1, memory_order_relaxed);
    return !over;
}

/* By who has been served. */
static void serve_next(struct gate *gate)
{
    uint32_t next = atomic_load_explicit(&gate->serves, memory_order_relaxed) + 1;
    atomic_store(&gate->serves, next);
    if (atomic_load(&gate->asleep) != 0)
        syscall(SYS_futex, &gate->serves, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static int32_t in_order(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                        int64_t last)
{
    struct ordered *ordered = engines;
    while (ordered->state != run->state)
        ordered++;
    int32_t status = 0;
    int64_t row = first;
    while (row < last) {
        struct gate *wanted[MOST_KEYS];
        uint32_t tickets[MOST_KEYS];
        int count = 0;
        const int32_t *keys = ordered->keys + row * ordered->width;
        for (int64_t at = 0; at < ordered->width; at++) {
            bool known = keys[at] < 0;
            for (int64_t before = 0; before < at && !known; before++)
                known = keys[before] == keys[at];
            if (!known)
                wanted[count++] = ordered->locks + keys[at];
        }
        bool granted = wait_for(ordered, &ordered->turn, (uint32_t)row, run);
        if (granted) {
            for (int at = 0; at < count; at++)
                tickets[at] = wanted[at]->tickets++;
            serve_next(&ordered->turn);
            for (int at = 0; at < count && granted; at++)
                granted = wait_for(ordered, wanted[at], tickets[at], run);
        }
        if (!granted) {
            atomic_store(&ordered->broken, 1);
            run->verdict = SS_KILLED;
            break;
        }
        status = ordered->entry(next, fault, run, row, row + 1);
        if (*next == row) {
            atomic_store(&ordered->broken, 1);
            break;
        }
        for (int at = 0; at < count; at++)
            serve_next(wanted[at]);
        row++;
        /* Relaxed: a wish. */
        if (__atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0)
            break;
    }
    *next = row;
    return status;
}

/* Of the engine with that state; NULL: there are too many already, or there is no memory. */
struct ordered *ordered_open(const uint64_t *state, uint32_t locks)
{
    for (struct ordered *ordered = engines; ordered < engines + MOST_ENGINES; ordered++)
        if (ordered->state == NULL) {
            ordered->locks = aligned_alloc(CACHE_LINE, locks * sizeof(struct gate));
            if (ordered->locks == NULL)
                return NULL;
            ordered->count = locks;
            ordered->broken = 1;
            ordered->state = state;
            return ordered;
        }
    return NULL;
}

void ordered_close(struct ordered *ordered)
{
    free(ordered->locks);
    *ordered = (struct ordered){0};
}

/* Stands around an entry; the result is to be the engine's. */
ss_entry ordered_entry(struct ordered *ordered, ss_entry entry)
{
    ordered->entry = entry;
    return in_order;
}

/* Before a job: which locks its rows want. False: a row has too many, or there is no such lock. */
bool ordered_begin(struct ordered *ordered, const int32_t *keys, int64_t rows, int64_t width)
{
    if (width > MOST_KEYS)
        return false;
    for (int64_t at = 0; at < rows * width; at++)
        if (keys[at] >= 0 && (uint32_t)keys[at] >= ordered->count)
            return false;
    ordered->keys = keys;
    ordered->width = width;
    ordered->turn = (struct gate){0};
    if (atomic_exchange(&ordered->broken, 0) != 0)
        for (uint32_t lock = 0; lock < ordered->count; lock++)
            ordered->locks[lock] = (struct gate){0};
    return true;
}
