/* The strings that an engine has met, by code.
 *
 * Strings lie in chunks, one behind the other in the order in which they came, and never move while they are
 * there. Each has a number, the next one, for ever. Two indexes lead to a string (string_index.c): that of
 * its bytes says whether it is known, without hashing it by BLAKE2b, which takes ten times as long; that of
 * codes turns them into text.
 *
 * One thread at a time adds, with the mutex; any number reads, without one. Three things make that right:
 *
 * - A string is complete before the table's *limit* passes its number. What has this number or a higher
 *   one is not there for readers. So a batch of strings comes at once, and can be taken back as long
 *   as it has not come: if two of its strings have one code, or one is no text, or memory runs out.
 * - An index is replaced as a whole, and so is a chunk of which a sweep leaves little (string_sweep.c).
 * - What was replaced is freed when all readers have left that may know it. They count themselves in and out,
 *   in one of two phases (McKenney's sleepable read-copy update): whoever waits lets new ones go to the
 *   other, so that it waits for those that were there. Readers look up some thousand strings and leave.
 *
 * What an add has found to be there, a sweep must not drop. While there is a sweep, adds take the mutex
 * and mark what they find; one that has looked without the mutex while a sweep began looks once more. */
#include "strings/string_table.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "processor/processor.h"
#include "specstream_strings.h"
#include "strings/blake2b.h"
#include "strings/octets.h"
#include "strings/siphash.h"
#include "strings/string_column.h"
#include "strings/string_index.h"
#include "strings/string_memory.h"
#include "strings/string_texts.h"
#include "strings/utf8.h"

/* Rows that are looked up together, so many that what is noted of them stays in the nearest cache but one,
 * and those of them whose memory is asked for ahead. The codes of a piece are too few for a second
 * thread: to create it takes as long as it saves. */
enum { PIECE = 2048, AHEAD = 32 };
enum { LEAST_CHUNK = 4096, MOST_CHUNK = 2097152 };

/* ---- the table ---- */

struct ss_string_table *ss_strings_open(const uint64_t *secret)
{
    struct ss_string_table *table = NULL;
    if (posix_memalign((void **)&table, SS_CACHE_LINE, sizeof *table) != 0)
        return NULL;
    memset(table, 0, sizeof *table);
    struct ss_string_index *by_text = ss_string_index_new(0), *by_code = ss_string_index_new(0);
    if (by_text == NULL || by_code == NULL || pthread_mutex_init(&table->writer, NULL) != 0) {
        ss_string_index_free(by_text);
        ss_string_index_free(by_code);
        free(table);
        return NULL;
    }
    memcpy(table->secret, secret, sizeof table->secret);
    table->mixer[0] = ss_siphash(secret, (const uint8_t *)"low", 3);
    table->mixer[1] = ss_siphash(secret, (const uint8_t *)"high", 4);
    atomic_init(&table->by_text, by_text);
    atomic_init(&table->by_code, by_code);
    atomic_init(&table->bytes, sizeof *table + 2 * ss_string_index_bytes(by_text));
    return table;
}

void ss_strings_close(struct ss_string_table *table)
{
    for (uint64_t i = 0; i < table->chunk_count; i++)
        free(table->chunks[i].strings);
    free(table->chunks);
    /* Relaxed: nobody else is there. */
    ss_string_index_free(atomic_load_explicit(&table->by_text, memory_order_relaxed));
    ss_string_index_free(atomic_load_explicit(&table->by_code, memory_order_relaxed));
    pthread_mutex_destroy(&table->writer);
    free(table);
}

/* Relaxed, all three: figures, which say nothing of anything else. */
int64_t ss_strings_next(struct ss_string_table *table)
{
    return (int64_t)atomic_load_explicit(&table->limit, memory_order_relaxed);
}

int64_t ss_strings_count(struct ss_string_table *table)
{
    return (int64_t)atomic_load_explicit(&table->count, memory_order_relaxed);
}

int64_t ss_strings_bytes(struct ss_string_table *table)
{
    return (int64_t)atomic_load_explicit(&table->bytes, memory_order_relaxed);
}

/* ---- readers ---- */

uint64_t ss_strings_enter(struct ss_string_table *table)
{
    /* Relaxed: either phase is right, as whoever waits does so for both. */
    uint64_t phase = atomic_load_explicit(&table->phase, memory_order_relaxed) & 1;
    /* Sequentially consistent, as are the replacing of an index and the wait: whoever is not waited for
     * comes after them in their one order, and finds the new index. With less, a reader's load of the
     * index could come before it is counted. */
    atomic_fetch_add_explicit(&table->inside[phase], 1, memory_order_seq_cst);
    return phase;
}

