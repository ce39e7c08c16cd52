/* The two indexes of a string table: from the bytes of a text, and from a code, to the string.
 *
 * Open addressing with linear probing (Knuth, TAOCP 3, 6.4), at most five eighths full. A slot holds the
 * address of a string and sixteen bits of its hash, so that others on the way are passed by without a look
 * at them. Both hashes depend on a secret, or a stranger could choose strings that begin at one slot.
 *
 * Readers take no lock. A slot goes from empty to a string, and an index that has no room is replaced by one
 * that is twice as large; it is freed when all have left that may be looking at it. A slot is emptied
 * in one case only: strings that were being added when something went wrong. They were put in
 * behind all others, which are found without passing their slots. */
#include "strings/string_index.h"

#include <stdlib.h>
#include <string.h>

#include "strings/octets.h"
#include "strings/string_memory.h"
#include "strings/string_table.h"

enum { LEAST_SLOTS = 64, AHEAD = 16, MOST_GROWTH = 6 };

static uint64_t hash_of(const struct ss_string_table *table, const struct ss_string *string,
                        enum ss_string_key key)
{
    return key == SS_BY_TEXT ? string->hash : ss_string_mix(table, string->code);
}

struct ss_string *ss_string_by_code(const struct ss_string_table *table,
                                    const struct ss_string_index *index, uint64_t code,
                                    uint64_t limit)
{
    uint64_t hash = ss_string_mix(table, code);
    for (uint64_t at = hash;; at++) {
        /* Acquires: who sees the slot sees the string. Sequentially consistent: a reader that comes
         * when nobody waits for it any more sees that a slot was emptied. */
        uint64_t slot = atomic_load_explicit(&index->slots[at & index->mask], memory_order_seq_cst);
        if (slot == 0)
            return NULL;
        if (((slot ^ hash) & ss_string_tag) != 0)
            continue;
        struct ss_string *string = ss_slot_string(slot);
        if (string->number < limit && string->code == code)
            return string;
    }
}

/* memcmp, whose call takes longer than comparing the few words that most strings have. */
static inline bool are_same(const uint8_t *bytes, const uint8_t *others, uint64_t length)
{
    uint64_t one, other;
    if (length < sizeof one || length > 64)
        return length == 0 || memcmp(bytes, others, length) == 0;
    for (uint64_t at = 0; at < length; at += sizeof one) {
        /* The last word begins before the one in front of it ends. */
        at = at <= length - sizeof one ? at : length - sizeof one;
        memcpy(&one, bytes + at, sizeof one);
        memcpy(&other, others + at, sizeof other);
        if (one != other)
            return false;
    }
    return true;
}

static inline bool is_that(struct ss_string *string, const struct ss_octets *text, uint64_t hash,
                           uint64_t limit)
{
    return string->hash == hash && string->number < limit &&
           ss_string_length(string) == text->length &&
           are_same(string->bytes, text->bytes, text->length);
}

/* From a slot on: the first string whose hash may be this one, and in `at` the slot behind it. */
static inline struct ss_string *next_of(const struct ss_string_index *index, uint64_t hash,
                                        uint64_t *at)
{
    for (;; ++*at) {
        /* Sequentially consistent: as above. */
        uint64_t slot =
            atomic_load_explicit(&index->slots[*at & index->mask], memory_order_seq_cst);
        if (slot == 0)
            return NULL;
        if (((slot ^ hash) & ss_string_tag) == 0) {
            ++*at;
            return ss_slot_string(slot);
        }
    }
}

struct ss_string *ss_string_by_text(const struct ss_string_index *index,
                                    const struct ss_octets *text, uint64_t hash, uint64_t limit)
{
    uint64_t at = hash;
    struct ss_string *string;
    do
        string = next_of(index, hash, &at);
    while (string != NULL && !is_that(string, text, hash, limit));
    return string;
}

void ss_strings_by_text(const struct ss_string_index *index, const struct ss_octets *texts,
                        const uint64_t *hashes, uint64_t count, uint64_t limit,
                        struct ss_string **found)
{
    for (uint64_t i = 0; i < count; i++)
        ss_string_prefetch(index, hashes[i]);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = hashes[i];
        found[i] = next_of(index, hashes[i], &at);
        /* Not at the address 0, whose page the processor would look for in vain. */
        if (found[i] != NULL)
            __builtin_prefetch(found[i]);
    }
    for (uint64_t i = 0; i < count; i++)
        if (found[i] != NULL && !is_that(found[i], &texts[i], hashes[i], limit))
            found[i] = ss_string_by_text(index, &texts[i], hashes[i], limit);
}

