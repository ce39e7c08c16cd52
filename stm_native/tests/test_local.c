/* An event's own lists, dicts and sets, and the arena they lie in, from one thread: against the same
 * done in the plainest way, over random steps; what a speculative run may take, and what stays. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "local/arena.h"
#include "local/local_elements.h"
#include "specstream.h"
#include "specstream_local.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "FAILED: %s: line %d: %s\n", scenario, __LINE__, #condition);          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
static const char *scenario;
static struct ss_run run;

static void begin(const char *name, uint64_t limit)
{
    scenario = name;
    memset(&run, 0, sizeof run);
    struct ss_config config = {.element_limit = limit};
    CHECK(ss_arena_open(&run, &config, false));
}

static uint64_t bits(double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static void append(struct ss_list *list, uint64_t kinds, uint64_t first, uint64_t second)
{
    uint64_t *place = ss_list_gap(list, kinds, list->count);
    CHECK(place != NULL);
    place[0] = first;
    if (list->width > 1)
        place[1] = second;
}

/* ---- the arena ---- */

static void blocks_are_apart_and_used_again(void)
{
    begin("blocks are apart, and used again", 1 << 20);
    enum { BLOCKS = 200 };
    uint64_t *blocks[BLOCKS];
    for (uint64_t i = 0; i < BLOCKS; i++) {
        blocks[i] = ss_arena_take(&run, i * 7);
        CHECK(blocks[i] != NULL);
        for (uint64_t word = 0; word < i * 7; word++)
            blocks[i][word] = i;
    }
    for (uint64_t i = 0; i < BLOCKS; i++)
        for (uint64_t word = 0; word < i * 7; word++)
            CHECK(blocks[i][word] == i);
    uint64_t before = run.arena_words;
    ss_arena_give(&run, blocks[100], 700);
    ss_arena_give(&run, blocks[101], 707);
    ss_arena_give(&run, NULL, 0);
    CHECK(run.arena_words == before - 2048);
    CHECK(ss_arena_take(&run, 1000) == blocks[101]);
    CHECK(ss_arena_take(&run, 513) == blocks[100]);
    CHECK(run.arena_words == before && run.arena_dirty != 0);
    ss_arena_clear(&run);
    CHECK(run.arena_words == 0 && ss_arena_take(&run, 3) == blocks[0]);
    ss_arena_close(&run);
}

static void a_speculative_run_has_a_limit(void)
{
    begin("a speculative run has a limit, the head has none", 64);
    run.speculative = 1;
    CHECK(ss_arena_take(&run, 32) != NULL && ss_arena_take(&run, 32) != NULL);
    CHECK(ss_arena_take(&run, 1) == NULL && run.verdict == SS_LOG_FULL);
    run.verdict = SS_COMPLETED;
    ss_arena_clear(&run);
    CHECK(ss_arena_take(&run, 65) == NULL && run.verdict == SS_LOG_FULL);
    run.verdict = SS_COMPLETED;
    run.speculative = 0;
    CHECK(ss_arena_take(&run, 100000) != NULL && run.verdict == SS_COMPLETED);
    CHECK(ss_arena_take(&run, UINT64_MAX) == NULL && run.verdict == SS_NO_MEMORY);
    ss_arena_close(&run);
    struct ss_config config = {.element_limit = 64};
    run.verdict = SS_COMPLETED;
    CHECK(ss_arena_open(&run, &config, true));
    CHECK(ss_arena_take(&run, 65) == NULL && run.verdict == SS_LOG_FULL);
    ss_arena_close(&run);
}

