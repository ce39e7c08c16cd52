/* Order (Brito 2010, 4.2.1 and 4.2.2): what is visible is a prefix of the events, nobody disturbs
 * the head, and each reason for an abort is told apart and counted. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "specstream.h"
#include "steps.h"

enum { A = 1, B, L, S, T, W, X, Y, Z };

static void open_stage(const char *name, struct setting setting, const row *events, int64_t count)
{
    scenario = name;
    setting.mode = SS_MODE_SPECULATE;
    stage_open(&setting);
    stage_start(events, count, 0);
}

static void await_all_at(uint64_t point, int64_t count)
{
    for (int64_t event = 0; event < count; event++)
        await_stop(event, point, 1);
}

/* ---- the head ---- */

/* The later ones have read and written all that the head is going to touch, and stand still. */
static void undisturbed(enum ss_protocol_kind protocol)
{
    static const row events[] = {
        {STOP(0), READ(A), WRITE(X, 1), WRITE(Y, 1), WRITE(Z, 5), WRITE(W, 5), EMIT},
        {READ(Z), WRITE(X, 2), WRITE(A, 3), STOP(0), EMIT},
        {WRITE(Y, 4), READ(W), WRITE(B, 1), STOP(0), EMIT},
    };
    struct setting setting = {.protocol = protocol, .threads = 3, .horizon = 2};
    open_stage("nobody delays or aborts the head", setting, events, 3);
    await_all_at(0, 3);
    let_go(0, 0);
    await_committed(1);
    CHECK(runs_of(0) == 1 && runs_of(1) == 1 && runs_of(2) == 1);
    CHECK(stage_word(X) == 1 && stage_word(Z) == 5 && stage_word(A) == 0);
    stage_end();
    CHECK(runs_of(0) == 1 && runs_of(1) == 2 && runs_of(2) == 2);
    CHECK(aborts(protocol == SS_PROTOCOL_EAGER ? SS_ABORT_STOLEN : SS_ABORT_CONFLICT) == 2);
    CHECK(all_aborts() == 2);
    stage_close();
}

/* The lock of the last transaction that may begin is still a later one's. */
static void undisturbed_from_afar(int64_t horizon)
{
    static row events[16];
    memset(events, 0, sizeof events);
    memcpy(events[0], (const row){STOP(0), WRITE(X, 1)}, sizeof(row));
    memcpy(events[horizon], (const row){WRITE(X, 2), STOP(0)}, sizeof(row));
    struct setting setting = {.protocol = SS_PROTOCOL_EAGER, .threads = 2, .horizon = horizon};
    open_stage("a lock one horizon away", setting, events, horizon + 1);
    await_stop(0, 0, 1);
    await_stop(horizon, 0, 1);
    let_go(0, 0);
    await_committed(horizon);
    stage_end();
    CHECK(runs_of(0) == 1 && runs_of(horizon) == 2);
    CHECK(aborts(SS_ABORT_STOLEN) == 1 && all_aborts() == 1);
    stage_close();
}

/* ---- reasons ---- */

static void four_reasons(uint64_t record_shift)
{
    enum { FAR = 16 }; /* further apart than words that share a record */
    static const row events[] = {
        {STOP(0), WRITE(FAR * X, 1), WRITE(FAR * Y, 1), WRITE(FAR * S, 1), WRITE(FAR * L, 1),
         STOP(1)},
        {READ(FAR * X), STOP(0), EMIT},                                      /* iii */
        {WRITE(FAR * S, 9), STOP(0), READ(FAR * T), EMIT},                   /* iv */
        {STOP(0), READ(FAR * L), EMIT},                                      /* ii */
        {READ(FAR * X), STOP(0), READ(FAR * Y), EMIT},                       /* i */
    };
    struct setting setting = {.protocol = SS_PROTOCOL_EAGER, .threads = 5, .horizon = 4,
                              .record_shift = record_shift};
    open_stage("one abort for each of the four reasons", setting, events, 5);
    await_all_at(0, 5);
    let_go(1, 0);
    await_status(1, SS_FINISHED);
    let_go(0, 0);
    await_stop(0, 1, 1);
    let_go(2, 0);
    await_status(2, SS_WAITING);
    let_go(3, 0);
    await_status(3, SS_WAITING);
    CHECK(waits_for(2) == 0 && waits_for(3) == 0);
    let_go(0, 1);
    await_committed(1);
    await_stop(1, 0, 2);
    let_go(4, 0);
    await_stop(4, 0, 2);
    stage_end();
    CHECK(aborts(SS_ABORT_INCONSISTENT_SNAPSHOT) == 1); /* i */
    CHECK(aborts(SS_ABORT_LOCKED) == 1);                /* ii */
    CHECK(aborts(SS_ABORT_CONFLICT) == 1);              /* iii */
    CHECK(aborts(SS_ABORT_STOLEN) == 1);                /* iv */
    CHECK(all_aborts() == 4 && runs_of(0) == 1);
    for (int64_t event = 1; event < 5; event++)
        CHECK(runs_of(event) == 2);
    stage_close();
}

