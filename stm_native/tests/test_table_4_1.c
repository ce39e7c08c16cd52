/* Table 4.1 of Brito 2010, case by case.
 *
 * Two transactions, tx1 earlier than tx2, access one word; the program drives both from one thread
 * through the functions that compiled code and the scheduler call, so that every interleaving is
 * exact. For each case: who aborts, when, for which reason, and where the version is. */
#include <stdatomic.h>
#include <stdio.h>

#include "by_hand.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "protocols/eager.h"
#include "protocols/forced_abort.h"
#include "protocols/ownership_records.h"
#include "protocols/retry_queue.h"
#include "specstream.h"
#include "steps.h"

enum { WORDS = 64, WORD = 20, OTHER = 40, FIRST_VALUE = 1000 };

static uint64_t state[WORDS];
static const struct ss_protocol *const eager = &ss_protocol_eager;

static uint64_t load(int number, uint64_t word)
{
    return eager->load(run_of(number), word);
}

static void store(int number, uint64_t word, uint64_t value)
{
    eager->store(run_of(number), word, value);
}

static bool goes_on(int number)
{
    return run_of(number)->verdict == SS_COMPLETED;
}

static bool aborted(int number, enum ss_abort_reason reason, int64_t lost_to)
{
    struct ss_transaction *transaction = transaction_of(number);
    return run_of(number)->verdict == SS_ABORTED && transaction->reason == reason &&
           atomic_load(&transaction->waits_for) == lost_to;
}

static bool doomed(int number)
{
    int64_t thief;
    return ss_is_doomed(transaction_of(number), number, &thief);
}

static uint64_t record(uint64_t word)
{
    return atomic_load(&engine->records[ss_record_of(engine, word)]);
}

static uint64_t clock_now(void)
{
    return atomic_load(&engine->clock);
}

static uint64_t logged_version(int number)
{
    return run_of(number)->read_top[-1].value;
}

static uint64_t owned_version(int number)
{
    return atomic_load(&transaction_of(number)->owned[0].version);
}

static void write_first(void)
{
    store(0, WORD, FIRST_VALUE);
}

/* The word has a version of its own: number 0 has committed it. */
static void open_regions(const char *name, uint64_t shift, const struct ss_region *regions,
                         uint64_t region_count)
{
    hand_open(name,
              (struct ss_config){.state = state,
                                 .state_words = WORDS,
                                 .read_limit = 8,
                                 .redo_limit = 8,
                                 .protocol = SS_PROTOCOL_EAGER,
                                 .record_shift = shift,
                                 .regions = regions,
                                 .region_count = region_count},
              write_first);
    CHECK(record(WORD) == clock_now() << 1);
    CHECK(state[WORD] == FIRST_VALUE);
}

static void open_scenario(const char *name, uint64_t shift)
{
    open_regions(name, shift, NULL, 0);
}

static void close_scenario(void)
{
    hand_drop(1);
    hand_drop(2);
    CHECK((record(WORD) & 1) == 0);
    CHECK((record(OTHER) & 1) == 0);
    hand_close();
}

static void both_read(const char *name, int first, int second)
{
    open_scenario(name, 0);
    CHECK(load(first, WORD) == FIRST_VALUE && load(second, WORD) == FIRST_VALUE);
    CHECK(goes_on(1) && goes_on(2));
    CHECK(commits(1) && commits(2));
    close_scenario();
}

static void case_3(void)
{
    open_scenario("case 3: tx1 reads before tx2 has written", 0);
    uint64_t version = clock_now();
    CHECK(load(1, WORD) == FIRST_VALUE);
    CHECK(logged_version(1) == version); /* from the lock array */
    store(2, WORD, 7);
    CHECK(goes_on(1) && goes_on(2));
    CHECK((record(WORD) & 1) == 1 && owned_version(2) == version);
    /* What the lock hides is still found when the read is validated. */
    store(1, OTHER, 1);
    CHECK(commits(1) && state[WORD] == FIRST_VALUE);
    CHECK(commits(2) && state[WORD] == 7);
    CHECK(record(WORD) == clock_now() << 1);
    close_scenario();
}

static void case_4(void)
{
    open_scenario("case 4: tx1 reads after tx2 has written", 0);
    uint64_t version = clock_now();
    store(2, WORD, 7);
    CHECK(owned_version(2) == version);
    CHECK(load(1, WORD) == FIRST_VALUE);
    CHECK(logged_version(1) == version); /* from tx2's write entry */
    CHECK(goes_on(1) && goes_on(2) && !doomed(2));
    CHECK(load(2, WORD) == 7);
    CHECK(commits(1) && commits(2) && state[WORD] == 7);
    close_scenario();
}

static void case_5(void)
{
    open_scenario("case 5: tx1 writes before tx2 has read", 0);
    store(1, WORD, 7);
    load(2, WORD);
    CHECK(goes_on(1) && aborted(2, SS_ABORT_LOCKED, 1));
    CHECK(commits(1) && state[WORD] == 7);
    hand_drop(2);
    begin(2);
    CHECK(load(2, WORD) == 7 && commits(2));
    close_scenario();
}

