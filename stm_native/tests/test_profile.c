/* What runs were dropped for, step by step.
 *
 * Transactions 1 and 2, the first the earlier one, are driven from one thread into each kind of
 * conflict; the runtime must name the element and the site of the access that lost. Then the sketch
 * itself: what it promises, against exact counts. */
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "core/commit.h"
#include "core/drop.h"
#include "core/engine.h"
#include "core/profile.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "specstream.h"

enum { WORDS = 64, WORD = 20, OTHER = 40, FURTHER = 50 };

static uint64_t state[WORDS];

/* Accesses with a site, as compiled code of a profiling variant does them. */
static uint64_t load(int number, uint64_t word, uint16_t site)
{
    run_of(number)->site = site;
    return engine->protocol->load(run_of(number), word);
}

static void store(int number, uint64_t word, uint16_t site)
{
    run_of(number)->site = site;
    engine->protocol->store(run_of(number), word, 1000 + site);
}

static void store_first(void)
{
    store(0, WORD, 0);
}

static void open_scenario(const char *name, enum ss_protocol_kind protocol)
{
    memset(state, 0, sizeof state);
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 32,
                               .redo_limit = 8,
                               .protocol = protocol};
    hand_open(name, config, store_first);
}

/* Transaction 2 is dropped, and that is remembered as the only one, for this place. */
static void dropped_for(enum ss_abort_reason reason, struct ss_place place)
{
    struct ss_hot_place hot[2];
    CHECK(ss_engine_hot_places(engine, hot, 2) == 0);
    ss_drop(&engine->workers[2], transaction_of(2), reason);
    CHECK(ss_engine_hot_places(engine, hot, 2) == 1);
    CHECK(hot[0].word == place.word && hot[0].bytes == place.bytes && hot[0].site == place.site);
    CHECK(hot[0].aborts == 1 && hot[0].others == 0);
}

static void outdated(enum ss_protocol_kind protocol)
{
    open_scenario("a value read has changed", protocol);
    load(2, OTHER, 3);
    load(2, WORD, 4);
    load(2, FURTHER, 5);
    store(1, FURTHER, 6);
    store(1, WORD, 7);
    CHECK(commits(1));
    CHECK(!commits(2) && transaction_of(2)->reason == SS_ABORT_CONFLICT);
    dropped_for(SS_ABORT_CONFLICT, (struct ss_place){WORD, 0, 4}); /* the first that it read */
    hand_close();
}

static void outdated_element(void)
{
    open_scenario("value: a byte read has changed", SS_PROTOCOL_VALUE);
    run_of(2)->site = 8;
    ss_load_bytes(run_of(2), 8 * OTHER + 1, 1);
    run_of(2)->site = 9;
    ss_load_bytes(run_of(2), 8 * OTHER + 6, 2);
    ss_store_bytes(run_of(1), 8 * OTHER + 6, 2, 77);
    CHECK(commits(1) && !commits(2));
    dropped_for(SS_ABORT_CONFLICT, (struct ss_place){OTHER, 0xc0, 9});
    hand_close();
}

static void locked(void)
{
    open_scenario("eager: a load of what an earlier one has locked", SS_PROTOCOL_EAGER);
    store(1, WORD, 1);
    load(2, OTHER, 2);
    load(2, WORD, 3);
    finishes(2);
    CHECK(transaction_of(2)->reason == SS_ABORT_LOCKED);
    dropped_for(SS_ABORT_LOCKED, (struct ss_place){WORD, 0, 3});
    hand_close();

    open_scenario("eager: a store to what an earlier one has locked", SS_PROTOCOL_EAGER);
    ss_eager_store_bytes(run_of(1), 8 * OTHER, 4, 1);
    run_of(2)->site = 4;
    ss_eager_store_bytes(run_of(2), 8 * OTHER + 4, 4, 1); /* a neighbour in the same word */
    finishes(2);
    CHECK(transaction_of(2)->reason == SS_ABORT_LOCKED);
    dropped_for(SS_ABORT_LOCKED, (struct ss_place){OTHER, 0xf0, 4});
    hand_close();
}