/* Runs that cannot go on as transactions: each is dropped once, and run as the head. */
static void dropped_runs(enum ss_protocol_kind protocol)
{
    static const row events[] = {
        {STOP(0), WRITE(X, 1)},
        {STOP(0), EMIT, ADD(A, 1), RAISE_UNLESS(X, 1), EMIT},
        {STOP(0), EMIT, ADD(B, 1), LOOP_UNLESS(X, 1), LINGER(1), EMIT},
        {STOP(0), EMIT, EMIT, EMIT},
        {STOP(0), WRITE(20, 1), WRITE(21, 1), WRITE(22, 1), WRITE(23, 1), WRITE(24, 1),
         WRITE(25, 1), WRITE(26, 1), WRITE(27, 1), WRITE(28, 1), WRITE(29, 1), WRITE(30, 1),
         WRITE(31, 1), WRITE(32, 1), WRITE(33, 1), WRITE(34, 1), WRITE(35, 1), WRITE(36, 1)},
        {STOP(0), READ(20), READ(21), READ(22), READ(23), READ(24), READ(25), READ(26), READ(27),
         READ(28), READ(29), READ(30), READ(31), READ(32), READ(33), READ(34), READ(35), READ(36)},
        {READ(20), STOP(0), PUT(T)}, /* which event 4 stores to as the head */
    };
    struct setting setting = {.protocol = protocol, .threads = 7, .horizon = 6};
    open_stage("what only the head can run", setting, events, 7);
    await_all_at(0, 7);
    let_go(2, 0);
    await_stop(2, LOOPING, 1);
    for (int64_t event = 1; event < 7; event++)
        if (event != 2) {
            let_go(event, 0);
            await_status(event, SS_FINISHED);
        }
    stage_end();
    CHECK(aborts(SS_ABORT_RAISED) == 1);
    CHECK(aborts(SS_ABORT_RUNAWAY) == 1);
    CHECK(aborts(SS_ABORT_LOG_FULL) == 3);
    CHECK(aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 6);
    /* A late kill of the runaway run may reach the head's, which then begins anew. */
    for (int64_t event = 1; event < 7; event++)
        CHECK(runs_of(event) == 2 || event == 2);
    CHECK(stage_word(A) == 1 && stage_word(B) == 1);
    stage_close();
}

/* On committed state it is believed: nothing of the event is applied, and nothing after it. */
static void raised_by_the_head(enum ss_protocol_kind protocol, enum ss_mode mode)
{
    static const row events[] = {
        {ADD(A, 1), EMIT},
        {ADD(A, 1), EMIT, EMIT},
        {EMIT, ADD(A, 1), WRITE(X, 1), WRITE(X, 2), EMIT, RAISE},
        {ADD(A, 1), EMIT},
    };
    struct setting setting = {.protocol = protocol, .mode = mode, .threads = 2, .horizon = 2};
    scenario = "an event that raises is not applied";
    stage_open(&setting);
    for (int64_t job = 1; job < 4; job++) {
        stage_start(events, 4, 0);
        struct ss_outcome outcome = stage_end();
        CHECK(outcome.failed && outcome.consumed == 2 && outcome.row_count == 3);
        CHECK(stage_word(A) == 2 * (uint64_t)job && stage_word(X) == 0);
    }
    /* And the failure ends with its job. */
    stage_start(events, 2, 0);
    CHECK(!stage_end().failed);
    stage_close();
}

