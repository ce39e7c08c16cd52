#include "random_containers.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/state_words.h"
#include "patience.h"
#include "specstream.h"

static const uint64_t sign_bit = UINT64_C(1) << 63;

static bool is_keyed(uint64_t container)
{
    return container <= MORE_TIMERS;
}

static bool expires(const struct container_shape *shape, uint64_t container)
{
    return shape->of[container].expires != 0;
}

/* ---- layout ---- */

void container_shape_draw(struct container_shape *shape, uint64_t first, struct dice *dice)
{
    static const uint64_t strides[] = {1, 4096, UINT64_C(1) << 40, UINT64_C(0x9e3779b97f4a7c15)};
    *shape = (struct container_shape){.keys = 1 + spread(dice, MOST_KEYS - 1),
                                      .stride = strides[below(dice, 4)],
                                      .has_timers = chance(dice, 2)};
    shape->goes_by_time = shape->has_timers;
    uint64_t word = first;
    for (int i = 0; i < CONTAINERS; i++) {
        struct ss_container *of = &shape->of[i];
        bool keyed = is_keyed((uint64_t)i);
        of->kind = keyed ? SS_KEYED : i == LIST ? SS_LIST : SS_DEQUE;
        of->header = word;
        word += SS_HEADER_WORDS + (keyed ? SS_ABSENCE_WORDS : 0);
        /* Half of the dicts can hold all keys. */
        of->limit = !keyed ? 1 + below(dice, MOST_ELEMENTS) :
                    chance(dice, 2) ? shape->keys : 1 + below(dice, shape->keys);
        of->key_words = !keyed ? 0 : i == PAIRS ? 2 : 1;
        of->rank = !is_timers((uint64_t)i) || !shape->has_timers ? 0 : i == TIMERS ? 1 : 2;
        of->entry_words = is_timers((uint64_t)i) ? 3 : keyed ? 1 + of->key_words + 2 : 2;
        if (keyed && !is_timers((uint64_t)i) && chance(dice, 3)) {
            of->expires = 1 + (int64_t)spread(dice, 300);
            of->entry_words++;
            shape->goes_by_time = true;
        }
    }
    for (int i = 0; i < CONTAINERS; i++) {
        struct ss_container *of = &shape->of[i];
        of->region = word;
        of->room = of->limit;
        if (of->kind == SS_KEYED)
            of->room += below(dice, 3) * spread(dice, 300);
        while (i == DEQUE && (of->room & (of->room - 1)) != 0)
            of->room++;
        word += of->room * of->entry_words;
    }
    shape->words = word - first;
}

static void key_of(const struct container_shape *shape, uint64_t container, uint64_t number,
                   uint64_t key[2])
{
    key[0] = (container == PAIRS ? number % 7 : number) * shape->stride;
    key[1] = container == PAIRS ? number / 7 : 0;
}

void container_keys(const struct container_shape *shape, uint64_t seed, uint64_t keys[3])
{
    uint64_t key[2];
    key_of(shape, DICT, mix(seed) % shape->keys, key);
    keys[0] = key[0];
    key_of(shape, PAIRS, mix(seed + 1) % shape->keys, &keys[1]);
}

/* ---- single operations, on the engine and in the model ---- */

static bool goes_on(const struct container_work *work)
{
    return work->run == NULL ? !work->raised : work->run->verdict == SS_COMPLETED;
}

static uint64_t load(struct container_work *work, uint64_t word)
{
    switch (work->variant) {
    case SS_EAGER:
        return ss_eager_load(work->run, word);
    case SS_PLAIN:
    case SS_TRANSACTIONAL:
        return ss_load(work->run, word);
    default:
        return work->run->state[word];
    }
}

