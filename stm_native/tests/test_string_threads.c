/* A string table under threads: some add, some look up without a lock, and one sweeps.
 *
 * String k of a thread is "thread k". Whoever looks up a code finds its text or nothing, and its text where
 * nobody may drop it: the first strings of each thread are marked by every sweep. So it is with who compares
 * them, as compiled code does. What was added while
 * a sweep ran, or met again, is there until the next sweep begins. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/engine.h"
#include "core/worker.h"
#include "dice.h"
#include "patience.h"
#include "processor/fault.h"
#include "specstream_strings.h"

enum { ADDERS = 2, READERS = 2, STRINGS = 12000, KEPT = 240, ROWS = 60, LENGTH = 20, SWEEPS = 60 };

static const uint64_t secret[] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
static struct ss_string_table *table;
static struct ss_engine engine;
static int64_t codes[ADDERS][STRINGS];
static _Atomic int64_t done[ADDERS];
static _Atomic int64_t sweeps; /* three times: before it begins, when it has begun, and has ended */
static _Atomic int adding = ADDERS;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("line %d: %s", __LINE__, #condition);                                             \
    } while (0)

static void text_of(int64_t thread, int64_t kind, char *text)
{
    sprintf(text, "%02" PRId64 "%018" PRId64, thread, kind);
}

/* Whether the codes of [first, first + count) are there, each with its own text. */
static bool are_there(int64_t thread, int64_t first, int64_t count, bool all)
{
    char text[LENGTH + 1];
    struct ss_texts texts;
    CHECK(ss_strings_texts(table, &codes[thread][first], count, &texts));
    for (int64_t i = 0; i < count; i++) {
        if ((texts.validity[i / 8] >> i % 8 & 1) == 0)
            continue;
        text_of(thread, first + i, text);
        CHECK(texts.offsets[i + 1] - texts.offsets[i] == LENGTH);
        CHECK(memcmp(texts.data + texts.offsets[i], text, LENGTH) == 0);
    }
    bool found = texts.null_count == 0;
    ss_texts_free(&texts);
    return found || !all;
}

static void add(int64_t thread, int64_t first, int64_t count, int64_t *found)
{
    char data[ROWS * LENGTH + 1];
    int32_t offsets[ROWS + 1] = {0};
    struct ss_texts told;
    for (int64_t i = 0; i < count; i++) {
        text_of(thread, first + i, data + LENGTH * i);
        offsets[i + 1] = (int32_t)(LENGTH * (i + 1));
    }
    struct ss_string_column column = {SS_OFFSETS_32, 0, count, NULL, offsets, (uint8_t *)data, NULL};
    CHECK(ss_strings_add(table, &column, 1, found, &told) == SS_STRINGS_DONE);
}

static void *adder(void *argument)
{
    int64_t thread = (int64_t)(intptr_t)argument, found[ROWS];
    struct dice dice = {(uint64_t)thread};
    for (int64_t first = KEPT; first < STRINGS; first += ROWS) {
        /* New ones, and some from before, which may have gone. These are there afterwards, unless a sweep
         * has begun or ended. */
        add(thread, first, ROWS, &codes[thread][first]);
        atomic_store(&done[thread], first + ROWS);
        int64_t before = (int64_t)below(&dice, (uint64_t)first + 1);
        int64_t sweep = atomic_load(&sweeps);
        add(thread, before, ROWS, found);
        CHECK(memcmp(found, &codes[thread][before], sizeof found) == 0);
        if (!are_there(thread, before, ROWS, true))
            CHECK(sweep % 3 == 1 || atomic_load(&sweeps) != sweep);
    }
    atomic_fetch_sub(&adding, 1);
    return NULL;
}

/* As compiled code compares strings, of the worker whose thread this is. */
static void compare(struct dice *dice)
{
    int64_t threads[2], kinds[2];
    for (int i = 0; i < 2; i++) {
        threads[i] = (int64_t)below(dice, ADDERS);
        kinds[i] = (int64_t)below(dice, KEPT);
    }
    int64_t one = codes[threads[0]][kinds[0]], other = codes[threads[1]][kinds[1]];
    int64_t wanted = threads[0] != threads[1] ? threads[0] - threads[1] : kinds[0] - kinds[1];
    int64_t found = ss_text_order(one, other);
    CHECK((found > 0) - (found < 0) == (wanted > 0) - (wanted < 0));
    CHECK(ss_text_length(one) == LENGTH);
    CHECK(ss_text_contains(one, other) == (wanted == 0) && ss_text_starts(one, one) == 1);
    CHECK(ss_text_ends(one, 0) == 1 && ss_text_order(one, 0) > 0 && ss_text_length(0) == 0);
}