void ss_strings_leave(struct ss_string_table *table, uint64_t phase)
{
    /* Release: all that it has read, it has read before what it knows is freed. */
    atomic_fetch_sub_explicit(&table->inside[phase], 1, memory_order_release);
}

void ss_strings_wait(struct ss_string_table *table)
{
    for (int i = 0; i < 2; i++) {
        /* Relaxed: it is the writer's, and leads readers to where nobody waits for them. */
        uint64_t phase = atomic_load_explicit(&table->phase, memory_order_relaxed);
        atomic_store_explicit(&table->phase, phase ^ 1, memory_order_relaxed);
        /* Sequentially consistent: see ss_strings_enter; and acquires what readers release. */
        while (atomic_load_explicit(&table->inside[phase], memory_order_seq_cst) != 0)
            sched_yield();
    }
}

/* ---- chunks ---- */

struct ss_chunk *ss_strings_new_chunk(struct ss_string_table *table, uint64_t room)
{
    if (table->chunk_count == table->chunk_room) {
        uint64_t more = table->chunk_room == 0 ? 8 : 2 * table->chunk_room;
        struct ss_chunk *chunks = realloc(table->chunks, more * sizeof *chunks);
        if (chunks == NULL)
            return NULL;
        table->chunks = chunks;
        table->chunk_room = more;
    }
    uint8_t *strings = ss_string_memory(room, false);
    if (strings == NULL)
        return NULL;
    struct ss_chunk *chunk = &table->chunks[table->chunk_count++];
    *chunk = (struct ss_chunk){.room = room, .strings = strings};
    table->chunk_bytes += room;
    /* Relaxed: a figure. */
    atomic_fetch_add_explicit(&table->bytes, room, memory_order_relaxed);
    return chunk;
}

void ss_strings_drop_chunk(struct ss_string_table *table)
{
    struct ss_chunk *chunk = &table->chunks[--table->chunk_count];
    table->chunk_bytes -= chunk->room;
    /* Relaxed: a figure. */
    atomic_fetch_sub_explicit(&table->bytes, chunk->room, memory_order_relaxed);
    free(chunk->strings);
}

/* Relaxed, both: with the mutex it stands still, and without it is looked at again; see add. */
static uint8_t now_of(struct ss_string_table *table)
{
    return (uint8_t)atomic_load_explicit(&table->touch, memory_order_relaxed);
}

static void touch(struct ss_string *string, uint8_t now)
{
    /* Stored only where it is another: most strings were touched before. */
    /* Sequentially consistent: whether there is a sweep is looked at afterwards; see sweep_has_begun. */
    if (atomic_load_explicit(&string->touched, memory_order_relaxed) != now)
        atomic_store_explicit(&string->touched, now, memory_order_seq_cst);
}

/* A new string, which is in no index yet; NULL: no memory. */
static struct ss_string *append(struct ss_string_table *table, struct ss_octets text, uint64_t hash)
{
    uint64_t size = ss_string_size(text.length);
    struct ss_chunk *chunk =
        table->chunk_count == 0 ? NULL : &table->chunks[table->chunk_count - 1];
    if (chunk == NULL || chunk->room - chunk->used < size) {
        /* A chunk is a part of the whole, so that what is free in it is little. */
        uint64_t room = table->chunk_bytes / 4;
        room = room < LEAST_CHUNK ? LEAST_CHUNK : room > MOST_CHUNK ? MOST_CHUNK : room;
        chunk = ss_strings_new_chunk(table, size > room ? size : room);
        if (chunk == NULL)
            return NULL;
    }
    struct ss_string *string = ss_string_at(chunk, chunk->used);
    *string = (struct ss_string){.number = table->next++,
                                 .hash = hash,
                                 .length = (uint32_t)text.length,
                                 .length_above = (uint16_t)(text.length >> 32),
                                 .mark = SS_UNMARKED,
                                 .touched = now_of(table)};
    if (text.length != 0)
        memcpy(string->bytes, text.bytes, text.length);
    chunk->used += size;
    chunk->last = string->number;
    return string;
}

/* ---- adding ---- */

struct row {
    struct ss_octets text;
    uint64_t hash;
    int64_t at; /* place of its code */
    struct ss_string *string;
};

