/* Timers, and which is due next. */
#ifndef SPECSTREAM_TIMER_HEAP_H
#define SPECSTREAM_TIMER_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "containers/keyed.h"
#include "core/engine.h"
#include "core/state_words.h"
#include "processor/processor.h"
#include "specstream.h"

struct ss_config;

/* Columns of the one row that a timer is: time of the firing, source, its time, words of its key, and which
 * container it was in, counted from 0 among those that hold timers. */
enum { SS_TIMER_COLUMNS = 12 };

/* An entry of the container, as it was when it was set. */
struct ss_due {
    int64_t at;
    uint64_t stamp;
    uint32_t entry; /* its first word */
    uint16_t container;
    uint16_t rank; /* 0: it expires; else that of the container of timers */
};

struct ss_timers {
    const struct ss_keyed *keyed; /* has the clock; NULL: there are none, and entries expire */
    struct ss_due *heap; /* the least by (at, rank, stamp) first; of some the stamp has gone since */
    struct ss_due *aside; /* likewise, no heap: not to fire at this end of the input */
    uint64_t count;
    uint64_t aside_count;
    uint64_t capacity; /* of each */
    uint64_t end;      /* the input has ended, and timers with a stamp up to this one fire; 0: it has not */
    bool failed;       /* what `firing` ran has failed */
    bool fires;        /* it runs now */
    uint64_t counted;  /* stamp of one that was taken back: it has been counted already; 0: of none */
    int64_t latest;    /* no entry that expires was written later; of one that never was: INT64_MAX */
    int64_t until;     /* time of the last event of the range that runs in place */
    struct ss_firing firing; /* the last one */
    struct ss_firing *firings; /* see struct ss_outcome */
    uint64_t firing_count;
    uint64_t firing_capacity;
    int64_t row[SS_TIMER_COLUMNS];
    void *columns[SS_TIMER_COLUMNS];
    /* Of the first in the heap; INT64_MAX: there is none. Atomic, for those who look without the
     * turn. */
    _Alignas(SS_CACHE_LINE) _Atomic int64_t next;
};

/* Whether the engine has timers; they cost an engine without any no more than this question. */
#define ss_has_timers(engine) SS_UNLIKELY((engine)->timers != NULL)

/* False: out of memory. */
bool ss_timers_open(struct ss_engine *engine);
void ss_timers_close(struct ss_engine *engine);
/* The state is another: no end has begun. By its owner, as whoever looks at a key may renew the heap while the
 * owner asks for the end. */
void ss_timers_state_changed(struct ss_engine *engine);
/* No job runs: the heap is made anew of the entries. False: out of memory. */
bool ss_timers_renew(struct ss_engine *engine);
/* A job begins. */
void ss_timers_start(struct ss_engine *engine);
uint64_t ss_timers_bytes(const struct ss_config *config);
uint64_t ss_timers_grown(const struct ss_engine *engine);

/* ---- with the turn ---- */

static inline const struct ss_keyed *ss_due_container(const struct ss_engine *engine,
                                                      const struct ss_due *item)
{
    return &engine->keyed[item->container];
}

static inline bool ss_due_is_set(const struct ss_engine *engine, const struct ss_due *item)
{
    return ss_word_read(&engine->state[item->entry]) == item->stamp;
}

void ss_heap_push(struct ss_timers *timers, struct ss_due item);
void ss_heap_pop(struct ss_timers *timers);
/* The first that is set and in the heap; NULL: none. */
const struct ss_due *ss_heap_first(struct ss_engine *engine);
/* Lets those who look without the turn know. */
void ss_timers_tell_next(struct ss_timers *timers);
/* Room for so many more; false: out of memory. */
bool ss_timers_reserve(struct ss_engine *engine, uint64_t more);
/* An entry has been set for good, if it is one of a container that goes by time. There is room. */
void ss_timers_push(struct ss_engine *engine, const struct ss_keyed *keyed, uint64_t entry);
/* A run inserts an entry that will expire; false: out of memory. */
bool ss_timers_expect(struct ss_run *run, const struct ss_keyed *keyed, uint64_t entry);
/* An event in place: makes sure of an item for each entry that it touches, and two. False: its
 * verdict says that there is no memory. */
bool ss_timers_have_room(struct ss_run *run);
/* An event in place has set something for then: the run stops behind it, if that is due before the
 * last of its events. */
void ss_timers_stop_for(struct ss_run *run, int64_t at);
/* Room for one more that has emitted rows; false: out of memory. */
bool ss_timers_reserve_firing(struct ss_timers *timers);

static inline int64_t ss_timers_next(const struct ss_timers *timers)
{
    /* Relaxed: with the turn it does not change, and without it is a guess. */
    return atomic_load_explicit(&timers->next, memory_order_relaxed);
}

/* ---- early results, with the turn ---- */

/* Words of the applied image have changed, or changed back: what is due when. */
void ss_timers_note(struct ss_engine *engine, const struct ss_undo *first, const struct ss_undo *end,
                    bool taken_back);
/* One that has emitted rows is final; false: out of memory. */
bool ss_timers_keep_firing(struct ss_engine *engine, const struct ss_firing *firing);

#endif