static void store(struct container_work *work, uint64_t word, uint64_t value)
{
    if (!goes_on(work))
        return;
    switch (work->variant) {
    case SS_EAGER:
        ss_eager_store(work->run, word, value);
        break;
    case SS_PLAIN:
    case SS_TRANSACTIONAL:
        ss_store(work->run, word, value);
        break;
    default:
        /* Somebody may look at it without the turn. */
        ss_word_write(&work->run->state[word], value);
    }
}

static void see(struct container_work *work, uint64_t value)
{
    if (goes_on(work))
        *work->mixed = mix(*work->mixed ^ value) + 1;
}

/* Where an entry or element is: its first word; in the model its row. */
static uint64_t find(struct container_work *work, uint64_t container, const uint64_t key[2])
{
    if (work->run != NULL)
        return ss_keyed_find(work->run, container, key);
    for (uint64_t i = 0; i < work->contents->count[container]; i++)
        if (memcmp(work->contents->rows[container][i], key, 2 * sizeof *key) == 0)
            return i;
    return SS_NOWHERE;
}

static uint64_t count_of(struct container_work *work, uint64_t container)
{
    if (work->run == NULL)
        return work->contents->count[container];
    return is_keyed(container) ? ss_keyed_count(work->run, container)
                               : ss_sequence_count(work->run, container);
}

/* Its value is two words, behind stamp and key. */
static uint64_t value_word(const struct container_work *work, uint64_t container, uint64_t place)
{
    return is_keyed(container) ? place + 1 + work->shape->of[container].key_words : place;
}

static uint64_t get(struct container_work *work, uint64_t container, uint64_t place, uint64_t at)
{
    if (!goes_on(work) || place == SS_NOWHERE)
        return 0;
    if (work->run == NULL)
        return work->contents->rows[container][place][ROW_VALUE + at];
    return load(work, value_word(work, container, place) + at);
}

static void set(struct container_work *work, uint64_t container, uint64_t place, uint64_t value)
{
    if (place == SS_NOWHERE)
        return;
    for (uint64_t at = 0; at < 2 && goes_on(work); at++)
        if (work->run == NULL)
            work->contents->rows[container][place][ROW_VALUE + at] = value + at;
        else
            store(work, value_word(work, container, place) + at, value + at);
    if (!expires(work->shape, container) || !goes_on(work))
        return;
    if (work->run == NULL)
        work->contents->rows[container][place][ROW_WRITTEN] = (uint64_t)work->now;
    else
        store(work, value_word(work, container, place) + 2, (uint64_t)work->now);
}

static uint64_t make_room(struct container_work *work, uint64_t container, uint64_t at,
                          const uint64_t key[2])
{
    struct contents *contents = work->contents;
    if (work->run != NULL)
        return is_keyed(container) ? ss_keyed_insert(work->run, container, key)
                                   : ss_sequence_insert(work->run, container, at);
    uint64_t count = contents->count[container];
    uint64_t(*rows)[ROW] = contents->rows[container];
    if (count == work->shape->of[container].limit) {
        work->raised = true;
        return SS_NOWHERE;
    }
    memmove(rows[at + 1], rows[at], (count - at) * sizeof *rows);
    contents->count[container]++;
    memset(rows[at], 0, sizeof *rows);
    memcpy(rows[at], key, 2 * sizeof *key);
    rows[at][ROW_STAMP] = ++contents->stamp;
    return at;
}

static void take_out(struct container_work *work, uint64_t container, uint64_t place)
{
    struct contents *contents = work->contents;
    if (!goes_on(work) || place == SS_NOWHERE)
        return;
    if (work->run != NULL) {
        uint64_t before = ss_keyed_changes(work->run, container);
        ss_keyed_remove(work->run, container, place);
        if (goes_on(work) && ss_keyed_changes(work->run, container) == before)
            fail("who walks through a dict would not see that an entry was removed");
        return;
    }
    uint64_t(*rows)[ROW] = contents->rows[container];
    memmove(rows[place], rows[place + 1],
            (--contents->count[container] - place) * sizeof *rows);
}