/* The same where the undo log and the output had to grow for the event. */
static void raised_after_much(enum ss_protocol_kind protocol)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {FILL(600), FLOOD(2000), RAISE}};
    struct setting setting = {.protocol = protocol, .threads = 2, .horizon = 2};
    scenario = "an event that raises after much work is not applied";
    stage_open(&setting);
    stage_start(events, 2, 0);
    struct ss_outcome outcome = stage_end();
    CHECK(outcome.failed && outcome.consumed == 1 && outcome.row_count == 1);
    stage_close();
}

/* The job ends while a run beyond the failing event has locked words, and another one loops. */
static void nothing_outlives_its_job(enum ss_protocol_kind protocol)
{
    static const row failing[] = {
        {STOP(0), RAISE}, {WRITE(X, 1), WRITE(Y, 1)}, {LOOP_UNLESS(A, 1)}};
    static const row following[] = {{ADD(Z, 1)}, {ADD(X, 1)}, {ADD(Y, 1)}, {ADD(A, 1)}};
    struct setting setting = {.protocol = protocol, .threads = 3, .horizon = 3};
    open_stage("a job leaves nothing to the next one", setting, failing, 3);
    await_stop(0, 0, 1);
    await_status(1, SS_FINISHED);
    await_stop(2, LOOPING, 1);
    CHECK(stage_end().failed);
    stage_start(following, 4, 3);
    CHECK(stage_end().consumed == 4);
    CHECK(aborts(SS_ABORT_RAISED) == 1 && all_aborts() == 1); /* event 0, as a transaction */
    stage_close();
}

/* Each event of a chunk that the head runs in place is news to those who have read before. */
static void stores_in_place_are_seen(enum ss_protocol_kind protocol)
{
    static const row events[] = {
        {STOP(0), FLOOD(3)}, {WRITE(X, 1)}, {ADD(Y, 1)}, {READ(X), PUT(S), STOP(0)}, {READ(L)},
    };
    struct setting setting = {.protocol = protocol, .threads = 2, .horizon = 1, .chunk = 3};
    open_stage("the stores of a chunk that runs in place", setting, events, 5);
    await_stop(0, 0, 1);
    await_stop(3, 0, 1);
    let_go(3, 0);
    await_status(1, SS_FINISHED);
    stage_end();
    CHECK(aborts(SS_ABORT_LOG_FULL) == 1 && aborts(SS_ABORT_CONFLICT) == 1 && all_aborts() == 2);
    stage_close();
}

/* ---- readers ---- */

enum { READER_EVENTS = 48, CONTENDED = 32 };

static _Atomic bool over;
static _Atomic uint64_t turns;
static _Atomic uint64_t halves; /* looks that found a job half done */

/* The marks of event k: its first step writes the one, its last the other. */
static uint64_t first_mark(uint64_t event)
{
    return CONTENDED + 2 * event;
}

