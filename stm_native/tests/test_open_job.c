/* Events out of order (Brito 2010, 4.3.1), step by step: the example of Figure 4.3, and each way in
 * which an event or the frontier meets transactions that are there already. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "jobs/queue.h"
#include "open_steps.h"
#include "processor/now.h"
#include "specstream.h"

enum { A = 1, B, C, D, X = 10, Y, Z };

static void open_stage(const char *name, struct setting setting)
{
    scenario = name;
    setting.mode = SS_MODE_OPEN;
    stage_open(&setting);
}

static void close_stage(void)
{
    open_end();
    stage_close();
}

/* The event comes, and runs until its first stop. */
static void submit_and_hold(int64_t event)
{
    open_submit(event, event + 1);
    await_stop(event, 0, 1);
}

/* ---- Figure 4.3 ---- */

enum { UPPER, LOWER, EVENT_9 = 0, EVENT_11, EVENT_13, EVENT_12, EVENT_15 };

static const struct place channels[] = {
    {9, UPPER}, {11, LOWER}, {13, LOWER}, {12, UPPER}, {15, LOWER}};

/* One processor, two channels; the events 12 and 15 use the same part of the state. */
static void figure_4_3(enum ss_protocol_kind protocol)
{
    static const row events[] = {[EVENT_9] = {ADD(A, 9), EMIT},
                                 [EVENT_11] = {STOP(0), ADD(B, 11), EMIT},
                                 [EVENT_13] = {STOP(0), ADD(C, 13), EMIT},
                                 [EVENT_12] = {STOP(0), ADD(D, 12), EMIT},
                                 [EVENT_15] = {STOP(0), ADD(D, 15), EMIT}};
    open_stage("figure 4.3", (struct setting){.protocol = protocol, .threads = 1, .horizon = 4});
    open_start(events, channels, 5);
    /* (a) event 9 is committed, and nobody knows which one is next */
    open_submit(EVENT_9, EVENT_9 + 1);
    open_advance(9, UPPER);
    await_left(0);
    /* (b) event 11 runs meanwhile */
    submit_and_hold(EVENT_11);
    CHECK(await_event(EVENT_11, SS_RUNNING) >= 0);
    /* (c) it waits, and event 13 runs; then event 12 comes */
    open_submit(EVENT_13, EVENT_13 + 1);
    let_go(EVENT_11, 0);
    await_stop(EVENT_13, 0, 1);
    await_event(EVENT_11, SS_FINISHED);
    CHECK(open_left() == 2 && stage_word(B) == 0);
    open_submit(EVENT_12, EVENT_12 + 1);
    /* (d) the next one is known: event 11 can be committed */
    open_advance(12, UPPER);
    let_go(EVENT_13, 0);
    await_stop(EVENT_12, 0, 1);
    await_event(EVENT_13, SS_FINISHED);
    CHECK(open_left() == 2 && stage_word(B) == 11 && stage_word(C) == 0);
    /* (e) event 12 is processed and committed, event 15 processed */
    let_go(EVENT_12, 0);
    await_left(1);
    submit_and_hold(EVENT_15);
    CHECK(stage_word(D) == 12);
    let_go(EVENT_15, 0);
    await_event(EVENT_15, SS_FINISHED);
    /* (f) nothing is to do until it is known what commits next */
    await_idle(1);
    CHECK(open_left() == 2 && stage_word(C) == 0 && stage_word(D) == 12);
    struct ss_outcome outcome = open_end();
    CHECK(outcome.row_count == 5 && stage_word(C) == 13 && stage_word(D) == 27);
    for (int64_t event = 0; event < 5; event++)
        CHECK(runs_of(event) == 1);
    CHECK(all_aborts() == 0);
    stage_close();
}

