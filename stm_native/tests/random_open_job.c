#include "random_open_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "patience.h"
#include "specstream.h"
#include "specstream_containers.h"

enum { SOURCES = 4 };

/* One event, wherever it stands: in the order of its source, of arrival, or of keys. */
struct arrival {
    int64_t timestamp;
    int64_t source;
    int64_t sequence;
    int64_t row; /* in the order of arrival */
};

/* A segment and what it points to. */
struct package {
    struct ss_segment segment;
    void *columns[COLUMNS];
};

/* What was told of early results, and what a sequential run from scratch begins with. */
struct early_check {
    bool is_on;
    struct model model;
    uint64_t *state; /* when the job began */
    struct contents contents;
    uint64_t told; /* the sum of what was told of rows that are not final: in no order */
    uint64_t final; /* likewise of those that are */
};

struct plan {
    struct arrival *events; /* by arrival, then by key */
    int64_t count;
    int64_t *places;     /* by row, in `events` once these are in the order of keys */
    int64_t *timestamps; /* by row */
    struct package *packages; /* in the order of arrival */
    uint64_t package_count;
    int64_t reached; /* the farthest frontier so far that was not the end */
    bool has_ended;
    bool ending_is_over; /* all that fires at the end has fired */
    struct early_check early;
};

static void *allocate(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    if (memory == NULL)
        fail("out of memory");
    return memory;
}