static void what_has_grown_is_given_back(void)
{
    begin("what has grown is given back", 64);
    CHECK(ss_arena_take(&run, 1) != NULL);
    uint64_t least = ss_arena_bytes(&run);
    CHECK(ss_arena_take(&run, 1 << 16) != NULL);
    CHECK(ss_arena_bytes(&run) >= least + (8 << 16));
    ss_arena_shrink(&run);
    CHECK(ss_arena_bytes(&run) == least && run.arena_dirty == 0);
    CHECK(ss_arena_take(&run, 1 << 16) != NULL && ss_arena_take(&run, 1 << 18) != NULL);
    int events = 0;
    for (; run.arena_dirty != 0; events++) {
        CHECK(events < 1000);
        ss_arena_begin(&run); /* of an event that takes nothing */
    }
    CHECK(ss_arena_bytes(&run) == least && events > 256);
    ss_arena_close(&run);
    struct ss_config none = {.element_limit = 0};
    CHECK(ss_arena_open(&run, &none, false) && run.arena == NULL && ss_arena_bytes(&run) == 0);
    CHECK(ss_arena_most_bytes(&none) == 0);
    ss_arena_shrink(&run);
    ss_arena_close(&run);
}

/* ---- lists ---- */

enum { MOST = 400 };
static int64_t model[2 * MOST];
static uint64_t count;

static void check_list(const struct ss_list *list)
{
    CHECK(list->count == count);
    for (uint64_t i = 0; i < count; i++) {
        CHECK((int64_t)list->words[i * list->width] == model[i]);
        if (list->width > 1)
            CHECK(list->words[i * list->width + 1] == (uint64_t)model[i] * 3);
    }
}

static void model_insert(uint64_t at, int64_t value)
{
    memmove(model + at + 1, model + at, (count - at) * sizeof *model);
    model[at] = value;
    count++;
}

static void model_delete(int64_t first, int64_t step, uint64_t length)
{
    for (uint64_t i = 0; i < length; i++)
        model[first + (int64_t)i * step] = INT64_MIN;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++)
        if (model[i] != INT64_MIN)
            model[kept++] = model[i];
    count = kept;
}

static void put(uint64_t *place, uint64_t width, int64_t value)
{
    place[0] = (uint64_t)value;
    if (width > 1)
        place[1] = (uint64_t)value * 3;
}

static void random_steps_on_a_list(uint64_t kinds, uint64_t seed)
{
    struct dice dice = {seed};
    begin("random steps on a list", 1 << 20);
    struct ss_list *list = ss_list_new(&run, kinds, 0);
    count = 0;
    for (int step = 0; step < 4000; step++) {
        uint64_t width = ss_width_of(kinds);
        int64_t value = (int64_t)below(&dice, 50) - 25;
        uint64_t at = below(&dice, count + 1);
        uint64_t length = below(&dice, count - at + 1);
        switch (below(&dice, 9)) {
        case 0:
        case 1:
            put(ss_list_gap(list, kinds, list->count), width, value);
            model_insert(count, value);
            break;
        case 2:
            put(ss_list_gap(list, kinds, at), width, value);
            model_insert(at, value);
            break;
        case 3:
            if (chance(&dice, 4)) {
                ss_list_delete(list, (int64_t)at, 1, length);
                model_delete((int64_t)at, 1, length);
            } else if (count > 0) {
                int64_t stride = 1 + (int64_t)below(&dice, 4);
                uint64_t taken = (count - 1 - at % count) / (uint64_t)stride + 1;
                int64_t first = (int64_t)(at % count);
                if (chance(&dice, 2)) {
                    first += (int64_t)(taken - 1) * stride;
                    stride = -stride;
                }
                ss_list_delete(list, first, stride, taken);
                model_delete(first, stride, taken);
            }
            break;
        case 4:
            ss_list_reverse(list);
            for (uint64_t i = 0; i < count / 2; i++) {
                int64_t kept = model[i];
                model[i] = model[count - 1 - i];
                model[count - 1 - i] = kept;
            }
            break;
        case 5: {
            struct ss_list *part = ss_list_part(list, (int64_t)at, 1, length);
            CHECK(part->count == length);
            if (count + length < MOST) {
                CHECK(ss_list_extend(list, part));
                for (uint64_t i = 0; i < length; i++)
                    model[count + i] = model[at + i];
                count += length;
            }
            break;
        }
        case 6: {
            struct ss_list *part = ss_list_part(list, (int64_t)at, 1, length);
            uint64_t to = below(&dice, count + 1), replaced = below(&dice, count - to + 1);
            int64_t taken[MOST];
            memcpy(taken, model + at, length * sizeof *taken);
            CHECK(ss_list_replace(list, (int64_t)to, 1, replaced, part));
            model_delete((int64_t)to, 1, replaced);
            for (uint64_t i = 0; i < length; i++)
                model_insert(to + i, taken[i]);
            break;
        }
        case 7: {
            uint64_t element[2];
            put(element, width, value);
            int64_t found = -1;
            uint64_t equal = 0;
            for (uint64_t i = 0; i < count; i++) {
                equal += model[i] == value;
                if (found < 0 && model[i] == value && i >= at && i < at + length)
                    found = (int64_t)i;
            }
            CHECK(ss_list_find(list, kinds, element, at, at + length) == found);
            CHECK(ss_list_count(list, kinds, element) == equal);
            break;
        }
        default:
            if (2 * count > MOST)
                model_delete(0, 1, count / 2), ss_list_delete(list, 0, 1, list->count / 2);
        }
        check_list(list);
    }
    ss_arena_close(&run);
}

