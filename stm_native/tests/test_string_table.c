/* The string table against a list of its strings: random columns, look-ups and sweeps.
 *
 * String number n is "n" and some letters, so that the list is one of numbers. Two strings have one code: they
 * were found by 2^33 tries. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "patience.h"
#include "specstream_strings.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("seed %" PRIu64 " of %s: line %d: %s", seed, scenario, __LINE__, #condition);     \
    } while (0)
static const char *scenario = "random steps";
static uint64_t seed;

enum { KINDS = 3000, ROWS = 400, TEXT = 220, STEPS = 60, SEEDS = 40 };
static const uint64_t secret[] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
static const char *const same[] = {"f4e2547ac89eee16", "da389dafeeb51fcc"};

static struct ss_string_table *table;
static int64_t codes[KINDS];  /* of each, once it is known */
static bool is_known[KINDS];
static int64_t order[KINDS]; /* those that are in the table, by number */
static int64_t count;
static int64_t next_number, numbers[KINDS];
static uint8_t sweeps, touched[KINDS]; /* sweeps so far, and when each was last added or met */

/* A column, in memory of its own exact size, so that the sanitizer sees what lies outside. */
struct made {
    struct ss_string_column column;
    uint8_t *validity, *places, *data;
    const uint8_t *buffers[1];
};

static void text_of(int64_t kind, char *text)
{
    static const char letters[] = "\xc3\xa4zyxwvutsrqponmlkjihgfedcba";
    int at = sprintf(text, "%" PRId64, kind);
    for (int64_t more = kind % 13 == 0 ? kind % 190 : kind % 17; more > 0; more -= 26)
        at += sprintf(text + at, "%.*s", more > 26 ? 28 : (int)more + 2, letters);
}

static struct made make(int32_t layout, const int64_t *kinds, int64_t rows, int64_t first)
{
    char text[TEXT];
    uint64_t width = layout == SS_VIEWS ? 16 : layout == SS_OFFSETS_32 ? 4 : 8, used = 0;
    struct made made = {.validity = calloc((uint64_t)(first + rows) / 8 + 1, 1),
                        .places = calloc((uint64_t)(first + rows) + 1, width),
                        .data = malloc((uint64_t)rows * TEXT + 1)};
    for (int64_t row = 0; row < rows; row++) {
        uint64_t at = (uint64_t)(first + row), begin = used;
        text[0] = 0;
        if (kinds[row] >= 0) {
            made.validity[at / 8] |= (uint8_t)(1 << at % 8);
            text_of(kinds[row], text);
        }
        uint64_t length = strlen(text);
        memcpy(made.data + used, text, length);
        used += length;
        if (layout == SS_VIEWS) {
            uint32_t view[4] = {(uint32_t)length, 0, 0, (uint32_t)begin};
            memcpy(&view[1], text, length <= 12 ? length : 4);
            memcpy(made.places + 16 * at, view, sizeof view);
        } else {
            uint32_t short_end = (uint32_t)used;
            uint8_t *end = made.places + (at + 1) * width;
            memcpy(end, layout == SS_OFFSETS_32 ? (void *)&short_end : (void *)&used, width);
        }
    }
    made.data = realloc(made.data, used + 1);
    made.column = (struct ss_string_column){layout,        first,     rows,
                                            made.validity, made.places, made.data,
                                            NULL};
    return made;
}

static void drop(struct made *made)
{
    free(made->validity);
    free(made->places);
    free(made->data);
}

/* Some columns in one batch; a third of the rows are null or repeat an earlier one. */
static void add(struct dice *dice)
{
    int64_t kinds[2][ROWS], found[2 * ROWS], rows[2];
    struct made made[2];
    struct ss_string_column columns[2];
    struct ss_texts told;
    for (int c = 0; c < 2; c++) {
        rows[c] = (int64_t)below(dice, ROWS);
        for (int64_t row = 0; row < rows[c]; row++)
            kinds[c][row] = below(dice, 9) == 0 ? -1
                            : row > 0 && below(dice, 4) == 0
                                ? kinds[c][row - 1]
                                : (int64_t)below(dice, KINDS);
        made[c] = make((int32_t)below(dice, 3), kinds[c], rows[c],
                       (int64_t)below(dice, 20));
        made[c].buffers[0] = made[c].data;
        made[c].column.buffers = made[c].buffers;
        columns[c] = made[c].column;
    }
    CHECK(ss_strings_add(table, columns, 2, found, &told) == SS_STRINGS_DONE);
    for (int64_t c = 0, at = 0; c < 2; c++)
        for (int64_t row = 0; row < rows[c]; row++, at++) {
            int64_t kind = kinds[c][row];
            if (kind < 0) {
                CHECK(found[at] == 0);
                continue;
            }
            CHECK(found[at] != 0 && (!is_known[kind] || codes[kind] == found[at]));
            codes[kind] = found[at];
            is_known[kind] = true;
            touched[kind] = sweeps;
            if (numbers[kind] < 0) {
                numbers[kind] = next_number++;
                order[count++] = kind;
            }
        }
    drop(&made[0]);
    drop(&made[1]);
}

