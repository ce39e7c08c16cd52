#include "steps.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/engine.h"
#include "core/protocol.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "entries.h"
#include "jobs/hooks.h"
#include "long_sleep.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "specstream.h"

const char *scenario = "";

static const int64_t patience = 5000000000; /* less than a long sleep */

enum { ROW_WORDS = 2 };

struct gate {
    uint64_t arrived;
    uint64_t allowed;
};

static struct {
    struct setting setting;
    struct ss_protocol protocol; /* that of the engine, with stops */
    const struct ss_protocol *original;
    struct ss_engine *engine;
    uint64_t state[STATE_WORDS];
    uint64_t expected[STATE_WORDS];
    const row *events;
    int64_t count;
    int64_t first_sequence;
    int64_t refused; /* -1: none */

    pthread_mutex_t mutex; /* of the gates */
    pthread_cond_t moved;
    struct gate gates[MOST_EVENTS][POINTS];
    _Atomic uint64_t runs[MOST_EVENTS];

    _Atomic uint64_t running;
    _Atomic uint64_t most_running;
    _Atomic int64_t furthest_ahead;
} stage = {.mutex = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

/* ---- waiting, with a limit ---- */

static void backoff(void)
{
    struct timespec time = {0, 50000};
    nanosleep(&time, NULL);
}

bool stage_waits_too_long(int64_t since)
{
    backoff();
    return ss_now() - since >= patience;
}

/* With the mutex of the gates. False: it has taken too long. */
static bool wait_for_move(int64_t since)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&stage.moved, &stage.mutex, &until);
    return ss_now() - since < patience;
}

static void stop_at(int64_t event, uint64_t point)
{
    struct gate *gate = &stage.gates[event][point];
    int64_t since = ss_now();
    pthread_mutex_lock(&stage.mutex);
    uint64_t mine = ++gate->arrived;
    pthread_cond_broadcast(&stage.moved);
    while (gate->allowed < mine)
        if (!wait_for_move(since))
            fail("%s: event %lld stands at point %llu for too long", scenario, (long long)event,
                 (unsigned long long)point);
    pthread_mutex_unlock(&stage.mutex);
}

void await_asked(void)
{
    const struct ss_run *run = &stage_engine()->workers[0].run;
    for (int64_t since = ss_now(); __atomic_load_n(&run->yield, __ATOMIC_RELAXED) == 0;)
        if (stage_waits_too_long(since))
            fail("%s: the worker is not asked for the turn", scenario);
}

void await_stop(int64_t event, uint64_t point, uint64_t times)
{
    struct gate *gate = &stage.gates[event][point];
    int64_t since = ss_now();
    pthread_mutex_lock(&stage.mutex);
    while (gate->arrived < times)
        if (!wait_for_move(since))
            fail("%s: event %lld has come to point %llu %llu times, not %llu", scenario,
                 (long long)event, (unsigned long long)point, (unsigned long long)gate->arrived,
                 (unsigned long long)times);
    pthread_mutex_unlock(&stage.mutex);
}

static void allow(int64_t event, uint64_t point, bool all)
{
    pthread_mutex_lock(&stage.mutex);
    struct gate *gate = &stage.gates[event][point];
    gate->allowed = all ? UINT64_MAX : gate->allowed + 1;
    pthread_cond_broadcast(&stage.moved);
    pthread_mutex_unlock(&stage.mutex);
}

void let_go(int64_t event, uint64_t point)
{
    allow(event, point, false);
}

void let_all_go(int64_t event, uint64_t point)
{
    allow(event, point, true);
}

void await_committed(int64_t transactions)
{
    int64_t since = ss_now();
    while (ss_engine_progress(stage.engine) < transactions) {
        if (ss_now() - since >= patience)
            fail("%s: %lld transactions committed, not %lld", scenario,
                 (long long)ss_engine_progress(stage.engine), (long long)transactions);
        backoff();
    }
}

void await_status(int64_t number, enum ss_status status)
{
    struct ss_transaction *transaction = ss_slot_of(stage.engine, number);
    int64_t since = ss_now();
    while (!ss_has_status(transaction, number, status)) {
        if (ss_now() - since >= patience)
            fail("%s: the status of transaction %lld does not become %d", scenario,
                 (long long)number, (int)status);
        backoff();
    }
}

