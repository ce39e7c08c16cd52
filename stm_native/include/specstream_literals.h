/* Which of a few literals each of many texts is, compared by their bytes.
 *
 * An operator that asks of a column no more than whether it is one of its own literals needs no codes
 * of the other texts (specstream/columns/unentered.py). */
#ifndef SPECSTREAM_LITERALS_H
#define SPECSTREAM_LITERALS_H

#include <stdint.h>

/* How Arrow keeps texts. */
enum ss_text_form {
    SS_TEXT_OFFSETS_32 = 0, /* string: int32 offsets into `data` */
    SS_TEXT_OFFSETS_64 = 1, /* large_string: int64 offsets */
    SS_TEXT_VIEWS = 2       /* string_view: 16 bytes each, short texts inside, others in `blocks` */
};

/* Arrow's buffers of one array of texts. */
struct ss_texts {
    int32_t form;     /* enum ss_text_form */
    int64_t offset;   /* of the first text in the buffers */
    int64_t count;
    const void *ends; /* offsets or views */
    const char *data;
    const char *const *blocks;
    const uint8_t *valid; /* a bit for each text, clear where it is null; NULL: none is */
};

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

/* The number of each text: the code of the literal that it is, `other` where it is none, 0 where it
 * is null. */
void ss_literals_find(const struct ss_literal *table, uint64_t places, const struct ss_texts *texts,
                      int64_t other, int64_t *numbers);

#endif
