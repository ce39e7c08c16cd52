/* Literals found among texts: of every length, in each of Arrow's forms, in buffers that end with the
 * last text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "specstream_literals.h"
#include "specstream_strings.h"

enum { LONGEST = 70, COUNT = 2 * LONGEST, PLACES = 512, OTHER = 7 };

static int failures;

#define CHECK(holds)                                                                               \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            failures++;                                                                            \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #holds);                                     \
        }                                                                                          \
    } while (0)

static struct ss_literal table[PLACES];
static char literals[LONGEST][LONGEST];

/* Text n has n / 2 bytes; every second one is the literal of that length, the others differ from it in
 * one byte, each in another place. */
static size_t length_of(int at)
{
    return (size_t)(at / 2);
}

static void write_text(int at, char *bytes)
{
    const size_t length = length_of(at);

    memcpy(bytes, literals[length], length);
    if (at % 2 && length > 0)
        bytes[(size_t)at * 7 % length] ^= 1;
}

static int64_t expected(int at)
{
    return at % 2 && length_of(at) > 0 ? OTHER : 1000 + (int64_t)length_of(at);
}

static void check(const struct ss_string_column *texts, const char *form)
{
    int64_t numbers[COUNT];

    ss_literals_find(table, PLACES, texts, OTHER, numbers);
    for (int at = 0; at < texts->count; at++) {
        const int row = at + (int)texts->first;
        const int64_t wanted = texts->validity != NULL && row % 3 == 0 ? 0 : expected(row);
        if (numbers[at] != wanted)
            printf("%s, text %d: %ld\n", form, row, (long)numbers[at]);
        CHECK(numbers[at] == wanted);
    }
}

static void with_offsets(int32_t form, size_t width)
{
    size_t total = 0;
    for (int at = 0; at < COUNT; at++)
        total += length_of(at);
    /* To the byte: a sanitizer sees what reads beyond the end. */
    char *data = malloc(total), *ends = malloc((COUNT + 1) * width);
    uint8_t *valid = malloc((COUNT + 7) / 8);
    int64_t end = 0;
    memset(valid, 0, (COUNT + 7) / 8);
    for (int at = 0; at <= COUNT; at++) {
        const int32_t narrow = (int32_t)end;
        memcpy(ends + (size_t)at * width, width == 4 ? (const void *)&narrow : &end, width);
        if (at == COUNT)
            break;
        write_text(at, data + end);
        end += (int64_t)length_of(at);
        if (at % 3)
            valid[at / 8] |= (uint8_t)(1 << at % 8);
    }
    struct ss_string_column texts = {form, 0, COUNT, NULL, ends, (const uint8_t *)data, NULL};
    check(&texts, "offsets");
    texts.validity = valid;
    check(&texts, "with nulls");
    texts.first = 5;
    texts.count = COUNT - 9;
    check(&texts, "a slice with nulls");
    free(data);
    free(ends);
    free(valid);
}

static void with_views(void)
{
    char *views = calloc(COUNT, 16), *block = malloc(COUNT * LONGEST);
    const uint8_t *blocks[2] = {NULL, (const uint8_t *)block};
    int32_t end = 0;

    for (int at = 0; at < COUNT; at++) {
        char bytes[LONGEST], *view = views + 16 * (size_t)at;
        const int32_t length = (int32_t)length_of(at), second = 1;
        write_text(at, bytes);
        memcpy(view, &length, 4);
        memcpy(view + 4, bytes, length <= 12 ? (size_t)length : 4);
        if (length > 12) {
            memcpy(view + 8, &second, 4);
            memcpy(view + 12, &end, 4);
            memcpy(block + end, bytes, (size_t)length);
            end += length;
        }
    }
    const struct ss_string_column texts = {SS_VIEWS, 3, COUNT - 3, NULL, views, NULL, blocks};
    check(&texts, "views");
    free(views);
    free(block);
}

/* Many that differ only in the middle have one place in the table. */
static void in_one_place(void)
{
    static struct ss_literal crowded[64];
    static char bytes[20][40];

    for (int at = 0; at < 20; at++) {
        memset(bytes[at], 'x', sizeof bytes[at]);
        bytes[at][20] = (char)('a' + at);
        ss_literals_add(crowded, 64, bytes[at], sizeof bytes[at], 100 + at);
    }
    char text[40];
    for (int at = 0; at < 26; at++) {
        const int32_t ends[2] = {0, sizeof text};
        const struct ss_string_column one = {SS_OFFSETS_32, 0, 1, NULL, ends, (const uint8_t *)text, NULL};
        int64_t number;
        memset(text, 'x', sizeof text);
        text[20] = (char)('a' + at);
        ss_literals_find(crowded, 64, &one, OTHER, &number);
        CHECK(number == (at < 20 ? 100 + at : OTHER));
    }
}

/* Few and short ones are compared with each; the same must come out. */
static void few_of_them(void)
{
    static const char *const words[] = {"",        "B",        "BU",
                                        "BUY",     "EIGHT888", "SIXTEEN-bytes-16",
                                        "SELLING"};
    enum { WORDS = sizeof words / sizeof *words };
    struct ss_literal few[16] = {{0}};

    for (int at = 0; at < WORDS; at++)
        ss_literals_add(few, 16, words[at], strlen(words[at]), 10 + at);
    for (int at = 0; at < WORDS; at++)
        for (size_t changed = 0; changed <= strlen(words[at]); changed++) {
            const int32_t length = (int32_t)strlen(words[at]), ends[2] = {0, length};
            char *text = malloc((size_t)length);
            const struct ss_string_column one = {SS_OFFSETS_32, 0, 1, NULL, ends, (const uint8_t *)text, NULL};
            int64_t number;
            memcpy(text, words[at], (size_t)length);
            if (changed < (size_t)length)
                text[changed] ^= 1;
            ss_literals_find(few, 16, &one, OTHER, &number);
            CHECK(number == (changed < (size_t)length ? OTHER : 10 + at));
            free(text);
        }
}

int main(void)
{
    for (int length = 0; length < LONGEST; length++) {
        for (int at = 0; at < length; at++)
            literals[length][at] = (char)('a' + (at * 31 + length) % 26);
        ss_literals_add(table, PLACES, literals[length], (uint64_t)length, 1000 + length);
    }
    with_offsets(SS_OFFSETS_32, 4);
    with_offsets(SS_OFFSETS_64, 8);
    with_views();
    in_one_place();
    few_of_them();
    if (failures == 0)
        printf("literals: found in each form\n");
    return failures != 0;
}
