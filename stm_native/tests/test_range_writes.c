/* Ranges that are stored as one entry, from one thread: what is logged, what the run finds of it, what
 * later stores and updates make of it, and what becomes of it at the commit. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/recorder.h"
#include "specstream.h"

enum { WORDS = 96, FIRST = 9, COUNT = 7, LIMIT = 16, ENTRIES = 1 + (COUNT + 1) / 2, SPREAD = 20 };
enum {
    ADD = SS_FIRST_DELTA + 3 * SS_ADD + SS_SIGNED,
    MOST = SS_FIRST_DELTA + 3 * SS_MAXIMUM + SS_SIGNED
};

static uint64_t state[WORDS];

static uint64_t load(int number, uint64_t word)
{
    return engine->protocol->load(run_of(number), word);
}

static void store(int number, uint64_t word, uint64_t value)
{
    run_of(number)->site = 3;
    engine->protocol->store(run_of(number), word, value);
}

static void log_update(int number, uint64_t word, uint64_t delta, uint64_t operand)
{
    is_eager() ? ss_eager_delta(run_of(number), 8 * word, 8, delta, operand)
               : ss_delta(run_of(number), 8 * word, 8, delta, operand);
}

static void update(int number, uint64_t word, uint64_t operand)
{
    log_update(number, word, ADD, operand);
}

static uint64_t *reserve(int number, uint64_t word, uint64_t count)
{
    run_of(number)->site = 4;
    return is_eager() ? ss_eager_store_range(run_of(number), word, count)
                      : ss_store_range(run_of(number), word, count);
}

/* As compiled code does it; true: as one entry. */
static bool store_range(int number, uint64_t word, uint64_t count, uint64_t value)
{
    uint64_t *values = reserve(number, word, count);
    for (uint64_t i = 0; i < count && run_of(number)->verdict == SS_COMPLETED; i++)
        if (values != NULL)
            values[i] = value + i;
        else
            store(number, word + i, value + i);
    return values != NULL;
}

static uint64_t reads(int number)
{
    return (uint64_t)(run_of(number)->read_top - transaction_of(number)->reads);
}

/* The state is as at the beginning, but for `count` words from `word` on. */
static bool state_holds(uint64_t word, uint64_t count, uint64_t value)
{
    for (uint64_t i = 0; i < WORDS; i++)
        if (state[i] != (i - word < count ? value + i - word : 100 + i))
            return false;
    return true;
}

static void open_scenario(const char *name, enum ss_protocol_kind protocol, uint64_t shift)
{
    for (uint64_t word = 0; word < WORDS; word++)
        state[word] = 100 + word;
    hand_open(name,
              (struct ss_config){.state = state,
                                 .state_words = WORDS,
                                 .read_limit = 2 * WORDS,
                                 .redo_limit = LIMIT,
                                 .protocol = protocol,
                                 .record_shift = shift},
              NULL);
}

static void logged_as_one(enum ss_protocol_kind protocol)
{
    open_scenario("one head, and two words in an entry", protocol, 2);
    /* Words that look like entries that are not there. */
    CHECK(store_range(1, FIRST, COUNT, UINT64_MAX - COUNT) && run_of(1)->redo_count == ENTRIES);
    CHECK(state_holds(0, 0, 0));
    store(1, 60, 1);
    update(1, 61, 1000);
    CHECK(run_of(1)->redo_count == ENTRIES + 2 && reads(1) == 0);
    CHECK(!is_eager() || transaction_of(1)->owned_count == 3); /* records of words 8, 12 and 60 */
    CHECK(commits(1) && state[60] == 1 && state[61] == 1161);
    state[60] = 160;
    state[61] = 161;
    CHECK(state_holds(FIRST, COUNT, UINT64_MAX - COUNT));
    hand_close();

    open_scenario("the head stores in place", protocol, 0);
    run_of(1)->speculative = 0;
    CHECK(ss_store_range(run_of(1), FIRST, COUNT) == NULL && run_of(1)->verdict == SS_COMPLETED);
    run_of(1)->speculative = 1;
    hand_close();
}

