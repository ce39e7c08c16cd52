/* Recorded events on the virtual machine: schedules whose length is worked out by hand.
 *
 * The runtime's own scheduler runs them. Where nothing costs anything, its answer is that of list
 * scheduling with commits that take no time; only looking at the clock takes some, always. */
#include "replay.h"

#include <stdio.h>
#include <string.h>

#include "dice.h"
#include "machine.h"
#include "patience.h"

/* Nanoseconds of a unit: longer than a worker spins, and than a run is called short. */
enum { UNIT = 100000, SLACK = UNIT / 20, PICOSECONDS = 1000 };
enum { MOST = 40, MOST_ACCESSES = 4 * MOST, STATE_WORDS = 8 * (MOST + 1), X = 8 * MOST };

static const char *scenario;
static const struct costs free_of_charge;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("%s: %s:%d: %s", scenario, __FILE__, __LINE__, #condition);                       \
    } while (0)

struct setting {
    int64_t threads, horizon, chunk;
    bool is_eager, is_forced;
};

/* ---- events ---- */

static struct replay_event events[MOST];
static struct replay_access accesses[MOST_ACCESSES];
static uint64_t words[MOST + 1], before[MOST + 1], behind[MOST + 1];
static int64_t event_count, access_count, warm;

static void no_events(void)
{
    event_count = access_count = warm = 0;
    for (uint64_t i = 0; i <= MOST; i++) {
        words[i] = 8 * i; /* a line each */
        before[i] = behind[i] = 0;
    }
}

static struct replay_event *add_event(int64_t units)
{
    CHECK(event_count < MOST);
    struct replay_event *event = &events[event_count++];
    *event = (struct replay_event){.plain = units * UNIT,
                                   .speculative = units * UNIT,
                                   .first = access_count,
                                   .last = access_count};
    return event;
}

/* Of the last event. Those of an event are spread evenly over its time. */
static void add_access(enum replay_kind kind, uint64_t word, uint64_t value)
{
    CHECK(access_count < MOST_ACCESSES);
    accesses[access_count++] =
        (struct replay_access){.byte = 8 * word, .value = value, .size = 8, .kind = kind};
    events[event_count - 1].last = access_count;
    if (kind == REPLAY_STORE)
        behind[word / 8] = value;
}

static struct replay_load load_of(const struct setting *setting, const struct costs *costs)
{
    static const uint64_t region[2] = {0, 0};
    return (struct replay_load){.threads = setting->threads,
                                .horizon = setting->horizon,
                                .chunk = setting->chunk,
                                .is_eager = setting->is_eager,
                                .is_forced = setting->is_forced,
                                .count = event_count,
                                .warm = warm,
                                .read_limit = 64,
                                .redo_limit = 64,
                                .row_limit = 64,
                                .events = events,
                                .accesses = accesses,
                                .state_words = STATE_WORDS,
                                .regions = region,
                                .region_count = 1,
                                .words = words,
                                .before = before,
                                .behind = behind,
                                .word_count = MOST + 1,
                                .costs = (const int64_t *)costs};
}

static struct replay_result replayed(const struct setting *setting, const struct costs *costs)
{
    const struct replay_load load = load_of(setting, costs);
    patience_note(NULL, "%s: %d threads, horizon %d, chunk %d", scenario, (int)setting->threads,
                  (int)setting->horizon, (int)setting->chunk);
    struct replay_result result = replay_run(&load);
    CHECK(result.wrong == 0);
    return result;
}

/* Never sooner, and later only by looking at the clock. */
static bool takes(struct replay_result result, int64_t nanoseconds)
{
    bool does = result.nanoseconds >= nanoseconds && result.nanoseconds < nanoseconds + SLACK;
    if (!does)
        fprintf(stderr, "it takes %.3f units, not %.3f\n", (double)result.nanoseconds / UNIT,
                (double)nanoseconds / UNIT);
    return does;
}

/* ---- schedules ---- */

struct schedule {
    const char *name;
    struct setting setting;
    int64_t expected;   /* units */
    int64_t units[12]; /* of each event; 0: there is none */
};

