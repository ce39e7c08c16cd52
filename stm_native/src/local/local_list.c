/* An event's own lists: what compiled code does not do by itself.
 *
 * A list is known by the address of its head, which stays, so that all names of it see each change;
 * its elements lie in a block that is replaced when it is too small. What they are is written into the
 * head with the first one: where `[]` is made, nobody may know yet. */
#include <string.h>

#include "local/arena.h"
#include "local/local_elements.h"
#include "specstream.h"
#include "specstream_local.h"

static const uint64_t first_capacity = 8;
static const uint64_t insertion_sorted = 12;

static uint64_t *element_at(const struct ss_list *list, uint64_t at)
{
    return list->words + at * list->width;
}

static void copy_elements(uint64_t *to, const uint64_t *from, uint64_t words)
{
    if (words > 0)
        memcpy(to, from, words * sizeof *to);
}

static void move_elements(const struct ss_list *list, uint64_t to, uint64_t from, uint64_t count)
{
    if (count > 0)
        memmove(element_at(list, to), element_at(list, from),
                count * list->width * sizeof *list->words);
}

struct ss_list *ss_list_new(struct ss_run *run, uint64_t kinds, uint64_t capacity)
{
    run = ss_arena_run(run);
    struct ss_list *list = (struct ss_list *)ss_arena_take(run, sizeof *list / sizeof(uint64_t));
    if (list == NULL)
        return NULL;
    *list = (struct ss_list){.run = run};
    return capacity == 0 || ss_list_reserve(list, kinds, capacity) ? list : NULL;
}

bool ss_list_reserve(struct ss_list *list, uint64_t kinds, uint64_t more)
{
    if (list->kinds == 0) {
        list->kinds = kinds;
        list->width = ss_width_of(kinds);
    }
    if (more <= list->capacity - list->count)
        return true;
    uint64_t capacity = 2 * list->capacity;
    if (capacity < list->count + more)
        capacity = list->count + more;
    if (capacity < first_capacity)
        capacity = first_capacity;
    uint64_t words;
    if (more > UINT64_MAX / 4 || __builtin_mul_overflow(capacity, list->width, &words))
        words = UINT64_MAX; /* more than any arena has */
    uint64_t *grown = ss_arena_take(list->run, words);
    if (grown == NULL)
        return false;
    copy_elements(grown, list->words, list->count * list->width);
    ss_arena_give(list->run, list->words, list->capacity * list->width);
    list->words = grown;
    list->capacity = capacity;
    return true;
}

uint64_t *ss_list_gap(struct ss_list *list, uint64_t kinds, uint64_t at)
{
    if (!ss_list_reserve(list, kinds, 1))
        return NULL;
    move_elements(list, at + 1, at, list->count - at);
    list->count++;
    return element_at(list, at);
}

void ss_list_delete(struct ss_list *list, int64_t first, int64_t step, uint64_t length)
{
    if (length == 0)
        return;
    if (step < 0) {
        first += (int64_t)(length - 1) * step;
        step = -step;
    }
    uint64_t to = (uint64_t)first;
    for (uint64_t i = 0; i < length; i++) {
        uint64_t from = (uint64_t)first + i * (uint64_t)step + 1;
        uint64_t kept = (i + 1 < length ? from - 1 + (uint64_t)step : list->count) - from;
        move_elements(list, to, from, kept);
        to += kept;
    }
    list->count = to;
}

struct ss_list *ss_list_part(const struct ss_list *list, int64_t first, int64_t step,
                             uint64_t length)
{
    struct ss_list *part = ss_list_new(list->run, list->kinds, length);
    if (part == NULL || length == 0)
        return part;
    part->count = length;
    if (step == 1)
        copy_elements(part->words, element_at(list, (uint64_t)first), length * list->width);
    else
        for (uint64_t i = 0; i < length; i++)
            copy_elements(element_at(part, i),
                          element_at(list, (uint64_t)(first + (int64_t)i * step)), list->width);
    return part;
}

bool ss_list_replace(struct ss_list *list, int64_t first, int64_t step, uint64_t length,
                     const struct ss_list *by)
{
    if (by == list && (by = ss_list_part(list, 0, 1, list->count)) == NULL)
        return false;
    if (step == 1) {
        uint64_t behind = (uint64_t)first + length;
        if (by->count > length && !ss_list_reserve(list, by->kinds, by->count - length))
            return false;
        move_elements(list, (uint64_t)first + by->count, behind, list->count - behind);
        list->count = list->count - length + by->count;
        if (by->count > 0)
            copy_elements(element_at(list, (uint64_t)first), by->words, by->count * by->width);
        return true;
    }
    for (uint64_t i = 0; i < length; i++)
        copy_elements(element_at(list, (uint64_t)(first + (int64_t)i * step)), element_at(by, i),
                      by->width);
    return true;
}

bool ss_list_extend(struct ss_list *list, const struct ss_list *by)
{
    uint64_t more = by->count; /* before it grows: it may be the list itself */
    if (more == 0)
        return true;
    if (!ss_list_reserve(list, by->kinds, more))
        return false;
    copy_elements(element_at(list, list->count), by->words, more * by->width);
    list->count += more;
    return true;
}

struct ss_list *ss_list_joined(const struct ss_list *left, const struct ss_list *right)
{
    struct ss_list *joined =
        ss_list_new(left->run, left->kinds | right->kinds, left->count + right->count);
    if (joined == NULL || !ss_list_extend(joined, left) || !ss_list_extend(joined, right))
        return NULL;
    return joined;
}

