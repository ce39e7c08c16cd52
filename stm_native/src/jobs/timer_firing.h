/* Timers fire: what one runs, and when. */
#ifndef SPECSTREAM_TIMER_FIRING_H
#define SPECSTREAM_TIMER_FIRING_H

#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"

struct ss_applied;
struct ss_transaction;
struct ss_worker;

/* What has become of the timers that are due. */
enum ss_fired {
    SS_FIRED,       /* all have fired */
    SS_FIRED_SOME,  /* a reader comes first */
    SS_FIRING_ENDED /* the job ends here, or what one ran has failed */
};

/* ---- with the turn ---- */

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

/* Fires the first that is due by then, or removes what has expired; `after`: what was applied last,
 * `before`: a key that is just before what comes next. */
enum ss_fired_early ss_timers_fire_early(struct ss_worker *worker, int64_t time, struct ss_key after,
                                         struct ss_key before, struct ss_applied **applied);

#endif
