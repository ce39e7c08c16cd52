/* Memory that runs out costs an event, and nobody else anything.
 *
 * Everything that the runtime asks of the allocator and of the system fails in turn: the first request,
 * the second, and so on to the last, once, or from there on for a while. An engine that cannot be made
 * or a job that cannot start says so. A run in place whose undo log, output or buffer cannot grow
 * fails by the name of its event, which leaves no trace, and all others are applied: the state and the
 * rows are those of the sequential run without the events that failed.
 *
 * With early results events run as they come, and late ones take back others meanwhile. Where there is no
 * memory for a transaction, its log or its rows, the job says so and goes on when somebody has heard of
 * it; what was told of events that are not final adds up in the end, or the job says that it does not. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/state_words.h"
#include "entries.h"
#include "local/arena.h"
#include "patience.h"
#include "protocols/locks.h"
#include "specstream.h"
#include "specstream_containers.h"
#include "specstream_local.h"

enum { WORDS = 700, BOOSTED = WORDS, ALL = WORDS + 1, EVENTS = 48, CHUNK = 3, THREADS = 2 };
/* Of which some write more than fits into the first undo log, emit more than into the first output,
 * and use a buffer. */
enum { LARGE = 17, ROWS = 400, EMITTED = 2 };

/* A dict behind the other words: large events insert more than its first index holds. */
enum {
    KEYS = 150,
    LIMIT = KEYS * (EVENTS / LARGE + 1),
    ROOM = 2 * LIMIT,
    HEADER = ALL,
    REGION = HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    REGION_END = REGION + 3 * ROOM
};
/* Where events go by time: timers that large events set, and a dict whose entries expire. Both need
 * more than the first room for what is due. */
enum {
    TIMERS = 1,
    EXPIRING = 2,
    DUE = 100,
    EXPIRES = 5,
    SUM = REGION_END, /* what timers add 1 to */
    TIMERS_HEADER = SUM + 1,
    TIMERS_REGION = TIMERS_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    EXPIRING_HEADER = TIMERS_REGION + 3 * ROOM,
    EXPIRING_REGION = EXPIRING_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    EVERYTHING = EXPIRING_REGION + 3 * ROOM
};
static const struct ss_container containers[] = {
    {SS_KEYED, HEADER, REGION, ROOM, LIMIT, 1, 3, 0, 0},
    {SS_KEYED, TIMERS_HEADER, TIMERS_REGION, ROOM, LIMIT, 1, 3, 0, 1},
    {SS_KEYED, EXPIRING_HEADER, EXPIRING_REGION, ROOM, LIMIT, 1, 3, EXPIRES, 0},
};
static bool goes_by_time;
static bool is_boosted = true;
static bool is_early; /* the open job has early results */
static uint64_t lost_timers; /* for what they did there was no memory */

static uint64_t state[EVERYTHING];
static uint64_t seeds[EVENTS];
static uint64_t keys[EVENTS]; /* that each event looks up ahead */
static int64_t times[EVENTS];
static uint64_t model[ALL];
static bool has_failed[EVENTS];
static uint64_t failures; /* jobs that had no memory for an event */
static uint64_t case_number;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("request %" PRIu64 " of %s: line %d: %s", case_number, scenario, __LINE__,        \
                 #condition);                                                                      \
    } while (0)
static const char *scenario;

/* ---- the allocator ---- */

static _Atomic uint64_t asked;  /* requests so far */
static uint64_t refused_from;   /* [from, to) are refused; they are counted from 1 on */
static uint64_t refused_to;
static _Atomic uint64_t refused;
static bool counts;

static bool is_refused(void)
{
    if (!counts)
        return false;
    uint64_t number = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) + 1;
    if (number < refused_from || number >= refused_to)
        return false;
    atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
    return true;
}

/* The linker puts these in the place of what the runtime calls: see the Makefile. */
#define WRAP(result, name, parameters, arguments)                                                  \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        return is_refused() ? FAILURE : __real_##name arguments;                                   \
    }