static void *read_marks(void *argument)
{
    struct dice dice = dice_for(*(const uint64_t *)argument, 1);
    while (!atomic_load(&over)) {
        ss_engine_take_turn(stage_engine());
        uint64_t newest = stage_word(first_mark(0));
        for (uint64_t event = 0; event < READER_EVENTS; event++) {
            uint64_t mark = stage_word(first_mark(event));
            CHECK(mark == stage_word(first_mark(event) + 1)); /* whole events */
            CHECK(event == 0 || mark <= stage_word(first_mark(event - 1))); /* a prefix of them */
        }
        atomic_fetch_add(&halves, newest != stage_word(first_mark(READER_EVENTS - 1)));
        atomic_fetch_add(&turns, 1);
        ss_engine_release_turn(stage_engine());
        struct timespec pause = {0, (long)spread(&dice, 100000)};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void prefixes_only(uint64_t seed)
{
    static row events[READER_EVENTS];
    struct dice dice = dice_for(seed, 0);
    struct setting setting = {
        .protocol = chance(&dice, 2) ? SS_PROTOCOL_EAGER : SS_PROTOCOL_VALUE,
        .mode = chance(&dice, 2) ? SS_MODE_SPECULATE : SS_MODE_ORDERED,
        .threads = 1 + below(&dice, 5),
        .horizon = (int64_t)spread(&dice, 15),
        .chunk = 1 + (int64_t)spread(&dice, 5),
        .record_shift = below(&dice, 3),
    };
    pthread_t reader;
    scenario = "a reader sees a prefix of whole events";
    stage_open(&setting);
    atomic_store(&over, false);
    CHECK(pthread_create(&reader, NULL, read_marks, &seed) == 0);
    for (uint64_t job = 1; job <= 20; job++) {
        memset(events, 0, sizeof events);
        for (uint64_t event = 0; event < READER_EVENTS; event++) {
            events[event][0] = (struct step)WRITE(first_mark(event), job);
            uint64_t count = draw_event(&dice, events[event] + 1, 10, CONTENDED);
            events[event][1 + count] = (struct step)WRITE(first_mark(event) + 1, job);
        }
        stage_start(events, READER_EVENTS, 0);
        stage_end();
    }
    atomic_store(&over, true);
    pthread_join(reader, NULL);
    stage_close();
}

/* ---- readers that come one after the other ---- */

enum { READERS = 3 };

static void *read_again_and_again(void *argument)
{
    (void)argument;
    while (!atomic_load(&over)) {
        ss_engine_take_turn(stage_engine());
        atomic_fetch_add(&turns, 1);
        ss_engine_release_turn(stage_engine());
    }
    return NULL;
}

/* There is always one that wants the turn, and the job comes to its end all the same. */
static void readers_do_not_keep_the_turn(enum ss_mode mode, enum ss_protocol_kind protocol,
                                         int64_t horizon)
{
    static const row events[MOST_EVENTS] = {{STOP(0), ADD(A, 1)},
                                            [1 ... MOST_EVENTS - 1] = {ADD(A, 1)}};
    struct setting setting = {.protocol = protocol, .mode = mode, .threads = 2, .horizon = horizon};
    pthread_t readers[READERS];
    scenario = "readers that come one after the other";
    stage_open(&setting);
    atomic_store(&over, false);
    stage_start(events, MOST_EVENTS, 0);
    await_stop(0, 0, 1); /* at the head, with the turn or without */
    uint64_t before = atomic_load(&turns);
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_again_and_again, NULL) == 0);
    let_go(0, 0);
    stage_end();
    for (int64_t began = ss_now(); atomic_load(&turns) < before + READERS;)
        if (stage_waits_too_long(began))
            fail("%s: they do not get the turn", scenario);
    atomic_store(&over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    stage_close();
}

static _Atomic bool reads, may_end;
static _Atomic uint64_t seen;

static void *read_until_told(void *argument)
{
    (void)argument;
    ss_engine_take_turn(stage_engine());
    for (atomic_store(&reads, true); !atomic_load(&may_end);)
        ss_relax();
    ss_engine_release_turn(stage_engine());
    return NULL;
}

static void *read_once(void *argument)
{
    (void)argument;
    ss_engine_take_turn(stage_engine());
    atomic_store(&seen, stage_word(A));
    ss_engine_release_turn(stage_engine());
    return NULL;
}

static void await_readers(uint32_t count)
{
    for (int64_t began = ss_now(); atomic_load(&stage_engine()->readers) != count;)
        if (stage_waits_too_long(began))
            fail("%s: a reader does not ask for the turn", scenario);
}

/* The second one is waiting when the first one gives the turn back. In place, the worker has lent its
 * turn; otherwise it has finished a run while the first one was reading. */
static void a_worker_comes_between_two_readers(enum ss_protocol_kind protocol, bool in_place)
{
    static const row events[] = {{STOP(0), ADD(A, 1)}, {ADD(A, 1)}};
    struct setting setting = {.protocol = protocol,
                              .mode = in_place ? SS_MODE_ORDERED : SS_MODE_SPECULATE,
                              .threads = 1,
                              .horizon = in_place ? 0 : 1};
    pthread_t first, second;
    scenario = "a worker comes between two readers";
    stage_open(&setting);
    struct ss_engine *engine = stage_engine();
    engine->patience_nanoseconds = INT64_C(60000000000); /* the machine may be busy */
    atomic_store(&reads, false);
    atomic_store(&may_end, false);
    stage_start(events, 2, 0);
    await_stop(0, 0, 1);
    CHECK(pthread_create(&first, NULL, read_until_told, NULL) == 0);
    if (in_place) {
        await_asked();
        let_go(0, 0);
    } else {
        await_readers(1);
    }
    for (int64_t began = ss_now(); !atomic_load(&reads);)
        if (stage_waits_too_long(began))
            fail("%s: the first reader does not get the turn", scenario);
    if (!in_place)
        let_go(0, 0);
    for (int64_t began = ss_now(); atomic_load(&engine->turned_away) == 0;)
        if (stage_waits_too_long(began))
            fail("%s: the worker does not ask for the turn", scenario);
    CHECK(stage_word(A) == in_place);
    CHECK(pthread_create(&second, NULL, read_once, NULL) == 0);
    await_readers(2);
    atomic_store(&may_end, true);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    CHECK(atomic_load(&seen) > in_place);
    stage_end();
    stage_close();
}

/* Who was turned away may have found something else to do, or nothing left to commit. */
static void readers_do_not_wait_for_ever(void)
{
    struct setting setting = {.mode = SS_MODE_ORDERED, .threads = 1};
    scenario = "a reader waits for a worker that does not come";
    stage_open(&setting);
    struct ss_engine *engine = stage_engine();
    for (int patient = 0; patient < 2; patient++) {
        bool held = false;
        ss_engine_take_turn(engine);
        atomic_store(&engine->turned_away, 1);
        engine->patience_nanoseconds = patient ? INT64_C(60000000000) : 1000000;
        ss_engine_release_turn(engine);
        for (int64_t began = ss_now(); !patient && !ss_engine_try_turn(engine, 1, &held);)
            if (stage_waits_too_long(began))
                fail("%s", scenario);
        CHECK(!patient || !ss_engine_try_turn(engine, 1, &held));
        CHECK(held == !patient);
        if (held)
            ss_engine_release_turn(engine);
        atomic_store(&engine->share_end, 0);
    }
    stage_close();
}

int main(void)
{
    patience_start(20);
    readers_do_not_wait_for_ever();
    readers_do_not_keep_the_turn(SS_MODE_ORDERED, SS_PROTOCOL_VALUE, 0);
    for (int protocol = 0; protocol < 2; protocol++) {
        readers_do_not_keep_the_turn(SS_MODE_ORDERED, (enum ss_protocol_kind)protocol, 4);
        readers_do_not_keep_the_turn(SS_MODE_SPECULATE, (enum ss_protocol_kind)protocol, 4);
        a_worker_comes_between_two_readers((enum ss_protocol_kind)protocol, true);
        a_worker_comes_between_two_readers((enum ss_protocol_kind)protocol, false);
    }
    for (int protocol = 0; protocol < 2; protocol++) {
        undisturbed((enum ss_protocol_kind)protocol);
        dropped_runs((enum ss_protocol_kind)protocol);
        stores_in_place_are_seen((enum ss_protocol_kind)protocol);
        nothing_outlives_its_job((enum ss_protocol_kind)protocol);
        raised_after_much((enum ss_protocol_kind)protocol);
        raised_by_the_head((enum ss_protocol_kind)protocol, SS_MODE_ORDERED);
        raised_by_the_head((enum ss_protocol_kind)protocol, SS_MODE_SPECULATE);
    }
    for (int64_t horizon = 1; horizon < 16; horizon++)
        undisturbed_from_afar(horizon);
    four_reasons(0);
    four_reasons(2);
    for (uint64_t seed = 0; seed < 100; seed++)
        prefixes_only(seed);
    CHECK(atomic_load(&turns) > 0 && atomic_load(&halves) > 0);
    patience_stop();
    puts("order: passed");
    return 0;
}
