/* Early results, step by step: what is applied, revoked, published again and run again, counted; what
 * is told; and what is final.
 *
 * An event is a row of steps over a state of words, a dict and a deque. At each look three things are
 * compared with a sequential run from scratch over what has come so far, in the order of the keys: the
 * applied image and the rows that were told, up to the last event that is applied; the owner's words and
 * the output, up to the last one that is final; and what readers find of the dict, likewise.
 *
 * With one thread and horizon 0 everything runs in one order, so counts are exact.
 *
 * It is one file because all scenarios are about one state, and told in the same few steps. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "containers/keyed.h"
#include "containers/keyed_index.h"
#include "core/engine.h"
#include "core/state_words.h"
#include "core/turn.h"
#include "core/worker.h"
#include "entries.h"
#include "jobs/early.h"
#include "local/arena.h"
#include "processor/now.h"
#include "specstream_containers.h"
#include "steps.h"

enum {
    PLAIN = 48, /* words of the state that are no container's */
    NARROW = 40, /* from here on, they hold bytes */
    DICT = 0,
    DEQUE = 1,
    KEYS = 16, /* keys 1 to KEYS */
    LIMIT = 6,
    ROOM = 256,
    WIDTH = 3,
    ELEMENTS = 32,
    HEADER = PLAIN,
    REGION = HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    DEQUE_HEADER = REGION + ROOM * WIDTH,
    DEQUE_REGION = DEQUE_HEADER + SS_HEADER_WORDS,
    OTHERS = 2,
    OTHERS_HEADER = DEQUE_REGION + ELEMENTS,
    OTHERS_REGION = OTHERS_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    ALL_WORDS = OTHERS_REGION + ROOM * 2,
    LOG = 32,
    MOST_ROWS = 2048,
    ROW_WORDS = 2
};
enum { ADD_INT = SS_FIRST_DELTA + 3 * SS_ADD + SS_SIGNED };
static const int64_t patience = 5000000000;

static const struct ss_container containers[] = {
    {SS_KEYED, HEADER, REGION, ROOM, LIMIT, 1, WIDTH, 0, 0},
    {SS_DEQUE, DEQUE_HEADER, DEQUE_REGION, ELEMENTS, ELEMENTS, 0, 1, 0, 0},
    {SS_KEYED, OTHERS_HEADER, OTHERS_REGION, ROOM, KEYS, 1, 2, 0, 0}, /* a set */
};

/* Further kinds of steps; `word` is a word, a byte or a key. */
enum {
    MORE_DELTA = STEP_OVERSTAY + 1, /* adds `value` unread; raises where it does not fit */
    MORE_BYTE,                      /* reads a byte, and stores what it read plus `value` */
    MORE_BYTE_DELTA,                /* adds to a signed byte unread */
    MORE_SUM,                       /* reads `value` words as a range */
    MORE_SPREAD,                    /* stores as many of them as a range */
    MORE_GET,
    MORE_SET,
    MORE_SET_BY, /* the key depends on what `word` holds */
    MORE_POP,
    MORE_OTHER, /* adds a key to the set, or removes it */
    MORE_WALK,
    MORE_WALK_AND_STOP, /* before it looks at the keys */
    MORE_LENGTH,
    MORE_CLEAR,
    MORE_PUSH,
    MORE_TAKE,
    MORE_FILL_UNLESS /* `word` holds `value`: more than the logs hold */
};
#define MORE(kind, word, value) {(enum step_kind)(kind), (word), (value)}
#define DELTA(word, value) MORE(MORE_DELTA, word, value)
#define BYTE(byte, value) MORE(MORE_BYTE, byte, value)
#define BYTE_DELTA(byte, value) MORE(MORE_BYTE_DELTA, byte, value)
#define SUM(word, count) MORE(MORE_SUM, word, count)
#define SPREAD(word, count) MORE(MORE_SPREAD, word, count)
#define GET(key) MORE(MORE_GET, key, 0)
#define SET(key, value) MORE(MORE_SET, key, value)
#define SET_BY(word) MORE(MORE_SET_BY, word, 0)
#define OTHER(key) MORE(MORE_OTHER, key, 0)
#define POP(key) MORE(MORE_POP, key, 0)
#define WALK MORE(MORE_WALK, 0, 0)
#define WALK_AND_STOP MORE(MORE_WALK_AND_STOP, 0, 0)
#define LENGTH MORE(MORE_LENGTH, 0, 0)
#define CLEAR MORE(MORE_CLEAR, 0, 0)
#define PUSH(value) MORE(MORE_PUSH, 0, value)
#define TAKE MORE(MORE_TAKE, 0, 0)
#define FILL_UNLESS(word, value) MORE(MORE_FILL_UNLESS, word, value)

struct place {
    int64_t timestamp;
    int64_t source;
};

/* A sequential run: what the state means. */
struct model {
    uint64_t words[PLAIN];
    uint64_t keys[LIMIT + 1];
    uint64_t values[LIMIT + 1];
    uint64_t key_count;
    bool others[KEYS + 1];
    uint64_t elements[ELEMENTS];
    uint64_t element_count;
    uint64_t rows[MOST_ROWS][ROW_WORDS];
    uint64_t row_count;
    int64_t applied; /* events */
};

struct rows {
    uint64_t at[MOST_ROWS][ROW_WORDS];
    uint64_t count;
};

static struct {
    struct ss_engine *engine;
    uint64_t state[ALL_WORDS];
    struct model begin; /* of the job */
    const row *events;
    const struct place *places;
    int64_t count;
    int64_t order[MOST_EVENTS];
    bool came[MOST_EVENTS];
    int64_t timestamps[MOST_EVENTS];
    void *columns[1];
    struct ss_segment segments[MOST_EVENTS];
    uint64_t segment_count;
    _Atomic uint64_t runs[MOST_EVENTS];
    _Atomic uint64_t over[MOST_EVENTS]; /* runs */
    _Atomic uint64_t arrived[MOST_EVENTS];
    _Atomic uint64_t allowed[MOST_EVENTS];
    _Atomic bool stays[MOST_EVENTS]; /* it does not leave when it is asked to */
    struct ss_frontier frontier;
    struct rows told;   /* and not final */
    struct rows finals; /* likewise, and final since */
    int64_t failed_row;
    uint64_t failures;
    uint64_t voids; /* rows, since the last event came */
    uint64_t news;
    struct ss_early_told last; /* its figures only */
} stage;

static struct model scratch; /* too large for a stack */

static void backoff(void)
{
    struct timespec time = {0, 50000};
    nanosleep(&time, NULL);
}

/* ---- events ---- */

