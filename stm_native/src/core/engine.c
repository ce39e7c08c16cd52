/* An engine's life: memory, threads, jobs in, outcomes out. */
#include "core/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "containers/containers.h"
#include "containers/keyed_changes.h"
#include "containers/timer_heap.h"
#include "core/pool.h"
#include "core/protocol.h"
#include "core/scheduler.h"
#include "core/statistics.h"
#include "core/transaction.h"
#include "core/value.h"
#include "core/worker.h"
#include "jobs/answers.h"
#include "jobs/direct.h"
#include "jobs/early.h"
#include "jobs/open_job.h"
#include "jobs/queue.h"
#include "local/arena.h"
#include "processor/fault.h"
#include "processor/figure.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "processor/signal_chain.h"
#include "protocols/boosting.h"
#include "protocols/counter_prediction.h"
#include "protocols/eager.h"
#include "protocols/locks.h"
#include "protocols/ownership_records.h"
#include "specstream.h"

static const uint64_t first_undo_entries = 256;
static const uint64_t first_output_words = 1024;
/* For a worker to wake up, where the processor has others to serve. */
static const int64_t patience_nanoseconds = 10000000;
/* What waking costs, who wakes and who is woken, has to be little beside a run, and so does what a longer
 * horizon costs in caches. */
static const int64_t long_nanoseconds = 20000;
/* Eight times what it takes to get the line of a finished run. */
static const int64_t doubt_nanoseconds = 512;
/* Ten times what it takes to ask a run to stop, and to commit once more. */
static const int64_t cut_nanoseconds = 2000;
/* A reference of protocol `eager` has 18 bits for the slot, and the ring is twice the horizon. */
static const int64_t longest_eager_horizon = 1 << 16;

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static uint64_t power_of_two(uint64_t at_least)
{
    uint64_t size = 1;
    while (size < at_least)
        size *= 2;
    return size;
}

static const struct ss_job_kind *const kinds[] = {
    [SS_MODE_ORDERED] = &ss_ordered_job,   [SS_MODE_SPECULATE] = &ss_ordered_job,
    [SS_MODE_LOG_FREE] = &ss_log_free_job, [SS_MODE_LOCKED] = &ss_locked_job,
    [SS_MODE_OPEN] = &ss_open_job,
};

static uint64_t aligned_bytes(uint64_t count, size_t size)
{
    uint64_t lines = (count * size + SS_CACHE_LINE - 1) / SS_CACHE_LINE;
    return (lines == 0 ? 1 : lines) * SS_CACHE_LINE;
}

