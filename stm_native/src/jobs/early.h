/* Early results: the transactions that are applied and not yet final. */
#ifndef SPECSTREAM_EARLY_H
#define SPECSTREAM_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"
#include "specstream.h"

struct ss_change;
struct ss_engine;
struct ss_protocol;
struct ss_worker;

/* What a change in a container was given when it was published. */
struct ss_given {
    uint64_t stamp;   /* of what it has inserted */
    uint64_t changes; /* of the first of a group: the container's number afterwards; 0: never published */
    uint64_t before;  /* and before */
};

/* A transaction that was applied, with its logs: all of it in one piece of memory. */
struct ss_applied {
    struct ss_key first; /* of its events */
    struct ss_key last;
    int64_t events;
    uint64_t bytes;
    struct ss_span *spans;
    uint64_t span_count;
    struct ss_read *reads;
    uint64_t read_count;
    struct ss_write *redo;
    uint64_t redo_count;
    uint64_t delta_count;
    struct ss_change *changes;
    struct ss_given *given;
    uint64_t change_count;
    uint64_t *rows;
    uint64_t row_words;
    struct ss_undo *undo; /* what its words were before it was applied */
    uint64_t undo_count;
    struct ss_firing *firing; /* it is a timer that has fired, and of no event; NULL: it is not */
    int64_t least_timer;      /* the earliest that its events have set; INT64_MAX: none */
    bool of_time; /* a firing, or the removal of what has expired: of no event, and never published again */
    bool raised;  /* it is applied as nothing, and raises when it is final */
    bool reruns;  /* its log does not tell all that it depends on */
    bool told;    /* somebody knows its rows */
    bool divided; /* an event has come that belongs between its own */
    bool refused; /* on_commit has failed: so has its event */
};

/* What ran in place on the applied image. */
struct ss_in_place {
    const struct ss_undo *words; /* what these were before, and those of the run's undo log */
    uint64_t word_count;
    const struct ss_span *span; /* its one event; NULL: none */
    const struct ss_firing *firing;
    bool raised;
    bool expired; /* an entry was removed, and nothing ran */
};

struct ss_words {
    uint64_t *at;
    uint64_t count;
    uint64_t capacity;
};

/* How long revoking takes, and what is done about it. With the mutex of the queue. */
struct ss_budget {
    int64_t since;   /* when the share of time was looked at last */
    uint64_t before; /* nanoseconds that revoking had taken by then */
    uint64_t held;   /* the head stays so far behind the newest event, in order time; 0: it does not */
    int64_t newest;  /* time of the last of all events */
    bool has_newest;
    uint64_t lateness[64]; /* of late events, from the last one that was applied; the latest ones */
    uint64_t late;         /* how many there were */
};

/* Changed with the turn and the mutex of the queue: who has one of them may look. */
struct ss_early {
    struct ss_applied **row; /* in the order of their keys, from `first` on */
    uint64_t first;
    uint64_t count;
    uint64_t capacity;
    uint64_t applied; /* so many are; those behind them were revoked, and have their logs still */
    uint64_t divided; /* how many of them are */
    uint64_t singly;  /* events that are run one by one, as one of them has raised among others */
    uint64_t bytes;
    uint64_t limit;
    uint64_t *image;
    const struct ss_protocol *protocol; /* of the engine's other jobs */
    uint64_t edition; /* how often something was told */
    uint64_t untold; /* nobody knows the rows of some from here on */
    bool tells;      /* somebody asks for early rows */
    bool has_final;
    bool lost; /* there was no memory for what is to be told */
    bool ends; /* the end of the input has begun: what is due before it by now was set at it */
    bool fires_in_place; /* the next timer can fire only when all before it is final */
    struct ss_key final; /* of the last event that is */
    struct ss_words voids; /* rows that somebody knows, and that are no longer there */
    struct ss_words kept;   /* rows that somebody knows, and that are final */
    struct ss_words finals; /* likewise, which nobody knows yet */
    struct ss_words news;
    struct ss_early_figures figures;
    struct ss_budget budget;
};

/* A job with early results begins; false: out of memory. No worker is in a job. */
bool ss_early_open(struct ss_engine *engine, uint64_t limit);
/* The words are the owner's again; nothing where there were no early results. */
void ss_early_close(struct ss_engine *engine);

static inline struct ss_applied *ss_applied_at(const struct ss_early *early, uint64_t place)
{
    return early->row[early->first + place];
}
/* With the mutex: it is to be taken back. */
static inline void ss_early_divide(struct ss_early *early, struct ss_applied *applied)
{
    early->divided += !applied->divided;
    applied->divided = true;
}

/* How many begin before a key. */
uint64_t ss_applied_before(const struct ss_early *early, struct ss_key key);

/* ---- with the turn ---- */

/* What is kept of a run that holds; NULL: out of memory. */
struct ss_applied *ss_applied_new(const struct ss_engine *engine,
                                  const struct ss_transaction *transaction, struct ss_key first,
                                  struct ss_key last);
/* The same of a run in place, which never holds; its rows are behind those of the job. NULL: out of
 * memory. */
struct ss_applied *ss_applied_in_place(struct ss_worker *worker, struct ss_key first,
                                       struct ss_key last, const struct ss_in_place *run);
/* Words of the applied image are about to go back, or have gone: a run that walks may meet both. */
void ss_early_begin_back(struct ss_engine *engine);
void ss_early_end_back(struct ss_engine *engine);
/* It, as the functions about transactions see one. */
struct ss_transaction ss_applied_seen(const struct ss_applied *applied);
/* From one of a group, changes of one container one behind the other, to the first of the next one. */
uint64_t ss_end_of_group(const struct ss_applied *applied, uint64_t at);
/* Whether what one that was revoked has read and asked still stands. */
bool ss_applied_holds(struct ss_engine *engine, struct ss_applied *applied);
/* Writes its words into the applied image. */
void ss_applied_publish(struct ss_engine *engine, struct ss_applied *applied);
/* Room for what publishing it adds elsewhere; false: out of memory. */
bool ss_applied_reserve(struct ss_engine *engine, const struct ss_applied *applied);
/* Takes them back: the later ones were taken back before. */
void ss_applied_revoke(struct ss_engine *engine, struct ss_applied *applied);
/* Entries are free: those that it has inserted, or those that it has removed. */
void ss_applied_give_entries(struct ss_engine *engine, const struct ss_applied *applied, bool inserted);
/* It will never be published again: what it has taken is free. */
void ss_applied_drop(struct ss_engine *engine, struct ss_applied *applied);
/* A run that has walked through a container (ss_log_walk) is over; whether it may have met what was taken
 * back in between. */
bool ss_early_is_mixed(struct ss_engine *engine, const struct ss_transaction *transaction);

/* ---- with the turn and the mutex ---- */

/* False: out of memory. */
bool ss_early_reserve(struct ss_early *early);
void ss_early_insert(struct ss_early *early, uint64_t place, struct ss_applied *applied);
/* It is about to leave the row. */
void ss_early_leave(struct ss_early *early, const struct ss_applied *applied);
/* Takes one out of the row. */
struct ss_applied *ss_early_remove(struct ss_early *early, uint64_t place);

#endif