struct ss_string_index *ss_string_index_new(uint64_t strings)
{
    uint64_t slots = LEAST_SLOTS;
    while (slots / 8 * 5 < strings)
        slots *= 2;
    struct ss_string_index *index = malloc(sizeof *index);
    if (index == NULL)
        return NULL;
    *index = (struct ss_string_index){
        .mask = slots - 1, .slots = ss_string_memory(slots * sizeof *index->slots, true)};
    if (index->slots != NULL)
        return index;
    free(index);
    return NULL;
}

void ss_string_index_free(struct ss_string_index *index)
{
    if (index != NULL)
        free(index->slots);
    free(index);
}

uint64_t ss_string_index_bytes(const struct ss_string_index *index)
{
    return sizeof *index + (index->mask + 1) * sizeof *index->slots;
}

void ss_string_put(struct ss_string_index *index, uint64_t hash, struct ss_string *string)
{
    uint64_t at = hash & index->mask;
    /* Relaxed: only the writer fills slots. */
    while (atomic_load_explicit(&index->slots[at], memory_order_relaxed) != 0)
        at = (at + 1) & index->mask;
    /* Release: who sees the slot sees the string, but for its code. */
    atomic_store_explicit(&index->slots[at], (hash & ss_string_tag) | (uintptr_t)string,
                          memory_order_release);
    index->filled++;
}

void ss_string_take_out(struct ss_string_index *index, uint64_t hash,
                        const struct ss_string *string)
{
    uint64_t wanted = (hash & ss_string_tag) | (uintptr_t)string;
    uint64_t at = hash & index->mask;
    /* Relaxed: only the writer fills slots. Some on the way may have been emptied already. */
    while (atomic_load_explicit(&index->slots[at], memory_order_relaxed) != wanted)
        at = (at + 1) & index->mask;
    /* Sequentially consistent: the string's memory is used anew when those readers have left that may
     * have seen the slot. */
    atomic_store_explicit(&index->slots[at], 0, memory_order_seq_cst);
    index->filled--;
}

void ss_string_put_all(const struct ss_string_table *table, struct ss_string_index *index,
                       enum ss_string_key key, uint64_t limit)
{
    /* Each slot is asked for some strings before it is needed. */
    struct ss_string *waiting[AHEAD];
    uint64_t hashes[AHEAD], count = 0;
    for (uint64_t i = 0; i < table->chunk_count; i++) {
        const struct ss_chunk *chunk = &table->chunks[i];
        SS_EACH_STRING(string, chunk, 0)
        {
            if (string->number >= limit)
                continue;
            uint64_t place = count++ % AHEAD;
            if (count > AHEAD)
                ss_string_put(index, hashes[place], waiting[place]);
            waiting[place] = string;
            hashes[place] = hash_of(table, string, key);
            ss_string_prefetch(index, hashes[place]);
        }
    }
    for (uint64_t i = count < AHEAD ? 0 : count - AHEAD; i < count; i++)
        ss_string_put(index, hashes[i % AHEAD], waiting[i % AHEAD]);
}

bool ss_string_reserve(struct ss_string_table *table, enum ss_string_key key, uint64_t more,
                       uint64_t likely, uint64_t limit)
{
    _Atomic(struct ss_string_index *) *place = key == SS_BY_TEXT ? &table->by_text : &table->by_code;
    /* Relaxed: only the writer replaces it. */
    struct ss_string_index *index = atomic_load_explicit(place, memory_order_relaxed);
    if (index->filled + more <= (index->mask + 1) / 8 * 5)
        return true;
    /* What is likely need not come true: the index does not become larger by it than some times. */
    uint64_t most = MOST_GROWTH * index->filled;
    likely = likely < most ? likely : most;
    more = likely > more ? likely : more;
    struct ss_string_index *larger = ss_string_index_new(index->filled + more);
    if (larger == NULL)
        return false;
    ss_string_put_all(table, larger, key, limit);
    /* Relaxed: a figure. */
    atomic_fetch_add_explicit(
        &table->bytes, ss_string_index_bytes(larger) - ss_string_index_bytes(index),
        memory_order_relaxed);
    /* Sequentially consistent: a reader that the wait misses comes later than this. */
    atomic_store_explicit(place, larger, memory_order_seq_cst);
    ss_strings_wait(table);
    ss_string_index_free(index);
    return true;
}
