/* Keyed containers, from one thread: what is found, inserted and removed in place and by speculative
 * runs, what conflicts and what does not, what is free in the end. Under both protocols. */
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "engine.h"
#include "protocol.h"
#include "specstream.h"
#include "specstream_containers.h"
#include "transaction.h"
#include "worker.h"

enum {
    HEADER = 8,
    REGION = HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    ROOM = 256,
    LIMIT = 100,
    WIDTH = 3,
    PAIRS_HEADER = REGION + ROOM * WIDTH,
    PAIRS_REGION = PAIRS_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    PAIRS_WIDTH = 3,
    WORDS = PAIRS_REGION + ROOM * PAIRS_WIDTH
};
enum { DICT = 0, PAIRS = 1 };

static uint64_t state[WORDS];

static const struct ss_container containers[] = {
    {SS_KEYED, HEADER, REGION, ROOM, LIMIT, 1, WIDTH},
    {SS_KEYED, PAIRS_HEADER, PAIRS_REGION, ROOM, LIMIT, 2, PAIRS_WIDTH},
};

static void open_scenario(const char *name, enum ss_protocol_kind protocol, void (*first)(void))
{
    memset(state, 0, sizeof state);
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 256,
                               .redo_limit = 256,
                               .element_limit = 4096,
                               .protocol = protocol,
                               .containers = containers,
                               .container_count = 2};
    hand_open(name, config, first);
}

static uint64_t find(int number, uint64_t key)
{
    return ss_keyed_find(run_of(number), DICT, &key);
}

static void store(int number, uint64_t word, uint64_t value)
{
    if (run_of(number)->speculative)
        engine->protocol->store(run_of(number), word, value);
    else
        ss_store(run_of(number), word, value);
}

static uint64_t load(int number, uint64_t word)
{
    return run_of(number)->speculative ? engine->protocol->load(run_of(number), word)
                                       : state[word];
}

/* d[key] = value */
static void set(int number, uint64_t key, uint64_t value)
{
    uint64_t entry = find(number, key);
    if (entry == SS_NOWHERE && run_of(number)->verdict == SS_COMPLETED)
        entry = ss_keyed_insert(run_of(number), DICT, &key);
    if (entry != SS_NOWHERE)
        store(number, entry + 2, value);
}

/* d.get(key, 0) */
static uint64_t get(int number, uint64_t key)
{
    uint64_t entry = find(number, key);
    return entry == SS_NOWHERE ? 0 : load(number, entry + 2);
}

/* d.pop(key, 0) */
static void del(int number, uint64_t key)
{
    uint64_t entry = find(number, key);
    if (entry != SS_NOWHERE)
        ss_keyed_remove(run_of(number), DICT, entry);
}

static uint64_t count(int number)
{
    return ss_keyed_count(run_of(number), DICT);
}

/* The keys in order are those given, up to a 0. */
static bool keys_are(int number, const uint64_t *keys)
{
    struct ss_keyed_walk *walk = ss_keyed_entries(run_of(number), DICT);
    uint64_t at = 0;
    for (; walk != NULL && at < walk->count; at++)
        if (ss_keyed_key(run_of(number), DICT, walk->entries[at], 0) != keys[at])
            return false;
    return walk != NULL && keys[at] == 0;
}

#define KEYS(...) ((const uint64_t[]){__VA_ARGS__, 0})

static void one_to_three(void)
{
    set(0, 1, 10);
    set(0, 2, 20);
    set(0, 3, 30);
}

static void in_place(enum ss_protocol_kind protocol)
{
    open_scenario("in place", protocol, NULL);
    hand_drop(1);
    begin_in_place(1, 0);
    CHECK(get(1, 7) == 0 && count(1) == 0);
    set(1, 1, 10);
    set(1, 2, 20);
    set(1, 3, 30);
    CHECK(get(1, 2) == 20 && count(1) == 3);
    CHECK(keys_are(1, KEYS(1, 2, 3)));
    del(1, 2);
    CHECK(get(1, 2) == 0 && count(1) == 2 && get(1, 3) == 30);
    set(1, 2, 21);
    set(1, 3, 31);
    CHECK(keys_are(1, KEYS(1, 3, 2)));
    end_in_place(1, false);
    begin_in_place(1, 1);
    for (uint64_t key = 4; key <= LIMIT; key++)
        set(1, key * 4096, key);
    for (uint64_t key = 4; key <= LIMIT; key++)
        CHECK(get(1, key * 4096) == key);
    CHECK(count(1) == LIMIT && run_of(1)->verdict == SS_COMPLETED);
    set(1, 5000, 1);
    CHECK(run_of(1)->verdict == SS_RAISED && run_of(1)->raised == SS_FULL);
    end_in_place(1, true);
    begin_in_place(1, 2);
    CHECK(keys_are(1, KEYS(1, 3, 2)) && get(1, 3) == 31 && get(1, 4 * 4096) == 0);
    ss_keyed_clear(run_of(1), DICT);
    CHECK(count(1) == 0 && find(1, 1) == SS_NOWHERE);
    end_in_place(1, false);
    begin(1);
    hand_close();
}

static void speculative(enum ss_protocol_kind protocol)
{
    open_scenario("speculative", protocol, one_to_three);
    CHECK(get(1, 1) == 10 && get(1, 2) == 20 && get(1, 4) == 0);
    set(1, 4, 40);
    set(2, 5, 50);
    CHECK(get(1, 4) == 40 && get(2, 4) == 0);
    del(1, 1);
    CHECK(get(1, 1) == 0);
    set(1, 1, 11);
    CHECK(get(1, 1) == 11 && keys_are(1, KEYS(2, 3, 4, 1)));
    CHECK(commits(1));
    CHECK(!commits(2));
    hand_drop(2);
    begin(2);
    CHECK(keys_are(2, KEYS(2, 3, 4, 1)) && get(2, 1) == 11 && get(2, 4) == 40 && count(2) == 4);
    hand_close();

    open_scenario("insertions of different keys", protocol, one_to_three);
    set(2, 5, 50);
    set(1, 4, 40);
    CHECK(commits(1) && commits(2));
    begin(1);
    CHECK(keys_are(1, KEYS(1, 2, 3, 4, 5)) && count(1) == 5);
    hand_close();
}

int main(void)
{
    for (int protocol = 0; protocol < 2; protocol++) {
        in_place(protocol);
        speculative(protocol);
    }
    puts("containers: passed");
    return 0;
}
