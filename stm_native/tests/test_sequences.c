/* Lists and deques: random insertions and deletions, in place and by speculative runs, compared
 * with a plain array after each; what conflicts; growth of the ring. Under both protocols. */
#include <stdio.h>
#include <string.h>

#include "by_hand.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "dice.h"
#include "specstream.h"
#include "specstream_containers.h"

enum { LIST = 0, DEQUE = 1, ROOM = 64, LIMIT = 50, WIDTH = 2 };
enum {
    LIST_REGION = 2 * SS_HEADER_WORDS,
    DEQUE_REGION = LIST_REGION + ROOM * WIDTH,
    WORDS = DEQUE_REGION + ROOM * WIDTH
};

static uint64_t state[WORDS];

static const struct ss_container containers[] = {
    {SS_LIST, 0, LIST_REGION, ROOM, LIMIT, 0, WIDTH, 0, 0},
    {SS_DEQUE, SS_HEADER_WORDS, DEQUE_REGION, ROOM, LIMIT, 0, WIDTH, 0, 0},
};

struct model {
    uint64_t count;
    uint64_t values[LIMIT];
};

static void open_scenario(const char *name, enum ss_protocol_kind protocol, uint64_t redo_limit,
                          void (*first)(void))
{
    memset(state, 0, sizeof state);
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .read_limit = 4096,
                               .redo_limit = redo_limit,
                               .protocol = protocol,
                               .containers = containers,
                               .container_count = 2};
    hand_open(name, config, first);
}

static void insert(int number, uint64_t container, uint64_t at, uint64_t value)
{
    struct ss_run *run = run_of(number);
    uint64_t word = ss_sequence_insert(run, container, at);
    if (word == SS_NOWHERE)
        return;
    for (uint64_t i = 0; i < WIDTH; i++)
        if (run->speculative)
            engine->protocol->store(run, word + i, value + i);
        else
            ss_store(run, word + i, value + i);
}

static uint64_t get(int number, uint64_t container, uint64_t at)
{
    struct ss_run *run = run_of(number);
    uint64_t word = ss_sequence_element(run, container, at);
    return run->speculative ? engine->protocol->load(run, word) : state[word];
}

static bool is(int number, uint64_t container, const struct model *model)
{
    bool same = ss_sequence_count(run_of(number), container) == model->count;
    for (uint64_t i = 0; same && i < model->count; i++)
        same = get(number, container, i) == model->values[i];
    return same;
}

static void random_step(struct dice *dice, int number, uint64_t container, struct model *model)
{
    uint64_t count = model->count;
    uint64_t end = chance(dice, 2);
    if (count < LIMIT && (count == 0 || chance(dice, 2))) {
        uint64_t at = end ? chance(dice, 2) * count : below(dice, count + 1);
        uint64_t value = roll(dice);
        insert(number, container, at, value);
        memmove(&model->values[at + 1], &model->values[at], (count - at) * sizeof *model->values);
        model->values[at] = value;
        model->count++;
        return;
    }
    uint64_t first = end ? chance(dice, 2) * (count - 1) : below(dice, count);
    uint64_t step = 1 + below(dice, 3);
    uint64_t most = (count - first - 1) / step + 1;
    uint64_t length = chance(dice, 3) ? below(dice, most + 1) : 1;
    ss_sequence_delete(run_of(number), container, first, step, length);
    for (uint64_t gone = length; gone-- > 0;) {
        uint64_t at = first + gone * step;
        memmove(&model->values[at], &model->values[at + 1],
                (--model->count - at) * sizeof *model->values);
    }
}