/* One under way; `run` is NULL in the sequential run. */
struct doing {
    struct ss_run *run;
    struct model *model;
    int64_t event;
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

static bool add_to_byte(struct doing *doing, uint64_t byte, uint64_t value)
{
    uint8_t *bytes = doing->run == NULL ? (uint8_t *)doing->model->words : NULL;
    uint64_t found = bytes == NULL ? ss_load_bytes(doing->run, byte, 1) : bytes[byte];
    note(doing, found);
    if (!goes_on(doing))
        return false;
    if (bytes == NULL)
        ss_store_bytes(doing->run, byte, 1, (found + value) & 0xff);
    else
        bytes[byte] = (uint8_t)(found + value);
    return goes_on(doing);
}

static bool add_unread(struct doing *doing, uint64_t byte, uint64_t size, uint64_t value)
{
    if (doing->run != NULL) {
        ss_delta(doing->run, byte, size, ADD_INT, value);
        return goes_on(doing);
    }
    if (size == 8) {
        int64_t *word = (int64_t *)&doing->model->words[byte / 8];
        return !__builtin_add_overflow(*word, (int64_t)value, word);
    }
    int8_t *at = (int8_t *)doing->model->words + byte;
    return !__builtin_add_overflow(*at, (int64_t)value, at);
}

static bool sum(struct doing *doing, uint64_t word, uint64_t count)
{
    const uint64_t *words = doing->run != NULL ? ss_load_range(doing->run, word, count)
                                               : &doing->model->words[word];
    if (words == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++)
        note(doing, words[i]);
    return goes_on(doing);
}

static bool store_spread(struct doing *doing, uint64_t word, uint64_t count)
{
    uint64_t *words = doing->run != NULL ? ss_store_range(doing->run, word, count)
                                         : &doing->model->words[word];
    for (uint64_t i = 0; i < count && goes_on(doing); i++)
        if (words != NULL)
            words[i] = doing->mixed + i;
        else
            store(doing, word + i, doing->mixed + i);
    return goes_on(doing);
}

/* Of the sequential run: where a key is, or the count. */
static uint64_t place_of(const struct model *model, uint64_t key)
{
    uint64_t at = 0;
    while (at < model->key_count && model->keys[at] != key)
        at++;
    return at;
}

static bool get(struct doing *doing, uint64_t key)
{
    const struct model *model = doing->model;
    if (doing->run == NULL) {
        uint64_t at = place_of(model, key);
        note(doing, at < model->key_count ? model->values[at] : 77);
        return true;
    }
    uint64_t entry = ss_keyed_find(doing->run, DICT, &key);
    if (goes_on(doing))
        note(doing, entry != SS_NOWHERE ? ss_load(doing->run, entry + 2) : 77);
    return goes_on(doing);
}

static bool set(struct doing *doing, uint64_t key, uint64_t value)
{
    struct model *model = doing->model;
    if (doing->run == NULL) {
        uint64_t at = place_of(model, key);
        if (at == LIMIT)
            return false;
        model->key_count += at == model->key_count;
        model->keys[at] = key;
        model->values[at] = value;
        return true;
    }
    uint64_t entry = ss_keyed_find(doing->run, DICT, &key);
    if (entry == SS_NOWHERE && goes_on(doing))
        entry = ss_keyed_insert(doing->run, DICT, &key);
    if (entry != SS_NOWHERE && goes_on(doing))
        ss_store(doing->run, entry + 2, value);
    return goes_on(doing);
}

static bool take_out(struct doing *doing, uint64_t key)
{
    struct model *model = doing->model;
    if (doing->run == NULL) {
        uint64_t at = place_of(model, key);
        if (at == model->key_count)
            return true;
        model->key_count--;
        memmove(&model->keys[at], &model->keys[at + 1], (model->key_count - at) * sizeof(uint64_t));
        memmove(&model->values[at], &model->values[at + 1],
                (model->key_count - at) * sizeof(uint64_t));
        return true;
    }
    uint64_t entry = ss_keyed_find(doing->run, DICT, &key);
    if (entry != SS_NOWHERE && goes_on(doing))
        ss_keyed_remove(doing->run, DICT, entry);
    return goes_on(doing);
}

static bool change_set(struct doing *doing, uint64_t key)
{
    if (doing->run == NULL) {
        doing->model->others[key] = !doing->model->others[key];
        return true;
    }
    uint64_t entry = ss_keyed_find(doing->run, OTHERS, &key);
    if (goes_on(doing) && entry == SS_NOWHERE)
        ss_keyed_insert(doing->run, OTHERS, &key);
    else if (goes_on(doing))
        ss_keyed_remove(doing->run, OTHERS, entry);
    return goes_on(doing);
}

static bool push_element(struct doing *doing, uint64_t value)
{
    if (doing->run == NULL) {
        if (doing->model->element_count == ELEMENTS)
            return false;
        doing->model->elements[doing->model->element_count++] = value;
        return true;
    }
    uint64_t count = ss_sequence_count(doing->run, DEQUE);
    uint64_t word = goes_on(doing) ? ss_sequence_insert(doing->run, DEQUE, count) : SS_NOWHERE;
    if (word != SS_NOWHERE)
        ss_store(doing->run, word, value);
    return goes_on(doing);
}

static bool take_element(struct doing *doing)
{
    struct model *model = doing->model;
    if (doing->run == NULL) {
        note(doing, model->element_count > 0 ? model->elements[0] : 77);
        if (model->element_count > 0)
            memmove(model->elements, model->elements + 1,
                    --model->element_count * sizeof *model->elements);
        return true;
    }
    uint64_t count = ss_sequence_count(doing->run, DEQUE);
    if (!goes_on(doing))
        return false;
    uint64_t word = count > 0 ? ss_sequence_element(doing->run, DEQUE, 0) : 0;
    note(doing, count > 0 ? ss_load(doing->run, word) : 77);
    if (goes_on(doing) && count > 0)
        ss_sequence_delete(doing->run, DEQUE, 0, 1, 1);
    return goes_on(doing);
}

static bool emit(struct doing *doing)
{
    struct ss_run *run = doing->run;
    struct model *model = doing->model;
    if (run == NULL) {
        CHECK(model->row_count < MOST_ROWS);
        model->rows[model->row_count][0] = (uint64_t)doing->event;
        model->rows[model->row_count++][1] = doing->mixed;
        return true;
    }
    if (run->emit_end - run->emit_top < ROW_WORDS && !ss_emit_grow(run))
        return false;
    *run->emit_top++ = (uint64_t)doing->event;
    *run->emit_top++ = doing->mixed;
    return true;
}

static bool stop_here(struct doing *doing)
{
    if (doing->run == NULL)
        return true;
    uint64_t mine = ++stage.arrived[doing->event];
    int64_t since = ss_now();
    while (stage.allowed[doing->event] < mine) {
        if (!stage.stays[doing->event] &&
            __atomic_load_n(&doing->run->kill, __ATOMIC_RELAXED) != 0 && ss_poll(doing->run))
            return false;
        if (ss_now() - since > patience)
            fail("%s: event %lld stands for too long", scenario, (long long)doing->event);
        backoff();
    }
    return true;
}

static bool walk(struct doing *doing, bool stops)
{
    if (doing->run == NULL) {
        for (uint64_t at = 0; at < doing->model->key_count; at++)
            note(doing, doing->model->keys[at]);
        return true;
    }
    struct ss_keyed_walk *found = ss_keyed_entries(doing->run, DICT);
    if (stops && found != NULL && !stop_here(doing))
        return false;
    for (uint64_t at = 0; found != NULL && at < found->count; at++)
        note(doing, ss_keyed_key(doing->run, DICT, found->entries[at], 0));
    return goes_on(doing);
}

static bool fill(struct doing *doing)
{
    for (uint64_t word = 0; word < NARROW; word++) {
        uint64_t value = load(doing, word);
        if (!goes_on(doing) || !store(doing, word, value + 1))
            return false;
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
    case STEP_COUNT:
        note(doing, doing->run != NULL ? ss_increment(doing->run, step->word)
                                       : ++doing->model->words[step->word]);
        return goes_on(doing);
    case MORE_FILL_UNLESS:
        return load(doing, step->word) == step->value || (goes_on(doing) && fill(doing));
    case STEP_EMIT:
        for (uint64_t i = 0; i < step->value; i++)
            if (!emit(doing))
                return false;
        return true;
    case STEP_STOP:
        return stop_here(doing);
    case STEP_RAISE:
        return leave(doing);
    case STEP_RAISE_UNLESS: {
        uint64_t value = load(doing, step->word);
        return goes_on(doing) && (value == step->value || leave(doing));
    }
    case MORE_DELTA:
        return add_unread(doing, 8 * step->word, 8, step->value);
    case MORE_BYTE:
        return add_to_byte(doing, step->word, step->value);
    case MORE_BYTE_DELTA:
        return add_unread(doing, step->word, 1, step->value);
    case MORE_SUM:
        return sum(doing, step->word, step->value);
    case MORE_SPREAD:
        return store_spread(doing, step->word, step->value);
    case MORE_GET:
        return get(doing, step->word);
    case MORE_SET:
        return set(doing, step->word, step->value);
    case MORE_SET_BY: {
        uint64_t value = load(doing, step->word);
        return goes_on(doing) && set(doing, 1 + value % 4, value);
    }
    case MORE_OTHER:
        return change_set(doing, step->word);
    case MORE_POP:
        return take_out(doing, step->word);
    case MORE_WALK:
        return walk(doing, false);
    case MORE_WALK_AND_STOP:
        return walk(doing, true);
    case MORE_LENGTH:
        note(doing, doing->run != NULL ? ss_keyed_count(doing->run, DICT)
                                       : doing->model->key_count);
        return goes_on(doing);
    case MORE_CLEAR:
        if (doing->run != NULL)
            ss_keyed_clear(doing->run, DICT);
        else
            doing->model->key_count = 0;
        return goes_on(doing);
    case MORE_PUSH:
        return push_element(doing, step->value);
    case MORE_TAKE:
        return take_element(doing);
    default:
        fail("%s: no such step", scenario);
    }
}

static bool run_steps(struct doing *doing)
{
    for (const struct step *step = stage.events[doing->event]; step->kind != STEP_END; step++)
        if (!take_step(doing, step))
            return false;
    return true;
}

static bool run_event(struct ss_run *run, enum ss_variant variant, int64_t event)
{
    (void)variant;
    struct doing doing = {.run = run, .event = event};
    run->found_in = 0;
    ss_arena_begin(run);
    atomic_fetch_add(&stage.runs[event], 1);
    bool done = run_steps(&doing);
    atomic_fetch_add(&stage.over[event], 1);
    return done;
}

RUN_EACH_EVENT(run_event)
ENTRY(run_plain, SS_PLAIN)
ENTRY(run_transactional, SS_TRANSACTIONAL)

/* ---- the sequential run, from scratch ---- */

static bool is_earlier(int64_t a, int64_t b)
{
    struct place left = stage.places[a], right = stage.places[b];
    if (left.timestamp != right.timestamp)
        return left.timestamp < right.timestamp;
    return left.source != right.source ? left.source < right.source : a < b;
}

/* All that have come, up to a key. */
static const struct model *run_model(bool any, struct ss_key to)
{
    static struct model before;
    scratch = stage.begin;
    for (int64_t i = 0; i < stage.count && any; i++) {
        int64_t event = stage.order[i];
        struct place place = stage.places[event];
        if (place.timestamp > to.timestamp ||
            (place.timestamp == to.timestamp &&
             (place.source > to.source || (place.source == to.source && event > to.sequence))))
            break;
        if (!stage.came[event])
            continue;
        before = scratch;
        struct doing doing = {.model = &scratch, .event = event};
        if (run_steps(&doing))
            scratch.applied++;
        else
            scratch = before;
    }
    return &scratch;
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

static void add_rows(struct rows *rows, const uint64_t *from, uint64_t count)
{
    CHECK(rows->count + count <= MOST_ROWS);
    if (count > 0)
        memcpy(rows->at[rows->count], from, count * sizeof rows->at[0]);
    rows->count += count;
}

/* The words of an image mean what the sequential run says. */
static bool means(const uint64_t *image, const struct model *model)
{
    if (memcmp(image, model->words, sizeof model->words) != 0)
        return false;
    if (image[HEADER + SS_HEADER_COUNT] != model->key_count)
        return false;
    uint64_t last = 0, there = 0;
    for (uint64_t at = 0; at < model->key_count; at++) {
        uint64_t stamp = UINT64_MAX, value = 0;
        for (uint64_t entry = REGION; entry < REGION + ROOM * WIDTH; entry += WIDTH)
            if (image[entry] != 0 && image[entry + 1] == model->keys[at]) {
                stamp = image[entry];
                value = image[entry + 2];
            }
        /* Stamps tell the order of insertions. */
        if (stamp == UINT64_MAX || stamp <= last || value != model->values[at])
            return false;
        last = stamp;
    }
    for (uint64_t i = 0; i < image[HEADER + SS_HEADER_USED]; i++)
        there += image[REGION + i * WIDTH] != 0;
    if (there != model->key_count)
        return false;
    bool others[KEYS + 1] = {false};
    for (uint64_t i = 0; i < image[OTHERS_HEADER + SS_HEADER_USED]; i++)
        if (image[OTHERS_REGION + 2 * i] != 0)
            others[image[OTHERS_REGION + 2 * i + 1]] = true;
    if (memcmp(others, model->others, sizeof others) != 0)
        return false;
    const uint64_t *header = &image[DEQUE_HEADER];
    if (header[SS_HEADER_COUNT] != model->element_count)
        return false;
    for (uint64_t at = 0; at < model->element_count; at++) {
        uint64_t place = (header[SS_HEADER_START] + at) & (header[SS_HEADER_CAPACITY] - 1);
        if (image[DEQUE_REGION + place] != model->elements[at])
            return false;
    }
    return true;
}

/* What readers find is final. */
static void check_readers(const struct model *model)
{
    for (uint64_t key = 1; key <= KEYS; key++) {
        uint64_t entry = ss_engine_find(stage.engine, DICT, &key);
        uint64_t at = place_of(model, key);
        CHECK((entry != SS_NOWHERE) == (at < model->key_count));
        if (entry != SS_NOWHERE)
            CHECK(stage.state[entry + 1] == key && stage.state[entry + 2] == model->values[at]);
        uint64_t row[WIDTH] = {0};
        enum ss_look look = ss_engine_look(stage.engine, DICT, &key, row);
        if (look == SS_LOOK_AGAIN)
            continue;
        CHECK((look == SS_LOOK_FOUND) == (at < model->key_count));
        CHECK(look == SS_LOOK_ABSENT || row[1] == model->values[at]);
    }
    uint64_t count = 0;
    if (ss_engine_look(stage.engine, DICT, NULL, &count) == SS_LOOK_FOUND)
        CHECK(count == model->key_count);
}

static bool holds_row(const struct rows *rows, const uint64_t *row)
{
    for (uint64_t at = 0; at < rows->count; at++)
        if (memcmp(rows->at[at], row, sizeof rows->at[at]) == 0)
            return true;
    return false;
}

/* Of an event, as its source numbers them by row. */
static void check_key(const uint64_t *key, int64_t event)
{
    CHECK((int64_t)key[0] == stage.places[event].timestamp);
    CHECK((int64_t)key[1] == stage.places[event].source && (int64_t)key[2] == event);
}

/* The n-th row that was told; its key is that of its event. */
static const uint64_t *told_row(const uint64_t *rows, uint64_t n)
{
    const uint64_t *key = rows + n * (SS_KEY_WORDS + ROW_WORDS), *row = key + SS_KEY_WORDS;
    check_key(key, (int64_t)row[0]);
    return row;
}

/* With the turn: takes what is told, and compares. */
static bool is_among(uint64_t word, const uint64_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (words[i] == word)
            return true;
    return false;
}

/* What a word was after any of the applied events may come back, and so may the rows of those that are not
 * final: who looks through both images and what is logged meets all of it. */
static void check_early_words(struct ss_key final)
{
    enum { MOST = 1 << 16 };
    static uint64_t words[MOST];
    struct ss_early *early = stage.engine->early;
    uint64_t count = ss_engine_early_words(stage.engine, words, MOST);
    const uint64_t *image = ss_engine_early_image(stage.engine);
    CHECK(image == stage.engine->state && count <= MOST);
    const struct model *model = run_model(true, final);
    uint64_t first = model->row_count;
    for (uint64_t i = 0; i < early->applied; i++) {
        model = run_model(true, ss_applied_at(early, i)->last);
        for (uint64_t word = 0; word < PLAIN; word++)
            CHECK(is_among(model->words[word], words, count) ||
                  is_among(model->words[word], stage.state, PLAIN) ||
                  is_among(model->words[word], image, PLAIN));
        for (uint64_t row = first; row < model->row_count; row++)
            for (uint64_t at = 0; at < ROW_WORDS; at++)
                CHECK(is_among(model->rows[row][at], words, count));
    }
}

static void take_told(void)
{
    struct ss_outcome outcome = ss_engine_outcome(stage.engine);
    struct ss_early_told told = ss_engine_tell_early(stage.engine);
    stage.last = told;
    CHECK(!told.no_memory);
    CHECK(told.is_whole || told.news_count == 0);
    stage.voids += told.void_count;
    stage.news += told.news_count;
    for (uint64_t i = 0; i < told.void_count; i++)
        take_away(&stage.told, told_row(told.voids, i));
    for (uint64_t i = 0; i < told.kept_count; i++) {
        take_away(&stage.told, told_row(told.kept, i));
        add_rows(&stage.finals, told_row(told.kept, i), 1);
    }
    for (uint64_t i = 0; i < told.final_count; i++)
        add_rows(&stage.finals, told_row(told.finals, i), 1);
    for (uint64_t i = 0; i < told.news_count; i++)
        add_rows(&stage.told, told_row(told.news, i), 1);
    ss_engine_told_early(stage.engine, told.is_whole);

    const struct model *model = run_model(told.has_final, told.final_to);
    CHECK(means(stage.state, model));
    check_readers(model);
    CHECK(outcome.row_count == model->row_count && stage.finals.count == model->row_count);
    CHECK(memcmp(outcome.rows, model->rows, model->row_count * sizeof *model->rows) == 0);
    for (uint64_t i = 0; i < model->row_count; i++)
        CHECK(holds_row(&stage.finals, model->rows[i]));
    CHECK(outcome.consumed == model->applied);
    uint64_t final_rows = model->row_count;
    model = run_model(told.has_applied, told.applied_to);
    if (told.is_whole) {
        CHECK(means(stage.engine->state, model));
        CHECK(stage.told.count == model->row_count - final_rows);
        for (uint64_t i = final_rows; i < model->row_count; i++)
            CHECK(holds_row(&stage.told, model->rows[i]));
        check_early_words(told.has_final ? told.final_to : (struct ss_key){INT64_MIN, 0, 0});
    }
}

static void look(void)
{
    ss_engine_take_turn(stage.engine);
    struct ss_outcome outcome = ss_engine_outcome(stage.engine);
    take_told();
    ss_engine_release_turn(stage.engine);
    if (outcome.failed) {
        stage.failed_row = outcome.failed_row;
        stage.failures++;
        ss_engine_resume(stage.engine, outcome.failed_row);
    }
}

/* Everything that has come is applied, or waits until earlier events are final. */
static void settle(void)
{
    int64_t since = ss_now();
    for (stage.last.is_settled = false;;) {
        ss_engine_await_early(stage.engine, 50000000);
        uint64_t failures = stage.failures;
        look();
        if (stage.last.is_settled && stage.failures == failures)
            break;
        if (ss_now() - since > patience)
            fail("%s: early results do not settle", scenario);
    }
    CHECK(stage.last.is_whole);
}

/* ---- the stage ---- */

static void start_job(const row *events, const struct place *places, int64_t count,
                      struct ss_job job)
{
    CHECK(count <= MOST_EVENTS);
    stage.events = events;
    stage.places = places;
    stage.count = count;
    stage.segment_count = 0;
    stage.columns[0] = stage.timestamps;
    stage.told.count = stage.finals.count = 0;
    stage.failures = 0;
    stage.frontier = (struct ss_frontier){INT64_MIN, 0};
    stage.failed_row = -1;
    stage.begin.row_count = 0;
    stage.begin.applied = 0;
    memset(stage.came, 0, sizeof stage.came);
    for (int64_t event = 0; event < count; event++) {
        int64_t at = event;
        stage.runs[event] = stage.over[event] = stage.arrived[event] = stage.allowed[event] = 0;
        stage.stays[event] = false;
        stage.timestamps[event] = places[event].timestamp;
        for (; at > 0 && is_earlier(event, stage.order[at - 1]); at--)
            stage.order[at] = stage.order[at - 1];
        stage.order[at] = event;
    }
    job.mode = SS_MODE_OPEN;
    job.chunk = job.chunk == 0 ? 1 : job.chunk;
    job.early_bytes = job.early_bytes == 0 ? UINT64_MAX : job.early_bytes;
    patience_note(stage.engine, "  %s", scenario);
    CHECK(ss_engine_start(stage.engine, &job));
    ss_engine_take_turn(stage.engine);
    take_told(); /* from now on it is kept */
    ss_engine_release_turn(stage.engine);
}

static void open_engine(uint64_t threads, enum ss_protocol_kind protocol)
{
    memset(stage.state, 0, sizeof stage.state);
    memset(&stage.begin, 0, sizeof stage.begin);
    struct ss_config config = {.state = stage.state,
                               .state_words = ALL_WORDS,
                               .emit_words = ROW_WORDS,
                               .threads = threads,
                               .read_limit = LOG,
                               .redo_limit = LOG,
                               .emit_limit = 8,
                               .element_limit = 4096,
                               .protocol = protocol,
                               .containers = containers,
                               .container_count = 3};
    stage.engine = ss_engine_new(&config);
    CHECK(stage.engine != NULL);
    ss_engine_set_entry(stage.engine, SS_PLAIN, run_plain);
    ss_engine_set_entry(stage.engine, SS_TRANSACTIONAL, run_transactional);
    ss_engine_set_entry(stage.engine, SS_EAGER, run_transactional); /* never used */
}

/* One thread, and nothing runs ahead: counts are exact. */
static void open_stage(const char *name, const row *events, const struct place *places,
                       int64_t count, struct ss_job job)
{
    scenario = name;
    open_engine(1, SS_PROTOCOL_VALUE);
    start_job(events, places, count, job);
}

static void submit(int64_t first, int64_t last)
{
    struct ss_segment *segment = &stage.segments[stage.segment_count++];
    *segment = (struct ss_segment){.columns = stage.columns,
                                   .first = first,
                                   .last = last,
                                   .source = stage.places[first].source};
    for (int64_t event = first; event < last; event++)
        stage.came[event] = true;
    stage.voids = stage.news = 0;
    CHECK(ss_engine_submit(stage.engine, segment));
}

static void come(int64_t event)
{
    submit(event, event + 1);
    settle();
}

static void advance(int64_t timestamp, int64_t source)
{
    ss_engine_advance(stage.engine, (struct ss_frontier){timestamp, source});
}

/* Waits until all that has come and is below the frontier is final. */
static void finish_to(int64_t timestamp, int64_t source)
{
    int64_t since = ss_now();
    advance(timestamp, source);
    for (bool settled = false; !settled;) {
        settle();
        ss_engine_take_turn(stage.engine);
        settled = ss_engine_is_settled(stage.engine);
        ss_engine_release_turn(stage.engine);
        if (ss_now() - since > patience)
            fail("%s: not everything becomes final", scenario);
    }
    settle();
}

static struct ss_early_figures figures(void)
{
    return ss_engine_early_figures(stage.engine);
}

static uint64_t runs(int64_t event)
{
    return stage.runs[event];
}

static uint64_t all_runs(void)
{
    uint64_t sum = 0;
    for (int64_t event = 0; event < stage.count; event++)
        sum += runs(event);
    return sum;
}

/* Each entry that was ever taken is there, is free, or at hand of a worker, and not twice. Nothing is
 * applied that is not final. */
static void check_entries_of(uint64_t container)
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
    /* What raises for a limit is undone in place, which leaves a number that the state never has. */
    bool undone = ss_engine_statistics(stage.engine).aborts[SS_ABORT_RAISED] != 0;
    uint64_t applied = image[of->header + SS_HEADER_CHANGES];
    uint64_t final = stage.state[of->header + SS_HEADER_CHANGES];
    CHECK(undone ? applied >= final : applied == final);
}

static void check_entries(void)
{
    check_entries_of(DICT);
    check_entries_of(OTHERS);
}

static void stop_job(void)
{
    int64_t since = ss_now();
    ss_engine_stop(stage.engine);
    while (!ss_engine_wait(stage.engine, 50))
        if (ss_now() - since > patience)
            fail("%s: the job does not end", scenario);
}

/* Everything becomes final. */
static void end_job(void)
{
    finish_to(INT64_MAX, INT64_MAX);
    CHECK(stage.told.count == 0);
    CHECK(figures().transactions == 0 && figures().bytes == 0);
    ss_engine_take_turn(stage.engine);
    check_entries();
    ss_engine_release_turn(stage.engine);
    for (uint64_t i = 0; i < stage.segment_count; i++)
        CHECK(stage.segments[i].left == 0);
    stop_job();
}

static void close_stage(void)
{
    end_job();
    ss_engine_free(stage.engine);
    patience_note(NULL, "  between two engines");
}

static void await(const _Atomic uint64_t *figure, uint64_t least, int64_t event, const char *what)
{
    int64_t since = ss_now();
    while (*figure < least) {
        backoff();
        if (ss_now() - since > patience)
            fail("%s: event %lld does not come to its %s", scenario, (long long)event, what);
    }
}

static void await_arrival(int64_t event, uint64_t times)
{
    await(&stage.arrived[event], times, event, "stop");
}

/* ---- what is published again, and what runs again ---- */

enum { A = 1, B, C, D, X = 10, Y, BYTES = 8 * NARROW };
static const struct place five[] = {{10, 0}, {20, 0}, {30, 0}, {40, 0}, {50, 0},
                                    {5, 1},  {15, 1}, {25, 1}, {35, 1}};
enum { AT_5 = 5, AT_15, AT_25, AT_35, NINE };
static const uint64_t behind[] = {[AT_5] = 5, [AT_15] = 4, [AT_25] = 3, [AT_35] = 2};

/* Five events, and one that comes late: `rerun` of those behind it depend on it. */
static void late_among_five(const char *name, const row *events, int64_t late, uint64_t rerun)
{
    open_stage(name, events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(all_runs() == 5 && figures().transactions == 5 && stage.told.count == stage.news);
    look(); /* nothing is told twice */
    CHECK(stage.told.count == stage.news && stage.voids == 0);
    come(late);
    CHECK(figures().passes == 1 && figures().revoked == behind[late]);
    CHECK(figures().rerun == rerun && figures().republished == behind[late] - rerun);
    CHECK(all_runs() == 6 + rerun && runs(late) == 1);
    struct ss_statistics statistics = ss_engine_statistics(stage.engine);
    CHECK(statistics.head_runs == 0 && statistics.speculative_runs == 6 + rerun);
    finish_to(30, 0);
    end_job();
    CHECK(all_runs() == 6 + rerun && stage.failures == 0);
    CHECK(ss_engine_statistics(stage.engine).commits == 6);
    ss_engine_free(stage.engine);
    patience_note(NULL, "  between two engines");
}

static void words(void)
{
    static const row events[] = {{ADD(A, 1), EMIT},      {ADD(B, 1), EMIT},
                                 {READ(A), PUT(C), EMIT}, {ADD(D, 1), EMIT},
                                 {ADD(B, 1), EMIT},       [AT_5] = {ADD(A, 10), EMIT},
                                 [AT_15] = {ADD(X, 1)},   [AT_25] = {ADD(A, 5), EMIT},
                                 [AT_35] = {WRITE(B, 1), EMIT}};
    late_among_five("the third depends on the first", events, AT_5, 2);
    late_among_five("nobody depends on it", events, AT_15, 0);
    late_among_five("one depends on it", events, AT_25, 1);
    late_among_five("it writes what is there", events, AT_35, 0);
    static const row chain[] = {{WRITE(A, 1)}, {READ(A), WRITE(B, 2), EMIT}, {READ(B), PUT(C)},
                                {READ(C), EMIT}, {ADD(A, 1), ADD(A, 1), ADD(A, 1)},
                                [AT_15] = {WRITE(A, 7), EMIT}};
    late_among_five("what one writes is the same again", chain, AT_15, 2);
}

/* For all that wait there is one pass. */
static void two_at_once(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {READ(A), PUT(C), EMIT},
                                 {ADD(D, 1), EMIT}, {ADD(B, 1), EMIT}, [AT_5] = {ADD(X, 10), EMIT},
                                 [AT_25] = {ADD(B, 10), EMIT}};
    open_stage("two that come late", events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    ss_engine_take_turn(stage.engine);
    submit(AT_5, AT_5 + 1);
    submit(AT_25, AT_25 + 1);
    ss_engine_release_turn(stage.engine);
    settle();
    CHECK(figures().passes == 1 && figures().revoked == 5 && figures().rerun == 1);
    CHECK(figures().republished == 4 && all_runs() == 5 + 2 + 1);
    close_stage();
}

static void told_is_the_difference(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {READ(A), EMIT},
                                 {ADD(D, 1), EMIT}, {ADD(B, 1), EMIT}, [AT_5] = {ADD(A, 10), EMIT}};
    open_stage("only what has changed is told", events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(stage.news == 5 && stage.voids == 0);
    come(AT_5);
    CHECK(stage.news == 3 && stage.voids == 2);
    finish_to(20, 0);
    CHECK(stage.news == 3 && stage.voids == 2 && stage.told.count == 3 && stage.finals.count == 3);
    close_stage();
    CHECK(stage.news == 3 && stage.finals.count == 6);
}

static void dicts(void)
{
    static const row keys[] = {{SET(1, 10), EMIT}, {SET(2, 20), EMIT}, {GET(1), EMIT}, {POP(2)},
                               {SET(3, 30), EMIT}, [AT_5] = {SET(4, 40)}, [AT_15] = {POP(1)},
                               [AT_25] = {SET(1, 11)}, [AT_35] = {POP(4), ADD(A, 1)}};
    late_among_five("another key is inserted", keys, AT_5, 0);
    late_among_five("the key is removed", keys, AT_15, 1);
    late_among_five("a later value of the key", keys, AT_25, 1);
    late_among_five("a key that is not there is removed", keys, AT_35, 0);
    static const row first[] = {{SET(1, 10)}, {SET(2, 20)}, {GET(1), EMIT}, {GET(2), EMIT},
                                {POP(1)}, [AT_5] = {SET(1, 11)}, [AT_35] = {SET(2, 21)}};
    late_among_five("the key was inserted before", first, AT_5, 3);
    late_among_five("a value that is read next", first, AT_35, 1);
    static const row absent[] = {{GET(1), EMIT}, {GET(2), EMIT}, {GET(1), EMIT}, {ADD(A, 1)},
                                 {POP(1)}, [AT_5] = {SET(1, 1)}, [AT_35] = {SET(1, 1)}};
    late_among_five("a key is there after all", absent, AT_5, 3);
    late_among_five("a key is there at last", absent, AT_35, 1);
    static const row again[] = {{SET(1, 10)}, {POP(1)}, {SET(1, 30)}, {GET(1), EMIT}, {POP(1)},
                                [AT_5] = {ADD(A, 1)}, [AT_25] = {SET(2, 2)}};
    late_among_five("removed and inserted again", again, AT_5, 0);
    late_among_five("removed and inserted again, and another", again, AT_25, 0);
    static const row own[] = {{SET(1, 10), POP(1), SET(1, 11), SET(2, 2)}, {GET(1), POP(2), EMIT},
                              {SET(5, 5), POP(5)}, {GET(5), SET(5, 6), EMIT}, {CLEAR},
                              [AT_5] = {SET(3, 3)}, [AT_15] = {ADD(A, 1)}};
    late_among_five("entries in vain", own, AT_5, 1); /* who clears has seen all */
    late_among_five("entries in vain, and a word", own, AT_15, 0);
    static const row groups[] = {{OTHER(1), SET(1, 1), OTHER(2), SET(2, 2), OTHER(3)}, {OTHER(1)},
                                 {SET(3, 3), OTHER(1), POP(1), OTHER(2)}, {WALK, EMIT}, {OTHER(2)},
                                 [AT_5] = {ADD(A, 1)}, [AT_25] = {OTHER(5)}};
    late_among_five("two containers in turn", groups, AT_5, 0);
    late_among_five("two containers in turn, and a key", groups, AT_25, 0);
    static const row depends[] = {{SET_BY(A)}, {GET(1), EMIT}, {ADD(B, 1)}, {SET(1, 5)}, {POP(2)},
                                  [AT_5] = {ADD(A, 1)}};
    late_among_five("a key gets the entry of another", depends, AT_5, 4);
}

static void walks(void)
{
    static const row events[] = {{SET(1, 10)}, {SET(2, 20)}, {WALK, EMIT}, {GET(1), EMIT},
                                 {LENGTH, EMIT}, [AT_5] = {ADD(A, 1)}, [AT_15] = {SET(1, 11)},
                                 [AT_25] = {SET(4, 40)}, [AT_35] = {SET(4, 40), POP(4)}};
    late_among_five("a walk, and a word", events, AT_5, 0);
    late_among_five("a walk, and a value", events, AT_15, 1);
    late_among_five("a walk before what comes", events, AT_25, 2);
    late_among_five("a length, and what came and went", events, AT_35, 0);
    static const row coming[] = {{SET(1, 10)}, {SET(2, 20)}, {WALK, EMIT}, {POP(1)}, {WALK, EMIT},
                                 [AT_5] = {SET(4, 40)}, [AT_15] = {SET(4, 40), POP(4)},
                                 [AT_25] = {ADD(A, 1)}, [AT_35] = {POP(2)}};
    late_among_five("walks, and what comes", coming, AT_5, 2);
    late_among_five("walks, and what comes and goes", coming, AT_15, 2);
    late_among_five("walks, and a word between", coming, AT_25, 0);
    late_among_five("walks, and what goes", coming, AT_35, 1);
}

/* The index grows while a removal is not final: the key is found where it comes back. */
static void large_index(void)
{
    enum { COUNT = 122, LATE = COUNT - 1 };
    static row events[COUNT] = {{SET(1, 10)}, {POP(1)}, [LATE] = {GET(1), EMIT}};
    static struct place places[COUNT];
    for (int64_t event = 0; event < COUNT; event++) {
        places[event] = (struct place){10 * event, 0};
        if (event > 1 && event < LATE)
            events[event][0] = event % 2 == 0 ? (struct step)SET(2, 20) : (struct step)POP(2);
    }
    places[LATE] = (struct place){5, 1};
    open_stage("an index that is made anew", events, places, COUNT, (struct ss_job){0});
    const struct ss_index *before = stage.engine->keyed[DICT].index;
    submit(0, LATE);
    settle();
    CHECK(stage.engine->keyed[DICT].index != before);
    come(LATE);
    CHECK(figures().republished == LATE - 1 && runs(LATE) == 1);
    close_stage();
}

static void deltas(void)
{
    static const row events[] = {{DELTA(A, 1)}, {DELTA(A, 2), EMIT}, {ADD(B, 1)}, {DELTA(A, 3)},
                                 {READ(A), EMIT}, [AT_5] = {DELTA(A, 10)}, [AT_25] = {WRITE(A, 100)},
                                 [AT_35] = {DELTA(X, 1), EMIT}};
    late_among_five("updates are applied again", events, AT_5, 1);
    late_among_five("updates of a word that is stored", events, AT_25, 1);
    late_among_five("an update of another word", events, AT_35, 0);
    static const row most[] = {{BYTE_DELTA(BYTES, 60)}, {BYTE_DELTA(BYTES + 1, 60)}, {ADD(A, 1)},
                               {BYTE_DELTA(BYTES, 60)}, {ADD(A, 1)},
                               [AT_5] = {BYTE_DELTA(BYTES + 1, 60)}};
    late_among_five("updates of bytes", most, AT_5, 0);
}

static void elements(void)
{
    static const row bytes[] = {{BYTE(BYTES, 1), EMIT}, {BYTE(BYTES + 1, 1), EMIT},
                                {BYTE(BYTES, 1), EMIT}, {BYTE(BYTES + 7, 255)},
                                {BYTE(BYTES + 8, 1)}, [AT_5] = {BYTE(BYTES, 5)},
                                [AT_15] = {BYTE(BYTES + 6, 5)}};
    late_among_five("elements of a word", bytes, AT_5, 2);
    late_among_five("another element of the word", bytes, AT_15, 0);
    static const row ranges[] = {{SUM(0, 6), EMIT}, {SPREAD(20, 5)}, {SUM(20, 5), EMIT},
                                 {SUM(2, 3), ADD(X, 1)}, {SUM(18, 8), SPREAD(22, 4)},
                                 [AT_5] = {ADD(5, 1)}, [AT_15] = {ADD(22, 1)},
                                 [AT_25] = {ADD(22, 1)}, [AT_35] = {ADD(30, 1)}};
    late_among_five("a word of one range", ranges, AT_5, 1);
    late_among_five("a word of a range that is stored", ranges, AT_15, 0);
    late_among_five("a word of a range that was stored", ranges, AT_25, 2);
    late_among_five("a word of no range", ranges, AT_35, 0);
    static const row counts[] = {{COUNT(A), EMIT}, {ADD(B, 1)}, {COUNT(A), EMIT}, {COUNT(C), EMIT},
                                 {COUNT(A)}, [AT_5] = {COUNT(A)}, [AT_25] = {COUNT(C)},
                                 [AT_35] = {ADD(X, 1)}};
    late_among_five("increments", counts, AT_5, 3);
    late_among_five("another increment", counts, AT_25, 1);
    late_among_five("no increment", counts, AT_35, 0);
    static const row sequences[] = {
        {PUSH(1), PUSH(2), PUSH(3), PUSH(4), PUSH(5), PUSH(6), PUSH(7), PUSH(8), PUSH(9)},
        {TAKE, EMIT}, {ADD(B, 1)}, {TAKE, PUSH(10), EMIT}, {TAKE, EMIT}, [AT_5] = {ADD(A, 1)},
        [AT_15] = {PUSH(11)}, [AT_35] = {ADD(B, 1)}};
    late_among_five("a deque that has grown", sequences, AT_5, 0);
    late_among_five("a deque with one more", sequences, AT_15, 3);
    late_among_five("a deque, and a word", sequences, AT_35, 0);
}

/* ---- events that raise ---- */

static void raising(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {RAISE_UNLESS(B, 1), ADD(A, 1), SET(1, 1), EMIT},
                                 {ADD(A, 1), EMIT}, {GET(1), EMIT}, {ADD(C, 1)},
                                 [AT_5] = {ADD(X, 1)}, [AT_15] = {WRITE(B, 1), EMIT}};
    open_stage("an event raises", events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(stage.last.applied_to.timestamp == 50 && stage.failures == 0 && stage.told.count == 3);
    come(AT_5);
    CHECK(figures().republished == 5 && figures().rerun == 0);
    finish_to(10, 0);
    CHECK(stage.failures == 0);
    finish_to(40, 0);
    CHECK(stage.failures == 1 && stage.failed_row == 1);
    close_stage();
    CHECK(stage.failures == 1 && all_runs() == 6);

    open_stage("it does not raise after all", events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    come(AT_15);
    CHECK(figures().revoked == 4 && figures().rerun == 3 && stage.failures == 0);
    close_stage();
    CHECK(stage.failures == 0 && runs(1) == 2 && runs(4) == 1);

    static const row later[] = {{WRITE(B, 1)}, {RAISE_UNLESS(B, 1), ADD(A, 1), EMIT}, {ADD(A, 1)},
                                {RAISE}, {RAISE}, [AT_15] = {WRITE(B, 2)}};
    open_stage("it raises after all", later, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(stage.told.count == 1);
    come(AT_15);
    CHECK(stage.failures == 0 && stage.told.count == 0 && figures().rerun == 2);
    close_stage();
    CHECK(stage.failures == 3 && stage.failed_row == 4);
}

/* What raises only when it is applied: it is run again whenever something comes before it. */
static void raising_at_the_end(void)
{
    static const row events[] = {{BYTE_DELTA(BYTES, 100)}, {ADD(A, 1)}, {BYTE_DELTA(BYTES, 100), EMIT},
                                 {ADD(A, 1)}, {SET(1, 1)}, [AT_5] = {BYTE_DELTA(BYTES, -100)},
                                 [AT_15] = {ADD(X, 1)}};
    open_stage("an update does not fit", events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(stage.told.count == 0);
    come(AT_15);
    CHECK(figures().rerun == 1 && figures().republished == 3 && stage.told.count == 0);
    come(AT_5);
    CHECK(figures().rerun == 2 && stage.told.count == 1);
    close_stage();
    CHECK(stage.failures == 0);

    static const row too_much[] = {{BYTE_DELTA(BYTES, 100), EMIT}, {ADD(A, 1)},
                                   {BYTE_DELTA(BYTES, 20), EMIT}, {ADD(A, 1)}, {SET(1, 1)},
                                   [AT_5] = {BYTE_DELTA(BYTES, 50)}};
    open_stage("an update does not fit any more", too_much, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(stage.told.count == 2);
    come(AT_5);
    CHECK(figures().rerun == 1 && figures().republished == 4 && stage.told.count == 1);
    close_stage();
    CHECK(stage.failures == 1 && stage.failed_row == 0);

    static const row full[] = {{SET(1, 1), SET(2, 1), SET(3, 1)}, {SET(4, 1), SET(5, 1), EMIT},
                               {SET(6, 1), EMIT}, {SET(7, 1), EMIT}, {GET(7), EMIT},
                               [AT_5] = {SET(8, 1)}, [AT_15] = {POP(1), POP(2)}};
    open_stage("a dict is full", full, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(stage.told.count == 3 && stage.failures == 0); /* of 1, 2 and 4 */
    come(AT_5);
    CHECK(figures().rerun >= 1 && stage.told.count == 2);
    come(AT_15);
    CHECK(stage.told.count == 4);
    close_stage();
    CHECK(stage.failures == 0);

    open_stage("a dict is full in the end", full, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    come(AT_5);
    close_stage();
    CHECK(stage.failures == 2 && stage.failed_row == 3);
}

/* A log that is full: early results stop there. */
static void barriers(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(D, 1), EMIT}, {FILL_UNLESS(X, 7), SET(1, 1), EMIT},
                                 {READ(A), GET(1), EMIT}, {ADD(Y, 1), EMIT}, [AT_5] = {WRITE(X, 7), EMIT},
                                 [AT_15] = {ADD(B, 1)}, [AT_25] = {ADD(C, 1), EMIT}};
    open_stage("a log is full", events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(stage.last.applied_to.timestamp == 20 && stage.told.count == 2);
    CHECK(runs(3) == 0 && runs(4) == 0);
    come(AT_15); /* that changes nothing, but who knows */
    CHECK(stage.last.applied_to.timestamp == 20 && figures().republished == 1);
    finish_to(20, 0);
    CHECK(stage.last.applied_to.timestamp == 20 && stage.finals.count == 2);
    finish_to(30, 0);
    CHECK(stage.last.applied_to.timestamp == 50 && stage.finals.count == 3);
    CHECK(stage.told.count == 2);
    close_stage();

    open_stage("a log is full no longer", events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    uint64_t before = runs(2);
    come(AT_5);
    CHECK(stage.last.applied_to.timestamp == 50 && stage.told.count == 6);
    CHECK(runs(2) == before + 1);
    close_stage();
    CHECK(runs(2) == before + 1);

    open_stage("what was applied behind waits", events, five, NINE, (struct ss_job){0});
    submit(0, 2);
    submit(3, 5);
    settle();
    CHECK(stage.last.applied_to.timestamp == 50 && stage.told.count == 4);
    submit(2, 3);
    settle();
    CHECK(stage.last.applied_to.timestamp == 20 && stage.told.count == 2 && stage.voids == 2);
    come(AT_25);
    CHECK(stage.last.applied_to.timestamp == 25);
    finish_to(50, 0);
    close_stage();

    static const row failing[] = {{FILL_UNLESS(X, 7), EMIT, RAISE}, {ADD(A, 1), EMIT},
                                  {ADD(A, 1), EMIT}, {EMIT}, {EMIT}};
    open_stage("in place, it raises", failing, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    CHECK(!stage.last.has_applied);
    finish_to(20, 0);
    CHECK(stage.failures == 1 && stage.failed_row == 0 && stage.told.count == 3);
    close_stage();

    static const row flood[] = {{ADD(A, 1), FLOOD(900)}, {EMIT}};
    open_stage("in place, the output grows", flood, five, 2, (struct ss_job){0});
    submit(0, 2);
    finish_to(20, 0);
    CHECK(stage.finals.count == 901);
    close_stage();

    static const row midway[] = {{ADD(A, 1), EMIT}, {FILL_UNLESS(X, 7), EMIT}, {RAISE},
                                 {ADD(A, 1), EMIT}, {EMIT}};
    open_stage("in place, one of a chunk raises", midway, five, NINE, (struct ss_job){.chunk = 4});
    submit(0, 5);
    settle();
    CHECK(!stage.last.has_applied);
    finish_to(40, 0);
    CHECK(stage.failures == 1 && stage.failed_row == 2 && stage.told.count == 1);
    close_stage();
}

/* ---- chunks ---- */

static const struct place eight[] = {{10, 0}, {20, 0}, {30, 0}, {40, 0}, {50, 0}, {60, 0},
                                     {70, 0}, {80, 0}, {45, 1}, {55, 1}, {10, 1}};
enum { AT_45 = 8, AT_55, AT_10, ELEVEN };

static void chunks(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {ADD(C, 1), EMIT},
                                 {ADD(D, 1), EMIT}, {ADD(A, 1), EMIT}, {ADD(B, 1), EMIT},
                                 {ADD(C, 1), EMIT}, {SET(1, 1), EMIT}, [AT_45] = {ADD(X, 1), EMIT},
                                 [AT_55] = {ADD(X, 1), EMIT}, [AT_10] = {ADD(C, 1), EMIT}};
    struct ss_job by_four = {.chunk = 4};
    open_stage("between two chunks", events, eight, ELEVEN, by_four);
    submit(0, 8);
    settle();
    CHECK(figures().transactions == 2);
    come(AT_45);
    CHECK(figures().transactions == 3 && figures().republished == 1 && all_runs() == 9);
    close_stage();
    CHECK(all_runs() == 9);

    open_stage("within a chunk", events, eight, ELEVEN, by_four);
    submit(0, 8);
    settle();
    come(AT_55);
    CHECK(figures().revoked == 1 && figures().republished == 0 && figures().rerun == 0);
    CHECK(figures().transactions == 3 && all_runs() == 8 + 5);
    CHECK(stage.voids == 4 && stage.news == 5);
    close_stage();

    open_stage("within a chunk, the first", events, eight, ELEVEN, by_four);
    submit(0, 8);
    settle();
    come(AT_10);
    /* the second chunk reads what a late event has changed */
    CHECK(figures().revoked == 2 && figures().rerun == 1 && all_runs() == 8 + 9);
    CHECK(figures().transactions == 3);
    close_stage();

    open_stage("the frontier within a chunk", events, eight, ELEVEN, by_four);
    submit(0, 8);
    settle();
    finish_to(65, 0);
    CHECK(stage.finals.count == 6 && stage.told.count == 2 && figures().transactions == 1);
    CHECK(all_runs() == 8 + 4 && figures().revoked == 1);
    close_stage();
}

/* An event comes between those of a chunk that is being run to be applied. */
static void within_a_running_chunk(bool leaves)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), STOP(0), EMIT}, {ADD(C, 1), EMIT},
                                 {ADD(D, 1), EMIT}, {ADD(A, 1), EMIT}, {ADD(B, 1), EMIT},
                                 {ADD(C, 1), EMIT}, {SET(1, 1), EMIT}, [AT_10] = {ADD(X, 1), EMIT}};
    open_stage("within a chunk that runs", events, eight, ELEVEN, (struct ss_job){.chunk = 4});
    submit(0, 8);
    await_arrival(1, 1);
    if (!leaves)
        stage.stays[1] = true;
    submit(AT_10, AT_10 + 1);
    stage.allowed[1] = leaves ? 0 : 1;
    await_arrival(1, 2);
    stage.allowed[1] = UINT64_MAX;
    settle();
    CHECK(stage.told.count == 9 && figures().rerun == 0);
    close_stage();
}

/* ---- looks in the midst ---- */

/* A late event has come, and those behind it are still applied. */
static void not_whole(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {READ(A), PUT(C), EMIT},
                                 {ADD(D, 1), EMIT}, {ADD(B, 1), EMIT}, [AT_5] = {ADD(A, 10), EMIT},
                                 [AT_35] = {ADD(D, 1), EMIT}};
    open_stage("a late event waits", events, five, NINE, (struct ss_job){0});
    submit(0, 3);
    settle();
    ss_engine_take_turn(stage.engine);
    submit(3, 5);
    submit(AT_5, AT_5 + 1);
    take_told();
    CHECK(!stage.last.is_whole && !stage.last.is_settled && stage.told.count == 3);
    ss_engine_release_turn(stage.engine);
    settle();
    CHECK(stage.told.count == 6 && stage.voids == 2 && stage.news == 5);
    close_stage();
}

static void *look_from_outside(void *unused)
{
    (void)unused;
    ss_engine_take_turn(stage.engine);
    take_told();
    ss_engine_release_turn(stage.engine);
    return NULL;
}

/* An event stands at its stop, and somebody wants to look; then it goes on. */
static void look_at_a_stop(int64_t event)
{
    pthread_t thread;
    await_arrival(event, 1);
    CHECK(pthread_create(&thread, NULL, look_from_outside, NULL) == 0);
    int64_t since = ss_now();
    while (!ss_reader_comes_first(stage.engine)) {
        backoff();
        if (ss_now() - since > patience)
            fail("%s: nobody waits for the turn", scenario);
    }
    stage.allowed[event] = UINT64_MAX;
    CHECK(pthread_join(thread, NULL) == 0);
}

/* The same of an event that runs without the turn. */
static void look_beside(int64_t event)
{
    await_arrival(event, 1);
    look_from_outside(NULL);
    stage.allowed[event] = UINT64_MAX;
}

/* Somebody looks while the late event runs: it comes next, before the others are published again. */
static void midst(bool divides)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {READ(A), PUT(C), EMIT},
                                 {ADD(D, 1), EMIT}, {ADD(B, 1), EMIT},
                                 [AT_15] = {ADD(A, 10), STOP(0), EMIT}};
    open_stage("revoked, and not yet published again", events, five, NINE,
               (struct ss_job){.chunk = divides ? 2 : 1});
    submit(0, 5);
    settle();
    CHECK(stage.told.count == 5);
    submit(AT_15, AT_15 + 1);
    look_beside(AT_15);
    CHECK(!stage.last.is_whole && stage.news == 0 && stage.voids == (divides ? 2 : 0));
    settle();
    CHECK(stage.told.count == 6);
    if (!divides)
        CHECK(stage.voids == 1 && stage.news == 2);
    close_stage();
}

/* Somebody looks in the midst of a chunk that runs in place. */
static void midst_of_a_chunk(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {FILL_UNLESS(X, 7), EMIT}, {STOP(0), EMIT},
                                 {ADD(A, 1), EMIT}, {EMIT}};
    open_stage("in the midst of a chunk in place", events, five, NINE, (struct ss_job){.chunk = 4});
    submit(0, 5);
    settle();
    advance(40, 0);
    look_at_a_stop(2);
    CHECK(stage.last.final_to.timestamp == 30 && stage.finals.count == 3);
    close_stage();
}