/* ---- steps ---- */

/* All keys in their order; `first` is the place of the first entry. */
static bool walk(struct container_work *work, uint64_t container, uint64_t *first)
{
    *first = SS_NOWHERE;
    if (work->run == NULL) {
        for (uint64_t i = 0; i < work->contents->count[container]; i++) {
            see(work, work->contents->rows[container][i][0]);
            see(work, work->contents->rows[container][i][1]);
        }
        if (work->contents->count[container] != 0)
            *first = 0;
        return true;
    }
    const struct ss_keyed_walk *found = ss_keyed_entries(work->run, container);
    if (found == NULL)
        return false;
    for (uint64_t i = 0; i < found->count; i++) {
        see(work, ss_keyed_key(work->run, container, found->entries[i], 0));
        see(work, container != PAIRS ? 0
                                     : ss_keyed_key(work->run, container, found->entries[i], 1));
    }
    if (found->changes != ss_keyed_changes(work->run, container))
        fail("a walk through a dict seems to have changed it");
    if (found->count != 0)
        *first = found->entries[0];
    return true;
}

static void clear(struct container_work *work, uint64_t container)
{
    if (work->run != NULL)
        ss_keyed_clear(work->run, container);
    else
        work->contents->count[container] = 0;
}

/* Of an event that must not raise: makes sure that there is room for one more. */
static bool may_insert(struct container_work *work, uint64_t container)
{
    uint64_t first;
    const struct ss_container *of = &work->shape->of[container];
    if (work->may_raise || (is_keyed(container) && of->limit >= work->shape->keys) ||
        count_of(work, container) < of->limit)
        return goes_on(work);
    if (!is_keyed(container) || !goes_on(work) || !walk(work, container, &first))
        return false;
    take_out(work, container, first);
    return goes_on(work);
}

static uint64_t insert_key(struct container_work *work, uint64_t container, const uint64_t key[2])
{
    if (!may_insert(work, container))
        return SS_NOWHERE;
    return make_room(work, container,
                     work->run == NULL ? work->contents->count[container] : 0, key);
}

bool container_step_keyed(struct container_work *work)
{
    struct dice *dice = work->dice;
    uint64_t container = below(dice, 2);
    uint64_t key[2], own[3], first;
    key_of(work->shape, container, below(dice, work->shape->keys), key);
    if (chance(dice, 2)) {
        container_keys(work->shape, work->seed, own);
        memcpy(key, container == DICT ? own : &own[1], (1 + container) * sizeof *key);
    }
    uint64_t what = below(dice, 12);
    if (what == 8) {
        see(work, count_of(work, container));
        return goes_on(work);
    }
    if (what >= 9) {
        bool removes = what == 10, clears = what == 11 && chance(dice, 16);
        if (!walk(work, container, &first))
            return false;
        see(work, get(work, container, first, 0));
        if (removes)
            take_out(work, container, first);
        if (clears)
            clear(work, container);
        return goes_on(work);
    }
    uint64_t place = find(work, container, key);
    if (!goes_on(work))
        return false;
    see(work, place != SS_NOWHERE);
    if (what <= 2) {
        see(work, get(work, container, place, what % 2));
    } else if (what == 7) {
        take_out(work, container, place);
    } else {
        uint64_t value = what == 3 ? get(work, container, place, 0) + 1 : *work->mixed;
        if (place == SS_NOWHERE)
            place = insert_key(work, container, key);
        set(work, container, place, value);
    }
    return goes_on(work);
}

/* What ss_timer_set does. */
static uint64_t set_timer(struct container_work *work, uint64_t container, const uint64_t key[2],
                          int64_t at)
{
    if (work->run != NULL)
        return ss_timer_set(work->run, container, key, at);
    if (work->fires == container && at <= work->fires_at)
        return SS_TIMER_TOO_EARLY;
    take_out(work, container, find(work, container, key));
    uint64_t row = make_room(work, container, work->contents->count[container], key);
    if (row == SS_NOWHERE)
        return SS_TIMERS_FULL;
    work->contents->rows[container][row][ROW_VALUE] = (uint64_t)at;
    return SS_TIMER_IS_SET;
}

