/* The two limits of optimism (Brito 2010, 4.2.3): threads, and the horizon, measured from the
 * head. */
#include <stdio.h>
#include <string.h>

#include "core/transaction.h"
#include "specstream.h"
#include "steps.h"

enum { A = 1 };

static void open_stage(const char *name, const struct setting *setting, const row *events,
                       int64_t count)
{
    scenario = name;
    stage_open(setting);
    stage_start(events, count, 0);
}

static void close_stage(void)
{
    stage_end();
    CHECK(all_aborts() == 0);
    stage_close();
}

static bool has_begun(int64_t event)
{
    return runs_of(event) > 0;
}

/* One worker is kept at the head, the other goes as far as it may. */
static void horizon(struct setting setting)
{
    static const row events[12] = {{STOP(0), ADD(A, 1)}};
    setting.threads = 2;
    setting.horizon = 5;
    open_stage("the horizon is reached and never passed", &setting, events, 12);
    await_stop(0, 0, 1);
    for (int64_t event = 1; event <= 5; event++)
        await_status(event, SS_FINISHED);
    await_idle(1);
    CHECK(!has_begun(6) && furthest_ahead() == 5);
    let_go(0, 0);
    await_committed(12);
    CHECK(furthest_ahead() <= 5 && most_running() <= 2);
    close_stage();
}

static void horizon_of_chunks(struct setting setting)
{
    static const row events[20] = {{STOP(0), ADD(A, 1)}};
    setting.threads = 2;
    setting.horizon = 2;
    setting.chunk = 3;
    open_stage("the horizon counts transactions, not events", &setting, events, 20);
    await_stop(0, 0, 1);
    await_status(1, SS_FINISHED);
    await_status(2, SS_FINISHED);
    await_idle(1);
    CHECK(has_begun(8) && !has_begun(9));
    close_stage();
}

static void horizon_moves(struct setting setting)
{
    static const row events[9] = {{STOP(0), ADD(A, 1)}, {STOP(0), ADD(A + 1, 1)}};
    setting.threads = 3;
    setting.horizon = 3;
    open_stage("each commit moves the horizon by one", &setting, events, 9);
    await_stop(0, 0, 1);
    await_stop(1, 0, 1);
    await_status(3, SS_FINISHED);
    await_idle(1);
    CHECK(!has_begun(4));
    let_go(0, 0);
    await_committed(1);
    await_status(4, SS_FINISHED);
    await_idle(2);
    CHECK(!has_begun(5));
    close_stage();
}

static void shortest_horizon(struct setting setting)
{
    static const row events[6] = {{STOP(0), ADD(A, 1)}};
    setting.threads = 3;
    setting.horizon = 1;
    open_stage("horizon 1: one transaction beside the head", &setting, events, 6);
    await_stop(0, 0, 1);
    await_status(1, SS_FINISHED);
    await_idle(2);
    CHECK(!has_begun(2));
    close_stage();
}

static void threads(struct setting setting)
{
    static const row events[9] = {{STOP(0)}, {STOP(0)}, {STOP(0)}, {STOP(0)}, {STOP(0)},
                                  {STOP(0)}, {STOP(0)}, {STOP(0)}, {STOP(0)}};
    setting.threads = 3;
    setting.horizon = 8;
    open_stage("so many run as there are threads, and no more", &setting, events, 9);
    for (int64_t event = 0; event < 3; event++)
        await_stop(event, 0, 1);
    CHECK(most_running() == 3 && !has_begun(3));
    for (int64_t event = 0; event < 9; event++) {
        let_go(event, 0);
        if (event + 3 < 9)
            await_stop(event + 3, 0, 1);
        CHECK(most_running() == 3);
    }
    close_stage();
}

/* With horizon 0 there is nothing but the head: one worker, one run, no transaction. */
static void no_speculation(enum ss_protocol_kind protocol)
{
    static const row events[30] = {{ADD(A, 1), LINGER(200)}, {ADD(A, 1), LINGER(200)}};
    struct setting setting = {.protocol = protocol, .threads = 3};
    open_stage("horizon 0: nobody speculates", &setting, events, 30);
    stage_end();
    struct ss_statistics statistics = ss_engine_statistics(stage_engine());
    CHECK(statistics.speculative_runs == 0 && statistics.head_runs == 1);
    CHECK(most_running() == 1 && furthest_ahead() == 0);
    stage_close();
}

/* Random events under random settings. Returns whether the horizon was reached, and counts where
 * all threads ran. */
static uint64_t random_load(uint64_t seed, uint64_t *all_ran)
{
    static row events[MOST_EVENTS];
    struct dice dice = dice_for(seed, 0);
    struct setting setting = {
        .protocol = chance(&dice, 2) ? SS_PROTOCOL_EAGER : SS_PROTOCOL_VALUE,
        .mode = chance(&dice, 2) ? SS_MODE_SPECULATE : SS_MODE_ORDERED,
        .threads = 1 + below(&dice, 6),
        .horizon = (int64_t)spread(&dice, 15),
        .chunk = 1 + (int64_t)spread(&dice, 7),
        .record_shift = below(&dice, 4),
    };
    scenario = "random load";
    stage_open(&setting);
    for (int job = 0; job < 3; job++) {
        int64_t count = (int64_t)below(&dice, MOST_EVENTS);
        memset(events, 0, sizeof events);
        for (int64_t event = 0; event < count; event++)
            draw_event(&dice, events[event], MOST_STEPS - 1, chance(&dice, 2) ? 8 : STATE_WORDS);
        stage_start(events, count, 0);
        stage_end();
        CHECK(most_running() <= setting.threads);
        CHECK(furthest_ahead() <= setting.horizon);
        CHECK(most_running() <= (uint64_t)setting.horizon + 1);
    }
    *all_ran += setting.threads > 1 && most_running() == setting.threads;
    uint64_t reached = setting.horizon > 0 && furthest_ahead() == setting.horizon;
    stage_close();
    return reached;
}

int main(void)
{
    uint64_t reached = 0, all_ran = 0;
    patience_start(20);
    for (int protocol = 0; protocol < 2; protocol++)
        for (int mode = 0; mode < 2; mode++) {
            struct setting setting = {.protocol = (enum ss_protocol_kind)protocol,
                                      .mode = mode == 0 ? SS_MODE_ORDERED : SS_MODE_SPECULATE};
            horizon(setting);
            horizon_of_chunks(setting);
            horizon_moves(setting);
            shortest_horizon(setting);
            threads(setting);
        }
    no_speculation(SS_PROTOCOL_VALUE);
    no_speculation(SS_PROTOCOL_EAGER);
    for (uint64_t seed = 0; seed < 200; seed++)
        reached += random_load(seed, &all_ran);
    CHECK(reached > 0 && all_ran > 0); /* or nothing was limited */
    patience_stop();
    puts("limits: passed");
    return 0;
}