/* An event that has run is applied a little later. */
static void await_applied(uint64_t count)
{
    int64_t since = ss_now();
    while (figures().transactions < count) {
        backoff();
        if (ss_now() - since > patience)
            fail("%s: not so many are applied", scenario);
    }
}

/* A run that goes through a dict meets entries that are taken back, and come back as they were. */
static void mixtures(void)
{
    static const row events[] = {{SET(1, 1)}, {STOP(0), EMIT}, {WALK_AND_STOP, EMIT}, {SET(2, 1)},
                                 {ADD(A, 1)}, [AT_5] = {STOP(0), EMIT}};
    scenario = "a walk meets a revocation";
    open_engine(2, SS_PROTOCOL_VALUE);
    start_job(events, five, NINE, (struct ss_job){.horizon = 4});
    submit(0, 1);
    settle();
    submit(1, 3);
    await_arrival(1, 1); /* with the turn */
    await_arrival(2, 1); /* ahead */
    stage.allowed[1] = UINT64_MAX;
    await(&stage.over[1], 1, 1, "end");
    await_applied(2);
    submit(AT_5, AT_5 + 1);
    await_arrival(AT_5, 1);
    stage.allowed[2] = UINT64_MAX;
    await(&stage.over[2], 1, 2, "end");
    stage.allowed[AT_5] = UINT64_MAX;
    settle();
    CHECK(runs(0) == 1 && runs(1) == 1 && runs(2) == 2);
    CHECK(figures().republished == 2 && figures().rerun == 0);
    close_stage();
}

