/* Early results of what events are not all of, step by step: timers, entries that expire, boosted
 * structures, hooks (test_early.c has the rest).
 *
 * An event, and what a timer runs, is a row of steps over a few words, a container of timers, a dict
 * whose entries expire, and a boosted structure. At each look where all has settled the applied image
 * and the early rows, the owner's words and the final rows are compared with sequential runs from
 * scratch; at the end also with an open job of the same events without early results.
 *
 * With one thread and horizon 0 everything runs in one order, so counts are exact. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "boosted.h"
#include "containers/keyed.h"
#include "containers/timer_heap.h"
#include "core/engine.h"
#include "core/state_words.h"
#include "core/worker.h"
#include "entries.h"
#include "jobs/early.h"
#include "jobs/open_job.h"
#include "processor/now.h"
#include "specstream_containers.h"
#include "steps.h"

enum {
    BOOSTED = 8, /* first word of the structure; before it there are words */
    PLAIN = BOOSTED + BOOSTED_WORDS,
    TIMERS = 0,
    DICT = 1,
    KEYS = 12, /* keys 1 to KEYS */
    LIMIT = 8,
    ROOM = 128,
    WIDTH = 3,      /* stamp, key, time */
    DICT_WIDTH = 4, /* stamp, key, value, time of the last write */
    EXPIRES = 15,
    HEADER = PLAIN,
    REGION = HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    DICT_HEADER = REGION + ROOM * WIDTH,
    DICT_REGION = DICT_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    ALL_WORDS = DICT_REGION + ROOM * DICT_WIDTH,
    LOG = 32,
    MOST_ROWS = 1024,
    ROW_WORDS = 3, /* of the engine: whose, key, what it has seen */
    ROW = 4        /* and the time */
};
static const int64_t patience = 5000000000;
static const uint64_t sign_bit = UINT64_C(1) << 63;

/* Further kinds of steps; `word` is a word or a key, times are from that of the event or timer on. */
enum {
    MORE_SET_TIMER = STEP_OVERSTAY + 1, /* so much later */
    MORE_SET_TIMER_BY,                  /* the first key, by what `word` holds later */
    MORE_CANCEL,
    MORE_KEEP, /* a key of the dict, with that value */
    MORE_SEE,
    MORE_BOOST, /* an operation, and a key */
    MORE_FILL_UNLESS
};
#define MORE(kind, word, value) {(enum step_kind)(kind), (word), (uint64_t)(value)}
#define SET_TIMER(key, by) MORE(MORE_SET_TIMER, key, by)
#define SET_TIMER_BY(word) MORE(MORE_SET_TIMER_BY, word, 0)
#define CANCEL(key) MORE(MORE_CANCEL, key, 0)
#define KEEP(key, value) MORE(MORE_KEEP, key, value)
#define SEE(key) MORE(MORE_SEE, key, 0)
#define BOOST(operation, key) MORE(MORE_BOOST, operation, key)
#define FILL_UNLESS(word, value) MORE(MORE_FILL_UNLESS, word, value)

struct place {
    int64_t timestamp;
    int64_t source;
};

struct model_entry {
    uint64_t key;
    uint64_t value; /* a timer: its time */
    int64_t written;
    uint64_t stamp;
};

/* A sequential run: what the state means. */
struct model {
    uint64_t words[PLAIN];
    struct model_entry entries[2][LIMIT]; /* in the order of their stamps */
    uint64_t count[2];
    uint64_t stamp;
    uint64_t fired;
    int64_t clock;
    uint64_t rows[MOST_ROWS][ROW];
    uint64_t row_count;
    int64_t applied; /* events */
};

struct rows {
    uint64_t at[MOST_ROWS][ROW];
    uint64_t count;
};

struct options {
    uint64_t threads; /* 0: 1 */
    enum ss_protocol_kind protocol;
    bool boosts;
    bool hooks;
    uint64_t room;        /* of the timers; 0: ROOM */
    int64_t times_expire; /* 0: EXPIRES */
    int64_t clock;        /* an earlier job had come so far; 0: there was none */
    struct ss_job job;
};

enum { CALLS = 256 };
struct call {
    enum ss_hook_kind kind;
    int64_t row;
    enum ss_abort_reason reason;
    uint64_t rows;
    int64_t consumed; /* events that were final by then */
};

static struct {
    struct ss_engine *engine;
    struct ss_config config;
    struct ss_container containers[2];
    uint64_t state[ALL_WORDS];
    uint64_t other[ALL_WORDS]; /* of the job without early results */
    struct options options;
    const row *events;
    const row *timers; /* what each runs, by its key; none: counts in word 7, and emits */
    const struct place *places;
    int64_t count;
    int64_t order[MOST_EVENTS];
    bool came[MOST_EVENTS];
    bool refused[MOST_EVENTS]; /* by on_commit */
    int64_t timestamps[MOST_EVENTS];
    void *columns[1];
    struct ss_segment segments[MOST_EVENTS];
    uint64_t segment_count;
    _Atomic uint64_t runs[MOST_EVENTS];
    _Atomic uint64_t fired[KEYS + 1];
    _Atomic uint64_t arrived, allowed; /* at the stop */
    struct ss_frontier frontier;
    bool has_frontier;
    int64_t reached;
    struct rows told;   /* and not final */
    struct rows finals; /* likewise, and final since */
    uint64_t failures, timer_failures;
    int64_t failed_row;
    uint64_t voids, news; /* rows, since the last event came */
    struct ss_early_told last; /* its figures only */
    bool is_settled;
    struct ss_statistics ended; /* when the stage was closed */
    /* Hooks */
    struct call calls[CALLS];
    uint64_t call_count;
    int64_t answers_to; /* an event; the next question about it is answered so */
    enum ss_answer answer;
} stage;

static struct model scratch, spare; /* too large for a stack */

static void backoff(void)
{
    struct timespec time = {0, 50000};
    nanosleep(&time, NULL);
}

/* ---- events and firings ---- */

/* One under way; `run` is NULL in the sequential run. */
struct doing {
    struct ss_run *run;
    struct model *model;
    int64_t event; /* of a timer: INT64_MIN + its number */
    uint64_t key;  /* of the timer; 0: it is an event */
    int64_t now;   /* times are set from there on */
    int64_t time;  /* of the row: of a timer the time of the firing */
    uint64_t mixed;
};

static bool goes_on(const struct doing *doing)
{
    return doing->run == NULL || doing->run->verdict == SS_COMPLETED;
}

static bool leave(struct doing *doing)
{
    if (doing->run != NULL)
        doing->run->verdict = SS_RAISED;
    return false;
}

static void note(struct doing *doing, uint64_t value)
{
    doing->mixed = mix(doing->mixed ^ value) + 1;
}

static uint64_t load(struct doing *doing, uint64_t word)
{
    uint64_t value = doing->run != NULL ? ss_load(doing->run, word) : doing->model->words[word];
    note(doing, value);
    return value;
}

static bool store(struct doing *doing, uint64_t word, uint64_t value)
{
    if (doing->run != NULL)
        ss_store(doing->run, word, value);
    else
        doing->model->words[word] = value;
    return goes_on(doing);
}

/* Of the sequential run: where a key is, or the count. */
static uint64_t place_of(const struct model *model, uint64_t container, uint64_t key)
{
    uint64_t at = 0;
    while (at < model->count[container] && model->entries[container][at].key != key)
        at++;
    return at;
}

static void take_entry(struct model *model, uint64_t container, uint64_t at)
{
    struct model_entry *entries = model->entries[container];
    if (at < model->count[container])
        memmove(&entries[at], &entries[at + 1], (--model->count[container] - at) * sizeof *entries);
}

static bool put_entry(struct model *model, uint64_t container, struct model_entry entry)
{
    if (model->count[container] == LIMIT)
        return false;
    entry.stamp = ++model->stamp;
    model->entries[container][model->count[container]++] = entry;
    return true;
}

static bool set_timer(struct doing *doing, uint64_t key, int64_t at)
{
    if (doing->run == NULL) {
        take_entry(doing->model, TIMERS, place_of(doing->model, TIMERS, key));
        return put_entry(doing->model, TIMERS, (struct model_entry){key, (uint64_t)at, 0, 0});
    }
    uint64_t done = ss_timer_set(doing->run, TIMERS, &key, at);
    CHECK(done != SS_TIMER_TOO_EARLY);
    return goes_on(doing) && (done == SS_TIMER_IS_SET || leave(doing));
}

static bool cancel(struct doing *doing, uint64_t key)
{
    if (doing->run == NULL) {
        take_entry(doing->model, TIMERS, place_of(doing->model, TIMERS, key));
        return true;
    }
    uint64_t entry = ss_keyed_find(doing->run, TIMERS, &key);
    if (entry != SS_NOWHERE && goes_on(doing))
        ss_keyed_remove(doing->run, TIMERS, entry);
    return goes_on(doing);
}

static bool keep_entry(struct doing *doing, uint64_t key, uint64_t value)
{
    struct model *model = doing->model;
    struct ss_run *run = doing->run;
    int64_t now = doing->time;
    if (run == NULL) {
        uint64_t at = place_of(model, DICT, key);
        if (at == model->count[DICT])
            return put_entry(model, DICT, (struct model_entry){key, value, now, 0});
        model->entries[DICT][at].value = value;
        model->entries[DICT][at].written = now;
        return true;
    }
    uint64_t entry = ss_keyed_find(run, DICT, &key);
    bool is_new = entry == SS_NOWHERE;
    if (is_new && goes_on(doing))
        entry = ss_keyed_insert(run, DICT, &key);
    if (entry == SS_NOWHERE || !goes_on(doing))
        return goes_on(doing) && leave(doing);
    if (!is_new && !run->speculative && now < (int64_t)run->state[entry + 3])
        ss_timers_rewound(run, DICT, entry);
    return goes_on(doing) && store(doing, entry + 2, value) && store(doing, entry + 3, (uint64_t)now);
}

static bool see(struct doing *doing, uint64_t key)
{
    const struct model *model = doing->model;
    if (doing->run == NULL) {
        uint64_t at = place_of(model, DICT, key);
        note(doing, at < model->count[DICT] ? model->entries[DICT][at].value : 77);
        return true;
    }
    uint64_t entry = ss_keyed_find(doing->run, DICT, &key);
    if (goes_on(doing))
        note(doing, entry != SS_NOWHERE ? ss_load(doing->run, entry + 2) : 77);
    return goes_on(doing);
}

static uint64_t get_directly(void *context, uint64_t word)
{
    const struct doing *doing = context;
    return doing->run != NULL ? ss_word_read(&doing->run->state[BOOSTED + word])
                              : doing->model->words[BOOSTED + word];
}