#define FAILURE NULL
WRAP(void *, malloc, (size_t bytes), (bytes))
WRAP(void *, calloc, (size_t count, size_t size), (count, size))
WRAP(void *, realloc, (void *memory, size_t bytes), (memory, bytes))
WRAP(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))
#undef FAILURE
#define FAILURE MAP_FAILED
WRAP(void *, mmap, (void *at, size_t bytes, int protection, int flags, int file, off_t offset),
     (at, bytes, protection, flags, file, offset))
#undef FAILURE
#define FAILURE 12 /* ENOMEM */
WRAP(int, posix_memalign, (void **memory, size_t alignment, size_t bytes),
     (memory, alignment, bytes))
WRAP(int, pthread_create,
     (pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument),
     (thread, attributes, body, argument))
#undef FAILURE
#undef WRAP

/* ---- the operator ---- */

static bool is_large(uint64_t seed)
{
    return seed % LARGE == 0;
}

static bool is_left(struct ss_run *run)
{
    return run->verdict != SS_COMPLETED;
}

static bool store(struct ss_run *run, enum ss_variant variant, uint64_t word, uint64_t value)
{
    if (variant == SS_EAGER)
        ss_eager_store(run, word, value);
    else if (variant == SS_LOG_FREE || variant == SS_LOCKED)
        ss_word_write(&run->state[word], value);
    else
        ss_store(run, word, value);
    return !is_left(run);
}

static uint64_t load(struct ss_run *run, enum ss_variant variant, uint64_t word)
{
    return variant == SS_EAGER ? ss_eager_load(run, word) : ss_load(run, word);
}

static bool count(struct ss_run *run, enum ss_variant variant, uint64_t seed)
{
    const uint64_t operands[SS_OPERANDS] = {0, seed};
    if (!is_boosted)
        store(run, variant, BOOSTED, load(run, variant, BOOSTED) + seed);
    else if (run->speculative)
        ss_boost(run, 0, operands);
    else if (store(run, variant, BOOSTED, ss_load(run, BOOSTED) + seed) && run->boosting)
        ss_boost_follow(run, 0, operands, 0);
    return !is_left(run);
}

/* Larger than the first chunk of the arena. */
static bool make_list(struct ss_run *run, uint64_t seed)
{
    struct ss_list *list = ss_list_new(run, SS_KIND_UINT, 0);
    for (uint64_t i = 0; list != NULL && i < 3 * WORDS; i++) {
        uint64_t *gap = ss_list_gap(list, SS_KIND_UINT, i);
        if (gap == NULL)
            return false;
        *gap = seed;
    }
    return list != NULL;
}

static uint64_t key_of(uint64_t seed, uint64_t number)
{
    return seed * 1024 + number;
}

static bool insert_keys(struct ss_run *run, enum ss_variant variant, uint64_t seed)
{
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t key = key_of(seed, i);
        if (ss_keyed_find(run, 0, &key) != SS_NOWHERE || is_left(run))
            return !is_left(run);
        uint64_t entry = ss_keyed_insert(run, 0, &key);
        if (entry == SS_NOWHERE || !store(run, variant, entry + 2, seed))
            return false;
    }
    return true;
}

/* Timers fire before the next event; entries go five events later. */
static bool set_timers(struct ss_run *run, enum ss_variant variant, int64_t event)
{
    int64_t now = ((const int64_t *)run->columns[0])[event];
    uint64_t seed = ((const uint64_t *)run->columns[1])[event];
    for (uint64_t i = 0; i < DUE; i++) {
        uint64_t key = key_of(seed, i);
        if (ss_timer_set(run, TIMERS, &key, now) != SS_TIMER_IS_SET || is_left(run))
            return false;
        uint64_t entry = ss_keyed_insert(run, EXPIRING, &key);
        if (entry == SS_NOWHERE || !store(run, variant, entry + 2, (uint64_t)now))
            return false;
    }
    return true;
}

static int32_t run_timer(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                         int64_t last)
{
    *fault = NULL;
    *next = first;
    run->event = first;
    run->emit_mark = run->emit_top;
    run->undo_top = run->undo_base;
    if (!store(run, SS_PLAIN, SUM, ss_load(run, SUM) + 1))
        return 1;
    for (int row = 0; row < 8; row++) {
        if (run->emit_end - run->emit_top < EMITTED && !ss_emit_grow(run))
            return 1;
        *run->emit_top++ = 0;
        *run->emit_top++ = *(const uint64_t *)run->columns[3];
    }
    *next = last;
    return 0;
}