static void *aligned(uint64_t count, size_t size)
{
    uint64_t bytes = aligned_bytes(count, size);
    void *memory = aligned_alloc(SS_CACHE_LINE, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

static void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Four slots for each entry of the redo log: probes stay short, and one slot is always empty. */
static uint64_t redo_slots(const struct ss_config *config)
{
    return power_of_two(4 * config->redo_limit);
}

/* A slot may still be looked at by who claimed it one horizon ago: twice the horizon. */
static uint64_t ring_slots(int64_t horizon)
{
    return power_of_two(2 * ((uint64_t)horizon + 1));
}

/* Timers come before the head, as a transaction of their own, which has to be told from later ones: see
 * ss_number_of_owner. */
static uint64_t ring_slots_with(int64_t horizon, bool has_timers)
{
    return ring_slots(horizon + (has_timers ? 1 : 0));
}

static uint64_t emit_bytes(const struct ss_config *config)
{
    return config->emit_limit * config->emit_words * sizeof(uint64_t);
}

static bool worker_init(struct ss_engine *engine, uint64_t index)
{
    struct ss_worker *worker = &engine->workers[index];
    struct ss_run *run = &worker->run;
    const struct ss_config *config = &engine->config;
    uint64_t slots = redo_slots(config);

    worker->engine = engine;
    worker->index = index;
    worker->committed_row = -1;
    worker->runs_next = -1;
    run->worker = worker;
    run->state = engine->state;
    run->keyed = engine->keyed;
    run->ahead = ss_containers_ahead(engine, index);
    worker->touched.event = -1;
    run->seed = config->seed;
    run->redo_limit = config->redo_limit;
    run->slot_mask = slots - 1;
    run->slots = aligned(slots, sizeof *run->slots);
    run->scratch = aligned(config->scratch_words, sizeof *run->scratch);
    run->undo_base = malloc(first_undo_entries * sizeof *run->undo_base);
    if (run->slots == NULL || run->scratch == NULL || run->undo_base == NULL ||
        !ss_arena_open(run, config, false))
        return false;
    run->undo_top = run->undo_base;
    run->undo_end = run->undo_base + first_undo_entries;
    worker->undo_entries = first_undo_entries;
    return true;
}

/* Logs grow with the longest horizon asked for; between jobs nobody looks at the ring. */
static bool ring_resize(struct ss_engine *engine, uint64_t size)
{
    const struct ss_config *config = &engine->config;
    bool eager = config->protocol == SS_PROTOCOL_EAGER;
    if (size <= engine->ring_size)
        return true;
    struct ss_transaction *ring = aligned(size, sizeof *ring);
    if (ring == NULL)
        return false;
    if (engine->ring != NULL)
        memcpy(ring, engine->ring, engine->ring_size * sizeof *ring);
    free(engine->ring);
    engine->ring = ring;
    for (uint64_t i = engine->ring_size; i < size; i++) {
        ring[i].reads = malloc(config->read_limit * sizeof *ring[i].reads);
        ring[i].redo = malloc(config->redo_limit * sizeof *ring[i].redo);
        ring[i].rows = malloc(emit_bytes(config));
        if (eager)
            ring[i].owned = malloc(engine->owned_limit * sizeof *ring[i].owned);
        if (config->operations > 0)
            ring[i].performed = malloc(ss_boost_transaction_bytes(config));
        if (config->container_count > 0)
            ring[i].changes = malloc(ss_changes_bytes(config));
        if (ring[i].reads == NULL || ring[i].redo == NULL || ring[i].rows == NULL ||
            (eager && ring[i].owned == NULL) ||
            (config->operations > 0 && ring[i].performed == NULL) ||
            (config->container_count > 0 && ring[i].changes == NULL)) {
            /* Back to the old size: any other is no power of two, and slots would be shared. */
            for (uint64_t j = engine->ring_size; j <= i; j++) {
                free(ring[j].reads);
                free(ring[j].redo);
                free(ring[j].rows);
                free(ring[j].owned);
                free(ring[j].performed);
                free(ring[j].changes);
            }
            return false;
        }
    }
    engine->ring_size = size;
    return true;
}

/* The caller's need only last for the call. */
static const struct ss_region *copy_of(const struct ss_region *regions, uint64_t count)
{
    struct ss_region *copy = calloc(count + 1, sizeof *copy);
    if (copy != NULL && count > 0)
        memcpy(copy, regions, count * sizeof *copy);
    return copy;
}

struct ss_engine *ss_engine_new(const struct ss_config *config)
{
    struct ss_engine *engine = aligned(1, sizeof *engine);
    if (engine == NULL)
        return NULL;
    engine->queue = aligned(1, sizeof *engine->queue);
    if (engine->queue == NULL) {
        free(engine);
        return NULL;
    }
    engine->config = *config;
    engine->state = config->state;
    engine->kind = kinds[SS_MODE_ORDERED]; /* no job has been yet, and who looks finds one that is over */
    engine->config.regions = copy_of(config->regions, config->region_count);
    engine->protocol =
        config->protocol == SS_PROTOCOL_EAGER ? &ss_protocol_eager : &ss_protocol_value;
    engine->spin_nanoseconds = 2000;
    engine->patience_nanoseconds = patience_nanoseconds;
    engine->long_nanoseconds = long_nanoseconds;
    engine->doubt_nanoseconds = doubt_nanoseconds;
    engine->cut_nanoseconds = cut_nanoseconds;
    pthread_mutex_init(&engine->park_mutex, NULL);
    pthread_mutex_init(&engine->pool_mutex, NULL);
    pthread_mutex_init(&engine->output, NULL);
    pthread_mutex_init(&engine->queue->mutex, NULL);
    condition_init(&engine->queue->news);
    condition_init(&engine->park_condition);
    condition_init(&engine->pool_done);

    engine->rows = malloc(first_output_words * sizeof *engine->rows);
    engine->row_capacity = first_output_words;
    engine->workers = aligned(config->threads, sizeof *engine->workers);
    for (uint64_t i = 0; engine->workers != NULL && i < config->threads; i++)
        condition_init(&engine->workers[i].called);
    bool complete = engine->rows != NULL && engine->workers != NULL &&
                    engine->config.regions != NULL && ss_locks_open(engine) &&
                    ss_boost_open(engine) && ss_containers_open(engine) &&
                    ss_timers_open(engine);
    for (uint64_t i = 0; complete && i < config->threads; i++)
        complete = worker_init(engine, i);
    if (config->protocol == SS_PROTOCOL_EAGER)
        complete = complete && ss_records_open(engine);
    if (!complete || !ss_fault_open() || !ss_pool_start(engine)) {
        ss_engine_free(engine);
        return NULL;
    }
    return engine;
}

void ss_engine_free(struct ss_engine *engine)
{
    if (engine->kind->is_endless)
        ss_engine_stop(engine);
    /* Waiting also watches: all workers of the job in flight may be in runaway runs. */
    while (!ss_engine_wait(engine, 50))
        continue;
    ss_pool_stop(engine);
    for (uint64_t i = 0; engine->workers != NULL && i < engine->config.threads; i++) {
        struct ss_worker *worker = &engine->workers[i];
        pthread_cond_destroy(&worker->called);
        free(worker->run.slots);
        free(worker->run.scratch);
        free(worker->run.undo_base);
        free(worker->rows);
        free(worker->buffer);
        free(worker->touched.entries);
        ss_arena_close(&worker->run);
    }
    for (uint64_t i = 0; i < engine->ring_size; i++) {
        free(engine->ring[i].reads);
        free(engine->ring[i].redo);
        free(engine->ring[i].rows);
        free(engine->ring[i].owned);
        free(engine->ring[i].performed);
        free(engine->ring[i].changes);
        free(engine->ring[i].spans);
    }
    ss_queue_close(engine);
    ss_early_close(engine);
    pthread_cond_destroy(&engine->queue->news);
    pthread_mutex_destroy(&engine->queue->mutex);
    free(engine->queue);
    ss_locks_close(engine);
    ss_boost_close(engine);
    ss_timers_close(engine);
    ss_containers_close(engine);
    pthread_mutex_destroy(&engine->output);
    pthread_cond_destroy(&engine->pool_done);
    pthread_cond_destroy(&engine->park_condition);
    pthread_mutex_destroy(&engine->pool_mutex);
    pthread_mutex_destroy(&engine->park_mutex);
    free((void *)engine->config.regions);
    free(engine->records);
    free(engine->regions);
    free(engine->ring);
    free(engine->workers);
    free(engine->rows);
    free(engine);
}

void ss_engine_state_changed(struct ss_engine *engine)
{
    ss_boost_state_changed(engine);
    /* With the mutex, as figures may be asked for. */
    pthread_mutex_lock(&engine->queue->mutex);
    ss_early_close(engine);
    pthread_mutex_unlock(&engine->queue->mutex);
    ss_timers_state_changed(engine);
    if (engine->config.container_count == 0)
        return;
    /* With the mutex: somebody who looks at a key may be making it of words that have changed meanwhile,
     * and must not call it done afterwards. */
    pthread_mutex_lock(&engine->containers_mutex);
    atomic_store_explicit(&engine->containers_stale, 1, memory_order_relaxed);
    pthread_mutex_unlock(&engine->containers_mutex);
}

void ss_engine_set_entry(struct ss_engine *engine, enum ss_variant variant, ss_entry entry)
{
    engine->entries[variant] = entry;
}

/* The job's setting, and memory for it; false: out of memory. */
static bool prepare(struct ss_engine *engine, const struct ss_job *job)
{
    const struct ss_config *config = &engine->config;
    ss_early_close(engine); /* that of the last job */
    engine->job = *job;
    engine->kind = kinds[job->mode];
    if (engine->hooks.kinds != 0)
        engine->job.chunk = 1;
    else if (job->mode == SS_MODE_ORDERED && (job->horizon == 0 || job->count <= job->chunk)) {
        /* Nothing to speculate on: one transaction, and one worker that runs it as the head. */
        engine->job.horizon = 0;
        engine->job.chunk = job->count > 0 ? job->count : 1;
    }
    if (job->early_bytes != 0 && config->operations > 0)
        engine->job.horizon = 0;
    if (engine->job.longest_horizon < engine->job.horizon || engine->job.horizon == 0)
        engine->job.longest_horizon = engine->job.horizon;
    if (config->protocol == SS_PROTOCOL_EAGER) {
        engine->job.horizon = least_of(engine->job.horizon, longest_eager_horizon);
        engine->job.longest_horizon = least_of(engine->job.longest_horizon, longest_eager_horizon);
    }
    if (!ss_containers_renew(engine))
        return false;
    /* What the last job left in the wait queue may still hold records. Before the ring grows: a
     * reference names a slot, and a longer ring has another tenant in it. */
    for (uint64_t i = 0; i < engine->ring_size; i++)
        engine->protocol->roll_back(engine, &engine->ring[i]);
    engine->transactions = engine->kind->is_endless
                               ? INT64_MAX
                               : (job->count + engine->job.chunk - 1) / engine->job.chunk;
    if (!ring_resize(engine, ring_slots_with(engine->job.longest_horizon, engine->timers != NULL)))
        return false;
    for (uint64_t i = 0; i < engine->ring_size; i++)
        /* Relaxed: no worker is in a job, and the pool's mutex hands it to them. */
        atomic_store_explicit(&engine->ring[i].status, ss_status_word(-1, SS_FREE),
                              memory_order_relaxed);
    if (job->early_bytes != 0 && !ss_early_open(engine, job->early_bytes))
        return false;
    for (uint64_t i = 0; i < config->threads; i++)
        engine->workers[i].run.state = engine->state;
    return engine->kind->open == NULL || engine->kind->open(engine);
}

bool ss_engine_start(struct ss_engine *engine, const struct ss_job *job)
{
    /* Who came since the last job must not take an operator's fault for his own. */
    ss_signals_take_front();
    int64_t chunk_before = engine->job.chunk;
    /* Who waits for news of an open job, or looks at figures, may still look at all that follows. */
    pthread_mutex_lock(&engine->queue->mutex);
    bool prepared = prepare(engine, job);
    pthread_mutex_unlock(&engine->queue->mutex);
    if (!prepared)
        return false;
    engine->row_words = 0;
    engine->row_edition++;
    engine->consumed = 0;
    engine->failed = false;
    ss_forget_answers(engine);
    engine->fault = (struct ss_fault){0};
    engine->lock_fault = (struct ss_lock_fault){0};
    engine->no_memory = false;
    ss_prediction_start(engine, chunk_before);
    ss_boost_start(engine);
    ss_containers_start(engine);
    ss_timers_start(engine);
    /* Relaxed, here and below: no worker is in a job, and the pool's mutex hands it to them. */
    atomic_store_explicit(&engine->next_start, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->next_commit, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->over, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->stop, 0, memory_order_relaxed);
    /* The state may have been changed since, by a plain stretch or by its owner. Relaxed: the pool's
     * mutex hands it to the workers. */
    atomic_fetch_add_explicit(&engine->clock, 1, memory_order_relaxed);
    atomic_store_explicit(&engine->retries, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->rerunning, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->last_doubtful, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->reach, engine->job.horizon, memory_order_relaxed);
    atomic_store_explicit(&engine->head_since, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->overstayed_nanoseconds, 0, memory_order_relaxed);
    /* What is recorded is that of whole chunks; and what boosted structures and timers are told of a
     * transaction is told once. */
    engine->cuts_heads = job->mode == SS_MODE_ORDERED && !engine->protocol->head_speculates &&
                         engine->job.chunk > 1 && engine->recorder == NULL &&
                         engine->timers == NULL && engine->boost == NULL;
    engine->started_at = ss_now();
    ss_clock_in(engine);
    ss_pool_call(engine);
    return true;
}

struct ss_outcome ss_engine_outcome(struct ss_engine *engine)
{
    struct ss_outcome outcome = {
        .job = engine->job_number,
        .consumed = engine->consumed,
        .failed = engine->failed,
        .failed_row = engine->consumed,
        .fault = engine->fault,
        .lock_fault = engine->lock_fault,
        .no_memory = engine->no_memory,
        .rows = engine->rows,
        .row_count = engine->row_words / engine->config.emit_words,
        .edition = engine->row_edition,
    };
    if (engine->kind->report != NULL)
        engine->kind->report(engine, &outcome);
    if (engine->timers != NULL) {
        outcome.timer_failed = engine->timers->failed;
        if (outcome.timer_failed)
            outcome.failed_timer = engine->timers->firing;
        outcome.ending = engine->timers->end;
        outcome.firings = engine->timers->firings;
        outcome.firing_count = engine->timers->firing_count;
    }
    return outcome;
}

struct ss_memory ss_memory_needed(const struct ss_config *config, int64_t horizon,
                                  enum ss_mode mode)
{
    struct ss_memory needed = {0};
    needed.fixed = aligned_bytes(1, sizeof(struct ss_engine)) +
                   aligned_bytes(1, sizeof(struct ss_queue)) +
                   first_output_words * sizeof(uint64_t) +
                   ss_locks_bytes(config) + ss_boost_bytes(config) +
                   ss_containers_bytes(config) + ss_timers_bytes(config) +
                   (config->region_count + 1) * sizeof(struct ss_region);
    needed.thread = aligned_bytes(1, sizeof(struct ss_worker)) +
                    aligned_bytes(config->scratch_words, sizeof(uint64_t)) +
                    aligned_bytes(redo_slots(config), sizeof(struct ss_slot)) +
                    first_undo_entries * sizeof(struct ss_undo) + ss_arena_most_bytes(config);
    if (mode == SS_MODE_LOCKED)
        needed.thread += emit_bytes(config);
    needed.transaction = sizeof(struct ss_transaction) +
                         config->read_limit * sizeof(struct ss_read) +
                         config->redo_limit * sizeof(struct ss_write) + emit_bytes(config) +
                         ss_boost_transaction_bytes(config) + ss_changes_bytes(config);
    if (config->protocol == SS_PROTOCOL_EAGER) {
        needed.fixed += ss_record_count(config) * sizeof(uint64_t) + ss_record_region_bytes(config);
        needed.transaction += ss_owned_limit(config) * sizeof(struct ss_owned);
        horizon = least_of(horizon, longest_eager_horizon);
    }
    needed.transactions = ring_slots_with(horizon, ss_timers_bytes(config) != 0);
    needed.total = needed.fixed + config->threads * needed.thread +
                   needed.transactions * needed.transaction;
    return needed;
}

uint64_t ss_engine_memory(struct ss_engine *engine)
{
    const struct ss_config *config = &engine->config;
    struct ss_queue *queue = engine->queue;
    struct ss_memory needed = ss_memory_needed(config, 0, SS_MODE_ORDERED);
    /* The ring, its spans and the pending events only grow with the mutex. */
    pthread_mutex_lock(&queue->mutex);
    uint64_t held = needed.fixed + config->threads * needed.thread +
                    engine->ring_size * needed.transaction;
    /* What has grown since, because the head and the output have no limit. */
    held += (ss_counted(&engine->row_capacity) - first_output_words) * sizeof(uint64_t);
    for (uint64_t i = 0; i < config->threads; i++) {
        const struct ss_worker *worker = &engine->workers[i];
        held += (ss_counted(&worker->undo_entries) - first_undo_entries) * sizeof(struct ss_undo);
        held += worker->rows != NULL ? emit_bytes(config) : 0;
        held += ss_counted(&worker->buffer_words) * sizeof *worker->buffer;
        held += ss_arena_bytes(&worker->run);
        held -= ss_arena_most_bytes(config);
    }
    held += ss_containers_grown(engine) + ss_timers_grown(engine);
    held += queue->pending_capacity * sizeof(struct ss_span);
    if (engine->early != NULL)
        held += engine->early->bytes + config->state_words * sizeof(uint64_t);
    held += queue->active != NULL ? 3 * queue->slots * sizeof(uint64_t) : 0;
    for (uint64_t i = 0; i < engine->ring_size; i++)
        held += engine->ring[i].span_capacity * sizeof(struct ss_span);
    pthread_mutex_unlock(&queue->mutex);
    return held;
}

bool ss_engine_is_idle(struct ss_engine *engine)
{
    return !ss_pool_is_running(engine);
}
