/* Keyed containers, from one thread: what is found, inserted and removed in place and by
 * speculative runs, what conflicts and what does not, what is free in the end. Under both
 * protocols.
 *
 * It is one file because all scenarios are about one state, and told in the same few operations. */
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "containers/containers.h"
#include "containers/keyed.h"
#include "containers/keyed_index.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "entries.h"
#include "jobs/recorder.h"
#include "specstream.h"
#include "specstream_containers.h"

enum {
    HEADER = 8,
    REGION = HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    ROOM = 256,
    LIMIT = 100,
    WIDTH = 3,
    PAIRS_HEADER = REGION + ROOM * WIDTH,
    PAIRS_REGION = PAIRS_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    PAIRS_WIDTH = 3,
    TIGHT_HEADER = PAIRS_REGION + ROOM * PAIRS_WIDTH,
    TIGHT_REGION = TIGHT_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    TIGHT_LIMIT = 5,
    SPARE = 2,
    TIGHT_WIDTH = 2,
    WORDS = TIGHT_REGION + (TIGHT_LIMIT + SPARE) * TIGHT_WIDTH
};
enum { DICT = 0, PAIRS = 1, TIGHT = 2, KEYED = 3 };

static uint64_t state[WORDS];

static const struct ss_container containers[] = {
    {SS_KEYED, HEADER, REGION, ROOM, LIMIT, 1, WIDTH, 0, 0},
    {SS_KEYED, PAIRS_HEADER, PAIRS_REGION, ROOM, LIMIT, 2, PAIRS_WIDTH, 0, 0},
    /* A set; speculative runs may hold two entries of it at once. */
    {SS_KEYED, TIGHT_HEADER, TIGHT_REGION, TIGHT_LIMIT + SPARE, TIGHT_LIMIT, 1, TIGHT_WIDTH, 0, 0},
};

static uint64_t log_limit = 256;

static void open_scenario(const char *name, enum ss_protocol_kind protocol, void (*first)(void))
{
    memset(state, 0, sizeof state);
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = log_limit,
                               .redo_limit = log_limit,
                               .element_limit = 4096,
                               .protocol = protocol,
                               .containers = containers,
                               .container_count = KEYED};
    hand_open(name, config, first);
}

/* Each entry that was ever taken is there, is free, or at hand of a worker, and not twice. */
static void check_entries(const struct ss_keyed *keyed)
{
    const struct ss_container *of = &keyed->of;
    uint64_t used = state[of->header + SS_HEADER_USED], there = 0, free = 0, lent = 0;
    bool seen[ROOM] = {false};
    for (uint64_t i = 0; i < used; i++) {
        seen[i] = state[of->region + i * of->entry_words] != 0;
        there += seen[i];
    }
    CHECK(there == state[of->header + SS_HEADER_COUNT]);
    for (uint64_t entry = keyed->free; entry != 0; entry = state[entry + SS_KEY_WORD], free++) {
        uint64_t at = (entry - of->region) / of->entry_words;
        CHECK(at < used && !seen[at]);
        seen[at] = true;
    }
    for (uint64_t i = 0; i < engine->config.threads; i++)
        for (uint64_t j = 0; j < keyed->parts[i].count; j++, lent++) {
            uint64_t at = (keyed->parts[i].entries[j] - of->region) / of->entry_words;
            CHECK(at < used && !seen[at]);
            seen[at] = true;
        }
    CHECK(there + free + lent == used);
    CHECK(keyed->lent == lent);
}

