/* The two ways to run that speculation is compared with: one thread in one native loop without any
 * log, and all threads without any order under the operator's own locks. */
#include "jobs/direct.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/call.h"
#include "core/emit.h"
#include "core/engine.h"
#include "core/job_kind.h"
#include "core/statistics.h"
#include "core/worker.h"
#include "jobs/timer_firing.h"
#include "processor/figure.h"
#include "processor/processor.h"
#include "protocols/locks.h"
#include "specstream.h"

/* Both flags may be up from an ordered job before: its end kills every worker. */
static bool may_run(struct ss_engine *engine, struct ss_run *run)
{
    /* Relaxed: the fence below orders them. */
    __atomic_store_n(&run->yield, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&run->kill, 0, __ATOMIC_RELAXED);
    /* Dekker with stop and kill: the flags are down before we look who asked. */
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&engine->stop, memory_order_relaxed) == 0;
}

static void run_log_free(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_run *run = &worker->run;
    int64_t next = 0;

    /* Relaxed: it stays so for the whole job. */
    __atomic_store_n(&run->speculative, 0, __ATOMIC_RELAXED);
    while (next < engine->job.count && may_run(engine, run)) {
        int64_t from = next, last = engine->job.count;
        if (ss_has_timers(engine) &&
            !ss_timers_before(worker, NULL, run->columns[0], from, &last))
            break;
        run->verdict = SS_COMPLETED;
        run->emit_top = run->emit_mark = engine->rows + engine->row_words;
        run->emit_end = engine->rows + engine->row_capacity;
        next = ss_call(worker, SS_LOG_FREE, from, last);
        if (run->verdict != SS_COMPLETED)
            run->emit_top = run->emit_mark;
        engine->row_words = (uint64_t)(run->emit_top - engine->rows);
        ss_apply(worker, next - from);
        if (ss_has_timers(engine) && next > from)
            ss_timers_pass_row(engine, run->columns[0], next - 1);
        if (run->verdict != SS_COMPLETED) {
            engine->failed = run->verdict != SS_KILLED;
            engine->no_memory = run->verdict == SS_NO_MEMORY;
            if (run->verdict == SS_FAULTED)
                engine->fault = worker->containment.fault;
            break;
        }
    }
    if (ss_has_timers(engine) && engine->job.ends_input && next == engine->job.count &&
        !engine->failed)
        ss_timers_at(worker, INT64_MAX);
    /* Release: who sees the end sees the rows and the state. */
    atomic_store_explicit(&engine->over, 1, memory_order_release);
}

static void run_locked(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    struct ss_run *run = &worker->run;

    worker->lock_fault.kind = SS_LOCK_NO_FAULT;
    /* Relaxed: it stays so for the whole job. `over` is a wish, and a number of next_start is
     * all there is to win. */
    __atomic_store_n(&run->speculative, 0, __ATOMIC_RELAXED);
    while (atomic_load_explicit(&engine->over, memory_order_relaxed) == 0 &&
           may_run(engine, run)) {
        int64_t number =
            atomic_fetch_add_explicit(&engine->next_start, 1, memory_order_relaxed);
        if (number >= engine->transactions)
            break;
        int64_t first = number * engine->job.chunk;
        int64_t last = first + engine->job.chunk;
        int64_t next = first;
        if (last > engine->job.count)
            last = engine->job.count;
        run->verdict = SS_COMPLETED;
        run->emit_top = run->emit_mark = worker->rows;
        run->emit_end = worker->rows + engine->config.emit_limit * engine->config.emit_words;
        /* Who wants the turn makes the entry yield: the rest of the chunk is still ours to run. */
        do
            next = ss_call(worker, SS_LOCKED, next, last);
        while (run->verdict == SS_COMPLETED && next < last && may_run(engine, run));
        if (SS_UNLIKELY(worker->locks_held != 0))
            ss_locks_give_back(worker);
        pthread_mutex_lock(&engine->output);
        if (run->verdict == SS_COMPLETED &&
            !ss_rows_append(engine, worker->rows, (uint64_t)(run->emit_top - worker->rows))) {
            run->verdict = SS_NO_MEMORY;
            next = first; /* without their rows the events do not count */
        }
        if (run->verdict != SS_COMPLETED) {
            if (!engine->failed)
                engine->no_memory = run->verdict == SS_NO_MEMORY;
            if (run->verdict == SS_FAULTED && !engine->failed)
                engine->fault = worker->containment.fault;
            if (worker->lock_fault.kind != SS_LOCK_NO_FAULT && !engine->failed)
                engine->lock_fault = worker->lock_fault;
            engine->failed = engine->failed || run->verdict != SS_KILLED;
            /* Relaxed: a wish; the pool's mutex hands the outcome over. */
            atomic_store_explicit(&engine->over, 1, memory_order_relaxed);
        }
        ss_apply(worker, next - first);
        pthread_mutex_unlock(&engine->output);
        ss_count(&worker->statistics.commits, 1);
    }
}

static bool is_for_one(const struct ss_engine *engine)
{
    (void)engine;
    return true;
}

static bool open_locked(struct ss_engine *engine)
{
    const struct ss_config *config = &engine->config;
    for (uint64_t i = 0; i < config->threads; i++) {
        struct ss_worker *worker = &engine->workers[i];
        if (worker->rows == NULL)
            worker->rows = malloc(config->emit_limit * config->emit_words * sizeof *worker->rows);
        if (worker->rows == NULL)
            return false;
    }
    return true;
}

const struct ss_job_kind ss_log_free_job = {
    .is_for_one = is_for_one,
    .run = run_log_free,
    .fail = ss_engine_stop,
};

const struct ss_job_kind ss_locked_job = {
    .open = open_locked,
    .run = run_locked,
    .fail = ss_engine_stop,
};
