/* The undo log of an in-place run.
 *
 * The head writes the state directly. So that an event that raises is not applied, each store first
 * saves (address, old value); the log is emptied at every event, hence short and always in cache.
 * A head may write any number of words: its log grows, it has no limit. */
#include "core/undo_log.h"

#include <signal.h>
#include <stdlib.h>

#include "core/narrow.h"
#include "core/state_words.h"
#include "core/worker.h"
#include "processor/fault.h"
#include "processor/figure.h"
#include "specstream.h"

bool ss_undo_grow(struct ss_run *run)
{
    size_t used = (size_t)(run->undo_top - run->undo_base);
    size_t capacity = (size_t)(run->undo_end - run->undo_base) * 2;
    sig_atomic_t was = ss_step_outside();
    struct ss_undo *grown = realloc(run->undo_base, capacity * sizeof *grown);
    ss_step_inside(was);
    if (grown == NULL) {
        run->verdict = SS_NO_MEMORY;
        return false;
    }
    run->undo_base = grown;
    run->undo_top = grown + used;
    run->undo_end = grown + capacity;
    ss_grow(&run->worker->undo_entries, capacity);
    return true;
}

static void take_back_to(struct ss_run *run, const struct ss_undo *mark)
{
    /* Newest first: a word written twice has its oldest value at the bottom. */
    while (run->undo_top != mark) {
        run->undo_top--;
        ss_word_write(run->undo_top->address, run->undo_top->value);
    }
}

void ss_undo_roll_back(struct ss_run *run)
{
    take_back_to(run, run->undo_base);
}

void ss_undo_back(struct ss_run *run, uint64_t bytes)
{
    take_back_to(run, run->undo_base + bytes / sizeof *run->undo_base);
}

void ss_store_in_place(struct ss_run *run, struct ss_unit unit, uint64_t value)
{
    uint64_t *address = &run->state[unit.word];
    if (run->undo_top == run->undo_end && !ss_undo_grow(run))
        return;
    uint64_t old = ss_word_read(address);
    *run->undo_top++ = (struct ss_undo){address, old};
    ss_word_write(address, ss_merge(old, unit.bytes, value << unit.shift));
}
