/* Random operators on random engines, against the sequential run.
 *
 * The test is a row of *worlds*. A world is one engine with its limits and threads, a state, and a
 * few batches of events; a batch is run by one job or, where a job ends early because an event
 * raised or because somebody stopped it, by several, each with its own mode, horizon and chunk.
 * After every job the whole state and all rows must be those of the sequential run of the events
 * that the job says it has consumed.
 *
 * Everything about a world follows from the seed and the world's number, except the interleaving:
 *
 *     stress --seed N                  worlds 0, 1, 2 ... of seed N
 *     stress --seed N --world W        world W again and again
 *     --seconds S    how long (60)     --threads T   at most so many workers (8)
 *     --patience S   without progress for so long, it hangs (60)
 *
 * A run that was long enough fails if something that it is there to test never happened.
 *
 * It is one file because it is one loop, with all that it draws before it and compares after it. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "boosted.h"
#include "companions.h"
#include "core/engine.h"
#include "long_sleep.h"
#include "patience.h"
#include "processor/now.h"
#include "random_open_job.h"
#include "random_operator.h"
#include "specstream.h"

static struct {
    uint64_t seed;
    int64_t world; /* the only one, or -1 */
    int64_t seconds;
    uint64_t threads;
    int64_t patience;
} options = {.world = -1, .seconds = 60, .threads = 8, .patience = 60};

/* Shorter runs are for a quick look, and need not have seen everything. */
static const int64_t long_enough_seconds = 20;
static const int64_t most_events = 20000;

static struct {
    uint64_t worlds;
    uint64_t jobs;
    uint64_t events;
    uint64_t rows;
    uint64_t failed_jobs;
    uint64_t stopped_jobs;
    uint64_t killed_jobs;
    uint64_t turns_taken;
    uint64_t horizonless_jobs;
    uint64_t speculate_jobs;
    uint64_t log_free_jobs;
    uint64_t locked_jobs;
    uint64_t open_jobs;
    uint64_t open_failures;
    uint64_t grown_horizons;
    uint64_t early_jobs;
    uint64_t early_checks;
    struct ss_early_figures early;
    uint64_t empty_jobs;
    uint64_t large_jobs;
    uint64_t abandoned_jobs;
    uint64_t eager_worlds;
    uint64_t interpreted_worlds;
    uint64_t container_worlds;
    uint64_t restored;
    uint64_t timer_worlds;
    uint64_t expiry_worlds;
    uint64_t expired;
    uint64_t failed_timers;
    uint64_t ended_inputs;
    uint64_t keys_seen;
    struct ss_statistics engines;
} totals;

static int64_t started_at;
static int64_t reported_at;

struct world {
    uint64_t number;
    uint64_t seed;
    struct ss_config config;
    struct shape regions; /* its steps differ from batch to batch */
    struct ss_engine *engine;
    struct model model;
    struct companions companions;
    bool sleepy;
    bool interpreted;
    uint64_t consumed; /* events of all jobs */
    int64_t time;      /* of the last event so far */
};

struct batch {
    uint64_t number;
    int64_t count;
    int64_t first_sequence;
    uint64_t *seeds;
    uint8_t *tempers;
    int64_t *times;
    int64_t first_time;
    uint64_t *keys[3];
    struct shape shape;
};

static double elapsed(void)
{
    return (double)(ss_now() - started_at) / 1e9;
}

static bool time_is_up(void)
{
    return elapsed() >= (double)options.seconds;
}

static void *allocate(uint64_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        fail("out of memory");
    return memory;
}