static void close_scenario(void)
{
    hand_drop(1);
    hand_drop(2);
    for (int i = 0; i < KEYED; i++)
        check_entries(&engine->keyed[i]);
    hand_close();
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

/* Keys [first, first + count), their values as they are. */
static void set_many(int number, uint64_t first, uint64_t count)
{
    for (uint64_t key = first; key < first + count; key++)
        set(number, key, key);
}

static bool add(int number, uint64_t key)
{
    return ss_keyed_insert(run_of(number), TIGHT, &key) != SS_NOWHERE;
}

static bool is_in(int number, uint64_t key)
{
    return ss_keyed_find(run_of(number), TIGHT, &key) != SS_NOWHERE;
}

static uint64_t header(uint64_t at)
{
    return state[HEADER + at];
}

/* ---- in place ---- */

static void in_place(enum ss_protocol_kind protocol)
{
    open_scenario("in place", protocol, NULL);
    hand_drop(1);
    begin_in_place(1, 0);
    CHECK(get(1, 7) == 0 && count(1) == 0 && keys_are(1, KEYS(0)));
    set_many(1, 1, 3);
    CHECK(find(1, 2) > find(1, 1) && find(1, 3) > find(1, 2)); /* side by side, in order */
    CHECK(get(1, 2) == 2 && count(1) == 3 && keys_are(1, KEYS(1, 2, 3)));
    uint64_t changes = ss_keyed_changes(run_of(1), DICT);
    set(1, 2, 20);
    CHECK(ss_keyed_changes(run_of(1), DICT) == changes);
    del(1, 2);
    CHECK(ss_keyed_changes(run_of(1), DICT) != changes);
    CHECK(get(1, 2) == 0 && count(1) == 2 && get(1, 3) == 3);
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
    close_scenario();
}

static void pairs_as_keys(enum ss_protocol_kind protocol)
{
    open_scenario("keys of two words", protocol, NULL);
    const uint64_t keys[][2] = {{1, 2}, {1, 3}, {2, 1}, {0, 0}};
    uint64_t entries[4];
    for (int i = 0; i < 4; i++)
        entries[i] = ss_keyed_insert(run_of(1), PAIRS, keys[i]);
    for (int i = 0; i < 4; i++)
        CHECK(ss_keyed_find(run_of(1), PAIRS, keys[i]) == entries[i]);
    CHECK(commits(1));
    begin(1);
    for (int i = 0; i < 4; i++)
        CHECK(ss_keyed_find(run_of(1), PAIRS, keys[i]) == entries[i] &&
              ss_keyed_key(run_of(1), PAIRS, entries[i], 1) == keys[i][1]);
    CHECK(ss_keyed_find(run_of(1), PAIRS, (const uint64_t[]){2, 2}) == SS_NOWHERE);
    CHECK(commits(1));
    hand_drop(1);
    begin_in_place(1, 0);
    for (int i = 0; i < 4; i++)
        CHECK(ss_keyed_find(run_of(1), PAIRS, keys[i]) == entries[i]);
    ss_keyed_remove(run_of(1), PAIRS, entries[1]);
    CHECK(ss_keyed_find(run_of(1), PAIRS, keys[1]) == SS_NOWHERE);
    end_in_place(1, false);
    close_scenario();
}

static void undone(enum ss_protocol_kind protocol)
{
    open_scenario("an event that grows the index is undone", protocol, one_to_three);
    hand_drop(1);
    begin_in_place(1, 0);
    del(1, 1);
    struct ss_index *before = engine->keyed[DICT].index;
    set_many(1, 10, 60);
    CHECK(engine->keyed[DICT].index != before);
    set(1, 1, 11);
    end_in_place(1, true);
    CHECK(engine->keyed[DICT].index == before);
    begin_in_place(1, 1);
    CHECK(get(1, 1) == 10 && get(1, 10) == 0 && keys_are(1, KEYS(1, 2, 3)));
    set_many(1, 10, 60);
    end_in_place(1, false);
    CHECK(engine->keyed[DICT].index != before);
    close_scenario();

    open_scenario("the event after one that grew the index is undone", protocol, one_to_three);
    hand_drop(1);
    begin_in_place(1, 0);
    set_many(1, 10, 60);
    begin_in_place(1, 1); /* of the same range, and works on no container */
    end_in_place(1, true);
    begin_in_place(1, 2);
    CHECK(get(1, 69) == 69 && count(1) == 63);
    end_in_place(1, false);
    close_scenario();

    open_scenario("an entry that is removed and taken again in one event", protocol, one_to_three);
    hand_drop(1);
    for (int64_t event = 0; event < 3; event++) {
        begin_in_place(1, event);
        del(1, 2);
        set(1, 4, 40);
        del(1, 4);
        set(1, 2, 22);
        end_in_place(1, event != 1);
        CHECK(header(SS_HEADER_COUNT) == 3);
    }
    close_scenario();

    open_scenario("an event takes what it has removed itself", protocol, NULL);
    hand_drop(1);
    begin_in_place(1, 0);
    for (uint64_t key = 1; key <= TIGHT_LIMIT; key++)
        CHECK(add(1, key));
    end_in_place(1, false);
    for (int64_t event = 1; event < 4; event++) {
        begin_in_place(1, event);
        for (uint64_t round = 1; round <= 3; round++) {
            ss_keyed_clear(run_of(1), TIGHT);
            for (uint64_t key = 1; key <= TIGHT_LIMIT; key++)
                CHECK(!is_in(1, 10 * round + key) && add(1, 10 * round + key));
            CHECK(!is_in(1, 10 * round - 9));
        }
        end_in_place(1, event != 2);
        begin_in_place(1, event);
        CHECK(is_in(1, event == 1 ? 1 : 31) && !is_in(1, event == 1 ? 31 : 1));
        end_in_place(1, false);
        check_entries(&engine->keyed[TIGHT]);
    }
    close_scenario();
}

/* What the variants without an undo log and under locks do. */
static void directly(enum ss_mode mode)
{
    open_scenario("without an undo log", SS_PROTOCOL_VALUE, NULL);
    hand_drop(1);
    engine->job.mode = mode;
    ss_containers_start(engine);
    begin_in_place(1, 0);
    set_many(1, 1, 60);
    for (uint64_t round = 0; round < 10; round++) {
        del(1, 2);
        set(1, 2, round);
    }
    ss_keyed_clear(run_of(1), PAIRS);
    CHECK(get(1, 2) == 9 && get(1, 60) == 60 && count(1) == 60 && get(1, 61) == 0);
    CHECK(run_of(1)->undo_top == run_of(1)->undo_base + 70); /* of the values */
    CHECK(engine->keyed[DICT].before == NULL);
    engine->job.mode = SS_MODE_SPECULATE;
    ss_containers_start(engine);
    close_scenario();
}

/* ---- speculative runs ---- */

static void own_changes(enum ss_protocol_kind protocol)
{
    open_scenario("a run sees its own changes", protocol, one_to_three);
    CHECK(get(1, 1) == 10 && get(1, 2) == 20 && get(1, 4) == 0);
    set(1, 4, 40);
    CHECK(get(1, 4) == 40 && get(2, 4) == 0);
    uint64_t changes = ss_keyed_changes(run_of(1), DICT);
    del(1, 1);
    CHECK(ss_keyed_changes(run_of(1), DICT) != changes);
    CHECK(get(1, 1) == 0);
    set(1, 1, 11);
    set(1, 5, 50);
    del(1, 5); /* in vain */
    CHECK(get(1, 5) == 0 && get(1, 1) == 11 && keys_are(1, KEYS(2, 3, 4, 1)) && count(1) == 4);
    CHECK(header(SS_HEADER_COUNT) == 3 && commits(1));
    CHECK(!commits(2));
    hand_drop(2);
    begin(2);
    CHECK(keys_are(2, KEYS(2, 3, 4, 1)) && get(2, 1) == 11 && get(2, 4) == 40 && count(2) == 4);
    close_scenario();

    open_scenario("a run looks for what the one before has inserted", protocol, one_to_three);
    set(1, 5, 50);
    hand_drop(1);
    begin(1);
    CHECK(find(1, 5) == SS_NOWHERE);
    set(1, 6, 60);
    CHECK(find(1, 5) == SS_NOWHERE && get(1, 6) == 60 && commits(1));
    close_scenario();

    open_scenario("a run clears, and begins anew", protocol, one_to_three);
    set(1, 4, 40);
    ss_keyed_clear(run_of(1), DICT);
    CHECK(count(1) == 0 && get(1, 4) == 0 && get(1, 2) == 0 && keys_are(1, KEYS(0)));
    set(1, 2, 22);
    CHECK(keys_are(1, KEYS(2)) && commits(1));
    begin(1);
    CHECK(keys_are(1, KEYS(2)) && get(1, 2) == 22 && count(1) == 1);
    close_scenario();

    open_scenario("keys that many share a group with", protocol, one_to_three);
    set_many(1, 100, 40);
    for (uint64_t key = 100; key < 140; key += 2)
        del(1, key);
    for (uint64_t key = 100; key < 140; key++)
        CHECK(get(1, key) == (key % 2 == 0 ? 0 : key));
    CHECK(commits(1) && header(SS_HEADER_COUNT) == 23);
    close_scenario();
}

static void without_conflict(enum ss_protocol_kind protocol)
{
    open_scenario("insertions of different keys", protocol, one_to_three);
    set(2, 5, 50);
    set(1, 4, 40);
    CHECK(commits(1) && commits(2));
    begin(1);
    CHECK(keys_are(1, KEYS(1, 2, 3, 4, 5)) && count(1) == 5);
    close_scenario();

    open_scenario("a key that is absent, and the insertion of another", protocol, one_to_three);
    CHECK(get(2, 5) == 0);
    set(1, 4, 40);
    CHECK(commits(1) && commits(2));
    close_scenario();

    open_scenario("a value, and the removal of another key", protocol, one_to_three);
    CHECK(get(2, 2) == 20);
    del(1, 1);
    CHECK(commits(1) && commits(2));
    close_scenario();

    open_scenario("the count, and the value of a key", protocol, one_to_three);
    CHECK(count(2) == 3 && keys_are(2, KEYS(1, 2, 3)));
    set(1, 1, 11);
    CHECK(commits(1) && commits(2));
    close_scenario();

    open_scenario("what is absent in an index that grows", protocol, one_to_three);
    hand_drop(1);
    CHECK(get(2, 500) == 0 && get(2, 2) == 20);
    struct ss_index *before = engine->keyed[DICT].index;
    begin_in_place(1, 0);
    set_many(1, 10, 60);
    end_in_place(1, false);
    CHECK(engine->keyed[DICT].index != before);
    CHECK(get(2, 3) == 30);
    CHECK(commits(2));
    close_scenario();
}

static void conflicts(enum ss_protocol_kind protocol)
{
    open_scenario("insertions of one key", protocol, one_to_three);
    set(2, 5, 50);
    set(1, 5, 51);
    CHECK(commits(1) && !commits(2));
    /* The profile names the entry; `eager` the word of absence, which is that of the key. */
    uint64_t place = transaction_of(2)->conflict.word;
    CHECK(is_eager() ? place >= HEADER + SS_HEADER_WORDS && place < REGION
                     : state[place + SS_KEY_WORD] == 5);
    close_scenario();

    open_scenario("a key that is absent, and its insertion", protocol, one_to_three);
    CHECK(get(2, 5) == 0);
    set(1, 5, 51);
    CHECK(commits(1) && !commits(2));
    close_scenario();

    open_scenario("a key that is absent, and its insertion in place", protocol, one_to_three);
    hand_drop(1);
    CHECK(get(2, 69) == 0);
    begin_in_place(1, 0);
    set_many(1, 10, 60); /* the index grows */
    end_in_place(1, false);
    CHECK(!commits(2));
    close_scenario();

    open_scenario("a value, and the removal of its key", protocol, one_to_three);
    CHECK(get(2, 1) == 10);
    del(1, 1);
    CHECK(commits(1) && !commits(2));
    close_scenario();

    open_scenario("removals of one key", protocol, one_to_three);
    del(2, 1);
    del(1, 1);
    CHECK(commits(1) && !commits(2) && header(SS_HEADER_COUNT) == 2);
    close_scenario();

    open_scenario("an entry is removed and taken anew by the same key", protocol, one_to_three);
    uint64_t entry = find(2, 1);
    CHECK(entry != SS_NOWHERE);
    del(1, 1);
    CHECK(commits(1));
    bool again = false;
    for (uint64_t tries = 0; !again && tries < 40; tries++) {
        begin(1);
        uint64_t key = 1;
        again = ss_keyed_insert(run_of(1), DICT, &key) == entry;
        if (again)
            store(1, entry + 2, 10);
        else
            del(1, 1);
        CHECK(commits(1));
    }
    CHECK(again && state[entry + 1] == 1 && state[entry + 2] == 10);
    CHECK(!commits(2)); /* all words are as they were, but for the stamp */
    close_scenario();

    for (int what = 0; what < 3; what++) {
        open_scenario("the count, the keys, or all, and an insertion", protocol, one_to_three);
        if (what == 0)
            CHECK(count(2) == 3);
        else if (what == 1)
            CHECK(keys_are(2, KEYS(1, 2, 3)));
        else
            ss_keyed_clear(run_of(2), DICT);
        set(1, 4, 40);
        CHECK(commits(1) && !commits(2));
        close_scenario();
    }

    open_scenario("the keys, and the removal of one", protocol, one_to_three);
    CHECK(keys_are(2, KEYS(1, 2, 3)));
    del(1, 2);
    CHECK(commits(1) && !commits(2));
    close_scenario();

    open_scenario("the keys, and one that is removed and inserted again", protocol, one_to_three);
    CHECK(keys_are(2, KEYS(1, 2, 3)));
    del(1, 2);
    set(1, 2, 20);
    CHECK(commits(1) && !commits(2));
    close_scenario();
}

/* Readers of an event in place that does not come to its end. */
static void seen_and_undone(enum ss_protocol_kind protocol)
{
    open_scenario("an insertion that is undone, and a walk", protocol, one_to_three);
    hand_drop(1);
    uint64_t before = header(SS_HEADER_CHANGES);
    begin_in_place(1, 0);
    set(1, 9, 90);
    CHECK(keys_are(2, KEYS(1, 2, 3, 9)));
    end_in_place(1, true);
    CHECK(!commits(2));
    /* Who read the number first, and then the entries, has the one from before. */
    CHECK(header(SS_HEADER_CHANGES) > before);
    close_scenario();

    open_scenario("an insertion that is undone, and its key", protocol, one_to_three);
    hand_drop(1);
    begin_in_place(1, 0);
    set(1, 9, 90);
    CHECK(get(2, 9) == 90);
    end_in_place(1, true);
    begin_in_place(1, 0); /* once more */
    set(1, 9, 90);
    end_in_place(1, false);
    CHECK(!commits(2));
    close_scenario();

    open_scenario("a removal that is undone, and its key", protocol, one_to_three);
    hand_drop(1);
    begin_in_place(1, 0);
    del(1, 1);
    CHECK(get(2, 1) == 0);
    end_in_place(1, true);
    CHECK(!commits(2));
    close_scenario();
}

/* ---- limits ---- */

static void limits(enum ss_protocol_kind protocol)
{
    open_scenario("a run that would pass the limit", protocol, NULL);
    hand_drop(1);
    begin_in_place(1, 0);
    set_many(1, 1, LIMIT - 1);
    end_in_place(1, false);
    begin(1);
    set(1, 501, 1);
    set(2, 502, 2);
    CHECK(commits(1) && !commits(2));
    CHECK(transaction_of(2)->verdict == SS_RAISED);
    CHECK(transaction_of(2)->reason == SS_ABORT_RAISED && header(SS_HEADER_COUNT) == LIMIT);
    hand_drop(2);
    begin(1);
    del(1, 501);
    set(1, 503, 3);
    CHECK(commits(1) && header(SS_HEADER_COUNT) == LIMIT);
    begin(1);
    set(1, 504, 4); /* one too many, though not for long */
    del(1, 503);
    CHECK(!commits(1) && transaction_of(1)->verdict == SS_RAISED);
    close_scenario();

    open_scenario("what speculative runs may hold", protocol, NULL);
    CHECK(add(1, 1) && add(2, 2));
    CHECK(!add(2, 3) && run_of(2)->verdict == SS_LOG_FULL);
    hand_drop(2);
    begin_in_place(2, 0);
    for (uint64_t key = 10; key < 10 + TIGHT_LIMIT; key++)
        CHECK(add(2, key)); /* what others hold is none of what the head may insert */
    end_in_place(2, false);
    CHECK(!commits(1));
    close_scenario();

    log_limit = 8;
    open_scenario("logs that are full", protocol, NULL);
    for (int number = 1; number <= 2; number++) {
        set_many(number, number * 100ull, 20);
        CHECK(run_of(number)->verdict == SS_LOG_FULL);
        hand_drop(number);
    }
    begin_in_place(1, 0);
    set_many(1, 1, 30);
    end_in_place(1, false);
    begin(1);
    for (uint64_t key = 1; key <= 20; key++)
        del(1, key);
    CHECK(run_of(1)->verdict == SS_LOG_FULL);
    hand_drop(1);
    begin(1);
    for (uint64_t key = 100; key <= 120; key++)
        get(1, key);
    CHECK(run_of(1)->verdict == SS_LOG_FULL);
    close_scenario();
    log_limit = 256;
}

/* ---- the index ---- */

static void replaced_indices(void)
{
    struct ss_keyed *keyed;
    open_scenario("an index that somebody may look at", SS_PROTOCOL_VALUE, one_to_three);
    keyed = &engine->keyed[DICT];
    hand_drop(1);
    for (int who = 0; who < 2; who++) {
        engine->workers[2].runs = who == 0; /* a run has begun */
        engine->lookers = who == 1;
        begin_in_place(1, who);
        CHECK(ss_index_reserve(engine, keyed, 100 + 1000 * (uint64_t)who, true));
        run_of(1)->worker->touched.has_grown = true;
        set(1, 10, 1);
        end_in_place(1, false);
        CHECK(keyed->retired != NULL && keyed->before == NULL);
        engine->workers[2].runs = 2;
        engine->lookers = 0;
        CHECK(ss_index_renew(engine, keyed, header(SS_HEADER_COUNT)));
        CHECK(keyed->retired == NULL);
        CHECK(keyed->index_bytes == atomic_load(&keyed->index)->bytes);
    }
    close_scenario();
}

/* Slots that have to be looked at for a key, less by one, in the mean over `count` keys. */
static double mean_detour(uint64_t (*key_of)(uint64_t), uint64_t count)
{
    enum { SLOTS = 2048 };
    static bool taken[SLOTS];
    uint64_t sum = 0;
    memset(taken, 0, sizeof taken);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t key = key_of(i);
        uint64_t at = ss_hash_key(&key, 1) % SLOTS;
        for (; taken[at]; at = (at + 1) % SLOTS)
            sum++;
        taken[at] = true;
    }
    return (double)sum / (double)count;
}

