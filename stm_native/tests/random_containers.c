#include "random_containers.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "patience.h"
#include "specstream.h"
#include "state_words.h"

enum { DICT, PAIRS, LIST, DEQUE };

/* ---- layout ---- */

void container_shape_draw(struct container_shape *shape, uint64_t first, struct dice *dice)
{
    static const uint64_t strides[] = {1, 4096, UINT64_C(1) << 40, UINT64_C(0x9e3779b97f4a7c15)};
    *shape = (struct container_shape){.keys = 1 + spread(dice, MOST_KEYS - 1),
                                      .stride = strides[below(dice, 4)]};
    uint64_t word = first;
    for (int i = 0; i < CONTAINERS; i++) {
        struct ss_container *of = &shape->of[i];
        bool keyed = i <= PAIRS;
        of->kind = keyed ? SS_KEYED : i == LIST ? SS_LIST : SS_DEQUE;
        of->header = word;
        word += SS_HEADER_WORDS + (keyed ? SS_ABSENCE_WORDS : 0);
        /* Half of the dicts can hold all keys. */
        of->limit = !keyed ? 1 + below(dice, MOST_ELEMENTS) :
                    chance(dice, 2) ? shape->keys : 1 + below(dice, shape->keys);
        of->key_words = keyed ? (uint64_t)(1 + i) : 0;
        of->entry_words = keyed ? 1 + of->key_words + 2 : 2;
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
    key[0] = (container == DICT ? number : number % 7) * shape->stride;
    key[1] = container == DICT ? 0 : number / 7;
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
        work->run->state[word] = value;
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
    return container <= PAIRS ? ss_keyed_count(work->run, container)
                              : ss_sequence_count(work->run, container);
}

/* Its value is two words, behind stamp and key. */
static uint64_t value_word(const struct container_work *work, uint64_t container, uint64_t place)
{
    return container <= PAIRS ? place + 1 + work->shape->of[container].key_words : place;
}

static uint64_t get(struct container_work *work, uint64_t container, uint64_t place, uint64_t at)
{
    if (!goes_on(work) || place == SS_NOWHERE)
        return 0;
    if (work->run == NULL)
        return work->contents->rows[container][place][2 + at];
    return load(work, value_word(work, container, place) + at);
}

static void set(struct container_work *work, uint64_t container, uint64_t place, uint64_t value)
{
    for (uint64_t at = 0; at < 2 && goes_on(work) && place != SS_NOWHERE; at++)
        if (work->run == NULL)
            work->contents->rows[container][place][2 + at] = value + at;
        else
            store(work, value_word(work, container, place) + at, value + at);
}

static uint64_t make_room(struct container_work *work, uint64_t container, uint64_t at,
                          const uint64_t key[2])
{
    struct contents *contents = work->contents;
    if (work->run != NULL)
        return container <= PAIRS ? ss_keyed_insert(work->run, container, key)
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
        see(work, container == DICT ? 0
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
    if (work->may_raise || (container <= PAIRS && of->limit >= work->shape->keys) ||
        count_of(work, container) < of->limit)
        return goes_on(work);
    if (container > PAIRS || !goes_on(work) || !walk(work, container, &first))
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
    uint64_t key[2], first;
    key_of(work->shape, container, below(dice, work->shape->keys), key);
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

/* ---- the words ---- */

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
        memcpy(row + 2, &state[next + 1 + of->key_words], 2 * sizeof *row);
        if (ss_engine_find(engine, container, row) != next)
            fail("an entry of container %" PRIu64 " is not found by its key", container);
        before = state[next];
    }
    if (state[of->header + SS_HEADER_COUNT] != contents->count[container])
        fail("container %" PRIu64 " counts %" PRIu64 " entries and has %" PRIu64, container,
             state[of->header + SS_HEADER_COUNT], contents->count[container]);
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
        memcpy(row + 2, &state[of->region + (start + i) % capacity * 2], 2 * sizeof *row);
    }
}

void contents_read(const struct container_shape *shape, struct ss_engine *engine,
                   const uint64_t *state, struct contents *contents)
{
    for (uint64_t i = 0; i < CONTAINERS; i++)
        if (i <= PAIRS)
            read_keyed(shape, engine, state, i, contents);
        else
            read_sequence(shape, state, i, contents);
}

void container_look_up(const struct container_shape *shape, struct ss_engine *engine,
                       const uint64_t *state, struct dice *dice)
{
    uint64_t container = below(dice, 2), key[2];
    const struct ss_container *of = &shape->of[container];
    key_of(shape, container, below(dice, shape->keys), key);
    uint64_t entry = ss_engine_find(engine, container, key);
    if (entry == SS_NOWHERE)
        return;
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
}

void contents_compare(const struct container_shape *shape, struct ss_engine *engine,
                      const uint64_t *state, const struct contents *expected)
{
    struct contents found;
    contents_read(shape, engine, state, &found);
    for (uint64_t i = 0; i < CONTAINERS; i++) {
        if (found.count[i] != expected->count[i])
            fail("container %" PRIu64 " has %" PRIu64 " entries, and %" PRIu64
                 " in the sequential run",
                 i, found.count[i], expected->count[i]);
        for (uint64_t row = 0; row < found.count[i]; row++)
            if (memcmp(found.rows[i][row], expected->rows[i][row], sizeof *found.rows[i]) != 0)
                fail("container %" PRIu64 ": entry %" PRIu64
                     " is another one than in the sequential run",
                     i, row);
    }
}

void contents_restore(const struct container_shape *shape, uint64_t *state,
                      const struct contents *contents)
{
    memset(&state[shape->of[0].header], 0, shape->words * sizeof *state);
    for (uint64_t i = 0; i < CONTAINERS; i++) {
        const struct ss_container *of = &shape->of[i];
        state[of->header + SS_HEADER_COUNT] = contents->count[i];
        if (i <= PAIRS)
            state[of->header + SS_HEADER_USED] = contents->count[i];
        else if (i == DEQUE && contents->count[i] != 0)
            state[of->header + SS_HEADER_CAPACITY] = of->room;
        for (uint64_t row = 0; row < contents->count[i]; row++) {
            uint64_t entry = of->region + row * of->entry_words;
            if (i <= PAIRS) {
                state[entry] = row + 1;
                memcpy(&state[entry + 1], contents->rows[i][row],
                       of->key_words * sizeof *state);
                entry += 1 + of->key_words;
            }
            memcpy(&state[entry], contents->rows[i][row] + 2, 2 * sizeof *state);
        }
    }
}