static void lists_repeat_and_join(void)
{
    begin("lists repeat and join", 1 << 20);
    uint64_t kinds = SS_KIND_INT;
    struct ss_list *empty = ss_list_new(&run, 0, 0);
    struct ss_list *list = ss_list_new(&run, kinds, 2);
    append(list, kinds, 1, 0);
    append(list, kinds, 2, 0);
    CHECK(ss_list_repeat(list, 3) && list->count == 6 && list->words[5] == 2 && list->words[4] == 1);
    struct ss_list *joined = ss_list_joined(list, empty);
    CHECK(joined->count == 6 && ss_list_compare(joined, list, SS_EQUAL));
    CHECK(ss_list_joined(empty, list)->count == 6 && ss_list_joined(empty, empty)->count == 0);
    CHECK(ss_list_extend(list, list) && list->count == 12 && list->words[11] == 2);
    CHECK(ss_list_replace(list, 3, 1, 1, list) && list->count == 23);
    CHECK(ss_list_replace(list, 22, -2, 6, joined) && list->words[22] == 1 && list->words[12] == 2);
    CHECK(ss_list_repeat(list, -1) && list->count == 0);
    CHECK(ss_list_replace(list, 0, 1, 0, joined) && ss_list_compare(list, joined, SS_EQUAL));
    CHECK(!ss_list_repeat(list, INT64_MAX) && run.verdict == SS_NO_MEMORY);
    ss_arena_close(&run);
}

static void sorting_is_stable(uint64_t seed, uint64_t length, bool backwards)
{
    struct dice dice = {seed};
    begin("sorting is stable", 1 << 20);
    uint64_t kinds = SS_KIND_FLOAT | SS_KIND_UINT << 4;
    struct ss_list *list = ss_list_new(&run, 0, 0), *keys = ss_list_new(&run, 0, 0);
    for (uint64_t i = 0; i < length; i++) {
        double key = (double)below(&dice, 1 + length / 3) - 5;
        uint64_t word = bits(key == 0 && chance(&dice, 2) ? -0.0 : key);
        append(keys, SS_KIND_FLOAT, word, 0);
        append(list, kinds, word, i);
    }
    struct ss_list *by_itself = ss_list_part(list, 0, 1, length);
    CHECK(ss_list_sort(list, keys, backwards) && ss_list_sort(by_itself, by_itself, backwards));
    for (uint64_t i = 1; i < length; i++) {
        double before, after;
        memcpy(&before, list->words + 2 * i - 2, 8);
        memcpy(&after, list->words + 2 * i, 8);
        CHECK(backwards ? before >= after : before <= after);
        CHECK(before != after || list->words[2 * i - 1] < list->words[2 * i + 1]);
        CHECK(ss_elements_compare(kinds, by_itself->words + 2 * i - 2, kinds, by_itself->words + 2 * i,
                                  backwards ? SS_GREATER : SS_LESS));
    }
    append(keys, SS_KIND_FLOAT, bits(NAN), 0);
    append(list, kinds, 0, 0);
    CHECK(ss_list_has_nan(keys) && !ss_list_has_nan(list));
    ss_arena_close(&run);
}