/* What would happen if event 12 came after event 15 has used what it changes. */
static void figure_4_3_but_late(enum ss_protocol_kind protocol)
{
    static const row events[] = {[EVENT_9] = {ADD(A, 9), EMIT},
                                 [EVENT_11] = {ADD(B, 11), EMIT},
                                 [EVENT_13] = {ADD(C, 13), EMIT},
                                 [EVENT_12] = {ADD(D, 12), EMIT},
                                 [EVENT_15] = {READ(D), PUT(X), EMIT}};
    open_stage("figure 4.3, event 12 comes last", (struct setting){.protocol = protocol,
                                                                    .threads = 2,
                                                                    .horizon = 4,
                                                                    .long_sleeps = true});
    open_start(events, channels, 5);
    open_submit(EVENT_9, EVENT_9 + 1);
    open_submit(EVENT_11, EVENT_11 + 1);
    open_submit(EVENT_13, EVENT_13 + 1);
    open_submit(EVENT_15, EVENT_15 + 1);
    await_event(EVENT_15, SS_FINISHED);
    open_submit(EVENT_12, EVENT_12 + 1);
    open_end();
    CHECK(aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 1);
    CHECK(runs_of(EVENT_13) == 1 && runs_of(EVENT_12) == 1 && runs_of(EVENT_15) == 2);
    stage_close();
}

/* ---- an event inside a chunk ---- */

enum { LATE = 8 };

static const struct place around[] = {{10, 0}, {20, 0}, {30, 0}, {40, 0}, {50, 0},
                                      {60, 0}, {70, 0}, {80, 0}, {45, 1}, {90, 0}};

static void inside_a_finished_chunk(enum ss_protocol_kind protocol)
{
    static const row events[] = {{ADD(B, 1)}, {ADD(B, 1)}, {ADD(B, 1)}, {READ(B), PUT(A)},
                                 {READ(A), PUT(A)}, {ADD(B, 1)}, {ADD(B, 1)},
                                 {ADD(C, 1), EMIT}, [LATE] = {READ(A), PUT(A), EMIT}};
    open_stage("an event inside a finished chunk",
               (struct setting){.protocol = protocol, .threads = 2, .horizon = 2, .chunk = 8});
    open_start(events, around, 9);
    open_submit(0, 8);
    await_event(0, SS_FINISHED);
    open_submit(LATE, LATE + 1);
    await_event(7, SS_FINISHED);
    await_event(LATE, SS_FINISHED);
    CHECK(await_event(0, SS_FINISHED) == await_event(LATE, SS_FINISHED));
    CHECK(await_event(0, SS_FINISHED) != await_event(7, SS_FINISHED));
    open_end();
    CHECK(aborts(SS_ABORT_REORDERED) == 1 && all_aborts() == 1);
    for (int64_t event = 0; event < 8; event++)
        CHECK(runs_of(event) == 2);
    CHECK(runs_of(LATE) == 1);
    stage_close();
}

/* Nothing is claimed before the run is over: it gives back events that belong between others. */
static void inside_a_running_chunk(enum ss_protocol_kind protocol)
{
    enum { LAST = 9 };
    static const row events[] = {{ADD(B, 1)}, {ADD(B, 1)}, {STOP(0), ADD(B, 1)},
                                 {READ(B), PUT(A)}, {READ(A), PUT(A)}, {ADD(B, 1)},
                                 {ADD(B, 1)}, {ADD(C, 1)}, [LATE] = {READ(A), PUT(A), EMIT},
                                 [LAST] = {READ(Z), EMIT}};
    open_stage("an event inside a running chunk",
               (struct setting){.protocol = protocol, .threads = 2, .horizon = 4, .chunk = 8});
    open_start(events, around, 10);
    open_submit(0, 8);
    await_stop(2, 0, 1);
    open_submit(LATE, LATE + 1);
    open_submit(LAST, LAST + 1);
    await_idle(1);
    CHECK(runs_of(LATE) == 0 && runs_of(LAST) == 0);
    let_all_go(2, 0);
    await_event(0, SS_FINISHED);
    await_event(LAST, SS_FINISHED);
    CHECK(await_event(0, SS_FINISHED) == await_event(LATE, SS_FINISHED));
    open_end();
    CHECK(aborts(SS_ABORT_REORDERED) == 1 && runs_of(0) == 2 && runs_of(LATE) == 1);
    stage_close();
}

/* ---- where a chunk ends ---- */

