/* An event's own dicts and sets.
 *
 * As in CPython, entries lie in the order of their insertion, and an index of positions by hash finds
 * them: open addressing, at most half full. What is removed leaves its entry behind, marked, until
 * the table is built anew; so an index never loses what lies behind it. Whoever goes through a table sees by
 * its `changes` that keys have come or gone. A set is a table whose values have no words. */
#include <stdlib.h>
#include <string.h>

#include "local/arena.h"
#include "local/local_elements.h"
#include "specstream.h"
#include "specstream_local.h"

static const uint64_t first_capacity = 8;

static uint64_t *entry_at(const struct ss_table *table, uint64_t at)
{
    return table->entries + at * table->entry_words;
}

static const uint64_t *value_of(const struct ss_table *table, const uint64_t *entry)
{
    return entry + 1 + table->key_words;
}

struct ss_table *ss_table_new(struct ss_run *run)
{
    run = ss_arena_run(run);
    struct ss_table *table =
        (struct ss_table *)ss_arena_take(run, sizeof *table / sizeof(uint64_t));
    if (table != NULL)
        *table = (struct ss_table){.run = run};
    return table;
}

static void enter(struct ss_table *table, uint64_t at)
{
    uint64_t place = ss_hash_of(table->key_kinds, entry_at(table, at) + 1) & table->mask;
    while (table->index[place] != 0)
        place = (place + 1) & table->mask;
    table->index[place] = at + 1;
    table->entered++;
}

struct ss_table *ss_table_frozen(uint64_t key_kinds, uint64_t value_kinds, const uint64_t *entries,
                                 uint64_t count)
{
    uint64_t key_words = ss_width_of(key_kinds);
    uint64_t entry_words = 1 + key_words + ss_width_of(value_kinds);
    uint64_t capacity = first_capacity;
    while (capacity < count)
        capacity *= 2;
    struct ss_table *table = malloc(sizeof *table);
    uint64_t *own = malloc(capacity * entry_words * sizeof *own);
    uint64_t *index = calloc(2 * capacity, sizeof *index);
    if (table == NULL || own == NULL || index == NULL) {
        free(table);
        free(own);
        free(index);
        return NULL;
    }
    if (count > 0)
        memcpy(own, entries, count * entry_words * sizeof *own);
    *table = (struct ss_table){.count = count,
                               .capacity = capacity,
                               .entries = own,
                               .key_kinds = key_kinds,
                               .value_kinds = value_kinds,
                               .key_words = key_words,
                               .entry_words = entry_words,
                               .index = index,
                               .mask = 2 * capacity - 1};
    while (table->filled < count)
        enter(table, table->filled++);
    return table;
}

/* Room for so many entries, those that were removed left out. */
static bool rebuild(struct ss_table *table, uint64_t capacity)
{
    uint64_t places = 2 * capacity; /* both powers of two */
    uint64_t words;
    if (capacity > UINT64_MAX / 4 ||
        __builtin_mul_overflow(capacity, table->entry_words, &words))
        words = places = UINT64_MAX;
    uint64_t *entries = ss_arena_take(table->run, words);
    uint64_t *index = entries == NULL ? NULL : ss_arena_take(table->run, places);
    if (index == NULL)
        return false;
    struct ss_table before = *table;
    memset(index, 0, places * sizeof *index);
    table->entries = entries;
    table->index = index;
    table->mask = places - 1;
    table->capacity = capacity;
    table->filled = table->entered = 0;
    for (uint64_t i = 0; i < before.filled; i++)
        if (*entry_at(&before, i) != 0) {
            memcpy(entry_at(table, table->filled), entry_at(&before, i),
                   table->entry_words * sizeof *entries);
            enter(table, table->filled++);
        }
    ss_arena_give(table->run, before.entries, before.capacity * table->entry_words);
    ss_arena_give(table->run, before.index, before.mask + 1);
    return true;
}

uint64_t *ss_table_find(const struct ss_table *table, uint64_t key_kinds, const uint64_t *key)
{
    if (table->count == 0)
        return NULL;
    uint64_t place = ss_hash_of(key_kinds, key) & table->mask;
    for (; table->index[place] != 0; place = (place + 1) & table->mask) {
        uint64_t *entry = entry_at(table, table->index[place] - 1);
        if (*entry != 0 && ss_elements_are_equal(key_kinds, entry + 1, key))
            return entry;
    }
    return NULL;
}

uint64_t *ss_table_put(struct ss_table *table, uint64_t key_kinds, uint64_t value_kinds,
                       const uint64_t *key, uint64_t *is_new)
{
    uint64_t *entry = ss_table_find(table, key_kinds, key);
    *is_new = entry == NULL;
    if (entry != NULL)
        return entry;
    if (table->key_kinds == 0) {
        table->key_kinds = key_kinds;
        table->value_kinds = value_kinds;
        table->key_words = ss_width_of(key_kinds);
        table->entry_words = 1 + table->key_words + ss_width_of(value_kinds);
    }
    if (table->entered == table->capacity) {
        /* Half of it removed: as large as before. */
        uint64_t capacity = table->capacity == 0             ? first_capacity
                            : 2 * table->count < table->capacity ? table->capacity
                                                                 : 2 * table->capacity;
        if (!rebuild(table, capacity))
            return NULL;
    }
    entry = entry_at(table, table->filled);
    *entry = 1;
    memcpy(entry + 1, key, table->key_words * sizeof *key);
    enter(table, table->filled++);
    table->count++;
    table->changes++;
    return entry;
}