static void elements_compare_as_in_python(void)
{
    begin("elements compare as in Python", 1 << 20);
    uint64_t nan = bits(NAN), zero = bits(0.0), minus = bits(-0.0), one = bits(1.0);
    const uint64_t kinds = SS_KIND_FLOAT | SS_KIND_INT << 4;
    uint64_t a[] = {zero, 1}, b[] = {minus, (uint64_t)-1}, c[] = {nan, 1}, d[] = {one, 1};
    CHECK(ss_elements_compare(kinds, a, kinds, b, SS_GREATER) && !ss_elements_are_equal(kinds, a, b));
    CHECK(ss_elements_are_equal(SS_KIND_FLOAT, a, b) && !ss_elements_are_equal(kinds, c, c));
    CHECK(ss_elements_compare(kinds, c, kinds, c, SS_UNEQUAL));
    for (int relation = SS_LESS; relation <= SS_GREATER_EQUAL; relation++)
        CHECK(!ss_elements_compare(kinds, c, kinds, d, (enum ss_comparison)relation));
    CHECK(ss_elements_compare(kinds, a, kinds, d, SS_LESS_EQUAL));
    CHECK(ss_elements_compare(kinds, d, kinds, d, SS_GREATER_EQUAL));
    CHECK(!ss_elements_compare(kinds, d, kinds, d, SS_LESS));
    CHECK(ss_hash_of(kinds, a) != ss_hash_of(kinds, b));
    CHECK(ss_hash_of(SS_KIND_FLOAT, a) == ss_hash_of(SS_KIND_FLOAT, b));
    CHECK(ss_width_of(kinds) == 2 && ss_width_of(UINT64_MAX) == 16 && ss_width_of(0) == 0);

    struct ss_list *floats = ss_list_new(&run, 0, 0), *words = ss_list_new(&run, 0, 0);
    CHECK(ss_list_sum(words) == 0);
    append(floats, SS_KIND_FLOAT, minus, 0);
    CHECK(ss_list_sum(floats) == zero);
    append(floats, SS_KIND_FLOAT, one, 0);
    CHECK(ss_list_sum(floats) == one);
    CHECK(ss_list_extreme(floats, SS_LESS) == 0 && ss_list_extreme(floats, SS_GREATER) == 1);
    append(floats, SS_KIND_FLOAT, nan, 0);
    CHECK(ss_list_extreme(floats, SS_GREATER) == 1);
    append(words, SS_KIND_INT, UINT64_MAX, 0);
    append(words, SS_KIND_INT, 3, 0);
    CHECK(ss_list_sum(words) == 2 && ss_list_extreme(words, SS_LESS) == 0);

    struct ss_list *left = ss_list_new(&run, 0, 0), *right = ss_list_new(&run, 0, 0);
    struct ss_list *inner = ss_list_new(&run, 0, 0), *same = ss_list_new(&run, 0, 0);
    append(inner, SS_KIND_UINT, UINT64_MAX, 0);
    append(same, SS_KIND_UINT, UINT64_MAX, 0);
    append(left, SS_KIND_LIST, (uint64_t)(uintptr_t)inner, 0);
    append(right, SS_KIND_LIST, (uint64_t)(uintptr_t)same, 0);
    CHECK(ss_list_compare(left, right, SS_EQUAL) && ss_list_compare(left, right, SS_LESS_EQUAL));
    append(same, SS_KIND_UINT, 0, 0);
    CHECK(ss_list_compare(left, right, SS_LESS) && ss_list_compare(left, right, SS_UNEQUAL));
    CHECK(ss_list_compare(right, left, SS_GREATER) && !ss_list_compare(right, left, SS_EQUAL));
    CHECK(ss_list_sort(left, right, false) && !ss_has_nan(SS_KIND_LIST, left->words));
    struct ss_list *none = ss_list_new(&run, 0, 0);
    append(none, SS_KIND_FLOAT, nan, 0);
    uint64_t word = (uint64_t)(uintptr_t)none;
    CHECK(ss_has_nan(SS_KIND_LIST, &word));
    ss_arena_close(&run);
}