/* The frontier comes to stand between its events: the first ones do not wait for the last. */
static void divided(enum ss_protocol_kind protocol, bool running)
{
    static const row events[] = {{ADD(B, 1)}, {ADD(B, 1)}, {ADD(B, 1)},
                                 {READ(B), PUT(A), EMIT}, {STOP(0), ADD(C, 1)}, {ADD(C, 1)},
                                 {ADD(C, 1)}, {ADD(C, 1), EMIT}};
    open_stage(running ? "a frontier inside a running chunk" : "a frontier inside a finished chunk",
               (struct setting){.protocol = protocol, .threads = 2, .horizon = 2, .chunk = 8,
                                .long_sleeps = true});
    open_start(events, around, 8);
    open_submit(0, 8);
    await_stop(4, 0, 1);
    if (running) {
        open_advance(40, 0);
        let_all_go(4, 0);
    } else {
        let_all_go(4, 0);
        await_event(0, SS_FINISHED);
        open_advance(40, 0);
    }
    await_left(4);
    await_event(7, SS_FINISHED);
    CHECK(stage_word(B) == 3 && stage_word(C) == 0);
    open_end();
    CHECK(aborts(SS_ABORT_REORDERED) == 1 && all_aborts() == 1);
    stage_close();
}

static const struct place interleaved[] = {{5, 0},  {10, 0}, {30, 0}, {50, 0}, {70, 0},
                                           {20, 1}, {40, 1}, {60, 1}, {80, 1}};

static const struct place in_a_row[] = {{5, 0},  {10, 0}, {20, 0}, {30, 0}, {40, 0},
                                        {50, 0}, {60, 0}, {70, 0}, {80, 0}};

/* The segments are there before a worker is. */
static void up_to_the_frontier(enum ss_protocol_kind protocol, struct place frontier, int64_t left)
{
    static const row events[] = {{STOP(0), EMIT}, {READ(A), PUT(A), EMIT}, {READ(A), PUT(A)},
                                 {READ(A), PUT(A)}, {READ(A), PUT(A), EMIT}, {READ(A), PUT(A)},
                                 {READ(A), PUT(A)}, {READ(A), PUT(A)}, {READ(A), PUT(A)}};
    open_stage("a chunk of two segments ends at the frontier",
               (struct setting){.protocol = protocol, .threads = 1, .horizon = 4, .chunk = 16});
    open_start(events, interleaved, 9);
    submit_and_hold(0);
    open_submit(1, 5);
    open_submit(5, 9);
    open_advance(frontier.timestamp, frontier.source);
    CHECK(open_left() == 9);
    let_go(0, 0);
    await_left(left);
    await_event(8, SS_FINISHED);
    await_idle(1);
    CHECK(open_left() == left);
    open_end();
    CHECK(all_aborts() == 0);
    for (int64_t event = 0; event < 9; event++)
        CHECK(runs_of(event) == 1);
    stage_close();
}

/* Events before and behind one that runs are no chunk. */
static void around_another(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{50, 0}, {40, 1}, {60, 1}};
    static const row events[] = {{STOP(0), ADD(A, 1), EMIT}, {ADD(B, 1), EMIT},
                                 {STOP(0), READ(A), PUT(X), EMIT}};
    open_stage("events of one segment before and behind an active one",
               (struct setting){.protocol = protocol, .threads = 3, .horizon = 4, .chunk = 8});
    open_start(events, places, 3);
    submit_and_hold(0);
    open_submit(1, 3);
    await_event(1, SS_FINISHED);
    await_stop(2, 0, 1);
    CHECK(await_event(1, SS_FINISHED) != await_event(2, SS_RUNNING));
    let_go(0, 0);
    await_event(0, SS_FINISHED);
    open_advance(50, 0);
    await_left(1);
    let_go(2, 0);
    close_stage();
}

/* The same with one worker that is held up until events of several segments are there. */
static void before_and_behind(enum ss_protocol_kind protocol)
{
    enum { HOLD = 3, AGAIN = 4 };
    static const struct place places[] = {{50, 0}, {40, 1}, {60, 2}, {70, 3}, {30, 4}};
    static const row events[] = {{STOP(0), ADD(A, 1), EMIT},
                                 {ADD(B, 1)},
                                 {READ(A), PUT(X), EMIT},
                                 [HOLD] = {STOP(0), EMIT},
                                 [AGAIN] = {ADD(B, 1), EMIT}};
    open_stage("events of two segments before and behind an active one",
               (struct setting){.protocol = protocol, .threads = 2, .horizon = 8, .chunk = 8});
    open_start(events, places, 5);
    submit_and_hold(0);
    submit_and_hold(HOLD);
    open_submit(2, 3);
    open_submit(AGAIN, AGAIN + 1);
    open_submit(1, 2);
    let_go(HOLD, 0);
    await_event(1, SS_FINISHED);
    await_event(2, SS_FINISHED);
    CHECK(await_event(1, SS_FINISHED) == await_event(AGAIN, SS_FINISHED));
    CHECK(await_event(1, SS_FINISHED) != await_event(2, SS_FINISHED));
    CHECK(await_event(0, SS_RUNNING) >= 0);
    close_stage();
}

