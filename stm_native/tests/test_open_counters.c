/* Counters of an open job, step by step: what is foretold of a transaction whose place among the
 * others only its key tells, and when that is wrong. Events 0 and 1 come first and alone: with the
 * commit of the one the value of the counter is known, with that of the other what an event adds to
 * it. */
#include <stdio.h>

#include "core/transaction.h"
#include "open_steps.h"
#include "specstream.h"

enum { A = 1 };

static void open_stage(const char *name, enum ss_protocol_kind protocol, int64_t chunk,
                       const row *events, const struct place *places, int64_t count)
{
    struct setting setting = {
        .protocol = protocol, .threads = 2, .horizon = 6, .chunk = chunk, .mode = SS_MODE_OPEN};
    scenario = name;
    stage_open(&setting);
    open_start(events, places, count);
    for (int64_t event = 0; event < 2; event++) {
        open_submit(event, event + 1);
        await_event(event, SS_FINISHED);
        open_advance(places[event].timestamp, places[event].source);
        await_left(0);
    }
}

static const row each_once[] = {{COUNT(A), EMIT}, {COUNT(A), EMIT}, {COUNT(A), EMIT},
                                {COUNT(A), EMIT},
                                {COUNT(A), EMIT}, {COUNT(A), EMIT}, {COUNT(A), EMIT}};

/* They are formed in the order of their keys, and each knows of those before it. */
static void sources_that_alternate(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {15, 0}, {20, 0}, {25, 1},
                                          {30, 0}, {35, 1}, {40, 0}};
    static const row events[] = {{COUNT(A), EMIT}, {COUNT(A), EMIT},
                                 {STOP(0), COUNT(A), EMIT}, {COUNT(A), EMIT},
                                 {COUNT(A), EMIT}, {COUNT(A), EMIT}, {COUNT(A), EMIT}};
    open_stage("a counter of two sources", protocol, 1, events, places, 7);
    open_submit(2, 3);
    await_stop(2, 0, 1); /* it has not counted yet, but will */
    for (int64_t event = 3; event < 7; event++) {
        open_submit(event, event + 1);
        await_event(event, SS_FINISHED);
    }
    open_end();
    CHECK(all_aborts() == 0);
    for (int64_t event = 0; event < 7; event++)
        CHECK(runs_of(event) == 1);
    stage_close();
}

/* A transaction that commits meanwhile changes nothing for those that are there. */
static void head_that_moves(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {15, 0}, {20, 0}, {30, 0}, {40, 0}};
    static const row events[] = {{COUNT(A), EMIT}, {COUNT(A), EMIT}, {COUNT(A), EMIT},
                                 {STOP(0), COUNT(A), EMIT}, {COUNT(A), EMIT}};
    open_stage("a counter, and a head that moves", protocol, 1, events, places, 5);
    open_submit(2, 3);
    await_event(2, SS_FINISHED);
    open_submit(3, 4);
    await_stop(3, 0, 1);
    open_advance(20, 0);
    await_left(1);
    open_submit(4, 5); /* two are before it, of which one has committed */
    await_event(4, SS_FINISHED);
    open_end();
    CHECK(all_aborts() == 0 && runs_of(3) == 1 && runs_of(4) == 1);
    stage_close();
}

/* What an event adds is taken from the last commit, however many events that had. */
static void chunks_of_all_sizes(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {15, 0}, {20, 0}, {30, 0},
                                          {40, 0}, {50, 0}, {60, 0}};
    static const row events[] = {{COUNT(A), EMIT}, {COUNT(A), EMIT}, {STOP(0), COUNT(A)},
                                 {COUNT(A)}, {COUNT(A), EMIT}, {STOP(0), COUNT(A), EMIT},
                                 {COUNT(A), EMIT}};
    open_stage("a counter, and chunks of all sizes", protocol, 4, events, places, 7);
    open_submit(2, 5);
    await_stop(2, 0, 1); /* three events, and one has committed */
    open_submit(5, 6);
    await_stop(5, 0, 1);
    let_go(2, 0);
    await_event(2, SS_FINISHED);
    open_submit(6, 7);
    await_event(6, SS_FINISHED);
    open_end();
    CHECK(all_aborts() == 0);
    stage_close();
}

/* Of a run that has finished it is known how often it has counted. */
static void one_that_counts_twice(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {15, 0}, {20, 0}, {30, 0}};
    static const row events[] = {{COUNT(A), EMIT}, {COUNT(A), EMIT},
                                 {COUNT(A), COUNT(A), EMIT}, {COUNT(A), EMIT}};
    open_stage("a counter, and an event that counts twice", protocol, 1, events, places, 4);
    open_submit(2, 3);
    await_event(2, SS_FINISHED);
    open_submit(3, 4);
    await_event(3, SS_FINISHED);
    open_end();
    CHECK(all_aborts() == 0 && stage_word(A) == 5);
    stage_close();
}

/* Who is there already when an event comes before it has foreseen too little, and nobody else. */
static void one_that_is_late(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {15, 0}, {20, 0}, {40, 0}, {30, 1}, {50, 1}};
    open_stage("a counter, and an event that is late", protocol, 1, each_once, places, 6);
    open_submit(2, 3);
    await_event(2, SS_FINISHED);
    open_submit(3, 4);
    await_event(3, SS_FINISHED);
    open_submit(4, 5);
    await_event(4, SS_FINISHED);
    open_submit(5, 6);
    await_event(5, SS_FINISHED);
    open_end();
    CHECK(aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 1);
    CHECK(runs_of(3) == 2 && runs_of(4) == 1 && runs_of(5) == 1);
    stage_close();
}

/* Half of a chunk has counted when the other half fails: it is in what is foretold of those behind
 * the next one, which reads the word itself. */
static void one_that_fails(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {15, 0}, {20, 0}, {30, 0}, {40, 0}, {50, 0}};
    static const row events[] = {{COUNT(A), EMIT}, {COUNT(A), EMIT}, {COUNT(A), EMIT},
                                 {COUNT(A), RAISE},
                                 {STOP(0), COUNT(A), EMIT}, {COUNT(A), EMIT}};
    open_stage("a counter, and an event that fails", protocol, 2, events, places, 6);
    open_submit(2, 4);
    open_advance(30, 0);
    CHECK(await_failure() == 3);
    ss_engine_resume(stage_engine(), 3);
    uint64_t before = all_aborts();
    open_submit(4, 5);
    await_stop(4, 0, 1);
    open_submit(5, 6);
    await_event(5, SS_FINISHED);
    open_end();
    CHECK(all_aborts() == before && runs_of(4) == 1 && runs_of(5) == 1);
    stage_close();
}

int main(void)
{
    patience_start(20);
    for (int kind = 0; kind < 2; kind++) {
        enum ss_protocol_kind protocol = (enum ss_protocol_kind)kind;
        sources_that_alternate(protocol);
        head_that_moves(protocol);
        chunks_of_all_sizes(protocol);
        one_that_counts_twice(protocol);
        one_that_is_late(protocol);
        one_that_fails(protocol);
    }
    patience_stop();
    puts("counters of an open job: passed");
    return 0;
}