static const struct schedule schedules[] = {
    {"one core runs one event after the other", {1, 8, 1, false, false}, 6, {1, 2, 3}},
    {"one core, no horizon", {1, 0, 1, false, false}, 6, {1, 2, 3}},
    {"without a horizon others have no part", {3, 0, 1, false, false}, 4, {1, 1, 1, 1}},
    {"two cores share what is alike", {2, 8, 1, false, false}, 3, {1, 1, 1, 1, 1, 1}},
    {"the last event has nobody beside it", {2, 8, 1, false, false}, 3, {1, 1, 1, 1, 1}},
    {"as many cores as events", {5, 8, 1, false, false}, 3, {1, 1, 3, 1, 1}},
    /* The other core runs 1 and 2, and then waits for the head; 3 and 4 follow, and 5. */
    {"a long head, and a horizon of 2", {2, 2, 1, false, false}, 6, {4, 1, 1, 1, 1, 1}},
    /* 1 to 4 run beside it. */
    {"a long head, and horizon enough", {2, 4, 1, false, false}, 5, {4, 1, 1, 1, 1, 1}},
    /* 0 and 1; then 3 and 4 beside 2; then 5 and 6. */
    {"a long event, and a horizon of 2", {2, 2, 1, false, false}, 6, {1, 1, 4, 1, 1, 1, 1}},
    {"a horizon of 1 is one beside the head", {3, 1, 1, false, false}, 3, {1, 1, 1, 1, 1, 1}},
    {"chunks of two on two cores", {2, 4, 2, false, false}, 4, {1, 1, 1, 1, 1, 1}},
    {"one chunk has nobody beside it", {2, 4, 6, false, false}, 6, {1, 1, 1, 1, 1, 1}},
    {"a short last chunk", {2, 4, 2, false, false}, 3, {1, 1, 1, 1, 1}},
};

static void by_hand(const struct schedule *schedule)
{
    scenario = schedule->name;
    no_events();
    for (int i = 0; i < 12 && schedule->units[i] != 0; i++)
        add_event(schedule->units[i]);
    struct setting setting = schedule->setting;
    for (int way = 0; way < 4; way++) {
        setting.is_eager = way & 1;
        setting.is_forced = way & 2;
        struct replay_result result = replayed(&setting, &free_of_charge);
        CHECK(takes(result, schedule->expected * UNIT));
        CHECK(result.dropped == 0);
    }
}

/* Each chunk, in order, by the core that is free first, as soon as it is at most `horizon` beyond the
 * first one that has not committed. */
static int64_t list_schedule(const struct setting *setting)
{
    int64_t idle_from[MOST] = {0}, committed[MOST];
    int64_t number = 0;
    for (int64_t first = 0; first < event_count; first += setting->chunk, number++) {
        int64_t core = 0;
        for (int64_t other = 1; other < setting->threads; other++)
            core = idle_from[other] < idle_from[core] ? other : core;
        int64_t end = idle_from[core];
        if (number > setting->horizon && committed[number - setting->horizon - 1] > end)
            end = committed[number - setting->horizon - 1];
        for (int64_t i = first; i < first + setting->chunk && i < event_count; i++)
            end += events[i].plain;
        idle_from[core] = end;
        committed[number] = number > 0 && committed[number - 1] > end ? committed[number - 1] : end;
    }
    return committed[number - 1];
}

/* Each with accesses to a line of its own, so that nothing conflicts. */
static void draw_events(struct dice *dice, int64_t count)
{
    no_events();
    for (int64_t i = 0; i < count; i++) {
        add_event(1 + (int64_t)below(dice, 6))->row_words = (int64_t)below(dice, 3);
        for (uint64_t left = below(dice, 4); left > 0; left--)
            add_access(chance(dice, 2) ? REPLAY_LOAD : REPLAY_STORE, 8 * (uint64_t)i, roll(dice));
    }
}

