/* One who is about to run an event wakes one of those who sleep, where there is more to do; step by
 * step, with workers that never wake by themselves. */
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "core/engine.h"
#include "core/parking.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "patience.h"
#include "processor/now.h"
#include "specstream.h"
#include "steps.h"

enum { A = 1, B, C, D, E, X = 10, THREADS = 4, HORIZON = 3, LONG = 100000, SHORT = 100 };

static const struct setting setting = {.protocol = SS_PROTOCOL_VALUE,
                                       .mode = SS_MODE_ORDERED,
                                       .threads = THREADS,
                                       .horizon = HORIZON,
                                       .long_sleeps = true};

/* The linker lets these stand between the scheduler and parking.c: for how long the first so many backoffs were
 * to be, and how often one of those who sleep was woken. */
enum { NAPS = 6 };
static _Atomic int64_t backoffs[NAPS];
static _Atomic uint64_t napped;
static _Atomic uint64_t woken;

void __real_ss_park(struct ss_worker *worker, bool (*ready)(struct ss_worker *), int64_t nanoseconds);
void __wrap_ss_park(struct ss_worker *worker, bool (*ready)(struct ss_worker *), int64_t nanoseconds);

void __wrap_ss_park(struct ss_worker *worker, bool (*ready)(struct ss_worker *), int64_t nanoseconds)
{
    uint64_t number = napped++;
    if (number < NAPS)
        backoffs[number] = nanoseconds;
    __real_ss_park(worker, ready, nanoseconds);
}

void __real_ss_wake_one(struct ss_engine *engine);
void __wrap_ss_wake_one(struct ss_engine *engine);

void __wrap_ss_wake_one(struct ss_engine *engine)
{
    woken++;
    __real_ss_wake_one(engine);
}

/* Runs take so long, as far as the workers know. */
static void open_stage(const char *name, const row *events, int64_t count, int64_t nanoseconds)
{
    scenario = name;
    stage_open(&setting);
    for (uint64_t i = 0; i < THREADS; i++) {
        stage_engine()->workers[i].run_nanoseconds = nanoseconds;
        stage_engine()->workers[i].sample_in = UINT32_MAX;
    }
    stage_start(events, count, 0);
    await_stop(0, 0, 1);
}

/* The head is held; the others finish what the horizon lets them claim, and sleep. */
static void await_sleep(void)
{
    for (int64_t event = 1; event <= HORIZON; event++)
        await_status(event, SS_FINISHED);
    await_idle(THREADS - 1);
}

static void beside_the_head(void)
{
    static const row events[] = {{STOP(0), ADD(A, 1)}, {ADD(B, 1)}, {ADD(C, 1)}, {ADD(D, 1)},
                                 {STOP(0), ADD(E, 1)}, {STOP(0), ADD(A, 1), EMIT}, {STOP(0), EMIT},
                                 {STOP(0), ADD(B, 1)}};
    open_stage("who runs the head in place wakes one, and that one the next", events, 8, LONG);
    await_sleep();
    let_go(0, 0);
    for (int64_t event = 4; event < 8; event++)
        await_stop(event, 0, 1);
    CHECK(ss_engine_progress(stage_engine()) == 4);
    CHECK(ss_has_status(ss_slot_of(stage_engine(), 4), 4, SS_IN_PLACE));
    stage_end();
    CHECK(all_aborts() == 0);
    stage_close();
}

/* Nobody knows how long events take before one has been run. */
static void first_events(void)
{
    static const row events[] = {{STOP(0), ADD(A, 1)}, {ADD(B, 1)}, {ADD(C, 1)}, {ADD(D, 1)},
                                 {STOP(0), ADD(E, 1)}, {STOP(0), ADD(A, 1), EMIT}};
    scenario = "the first sample counts at once";
    stage_open(&setting);
    stage_start(events, 6, 0);
    await_stop(0, 0, 1);
    await_sleep();
    nanosleep(&(struct timespec){0, 2 * LONG}, NULL); /* so long the first event takes at least */
    let_go(0, 0);
    await_stop(5, 0, 1);
    uint64_t known = 0;
    for (uint64_t i = 0; i < THREADS; i++)
        known += stage_engine()->workers[i].run_nanoseconds >= LONG;
    CHECK(known >= 1); /* who has stood with the first event; others may have lost their core */
    stage_end();
    stage_close();
}

static void beside_a_rerun(void)
{
    static const row events[] = {{STOP(0), WRITE(X, 7)}, {READ(X), STOP(0), EMIT}, {ADD(B, 1)},
                                 {ADD(C, 1)}, {STOP(0), ADD(D, 1)}};
    open_stage("who runs a dropped event again wakes one", events, 5, LONG);
    await_stop(1, 0, 1);
    let_go(1, 0);
    await_sleep();
    let_go(0, 0);
    await_stop(1, 0, 2);
    await_stop(4, 0, 1);
    stage_end();
    CHECK(aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 1);
    stage_close();
}

/* What is soon done is not worth a wake-up: the turn is given back soon, and everybody woken. */
static void short_events(void)
{
    static const row events[] = {{STOP(0), ADD(A, 1)}, {ADD(B, 1)}, {ADD(C, 1)}, {ADD(D, 1)},
                                 {STOP(0), ADD(E, 1)}, {ADD(A, 1), EMIT}};
    open_stage("short events wake nobody", events, 6, SHORT);
    await_sleep();
    woken = 0;
    let_go(0, 0);
    await_stop(4, 0, 1);
    CHECK(woken == 0 && runs_of(5) == 0);
    stage_end();
    stage_close();
}

/* The one worker that has nothing to do. */
static void await_naps(void)
{
    static const int64_t expected[NAPS] = {62500, 125000, 250000, 500000, 1000000, 1000000};
    int64_t since = ss_now();
    while (napped <= NAPS)
        CHECK(!stage_waits_too_long(since));
    for (int i = 0; i < NAPS; i++)
        CHECK(backoffs[i] == expected[i]);
}

/* Two workers, and one transaction beyond the head. */
static void naps_in_vain(void)
{
    static const row events[] = {{STOP(0)}, {STOP(0)}, {STOP(0), ADD(A, 1)}, {STOP(0), EMIT}};
    scenario = "each backoff in vain is followed by one twice as long, and the first after a run is short";
    stage_open(&(struct setting){
        .protocol = SS_PROTOCOL_VALUE, .mode = SS_MODE_ORDERED, .threads = 2, .horizon = 1});
    stage_start(events, 4, 0);
    for (int64_t first = 0; first < 4; first += 2) {
        await_stop(first, 0, 1);
        await_stop(first + 1, 0, 1);
        napped = 0;
        let_go(first + 1, 0);
        await_naps();
        let_go(first, 0);
    }
    stage_end();
    stage_close();
}

int main(void)
{
    patience_start(20);
    beside_the_head();
    first_events();
    beside_a_rerun();
    short_events();
    naps_in_vain();
    patience_stop();
    puts("waking: passed");
    return 0;
}
