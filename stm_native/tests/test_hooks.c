/* Hooks (Brito 2010, 4.2.4): who is told what, when, and what becomes of the answer. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/transaction.h"
#include "core/turn.h"
#include "open_steps.h"
#include "processor/now.h"
#include "specstream.h"

enum { A = 1, B, C, D, X = 10, Y, CALLS = 1024 };

static const uint32_t every_kind = SS_ON_ABORT | SS_ON_COMMIT | SS_ON_POST_COMMIT;

/* What the hook was told, one after the other. */
struct call {
    enum ss_hook_kind kind;
    int64_t row;
    enum ss_abort_reason reason;
    uint64_t runs;     /* of the event, until then */
    uint64_t rows;     /* that it emitted */
    uint64_t sequence; /* in the first of them */
    uint64_t word;     /* D at the time */
    bool turn;         /* whether somebody held it */
};

static struct {
    pthread_mutex_t mutex;
    struct call calls[CALLS];
    uint64_t count;
    /* The answer to the first question of that kind about that event. */
    enum ss_hook_kind kind;
    int64_t row;
    enum ss_answer answer;
    bool answered;
    int64_t post_waits_for; /* whose on_commit the first event's on_post_commit awaits */
} told = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t count_of(enum ss_hook_kind kind, int64_t row)
{
    uint64_t count = 0;
    pthread_mutex_lock(&told.mutex);
    for (uint64_t i = 0; i < told.count; i++)
        count += told.calls[i].kind == kind && (row < 0 || told.calls[i].row == row);
    pthread_mutex_unlock(&told.mutex);
    return count;
}

static int32_t hook(void *context, const struct ss_occasion *occasion)
{
    CHECK(context == &told);
    pthread_mutex_lock(&told.mutex);
    CHECK(told.count < CALLS);
    told.calls[told.count++] = (struct call){
        .kind = occasion->kind,
        .row = occasion->row,
        .reason = occasion->reason,
        .runs = runs_of(occasion->row),
        .rows = occasion->row_count,
        .sequence = occasion->row_count > 0 ? occasion->rows[0] : 0,
        .word = stage_word(D),
        .turn = ss_turn_is_held(stage_engine()),
    };
    bool answers =
        !told.answered && occasion->kind == told.kind && occasion->row == told.row;
    told.answered = told.answered || answers;
    pthread_mutex_unlock(&told.mutex);
    int64_t since = ss_now();
    if (occasion->kind == SS_ON_POST_COMMIT && occasion->row == 0 && told.post_waits_for > 0)
        while (count_of(SS_ON_COMMIT, told.post_waits_for) == 0)
            if (stage_waits_too_long(since))
                fail("%s: nobody commits beside on_post_commit", scenario);
    return answers ? (int32_t)told.answer : SS_PROCEED;
}

static void open_stage(const char *name, const struct setting *setting)
{
    scenario = name;
    told.count = 0;
    told.kind = 0;
    told.answered = false;
    told.post_waits_for = 0;
    stage_open(setting);
    ss_engine_set_hook(stage_engine(), every_kind, hook, &told);
}

static void answer(enum ss_hook_kind kind, int64_t row, enum ss_answer with)
{
    told.kind = kind;
    told.row = row;
    told.answer = with;
}

/* The n-th call of that kind about that event; fails where there is none. */
static const struct call *call_of(enum ss_hook_kind kind, int64_t row, uint64_t n)
{
    for (uint64_t i = 0; i < told.count; i++)
        if (told.calls[i].kind == kind && told.calls[i].row == row && n-- == 0)
            return &told.calls[i];
    fail("%s: the hook was not told of event %lld (%d)", scenario, (long long)row, (int)kind);
}

/* The next call about the same event. */
static const struct call *call_after(const struct call *call)
{
    for (const struct call *next = call + 1; next != told.calls + told.count; next++)
        if (next->row == call->row)
            return next;
    fail("%s: the hook hears no more of event %lld", scenario, (long long)call->row);
}

/* ---- order ---- */

/* Events are asked about one by one, in order, with the turn, and before their effects show. */
static void order(struct setting setting)
{
    enum { EVENTS = 12 };
    static row events[EVENTS];
    for (int event = 0; event < EVENTS; event++)
        memcpy(events[event], (const row){LINGER(50), ADD(A, 1), EMIT}, sizeof(row));
    setting.threads = 3;
    setting.chunk = 4;
    open_stage("on_commit is called in order", &setting);
    stage_start(events, EVENTS, 0);
    stage_end();
    CHECK(ss_engine_statistics(stage_engine()).commits == EVENTS);
    CHECK(count_of(SS_ON_COMMIT, -1) == EVENTS && count_of(SS_ON_POST_COMMIT, -1) == EVENTS);
    int64_t next = 0;
    for (uint64_t i = 0; i < told.count; i++) {
        const struct call *call = &told.calls[i];
        if (call->kind != SS_ON_COMMIT)
            continue;
        CHECK(call->row == next && call->turn && call->rows == 1);
        CHECK(call->sequence == (uint64_t)next);
        next++;
    }
    for (int64_t event = 0; event < EVENTS; event++)
        CHECK(call_of(SS_ON_POST_COMMIT, event, 0) > call_of(SS_ON_COMMIT, event, 0));
    CHECK(count_of(SS_ON_ABORT, -1) == all_aborts());
    stage_close();
}

