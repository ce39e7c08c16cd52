/* The threads: they sleep between jobs, never touch Python, and end with the engine.
 *
 * To wake a thread takes from 50 microseconds to some milliseconds, where the processor is virtual
 * and its host has others to serve. So nobody waits for one that is not needed: only those are woken
 * that have a part in the job, each enters the job when it comes, and the job has ended when all have
 * left that entered. Who comes after that finds nothing to do and sleeps on. */
#include "core/pool.h"

#include <pthread.h>

#include "core/engine.h"
#include "core/statistics.h"
#include "core/worker.h"
#include "local/arena.h"
#include "processor/fault.h"
#include "processor/stack.h"
#include "specstream.h"

/* How many workers have a part in a job. */
static uint64_t participants(const struct ss_engine *engine)
{
    bool is_for_one = engine->kind->is_for_one != NULL && engine->kind->is_for_one(engine);
    return is_for_one ? 1 : engine->config.threads;
}

void ss_pool_call(struct ss_engine *engine)
{
    uint64_t called = participants(engine);
    pthread_mutex_lock(&engine->pool_mutex);
    engine->job_number++;
    engine->running = true;
    engine->called = called;
    pthread_mutex_unlock(&engine->pool_mutex);
    /* Without the mutex, which who wakes takes first. Nobody is missed: a worker looks with the mutex
     * before it sleeps, and sees the job, or sleeps since before there was one. */
    for (uint64_t i = 0; i < called; i++)
        pthread_cond_signal(&engine->workers[i].called);
}

bool ss_pool_is_running(struct ss_engine *engine)
{
    pthread_mutex_lock(&engine->pool_mutex);
    bool running = engine->running;
    pthread_mutex_unlock(&engine->pool_mutex);
    return running;
}

static void end_job(struct ss_engine *engine)
{
    engine->running = false;
    ss_clock_out(engine);
    pthread_cond_broadcast(&engine->pool_done);
}

static void *worker_main(void *argument)
{
    struct ss_worker *worker = argument;
    struct ss_engine *engine = worker->engine;
    uint64_t seen = 0;

    ss_fault_open_thread(&worker->containment);
    pthread_mutex_lock(&engine->pool_mutex);
    for (;;) {
        while (!engine->shutdown && (!engine->running || engine->job_number == seen ||
                                     worker->index >= engine->called))
            pthread_cond_wait(&worker->called, &engine->pool_mutex);
        if (engine->shutdown)
            break;
        seen = engine->job_number;
        engine->active++;
        pthread_mutex_unlock(&engine->pool_mutex);

        worker->run.columns = engine->job.columns;
        worker->run.first_sequence = engine->job.first_sequence;
        engine->kind->run(worker);
        ss_arena_shrink(&worker->run);

        pthread_mutex_lock(&engine->pool_mutex);
        /* Nobody leaves before there is nothing left to begin. */
        if (--engine->active == 0)
            end_job(engine);
    }
    pthread_mutex_unlock(&engine->pool_mutex);
    ss_fault_close_thread(&worker->containment);
    return NULL;
}

static bool start_worker(struct ss_worker *worker)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    bool started = ss_stacks_map(&worker->containment.stacks, &attributes) &&
                   pthread_create(&worker->thread, &attributes, worker_main, worker) == 0;
    pthread_attr_destroy(&attributes);
    if (!started)
        ss_stacks_unmap(&worker->containment.stacks);
    return started;
}

bool ss_pool_start(struct ss_engine *engine)
{
    /* Signals (Ctrl-C) belong to the interpreter's threads: workers start with all blocked but
     * those that a fault raises in the faulting thread itself. */
    sigset_t blocked, before;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool started = true;
    for (uint64_t i = 0; i < engine->config.threads && started; i++) {
        started = start_worker(&engine->workers[i]);
        if (started)
            engine->threads_started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

uint64_t ss_engine_thread(const struct ss_engine *engine, uint64_t index)
{
    return (uint64_t)engine->workers[index].thread;
}

void ss_pool_stop(struct ss_engine *engine)
{
    pthread_mutex_lock(&engine->pool_mutex);
    engine->shutdown = true;
    for (uint64_t i = 0; i < engine->threads_started; i++)
        pthread_cond_signal(&engine->workers[i].called);
    pthread_mutex_unlock(&engine->pool_mutex);
    for (uint64_t i = 0; i < engine->threads_started; i++) {
        pthread_join(engine->workers[i].thread, NULL);
        ss_stacks_unmap(&engine->workers[i].containment.stacks);
    }
}
