/* Lists, dicts and sets that an event makes for itself: what compiled code knows of them.
 *
 * An element is some words, one for each number in it. Its *kinds* say what these are, four bits a
 * word, the first word in the lowest four: enum ss_kind. So C compares and orders elements without
 * knowing more of them. See src/local/arena.c, src/local/local_list.c, src/local/local_table.c. */
#ifndef SPECSTREAM_LOCAL_H
#define SPECSTREAM_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

struct ss_run;

/* 0 ends the kinds of an element. */
enum ss_kind {
    SS_KIND_INT = 1,
    SS_KIND_UINT = 2,
    SS_KIND_FLOAT = 3,
    SS_KIND_BOOL = 4,
    SS_KIND_TEXT = 5, /* a code, ordered by its text */
    SS_KIND_LIST = 6, /* a struct ss_list: equal if the elements are */
    SS_KIND_TABLE = 7, /* likewise a struct ss_table */
    SS_KIND_OBJECT = 8 /* a struct ss_object: equal if all of its words are */
};

enum ss_comparison {
    SS_EQUAL = 0,
    SS_UNEQUAL = 1,
    SS_LESS = 2,
    SS_LESS_EQUAL = 3,
    SS_GREATER = 4,
    SS_GREATER_EQUAL = 5
};

/* What a run does first that has taken memory in the event before. */
void ss_arena_clear(struct ss_run *run);

/* What an event does first whose operator reads frozen lists, dicts or sets: those belong to no run,
 * and what is made of them is this one's. */
void ss_arena_enter(struct ss_run *run);

/* The run whose arena a new list or table goes to: that of the one that it is made of, or, where this
 * belongs to no run because it is frozen, the one that works in this thread. */
struct ss_run *ss_arena_run(struct ss_run *run);

struct ss_list {
    uint64_t count;    /* elements */
    uint64_t capacity; /* elements that `words` has room for */
    uint64_t *words;
    uint64_t kinds; /* of an element; 0: it has never had one */
    uint64_t width; /* words of an element */
    struct ss_run *run;
};

/* All that may need memory gives NULL or false where there is none, or no more for a speculative run,
 * and the run's verdict says so. Positions and counts were checked by the caller. */
struct ss_list *ss_list_new(struct ss_run *run, uint64_t kinds, uint64_t capacity);
/* Room for so many more. */
bool ss_list_reserve(struct ss_list *list, uint64_t kinds, uint64_t more);
/* Room for an element before position `at`, which lies within the list or is its end; NULL: none. */
uint64_t *ss_list_gap(struct ss_list *list, uint64_t kinds, uint64_t at);
/* Removes `length` elements: first, first + step ... */
void ss_list_delete(struct ss_list *list, int64_t first, int64_t step, uint64_t length);
/* Those elements, as a new list. */
struct ss_list *ss_list_part(const struct ss_list *list, int64_t first, int64_t step,
                             uint64_t length);
/* Replaces them by those of another list: if the step is not 1, as many. */
bool ss_list_replace(struct ss_list *list, int64_t first, int64_t step, uint64_t length,
                     const struct ss_list *by);
bool ss_list_extend(struct ss_list *list, const struct ss_list *by);
struct ss_list *ss_list_joined(const struct ss_list *left, const struct ss_list *right);
/* In place to `times` of itself. */
bool ss_list_repeat(struct ss_list *list, int64_t times);
/* The first position in [from, to) of an element that is equal; -1: none. */
int64_t ss_list_find(const struct ss_list *list, uint64_t kinds, const uint64_t *element,
                     uint64_t from, uint64_t to);
uint64_t ss_list_count(const struct ss_list *list, uint64_t kinds, const uint64_t *element);
void ss_list_reverse(struct ss_list *list);
/* Whether a number in an element is a NaN, so that they have no order. */
bool ss_list_has_nan(const struct ss_list *list);
/* Stable, by the elements of `keys`, which has as many, and no NaN. */
bool ss_list_sort(struct ss_list *list, const struct ss_list *keys, uint32_t backwards);
bool ss_list_compare(const struct ss_list *left, const struct ss_list *right,
                     enum ss_comparison relation);
/* The position of the first element that no other is less (greater) than; the list has one. */
uint64_t ss_list_extreme(const struct ss_list *list, enum ss_comparison wins);
/* Of numbers, from left to right, as the bits of one; bools give an integer. */
uint64_t ss_list_sum(const struct ss_list *list);
/* How two elements compare. */
bool ss_elements_compare(uint64_t left_kinds, const uint64_t *left, uint64_t right_kinds,
                         const uint64_t *right, enum ss_comparison relation);

/* A dict, or a set, whose values have no words. Entries lie in the order of their insertion: a word
 * that says whether the entry is there, the key, the value. */
struct ss_table {
    uint64_t count;    /* entries that are there */
    uint64_t filled;   /* entries, those that were removed included */
    uint64_t entered;  /* places of the index that were given since it was made */
    uint64_t capacity; /* of both */
    uint64_t *entries;
    uint64_t changes; /* insertions and removals so far */
    uint64_t key_kinds; /* 0: it has never had a key; likewise the values' */
    uint64_t value_kinds;
    uint64_t key_words;
    uint64_t entry_words;
    uint64_t *index; /* position + 1 by the hash of the key; 0: none */
    uint64_t mask;
    struct ss_run *run;
};

struct ss_table *ss_table_new(struct ss_run *run);
/* A table that never changes, and stays for as long as the process; `entries` as they lie in one, and
 * all of their keys differ. NULL: no memory. */
struct ss_table *ss_table_frozen(uint64_t key_kinds, uint64_t value_kinds, const uint64_t *entries,
                                 uint64_t count);
/* The entry of a key; NULL: it has none. There is no NaN in it. */
uint64_t *ss_table_find(const struct ss_table *table, uint64_t key_kinds, const uint64_t *key);
/* Likewise, made where there is none; `is_new` says so, and its value is to be stored. */
uint64_t *ss_table_put(struct ss_table *table, uint64_t key_kinds, uint64_t value_kinds,
                       const uint64_t *key, uint64_t *is_new);
void ss_table_remove(struct ss_table *table, uint64_t *entry);
/* The first entry from a position on that is there, and the position behind it; NULL: none. */
uint64_t *ss_table_next(const struct ss_table *table, uint64_t *position);
/* The last entry that is there. */
uint64_t *ss_table_last(const struct ss_table *table);
void ss_table_clear(struct ss_table *table);
struct ss_table *ss_table_copy(const struct ss_table *table);
bool ss_table_update(struct ss_table *table, const struct ss_table *by);
bool ss_table_equal(const struct ss_table *left, const struct ss_table *right);

enum ss_set_operation {
    SS_SET_UNION = 0,
    SS_SET_INTERSECTION = 1,
    SS_SET_DIFFERENCE = 2,
    SS_SET_SYMMETRIC = 3
};

/* A new set: what is kept of `left`, then what is kept of `right`. */
struct ss_table *ss_set_combined(const struct ss_table *left, const struct ss_table *right,
                                 enum ss_set_operation operation);
/* The same, kept in `left`. */
bool ss_set_change(struct ss_table *left, const struct ss_table *right,
                   enum ss_set_operation operation);
/* Whether all elements of one set are in another. */
bool ss_set_within(const struct ss_table *part, const struct ss_table *whole);
bool ss_set_disjoint(const struct ss_table *left, const struct ss_table *right);

#endif