static void describe(const struct world *world, const struct batch *batch, uint64_t part,
                     int64_t offset, const struct ss_job *job, enum request request)
{
    static const char *const modes[] = {"ordered", "speculate", "log-free", "locked", "open"};
    static const char *const protocols[] = {"value", "eager"};
    static const char *const requests[] = {"", ", to be stopped", ", to be killed"};
    const struct shape *shape = &batch->shape;
    const struct ss_config *config = &world->config;
    char weights[320] = "";
    for (int step = 0, at = 0; step < STEPS; step++)
        at += snprintf(weights + at, sizeof weights - (size_t)at, " %u", shape->weights[step]);
    patience_note(
        world->engine,
        "  replay: stress --seed %" PRIu64 " --world %" PRIu64 " --threads %" PRIu64 "\n"
        "  batch %" PRIu64 ", part %" PRIu64 ": %s, %" PRId64 " events from %" PRId64 " of %" PRId64
        ", chunk %" PRId64 ", horizon %" PRId64 ", early %" PRIu64 "%s\n"
        "  threads %" PRIu64 ", read limit %" PRIu64 ", redo limit %" PRIu64 ", emit limit %" PRIu64
        "%s%s%s\n"
        "  protocol %s, record shift %" PRIu64 ", records %" PRIu64 ", regions %" PRIu64 "\n"
        "  words %" PRIu64 " (free %" PRIu64 ", narrow %" PRIu64 ", accounts %" PRIu64
        ", pairs %" PRIu64 "), row words %" PRIu64 ", scratch %" PRIu64 "\n"
        "  most steps %" PRIu64 ", skew %" PRIu64 ", work %" PRIu64 ", weights%s",
        options.seed, world->number, options.threads, batch->number, part, modes[job->mode],
        job->count, offset, batch->count, job->chunk, job->horizon, job->early_bytes,
        requests[request],
        config->threads, config->read_limit, config->redo_limit, config->emit_limit,
        world->sleepy ? ", long sleeps" : "", world->interpreted ? ", interpreted" : "",
        world->companions.reading ? ", with a reader" : "",
        protocols[config->protocol], config->record_shift, config->records,
        config->region_count,
        shape->words, shape->free_words, shape->narrow_words, shape->accounts, shape->pairs,
        shape->emit_words, shape->scratch_words, shape->most_steps, shape->skew, shape->work, weights);
}

static void report_progress(void)
{
    if (ss_now() - reported_at < 5000000000)
        return;
    reported_at = ss_now();
    printf("%6.1f s: %" PRIu64 " worlds, %" PRIu64 " jobs, %" PRIu64 " events\n", elapsed(),
           totals.worlds, totals.jobs, totals.events);
    fflush(stdout);
}

/* Of a state, those before the containers. */
static uint64_t plain_words(const struct shape *shape)
{
    return shape->words + shape->boosted_words;
}

static void compare_words(const char *what, const uint64_t *expected, const uint64_t *found,
                          uint64_t count)
{
    uint64_t first = 0, wrong = 0;
    for (uint64_t i = count; i-- > 0;)
        if (expected[i] != found[i]) {
            first = i;
            wrong++;
        }
    if (wrong > 0)
        fail("%s: %" PRIu64 " of %" PRIu64 " words differ from the sequential run, the first at %"
             PRIu64 ": expected %#" PRIx64 ", found %#" PRIx64,
             what, wrong, count, first, expected[first], found[first]);
}

/* The sequential run of what the job says it has done; true: it agrees. */
static void compare(struct world *world, const struct ss_job *job, const struct ss_outcome *outcome,
                    enum request request)
{
    struct model *model = &world->model;
    const struct shape *shape = job->columns[COLUMN_SHAPE];
    const int64_t *times = job->columns[COLUMN_TIMESTAMP];
    bool is_over = outcome->consumed == job->count;
    if (outcome->consumed < 0 || outcome->consumed > job->count)
        fail("%" PRId64 " of %" PRId64 " events consumed", outcome->consumed, job->count);
    model_clear_rows(model);
    for (int64_t i = 0; i < outcome->consumed; i++) {
        if (!model_fire_before(model, shape, times[i]))
            fail("event %" PRId64 " of the job was applied, but a timer before it raises", i);
        if (!model_event(model, job->columns, i, job->first_sequence + i))
            fail("event %" PRId64 " of the job was applied, but raises in the sequential run%s", i,
                 model->astray ? " by a fault of the test itself" : "");
        model_pass(model, shape, times[i]);
    }
    if (outcome->timer_failed) {
        if (!outcome->failed ||
            (is_over ? model_fire(model, shape, INT64_MAX)
                     : model_fire_before(model, shape, times[outcome->consumed])))
            fail("a timer raised, but not in the sequential run");
        if (outcome->failed_timer.number != (int64_t)model->contents.fired - 1)
            fail("timer %" PRId64 " raised, in the sequential run another one",
                 outcome->failed_timer.number);
    } else if (outcome->failed) {
        if (is_over)
            fail("the job failed, but no event is left that could have raised");
        if (!model_fire_before(model, shape, times[outcome->consumed]))
            fail("an event raised, but a timer before it does in the sequential run");
        if (model_event(model, job->columns, outcome->consumed,
                        job->first_sequence + outcome->consumed))
            fail("event %" PRId64 " of the job raised, but not in the sequential run",
                 outcome->consumed);
        if (model->astray)
            fail("the sequential run met a mixture: a fault of the test itself");
    } else if (request != REQUEST_NONE && (!is_over || job->ends_input)) {
        model_follow(model, shape,
                     is_over ? INT64_MAX : model_time(model, times[outcome->consumed]),
                     world->engine, world->config.state, outcome);
    } else if (is_over) {
        if (job->ends_input && !model_fire(model, shape, INT64_MAX))
            fail("a timer raises at the end in the sequential run, and has not");
        if (job->ends_input)
            ss_engine_go_on_ending(world->engine, 0); /* its caller has heard of it: it is over */
    } else {
        fail("the job ended after %" PRId64 " of %" PRId64 " events, and nobody asked for that",
             outcome->consumed, job->count);
    }
    /* Without the turn: between two jobs the state stands still. */
    compare_words("state", model->state, world->config.state, plain_words(&world->regions));
    if (world->regions.containers.words > 0)
        contents_compare(&world->regions.containers, world->engine, world->config.state,
                         &model->contents);
    if (outcome->row_count * world->config.emit_words != model->row_words)
        fail("%" PRIu64 " rows, but %" PRIu64 " in the sequential run", outcome->row_count,
             model->row_words / world->config.emit_words);
    compare_words("rows", model->rows, outcome->rows, model->row_words);
    if (outcome->firing_count != model->firing_count)
        fail("%" PRIu64 " timers have emitted rows, and %" PRIu64 " in the sequential run",
             outcome->firing_count, model->firing_count);
    for (uint64_t i = 0; i < outcome->firing_count; i++)
        if (outcome->firings[i].number != (int64_t)model->firings[i])
            fail("timer %" PRId64 " has emitted rows, and not in the sequential run",
                 outcome->firings[i].number);
}