bool container_step_timer(struct container_work *work)
{
    struct dice *dice = work->dice;
    uint64_t key[2], first, container = chance(dice, 2) ? TIMERS : MORE_TIMERS;
    key_of(work->shape, container, below(dice, work->shape->keys), key);
    uint64_t what = below(dice, 8);
    /* Sometimes for the past, or at once. */
    int64_t at = work->now + (int64_t)spread(dice, 100) - (int64_t)spread(dice, 8);
    if (what <= 3) {
        if (may_insert(work, container))
            see(work, set_timer(work, container, key, at));
    } else if (what == 4) {
        if (walk(work, container, &first))
            see(work, get(work, container, first, 0));
    } else {
        uint64_t place = find(work, container, key);
        see(work, place != SS_NOWHERE);
        see(work, get(work, container, place, 0));
        if (what == 7)
            take_out(work, container, place);
    }
    return goes_on(work);
}

/* Removes rows of a sequence. */
static void delete(struct container_work *work, uint64_t container, uint64_t first, uint64_t step,
                   uint64_t length)
{
    if (work->run != NULL) {
        ss_sequence_delete(work->run, container, first, step, length);
        return;
    }
    uint64_t(*rows)[ROW] = work->contents->rows[container];
    for (uint64_t gone = length; gone-- > 0;)
        memmove(rows[first + gone * step], rows[first + gone * step + 1],
                (--work->contents->count[container] - first - gone * step) * sizeof *rows);
}

bool container_step_sequence(struct container_work *work)
{
    static const uint64_t no_key[2] = {0, 0};
    struct dice *dice = work->dice;
    uint64_t container = LIST + below(dice, 2);
    uint64_t what = below(dice, 8), where = below(dice, 4), drawn = roll(dice);
    uint64_t count = count_of(work, container);
    if (!goes_on(work))
        return false;
    see(work, what == 0 ? count : 0);
    if (what >= 5 && (count < work->shape->of[container].limit || work->may_raise)) {
        uint64_t at = where == 0 ? 0 : where == 1 ? drawn % (count + 1) : count;
        set(work, container, make_room(work, container, at, no_key), *work->mixed);
        return goes_on(work);
    }
    if (count == 0)
        return true;
    uint64_t at = where == 0 ? 0 : where == 1 ? drawn % count : count - 1;
    if (what == 3 || what == 4) {
        uint64_t step = 1 + drawn % 3;
        uint64_t most = (count - at - 1) / step + 1;
        delete(work, container, at, step, what == 3 ? 1 : drawn % (most + 1));
        return goes_on(work);
    }
    uint64_t place =
        work->run == NULL ? at : ss_sequence_element(work->run, container, at);
    if (what == 2)
        set(work, container, place, *work->mixed);
    else
        see(work, get(work, container, place, 1));
    return goes_on(work);
}

/* ---- the sequential run of timers ---- */

/* When an entry goes, or a timer fires. */
static int64_t due_at(const struct container_shape *shape, uint64_t container, const uint64_t *row)
{
    return is_timers(container) ? (int64_t)row[ROW_VALUE]
                               : (int64_t)row[ROW_WRITTEN] + shape->of[container].expires;
}

/* What goes and what fires at the same time: first that, then one container of timers after the other, and
 * then in the order of insertion. */
static bool is_before(const struct contents *contents, const struct container_due *a,
                      const struct container_due *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    if (a->container != b->container && (is_timers(a->container) || is_timers(b->container)))
        return is_timers(a->container) < is_timers(b->container) ||
               (is_timers(a->container) && is_timers(b->container) && a->container < b->container);
    return contents->rows[a->container][a->row][ROW_STAMP] <
           contents->rows[b->container][b->row][ROW_STAMP];
}

