/* Finished runs are looked at again before they are the head; step by step. */
#include <stdio.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "patience.h"
#include "specstream.h"
#include "steps.h"

enum { A = 1, B, C, X = 10, LONG = 100000, SHORT = 100 };

/* Runs take so long, as far as the workers know. */
static void open_stage(const char *name, uint64_t threads, int64_t nanoseconds)
{
    scenario = name;
    stage_open(&(struct setting){.protocol = SS_PROTOCOL_VALUE,
                                 .mode = SS_MODE_ORDERED,
                                 .threads = threads,
                                 .horizon = 8,
                                 .long_sleeps = true});
    for (uint64_t i = 0; i < threads; i++) {
        stage_engine()->workers[i].run_nanoseconds = nanoseconds;
        stage_engine()->workers[i].sample_in = UINT32_MAX;
    }
}

static bool has(int64_t event, enum ss_status status)
{
    return ss_has_status(ss_slot_of(stage_engine(), event), event, status);
}

/* Those behind a head that runs again: one that it has made wrong, and one that it has not. */
static void beside_the_head(void)
{
    static const row events[] = {{STOP(0), WRITE(X, 7)}, {READ(X), STOP(0), EMIT},
                                 {READ(X), STOP(0), EMIT}, {READ(B), PUT(C), EMIT}};
    open_stage("what the head has changed runs again beside it", 3, LONG);
    stage_start(events, 4, 0);
    await_stop(0, 0, 1);
    for (int64_t event = 1; event <= 2; event++) {
        await_stop(event, 0, 1);
        let_go(event, 0);
    }
    for (int64_t event = 1; event <= 3; event++)
        await_status(event, SS_FINISHED);
    await_idle(2);
    let_go(0, 0);
    await_stop(1, 0, 2);
    await_stop(2, 0, 2);
    await_status(3, SS_FINISHED);
    CHECK(has(1, SS_IN_PLACE) && has(2, SS_RUNNING));
    stage_end();
    CHECK(runs_of(2) == 2 && runs_of(3) == 1);
    CHECK(aborts(SS_ABORT_CONFLICT) == 2 && all_aborts() == 2);
    stage_close();
}

/* The other worker is busy, so that nobody looks at event 2 before it is the head. */
static void by_nobody(const char *name, const row *events, uint64_t runs)
{
    open_stage(name, 2, LONG);
    stage_start(events, 4, 0);
    await_stop(0, 0, 1);
    await_stop(1, 0, 1);
    let_go(1, 0);
    await_status(2, SS_FINISHED);
    await_stop(3, 0, 1);
    let_go(0, 0);
    await_stop(1, 0, 2);
    CHECK(has(2, SS_DOUBTFUL) && has(3, SS_RUNNING));
    CHECK(ss_engine_waiting(stage_engine()) == 1);
    let_go(1, 0);
    await_committed(3);
    stage_end();
    CHECK(runs_of(2) == runs && runs_of(3) == 1);
    CHECK(aborts(SS_ABORT_CONFLICT) == runs && all_aborts() == runs);
    stage_close();
}

/* The head is still running, and nobody can claim anything. */
static void while_others_are_idle(void)
{
    static const row events[] = {{STOP(0), WRITE(X, 7)}, {STOP(0), ADD(A, 1)}, {READ(X), STOP(0), EMIT}};
    open_stage("with nothing to claim, finished runs are looked at", 3, LONG);
    stage_start(events, 3, 0);
    for (int64_t event = 0; event < 3; event++)
        await_stop(event, 0, 1);
    let_go(2, 0);
    await_status(2, SS_FINISHED);
    await_idle(1);
    let_go(0, 0);
    await_stop(2, 0, 2);
    CHECK(has(1, SS_RUNNING) && has(2, SS_RUNNING));
    stage_end();
    CHECK(runs_of(2) == 2 && aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 1);
    stage_close();
}

