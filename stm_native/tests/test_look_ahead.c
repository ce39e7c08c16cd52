/* What was looked up ahead is a hint: it spares a way, and never changes an answer. In place and by
 * speculative runs, under both protocols. */
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "containers/containers.h"
#include "containers/keyed.h"
#include "containers/keyed_index.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/worker.h"
#include "specstream.h"
#include "specstream_containers.h"

enum {
    HEADER = 8,
    REGION = HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    ROOM = 128,
    LIMIT = 64,
    WIDTH = 2,
    PAIRS_HEADER = REGION + ROOM * WIDTH,
    PAIRS_REGION = PAIRS_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    PAIRS_WIDTH = 3,
    WORDS = PAIRS_REGION + ROOM * PAIRS_WIDTH
};
enum { SET = 0, PAIRS = 1, KEYED = 2 };
enum { ROWS = 40, FIRST = 1, SECOND = 2 };

static uint64_t state[WORDS];
/* The key of row i is i + 1; the second column goes the other way. */
static uint64_t first[ROWS], second[ROWS];
static void *const columns[] = {first, first, second};

static const struct ss_container containers[] = {
    {SS_KEYED, HEADER, REGION, ROOM, LIMIT, 1, WIDTH, 0, 0},
    {SS_KEYED, PAIRS_HEADER, PAIRS_REGION, ROOM, LIMIT, 2, PAIRS_WIDTH, 0, 0},
};

static uint64_t find(int number, uint64_t key)
{
    return ss_keyed_find(run_of(number), SET, &key);
}

static uint64_t add(int number, uint64_t key)
{
    return ss_keyed_insert(run_of(number), SET, &key);
}

static void discard(int number, uint64_t key)
{
    ss_keyed_remove(run_of(number), SET, find(number, key));
}

static uint64_t hint(int number, int64_t row)
{
    return run_of(number)->ahead[SET].entries[row % SS_AHEAD];
}

/* The run is at a row, for whose key the entry was looked up ahead. */
static void at(int number, int64_t row)
{
    run_of(number)->columns = columns;
    run_of(number)->event = row;
}

static void keys_of_all_rows(void)
{
    for (int row = 0; row < ROWS; row++)
        add(0, first[row]);
}

static void open_scenario(const char *name, enum ss_protocol_kind protocol)
{
    memset(state, 0, sizeof state);
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 256,
                               .redo_limit = 256,
                               .element_limit = 4096,
                               .protocol = protocol,
                               .containers = containers,
                               .container_count = KEYED};
    for (int row = 0; row < ROWS; row++) {
        first[row] = (uint64_t)row + 1;
        second[row] = (uint64_t)(ROWS - row);
    }
    hand_open(name, config, keys_of_all_rows);
}

/* How many of the rows [from, to) have hints, which are right: of a few, other keys have the first
 * slots. */
static uint64_t hints_of(int number, int64_t from, int64_t to)
{
    uint64_t known = 0;
    for (int64_t row = from; row < to; row++) {
        at(number, row);
        uint64_t entry = hint(number, row);
        known += entry == find(number, first[row]);
        CHECK(entry == 0 || entry == find(number, first[row]) || state[entry + 1] != first[row]);
        run_of(number)->found_in = 0;
    }
    return known;
}

/* ---- in place ---- */

static void which_rows(enum ss_protocol_kind protocol)
{
    open_scenario("rows up to the next multiple, or to the last", protocol);
    hand_drop(1);
    begin_in_place(1, 0);
    at(1, 0);
    ss_keyed_ahead(run_of(1), SET, FIRST, 3, 6);
    CHECK(hints_of(1, 3, 6) >= 2);
    for (int64_t row = 6; row < SS_AHEAD + 3; row++)
        CHECK(hint(1, row) == 0);
    ss_keyed_ahead(run_of(1), SET, FIRST, 6, ROWS);
    CHECK(hints_of(1, 3, SS_AHEAD) >= 10);
    for (int64_t row = 0; row < 3; row++)
        CHECK(hint(1, row) == 0);
    ss_keyed_ahead(run_of(1), SET, FIRST, SS_AHEAD, ROWS);
    CHECK(hints_of(1, SS_AHEAD, 2 * SS_AHEAD) >= 12);
    end_in_place(1, false);
    hand_close();
}