struct batch {
    struct ss_string_table *table;
    struct ss_texts *told;
    bool writes;      /* it has the mutex */
    bool marks;       /* there is a sweep */
    uint64_t chunks;  /* of the table, when it began */
    uint64_t used;    /* of the last of them */
    uint64_t coded;   /* strings with lower numbers are in the index by code */
    uint64_t likely;  /* strings that are new in the rest of the column, if it is like the last piece */
    uint64_t piece;   /* rows for which there is memory */
    struct row *rows; /* of a piece, those that were not known when it began */
    uint64_t unknown;
    struct ss_string **made; /* the strings that they brought */
    uint64_t made_count;
    struct ss_octets *texts;
    uint64_t *codes;
};

static int32_t tell(struct batch *batch, int32_t status, struct ss_octets one, struct ss_octets other)
{
    int64_t count = status == SS_STRINGS_ONE_CODE ? 2 : 1;
    if (!ss_texts_make(batch->told, count, (int64_t)(one.length + other.length), false))
        return SS_STRINGS_NO_MEMORY;
    if (one.length != 0)
        memcpy(batch->told->data, one.bytes, one.length);
    if (other.length != 0)
        memcpy(batch->told->data + one.length, other.bytes, other.length);
    batch->told->offsets[1] = (int64_t)one.length;
    if (count == 2)
        batch->told->offsets[2] = (int64_t)(one.length + other.length);
    return status;
}

static struct ss_octets octets_of(const struct ss_string *string)
{
    return (struct ss_octets){string->bytes, ss_string_length(string)};
}

/* The string of a row that no reader knows: another row's, or one of `made`, which have no codes yet. */
static int32_t enter(struct batch *batch, struct row *row)
{
    struct ss_string_table *table = batch->table;
    if (!ss_string_reserve(table, SS_BY_TEXT, 1, batch->likely, table->next))
        return SS_STRINGS_NO_MEMORY;
    /* Relaxed: only the writer replaces it. */
    struct ss_string_index *index = atomic_load_explicit(&table->by_text, memory_order_relaxed);
    row->string =
        ss_string_by_text(index, &row->text, row->hash, table->next);
    if (row->string != NULL)
        return SS_STRINGS_DONE;
    if (!ss_is_utf8(row->text.bytes, row->text.length))
        return tell(batch, SS_STRINGS_NO_UTF8, row->text, (struct ss_octets){NULL, 0});
    row->string = append(table, row->text, row->hash);
    if (row->string == NULL)
        return SS_STRINGS_NO_MEMORY;
    ss_string_put(index, row->hash, row->string);
    batch->texts[batch->made_count] = octets_of(row->string);
    batch->made[batch->made_count++] = row->string;
    return SS_STRINGS_DONE;
}

/* The codes of some rows that are known; the others' are noted, and with the mutex entered. */
static void look_up(struct batch *batch, const struct ss_string_index *index, uint64_t limit,
                       const struct ss_string_column *column, int64_t from, int64_t count,
                       int64_t *codes)
{
    struct ss_octets texts[AHEAD] = {{NULL, 0}};
    uint64_t hashes[AHEAD];
    struct ss_string *strings[AHEAD];
    uint8_t now = now_of(batch->table);
    for (int64_t i = 0; i < count; i++)
        texts[i] = ss_column_is_null(column, from + i) ? (struct ss_octets){NULL, 0}
                                                       : ss_column_text(column, from + i);
    ss_siphash_all(batch->table->secret, texts, (uint64_t)count, hashes);
    ss_strings_by_text(index, texts, hashes, (uint64_t)count, limit, strings);
    for (int64_t i = 0; i < count; i++) {
        struct ss_string *found = strings[i];
        if (ss_column_is_null(column, from + i)) {
            codes[from + i] = 0;
            continue;
        }
        if (found == NULL) {
            batch->rows[batch->unknown++] = (struct row){texts[i], hashes[i], from + i, NULL};
            continue;
        }
        codes[from + i] = (int64_t)found->code;
        touch(found, now);
        if (batch->marks)
            /* Relaxed: the sweep looks at it with the mutex, which this batch has. */
            atomic_store_explicit(&found->mark, batch->table->epoch, memory_order_relaxed);
    }
}

/* The same of a piece of a column, by whoever has the mutex, */
static int32_t look_up_and_enter(struct batch *batch, const struct ss_string_column *column,
                                 int64_t begin, int64_t end, int64_t *codes)
{
    struct ss_string_table *table = batch->table;
    uint64_t limit = table->next; /* of its own strings, those of earlier pieces have their codes */
    for (int64_t from = begin; from < end; from += AHEAD) {
        /* Relaxed: only the writer replaces it. */
        struct ss_string_index *index =
            atomic_load_explicit(&table->by_text, memory_order_relaxed);
        uint64_t before = batch->unknown;
        look_up(batch, index, limit, column, from, end - from < AHEAD ? end - from : AHEAD, codes);
        for (uint64_t i = before; i < batch->unknown; i++) {
            int32_t status = enter(batch, &batch->rows[i]);
            if (status != SS_STRINGS_DONE)
                return status;
        }
    }
    return SS_STRINGS_DONE;
}