/* ---- limits ---- */

static void horizon(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}};
    static const row events[] = {{STOP(0), EMIT}, {EMIT}, {EMIT}, {EMIT}, {EMIT}, {EMIT}};
    open_stage("the horizon counts from the earliest transaction",
               (struct setting){.protocol = protocol, .threads = 2, .horizon = 3});
    open_start(events, places, 6);
    open_submit(0, 6);
    await_stop(0, 0, 1);
    await_event(3, SS_FINISHED);
    await_idle(1);
    CHECK(runs_of(4) == 0);
    let_go(0, 0);
    await_event(0, SS_FINISHED);
    open_advance(1, 0);
    await_event(4, SS_FINISHED);
    await_idle(2);
    CHECK(runs_of(5) == 0);
    close_stage();
}

/* Each comes before all others: only the slots limit how many there are. */
static void slots(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{104, 0}, {103, 1}, {102, 2}, {101, 3}, {100, 3}};
    static const row events[] = {{STOP(0), ADD(A, 1), EMIT}, {STOP(0), ADD(B, 1), EMIT},
                                 {STOP(0), ADD(C, 1), EMIT}, {STOP(0), ADD(D, 1), EMIT},
                                 {ADD(X, 1), EMIT}};
    open_stage("one slot is kept for the head",
               (struct setting){.protocol = protocol, .threads = 5, .horizon = 1});
    open_start(events, places, 5);
    for (int64_t event = 0; event < 3; event++)
        submit_and_hold(event);
    open_submit(3, 4);
    await_idle(2);
    CHECK(stage_engine()->ring_size == 4 && runs_of(3) == 0);
    /* The latest one makes room as soon as it has finished, and has to run again. */
    let_go(0, 0);
    await_stop(3, 0, 1);
    CHECK(await_event(0, SS_FREE) == -1 && runs_of(0) == 1);
    /* Nobody else can; but the head has a slot. */
    open_submit(4, 5);
    await_idle(2);
    CHECK(runs_of(4) == 0);
    open_advance(100, 3);
    await_left(4);
    CHECK(stage_word(X) == 1);
    open_end();
    CHECK(runs_of(0) == 2 && runs_of(4) == 1);
    CHECK(aborts(SS_ABORT_REORDERED) == 1 && all_aborts() == 1);
    stage_close();
}

/* Every worker is in a run that only an earlier event could end, and there nobody is to run it. */
static void runaways(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{20, 0}, {30, 0}, {10, 1}};
    static const row events[] = {{LOOP_UNLESS(X, 1), EMIT}, {LOOP_UNLESS(X, 1), EMIT},
                                 {WRITE(X, 1), EMIT}};
    open_stage("the head comes when every worker is in a runaway run",
               (struct setting){.protocol = protocol, .threads = 2, .horizon = 4});
    open_start(events, places, 3);
    open_submit(0, 2);
    await_stop(0, LOOPING, 1);
    await_stop(1, LOOPING, 1);
    open_submit(2, 3);
    open_advance(10, 1);
    int64_t since = ss_now();
    while (!ss_engine_await(stage_engine(), 10000000))
        if (stage_waits_too_long(since))
            fail("%s: nobody runs it", scenario);
    await_left(2);
    open_end();
    CHECK(aborts(SS_ABORT_RUNAWAY) == 2 && runs_of(2) == 1);
    stage_close();
}

static _Atomic uint64_t seen_applied, seen_waiting;