static void found(enum ss_protocol_kind protocol)
{
    open_scenario("what was stored is found", protocol, 0);
    CHECK(store_range(2, FIRST, COUNT, 900));
    for (uint64_t i = 0; i < COUNT; i++)
        CHECK(load(2, FIRST + i) == 900 + i);
    CHECK(reads(2) == 0);
    CHECK(load(2, FIRST - 1) == 99 + FIRST && load(2, FIRST + COUNT) == 100 + FIRST + COUNT);
    CHECK(reads(2) == 2);
    for (uint64_t first = FIRST - 2; first < FIRST + COUNT + 2; first++) {
        const uint64_t *values = is_eager() ? ss_eager_load_range(run_of(2), first, 3)
                                            : ss_load_range(run_of(2), first, 3);
        CHECK(values != NULL);
        for (uint64_t i = 0; i < 3; i++)
            CHECK(values[i] == first + i + (first + i - FIRST < COUNT ? 900 - FIRST : 100));
    }
    engine->protocol->finish(&engine->workers[2], transaction_of(2));
    engine->protocol->roll_back(engine, transaction_of(2));
    begin(2);
    CHECK(load(2, FIRST) == 100 + FIRST); /* of an earlier run */
    hand_close();
}

static void changed_where_it_is(enum ss_protocol_kind protocol)
{
    open_scenario("a later access to a word of a range", protocol, 0);
    CHECK(store_range(1, FIRST, COUNT, 900));
    for (uint64_t i = 0; i < COUNT; i++) {
        store(1, FIRST + i, 300 + i);
        CHECK(load(1, FIRST + i) == 300 + i);
        update(1, FIRST + i, 200);
        CHECK(load(1, FIRST + i) == 500 + i);
        CHECK((is_eager() ? ss_eager_increment(run_of(1), FIRST + i)
                          : ss_increment(run_of(1), FIRST + i)) == 501 + i);
    }
    CHECK(run_of(1)->redo_count == ENTRIES && reads(1) == 0);
    CHECK(commits(1) && state_holds(FIRST, COUNT, 501));
    hand_close();

    open_scenario("a range stored once more", protocol, 0);
    CHECK(store_range(1, FIRST, COUNT, 900));
    CHECK(store_range(1, FIRST, COUNT, 700));     /* all of it */
    CHECK(store_range(1, FIRST + 2, 3, 702));     /* a part */
    CHECK(run_of(1)->redo_count == ENTRIES);
    CHECK(store_range(1, FIRST + 4, 5, 704));     /* more than it */
    CHECK(run_of(1)->redo_count == ENTRIES + 1 + 3);
    CHECK(load(1, FIRST + 3) == 703 && load(1, FIRST + 4) == 704);
    store(1, FIRST + 3, 703);
    store(1, FIRST + 4, 704);
    CHECK(commits(1) && state_holds(FIRST, COUNT + 2, 700));
    hand_close();

    open_scenario("a range over two, and what is between them", protocol, 0);
    CHECK(store_range(1, 10, 4, 900) && store_range(1, 16, 4, 900));
    uint64_t entries = run_of(1)->redo_count;
    CHECK(store_range(1, 11, 7, 501) && run_of(1)->redo_count == entries + 1 + 4);
    store(1, 10, 500);
    CHECK(store_range(1, 18, 2, 508));
    CHECK(commits(1) && state_holds(10, 10, 500));
    hand_close();
}

