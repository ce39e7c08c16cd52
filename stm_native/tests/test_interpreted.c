/* Accesses of an interpreter, step by step: what they do in place and in speculative runs.
 *
 * As in test_narrow.c, transactions are driven from one thread; the functions are those that an
 * interpreter calls, which find out by themselves what the run is. */
#include <stdio.h>

#include "by_hand.h"
#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "specstream.h"

enum { WORDS = 8, SCRATCH = 2 };

static uint64_t state[WORDS];

static void open_scenario(const char *name, enum ss_protocol_kind protocol)
{
    for (uint64_t word = 0; word < WORDS; word++)
        state[word] = 100 + word;
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .scratch_words = SCRATCH,
                               .read_limit = 32,
                               .redo_limit = 32,
                               .protocol = protocol};
    hand_open(name, config, NULL);
}

static uint64_t load(int number, uint64_t word)
{
    return ss_interpreted_load(run_of(number), 8 * word, 8);
}

static void store(int number, uint64_t word, uint64_t value)
{
    ss_interpreted_store(run_of(number), 8 * word, 8, value);
}

static void in_place(enum ss_protocol_kind protocol)
{
    open_scenario("in place: what an event that raises has stored is taken back", protocol);
    begin_in_place(1, 0);
    ss_interpreted_begin(run_of(1), 0);
    store(1, 2, 7);
    ss_interpreted_store(run_of(1), 8 * 3 + 1, 1, 0xff);
    const uint64_t row[2] = {8, 9};
    CHECK(ss_interpreted_store_range(run_of(1), 4, 2, row));
    CHECK(state[2] == 7 && state[3] == 0xff67 && state[4] == 8 && state[5] == 9);
    CHECK(load(1, 2) == 7 && ss_interpreted_load(run_of(1), 8 * 3 + 1, 1) == 0xff);
    end_in_place(1, true);
    for (uint64_t word = 0; word < WORDS; word++)
        CHECK(state[word] == 100 + word);

    scenario = "in place: the next event takes back only its own stores";
    begin_in_place(1, 0);
    ss_interpreted_begin(run_of(1), 0);
    store(1, 2, 7);
    ss_interpreted_begin(run_of(1), 1);
    store(1, 3, 8);
    end_in_place(1, true);
    CHECK(state[2] == 7 && state[3] == 103 && run_of(1)->event == 1);
    hand_close();

    open_scenario("an event begins with a scratch of zeros", protocol);
    begin_in_place(1, 0);
    run_of(1)->scratch[1] = 5;
    ss_interpreted_begin(run_of(1), 0);
    CHECK(run_of(1)->scratch[0] == 0 && run_of(1)->scratch[1] == 0);
    end_in_place(1, true);
    hand_close();
}

static void speculative(enum ss_protocol_kind protocol)
{
    open_scenario("what a speculative run stores is its own until it commits", protocol);
    store(1, 2, 7);
    CHECK(state[2] == 102 && load(1, 2) == 7);
    CHECK(commits(1) && state[2] == 7);
    hand_close();

    open_scenario("who has read what an earlier one stores is dropped", protocol);
    store(2, 5, load(2, 2) + 1);
    store(1, 2, 7);
    CHECK(commits(1) && !commits(2) && state[5] == 105);
    hand_close();

    open_scenario("likewise of one word of a range", protocol);
    uint64_t found[4] = {0};
    CHECK(ss_interpreted_load_range(run_of(2), 1, 4, found));
    CHECK(found[0] == 101 && found[3] == 104);
    store(1, 3, 7);
    CHECK(commits(1) && !commits(2));
    hand_close();

    open_scenario("a range that is stored is there at the commit, and not before", protocol);
    const uint64_t row[3] = {1, 2, 3};
    CHECK(ss_interpreted_store_range(run_of(1), 4, 3, row));
    CHECK(state[4] == 104 && load(1, 6) == 3);
    CHECK(ss_interpreted_load_range(run_of(1), 4, 3, found) && found[2] == 3);
    CHECK(commits(1) && state[4] == 1 && state[5] == 2 && state[6] == 3 && state[7] == 107);
    hand_close();

    open_scenario("a narrow store leaves its neighbours to others", protocol);
    ss_interpreted_store(run_of(1), 8 * 3 + 2, 2, 0xabcd);
    CHECK(ss_interpreted_load(run_of(1), 8 * 3 + 2, 2) == 0xabcd);
    CHECK(ss_interpreted_load(run_of(1), 8 * 3, 1) == 103);
    CHECK(commits(1) && state[3] == 0xabcd0067);
    hand_close();
}

