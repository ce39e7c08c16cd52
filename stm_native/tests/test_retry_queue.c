/* The wait queue and the retry queue (Brito 2010, 4.2.1 and 4.2.2), step by step: who runs next.
 *
 * A finished transaction waits under its own number. One that lost to another directly (reasons ii,
 * iv) waits until that one has committed; one that did so indirectly (i, iii) runs again at once.
 * And nobody sleeps while the head could run: everything here is done twice, the second time with
 * workers that never wake by themselves. */
#include <stdio.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "specstream.h"
#include "steps.h"

enum { A = 1, B, C, X, Y, Z };

static bool long_sleeps;

static void open_stage(const char *name, enum ss_protocol_kind protocol, uint64_t threads,
                       const row *events, int64_t count)
{
    scenario = name;
    struct setting setting = {.protocol = protocol,
                              .mode = SS_MODE_SPECULATE,
                              .threads = threads,
                              .horizon = 8,
                              .long_sleeps = long_sleeps};
    stage_open(&setting);
    stage_start(events, count, 0);
}

static void await_all_at(uint64_t point, int64_t count)
{
    for (int64_t event = 0; event < count; event++)
        await_stop(event, point, 1);
}

static void close_stage(enum ss_abort_reason reason, uint64_t count)
{
    stage_end();
    CHECK(aborts(reason) == count);
    CHECK(all_aborts() == count);
    stage_close();
}

static void finished(enum ss_protocol_kind protocol)
{
    static const row events[] = {
        {STOP(0), ADD(A, 1), EMIT},
        {STOP(0), ADD(B, 1), EMIT},
        {STOP(0), ADD(C, 1), EMIT},
    };
    open_stage("a finished transaction waits under its own number", protocol, 3, events, 3);
    await_all_at(0, 3);
    let_go(2, 0);
    await_status(2, SS_FINISHED);
    await_idle(1);
    CHECK(ss_engine_progress(stage_engine()) == 0 && stage_word(C) == 0);
    let_go(0, 0);
    await_committed(1);
    await_idle(2);
    CHECK(ss_engine_progress(stage_engine()) == 1); /* not its turn yet */
    CHECK(ss_has_status(ss_slot_of(stage_engine(), 2), 2, SS_FINISHED) && stage_word(C) == 0);
    let_go(1, 0);
    await_committed(3);
    CHECK(runs_of(0) == 1 && runs_of(1) == 1 && runs_of(2) == 1);
    close_stage(SS_ABORT_CONFLICT, 0);
}

static void locked(bool winner_finishes_first)
{
    static const row events[] = {
        {STOP(0), ADD(A, 1)},
        {WRITE(X, 7), STOP(0)},
        {STOP(0), READ(X), EMIT},
    };
    open_stage("reason ii: it waits for the transaction that had the lock", SS_PROTOCOL_EAGER, 3,
               events, 3);
    await_all_at(0, 3);
    let_go(2, 0);
    await_status(2, SS_WAITING);
    CHECK(waits_for(2) == 1);
    await_idle(1);
    CHECK(runs_of(2) == 1);
    if (winner_finishes_first) {
        let_go(1, 0);
        await_status(1, SS_FINISHED);
        await_idle(2);
        CHECK(runs_of(2) == 1); /* finished is not committed */
        let_go(0, 0);
    } else {
        let_go(0, 0);
        await_committed(1);
        await_idle(2);
        CHECK(runs_of(2) == 1); /* another one's commit is nothing to it */
        let_go(1, 0);
    }
    await_stop(2, 0, 2);
    CHECK(ss_engine_progress(stage_engine()) == 2);
    close_stage(SS_ABORT_LOCKED, 1);
}

static void no_longer_than_needed(void)
{
    static const row events[] = {
        {WRITE(X, 7), STOP(0)},
        {STOP(0), ADD(A, 1)},
        {STOP(0), READ(X), EMIT},
    };
    open_stage("reason ii: it runs again before it is the head", SS_PROTOCOL_EAGER, 3, events, 3);
    await_all_at(0, 3);
    let_go(2, 0);
    await_status(2, SS_WAITING);
    CHECK(waits_for(2) == 0);
    let_go(0, 0);
    await_stop(2, 0, 2);
    CHECK(ss_engine_progress(stage_engine()) == 1); /* transaction 1 still runs */
    let_go(2, 0);
    await_status(2, SS_FINISHED);
    close_stage(SS_ABORT_LOCKED, 1);
}

