/* Timers, from one thread: when one fires, what conflicts with what it has done, what divides a
 * transaction, and what is left of one that fails. Under both protocols. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/commit.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/open_job.h"
#include "jobs/timer_firing.h"
#include "protocols/counter_prediction.h"
#include "specstream.h"
#include "specstream_containers.h"

enum {
    X = 0, /* what timers add 1 to */
    Y = 1,
    HEADER = 8,
    REGION = HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    ROOM = 4096,
    LIMIT = 3000,
    WIDTH = 3,
    DICT_HEADER = REGION + ROOM * WIDTH,
    DICT_REGION = DICT_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    DICT_ROOM = 64,
    DICT_WIDTH = 4, /* stamp, key, value, time of the last write */
    EXPIRES = 6,
    MORE_HEADER = DICT_REGION + DICT_ROOM * DICT_WIDTH,
    MORE_REGION = MORE_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    MORE_ROOM = 64,
    MORE_WIDTH = 4, /* stamp, two words of a key, time */
    WORDS = MORE_REGION + MORE_ROOM * MORE_WIDTH
};

static uint64_t state[WORDS];
static const struct ss_container containers[] = {
    {SS_KEYED, HEADER, REGION, ROOM, LIMIT, 1, WIDTH, 0, 1},
    {SS_KEYED, DICT_HEADER, DICT_REGION, DICT_ROOM, 32, 1, DICT_WIDTH, EXPIRES, 0},
    {SS_KEYED, MORE_HEADER, MORE_REGION, MORE_ROOM, 32, 2, MORE_WIDTH, 0, 2},
};

/* Times of the events, and what has happened: 'e' and the event's row, 't' and the timer's key, 'u' and that
 * of one of the other container. */
static int64_t times[] = {5, 12, 20, 30, 40};
static int64_t sources[5];
static void *columns[] = {times, sources};
static char story[64];

/* What the next timers do: the key of one that raises, or is killed, and of one that sets another. */
static uint64_t raises, killed, sets, sets_more;

static void tell(char what, uint64_t which)
{
    size_t at = strlen(story);
    story[at] = what;
    story[at + 1] = (char)('0' + which);
}

/* ---- what runs ---- */

static uint64_t load(struct ss_run *run, uint64_t word)
{
    return run->speculative ? engine->protocol->load(run, word) : state[word];
}

static void store(struct ss_run *run, uint64_t word, uint64_t value)
{
    if (run->speculative)
        engine->protocol->store(run, word, value);
    else
        ss_store(run, word, value);
}

static uint64_t set(struct ss_run *run, uint64_t key, int64_t at)
{
    return ss_timer_set(run, 0, &key, at);
}

static uint64_t set_more(struct ss_run *run, uint64_t key, int64_t at)
{
    const uint64_t words[] = {77, key};
    return ss_timer_set(run, 2, words, at);
}

/* Event 1 sets a timer if `divides`; each event adds what X is to Y, if `reads`. */
static bool divides, reads, looks, counts;
static int64_t divides_at;
/* Each timer emits so many rows. */
static uint64_t emits;

/* d[key] = 1, by the event in a row. */
static void write_entry(struct ss_run *run, uint64_t key, int64_t row)
{
    run->event = row;
    uint64_t entry = ss_keyed_find(run, 1, &key);
    if (entry == SS_NOWHERE)
        entry = ss_keyed_insert(run, 1, &key);
    store(run, entry + 2, 1);
    if (!run->speculative && times[row] < (int64_t)state[entry + 3])
        ss_timers_rewound(run, 1, entry);
    store(run, entry + 3, (uint64_t)times[row]);
}

static void one_event(struct ss_run *run, int64_t row)
{
    if (divides && row == 1)
        set(run, 7, divides_at);
    if (looks) {
        uint64_t key = 5;
        store(run, Y, load(run, Y) + (ss_keyed_find(run, 1, &key) != SS_NOWHERE ? 10 : 1));
    }
    if (counts)
        is_eager() ? ss_eager_increment(run, X) : ss_increment(run, X);
    if (reads)
        store(run, Y, load(run, Y) + load(run, X));
}