static void *look_once(void *argument)
{
    (void)argument;
    ss_engine_take_turn(stage_engine());
    atomic_store(&seen_applied, stage_word(A));
    atomic_store(&seen_waiting, (uint64_t)open_not_applied());
    ss_engine_release_turn(stage_engine());
    return NULL;
}

/* A chunk that runs in place lends the turn between two of its events: what is applied and what waits
 * are all of them, or a snapshot would have the first ones applied twice. */
static void a_look_into_a_chunk(void)
{
    static const struct place places[] = {{1, 0}, {2, 0}, {3, 0}};
    static const row events[] = {{STOP(0), ADD(A, 1)}, {ADD(A, 1)}, {ADD(A, 1)}};
    pthread_t reader;
    open_stage("a look into the midst of a chunk", (struct setting){.threads = 1, .horizon = 0});
    open_start(events, places, 3);
    open_submit(0, 2);
    open_submit(2, 3);
    open_advance(10, 0);
    await_stop(0, 0, 1);
    CHECK(pthread_create(&reader, NULL, look_once, NULL) == 0);
    /* The worker is asked for the turn: a reader that has only come may ask behind its last event. */
    await_asked();
    let_go(0, 0);
    pthread_join(reader, NULL);
    CHECK(atomic_load(&seen_applied) == 1 && atomic_load(&seen_waiting) == 2);
    open_end();
    stage_close();
}

/* ---- failure ---- */

/* In the middle of a chunk of two segments: what was before it is applied, what is behind it waits. */
static void failure(enum ss_protocol_kind protocol, const struct place *places, int64_t before)
{
    enum { FAILS = 6 };
    static const row events[] = {{STOP(0)}, {READ(A), PUT(A), EMIT}, {READ(A), PUT(A)},
                                 {READ(A), PUT(A)}, {READ(A), PUT(A)}, {READ(A), PUT(A)},
                                 [FAILS] = {ADD(A, 1), WRITE(X, 1), EMIT, RAISE},
                                 {READ(A), PUT(A), EMIT}, {READ(A), PUT(A)}};
    open_stage("an event that fails in a chunk of two segments",
               (struct setting){.protocol = protocol, .threads = 1, .horizon = 2, .chunk = 16});
    open_start(events, places, 9);
    submit_and_hold(0);
    open_submit(1, 5);
    open_submit(5, 9);
    open_advance(80, 1);
    let_go(0, 0);
    CHECK(await_failure() == FAILS);
    await_idle(1);
    CHECK(ss_engine_outcome(stage_engine()).consumed == before);
    CHECK(open_left() == 9 - before);
    CHECK(ss_engine_outcome(stage_engine()).row_count == 1 && stage_word(X) == 0);
    CHECK(runs_of(7) == 0);
    ss_engine_resume(stage_engine(), FAILS);
    await_left(0);
    struct ss_outcome outcome = open_end();
    CHECK(outcome.consumed == 8 && outcome.row_count == 2 && runs_of(FAILS) >= 1);
    stage_close();
}

/* Rows that were taken do not come again. */
static void rows(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {20, 0}};
    static const row events[] = {{EMIT}, {EMIT}};
    open_stage("rows are taken once",
               (struct setting){.protocol = protocol, .threads = 2, .horizon = 2});
    open_start(events, places, 2);
    for (int64_t event = 0; event < 2; event++) {
        open_submit(event, event + 1);
        open_advance(places[event].timestamp, 0);
        await_left(0);
        CHECK(ss_engine_await(stage_engine(), 5000000000));
        ss_engine_take_turn(stage_engine());
        struct ss_outcome outcome = ss_engine_outcome(stage_engine());
        CHECK(outcome.row_count == 1 && outcome.rows[0] == (uint64_t)event);
        ss_engine_clear_rows(stage_engine());
        CHECK(ss_engine_outcome(stage_engine()).row_count == 0);
        ss_engine_release_turn(stage_engine());
    }
    ss_engine_stop(stage_engine());
    stage_wait();
    stage_close();
}

static void *let_go_once_somebody_listens(void *unused)
{
    struct ss_queue *queue = stage_engine()->queue;
    bool heard = false;
    (void)unused;
    while (!heard) {
        pthread_mutex_lock(&queue->mutex);
        heard = queue->listeners > 0;
        pthread_mutex_unlock(&queue->mutex);
    }
    let_go(0, 0);
    return NULL;
}

