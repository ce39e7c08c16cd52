/* Keyed containers: what the files about them share.
 *
 *     keyed.c          the operations, in place and by speculative runs
 *     keyed_walk.c     all entries in the order of their insertion
 *     keyed_index.c    from keys to entries
 *     keyed_entries.c  which entries are free
 *     keyed_changes.c  what a speculative run inserts and removes, and its commit
 *     containers.c     their life beside that of the engine
 */
#ifndef SPECSTREAM_KEYED_H
#define SPECSTREAM_KEYED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "processor/processor.h"
#include "specstream_containers.h"

struct ss_index;

enum { SS_ENTRIES_AT_HAND = 16 };

/* A worker's own part in a container. */
struct ss_keyed_part {
    _Alignas(SS_CACHE_LINE) uint64_t changes; /* by its speculative runs so far */
    uint64_t count;                           /* of the free entries that it has at hand */
    uint32_t entries[SS_ENTRIES_AT_HAND];     /* their first words */
};

/* A container of the engine. For sequences all but `of` is empty. */
struct ss_keyed {
    /* What finding a key in place needs is in one cache line. */
    _Alignas(SS_CACHE_LINE) struct ss_index *_Atomic index;
    bool locked; /* this job's mode is SS_MODE_LOCKED: `operation` is held during each */
    bool undone; /* stores in place can be taken back: not so without an undo log */
    bool eager;  /* insertions and removals in place have to be told to the readers of absences */
    struct ss_container of;
    struct ss_index *before; /* the index when the event in place began, if it has grown since */
    uint64_t running;        /* with the turn: the count, while changes are gone through */
    struct ss_index *retired; /* indices that somebody may still look at */
    uint64_t index_bytes;     /* of all that are there; a figure (statistics.h) */
    struct ss_keyed_part *parts; /* one for each worker */
    pthread_mutex_t operation;

    /* Free entries: linked through the first word of their keys, 0: the end. With `mutex`. */
    _Alignas(SS_CACHE_LINE) pthread_mutex_t mutex;
    uint64_t free;
    _Atomic uint64_t lent; /* at hand of workers, or taken by runs that have not committed */
};

/* Around an operation of a job without order. */
static inline void ss_keyed_lock(struct ss_keyed *keyed)
{
    if (SS_UNLIKELY(keyed->locked))
        pthread_mutex_lock(&keyed->operation);
}

static inline void ss_keyed_unlock(struct ss_keyed *keyed)
{
    if (SS_UNLIKELY(keyed->locked))
        pthread_mutex_unlock(&keyed->operation);
}

/* Words of an entry, from its first on. */
enum { SS_STAMP_WORD = 0, SS_KEY_WORD = 1 };

#endif