static void is_what_it_should_be(void)
{
    char text[TEXT];
    struct ss_texts texts;
    int64_t from = next_number * 2 / 3, begin = 0;
    CHECK(ss_strings_count(table) == count && ss_strings_next(table) == next_number);
    while (begin < count && numbers[order[begin]] < from)
        begin++;
    for (int64_t first = 0;; first = begin) {
        CHECK(ss_strings_since(table, first == 0 ? 0 : from, &texts));
        CHECK(texts.count == count - first);
        for (int64_t i = 0; i < texts.count; i++) {
            text_of(order[first + i], text);
            uint64_t length = (uint64_t)(texts.offsets[i + 1] - texts.offsets[i]);
            CHECK(length == strlen(text) &&
                  memcmp(texts.data + texts.offsets[i], text, length) == 0);
        }
        ss_texts_free(&texts);
        if (first == begin)
            break;
    }
    CHECK(ss_strings_texts(table, codes, KINDS, &texts));
    for (int64_t kind = 0; kind < KINDS; kind++) {
        bool is_there = texts.validity[kind / 8] >> kind % 8 & 1;
        CHECK(is_there == (numbers[kind] >= 0));
        uint64_t length = (uint64_t)(texts.offsets[kind + 1] - texts.offsets[kind]);
        text_of(kind, text);
        CHECK(is_there ? length == strlen(text) &&
                             memcmp(texts.data + texts.offsets[kind], text, length) == 0
                       : length == 0);
    }
    CHECK(texts.null_count == KINDS - count);
    ss_texts_free(&texts);
}

/* What was dropped is told; those that are left are in the order in which they were. */
static void forget(const bool *stays, const int64_t *told, int64_t dropped)
{
    int64_t left = 0, gone = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t kind = order[i];
        if (stays[kind])
            order[left++] = kind;
        else {
            CHECK(told == NULL || told[gone] == codes[kind]);
            numbers[kind] = -1;
            gone++;
        }
    }
    CHECK(gone == dropped);
    count = left;
}

static void sweep(struct dice *dice)
{
    bool stays[KINDS] = {false};
    int64_t words[KINDS], marked = 0, *told;
    uint64_t of = below(dice, 2) == 0 ? 20 : 2;
    int64_t window = (int64_t)below(dice, 4) - 1;
    ss_strings_sweep_begin(table);
    sweeps++;
    for (int64_t kind = 0; kind < KINDS; kind++)
        if (numbers[kind] >= 0 && (uint8_t)(sweeps - 1 - touched[kind]) <= window)
            stays[kind] = true;
    for (int64_t kind = 0; kind < KINDS; kind++)
        if (numbers[kind] >= 0 && below(dice, of) == 0) {
            stays[kind] = true;
            words[marked++] = codes[kind];
        } else if (!is_known[kind])
            words[marked++] = (int64_t)below(dice, KINDS);
    ss_strings_mark(table, words, marked / 2);
    ss_strings_mark(table, words + marked / 2, marked - marked / 2);
    if (below(dice, 3) == 0) {
        /* What is added or met meanwhile stays. */
        char text[TEXT];
        struct ss_texts failed;
        int64_t kind = (int64_t)below(dice, KINDS);
        text_of(kind, text);
        CHECK(ss_strings_add_one(table, text, (int64_t)strlen(text), &codes[kind], &failed) ==
              SS_STRINGS_DONE);
        stays[kind] = is_known[kind] = true;
        touched[kind] = sweeps;
        if (numbers[kind] < 0) {
            numbers[kind] = next_number++;
            order[count++] = kind;
        }
    }
    if (below(dice, 5) == 0) {
        ss_strings_sweep_abandon(table);
        return;
    }
    int64_t dropped = ss_strings_sweep_end(table, window, &told);
    CHECK(dropped >= 0 && (told == NULL) == (dropped == 0));
    forget(stays, told, dropped);
    ss_codes_free(told);
    /* 40 bytes with the number's digits, 190 letters at most, and slots; twice, and the least of each. */
    CHECK(ss_strings_bytes(table) < 2 * (count * (40 + 200 + 2 * 26) + 4096 + 2 * 512));
}

static void sweep_all(void)
{
    ss_strings_sweep_begin(table);
    CHECK(ss_strings_sweep_end(table, -1, NULL) > 0);
    CHECK(ss_strings_count(table) == 0);
}

/* The words that are codes, in their order. */
static void knows(struct dice *dice)
{
    int64_t words[ROWS], known[ROWS], expected = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t kind = (int64_t)below(dice, KINDS);
        words[i] = is_known[kind] ? codes[kind] : kind;
    }
    int64_t found = ss_strings_known(table, words, ROWS, known);
    struct ss_texts texts;
    CHECK(ss_strings_texts(table, words, ROWS, &texts));
    for (int64_t i = 0; i < ROWS; i++)
        if (texts.validity == NULL || (texts.validity[i / 8] >> i % 8 & 1) != 0)
            CHECK(expected < found && known[expected++] == words[i]);
    CHECK(expected == found);
    ss_texts_free(&texts);
}