/* ---- dicts and sets ---- */

enum { KEYS = 60 };
static uint64_t keys_in_order[MOST], values[KEYS];

static uint64_t place_of(uint64_t key)
{
    uint64_t at = 0;
    while (at < count && keys_in_order[at] != key)
        at++;
    return at;
}

static void remove_key(uint64_t at)
{
    memmove(keys_in_order + at, keys_in_order + at + 1, (count - at - 1) * sizeof *keys_in_order);
    count--;
}

static void random_steps_on_a_dict(uint64_t seed)
{
    struct dice dice = {seed};
    begin("random steps on a dict", 1 << 20);
    struct ss_table *table = ss_table_new(&run);
    const uint64_t key_kinds = SS_KIND_INT | SS_KIND_BOOL << 4, value_kinds = SS_KIND_INT;
    count = 0;
    for (int step = 0; step < 20000; step++) {
        uint64_t number = below(&dice, KEYS), at = place_of(number), is_new;
        uint64_t key[] = {number / 2, number % 2};
        uint64_t *entry = ss_table_find(table, key_kinds, key);
        CHECK((entry != NULL) == (at < count));
        CHECK(entry == NULL || entry[3] == values[number]);
        switch (below(&dice, 6)) {
        case 0:
        case 1:
            entry = ss_table_put(table, key_kinds, value_kinds, key, &is_new);
            CHECK(is_new == (at == count));
            entry[3] = values[number] = below(&dice, 1000);
            if (is_new)
                keys_in_order[count++] = number;
            break;
        case 2:
        case 3:
            if (entry == NULL)
                break;
            ss_table_remove(table, entry);
            remove_key(at);
            break;
        case 4:
            entry = ss_table_last(table);
            CHECK((entry != NULL) == (count > 0));
            if (entry == NULL)
                break;
            CHECK(entry[1] * 2 + entry[2] == keys_in_order[count - 1]);
            ss_table_remove(table, entry);
            count--;
            break;
        default:
            if (chance(&dice, 50)) {
                ss_table_clear(table);
                count = 0;
            } else if (chance(&dice, 10)) {
                struct ss_table *copy = ss_table_copy(table);
                CHECK(ss_table_equal(copy, table) && ss_table_equal(table, copy));
                table = copy;
            }
        }
        CHECK(table->count == count);
        uint64_t position = 0;
        for (uint64_t i = 0; i < count; i++) {
            entry = ss_table_next(table, &position);
            CHECK(entry != NULL && entry[1] * 2 + entry[2] == keys_in_order[i]);
            CHECK(entry[3] == values[keys_in_order[i]]);
        }
        CHECK(ss_table_next(table, &position) == NULL);
    }
    ss_arena_close(&run);
}

static struct ss_table *set_of(const char *members)
{
    struct ss_table *set = ss_table_new(&run);
    for (; *members != 0; members++) {
        uint64_t key = (uint64_t)*members, is_new;
        CHECK(ss_table_put(set, SS_KIND_TEXT, 0, &key, &is_new) != NULL);
    }
    return set;
}

static bool is(const struct ss_table *set, const char *members)
{
    uint64_t at = 0;
    for (uint64_t *entry; (entry = ss_table_next(set, &at)) != NULL; members++)
        if (entry[1] != (uint64_t)*members)
            return false;
    return *members == 0;
}