/* Without order there is no one answer; what must hold is what every order keeps. */
static void check_locked(struct world *world, const struct ss_job *job,
                         const struct ss_outcome *outcome)
{
    const char *violation = shape_violation(&world->regions, world->config.state);
    if (violation != NULL)
        fail("after a job under locks, %s", violation);
    if (outcome->consumed > job->count || (!outcome->failed && outcome->consumed != job->count))
        fail("%" PRId64 " of %" PRId64 " events consumed under locks", outcome->consumed,
             job->count);
    memcpy(world->model.state, world->config.state,
           plain_words(&world->regions) * sizeof(uint64_t));
    if (world->regions.containers.words > 0)
        contents_read(&world->regions.containers, world->engine, world->config.state,
                      &world->model.contents);
}

/* From an event on. */
static void set_columns(const struct batch *batch, int64_t offset, void *columns[COLUMNS])
{
    columns[COLUMN_TIMESTAMP] = batch->times + offset;
    columns[COLUMN_SEED] = batch->seeds + offset;
    columns[COLUMN_TEMPER] = batch->tempers + offset;
    columns[COLUMN_SHAPE] = (void *)&batch->shape;
    for (int i = 0; i < 3; i++)
        columns[COLUMN_KEY + i] = batch->keys[i] + offset;
}

static void free_batch(struct batch *batch)
{
    free(batch->seeds);
    free(batch->tempers);
    free(batch->times);
    for (int i = 0; i < 3; i++)
        free(batch->keys[i]);
}

static void draw_job(struct world *world, const struct batch *batch, int64_t offset,
                     struct dice *dice, struct ss_job *job)
{
    bool calm = true;
    for (int64_t i = offset; i < batch->count; i++)
        calm = calm && batch->tempers[i] == TEMPER_CALM;
    job->count = batch->count - offset;
    job->first_sequence = batch->first_sequence + offset;
    job->chunk = chance(dice, 3) ? 1 : 1 + (int64_t)spread(dice, 63);
    job->horizon = chance(dice, 6) ? 0 : (int64_t)spread(dice, 64);
    job->longest_horizon = chance(dice, 2) ? (int64_t)spread(dice, 512) : 0;
    job->mode = chance(dice, 4) ? SS_MODE_SPECULATE : SS_MODE_ORDERED;
    /* Neither can take an event back, so nothing may raise; and they run long before others do. */
    const struct container_shape *containers = &batch->shape.containers;
    if (calm && !batch->shape.timers_raise && job->count <= 500 && chance(dice, 12))
        job->mode = world->config.emit_limit >= 64 && !containers->goes_by_time && chance(dice, 2)
                        ? SS_MODE_LOCKED
                        : SS_MODE_LOG_FREE;
    job->ends_input = containers->has_timers && chance(dice, 2);
}

static void await_job(struct world *world, struct dice *dice)
{
    int64_t progress = 0;
    while (!ss_engine_wait(world->engine, (int64_t)spread(dice, 50))) {
        int64_t now = ss_engine_progress(world->engine);
        if (now < progress)
            fail("progress went back from %" PRId64 " to %" PRId64, progress, now);
        progress = now;
    }
}

