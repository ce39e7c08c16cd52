/* The strings of a column as Arrow lays it out.
 *
 * Arrow Columnar Format, "Variable-size Binary" and its views: bit 0 of the validity is that of element 0; a
 * view of up to twelve bytes holds them itself, and that of others the number of a buffer and the offset
 * therein. */
#ifndef SPECSTREAM_STRING_COLUMN_H
#define SPECSTREAM_STRING_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

#include "blake2b.h"
#include "specstream_strings.h"

struct ss_view {
    int32_t length;
    union {
        uint8_t inlined[12];
        struct {
            uint8_t prefix[4];
            int32_t buffer;
            int32_t offset;
        };
    };
};

static inline bool ss_column_is_null(const struct ss_string_column *column, int64_t row)
{
    int64_t at = column->first + row;
    return column->validity != NULL && (column->validity[at >> 3] >> (at & 7) & 1) == 0;
}

static inline struct ss_octets ss_column_text(const struct ss_string_column *column, int64_t row)
{
    int64_t at = column->first + row;
    if (column->layout == SS_OFFSETS_32) {
        const int32_t *offsets = (const int32_t *)column->places + at;
        return (struct ss_octets){column->data + offsets[0], (uint64_t)(offsets[1] - offsets[0])};
    }
    if (column->layout == SS_OFFSETS_64) {
        const int64_t *offsets = (const int64_t *)column->places + at;
        return (struct ss_octets){column->data + offsets[0], (uint64_t)(offsets[1] - offsets[0])};
    }
    const struct ss_view *view = (const struct ss_view *)column->places + at;
    const uint8_t *bytes = view->length <= (int32_t)sizeof view->inlined
                               ? view->inlined
                               : column->buffers[view->buffer] + view->offset;
    return (struct ss_octets){bytes, (uint64_t)view->length};
}

#endif