/* How often a worker has found nothing to do, and parked. */
static uint64_t parks_of(uint64_t worker)
{
    pthread_mutex_lock(&stage.engine->park_mutex);
    uint64_t count = stage.engine->workers[worker].statistics.parks;
    pthread_mutex_unlock(&stage.engine->park_mutex);
    return count;
}

/* With the mutex, a sleeper is in the condition variable and not on its way there. */
static uint64_t count_sleepers(void)
{
    pthread_mutex_lock(&stage.engine->park_mutex);
    uint64_t count = atomic_load(&stage.engine->sleepers);
    pthread_mutex_unlock(&stage.engine->park_mutex);
    return count;
}

void await_idle(uint64_t workers)
{
    uint64_t before[64];
    int64_t since = ss_now();
    CHECK(stage.setting.threads <= 64);
    for (uint64_t i = 0; i < stage.setting.threads; i++)
        before[i] = parks_of(i);
    for (;;) {
        uint64_t idle = 0;
        /* The first park may be the end of a look that began before; the second is not. */
        for (uint64_t i = 0; i < stage.setting.threads; i++)
            idle += parks_of(i) >= before[i] + 2;
        if (stage.setting.long_sleeps)
            idle = count_sleepers();
        if (idle >= workers)
            return;
        if (ss_now() - since >= patience)
            fail("%s: %llu workers idle, not %llu", scenario, (unsigned long long)idle,
                 (unsigned long long)workers);
        backoff();
    }
}

/* ---- events ---- */

/* One event under way; `run` is NULL in the sequential run. */
struct doing {
    struct ss_run *run;
    enum ss_variant variant;
    int64_t event;
    uint64_t mixed;
};

static bool load(struct doing *doing, uint64_t word, uint64_t *value)
{
    if (doing->run == NULL) {
        *value = stage.expected[word];
    } else {
        *value = doing->variant == SS_EAGER ? ss_eager_load(doing->run, word)
                                            : ss_load(doing->run, word);
        if (doing->run->verdict != SS_COMPLETED)
            return false;
    }
    doing->mixed = mix(doing->mixed ^ *value) + word;
    return true;
}

static bool store(struct doing *doing, uint64_t word, uint64_t value)
{
    if (doing->run == NULL) {
        stage.expected[word] = value;
        return true;
    }
    if (doing->variant == SS_EAGER)
        ss_eager_store(doing->run, word, value);
    else
        ss_store(doing->run, word, value);
    return doing->run->verdict == SS_COMPLETED;
}

static bool count(struct doing *doing, uint64_t word)
{
    struct ss_run *run = doing->run;
    uint64_t value;
    if (run == NULL)
        value = ++stage.expected[word];
    else
        value = doing->variant == SS_EAGER ? ss_eager_increment(run, word)
                                           : ss_increment(run, word);
    doing->mixed = mix(doing->mixed ^ value) + word;
    return run == NULL || run->verdict == SS_COMPLETED;
}

static uint64_t sequence_of(int64_t event)
{
    return (uint64_t)(stage.first_sequence + event);
}

static bool emit(struct doing *doing)
{
    struct ss_run *run = doing->run;
    if (run->emit_end - run->emit_top < ROW_WORDS && !ss_emit_grow(run))
        return false;
    *run->emit_top++ = sequence_of(doing->event);
    *run->emit_top++ = doing->mixed;
    return true;
}

static bool leave(struct doing *doing, enum ss_verdict verdict)
{
    if (doing->run != NULL)
        doing->run->verdict = verdict;
    return false;
}

/* Volatile: the compiler need not know better. Sanitizers would report what is meant to happen. */
static volatile uintptr_t nearly_null = 8;

__attribute__((noinline, no_sanitize("address", "undefined"))) static void follow_null(void)
{
    (void)*(volatile char *)nearly_null;
}

/* What compiled loops poll. */
static bool has_to_leave(struct ss_run *run)
{
    return __atomic_load_n(&run->kill, __ATOMIC_RELAXED) != 0 && ss_poll(run);
}

