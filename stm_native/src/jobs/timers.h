/* Timers: when one is due, and what it runs. */
#ifndef SPECSTREAM_TIMERS_H
#define SPECSTREAM_TIMERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"
#include "processor/processor.h"
#include "specstream.h"

struct ss_applied;
struct ss_config;
struct ss_engine;
struct ss_keyed;
struct ss_transaction;
struct ss_worker;

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

/* What has become of the timers that are due. */
enum ss_fired {
    SS_FIRED,       /* all have fired */
    SS_FIRED_SOME,  /* a reader comes first */
    SS_FIRING_ENDED /* the job ends here, or what one ran has failed */
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

/* Room for so many more; false: out of memory. */
bool ss_timers_reserve(struct ss_engine *engine, uint64_t more);
/* An entry has been set for good, if it is one of a container that goes by time. There is room. */
void ss_timers_push(struct ss_engine *engine, const struct ss_keyed *keyed, uint64_t entry);
/* A run inserts an entry that will expire; false: out of memory. */
bool ss_timers_expect(struct ss_run *run, const struct ss_keyed *keyed, uint64_t entry);
/* Whether a finished transaction writes an entry, which will expire, with an earlier time than it has: the
 * first write of what a state began with, or in a batch that begins before the end of the last one. Then
 * it has to run in place, where ss_timers_rewound is told. */
bool ss_timers_rewind(const struct ss_engine *engine, const struct ss_transaction *transaction);
/* Events have been applied: up to that row of a column of times, or all of a transaction. */
void ss_timers_pass_row(struct ss_engine *engine, const void *times, int64_t row);
void ss_timers_pass_transaction(struct ss_engine *engine, const struct ss_transaction *transaction);

static inline int64_t ss_timers_next(const struct ss_timers *timers)
{
    /* Relaxed: with the turn it does not change, and without it is a guess. */
    return atomic_load_explicit(&timers->next, memory_order_relaxed);
}

/* Events [first, last) come next, with these times: fires what is due before the first one, and tells
 * before which one the next is due, or `last`. A transaction lends the turn to readers meanwhile; false:
 * it is not to go on. */
bool ss_timers_before(struct ss_worker *worker, struct ss_transaction *transaction,
                      const void *times, int64_t first, int64_t *last);
/* The same for a finished transaction, which is IN_PLACE. */
enum ss_fired ss_timers_before_commit(struct ss_worker *worker, struct ss_transaction *transaction,
                                      int64_t number);
/* Whether one is due between the events of a finished transaction, once those before its first one
 * have fired. */
bool ss_timers_divide(const struct ss_engine *engine, const struct ss_transaction *transaction);
/* No event before that time comes any more, or none at all (INT64_MAX). */
enum ss_fired ss_timers_at(struct ss_worker *worker, int64_t time);

/* ---- early results, with the turn ---- */

enum ss_fired_early {
    SS_FIRED_NOTHING, /* nothing is due, or the job ends */
    SS_FIRED_ONE,     /* and this is what it has done */
    SS_FIRED_LATER    /* it can be fired only when all before it is final */
};

/* Of the events and firings so far; INT64_MIN: there were none. */
int64_t ss_timers_clock(const struct ss_engine *engine);
/* Of the applied image; NULL: there is none. */
uint64_t *ss_timers_clock_word(const struct ss_engine *engine);
/* What follows a firing or an event in place, with nothing applied before it. */
void ss_timers_copy_clock(struct ss_engine *engine);
/* An event of that time is applied. */
void ss_timers_pass(struct ss_engine *engine, int64_t time);
/* Words of the applied image have changed, or changed back: what is due when. */
void ss_timers_note(struct ss_engine *engine, const struct ss_undo *first, const struct ss_undo *end,
                    bool taken_back);
/* Fires the first that is due by then, or removes what has expired; `after`: what was applied last,
 * `before`: a key that is just before what comes next. */
enum ss_fired_early ss_timers_fire_early(struct ss_worker *worker, int64_t time, struct ss_key after,
                                         struct ss_key before, struct ss_applied **applied);
/* One that has emitted rows is final; false: out of memory. */
bool ss_timers_keep_firing(struct ss_engine *engine, const struct ss_firing *firing);

#endif
