/* Commutative updates and predicted counters, step by step.
 *
 * Transactions 1 and 2 are driven from one thread through the functions that compiled code and the
 * scheduler call, under both protocols: what conflicts and what does not, in which order updates are
 * applied, and what becomes of one that is read, stored to, or does not fit. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/redo_log.h"
#include "core/transaction.h"
#include "core/undo_log.h"
#include "protocols/counter_prediction.h"
#include "specstream.h"

enum { WORDS = 4, WORD = 2, BYTE = 8 * WORD, LIMIT = 8 };
enum {
    ADD_INT = SS_FIRST_DELTA + 3 * SS_ADD + SS_SIGNED,
    ADD_UNSIGNED = SS_FIRST_DELTA + 3 * SS_ADD + SS_UNSIGNED,
    ADD_FLOAT = SS_FIRST_DELTA + 3 * SS_ADD + SS_FLOAT,
    LEAST_INT = SS_FIRST_DELTA + 3 * SS_MINIMUM + SS_SIGNED,
    MOST_INT = SS_FIRST_DELTA + 3 * SS_MAXIMUM + SS_SIGNED
};

static uint64_t state[WORDS];

static void update(int number, uint64_t byte, uint64_t size, uint64_t delta, uint64_t operand)
{
    if (is_eager())
        ss_eager_delta(run_of(number), byte, size, delta, operand);
    else
        ss_delta(run_of(number), byte, size, delta, operand);
}

static uint64_t load(int number)
{
    return engine->protocol->load(run_of(number), WORD);
}

static void store(int number, uint64_t value)
{
    engine->protocol->store(run_of(number), WORD, value);
}

static uint64_t load_byte(int number, uint64_t at)
{
    return is_eager() ? ss_eager_load_bytes(run_of(number), BYTE + at, 1)
                      : ss_load_bytes(run_of(number), BYTE + at, 1);
}

static void store_byte(int number, uint64_t at, uint64_t value)
{
    if (is_eager())
        ss_eager_store_bytes(run_of(number), BYTE + at, 1, value);
    else
        ss_store_bytes(run_of(number), BYTE + at, 1, value);
}

static uint64_t count(int number)
{
    return is_eager() ? ss_eager_increment(run_of(number), WORD)
                      : ss_increment(run_of(number), WORD);
}

static void open_scenario(const char *name, enum ss_protocol_kind protocol, uint64_t first_value)
{
    for (int word = 0; word < WORDS; word++)
        state[word] = first_value;
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 32,
                               .redo_limit = LIMIT,
                               .protocol = protocol};
    hand_open(name, config, NULL);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void updates_alone(enum ss_protocol_kind protocol)
{
    open_scenario("two runs update one word, and both commit", protocol, 10);
    update(2, BYTE, 8, ADD_INT, 5);
    update(2, BYTE, 8, MOST_INT, 17);
    update(1, BYTE, 8, ADD_INT, 1);
    update(1, BYTE, 8, LEAST_INT, 3);
    CHECK(state[WORD] == 10); /* invariant 1 */
    CHECK(commits(1) && state[WORD] == 3);
    CHECK(commits(2) && state[WORD] == 17);
    CHECK(engine->ring[1].read_count == 0 && engine->ring[2].read_count == 0);
    hand_close();

    open_scenario("float operands are not added up first", protocol, bits_of(1e16));
    for (int i = 0; i < 4; i++)
        update(1, BYTE, 8, ADD_FLOAT, bits_of(1.0)); /* each is lost, four at once would not be */
    CHECK(commits(1) && state[WORD] == bits_of(1e16));
    hand_close();

    open_scenario("updates of a wide integer are one entry as long as they are alike", protocol, 10);
    update(1, BYTE, 8, ADD_INT, 5);
    update(1, BYTE, 8, ADD_INT, 6);
    CHECK(run_of(1)->redo_count == 1);
    update(1, BYTE, 8, LEAST_INT, 12);
    update(1, BYTE, 8, LEAST_INT, 13);
    update(1, BYTE, 8, ADD_INT, 1);
    CHECK(run_of(1)->redo_count == 3);
    CHECK(commits(1) && state[WORD] == 13);
    hand_close();

    open_scenario("an update of what the run has stored", protocol, 10);
    store(1, 100);
    update(1, BYTE, 8, ADD_INT, 1);
    CHECK(load(1) == 101 && run_of(1)->redo_count == 1);
    CHECK(commits(1) && state[WORD] == 101);
    hand_close();
}