static void stolen(bool has_finished)
{
    open_scenario("eager: an earlier one takes a lock over", SS_PROTOCOL_EAGER);
    store(2, OTHER, 3);
    store(2, WORD, 4);
    store(2, FURTHER, 5);
    if (has_finished)
        finishes(2);
    store(1, WORD, 6);
    if (has_finished) {
        CHECK(!engine->protocol->validate(engine, transaction_of(2)));
    } else {
        load(2, 0, 7); /* here it sees it */
        finishes(2);
    }
    CHECK(transaction_of(2)->reason == SS_ABORT_STOLEN);
    dropped_for(SS_ABORT_STOLEN, (struct ss_place){WORD, 0, 4});
    hand_close();
}

static void never_coexisted(void)
{
    open_scenario("eager: what it reads never coexisted with the rest", SS_PROTOCOL_EAGER);
    load(2, WORD, 3);
    store(1, WORD, 1);
    store(1, OTHER, 2);
    CHECK(commits(1));
    load(2, OTHER, 4); /* it is newer than the interval, which WORD keeps from being extended */
    finishes(2);
    CHECK(transaction_of(2)->reason == SS_ABORT_INCONSISTENT_SNAPSHOT);
    dropped_for(SS_ABORT_INCONSISTENT_SNAPSHOT, (struct ss_place){WORD, 0, 3});
    hand_close();
}

static void other_reasons(void)
{
    open_scenario("a run that raises names no word", SS_PROTOCOL_VALUE);
    run_of(2)->verdict = SS_RAISED;
    finishes(2);
    ss_drop(&engine->workers[2], transaction_of(2), SS_ABORT_RAISED);
    CHECK(ss_engine_hot_places(engine, NULL, 0) == 0);
    hand_close();
}

/* Hot places among many cold ones: counts are bounds, and what is hot is there. */
static void sketch(uint64_t seed)
{
    enum { HOT = 8, PLACES = 20000, NOTES = 200000 };
    static uint64_t exact[PLACES];
    struct dice dice = dice_for(seed, 0);
    open_scenario("the sketch", SS_PROTOCOL_VALUE);
    struct ss_worker *worker = &engine->workers[1];
    memset(exact, 0, sizeof exact);
    for (int i = 0; i < NOTES; i++) {
        uint64_t at = chance(&dice, 4) ? below(&dice, HOT) : below(&dice, PLACES);
        ss_hot_note(worker, (struct ss_place){(uint32_t)at, 0, (uint16_t)(at % 3)});
        exact[at]++;
    }
    enum { ENTRIES = SS_HOT_GROUPS * SS_HOT_ENTRIES };
    struct ss_hot_place hot[ENTRIES];
    uint64_t count = ss_engine_hot_places(engine, hot, ENTRIES);
    CHECK(count == ENTRIES); /* of one worker */
    uint64_t found = 0;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        CHECK(hot[i].site == hot[i].word % 3);
        CHECK(hot[i].aborts >= exact[hot[i].word]);
        CHECK(hot[i].aborts - hot[i].others <= exact[hot[i].word]);
        found += hot[i].word < HOT;
        sum += hot[i].aborts;
    }
    CHECK(found == HOT && sum == NOTES);
    CHECK(ss_engine_hot_places(engine, hot, 3) == ENTRIES); /* room for fewer is no harm */
    hand_close();
}

int main(void)
{
    outdated(SS_PROTOCOL_VALUE);
    outdated(SS_PROTOCOL_EAGER);
    outdated_element();
    locked();
    stolen(false);
    stolen(true);
    never_coexisted();
    other_reasons();
    for (uint64_t seed = 0; seed < 5; seed++)
        sketch(seed);
    puts("profile: passed");
    return 0;
}