/* Of two events, the first is held until the second has finished. */
static void second_finishes_first(const char *name, enum ss_protocol_kind protocol,
                                  const row *events)
{
    struct setting setting = {
        .protocol = protocol, .mode = SS_MODE_SPECULATE, .threads = 2, .horizon = 2};
    open_stage(name, &setting);
    stage_start(events, 2, 0);
    await_stop(0, 0, 1);
    await_status(1, SS_FINISHED);
    stage_end();
}

/* A finished run shows nothing before it is asked about. */
static void before_it_shows(enum ss_protocol_kind protocol)
{
    static const row events[] = {{STOP(0), EMIT}, {WRITE(D, 7), EMIT}};
    second_finishes_first("on_commit comes before the effects", protocol, events);
    CHECK(call_of(SS_ON_COMMIT, 1, 0)->word == 0 && call_of(SS_ON_POST_COMMIT, 1, 0)->word == 7);
    stage_close();
}

/* A run that is not valid is not asked about; on_abort hears of it before the next one. */
static void after_validation(enum ss_protocol_kind protocol)
{
    static const row events[] = {{STOP(0), WRITE(X, 1)}, {READ(X), PUT(Y), EMIT}};
    second_finishes_first("on_commit comes after the validation", protocol, events);
    CHECK(count_of(SS_ON_COMMIT, 1) == 1 && count_of(SS_ON_ABORT, -1) == 1);
    const struct call *dropped = call_of(SS_ON_ABORT, 1, 0);
    CHECK(dropped->reason == SS_ABORT_CONFLICT && dropped->runs == 1);
    CHECK(call_of(SS_ON_COMMIT, 1, 0)->runs == 2 && dropped < call_of(SS_ON_COMMIT, 1, 0));
    stage_close();
}

/* ---- answers ---- */

static const row three_events[] = {
    {ADD(A, 1), EMIT}, {READ(A), ADD(B, 1), PUT(C), WRITE(D, 7), EMIT}, {ADD(B, 1), EMIT}};

static void run_again(struct setting setting)
{
    setting.threads = 2;
    open_stage("on_commit wants the event run again", &setting);
    answer(SS_ON_COMMIT, 1, SS_RUN_AGAIN);
    stage_start(three_events, 3, 0);
    struct ss_outcome outcome = stage_end();
    CHECK(outcome.row_count == 3 && stage_word(B) == 2);
    const struct call *asked = call_of(SS_ON_COMMIT, 1, 0);
    const struct call *dropped = call_after(asked);
    CHECK(dropped->kind == SS_ON_ABORT && dropped->reason == SS_ABORT_HOOK);
    CHECK(dropped->runs == asked->runs && dropped->word == 0);
    CHECK(call_of(SS_ON_COMMIT, 1, 1)->runs == asked->runs + 1);
    CHECK(count_of(SS_ON_COMMIT, 1) == 2 && count_of(SS_ON_POST_COMMIT, 1) == 1);
    CHECK(aborts(SS_ABORT_HOOK) == 1 && count_of(SS_ON_ABORT, -1) == all_aborts());
    stage_close();
}

static void refused(struct setting setting)
{
    setting.threads = 2;
    open_stage("on_commit fails", &setting);
    answer(SS_ON_COMMIT, 1, SS_FAIL);
    stage_start(three_events, 3, 0);
    stage_refuse(1);
    struct ss_outcome outcome = stage_end();
    CHECK(outcome.failed && outcome.consumed == 1 && outcome.row_count == 1);
    CHECK(count_of(SS_ON_COMMIT, 1) == 1 && count_of(SS_ON_POST_COMMIT, 1) == 0);
    CHECK(count_of(SS_ON_COMMIT, 2) == 0 && stage_word(B) == 0 && aborts(SS_ABORT_HOOK) == 0);
    stage_close();
}

/* ---- on_post_commit ---- */

/* Others commit while it runs. */
static void beside_post_commit(struct setting setting)
{
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {ADD(C, 1), EMIT}};
    setting.threads = 2;
    open_stage("on_post_commit holds nobody up", &setting);
    told.post_waits_for = 2;
    stage_start(events, 3, 0);
    stage_end();
    CHECK(count_of(SS_ON_POST_COMMIT, -1) == 3);
    stage_close();
}