static int32_t events_in_place(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                               int64_t last)
{
    (void)fault;
    for (*next = first; *next < last; ++*next) {
        run->event = *next;
        run->undo_top = run->undo_base;
        tell('e', (uint64_t)*next);
        one_event(run, *next);
        if (run->yield != 0) {
            ++*next;
            break;
        }
    }
    return 0;
}

static int32_t timer(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)fault, (void)last;
    uint64_t place = *(const uint64_t *)run->columns[SS_TIMER_PLACE];
    uint64_t key = *(const uint64_t *)run->columns[place == 0 ? 3 : 4];
    CHECK(place < 2 && (place == 0 || *(const uint64_t *)run->columns[3] == 77));
    run->event = first;
    run->undo_top = run->undo_base;
    *next = first;
    CHECK(*(const int64_t *)run->columns[1] == INT64_MIN);
    /* Who looks without the turn is told to look again. */
    CHECK(atomic_load(&engine->version) % 2 == 1);
    store(run, X, load(run, X) + 1);
    run->emit_mark = run->emit_top;
    for (uint64_t row = 0; row < emits; row++) {
        if (run->emit_top == run->emit_end)
            CHECK(ss_emit_grow(run));
        *run->emit_top++ = row;
    }
    if (key == sets) {
        int64_t at = *(const int64_t *)run->columns[2];
        CHECK(set(run, 9, at) == SS_TIMER_TOO_EARLY);
        CHECK(set(run, 9, at + 1) == SS_TIMER_IS_SET);
    }
    if (key == sets_more) {
        int64_t at = *(const int64_t *)run->columns[2];
        CHECK((place == 0 ? set_more : set)(run, 8, at - 4) == SS_TIMER_IS_SET);
        CHECK((place == 0 ? set : set_more)(run, 8, at) == SS_TIMER_TOO_EARLY);
    }
    if (key == killed) {
        killed = 0;
        run->verdict = SS_KILLED;
        return 0;
    }
    tell(place == 0 ? 't' : 'u', key);
    if (key == raises) {
        run->verdict = SS_RAISED;
        return 0;
    }
    *next = first + 1;
    return 0;
}

/* ---- by hand ---- */

static void set_one(void)
{
    set(run_of(0), 1, 10);
}

static void open_scenario(const char *name, enum ss_protocol_kind protocol)
{
    memset(state, 0, sizeof state);
    memset(story, 0, sizeof story);
    raises = killed = sets = sets_more = 0;
    divides = reads = looks = counts = false;
    emits = 0;
    divides_at = 15;
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 4096,
                               .redo_limit = 4096,
                               .protocol = protocol,
                               .containers = containers,
                               .container_count = 3,
                               .timers = 1};
    hand_open(name, config, set_one);
    ss_engine_set_entry(engine, SS_PLAIN, events_in_place);
    ss_engine_set_entry(engine, SS_TIMER, timer);
    engine->job.columns = columns;
    engine->consumed = 1;
    atomic_store(&engine->readers, 0); /* the test is a worker that has the turn */
    for (int i = 0; i < 3; i++)
        engine->workers[i].run.columns = columns;
}

/* The head, transaction 1: `count` events from row 1 on. */
static enum ss_progress head(int64_t count)
{
    struct ss_transaction *transaction = transaction_of(1);
    transaction->least_timer = INT64_MAX;
    atomic_store(&transaction->stolen_by, SS_NOT_STOLEN);
    transaction->first = 1;
    transaction->last = 1 + count;
    for (int64_t row = 1; row < 1 + count; row++) {
        run_of(1)->event = row;
        one_event(run_of(1), row);
    }
    finishes(1);
    transaction->verdict = run_of(1)->verdict;
    transaction->row_words = 0;
    return ss_commit(&engine->workers[1], transaction, 1);
}

static uint64_t fired(void)
{
    return engine->workers[1].statistics.timers;
}

static bool is_set(uint64_t key)
{
    return ss_engine_find(engine, 0, &key) != SS_NOWHERE;
}