static void what_has_changed(enum ss_protocol_kind protocol)
{
    open_scenario("an entry that has gone, or has another key", protocol);
    hand_drop(1);
    begin_in_place(1, 0);
    at(1, 5);
    uint64_t entry = find(1, first[5]);
    ss_keyed_ahead(run_of(1), SET, FIRST, 0, ROWS);
    CHECK(find(1, first[5]) == entry && find(1, first[9]) != entry);
    CHECK(find(1, 1000) == SS_NOWHERE);
    discard(1, first[5]);
    CHECK(hint(1, 5) == entry && find(1, first[5]) == SS_NOWHERE);
    end_in_place(1, false);

    /* Another event: the entry is free, and taken by another key. */
    begin_in_place(1, 1);
    at(1, 5);
    uint64_t taken = 0;
    for (uint64_t key = 100; taken != entry && key < 120; key++)
        taken = add(1, key);
    CHECK(taken == entry && hint(1, 5) == entry);
    CHECK(find(1, first[5]) == SS_NOWHERE);
    uint64_t anew = add(1, first[5]);
    run_of(1)->found_in = 0;
    CHECK(anew != entry && find(1, first[5]) == anew);
    end_in_place(1, false);

    begin_in_place(1, 2);
    at(1, 5);
    discard(1, first[5]);
    end_in_place(1, true);
    begin_in_place(1, 3);
    at(1, 5);
    CHECK(find(1, first[5]) == anew);
    end_in_place(1, false);
    hand_close();
}

static void of_two_words(enum ss_protocol_kind protocol)
{
    open_scenario("keys of two columns", protocol);
    hand_drop(1);
    begin_in_place(1, 0);
    uint64_t entries[ROWS];
    for (int row = 0; row < ROWS; row++)
        entries[row] =
            ss_keyed_insert(run_of(1), PAIRS, (const uint64_t[]){second[row], first[row]});
    at(1, 0);
    ss_keyed_ahead(run_of(1), PAIRS, SECOND | FIRST << 16, 0, ROWS);
    uint64_t known = 0;
    for (int64_t row = 0; row < SS_AHEAD; row++) {
        at(1, row);
        uint64_t seen = run_of(1)->ahead[PAIRS].entries[row];
        known += seen == entries[row];
        CHECK(seen == entries[row] || seen == 0 || state[seen + 1] != second[row]);
        CHECK(ss_keyed_find(run_of(1), PAIRS, (const uint64_t[]){second[row], first[row]}) ==
              entries[row]);
        CHECK(ss_keyed_find(run_of(1), PAIRS, (const uint64_t[]){second[row], 99}) == SS_NOWHERE);
    }
    CHECK(known >= SS_AHEAD / 2);
    end_in_place(1, false);
    hand_close();
}

/* ---- speculative runs ---- */

static void conflicts(enum ss_protocol_kind protocol)
{
    open_scenario("a key that was found ahead is depended on as ever", protocol);
    at(2, 7);
    ss_keyed_ahead(run_of(2), SET, FIRST, 0, ROWS);
    CHECK(find(2, first[7]) == hint(2, 7) && hint(2, 7) != 0);
    discard(1, first[7]);
    CHECK(commits(1));
    CHECK(!commits(2));
    hand_close();

    open_scenario("another key is not", protocol);
    at(2, 7);
    ss_keyed_ahead(run_of(2), SET, FIRST, 0, ROWS);
    CHECK(find(2, first[7]) == hint(2, 7));
    discard(1, first[8]);
    add(1, 200);
    CHECK(commits(1));
    CHECK(commits(2));
    hand_close();

    open_scenario("the run's own removal and insertion come first", protocol);
    at(2, 7);
    ss_keyed_ahead(run_of(2), SET, FIRST, 0, ROWS);
    uint64_t entry = find(2, first[7]);
    discard(2, first[7]);
    CHECK(find(2, first[7]) == SS_NOWHERE && hint(2, 7) == entry);
    uint64_t own = add(2, first[7]);
    run_of(2)->found_in = 0;
    CHECK(own != entry && find(2, first[7]) == own);
    CHECK(commits(1) && commits(2));
    hand_close();

    open_scenario("a hint from before another one's commit", protocol);
    at(2, 7);
    ss_keyed_ahead(run_of(2), SET, FIRST, 0, ROWS);
    discard(1, first[7]);
    CHECK(commits(1));
    CHECK(hint(2, 7) != 0 && find(2, first[7]) == SS_NOWHERE);
    CHECK(commits(2));
    hand_close();
}

int main(void)
{
    for (enum ss_protocol_kind protocol = SS_PROTOCOL_VALUE; protocol <= SS_PROTOCOL_EAGER;
         protocol++) {
        which_rows(protocol);
        what_has_changed(protocol);
        of_two_words(protocol);
        conflicts(protocol);
    }
    puts("look ahead: passed");
    return 0;
}
