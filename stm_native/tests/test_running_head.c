/* A run that becomes the head stops between two events: what it has done commits, and the rest of its chunk
 * runs in place; step by step. Chunks of three: events 0 to 2 are transaction 0. */
#include <stdio.h>
#include <time.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "patience.h"
#include "processor/now.h"
#include "specstream.h"
#include "steps.h"

enum { A = 1, B, C, X = 10, LONG = 100000, SHORT = 100 };

/* Runs take so long, as far as the workers know. */
static void open_stage(const char *name, enum ss_protocol_kind protocol, uint64_t threads,
                       int64_t nanoseconds)
{
    scenario = name;
    stage_open(&(struct setting){.protocol = protocol,
                                 .mode = SS_MODE_ORDERED,
                                 .threads = threads,
                                 .horizon = 8,
                                 .chunk = 3,
                                 .long_sleeps = true});
    for (uint64_t i = 0; i < threads; i++) {
        stage_engine()->workers[i].run_nanoseconds = nanoseconds;
        stage_engine()->workers[i].sample_in = UINT32_MAX;
    }
}

/* The next run of each worker is timed. */
static void sample_next(void)
{
    for (uint64_t i = 0; i < stage_engine()->config.threads; i++)
        stage_engine()->workers[i].sample_in = 0;
}

static int64_t wait_a_while(void)
{
    int64_t since = ss_now();
    nanosleep(&(struct timespec){0, 100 * LONG}, NULL);
    return ss_now() - since;
}

/* Its owner has timed a run that takes so long: what is known moves by a quarter of it. */
static bool is_timed(int64_t number, int64_t nanoseconds)
{
    struct ss_worker *owner = ss_slot_of(stage_engine(), number)->owner;
    return owner->run_nanoseconds - LONG >= (nanoseconds - LONG) / 4;
}

static bool has(int64_t number, enum ss_status status)
{
    return ss_has_status(ss_slot_of(stage_engine(), number), number, status);
}

/* Transaction 1 is in its first event when it becomes the head. */
static void until_it_is_the_head(const row *events, int64_t count)
{
    stage_start(events, count, 0);
    await_stop(0, 0, 1);
    await_stop(3, 0, 1);
    let_all_go(0, 0);
    await_committed(1);
    /* Whoever has committed it has asked, as it waits for something else to do. */
    await_stop(6, 0, 1);
}

/* It comes to its second one. */
static void until_it_stops(const row *events, int64_t count)
{
    until_it_is_the_head(events, count);
    let_go(3, 0);
    await_stop(4, 0, 1);
}

static void the_rest_runs_in_place(void)
{
    static const row events[] = {{STOP(0)},      {ADD(A, 1)}, {ADD(A, 1)},
                                 {STOP(0), WRITE(X, 7), EMIT}, {STOP(0), ADD(B, 1), EMIT},
                                 {READ(X), PUT(C), EMIT}, {STOP(0), READ(A), EMIT}};
    open_stage("the rest of a chunk runs in place", SS_PROTOCOL_VALUE, 2, LONG);
    until_it_stops(events, 7);
    CHECK(has(1, SS_IN_PLACE) && stage_word(X) == 7 && stage_engine()->consumed == 4);
    stage_end();
    CHECK(runs_of(3) == 1 && runs_of(4) == 1 && runs_of(5) == 1 && all_aborts() == 0);
    stage_close();
}

/* What is known of how long runs take is that of whole chunks. */
static void its_time_is_that_of_a_chunk(void)
{
    static const row events[] = {{STOP(0)},      {ADD(A, 1)}, {ADD(A, 1)},
                                 {STOP(0), EMIT}, {STOP(0), ADD(B, 1)}, {ADD(C, 1), EMIT},
                                 {STOP(0)}};
    open_stage("a stopped run is taken for as long as its chunk", SS_PROTOCOL_VALUE, 2, LONG);
    sample_next();
    until_it_is_the_head(events, 7);
    int64_t held = wait_a_while();
    let_go(3, 0);
    await_stop(4, 0, 1);
    CHECK(has(1, SS_IN_PLACE) && is_timed(1, 3 * held));
    stage_end();
    stage_close();
}

/* What it has read before it became the head does not hold: all of the chunk runs in place, and is timed. */
static void what_it_has_read_is_compared(void)
{
    static const row events[] = {{STOP(0), WRITE(X, 7)}, {ADD(A, 1)}, {ADD(A, 1)},
                                 {READ(X), STOP(0), PUT(C), EMIT}, {STOP(0), ADD(B, 1), EMIT},
                                 {ADD(C, 1), EMIT}, {STOP(0), READ(C), EMIT}};
    open_stage("what a stopped run has read is compared", SS_PROTOCOL_VALUE, 2, LONG);
    until_it_is_the_head(events, 7);
    sample_next();
    let_go(3, 0);
    await_stop(3, 0, 2);
    CHECK(has(1, SS_IN_PLACE) && runs_of(4) == 0);
    let_go(3, 0);
    await_stop(4, 0, 1);
    int64_t held = wait_a_while();
    stage_end();
    CHECK(is_timed(1, held));
    CHECK(runs_of(3) == 2 && runs_of(4) == 1 && runs_of(5) == 1);
    CHECK(aborts(SS_ABORT_CONFLICT) >= 1);
    stage_close();
}