/* Of the outcome: the rows of timers are left out, and counted. */
static uint64_t rows_of_timers;
static struct ss_outcome without_timers(struct ss_outcome outcome)
{
    uint64_t *rows = (uint64_t *)outcome.rows;
    uint64_t kept = 0;
    for (uint64_t row = 0; row < outcome.row_count; row++) {
        if ((int64_t)rows[row * EMITTED] < 0)
            continue;
        memmove(&rows[kept++ * EMITTED], &rows[row * EMITTED], EMITTED * sizeof *rows);
    }
    rows_of_timers += outcome.row_count - kept;
    outcome.row_count = kept;
    return outcome;
}

static void note_failed_timer(const struct ss_outcome *outcome)
{
    CHECK(refused > 0 && outcome->no_memory && outcome->fault.signal == 0);
    lost_timers += outcome->failed_timer.stamp != 0;
}

/* All timers of events that have not failed have fired, and what has not expired is of the last one. */
static void check_by_time(struct ss_engine *engine)
{
    uint64_t timers = 0, count = 0;
    for (int64_t event = 0; event < EVENTS; event++)
        for (uint64_t i = 0; is_large(seeds[event]) && i < DUE; i++) {
            uint64_t key = key_of(seeds[event], i);
            bool stays = !has_failed[event] && event + EXPIRES >= EVENTS;
            timers += !has_failed[event];
            count += stays;
            CHECK((ss_engine_find(engine, EXPIRING, &key) != SS_NOWHERE) == stays);
        }
    CHECK(state[EXPIRING_HEADER + SS_HEADER_COUNT] == count);
    CHECK(state[TIMERS_HEADER + SS_HEADER_COUNT] == 0);
    CHECK(state[TIMERS_HEADER + SS_HEADER_FIRED] == timers);
    CHECK(state[SUM] == timers - lost_timers);
    CHECK(rows_of_timers == 8 * (timers - lost_timers));
}

/* What the large events that have not failed have inserted. */
static void check_keys(struct ss_engine *engine)
{
    uint64_t count = 0;
    for (int64_t event = 0; event < EVENTS; event++)
        for (uint64_t i = 0; is_large(seeds[event]) && i < KEYS; i++) {
            uint64_t key = key_of(seeds[event], i);
            uint64_t entry = ss_engine_find(engine, 0, &key);
            CHECK((entry == SS_NOWHERE) == has_failed[event]);
            CHECK(entry == SS_NOWHERE || state[entry + 2] == seeds[event]);
            count += !has_failed[event];
        }
    CHECK(state[HEADER + SS_HEADER_COUNT] == count);
}

static bool process(struct ss_run *run, enum ss_variant variant, int64_t event)
{
    uint64_t seed = ((const uint64_t *)run->columns[1])[event];
    uint64_t words = is_large(seed) ? WORDS : 3;
    uint64_t rows = is_large(seed) ? ROWS : 1;
    if (variant != SS_LOCKED && event % SS_AHEAD == 0)
        ss_keyed_ahead(run, 0, 2, event, event + 1);
    if (is_large(seed) && ss_buffer(run, WORDS) == NULL)
        return false;
    if (is_large(seed) && (!make_list(run, seed) || !insert_keys(run, variant, seed)))
        return false;
    if (goes_by_time && is_large(seed) && !set_timers(run, variant, event))
        return false;
    for (uint64_t word = 0; word < words; word++) {
        uint64_t value = load(run, variant, word);
        if (is_left(run) || !store(run, variant, word, value + seed))
            return false;
    }
    if (!count(run, variant, seed))
        return false;
    for (uint64_t row = 0; row < rows; row++) {
        if (run->emit_end - run->emit_top < EMITTED && !ss_emit_grow(run))
            return false;
        *run->emit_top++ = (uint64_t)event;
        *run->emit_top++ = seed + row;
    }
    return true;
}