static void stolen_from_a_running_one(void)
{
    static const row events[] = {
        {STOP(0), ADD(A, 1)},
        {STOP(0), WRITE(X, 7), STOP(1)},
        {WRITE(X, 8), STOP(0), READ(Z), EMIT},
    };
    open_stage("reason iv: it waits for the transaction that took its lock", SS_PROTOCOL_EAGER, 3,
               events, 3);
    await_all_at(0, 3);
    let_go(1, 0);
    await_stop(1, 1, 1);
    let_go(2, 0);
    await_status(2, SS_WAITING);
    CHECK(waits_for(2) == 1);
    await_idle(1);
    let_go(0, 0);
    await_committed(1);
    await_idle(2);
    CHECK(runs_of(2) == 1);
    let_go(1, 1);
    await_stop(2, 0, 2);
    CHECK(ss_engine_progress(stage_engine()) == 2);
    close_stage(SS_ABORT_STOLEN, 1);
    CHECK(stage_word(X) == 8);
}

static void stolen_from_a_finished_one(void)
{
    static const row events[] = {
        {STOP(0), WRITE(X, 7)},
        {STOP(0), ADD(A, 1)},
        {STOP(0), WRITE(X, 8), EMIT},
    };
    open_stage("reason iv: a finished run is repeated before it is the head", SS_PROTOCOL_EAGER, 3,
               events, 3);
    await_all_at(0, 3);
    let_go(2, 0);
    await_status(2, SS_FINISHED);
    let_go(0, 0);
    await_stop(2, 0, 2);
    CHECK(ss_engine_progress(stage_engine()) == 1);
    let_go(2, 0);
    await_status(2, SS_FINISHED);
    close_stage(SS_ABORT_STOLEN, 1);
}

/* A run that faulted is finished. So it waits to be the head, which it then is in place; but where a
 * lock was stolen from it as well, before it faulted, it is dropped and repeated like any other finished
 * run, and may fault in each repetition. */
static void faulted(bool is_stolen_from)
{
    static const row events[] = {
        {STOP(0), WRITE(X, 7), STOP(1)},
        {STOP(0), ADD(A, 1)},
        {WRITE(X, 8), STOP(0), CRASH, EMIT},
    };
    open_stage(is_stolen_from ? "a run that faulted, and lost a lock, is repeated once it can win"
                              : "a run that faulted is repeated in place only",
               SS_PROTOCOL_EAGER, 3, events, 3);
    await_all_at(0, 3);
    if (is_stolen_from) {
        let_go(0, 0);
        await_stop(0, 1, 1);
    }
    let_go(2, 0);
    await_status(2, SS_FINISHED);
    await_idle(1);
    CHECK(runs_of(2) == 1); /* not before the thief has committed */
    let_all_go(0, 0);
    let_all_go(0, 1);
    await_committed(1);
    if (is_stolen_from) {
        await_stop(2, 0, 2);
        let_go(2, 0);
        await_status(2, SS_FINISHED);
    }
    await_idle(2);
    CHECK(runs_of(2) == (is_stolen_from ? 2 : 1)); /* nobody has stolen from the second run */
    CHECK(ss_engine_progress(stage_engine()) == 1);
    stage_end();
    CHECK(runs_of(2) == (is_stolen_from ? 3 : 2));
    CHECK(aborts(SS_ABORT_FAULT) == (is_stolen_from ? 2 : 1));
    CHECK(all_aborts() == aborts(SS_ABORT_FAULT));
    stage_close();
    CHECK(stage_word(X) == 8);
}

