/* Looking at a key without the turn: what is seen when, while the holder of the turn changes the state. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "core/engine.h"
#include "core/version.h"
#include "core/worker.h"
#include "specstream.h"
#include "specstream_containers.h"

enum {
    HEADER = 0,
    REGION = SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    ROOM = 16,
    WIDTH = 4,
    WORDS = REGION + ROOM * WIDTH
};

static uint64_t state[WORDS];

static const struct ss_container containers[] = {{SS_KEYED, HEADER, REGION, ROOM, ROOM, 1, WIDTH, 0, 0}};

static void put(uint64_t at, uint64_t stamp, uint64_t key, uint64_t value)
{
    uint64_t *entry = &state[REGION + at * WIDTH];
    entry[0] = stamp;
    entry[1] = key;
    entry[2] = value;
    entry[3] = ~value;
    state[HEADER + SS_HEADER_USED] = at + 1;
    state[HEADER + SS_HEADER_COUNT] += stamp != 0;
}

static void open_scenario(const char *name)
{
    memset(state, 0, sizeof state);
    put(0, 5, 70, 1);
    put(1, 0, 80, 2);
    put(2, 6, 90, 3);
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 64,
                               .redo_limit = 64,
                               .containers = containers,
                               .container_count = 1};
    hand_open(name, config, NULL);
}

static enum ss_look look(uint64_t key, uint64_t *row)
{
    return ss_engine_look(engine, 0, &key, row);
}

static void what_is_committed(void)
{
    uint64_t row[WIDTH];
    open_scenario("what is committed");
    CHECK(look(70, row) == SS_LOOK_FOUND && row[0] == 70 && row[1] == 1 && row[2] == ~UINT64_C(1));
    CHECK(look(90, row) == SS_LOOK_FOUND && row[1] == 3);
    CHECK(look(80, row) == SS_LOOK_ABSENT);
    CHECK(look(71, row) == SS_LOOK_ABSENT);
    CHECK(ss_engine_look(engine, 0, NULL, row) == SS_LOOK_FOUND && row[0] == 2);
    CHECK(atomic_load(&engine->looking) == 0 && atomic_load(&engine->lookers) == 0);
    hand_close();
}

static void while_it_changes(void)
{
    uint64_t row[WIDTH];
    open_scenario("while it changes");
    ss_version_begin(engine);
    CHECK(look(70, row) == SS_LOOK_AGAIN);
    CHECK(ss_engine_look(engine, 0, NULL, row) == SS_LOOK_AGAIN);
    CHECK(look(71, row) == SS_LOOK_AGAIN); /* it may be there in the end */
    /* Who looks asks the workers to come to the end of their event. */
    CHECK(engine->workers[0].run.yield != 0);
    CHECK(atomic_load(&engine->looking) == 0);
    state[REGION + 2] = 11;
    ss_version_end(engine);
    CHECK(look(70, row) == SS_LOOK_FOUND && row[1] == 11);
    hand_close();
}

static void changes_of_the_owner(void)
{
    uint64_t row[WIDTH];
    open_scenario("changes of the owner");
    /* Begun anew where it was interrupted: one end is the end. */
    ss_engine_change(engine, true);
    ss_engine_change(engine, true);
    put(1, 7, 80, 4);
    CHECK(look(80, row) == SS_LOOK_AGAIN);
    ss_engine_state_changed(engine);
    ss_engine_change(engine, false);
    CHECK(look(80, row) == SS_LOOK_FOUND && row[1] == 4);
    uint64_t version = atomic_load(&engine->version);
    ss_engine_change(engine, true);
    ss_engine_change(engine, false);
    CHECK(atomic_load(&engine->version) != version && atomic_load(&engine->version) % 2 == 0);
    hand_close();
}

int main(void)
{
    what_is_committed();
    while_it_changes();
    changes_of_the_owner();
    puts("look: passed");
    return 0;
}
