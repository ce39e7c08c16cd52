/* The words of timers: the clock and the number of firings, and the time of an entry that goes by it.
 *
 * So that rows do not depend on how the input is cut, the time of a firing is not that of the event
 * that brought it about, which may be known or not; it is the larger of the timer's own and of all events
 * and firings before. That clock and the number of firings are words of the container's header: part of
 * the state, written by the head only, and read by nobody else.
 *
 * There may be several containers of timers, one for each vertex of a pipeline that has some. They have one
 * clock and one number of firings, in the header of the first one. */
#include "containers/timer_words.h"

#include <stddef.h>

#include "containers/keyed.h"
#include "containers/timer_heap.h"
#include "core/engine.h"
#include "core/ranges.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "specstream.h"
#include "specstream_containers.h"

/* The clock of a new state, whose words are 0, is INT64_MIN. */
static const uint64_t sign_bit = UINT64_C(1) << 63;

uint64_t *ss_timers_word(const struct ss_engine *engine, uint64_t at)
{
    return &engine->state[engine->timers->keyed->of.header + at];
}

int64_t ss_timers_clock(const struct ss_engine *engine)
{
    /* Without timers nothing asks for it. */
    if (engine->timers->keyed == NULL)
        return INT64_MIN;
    return (int64_t)(ss_word_read(ss_timers_word(engine, SS_HEADER_CLOCK)) ^ sign_bit);
}

void ss_timers_set_clock(struct ss_engine *engine, int64_t time)
{
    ss_word_write(ss_timers_word(engine, SS_HEADER_CLOCK), (uint64_t)time ^ sign_bit);
}

void ss_timers_move_clock(struct ss_engine *engine, int64_t time)
{
    if (time > engine->timers->latest)
        engine->timers->latest = time;
    if (engine->timers->keyed != NULL && time > ss_timers_clock(engine))
        ss_timers_set_clock(engine, time);
}

void ss_timers_pass(struct ss_engine *engine, int64_t time)
{
    engine->timers->end = 0;
    ss_timers_move_clock(engine, time);
}

void ss_timers_pass_transaction(struct ss_engine *engine, const struct ss_transaction *transaction)
{
    ss_timers_move_clock(engine, engine->kind->time_of(engine, transaction, true));
}

void ss_timers_pass_row(struct ss_engine *engine, const void *times, int64_t row)
{
    ss_timers_move_clock(engine, ss_time_at(times, row));
}

uint64_t *ss_timers_clock_word(const struct ss_engine *engine)
{
    return engine->timers->keyed == NULL ? NULL : ss_timers_word(engine, SS_HEADER_CLOCK);
}

void ss_timers_copy_clock(struct ss_engine *engine)
{
    static const uint64_t words[] = {SS_HEADER_CLOCK, SS_HEADER_FIRED};
    for (int i = 0; engine->timers->keyed != NULL && i < 2; i++) {
        const uint64_t *word = ss_timers_word(engine, words[i]);
        ss_word_write(&engine->config.state[word - engine->state], ss_word_read(word));
    }
}

static int64_t later(int64_t time, int64_t by)
{
    return time > INT64_MAX - by ? INT64_MAX : time + by;
}

/* From the last write of an entry to its end, in the unit of the times. What is between two times is
 * rounded up. */
static int64_t lifetime_of(const struct ss_engine *engine, const struct ss_keyed *keyed)
{
    int64_t expires = keyed->of.expires;
    /* Written before the first event, and never again while events run. */
    int64_t tick = (int64_t)ss_word_read(&engine->state[keyed->of.header + SS_HEADER_TICK]);
    return tick == 0 ? expires : expires / tick + (expires % tick != 0);
}

int64_t ss_due_after(const struct ss_engine *engine, const struct ss_keyed *keyed, int64_t time)
{
    return later(time, lifetime_of(engine, keyed));
}

int64_t ss_due_at(const struct ss_engine *engine, const struct ss_keyed *keyed, uint64_t entry)
{
    const uint64_t *state = engine->state;
    int64_t time = (int64_t)ss_word_read(&state[entry + keyed->of.entry_words - 1]);
    return ss_due_after(engine, keyed, time);
}

/* Whether a word is the time of an entry that is there, and goes back to `value`. */
static bool rewinds(const struct ss_engine *engine, uint64_t word, uint64_t value)
{
    const uint64_t *state = engine->state;
    for (uint64_t i = 0; i < engine->config.container_count; i++) {
        const struct ss_container *of = &engine->keyed[i].of;
        if (of->kind != SS_KEYED || of->expires == 0 || word < of->region ||
            word >= of->region + of->room * of->entry_words)
            continue;
        uint64_t entry = word - (word - of->region) % of->entry_words;
        return word - entry == of->entry_words - 1 && ss_word_read(&state[entry]) != 0 &&
               (int64_t)ss_word_read(&state[word]) > (int64_t)value;
    }
    return false;
}

bool ss_timers_rewind(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    if (engine->kind->time_of(engine, transaction, false) >= engine->timers->latest)
        return false;
    const struct ss_write *end = transaction->redo + transaction->redo_count;
    for (const struct ss_write *write = transaction->redo; write != end; write++) {
        if (write->delta == SS_STORED_RANGE)
            write += ss_range_entries(write->value);
        else if (write->delta == SS_NO_DELTA && rewinds(engine, write->word, write->value))
            return true;
    }
    return false;
}