/* All slots are taken, the last by a run that goes on for ever; the event before all that has run needs one:
 * the watchdog ends that run. */
static void the_last_slot(void)
{
    enum { LAST, HEAD, BETWEEN, BEFORE, FIRST, COUNT };
    static const struct place places[] = {{90, 0}, {10, 1}, {50, 1}, {5, 2}, {3, 3}};
    static const row events[] = {{STOP(0), ADD(A, 1), EMIT}, {STOP(0), ADD(B, 1), EMIT},
                                 {ADD(C, 1), EMIT}, {STOP(0), ADD(D, 1), EMIT}, {ADD(X, 1), EMIT}};
    scenario = "a run that goes on for ever has the last slot";
    open_engine(3, SS_PROTOCOL_VALUE);
    start_job(events, places, COUNT, (struct ss_job){.horizon = 1});
    submit(LAST, LAST + 1);
    await_arrival(LAST, 1);
    submit(HEAD, HEAD + 1);
    await_arrival(HEAD, 1);
    submit(BETWEEN, BETWEEN + 1);
    await(&stage.over[BETWEEN], 1, BETWEEN, "end");
    submit(BEFORE, BEFORE + 1);
    await_arrival(BEFORE, 1);
    stage.allowed[HEAD] = UINT64_MAX;
    await(&stage.over[HEAD], 1, HEAD, "end");
    submit(FIRST, FIRST + 1);
    stage.allowed[BEFORE] = UINT64_MAX;
    await(&stage.over[LAST], 1, LAST, "end");
    stage.allowed[LAST] = UINT64_MAX;
    settle();
    CHECK(runs(LAST) == 2 && runs(FIRST) == 1);
    close_stage();
}