static bool linger(struct doing *doing, uint64_t turns)
{
    uint64_t value = doing->mixed;
    for (uint64_t i = 0; i < turns && doing->run != NULL; i++) {
        value = mix(value);
        if (has_to_leave(doing->run))
            return false;
    }
    if (value % 16 == 0)
        sched_yield();
    return true;
}

static bool overstay(struct doing *doing, uint64_t times)
{
    let_all_go(doing->event, LOOPING);
    stop_at(doing->event, LOOPING);
    while (times > 0) {
        if (__atomic_load_n(&doing->run->kill, __ATOMIC_RELAXED) == 0) {
            ss_relax();
            continue;
        }
        if (ss_poll(doing->run))
            return false;
        /* Up still where the turn was not to be had. */
        times -= __atomic_load_n(&doing->run->kill, __ATOMIC_RELAXED) == 0;
    }
    return true;
}

static bool loop(struct doing *doing)
{
    let_all_go(doing->event, LOOPING);
    stop_at(doing->event, LOOPING);
    while (!has_to_leave(doing->run))
        ss_relax();
    return false;
}

/* False: the event has to be left at once. */
static bool take_step(struct doing *doing, const struct step *step)
{
    uint64_t value = 0;
    switch (step->kind) {
    case STEP_READ:
        return load(doing, step->word, &value);
    case STEP_WRITE:
        return store(doing, step->word, step->value);
    case STEP_PUT:
        return store(doing, step->word, doing->mixed);
    case STEP_ADD:
        return load(doing, step->word, &value) && store(doing, step->word, value + step->value);
    case STEP_COUNT:
        return count(doing, step->word);
    case STEP_FILL:
        for (uint64_t i = 0; i < step->value; i++)
            if (!load(doing, i % STATE_WORDS, &value) || !store(doing, i % STATE_WORDS, value + 1))
                return false;
        return true;
    case STEP_EMIT:
        for (uint64_t i = 0; i < step->value; i++)
            if (!emit(doing))
                return false;
        return true;
    case STEP_STOP:
        if (doing->run != NULL)
            stop_at(doing->event, step->value);
        return true;
    case STEP_RAISE:
        return leave(doing, SS_RAISED);
    case STEP_CRASH:
        if (doing->run != NULL && doing->run->speculative)
            follow_null();
        return true;
    case STEP_RAISE_UNLESS:
        return load(doing, step->word, &value) &&
               (value == step->value || leave(doing, SS_RAISED));
    case STEP_LOOP_UNLESS:
        return load(doing, step->word, &value) && (value == step->value || loop(doing));
    case STEP_LINGER:
        return linger(doing, step->value);
    case STEP_OVERSTAY:
        return doing->run == NULL || !doing->run->speculative || overstay(doing, step->value);
    case STEP_END:
        break;
    }
    return true;
}

static bool run_event(struct doing *doing)
{
    for (const struct step *step = stage.events[doing->event]; step->kind != STEP_END; step++)
        if (!take_step(doing, step))
            return false;
    return true;
}

static void see_most(_Atomic uint64_t *most, uint64_t seen)
{
    uint64_t before = atomic_load(most);
    while (before < seen && !atomic_compare_exchange_weak(most, &before, seen))
        continue;
}

static void see_begin(int64_t first)
{
    see_most(&stage.most_running, atomic_fetch_add(&stage.running, 1) + 1);
    if (ss_goes_by_key(stage.engine))
        return; /* its rows do not tell their place */
    int64_t ahead = first / stage.engine->job.chunk - ss_engine_progress(stage.engine);
    int64_t before = atomic_load(&stage.furthest_ahead);
    while (before < ahead &&
           !atomic_compare_exchange_weak(&stage.furthest_ahead, &before, ahead))
        continue;
}