static void case_6(void)
{
    open_scenario("case 6: tx1 writes after tx2 has read", 0);
    CHECK(load(2, WORD) == FIRST_VALUE);
    store(1, WORD, 7);
    CHECK(goes_on(1) && goes_on(2) && !doomed(2));
    CHECK(commits(1));
    CHECK(!commits(2) && goes_on(2) && transaction_of(2)->reason == SS_ABORT_CONFLICT);
    close_scenario();
}

static void case_7(void)
{
    open_scenario("case 7: tx1 writes before tx2 has written", 0);
    store(1, WORD, 7);
    store(2, WORD, 8);
    CHECK(goes_on(1) && aborted(2, SS_ABORT_LOCKED, 1));
    CHECK(commits(1) && state[WORD] == 7);
    close_scenario();
}

enum next { NEXT_LOAD, NEXT_STORE, NEXT_OWN_LOAD, NEXT_END, NEXT_COMMIT };

static void case_8(const char *name, enum next next)
{
    open_scenario(name, 0);
    uint64_t version = clock_now();
    store(2, OTHER, 9);
    store(2, WORD, 8);
    if (next == NEXT_COMMIT)
        eager->finish(&engine->workers[2], transaction_of(2));
    store(1, WORD, 7);
    CHECK(goes_on(1) && goes_on(2) && doomed(2)); /* it does not know yet */
    CHECK(owned_version(1) == version);           /* the version went with the lock */
    switch (next) {
    case NEXT_LOAD:
        load(2, 0);
        break;
    case NEXT_OWN_LOAD:
        load(2, OTHER);
        break;
    case NEXT_STORE:
        store(2, 0, 1);
        break;
    case NEXT_END:
        eager->finish(&engine->workers[2], transaction_of(2));
        break;
    case NEXT_COMMIT:
        CHECK(commits(1));
        CHECK(!eager->validate(engine, transaction_of(2)));
        CHECK(transaction_of(2)->reason == SS_ABORT_STOLEN);
        CHECK(state[WORD] == 7);
        close_scenario();
        return;
    }
    CHECK(aborted(2, SS_ABORT_STOLEN, 1));
    hand_drop(2);
    CHECK((record(WORD) & 1) == 1); /* tx1's lock stays */
    CHECK((record(OTHER) & 1) == 0);
    CHECK(commits(1) && state[WORD] == 7 && state[OTHER] != 9);
    begin(2);
    CHECK(!doomed(2)); /* the next run is another one */
    store(2, WORD, 8);
    CHECK(commits(2) && state[WORD] == 8);
    close_scenario();
}

/* Not in the table, but what its cases stand on. */

static void reason_i(void)
{
    open_scenario("reason i: the two values never coexisted", 0);
    CHECK(load(2, WORD) == FIRST_VALUE);
    store(1, WORD, 7);
    store(1, OTHER, 7);
    CHECK(commits(1));
    load(2, OTHER);
    CHECK(aborted(2, SS_ABORT_INCONSISTENT_SNAPSHOT, -1));
    close_scenario();
}

static void extension(void)
{
    open_scenario("the interval is extended where all values coexist", 0);
    uint64_t before = clock_now();
    CHECK(load(2, WORD) == FIRST_VALUE && transaction_of(2)->valid_to == before);
    store(1, OTHER, 7);
    CHECK(commits(1));
    CHECK(load(2, OTHER) == 7 && goes_on(2));
    CHECK(transaction_of(2)->valid_from == before && transaction_of(2)->valid_to == before + 1);
    CHECK(commits(2));
    close_scenario();
}

static void shared_record(uint64_t shift)
{
    open_scenario("neighbouring words share a record", shift);
    CHECK((record(WORD) == record(WORD + 3)) == (shift == 2));
    store(1, WORD, 7);
    load(2, WORD + 3);
    CHECK(shift == 2 ? aborted(2, SS_ABORT_LOCKED, 1) : goes_on(2));
    close_scenario();
}

/* Words 16 to 39 by eights, the others each for itself. */
static void open_mixed(const char *name)
{
    static const struct ss_region regions[] = {{0, 0}, {16, 3}, {OTHER, 0}};
    open_regions(name, 0, regions, 3);
}

static void regions(void)
{
    open_mixed("each region shares records as it says, and with no other");
    uint64_t groups = 0;
    uint64_t seen[WORDS] = {0};
    for (uint64_t word = 0; word < WORDS; word++) {
        uint64_t of = ss_record_of(engine, word);
        CHECK(of < WORDS);
        groups += seen[of] == 0;
        seen[of]++;
        bool alone = word < 16 || word >= OTHER;
        CHECK(seen[of] == (alone ? 1 : word % 8 + 1));
    }
    CHECK(groups == 16 + 3 + 24);
    close_scenario();

    open_mixed("a conflict through sharing alone");
    store(1, WORD, 7);
    load(2, WORD + 3);
    CHECK(goes_on(1) && aborted(2, SS_ABORT_LOCKED, 1));
    close_scenario();

    open_mixed("a group ends");
    store(1, WORD + 3, 7);
    load(2, WORD + 4);
    CHECK(goes_on(2));
    close_scenario();

    open_mixed("no sharing in the next region");
    store(1, OTHER, 7);
    load(2, OTHER + 1);
    load(2, OTHER - 1);
    CHECK(goes_on(2));
    close_scenario();
}