static void set_directly(void *context, uint64_t word, uint64_t value)
{
    store(context, BOOSTED + word, value);
}

static bool boost(struct doing *doing, enum boosted_operation operation, uint64_t key)
{
    const struct boosted_words words = {doing, get_directly, set_directly};
    const uint64_t operands[SS_OPERANDS] = {key % BOOSTED_KEYS, doing->mixed, key > BOOSTED_KEYS};
    uint64_t result = 0;
    if (doing->run != NULL && doing->run->speculative) {
        result = ss_boost(doing->run, operation, operands);
        if (!goes_on(doing))
            return false;
    } else {
        if (!boosted_perform(&words, operation, operands, &result))
            return leave(doing);
        if (doing->run != NULL && doing->run->boosting != 0)
            ss_boost_follow(doing->run, operation, operands, result);
    }
    note(doing, result);
    return true;
}

static bool emit(struct doing *doing)
{
    struct ss_run *run = doing->run;
    struct model *model = doing->model;
    if (run == NULL) {
        CHECK(model->row_count < MOST_ROWS);
        const uint64_t row[ROW] = {(uint64_t)doing->event, doing->key, doing->mixed,
                                   (uint64_t)doing->time};
        memcpy(model->rows[model->row_count++], row, sizeof row);
        return true;
    }
    if (run->emit_end - run->emit_top < ROW_WORDS && !ss_emit_grow(run))
        return false;
    *run->emit_top++ = doing->key == 0 ? (uint64_t)doing->event : 0; /* a timer knows of none */
    *run->emit_top++ = doing->key;
    *run->emit_top++ = doing->mixed;
    return true;
}

static bool fill(struct doing *doing)
{
    for (uint64_t word = 0; word < PLAIN; word++) {
        uint64_t value = load(doing, word);
        if (!goes_on(doing) || !store(doing, word, value + (word < 7)))
            return false;
    }
    return true;
}

/* Until the test lets it go on, whatever is asked. */
static bool stop_here(struct doing *doing)
{
    if (doing->run == NULL || doing->run->worker->engine != stage.engine)
        return true;
    uint64_t mine = ++stage.arrived;
    int64_t since = ss_now();
    while (stage.allowed < mine) {
        backoff();
        if (ss_now() - since > patience)
            fail("%s: something stands for too long", scenario);
    }
    return true;
}

static bool take_step(struct doing *doing, const struct step *step)
{
    switch ((int)step->kind) {
    case STEP_READ:
        load(doing, step->word);
        return goes_on(doing);
    case STEP_WRITE:
        return store(doing, step->word, step->value);
    case STEP_PUT:
        return store(doing, step->word, doing->mixed);
    case STEP_ADD: {
        uint64_t value = load(doing, step->word);
        return goes_on(doing) && store(doing, step->word, value + step->value);
    }
    case STEP_EMIT:
        for (uint64_t i = 0; i < step->value; i++)
            if (!emit(doing))
                return false;
        return true;
    case STEP_RAISE:
        return leave(doing);
    case STEP_STOP:
        return stop_here(doing);
    case STEP_RAISE_UNLESS: {
        uint64_t value = load(doing, step->word);
        return goes_on(doing) && (value == step->value || leave(doing));
    }
    case MORE_SET_TIMER:
        return set_timer(doing, step->word, doing->now + (int64_t)step->value);
    case MORE_SET_TIMER_BY: {
        uint64_t value = load(doing, step->word);
        return goes_on(doing) && set_timer(doing, 1, doing->now + 1 + (int64_t)(value % 32));
    }
    case MORE_CANCEL:
        return cancel(doing, step->word);
    case MORE_KEEP:
        return keep_entry(doing, step->word, step->value);
    case MORE_SEE:
        return see(doing, step->word);
    case MORE_BOOST:
        return boost(doing, (enum boosted_operation)step->word, step->value);
    case MORE_FILL_UNLESS: {
        uint64_t value = load(doing, step->word);
        return goes_on(doing) && (value == step->value || fill(doing));
    }
    default:
        fail("%s: no such step", scenario);
    }
}

static bool run_steps(struct doing *doing)
{
    static const row counts = {ADD(7, 1), EMIT};
    const struct step *step = stage.events[0];
    if (doing->key == 0)
        step = stage.events[doing->event];
    else if (stage.timers == NULL || stage.timers[doing->key][0].kind == STEP_END)
        step = counts;
    else
        step = stage.timers[doing->key];
    for (; step->kind != STEP_END; step++)
        if (!take_step(doing, step))
            return false;
    return true;
}

static bool run_event(struct ss_run *run, enum ss_variant variant, int64_t event)
{
    (void)variant;
    int64_t time = stage.timestamps[event];
    struct doing doing = {.run = run, .event = event, .now = time, .time = time};
    run->found_in = 0;
    if (run->worker->engine == stage.engine)
        atomic_fetch_add(&stage.runs[event], 1);
    else if (stage.refused[event])
        return leave(&doing); /* there is no hook that would */
    return run_steps(&doing);
}

RUN_EACH_EVENT(run_event)
ENTRY(run_plain, SS_PLAIN)
ENTRY(run_transactional, SS_TRANSACTIONAL)

/* What is seen of it depends on its time, and on how many have fired before. */
static struct doing firing(uint64_t key, int64_t number, int64_t time, int64_t at)
{
    struct doing doing = {
        .event = INT64_MIN + number, .key = key, .now = at, .time = time};
    note(&doing, (uint64_t)number);
    note(&doing, (uint64_t)time);
    note(&doing, (uint64_t)at);
    return doing;
}

static int32_t run_timer(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)last;
    *fault = NULL;
    *next = first;
    uint64_t key = *(const uint64_t *)run->columns[3];
    struct doing doing = firing(key, run->first_sequence, *(const int64_t *)run->columns[0],
                                *(const int64_t *)run->columns[2]);
    doing.run = run;
    run->event = first;
    run->emit_mark = run->emit_top;
    run->undo_top = run->undo_base;
    run->found_in = 0;
    CHECK(key >= 1 && key <= KEYS && *(const int64_t *)run->columns[1] == INT64_MIN);
    if (run->worker->engine == stage.engine)
        atomic_fetch_add(&stage.fired[key], 1);
    if (!run_steps(&doing))
        return 1;
    *next = first + 1;
    return 0;
}

/* ---- the sequential run, from scratch ---- */

static bool is_earlier(int64_t a, int64_t b)
{
    struct place left = stage.places[a], right = stage.places[b];
    if (left.timestamp != right.timestamp)
        return left.timestamp < right.timestamp;
    return left.source != right.source ? left.source < right.source : a < b;
}

static bool model_unit(struct model *model, struct doing doing)
{
    spare = *model;
    doing.model = model;
    if (run_steps(&doing) && (doing.key != 0 || !stage.refused[doing.event]))
        return true;
    *model = spare;
    return false;
}

static int64_t due_at(const struct model *model, uint64_t container, uint64_t at)
{
    const struct model_entry *entry = &model->entries[container][at];
    return container == TIMERS ? (int64_t)entry->value
                               : entry->written + stage.containers[DICT].expires;
}

/* What goes at a time goes before what fires; else in the order of insertion. */
static bool find_due(const struct model *model, uint64_t container, uint64_t latest, uint64_t *found)
{
    bool any = false;
    for (uint64_t at = 0; at < model->count[container]; at++)
        if (model->entries[container][at].stamp <= latest &&
            (!any || due_at(model, container, at) < due_at(model, container, *found))) {
            *found = at;
            any = true;
        }
    return any;
}

/* All that is due by then, or, `latest` not being 0, what was set up to that stamp. */
static void model_fire(struct model *model, int64_t time, uint64_t latest)
{
    for (;;) {
        uint64_t timer = 0, entry = 0;
        bool fires = find_due(model, TIMERS, latest == 0 ? UINT64_MAX : latest, &timer);
        bool goes = find_due(model, DICT, UINT64_MAX, &entry);
        int64_t at = fires ? due_at(model, TIMERS, timer) : INT64_MAX;
        if (latest != 0 && !fires)
            return;
        int64_t by = latest == 0 ? time : at > model->clock ? at : model->clock;
        if (goes && due_at(model, DICT, entry) <= (latest == 0 && at < by ? at : by)) {
            take_entry(model, DICT, entry);
            continue;
        }
        if (!fires || at > by)
            return;
        uint64_t key = model->entries[TIMERS][timer].key;
        int64_t when = at > model->clock ? at : model->clock;
        take_entry(model, TIMERS, timer);
        model_unit(model, firing(key, (int64_t)model->fired, when, at));
        model->fired++;
        model->clock = when;
    }
}

static bool is_up_to(int64_t event, struct ss_key to)
{
    struct place place = stage.places[event];
    if (place.timestamp != to.timestamp)
        return place.timestamp < to.timestamp;
    return place.source != to.source ? place.source < to.source : event <= to.sequence;
}

/* All that have come, up to a key, and what fires until the next one, which may be known; `final`:
 * until the frontier at most. That is asked first. */
static const struct model *run_model(bool any, struct ss_key to, bool final)
{
    struct model *model = &scratch;
    memset(model, 0, sizeof *model);
    model->clock = stage.options.clock != 0 ? stage.options.clock : INT64_MIN;
    int64_t next = INT64_MAX;
    for (int64_t i = 0; i < stage.count && next == INT64_MAX; i++) {
        int64_t event = stage.order[i];
        if (!stage.came[event])
            continue;
        if (!any || !is_up_to(event, to)) {
            next = stage.places[event].timestamp;
            continue;
        }
        int64_t time = stage.places[event].timestamp;
        model_fire(model, time > model->clock ? time : model->clock, 0);
        if (model_unit(model, (struct doing){.event = event, .now = time, .time = time})) {
            model->applied++;
            model->clock = time > model->clock ? time : model->clock;
        }
    }
    bool ends = stage.has_frontier && stage.frontier.timestamp == INT64_MAX;
    int64_t frontier = !stage.has_frontier ? INT64_MIN : ends ? stage.reached : stage.frontier.timestamp;
    int64_t time = frontier;
    if (next != INT64_MAX && (!final || (stage.has_frontier && next <= stage.frontier.timestamp)))
        time = next > model->clock ? next : model->clock;
    model_fire(model, time, 0);
    static bool is_whole; /* all that has come is final: then come those of the end */
    is_whole = final ? next == INT64_MAX : is_whole;
    if (ends && is_whole)
        model_fire(model, INT64_MAX, model->stamp == 0 ? 1 : model->stamp);
    return model;
}

/* ---- looks ---- */