/* What is final without ever having been told, and what was told in parts. */
static void told_in_parts(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {EMIT}, {ADD(D, 1), EMIT},
                                 {ADD(A, 1), EMIT}, [AT_5] = {ADD(A, 1), EMIT},
                                 [AT_35] = {ADD(B, 1), EMIT}};
    open_stage("told in parts", events, five, NINE, (struct ss_job){0});
    ss_engine_take_turn(stage.engine);
    submit(0, 2);
    advance(10, 0);
    ss_engine_release_turn(stage.engine);
    settle();
    look();
    CHECK(stage.finals.count == 1 && stage.told.count == 1);
    submit(2, 5);
    settle();
    CHECK(stage.news == 3);
    come(AT_35);
    CHECK(stage.news == 1 && stage.voids == 0);
    finish_to(35, 1);
    CHECK(stage.finals.count == 4 && stage.told.count == 2);
    close_stage();
}

/* ---- a bound ---- */

static void bound(uint64_t bytes)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {SET(1, 1), EMIT},
                                 {GET(1), EMIT}, {ADD(B, 1), EMIT}, [AT_5] = {ADD(A, 10), EMIT},
                                 [AT_15] = {ADD(A, 10), EMIT}, [AT_35] = {POP(1), EMIT}};
    open_stage("a bound of bytes", events, five, NINE, (struct ss_job){.early_bytes = bytes});
    submit(0, 5);
    settle();
    CHECK(figures().transactions >= 1 && figures().transactions < 5);
    uint64_t applied = figures().transactions;
    CHECK(all_runs() == applied);
    come(AT_35); /* which belongs behind what is applied, or is the last one */
    CHECK(figures().transactions >= 1);
    come(AT_5);
    CHECK(runs(AT_5) == 1 && stage.last.applied_to.timestamp <= 10 * (int64_t)applied);
    CHECK(figures().transactions >= 1 && figures().transactions <= applied);
    come(AT_15);
    CHECK(stage.last.applied_to.timestamp >= 5);
    finish_to(15, 1);
    CHECK(stage.finals.count == 3);
    CHECK(figures().most_bytes < bytes + 2 * 1024);
    close_stage();
}