/* Word `at` of the range is in the log before. */
static void stored_before(enum ss_protocol_kind protocol, uint64_t at, bool updated)
{
    open_scenario("a range over a word that is in the log", protocol, 0);
    /* It wants the place of the range's second word in the index, and so pushes the others on. */
    store(1, FIRST + 1 + 4 * LIMIT, 5);
    for (uint64_t i = 0; i < 2; i++) /* updates of two kinds, which are two entries */
        updated ? log_update(1, FIRST + at, i == 0 ? ADD : MOST, 1000)
                : store(1, FIRST + at, 1000);
    CHECK(store_range(1, FIRST, COUNT, 700));
    for (uint64_t i = 0; i < COUNT; i++)
        CHECK(load(1, FIRST + i) == 700 + i);
    update(1, FIRST + at, 200);
    CHECK(load(1, FIRST + at) == 900 + at && reads(1) == 0);
    CHECK(store_range(1, FIRST, COUNT, 900));
    CHECK(run_of(1)->redo_count == (updated ? 3 : 2) + ENTRIES);
    CHECK(commits(1) && state[FIRST + 1 + 4 * LIMIT] == 5);
    state[FIRST + 1 + 4 * LIMIT] = 101 + FIRST + 4 * LIMIT;
    CHECK(state_holds(FIRST, COUNT, 900));
    hand_close();
}

static void limits(enum ss_protocol_kind protocol)
{
    open_scenario("as much as fits the log", protocol, 3);
    CHECK(store_range(1, 1, 2 * (LIMIT - 1), 500) && run_of(1)->redo_count == LIMIT);
    store(1, 1, 500);
    CHECK(store_range(1, 2, 3, 501));
    CHECK(run_of(1)->verdict == SS_COMPLETED && commits(1));
    CHECK(state_holds(1, 2 * (LIMIT - 1), 500));
    hand_close();

    open_scenario("more than fits the log", protocol, 3);
    CHECK(reserve(1, 1, 2 * (LIMIT - 1) + 1) == NULL && run_of(1)->verdict == SS_COMPLETED);
    CHECK(load(1, 1) == 101 && run_of(1)->redo_count == 0);
    for (uint64_t word = 1; word <= LIMIT; word++)
        store(1, word, 7);
    CHECK(!store_range(1, 1, LIMIT, 500) && run_of(1)->verdict == SS_COMPLETED);
    CHECK(load(1, LIMIT) == 499 + LIMIT);
    CHECK(!store_range(1, 1, 2 * (LIMIT - 1) + 1, 1) && run_of(1)->verdict == SS_LOG_FULL);
    hand_close();
}

/* Who has read a word of it is dropped. */
static void conflicts(enum ss_protocol_kind protocol, uint64_t at)
{
    open_scenario("a word was read that an earlier one overwrites", protocol, 0);
    load(2, FIRST + at);
    CHECK(store_range(1, FIRST, COUNT, 900) && commits(1) && !commits(2));
    CHECK(transaction_of(2)->conflict.word == FIRST + at);
    hand_close();
}

static void locks(uint64_t at)
{
    open_scenario("eager: a word is locked with its range", SS_PROTOCOL_EAGER, 0);
    CHECK(store_range(1, FIRST, COUNT, 900));
    load(2, FIRST + at);
    CHECK(run_of(2)->verdict == SS_ABORTED && transaction_of(2)->reason == SS_ABORT_LOCKED);
    CHECK(transaction_of(2)->conflict.word == FIRST + at);
    hand_close();

    open_scenario("eager: a range over a word that is locked", SS_PROTOCOL_EAGER, 0);
    store(1, FIRST + at, 1);
    CHECK(reserve(2, FIRST, COUNT) == NULL && run_of(2)->verdict == SS_ABORTED);
    CHECK(transaction_of(2)->conflict.word == FIRST + at && transaction_of(2)->conflict.site == 4);
    hand_close();

    open_scenario("eager: a word of a range is stolen", SS_PROTOCOL_EAGER, 0);
    store(2, 60, 1);
    CHECK(store_range(2, FIRST, COUNT, UINT64_MAX - COUNT));
    store(1, FIRST + at, 1);
    CHECK(reserve(2, 80, 2) == NULL && run_of(2)->verdict == SS_ABORTED);
    engine->protocol->finish(&engine->workers[2], transaction_of(2));
    CHECK(transaction_of(2)->reason == SS_ABORT_STOLEN);
    CHECK(transaction_of(2)->conflict.word == FIRST + at && transaction_of(2)->conflict.site == 4);
    CHECK(commits(1) && state_holds(FIRST + at, 1, 1));
    hand_close();
}