/* and by a reader. */
static void look_up_only(struct batch *batch, const struct ss_string_column *column, int64_t begin,
                         int64_t end, int64_t *codes)
{
    struct ss_string_table *table = batch->table;
    uint64_t phase = ss_strings_enter(table);
    /* Acquire: strings below the limit are complete. */
    uint64_t limit = atomic_load_explicit(&table->limit, memory_order_acquire);
    /* Sequentially consistent: see ss_strings_enter. */
    struct ss_string_index *index = atomic_load_explicit(&table->by_text, memory_order_seq_cst);
    for (int64_t from = begin; from < end; from += AHEAD)
        look_up(batch, index, limit, column, from, end - from < AHEAD ? end - from : AHEAD, codes);
    ss_strings_leave(table, phase);
}

/* The new strings get their codes, and are found by them. */
static int32_t encode(struct batch *batch)
{
    uint64_t made = batch->made_count;
    struct ss_string_table *table = batch->table;
    ss_blake2b_codes(batch->texts, made, batch->codes);
    if (!ss_string_reserve(table, SS_BY_CODE, made, made + batch->likely, batch->coded))
        return SS_STRINGS_NO_MEMORY;
    /* Relaxed: only the writer replaces it. */
    struct ss_string_index *index = atomic_load_explicit(&table->by_code, memory_order_relaxed);
    for (uint64_t i = 0; i < made; i++) {
        struct ss_string *string = batch->made[i];
        uint64_t code = batch->codes[i];
        if (i + AHEAD < made)
            ss_string_prefetch(index, ss_string_mix(table, batch->codes[i + AHEAD]));
        struct ss_string *same = ss_string_by_code(table, index, code, batch->coded);
        if (same != NULL)
            return tell(batch, SS_STRINGS_ONE_CODE, octets_of(same), octets_of(string));
        string->code = code;
        ss_string_put(index, ss_string_mix(table, code), string);
        batch->coded = string->number + 1;
    }
    return SS_STRINGS_DONE;
}

/* Nobody has seen them: the strings that came go again. */
static void undo(struct batch *batch)
{
    struct ss_string_table *table = batch->table;
    /* Relaxed: only the writer replaces them, and only it raises the limit. */
    struct ss_string_index *by_text = atomic_load_explicit(&table->by_text, memory_order_relaxed);
    struct ss_string_index *by_code = atomic_load_explicit(&table->by_code, memory_order_relaxed);
    uint64_t limit = atomic_load_explicit(&table->limit, memory_order_relaxed);
    for (uint64_t i = batch->chunks == 0 ? 0 : batch->chunks - 1; i < table->chunk_count; i++) {
        struct ss_chunk *chunk = &table->chunks[i];
        SS_EACH_STRING(string, chunk, i + 1 == batch->chunks ? batch->used : 0)
        {
            ss_string_take_out(by_text, string->hash, string);
            if (string->number < batch->coded)
                ss_string_take_out(by_code, ss_string_mix(table, string->code), string);
        }
    }
    ss_strings_wait(table);
    while (table->chunk_count > batch->chunks)
        ss_strings_drop_chunk(table);
    if (batch->chunks != 0)
        table->chunks[batch->chunks - 1].used = batch->used;
    table->next = limit;
}

static void begin_writing(struct batch *batch)
{
    struct ss_string_table *table = batch->table;
    pthread_mutex_lock(&table->writer);
    batch->writes = true;
    /* Relaxed: changes with the mutex only. */
    batch->marks = atomic_load_explicit(&table->sweeps, memory_order_relaxed) % 2 != 0;
    batch->chunks = table->chunk_count;
    batch->used = batch->chunks == 0 ? 0 : table->chunks[batch->chunks - 1].used;
    batch->coded = table->next;
}

static int32_t end_writing(struct batch *batch, int32_t status)
{
    struct ss_string_table *table = batch->table;
    if (status == SS_STRINGS_DONE) {
        /* Relaxed: the writer's own. */
        uint64_t before = atomic_load_explicit(&table->limit, memory_order_relaxed);
        /* Relaxed: a figure. */
        atomic_fetch_add_explicit(&table->count, table->next - before, memory_order_relaxed);
        /* Release: who sees the limit sees the codes of all strings below it. */
        atomic_store_explicit(&table->limit, table->next, memory_order_release);
    } else
        undo(batch);
    pthread_mutex_unlock(&table->writer);
    return status;
}