RUN_EACH_EVENT(process)
ENTRY(run_plain, SS_PLAIN)
ENTRY(run_transactional, SS_TRANSACTIONAL)
ENTRY(run_eager, SS_EAGER)
ENTRY(run_log_free, SS_LOG_FREE)
ENTRY(run_events_locked, SS_LOCKED)

static int32_t run_locked(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                          int64_t last)
{
    *next = first;
    if (!ss_lock(run, 0))
        return 1;
    int32_t raised = run_events_locked(next, fault, run, first, last);
    ss_unlock(run, 0);
    return raised;
}

/* On the boosted word; many stores, so that the undo log of the shadow and that of the commit grow. */
static int32_t add(struct ss_run *run, uint64_t amount, int64_t *returned)
{
    uint64_t value = ss_load(run, BOOSTED);
    for (int i = 0; i < 300 && !is_left(run); i++)
        ss_store(run, BOOSTED, value + amount);
    *returned = 0;
    run->changed = 1;
    return is_left(run);
}

static int32_t enter_add(int64_t *returned, void **fault, struct ss_run *run)
{
    *fault = NULL;
    return add(run, run->operands[1], returned);
}

static int32_t enter_subtract(int64_t *returned, void **fault, struct ss_run *run)
{
    *fault = NULL;
    return add(run, -run->operands[1], returned);
}

/* The sequential run, of events [first, last) that have not failed; checks their rows where they are
 * in order. */
static void model_events(const struct ss_outcome *outcome, int64_t first, int64_t last, bool ordered)
{
    const uint64_t *row = outcome->rows;
    for (int64_t event = first; event < last; event++) {
        if (has_failed[event])
            continue;
        for (int word = 0; word < (is_large(seeds[event]) ? WORDS : 3); word++)
            model[word] += seeds[event];
        model[BOOSTED] += seeds[event];
        for (uint64_t i = 0; i < (is_large(seeds[event]) ? ROWS : 1); i++, row += EMITTED)
            CHECK(!ordered || (row[0] == (uint64_t)event && row[1] == seeds[event] + i));
    }
    CHECK((uint64_t)(row - outcome->rows) == outcome->row_count * EMITTED);
    CHECK(memcmp(state, model, sizeof model) == 0);
}

/* ---- the cases ---- */

static struct ss_engine *open_engine(enum ss_protocol_kind protocol)
{
    struct ss_config config = {.state = state, .state_words = EVERYTHING, .scratch_words = 8,
                               .emit_words = EMITTED, .threads = THREADS, .locks = 1,
                               .read_limit = 3000, .redo_limit = 2400, .emit_limit = 3 * ROWS,
                               .element_limit = 1 << 14,
                               .protocol = protocol, .operations = is_boosted, .boosted_first = BOOSTED,
                               .boosted_end = is_boosted ? ALL : BOOSTED,
                               .containers = containers,
                               .container_count = goes_by_time ? 3 : 1,
                               .timers = goes_by_time ? 1 + TIMERS : 0};
    static const struct ss_boosted operation = {
        .entry = enter_add, .inverse = enter_subtract, .first = BOOSTED, .words = 1};
    struct ss_engine *engine = ss_engine_new(&config);
    if (engine == NULL)
        return NULL;
    if (is_boosted)
        ss_engine_set_operation(engine, 0, &operation);
    ss_engine_set_entry(engine, SS_PLAIN, run_plain);
    ss_engine_set_entry(engine, SS_TRANSACTIONAL, run_transactional);
    ss_engine_set_entry(engine, SS_EAGER, run_eager);
    ss_engine_set_entry(engine, SS_LOG_FREE, run_log_free);
    ss_engine_set_entry(engine, SS_LOCKED, run_locked);
    ss_engine_set_entry(engine, SS_TIMER, run_timer);
    return engine;
}

