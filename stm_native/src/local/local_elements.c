/* Elements of an event's own lists, dicts and sets: equality, order, hashes.
 *
 * An element is a number, or several: a tuple, whose parts are compared from the first to the last,
 * tuples in it flattened, since both have the same. What is compared has the same kinds on both sides;
 * the compiler sees to that. Floats are compared as numbers: 0.0 equals -0.0, a NaN nothing. */
#include "local/local_elements.h"

#include <string.h>

#include "specstream_local.h"
#include "specstream_objects.h"
#include "specstream_strings.h"

static double float_of(uint64_t word)
{
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static struct ss_list *list_of(uint64_t word)
{
    return (struct ss_list *)(uintptr_t)word;
}

static struct ss_table *table_of(uint64_t word)
{
    return (struct ss_table *)(uintptr_t)word;
}

static bool is_equal(uint64_t kind, uint64_t left, uint64_t right);

static bool are_equal_objects(const struct ss_object *left, const struct ss_object *right)
{
    if (left->kinds != right->kinds)
        return false;
    for (uint64_t at = 0; at < ss_width_of(left->kinds); at++)
        if (!is_equal(left->kinds >> 4 * at & 15, ss_object_word(left, at),
                      ss_object_word(right, at)))
            return false;
    return true;
}

static bool is_equal(uint64_t kind, uint64_t left, uint64_t right)
{
    switch (kind) {
    case SS_KIND_FLOAT:
        return float_of(left) == float_of(right);
    case SS_KIND_LIST:
        return ss_list_compare(list_of(left), list_of(right), SS_EQUAL);
    case SS_KIND_TABLE:
        return ss_table_equal(table_of(left), table_of(right));
    case SS_KIND_OBJECT:
        return are_equal_objects((const struct ss_object *)(uintptr_t)left,
                                 (const struct ss_object *)(uintptr_t)right);
    default:
        return left == right;
    }
}

bool ss_elements_are_equal(uint64_t kinds, const uint64_t *left, const uint64_t *right)
{
    for (; kinds != 0; kinds >>= 4, left++, right++)
        if (!is_equal(kinds & 15, *left, *right))
            return false;
    return true;
}

static bool relates(uint64_t kind, uint64_t left, uint64_t right, enum ss_comparison relation)
{
    int order = 0;
    if (kind == SS_KIND_LIST)
        return ss_list_compare(list_of(left), list_of(right), relation);
    if (kind == SS_KIND_TEXT) {
        int64_t texts = ss_text_order((int64_t)left, (int64_t)right);
        order = (texts > 0) - (texts < 0);
    } else if (kind == SS_KIND_INT)
        order = ((int64_t)left > (int64_t)right) - ((int64_t)left < (int64_t)right);
    else if (kind == SS_KIND_FLOAT)
        switch (relation) {
        case SS_LESS:
            return float_of(left) < float_of(right);
        case SS_LESS_EQUAL:
            return float_of(left) <= float_of(right);
        case SS_GREATER:
            return float_of(left) > float_of(right);
        default:
            return float_of(left) >= float_of(right);
        }
    else
        order = (left > right) - (left < right);
    switch (relation) {
    case SS_LESS:
        return order < 0;
    case SS_LESS_EQUAL:
        return order <= 0;
    case SS_GREATER:
        return order > 0;
    default:
        return order >= 0;
    }
}

/* As Python does it: the first parts that are not equal decide, and a NaN is not equal to itself. */
bool ss_elements_compare(uint64_t left_kinds, const uint64_t *left, uint64_t right_kinds,
                         const uint64_t *right, enum ss_comparison relation)
{
    uint64_t kinds = left_kinds;
    if (relation == SS_EQUAL || relation == SS_UNEQUAL)
        return (left_kinds == right_kinds && ss_elements_are_equal(kinds, left, right)) ==
               (relation == SS_EQUAL);
    for (; kinds != 0; kinds >>= 4, left++, right++)
        if (!is_equal(kinds & 15, *left, *right))
            return relates(kinds & 15, *left, *right, relation);
    return relation == SS_LESS_EQUAL || relation == SS_GREATER_EQUAL;
}

int ss_elements_order(uint64_t kinds, const uint64_t *left, const uint64_t *right)
{
    for (; kinds != 0; kinds >>= 4, left++, right++)
        if (!is_equal(kinds & 15, *left, *right))
            return relates(kinds & 15, *left, *right, SS_LESS) ? -1 : 1;
    return 0;
}

bool ss_has_nan(uint64_t kinds, const uint64_t *element)
{
    for (; kinds != 0; kinds >>= 4, element++) {
        if ((kinds & 15) == SS_KIND_FLOAT && float_of(*element) != float_of(*element))
            return true;
        if ((kinds & 15) == SS_KIND_LIST && ss_list_has_nan(list_of(*element)))
            return true;
    }
    return false;
}

uint64_t ss_hash_of(uint64_t kinds, const uint64_t *key)
{
    uint64_t hash = 0;
    for (; kinds != 0; kinds >>= 4, key++) {
        uint64_t word = *key;
        if ((kinds & 15) == SS_KIND_FLOAT && float_of(word) == 0.0)
            word = 0; /* -0.0 is the same key */
        /* The finaliser of MurmurHash3: any bit of the key decides about every bit. */
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 33;
        hash *= UINT64_C(0xc4ceb9fe1a85ec53);
        hash ^= hash >> 33;
    }
    return hash;
}
