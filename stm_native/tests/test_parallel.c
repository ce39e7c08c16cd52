/* The example of optimistic parallelization (Brito 2010, 4.3.2, Figure 4.4), its six steps.
 *
 * Two processors, the events 10 and 11, which change different words. The figure's NEXT is
 * `first_sequence` plus what is committed. */
#include <stdatomic.h>
#include <stdio.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "specstream.h"
#include "steps.h"

enum { WORD_OF_10 = 3, WORD_OF_11 = 5, NEXT = 10, EVENT_10 = 0, EVENT_11 = 1 };
enum { TAKEN, BEFORE_END };

static const row events[] = {
    {STOP(TAKEN), ADD(WORD_OF_10, 100), STOP(BEFORE_END), EMIT},
    {STOP(TAKEN), ADD(WORD_OF_11, 110), STOP(BEFORE_END), EMIT},
};

static int64_t next(void)
{
    return NEXT + ss_engine_progress(stage_engine());
}

static void figure_4_4(const char *name, enum ss_protocol_kind protocol)
{
    scenario = name;
    struct setting setting = {.protocol = protocol,
                              .mode = SS_MODE_SPECULATE,
                              .threads = 2,
                              .horizon = 1,
                              .validations_held = 1 << EVENT_10 | 1 << EVENT_11};
    stage_open(&setting);
    /* (a) two processors are there, and the next to commit is known */
    stage_start(events, 2, NEXT);
    CHECK(next() == 10);
    /* (b) each takes one event */
    await_stop(EVENT_10, TAKEN, 1);
    await_stop(EVENT_11, TAKEN, 1);
    CHECK(atomic_load(&ss_slot_of(stage_engine(), EVENT_10)->owner) !=
          atomic_load(&ss_slot_of(stage_engine(), EVENT_11)->owner));
    CHECK(most_running() == 2);
    /* (c) event 11 is finished first, and waits for its number */
    let_go(EVENT_11, TAKEN);
    let_go(EVENT_11, BEFORE_END);
    await_status(EVENT_11, SS_FINISHED);
    await_idle(1);
    CHECK(next() == 10 && stage_word(WORD_OF_11) == 0);
    CHECK(ss_has_status(ss_slot_of(stage_engine(), EVENT_11), EVENT_11, SS_FINISHED));
    /* (d) event 10 modifies another word; only for itself as yet */
    let_go(EVENT_10, TAKEN);
    await_stop(EVENT_10, BEFORE_END, 1);
    CHECK(next() == 10 && stage_word(WORD_OF_10) == 0 && stage_word(WORD_OF_11) == 0);
    /* (e) event 10 is committed: its modification is in the state, its result is out */
    let_go(EVENT_10, BEFORE_END);
    await_stop(EVENT_10, VALIDATION, 1);
    CHECK(next() == 10 && ss_engine_outcome(stage_engine()).row_count == 0);
    let_go(EVENT_10, VALIDATION);
    await_stop(EVENT_11, VALIDATION, 1);
    struct ss_outcome outcome = ss_engine_outcome(stage_engine());
    CHECK(next() == 11 && stage_word(WORD_OF_10) == 100 && stage_word(WORD_OF_11) == 0);
    CHECK(outcome.row_count == 1 && outcome.rows[0] == 10);
    /* (f) now event 11 is the next to commit */
    let_go(EVENT_11, VALIDATION);
    await_committed(2);
    outcome = stage_end();
    CHECK(next() == 12 && stage_word(WORD_OF_10) == 100 && stage_word(WORD_OF_11) == 110);
    CHECK(outcome.row_count == 2 && outcome.rows[2] == 11);
    CHECK(runs_of(EVENT_10) == 1 && runs_of(EVENT_11) == 1 && all_aborts() == 0);
    stage_close();
}

/* The same with a head that runs in place: what it writes is in the state at once. */
static void in_place(void)
{
    scenario = "figure 4.4, the head in place";
    struct setting setting = {.protocol = SS_PROTOCOL_VALUE,
                              .mode = SS_MODE_ORDERED,
                              .threads = 2,
                              .horizon = 1,
                              .validations_held = 1 << EVENT_11};
    stage_open(&setting);
    stage_start(events, 2, NEXT);
    await_stop(EVENT_10, TAKEN, 1);
    await_stop(EVENT_11, TAKEN, 1);
    CHECK(ss_has_status(ss_slot_of(stage_engine(), EVENT_10), EVENT_10, SS_IN_PLACE));
    let_go(EVENT_11, TAKEN);
    let_go(EVENT_11, BEFORE_END);
    await_status(EVENT_11, SS_FINISHED);
    await_idle(1);
    CHECK(next() == 10 && stage_word(WORD_OF_11) == 0);
    let_go(EVENT_10, TAKEN);
    await_stop(EVENT_10, BEFORE_END, 1);
    CHECK(next() == 10 && stage_word(WORD_OF_10) == 100 && stage_word(WORD_OF_11) == 0);
    let_go(EVENT_10, BEFORE_END);
    await_stop(EVENT_11, VALIDATION, 1);
    struct ss_outcome outcome = ss_engine_outcome(stage_engine());
    CHECK(next() == 11 && stage_word(WORD_OF_11) == 0);
    CHECK(outcome.row_count == 1 && outcome.rows[0] == 10);
    outcome = stage_end();
    CHECK(next() == 12 && stage_word(WORD_OF_11) == 110);
    CHECK(outcome.row_count == 2 && outcome.rows[2] == 11 && all_aborts() == 0);
    stage_close();
}

int main(void)
{
    patience_start(20);
    figure_4_4("figure 4.4, protocol value", SS_PROTOCOL_VALUE);
    figure_4_4("figure 4.4, protocol eager", SS_PROTOCOL_EAGER);
    in_place();
    patience_stop();
    puts("figure 4.4: passed");
    return 0;
}