static void sets_are_combined(void)
{
    static const char *const results[] = {"abcde", "bc", "a", "ade"};
    begin("sets are combined", 1 << 20);
    for (int operation = SS_SET_UNION; operation <= SS_SET_SYMMETRIC; operation++) {
        struct ss_table *left = set_of("abc"), *right = set_of("dcbe");
        enum ss_set_operation one = (enum ss_set_operation)operation;
        CHECK(is(ss_set_combined(left, right, one), results[operation]));
        CHECK(is(left, "abc") && ss_set_change(left, right, one));
        CHECK(ss_table_equal(left, set_of(results[operation])) && is(right, "dcbe"));
        CHECK(ss_set_change(right, right, one));
        CHECK(right->count == (operation == SS_SET_UNION || operation == SS_SET_INTERSECTION ? 4 : 0));
        CHECK(ss_set_combined(right, right, one) != NULL);
    }
    struct ss_table *none = ss_table_new(&run), *some = set_of("xy");
    CHECK(ss_set_within(none, some) && !ss_set_within(some, none) && ss_set_within(some, some));
    CHECK(ss_set_disjoint(none, some) && ss_set_disjoint(some, set_of("z")));
    CHECK(!ss_set_disjoint(some, set_of("zy")) && !ss_table_equal(some, set_of("xz")));
    CHECK(!ss_table_equal(some, none) && ss_table_equal(some, set_of("yx")));
    CHECK(is(ss_set_combined(none, some, SS_SET_UNION), "xy") && ss_table_update(some, some));
    uint64_t changes = some->changes;
    ss_table_clear(some);
    CHECK(some->changes != changes && some->count == 0 && ss_table_last(some) == NULL);
    ss_arena_close(&run);
}

/* A module's dict: of no run, found in and gone through as any other; what is made of it is the
 * event's. */
static void a_frozen_table_is_copied_and_stays(void)
{
    enum { MOST = 40, WORDS = 4 }; /* there, a key of two words, a value */
    static struct ss_table *frozen[MOST + 1]; /* they stay, and whoever looks for leaks sees it */
    const uint64_t key_kinds = SS_KIND_INT | SS_KIND_BOOL << 4;
    for (uint64_t count = 0; count <= MOST; count++) {
        begin("a frozen table is copied, and stays", 1 << 20);
        ss_arena_enter(&run);
        uint64_t entries[MOST * WORDS];
        for (uint64_t i = 0; i < count; i++)
            memcpy(entries + i * WORDS, (uint64_t[]){1, i * 64, i & 1, i + 100},
                   WORDS * sizeof *entries);
        struct ss_table *table = frozen[count] =
            ss_table_frozen(key_kinds, SS_KIND_INT, count == 0 ? NULL : entries, count);
        CHECK(table != NULL && table->run == NULL && table->count == count);
        memset(entries, 0xff, sizeof entries);
        uint64_t at = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t key[] = {i * 64, i & 1}, other[] = {i * 64, 1 - (i & 1)};
            const uint64_t *entry = ss_table_find(table, key_kinds, key);
            CHECK(entry != NULL && entry[3] == i + 100 && entry == ss_table_next(table, &at));
            CHECK(ss_table_find(table, key_kinds, other) == NULL);
        }
        CHECK(ss_table_next(table, &at) == NULL);
        const uint64_t *last = ss_table_last(table);
        CHECK(count == 0 ? last == NULL : last[1] == 64 * (count - 1));

        struct ss_table *copy = ss_table_copy(table);
        CHECK(copy != NULL && copy->run == &run && ss_table_equal(copy, table));
        uint64_t new_key[] = {7, 0}, is_new;
        uint64_t *entry = ss_table_put(copy, key_kinds, SS_KIND_INT, new_key, &is_new);
        CHECK(entry != NULL && is_new);
        entry[3] = 1;
        CHECK(!ss_table_equal(copy, table) && table->count == count && copy->count == count + 1);
        CHECK(ss_table_find(table, key_kinds, new_key) == NULL && table->changes == 0);
        CHECK(ss_table_update(copy, table) && copy->count == count + 1);
        struct ss_table *common = ss_set_combined(table, copy, SS_SET_INTERSECTION);
        CHECK(common != NULL && common->run == &run && common->count == count);
        CHECK(ss_set_within(table, copy) && !ss_set_within(copy, table));
        ss_arena_close(&run);
    }
}