static void take_away(struct rows *rows, const uint64_t *row)
{
    uint64_t at = 0;
    while (at < rows->count && memcmp(rows->at[at], row, sizeof rows->at[at]) != 0)
        at++;
    CHECK(at < rows->count); /* it was told, and is there */
    memmove(&rows->at[at], &rows->at[at + 1], (--rows->count - at) * sizeof rows->at[at]);
}

static void add_row(struct rows *rows, const uint64_t *row)
{
    CHECK(rows->count < MOST_ROWS);
    memcpy(rows->at[rows->count++], row, sizeof rows->at[0]);
}

/* Of an event, as its source numbers them by row. */
static void check_key(const uint64_t *key, int64_t event)
{
    CHECK((int64_t)key[0] == stage.places[event].timestamp);
    CHECK((int64_t)key[1] == stage.places[event].source && (int64_t)key[2] == event);
}

/* The n-th row that was told, with its time; its key is that of its event, or says the number of its
 * timer. */
static const uint64_t *told_row(const uint64_t *rows, uint64_t n)
{
    static uint64_t whole[ROW];
    const uint64_t *key = rows + n * (SS_KEY_WORDS + ROW_WORDS), *row = key + SS_KEY_WORDS;
    memcpy(whole, row, ROW_WORDS * sizeof *row);
    whole[3] = key[0];
    if ((int64_t)row[0] < 0)
        CHECK(key[1] == 0 && key[2] == (row[0] ^ sign_bit));
    else
        check_key(key, (int64_t)row[0]);
    return whole;
}

static bool means_of(const uint64_t *image, const struct model *model, uint64_t container)
{
    const struct ss_container *of = &stage.containers[container];
    uint64_t last = 0, there = 0;
    if (image[of->header + SS_HEADER_COUNT] != model->count[container])
        return false;
    for (uint64_t at = 0; at < model->count[container]; at++) {
        const struct model_entry *entry = &model->entries[container][at];
        const uint64_t *found = NULL;
        for (uint64_t i = 0; i < of->room; i++) {
            const uint64_t *words = &image[of->region + i * of->entry_words];
            if (words[0] != 0 && words[1] == entry->key)
                found = words;
        }
        /* Stamps tell the order of insertions. */
        if (found == NULL || found[0] <= last || found[2] != entry->value ||
            (container == DICT && (int64_t)found[3] != entry->written))
            return false;
        last = found[0];
    }
    for (uint64_t i = 0; i < image[of->header + SS_HEADER_USED]; i++)
        there += image[of->region + i * of->entry_words] != 0;
    return there == model->count[container];
}

/* The words of an image mean what the sequential run says. */
static bool means(const uint64_t *image, const struct model *model)
{
    return memcmp(image, model->words, sizeof model->words) == 0 &&
           means_of(image, model, TIMERS) && means_of(image, model, DICT) &&
           image[HEADER + SS_HEADER_FIRED] == model->fired &&
           (int64_t)(image[HEADER + SS_HEADER_CLOCK] ^ sign_bit) == model->clock;
}

static bool holds_row(const struct rows *rows, const uint64_t *row)
{
    for (uint64_t at = 0; at < rows->count; at++)
        if (memcmp(rows->at[at], row, sizeof rows->at[at]) == 0)
            return true;
    return false;
}

/* The output of a job: firings have their times elsewhere. */
static bool has_emitted(const struct ss_outcome *outcome, const struct model *model)
{
    if (outcome->row_count != model->row_count)
        return false;
    uint64_t firing = 0;
    for (uint64_t i = 0; i < model->row_count; i++) {
        const uint64_t *row = outcome->rows + i * ROW_WORDS;
        if (memcmp(row, model->rows[i], ROW_WORDS * sizeof *row) != 0)
            return false;
        if ((int64_t)row[0] >= 0)
            continue;
        while (firing < outcome->firing_count &&
               outcome->firings[firing].number != (int64_t)(row[0] ^ sign_bit))
            firing++;
        if (firing == outcome->firing_count ||
            outcome->firings[firing].time != (int64_t)model->rows[i][3])
            return false;
    }
    return true;
}

/* With the turn: takes what is told, and compares. */
static void take_told(void)
{
    struct ss_outcome outcome = ss_engine_outcome(stage.engine);
    struct ss_early_told told = ss_engine_tell_early(stage.engine);
    stage.last = told;
    stage.is_settled = ss_engine_is_settled(stage.engine) && !outcome.failed;
    CHECK(!told.no_memory);
    CHECK(told.is_whole || told.news_count == 0);
    stage.voids += told.void_count;
    stage.news += told.news_count;
    for (uint64_t i = 0; i < told.void_count; i++)
        take_away(&stage.told, told_row(told.voids, i));
    for (uint64_t i = 0; i < told.kept_count; i++) {
        const uint64_t *row = told_row(told.kept, i);
        take_away(&stage.told, row);
        add_row(&stage.finals, row);
    }
    for (uint64_t i = 0; i < told.final_count; i++)
        add_row(&stage.finals, told_row(told.finals, i));
    for (uint64_t i = 0; i < told.news_count; i++)
        add_row(&stage.told, told_row(told.news, i));
    bool compares = told.is_whole && told.is_settled && stage.is_settled;
    bool waits = stage.engine->early->fires_in_place;
    ss_engine_told_early(stage.engine, told.is_whole);
    if (!compares)
        return;
    const struct model *model = run_model(told.has_final, told.final_to, true);
    CHECK(means(stage.state, model));
    CHECK(has_emitted(&outcome, model));
    CHECK(stage.finals.count == model->row_count);
    for (uint64_t i = 0; i < model->row_count; i++)
        CHECK(holds_row(&stage.finals, model->rows[i]));
    CHECK(outcome.consumed == model->applied);
    uint64_t final_rows = model->row_count;
    if (waits || stage.options.job.early_bytes != 0)
        return;
    model = run_model(told.has_applied, told.applied_to, false);
    CHECK(means(stage.engine->state, model));
    CHECK(stage.told.count == model->row_count - final_rows);
    for (uint64_t i = final_rows; i < model->row_count; i++)
        CHECK(holds_row(&stage.told, model->rows[i]));
}

static void look(void)
{
    ss_engine_take_turn(stage.engine);
    struct ss_outcome outcome = ss_engine_outcome(stage.engine);
    take_told();
    ss_engine_release_turn(stage.engine);
    if (outcome.failed) {
        stage.failed_row = outcome.failed_row;
        stage.failures += !outcome.timer_failed;
        stage.timer_failures += outcome.timer_failed;
        ss_engine_resume(stage.engine, outcome.failed_row);
    }
}

/* Everything that has come is applied, or waits until earlier events are final; and what is below the
 * frontier is final. */
static void settle(void)
{
    int64_t since = ss_now();
    for (bool settled = false; !settled;) {
        ss_engine_await_early(stage.engine, 50000000);
        look();
        settled = stage.last.is_settled && stage.last.is_whole && stage.is_settled;
        if (!settled)
            backoff();
        if (ss_now() - since > patience)
            fail("%s: early results do not settle", scenario);
    }
}

/* ---- the stage ---- */

static int32_t hook(void *context, const struct ss_occasion *occasion)
{
    (void)context;
    if (stage.call_count < CALLS)
        stage.calls[stage.call_count++] = (struct call){
            occasion->kind, occasion->row, occasion->reason, occasion->row_count,
            stage.engine->consumed};
    if (occasion->kind != SS_ON_COMMIT || occasion->row != stage.answers_to)
        return SS_PROCEED;
    stage.answers_to = -1;
    stage.refused[occasion->row] = stage.answer == SS_FAIL;
    return (int32_t)stage.answer;
}

static struct ss_engine *new_engine(uint64_t *state)
{
    stage.config.state = state;
    memset(state, 0, ALL_WORDS * sizeof *state);
    if (stage.options.clock != 0)
        state[HEADER + SS_HEADER_CLOCK] = (uint64_t)stage.options.clock ^ sign_bit;
    struct ss_engine *engine = ss_engine_new(&stage.config);
    CHECK(engine != NULL);
    ss_engine_set_entry(engine, SS_PLAIN, run_plain);
    ss_engine_set_entry(engine, SS_TRANSACTIONAL, run_transactional);
    ss_engine_set_entry(engine, SS_EAGER, run_transactional); /* never used */
    ss_engine_set_entry(engine, SS_TIMER, run_timer);
    if (stage.options.boosts)
        boosted_open(engine);
    return engine;
}

static void open_stage(const char *name, const row *events, const row *timers,
                       const struct place *places, int64_t count, struct options options)
{
    scenario = name;
    CHECK(count <= MOST_EVENTS);
    memset(&stage, 0, sizeof stage);
    stage.options = options;
    stage.events = events;
    stage.timers = timers;
    stage.places = places;
    stage.count = count;
    stage.columns[0] = stage.timestamps;
    stage.reached = INT64_MIN;
    stage.answers_to = stage.failed_row = -1;
    for (int64_t event = 0; event < count; event++) {
        int64_t at = event;
        stage.timestamps[event] = places[event].timestamp;
        for (; at > 0 && is_earlier(event, stage.order[at - 1]); at--)
            stage.order[at] = stage.order[at - 1];
        stage.order[at] = event;
    }
    uint64_t room = options.room == 0 ? ROOM : options.room;
    stage.containers[TIMERS] =
        (struct ss_container){SS_KEYED, HEADER, REGION, room, LIMIT, 1, WIDTH, 0, 1};
    stage.containers[DICT] = (struct ss_container){
        SS_KEYED, DICT_HEADER, DICT_REGION, ROOM, LIMIT, 1, DICT_WIDTH,
        options.times_expire == 0 ? EXPIRES : options.times_expire, 0};
    stage.config = (struct ss_config){.state_words = ALL_WORDS,
                                      .emit_words = ROW_WORDS,
                                      .threads = options.threads == 0 ? 1 : options.threads,
                                      .read_limit = LOG,
                                      .redo_limit = LOG,
                                      .emit_limit = 8,
                                      .protocol = options.protocol,
                                      .operations = options.boosts ? BOOSTED_OPERATIONS : 0,
                                      .boosted_first = BOOSTED,
                                      .boosted_end = options.boosts ? PLAIN : BOOSTED,
                                      .containers = stage.containers,
                                      .container_count = 2,
                                      .timers = 1};
    stage.engine = new_engine(stage.state);
    if (options.hooks)
        ss_engine_set_hook(stage.engine, SS_ON_ABORT | SS_ON_COMMIT | SS_ON_POST_COMMIT, hook, NULL);
    struct ss_job job = options.job;
    job.mode = SS_MODE_OPEN;
    job.chunk = job.chunk == 0 ? 1 : job.chunk;
    job.early_bytes = job.early_bytes == 0 ? UINT64_MAX : job.early_bytes;
    patience_note(stage.engine, "  %s", scenario);
    CHECK(ss_engine_start(stage.engine, &job));
    ss_engine_take_turn(stage.engine);
    take_told(); /* from now on it is kept */
    ss_engine_release_turn(stage.engine);
}

