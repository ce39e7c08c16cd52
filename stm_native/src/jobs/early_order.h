/* Early results: what comes next. */
#ifndef SPECSTREAM_EARLY_ORDER_H
#define SPECSTREAM_EARLY_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"
#include "specstream.h"

struct ss_applied;
struct ss_early;
struct ss_engine;
struct ss_queue;

/* Who has the earliest event that is not applied. */
enum ss_next { SS_NEXT_NOBODY, SS_NEXT_PENDING, SS_NEXT_ACTIVE, SS_NEXT_REVOKED };

enum ss_early_step {
    SS_EARLY_NOTHING,
    SS_EARLY_FINISH,    /* the first of the row is final */
    SS_EARLY_REVOKE,    /* some are taken back, for an event that belongs before or within them */
    SS_EARLY_REPUBLISH, /* one that was revoked is the head */
    SS_EARLY_APPLY,     /* a transaction that has run is */
    SS_EARLY_RUN,       /* events that are pending are */
    SS_EARLY_WAIT,      /* likewise, but first the latest run has to be over: the watchdog sees to that */
    SS_EARLY_DISSOLVE,  /* what was revoked behind a barrier is given up: it may wait for long */
    SS_EARLY_FIRE,      /* a timer that is due before what comes next */
    SS_EARLY_FIRE_IN_PLACE, /* likewise, where everything before it is final */
    SS_EARLY_IN_PLACE   /* what cannot run otherwise is, and everything before it is final */
};

/* Nothing of it changes any more, once all before it is final. */
bool ss_is_decided(const struct ss_queue *queue, const struct ss_applied *applied);
enum ss_next ss_next_unapplied(const struct ss_engine *engine, struct ss_key *key);
bool ss_is_late(const struct ss_early *early, struct ss_key key);
/* Up to which time timers fire before what comes next; false: none does. `final`: only those that
 * nothing can come before. */
bool ss_early_timers_time(const struct ss_engine *engine, enum ss_next next, struct ss_key key, bool final,
                          int64_t *time);
/* With the mutex: how many are applied that no event belongs before or within which is still to be applied. */
uint64_t ss_early_standing(const struct ss_engine *engine);
/* With the mutex. */
enum ss_early_step ss_early_step(const struct ss_engine *engine);
/* Not while a late event waits for its place, and no farther than there is room. */
bool ss_early_may_claim(const struct ss_engine *engine);
/* With early results: the first of all events that are not final, applied or not; NULL: there is none. */
const struct ss_span *ss_early_first_span(const struct ss_engine *engine);

#endif
