/* An open job: what there is to do. */
#ifndef SPECSTREAM_QUEUE_WORK_H
#define SPECSTREAM_QUEUE_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;

enum ss_work {
    SS_WORK_ADVANCE = 1, /* the head can be committed, or run in place */
    SS_WORK_CLAIM = 2    /* there is an event within the horizon */
};

/* ---- with the mutex ---- */

bool ss_queue_head_is_pending(const struct ss_engine *engine);
bool ss_queue_head_is_safe(const struct ss_engine *engine);
/* The head is to be run in place by whoever holds the turn. */
bool ss_queue_head_is_for_us(const struct ss_engine *engine);
bool ss_queue_head_is_finished(const struct ss_engine *engine);
/* One slot is kept for the head, which must never wait for one: nothing comes before it any more, so
 * it is the only one that takes the last slot. With early results nothing is so sure, and that slot is
 * for who has the turn. */
bool ss_queue_has_slot(const struct ss_engine *engine, uint64_t place);
bool ss_queue_can_claim(const struct ss_engine *engine);
/* Timers fire now: no event that is not before them can commit, and none will come. */
bool ss_queue_timers_are_due(const struct ss_engine *engine);
/* With early results: all that fires before the end has, and all that was is final. */
bool ss_queue_end_is_due(const struct ss_engine *engine);
/* Some are about to fire. With early results those that are due may wait for what is tentative before
 * them. */
bool ss_queue_timers_will_fire(const struct ss_engine *engine);
/* Works out what there is to do, and tells who waits for it. With the mutex. */
void ss_queue_refresh(struct ss_engine *engine);

/* With the turn: how many are applied that no event belongs before or within which is still to be applied;
 * `settled`: as struct ss_early_told says. */
uint64_t ss_queue_standing(struct ss_engine *engine, bool *settled);

#endif
