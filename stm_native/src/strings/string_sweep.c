/* A sweep of a string table: what nobody has marked goes.
 *
 * A mark is the sweep's number in the string, so that beginning one touches no string. What came, or was found
 * by an add, since it began is not dropped (string_table.c). At the end a chunk of which more than half is
 * left stays as it is, and its dead strings are passed by; what is left of the others is copied together, in
 * the order of the numbers, which strings keep. So all chunks take at most twice what is in them, and some.
 * Both indexes are made anew, of a fitting size. All memory is had before anything changes; what was replaced
 * is freed when no reader can know it. */
#include <stdlib.h>
#include <string.h>

#include "specstream_strings.h"
#include "strings/string_index.h"
#include "strings/string_memory.h"
#include "strings/string_table.h"

/* Smaller chunks are always copied together, or a table that hardly grows would have one for each sweep. */
enum { SMALL_CHUNK = 2048, PIECE = 4096, AHEAD = 16 };

void ss_codes_free(int64_t *codes)
{
    free(codes);
}

void ss_strings_sweep_begin(struct ss_string_table *table)
{
    pthread_mutex_lock(&table->writer);
    /* Relaxed: changes with the mutex only. Odd: it was left, and this one takes its place. */
    uint64_t odd = atomic_load_explicit(&table->sweeps, memory_order_relaxed) % 2;
    /* Sequentially consistent: an add that does not see it has found what it has found before. */
    atomic_fetch_add_explicit(&table->sweeps, 1 + odd, memory_order_seq_cst);
    table->epoch = table->epoch == SS_LAST_MARK ? SS_UNMARKED + 1 : table->epoch + 1;
    table->sweep_from = table->next;
    /* Relaxed: an add that sees the one before has begun before this sweep, and looks once more. */
    atomic_fetch_add_explicit(&table->touch, 1, memory_order_relaxed);
    pthread_mutex_unlock(&table->writer);
}

static void end(struct ss_string_table *table)
{
    /* Relaxed and sequentially consistent: as above. */
    uint64_t odd = atomic_load_explicit(&table->sweeps, memory_order_relaxed) % 2;
    atomic_fetch_add_explicit(&table->sweeps, odd, memory_order_seq_cst);
    pthread_mutex_unlock(&table->writer);
}

void ss_strings_sweep_abandon(struct ss_string_table *table)
{
    pthread_mutex_lock(&table->writer);
    end(table);
}

static void mark(struct ss_string_table *table, const int64_t *words, int64_t count)
{
    uint64_t phase = ss_strings_enter(table);
    /* Acquire: strings below the limit are complete. */
    uint64_t limit = atomic_load_explicit(&table->limit, memory_order_acquire);
    /* Sequentially consistent: see ss_strings_enter. */
    struct ss_string_index *index = atomic_load_explicit(&table->by_code, memory_order_seq_cst);
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            ss_string_prefetch(index, ss_string_mix(table, (uint64_t)words[i + AHEAD]));
        struct ss_string *found = ss_string_by_code(table, index, (uint64_t)words[i], limit);
        if (found != NULL)
            /* Relaxed: the end of the sweep takes the mutex, after all marks of whoever sweeps. */
            atomic_store_explicit(&found->mark, table->epoch, memory_order_relaxed);
    }
    ss_strings_leave(table, phase);
}

void ss_strings_mark(struct ss_string_table *table, const int64_t *words, int64_t count)
{
    for (int64_t first = 0; first < count; first += PIECE)
        mark(table, words + first, count - first < PIECE ? count - first : PIECE);
}

int64_t ss_strings_known(struct ss_string_table *table, const int64_t *words, int64_t count,
                         int64_t *codes)
{
    int64_t known = 0;
    uint64_t phase = ss_strings_enter(table);
    /* Acquire and sequentially consistent: see mark. */
    uint64_t limit = atomic_load_explicit(&table->limit, memory_order_acquire);
    struct ss_string_index *index = atomic_load_explicit(&table->by_code, memory_order_seq_cst);
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            ss_string_prefetch(index, ss_string_mix(table, (uint64_t)words[i + AHEAD]));
        if (ss_string_by_code(table, index, (uint64_t)words[i], limit) != NULL)
            codes[known++] = words[i];
    }
    ss_strings_leave(table, phase);
    return known;
}