static int32_t run_range(int64_t *next, struct ss_run *run, int64_t first, int64_t last,
                         enum ss_variant variant)
{
    int32_t status = 0;
    see_begin(first);
    for (*next = first; *next < last; ++*next) {
        if (variant != SS_EAGER && *next != first &&
            __atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0)
            break;
        run->event = *next;
        run->emit_mark = run->emit_top;
        run->undo_top = run->undo_base;
        atomic_fetch_add(&stage.runs[*next], 1);
        struct doing doing = {.run = run, .variant = variant, .event = *next};
        if (!run_event(&doing)) {
            status = 1;
            break;
        }
    }
    atomic_fetch_sub(&stage.running, 1);
    return status;
}

ENTRY(run_plain, SS_PLAIN)
ENTRY(run_transactional, SS_TRANSACTIONAL)
ENTRY(run_eager, SS_EAGER)

static bool validate(const struct ss_engine *engine, struct ss_transaction *transaction)
{
    int64_t event = ss_row_of(engine, transaction);
    if (event < 64 && (stage.setting.validations_held >> event & 1) != 0)
        stop_at(event, VALIDATION);
    return stage.original->validate(engine, transaction);
}

/* ---- the stage ---- */

void stage_open(const struct setting *setting)
{
    stage.setting = *setting;
    memset(stage.state, 0, sizeof stage.state);
    struct ss_config config = {.state = stage.state,
                               .state_words = STATE_WORDS,
                               .emit_words = ROW_WORDS,
                               .threads = setting->threads,
                               .read_limit = LOG_LIMIT,
                               .redo_limit = LOG_LIMIT,
                               .emit_limit = 2,
                               .protocol = setting->protocol,
                               .record_shift = setting->record_shift};
    stage.engine = ss_engine_new(&config);
    CHECK(stage.engine != NULL);
    stage.original = stage.engine->protocol;
    stage.protocol = *stage.original;
    stage.protocol.validate = validate;
    stage.engine->protocol = &stage.protocol;
    ss_engine_set_entry(stage.engine, SS_PLAIN, run_plain);
    ss_engine_set_entry(stage.engine, SS_TRANSACTIONAL, run_transactional);
    ss_engine_set_entry(stage.engine, SS_EAGER, run_eager);
    atomic_store(&stage.most_running, 0);
    atomic_store(&stage.furthest_ahead, 0);
    long_sleep_in(setting->long_sleeps ? stage.engine : NULL);
}

void stage_close(void)
{
    struct ss_statistics statistics = ss_engine_statistics(stage.engine);
    CHECK(statistics.head_aborts == 0); /* in every run there is */
    CHECK(all_aborts() == statistics.reruns);
    CHECK(long_sleep_missed() == 0);
    long_sleep_in(NULL);
    ss_engine_free(stage.engine);
    patience_note(NULL, "  between two engines");
}

void stage_start(const row *events, int64_t count, int64_t first_sequence)
{
    struct ss_job job = {.count = stage.setting.mode == SS_MODE_OPEN ? 0 : count,
                         .first_sequence = first_sequence,
                         .chunk = stage.setting.chunk == 0 ? 1 : stage.setting.chunk,
                         .horizon = stage.setting.horizon,
                         .longest_horizon = stage.setting.longest_horizon,
                         .mode = stage.setting.mode};
    CHECK(count <= MOST_EVENTS);
    memcpy(stage.expected, stage.state, sizeof stage.state);
    memset(stage.gates, 0, sizeof stage.gates);
    for (int64_t i = 0; i < count; i++)
        atomic_store(&stage.runs[i], 0);
    stage.events = events;
    stage.count = count;
    stage.first_sequence = first_sequence;
    stage.refused = -1;
    patience_note(stage.engine, "  protocol %s, mode %d, threads %d, horizon %d, chunk %d%s",
                  stage.setting.protocol == SS_PROTOCOL_EAGER ? "eager" : "value", (int)job.mode,
                  (int)stage.setting.threads, (int)job.horizon, (int)job.chunk,
                  stage.setting.long_sleeps ? ", long sleeps" : "");
    CHECK(ss_engine_start(stage.engine, &job));
}

void stage_refuse(int64_t event)
{
    stage.refused = event;
}