/* All events, job after job, each job after the event for which the last one had no memory. */
static void run_jobs(struct ss_engine *engine, int64_t horizon, enum ss_mode mode)
{
    int64_t first = 0;
    bool has_ended = !goes_by_time;
    while (first < EVENTS || !has_ended) {
        void *columns[] = {times + first, seeds + first, keys + first};
        struct ss_job job = {.columns = columns, .count = EVENTS - first, .chunk = CHUNK,
                             .horizon = horizon, .mode = mode, .ends_input = goes_by_time};
        if (!ss_engine_start(engine, &job)) {
            CHECK(refused > 0);
            continue; /* which ends when as many were refused as should be */
        }
        while (!ss_engine_wait(engine, 50))
            continue;
        struct ss_outcome outcome = without_timers(ss_engine_outcome(engine));
        bool event_failed = outcome.failed && !outcome.timer_failed;
        if (outcome.timer_failed)
            note_failed_timer(&outcome);
        for (uint64_t row = 0; row < outcome.row_count; row++)
            ((uint64_t *)outcome.rows)[row * EMITTED] += (uint64_t)first;
        CHECK(outcome.timer_failed || outcome.failed == (outcome.consumed < EVENTS - first));
        CHECK(outcome.no_memory == outcome.failed && outcome.fault.signal == 0);
        failures += outcome.failed;
        if ((mode == SS_MODE_LOG_FREE || mode == SS_MODE_LOCKED) && outcome.failed)
            return; /* the state may hold half of the event */
        model_events(&outcome, first, first + outcome.consumed, mode != SS_MODE_LOCKED);
        first += outcome.consumed;
        has_ended = !outcome.failed || !goes_by_time;
        if (event_failed) {
            CHECK(refused > 0 && outcome.failed_row == outcome.consumed);
            CHECK(is_large(seeds[first]));
            has_failed[first++] = true;
        }
    }
    check_keys(engine);
    if (goes_by_time)
        check_by_time(engine);
}

/* The same events, every other one first, so that transactions are dissolved. */
static void run_open(struct ss_engine *engine, int64_t horizon)
{
    static struct ss_segment segments[EVENTS];
    void *columns[] = {times, seeds, keys};
    struct ss_job job = {.chunk = CHUNK, .horizon = horizon, .mode = SS_MODE_OPEN};
    while (!ss_engine_start(engine, &job))
        CHECK(refused > 0);
    for (int64_t half = 0; half < 2; half++)
        for (int64_t event = half; event < EVENTS; event += 2) {
            segments[event] = (struct ss_segment){
                .columns = columns, .first = event, .last = event + 1, .left = 1};
            while (!ss_engine_submit(engine, &segments[event]))
                CHECK(refused > 0);
        }
    ss_engine_advance(engine, (struct ss_frontier){EVENTS, 0});
    for (bool settled = false; !settled;) {
        ss_engine_await(engine, 50000000);
        ss_engine_take_turn(engine);
        struct ss_outcome outcome = ss_engine_outcome(engine);
        settled = ss_engine_is_settled(engine) && !outcome.failed;
        failures += outcome.failed;
        if (outcome.failed && outcome.failed_row >= 0) {
            CHECK(refused > 0 && outcome.no_memory && outcome.fault.signal == 0);
            CHECK(is_large(seeds[outcome.failed_row]));
            has_failed[outcome.failed_row] = true;
        } else if (outcome.timer_failed) {
            note_failed_timer(&outcome);
        } else if (outcome.failed) {
            CHECK(refused > 0 && !outcome.no_memory);
        }
        if (settled) {
            outcome = without_timers(outcome);
            model_events(&outcome, 0, EVENTS, true);
            check_keys(engine);
            if (goes_by_time)
                check_by_time(engine);
        }
        ss_engine_release_turn(engine);
        if (outcome.failed)
            ss_engine_resume(engine, outcome.failed_row);
    }
    ss_engine_stop(engine);
    while (!ss_engine_wait(engine, 50))
        continue;
}

/* ---- early results ---- */

/* Four events a time, of which late ones take back others; some are tentative, and one of these is
 * withdrawn. */
enum { EARLY_STEP = 4, WITHDRAWN = 9, CONFIRMED = 21 };
static uint64_t told[EVENTS]; /* rows that are told and not taken back, of each event */
static uint64_t told_final[EVENTS];
static bool no_telling; /* there was no memory for what is to be told */

