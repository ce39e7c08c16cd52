/* Elements narrower than a word, step by step.
 *
 * Transactions 1 and 2 are driven from one thread through the functions that compiled code and the
 * scheduler call: what a neighbour in the same word may change, what of a word is read, merged,
 * published and undone. */
#include <stdio.h>

#include "by_hand.h"
#include "core/engine.h"
#include "core/narrow.h"
#include "core/transaction.h"
#include "core/undo_log.h"
#include "specstream.h"

enum { WORDS = 4, WORD = 2, BYTE = 8 * WORD };

static const uint64_t first_value = UINT64_C(0x1716151413121110);

static uint64_t state[WORDS];

static uint64_t load(int number, uint64_t byte, uint64_t size)
{
    return is_eager() ? ss_eager_load_bytes(run_of(number), byte, size)
                      : ss_load_bytes(run_of(number), byte, size);
}

static void store(int number, uint64_t byte, uint64_t size, uint64_t value)
{
    if (is_eager())
        ss_eager_store_bytes(run_of(number), byte, size, value);
    else
        ss_store_bytes(run_of(number), byte, size, value);
}

static void increment(int number, uint64_t byte)
{
    store(number, byte, 1, load(number, byte, 1) + 1);
}

static void open_scenario(const char *name, enum ss_protocol_kind protocol)
{
    for (int word = 0; word < WORDS; word++)
        state[word] = first_value;
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 32,
                               .redo_limit = 2,
                               .protocol = protocol};
    hand_open(name, config, NULL);
}

static void masks(void)
{
    scenario = "the bits of a mask";
    for (uint32_t bytes = 1; bytes < 256; bytes++)
        for (int i = 0; i < 8; i++)
            CHECK((ss_bits_of(bytes) >> 8 * i & 0xff) == ((bytes >> i & 1) != 0 ? 0xff : 0));
    CHECK(ss_bits_of(0) == UINT64_MAX);
}

static void neighbours(void)
{
    open_scenario("value: two runs increment neighbouring bytes", SS_PROTOCOL_VALUE);
    increment(1, BYTE);
    increment(2, BYTE + 1);
    CHECK(commits(1) && state[WORD] == first_value + 1);
    CHECK(commits(2) && state[WORD] == first_value + 0x101);
    hand_close();

    open_scenario("value: two runs increment one byte", SS_PROTOCOL_VALUE);
    increment(1, BYTE);
    increment(2, BYTE);
    CHECK(commits(1) && !commits(2));
    CHECK(engine->ring[2].reason == SS_ABORT_CONFLICT);
    CHECK(state[WORD] == first_value + 1);
    hand_close();

    open_scenario("value: a store does not carry its neighbours along", SS_PROTOCOL_VALUE);
    store(2, BYTE + 4, 2, 0xabcd);
    store(1, BYTE, 4, 0x01020304);
    CHECK(commits(1) && commits(2));
    CHECK(state[WORD] == UINT64_C(0x1716abcd01020304));
    hand_close();

    open_scenario("eager: a record stands for the whole word", SS_PROTOCOL_EAGER);
    increment(1, BYTE);
    load(2, BYTE + 1, 1);
    CHECK(run_of(2)->verdict == SS_ABORTED && engine->ring[2].reason == SS_ABORT_LOCKED);
    CHECK(commits(1) && state[WORD] == first_value + 1);
    hand_close();
}

static void one_word(const char *name, enum ss_protocol_kind protocol)
{
    open_scenario(name, protocol);
    for (uint64_t size = 1; size <= 4; size *= 2) {
        uint64_t word = size / 2; /* each word in elements of one size */
        for (uint64_t byte = 0; byte < 8; byte += size)
            CHECK(load(2, 8 * word + byte, size) ==
                  (first_value >> 8 * byte & ((UINT64_C(1) << 8 * size) - 1)));
    }
    store(2, BYTE, 4, 0xfffefdfc);
    store(2, 0, 1, 0x80);
    CHECK(load(2, BYTE, 4) == 0xfffefdfc);
    CHECK(load(2, BYTE + 4, 4) == first_value >> 32); /* beside the own store, from the state */
    CHECK(load(2, 0, 1) == 0x80 && load(2, 1, 1) == 0x11);
    store(2, BYTE, 4, 1);
    store(2, BYTE + 4, 4, 2); /* into the same entry: the log holds two */
    store(2, 7, 1, 0xff);
    CHECK(load(2, BYTE, 4) == 1 && load(2, BYTE + 4, 4) == 2 && load(2, 7, 1) == 0xff);
    CHECK(run_of(2)->redo_count == 2 && run_of(2)->verdict == SS_COMPLETED);
    CHECK(state[WORD] == first_value && state[0] == first_value);
    CHECK(commits(1) && commits(2));
    CHECK(state[WORD] == UINT64_C(0x0000000200000001));
    CHECK(state[0] == UINT64_C(0xff16151413121180));
    begin(1);
    store(1, 0, 1, 0);
    store(1, 8, 1, 0);
    store(1, BYTE, 4, 0);
    CHECK(run_of(1)->verdict == SS_LOG_FULL);
    hand_close();
}

static void in_place(void)
{
    open_scenario("in place: the undo log has the whole word", SS_PROTOCOL_VALUE);
    struct ss_run *head = run_of(0);
    head->speculative = 0;
    head->undo_top = head->undo_base;
    store(0, BYTE + 2, 2, 0xbeef);
    store(0, BYTE + 6, 2, 0);
    CHECK(load(0, BYTE + 2, 2) == 0xbeef && load(0, BYTE, 2) == 0x1110);
    CHECK(state[WORD] == UINT64_C(0x00001514beef1110));
    ss_undo_roll_back(head);
    CHECK(state[WORD] == first_value);
    hand_close();
}

int main(void)
{
    masks();
    neighbours();
    one_word("value: what a run sees of its own stores", SS_PROTOCOL_VALUE);
    one_word("eager: what a run sees of its own stores", SS_PROTOCOL_EAGER);
    in_place();
    puts("narrow elements: passed");
    return 0;
}
