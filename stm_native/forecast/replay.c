/* See replay.h.
 *
 * An event does what it was recorded to do, whatever it reads meanwhile: a run that has read too early
 * goes the same way, and ends by the protocol. Its time is the one that was recorded, with the
 * accesses in it; what is added is waiting for lines that other cores have written.
 *
 * This file is not compiled for the machine: what it does is the operator's part, whose time is known.
 * Only accesses to the state go through the machine, by themselves or by the runtime. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "entries.h"
#include "machine.h"
#include "processor/fault.h"
#include "specstream.h"

enum { UNSIGNED_ADD = SS_FIRST_DELTA + 3 * SS_ADD + SS_UNSIGNED };

static const struct replay_load *load;
static const struct replay_event *events; /* of the job */

_Static_assert(sizeof(struct ss_region) == 2 * sizeof(uint64_t), "see replay.h");

/* The interpreter's lock. Whoever runs a range of events holds it, but for a stretch in the middle of each,
 * as where an event calls what does not need it. */
static _Alignas(64) pthread_mutex_t interpreter;

/* How far an event is, by what its core has been at work. */
struct course {
    int64_t began;
    int64_t release, take; /* when the lock is; INT64_MAX: not (any more) */
    bool holds;
};

static void take_lock(struct course *course)
{
    if (load->held == 0)
        return;
    int64_t before = machine_busy();
    pthread_mutex_lock(&interpreter);
    course->began += machine_busy() - before; /* going to sleep for it is no work of the event */
    course->holds = true;
}

static void release_lock(struct course *course)
{
    if (course->holds)
        pthread_mutex_unlock(&interpreter);
    course->holds = false;
}

static void begin_event(struct course *course, int64_t time)
{
    course->began = machine_busy();
    course->release = course->take = INT64_MAX;
    if (load->held > 0 && load->held < 1000) {
        course->release = time / 2 * load->held / 1000;
        course->take = time - course->release;
    }
}

/* Until the event has taken so much. */
static void work_until(struct course *course, int64_t at)
{
    if (at > course->release) {
        machine_work_until(course->began + course->release);
        release_lock(course);
        course->release = INT64_MAX;
    }
    if (at >= course->take) {
        machine_work_until(course->began + course->take);
        take_lock(course);
        course->take = INT64_MAX;
    }
    machine_work_until(course->began + at);
}

static bool store_undo(struct ss_run *run, uint64_t *word)
{
    if (run->undo_top == run->undo_end && !ss_undo_grow(run))
        return false;
    *run->undo_top++ = (struct ss_undo){.address = word, .value = *word};
    return true;
}

/* Directly. The accesses of others to a narrow element's word are to all of it. */
static bool in_place(struct ss_run *run, const struct replay_access *access)
{
    uint64_t *word = run->state + access->byte / 8;
    machine_touch(word, access->kind != REPLAY_LOAD);
    if (access->kind == REPLAY_LOAD)
        return true;
    if (!store_undo(run, word))
        return false;
    if (access->kind == REPLAY_ADD)
        *word += access->value;
    else
        memcpy((char *)run->state + access->byte, &access->value, access->size);
    return true;
}

static bool by_value(struct ss_run *run, const struct replay_access *access)
{
    uint64_t word = access->byte / 8;
    if (access->kind == REPLAY_ADD)
        ss_delta(run, access->byte, 8, UNSIGNED_ADD, access->value);
    else if (access->kind == REPLAY_STORE && access->size == 8)
        ss_store(run, word, access->value);
    else if (access->kind == REPLAY_STORE)
        ss_store_bytes(run, access->byte, access->size, access->value);
    else if (access->size == 8)
        ss_load(run, word);
    else
        ss_load_bytes(run, access->byte, access->size);
    return run->verdict == SS_COMPLETED;
}

static bool eagerly(struct ss_run *run, const struct replay_access *access)
{
    uint64_t word = access->byte / 8;
    if (access->kind == REPLAY_ADD)
        ss_eager_delta(run, access->byte, 8, UNSIGNED_ADD, access->value);
    else if (access->kind == REPLAY_STORE && access->size == 8)
        ss_eager_store(run, word, access->value);
    else if (access->kind == REPLAY_STORE)
        ss_eager_store_bytes(run, access->byte, access->size, access->value);
    else if (access->size == 8)
        ss_eager_load(run, word);
    else
        ss_eager_load_bytes(run, access->byte, access->size);
    return run->verdict == SS_COMPLETED;
}

static bool emit(struct ss_run *run, int64_t words)
{
    for (int64_t i = 0; i < words; i++) {
        if (run->emit_top == run->emit_end && !ss_emit_grow(run))
            return false;
        machine_touch(run->emit_top, true);
        *run->emit_top++ = 0;
    }
    return true;
}

static bool process(struct ss_run *run, int64_t row, enum ss_variant variant, struct course *course)
{
    const struct replay_event *event = &events[row];
    int64_t time = 1000 * (variant == SS_PLAIN ? event->plain : event->speculative);
    int64_t parts = event->last - event->first + 1;
    begin_event(course, time);
    for (int64_t part = 1; part < parts; part++) {
        const struct replay_access *access = &load->accesses[event->first + part - 1];
        work_until(course, time * part / parts);
        if (!(variant == SS_PLAIN           ? in_place(run, access)
              : variant == SS_TRANSACTIONAL ? by_value(run, access)
                                            : eagerly(run, access)))
            return false;
        if (variant != SS_PLAIN && __atomic_load_n(&run->kill, __ATOMIC_RELAXED) != 0 && ss_poll(run))
            return false;
    }
    if (!emit(run, event->row_words))
        return false;
    work_until(course, time);
    if (variant != SS_PLAIN && event->is_dropped)
        run->verdict = SS_LOG_FULL;
    return run->verdict == SS_COMPLETED;
}