static int by_key(const void *left, const void *right)
{
    const struct arrival *a = left, *b = right;
    if (a->timestamp != b->timestamp)
        return a->timestamp < b->timestamp ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* Pieces of the sources, in the order in which they come: each source's nearly sorted by time, with
 * gaps, ties, and pieces that overtake their predecessors. */
static void draw_plan(struct plan *plan, const struct open_batch *open, struct dice *dice)
{
    int64_t clock[SOURCES] = {open->time, open->time, open->time, open->time};
    int64_t sequence[SOURCES] = {0};
    uint64_t sources = 1 + below(dice, SOURCES);
    uint64_t longest = 1 + spread(dice, 64);
    int64_t at = 0;
    plan->count = open->count;
    plan->events = allocate(plan->count, sizeof *plan->events);
    plan->places = allocate(plan->count, sizeof *plan->places);
    plan->timestamps = allocate(plan->count, sizeof *plan->timestamps);
    plan->packages = allocate(plan->count, sizeof *plan->packages);
    while (at < plan->count) {
        uint64_t source = below(dice, sources);
        int64_t length = 1 + (int64_t)below(dice, longest);
        int64_t back = chance(dice, 4) ? (int64_t)below(dice, 40) : 0;
        int64_t time = clock[source] - open->time > back ? clock[source] - back : open->time;
        if (length > plan->count - at)
            length = plan->count - at;
        struct package *package = &plan->packages[plan->package_count++];
        package->segment = (struct ss_segment){.first = at,
                                               .last = at + length,
                                               .source = (int64_t)source,
                                               .first_sequence = sequence[source] - at};
        for (int64_t i = 0; i < length; i++, at++) {
            time += chance(dice, 3) ? 0 : (int64_t)below(dice, 5);
            plan->events[at] = (struct arrival){time, (int64_t)source, sequence[source]++, at};
            plan->timestamps[at] = time;
        }
        if (time > clock[source])
            clock[source] = time;
    }
    for (uint64_t i = 0; i < plan->package_count; i++) {
        struct package *package = &plan->packages[i];
        package->columns[COLUMN_TIMESTAMP] = plan->timestamps;
        package->columns[COLUMN_SEED] = (void *)open->seeds;
        package->columns[COLUMN_TEMPER] = (void *)open->tempers;
        package->columns[COLUMN_SHAPE] = (void *)open->shape;
        for (int at = 0; at < 3; at++)
            package->columns[COLUMN_KEY + at] = (void *)open->keys[at];
        package->segment.columns = package->columns;
    }
    /* Of the events by arrival only what is in columns is needed from here on. */
    qsort(plan->events, (size_t)plan->count, sizeof *plan->events, by_key);
    for (int64_t i = 0; i < plan->count; i++)
        plan->places[plan->events[i].row] = i;
}

static void free_plan(struct plan *plan)
{
    free(plan->events);
    free(plan->places);
    free(plan->timestamps);
    free(plan->packages);
}

/* The farthest frontier that the packages from `from` on allow. */
static struct ss_frontier frontier_before(const struct plan *plan, uint64_t from)
{
    struct ss_frontier least = {INT64_MAX, INT64_MAX};
    for (uint64_t i = from; i < plan->package_count; i++) {
        const struct ss_segment *segment = &plan->packages[i].segment;
        struct ss_frontier first = {plan->timestamps[segment->first], segment->source};
        if (first.timestamp < least.timestamp ||
            (first.timestamp == least.timestamp && first.source < least.source))
            least = first;
    }
    return least;
}

/* All that is due has fired, if the job has settled; else what the job says. */
static void compare_timers(struct open_batch *open, struct plan *plan, int64_t done,
                           const struct ss_outcome *outcome, bool settled)
{
    struct model *model = open->model;
    const struct shape *shape = open->shape;
    bool is_over = done == plan->count;
    int64_t times[2] = {
        is_over ? plan->reached : model_time(model, plan->events[done].timestamp), INT64_MAX};
    bool all = settled && is_over;
    bool ends = is_over && plan->has_ended && !plan->ending_is_over;
    bool failed = false;
    /* What is due before the end once that has begun was set by then, and stays. */
    bool began = plan->has_ended && (plan->ending_is_over || model->contents.ends != 0);
    for (int i = is_over && began; i < (ends ? 2 : 1) && !failed; i++)
        if (all || outcome->timer_failed)
            failed = !model_fire(model, shape, times[i]);
        else
            model_follow(model, shape, times[i], open->engine, open->state, outcome);
    plan->ending_is_over = plan->ending_is_over || (all && ends);
    if (failed != outcome->timer_failed)
        fail("a timer raised, but not in the sequential run, or the other way round");
    if (failed && outcome->failed_timer.number != (int64_t)model->contents.fired - 1)
        fail("timer %" PRId64 " raised, in the sequential run another one",
             outcome->failed_timer.number);
}

/* With the turn: brings the sequential run to where the job is, and compares. */
static void compare(struct open_batch *open, struct plan *plan, int64_t *done, int64_t *applied,
                    const struct ss_outcome *outcome, bool settled)
{
    struct model *model = open->model;
    const struct shape *shape = open->shape;
    void *const *columns = plan->packages[0].columns;
    bool event_failed = outcome->failed && !outcome->timer_failed;
    model_clear_rows(model);
    for (;;) {
        if (*applied == outcome->consumed && !event_failed)
            break;
        if (*done == plan->count)
            fail("%" PRId64 " events applied, more than there are", outcome->consumed);
        const struct arrival *event = &plan->events[*done];
        if (!model_fire_before(model, shape, event->timestamp))
            fail("event %" PRId64 " was applied, but a timer before it raises", event->row);
        bool raised = !model_event(model, columns, event->row, event->sequence);
        if (model->astray)
            fail("the sequential run met a mixture: a fault of the test itself");
        if (raised && (*applied != outcome->consumed || !event_failed))
            fail("event %" PRId64 " was applied, but raises in the sequential run", event->row);
        if (*applied == outcome->consumed) {
            if (!raised || outcome->failed_row != event->row)
                fail("event %" PRId64 " raised, but not in the sequential run",
                     outcome->failed_row);
            ++*done;
            break;
        }
        ++*done;
        ++*applied;
        model_pass(model, shape, event->timestamp);
    }
    if (!event_failed)
        compare_timers(open, plan, *done, outcome, settled);
    uint64_t words = open->shape->words + open->shape->boosted_words;
    if (memcmp(model->state, open->state, words * sizeof(uint64_t)) != 0)
        fail("after %" PRId64 " events out of order the state differs", outcome->consumed);
    if (open->shape->containers.words > 0)
        contents_compare(&open->shape->containers, open->engine, open->state, &model->contents);
    if (outcome->row_count * open->emit_words != model->row_words ||
        (model->row_words > 0 &&
         memcmp(model->rows, outcome->rows, model->row_words * sizeof(uint64_t)) != 0))
        fail("after %" PRId64 " events out of order the rows differ", outcome->consumed);
    if (outcome->firing_count != model->firing_count)
        fail("%" PRIu64 " timers have emitted rows, and %" PRIu64 " in the sequential run",
             outcome->firing_count, model->firing_count);
    open->rows += outcome->row_count;
}

/* ---- early results ---- */

static void early_check_open(struct early_check *check, const struct open_batch *open)
{
    uint64_t words = open->shape->words + open->shape->boosted_words;
    check->is_on = true;
    check->state = allocate((int64_t)words, sizeof *check->state);
    memcpy(check->state, open->model->state, words * sizeof *check->state);
    check->contents = open->model->contents;
    if (!model_open(&check->model, open->shape, check->state))
        fail("out of memory");
}

static void early_check_close(struct early_check *check)
{
    if (!check->is_on)
        return;
    model_close(&check->model);
    free(check->state);
}

/* Each row is told behind the key of its event or timer and its place among the rows of that. */
static void check_keys(const struct plan *plan, const uint64_t *rows, uint64_t count, uint64_t width)
{
    const uint64_t *before = NULL;
    for (const uint64_t *row = rows; row < rows + count * (SS_KEY_WORDS + width);
         before = row, row += SS_KEY_WORDS + width) {
        int64_t whose = (int64_t)row[SS_KEY_WORDS];
        struct arrival key = {(int64_t)row[0], 0, whose ^ INT64_MIN, whose};
        if (whose >= 0)
            key = plan->events[plan->places[whose]];
        if ((int64_t)row[0] != key.timestamp || (int64_t)row[1] != key.source ||
            (int64_t)row[2] != key.sequence)
            fail("a row of event %" PRId64 " was told with the key of another one", whose);
        bool follows = before != NULL && before[SS_KEY_WORDS] == row[SS_KEY_WORDS];
        if (row[3] != (follows ? before[3] + 1 : 0))
            fail("a row of event %" PRId64 " was told as its row %" PRIu64, whose, row[3]);
    }
}

/* The sum over rows of a number for each, behind so many words of a key. */
static uint64_t sum_of(const uint64_t *rows, uint64_t count, uint64_t key_words, uint64_t width)
{
    uint64_t sum = 0;
    for (uint64_t at = 0; at < count; at++) {
        const uint64_t *row = rows + at * (key_words + width) + key_words;
        uint64_t mixed = mix(row[0]);
        for (uint64_t i = 1; i < width; i++)
            mixed = mix(mixed ^ row[i]) + i;
        sum += mixed;
    }
    return sum;
}

/* How many timers have fired in an image. */
static uint64_t fired_in(const struct open_batch *open, const uint64_t *image)
{
    const struct container_shape *containers = &open->shape->containers;
    return containers->has_timers ? image[containers->of[TIMERS].header + SS_HEADER_FIRED] : 0;
}

static bool is_up_to(const struct arrival *event, struct ss_key key)
{
    const struct arrival last = {
        .timestamp = key.timestamp, .source = key.source, .sequence = key.sequence};
    return by_key(event, &last) <= 0;
}

/* With the turn: what was told is the sequential run, from scratch, of all events so far up to the last
 * one that is applied. The first `rows` of them have come. */
static void check_early(struct open_batch *open, struct plan *plan, int64_t rows, bool compares)
{
    struct early_check *check = &plan->early;
    const struct ss_early_told told = ss_engine_tell_early(open->engine);
    uint64_t width = open->emit_words;
    check_keys(plan, told.voids, told.void_count, width);
    check_keys(plan, told.kept, told.kept_count, width);
    check_keys(plan, told.finals, told.final_count, width);
    check_keys(plan, told.news, told.news_count, width);
    uint64_t kept = sum_of(told.kept, told.kept_count, SS_KEY_WORDS, width);
    check->told += sum_of(told.news, told.news_count, SS_KEY_WORDS, width) - kept -
                   sum_of(told.voids, told.void_count, SS_KEY_WORDS, width);
    check->final += sum_of(told.finals, told.final_count, SS_KEY_WORDS, width) + kept;
    ss_engine_told_early(open->engine, told.is_whole);
    if (!told.is_whole || !told.has_applied || !compares)
        return;
    /* Those that fire at the end have an order of their own. */
    if (plan->has_ended && ss_engine_early_figures(open->engine).transactions == 0) {
        if (check->told != 0)
            fail("everything is final, but not all that was told");
        if (open->shape->containers.goes_by_time)
            return;
    }
    struct model *model = &check->model;
    void *const *columns = plan->packages[0].columns;
    uint64_t words = open->shape->words + open->shape->boosted_words;
    uint64_t final_rows = 0, final_fired = fired_in(open, open->state);
    memcpy(model->state, check->state, words * sizeof *model->state);
    model->contents = check->contents;
    model_clear_rows(model);
    for (int64_t i = 0; i < plan->count && is_up_to(&plan->events[i], told.applied_to); i++) {
        const struct arrival *event = &plan->events[i];
        if (event->row >= rows)
            continue;
        while (!model_fire_before(model, open->shape, event->timestamp))
            continue;
        if (model_event(model, columns, event->row, event->sequence))
            model_pass(model, open->shape, event->timestamp);
        if (told.has_final && is_up_to(event, told.final_to))
            final_rows = model->row_words / width;
    }
    model_fire_to(model, open->shape, fired_in(open, open->engine->state));
    while (final_rows < model->row_words / width && (int64_t)model->rows[final_rows * width] < 0 &&
           (model->rows[final_rows * width] ^ (uint64_t)INT64_MIN) < final_fired)
        final_rows++;
    if (sum_of(model->rows, final_rows, 0, width) != check->final)
        fail("the rows that were told as final are not those of the sequential run");
    if (sum_of(model->rows + final_rows * width, model->row_words / width - final_rows, 0,
               width) != check->told)
        fail("the early rows that were told are not those of the sequential run from scratch");
    open->early_checks++;
}

/* True: the job has settled. */
static bool look(struct open_batch *open, struct plan *plan, int64_t *done, int64_t *applied,
                 int64_t came, bool early)
{
    ss_engine_take_turn(open->engine);
    struct ss_outcome outcome = ss_engine_outcome(open->engine);
    bool settled = ss_engine_is_settled(open->engine) && !outcome.failed;
    compare(open, plan, done, applied, &outcome, settled);
    if (plan->early.is_on)
        check_early(open, plan, came, early);
    ss_engine_clear_rows(open->engine);
    ss_engine_release_turn(open->engine);
    if (outcome.failed) {
        open->failures += !outcome.timer_failed;
        open->failed_timers += outcome.timer_failed;
        ss_engine_resume(open->engine, outcome.failed_row);
    }
    return settled;
}

/* The end is told once: timers that fire at it may set others. */
static void advance(struct open_batch *open, struct plan *plan, struct ss_frontier frontier)
{
    if (plan->has_ended)
        return;
    plan->has_ended = frontier.timestamp == INT64_MAX;
    if (!plan->has_ended && frontier.timestamp > plan->reached)
        plan->reached = frontier.timestamp;
    ss_engine_advance(open->engine, frontier);
}

struct ss_outcome run_open_batch(struct open_batch *open, const struct ss_job *job)
{
    struct dice dice = open->dice;
    struct plan plan = {0};
    struct ss_engine *engine = open->engine;
    draw_plan(&plan, open, &dice);
    plan.reached = INT64_MIN;
    /* It goes on with an end that has begun, or knows nothing of that. */
    uint64_t ending = plan.count == 0 && chance(&dice, 2) ? ss_engine_outcome(engine).ending : 0;
    if (ending == 0)
        open->model->contents.ends = 0;
    for (int64_t i = 0; i < plan.count; i++)
        open->time = plan.timestamps[i] > open->time ? plan.timestamps[i] : open->time;
    bool abandon = chance(&dice, 16);
    uint64_t eagerness = 1 + below(&dice, 8);
    int64_t done = 0, applied = 0;
    uint64_t came = 0;

    if (!ss_engine_start(engine, job))
        fail("the engine did not start the job");
    if (ending != 0)
        ss_engine_go_on_ending(engine, ending);
    if (job->early_bytes != 0) {
        early_check_open(&plan.early, open);
        ss_engine_take_turn(engine);
        check_early(open, &plan, 0, false); /* from now on it is kept */
        ss_engine_release_turn(engine);
    }
    /* Each of these runs everything anew. */
    uint64_t seldom = 1 + (uint64_t)plan.count / 64;
    int64_t rows = 0;
    while (came < plan.package_count) {
        if (!ss_engine_submit(engine, &plan.packages[came].segment))
            fail("out of memory");
        rows = plan.packages[came++].segment.last;
        if (chance(&dice, eagerness))
            advance(open, &plan, frontier_before(&plan, came));
        if (chance(&dice, 8))
            ss_engine_await(engine, (int64_t)below(&dice, 3) * 1000000);
        if (chance(&dice, 8))
            look(open, &plan, &done, &applied, rows, chance(&dice, seldom));
        if (abandon && chance(&dice, 16))
            break;
    }
    if (!abandon) {
        /* Sometimes events might still come, but none before what has. */
        struct ss_frontier last = {open->time + (int64_t)spread(&dice, 50), INT64_MAX};
        if (ending == 0 && chance(&dice, 2))
            advance(open, &plan, last);
        if (ending != 0 || chance(&dice, 2))
            advance(open, &plan, frontier_before(&plan, came));
        else if (!plan.has_ended)
            advance(open, &plan, last);
        do
            ss_engine_await(engine, 50000000);
        while (!look(open, &plan, &done, &applied, rows, false) || done < plan.count);
        look(open, &plan, &done, &applied, rows, plan.count < 1000);
        for (uint64_t i = 0; i < plan.package_count; i++)
            if (plan.packages[i].segment.left != 0)
                fail("all events are applied, but segment %" PRIu64 " has %" PRId64 " left", i,
                     plan.packages[i].segment.left);
    }
    ss_engine_stop(engine);
    while (!ss_engine_wait(engine, 50))
        continue;
    struct ss_outcome outcome = ss_engine_outcome(engine);
    compare(open, &plan, &done, &applied, &outcome, !abandon);
    early_check_close(&plan.early);
    free_plan(&plan);
    return outcome;
}
