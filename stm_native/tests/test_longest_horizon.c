/* The horizon grows while threads starve, and conflicts shorten it; step by step. */
#include <stdio.h>

#include "core/engine.h"
#include "core/horizon.h"
#include "core/scheduler.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/queue.h"
#include "open_steps.h"
#include "patience.h"
#include "specstream.h"
#include "steps.h"

enum { A = 1, B, X = 10, THREADS = 3, HORIZON = 2, LONGEST = 7, EVENTS = 12, LONG = 100000, SHORT = 100 };

/* The first event is held. Each word is one event's own. */
static const row events[EVENTS] = {{STOP(0), ADD(A, 1), EMIT}, {ADD(11, 1)}, {ADD(12, 1)},
                                   {ADD(13, 1)}, {ADD(14, 1)}, {ADD(15, 1)}, {ADD(16, 1)},
                                   {ADD(17, 1)}, {ADD(18, 1)}, {ADD(19, 1)}, {ADD(20, 1)},
                                   {ADD(21, 1), EMIT}};
static const struct place places[EVENTS] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0},  {5, 0},
                                            {6, 0}, {7, 0}, {8, 0}, {9, 0}, {10, 0}, {11, 0}};

/* Runs take so long, as far as the workers know. */
static void open_stage(const char *name, enum ss_mode mode, int64_t longest, int64_t nanoseconds)
{
    scenario = name;
    stage_open(&(struct setting){.protocol = SS_PROTOCOL_VALUE,
                                 .mode = mode,
                                 .threads = THREADS,
                                 .horizon = HORIZON,
                                 .longest_horizon = longest,
                                 .long_sleeps = true});
    for (uint64_t i = 0; i < THREADS; i++) {
        stage_engine()->workers[i].run_nanoseconds = nanoseconds;
        stage_engine()->workers[i].sample_in = UINT32_MAX;
    }
}

/* The others have run so many events beside the head, and sleep. */
static void check_reach(int64_t reach)
{
    for (int64_t event = 1; event <= reach; event++)
        CHECK(ss_has_status(ss_slot_of(stage_engine(), event), event, SS_FINISHED));
    CHECK(runs_of(reach + 1) == 0);
}

static void beside_a_long_head(const char *name, int64_t longest, int64_t nanoseconds, int64_t reach)
{
    open_stage(name, SS_MODE_ORDERED, longest, nanoseconds);
    stage_start(events, EVENTS, 0);
    await_stop(0, 0, 1);
    for (int64_t event = 1; event <= reach; event++)
        await_status(event, SS_FINISHED);
    await_idle(THREADS - 1);
    check_reach(reach);
    CHECK(ss_reach(stage_engine()) == reach);
    stage_end();
    CHECK(all_aborts() == 0);
    stage_close();
}

/* The next job begins with its own. */
static void anew(void)
{
    open_stage("each job begins with its horizon", SS_MODE_ORDERED, LONGEST, LONG);
    for (int job = 0; job < 2; job++) {
        stage_start(events, EVENTS, job * EVENTS);
        CHECK(ss_reach(stage_engine()) >= HORIZON && ss_reach(stage_engine()) <= LONGEST);
        await_stop(0, 0, 1);
        for (int64_t event = 1; event <= LONGEST; event++)
            await_status(event, SS_FINISHED);
        stage_engine()->workers[0].run_nanoseconds = SHORT;
        stage_engine()->workers[1].run_nanoseconds = SHORT;
        stage_engine()->workers[2].run_nanoseconds = SHORT;
        stage_end();
        for (uint64_t i = 0; i < THREADS; i++)
            stage_engine()->workers[i].run_nanoseconds = LONG;
    }
    stage_close();
}

static void conflicts_shorten(void)
{
    open_stage("conflicts shorten it, to the horizon", SS_MODE_ORDERED, 200, SHORT);
    stage_start(events, EVENTS, 0);
    await_stop(0, 0, 1);
    struct ss_engine *engine = stage_engine();
    atomic_store(&engine->reach, 100);
    ss_shorten(engine);
    CHECK(ss_reach(engine) == 93);
    atomic_store(&engine->reach, HORIZON + 1);
    ss_shorten(engine);
    CHECK(ss_reach(engine) == HORIZON);
    ss_shorten(engine);
    CHECK(ss_reach(engine) == HORIZON);
    /* Where a step leads beyond the horizon. */
    engine->job.horizon = 90;
    atomic_store(&engine->reach, 92);
    ss_shorten(engine);
    CHECK(ss_reach(engine) == 90);
    engine->job.horizon = HORIZON;
    /* It doubles, up to the longest. */
    atomic_store(&engine->reach, 60);
    CHECK(ss_lengthen(engine, LONG) && ss_reach(engine) == 120);
    CHECK(ss_lengthen(engine, LONG) && ss_reach(engine) == 200 && !ss_lengthen(engine, LONG));
    atomic_store(&engine->reach, 60);
    CHECK(!ss_lengthen(engine, SHORT));
    /* While the head runs again, a longer horizon only adds conflicts. */
    atomic_store(&engine->rerunning, SS_RERUN_ONCE);
    CHECK(!ss_lengthen(engine, LONG) && atomic_load(&engine->reach) == 60);
    atomic_store(&engine->rerunning, SS_RERUN_NONE);
    stage_end();
    stage_close();
}

static void a_dropped_run_shortens(void)
{
    static const row met[] = {{STOP(0), ADD(X, 1)}, {ADD(X, 1), EMIT}, {ADD(B, 1)}, {ADD(A, 1)}};
    open_stage("a run that is dropped shortens it", SS_MODE_ORDERED, LONGEST, SHORT);
    stage_start(met, 4, 0);
    await_stop(0, 0, 1);
    await_status(2, SS_FINISHED);
    atomic_store(&stage_engine()->reach, LONGEST);
    stage_end();
    CHECK(aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 1);
    CHECK(atomic_load(&stage_engine()->reach) == LONGEST - 1);
    stage_close();
}

static void open_job(const char *name, bool is_safe, int64_t reach)
{
    open_stage(name, SS_MODE_OPEN, LONGEST, LONG);
    open_start(events, places, EVENTS);
    atomic_store(&stage_engine()->queue->runs, 1000000);
    atomic_store(&stage_engine()->queue->nanoseconds, INT64_C(1000000) * LONG);
    open_submit(0, EVENTS);
    if (is_safe)
        open_advance(EVENTS, 0);
    await_stop(0, 0, 1);
    for (int64_t event = 1; event <= reach; event++)
        await_event(event, SS_FINISHED);
    await_idle(THREADS - 1);
    CHECK(runs_of(reach + 1) == 0 && ss_reach(stage_engine()) == reach);
    open_end();
    stage_close();
}

int main(void)
{
    patience_start(20);
    beside_a_long_head("it grows while the head takes long", LONGEST, LONG, LONGEST);
    beside_a_long_head("it stays where nothing longer was asked for", 0, LONG, HORIZON);
    beside_a_long_head("it stays where runs are short", LONGEST, SHORT, HORIZON);
    anew();
    conflicts_shorten();
    a_dropped_run_shortens();
    open_job("it grows in an open job", true, LONGEST);
    open_job("it stays where the head waits for the frontier", false, HORIZON);
    patience_stop();
    puts("longest horizon: passed");
    return 0;
}
