/* Elements narrower than a word.
 *
 * The unit of the logs, of the records and of all atomic accesses is the word; several elements of 1,
 * 2 or 4 bytes may lie in one. An element's log entry names its word and a mask of bytes, so that
 * under protocol `value` neighbours in one word are no conflict: validation compares, and
 * publication writes, what the mask says and nothing else.
 *
 * No thread ever accesses less than a word that others access at the same time. A speculator loads
 * the word and takes its element out. The head stores the whole word with one element changed: it
 * is the only writer, so nothing can come between its load and its store. This keeps us clear of
 * atomic accesses of different sizes to one place, of which the memory model says nothing.
 *
 * A word whose elements are narrow is never accessed as a whole, nor in elements of another size:
 * so a redo entry holds either all bytes of an element or none, and an entry of a whole word
 * is never merged with. */
#ifndef SPECSTREAM_NARROW_H
#define SPECSTREAM_NARROW_H

#include <stdint.h>

/* Byte i of a word is bits 8i to 8i+7. Compiled code and the Python views assume it as well. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "only little-endian processors");

/* One element. */
struct ss_unit {
    uint64_t word;
    uint32_t bytes; /* which bytes of the word, as in struct ss_read; 0: all of it */
    uint32_t shift; /* of its lowest bit */
};

static inline struct ss_unit ss_unit_at(uint64_t byte, uint64_t size)
{
    if (size == 8)
        return (struct ss_unit){byte / 8, 0, 0};
    uint32_t first = (uint32_t)(byte % 8);
    return (struct ss_unit){byte / 8, ((UINT32_C(1) << size) - 1) << first, 8 * first};
}

/* The bits of the bytes in a mask: of 0x05 0x0000000000ff00ff, of 0 all. */
static inline uint64_t ss_bits_of(uint32_t bytes)
{
    if (bytes == 0)
        return UINT64_MAX;
    /* Into byte i its own bit i; then any bit into the topmost one, and that into the whole byte. */
    uint64_t own = bytes * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    uint64_t top = own + UINT64_C(0x7f7f7f7f7f7f7f7f);
    return (top >> 7 & UINT64_C(0x0101010101010101)) * 0xff;
}

/* `word` with the bytes of a mask taken from `value`. */
static inline uint64_t ss_merge(uint64_t word, uint32_t bytes, uint64_t value)
{
    uint64_t bits = ss_bits_of(bytes);
    return (word & ~bits) | (value & bits);
}

/* The element in a word. */
static inline uint64_t ss_extract(uint64_t word, struct ss_unit unit)
{
    return (word & ss_bits_of(unit.bytes)) >> unit.shift;
}

#endif
