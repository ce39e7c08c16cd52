/* Strings as 64-bit codes, and the table that turns codes into strings again.
 *
 * A code is the first eight bytes of BLAKE2b of the UTF-8 text, as a little-endian number; 1 where that
 * is 0, which stands for no string. Columns come as Arrow lays them out, of which nothing else is known
 * here. See src/strings/string_table.h. */
#ifndef SPECSTREAM_STRINGS_H
#define SPECSTREAM_STRINGS_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;
struct ss_string_table;

/* What the strings of an engine's events and state are. Before its first job; the table outlives it. */
void ss_engine_use_strings(struct ss_engine *engine, struct ss_string_table *table);

/* For compiled code, which a worker runs: of strings of that table, by their codes. */

/* Below 0, 0 or above 0: the first one comes before the other in the order of code points, and so on. */
int64_t ss_text_order(int64_t left, int64_t right);
/* In code points. */
int64_t ss_text_length(int64_t code);
/* 1: the other string is in it, at its start, at its end; 0: it is not. */
int64_t ss_text_contains(int64_t code, int64_t part);
int64_t ss_text_starts(int64_t code, int64_t part);
int64_t ss_text_ends(int64_t code, int64_t part);

enum ss_string_layout {
    SS_OFFSETS_32 = 0,
    SS_OFFSETS_64 = 1,
    SS_VIEWS = 2 /* 16 bytes each: the length, and twelve bytes of text or where it lies */
};

/* A column, or a slice of one. */
struct ss_string_column {
    int32_t layout; /* enum ss_string_layout */
    int64_t first;  /* its first element: places are those of the buffers */
    int64_t count;
    const uint8_t *validity;       /* a bit for each element; NULL: none is null */
    const void *places;            /* offsets or views */
    const uint8_t *data;           /* what offsets lead to */
    const uint8_t *const *buffers; /* what views lead to */
};

/* Texts as Arrow lays them out, in memory of their own. */
struct ss_texts {
    int64_t count;
    int64_t bytes; /* of data */
    int64_t *offsets;
    uint8_t *data;
    uint8_t *validity;  /* NULL: none is null */
    int64_t null_count;
};
void ss_texts_free(struct ss_texts *texts);

enum ss_strings_status {
    SS_STRINGS_DONE = 0,
    SS_STRINGS_NO_MEMORY = 1, /* nothing has changed */
    SS_STRINGS_NO_UTF8 = 2,   /* so have these: a string that is no text, */
    SS_STRINGS_ONE_CODE = 3   /* or two that have the same code */
};

/* An empty table, or NULL: no memory. The secret is that of its indexes. */
struct ss_string_table *ss_strings_open(const uint64_t *secret);
void ss_strings_close(struct ss_string_table *table);

/* The codes of columns of strings, 0 for a null; all are remembered, or none. `told` gets the strings
 * that are wrong, if any. */
int32_t ss_strings_add(struct ss_string_table *table, const struct ss_string_column *columns,
                       int64_t count, int64_t *codes, struct ss_texts *told);
/* The same of one string. */
int32_t ss_strings_add_one(struct ss_string_table *table, const char *text, int64_t length,
                           int64_t *code, struct ss_texts *told);
/* The codes without a table. False: no memory. */
bool ss_string_codes(const struct ss_string_column *column, uint64_t threads, int64_t *codes);

/* The strings that have these codes, null where there is none. False: no memory. */
bool ss_strings_texts(struct ss_string_table *table, const int64_t *codes, int64_t count,
                      struct ss_texts *texts);
/* All strings whose number is not less, by number. False: no memory. */
bool ss_strings_since(struct ss_string_table *table, int64_t number, struct ss_texts *texts);
/* The number that the next new string gets; how many there are; bytes of memory. */
int64_t ss_strings_next(struct ss_string_table *table);
int64_t ss_strings_count(struct ss_string_table *table);
int64_t ss_strings_bytes(struct ss_string_table *table);

/* Those of the words that are codes of strings; how many. */
int64_t ss_strings_known(struct ss_string_table *table, const int64_t *words, int64_t count,
                         int64_t *codes);

/* A sweep drops the strings that nobody marks between its begin and its end, but for those that were
 * added or met in between. One at a time. */
void ss_strings_sweep_begin(struct ss_string_table *table);
/* Words that are the code of a string mark it. */
void ss_strings_mark(struct ss_string_table *table, const int64_t *words, int64_t count);
/* How many were dropped; -1: no memory, and nothing has changed. Those stay as well that were added or met
 * since the sweep before (window 0), or since so many sweeps before that; not so if it is -1. `dropped`, if
 * it is not NULL, gets memory with their codes, for ss_codes_free. */
int64_t ss_strings_sweep_end(struct ss_string_table *table, int64_t window, int64_t **dropped);
void ss_strings_sweep_abandon(struct ss_string_table *table);
void ss_codes_free(int64_t *codes);

#endif
