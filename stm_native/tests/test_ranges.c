/* Ranges, from one thread: what they log, what they see of the run's own stores, and what changes
 * them. */
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "specstream.h"

enum { WORDS = 64, FIRST = 9, COUNT = 7 };

static uint64_t state[WORDS];

static const uint64_t *load_range(int number, uint64_t word, uint64_t count)
{
    run_of(number)->site = 5;
    return is_eager() ? ss_eager_load_range(run_of(number), word, count)
                      : ss_load_range(run_of(number), word, count);
}

static void store(int number, uint64_t word, uint64_t value)
{
    engine->protocol->store(run_of(number), word, value);
}

static uint64_t entries(int number)
{
    return (uint64_t)(run_of(number)->read_top - transaction_of(number)->reads);
}

static void open_scenario(const char *name, enum ss_protocol_kind protocol, uint64_t shift)
{
    for (uint64_t word = 0; word < WORDS; word++)
        state[word] = 100 + word;
    hand_open(name,
              (struct ss_config){.state = state,
                                 .state_words = WORDS,
                                 .read_limit = 10,
                                 .redo_limit = 8,
                                 .protocol = protocol,
                                 .record_shift = shift},
              NULL);
}

static void logged_as_one(void)
{
    open_scenario("value: one head, and two words in an entry", SS_PROTOCOL_VALUE, 0);
    const uint64_t *values = load_range(2, FIRST, COUNT);
    CHECK(values != NULL && memcmp(values, &state[FIRST], COUNT * sizeof *values) == 0);
    CHECK(entries(2) == 1 + (COUNT + 1) / 2);
    engine->protocol->load(run_of(2), 60); /* what comes after a range is compared as well */
    store(1, FIRST - 1, 1);
    store(1, FIRST + COUNT, 1);
    CHECK(commits(1) && commits(2));
    hand_close();

    open_scenario("eager: one entry for each record", SS_PROTOCOL_EAGER, 2);
    values = load_range(2, FIRST, COUNT); /* words 9 to 15: records of words 8 and 12 */
    CHECK(values != NULL && memcmp(values, &state[FIRST], COUNT * sizeof *values) == 0);
    CHECK(entries(2) == 2);
    CHECK(commits(1) && commits(2));
    hand_close();
}

/* Any word of it makes the run fail, and is named. */
static void changed(enum ss_protocol_kind protocol, uint64_t at)
{
    open_scenario("a word of a range has changed", protocol, 0);
    CHECK(load_range(2, FIRST, COUNT) != NULL);
    store(1, FIRST + at, 1);
    CHECK(commits(1) && !commits(2));
    struct ss_place conflict = transaction_of(2)->conflict;
    CHECK(conflict.word == FIRST + at && conflict.bytes == 0 && conflict.site == 5);
    hand_close();
}

static void behind_a_range(void)
{
    open_scenario("a word read after a range has changed", SS_PROTOCOL_VALUE, 0);
    CHECK(load_range(2, FIRST, COUNT) != NULL);
    engine->protocol->load(run_of(2), 60);
    store(1, 60, 1);
    CHECK(commits(1) && !commits(2) && transaction_of(2)->conflict.word == 60);
    hand_close();
}

/* A range over a record that an earlier run has locked ends the run at the access. */
static void locked(void)
{
    open_scenario("eager: an earlier one has locked a word of it", SS_PROTOCOL_EAGER, 0);
    store(1, FIRST + 3, 1);
    CHECK(load_range(2, FIRST, COUNT) == NULL && run_of(2)->verdict == SS_ABORTED);
    CHECK(transaction_of(2)->reason == SS_ABORT_LOCKED);
    CHECK(transaction_of(2)->conflict.word == FIRST + 3);
    hand_close();
}

static void own_stores(enum ss_protocol_kind protocol, uint64_t stores)
{
    open_scenario("own stores are seen", protocol, 1);
    for (uint64_t i = 0; i < stores; i++)
        store(2, FIRST + i, 900 + i);
    const uint64_t *values = load_range(2, FIRST - 2, 5);
    CHECK(values != NULL);
    for (uint64_t i = 0; i < 5; i++)
        CHECK(values[i] == (i >= 2 && i - 2 < stores ? 900 + i - 2 : 100 + FIRST - 2 + i));
    store(1, 60, 1);
    CHECK(commits(1) && commits(2));
    hand_close();
}

/* Words with pending updates are read, and stored to: who changes one makes the run fail. */
static void own_updates(enum ss_protocol_kind protocol, uint64_t updates, uint64_t changed_word)
{
    open_scenario("own updates are seen", protocol, 0);
    for (uint64_t i = 0; i < updates; i++)
        is_eager()
            ? ss_eager_delta(run_of(2), 8 * (FIRST + i), 8, SS_FIRST_DELTA, 1000)
            : ss_delta(run_of(2), 8 * (FIRST + i), 8, SS_FIRST_DELTA, 1000);
    const uint64_t *values = load_range(2, FIRST, 2);
    CHECK(values != NULL);
    for (uint64_t i = 0; i < 2; i++)
        CHECK(values[i] == 100 + FIRST + i + (i < updates ? 1000 : 0));
    store(1, changed_word, 1);
    bool is_read = changed_word == FIRST || changed_word == FIRST + 1;
    CHECK(commits(1) && commits(2) == !is_read);
    for (uint64_t i = 0; i < updates && !is_read; i++)
        CHECK(state[FIRST + i] == (FIRST + i == changed_word ? 1001 : 1100 + FIRST + i));
    hand_close();
}

static void limits(void)
{
    open_scenario("a range that does not fit the log", SS_PROTOCOL_VALUE, 0);
    CHECK(load_range(2, 0, 18) != NULL && entries(2) == 10); /* all of it */
    begin(2);
    CHECK(load_range(2, 0, 19) == NULL && run_of(2)->verdict == SS_LOG_FULL && entries(2) == 0);
    hand_close();

    open_scenario("records that do not fit the log", SS_PROTOCOL_EAGER, 0);
    CHECK(load_range(2, 0, 10) != NULL);
    CHECK(load_range(2, 20, 1) == NULL && run_of(2)->verdict == SS_LOG_FULL);
    hand_close();

    open_scenario("a buffer that grows", SS_PROTOCOL_VALUE, 0);
    for (uint64_t words = 1; words < 100000; words = 3 * words + 1) {
        uint64_t *buffer = ss_buffer(run_of(2), words);
        CHECK(buffer != NULL);
        memset(buffer, 7, words * sizeof *buffer);
    }
    hand_close();
}

int main(void)
{
    logged_as_one();
    for (uint64_t at = 0; at < COUNT; at++) {
        changed(SS_PROTOCOL_VALUE, at);
        changed(SS_PROTOCOL_EAGER, at);
    }
    behind_a_range();
    locked();
    for (uint64_t stores = 0; stores < 8; stores++) {
        own_stores(SS_PROTOCOL_VALUE, stores);
        own_stores(SS_PROTOCOL_EAGER, stores);
        own_updates(SS_PROTOCOL_VALUE, stores, FIRST + 1);
        own_updates(SS_PROTOCOL_EAGER, stores, FIRST + 1);
        own_updates(SS_PROTOCOL_VALUE, stores, FIRST + 3);
        own_updates(SS_PROTOCOL_EAGER, stores, FIRST + 3);
    }
    limits();
    puts("ranges: passed");
    return 0;
}