/* Who waits for rows hears of them: the wait is longer than the watchdog's patience. */
static void news(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}};
    static const row events[] = {{STOP(0), EMIT}};
    pthread_t other;
    open_stage("who waits hears of rows",
               (struct setting){.protocol = protocol, .threads = 2, .horizon = 2});
    open_start(events, places, 1);
    open_submit(0, 1);
    open_advance(10, 0);
    CHECK(pthread_create(&other, NULL, let_go_once_somebody_listens, NULL) == 0);
    CHECK(ss_engine_await(stage_engine(), 60000000000));
    pthread_join(other, NULL);
    await_left(0);
    close_stage();
}

/* ---- protocol eager ---- */

/* An earlier event comes later and takes a lock over (Table 4.1, case 8). Who has lost it waits until
 * the winner, whose number is the higher one, has committed, and runs again. */
static void late_winner(void)
{
    static const struct place places[] = {{20, 0}, {10, 1}};
    static const row events[] = {{WRITE(X, 2), STOP(0), READ(Y), PUT(Z), EMIT},
                                 {WRITE(X, 1), STOP(0), EMIT}};
    open_stage("a lock is lost to an event that came later",
               (struct setting){.protocol = SS_PROTOCOL_EAGER, .threads = 2, .horizon = 2,
                                .long_sleeps = true});
    open_start(events, places, 2);
    submit_and_hold(0);
    submit_and_hold(1);
    let_go(0, 0);
    int64_t loser = await_event(0, SS_WAITING);
    int64_t winner = await_event(1, SS_RUNNING);
    CHECK(winner > loser && waits_for(loser) == winner);
    await_idle(1);
    CHECK(runs_of(0) == 1);
    let_go(1, 0);
    await_event(1, SS_FINISHED);
    open_advance(10, 1);
    await_stop(0, 0, 2);
    open_end();
    CHECK(aborts(SS_ABORT_STOLEN) == 1 && all_aborts() == 1);
    CHECK(runs_of(0) == 2 && runs_of(1) == 1);
    stage_close();
}

/* A later event meets the lock of an earlier one (case 5), and runs again once that has committed. */
static void early_winner(void)
{
    static const struct place places[] = {{10, 0}, {20, 0}};
    static const row events[] = {{WRITE(X, 1), STOP(0), EMIT}, {READ(X), PUT(Z), EMIT}};
    open_stage("a lock is met that an earlier event has",
               (struct setting){.protocol = SS_PROTOCOL_EAGER, .threads = 2, .horizon = 2,
                                .long_sleeps = true});
    open_start(events, places, 2);
    submit_and_hold(0);
    open_submit(1, 2);
    int64_t loser = await_event(1, SS_WAITING);
    CHECK(waits_for(loser) == await_event(0, SS_RUNNING));
    await_idle(1);
    CHECK(runs_of(1) == 1);
    let_go(0, 0);
    await_event(0, SS_FINISHED);
    open_advance(10, 0);
    await_event(1, SS_FINISHED);
    open_end();
    CHECK(aborts(SS_ABORT_LOCKED) == 1 && all_aborts() == 1 && runs_of(1) == 2);
    stage_close();
}

int main(void)
{
    patience_start(20);
    a_look_into_a_chunk();
    for (int kind = 0; kind < 2; kind++) {
        enum ss_protocol_kind protocol = (enum ss_protocol_kind)kind;
        figure_4_3(protocol);
        figure_4_3_but_late(protocol);
        inside_a_finished_chunk(protocol);
        inside_a_running_chunk(protocol);
        divided(protocol, false);
        divided(protocol, true);
        up_to_the_frontier(protocol, (struct place){40, 1}, 4);
        up_to_the_frontier(protocol, (struct place){50, 0}, 3);
        up_to_the_frontier(protocol, (struct place){40, 0}, 5);
        around_another(protocol);
        before_and_behind(protocol);
        horizon(protocol);
        slots(protocol);
        runaways(protocol);
        failure(protocol, interleaved, 4);
        failure(protocol, in_a_row, 6);
        rows(protocol);
        news(protocol);
    }
    late_winner();
    early_winner();
    patience_stop();
    puts("open job: passed");
    return 0;
}