static void fires_before_the_event(void)
{
    CHECK(is_set(1));
    CHECK(head(1) == SS_COMMITTED);
    CHECK(strcmp(story, "t1") == 0 && fired() == 1 && state[X] == 1 && !is_set(1));
    CHECK(state[HEADER + SS_HEADER_FIRED] == 1 && state[HEADER + SS_HEADER_COUNT] == 0);
    CHECK((int64_t)(state[HEADER + SS_HEADER_CLOCK] ^ UINT64_C(1) << 63) == 12);
    CHECK(ss_timers_next(engine->timers) == INT64_MAX);
}

static void is_not_due(void)
{
    times[1] = 9;
    CHECK(head(1) == SS_COMMITTED);
    times[1] = 12;
    CHECK(fired() == 0 && is_set(1) && story[0] == 0);
    CHECK(ss_timers_next(engine->timers) == 10);
}

static void conflicts_with_what_it_has_done(void)
{
    reads = true;
    enum ss_progress progress = head(1);
    CHECK(fired() == 1 && state[X] == 1);
    if (is_eager()) {
        CHECK(progress == SS_PUT_BACK);
    } else {
        CHECK(progress == SS_COMMITTED && strcmp(story, "t1e1") == 0 && state[Y] == 1);
        CHECK(engine->workers[1].statistics.aborts[SS_ABORT_CONFLICT] == 1);
    }
}

enum { MANY = 5000 }; /* rows that the first output has no room for */

static void check_rows(uint64_t timers)
{
    struct ss_outcome outcome = ss_engine_outcome(engine);
    CHECK(outcome.row_count == timers * MANY && outcome.firing_count == timers);
    for (uint64_t row = 0; row < outcome.row_count; row++)
        CHECK(outcome.rows[row] == (uint64_t)INT64_MIN + row / MANY);
}

/* All rows of a timer are its own, and of no event. */
static void emits_many_rows(void)
{
    emits = MANY;
    sets = 1;
    CHECK(head(1) == SS_COMMITTED && strcmp(story, "t1t9") == 0);
    check_rows(2);
}

static void emits_nothing_when_it_raises(void)
{
    emits = MANY;
    raises = 1;
    CHECK(head(1) == SS_ENDED);
    check_rows(0);
}

static void emits_once_when_it_was_killed(void)
{
    emits = MANY;
    killed = 1;
    CHECK(head(1) == SS_COMMITTED && strcmp(story, "t1") == 0);
    check_rows(1);
}

/* What is foretold of a counter that a timer has changed is wrong once, and not each time. */
static void changes_a_counter(void)
{
    counts = true;
    one_event(run_of(2), 2); /* the counter is known */
    hand_drop(2);
    ss_prediction_fold(engine, 1);
    enum ss_progress progress = head(1);
    if (is_eager()) {
        CHECK(progress == SS_PUT_BACK);
        begin(1);
        progress = head(1);
    }
    CHECK(progress == SS_COMMITTED && fired() == 1 && state[X] == 2);
}

/* Events may be before the clock, where the input had ended: they set timers that are due by it. */
static void is_due_by_the_clock(void)
{
    divides = true;
    divides_at = 45;
    hand_drop(2);
    begin_in_place(2, 0);
    set(run_of(2), 2, 50);
    end_in_place(2, false);
    CHECK(ss_timers_at(&engine->workers[2], INT64_MAX) == SS_FIRED);
    CHECK(strcmp(story, "t1t2") == 0);
    CHECK(head(2) == SS_COMMITTED && strcmp(story, "t1t2e1t7e2") == 0);
    CHECK(engine->timers->firing.at == 45 && engine->timers->firing.time == 50);
}

static void divides_a_transaction(void)
{
    divides = true;
    reads = true;
    times[1] = 9;
    CHECK(head(3) == SS_COMMITTED);
    times[1] = 12;
    CHECK(engine->workers[1].statistics.aborts[SS_ABORT_TIMER] == 1);
    /* At 10, set before; at 15, by event 1; event 2 at 20 has seen both, event 3 as well. */
    CHECK(strcmp(story, "e1t1t7e2e3") == 0);
    CHECK(fired() == 2 && state[X] == 2 && state[Y] == 4);
}