/* ---- vertices of a pipeline ---- */

enum { ROW_WORDS = 3, MANY_ROWS = 100 };

static struct {
    int64_t call, vertex, in_timer;
    uint64_t rows;
    uint64_t given; /* the first word */
    uint64_t found_in;
    bool raises;
} called;

/* In the place of Python: sends rows of which each word tells where it stands. */
static int64_t interpret(void *context, struct ss_run *run, int32_t variant, int64_t first, int64_t last)
{
    CHECK(context == &called);
    called.call = variant;
    called.vertex = first;
    called.in_timer = last;
    if (variant == SS_PHASE_RAISED)
        return 0;
    called.given = run->given[0];
    called.found_in = run->found_in;
    run->found_in = 4; /* as if it had looked up a key */
    for (uint64_t i = 0; i < called.rows; i++) {
        uint64_t *row = ss_vertex_send(run, ROW_WORDS);
        if (row == NULL)
            return 0;
        for (uint64_t word = 0; word < ROW_WORDS; word++)
            row[word] = ROW_WORDS * i + word;
    }
    if (called.raises)
        run->verdict = SS_RAISED;
    return 0;
}

static void check_rows(int number, uint64_t rows)
{
    CHECK(run_of(number)->sent_rows == rows);
    for (uint64_t i = 0; i < rows * ROW_WORDS; i++)
        CHECK(run_of(number)->sent[i] == i);
}

static void vertices(enum ss_protocol_kind protocol)
{
    const uint64_t given[1] = {77};
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 32,
                               .redo_limit = 32,
                               .element_limit = 4096,
                               .protocol = protocol};
    hand_open("a vertex gets its words, and its rows lie one behind the other", config, NULL);
    ss_engine_interpret_vertices(engine, interpret, &called);
    begin_in_place(1, 0);
    run_of(1)->calls = 0;
    called.rows = MANY_ROWS;
    CHECK(ss_vertex_interpret(run_of(1), SS_VERTEX_ROW, 5, 0, given) == 0);
    CHECK(called.call == SS_VERTEX_ROW && called.vertex == 5 && called.in_timer == 0);
    CHECK(called.given == 77 && run_of(1)->calls == 1);
    check_rows(1, MANY_ROWS);

    scenario = "the next one begins without rows, and remembers no entry";
    run_of(1)->found_in = 3;
    called.rows = 0;
    CHECK(ss_vertex_interpret(run_of(1), SS_VERTEX_TIMER, 6, 1, given) == 0);
    CHECK(called.call == SS_VERTEX_TIMER && called.vertex == 6 && called.in_timer == 1);
    CHECK(run_of(1)->sent_rows == 0 && run_of(1)->calls == 2);
    CHECK(called.found_in == 0 && run_of(1)->found_in == 0);

    scenario = "one that raises ends the run";
    called.raises = true;
    CHECK(ss_vertex_interpret(run_of(1), SS_VERTEX_ROW, 5, 0, given) != 0);
    CHECK(run_of(1)->verdict == SS_RAISED);
    called.raises = false;

    scenario = "that a compiled one has raised is told";
    ss_phase_raised(run_of(1), 1);
    CHECK(called.call == SS_PHASE_RAISED && called.in_timer == 1);
    end_in_place(1, true);
    hand_close();

    config.element_limit = 64;
    hand_open("a speculative run that sends too much is to be the head", config, NULL);
    ss_engine_interpret_vertices(engine, interpret, &called);
    called.rows = MANY_ROWS;
    CHECK(ss_vertex_interpret(run_of(1), SS_VERTEX_ROW, 0, 0, given) != 0);
    CHECK(run_of(1)->verdict == SS_LOG_FULL);
    hand_drop(1);
    begin_in_place(1, 0);
    CHECK(ss_vertex_interpret(run_of(1), SS_VERTEX_ROW, 0, 0, given) == 0);
    check_rows(1, MANY_ROWS);
    end_in_place(1, true);
    hand_close();
}

int main(void)
{
    for (int protocol = SS_PROTOCOL_VALUE; protocol <= SS_PROTOCOL_EAGER; protocol++) {
        in_place((enum ss_protocol_kind)protocol);
        speculative((enum ss_protocol_kind)protocol);
        vertices((enum ss_protocol_kind)protocol);
    }
    puts("interpreted: passed");
    return 0;
}