static void keys_that_come_and_go_take_no_more(void)
{
    begin("keys that come and go take no more", 1 << 20);
    struct ss_table *table = ss_table_new(&run);
    uint64_t most = 0, is_new;
    for (uint64_t key = 0; key < 100000; key++) {
        ss_table_put(table, SS_KIND_INT, 0, &key, &is_new);
        uint64_t old = key - 5;
        uint64_t *entry = key < 5 ? NULL : ss_table_find(table, SS_KIND_INT, &old);
        if (entry != NULL)
            ss_table_remove(table, entry);
        most = run.arena_words > most ? run.arena_words : most;
    }
    CHECK(table->count == 5 && most < 1000);
    uint64_t minus = bits(-0.0), zero = bits(0.0);
    struct ss_table *floats = ss_table_new(&run);
    ss_table_put(floats, SS_KIND_FLOAT, 0, &minus, &is_new);
    CHECK(is_new && ss_table_find(floats, SS_KIND_FLOAT, &zero)[1] == minus);
    ss_arena_close(&run);
}

/* Each request for memory is refused in turn. */
static void without_memory(void)
{
    bool was_done = false;
    int ends = 0;
    begin("without memory", 1 << 12);
    for (uint64_t limit = 8; limit < 1 << 12; limit += 8) {
        struct ss_config config = {.element_limit = limit};
        ss_arena_close(&run);
        CHECK(ss_arena_open(&run, &config, true));
        run.verdict = SS_COMPLETED;
        struct ss_list *list = ss_list_new(&run, SS_KIND_INT, 10);
        struct ss_table *table = list == NULL ? NULL : ss_table_new(&run), *other = NULL;
        bool done = table != NULL;
        uint64_t is_new;
        for (uint64_t i = 0; done && i < 20; i++) {
            uint64_t *gap = ss_list_gap(list, SS_KIND_INT, i / 2);
            done = gap != NULL;
            if (done)
                *gap = i;
            done = done && ss_table_put(table, SS_KIND_INT, 0, &i, &is_new) != NULL;
        }
        done = done && ss_list_sort(list, list, true) && ss_list_part(list, 0, 2, 10) != NULL &&
               ss_list_joined(list, list) != NULL && ss_list_replace(list, 0, 1, 0, list) &&
               ss_list_repeat(list, 2) && (other = ss_table_copy(table)) != NULL &&
               ss_set_combined(table, other, SS_SET_UNION) != NULL &&
               ss_set_change(table, other, SS_SET_SYMMETRIC);
        CHECK(run.verdict == (done ? SS_COMPLETED : SS_LOG_FULL));
        ends += done != was_done;
        was_done = done;
    }
    CHECK(was_done && ends == 1);
    ss_arena_close(&run);
}

int main(void)
{
    blocks_are_apart_and_used_again();
    a_speculative_run_has_a_limit();
    what_has_grown_is_given_back();
    for (uint64_t seed = 1; seed <= 5; seed++) {
        random_steps_on_a_list(SS_KIND_INT, seed);
        random_steps_on_a_list(SS_KIND_INT | SS_KIND_UINT << 4, seed);
        random_steps_on_a_dict(seed);
    }
    lists_repeat_and_join();
    for (uint64_t length = 0; length < 100; length++) {
        sorting_is_stable(length + 1, length, false);
        sorting_is_stable(length + 1, length, true);
    }
    elements_compare_as_in_python();
    sets_are_combined();
    a_frozen_table_is_copied_and_stays();
    keys_that_come_and_go_take_no_more();
    without_memory();
    puts("local lists, dicts and sets: passed");
    return 0;
}