/* Runs the batch from `offset` on; returns where the next job has to begin. */
static int64_t run_job(struct world *world, const struct batch *batch, uint64_t part,
                       int64_t offset)
{
    struct dice dice = dice_for(mix(world->seed + batch->number), 1000 + part);
    void *columns[COLUMNS];
    set_columns(batch, offset, columns);
    timers_run_as(&batch->shape);
    struct ss_job job = {.columns = columns};
    draw_job(world, batch, offset, &dice, &job);
    bool unordered = job.mode == SS_MODE_LOG_FREE || job.mode == SS_MODE_LOCKED;
    enum request request = REQUEST_NONE;
    uint64_t delay = spread(&dice, spread(&dice, 20000000));
    if (!unordered && chance(&dice, 4))
        request = chance(&dice, 2) ? REQUEST_STOP : REQUEST_KILL;
    describe(world, batch, part, offset, &job, request);

    /* These modes know no turn; taking it ourselves keeps the reader out. */
    if (unordered) {
        ss_engine_take_turn(world->engine);
        atomic_fetch_add(&world->companions.unordered, 1);
    }
    if (!ss_engine_start(world->engine, &job))
        fail("the engine did not start the job");
    if (request != REQUEST_NONE)
        companions_request(&world->companions, request, delay);
    await_job(world, &dice);
    companions_settle(&world->companions);
    if (unordered) {
        atomic_fetch_add(&world->companions.unordered, 1);
        ss_engine_release_turn(world->engine);
    }

    struct ss_outcome outcome = ss_engine_outcome(world->engine);
    if (job.mode == SS_MODE_LOCKED)
        check_locked(world, &job, &outcome);
    else
        compare(world, &job, &outcome, request);
    if (long_sleep_missed() != 0)
        fail("a worker slept on while there was something to do: a wake-up was lost");

    world->consumed += (uint64_t)outcome.consumed;
    bool cut = outcome.consumed < job.count && !outcome.failed;
    bool at_end = outcome.timer_failed && outcome.consumed == job.count;
    totals.jobs++;
    totals.events += (uint64_t)outcome.consumed;
    totals.rows += outcome.row_count;
    totals.failed_jobs += outcome.failed && job.mode != SS_MODE_LOCKED;
    totals.stopped_jobs += cut && request == REQUEST_STOP;
    totals.killed_jobs += cut && request == REQUEST_KILL;
    totals.horizonless_jobs += job.mode == SS_MODE_ORDERED && job.horizon == 0;
    totals.grown_horizons += atomic_load(&world->engine->reach) > job.horizon;
    totals.speculate_jobs += job.mode == SS_MODE_SPECULATE;
    totals.log_free_jobs += job.mode == SS_MODE_LOG_FREE;
    totals.locked_jobs += job.mode == SS_MODE_LOCKED;
    totals.empty_jobs += job.count == 0;
    totals.large_jobs += outcome.consumed >= 2000;
    totals.failed_timers += outcome.timer_failed;
    totals.ended_inputs += job.ends_input && outcome.consumed == job.count && !outcome.failed;
    report_progress();
    if (job.mode == SS_MODE_LOCKED)
        return batch->count;
    /* What has failed at the end of the input goes on with a job without events. */
    if (at_end && !time_is_up())
        return run_job(world, batch, part + 1, offset + outcome.consumed);
    return offset + outcome.consumed + (outcome.failed && !outcome.timer_failed ? 1 : 0);
}