static void its_own_divides_it(void)
{
    divides = true;
    reads = true;
    CHECK(head(3) == SS_COMMITTED && strcmp(story, "t1e1t7e2e3") == 0);
    CHECK(engine->workers[1].statistics.aborts[SS_ABORT_TIMER] == 1 && state[Y] == 1 + 2 + 2);
}

static void anothers_divides_it(void)
{
    times[1] = 9;
    CHECK(head(2) == SS_COMMITTED && strcmp(story, "e1t1e2") == 0);
    times[1] = 12;
    CHECK(engine->workers[1].statistics.aborts[SS_ABORT_TIMER] == 1);
}

static void one_event_is_not_divided(void)
{
    divides = true;
    times[1] = 16; /* the timer is set for the past */
    CHECK(head(1) == SS_COMMITTED);
    times[1] = 12;
    CHECK(engine->workers[1].statistics.aborts[SS_ABORT_TIMER] == 0);
    CHECK(strcmp(story, "t1") == 0 && is_set(7) && ss_timers_next(engine->timers) == 15);
    /* Before the next event, at the time of the last one. */
    int64_t last = 3;
    CHECK(ss_timers_before(&engine->workers[1], transaction_of(1), times, 2, &last));
    CHECK(strcmp(story, "t1t7") == 0 && last == 3 && engine->timers->firing.time == 16);
}

static void is_consumed_when_it_raises(void)
{
    raises = 1;
    uint64_t stamp = state[REGION];
    CHECK(head(1) == SS_ENDED);
    CHECK(engine->failed && engine->timers->failed && engine->timers->firing.key[0] == 1);
    CHECK(fired() == 1 && state[X] == 0 && !is_set(1));
    CHECK(state[HEADER + SS_HEADER_FIRED] == 1);
    struct ss_outcome outcome = ss_engine_outcome(engine);
    CHECK(outcome.timer_failed && outcome.failed_timer.at == 10);
    /* What it takes to set it again as it was. */
    CHECK(outcome.failed_timer.clock == INT64_MIN && outcome.failed_timer.stamp == stamp);
    CHECK(outcome.failed_timer.number == 0 && outcome.ending == 0);
}

/* Nobody has heard of it: it is set as it was, and fires as if it had not. */
static void is_taken_back_when_it_raises(void)
{
    raises = 1;
    uint64_t stamp = state[REGION], key = 1;
    CHECK(ss_engine_take_back_timer(engine) && is_set(1) && fired() == 0); /* nothing has failed */
    CHECK(head(1) == SS_ENDED && !is_set(1) && fired() == 1);
    CHECK(ss_engine_take_back_timer(engine) && ss_engine_take_back_timer(engine));
    CHECK(!engine->timers->failed && is_set(1) && ss_timers_next(engine->timers) == 10);
    CHECK(state[ss_engine_find(engine, 0, &key)] == stamp);
    CHECK(state[HEADER + SS_HEADER_FIRED] == 0 && state[HEADER + SS_HEADER_COUNT] == 1);
    CHECK(state[HEADER + SS_HEADER_CLOCK] == 0 && atomic_load(&engine->version) % 2 == 0);
    raises = 0;
    engine->failed = false;
    CHECK(ss_timers_at(&engine->workers[1], 12) == SS_FIRED);
    CHECK(strcmp(story, "t1t1") == 0 && state[X] == 1 && !is_set(1));
    CHECK(fired() == 1); /* it is not counted twice */
    CHECK(engine->timers->firing.number == 0 && engine->timers->firing.time == 10);
}

/* At the end of the input it belongs to that end. */
static void is_taken_back_at_the_end(void)
{
    sets = raises = 1;
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRING_ENDED && !is_set(9));
    set(run_of(2), 2, 9); /* a run that is dropped */
    CHECK(ss_engine_take_back_timer(engine) && is_set(1));
    raises = 0;
    engine->failed = false;
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRED);
    CHECK(strcmp(story, "t1t1") == 0 && is_set(9) && !is_set(1));
}

