/* The strings of a column as Arrow lays it out.
 *
 * Arrow Columnar Format, "Variable-size Binary" and its views: bit 0 of the validity is that of element 0; a
 * view of up to twelve bytes holds them itself, and that of others the number of a buffer and the offset
 * therein. */
#ifndef SPECSTREAM_STRING_COLUMN_H
#define SPECSTREAM_STRING_COLUMN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "specstream_strings.h"
#include "strings/octets.h"

enum { SS_VIEW_BYTES = 16, SS_INLINED_BYTES = 12 };

static inline bool ss_column_is_null(const struct ss_string_column *column, int64_t row)
{
    int64_t at = column->first + row;
    return column->validity != NULL && (column->validity[at >> 3] >> (at & 7) & 1) == 0;
}

/* Buffers of a stream may lie anywhere, so their numbers are copied. */
static inline int32_t ss_int32_at(const uint8_t *at)
{
    int32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static inline int64_t ss_int64_at(const uint8_t *at)
{
    int64_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

/* Of a column whose layout is known: loops of one layout ask nothing for each text. */
static inline struct ss_octets ss_text_in(const struct ss_string_column *column, int32_t layout,
                                          int64_t row)
{
    const uint8_t *places = column->places;
    int64_t at = column->first + row, begin, end;
    if (layout == SS_VIEWS) {
        const uint8_t *view = places + at * SS_VIEW_BYTES;
        int32_t length = ss_int32_at(view);
        const uint8_t *bytes = length <= SS_INLINED_BYTES
                                   ? view + 4
                                   : column->buffers[ss_int32_at(view + 8)] + ss_int32_at(view + 12);
        return (struct ss_octets){bytes, (uint64_t)length};
    }
    if (layout == SS_OFFSETS_32) {
        begin = ss_int32_at(places + 4 * at);
        end = ss_int32_at(places + 4 * at + 4);
    } else {
        begin = ss_int64_at(places + 8 * at);
        end = ss_int64_at(places + 8 * at + 8);
    }
    return (struct ss_octets){column->data + begin, (uint64_t)(end - begin)};
}

static inline struct ss_octets ss_column_text(const struct ss_string_column *column, int64_t row)
{
    return ss_text_in(column, column->layout, row);
}

#endif