static void draw_batch(struct world *world, struct batch *batch, struct dice *dice)
{
    static const uint64_t raising[] = {0, 0, 0, 0, 5000, 500, 100, 10};
    uint64_t one_in = raising[below(dice, sizeof raising / sizeof *raising)];
    batch->shape = world->regions;
    shape_steps(&batch->shape, dice);
    /* Small jobs end and begin often, large ones reach the steady state. */
    uint64_t most = chance(dice, 8) ? (uint64_t)most_events : one_in == 10 ? 100 : 1000;
    batch->count = (int64_t)spread(dice, most);
    batch->seeds = allocate((uint64_t)batch->count, sizeof *batch->seeds);
    batch->tempers = allocate((uint64_t)batch->count, sizeof *batch->tempers);
    batch->times = allocate((uint64_t)batch->count, sizeof *batch->times);
    for (int i = 0; i < 3; i++)
        batch->keys[i] = allocate((uint64_t)batch->count, sizeof *batch->keys[i]);
    batch->shape.timers_raise = one_in > 0;
    const struct container_shape *containers = &world->regions.containers;
    const int64_t clock = world->model.contents.clock;
    bool expires = containers->of[DICT].expires != 0 || containers->of[PAIRS].expires != 0;
    /* After the end of the input events may be before the clock. Not where entries expire: of those that
     * are over by the clock, the engine has a timer that fires late find some. */
    if (expires && world->time < clock)
        world->time = clock;
    int64_t time = world->time;
    for (int64_t i = 0; i < batch->count; i++) {
        uint64_t keys[3] = {0};
        batch->seeds[i] = roll(dice);
        batch->times[i] = time += chance(dice, 3) ? 0 : (int64_t)below(dice, 5);
        if (world->regions.containers.words > 0)
            container_keys(&world->regions.containers, batch->seeds[i], keys);
        for (int at = 0; at < 3; at++)
            batch->keys[at][i] = keys[at];
        if (one_in > 0 && chance(dice, one_in))
            batch->tempers[i] =
                (uint8_t)(TEMPER_RAISES + (int)below(dice, TEMPER_MAY_RAISE - TEMPER_RAISES + 1));
    }
    batch->first_time = world->time;
    world->time = time;
}

/* The batch as an open job: its events come from several sources and out of order. */
static void run_open(struct world *world, const struct batch *batch, struct dice *dice)
{
    struct ss_job job = {.chunk = chance(dice, 3) ? 1 : 1 + (int64_t)spread(dice, 31),
                         .horizon = chance(dice, 6) ? 0 : (int64_t)spread(dice, 64),
                         .longest_horizon = chance(dice, 2) ? (int64_t)spread(dice, 512) : 0,
                         .mode = SS_MODE_OPEN,
                         .count = batch->count};
    if (chance(dice, 2))
        job.early_bytes = chance(dice, 2) ? UINT64_MAX : spread(dice, 1 << 18);
    totals.early_jobs += job.early_bytes != 0;
    describe(world, batch, 0, 0, &job, REQUEST_NONE);
    struct open_batch open = {.engine = world->engine,
                              .state = world->config.state,
                              .emit_words = world->config.emit_words,
                              .shape = &batch->shape,
                              .model = &world->model,
                              .seeds = batch->seeds,
                              .keys = {batch->keys[0], batch->keys[1], batch->keys[2]},
                              .time = batch->first_time,
                              .tempers = batch->tempers,
                              .count = batch->count,
                              .dice = *dice};
    job.count = 0;
    timers_run_as(&batch->shape);
    struct ss_outcome outcome = run_open_batch(&open, &job);
    struct ss_early_figures early = ss_engine_early_figures(world->engine);
    totals.early_checks += open.early_checks;
    totals.early.revoked += early.revoked;
    totals.early.republished += early.republished;
    totals.early.rerun += early.rerun;
    world->time = open.time > world->time ? open.time : world->time;
    if (long_sleep_missed() != 0)
        fail("a worker slept on while there was something to do: a wake-up was lost");
    world->consumed += (uint64_t)outcome.consumed;
    totals.jobs++;
    totals.open_jobs++;
    totals.events += (uint64_t)outcome.consumed;
    totals.rows += open.rows;
    totals.open_failures += open.failures;
    totals.failed_timers += open.failed_timers;
    report_progress();
}

/* The containers are put in anew, as from a snapshot. */
static void restore(struct world *world)
{
    ss_engine_take_turn(world->engine); /* the reader stays out */
    contents_restore(&world->regions.containers, world->config.state, &world->model.contents);
    ss_engine_state_changed(world->engine);
    ss_engine_release_turn(world->engine);
    totals.restored++;
}

static void run_batch(struct world *world, uint64_t number, int64_t *sequence)
{
    struct dice dice = dice_for(world->seed, 100 + number);
    struct batch batch = {.number = number, .first_sequence = *sequence};
    draw_batch(world, &batch, &dice);
    int64_t offset = 0;
    uint64_t part = 0;
    if (world->regions.containers.words > 0 && !world->companions.looking && chance(&dice, 3))
        restore(world);
    if (chance(&dice, 3)) {
        run_open(world, &batch, &dice);
    } else {
        do
            offset = run_job(world, &batch, part++, offset);
        while (offset < batch.count && !time_is_up());
    }
    *sequence += batch.count;
    free_batch(&batch);
}