/* ---- the end ---- */

/* What is to take the place of what the table has. */
struct sweeping {
    struct ss_string_table *table;
    struct ss_chunk *chunks; /* those that stay and those that come, in order */
    uint64_t count;
    struct ss_string_index *by_text;
    struct ss_string_index *by_code;
    int64_t *codes; /* of strings that go; NULL: nobody wants them */
    uint64_t left;  /* strings that stay */
    uint64_t dropped;
};

/* Added, or found to be there, so recently that it is not asked whether anybody refers to it. What was
 * touched 256 sweeps ago looks as if it was now, and stays once more. */
static bool is_recent(struct ss_string_table *table, struct ss_string *string)
{
    /* Relaxed: see ss_strings_sweep_begin. */
    uint8_t now = (uint8_t)(atomic_load_explicit(&table->touch, memory_order_relaxed) - 1);
    /* Sequentially consistent: whoever has touched it and then seen no sweep, did so before this one. */
    uint8_t touched = atomic_load_explicit(&string->touched, memory_order_seq_cst);
    return table->window >= UINT8_MAX ||
           (table->window >= 0 && (uint8_t)(now - touched) <= table->window);
}

static bool stays(struct ss_string_table *table, struct ss_string *string)
{
    return string->number >= table->sweep_from || is_recent(table, string) ||
           /* Relaxed: see mark. */
           atomic_load_explicit(&string->mark, memory_order_relaxed) == table->epoch;
}

static void count_strings(struct sweeping *sweeping)
{
    struct ss_string_table *table = sweeping->table;
    for (uint64_t i = 0; i < table->chunk_count; i++) {
        struct ss_chunk *chunk = &table->chunks[i];
        chunk->left = 0;
        SS_EACH_STRING(string, chunk, 0)
        {
            if (stays(table, string)) {
                chunk->left += ss_string_size(ss_string_length(string));
                sweeping->left++;
            } else
                sweeping->dropped++;
        }
        chunk->changes = chunk->left <= SMALL_CHUNK || chunk->left < chunk->room / 2;
    }
}