bool stage_expect(int64_t event, const struct ss_outcome *outcome, uint64_t *next_row)
{
    uint64_t before[STATE_WORDS];
    uint64_t mixed_at[MOST_STEPS];
    struct doing doing = {.event = event};
    const struct step *first = stage.events[event], *step = first;
    memcpy(before, stage.expected, sizeof before);
    for (; step->kind != STEP_END; step++) {
        mixed_at[step - first] = doing.mixed;
        if (step->kind != STEP_EMIT && !take_step(&doing, step))
            break;
    }
    if (step->kind != STEP_END || event == stage.refused) {
        memcpy(stage.expected, before, sizeof before);
        return false;
    }
    for (step = first; step->kind != STEP_END; step++)
        for (uint64_t i = 0; step->kind == STEP_EMIT && i < step->value; i++, ++*next_row) {
            const uint64_t *found = outcome->rows + *next_row * ROW_WORDS;
            CHECK(*next_row < outcome->row_count);
            CHECK(found[0] == sequence_of(event) && found[1] == mixed_at[step - first]);
        }
    return true;
}

bool stage_is_as_expected(void)
{
    return memcmp(stage.state, stage.expected, sizeof stage.state) == 0;
}

void stage_compare(const struct ss_outcome *outcome)
{
    uint64_t next_row = 0;
    int64_t event = 0;
    while (event < stage.count && stage_expect(event, outcome, &next_row))
        event++;
    CHECK(outcome->consumed == event);
    CHECK(outcome->failed == (event < stage.count));
    CHECK(outcome->row_count == next_row);
    CHECK(stage_is_as_expected());
}

void stage_let_everything_go(void)
{
    for (int64_t event = 0; event < stage.count; event++)
        for (uint64_t point = 0; point < POINTS; point++)
            let_all_go(event, point);
}

struct ss_outcome stage_wait(void)
{
    int64_t since = ss_now();
    stage_let_everything_go();
    while (!ss_engine_wait(stage.engine, 50))
        if (ss_now() - since >= patience)
            fail("%s: the job does not end", scenario);
    return ss_engine_outcome(stage.engine);
}

struct ss_outcome stage_end(void)
{
    struct ss_outcome outcome = stage_wait();
    stage_compare(&outcome);
    return outcome;
}

uint64_t draw_event(struct dice *dice, struct step *steps, uint64_t most, uint64_t words)
{
    static const enum step_kind kinds[] = {STEP_READ, STEP_READ,  STEP_WRITE, STEP_PUT,
                                           STEP_ADD,  STEP_LINGER, STEP_EMIT};
    uint64_t count = below(dice, most + 1);
    uint64_t rows = 0;
    for (uint64_t i = 0; i < count; i++) {
        enum step_kind kind = kinds[below(dice, sizeof kinds / sizeof *kinds)];
        /* Few rows: the limit of a speculative run is met now and then, not always. */
        if (kind == STEP_EMIT && (rows == 3 || chance(dice, 2)))
            kind = STEP_READ;
        rows += kind == STEP_EMIT;
        steps[i] = (struct step){kind, below(dice, words),
                                 kind == STEP_LINGER ? spread(dice, 300)
                                 : kind == STEP_EMIT ? 1
                                                     : below(dice, 3)};
    }
    return count;
}

struct ss_engine *stage_engine(void)
{
    return stage.engine;
}

uint64_t stage_word(uint64_t word)
{
    return ss_word_read(&stage.state[word]);
}

uint64_t runs_of(int64_t event)
{
    return atomic_load(&stage.runs[event]);
}

int64_t waits_for(int64_t number)
{
    return atomic_load(&ss_slot_of(stage.engine, number)->waits_for);
}

uint64_t aborts(enum ss_abort_reason reason)
{
    return ss_engine_statistics(stage.engine).aborts[reason];
}

uint64_t all_aborts(void)
{
    struct ss_statistics statistics = ss_engine_statistics(stage.engine);
    uint64_t sum = 0;
    for (int reason = 0; reason < SS_ABORT_REASONS; reason++)
        sum += statistics.aborts[reason];
    return sum;
}

uint64_t most_running(void)
{
    return atomic_load(&stage.most_running);
}

int64_t furthest_ahead(void)
{
    return atomic_load(&stage.furthest_ahead);
}