/* There is something to claim: that comes first. */
static void while_others_are_not(void)
{
    static const row events[] = {{STOP(0), WRITE(X, 7)}, {STOP(0), ADD(A, 1)},
                                 {READ(X), STOP(0), EMIT}, {STOP(0), ADD(B, 1)},
                                 {STOP(0), ADD(C, 1)}};
    open_stage("with something to claim, finished runs are left", 3, LONG);
    stage_start(events, 5, 0);
    for (int64_t event = 0; event < 3; event++)
        await_stop(event, 0, 1);
    let_go(2, 0);
    await_stop(3, 0, 1);
    let_go(0, 0);
    await_stop(4, 0, 1);
    CHECK(has(1, SS_RUNNING) && has(2, SS_FINISHED) && runs_of(2) == 1);
    stage_end();
    CHECK(runs_of(2) == 2 && aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 1);
    stage_close();
}

static void where_runs_are_short(void)
{
    static const row events[] = {{STOP(0), WRITE(X, 7)}, {READ(X), STOP(0), EMIT}, {READ(X), EMIT}};
    open_stage("short runs are not looked at", 3, SHORT);
    stage_start(events, 3, 0);
    await_stop(0, 0, 1);
    await_stop(1, 0, 1);
    let_go(1, 0);
    await_status(1, SS_FINISHED);
    await_status(2, SS_FINISHED);
    await_idle(2);
    let_go(0, 0);
    await_stop(1, 0, 2);
    CHECK(has(2, SS_FINISHED) && runs_of(2) == 1);
    stage_end();
    stage_close();
}

/* Whoever has run it asks at its end, unless it is the head by then. */
static void at_its_end(void)
{
    static const row events[] = {{STOP(0), WRITE(X, 7)}, {STOP(0), ADD(A, 1)},
                                 {READ(X), STOP(0), EMIT}};
    open_stage("what has changed meanwhile runs again at once", 3, SHORT);
    stage_start(events, 3, 0);
    for (int64_t event = 0; event < 3; event++)
        await_stop(event, 0, 1);
    let_go(0, 0);
    await_committed(1);
    let_go(2, 0);
    await_stop(2, 0, 2);
    CHECK(has(1, SS_RUNNING) && has(2, SS_RUNNING));
    stage_end();
    CHECK(runs_of(2) == 2 && aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 1);
    stage_close();
}

/* What was predicted is not there before those in front have committed, and nobody takes it for outdated:
 * neither whoever has run it nor who looks at it again. */
static void what_was_predicted(void)
{
    static const row events[] = {{STOP(0)}, {COUNT(X)}, {STOP(0), COUNT(X)}, {STOP(0), COUNT(X)},
                                 {STOP(0), COUNT(X), EMIT}};
    open_stage("a prediction is left to the head", 4, LONG);
    stage_start(events, 5, 0);
    await_stop(0, 0, 1);
    for (int64_t event = 2; event < 5; event++)
        await_stop(event, 0, 1);
    let_go(0, 0);
    /* That an event increments once is known when the first that does has committed. */
    await_committed(2);
    let_go(4, 0);
    await_status(4, SS_FINISHED);
    CHECK(runs_of(4) == 1);
    let_go(2, 0);
    await_committed(3);
    await_idle(3);
    CHECK(has(3, SS_RUNNING) && has(4, SS_FINISHED));
    stage_end();
    CHECK(runs_of(4) == 1 && all_aborts() == 0);
    stage_close();
}

int main(void)
{
    static const row holds[] = {{STOP(0), WRITE(X, 7)}, {READ(X), STOP(0), EMIT}, {ADD(B, 1), EMIT},
                                {STOP(0), ADD(C, 1)}};
    static const row changed[] = {{STOP(0), WRITE(X, 7)}, {READ(X), STOP(0), EMIT},
                                  {READ(X), EMIT}, {STOP(0), ADD(C, 1)}};
    patience_start(20);
    beside_the_head();
    by_nobody("a doubtful run that holds commits", holds, 1);
    by_nobody("a doubtful run that does not is run again", changed, 2);
    while_others_are_idle();
    while_others_are_not();
    where_runs_are_short();
    at_its_end();
    what_was_predicted();
    patience_stop();
    puts("revalidation: passed");
    return 0;
}