static bool has(const char *text, int64_t code)
{
    struct ss_texts texts;
    CHECK(ss_strings_texts(table, &code, 1, &texts));
    uint64_t length = strlen(text);
    bool found = texts.null_count == 0 && texts.offsets[1] == (int64_t)length &&
                 memcmp(texts.data, text, length) == 0;
    ss_texts_free(&texts);
    return found;
}

static void told_are(struct ss_texts *told, const char *one, const char *other)
{
    int64_t first = (int64_t)strlen(one), second = other == NULL ? 0 : (int64_t)strlen(other);
    CHECK(told->count == (other == NULL ? 1 : 2) && told->offsets[1] == first);
    CHECK(memcmp(told->data, one, (uint64_t)first) == 0);
    CHECK(other == NULL || (told->offsets[2] == first + second &&
                            memcmp(told->data + first, other, (uint64_t)second) == 0));
    ss_texts_free(told);
}

/* A batch in which something is wrong leaves nothing, however many came before it. */
static void all_or_nothing(int64_t before, bool is_text)
{
    int64_t rows = before + 2, used = 0, code, *offsets = calloc((uint64_t)rows + 1, 8);
    int64_t *found = calloc((uint64_t)rows, 8);
    char *data = malloc((uint64_t)rows * 32);
    struct ss_texts told;
    for (int64_t row = 0; row < rows; row++) {
        if (row < before)
            used += sprintf(data + used, "before%" PRId64, row);
        else if (is_text)
            used += sprintf(data + used, "%s", same[row - before]);
        else
            used += sprintf(data + used, row == before ? "wrong\xff" : "right");
        offsets[row + 1] = used;
    }
    struct ss_string_column column = {SS_OFFSETS_64, 0, rows, NULL, offsets, (uint8_t *)data, NULL};
    int64_t bytes = ss_strings_bytes(table), next = ss_strings_next(table);
    CHECK(ss_strings_add(table, &column, 1, found, &told) ==
          (is_text ? SS_STRINGS_ONE_CODE : SS_STRINGS_NO_UTF8));
    told_are(&told, is_text ? same[0] : "wrong\xff", is_text ? same[1] : NULL);
    CHECK(ss_strings_count(table) == next && ss_strings_next(table) == next);
    if (before == 0)
        CHECK(ss_strings_bytes(table) == bytes);
    CHECK(ss_string_codes(&column, 2, found));
    struct ss_texts texts;
    CHECK(ss_strings_texts(table, found, rows, &texts) && texts.null_count == rows - next);
    ss_texts_free(&texts);
    if (is_text) {
        CHECK(ss_strings_add_one(table, same[0], 16, &code, &told) == SS_STRINGS_DONE);
        CHECK(ss_strings_add_one(table, same[1], 16, &code, &told) == SS_STRINGS_ONE_CODE);
        told_are(&told, same[0], same[1]);
        CHECK(has(same[0], code));
        sweep_all();
        CHECK(ss_strings_add_one(table, same[1], 16, &code, &told) == SS_STRINGS_DONE);
        CHECK(has(same[1], code));
        sweep_all();
    }
    column.count = before;
    CHECK(ss_strings_add(table, &column, 1, found, &told) == SS_STRINGS_DONE);
    CHECK(ss_strings_count(table) == before);
    CHECK(ss_strings_texts(table, found, before, &texts) && texts.null_count == 0);
    ss_texts_free(&texts);
    free(offsets);
    free(found);
    free(data);
}

int main(void)
{
    patience_start(300);
    for (seed = 0; seed < SEEDS; seed++) {
        struct dice dice = {seed};
        table = ss_strings_open(secret);
        count = next_number = 0;
        sweeps = 0;
        for (int64_t kind = 0; kind < KINDS; kind++)
            numbers[kind] = -1;
        for (int step = 0; step < STEPS; step++) {
            patience_note(NULL, "seed %" PRIu64 ", step %d", seed, step);
            uint64_t what = below(&dice, 8);
            if (what < 5)
                add(&dice);
            else if (what < 7)
                sweep(&dice);
            else
                knows(&dice);
            if (step % 6 == 5)
                is_what_it_should_be();
        }
        ss_strings_close(table);
    }
    scenario = "all or nothing";
    for (seed = 0; seed < 8; seed++) {
        static const int64_t before[] = {0, 1, 100, 20000};
        patience_note(NULL, "all or nothing %" PRIu64, seed);
        table = ss_strings_open(secret);
        all_or_nothing(before[seed / 2], seed % 2 == 0);
        ss_strings_close(table);
    }
    patience_stop();
    printf("string table: %d random ones as lists of their strings\n", SEEDS);
    return 0;
}