/* Readers may touch it meanwhile: whoever does so without the mutex looks once more, see add. */
static void copy(struct ss_string *to, struct ss_string *string)
{
    uint64_t length = ss_string_length(string);
    *to = (struct ss_string){.number = string->number,
                             .hash = string->hash,
                             .code = string->code,
                             .length = string->length,
                             .length_above = string->length_above};
    /* Relaxed, all: nobody else knows the copy yet, and for the string see above. */
    atomic_store_explicit(&to->mark, atomic_load_explicit(&string->mark, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&to->touched, atomic_load_explicit(&string->touched, memory_order_relaxed),
                          memory_order_relaxed);
    if (length != 0)
        memcpy(to->bytes, string->bytes, length);
}

/* Copies what is left of chunks [first, last), which go, into one. False: no memory. */
static bool evacuate(struct sweeping *sweeping, uint64_t first, uint64_t last)
{
    struct ss_string_table *table = sweeping->table;
    struct ss_chunk into = {.changes = true};
    for (uint64_t i = first; i < last; i++)
        into.room += table->chunks[i].left;
    if (into.room == 0)
        return true;
    into.strings = ss_string_memory(into.room, false);
    if (into.strings == NULL)
        return false;
    for (uint64_t i = first; i < last; i++) {
        if (table->chunks[i].left == 0)
            continue;
        SS_EACH_STRING(string, &table->chunks[i], 0)
        {
            if (!stays(table, string))
                continue;
            copy(ss_string_at(&into, into.used), string);
            into.used += ss_string_size(ss_string_length(string));
            into.last = string->number;
        }
    }
    sweeping->chunks[sweeping->count++] = into;
    return true;
}

/* All memory that is needed, and what is to be copied; false: there is none. */
static bool prepare(struct sweeping *sweeping, bool tells)
{
    struct ss_string_table *table = sweeping->table;
    sweeping->chunks = malloc((table->chunk_count + 1) * sizeof *sweeping->chunks);
    sweeping->by_text = ss_string_index_new(sweeping->left);
    sweeping->by_code = ss_string_index_new(sweeping->left);
    sweeping->codes = tells ? malloc(sweeping->dropped * sizeof *sweeping->codes) : NULL;
    if (sweeping->chunks == NULL || sweeping->by_text == NULL || sweeping->by_code == NULL ||
        (tells && sweeping->codes == NULL))
        return false;
    uint64_t run = 0;
    for (uint64_t i = 0; i < table->chunk_count; i++) {
        if (table->chunks[i].changes)
            continue;
        if (!evacuate(sweeping, run, i))
            return false;
        sweeping->chunks[sweeping->count++] = table->chunks[i];
        run = i + 1;
    }
    return evacuate(sweeping, run, table->chunk_count);
}

static void discard(struct sweeping *sweeping)
{
    for (uint64_t i = 0; i < sweeping->count; i++)
        if (sweeping->chunks[i].changes)
            free(sweeping->chunks[i].strings);
    free(sweeping->chunks);
    ss_string_index_free(sweeping->by_text);
    ss_string_index_free(sweeping->by_code);
    free(sweeping->codes);
}

/* The strings that go are told, and in chunks that stay they are dead. */
static void bury(struct sweeping *sweeping)
{
    struct ss_string_table *table = sweeping->table;
    uint64_t count = 0;
    for (uint64_t i = 0; i < table->chunk_count; i++) {
        if (table->chunks[i].changes && sweeping->codes == NULL)
            continue;
        SS_EACH_STRING(string, &table->chunks[i], 0)
        {
            if (stays(table, string))
                continue;
            if (sweeping->codes != NULL)
                sweeping->codes[count++] = (int64_t)string->code;
            /* Relaxed: it is looked at with the mutex only. */
            atomic_store_explicit(&string->mark, SS_DEAD, memory_order_relaxed);
        }
    }
}

static void replace(struct sweeping *sweeping)
{
    struct ss_string_table *table = sweeping->table;
    struct ss_chunk *chunks = table->chunks;
    uint64_t count = table->chunk_count;
    table->chunks = sweeping->chunks;
    table->chunk_count = sweeping->count;
    table->chunk_room = count + 1;
    table->chunk_bytes = 0;
    for (uint64_t i = 0; i < table->chunk_count; i++)
        table->chunk_bytes += table->chunks[i].room;
    ss_string_put_all(table, sweeping->by_text, SS_BY_TEXT, UINT64_MAX);
    ss_string_put_all(table, sweeping->by_code, SS_BY_CODE, UINT64_MAX);
    /* Relaxed, both: figures. */
    atomic_store_explicit(&table->count, sweeping->left, memory_order_relaxed);
    atomic_store_explicit(&table->bytes,
                          sizeof *table + table->chunk_bytes +
                              ss_string_index_bytes(sweeping->by_text) +
                              ss_string_index_bytes(sweeping->by_code),
                          memory_order_relaxed);
    /* Sequentially consistent: a reader that the wait misses comes later than this. */
    sweeping->by_text =
        atomic_exchange_explicit(&table->by_text, sweeping->by_text, memory_order_seq_cst);
    sweeping->by_code =
        atomic_exchange_explicit(&table->by_code, sweeping->by_code, memory_order_seq_cst);
    ss_strings_wait(table);
    ss_string_index_free(sweeping->by_text);
    ss_string_index_free(sweeping->by_code);
    for (uint64_t i = 0; i < count; i++)
        if (chunks[i].changes)
            free(chunks[i].strings);
    free(chunks);
}

/* Drops all that does not stay. How many these were, or -1: no memory. */
static int64_t finish(struct ss_string_table *table, int64_t **dropped)
{
    struct sweeping sweeping = {.table = table};
    if (dropped != NULL)
        *dropped = NULL;
    count_strings(&sweeping);
    if (sweeping.dropped == 0)
        return 0;
    if (!prepare(&sweeping, dropped != NULL)) {
        discard(&sweeping);
        return -1;
    }
    bury(&sweeping);
    replace(&sweeping);
    if (dropped != NULL)
        *dropped = sweeping.codes;
    return (int64_t)sweeping.dropped;
}

int64_t ss_strings_sweep_end(struct ss_string_table *table, int64_t window, int64_t **dropped)
{
    pthread_mutex_lock(&table->writer);
    table->window = window;
    int64_t count = finish(table, dropped);
    end(table);
    return count;
}
