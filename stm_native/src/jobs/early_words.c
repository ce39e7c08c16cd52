/* The words of early results that lie outside of the state: what applied transactions have read, stored,
 * overwritten and emitted, and rows that are told or wait to be. Any of them may come back into the
 * state, or reach somebody outside, although no word of either image holds it now. So whoever looks for
 * what is still referred to (the strings of which the state holds the codes) has to look at these as
 * well.
 *
 * Transactions that are not applied need no look. What they have read is compared with the state before
 * they become it, so a value that is nowhere to be found now can only come from an event that has not
 * run, and those are looked at by their owner. */
#include <assert.h>

#include "core/engine.h"
#include "core/turn.h"
#include "jobs/early.h"
#include "specstream.h"

struct copy {
    uint64_t *to;
    uint64_t capacity;
    uint64_t count; /* of all, also of those that there is no room for */
};

static void put(struct copy *copy, uint64_t word)
{
    if (copy->count < copy->capacity)
        copy->to[copy->count] = word;
    copy->count++;
}

static void put_all(struct copy *copy, const uint64_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        put(copy, words[i]);
}

static void put_applied(struct copy *copy, const struct ss_applied *applied)
{
    for (uint64_t i = 0; i < applied->read_count; i++)
        put(copy, applied->reads[i].value);
    for (uint64_t i = 0; i < applied->redo_count; i++)
        put(copy, applied->redo[i].value);
    for (uint64_t i = 0; i < applied->undo_count; i++)
        put(copy, applied->undo[i].value);
    put_all(copy, applied->rows, applied->row_words);
}

uint64_t ss_engine_early_words(struct ss_engine *engine, uint64_t *to, uint64_t capacity)
{
    const struct ss_early *early = engine->early;
    struct copy copy = {to, capacity, 0};
    assert(ss_turn_is_held(engine));
    if (early == NULL)
        return 0;
    for (uint64_t i = 0; i < early->count; i++)
        put_applied(&copy, ss_applied_at(early, i));
    put_all(&copy, early->voids.at, early->voids.count);
    put_all(&copy, early->kept.at, early->kept.count);
    put_all(&copy, early->finals.at, early->finals.count);
    put_all(&copy, early->news.at, early->news.count);
    return copy.count;
}

const uint64_t *ss_engine_early_image(struct ss_engine *engine)
{
    assert(ss_turn_is_held(engine));
    return engine->early == NULL ? NULL : engine->early->image;
}