static void as_list_scheduling(void)
{
    scenario = "free of charge it is list scheduling";
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct dice dice = dice_for(seed, 0);
        const struct setting setting = {.threads = 1 + (int64_t)below(&dice, 6),
                                        .horizon = (int64_t)below(&dice, 12),
                                        .chunk = 1 + (int64_t)below(&dice, 3),
                                        .is_eager = chance(&dice, 2),
                                        .is_forced = chance(&dice, 2)};
        draw_events(&dice, 1 + (int64_t)below(&dice, MOST));
        struct replay_result result = replayed(&setting, &free_of_charge);
        CHECK(takes(result, list_schedule(&setting)));
        CHECK(result.dropped == 0);
    }
}

/* ---- runs that are not in place, or not the only ones ---- */

static const struct setting two_cores = {.threads = 2, .horizon = 8, .chunk = 1};
static const struct setting three_cores = {.threads = 3, .horizon = 8, .chunk = 1};

static void speculative_runs_take_their_own_time(void)
{
    scenario = "a speculative run takes what was recorded of one";
    no_events();
    for (int i = 0; i < 3; i++)
        add_event(1)->speculative = 2 * UNIT;
    struct replay_result result = replayed(&two_cores, &free_of_charge);
    CHECK(takes(result, 3 * UNIT)); /* 0 in place, 1 beside it, and 2 from then on */
    CHECK(result.speculative_runs == 2 && result.dropped == 0);
    no_events();
    add_event(1);
    add_event(1)->is_dropped = 1;
    result = replayed(&two_cores, &free_of_charge);
    CHECK(takes(result, 2 * UNIT));
    CHECK(result.speculative_runs == 1 && result.dropped == 1);
}

/* The head stores X in the middle of its time; the others read it in the middle of theirs. */
static struct replay_result beside_a_store(const char *name, const struct setting *setting,
                                           int64_t head, const int64_t *units, int readers)
{
    scenario = name;
    no_events();
    add_event(head);
    add_access(REPLAY_STORE, X, 7);
    for (int i = 0; i < readers; i++) {
        add_event(units[i]);
        add_access(REPLAY_LOAD, X, 0);
    }
    return replayed(setting, &free_of_charge);
}

static void conflicts(void)
{
    struct replay_result result;
    result = beside_a_store("what reads behind the store is right", &two_cores, 2,
                            (const int64_t[]){3}, 1);
    CHECK(takes(result, 3 * UNIT));
    CHECK(result.dropped == 0);
    result = beside_a_store("what has finished before the store runs again as the head", &two_cores,
                            3, (const int64_t[]){1}, 1);
    CHECK(takes(result, 4 * UNIT));
    CHECK(result.dropped == 1);
    /* It reads at 1, the store is at 1.5; it ends at 2, and does not wait for 3. */
    result = beside_a_store("what ends behind the store runs again at once", &two_cores, 3,
                            (const int64_t[]){2}, 1);
    CHECK(takes(result, 4 * UNIT));
    CHECK(result.dropped == 1 && result.speculative_runs == 2);
    result = beside_a_store("two that have finished before it run again at one time", &three_cores,
                            4, (const int64_t[]){1, 1}, 2);
    CHECK(takes(result, 5 * UNIT));
    CHECK(result.dropped == 2);
}

/* ---- what costs something ---- */

static void a_wake_up_is_paid(void)
{
    const int64_t wake = 3 * UNIT / 2;
    const struct costs dear = {.wake = wake * PICOSECONDS};
    const struct setting setting = {.threads = 2, .horizon = 2, .chunk = 1};
    scenario = "a wake-up is paid for";
    no_events();
    add_event(1);
    warm = 1; /* the workers sleep when the others begin */
    add_event(4);
    for (int i = 0; i < 5; i++)
        add_event(1);
    CHECK(takes(replayed(&setting, &free_of_charge), 6 * UNIT));
    /* Both wake, and begin 1.5 late. Behind the head at 4 one core runs 3 and 4 until 6; the other
     * is called at 4, wakes at 5.5, and runs 5 until 6.5. Then who sleeps is woken to leave the job, and
     * then who waits for the job. */
    CHECK(takes(replayed(&setting, &dear), wake + 13 * UNIT / 2 + 2 * wake));
    /* On one core there are only the first and the last of these. */
    const struct setting alone = {.threads = 1, .horizon = 2, .chunk = 1};
    CHECK(takes(replayed(&alone, &dear), wake + 9 * UNIT + wake));
}

