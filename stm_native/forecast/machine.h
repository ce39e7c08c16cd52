/* A machine of many cores for one thread: what the runtime's sources call instead of the system.
 *
 * It stands before every source of the runtime (-include): calls of threads, mutexes, conditions and
 * clocks go to machine.c. What a source reads and writes is told by the compiler, which was made for
 * ThreadSanitizer: -fsanitize=thread has it call a function before each access, and these functions
 * are machine.c's as well. */
#ifndef SPECSTREAM_MACHINE_H
#define SPECSTREAM_MACHINE_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

struct costs { /* of one core, in picoseconds */
    int64_t access;   /* to a line that the core has, with the instructions around it */
    int64_t transfer; /* a line that another core has written */
    int64_t bulk;     /* the same, behind another one that nothing waits for: both are on their way at once */
    int64_t shared;   /* a line that nobody has written since it was last here, or ever */
    int64_t store;    /* to a line of others: it waits in the store buffer */
    int64_t atomic;   /* a locked instruction, or a fence */
    int64_t pause;    /* of a waiting loop */
    int64_t call;     /* waking somebody, for who wakes */
    int64_t wake;     /* until who is woken runs */
    int64_t sleep;    /* going to sleep */
};

/* So many at most, with that of `main`: an engine has up to 256 threads. */
enum { MACHINE_CORES = 257 };

/* Runs `main` outside of the cores: what it creates as threads are cores, each with a clock of its own.
 * Returns when it does; -1: no memory. */
int machine_run(const struct costs *costs, void (*main)(void *), void *argument);
/* The core that runs is busy for so long. */
void machine_work(int64_t nanoseconds);
/* Picoseconds that the core that runs has been at work: neither asleep nor waiting for lines. */
int64_t machine_busy(void);
/* It works on until it has been at work for so long in all. */
void machine_work_until(int64_t busy);
/* An access by code that was not compiled for the machine. */
void machine_touch(const volatile void *address, bool writes);
/* Nanoseconds since the machine began, of the core that runs. */
int64_t machine_now(void);
/* Accesses so far that were no hits: lines moved between cores. */
int64_t machine_transfers(void);
/* All accesses so far: what a run takes to compute. */
int64_t machine_accesses(void);

/* Nanoseconds of all cores together so far. */
struct machine_times {
    int64_t working; /* on events, their accesses excepted */
    int64_t looking; /* for work, in a waiting loop */
    int64_t awake;   /* in all */
};
struct machine_times machine_times(void);

int machine_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*entry)(void *),
                   void *argument);
int machine_join(pthread_t thread, void **result);
int machine_mutex_lock(pthread_mutex_t *mutex);
int machine_mutex_trylock(pthread_mutex_t *mutex);
int machine_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until);
int machine_mutex_unlock(pthread_mutex_t *mutex);
int machine_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until);
int machine_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int machine_cond_broadcast(pthread_cond_t *condition);
int machine_cond_signal(pthread_cond_t *condition);
int machine_clock(clockid_t clock, struct timespec *now);
int machine_sleep(const struct timespec *time, struct timespec *rest);
int machine_yield(void);
void machine_pause(void);
void machine_prefetch(const volatile void *address);
int machine_set(pthread_key_t key, const void *value);
void *machine_get(pthread_key_t key);
int machine_affinity(void);
/* Its cores take no signals. */
int machine_sigaction(int signal, const struct sigaction *action, struct sigaction *before);
int machine_sigaltstack(const stack_t *stack, stack_t *before);
int machine_sigmask(int how, const sigset_t *set, sigset_t *before);

/* Memory that lies where it has lain in every run, so that the same words share cache lines. */
void *machine_malloc(size_t bytes);
void *machine_calloc(size_t count, size_t bytes);
void *machine_realloc(void *before, size_t bytes);
void *machine_aligned_alloc(size_t alignment, size_t bytes);
int machine_posix_memalign(void **memory, size_t alignment, size_t bytes);
void machine_free(void *memory);

#ifndef MACHINE_ITSELF
#define malloc machine_malloc
#define calloc machine_calloc
#define realloc machine_realloc
#define aligned_alloc machine_aligned_alloc
#define posix_memalign machine_posix_memalign
#define free machine_free
#define pthread_create machine_create
#define pthread_join machine_join
#define pthread_mutex_lock machine_mutex_lock
#define pthread_mutex_trylock machine_mutex_trylock
#define pthread_mutex_timedlock machine_mutex_timedlock
#define pthread_mutex_unlock machine_mutex_unlock
#define pthread_cond_timedwait machine_cond_timedwait
#define pthread_cond_wait machine_cond_wait
#define pthread_cond_broadcast machine_cond_broadcast
#define pthread_cond_signal machine_cond_signal
#define pthread_setspecific machine_set
#define pthread_getspecific machine_get
#define pthread_setaffinity_np(...) machine_affinity()
#define sigaction(signal, action, before) machine_sigaction(signal, action, before)
#define sigaltstack machine_sigaltstack
#define pthread_sigmask machine_sigmask
#define clock_gettime machine_clock
#define nanosleep machine_sleep
#define sched_yield machine_yield
#define __builtin_ia32_pause machine_pause
#define __builtin_prefetch(address, ...) machine_prefetch(address)
#define _Thread_local
#endif

#endif