static void add_told(uint64_t *rows, const uint64_t *from, uint64_t count, uint64_t by)
{
    for (uint64_t i = 0; i < count; i++)
        rows[from[i * (SS_KEY_WORDS + EMITTED) + SS_KEY_WORDS]] += by;
}

static uint64_t rows_of(int64_t event)
{
    return is_large(seeds[event]) ? ROWS : 1;
}

/* With the turn: what is told adds up. */
static void take_told(struct ss_engine *engine)
{
    struct ss_early_told now = ss_engine_tell_early(engine);
    CHECK(!now.no_memory || refused > 0);
    no_telling = now.no_memory;
    if (no_telling)
        return; /* which is asked for again */
    add_told(told, now.voids, now.void_count, UINT64_MAX);
    add_told(told, now.kept, now.kept_count, UINT64_MAX);
    add_told(told_final, now.kept, now.kept_count, 1);
    add_told(told_final, now.finals, now.final_count, 1);
    if (now.is_whole)
        add_told(told, now.news, now.news_count, 1);
    ss_engine_told_early(engine, now.is_whole);
}

/* Waits until everything that has come is applied, or final; looks, and goes on after a failure. */
static void settle_early(struct ss_engine *engine, bool final)
{
    for (bool settled = false; !settled;) {
        if (final)
            ss_engine_await(engine, 50000000);
        else
            ss_engine_await_early(engine, 50000000);
        ss_engine_take_turn(engine);
        struct ss_outcome outcome = ss_engine_outcome(engine);
        struct ss_early_told now = ss_engine_tell_early(engine);
        settled = !outcome.failed && now.is_settled && (!final || ss_engine_is_settled(engine));
        failures += outcome.failed;
        CHECK(!outcome.failed || refused > 0);
        if (outcome.failed && outcome.failed_row >= 0) {
            CHECK(outcome.no_memory && outcome.fault.signal == 0);
            CHECK(is_large(seeds[outcome.failed_row]));
            has_failed[outcome.failed_row] = true;
        } else if (outcome.failed) {
            CHECK(outcome.failed_row == SS_NO_ROW_FOR_MEMORY && !outcome.no_memory);
        }
        take_told(engine);
        ss_engine_release_turn(engine);
        if (outcome.failed)
            ss_engine_resume(engine, outcome.failed_row);
    }
}

static void run_early(struct ss_engine *engine, int64_t horizon)
{
    static struct ss_segment segments[EVENTS];
    void *columns[] = {times, seeds, keys};
    struct ss_job job = {.chunk = CHUNK, .horizon = horizon, .mode = SS_MODE_OPEN,
                         .early_bytes = UINT64_MAX};
    while (!ss_engine_start(engine, &job))
        CHECK(refused > 0);
    memset(told, 0, sizeof told);
    memset(told_final, 0, sizeof told_final);
    no_telling = false;
    ss_engine_take_turn(engine);
    take_told(engine); /* from now on it is kept */
    ss_engine_release_turn(engine);
    for (int64_t step = EARLY_STEP; step-- > 0;) {
        for (int64_t event = step; event < EVENTS; event += EARLY_STEP) {
            segments[event] =
                (struct ss_segment){.columns = columns,
                                    .first = event,
                                    .last = event + 1,
                                    .left = 1,
                                    .is_tentative = event == WITHDRAWN || event == CONFIRMED};
            while (!ss_engine_submit(engine, &segments[event]))
                CHECK(refused > 0);
        }
        settle_early(engine, false);
    }
    ss_engine_withdraw(engine, &segments[WITHDRAWN]);
    has_failed[WITHDRAWN] = true; /* as if */
    settle_early(engine, false);
    ss_engine_confirm(engine, &segments[CONFIRMED]);
    ss_engine_advance(engine, (struct ss_frontier){EVENTS / 2, 0});
    settle_early(engine, true);
    ss_engine_advance(engine, (struct ss_frontier){EVENTS, 0});
    settle_early(engine, true);
    ss_engine_take_turn(engine);
    struct ss_outcome outcome = ss_engine_outcome(engine);
    model_events(&outcome, 0, EVENTS, true);
    check_keys(engine);
    for (int64_t event = 0; event < EVENTS && !no_telling; event++)
        CHECK(told[event] == 0 && told_final[event] == (has_failed[event] ? 0 : rows_of(event)));
    for (int64_t event = 0; event < EVENTS; event++)
        CHECK(segments[event].left == 0);
    ss_engine_release_turn(engine);
    ss_engine_stop(engine);
    while (!ss_engine_wait(engine, 50))
        continue;
}