static uint64_t small(uint64_t i) { return i; }
static uint64_t negative(uint64_t i) { return -i; }
static uint64_t pages(uint64_t i) { return i << 12; }
static uint64_t high(uint64_t i) { return i << 40; }
static uint64_t highest(uint64_t i) { return i << 54; }
static uint64_t codes(uint64_t i) { return (i + 1) * UINT64_C(0x9e3779b97f4a7c15); }
static uint64_t cents(uint64_t i) { return i * 100; }
static uint64_t floats(uint64_t i)
{
    double value = (double)i;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t pair_hash(uint64_t i)
{
    return ss_hash_key((const uint64_t[]){i % 32, i / 32}, 2);
}

static void hashes(void)
{
    uint64_t (*const families[])(uint64_t) = {small, negative, pages,  high,
                                              highest, codes,  cents, floats, pair_hash};
    scenario = "keys of all kinds are spread over the index";
    /* Half full: half a slot for keys at random. */
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        CHECK(mean_detour(families[i], 1000) < 0.8);
}

/* ---- what a recorder makes of it ---- */

static bool has_word(const struct ss_read *entries, uint64_t count, uint64_t word)
{
    for (uint64_t i = 0; i < count; i++)
        if (entries[i].word == word && entries[i].bytes == 0)
            return true;
    return false;
}

static void recorded(void)
{
    struct ss_record record;
    struct ss_read entries[32];
    struct ss_recorder recorder = {.records = &record, .record_capacity = 1,
                                   .entries = entries, .entry_capacity = 32};
    uint64_t key = 5;
    open_scenario("what a recorder takes down", SS_PROTOCOL_VALUE, one_to_three);
    uint64_t absence = ss_absence_word(&engine->keyed[DICT], ss_hash_key(&key, 1));
    uint64_t removed = find(1, 1);
    ss_keyed_remove(run_of(1), DICT, removed);
    set(1, 5, 50);
    CHECK(finishes(1));
    engine->recorder = &recorder;
    ss_record_speculative(engine, transaction_of(1), 1);
    engine->recorder = NULL;
    const struct ss_read *writes = entries + record.reads;
    CHECK(record.reads == 2); /* a stamp, and an absence */
    CHECK(has_word(entries, record.reads, removed) && has_word(entries, record.reads, absence));
    CHECK(record.writes == 9); /* two stamps, key and value, the count, and two for each change */
    CHECK(has_word(writes, record.writes, removed) && has_word(writes, record.writes, absence));
    CHECK(has_word(writes, record.writes, HEADER + SS_HEADER_COUNT));
    CHECK(has_word(writes, record.writes, HEADER + SS_HEADER_CHANGES));
    close_scenario();
}

/* ---- a job ---- */

enum { EVENTS = 3000 };

/* Event k inserts key k, and removes key k - 50. */
static bool process(struct ss_run *run, enum ss_variant variant, int64_t event)
{
    uint64_t key = (uint64_t)event;
    if (ss_keyed_find(run, DICT, &key) != SS_NOWHERE || run->verdict != SS_COMPLETED)
        return false;
    uint64_t entry = ss_keyed_insert(run, DICT, &key);
    if (entry == SS_NOWHERE)
        return false;
    if (variant == SS_EAGER)
        ss_eager_store(run, entry + 2, key);
    else
        ss_store(run, entry + 2, key);
    key -= 50;
    if (event >= 50 && run->verdict == SS_COMPLETED) {
        entry = ss_keyed_find(run, DICT, &key);
        if (entry == SS_NOWHERE)
            return false;
        ss_keyed_remove(run, DICT, entry);
    }
    return run->verdict == SS_COMPLETED;
}

RUN_EACH_EVENT(process)
ENTRY(run_plain, SS_PLAIN)
ENTRY(run_transactional, SS_TRANSACTIONAL)
ENTRY(run_eager, SS_EAGER)

/* By real workers: runs that insert and remove other keys do not meet, as far as `value` is
 * concerned, and their entries come in the order of the events. */
static void whole_job(enum ss_protocol_kind protocol)
{
    open_scenario("a job that inserts and removes", protocol, NULL);
    hand_drop(1);
    hand_drop(2);
    ss_engine_set_entry(engine, SS_PLAIN, run_plain);
    ss_engine_set_entry(engine, SS_TRANSACTIONAL, run_transactional);
    ss_engine_set_entry(engine, SS_EAGER, run_eager);
    ss_engine_release_turn(engine);
    struct ss_job job = {.count = EVENTS, .chunk = 3, .horizon = 6, .mode = SS_MODE_SPECULATE};
    CHECK(ss_engine_start(engine, &job));
    while (!ss_engine_wait(engine, 50))
        continue;
    struct ss_outcome outcome = ss_engine_outcome(engine);
    CHECK(outcome.consumed == EVENTS && !outcome.failed);
    struct ss_statistics statistics = ss_engine_statistics(engine);
    CHECK(protocol != SS_PROTOCOL_VALUE || statistics.reruns == 0);
    CHECK(statistics.speculative_runs > 0);
    CHECK(engine->keyed[DICT].index_bytes < 1 << 16); /* many an index was made and freed */
    ss_engine_take_turn(engine);
    begin_in_place(1, EVENTS);
    struct ss_keyed_walk *walk = ss_keyed_entries(run_of(1), DICT);
    CHECK(walk->count == 50);
    for (uint64_t i = 0; i < 50; i++)
        CHECK(state[walk->entries[i] + 1] == EVENTS - 50 + i &&
              state[walk->entries[i] + 2] == EVENTS - 50 + i);
    end_in_place(1, false);
    begin(1);
    begin(2);
    close_scenario();
}

/* ---- the state is another one ---- */

static void restored(enum ss_protocol_kind protocol)
{
    open_scenario("the owner changes the state", protocol, one_to_three);
    set(1, 4, 40); /* left behind by a job */
    uint64_t stamp = engine->stamp;
    memset(state, 0, sizeof state);
    state[HEADER + SS_HEADER_COUNT] = 2;
    state[HEADER + SS_HEADER_USED] = 4;
    const uint64_t entries[] = {2, 70, 700, 0, 5, 50, 1, 80, 800, 0, 0, 0};
    memcpy(&state[REGION], entries, sizeof entries);
    ss_engine_state_changed(engine);
    uint64_t key = 80;
    CHECK(ss_engine_find(engine, DICT, &key) == REGION + 6);
    key = 5;
    CHECK(ss_engine_find(engine, DICT, &key) == SS_NOWHERE);
    hand_drop(1);
    begin(1);
    CHECK(keys_are(1, KEYS(80, 70)) && get(1, 1) == 0 && get(1, 70) == 700);
    set(1, 6, 60);
    CHECK(commits(1) && header(SS_HEADER_CHANGES) > stamp);
    close_scenario();
}

int main(void)
{
    for (enum ss_protocol_kind protocol = 0; protocol < 2; protocol++) {
        in_place(protocol);
        pairs_as_keys(protocol);
        undone(protocol);
        own_changes(protocol);
        without_conflict(protocol);
        conflicts(protocol);
        seen_and_undone(protocol);
        limits(protocol);
        restored(protocol);
        whole_job(protocol);
    }
    directly(SS_MODE_LOG_FREE);
    directly(SS_MODE_LOCKED);
    replaced_indices();
    recorded();
    hashes();
    puts("containers: passed");
    return 0;
}
