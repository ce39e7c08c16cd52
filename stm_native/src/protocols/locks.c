/* The locks of SS_MODE_LOCKED, which an operator takes and gives back by itself.
 *
 * They are plain mutexes, one on each cache line. What is added finds out where an operator that is
 * written with several of them goes wrong, and says so instead of standing still:
 *
 * - Each lock knows its owner, and each worker the lock that it waits for. Who has waited for a while
 *   follows this chain: lock, owner, the lock that the owner waits for ... Where it leads back to
 *   himself, nobody on it will ever move: a deadlock, and this event fails with the locks' numbers.
 * - A lock that is taken twice, that is given back by who does not hold it, or that is still held when
 *   the events are over, fails as well.
 *
 * An event that fails gives back all that it holds, so the others can come to their end.
 *
 * The chain is read while others change it, so what it says may never have been true at one instant.
 * But who is in a deadlock stays there. Each pass over the chain makes sure of one more of its links,
 * beginning with the last, whose lock is ours: after as many passes as there are workers all of them
 * have stood still during the last one. */
#include "protocols/locks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "specstream.h"

/* Sections under a lock are short: looking again is cheaper than being woken. */
enum { LOOKS = 64 };
/* Between two looks for a deadlock. */
enum { WAIT_NANOSECONDS = 10000000 };

bool ss_locks_open(struct ss_engine *engine)
{
    size_t bytes = ss_locks_bytes(&engine->config);
    engine->locks = aligned_alloc(SS_CACHE_LINE, bytes);
    if (engine->locks == NULL)
        return false;
    for (uint64_t i = 0; i < engine->config.locks; i++) {
        pthread_mutex_init(&engine->locks[i].mutex, NULL);
        atomic_init(&engine->locks[i].owner, 0);
    }
    return true;
}

void ss_locks_close(struct ss_engine *engine)
{
    for (uint64_t i = 0; engine->locks != NULL && i < engine->config.locks; i++)
        pthread_mutex_destroy(&engine->locks[i].mutex);
    free(engine->locks);
}

size_t ss_locks_bytes(const struct ss_config *config)
{
    uint64_t some = config->locks > 0 ? config->locks : 1;
    return (size_t)some * sizeof(struct ss_lock);
}

/* 0 is nobody. */
static uint64_t name_of(const struct ss_worker *worker)
{
    return worker->index + 1;
}

static uint64_t owner_of(struct ss_engine *engine, uint64_t lock)
{
    /* Relaxed, like all of the chain: the words are only compared, and several passes agree. */
    return atomic_load_explicit(&engine->locks[lock].owner, memory_order_relaxed);
}

/* Follows the chain from `lock` once; the locks on it go to `found`. True: it ends with us. */
static bool leads_back(struct ss_worker *worker, uint64_t lock, struct ss_lock_fault *found)
{
    struct ss_engine *engine = worker->engine;
    found->count = 0;
    for (uint64_t step = 0; step < engine->config.threads; step++) {
        if (found->count < SS_LOCKS_NAMED)
            found->locks[found->count] = lock;
        found->count++;
        uint64_t owner = owner_of(engine, lock);
        if (owner == 0)
            return false;
        if (owner == name_of(worker))
            return true;
        /* Relaxed: a look at what changes all the time; a cycle is believed when it is seen
         * again. */
        uint64_t wanted =
            atomic_load_explicit(&engine->workers[owner - 1].wants, memory_order_relaxed);
        if (wanted == 0)
            return false;
        lock = wanted - 1;
    }
    return false;
}

static bool is_deadlock(struct ss_worker *worker, uint64_t lock, struct ss_lock_fault *found)
{
    for (uint64_t pass = 0; pass <= worker->engine->config.threads; pass++) {
        if (!leads_back(worker, lock, found))
            return false;
        /* The next pass reads again, and not what the compiler remembers of this one. */
        atomic_thread_fence(memory_order_seq_cst);
    }
    return true;
}

static bool fail(struct ss_worker *worker, enum ss_lock_fault_kind kind, uint64_t lock)
{
    worker->lock_fault = (struct ss_lock_fault){.kind = kind, .count = 1, .locks = {lock}};
    worker->lock_fault.event = worker->run.event;
    return false;
}

static bool wait_for(struct ss_worker *worker, uint64_t lock)
{
    pthread_mutex_t *mutex = &worker->engine->locks[lock].mutex;
    if (owner_of(worker->engine, lock) == name_of(worker))
        return fail(worker, SS_LOCK_TAKEN_TWICE, lock);
    for (int look = 0; look < LOOKS; look++) {
        ss_relax();
        if (pthread_mutex_trylock(mutex) == 0)
            return true;
    }
    bool taken = false;
    struct ss_lock_fault found = {.kind = SS_LOCK_DEADLOCK};
    /* Relaxed: who looks for a deadlock looks again and again. */
    atomic_store_explicit(&worker->wants, lock + 1, memory_order_relaxed);
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WAIT_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        taken = pthread_mutex_timedlock(mutex, &until) == 0;
        if (taken)
            break;
        /* Relaxed: it is polled. */
        if (__atomic_load_n(&worker->run.kill, __ATOMIC_RELAXED) != 0) {
            worker->run.verdict = SS_KILLED;
            break;
        }
        if (is_deadlock(worker, lock, &found)) {
            worker->lock_fault = found;
            worker->lock_fault.event = worker->run.event;
            break;
        }
    }
    /* Relaxed: as above. */
    atomic_store_explicit(&worker->wants, 0, memory_order_relaxed);
    return taken;
}

bool ss_lock(struct ss_run *run, uint64_t lock)
{
    struct ss_worker *worker = run->worker;
    struct ss_engine *engine = worker->engine;
    if (lock >= engine->config.locks)
        return fail(worker, SS_LOCK_UNKNOWN, lock);
    if (pthread_mutex_trylock(&engine->locks[lock].mutex) != 0 && !wait_for(worker, lock))
        return false;
    /* Relaxed: the mutex orders those who hold the lock; others only guess. */
    atomic_store_explicit(&engine->locks[lock].owner, name_of(worker), memory_order_relaxed);
    worker->locks_held++;
    return true;
}

bool ss_unlock(struct ss_run *run, uint64_t lock)
{
    struct ss_worker *worker = run->worker;
    struct ss_engine *engine = worker->engine;
    if (lock >= engine->config.locks)
        return fail(worker, SS_LOCK_UNKNOWN, lock);
    if (owner_of(engine, lock) != name_of(worker))
        return fail(worker, SS_LOCK_NOT_HELD, lock);
    /* Before the mutex is free: who gets it next writes the owner as well. */
    atomic_store_explicit(&engine->locks[lock].owner, 0, memory_order_relaxed);
    worker->locks_held--;
    return pthread_mutex_unlock(&engine->locks[lock].mutex) == 0;
}

void ss_locks_give_back(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    bool completed = worker->run.verdict == SS_COMPLETED;
    for (uint64_t i = 0; worker->locks_held > 0 && i < engine->config.locks; i++) {
        if (owner_of(engine, i) != name_of(worker))
            continue;
        if (completed && worker->run.verdict == SS_COMPLETED) {
            fail(worker, SS_LOCK_KEPT, i);
            worker->run.verdict = SS_RAISED;
        }
        ss_unlock(&worker->run, i);
    }
}
