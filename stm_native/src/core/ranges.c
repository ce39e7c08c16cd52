/* Ranges: neighbouring words that are read, or stored, together.
 *
 * A row that is summed up, compared or copied is read as a whole, so under protocol `value` it is
 * one entry of the read log: a head, that says where it begins and how long it is, and the words,
 * eight bytes each instead of sixteen. The run works on the words in the log, which are then by
 * construction the ones that it used. Validation compares them in one go.
 *
 * Words that the run itself has stored to, or updated unread (delta.c), are not the state's. Where
 * there are such in the range, it is read word by word. Whole words only: a range of narrow
 * elements would take their neighbours in the first and the last word along, and conflict with
 * those.
 *
 * A row that is overwritten is one entry of the redo log likewise: a head and the words, which the
 * run puts there itself. The slots of its words in the index refer to where they lie, as those of
 * other words do, so that a load, a store or an update need not know of ranges. What the log has of
 * the words from before, stores, deltas or ranges, stays there and is of no account: the head
 * publishes in the order of the log. But where all of them lie in one earlier range they are
 * overwritten there, so that events of one chunk that write the same row do not fill the log. */
#include "core/ranges.h"

#include <assert.h>
#include <string.h>

#include "core/engine.h"
#include "core/protocol.h"
#include "core/redo_index.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "specstream.h"

_Static_assert(sizeof(struct ss_read) == 2 * sizeof(uint64_t), "two words of a range in an entry");

bool ss_range_is_own(struct ss_run *run, uint64_t word, uint64_t count)
{
    if (run->redo_count < count) {
        const struct ss_write *end = run->redo + run->redo_count;
        for (const struct ss_write *write = run->redo; write != end; write += ss_redo_step(write))
            if (write->word < word + count && word < write->word + ss_redo_words(write))
                return true;
        return false;
    }
    for (uint64_t i = word; i < word + count; i++)
        if (!ss_slot_is_empty(run, ss_redo_find(run, i)))
            return true;
    return false;
}

const uint64_t *ss_range_by_words(struct ss_run *run, uint64_t word, uint64_t count)
{
    uint64_t *values = ss_buffer(run, count);
    if (values == NULL)
        return NULL;
    for (uint64_t i = 0; i < count; i++)
        values[i] = run->worker->engine->protocol->load(run, word + i);
    return run->verdict == SS_COMPLETED ? values : NULL;
}

const uint64_t *ss_load_range(struct ss_run *run, uint64_t word, uint64_t count)
{
    assert(word + count <= run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative)
        return &run->state[word];
    if (ss_range_is_own(run, word, count))
        return ss_range_by_words(run, word, count);
    if ((uint64_t)(run->read_end - run->read_top) < 1 + ss_range_entries(count)) {
        run->verdict = SS_LOG_FULL;
        return NULL;
    }
    *run->read_top = (struct ss_read){(uint32_t)word, SS_RANGE, run->site, count};
    uint64_t *values = (uint64_t *)(run->read_top + 1);
    for (uint64_t i = 0; i < count; i++)
        values[i] = ss_word_read(&run->state[word + i]);
    run->read_top += 1 + ss_range_entries(count);
    return values;
}

uint64_t *ss_store_range(struct ss_run *run, uint64_t word, uint64_t count)
{
    assert(count > 0 && word + count <= run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative)
        return NULL;
    uint64_t *own = ss_redo_find_range(run, word, count);
    if (own != NULL)
        return own;
    struct ss_write *head = &run->redo[run->redo_count];
    uint64_t entries = 1 + ss_range_entries(count);
    if (run->redo_limit - run->redo_count < entries)
        return NULL; /* those of its words that are in the log need no room */
    ss_redo_mark(run, word, count);
    *head = (struct ss_write){.word = (uint32_t)word, .delta = SS_STORED_RANGE, .value = count};
    run->redo_count += entries;
    return (uint64_t *)(head + 1);
}

void ss_range_publish(uint64_t *state, const struct ss_write *head)
{
    const uint64_t *values = (const uint64_t *)(head + 1);
    uint64_t *words = &state[head->word];
    for (uint64_t i = 0; i < head->value; i++)
        ss_word_write(&words[i], values[i]);
}

bool ss_range_unchanged(const struct ss_engine *engine, const struct ss_read *head,
                        struct ss_place *conflict)
{
    const uint64_t *values = (const uint64_t *)(head + 1);
    const uint64_t *words = &engine->state[head->word];
    /* Only who holds the turn writes the state, and that is us: no need of atomic reads. */
    if (memcmp(words, values, head->value * sizeof *values) == 0)
        return true;
    uint64_t at = 0;
    while (words[at] == values[at])
        at++;
    *conflict = (struct ss_place){head->word + (uint32_t)at, 0, head->site};
    return false;
}