static bool first_due(const struct container_shape *shape, const struct contents *contents,
                      bool of_timers, uint64_t latest, struct container_due *due)
{
    bool found = false;
    for (uint64_t container = DICT; container <= MORE_TIMERS; container++) {
        if (is_timers(container) ? !of_timers : of_timers || !expires(shape, container))
            continue;
        for (uint64_t row = 0; row < contents->count[container]; row++) {
            const uint64_t *words = contents->rows[container][row];
            struct container_due other = {container, row, due_at(shape, container, words)};
            if (words[ROW_STAMP] > latest)
                continue;
            if (!found || is_before(contents, &other, due))
                *due = other;
            found = true;
        }
    }
    return found;
}

bool contents_due(const struct container_shape *shape, const struct contents *contents,
                  int64_t time, struct container_due *due)
{
    struct container_due timer, entry;
    bool is_end = time == INT64_MAX;
    bool fires = shape->has_timers &&
                 first_due(shape, contents, true, is_end ? contents->ends : UINT64_MAX, &timer);
    bool goes = first_due(shape, contents, false, UINT64_MAX, &entry);
    if (is_end) {
        if (!fires)
            return false;
        time = timer.at > contents->clock ? timer.at : contents->clock;
        *due = goes && entry.at <= time ? entry : timer;
        return true;
    }
    *due = !fires || (goes && is_before(contents, &entry, &timer)) ? entry : timer;
    return (fires || goes) && due->at <= time;
}

void contents_take_out(struct contents *contents, const struct container_due *due)
{
    uint64_t(*rows)[ROW] = contents->rows[due->container];
    memmove(rows[due->row], rows[due->row + 1],
            (--contents->count[due->container] - due->row) * sizeof *rows);
}

/* ---- the words ---- */

/* A row that was looked at is the words of an entry without its stamp. */
static void compare_row(const struct container_shape *shape, struct ss_engine *engine,
                        const uint64_t *state, uint64_t container, uint64_t entry)
{
    const struct ss_container *of = &shape->of[container];
    uint64_t row[ROW];
    if (ss_engine_look(engine, container, &state[entry + 1], row) != SS_LOOK_FOUND ||
        memcmp(row, &state[entry + 1], (of->entry_words - 1) * sizeof *row) != 0)
        fail("who looks at an entry of container %" PRIu64 " sees something else", container);
}

static void read_keyed(const struct container_shape *shape, struct ss_engine *engine,
                       const uint64_t *state, uint64_t container, struct contents *contents)
{
    const struct ss_container *of = &shape->of[container];
    /* The one word that moves without the turn. */
    uint64_t used = ss_word_read(&state[of->header + SS_HEADER_USED]);
    uint64_t before = 0;
    if (used > of->room)
        fail("container %" PRIu64 " uses %" PRIu64 " entries of %" PRIu64, container, used,
             of->room);
    contents->count[container] = 0;
    for (;;) {
        uint64_t next = SS_NOWHERE;
        for (uint64_t i = 0; i < used; i++) {
            uint64_t entry = of->region + i * of->entry_words;
            if (state[entry] > before && (next == SS_NOWHERE || state[entry] < state[next]))
                next = entry;
        }
        if (next == SS_NOWHERE)
            break;
        if (contents->count[container] == of->limit)
            fail("container %" PRIu64 " holds more than its limit", container);
        uint64_t *row = contents->rows[container][contents->count[container]++];
        memset(row, 0, ROW * sizeof *row);
        memcpy(row, &state[next + 1], of->key_words * sizeof *row);
        memcpy(row + ROW_VALUE, &state[next + 1 + of->key_words],
               (of->entry_words - 1 - of->key_words) * sizeof *row);
        row[ROW_STAMP] = state[next];
        if (contents->stamp < state[next])
            contents->stamp = state[next];
        compare_row(shape, engine, state, container, next);
        if (ss_engine_find(engine, container, row) != next)
            fail("an entry of container %" PRIu64 " is not found by its key", container);
        before = state[next];
    }
    if (state[of->header + SS_HEADER_COUNT] != contents->count[container])
        fail("container %" PRIu64 " counts %" PRIu64 " entries and has %" PRIu64, container,
             state[of->header + SS_HEADER_COUNT], contents->count[container]);
    uint64_t counted;
    if (ss_engine_look(engine, container, NULL, &counted) != SS_LOOK_FOUND ||
        counted != contents->count[container])
        fail("who looks at the count of container %" PRIu64 " sees another", container);
    for (uint64_t word = 0; word < SS_ABSENCE_WORDS; word++)
        if (state[of->header + SS_HEADER_WORDS + word] != 0)
            fail("a word of absence is not 0");
}