static void inconsistent(void)
{
    static const row events[] = {
        {STOP(0), WRITE(X, 7), WRITE(Y, 7)},
        {STOP(0), ADD(A, 1)},
        {READ(X), STOP(0), READ(Y), EMIT},
    };
    open_stage("reason i: it runs again at once", SS_PROTOCOL_EAGER, 3, events, 3);
    await_all_at(0, 3);
    let_go(0, 0);
    await_committed(1);
    let_go(2, 0);
    await_stop(2, 0, 2);
    CHECK(ss_engine_progress(stage_engine()) == 1); /* nothing has happened meanwhile */
    CHECK(waits_for(2) == -1);
    let_go(2, 0);
    await_status(2, SS_FINISHED);
    close_stage(SS_ABORT_INCONSISTENT_SNAPSHOT, 1);
}

static void outdated(enum ss_protocol_kind protocol)
{
    static const row events[] = {
        {STOP(0), WRITE(X, 7)},
        {READ(X), STOP(0), EMIT},
        {STOP(0), ADD(A, 1)},
    };
    open_stage("reason iii: it runs again at once", protocol, 3, events, 3);
    await_all_at(0, 3);
    let_go(1, 0);
    await_status(1, SS_FINISHED);
    let_go(0, 0);
    await_stop(1, 0, 2);
    CHECK(ss_engine_progress(stage_engine()) == 1);
    CHECK(ss_has_status(ss_slot_of(stage_engine(), 1), 1,
                        protocol == SS_PROTOCOL_EAGER ? SS_RUNNING : SS_IN_PLACE));
    close_stage(SS_ABORT_CONFLICT, 1);
}

static const row one_held[] = {
    {STOP(0), ADD(A, 1), EMIT},
    {ADD(B, 1), EMIT},
    {ADD(C, 1), EMIT},
};

static void sleepers_are_woken(enum ss_protocol_kind protocol)
{
    open_stage("the head finishes while all others sleep", protocol, 3, one_held, 3);
    await_stop(0, 0, 1);
    await_status(1, SS_FINISHED);
    await_status(2, SS_FINISHED);
    await_idle(2);
    let_go(0, 0);
    await_committed(3);
    close_stage(SS_ABORT_CONFLICT, 0);
}

static void readers_wake(enum ss_protocol_kind protocol)
{
    open_stage("a reader has the turn when the head finishes", protocol, 3, one_held, 3);
    await_stop(0, 0, 1);
    await_status(1, SS_FINISHED);
    await_status(2, SS_FINISHED);
    ss_engine_take_turn(stage_engine());
    let_go(0, 0);
    await_status(0, SS_FINISHED);
    await_idle(3);
    CHECK(ss_engine_progress(stage_engine()) == 0 && stage_word(A) == 0);
    ss_engine_release_turn(stage_engine());
    await_committed(3);
    close_stage(SS_ABORT_CONFLICT, 0);
}

static void losers_are_woken(void)
{
    static const row events[] = {
        {WRITE(X, 7), STOP(0)},
        {STOP(0), READ(X)},
        {STOP(0), READ(X), PUT(A), EMIT},
        {STOP(0), READ(X), PUT(B), EMIT},
    };
    open_stage("the winner commits while all who lost to it sleep", SS_PROTOCOL_EAGER, 4, events,
               4);
    await_all_at(0, 4);
    for (int64_t event = 1; event < 4; event++) {
        let_go(event, 0);
        await_status(event, SS_WAITING);
    }
    await_idle(3);
    let_go(0, 0);
    for (int64_t event = 1; event < 4; event++)
        await_stop(event, 0, 2);
    close_stage(SS_ABORT_LOCKED, 3);
}

int main(void)
{
    patience_start(20);
    for (int time = 0; time < 2; time++) {
        long_sleeps = time == 1;
        finished(SS_PROTOCOL_VALUE);
        finished(SS_PROTOCOL_EAGER);
        locked(false);
        locked(true);
        no_longer_than_needed();
        stolen_from_a_running_one();
        stolen_from_a_finished_one();
        faulted(false);
        faulted(true);
        inconsistent();
        outdated(SS_PROTOCOL_VALUE);
        outdated(SS_PROTOCOL_EAGER);
        sleepers_are_woken(SS_PROTOCOL_VALUE);
        sleepers_are_woken(SS_PROTOCOL_EAGER);
        readers_wake(SS_PROTOCOL_VALUE);
        readers_wake(SS_PROTOCOL_EAGER);
        losers_are_woken();
    }
    patience_stop();
    puts("retry queue: passed");
    return 0;
}