/* ---- tentative events ---- */

static struct ss_segment *submit_tentative(int64_t event)
{
    struct ss_segment *segment = &stage.segments[stage.segment_count++];
    *segment = (struct ss_segment){.columns = stage.columns,
                                   .first = event,
                                   .last = event + 1,
                                   .source = stage.places[event].source,
                                   .is_tentative = true};
    stage.came[event] = true;
    stage.voids = stage.news = 0;
    CHECK(ss_engine_submit(stage.engine, segment));
    return segment;
}

static void withdraw(struct ss_segment *segment)
{
    stage.came[segment->first] = false;
    stage.voids = stage.news = 0;
    ss_engine_withdraw(stage.engine, segment);
}

/* They are never final by themselves; what is confirmed costs no run, what is withdrawn never was. */
static void tentative(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {READ(A), PUT(C), EMIT},
                                 {ADD(D, 1), EMIT}, {ADD(B, 1), EMIT}};
    open_stage("tentative events", events, five, NINE, (struct ss_job){.chunk = 4});
    struct ss_segment *first = submit_tentative(0);
    struct ss_segment *second = submit_tentative(1);
    submit(2, 5);
    settle();
    CHECK(stage.told.count == 5 && all_runs() == 5 && figures().transactions == 3);
    finish_to(50, 0);
    CHECK(stage.finals.count == 0 && stage.told.count == 5);
    ss_engine_confirm(stage.engine, first);
    finish_to(50, 0);
    CHECK(stage.finals.count == 1 && stage.told.count == 4 && all_runs() == 5);
    CHECK(first->left == 0 && second->left == 1);
    withdraw(second);
    finish_to(50, 0);
    CHECK(stage.finals.count == 4 && stage.told.count == 0 && second->left == 0);
    CHECK(runs(1) == 1 && figures().revoked == 2 && figures().rerun == 1);
    close_stage();
    CHECK(all_runs() == 8); /* a chunk of three, which depended on it */
}