static struct ss_segment *send(int64_t first, int64_t last, bool tentative)
{
    struct ss_segment *segment = &stage.segments[stage.segment_count++];
    *segment = (struct ss_segment){.columns = stage.columns,
                                   .first = first,
                                   .last = last,
                                   .source = stage.places[first].source,
                                   .is_tentative = tentative};
    for (int64_t event = first; event < last; event++)
        stage.came[event] = true;
    stage.voids = stage.news = 0;
    CHECK(ss_engine_submit(stage.engine, segment));
    return segment;
}

static void come(int64_t first, int64_t last)
{
    send(first, last, false);
    settle();
}

static void withdraw(struct ss_segment *segment)
{
    stage.came[segment->first] = false;
    stage.voids = stage.news = 0;
    ss_engine_withdraw(stage.engine, segment);
}

static void advance(int64_t timestamp, int64_t source)
{
    stage.frontier = (struct ss_frontier){timestamp, source};
    stage.has_frontier = true;
    if (timestamp != INT64_MAX && timestamp > stage.reached)
        stage.reached = timestamp;
    ss_engine_advance(stage.engine, stage.frontier);
}

static void finish_to(int64_t timestamp)
{
    stage.voids = stage.news = 0;
    advance(timestamp, INT64_MAX);
    settle();
}

static struct ss_early_figures figures(void)
{
    return ss_engine_early_figures(stage.engine);
}

static bool revoked(uint64_t count, uint64_t republished, uint64_t rerun)
{
    struct ss_early_figures now = figures();
    return now.revoked == count && now.republished == republished && now.rerun == rerun;
}

static uint64_t all_runs(void)
{
    uint64_t sum = 0;
    for (int64_t event = 0; event < stage.count; event++)
        sum += stage.runs[event];
    return sum;
}

static uint64_t timers_fired(void)
{
    return (stage.engine != NULL ? ss_engine_statistics(stage.engine) : stage.ended).timers;
}

/* Rows of timers that were told and are not final, or are. */
static uint64_t firings_of(const struct rows *rows, uint64_t key)
{
    uint64_t count = 0;
    for (uint64_t at = 0; at < rows->count; at++)
        count += rows->at[at][1] == key;
    return count;
}

/* The number and time of the row of a timer. */
static bool was_told(const struct rows *rows, uint64_t key, uint64_t number, int64_t time)
{
    for (uint64_t at = 0; at < rows->count; at++)
        if (rows->at[at][1] == key && (rows->at[at][0] ^ sign_bit) == number &&
            (int64_t)rows->at[at][3] == time)
            return true;
    return false;
}

/* Each entry that was ever taken is there, is free, or at hand of a worker, and not twice. */
static void check_entries(uint64_t container)
{
    const struct ss_keyed *keyed = &stage.engine->keyed[container];
    const struct ss_container *of = &keyed->of;
    const uint64_t *image = stage.engine->state;
    uint64_t used = image[of->header + SS_HEADER_USED], there = 0, free = 0, lent = 0;
    bool seen[ROOM] = {false};
    for (uint64_t i = 0; i < used; i++)
        there += seen[i] = image[of->region + i * of->entry_words] != 0;
    for (uint64_t entry = keyed->free; entry != 0; entry = image[entry + SS_KEY_WORD], free++) {
        uint64_t at = (entry - of->region) / of->entry_words;
        CHECK(at < used && !seen[at]);
        seen[at] = true;
    }
    for (uint64_t i = 0; i < stage.engine->config.threads; i++)
        for (uint64_t j = 0; j < keyed->parts[i].count; j++, lent++) {
            uint64_t at = (keyed->parts[i].entries[j] - of->region) / of->entry_words;
            CHECK(at < used && !seen[at]);
            seen[at] = true;
        }
    CHECK(there + free + lent == used && keyed->lent == lent);
    /* What is undone in place leaves another number, and in the applied image only. */
    if (stage.failures + stage.timer_failures == 0)
        CHECK(image[of->header + SS_HEADER_CHANGES] == stage.state[of->header + SS_HEADER_CHANGES]);
}

static void stop_job(struct ss_engine *engine)
{
    int64_t since = ss_now();
    ss_engine_stop(engine);
    while (!ss_engine_wait(engine, 50))
        if (ss_now() - since > patience)
            fail("%s: the job does not end", scenario);
}

/* The same events in an open job without early results: all that it leaves is the same. */
static void compare_with_plain_job(const struct model *model)
{
    struct ss_engine *engine = new_engine(stage.other);
    struct ss_job job = {.chunk = 3, .mode = SS_MODE_OPEN};
    CHECK(ss_engine_start(engine, &job));
    stage.segment_count = 0;
    for (int64_t i = 0; i < stage.count; i++) {
        int64_t event = stage.order[i];
        if (!stage.came[event])
            continue;
        struct ss_segment *segment = &stage.segments[stage.segment_count++];
        *segment = (struct ss_segment){.columns = stage.columns,
                                       .first = event,
                                       .last = event + 1,
                                       .source = stage.places[event].source};
        CHECK(ss_engine_submit(engine, segment));
    }
    if (stage.reached != INT64_MIN)
        ss_engine_advance(engine, (struct ss_frontier){stage.reached, INT64_MAX});
    ss_engine_advance(engine, (struct ss_frontier){INT64_MAX, INT64_MAX});
    int64_t since = ss_now();
    for (bool settled = false; !settled;) {
        ss_engine_await(engine, 50000000);
        ss_engine_take_turn(engine);
        struct ss_outcome outcome = ss_engine_outcome(engine);
        settled = ss_engine_is_settled(engine) && !outcome.failed;
        ss_engine_release_turn(engine);
        if (outcome.failed)
            ss_engine_resume(engine, outcome.failed_row);
        if (ss_now() - since > patience)
            fail("%s: the plain job does not settle", scenario);
    }
    stop_job(engine);
    struct ss_outcome outcome = ss_engine_outcome(engine);
    CHECK(means(stage.other, model));
    CHECK(has_emitted(&outcome, model));
    ss_engine_free(engine);
}

/* Everything becomes final. */
static void close_stage(void)
{
    if (!stage.has_frontier || stage.frontier.timestamp != INT64_MAX)
        finish_to(INT64_MAX); /* once: a second end would fire what was set at the first */
    CHECK(stage.told.count == 0);
    CHECK(figures().transactions == 0 && figures().bytes == 0);
    ss_engine_take_turn(stage.engine);
    check_entries(TIMERS);
    check_entries(DICT);
    ss_engine_release_turn(stage.engine);
    for (uint64_t i = 0; i < stage.segment_count; i++)
        CHECK(stage.segments[i].left == 0 && stage.segments[i].untold == 0);
    stop_job(stage.engine);
    struct ss_key end = {INT64_MAX, INT64_MAX, INT64_MAX};
    const struct model *model = run_model(true, end, true);
    CHECK(means(stage.state, model));
    compare_with_plain_job(model);
    stage.ended = ss_engine_statistics(stage.engine);
    ss_engine_free(stage.engine);
    stage.engine = NULL;
    patience_note(NULL, "  between two engines");
}

/* ---- timers ---- */

static const struct place five[] = {{10, 0}, {20, 0}, {30, 0}, {40, 0}, {50, 0},
                                    {5, 1},  {15, 1}, {25, 1}, {35, 1}, {10, 1}};
enum { AT_5 = 5, AT_15, AT_25, AT_35, AT_10, TEN };
static const struct options plain = {0};

/* Before the next event, and its rows are told early. */
static void fires_early(void)
{
    static const row events[] = {{SET_TIMER(1, 5), EMIT}, {READ(7), PUT(1), EMIT}, {ADD(0, 1), EMIT},
                                 {READ(7), EMIT}, {ADD(0, 1)}, [AT_15] = {ADD(2, 1)},
                                 [AT_5] = {SET_TIMER(2, 3)}, [AT_25] = {READ(7), EMIT}};
    open_stage("a timer fires in the region", events, NULL, five, TEN, plain);
    come(0, 1);
    CHECK(stage.fired[1] == 0 && stage.told.count == 1 && figures().transactions == 1);
    CHECK(ss_timers_next(stage.engine->timers) == 15);
    come(1, 2);
    CHECK(stage.fired[1] == 1 && figures().transactions == 3 && stage.news == 2);
    CHECK(was_told(&stage.told, 1, 0, 15) && stage.voids == 0);
    CHECK(timers_fired() == 0); /* it is not final */
    come(2, 5);
    CHECK(stage.fired[1] == 1 && figures().transactions == 6 && all_runs() == 5);
    come(AT_25, AT_25 + 1);
    CHECK(stage.fired[1] == 1 && revoked(3, 3, 0) && all_runs() == 6);
    /* Right behind it: whether it is still due has to be seen again. */
    come(AT_15, AT_15 + 1);
    CHECK(stage.fired[1] == 2 && revoked(8, 8, 0) && all_runs() == 7);
    CHECK(was_told(&stage.told, 1, 0, 15));
    /* Another one fires before: now it is the second. */
    come(AT_5, AT_5 + 1);
    CHECK(stage.fired[1] == 3 && stage.fired[2] == 1);
    CHECK(was_told(&stage.told, 2, 0, 8) && was_told(&stage.told, 1, 1, 15));
    CHECK(firings_of(&stage.told, 1) == 1 && firings_of(&stage.told, 2) == 1);
    /* Three have read how many there were; one firing is among what was revoked. */
    CHECK(revoked(8 + 8, 8 + 4, 3) && all_runs() == 8 + 3);
    finish_to(30);
    CHECK(timers_fired() == 2 && was_told(&stage.finals, 1, 1, 15));
    close_stage();
    CHECK(timers_fired() == 2 && all_runs() == 11);
}