/* It ends the job at the next event boundary; one worker alone is there at once. */
static void post_commit_fails(void)
{
    struct setting setting = {.mode = SS_MODE_ORDERED, .threads = 2};
    open_stage("on_post_commit fails", &setting);
    answer(SS_ON_POST_COMMIT, 1, SS_FAIL);
    stage_start(three_events, 3, 0);
    struct ss_outcome outcome = stage_wait();
    CHECK(outcome.consumed == 2 && !outcome.failed && outcome.row_count == 2);
    CHECK(count_of(SS_ON_COMMIT, 2) == 0);
    stage_close();
}

/* ---- open jobs ---- */

static void beside_post_commit_of_an_open_job(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {20, 0}};
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}};
    struct setting setting = {
        .protocol = protocol, .mode = SS_MODE_OPEN, .threads = 2, .horizon = 2, .chunk = 8};
    open_stage("on_post_commit of an open job holds nobody up", &setting);
    told.post_waits_for = 1;
    open_start(events, places, 2);
    open_submit(0, 2);
    open_advance(20, 0);
    await_left(0);
    open_end();
    CHECK(count_of(SS_ON_COMMIT, -1) == 2 && count_of(SS_ON_POST_COMMIT, -1) == 2);
    CHECK(call_of(SS_ON_COMMIT, 0, 0)->turn && call_of(SS_ON_COMMIT, 0, 0)->sequence == 0);
    stage_close();
}

/* An open job holds events that are not applied: it waits to be resumed. */
static void open_job_halts(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{10, 0}, {20, 0}};
    static const row events[] = {{ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}};
    struct setting setting = {
        .protocol = protocol, .mode = SS_MODE_OPEN, .threads = 1, .horizon = 2};
    open_stage("a hook halts an open job", &setting);
    answer(SS_ON_POST_COMMIT, 0, SS_FAIL);
    open_start(events, places, 2);
    open_submit(0, 2);
    open_advance(20, 0);
    CHECK(await_failure() == SS_NO_ROW_FOR_HOOK && open_left() == 1);
    ss_engine_resume(stage_engine(), 1); /* of another failure */
    CHECK(await_failure() == SS_NO_ROW_FOR_HOOK && open_left() == 1);
    ss_engine_resume(stage_engine(), SS_NO_ROW_FOR_HOOK);
    await_left(0);
    open_end();
    stage_close();
}

/* The latest one keeps its slot: that it was dropped could not be told. But the head has a slot. */
static void no_room_is_made(enum ss_protocol_kind protocol)
{
    static const struct place places[] = {{104, 0}, {103, 1}, {102, 2}, {101, 3}, {100, 3}};
    static const row events[] = {
        {ADD(A, 1), EMIT}, {ADD(B, 1), EMIT}, {ADD(C, 1), EMIT}, {ADD(X, 1), EMIT}, {EMIT}};
    struct setting setting = {
        .protocol = protocol, .mode = SS_MODE_OPEN, .threads = 2, .horizon = 1};
    open_stage("with hooks no transaction makes room for an earlier one", &setting);
    open_start(events, places, 5);
    for (int64_t event = 0; event < 3; event++) {
        open_submit(event, event + 1);
        await_event(event, SS_FINISHED);
    }
    open_submit(3, 4);
    await_idle(2);
    CHECK(runs_of(3) == 0);
    open_submit(4, 5);
    open_advance(100, 3);
    await_left(4);
    open_end();
    CHECK(all_aborts() == 0 && count_of(SS_ON_ABORT, -1) == 0);
    stage_close();
}

int main(void)
{
    patience_start(20);
    for (int kind = 0; kind < 2; kind++) {
        enum ss_protocol_kind protocol = (enum ss_protocol_kind)kind;
        const struct setting settings[] = {
            {.protocol = protocol, .mode = SS_MODE_ORDERED}, /* in place */
            {.protocol = protocol, .mode = SS_MODE_ORDERED, .horizon = 4},
            {.protocol = protocol, .mode = SS_MODE_SPECULATE, .horizon = 4},
        };
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            order(settings[i]);
            run_again(settings[i]);
            refused(settings[i]);
            if (settings[i].horizon > 0) /* else one worker is all there is */
                beside_post_commit(settings[i]);
        }
        before_it_shows(protocol);
        after_validation(protocol);
        beside_post_commit_of_an_open_job(protocol);
        open_job_halts(protocol);
        no_room_is_made(protocol);
    }
    post_commit_fails();
    patience_stop();
    puts("hooks: passed");
    return 0;
}