/* It is withdrawn while it runs, or the frontier comes to stand in its midst. */
static void withdrawn_while_it_runs(bool stays)
{
    static const row events[] = {{ADD(A, 1), STOP(0), EMIT}, {ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}};
    open_stage("withdrawn while it runs", events, five, NINE, (struct ss_job){0});
    stage.stays[0] = stays;
    struct ss_segment *first = submit_tentative(0);
    submit(1, 3);
    await_arrival(0, 1);
    withdraw(first);
    stage.allowed[0] = UINT64_MAX;
    settle();
    CHECK(first->left == 0 && stage.told.count == 2);
    close_stage();

    open_stage("the frontier within a chunk that runs", events, five, NINE,
               (struct ss_job){.chunk = 3});
    stage.stays[0] = stays;
    submit(0, 3);
    await_arrival(0, 1);
    advance(20, 0);
    stage.allowed[0] = UINT64_MAX;
    finish_to(20, 0);
    CHECK(stage.finals.count == 2 && stage.told.count == 1);
    close_stage();
}

/* What runs in place waits for what is tentative before it. */
static void tentative_before_a_barrier(void)
{
    static const row events[] = {{WRITE(X, 1), EMIT}, {FILL_UNLESS(X, 0), EMIT}, {ADD(A, 1), EMIT}};
    open_stage("a tentative event before a barrier", events, five, NINE, (struct ss_job){0});
    struct ss_segment *first = submit_tentative(0);
    submit(1, 3);
    finish_to(30, 0);
    CHECK(stage.finals.count == 0 && stage.told.count == 1);
    withdraw(first);
    finish_to(30, 0);
    CHECK(stage.finals.count == 2);
    close_stage();

    open_stage("a tentative barrier", events, five, NINE, (struct ss_job){0});
    submit(0, 1);
    struct ss_segment *second = submit_tentative(1);
    submit(2, 3);
    finish_to(30, 0);
    CHECK(stage.finals.count == 1 && stage.told.count == 0 && runs(2) == 0);
    ss_engine_confirm(stage.engine, second);
    finish_to(30, 0);
    CHECK(stage.finals.count == 3);
    close_stage();
}