static void read_sequence(const struct container_shape *shape, const uint64_t *state,
                          uint64_t container, struct contents *contents)
{
    const struct ss_container *of = &shape->of[container];
    uint64_t start = state[of->header + SS_HEADER_START];
    uint64_t capacity = state[of->header + SS_HEADER_CAPACITY];
    uint64_t count = state[of->header + SS_HEADER_COUNT];
    if (container == LIST)
        capacity = of->room;
    if (count > of->limit || count > capacity || capacity > of->room)
        fail("sequence %" PRIu64 " has %" PRIu64 " elements in %" PRIu64, container, count,
             capacity);
    contents->count[container] = count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t *row = contents->rows[container][i];
        memset(row, 0, ROW * sizeof *row);
        memcpy(row + ROW_VALUE, &state[of->region + (start + i) % capacity * 2], 2 * sizeof *row);
    }
}

void contents_read(const struct container_shape *shape, struct ss_engine *engine,
                   const uint64_t *state, struct contents *contents)
{
    const uint64_t *timers = &state[shape->of[TIMERS].header];
    *contents = (struct contents){
        .clock = shape->has_timers ? (int64_t)(timers[SS_HEADER_CLOCK] ^ sign_bit) : INT64_MIN,
        .fired = timers[SS_HEADER_FIRED],
    };
    for (uint64_t i = 0; i < CONTAINERS; i++)
        if (is_keyed(i))
            read_keyed(shape, engine, state, i, contents);
        else
            read_sequence(shape, state, i, contents);
}

/* Both words of a value are stored by one event, so that no whole number of events tears them. */
static bool look(const struct container_shape *shape, struct ss_engine *engine, uint64_t container,
                 const uint64_t *key, const _Atomic uint64_t *unordered)
{
    const struct ss_container *of = &shape->of[container];
    uint64_t row[ROW] = {0}, counted;
    uint64_t before = atomic_load(unordered);
    enum ss_look found = ss_engine_look(engine, container, key, row);
    enum ss_look count_found = ss_engine_look(engine, container, NULL, &counted);
    bool whole = before % 2 == 0 && atomic_load(unordered) == before;
    const uint64_t *value = &row[of->key_words];
    if (found == SS_LOOK_FOUND && whole && memcmp(row, key, of->key_words * sizeof *key) != 0)
        fail("who looks at a key of container %" PRIu64 " sees another one", container);
    if (found == SS_LOOK_FOUND && whole && value[1] != value[0] + 1)
        fail("who looks at a key of container %" PRIu64 " sees half of an event", container);
    if (count_found == SS_LOOK_FOUND && whole && counted > of->limit)
        fail("who looks at the count of container %" PRIu64 " sees more than its limit", container);
    return found != SS_LOOK_AGAIN;
}