/* Its time depends on what a late event changes; that it is not due any more, as well. */
static void fires_anew(void)
{
    static const row events[] = {{SET_TIMER_BY(0), EMIT}, {ADD(1, 1), EMIT}, {READ(7), EMIT},
                                 {ADD(1, 1), EMIT}, {READ(7), EMIT}, [AT_5] = {ADD(0, 3)},
                                 [AT_25] = {CANCEL(1)}, [AT_15] = {CANCEL(1)}};
    open_stage("at another time", events, NULL, five, TEN, plain);
    come(0, 5);
    CHECK(stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 11));
    come(AT_5, AT_5 + 1);
    CHECK(stage.fired[1] == 2 && was_told(&stage.told, 1, 0, 14) && stage.told.count == 6);
    CHECK(revoked(6, 4, 1) && stage.runs[0] == 2 && all_runs() == 7);
    close_stage();

    static const row sets[] = {{SET_TIMER(1, 15), EMIT}, {ADD(1, 1), EMIT}, {READ(7), EMIT},
                               {ADD(1, 1), EMIT}, {READ(7), EMIT}, [AT_15] = {CANCEL(1)},
                               [AT_25] = {CANCEL(1)}};
    open_stage("cancelled by a late event", sets, NULL, five, TEN, plain);
    come(0, 5);
    CHECK(stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 25));
    come(AT_25, AT_25 + 1); /* which is too late for that */
    CHECK(stage.fired[1] == 2 && revoked(3, 3, 0));
    come(AT_15, AT_15 + 1);
    CHECK(stage.fired[1] == 2 && firings_of(&stage.told, 1) == 0 && stage.voids == 3);
    CHECK(stage.runs[2] == 2 && stage.runs[4] == 2 && stage.runs[1] == 1 && stage.runs[3] == 1);
    close_stage();
    CHECK(timers_fired() == 0);
}

static void is_final_in_order(void)
{
    static const row events[] = {{SET_TIMER(1, 5), EMIT}, {READ(7), EMIT}, {ADD(0, 1), EMIT},
                                 [AT_10] = {ADD(2, 1), EMIT}};
    open_stage("final when the frontier is there", events, NULL, five, TEN, plain);
    come(0, 3);
    finish_to(14);
    CHECK(stage.finals.count == 1 && timers_fired() == 0 && figures().transactions == 3);
    CHECK(stage.state[7] == 0 && stage.engine->state[7] == 1);
    CHECK((int64_t)(stage.state[HEADER + SS_HEADER_CLOCK] ^ sign_bit) == 10);
    finish_to(15);
    CHECK(stage.finals.count == 2 && timers_fired() == 1 && figures().transactions == 2);
    CHECK(stage.state[7] == 1 && stage.state[HEADER + SS_HEADER_FIRED] == 1);
    CHECK((int64_t)(stage.state[HEADER + SS_HEADER_CLOCK] ^ sign_bit) == 15);
    CHECK(stage.fired[1] == 1 && was_told(&stage.finals, 1, 0, 15));
    CHECK(stage.last.final_to.timestamp == 10 && stage.last.final_to.source == 0);
    close_stage();

    open_stage("not before an earlier one", events, NULL, five, TEN, plain);
    come(0, 1);
    struct ss_segment *guess = send(AT_10, AT_10 + 1, true);
    come(1, 3);
    CHECK(stage.told.count == 5);
    finish_to(17);
    CHECK(stage.finals.count == 1 && timers_fired() == 0);
    ss_engine_confirm(stage.engine, guess);
    settle();
    CHECK(stage.finals.count == 3 && timers_fired() == 1 && stage.fired[1] == 1);
    close_stage();
    CHECK(stage.fired[1] == 1 && all_runs() == 4);

    /* Nobody knows of a next event, only that none comes before. */
    open_stage("fired by the frontier", events, NULL, five, TEN, plain);
    come(0, 1);
    finish_to(14);
    CHECK(stage.fired[1] == 0);
    finish_to(15);
    CHECK(stage.fired[1] == 1 && stage.finals.count == 2);
    close_stage();

    open_stage("fired by the frontier, behind what waits", events, NULL, five, TEN, plain);
    guess = send(AT_10, AT_10 + 1, true);
    come(0, 1);
    finish_to(16);
    CHECK(stage.fired[1] == 1 && stage.told.count == 2 && timers_fired() == 0);
    CHECK(stage.finals.count == 1);
    withdraw(guess);
    settle();
    CHECK(timers_fired() == 1 && stage.finals.count == 2);
    close_stage();
}

/* It has fired for an event that never was. */
static void fired_for_nothing(void)
{
    static const row events[] = {{SET_TIMER(1, 5), EMIT}, {READ(7), EMIT}, {FILL_UNLESS(0, 7), EMIT},
                                 {EMIT}};
    open_stage("the event that it fired for is withdrawn", events, NULL, five, TEN, plain);
    come(0, 1);
    struct ss_segment *guess = send(1, 2, true);
    settle();
    CHECK(was_told(&stage.told, 1, 0, 15) && stage.fired[1] == 1);
    withdraw(guess);
    settle();
    CHECK(stage.told.count == 1 && stage.voids == 2 && figures().transactions == 1);
    CHECK(ss_timers_next(stage.engine->timers) == 15);
    CHECK(stage.engine->state[HEADER + SS_HEADER_COUNT] == 1);
    come(3, 4);
    CHECK(stage.fired[1] == 2 && was_told(&stage.told, 1, 0, 15));
    close_stage();

    open_stage("it was not applied itself", events, NULL, five, TEN, plain);
    come(0, 1);
    guess = send(2, 3, true);
    settle();
    CHECK(stage.fired[1] == 1 && stage.told.count == 2 && figures().transactions == 2);
    withdraw(guess);
    settle();
    CHECK(stage.told.count == 1 && figures().transactions == 1);
    close_stage();
}

static void await(const char *what, bool (*is_so)(void))
{
    int64_t since = ss_now();
    while (!is_so()) {
        backoff();
        if (ss_now() - since > patience)
            fail("%s: %s", scenario, what);
    }
}

static bool one_stands(void)
{
    return stage.arrived == 1;
}

static bool one_was_revoked(void)
{
    return figures().passes == 1;
}

/* The event is withdrawn while the timer fires for it, or while it runs behind. */
static void withdrawn_meanwhile(void)
{
    static const row events[] = {{SET_TIMER(1, 5), EMIT}, {EMIT}, {STOP(0), EMIT}, {EMIT}};
    static const row timers[KEYS + 1] = {[1] = {STOP(0), ADD(7, 1), EMIT}};
    open_stage("withdrawn while the timer fires", events, timers, five, TEN, plain);
    come(0, 1);
    struct ss_segment *guess = send(1, 2, true);
    await("no timer fires", one_stands);
    withdraw(guess);
    stage.allowed = UINT64_MAX;
    settle();
    CHECK(stage.fired[1] == 1 && stage.told.count == 1 && figures().transactions == 1);
    CHECK(ss_timers_next(stage.engine->timers) == 15 && stage.runs[1] == 0);
    close_stage();

    open_stage("withdrawn while it runs behind", events, NULL, five, TEN,
               (struct options){.threads = 2, .job = {.horizon = 4}});
    come(0, 1);
    guess = send(2, 3, true);
    await("the event does not run", one_stands);
    withdraw(guess);
    await("nothing is revoked", one_was_revoked);
    stage.allowed = UINT64_MAX;
    settle();
    CHECK(stage.fired[1] == 1 && stage.told.count == 1 && figures().transactions == 1);
    close_stage();
}

/* What has been cancelled or set anew, and comes back: the heap knows it again. */
static void heap_is_brought_back(void)
{
    static const row events[] = {{SET_TIMER(1, 15), EMIT}, {CANCEL(1)}, {READ(7), EMIT},
                                 {SET_TIMER(1, 5)}, {READ(7), EMIT}, [AT_5] = {ADD(0, 1)},
                                 [AT_35] = {READ(7), EMIT}};
    open_stage("no longer cancelled", events, NULL, five, TEN, plain);
    come(0, 1);
    struct ss_segment *guess = send(1, 2, true);
    come(2, 3);
    CHECK(stage.fired[1] == 0 && stage.engine->timers->count == 0);
    withdraw(guess);
    settle();
    CHECK(stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 25) && stage.runs[2] == 2);
    close_stage();

    open_stage("set, cancelled and set, published again", events, NULL, five, TEN, plain);
    come(0, 5);
    CHECK(stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 45));
    come(AT_5, AT_5 + 1);
    CHECK(stage.fired[1] == 2 && revoked(6, 5, 0) && all_runs() == 6);
    CHECK(was_told(&stage.told, 1, 0, 45));
    close_stage();

    static const row anew[] = {{SET_TIMER(1, 15), EMIT}, {SET_TIMER(1, 25)}, {READ(7), EMIT},
                               {READ(7), EMIT}, {READ(7), EMIT}};
    open_stage("no longer set anew", anew, NULL, five, TEN, plain);
    come(0, 1);
    guess = send(1, 2, true);
    come(2, 5);
    CHECK(stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 45));
    withdraw(guess);
    settle();
    CHECK(stage.fired[1] == 2 && was_told(&stage.told, 1, 0, 25));
    CHECK(stage.runs[2] == 2 && stage.runs[3] == 2 && stage.runs[4] == 1);
    close_stage();

    static const row many[] = {
        {SET_TIMER(1, 15), SET_TIMER(2, 14), SET_TIMER(3, 16), SET_TIMER(4, 17), SET_TIMER(5, 18),
         SET_TIMER(6, 19), SET_TIMER(7, 19), EMIT},
        {CANCEL(1), CANCEL(4), CANCEL(2), CANCEL(3), CANCEL(6), CANCEL(7), CANCEL(5)},
        {EMIT}};
    open_stage("again and again", many, NULL, five, TEN, plain);
    come(0, 1);
    for (int times = 0; times < 100; times++) {
        guess = send(1, 2, true);
        settle();
        withdraw(guess);
        settle();
    }
    CHECK(stage.engine->timers->count < 90 && ss_timers_next(stage.engine->timers) == 24);
    come(2, 3);
    CHECK(stage.fired[1] == 1 && was_told(&stage.told, 1, 1, 25) && stage.fired[2] == 1);
    close_stage();
    CHECK(stage.fired[1] == 1 && stage.fired[2] == 1);
}

/* Set for a time that has passed: it fires right behind, at the time of its setter. */
static void overdue(void)
{
    static const row events[] = {{SET_TIMER(1, -4), EMIT}, {READ(7), EMIT}, {EMIT},
                                 [AT_10] = {READ(7), EMIT}, [AT_5] = {READ(7), EMIT}};
    open_stage("an overdue timer", events, NULL, five, TEN, plain);
    come(0, 1);
    CHECK(stage.fired[1] == 0);
    come(1, 3);
    CHECK(stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 10));
    struct ss_applied *applied = ss_applied_at(stage.engine->early, 1);
    CHECK(applied->of_time && applied->first.timestamp == 10 && applied->first.source == 0);
    come(AT_10, AT_10 + 1); /* which belongs behind it */
    CHECK(stage.fired[1] == 2 && revoked(2, 2, 0) && all_runs() == 4);
    come(AT_5, AT_5 + 1);
    CHECK(stage.fired[1] == 3 && revoked(2 + 5, 2 + 4, 0) && all_runs() == 5);
    finish_to(9);
    CHECK(timers_fired() == 0);
    advance(10, 0);
    settle();
    CHECK(timers_fired() == 1 && stage.finals.count == 3);
    close_stage();
}