static void recorded(void)
{
    open_scenario("a recorder takes the words down", SS_PROTOCOL_VALUE, 0);
    struct ss_record record;
    struct ss_read entries[WORDS];
    struct ss_recorder recorder = {
        .records = &record, .record_capacity = 1, .entries = entries, .entry_capacity = WORDS};
    CHECK(store_range(1, FIRST, COUNT, UINT64_MAX - COUNT));
    store(1, 60, 7);
    engine->protocol->finish(&engine->workers[1], transaction_of(1));
    transaction_of(1)->verdict = SS_COMPLETED;
    engine->recorder = &recorder;
    ss_record_speculative(engine, transaction_of(1), 1);
    engine->recorder = NULL;
    CHECK(recorder.record_count == 1 && record.reads == 0 && record.writes == COUNT + 1);
    for (uint64_t i = 0; i < COUNT; i++)
        CHECK(entries[i].word == FIRST + i && entries[i].value == UINT64_MAX - COUNT + i);
    CHECK(entries[COUNT].word == 60 && entries[COUNT].value == 7);
    hand_close();
}

/* One access of a run and of the model of what it sees. */
static void random_access(struct dice *dice, uint64_t *model)
{
    uint64_t word = below(dice, SPREAD);
    uint64_t count = 1 + below(dice, SPREAD - word);
    uint64_t value = roll(dice);
    switch (below(dice, 5)) {
    case 0:
        CHECK(load(1, word) == model[word]);
        return;
    case 1:
        store(1, word, value);
        model[word] = value;
        return;
    case 2:
        update(1, word, value);
        model[word] += value;
        return;
    case 3:
        for (uint64_t i = 0; i < count; i++)
            model[word + i] = value + i;
        store_range(1, word, count, value);
        return;
    default: {
        const uint64_t *values = is_eager() ? ss_eager_load_range(run_of(1), word, count)
                                            : ss_load_range(run_of(1), word, count);
        CHECK(run_of(1)->verdict != SS_COMPLETED || memcmp(values, &model[word], count * sizeof *values) == 0);
    }
    }
}

static void at_random(enum ss_protocol_kind protocol)
{
    struct dice dice = {7 + protocol};
    open_scenario("accesses at random", protocol, 1);
    uint64_t model[WORDS];
    uint64_t committed = 0;
    for (int round = 0; round < 3000; round++) {
        begin(1);
        memcpy(model, state, sizeof state);
        for (uint64_t accesses = below(&dice, 16); accesses > 0; accesses--) {
            random_access(&dice, model);
            if (run_of(1)->verdict != SS_COMPLETED)
                break; /* the log is full */
        }
        if (commits(1)) {
            CHECK(memcmp(model, state, sizeof state) == 0);
            committed++;
        } else {
            engine->protocol->roll_back(engine, transaction_of(1));
        }
    }
    CHECK(committed > 1000 && committed < 2900);
    hand_close();
}

int main(void)
{
    patience_start(20);
    for (int i = 0; i < 2; i++) {
        enum ss_protocol_kind protocol = i == 0 ? SS_PROTOCOL_VALUE : SS_PROTOCOL_EAGER;
        logged_as_one(protocol);
        found(protocol);
        changed_where_it_is(protocol);
        limits(protocol);
        at_random(protocol);
        for (uint64_t at = 0; at < COUNT; at++) {
            stored_before(protocol, at, false);
            stored_before(protocol, at, true);
            conflicts(protocol, at);
        }
    }
    for (uint64_t at = 0; at < COUNT; at++)
        locks(at);
    recorded();
    patience_stop();
    puts("range writes: passed");
    return 0;
}