static void rolled_back(void)
{
    open_scenario("an aborted run gives the version back", 0);
    uint64_t version = clock_now();
    store(2, WORD, 7);
    hand_drop(2);
    CHECK(record(WORD) == version << 1 && state[WORD] == FIRST_VALUE);
    close_scenario();
}

/* What a late look at a descriptor relies on: a reference names one run, not one slot. */
static void references_are_never_used_again(void)
{
    open_scenario("each run of a slot has references of its own", 0);
    store(2, WORD, 7);
    uint64_t first = record(WORD);
    hand_drop(2);
    begin(2);
    store(2, WORD, 7);
    CHECK((record(WORD) & 1) == 1 && record(WORD) != first);
    close_scenario();
}

static void in_place(void)
{
    open_scenario("an in-place run takes over what it has written", 0);
    CHECK(load(2, WORD) == FIRST_VALUE);
    store(2, OTHER, 8);
    /* Worker 0 runs transaction 1 as the head. */
    struct ss_run *head = run_of(0);
    hand_drop(1);
    head->speculative = 0;
    ss_store(head, OTHER, 6);
    eager->invalidate_readers(&engine->workers[0], 1, head->undo_top);
    CHECK(doomed(2) && record(OTHER) == clock_now() << 1);
    load(2, 0);
    CHECK(aborted(2, SS_ABORT_STOLEN, 1));
    hand_drop(2);
    CHECK(state[OTHER] == 6 && record(OTHER) == clock_now() << 1);
    close_scenario();
}

/* Who runs next: the retry queue as a searching worker finds it. */

static bool is_in_queue(int number)
{
    int64_t found = ss_find_retry(&engine->workers[0], false);
    CHECK(found == number || found == -1);
    return found == number;
}

static void waits_for_the_winner(void)
{
    open_scenario("after reason ii it waits for the transaction that it lost to", 0);
    atomic_store(&engine->next_start, 3);
    ss_set_status(transaction_of(1), 1, SS_RUNNING);
    store(1, WORD, 7);
    load(2, WORD);
    hand_drop(2);
    ss_put_back(engine, transaction_of(2), 2);
    CHECK(!is_in_queue(2));
    CHECK(ss_find_retry(&engine->workers[0], true) == -1);
    CHECK(commits(1));
    CHECK(is_in_queue(2));
    CHECK(ss_find_retry(&engine->workers[0], true) == 2);
    CHECK(ss_has_status(transaction_of(2), 2, SS_RUNNING));
    CHECK(ss_find_retry(&engine->workers[0], true) == -1);
    close_scenario();
}

static void finished_and_stolen(void)
{
    open_scenario("a finished run that is stolen from runs again after the thief", 0);
    atomic_store(&engine->next_start, 3);
    ss_set_status(transaction_of(1), 1, SS_RUNNING);
    store(2, WORD, 8);
    eager->finish(&engine->workers[2], transaction_of(2));
    transaction_of(2)->verdict = SS_COMPLETED;
    ss_set_status(transaction_of(2), 2, SS_FINISHED);
    CHECK(!is_in_queue(2));
    store(1, WORD, 7);
    CHECK(!is_in_queue(2));
    CHECK(commits(1));
    CHECK(ss_find_retry(&engine->workers[0], true) == 2);
    CHECK(engine->workers[0].statistics.aborts[SS_ABORT_STOLEN] == 1);
    begin(2);
    store(2, WORD, 8);
    CHECK(commits(2) && state[WORD] == 8);
    close_scenario();
}

static void runs_again_at_once(void)
{
    open_scenario("after reason iii it runs again at once", 0);
    atomic_store(&engine->next_start, 3);
    CHECK(load(2, WORD) == FIRST_VALUE);
    store(1, WORD, 7);
    CHECK(commits(1) && !commits(2));
    atomic_store(&transaction_of(2)->waits_for, -1);
    ss_put_back(engine, transaction_of(2), 2);
    CHECK(ss_find_retry(&engine->workers[0], true) == 2);
    close_scenario();
}

int main(void)
{
    both_read("case 1: tx1 reads before tx2 has read", 1, 2);
    both_read("case 2: tx1 reads after tx2 has read", 2, 1);
    case_3();
    case_4();
    case_5();
    case_6();
    case_7();
    case_8("case 8, seen at a load", NEXT_LOAD);
    case_8("case 8, seen at a load of an own word", NEXT_OWN_LOAD);
    case_8("case 8, seen at a store", NEXT_STORE);
    case_8("case 8, seen at the end of the run", NEXT_END);
    case_8("case 8, seen at the commit", NEXT_COMMIT);
    reason_i();
    extension();
    shared_record(0);
    shared_record(2);
    regions();
    rolled_back();
    references_are_never_used_again();
    in_place();
    waits_for_the_winner();
    finished_and_stolen();
    runs_again_at_once();
    puts("table 4.1: passed");
    return 0;
}