void ss_table_remove(struct ss_table *table, uint64_t *entry)
{
    *entry = 0;
    table->count--;
    table->changes++;
    /* What is taken from the end again and again is not searched for. The index still has a place for
     * it: if the next entry comes to lie there, one more place leads to that, which does no harm. */
    while (table->filled > 0 && *entry_at(table, table->filled - 1) == 0)
        table->filled--;
}

uint64_t *ss_table_next(const struct ss_table *table, uint64_t *position)
{
    while (*position < table->filled) {
        uint64_t *entry = entry_at(table, (*position)++);
        if (*entry != 0)
            return entry;
    }
    return NULL;
}

uint64_t *ss_table_last(const struct ss_table *table)
{
    for (uint64_t i = table->filled; i > 0; i--)
        if (*entry_at(table, i - 1) != 0)
            return entry_at(table, i - 1);
    return NULL;
}

void ss_table_clear(struct ss_table *table)
{
    if (table->entered > 0)
        memset(table->index, 0, (table->mask + 1) * sizeof *table->index);
    table->changes += table->count > 0;
    table->count = table->filled = table->entered = 0;
}

struct ss_table *ss_table_copy(const struct ss_table *table)
{
    struct ss_table *copy = ss_table_new(table->run);
    return copy != NULL && ss_table_update(copy, table) ? copy : NULL;
}

/* One entry of `of` into a table. */
static bool take_over(struct ss_table *table, const struct ss_table *of, const uint64_t *entry)
{
    uint64_t is_new;
    uint64_t *own = ss_table_put(table, of->key_kinds, of->value_kinds, entry + 1, &is_new);
    if (own == NULL)
        return false;
    uint64_t words = of->entry_words - 1 - of->key_words;
    if (words > 0)
        memcpy(own + 1 + table->key_words, value_of(of, entry), words * sizeof *own);
    return true;
}

bool ss_table_update(struct ss_table *table, const struct ss_table *by)
{
    if (table == by)
        return true;
    uint64_t at = 0;
    for (uint64_t *entry; (entry = ss_table_next(by, &at)) != NULL;)
        if (!take_over(table, by, entry))
            return false;
    return true;
}

bool ss_table_equal(const struct ss_table *left, const struct ss_table *right)
{
    if (left->count != right->count)
        return false;
    uint64_t at = 0;
    for (uint64_t *entry; (entry = ss_table_next(left, &at)) != NULL;) {
        const uint64_t *other = ss_table_find(right, left->key_kinds, entry + 1);
        if (other == NULL || !ss_elements_are_equal(left->value_kinds, value_of(left, entry),
                                                    value_of(right, other)))
            return false;
    }
    return true;
}

static bool has(const struct ss_table *table, const struct ss_table *of, const uint64_t *entry)
{
    return ss_table_find(table, of->key_kinds, entry + 1) != NULL;
}

struct ss_table *ss_set_combined(const struct ss_table *left, const struct ss_table *right,
                                 enum ss_set_operation operation)
{
    struct ss_table *made = ss_table_new(left->run);
    if (made == NULL)
        return NULL;
    uint64_t at = 0;
    for (uint64_t *entry; (entry = ss_table_next(left, &at)) != NULL;) {
        bool is_kept =
            operation == SS_SET_UNION || has(right, left, entry) == (operation == SS_SET_INTERSECTION);
        if (is_kept && !take_over(made, left, entry))
            return NULL;
    }
    if (operation == SS_SET_INTERSECTION || operation == SS_SET_DIFFERENCE)
        return made;
    at = 0;
    for (uint64_t *entry; (entry = ss_table_next(right, &at)) != NULL;)
        if (!has(left, right, entry) && !take_over(made, right, entry))
            return NULL;
    return made;
}

bool ss_set_change(struct ss_table *left, const struct ss_table *right,
                   enum ss_set_operation operation)
{
    if (operation == SS_SET_UNION)
        return ss_table_update(left, right);
    uint64_t at = 0;
    if (operation == SS_SET_SYMMETRIC) {
        struct ss_table *made = ss_set_combined(left, right, operation);
        if (made == NULL)
            return false;
        ss_table_clear(left);
        return ss_table_update(left, made);
    }
    if (left == right && operation == SS_SET_DIFFERENCE) {
        ss_table_clear(left);
        return true;
    }
    for (uint64_t *entry; (entry = ss_table_next(left, &at)) != NULL;)
        if (has(right, left, entry) == (operation == SS_SET_DIFFERENCE))
            ss_table_remove(left, entry);
    return true;
}

bool ss_set_within(const struct ss_table *part, const struct ss_table *whole)
{
    uint64_t at = 0;
    for (uint64_t *entry; (entry = ss_table_next(part, &at)) != NULL;)
        if (!has(whole, part, entry))
            return false;
    return true;
}

bool ss_set_disjoint(const struct ss_table *left, const struct ss_table *right)
{
    uint64_t at = 0;
    for (uint64_t *entry; (entry = ss_table_next(left, &at)) != NULL;)
        if (has(right, left, entry))
            return false;
    return true;
}