/* The input had ended in an earlier job, and events are before the clock: a timer is due by that. */
static void before_the_clock(void)
{
    static const row events[] = {{SET_TIMER(1, 60), EMIT}, {READ(7), EMIT}, {SET_TIMER(2, 80), EMIT},
                                 [AT_15] = {READ(7), EMIT}};
    open_stage("events are before the clock", events, NULL, five, TEN, (struct options){.clock = 90});
    come(0, 1);
    CHECK(stage.fired[1] == 0);
    come(1, 2);
    CHECK(stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 90));
    come(2, 4);
    CHECK(stage.fired[2] == 0);
    come(AT_15, AT_15 + 1);
    CHECK(stage.fired[1] == 2 && revoked(4, 3, 0) && was_told(&stage.told, 1, 0, 90));
    close_stage();
    CHECK(timers_fired() == 2);
}

/* A timer that raises is applied as its removal, and fired once more when it is final. */
static void raises(void)
{
    static const row events[] = {{SET_TIMER(1, 5), SET_TIMER(2, 15), EMIT}, {READ(7), EMIT},
                                 {READ(0), EMIT}, {ADD(1, 1), EMIT}, [AT_5] = {WRITE(0, 1)},
                                 [AT_25] = {EMIT}};
    static const row timers[KEYS + 1] = {[1] = {ADD(7, 1), EMIT, KEEP(3, 3), SET_TIMER(5, 5),
                                                RAISE_UNLESS(0, 1)}};
    open_stage("a timer raises", events, timers, five, TEN, plain);
    come(0, 4);
    CHECK(stage.fired[1] == 1 && stage.fired[2] == 1 && stage.fired[5] == 0);
    CHECK(firings_of(&stage.told, 1) == 0 && was_told(&stage.told, 2, 1, 25));
    CHECK(figures().transactions == 6 && stage.engine->state[HEADER + SS_HEADER_COUNT] == 0);
    finish_to(14);
    CHECK(stage.timer_failures == 0 && stage.fired[1] == 1);
    finish_to(15);
    CHECK(stage.timer_failures == 1 && stage.failures == 0);
    CHECK(stage.failed_row == SS_NO_ROW_FOR_TIMER && stage.fired[1] == 2 && stage.fired[2] == 2);
    CHECK(timers_fired() == 1 && was_told(&stage.told, 2, 1, 25));
    come(AT_25, AT_25 + 1);
    close_stage();
    CHECK(stage.timer_failures == 1 && stage.failures == 0 && timers_fired() == 2);
    CHECK(stage.fired[1] == 2);

    open_stage("it does not raise after all", events, timers, five, TEN, plain);
    come(0, 4);
    come(AT_5, AT_5 + 1);
    CHECK(stage.fired[1] == 2 && was_told(&stage.told, 1, 0, 15) && was_told(&stage.told, 5, 1, 20));
    CHECK(was_told(&stage.told, 2, 2, 25));
    close_stage();
    CHECK(stage.timer_failures == 0 && timers_fired() == 3);

    /* One raises among those that are final at once. */
    open_stage("two raise, and an event", events, timers, five, TEN, plain);
    come(0, 4);
    close_stage();
    CHECK(stage.timer_failures == 1 && stage.fired[1] == 2);
}

/* ---- between the events of a chunk ---- */

static void divides(void)
{
    static const row events[] = {{SET_TIMER(1, 15), EMIT}, {READ(7), EMIT}, {READ(7), EMIT},
                                 {ADD(0, 1), EMIT}, {ADD(0, 1), EMIT}, [AT_15] = {SET_TIMER(2, 10)}};
    struct options by_four = {.job = {.chunk = 4}};
    open_stage("its own timer divides a chunk", events, NULL, five, TEN, by_four);
    come(0, 4);
    struct ss_statistics statistics = ss_engine_statistics(stage.engine);
    CHECK(statistics.aborts[SS_ABORT_TIMER] == 1 && all_runs() == 8);
    CHECK(figures().transactions == 5 && stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 25));
    close_stage();

    open_stage("one that was set before divides it", events, NULL, five, TEN, by_four);
    come(0, 1);
    come(1, 5);
    CHECK(ss_engine_statistics(stage.engine).aborts[SS_ABORT_TIMER] == 1 && all_runs() == 9);
    CHECK(figures().transactions == 6 && was_told(&stage.told, 1, 0, 25));
    close_stage();

    open_stage("a late one divides it", events, NULL, five, TEN, by_four);
    come(1, 5);
    CHECK(figures().transactions == 1 && all_runs() == 4);
    come(AT_15, AT_15 + 1);
    CHECK(was_told(&stage.told, 2, 0, 25) && figures().transactions == 6);
    CHECK(revoked(1, 0, 1) && all_runs() == 4 + 1 + 4 + 4);
    close_stage();

    open_stage("before a chunk", events, NULL, five, TEN, by_four);
    come(0, 1);
    come(2, 4);
    CHECK(was_told(&stage.told, 1, 0, 25) && figures().transactions == 3 && all_runs() == 3);
    close_stage();
}

/* ---- the end of the input ---- */

static void ends(void)
{
    static const row events[] = {{SET_TIMER(1, 100), SET_TIMER(4, 60), EMIT}, {READ(7), EMIT},
                                 {ADD(0, 1), EMIT}};
    static const row timers[KEYS + 1] = {[1] = {ADD(7, 1), EMIT, SET_TIMER(2, 50)}};
    open_stage("the end fires once", events, timers, five, TEN, plain);
    come(0, 3);
    CHECK(stage.fired[1] == 0 && stage.fired[4] == 0);
    finish_to(60);
    CHECK(stage.fired[1] == 0 && figures().transactions == 0);
    finish_to(75);
    CHECK(stage.fired[4] == 1 && stage.fired[1] == 0);
    ss_engine_take_turn(stage.engine);
    CHECK(ss_engine_is_settled(stage.engine));
    advance(INT64_MAX, INT64_MAX);
    CHECK(!ss_engine_is_settled(stage.engine));
    ss_engine_release_turn(stage.engine);
    settle();
    close_stage();
    CHECK(stage.fired[1] == 1 && stage.fired[2] == 0 && timers_fired() == 2);
    CHECK(was_told(&stage.finals, 1, 1, 110));
    CHECK(stage.state[HEADER + SS_HEADER_COUNT] == 1); /* what it has set stays */

    open_stage("not before all is final", events, timers, five, TEN, plain);
    come(0, 1);
    struct ss_segment *guess = send(1, 2, true);
    come(2, 3);
    finish_to(INT64_MAX);
    CHECK(stage.fired[1] == 0 && stage.fired[4] == 0 && stage.finals.count == 1);
    ss_engine_confirm(stage.engine, guess);
    settle();
    CHECK(stage.fired[1] == 1 && stage.fired[4] == 1 && stage.fired[2] == 0);
    close_stage();
    CHECK(stage.fired[1] == 1 && timers_fired() == 2);
}

/* ---- what is full ---- */

/* What was removed is free when that is final: a firing that finds no entry waits until then. */
static void waits_for_room(void)
{
#define SET_ALL                                                                                    \
    {SET_TIMER(2, 500), SET_TIMER(3, 500), SET_TIMER(4, 500), SET_TIMER(5, 500),                   \
     SET_TIMER(6, 500), SET_TIMER(7, 500), SET_TIMER(8, 500)}
#define CANCEL_ALL {CANCEL(2), CANCEL(3), CANCEL(4), CANCEL(5), CANCEL(6), CANCEL(7), CANCEL(8)}
    static const row events[] = {{SET_TIMER(1, 15), EMIT}, SET_ALL, {READ(7), EMIT}, {READ(7), EMIT},
                                 [AT_10] = CANCEL_ALL, [AT_15] = SET_ALL, [AT_25] = CANCEL_ALL};
    static const row timers[KEYS + 1] = {
        [1] = {ADD(7, 1), SET_TIMER(2, 500), SET_TIMER(3, 500), SET_TIMER(4, 500), SET_TIMER(5, 500),
               EMIT}};
    static const struct place places[] = {{10, 0}, {11, 0}, {30, 0}, {40, 0}, {50, 0},
                                          {5, 1},  {13, 1}, {14, 1}, {35, 1}, {12, 1}};
    struct options full = {.room = LIMIT + 8};
    open_stage("a firing finds no room", events, timers, places, TEN, full);
    come(0, 2);
    come(AT_10, AT_10 + 1);
    come(AT_15, AT_15 + 1);
    come(AT_25, AT_25 + 1);
    CHECK(figures().transactions == 5 && figures().revoked == 0);
    come(2, 4);
    CHECK(stage.engine->early->fires_in_place && stage.fired[1] == 1);
    CHECK(stage.last.applied_to.timestamp == 14 && stage.told.count == 1 && stage.runs[2] == 0);
    CHECK(stage.engine->state[HEADER + SS_HEADER_COUNT] == 1 && stage.engine->state[7] == 0);
    CHECK(stage.engine->state[HEADER + SS_HEADER_FIRED] == 0);
    come(AT_5, AT_5 + 1); /* which changes nothing, but who knows */
    CHECK(stage.fired[1] == 2 && stage.engine->early->fires_in_place && stage.runs[2] == 0);
    finish_to(24);
    CHECK(stage.fired[1] == 2 && stage.runs[2] == 0 && figures().transactions == 0);
    finish_to(25);
    CHECK(stage.fired[1] == 3 && was_told(&stage.finals, 1, 0, 25) && stage.runs[2] == 1);
    CHECK(!stage.engine->early->fires_in_place && timers_fired() == 1);
    CHECK(stage.last.applied_to.timestamp == 40 && stage.told.count == 2);
    close_stage();

    open_stage("what was applied behind gives way", events, timers, places, TEN, full);
    come(0, 2);
    come(AT_10, AT_10 + 1);
    come(2, 4);
    CHECK(stage.fired[1] == 1 && stage.told.count == 4 && figures().transactions == 6);
    uint64_t runs = stage.runs[2];
    /* It leaves fewer entries than the firing needs, and what that has removed itself is not free. */
    come(AT_15, AT_15 + 1);
    CHECK(stage.fired[1] == 2 && stage.engine->early->fires_in_place);
    CHECK(stage.told.count == 1 && stage.voids == 3 && stage.runs[2] == runs);
    CHECK(figures().transactions == 4 && stage.engine->early->count == 4);
    close_stage();
    CHECK(stage.fired[1] == 3 && stage.runs[2] == runs + 1);
}