static void at_random(enum ss_protocol_kind protocol, uint64_t seed)
{
    struct dice dice = dice_for(seed, protocol);
    struct model models[2] = {{0, {0}}, {0, {0}}};
    open_scenario("random steps", protocol, 2048, NULL);
    hand_drop(1);
    for (int64_t event = 0; event < 120; event++) {
        struct model kept[2] = {models[0], models[1]};
        bool drops = chance(&dice, 4);
        bool in_place = event < 20 || chance(&dice, 2);
        if (in_place)
            begin_in_place(1, event);
        else
            begin(1);
        for (uint64_t step = below(&dice, 8); step-- > 0;) {
            uint64_t container = below(&dice, 2);
            random_step(&dice, 1, container, &models[container]);
            CHECK(run_of(1)->verdict == SS_COMPLETED || run_of(1)->verdict == SS_LOG_FULL);
            CHECK(run_of(1)->verdict != SS_COMPLETED || is(1, container, &models[container]));
        }
        drops = drops || run_of(1)->verdict != SS_COMPLETED;
        if (in_place)
            end_in_place(1, drops);
        else if (drops)
            hand_drop(1);
        else
            CHECK(commits(1));
        if (drops)
            memcpy(models, kept, sizeof kept);
        begin_in_place(1, event);
        CHECK(is(1, LIST, &models[0]) && is(1, DEQUE, &models[1]));
        end_in_place(1, false);
    }
    begin(1);
    hand_close();
}

static void four_elements(void)
{
    for (uint64_t i = 0; i < 4; i++)
        insert(0, LIST, i, 10 * i);
}

static void conflicts(enum ss_protocol_kind protocol)
{
    open_scenario("a later run has read behind an insertion", protocol, 256, four_elements);
    CHECK(get(2, LIST, 2) == 20);
    insert(1, LIST, 1, 5);
    CHECK(commits(1) && !commits(2));
    hand_close();

    open_scenario("a later run has read before an insertion", protocol, 256, four_elements);
    CHECK(get(2, LIST, 0) == 0);
    insert(1, LIST, 1, 5);
    CHECK(commits(1) && commits(2));
    hand_close();

    open_scenario("two append", protocol, 256, four_elements);
    insert(2, LIST, 4, 50);
    insert(1, LIST, 4, 40);
    CHECK(commits(1) && !commits(2));
    CHECK(state[SS_HEADER_COUNT] == 5);
    hand_close();
}

static void limits(enum ss_protocol_kind protocol)
{
    open_scenario("a ring grows in place only", protocol, 256, NULL);
    insert(1, DEQUE, 0, 1);
    CHECK(run_of(1)->verdict == SS_LOG_FULL);
    hand_drop(1);
    begin_in_place(1, 0);
    for (uint64_t i = 0; i < 16; i++)
        insert(1, DEQUE, 0, i);
    end_in_place(1, false);
    begin(1);
    ss_sequence_delete(run_of(1), DEQUE, 15, 1, 1);
    insert(1, DEQUE, 0, 16);
    CHECK(commits(1));
    begin(1);
    insert(1, DEQUE, 0, 17);
    CHECK(run_of(1)->verdict == SS_LOG_FULL);
    hand_drop(1);
    begin_in_place(1, 1);
    insert(1, DEQUE, 16, 17);
    CHECK(get(1, DEQUE, 0) == 16 && get(1, DEQUE, 15) == 1 && get(1, DEQUE, 16) == 17);
    end_in_place(1, true);
    CHECK(state[SS_HEADER_WORDS + SS_HEADER_CAPACITY] == 16);
    begin(1);
    hand_close();

    for (uint64_t container = LIST; container <= DEQUE; container++) {
        open_scenario("full", protocol, 256, NULL);
        hand_drop(1);
        begin_in_place(1, 0);
        for (uint64_t i = 0; i < LIMIT; i++)
            insert(1, container, i, i);
        CHECK(run_of(1)->verdict == SS_COMPLETED);
        insert(1, container, 0, 1);
        CHECK(run_of(1)->verdict == SS_RAISED && run_of(1)->raised == SS_FULL);
        end_in_place(1, false);
        begin(1);
        hand_close();
    }

    open_scenario("a run moves more than its log holds", protocol, 8, NULL);
    hand_drop(1);
    begin_in_place(1, 0);
    for (uint64_t i = 0; i < 20; i++)
        insert(1, LIST, i, i);
    end_in_place(1, false);
    begin(1);
    insert(1, LIST, 0, 1);
    CHECK(run_of(1)->verdict == SS_LOG_FULL);
    hand_close();
}

int main(void)
{
    for (int protocol = 0; protocol < 2; protocol++) {
        for (uint64_t seed = 0; seed < 20; seed++)
            at_random(protocol, seed);
        conflicts(protocol);
        limits(protocol);
    }
    puts("sequences: passed");
    return 0;
}