/* Nobody asks: event 4 runs speculatively as well. */
static void it_goes_on(const char *name, enum ss_protocol_kind protocol, int64_t nanoseconds)
{
    static const row events[] = {{STOP(0)},      {ADD(A, 1)}, {ADD(A, 1)},
                                 {STOP(0), WRITE(X, 7)}, {STOP(0), ADD(B, 1)},
                                 {READ(X), PUT(C)}, {STOP(0), EMIT}};
    open_stage(name, protocol, 2, nanoseconds);
    until_it_stops(events, 7);
    CHECK(has(1, SS_RUNNING) && stage_engine()->consumed == 3);
    stage_end();
    stage_close();
}

/* What it adds to a counter is foretold of all of the chunk, from the first run on that counts. */
static void it_counts(void)
{
    static const row events[] = {{STOP(0)},      {ADD(A, 1)}, {ADD(A, 1)},
                                 {STOP(0), COUNT(X)}, {STOP(0), COUNT(X)},
                                 {COUNT(X), EMIT}, {STOP(0), EMIT}};
    open_stage("who counts goes on", SS_PROTOCOL_VALUE, 2, LONG);
    until_it_stops(events, 7);
    CHECK(has(1, SS_RUNNING) && stage_engine()->consumed == 3);
    stage_end();
    CHECK(all_aborts() == 0);
    stage_close();
}

/* A run that is not the head goes on when a reader asks everybody to yield. */
static void it_is_not_the_head(void)
{
    static const row events[] = {{STOP(0)}, {ADD(A, 1)}, {ADD(A, 1)}, {STOP(0), ADD(X, 7)},
                                 {STOP(0), ADD(B, 1), EMIT}, {EMIT}};
    open_stage("who is not the head goes on", SS_PROTOCOL_VALUE, 2, LONG);
    stage_start(events, 6, 0);
    await_stop(0, 0, 1);
    await_stop(3, 0, 1);
    for (uint64_t i = 0; i < 2; i++)
        __atomic_store_n(&stage_engine()->workers[i].run.yield, 1, __ATOMIC_RELAXED);
    let_go(3, 0);
    await_stop(4, 0, 1);
    CHECK(has(1, SS_RUNNING));
    let_go(4, 0);
    await_status(1, SS_FINISHED);
    CHECK(ss_slot_of(stage_engine(), 1)->last == 6);
    stage_end();
    CHECK(runs_of(3) == 1 && runs_of(4) == 1 && runs_of(5) == 1);
    stage_close();
}

/* The job ends in the rest of a chunk: there an event raises. */
static void the_rest_raises(void)
{
    static const row events[] = {{STOP(0)},      {ADD(A, 1)}, {ADD(A, 1)},
                                 {STOP(0), WRITE(X, 7), EMIT}, {STOP(0), ADD(B, 1), EMIT},
                                 {ADD(X, 1), EMIT, RAISE}, {STOP(0), EMIT}};
    open_stage("an event of the rest raises", SS_PROTOCOL_VALUE, 2, LONG);
    until_it_stops(events, 7);
    struct ss_outcome outcome = stage_end();
    CHECK(outcome.failed && outcome.consumed == 5);
    stage_close();
}

/* Somebody stops the job there. */
static void the_rest_is_stopped(void)
{
    static const row events[] = {{STOP(0)},      {ADD(A, 1)}, {ADD(A, 1)},
                                 {STOP(0), WRITE(X, 7), EMIT}, {STOP(0), ADD(B, 1), EMIT},
                                 {ADD(X, 1), EMIT}, {STOP(0), EMIT}};
    open_stage("the job is stopped in the rest of a chunk", SS_PROTOCOL_VALUE, 2, LONG);
    until_it_stops(events, 7);
    ss_engine_stop(stage_engine());
    struct ss_outcome outcome = stage_wait();
    uint64_t next_row = 0;
    for (int64_t event = 0; event < outcome.consumed; event++)
        CHECK(stage_expect(event, &outcome, &next_row));
    CHECK(!outcome.failed && outcome.consumed == 5);
    CHECK(outcome.row_count == next_row && stage_is_as_expected());
    stage_close();
}

int main(void)
{
    patience_start(20);
    the_rest_runs_in_place();
    its_time_is_that_of_a_chunk();
    what_it_has_read_is_compared();
    it_goes_on("short runs are not stopped", SS_PROTOCOL_VALUE, SHORT);
    it_goes_on("under `eager` the head speculates to its end", SS_PROTOCOL_EAGER, LONG);
    it_counts();
    it_is_not_the_head();
    the_rest_raises();
    the_rest_is_stopped();
    patience_stop();
    puts("running head: passed");
    return 0;
}