/* A bound of bytes holds a firing back as it does an event. */
static void bound(void)
{
    static const row events[] = {{SET_TIMER(1, 5), EMIT}, {READ(7), EMIT}, {ADD(0, 1), EMIT},
                                 {ADD(0, 1), EMIT}, [AT_5] = {ADD(7, 1), EMIT}};
    open_stage("a bound of bytes", events, NULL, five, TEN, (struct options){.job = {.early_bytes = 1}});
    come(0, 4);
    CHECK(figures().transactions == 1 && stage.fired[1] == 0 && stage.runs[1] == 0);
    come(AT_5, AT_5 + 1);
    CHECK(figures().transactions == 1 && stage.last.applied_to.timestamp == 5);
    finish_to(10);
    CHECK(figures().transactions == 1 && stage.fired[1] == 1 && stage.runs[1] == 0);
    finish_to(15);
    CHECK(timers_fired() == 1 && stage.runs[1] == 1);
    close_stage();
    CHECK(stage.fired[1] == 1);
}

/* What runs in place follows a firing, and leaves the clock in both images. */
static void barriers(void)
{
    static const row events[] = {{SET_TIMER(1, 5), EMIT}, {FILL_UNLESS(0, 7), KEEP(1, 1), EMIT},
                                 {READ(7), SET_TIMER(2, 1), EMIT}, {READ(7), EMIT}};
    open_stage("a log is full behind a firing", events, NULL, five, TEN, plain);
    come(0, 4);
    CHECK(stage.last.applied_to.timestamp == 10 && was_told(&stage.told, 1, 0, 15));
    CHECK(stage.fired[1] == 1 && stage.runs[2] == 0);
    finish_to(15);
    CHECK(timers_fired() == 1 && stage.runs[2] == 0);
    finish_to(20);
    CHECK(stage.last.applied_to.timestamp == 40 && was_told(&stage.told, 2, 1, 31));
    CHECK((int64_t)(stage.state[HEADER + SS_HEADER_CLOCK] ^ sign_bit) == 20);
    close_stage();
}

/* ---- entries that expire ---- */

static bool is_kept(const uint64_t *image, uint64_t key)
{
    for (uint64_t i = 0; i < ROOM; i++)
        if (image[DICT_REGION + i * DICT_WIDTH] != 0 && image[DICT_REGION + i * DICT_WIDTH + 1] == key)
            return true;
    return false;
}

static void expires(void)
{
    static const row events[] = {{KEEP(1, 5), EMIT}, {SEE(1), EMIT}, {SEE(1), EMIT}, {SEE(1), EMIT},
                                 {SEE(1), EMIT}, [AT_15] = {ADD(0, 1)}, [AT_25] = {KEEP(1, 6)},
                                 [AT_5] = {SEE(1)}, [AT_35] = {ADD(0, 1)}};
    open_stage("an entry expires in the region", events, NULL, five, TEN, plain);
    come(0, 2);
    CHECK(is_kept(stage.engine->state, 1) && figures().transactions == 2);
    come(2, 5);
    CHECK(!is_kept(stage.engine->state, 1) && figures().transactions == 6 && stage.told.count == 5);
    CHECK(stage.engine->keyed[DICT].free == 0);
    come(AT_15, AT_15 + 1); /* it comes back, and goes again */
    CHECK(!is_kept(stage.engine->state, 1) && revoked(5, 4, 0) && all_runs() == 6);
    CHECK(figures().transactions == 7);
    /* It goes, and comes anew: whoever has not seen it sees it now. */
    come(AT_25, AT_25 + 1);
    CHECK(revoked(5 + 3, 4 + 2, 1) && stage.runs[2] == 2 && stage.runs[3] == 1);
    CHECK(stage.voids == 1 && stage.news == 1 && figures().transactions == 9);
    finish_to(24);
    CHECK(is_kept(stage.state, 1) && stage.engine->keyed[DICT].free == 0);
    finish_to(25);
    CHECK(stage.engine->keyed[DICT].free != 0 && timers_fired() == 0);
    CHECK(is_kept(stage.state, 1)); /* as it was written anew at that time */
    finish_to(39);
    CHECK(is_kept(stage.state, 1) && stage.state[DICT_HEADER] == 1);
    finish_to(40);
    CHECK(!is_kept(stage.state, 1) && stage.state[DICT_HEADER] == 0);
    close_stage();
    CHECK(all_runs() == 8 && stage.state[HEADER + SS_HEADER_FIRED] == 0);

    static const row written[] = {{KEEP(1, 5), EMIT}, {KEEP(1, 6), EMIT}, {SEE(1), EMIT},
                                  {SEE(1), EMIT}};
    open_stage("it was not written again", written, NULL, five, TEN, plain);
    come(0, 1);
    struct ss_segment *guess = send(1, 2, true);
    come(2, 4);
    CHECK(figures().transactions == 5 && stage.runs[2] == 1);
    withdraw(guess);
    settle();
    CHECK(stage.runs[2] == 2 && stage.runs[3] == 1 && figures().transactions == 4);
    close_stage();

    open_stage("nobody but the frontier says so", written, NULL, five, TEN, plain);
    come(0, 1);
    finish_to(24);
    CHECK(is_kept(stage.engine->state, 1) && is_kept(stage.state, 1));
    finish_to(25);
    CHECK(!is_kept(stage.engine->state, 1) && !is_kept(stage.state, 1));
    CHECK(stage.engine->keyed[DICT].free != 0);
    close_stage();
}

/* What a firing has written expires; what has expired a firing does not see. */
static void expires_among_firings(void)
{
    static const row events[] = {{KEEP(1, 5), SET_TIMER(1, 14), SET_TIMER(2, 15)}, {SEE(1), EMIT},
                                 {SEE(1), SEE(3), EMIT}, {SEE(3), EMIT}, [AT_15] = {KEEP(1, 6)}};
    static const row timers[KEYS + 1] = {[1] = {SEE(1), KEEP(3, 1), EMIT}, [2] = {SEE(1), EMIT}};
    open_stage("firings and entries", events, timers, five, TEN, plain);
    come(0, 4);
    CHECK(stage.told.count == 5 && stage.fired[1] == 1 && stage.fired[2] == 1);
    CHECK(figures().transactions == 4 + 2 + 2); /* two firings, two that go */
    CHECK(was_told(&stage.told, 1, 0, 24) && was_told(&stage.told, 2, 1, 25));
    come(AT_15, AT_15 + 1);
    CHECK(stage.fired[1] == 2 && stage.fired[2] == 2 && figures().transactions == 9);
    finish_to(24);
    CHECK(timers_fired() == 1);
    close_stage();
}

/* ---- boosted structures ---- */

static void boosted(void)
{
    static const row events[] = {{BOOST(BOOSTED_INSERT, 3), EMIT}, {BOOST(BOOSTED_INSERT, 3), EMIT},
                                 {BOOST(BOOSTED_REMOVE, 3), ADD(0, 1), EMIT},
                                 {EMIT, BOOST(BOOSTED_EXCHANGE, 30), EMIT}, /* raises halfway */
                                 {BOOST(BOOSTED_CONTAINS, 3), BOOST(BOOSTED_EXCHANGE, 6), EMIT},
                                 [AT_15] = {BOOST(BOOSTED_REMOVE, 3), EMIT}, [AT_25] = {ADD(0, 1)},
                                 [AT_35] = {BOOST(BOOSTED_INSERT, 3), SET_TIMER(1, 5), KEEP(2, 2)}};
    struct options boosts = {.boosts = true, .times_expire = 100, .job = {.chunk = 4}};
    open_stage("boosted structures", events, NULL, five, TEN, boosts);
    come(0, 5);
    CHECK(figures().transactions == 5 && all_runs() == 5 && stage.told.count == 4);
    CHECK(stage.failures == 0 && stage.state[BOOSTED] == 0);
    struct ss_statistics statistics = ss_engine_statistics(stage.engine);
    CHECK(statistics.speculative_runs == 0 && statistics.commits == 0);
    come(AT_15, AT_15 + 1);
    /* They leave no log: all of them run again. */
    CHECK(revoked(4, 0, 4) && all_runs() == 5 + 5 && stage.told.count == 5);
    come(AT_35, AT_35 + 1);
    CHECK(revoked(6, 0, 6) && stage.fired[1] == 1 && was_told(&stage.told, 1, 0, 40));
    come(AT_25, AT_25 + 1);
    CHECK(stage.fired[1] == 2 && is_kept(stage.engine->state, 2) && !is_kept(stage.state, 2));
    finish_to(39);
    CHECK(stage.failures == 0 && stage.state[BOOSTED] == 1 && is_kept(stage.state, 2));
    finish_to(40);
    CHECK(stage.failures == 1 && stage.failed_row == 3 && timers_fired() == 1);
    close_stage();
    CHECK(stage.failures == 1);

    static const row turns[] = {
        SET_ALL, {CANCEL(2), CANCEL(3), CANCEL(4), CANCEL(5), SET_TIMER(9, 500), SET_TIMER(10, 500),
                  SET_TIMER(11, 500), SET_TIMER(12, 500), EMIT}};
    struct options full = {.boosts = true, .room = LIMIT + 2};
    open_stage("boosted structures: what it has removed itself is not free", turns, NULL, five, TEN,
               full);
    come(0, 2);
    CHECK(figures().transactions == 1 && stage.runs[1] == 1 && stage.told.count == 0);
    finish_to(20);
    CHECK(stage.runs[1] == 2 && stage.finals.count == 1 && figures().transactions == 0);
    close_stage();

    open_stage("boosted structures, withdrawn", events, NULL, five, TEN, boosts);
    come(0, 1);
    struct ss_segment *guess = send(1, 2, true);
    come(2, 3);
    struct ss_segment *last = send(4, 5, true);
    settle();
    withdraw(guess);
    settle();
    CHECK(all_runs() == 4 + 2 && stage.told.count == 3);
    withdraw(last);
    settle();
    CHECK(all_runs() == 6 && stage.told.count == 2);
    close_stage();
}

/* ---- hooks ---- */

static uint64_t told_of(enum ss_hook_kind kind, int64_t row)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < stage.call_count; i++)
        count += stage.calls[i].kind == kind && (row < 0 || stage.calls[i].row == row);
    return count;
}

static bool was_call(uint64_t at, enum ss_hook_kind kind, int64_t row, uint64_t rows)
{
    const struct call *call = &stage.calls[at];
    return at < stage.call_count && call->kind == kind && call->row == row && call->rows == rows;
}

static void answer(int64_t row, enum ss_answer with)
{
    stage.answers_to = row;
    stage.answer = with;
}

