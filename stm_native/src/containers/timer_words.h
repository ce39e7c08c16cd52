/* The words of timers. */
#ifndef SPECSTREAM_TIMER_WORDS_H
#define SPECSTREAM_TIMER_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "containers/keyed.h"
#include "specstream_containers.h"

struct ss_engine;
struct ss_transaction;

/* Its entries fire, or expire. */
static inline bool ss_goes_by_time(const struct ss_keyed *keyed)
{
    return keyed->of.rank != 0 || (keyed->of.kind == SS_KEYED && keyed->of.expires != 0);
}

static inline uint64_t ss_timer_time_word(const struct ss_keyed *keyed, uint64_t entry)
{
    return entry + SS_KEY_WORD + keyed->of.key_words;
}

/* The column of a segment is shifted: an address outside of it must not be formed as a pointer. */
static inline int64_t ss_time_at(const void *times, int64_t row)
{
    return *(const int64_t *)((uintptr_t)times + (uintptr_t)row * sizeof(int64_t));
}

/* When an entry is due that is written at a time. */
int64_t ss_due_after(const struct ss_engine *engine, const struct ss_keyed *keyed, int64_t time);
/* When a timer fires, or an entry expires. */
int64_t ss_due_at(const struct ss_engine *engine, const struct ss_keyed *keyed, uint64_t entry);

/* ---- with the turn ---- */

/* Of the header that has the clock. */
uint64_t *ss_timers_word(const struct ss_engine *engine, uint64_t at);
void ss_timers_set_clock(struct ss_engine *engine, int64_t time);
/* An event or a firing of that time: the clock does not go back. */
void ss_timers_move_clock(struct ss_engine *engine, int64_t time);
/* Whether a finished transaction writes an entry, which will expire, with an earlier time than it has: the
 * first write of what a state began with, or in a batch that begins before the end of the last one. Then
 * it has to run in place, where ss_timers_rewound is told. */
bool ss_timers_rewind(const struct ss_engine *engine, const struct ss_transaction *transaction);
/* Events have been applied: up to that row of a column of times, or all of a transaction. */
void ss_timers_pass_row(struct ss_engine *engine, const void *times, int64_t row);
void ss_timers_pass_transaction(struct ss_engine *engine, const struct ss_transaction *transaction);

/* ---- early results, with the turn ---- */

/* Of the events and firings so far; INT64_MIN: there were none. */
int64_t ss_timers_clock(const struct ss_engine *engine);
/* Of the applied image; NULL: there is none. */
uint64_t *ss_timers_clock_word(const struct ss_engine *engine);
/* What follows a firing or an event in place, with nothing applied before it. */
void ss_timers_copy_clock(struct ss_engine *engine);
/* An event of that time is applied. */
void ss_timers_pass(struct ss_engine *engine, int64_t time);

#endif