/* The figures must tell one story, whatever happened. */
static void check_statistics(const struct world *world, const struct ss_statistics *statistics)
{
    uint64_t aborts = 0;
    for (int reason = 0; reason < SS_ABORT_REASONS; reason++)
        aborts += statistics->aborts[reason];
    if (statistics->events != world->consumed)
        fail("the engine counts %" PRIu64 " events, its outcomes %" PRIu64, statistics->events,
             world->consumed);
    if (aborts != statistics->reruns)
        fail("%" PRIu64 " aborts, but %" PRIu64 " reruns", aborts, statistics->reruns);
    /* Timers come before the head, and what they change it may have read. */
    if (statistics->head_aborts > statistics->timers + world->model.expired)
        fail("%" PRIu64 " runs that began as the head were dropped for a conflict",
             statistics->head_aborts);
    /* Events with boosted fields run in place, with early results, and may be revoked. */
    if (world->regions.boosted_words > 0)
        aborts -= statistics->aborts[SS_ABORT_REVOKED];
    if (aborts > statistics->speculative_runs)
        fail("%" PRIu64 " aborts of %" PRIu64 " speculative runs", aborts,
             statistics->speculative_runs);
}

static void add_statistics(const struct ss_statistics *statistics)
{
    struct ss_statistics *sum = &totals.engines;
    sum->commits += statistics->commits;
    sum->head_runs += statistics->head_runs;
    sum->reruns += statistics->reruns;
    sum->speculative_runs += statistics->speculative_runs;
    sum->parks += statistics->parks;
    sum->timers += statistics->timers;
    for (int reason = 0; reason < SS_ABORT_REASONS; reason++)
        sum->aborts[reason] += statistics->aborts[reason];
}

/* An engine may be freed with a job in flight: it must still end at an event boundary. */
static void abandon_job(struct world *world, struct dice *dice)
{
    struct batch batch = {.number = 99};
    draw_batch(world, &batch, dice);
    void *columns[COLUMNS];
    set_columns(&batch, 0, columns);
    timers_run_as(&batch.shape);
    struct ss_job job = {.columns = columns,
                         .count = batch.count,
                         .chunk = 1 + (int64_t)below(dice, 8),
                         .horizon = (int64_t)below(dice, 32)};
    describe(world, &batch, 0, 0, &job, REQUEST_NONE);
    if (!ss_engine_start(world->engine, &job))
        fail("the engine did not start the job");
    if (chance(dice, 2))
        ss_engine_kill(world->engine);
    ss_engine_free(world->engine);
    const char *violation = shape_violation(&world->regions, world->config.state);
    if (violation != NULL)
        fail("after freeing an engine at work, %s", violation);
    free_batch(&batch);
    totals.abandoned_jobs++;
}

/* Up to three regions that share records differently. */
static uint64_t draw_regions(struct ss_region regions[3], uint64_t words, struct dice *dice)
{
    uint64_t count = 0;
    for (uint64_t first = 0; count < 3 && first < words; first += 1 + below(dice, words))
        regions[count++] = (struct ss_region){first, below(dice, 6)};
    return count;
}