static void updates_that_are_read(enum ss_protocol_kind protocol)
{
    open_scenario("a run reads what it has updated", protocol, 10);
    update(1, BYTE, 8, ADD_INT, 1);
    update(2, BYTE, 8, ADD_INT, 5);
    update(2, BYTE, 8, ADD_INT, 6);
    CHECK(load(2) == 21 && load(2) == 21);
    update(2, BYTE, 8, ADD_INT, 1);
    CHECK(load(2) == 22);
    CHECK(commits(1) && !commits(2));
    CHECK(state[WORD] == 11);
    hand_close();

    open_scenario("a run stores to what it has updated", protocol, 10);
    update(1, BYTE, 8, ADD_INT, 1);
    store(1, 50);
    update(1, BYTE, 8, ADD_INT, 2);
    CHECK(commits(1) && state[WORD] == 52);
    hand_close();

    open_scenario("a later run has read what an earlier one updates", protocol, 10);
    CHECK(load(2) == 10);
    update(1, BYTE, 8, ADD_INT, 1);
    CHECK(commits(1) && !commits(2));
    hand_close();

    open_scenario("a later run has read what an earlier one updates and reads", protocol, 10);
    CHECK(load(2) == 10);
    update(1, BYTE, 8, ADD_INT, 1);
    CHECK(load(1) == 11 && commits(1) && state[WORD] == 11);
    CHECK(!commits(2));
    hand_close();

    open_scenario("a later run reads after the commit", protocol, 10);
    update(1, BYTE, 8, ADD_INT, 1);
    CHECK(commits(1) && load(2) == 11);
    CHECK(commits(2));
    hand_close();
}

static void updates_of_bytes(enum ss_protocol_kind protocol)
{
    open_scenario("updates, stores and loads of neighbours", protocol, 0x1413121110);
    update(1, BYTE, 1, ADD_INT, 1);
    update(1, BYTE + 1, 1, ADD_INT, 1);
    store_byte(1, 2, 0x77); /* into the ring of its word */
    CHECK(load_byte(1, 2) == 0x77);
    CHECK(load_byte(1, 4) == 0x14); /* from the state; nothing is settled */
    CHECK((ss_redo_find(run_of(1), WORD)->key & SS_PENDING) != 0);
    update(1, BYTE + 2, 1, ADD_INT, 1); /* applied to the store */
    update(1, BYTE, 1, ADD_INT, 1);
    CHECK(load_byte(1, 0) == 0x12);
    CHECK((ss_redo_find(run_of(1), WORD)->key & SS_PENDING) == 0);
    CHECK(load_byte(1, 1) == 0x12 && load_byte(1, 2) == 0x78);
    CHECK(commits(1) && state[WORD] == 0x1413781212);
    hand_close();

    open_scenario("a store, and an update beside it", protocol, 0x1413121110);
    store_byte(1, 0, 0x55);
    update(1, BYTE + 1, 1, ADD_INT, 1);
    CHECK(load_byte(1, 0) == 0x55);
    store_byte(1, 0, 0x56);
    CHECK(commits(1) && state[WORD] == 0x1413121256);
    hand_close();
}

static void updates_that_do_not_fit(enum ss_protocol_kind protocol)
{
    open_scenario("a sum that does not fit in between", protocol, 0);
    update(1, BYTE, 1, ADD_INT, 100);
    update(1, BYTE, 1, ADD_INT, 28);
    update(1, BYTE, 1, ADD_INT, (uint64_t)-1);
    CHECK(!commits(1) && run_of(1)->verdict == SS_COMPLETED && state[WORD] == 0);
    hand_close();

    open_scenario("one that just fits", protocol, 0);
    update(1, BYTE, 1, ADD_INT, (uint64_t)-128);
    update(1, BYTE + 1, 1, ADD_UNSIGNED, 255);
    CHECK(commits(1) && state[WORD] == 0xff80);
    hand_close();

    open_scenario("one that does not fit when it is read", protocol, 0);
    update(1, BYTE, 1, ADD_UNSIGNED, (uint64_t)-1);
    load_byte(1, 0);
    CHECK(run_of(1)->verdict == SS_RAISED);
    hand_close();

    open_scenario("one more than the log holds", protocol, 0);
    for (int i = 0; i < LIMIT; i++)
        update(1, BYTE, 1, ADD_INT, 1);
    CHECK(run_of(1)->verdict == SS_COMPLETED);
    update(1, BYTE, 1, ADD_INT, 1);
    CHECK(run_of(1)->verdict == SS_LOG_FULL);
    hand_close();
}

static void updates_in_place(void)
{
    open_scenario("an update in place goes through the undo log", SS_PROTOCOL_VALUE, 10);
    struct ss_run *run = run_of(1);
    run->speculative = 0;
    run->undo_top = run->undo_base;
    ss_delta(run, BYTE, 8, ADD_INT, 5);
    CHECK(ss_increment(run, WORD) == 16 && state[WORD] == 16);
    ss_delta(run, BYTE, 1, ADD_INT, 127);
    CHECK(run->verdict == SS_RAISED);
    ss_undo_roll_back(run);
    CHECK(state[WORD] == 10);
    hand_close();
}