static void what_is_warm_is_left_out(void)
{
    scenario = "what only warms up is not measured";
    no_events();
    add_event(5);
    add_event(3);
    add_event(2);
    warm = 2;
    CHECK(takes(replayed(&two_cores, &free_of_charge), 2 * UNIT));
    warm = 3;
    CHECK(takes(replayed(&two_cores, &free_of_charge), 0));
}

/* The first half of the events meet in X, which some of them read long before they store to it. */
static void let_them_conflict(void)
{
    for (int64_t i = 0; i < event_count / 2; i++) {
        const struct replay_event *event = &events[i];
        if (event->last - event->first < 2)
            continue;
        accesses[event->first] = (struct replay_access){8 * X, 0, 8, REPLAY_LOAD};
        accesses[event->last - 1] = (struct replay_access){8 * X, (uint64_t)i, 8, REPLAY_STORE};
    }
    memset(behind, 0, sizeof behind);
    for (int64_t i = 0; i < access_count; i++)
        if (accesses[i].kind == REPLAY_STORE)
            behind[accesses[i].byte / 64] = accesses[i].value;
}

static void the_same_again(void)
{
    static const struct costs server = {500,   60000, 10000,   8000,    2000,
                                        6000, 14000, 2000000, 5000000, 2000000};
    uint64_t dropped = 0;
    scenario = "a seed gives the same again";
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct dice dice = dice_for(seed, 1);
        const struct setting setting = {.threads = 2 + (int64_t)below(&dice, 5),
                                        .horizon = 1 + (int64_t)below(&dice, 12),
                                        .chunk = 1 + (int64_t)below(&dice, 2),
                                        .is_eager = chance(&dice, 2)};
        draw_events(&dice, MOST);
        let_them_conflict();
        struct replay_result first = replayed(&setting, &server);
        struct replay_result second = replayed(&setting, &server);
        CHECK(memcmp(&first, &second, sizeof first) == 0);
        CHECK(first.nanoseconds > list_schedule(&setting) && first.transfers > 0);
        dropped += first.dropped;
    }
    CHECK(dropped > 10);
}

/* ---- what is no load ---- */

static int64_t refused(struct replay_load load)
{
    return replay_run(&load).nanoseconds;
}

static void bad_settings(void)
{
    scenario = "a bad setting is refused";
    no_events();
    for (int i = 0; i < 4; i++)
        add_event(1);
    const struct costs negative = {.sleep = -1};
    const struct replay_load good = load_of(&two_cores, &free_of_charge);
    struct replay_load bad[10];
    for (int i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].threads = 0;
    bad[1].threads = -1;
    bad[2].threads = MACHINE_CORES;
    bad[3].horizon = -1;
    bad[4].chunk = 0;
    bad[5].chunk = -1;
    bad[6].warm = 5;
    bad[7].warm = -1;
    bad[8].count = -1;
    bad[9].costs = (const int64_t *)&negative;
    for (int i = 0; i < 10; i++)
        CHECK(refused(bad[i]) == REPLAY_BAD_SETTING);
    CHECK(refused(good) >= 2 * UNIT);
}

static void bad_events(void)
{
    static const struct replay_event bad[] = {{.plain = -1},   {.speculative = -1}, {.first = -1},
                                              {.first = 1},    {.row_words = -1}};
    scenario = "a bad event is refused";
    for (int i = 0; i < 5; i++) {
        no_events();
        add_event(1);
        add_event(0); /* no time is a time */
        *add_event(1) = bad[i];
        add_event(1);
        const struct replay_load load = load_of(&two_cores, &free_of_charge);
        struct replay_result result = replay_run(&load);
        CHECK(result.nanoseconds == REPLAY_BAD_EVENT && result.bad_event == 2);
    }
}

int main(void)
{
    patience_start(60);
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        by_hand(&schedules[i]);
    as_list_scheduling();
    speculative_runs_take_their_own_time();
    conflicts();
    a_wake_up_is_paid();
    what_is_warm_is_left_out();
    the_same_again();
    bad_settings();
    bad_events();
    patience_stop();
    puts("replay: passed");
    return 0;
}