static int64_t code_of(const char *text)
{
    int64_t code;
    struct ss_texts told;
    CHECK(ss_strings_add_one(table, text, (int64_t)strlen(text), &code, &told) == SS_STRINGS_DONE);
    return code;
}

/* Strings of different lengths, one in the other or not, and letters of several bytes. */
static void look_at_parts(void)
{
    static struct ss_worker worker;
    worker.engine = &engine;
    CHECK(ss_fault_open_thread(&worker.containment));
    int64_t whole = code_of("ab\xc3\xa4z"), start = code_of("ab"), end = code_of("\xc3\xa4z");
    int64_t letter = code_of("\xc3\xa4"), none = code_of("");
    CHECK(ss_text_starts(whole, start) && !ss_text_starts(whole, end) && !ss_text_starts(start, whole));
    CHECK(ss_text_ends(whole, end) && !ss_text_ends(whole, start) && !ss_text_ends(end, whole));
    CHECK(ss_text_contains(whole, letter) && !ss_text_contains(start, letter));
    CHECK(ss_text_length(whole) == 4 && ss_text_length(letter) == 1 && ss_text_length(none) == 0);
    CHECK(ss_text_order(start, whole) < 0 && ss_text_order(whole, start) > 0);
    CHECK(ss_text_order(letter, whole) > 0 && ss_text_order(none, letter) < 0);
    CHECK(ss_text_order(none, 0) == 0 && ss_text_starts(none, 0) && ss_text_contains(0, none));
    ss_fault_close_thread(&worker.containment);
}

static void *reader(void *argument)
{
    struct dice dice = {(uint64_t)(intptr_t)argument + 100};
    static struct ss_worker workers[READERS];
    struct ss_worker *own = &workers[(intptr_t)argument];
    own->engine = &engine;
    CHECK(ss_fault_open_thread(&own->containment));
    while (atomic_load(&adding) > 0) {
        int64_t thread = (int64_t)below(&dice, ADDERS);
        int64_t end = atomic_load(&done[thread]);
        if (end == 0)
            continue;
        CHECK(are_there(thread, 0, KEPT < end ? KEPT : end, true));
        int64_t first = (int64_t)below(&dice, (uint64_t)end);
        are_there(thread, first, end - first < ROWS ? end - first : ROWS, false);
        compare(&dice);
    }
    ss_fault_close_thread(&own->containment);
    return NULL;
}

static void *sweeper(void *argument)
{
    int64_t words[ADDERS * KEPT], *told;
    int number = 0;
    while (atomic_load(&adding) > 0 || number < 2) {
        int64_t count = 0;
        atomic_fetch_add(&sweeps, 1);
        ss_strings_sweep_begin(table);
        atomic_fetch_add(&sweeps, 1);
        for (int thread = 0; thread < ADDERS; thread++) {
            int64_t end = atomic_load(&done[thread]);
            for (int64_t kind = 0; kind < KEPT && kind < end; kind++)
                words[count++] = codes[thread][kind];
        }
        ss_strings_mark(table, words, count);
        CHECK(ss_strings_sweep_end(table, -1, &told) >= 0);
        ss_codes_free(told);
        atomic_fetch_add(&sweeps, 1);
        number++;
    }
    *(int *)argument = number;
    return NULL;
}

int main(void)
{
    pthread_t threads[ADDERS + READERS + 1];
    int number = 0;
    patience_start(300);
    patience_note(NULL, "a string table under threads");
    table = ss_strings_open(secret);
    CHECK(ss_fault_open());
    ss_engine_use_strings(&engine, table);
    for (int64_t i = 0; i < ADDERS; i++) {
        for (int64_t first = 0; first < KEPT; first += ROWS)
            add(i, first, ROWS, &codes[i][first]);
        atomic_store(&done[i], KEPT);
    }
    for (intptr_t i = 0; i < ADDERS; i++)
        pthread_create(&threads[i], NULL, adder, (void *)i);
    for (intptr_t i = 0; i < READERS; i++)
        pthread_create(&threads[ADDERS + i], NULL, reader, (void *)i);
    pthread_create(&threads[ADDERS + READERS], NULL, sweeper, &number);
    for (int i = 0; i < ADDERS + READERS + 1; i++)
        pthread_join(threads[i], NULL);
    look_at_parts();
    CHECK(ss_strings_next(table) >= ADDERS * STRINGS);
    CHECK(ss_strings_count(table) >= ADDERS * KEPT && ss_strings_count(table) < ADDERS * STRINGS);
    CHECK(are_there(0, 0, KEPT, true) && are_there(1, 0, KEPT, true));
    ss_strings_close(table);
    patience_stop();
    printf("string table: %d threads, %d sweeps\n", ADDERS + READERS + 1, number);
    return 0;
}