static void run_world(uint64_t number)
{
    struct world world = {.number = number, .seed = dice_for(options.seed, number).state};
    struct dice dice = dice_for(world.seed, 0);
    struct ss_config *config = &world.config;
    static const uint64_t limits[] = {8, 64, 512, 2048};

    shape_regions(&world.regions, 1 + spread(&dice, 65535), &dice);
    config->threads = 1 + below(&dice, options.threads);
    config->state_words = plain_words(&world.regions);
    if (world.regions.boosted_words > 0) {
        config->operations = BOOSTED_OPERATIONS;
        config->boosted_first = world.regions.words;
        config->boosted_end = config->state_words;
    }
    if (chance(&dice, 2)) {
        container_shape_draw(&world.regions.containers, config->state_words, &dice);
        config->state_words += world.regions.containers.words;
        config->containers = world.regions.containers.of;
        config->container_count = CONTAINERS;
        config->element_limit = chance(&dice, 4) ? 16 : 4096;
        totals.container_worlds++;
        config->timers = world.regions.containers.has_timers ? 1 + TIMERS : 0;
        totals.timer_worlds += config->timers != 0;
        totals.expiry_worlds += world.regions.containers.goes_by_time && config->timers == 0;
    }
    config->scratch_words = world.regions.scratch_words;
    config->emit_words = world.regions.emit_words;
    config->locks = 1;
    config->read_limit = 1 + below(&dice, limits[below(&dice, 4)]);
    config->redo_limit = 1 + below(&dice, limits[below(&dice, 4)]);
    config->emit_limit = 1 + below(&dice, limits[below(&dice, 4)]);
    config->seed = world.seed;
    config->protocol = chance(&dice, 2) ? SS_PROTOCOL_EAGER : SS_PROTOCOL_VALUE;
    config->record_shift = below(&dice, 5);
    /* Few records: words that have nothing to do with each other meet in one. */
    config->records = chance(&dice, 3) ? UINT64_C(1) << below(&dice, 10) : 0;
    struct ss_region regions[3];
    config->regions = regions;
    config->region_count = chance(&dice, 2) ? 0 : draw_regions(regions, config->state_words, &dice);
    config->state = allocate(config->state_words, sizeof *config->state);
    shape_fill(&world.regions, config->state, &dice);
    if (!model_open(&world.model, &world.regions, config->state))
        fail("out of memory");
    world.engine = ss_engine_new(config);
    if (world.engine == NULL)
        fail("no engine");
    if (chance(&dice, 2))
        world.engine->doubt_nanoseconds = 1; /* any run is worth being looked at again */
    if (chance(&dice, 2))
        world.engine->long_nanoseconds = 0; /* any run is long enough for a longer horizon */
    if (chance(&dice, 2))
        world.engine->cut_nanoseconds = 0; /* and to be stopped when it is the head */
    for (int variant = 0; variant < SS_VARIANTS; variant++)
        ss_engine_set_entry(world.engine, (enum ss_variant)variant, random_operator[variant]);
    struct dice own = dice_for(world.seed, 1);
    world.interpreted = chance(&own, 4);
    if (world.interpreted)
        ss_engine_interpret(world.engine, random_interpreter, NULL);
    totals.interpreted_worlds += world.interpreted;
    boosted_open(world.engine);
    world.sleepy = chance(&dice, 2);
    long_sleep_in(world.sleepy ? world.engine : NULL);
    world.companions.engine = world.engine;
    world.companions.shape = &world.regions;
    world.companions.state = config->state;
    world.companions.seed = world.seed;
    world.companions.reading = chance(&dice, 2);
    world.companions.looking = world.regions.containers.words > 0 && chance(&dice, 2);
    companions_start(&world.companions);

    int64_t sequence = (int64_t)below(&dice, 1000);
    uint64_t batches = 1 + below(&dice, 8);
    for (uint64_t i = 0; i < batches && !time_is_up(); i++)
        run_batch(&world, i, &sequence);

    companions_end(&world.companions);
    struct ss_statistics statistics = ss_engine_statistics(world.engine);
    check_statistics(&world, &statistics);
    add_statistics(&statistics);
    totals.turns_taken += world.companions.turns_taken;
    totals.keys_seen += world.companions.keys_seen;
    totals.expired += world.model.expired;
    totals.worlds++;
    totals.eager_worlds += config->protocol == SS_PROTOCOL_EAGER;
    if (chance(&dice, 8))
        abandon_job(&world, &dice);
    else
        ss_engine_free(world.engine);
    long_sleep_in(NULL);
    patience_note(NULL, "  between two worlds");
    model_close(&world.model);
    free(config->state);
}