bool container_look_up(const struct container_shape *shape, struct ss_engine *engine,
                       const uint64_t *state, struct dice *dice,
                       const _Atomic uint64_t *unordered)
{
    uint64_t container = below(dice, 2), key[2];
    const struct ss_container *of = &shape->of[container];
    key_of(shape, container, below(dice, shape->keys), key);
    if (chance(dice, 2))
        return look(shape, engine, container, key, unordered);
    uint64_t entry = ss_engine_find(engine, container, key);
    if (entry == SS_NOWHERE)
        return false;
    if (entry < of->region || entry >= of->region + of->room * of->entry_words ||
        (entry - of->region) % of->entry_words != 0)
        fail("a key is found at %" PRIu64 ", where no entry is", entry);
    uint64_t stamp = __atomic_load_n(&state[entry], __ATOMIC_ACQUIRE);
    uint64_t found = ss_word_read(&state[entry + 1]);
    /* As the caller is told to: what was read counts if the stamp has stayed. */
    atomic_thread_fence(memory_order_acquire);
    if (stamp != 0 && ss_word_read(&state[entry]) == stamp && found != key[0])
        /* Another key may be there by now; but then it is found there. */
        if (ss_engine_find(engine, container, key) == entry &&
            ss_word_read(&state[entry]) == stamp)
            fail("an entry is found by a key that it has not got");
    return false;
}

void contents_compare(const struct container_shape *shape, struct ss_engine *engine,
                      const uint64_t *state, const struct contents *expected)
{
    struct contents found;
    contents_read(shape, engine, state, &found);
    if (shape->has_timers && (found.fired != expected->fired || found.clock != expected->clock))
        fail("%" PRIu64 " timers have fired by %" PRId64 ", and %" PRIu64 " by %" PRId64
             " in the sequential run",
             found.fired, found.clock, expected->fired, expected->clock);
    for (uint64_t i = 0; i < CONTAINERS; i++) {
        if (found.count[i] != expected->count[i])
            fail("container %" PRIu64 " has %" PRIu64 " entries, and %" PRIu64
                 " in the sequential run",
                 i, found.count[i], expected->count[i]);
        for (uint64_t row = 0; row < found.count[i]; row++)
            if (memcmp(found.rows[i][row], expected->rows[i][row],
                       ROW_STAMP * sizeof **found.rows[i]) != 0)
                fail("container %" PRIu64 ": entry %" PRIu64
                     " is another one than in the sequential run",
                     i, row);
    }
}

void contents_restore(const struct container_shape *shape, uint64_t *state,
                      struct contents *contents)
{
    uint64_t *timers = &state[shape->of[TIMERS].header];
    memset(&state[shape->of[0].header], 0, shape->words * sizeof *state);
    contents->stamp = contents->ends = 0;
    if (shape->has_timers) {
        timers[SS_HEADER_FIRED] = contents->fired;
        timers[SS_HEADER_CLOCK] = (uint64_t)contents->clock ^ sign_bit;
    }
    for (uint64_t i = 0; i < CONTAINERS; i++) {
        const struct ss_container *of = &shape->of[i];
        state[of->header + SS_HEADER_COUNT] = contents->count[i];
        if (is_keyed(i))
            state[of->header + SS_HEADER_USED] = contents->count[i];
        else if (i == DEQUE && contents->count[i] != 0)
            state[of->header + SS_HEADER_CAPACITY] = of->room;
        for (uint64_t row = 0; row < contents->count[i]; row++) {
            uint64_t entry = of->region + row * of->entry_words;
            uint64_t words = of->entry_words;
            if (is_keyed(i)) {
                state[entry] = contents->rows[i][row][ROW_STAMP] = ++contents->stamp;
                memcpy(&state[entry + 1], contents->rows[i][row],
                       of->key_words * sizeof *state);
                entry += 1 + of->key_words;
                words -= 1 + of->key_words;
            }
            memcpy(&state[entry], contents->rows[i][row] + ROW_VALUE, words * sizeof *state);
        }
    }
}
