/* The parts of a string table: who may look at what, and when. */
#ifndef SPECSTREAM_STRING_TABLE_H
#define SPECSTREAM_STRING_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "processor/processor.h"

/* A string in its chunk, followed by its bytes up to a multiple of eight. */
struct ss_string {
    uint64_t number;
    uint64_t hash; /* of the bytes, under the secret */
    uint64_t code; /* for whoever has seen that the number is below the table's limit */
    uint32_t length;
    uint16_t length_above; /* the upper bits */
    /* The sweep that has marked it last, or SS_DEAD: it has gone, and its place with its chunk. */
    _Atomic uint8_t mark;
    _Atomic uint8_t touched; /* the sweeps that there had been when it was last added, or found to be there */
    uint8_t bytes[];
};
enum { SS_UNMARKED = 0, SS_LAST_MARK = 254, SS_DEAD = 255 };
enum { SS_WALKED_AHEAD = 1024 };

/* Strings one behind the other, by number. */
struct ss_chunk {
    uint64_t room; /* in bytes */
    uint64_t used;
    uint64_t last; /* number of the last string */
    uint8_t *strings;
    uint64_t left; /* bytes that stay when the sweep that runs has ended */
    bool changes;  /* it comes or goes by that */
};

struct ss_string_index;

struct ss_string_table {
    uint64_t secret[2];
    uint64_t mixer[2]; /* of codes; made of the secret */
    /* For readers: an index is replaced as a whole. */
    _Atomic(struct ss_string_index *) by_text;
    _Atomic(struct ss_string_index *) by_code;
    /* Strings with lower numbers are there; others are being added, and for readers are not. */
    _Atomic uint64_t limit;
    _Atomic uint64_t count;
    _Atomic uint64_t bytes;
    _Atomic uint64_t sweeps; /* begun and ended: odd while there is one */
    _Atomic uint64_t touch;  /* begun: as strings note it that are touched */
    /* Readers that are inside, by the phase in which they came. */
    _Alignas(SS_CACHE_LINE) _Atomic uint64_t phase;
    _Atomic uint64_t inside[2];
    /* For whoever has the mutex. */
    _Alignas(SS_CACHE_LINE) pthread_mutex_t writer;
    uint64_t next; /* number of the next string: the limit, but while strings are being added */
    struct ss_chunk *chunks;
    uint64_t chunk_count;
    uint64_t chunk_room;
    uint64_t chunk_bytes; /* room of all of them */
    uint64_t sweep_from;  /* strings with this number and above are not dropped by the sweep */
    uint8_t epoch;        /* mark of the sweep */
    int64_t window;       /* of the sweep, see ss_strings_sweep_end */
};

static inline uint64_t ss_string_length(const struct ss_string *string)
{
    return (uint64_t)string->length_above << 32 | string->length;
}

/* Bytes in a chunk. */
static inline uint64_t ss_string_size(uint64_t length)
{
    return sizeof(struct ss_string) + (length + 7) / 8 * 8;
}

static inline struct ss_string *ss_string_at(const struct ss_chunk *chunk, uint64_t at)
{
    return (struct ss_string *)(chunk->strings + at);
}

/* The same, for whoever walks from one to the next: where that is, only the one before says, so that
 * the processor itself asks for none ahead. */
static inline struct ss_string *ss_string_walked(const struct ss_chunk *chunk, uint64_t at)
{
    __builtin_prefetch(chunk->strings + at + SS_WALKED_AHEAD);
    return ss_string_at(chunk, at);
}

static inline bool ss_string_is_dead(struct ss_string *string)
{
    /* Relaxed: with the mutex, under which it was set. */
    return atomic_load_explicit(&string->mark, memory_order_relaxed) == SS_DEAD;
}

/* Runs over the strings of a chunk that are there, from byte `at` on. */
#define SS_EACH_STRING(string, chunk, at)                                                          \
    for (uint64_t at_ = (at); at_ < (chunk)->used;                                                 \
         at_ += ss_string_size(ss_string_length(ss_string_at(chunk, at_))))                        \
        for (struct ss_string *string = ss_string_walked(chunk, at_); string != NULL;              \
             string = NULL)                                                                        \
            if (!ss_string_is_dead(string))

/* A reader finds what it looks up in the table while it is inside. The phase, for leaving. */
uint64_t ss_strings_enter(struct ss_string_table *table);
void ss_strings_leave(struct ss_string_table *table, uint64_t phase);
/* With the mutex: until all readers have left that may know what was there before. */
void ss_strings_wait(struct ss_string_table *table);

/* With the mutex: a chunk with this room, which is the last one; NULL: no memory. */
struct ss_chunk *ss_strings_new_chunk(struct ss_string_table *table, uint64_t room);
/* The last one goes. */
void ss_strings_drop_chunk(struct ss_string_table *table);

#endif