/* False: something never happened. */
static bool summarize(void)
{
    const struct ss_statistics *engines = &totals.engines;
    struct {
        const char *name;
        uint64_t count;
    } figures[] = {
        {"worlds", totals.worlds},
        {"worlds of protocol value", totals.worlds - totals.eager_worlds},
        {"worlds of protocol eager", totals.eager_worlds},
        {"worlds that are interpreted", totals.interpreted_worlds},
        {"worlds with containers", totals.container_worlds},
        {"worlds with timers", totals.timer_worlds},
        {"worlds with nothing but expiry", totals.expiry_worlds},
        {"timers fired", engines->timers},
        {"timers that raise", totals.failed_timers},
        {"jobs that end the input", totals.ended_inputs},
        {"entries expired", totals.expired},
        {"containers restored", totals.restored},
        {"jobs", totals.jobs},
        {"open jobs", totals.open_jobs},
        {"events that raise in open jobs", totals.open_failures},
        {"jobs with early results", totals.early_jobs},
        {"early results compared with a run from scratch", totals.early_checks},
        {"transactions that were revoked", totals.early.revoked},
        {"transactions that were published again", totals.early.republished},
        {"revoked transactions that ran again", totals.early.rerun},
        {"jobs without events", totals.empty_jobs},
        {"jobs of 2000 events and more", totals.large_jobs},
        {"jobs without horizon", totals.horizonless_jobs},
        {"ordered jobs whose horizon grew", totals.grown_horizons},
        {"jobs that always speculate", totals.speculate_jobs},
        {"jobs without log", totals.log_free_jobs},
        {"jobs under locks", totals.locked_jobs},
        {"jobs ended by an event that raises", totals.failed_jobs},
        {"jobs cut short by stop", totals.stopped_jobs},
        {"jobs cut short by kill", totals.killed_jobs},
        {"jobs abandoned with their engine", totals.abandoned_jobs},
        {"events", totals.events},
        {"rows", totals.rows},
        {"commits", engines->commits},
        {"head runs", engines->head_runs},
        {"speculative runs", engines->speculative_runs},
        {"reruns", engines->reruns},
        {"aborts: conflict", engines->aborts[SS_ABORT_CONFLICT]},
        {"aborts: raised", engines->aborts[SS_ABORT_RAISED]},
        {"aborts: log full", engines->aborts[SS_ABORT_LOG_FULL]},
        {"aborts: runaway", engines->aborts[SS_ABORT_RUNAWAY]},
        {"aborts: inconsistent snapshot", engines->aborts[SS_ABORT_INCONSISTENT_SNAPSHOT]},
        {"aborts: locked", engines->aborts[SS_ABORT_LOCKED]},
        {"aborts: stolen", engines->aborts[SS_ABORT_STOLEN]},
        {"aborts: reordered", engines->aborts[SS_ABORT_REORDERED]},
        {"aborts: fault", engines->aborts[SS_ABORT_FAULT]},
        {"aborts: timer", engines->aborts[SS_ABORT_TIMER]},
        {"aborts: shadow", engines->aborts[SS_ABORT_SHADOW]},
        {"parks", engines->parks},
        {"turns taken from outside", totals.turns_taken},
        {"keys looked at without the turn", totals.keys_seen},
        {"looks ahead", atomic_load(&sightings.looks_ahead)},
        {"yields in place", atomic_load(&sightings.yields)},
        {"speculative runs that stopped between two events", atomic_load(&sightings.stops)},
        {"kills in place", atomic_load(&sightings.plain_kills)},
        {"undo logs grown", atomic_load(&sightings.undo_grown)},
        {"outputs grown", atomic_load(&sightings.output_grown)},
        {"ranges stored as one entry", atomic_load(&sightings.ranges_stored)},
        {"events that an interpreter left", atomic_load(&sightings.interpreted_left)},
    };
    bool complete = true;
    printf("seed %" PRIu64 ", %.1f s\n", options.seed, elapsed());
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        printf("%12" PRIu64 "  %s\n", figures[i].count, figures[i].name);
        complete = complete && figures[i].count > 0;
    }
    return complete;
}

static uint64_t number_of(const char *name, const char *text)
{
    char *end = NULL;
    uint64_t number = text == NULL ? 0 : strtoull(text, &end, 0);
    if (text == NULL || end == text || *end != '\0') {
        fprintf(stderr, "stress: %s wants a number\n", name);
        exit(2);
    }
    return number;
}

static void parse(int count, char **arguments)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    options.seed = mix((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) >> 32;
    for (int i = 1; i < count; i += 2) {
        const char *name = arguments[i];
        uint64_t number = number_of(name, arguments[i + 1]);
        if (strcmp(name, "--seed") == 0)
            options.seed = number;
        else if (strcmp(name, "--world") == 0)
            options.world = (int64_t)number;
        else if (strcmp(name, "--seconds") == 0)
            options.seconds = (int64_t)number;
        else if (strcmp(name, "--threads") == 0 && number > 0)
            options.threads = number;
        else if (strcmp(name, "--patience") == 0)
            options.patience = (int64_t)number;
        else {
            fprintf(stderr, "stress: what is %s %" PRIu64 "?\n", name, number);
            exit(2);
        }
    }
}

int main(int count, char **arguments)
{
    parse(count, arguments);
    printf("stress --seed %" PRIu64 " --seconds %" PRId64 " --threads %" PRIu64 "\n", options.seed,
           options.seconds, options.threads);
    fflush(stdout);
    started_at = reported_at = ss_now();
    patience_start(options.patience);
    for (uint64_t number = 0; !time_is_up(); number++)
        run_world(options.world >= 0 ? (uint64_t)options.world : number);
    patience_stop();
    bool complete = summarize();
    /* One thread alone never meets a mixture, and one world is one set of limits. */
    bool whole_test = options.seconds >= long_enough_seconds && options.threads > 1 &&
                      options.world < 0;
    if (whole_test && !complete) {
        fputs("FAILED: something that this test is there for never happened\n", stderr);
        return 1;
    }
    puts("passed");
    return 0;
}