bool ss_list_repeat(struct ss_list *list, int64_t times)
{
    uint64_t once = list->count;
    if (times <= 0 || once == 0) {
        list->count = 0;
        return true;
    }
    uint64_t more;
    if (__builtin_mul_overflow(once, (uint64_t)times - 1, &more))
        more = UINT64_MAX;
    if (!ss_list_reserve(list, list->kinds, more))
        return false;
    for (uint64_t done = once; done < once + more; done += once)
        copy_elements(element_at(list, done), list->words, once * list->width);
    list->count = once + more;
    return true;
}

int64_t ss_list_find(const struct ss_list *list, uint64_t kinds, const uint64_t *element,
                     uint64_t from, uint64_t to)
{
    to = to < list->count ? to : list->count;
    for (uint64_t i = from; i < to; i++)
        if (ss_elements_are_equal(kinds, element_at(list, i), element))
            return (int64_t)i;
    return -1;
}

uint64_t ss_list_count(const struct ss_list *list, uint64_t kinds, const uint64_t *element)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < list->count; i++)
        count += ss_elements_are_equal(kinds, element_at(list, i), element);
    return count;
}

void ss_list_reverse(struct ss_list *list)
{
    for (uint64_t i = 0, j = list->count; i + 1 < j; i++) {
        j--;
        for (uint64_t word = 0; word < list->width; word++) {
            uint64_t kept = element_at(list, i)[word];
            element_at(list, i)[word] = element_at(list, j)[word];
            element_at(list, j)[word] = kept;
        }
    }
}

/* Whether the key at `right`, which comes later, has to come first. */
static bool overtakes(const struct ss_list *keys, uint64_t left, uint64_t right, bool backwards)
{
    int order = ss_elements_order(keys->kinds, element_at(keys, left), element_at(keys, right));
    return backwards ? order < 0 : order > 0;
}

/* Positions in the order of their keys: short stretches by insertion, then merged, which is stable. */
static uint64_t *ordered(uint64_t *at, uint64_t *spare, const struct ss_list *keys, bool backwards)
{
    uint64_t count = keys->count;
    for (uint64_t first = 0; first < count; first += insertion_sorted)
        for (uint64_t i = first; i < count && i < first + insertion_sorted; i++) {
            uint64_t j = i;
            for (; j > first && overtakes(keys, at[j - 1], i, backwards); j--)
                at[j] = at[j - 1];
            at[j] = i;
        }
    for (uint64_t width = insertion_sorted; width < count; width *= 2) {
        for (uint64_t low = 0; low < count; low += 2 * width) {
            uint64_t middle = low + width < count ? low + width : count;
            uint64_t high = middle + width < count ? middle + width : count;
            uint64_t left = low, right = middle;
            for (uint64_t to = low; to < high; to++)
                spare[to] = left == middle || (right < high && overtakes(keys, at[left], at[right],
                                                                         backwards))
                                ? at[right++]
                                : at[left++];
        }
        uint64_t *merged = spare;
        spare = at;
        at = merged;
    }
    return at;
}

bool ss_list_has_nan(const struct ss_list *list)
{
    for (uint64_t i = 0; i < list->count; i++)
        if (ss_has_nan(list->kinds, element_at(list, i)))
            return true;
    return false;
}

bool ss_list_sort(struct ss_list *list, const struct ss_list *keys, uint32_t backwards)
{
    if (list->count < 2)
        return true;
    uint64_t words = list->count * (2 + list->width);
    uint64_t *room = ss_arena_take(list->run, words);
    if (room == NULL)
        return false;
    const uint64_t *at = ordered(room, room + list->count, keys, backwards != 0);
    uint64_t *sorted = room + 2 * list->count;
    for (uint64_t i = 0; i < list->count; i++)
        copy_elements(sorted + i * list->width, element_at(list, at[i]), list->width);
    copy_elements(list->words, sorted, list->count * list->width);
    ss_arena_give(list->run, room, words);
    return true;
}

bool ss_list_compare(const struct ss_list *left, const struct ss_list *right,
                     enum ss_comparison relation)
{
    uint64_t common = left->count < right->count ? left->count : right->count;
    if ((relation == SS_EQUAL || relation == SS_UNEQUAL) && left->count != right->count)
        return relation == SS_UNEQUAL;
    for (uint64_t i = 0; i < common; i++)
        if (!ss_elements_are_equal(left->kinds, element_at(left, i), element_at(right, i)))
            return relation != SS_EQUAL &&
                   (relation == SS_UNEQUAL ||
                    ss_elements_compare(left->kinds, element_at(left, i), right->kinds,
                                        element_at(right, i), relation));
    switch (relation) {
    case SS_EQUAL:
        return true;
    case SS_UNEQUAL:
        return false;
    case SS_LESS:
        return left->count < right->count;
    case SS_LESS_EQUAL:
        return left->count <= right->count;
    case SS_GREATER:
        return left->count > right->count;
    default:
        return left->count >= right->count;
    }
}

uint64_t ss_list_extreme(const struct ss_list *list, enum ss_comparison wins)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < list->count; i++)
        if (ss_elements_compare(list->kinds, element_at(list, i), list->kinds,
                                element_at(list, best), wins))
            best = i;
    return best;
}

uint64_t ss_list_sum(const struct ss_list *list)
{
    uint64_t total = 0;
    double floats = 0.0;
    if (list->kinds != SS_KIND_FLOAT) {
        for (uint64_t i = 0; i < list->count; i++)
            total += list->words[i];
        return total;
    }
    for (uint64_t i = 0; i < list->count; i++) {
        double value;
        memcpy(&value, &list->words[i], sizeof value);
        floats += value;
    }
    memcpy(&total, &floats, sizeof total);
    return total;
}
