/* What compiled code asks of the texts of strings: which one comes first, and how long one is.
 *
 * It has codes, and the table of its engine has the texts. Whoever looks one up counts itself in and out
 * of the table, which is why it may not be left half-way: a fault or a kill comes when it is outside. */
#define _GNU_SOURCE /* memmem */
#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/fault.h"
#include "specstream_strings.h"
#include "strings/string_index.h"
#include "strings/string_table.h"

/* The code of the empty string, which a field holds as 0. */
static const int64_t empty = -INT64_C(5426141060434712860);

struct look_up {
    struct ss_string_table *table;
    sig_atomic_t was;
    uint64_t phase;
    uint64_t limit;
    struct ss_string_index *index;
};

/* Of the engine whose worker this thread is. */
static struct look_up enter(void)
{
    const struct ss_containment *own = ss_this_containment();
    const struct ss_worker *worker = (const void *)((const char *)own - offsetof(struct ss_worker, containment));
    struct look_up found = {.table = worker->engine->strings, .was = ss_step_outside()};
    found.phase = ss_strings_enter(found.table);
    /* Acquire: strings below the limit are complete. */
    found.limit = atomic_load_explicit(&found.table->limit, memory_order_acquire);
    /* Sequentially consistent: see ss_strings_enter. */
    found.index = atomic_load_explicit(&found.table->by_code, memory_order_seq_cst);
    return found;
}

static void leave(const struct look_up *of)
{
    ss_strings_leave(of->table, of->phase);
    ss_step_inside(of->was);
}

/* NULL: it is empty. */
static const struct ss_string *text_of(const struct look_up *of, int64_t code)
{
    if (code == 0 || code == empty)
        return NULL;
    const struct ss_string *found =
        ss_string_by_code(of->table, of->index, (uint64_t)code, of->limit);
    /* Whatever is kept in a state, or comes in a column, is there. */
    assert(found != NULL);
    return found;
}

int64_t ss_text_order(int64_t left, int64_t right)
{
    if (left == right)
        return 0;
    struct look_up of = enter();
    const struct ss_string *one = text_of(&of, left), *other = text_of(&of, right);
    uint64_t first = one == NULL ? 0 : ss_string_length(one);
    uint64_t second = other == NULL ? 0 : ss_string_length(other);
    /* The order of bytes in UTF-8 is that of code points. */
    uint64_t both = first < second ? first : second;
    int order = both == 0 ? 0 : memcmp(one->bytes, other->bytes, both);
    leave(&of);
    return order != 0 ? order : (first > second) - (first < second);
}

int64_t ss_text_length(int64_t code)
{
    struct look_up of = enter();
    const struct ss_string *text = text_of(&of, code);
    int64_t points = 0;
    for (uint64_t at = 0; text != NULL && at < ss_string_length(text); at++)
        points += (text->bytes[at] & 0xc0) != 0x80; /* the first byte of one */
    leave(&of);
    return points;
}

/* Where a part is in a text, in bytes; -1: nowhere. */
static int64_t place_of(const struct ss_string *text, const struct ss_string *part)
{
    if (part == NULL)
        return 0;
    if (text == NULL)
        return -1;
    const uint8_t *found = memmem(text->bytes, ss_string_length(text), part->bytes,
                                  ss_string_length(part));
    return found == NULL ? -1 : found - text->bytes;
}

int64_t ss_text_contains(int64_t code, int64_t part)
{
    struct look_up of = enter();
    int64_t place = place_of(text_of(&of, code), text_of(&of, part));
    leave(&of);
    return place >= 0;
}

static int64_t has_at(int64_t code, int64_t part, bool at_end)
{
    struct look_up of = enter();
    const struct ss_string *text = text_of(&of, code), *wanted = text_of(&of, part);
    uint64_t length = text == NULL ? 0 : ss_string_length(text);
    uint64_t needed = wanted == NULL ? 0 : ss_string_length(wanted);
    bool is_there = needed == 0 ||
                    (needed <= length &&
                     memcmp(text->bytes + (at_end ? length - needed : 0), wanted->bytes, needed) == 0);
    leave(&of);
    return is_there;
}

int64_t ss_text_starts(int64_t code, int64_t part)
{
    return has_at(code, part, false);
}

int64_t ss_text_ends(int64_t code, int64_t part)
{
    return has_at(code, part, true);
}

void ss_engine_use_strings(struct ss_engine *engine, struct ss_string_table *table)
{
    engine->strings = table;
}
