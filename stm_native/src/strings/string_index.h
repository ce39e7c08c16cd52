/* Where the strings of a table are, by their bytes and by their codes. */
#ifndef SPECSTREAM_STRING_INDEX_H
#define SPECSTREAM_STRING_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "strings/string_table.h"

struct ss_octets;

struct ss_string_index {
    uint64_t mask;   /* slots, less by one */
    uint64_t filled; /* of them; the writer's */
    /* Upper sixteen bits of the hash, and the string's address. 0: empty. */
    _Atomic uint64_t *slots;
};

enum ss_string_key { SS_BY_TEXT = 0, SS_BY_CODE = 1 };

static const uint64_t ss_string_tag = UINT64_C(0xffff000000000000);

/* Where a code is in the index. The upper half of a product with a secret number of 128 bits
 * (Dietzfelbinger 1996): any two codes that somebody may have chosen differ in it as two random numbers
 * would, in its lower bits as well. A word that is no code costs no more than this and a slot. */
static inline uint64_t ss_string_mix(const struct ss_string_table *table, uint64_t code)
{
    unsigned __int128 product = (unsigned __int128)table->mixer[0] * code;
    return (uint64_t)(product >> 64) + table->mixer[1] * code;
}

static inline struct ss_string *ss_slot_string(uint64_t slot)
{
    return (struct ss_string *)(uintptr_t)(slot & ~ss_string_tag);
}

static inline void ss_string_prefetch(const struct ss_string_index *index, uint64_t hash)
{
    __builtin_prefetch((const void *)&index->slots[hash & index->mask]);
}

/* The string with this code, or NULL; for readers and the writer. Those with this number and above are not
 * there. */
struct ss_string *ss_string_by_code(const struct ss_string_table *table,
                                    const struct ss_string_index *index, uint64_t code,
                                    uint64_t limit);
/* The string with these bytes, and this hash. */
struct ss_string *ss_string_by_text(const struct ss_string_index *index,
                                    const struct ss_octets *text, uint64_t hash, uint64_t limit);
/* The same of some dozens: while one is awaited from memory, others are asked for. */
void ss_strings_by_text(const struct ss_string_index *index, const struct ss_octets *texts,
                        const uint64_t *hashes, uint64_t count, uint64_t limit,
                        struct ss_string **found);

/* An empty index for so many strings; NULL: no memory. */
struct ss_string_index *ss_string_index_new(uint64_t strings);
void ss_string_index_free(struct ss_string_index *index);
uint64_t ss_string_index_bytes(const struct ss_string_index *index);
/* Whoever has the mutex puts a string into an index in which it is not, and which has room. */
void ss_string_put(struct ss_string_index *index, uint64_t hash, struct ss_string *string);
/* It takes out one that is there, after all that were put in later and before nobody looks for them. */
void ss_string_take_out(struct ss_string_index *index, uint64_t hash,
                        const struct ss_string *string);
/* All strings of a table below a number go into an index, which has room. */
void ss_string_put_all(const struct ss_string_table *table, struct ss_string_index *index,
                       enum ss_string_key key, uint64_t limit);
/* With the mutex: room for so many more. The index of strings below `limit` is replaced if it has none, with
 * one for those that are likely to come as well, if these are not too many. False: no memory. */
bool ss_string_reserve(struct ss_string_table *table, enum ss_string_key key, uint64_t more,
                       uint64_t likely, uint64_t limit);

#endif
