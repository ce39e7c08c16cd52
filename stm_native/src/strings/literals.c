/* Which literal a text is: open addressing by its length, its first and its last eight bytes. Those
 * are all bytes of a text of up to sixteen. No stranger chooses the literals, which stand in the
 * operator, so the table needs no secret: a text that is none of them meets few places whatever it
 * is. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "specstream_literals.h"
#include "specstream_strings.h"
#include "strings/octets.h"
#include "strings/string_column.h"

enum { FEW = 8, WORD = 8 };

struct text {
    const uint8_t *bytes;
    uint64_t length;
    bool has_word; /* eight bytes may be read, however long it is */
};

static inline uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline uint64_t head_of(struct text text)
{
    const bool is_short = text.length < WORD;
    uint64_t word = 0;

    if (text.has_word || !is_short) {
        word = word_at(text.bytes);
        return is_short ? word & ((UINT64_C(1) << 8 * text.length) - 1) : word;
    }
    for (uint64_t at = 0; at < text.length; at++)
        word |= (uint64_t)text.bytes[at] << (8 * at);
    return word;
}

static inline uint64_t tail_of(struct text text)
{
    return text.length <= WORD ? 0 : word_at(text.bytes + text.length - WORD);
}

static inline uint64_t place_of(uint64_t head, uint64_t tail, uint64_t length, uint64_t places)
{
    const uint64_t mixed = (head ^ (tail * UINT64_C(0x9E3779B97F4A7C15)) ^ length) *
                           UINT64_C(0xD2E7470EE14C6C93);

    return (mixed >> 32) & (places - 1);
}

void ss_literals_add(struct ss_literal *table, uint64_t places, const char *bytes, uint64_t length,
                     int64_t code)
{
    const struct text text = {(const uint8_t *)bytes, length, false};
    const uint64_t head = head_of(text), tail = tail_of(text);
    uint64_t at = place_of(head, tail, length, places);

    while (table[at].is_taken)
        at = (at + 1) & (places - 1);
    table[at] = (struct ss_literal){bytes, length, head, tail, code, 1};
}

/* Literals of up to sixteen bytes that are so few that a text is compared with each: which one it is, if
 * any, is no branch that a processor would have to guess. */
struct few {
    struct ss_literal literals[FEW];
    int count; /* FEW + 1: they are more, or longer */
};

static struct few few_of(const struct ss_literal *table, uint64_t places)
{
    struct few few = {.count = 0};

    for (uint64_t at = 0; at < places; at++) {
        if (!table[at].is_taken)
            continue;
        if (few.count == FEW || table[at].length > 2 * WORD) {
            few.count = FEW + 1;
            break;
        }
        few.literals[few.count++] = table[at];
    }
    return few;
}

static inline int64_t number_among(const struct few *few, struct text text, int64_t other)
{
    const uint64_t head = head_of(text), tail = tail_of(text);
    int64_t number = other;

    for (int at = 0; at < few->count; at++) {
        const struct ss_literal *one = &few->literals[at];
        const uint64_t differs =
            (one->head ^ head) | (one->tail ^ tail) | (one->length ^ text.length);
        number = differs ? number : one->code;
    }
    return number;
}

/* Bit n is set if a literal has n bytes; the last bit stands for all that are longer. */
static uint64_t lengths_in(const struct ss_literal *table, uint64_t places)
{
    uint64_t lengths = 0;

    for (uint64_t at = 0; at < places; at++)
        if (table[at].is_taken)
            lengths |= UINT64_C(1) << (table[at].length < 63 ? table[at].length : 63);
    return lengths;
}

static inline int64_t number_in(const struct ss_literal *table, uint64_t places, struct text text,
                                int64_t other)
{
    const uint64_t head = head_of(text), tail = tail_of(text), length = text.length;

    for (uint64_t at = place_of(head, tail, length, places); table[at].is_taken;
         at = (at + 1) & (places - 1)) {
        const struct ss_literal *one = &table[at];
        if (one->head == head && one->tail == tail && one->length == length &&
            (length <= 2 * WORD || memcmp(one->bytes, text.bytes, length) == 0))
            return one->code;
    }
    return other;
}

static inline struct text text_at(const struct ss_string_column *column, int32_t layout,
                                  int64_t row, const uint8_t *end)
{
    const struct ss_octets octets = ss_text_in(column, layout, row);
    const bool has_word = layout == SS_VIEWS || end - octets.bytes >= WORD;

    return (struct text){octets.bytes, octets.length, has_word};
}

/* Behind the last byte of the last text. */
static const uint8_t *end_of(const struct ss_string_column *column, int32_t layout)
{
    if (layout == SS_VIEWS || column->count == 0)
        return column->data;
    const struct ss_octets last = ss_text_in(column, layout, column->count - 1);
    return last.bytes + last.length;
}

/* A loop of its own for each layout, with nulls and without, which the compiler makes of it. */
__attribute__((always_inline)) static inline void
find_all(const struct ss_literal *table, uint64_t places, const struct ss_string_column *column,
         int32_t layout, bool has_nulls, int64_t other, int64_t *numbers)
{
    const uint64_t lengths = lengths_in(table, places);
    const struct few few = few_of(table, places);
    const uint8_t *end = end_of(column, layout);

    for (int64_t row = 0; row < column->count; row++) {
        if (has_nulls && ss_column_is_null(column, row)) {
            numbers[row] = 0;
            continue;
        }
        const struct text text = text_at(column, layout, row, end);
        if (!(lengths >> (text.length < 63 ? text.length : 63) & 1))
            numbers[row] = other;
        else if (few.count <= FEW)
            numbers[row] = number_among(&few, text, other);
        else
            numbers[row] = number_in(table, places, text, other);
    }
}

void ss_literals_find(const struct ss_literal *table, uint64_t places,
                      const struct ss_string_column *texts, int64_t other, int64_t *numbers)
{
    const bool has_nulls = texts->validity != NULL;

    if (texts->layout == SS_VIEWS)
        find_all(table, places, texts, SS_VIEWS, has_nulls, other, numbers);
    else if (texts->layout == SS_OFFSETS_64)
        find_all(table, places, texts, SS_OFFSETS_64, has_nulls, other, numbers);
    else if (has_nulls)
        find_all(table, places, texts, SS_OFFSETS_32, true, other, numbers);
    else
        find_all(table, places, texts, SS_OFFSETS_32, false, other, numbers);
}