static void fires_again_when_it_was_killed(void)
{
    killed = 1;
    CHECK(head(1) == SS_COMMITTED);
    CHECK(strcmp(story, "t1") == 0 && fired() == 1 && state[X] == 1 && !is_set(1));
    CHECK(state[HEADER + SS_HEADER_COUNT] == 0);
}

static void sets_others(void)
{
    sets = 1;
    CHECK(head(1) == SS_COMMITTED);
    /* For 11, which is due as well. */
    CHECK(strcmp(story, "t1t9") == 0 && fired() == 2);
}

static void ends_once(void)
{
    sets = 1;
    CHECK(ss_timers_at(&engine->workers[1], 9) == SS_FIRED && fired() == 0);
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRED);
    CHECK(strcmp(story, "t1") == 0 && is_set(9));
    CHECK(ss_timers_at(&engine->workers[1], 11) == SS_FIRED);
    CHECK(strcmp(story, "t1t9") == 0);
}

/* Of an end that had begun before, those that were set since stay. */
static void goes_on_ending(void)
{
    hand_drop(2);
    ss_engine_go_on_ending(engine, engine->stamp);
    begin_in_place(2, 0);
    set(run_of(2), 2, 8);
    end_in_place(2, false);
    CHECK(ss_engine_outcome(engine).ending != 0);
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRED);
    CHECK(strcmp(story, "t1") == 0 && is_set(2));
    /* Its caller may not have heard of it: it is the same end until it is said to be another one. */
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRED);
    CHECK(strcmp(story, "t1") == 0 && is_set(2));
    ss_engine_go_on_ending(engine, 0);
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRED);
    CHECK(strcmp(story, "t1t2") == 0);
}

/* One that broke off goes on with the next job; an open job has one of its own. */
static void an_open_job_has_its_own_end(void)
{
    const struct ss_job_kind *kind = engine->kind;
    engine->timers->end = engine->stamp;
    ss_timers_start(engine);
    CHECK(ss_engine_outcome(engine).ending == engine->stamp);
    engine->kind = &ss_open_job;
    ss_timers_start(engine);
    engine->kind = kind;
    CHECK(ss_engine_outcome(engine).ending == 0);
}

static bool is_there(uint64_t key)
{
    return ss_engine_find(engine, 1, &key) != SS_NOWHERE;
}

static void write_at(int64_t row)
{
    begin_in_place(2, row);
    write_entry(run_of(2), 5, row);
    end_in_place(2, false);
}

/* Of one written at 5 nothing is there at 12; who has seen it conflicts. */
static void expires(void)
{
    hand_drop(2);
    write_at(0);
    CHECK(is_there(5) && ss_timers_next(engine->timers) == 10);
    looks = true;
    enum ss_progress progress = head(1);
    CHECK(!is_there(5) && state[DICT_HEADER + SS_HEADER_COUNT] == 0);
    CHECK(fired() == 1);
    if (is_eager())
        CHECK(progress == SS_PUT_BACK);
    else
        CHECK(progress == SS_COMMITTED && strcmp(story, "t1e1") == 0 && state[Y] == 1);
}

/* It goes by the last write, and at the time itself. */
static void expires_after_the_last_write(void)
{
    hand_drop(2);
    write_at(0);
    write_at(1);
    CHECK(ss_timers_at(&engine->workers[1], 17) == SS_FIRED && is_there(5));
    CHECK(ss_timers_next(engine->timers) == 18);
    CHECK(ss_timers_at(&engine->workers[1], 18) == SS_FIRED && !is_there(5));
}

/* The last write is the one that counts, whatever its time; and another entry is due before it was. */
static void expires_earlier_than_before(void)
{
    hand_drop(2);
    write_at(2);
    begin_in_place(2, 1);
    write_entry(run_of(2), 6, 1);
    end_in_place(2, false);
    write_at(0);
    CHECK(ss_timers_at(&engine->workers[1], 10) == SS_FIRED && is_there(5));
    CHECK(ss_timers_next(engine->timers) == 11);
    CHECK(ss_timers_at(&engine->workers[1], 11) == SS_FIRED && !is_there(5) && is_there(6));
}