static bool sweep_has_begun(struct batch *batch, uint64_t seen)
{
    /* Sequentially consistent: what was found before it, was found before a sweep that it does not see. */
    return atomic_load_explicit(&batch->table->sweeps, memory_order_seq_cst) != seen;
}

/* All columns, with the mutex from the beginning or from the first unknown string on. 0, or a status; -1: a
 * sweep has begun, and what was found without the mutex counts no more. */
static int32_t add_columns(struct batch *batch, const struct ss_string_column *columns,
                           int64_t count, uint64_t seen, int64_t *codes)
{
    for (int64_t c = 0; c < count; c++) {
        const struct ss_string_column *column = &columns[c];
        for (int64_t begin = 0; begin < column->count; begin += (int64_t)batch->piece) {
            int64_t end = begin + (int64_t)batch->piece;
            end = end < column->count ? end : column->count;
            int32_t status = SS_STRINGS_DONE;
            batch->unknown = batch->made_count = 0;
            if (batch->writes)
                status = look_up_and_enter(batch, column, begin, end, codes);
            else {
                look_up_only(batch, column, begin, end, codes);
                if (batch->unknown == 0)
                    continue;
                begin_writing(batch);
                if (sweep_has_begun(batch, seen))
                    return -1;
                for (uint64_t i = 0; i < batch->unknown && status == SS_STRINGS_DONE; i++)
                    status = enter(batch, &batch->rows[i]);
            }
            batch->likely = batch->made_count * (uint64_t)(column->count - end) /
                            (uint64_t)(end - begin);
            if (status == SS_STRINGS_DONE)
                status = encode(batch);
            if (status != SS_STRINGS_DONE)
                return status;
            for (uint64_t i = 0; i < batch->unknown; i++)
                codes[batch->rows[i].at] = (int64_t)batch->rows[i].string->code;
        }
        codes += column->count;
    }
    return SS_STRINGS_DONE;
}

static int32_t add(struct batch *batch, const struct ss_string_column *columns, int64_t count,
                   int64_t *codes)
{
    /* Sequentially consistent: see sweep_has_begun. */
    uint64_t seen = atomic_load_explicit(&batch->table->sweeps, memory_order_seq_cst);
    if (seen % 2 == 0) {
        int32_t status = add_columns(batch, columns, count, seen, codes);
        if (status != -1 && batch->writes)
            return end_writing(batch, status);
        if (status != -1 && !sweep_has_begun(batch, seen))
            return status;
    }
    if (!batch->writes)
        begin_writing(batch);
    return end_writing(batch, add_columns(batch, columns, count, seen, codes));
}

int32_t ss_strings_add(struct ss_string_table *table, const struct ss_string_column *columns,
                       int64_t count, int64_t *codes, struct ss_texts *told)
{
    uint64_t piece = 1;
    for (int64_t c = 0; c < count; c++)
        if ((uint64_t)columns[c].count > piece)
            piece = (uint64_t)columns[c].count;
    piece = piece < PIECE ? piece : PIECE;
    struct batch batch = {.table = table,
                          .told = told,
                          .piece = piece,
                          .rows = malloc(piece * sizeof *batch.rows),
                          .made = malloc(piece * sizeof *batch.made),
                          .texts = malloc(piece * sizeof *batch.texts),
                          .codes = malloc(piece * sizeof *batch.codes)};
    int32_t status = SS_STRINGS_NO_MEMORY;
    if (batch.rows != NULL && batch.made != NULL && batch.texts != NULL && batch.codes != NULL)
        status = add(&batch, columns, count, codes);
    free(batch.rows);
    free(batch.made);
    free(batch.texts);
    free(batch.codes);
    return status;
}

int32_t ss_strings_add_one(struct ss_string_table *table, const char *text, int64_t length,
                           int64_t *code, struct ss_texts *told)
{
    struct row row;
    struct ss_string *made;
    struct ss_octets octets;
    uint64_t found;
    struct batch batch = {.table = table,
                          .told = told,
                          .piece = 1,
                          .rows = &row,
                          .made = &made,
                          .texts = &octets,
                          .codes = &found};
    const int64_t offsets[] = {0, length};
    struct ss_string_column column = {.layout = SS_OFFSETS_64,
                                      .count = 1,
                                      .places = offsets,
                                      .data = (const uint8_t *)text};
    return add(&batch, &column, 1, code);
}
