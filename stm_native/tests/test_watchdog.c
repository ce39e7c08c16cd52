/* Which runs the watchdog ends, and which it clears: the scheduler step by step.
 *
 * An event that overstays goes on only after it was suspected and cleared, so a healthy one that was
 * ended instead would show as a second run, and one that nobody suspects as a test that hangs. */
#include <stdio.h>

#include "core/transaction.h"
#include "open_steps.h"
#include "processor/now.h"
#include "specstream.h"

enum { A = 10, X, Y };

/* Event 0 commits while event 1 runs, which is then the head and takes its time. */
static void a_long_head(const char *name, enum ss_protocol_kind protocol, const row *events,
                        uint64_t runs)
{
    struct setting setting = {.protocol = protocol, .threads = 3, .horizon = 3};
    scenario = name;
    stage_open(&setting);
    stage_start(events, 3, 0);
    await_stop(0, 0, 1);
    await_stop(1, LOOPING, 1);
    await_status(2, SS_FINISHED);
    let_go(0, 0);
    await_committed(3);
    stage_end();
    CHECK(aborts(SS_ABORT_RUNAWAY) == runs - 1 && all_aborts() == runs - 1);
    CHECK(runs_of(0) == 1 && runs_of(1) == runs && runs_of(2) == 1);
    stage_close();
}

static void healthy(enum ss_protocol_kind protocol)
{
    static const row events[] = {
        {STOP(0), ADD(A, 1), EMIT},
        {READ(X), OVERSTAY(3), READ(A + 20), ADD(Y, 1), EMIT},
        {READ(A + 30), EMIT},
    };
    a_long_head("a long run whose reads hold is not ended", protocol, events, 1);
}

/* What it read before event 0 wrote it: it ends when it is first suspected. */
static void unhealthy(enum ss_protocol_kind protocol)
{
    static const row events[] = {
        {STOP(0), ADD(A, 1), EMIT},
        {READ(A), OVERSTAY(3), ADD(Y, 1), EMIT},
        {READ(A + 30), EMIT},
    };
    a_long_head("a long run whose reads do not hold ends", protocol, events, 2);
}

/* The head of an open job comes when all workers are in long runs. One stops for it, the one that
 * began last; the other is healthy, becomes the head, is suspected, and goes on. */
static void one_stops(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{20, 0}, {30, 0}, {10, 1}};
    static const row events[] = {{READ(A), OVERSTAY(1), EMIT}, {READ(A + 1), OVERSTAY(1), EMIT},
                                 {WRITE(X, 1), EMIT}};
    scenario = "of two long runs the later one stops for the head";
    struct setting setting = {
        .protocol = protocol, .mode = SS_MODE_OPEN, .threads = 2, .horizon = 4};
    stage_open(&setting);
    open_start(events, places, 3);
    open_submit(0, 1);
    await_stop(0, LOOPING, 1);
    open_submit(1, 2);
    await_stop(1, LOOPING, 1);
    open_submit(2, 3);
    open_advance(30, 1);
    int64_t since = ss_now();
    while (open_left() > 0) {
        ss_engine_await(stage_engine(), 10000000); /* which watches */
        if (stage_waits_too_long(since))
            fail("%s: nobody stops", scenario);
    }
    open_end();
    CHECK(aborts(SS_ABORT_RUNAWAY) == 1 && all_aborts() == 1);
    CHECK(runs_of(0) == 1 && runs_of(1) == 2 && runs_of(2) == 1);
    stage_close();
}

int main(void)
{
    patience_start(20);
    for (int protocol = 0; protocol < 2; protocol++) {
        healthy((enum ss_protocol_kind)protocol);
        unhealthy((enum ss_protocol_kind)protocol);
        one_stops((enum ss_protocol_kind)protocol);
    }
    patience_stop();
    puts("watchdog: passed");
    return 0;
}