static void does_not_when_that_is_undone(void)
{
    hand_drop(2);
    write_at(1);
    begin_in_place(2, 0);
    write_entry(run_of(2), 5, 0);
    end_in_place(2, true);
    CHECK(ss_timers_at(&engine->workers[1], 17) == SS_FIRED && is_there(5));
    CHECK(ss_timers_at(&engine->workers[1], 18) == SS_FIRED && !is_there(5));
}

/* A transaction that would has to run in place; one that writes another entry has not. */
static void transactions_do_not(void)
{
    hand_drop(2);
    write_at(1);
    write_entry(run_of(1), 6, 0);
    CHECK(!ss_timers_rewind(engine, transaction_of(1)));
    finishes(1);
    ss_timers_pass_row(engine, times, 1);
    CHECK(!ss_timers_rewind(engine, transaction_of(1)));
    write_entry(run_of(1), 5, 0);
    finishes(1);
    CHECK(ss_timers_rewind(engine, transaction_of(1)));
}

/* Six nanoseconds are two times that are four apart. */
static void expires_in_another_unit(void)
{
    hand_drop(2);
    state[DICT_HEADER + SS_HEADER_TICK] = 4;
    write_at(0);
    CHECK(ss_timers_next(engine->timers) == 7);
    CHECK(ss_timers_at(&engine->workers[1], 6) == SS_FIRED && is_there(5));
    CHECK(ss_timers_at(&engine->workers[1], 7) == SS_FIRED && !is_there(5));
}

/* An entry that a transaction writes itself divides it. */
static void its_own_expires(void)
{
    hand_drop(2);
    struct ss_transaction *transaction = transaction_of(1);
    transaction->least_timer = INT64_MAX;
    write_entry(run_of(1), 5, 1);
    CHECK(transaction->least_timer == 12 + EXPIRES);
}

/* When a timer fires at the end of the input, what has expired by then has gone; the rest stays. */
static void expires_at_the_end(void)
{
    hand_drop(2);
    times[0] = 4;
    write_at(0);
    times[0] = 5;
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRED && !is_there(5));
    write_at(1);
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRED && is_there(5));
}

/* Who wants to look at the state gets the turn between two of them. */
static void readers_come_between(void)
{
    sets = 1;
    atomic_store(&engine->readers, 1);
    CHECK(ss_timers_at(&engine->workers[1], 20) == SS_FIRED_SOME && fired() == 1 && is_set(9));
    CHECK(ss_timers_next(engine->timers) == 11);
    CHECK(ss_timers_at(&engine->workers[1], 20) == SS_FIRED && fired() == 2);
}

static void set_all_at(int64_t at)
{
    hand_drop(2);
    begin_in_place(2, 0);
    set_more(run_of(2), 3, at);
    set_more(run_of(2), 2, at);
    set_more(run_of(2), 4, at - 1);
    set(run_of(2), 5, at);
    set(run_of(2), 1, at);
    end_in_place(2, false);
}

/* The first container's come first, whenever they were set. All have one clock and one number. */
static void containers_have_an_order(void)
{
    set_all_at(12);
    CHECK(head(1) == SS_COMMITTED && strcmp(story, "u4t5t1u3u2") == 0);
    CHECK(state[HEADER + SS_HEADER_FIRED] == 5 && state[MORE_HEADER + SS_HEADER_FIRED] == 0);
    CHECK(state[MORE_HEADER + SS_HEADER_CLOCK] == 0 && engine->timers->firing.container == 2);
    CHECK(engine->timers->firing.number == 4 && engine->timers->firing.key[1] == 2);
}

/* So they do at the end of the input. */
static void containers_have_an_order_at_the_end(void)
{
    set_all_at(12);
    CHECK(ss_timers_at(&engine->workers[1], INT64_MAX) == SS_FIRED);
    CHECK(strcmp(story, "u4t5t1u3u2") == 0);
}