static void counters(enum ss_protocol_kind protocol)
{
    open_scenario("a counter is foreseen", protocol, 10);
    count(1);
    ss_prediction_fold(engine, 1); /* it is a counter since its first increment */
    count(1);
    CHECK(finishes(1));
    CHECK(count(2) == 13); /* what 1 has logged is known: it is finished */
    CHECK(load(2) == 13);
    CHECK(commits(1) && state[WORD] == 12);
    CHECK(commits(2) && state[WORD] == 13);
    hand_close();

    open_scenario("a counter is foreseen wrongly", protocol, 10);
    run_of(2)->site = 5;
    CHECK(count(2) == 11);
    CHECK(count(1) == 11);
    CHECK(commits(1) && state[WORD] == 11);
    CHECK(!commits(2) && engine->ring[2].reason == SS_ABORT_CONFLICT);
    struct ss_place conflict = engine->ring[2].conflict;
    CHECK(conflict.word == WORD && conflict.bytes == 0 && conflict.site == 5);
    CHECK(state[WORD] == 11);
    engine->protocol->roll_back(engine, &engine->ring[2]);
    begin(2);
    CHECK(count(2) == 12 && commits(2) && state[WORD] == 12);
    hand_close();
}

/* Transactions have added that much to the counter, one after the other; 1 is the head now. */
static void have_added(const uint64_t *added, int transactions)
{
    for (int i = 0; i < transactions; i++) {
        ss_prediction_fold(engine, 0);
        state[WORD] += added[i];
        ss_prediction_fold(engine, 1);
    }
}

static void open_counter(const char *name, enum ss_protocol_kind protocol)
{
    open_scenario(name, protocol, 10);
    count(1); /* it is a counter since its first increment */
    ss_prediction_fold(engine, 1);
    hand_drop(1);
    begin(1);
}

static void counters_of_some(enum ss_protocol_kind protocol)
{
    static const uint64_t one_in_four[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    static const uint64_t each[] = {1, 1, 1, 1};
    static const uint64_t stored[] = {0, 0, 0, 1000};

    open_counter("one event in four counts, among them the last", protocol);
    have_added(one_in_four, 12);
    CHECK(count(2) == 13 + 1);
    hand_close();

    open_counter("one event in four counts, for long", protocol);
    for (int i = 0; i < 10; i++)
        have_added(one_in_four, 12);
    CHECK(count(2) == 40 + 1);
    hand_close();

    open_counter("each event counts", protocol);
    have_added(each, 4);
    CHECK(count(2) == 14 + 1 + 1);
    hand_close();

    open_counter("what was stored to a counter is not expected again", protocol);
    have_added(stored, 4);
    CHECK(count(2) == 1010 + 1);
    hand_close();
}

static void counters_of_dropped_runs(enum ss_protocol_kind protocol)
{
    static const uint64_t each[] = {1, 1, 1, 1};

    open_counter("a run that was dropped counts again", protocol);
    CHECK(count(1) == 11 && count(1) == 12);
    hand_drop(1);
    begin(1);
    CHECK(count(2) == 10 + 2 + 1);
    hand_close();

    open_counter("a run that ended early may not have counted yet", protocol);
    have_added(each, 4);
    hand_drop(1);
    transaction_of(1)->verdict = SS_KILLED;
    begin(1);
    CHECK(count(2) == 14 + 1 + 1);
    hand_close();

    open_counter("the head in place logs nothing, but was dropped without counting", protocol);
    have_added(each, 4);
    hand_drop(1);
    ss_set_status(transaction_of(1), 1, SS_IN_PLACE);
    CHECK(count(2) == 14 + 0 + 1);
    begin(1);
    hand_close();
}

static void later_locks(void)
{
    open_scenario("eager: an update takes a later run's lock", SS_PROTOCOL_EAGER, 10);
    store(2, 50);
    update(1, BYTE, 8, ADD_INT, 1);
    CHECK(commits(1) && state[WORD] == 11);
    CHECK(!commits(2) && engine->ring[2].reason == SS_ABORT_STOLEN);
    hand_close();
}

int main(void)
{
    const enum ss_protocol_kind protocols[] = {SS_PROTOCOL_VALUE, SS_PROTOCOL_EAGER};
    for (int i = 0; i < 2; i++) {
        updates_alone(protocols[i]);
        updates_that_are_read(protocols[i]);
        updates_of_bytes(protocols[i]);
        updates_that_do_not_fit(protocols[i]);
        counters(protocols[i]);
        counters_of_some(protocols[i]);
        counters_of_dropped_runs(protocols[i]);
    }
    updates_in_place();
    later_locks();
    puts("deltas: passed");
    return 0;
}