/* One case; true: as many requests as that were not made. */
static bool live(enum ss_protocol_kind protocol, int64_t horizon, enum ss_mode mode,
                 uint64_t request, uint64_t requests)
{
    case_number = request;
    patience_note(NULL, "request %" PRIu64 " of %s", request, scenario);
    memset(state, 0, sizeof state);
    memset(model, 0, sizeof model);
    memset(has_failed, 0, sizeof has_failed);
    asked = refused = 0;
    lost_timers = rows_of_timers = 0;
    refused_from = request;
    refused_to = request + requests;
    counts = true;
    struct ss_engine *engine = open_engine(protocol);
    if (engine == NULL) {
        CHECK(refused > 0);
    } else if (mode == SS_MODE_OPEN && is_early) {
        run_early(engine, horizon);
    } else if (mode == SS_MODE_OPEN) {
        run_open(engine, horizon);
    } else {
        run_jobs(engine, horizon, mode);
    }
    if (engine != NULL)
        ss_engine_free(engine); /* what is left behind the sanitizer tells of */
    counts = false;
    return refused == 0;
}

static void all_in_turn(const char *name, enum ss_protocol_kind protocol, int64_t horizon,
                        enum ss_mode mode)
{
    scenario = name;
    failures = 0;
    for (uint64_t requests = 1; requests <= 4; requests += 3)
        for (uint64_t request = 1; !live(protocol, horizon, mode, request, requests); request++)
            continue;
    CHECK(failures > 0);
}

int main(void)
{
    for (int i = 0; i < EVENTS; i++) {
        seeds[i] = 3 * LARGE + 1 - EVENTS + (uint64_t)i; /* the last one is large */
        times[i] = i;
        keys[i] = key_of(seeds[i], 0);
    }
    patience_start(60);
    all_in_turn("a plain job", SS_PROTOCOL_VALUE, 0, SS_MODE_ORDERED);
    all_in_turn("a log-free job", SS_PROTOCOL_VALUE, 0, SS_MODE_LOG_FREE);
    all_in_turn("a locked job", SS_PROTOCOL_VALUE, 0, SS_MODE_LOCKED);
    all_in_turn("value", SS_PROTOCOL_VALUE, 3, SS_MODE_SPECULATE);
    all_in_turn("eager", SS_PROTOCOL_EAGER, 3, SS_MODE_SPECULATE);
    all_in_turn("value, open", SS_PROTOCOL_VALUE, 3, SS_MODE_OPEN);
    all_in_turn("eager, open", SS_PROTOCOL_EAGER, 3, SS_MODE_OPEN);
    is_early = true;
    all_in_turn("value, early", SS_PROTOCOL_VALUE, 3, SS_MODE_OPEN);
    is_boosted = false;
    all_in_turn("value, early, not boosted", SS_PROTOCOL_VALUE, 3, SS_MODE_OPEN);
    all_in_turn("eager, early, not boosted, nothing ahead", SS_PROTOCOL_EAGER, 0, SS_MODE_OPEN);
    is_boosted = true;
    is_early = false;
    goes_by_time = true;
    all_in_turn("a plain job by time", SS_PROTOCOL_VALUE, 0, SS_MODE_ORDERED);
    all_in_turn("value by time", SS_PROTOCOL_VALUE, 3, SS_MODE_SPECULATE);
    all_in_turn("eager by time", SS_PROTOCOL_EAGER, 3, SS_MODE_SPECULATE);
    all_in_turn("value by time, open", SS_PROTOCOL_VALUE, 3, SS_MODE_OPEN);
    all_in_turn("eager by time, open", SS_PROTOCOL_EAGER, 3, SS_MODE_OPEN);
    patience_stop();
    puts("no memory: passed");
    return 0;
}