/* A firing may set timers of another container for whenever it likes, and none of its own for the past. */
static void sets_those_of_another(void)
{
    sets_more = 1;
    CHECK(ss_timers_at(&engine->workers[1], 10) == SS_FIRED && strcmp(story, "t1u8") == 0);
    CHECK(engine->timers->firing.at == 6 && engine->timers->firing.time == 10);
}

static void one_of_another_was_killed(void)
{
    hand_drop(2);
    begin_in_place(2, 0);
    set_more(run_of(2), 6, 10);
    end_in_place(2, false);
    killed = 6;
    CHECK(ss_timers_at(&engine->workers[1], 10) == SS_FIRED && strcmp(story, "t1u6") == 0);
    CHECK(state[MORE_HEADER + SS_HEADER_COUNT] == 0 && fired() == 2);
}

/* One that is set anew counts from then on, and its old items do not pile up. */
static void is_set_anew(void)
{
    for (int64_t event = 0; event < 1000; event++) {
        begin_in_place(2, event);
        set(run_of(2), 1, 1000 - event);
        set(run_of(2), 2, 5);
        if (event % 2 == 0) /* which takes nothing back of what is set */
            set(run_of(2), 3, 1);
        end_in_place(2, event % 2 == 0);
    }
    CHECK(engine->timers->count < 300);
    CHECK(ss_timers_at(&engine->workers[1], 1) == SS_FIRED);
    CHECK(strcmp(story, "t1") == 0 && !is_set(1) && is_set(2) && !is_set(3));
    CHECK(ss_timers_at(&engine->workers[1], 5) == SS_FIRED && strcmp(story, "t1t2") == 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"a timer fires before the event", fires_before_the_event},
    {"one that is not due does not", is_not_due},
    {"what it has done is a conflict", conflicts_with_what_it_has_done},
    {"a timer emits many rows", emits_many_rows},
    {"many rows, and then it raises", emits_nothing_when_it_raises},
    {"many rows, and then it is killed", emits_once_when_it_was_killed},
    {"it has changed a counter", changes_a_counter},
    {"events are before the clock", is_due_by_the_clock},
    {"two are due between events", divides_a_transaction},
    {"its own timer divides it", its_own_divides_it},
    {"another's timer divides it", anothers_divides_it},
    {"a single event is not divided", one_event_is_not_divided},
    {"one that raises is consumed", is_consumed_when_it_raises},
    {"one that nobody has heard of", is_taken_back_when_it_raises},
    {"nobody has heard of one at the end", is_taken_back_at_the_end},
    {"one that was killed fires again", fires_again_when_it_was_killed},
    {"a timer sets others", sets_others},
    {"the end of the input comes once", ends_once},
    {"an end that has begun goes on", goes_on_ending},
    {"an open job has its own end", an_open_job_has_its_own_end},
    {"readers come between two", readers_come_between},
    {"an entry expires", expires},
    {"after its last write", expires_after_the_last_write},
    {"written with an earlier time", expires_earlier_than_before},
    {"which is undone", does_not_when_that_is_undone},
    {"by a transaction", transactions_do_not},
    {"in another unit", expires_in_another_unit},
    {"one of its own expires", its_own_expires},
    {"the end comes, and it has expired", expires_at_the_end},
    {"set anew again and again", is_set_anew},
    {"two containers of timers", containers_have_an_order},
    {"the end of the input with two", containers_have_an_order_at_the_end},
    {"one sets those of another", sets_those_of_another},
    {"one of another that was killed", one_of_another_was_killed},
};

int main(void)
{
    enum ss_protocol_kind protocols[] = {SS_PROTOCOL_VALUE, SS_PROTOCOL_EAGER};
    for (size_t protocol = 0; protocol < 2; protocol++)
        for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
            open_scenario(scenarios[i].name, protocols[protocol]);
            if (scenarios[i].run == is_set_anew)
                hand_drop(2);
            scenarios[i].run();
            atomic_store(&engine->readers, 1);
            hand_close();
        }
    puts("timers: passed");
    return 0;
}