/* Another content, at the same place: a row of its own with the key of the first. */
static void replaced(void)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {READ(A), PUT(C), EMIT},
                                 {ADD(D, 1), EMIT}, {ADD(B, 1), EMIT}, [AT_5] = {ADD(A, 7), EMIT},
                                 [AT_15] = {ADD(X, 1), EMIT}};
    open_stage("one is withdrawn, one takes its place", events, five, NINE, (struct ss_job){0});
    struct ss_segment *first = submit_tentative(AT_5);
    submit(0, 5);
    settle();
    ss_engine_take_turn(stage.engine);
    withdraw(first);
    struct ss_segment *second = submit_tentative(AT_15);
    withdraw(second);
    struct ss_segment *third = submit_tentative(AT_5);
    ss_engine_release_turn(stage.engine);
    settle();
    CHECK(first->left == 0 && second->left == 0 && third->left == 1 && runs(AT_15) == 0);
    CHECK(figures().revoked == 6 && figures().republished == 5 && figures().rerun == 0);
    CHECK(runs(AT_5) == 2 && all_runs() == 7);
    ss_engine_confirm(stage.engine, third);
    close_stage();
    CHECK(all_runs() == 7);
}

/* ---- jobs that are stopped ---- */

static void stopped(bool early)
{
    static const row events[] = {{SET(1, 10), SET(2, 1), PUSH(1)}, {SET(2, 20), SET(3, 1)},
                                 {POP(1), ADD(A, 1), PUSH(2), EMIT}, {SET(3, 30), EMIT}, {POP(2)},
                                 [AT_5] = {SET(5, 5)}, [AT_25] = {TAKE, EMIT}};
    static const row next[] = {{GET(1), SET(4, 40), EMIT}, {GET(3), POP(1), EMIT}, {WALK, EMIT},
                               {TAKE, SET(6, 60), EMIT}, {SET(1, 7), READ(A), EMIT}};
    open_stage("a job is stopped", events, five, NINE, (struct ss_job){0});
    submit(0, 5);
    settle();
    come(AT_5);
    finish_to(15, 0);
    come(AT_25);
    CHECK(figures().transactions == 5);
    struct ss_key to = stage.last.final_to;
    stop_job();
    stage.begin = *run_model(true, to);
    CHECK(means(stage.state, &stage.begin));
    if (early) {
        start_job(next, five, 5, (struct ss_job){0});
        submit(0, 5);
        settle();
        close_stage();
        return;
    }
    struct ss_segment segment = {.columns = stage.columns, .first = 0, .last = 5};
    struct ss_job job = {.chunk = 2, .mode = SS_MODE_OPEN};
    stage.begin.row_count = 0;
    stage.events = next;
    CHECK(ss_engine_start(stage.engine, &job));
    CHECK(ss_engine_submit(stage.engine, &segment));
    advance(INT64_MAX, INT64_MAX);
    int64_t since = ss_now();
    for (bool settled = false; !settled;) {
        ss_engine_await(stage.engine, 50000000);
        ss_engine_take_turn(stage.engine);
        settled = ss_engine_is_settled(stage.engine);
        CHECK(!ss_engine_outcome(stage.engine).failed);
        CHECK(ss_engine_tell_early(stage.engine).news_count == 0);
        ss_engine_release_turn(stage.engine);
        CHECK(ss_now() - since < patience);
    }
    stop_job();
    memset(stage.came, 1, 5);
    memset(stage.came + 5, 0, NINE - 5);
    struct ss_outcome outcome = ss_engine_outcome(stage.engine);
    const struct model *model = run_model(true, (struct ss_key){50, 0, 4});
    CHECK(means(stage.state, model) && outcome.row_count == model->row_count);
    CHECK(memcmp(outcome.rows, model->rows, model->row_count * sizeof *model->rows) == 0);
    ss_engine_take_turn(stage.engine);
    check_entries();
    ss_engine_release_turn(stage.engine);
    ss_engine_free(stage.engine);
    patience_note(NULL, "  between two engines");
}

/* ---- at random ---- */

static uint64_t draw_steps(struct dice *dice, struct step *steps)
{
    static const int kinds[] = {STEP_READ, STEP_WRITE, STEP_PUT, STEP_ADD, STEP_ADD, STEP_COUNT,
                                STEP_RAISE_UNLESS, MORE_DELTA, MORE_DELTA, MORE_BYTE,
                                MORE_BYTE_DELTA, MORE_SUM, MORE_SPREAD, MORE_GET, MORE_SET,
                                MORE_SET, MORE_SET_BY, MORE_OTHER, MORE_OTHER, MORE_POP, MORE_POP, MORE_WALK, MORE_LENGTH, MORE_CLEAR,
                                MORE_PUSH, MORE_TAKE, MORE_FILL_UNLESS};
    uint64_t count = below(dice, 5);
    for (uint64_t i = 0; i < count; i++) {
        int kind = kinds[below(dice, sizeof kinds / sizeof *kinds)];
        uint64_t word = below(dice, 8), value = below(dice, 3);
        if ((kind == STEP_RAISE_UNLESS || kind == MORE_FILL_UNLESS || kind == MORE_CLEAR) &&
            !chance(dice, 5))
            kind = STEP_ADD;
        if (kind == STEP_COUNT)
            word = 12;
        if (kind == STEP_RAISE_UNLESS || kind == MORE_FILL_UNLESS) /* rarely stored to */
            word = 30 + word % 2, value = 0;
        if (kind == STEP_WRITE && chance(dice, 8))
            word = 30 + word % 2, value = chance(dice, 2);
        if (kind == MORE_BYTE)
            word += BYTES;
        if (kind == MORE_BYTE_DELTA)
            word += BYTES + 8, value = below(dice, 80);
        if (kind == MORE_SUM || kind == MORE_SPREAD)
            value = 1 + below(dice, 6);
        if (kind >= MORE_GET && kind <= MORE_OTHER && kind != MORE_SET_BY)
            word++, value = below(dice, 100);
        steps[i] = (struct step){(enum step_kind)kind, word, value};
    }
    if (!chance(dice, 4))
        steps[count++] = (struct step)EMIT;
    return count;
}

/* Events of a few sources come in any order, and are looked at again and again. */
static void at_random(uint64_t seed, uint64_t threads)
{
    static row events[MOST_EVENTS];
    static struct place places[MOST_EVENTS];
    struct dice dice = dice_for(seed, threads);
    int64_t count = 8 + (int64_t)below(&dice, 56);
    uint64_t shift = below(&dice, 3);
    memset(events, 0, sizeof events);
    for (int64_t event = 0; event < count; event++) {
        draw_steps(&dice, events[event]);
        int64_t time = 10 + event * 2 - (int64_t)(chance(&dice, 1 + shift) ? spread(&dice, 60) : 0);
        places[event] = (struct place){time > 0 ? time : 0, (int64_t)below(&dice, 3)};
    }
    char name[64];
    snprintf(name, sizeof name, "at random, seed %llu, %llu threads", (unsigned long long)seed,
             (unsigned long long)threads);
    scenario = name;
    struct ss_job job = {.chunk = chance(&dice, 2) ? 1 : 1 + (int64_t)below(&dice, 4),
                         .horizon = threads == 1 ? 0 : 1 + (int64_t)below(&dice, 8),
                         .early_bytes = chance(&dice, 4) ? 1 + below(&dice, 4000) : UINT64_MAX};
    bool abandons = chance(&dice, 4);
    open_engine(threads, chance(&dice, 2) ? SS_PROTOCOL_EAGER : SS_PROTOCOL_VALUE);
    start_job(events, places, count, job);
    struct ss_segment *open[MOST_EVENTS]; /* tentative */
    uint64_t open_count = 0;
    bool guesses = chance(&dice, 2);
    for (int64_t event = 0; event < count; event++) {
        if (guesses && chance(&dice, 3))
            open[open_count++] = submit_tentative(event);
        else
            submit(event, event + 1);
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
            struct ss_frontier least = {INT64_MAX, INT64_MAX};
            for (int64_t i = event + 1; i < count; i++)
                if (places[i].timestamp < least.timestamp ||
                    (places[i].timestamp == least.timestamp && places[i].source < least.source))
                    least = (struct ss_frontier){places[i].timestamp, places[i].source};
            if (chance(&dice, 2) && least.timestamp != INT64_MAX)
                least.timestamp -= (int64_t)below(&dice, 20);
            if (least.timestamp > stage.frontier.timestamp && least.timestamp != INT64_MAX) {
                stage.frontier = least;
                ss_engine_advance(stage.engine, (struct ss_frontier){least.timestamp - 1, 3});
            }
        }
        if (chance(&dice, 2))
            look();
        else if (chance(&dice, 3))
            settle();
        if (abandons && chance(&dice, 30))
            break;
    }
    if (abandons) {
        settle();
        struct ss_early_told last = stage.last;
        stop_job();
        stage.begin = *run_model(last.has_final, last.final_to);
        CHECK(means(stage.state, &stage.begin));
        start_job(events, places, count, job);
        submit(0, 1);
        settle();
        open_count = 0;
    }
    while (open_count > 0)
        ss_engine_confirm(stage.engine, open[--open_count]);
    close_stage();
}

int main(void)
{
    patience_start(20);
    words();
    two_at_once();
    told_is_the_difference();
    dicts();
    walks();
    large_index();
    deltas();
    elements();
    raising();
    raising_at_the_end();
    barriers();
    chunks();
    within_a_running_chunk(true);
    within_a_running_chunk(false);
    not_whole();
    midst(false);
    midst(true);
    midst_of_a_chunk();
    mixtures();
    the_last_slot();
    tentative();
    replaced();
    withdrawn_while_it_runs(false);
    withdrawn_while_it_runs(true);
    tentative_before_a_barrier();
    told_in_parts();
    bound(1);
    bound(700);
    stopped(false);
    stopped(true);
    for (uint64_t seed = 0; seed < 150; seed++) {
        at_random(seed, 1);
        at_random(seed, 1 + seed % 3);
    }
    patience_stop();
    puts("early: passed");
    return 0;
}
