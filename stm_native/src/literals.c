/* Which literal a text is: open addressing by its length, its first and its last eight bytes. Those
 * are all bytes of a text of up to sixteen. No stranger chooses the literals, which stand in the
 * operator, so the table needs no secret: a text that is none of them meets few places whatever it
 * is. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "specstream_literals.h"

/* A view of Arrow has its length, then all bytes of a short text; of others the first four, and where
 * all of them are: the number of a block, and the place in that. */
enum { WORD = 8, VIEW = 16, BYTES = 4, INSIDE = 12, BLOCK = 8, PLACE = 12 };

struct text {
    const char *bytes;
    uint64_t length;
};

static inline uint64_t word_at(const char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Of fewer than eight bytes. In steps of a known size, which take no call. */
static inline uint64_t short_word(const char *bytes, uint64_t length)
{
    uint64_t word = 0;

    if (length >= 4) {
        uint32_t first, last;
        memcpy(&first, bytes, sizeof first);
        memcpy(&last, bytes + length - sizeof last, sizeof last);
        return first | (uint64_t)last << 32; /* they may overlap: the length is compared as well */
    }
    for (uint64_t at = 0; at < length; at++)
        word |= (uint64_t)(unsigned char)bytes[at] << (8 * at);
    return word;
}

static inline uint64_t head_of(struct text text)
{
    return text.length < WORD ? short_word(text.bytes, text.length) : word_at(text.bytes);
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
    const struct text text = {bytes, length};
    const uint64_t head = head_of(text), tail = tail_of(text);
    uint64_t at = place_of(head, tail, length, places);

    while (table[at].is_taken)
        at = (at + 1) & (places - 1);
    table[at] = (struct ss_literal){bytes, length, head, tail, code, 1};
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

static inline int64_t number_of(const struct ss_literal *table, uint64_t places, uint64_t lengths,
                                struct text text, int64_t other)
{
    const uint64_t length = text.length;

    if (!(lengths >> (length < 63 ? length : 63) & 1))
        return other;
    const uint64_t head = head_of(text), tail = tail_of(text);
    for (uint64_t at = place_of(head, tail, length, places); table[at].is_taken;
         at = (at + 1) & (places - 1)) {
        const struct ss_literal *one = &table[at];
        if (one->head == head && one->tail == tail && one->length == length &&
            (length <= 2 * WORD || memcmp(one->bytes, text.bytes, length) == 0))
            return one->code;
    }
    return other;
}

/* Buffers of a stream may lie anywhere, so their numbers are copied. */
static inline int32_t int32_at(const char *at)
{
    int32_t number;

    memcpy(&number, at, sizeof number);
    return number;
}

static inline int64_t int64_at(const char *at)
{
    int64_t number;

    memcpy(&number, at, sizeof number);
    return number;
}

static inline struct text text_at(const struct ss_texts *texts, int32_t form, int64_t at)
{
    if (form == SS_TEXT_VIEWS) {
        const char *view = (const char *)texts->ends + at * VIEW;
        const int32_t length = int32_at(view);
        const char *bytes = length <= INSIDE
                                ? view + BYTES
                                : texts->blocks[int32_at(view + BLOCK)] + int32_at(view + PLACE);
        return (struct text){bytes, (uint64_t)length};
    }
    if (form == SS_TEXT_OFFSETS_32) {
        const char *ends = (const char *)texts->ends + at * 4;
        const int32_t begin = int32_at(ends);
        return (struct text){texts->data + begin, (uint64_t)(int32_at(ends + 4) - begin)};
    }
    const char *ends = (const char *)texts->ends + at * 8;
    const int64_t begin = int64_at(ends);
    return (struct text){texts->data + begin, (uint64_t)(int64_at(ends + 8) - begin)};
}

static inline bool is_null(const uint8_t *valid, int64_t at)
{
    return valid != NULL && !(valid[at >> 3] >> (at & 7) & 1);
}

/* A loop of its own for each form, which the compiler makes of it. */
static inline void find_all(const struct ss_literal *table, uint64_t places,
                            const struct ss_texts *texts, int32_t form, int64_t other,
                            int64_t *numbers)
{
    const uint64_t lengths = lengths_in(table, places);

    for (int64_t row = 0; row < texts->count; row++) {
        const int64_t at = texts->offset + row;
        numbers[row] = is_null(texts->valid, at)
                           ? 0
                           : number_of(table, places, lengths, text_at(texts, form, at), other);
    }
}

void ss_literals_find(const struct ss_literal *table, uint64_t places, const struct ss_texts *texts,
                      int64_t other, int64_t *numbers)
{
    switch (texts->form) {
    case SS_TEXT_OFFSETS_32:
        find_all(table, places, texts, SS_TEXT_OFFSETS_32, other, numbers);
        break;
    case SS_TEXT_OFFSETS_64:
        find_all(table, places, texts, SS_TEXT_OFFSETS_64, other, numbers);
        break;
    default:
        find_all(table, places, texts, SS_TEXT_VIEWS, other, numbers);
    }
}
