/* Which of a few literals each of many texts is, compared by their bytes.
 *
 * An operator that asks of a column no more than whether it is one of its own literals needs no codes
 * of the other texts (specstream/columns/unentered.py). */
#ifndef SPECSTREAM_LITERALS_H
#define SPECSTREAM_LITERALS_H

#include <stdint.h>

struct ss_string_column;

/* A place in a table of literals; all zeros: it is free. */
struct ss_literal {
    const char *bytes;
    uint64_t length;
    uint64_t head, tail; /* its first and its last eight bytes, or all of them and zeros */
    int64_t code;
    int32_t is_taken;
};

/* Puts a literal into a table of `places`, a power of two, of which more than half stay free. The
 * bytes have to stay where they are. */
void ss_literals_add(struct ss_literal *table, uint64_t places, const char *bytes, uint64_t length,
                     int64_t code);

/* The number of each text of a column (specstream_strings.h): the code of the literal that it is, `other` where it is none, 0 where it
 * is null. */
void ss_literals_find(const struct ss_literal *table, uint64_t places,
                      const struct ss_string_column *texts, int64_t other, int64_t *numbers);

#endif
