/* Strings of a table as Arrow lays them out: by their codes, or all from a number on.
 *
 * They are copied, so that they stay whatever becomes of the table. Look-ups by code take no lock: some
 * thousand codes at a time, so that whoever waits for readers does not wait for long. */
#include "strings/string_texts.h"

#include <stdlib.h>
#include <string.h>

#include "specstream_strings.h"
#include "strings/string_index.h"
#include "strings/string_table.h"

enum { PIECE = 4096, AHEAD = 16 };

bool ss_texts_make(struct ss_texts *texts, int64_t count, int64_t bytes, bool with_nulls)
{
    uint64_t validity = with_nulls ? (uint64_t)(count + 7) / 8 : 0;
    *texts = (struct ss_texts){.count = count, .bytes = bytes};
    texts->offsets = calloc((uint64_t)count + 1, sizeof *texts->offsets);
    texts->data = malloc(bytes > 0 ? (uint64_t)bytes : 1);
    texts->validity = with_nulls ? calloc(validity + 1, 1) : NULL;
    if (texts->offsets != NULL && texts->data != NULL && (texts->validity != NULL || !with_nulls))
        return true;
    ss_texts_free(texts);
    return false;
}

void ss_texts_free(struct ss_texts *texts)
{
    free(texts->offsets);
    free(texts->data);
    free(texts->validity);
    *texts = (struct ss_texts){0};
}

/* Room for so many bytes of data, of which `used` are in use. */
static bool make_room(struct ss_texts *texts, uint64_t used, uint64_t needed)
{
    uint64_t room = (uint64_t)texts->bytes;
    if (needed <= room)
        return true;
    room = needed > 2 * used ? needed : 2 * used;
    uint8_t *data = realloc(texts->data, room);
    if (data == NULL)
        return false;
    texts->data = data;
    texts->bytes = (int64_t)room;
    return true;
}

/* The strings of some codes, whose first is number `first` of the texts. False: no memory. */
static bool take(struct ss_string_table *table, const int64_t *codes, int64_t first, int64_t count,
                 struct ss_texts *texts)
{
    struct ss_string *found[PIECE];
    uint64_t used = (uint64_t)texts->offsets[first], needed = used;
    uint64_t phase = ss_strings_enter(table);
    /* Acquire: strings below the limit are complete. */
    uint64_t limit = atomic_load_explicit(&table->limit, memory_order_acquire);
    /* Sequentially consistent: see ss_strings_enter. */
    struct ss_string_index *index = atomic_load_explicit(&table->by_code, memory_order_seq_cst);
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            ss_string_prefetch(index, ss_string_mix(table, (uint64_t)codes[i + AHEAD]));
        found[i] = ss_string_by_code(table, index, (uint64_t)codes[i], limit);
        needed += found[i] == NULL ? 0 : ss_string_length(found[i]);
    }
    bool has_room = make_room(texts, used, needed);
    for (int64_t i = 0; i < count && has_room; i++) {
        int64_t at = first + i;
        if (found[i] == NULL)
            texts->null_count++;
        else {
            uint64_t length = ss_string_length(found[i]);
            memcpy(texts->data + used, found[i]->bytes, length);
            used += length;
            texts->validity[at / 8] |= (uint8_t)(1 << at % 8);
        }
        texts->offsets[at + 1] = (int64_t)used;
    }
    ss_strings_leave(table, phase);
    return has_room;
}

bool ss_strings_texts(struct ss_string_table *table, const int64_t *codes, int64_t count,
                      struct ss_texts *texts)
{
    if (!ss_texts_make(texts, count, 0, true))
        return false;
    for (int64_t first = 0; first < count; first += PIECE) {
        int64_t some = count - first < PIECE ? count - first : PIECE;
        if (!take(table, codes + first, first, some, texts)) {
            ss_texts_free(texts);
            return false;
        }
    }
    texts->bytes = texts->offsets[count];
    return true;
}

/* With the mutex: how many there are from a number on, and their bytes; copies them where there is memory. */
static void walk(const struct ss_string_table *table, uint64_t number, int64_t *count,
                 int64_t *bytes, struct ss_texts *texts)
{
    *count = 0;
    *bytes = 0;
    for (uint64_t i = 0; i < table->chunk_count; i++) {
        const struct ss_chunk *chunk = &table->chunks[i];
        if (chunk->last < number)
            continue;
        SS_EACH_STRING(string, chunk, 0)
        {
            if (string->number < number)
                continue;
            uint64_t length = ss_string_length(string);
            if (texts != NULL) {
                memcpy(texts->data + *bytes, string->bytes, length);
                texts->offsets[*count + 1] = *bytes + (int64_t)length;
            }
            *count += 1;
            *bytes += (int64_t)length;
        }
    }
}

bool ss_strings_since(struct ss_string_table *table, int64_t number, struct ss_texts *texts)
{
    int64_t count, bytes;
    pthread_mutex_lock(&table->writer);
    walk(table, (uint64_t)number, &count, &bytes, NULL);
    bool done = ss_texts_make(texts, count, bytes, false);
    if (done)
        walk(table, (uint64_t)number, &count, &bytes, texts);
    pthread_mutex_unlock(&table->writer);
    return done;
}