static void hooks(void)
{
    static const row events[] = {{ADD(0, 1), EMIT}, {READ(0), PUT(1), EMIT, EMIT}, {ADD(2, 1)},
                                 {READ(1), EMIT}, {RAISE}, [AT_5] = {ADD(0, 1)},
                                 [AT_15] = {ADD(3, 1), SET_TIMER(1, 2)}};
    struct options asks = {.hooks = true};
    open_stage("asked when it is final", events, NULL, five, TEN, asks);
    come(0, 5);
    CHECK(stage.call_count == 0);
    finish_to(20);
    CHECK(stage.call_count == 4);
    CHECK(was_call(0, SS_ON_COMMIT, 0, 1) && was_call(1, SS_ON_POST_COMMIT, 0, 0));
    CHECK(was_call(2, SS_ON_COMMIT, 1, 2) && was_call(3, SS_ON_POST_COMMIT, 1, 0));
    CHECK(stage.calls[0].consumed == 0 && stage.calls[1].consumed == 1);
    CHECK(stage.calls[2].consumed == 1 && stage.calls[3].consumed == 2);
    close_stage();
    CHECK(told_of(SS_ON_COMMIT, -1) == 4 && told_of(SS_ON_COMMIT, 4) == 0);
    CHECK(told_of(SS_ON_POST_COMMIT, -1) == 4 && told_of(SS_ON_ABORT, -1) == 0);
    CHECK(stage.failures == 1);

    open_stage("told of what runs again", events, NULL, five, TEN, asks);
    come(0, 4);
    come(AT_15, AT_15 + 1);
    CHECK(stage.call_count == 0 && revoked(3, 3, 0) && stage.fired[1] == 1);
    come(AT_5, AT_5 + 1);
    CHECK(stage.call_count == 3 && told_of(SS_ON_ABORT, 0) == 1 && told_of(SS_ON_ABORT, 1) == 1);
    CHECK(told_of(SS_ON_ABORT, 3) == 1 && stage.calls[0].reason == SS_ABORT_REVOKED);
    struct ss_statistics statistics = ss_engine_statistics(stage.engine);
    CHECK(statistics.aborts[SS_ABORT_REVOKED] == 3 && statistics.reruns == 3);
    close_stage();
    CHECK(told_of(SS_ON_COMMIT, -1) == 6 && told_of(SS_ON_POST_COMMIT, -1) == 6);
    CHECK(timers_fired() == 1 && told_of(SS_ON_ABORT, -1) == 3);

    open_stage("the hook has it run again", events, NULL, five, TEN, asks);
    come(0, 4);
    answer(1, SS_RUN_AGAIN);
    finish_to(20);
    CHECK(told_of(SS_ON_COMMIT, 1) == 2 && told_of(SS_ON_POST_COMMIT, 1) == 1);
    CHECK(was_call(3, SS_ON_ABORT, 1, 0) && stage.calls[3].reason == SS_ABORT_HOOK);
    CHECK(stage.runs[1] == 2 && stage.runs[2] == 1 && stage.runs[3] == 1 && told_of(SS_ON_ABORT, -1) == 1);
    CHECK(stage.finals.count == 3 && revoked(3, 2, 0));
    CHECK(ss_engine_statistics(stage.engine).aborts[SS_ABORT_HOOK] == 1);
    close_stage();

    static const row fills[] = {{ADD(0, 1), EMIT}, {FILL_UNLESS(1, 7), EMIT}, {READ(0), EMIT}};
    open_stage("of what runs in place as well", fills, NULL, five, TEN, asks);
    come(0, 3);
    CHECK(stage.told.count == 1);
    finish_to(30);
    CHECK(told_of(SS_ON_COMMIT, -1) == 3 && told_of(SS_ON_POST_COMMIT, -1) == 3);
    CHECK(told_of(SS_ON_POST_COMMIT, 1) == 1);
    close_stage();

    open_stage("the hook fails", events, NULL, five, TEN, asks);
    come(0, 4);
    CHECK(stage.told.count == 4);
    answer(1, SS_FAIL);
    finish_to(20);
    CHECK(stage.failures == 1 && stage.failed_row == 1 && stage.finals.count == 1);
    CHECK(stage.last.final_to.timestamp == 20);
    CHECK(told_of(SS_ON_COMMIT, 1) == 1 && told_of(SS_ON_POST_COMMIT, 1) == 0);
    CHECK(stage.runs[1] == 1 && stage.runs[2] == 1 && stage.runs[3] == 2);
    CHECK(told_of(SS_ON_ABORT, 3) == 1 && told_of(SS_ON_ABORT, -1) == 1 && stage.told.count == 1);
    close_stage();
    CHECK(stage.failures == 1 && told_of(SS_ON_COMMIT, -1) == 4);
}

/* ---- at random ---- */

static void draw_steps(struct dice *dice, struct step *steps, bool boosts, bool of_timer)
{
    static const int kinds[] = {STEP_READ, STEP_ADD, STEP_ADD, STEP_PUT, STEP_RAISE_UNLESS,
                                MORE_SET_TIMER, MORE_SET_TIMER, MORE_SET_TIMER, MORE_SET_TIMER_BY,
                                MORE_CANCEL, MORE_KEEP, MORE_KEEP, MORE_SEE, MORE_SEE, MORE_BOOST,
                                MORE_FILL_UNLESS};
    uint64_t count = 1 + below(dice, 4);
    for (uint64_t i = 0; i < count; i++) {
        int kind = kinds[below(dice, sizeof kinds / sizeof *kinds)];
        uint64_t word = below(dice, 6), value = 1 + below(dice, 3);
        if ((kind == STEP_RAISE_UNLESS || kind == MORE_FILL_UNLESS) && !chance(dice, 4))
            kind = STEP_ADD;
        if (kind == STEP_RAISE_UNLESS || kind == MORE_FILL_UNLESS)
            word = 6, value = 0;
        if (kind == STEP_ADD && chance(dice, 20))
            word = 6;
        if (kind == MORE_BOOST && !boosts)
            kind = MORE_SEE;
        if (kind == MORE_BOOST)
            word = below(dice, BOOSTED_TAKE), value = below(dice, chance(dice, 4) ? 40 : 6);
        if (kind == MORE_SET_TIMER || kind == MORE_CANCEL || kind == MORE_KEEP || kind == MORE_SEE)
            word = 1 + below(dice, chance(dice, 4) ? KEYS : 5);
        if (kind == MORE_SET_TIMER)
            value = of_timer ? 1 + below(dice, 30) : below(dice, 40) - 8;
        steps[i] = (struct step){(enum step_kind)kind, word, value};
    }
    if (!chance(dice, 4))
        steps[count] = (struct step)EMIT;
}

static void at_random(uint64_t seed, uint64_t threads)
{
    static row events[MOST_EVENTS], timers[KEYS + 1];
    static struct place places[MOST_EVENTS];
    struct dice dice = dice_for(seed, 77 + threads);
    int64_t count = 8 + (int64_t)below(&dice, 48);
    bool boosts = chance(&dice, 4);
    memset(events, 0, sizeof events);
    memset(timers, 0, sizeof timers);
    for (int64_t event = 0; event < count; event++) {
        draw_steps(&dice, events[event], boosts, false);
        int64_t time = 10 + event * 2 - (int64_t)(chance(&dice, 3) ? spread(&dice, 60) : 0);
        places[event] = (struct place){time > 0 ? time : 0, (int64_t)below(&dice, 3)};
    }
    for (uint64_t key = 1; key <= KEYS; key++)
        draw_steps(&dice, timers[key], boosts, true);
    struct options options = {.threads = threads,
                              .protocol = chance(&dice, 2) ? SS_PROTOCOL_EAGER : SS_PROTOCOL_VALUE,
                              .boosts = boosts,
                              .hooks = threads == 1 && chance(&dice, 4),
                              .room = chance(&dice, 2) ? LIMIT + 4 + below(&dice, 20) : 0,
                              .times_expire = 1 + (int64_t)below(&dice, 40),
                              .job = {.chunk = chance(&dice, 2) ? 1 : 1 + (int64_t)below(&dice, 4),
                                      .horizon = threads == 1 ? 0 : 1 + (int64_t)below(&dice, 8),
                                      .early_bytes = chance(&dice, 5) ? 1 + below(&dice, 4000) : 0}};
    char name[64];
    snprintf(name, sizeof name, "at random, seed %llu, %llu threads", (unsigned long long)seed,
             (unsigned long long)threads);
    open_stage(name, events, timers, places, count, options);
    struct ss_segment *open[MOST_EVENTS]; /* tentative */
    uint64_t open_count = 0;
    bool guesses = chance(&dice, 2);
    for (int64_t event = 0; event < count; event++) {
        bool tentative = guesses && chance(&dice, 3);
        if (options.hooks && chance(&dice, 4))
            answer((int64_t)below(&dice, (uint64_t)count), chance(&dice, 2) ? SS_FAIL : SS_RUN_AGAIN);
        struct ss_segment *segment = send(event, event + 1, tentative);
        if (tentative)
            open[open_count++] = segment;
        while (open_count > 0 && chance(&dice, 4)) {
            struct ss_segment **which = &open[below(&dice, open_count)];
            if (chance(&dice, 2))
                withdraw(*which);
            else
                ss_engine_confirm(stage.engine, *which);
            *which = open[--open_count];
        }
        if (chance(&dice, 3)) {
            /* No later event is at this or below. */
            int64_t least = INT64_MAX;
            for (int64_t i = event + 1; i < count; i++)
                least = places[i].timestamp < least ? places[i].timestamp : least;
            if (chance(&dice, 2) && least != INT64_MAX)
                least -= (int64_t)below(&dice, 20);
            if (least != INT64_MAX && (!stage.has_frontier || least - 1 > stage.frontier.timestamp))
                advance(least - 1, 3);
        }
        if (chance(&dice, 2))
            look();
        else if (chance(&dice, 3))
            settle();
    }
    while (open_count > 0)
        ss_engine_confirm(stage.engine, open[--open_count]);
    close_stage();
}

int main(void)
{
    patience_start(20);
    fires_early();
    fires_anew();
    is_final_in_order();
    fired_for_nothing();
    withdrawn_meanwhile();
    heap_is_brought_back();
    overdue();
    before_the_clock();
    raises();
    divides();
    ends();
    waits_for_room();
    bound();
    barriers();
    expires();
    expires_among_firings();
    boosted();
    hooks();
    for (uint64_t seed = 0; seed < 150; seed++) {
        at_random(seed, 1);
        at_random(seed, 1 + seed % 3);
    }
    patience_stop();
    puts("early timers: passed");
    return 0;
}
