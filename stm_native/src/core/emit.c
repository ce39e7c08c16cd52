/* Emitted rows.
 *
 * An in-place run emits straight into the engine's output, which grows; a speculative run emits into
 * its transaction's own buffer, which does not, and which the commit appends to the output. So the
 * output never holds a row of a run that did not commit. */
#include "core/emit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/fault.h"
#include "processor/figure.h"
#include "specstream.h"

bool ss_rows_reserve(struct ss_engine *engine, uint64_t words)
{
    if (engine->row_words + words <= engine->row_capacity)
        return true;
    uint64_t capacity = engine->row_capacity * 2;
    if (capacity < engine->row_words + words)
        capacity = engine->row_words + words;
    uint64_t *grown = realloc(engine->rows, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    engine->rows = grown;
    ss_grow(&engine->row_capacity, capacity);
    return true;
}

bool ss_rows_append(struct ss_engine *engine, const uint64_t *rows, uint64_t words)
{
    if (!ss_rows_reserve(engine, words))
        return false;
    memcpy(engine->rows + engine->row_words, rows, words * sizeof *rows);
    engine->row_words += words;
    return true;
}

bool ss_emit_grow(struct ss_run *run)
{
    struct ss_engine *engine = run->worker->engine;
    if (run->speculative || engine->job.mode == SS_MODE_LOCKED) {
        run->verdict = SS_LOG_FULL;
        return false;
    }
    uint64_t of_event = (uint64_t)(run->emit_top - run->emit_mark);
    engine->row_words = (uint64_t)(run->emit_top - engine->rows);
    /* At least a page, so that the output of a long job is moved a logarithmic number of times. */
    sig_atomic_t was = ss_step_outside();
    bool grown = ss_rows_reserve(engine, engine->config.emit_words + 512);
    ss_step_inside(was);
    if (!grown) {
        run->verdict = SS_NO_MEMORY;
        return false;
    }
    run->emit_top = engine->rows + engine->row_words;
    run->emit_mark = run->emit_top - of_event;
    run->emit_end = engine->rows + engine->row_capacity;
    return true;
}