static int32_t run_range(int64_t *next, struct ss_run *run, int64_t first, int64_t last,
                         enum ss_variant variant)
{
    int64_t row = first;
    struct course course = {0};
    take_lock(&course);
    for (; row < last; row++) {
        run->event = row;
        run->emit_mark = run->emit_top;
        if (variant == SS_PLAIN)
            run->undo_top = run->undo_base;
        if (!process(run, row, variant, &course))
            break;
        if (variant != SS_EAGER && __atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0) {
            row++;
            break;
        }
    }
    release_lock(&course);
    *next = row;
    return 0;
}

ENTRY(plain_entry, SS_PLAIN)
ENTRY(transactional_entry, SS_TRANSACTIONAL)
ENTRY(eager_entry, SS_EAGER)

/* Runs events [first, first + count). False: out of memory. */
static bool run_events(struct ss_engine *engine, int64_t first, int64_t count)
{
    events = load->events + first;
    struct ss_job job = {.count = count,
                         .chunk = load->chunk,
                         .horizon = load->horizon,
                         .mode = load->is_forced ? SS_MODE_SPECULATE : SS_MODE_ORDERED};
    bool starts = ss_engine_start(engine, &job);
    while (starts && !ss_engine_wait(engine, 50))
        continue;
    return starts && ss_engine_outcome(engine).consumed == count;
}

/* With these the machine would stand still, or leave its arrays; 0: it will not. */
static int64_t refusal(const struct replay_load *what, int64_t *bad_event)
{
    bool has_costs = true;
    for (size_t i = 0; i < sizeof(struct costs) / sizeof(int64_t); i++)
        has_costs = has_costs && what->costs[i] >= 0;
    if (what->threads < 1 || what->threads >= MACHINE_CORES || what->horizon < 0 ||
        what->chunk < 1 || what->warm < 0 || what->warm > what->count || !has_costs)
        return REPLAY_BAD_SETTING;
    for (*bad_event = 0; *bad_event < what->count; ++*bad_event) {
        const struct replay_event *event = &what->events[*bad_event];
        if (event->plain < 0 || event->speculative < 0 || event->row_words < 0 ||
            event->first < 0 || event->last < event->first)
            return REPLAY_BAD_EVENT;
    }
    return 0;
}

static void measure(void *into)
{
    struct replay_result *result = into;
    const struct replay_load *own = load;
    uint64_t *state = calloc(own->state_words + 1, sizeof *state);
    if (state == NULL)
        return;
    for (int64_t i = 0; i < own->word_count; i++)
        state[own->words[i]] = own->before[i];
    struct ss_config config = {.state = state,
                               .state_words = own->state_words,
                               .emit_words = 1,
                               .threads = (uint64_t)own->threads,
                               .locks = 1,
                               .read_limit = own->read_limit,
                               .redo_limit = own->redo_limit,
                               .emit_limit = own->row_limit,
                               .protocol = own->is_eager ? SS_PROTOCOL_EAGER : SS_PROTOCOL_VALUE,
                               .regions = (const struct ss_region *)own->regions,
                               .region_count = own->region_count};
    struct ss_engine *engine = ss_engine_new(&config);
    if (engine == NULL)
        return;
    ss_engine_set_entry(engine, SS_PLAIN, plain_entry);
    ss_engine_set_entry(engine, SS_TRANSACTIONAL, transactional_entry);
    ss_engine_set_entry(engine, SS_EAGER, eager_entry);
    bool runs = own->warm == 0 || run_events(engine, 0, own->warm);
    struct ss_statistics before = ss_engine_statistics(engine);
    int64_t began = machine_now();
    runs = runs && run_events(engine, own->warm, own->count - own->warm);
    if (runs)
        result->nanoseconds = machine_now() - began;
    struct ss_statistics counted = ss_engine_statistics(engine);
    result->speculative_runs = counted.speculative_runs - before.speculative_runs;
    for (int reason = 0; reason < SS_ABORT_REASONS; reason++)
        result->dropped += counted.aborts[reason] - before.aborts[reason];
    result->parks = counted.parks - before.parks;
    for (int64_t i = 0; i < own->word_count; i++)
        result->wrong += state[own->words[i]] != own->behind[i];
    ss_engine_free(engine);
}

struct replay_result replay_run(const struct replay_load *what)
{
    struct replay_result result = {0};
    struct costs costs;
    result.nanoseconds = refusal(what, &result.bad_event);
    if (result.nanoseconds < 0)
        return result;
    result.nanoseconds = REPLAY_NO_MEMORY;
    memcpy(&costs, what->costs, sizeof costs);
    load = what;
    interpreter = (pthread_mutex_t){0};
    ss_fault_open(); /* what a process does once, before the machine's clock counts */
    if (machine_run(&costs, measure, &result) != 0)
        result.nanoseconds = REPLAY_NO_MEMORY;
    result.transfers = machine_transfers();
    result.accesses = machine_accesses();
    return result;
}
