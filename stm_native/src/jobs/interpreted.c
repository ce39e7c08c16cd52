/* Operators that are not compiled: somebody else runs the events, and comes here for the state.
 *
 * An interpreter is called where compiled code would be, by the same workers under the same scheduler;
 * all that differs is who stands behind the entry. What compiled code does inline by its variant is done
 * here by what the run is: in place, with the undo log, or speculative, through the protocol.
 *
 * An interpreter owns things while it runs (objects, locks, its caller's frames), so it cannot be left at
 * any instruction as compiled code can. It therefore runs *outside* (fault.c): a fault in it goes to whoever
 * owned the signal before, as if there were no engine.
 *
 * Of a pipeline some vertices may be interpreted, while its phases are compiled. Compiled code then calls
 * the interpreter, from inside, as it calls any function of the runtime, and hands over what the vertex
 * reads; the rows that it sends lie in the event's arena until compiled code has put them where its
 * readers find them. */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include "core/engine.h"
#include "core/narrow.h"
#include "core/protocol.h"
#include "core/state_words.h"
#include "core/undo_log.h"
#include "core/worker.h"
#include "local/arena.h"
#include "processor/fault.h"
#include "specstream.h"
#include "specstream_local.h"

static int32_t interpret(int64_t *next, struct ss_run *run, enum ss_variant variant, int64_t first,
                         int64_t last)
{
    const struct ss_engine *engine = run->worker->engine;
    sig_atomic_t was = ss_step_outside();
    *next = engine->interpreter.run(engine->interpreter.context, run, (int32_t)variant, first, last);
    ss_step_inside(was);
    return run->verdict != SS_COMPLETED;
}

static int32_t plain(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)fault;
    return interpret(next, run, SS_PLAIN, first, last);
}

static int32_t transactional(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                             int64_t last)
{
    (void)fault;
    return interpret(next, run, SS_TRANSACTIONAL, first, last);
}

static int32_t eager(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)fault;
    return interpret(next, run, SS_EAGER, first, last);
}

static int32_t log_free(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)fault;
    return interpret(next, run, SS_LOG_FREE, first, last);
}

static int32_t timer(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)fault;
    return interpret(next, run, SS_TIMER, first, last);
}

void ss_engine_interpret(struct ss_engine *engine, ss_interpreter interpreter, void *context)
{
    engine->interpreter.run = interpreter;
    engine->interpreter.context = context;
    ss_engine_set_entry(engine, SS_PLAIN, plain);
    ss_engine_set_entry(engine, SS_TRANSACTIONAL, transactional);
    ss_engine_set_entry(engine, SS_EAGER, eager);
    ss_engine_set_entry(engine, SS_LOG_FREE, log_free);
    ss_engine_set_entry(engine, SS_TIMER, timer);
}

void ss_interpreted_begin(struct ss_run *run, int64_t row)
{
    run->event = row;
    run->emit_mark = run->emit_top;
    run->undo_top = run->undo_base;
    run->found_in = 0;
    if (run->arena != NULL && run->arena_dirty != 0)
        ss_arena_clear(run);
    memset(run->scratch, 0, run->worker->engine->config.scratch_words * sizeof(uint64_t));
}

/* ---- vertices of a pipeline ---- */

void ss_engine_interpret_vertices(struct ss_engine *engine, ss_interpreter interpreter, void *context)
{
    engine->interpreter.run = interpreter;
    engine->interpreter.context = context;
}

static void call_out(struct ss_run *run, int64_t call, int64_t vertex, int64_t in_timer)
{
    const struct ss_engine *engine = run->worker->engine;
    sig_atomic_t was = ss_step_outside();
    engine->interpreter.run(engine->interpreter.context, run, (int32_t)call, vertex, in_timer);
    ss_step_inside(was);
}

int32_t ss_vertex_interpret(struct ss_run *run, int64_t call, int64_t vertex, int64_t in_timer,
                            const uint64_t *given)
{
    run->given = given;
    run->sent = NULL;
    run->sent_rows = run->sent_room = 0;
    run->found_in = 0;
    call_out(run, call, vertex, in_timer);
    run->calls++;
    run->found_in = 0;
    return run->verdict != SS_COMPLETED;
}

void ss_phase_raised(struct ss_run *run, int64_t in_timer)
{
    call_out(run, SS_PHASE_RAISED, -1, in_timer);
}

enum { FIRST_ROWS = 8 };

uint64_t *ss_vertex_send(struct ss_run *run, uint64_t words)
{
    if (run->sent_rows == run->sent_room) {
        uint64_t room = run->sent_room == 0 ? FIRST_ROWS : 2 * run->sent_room;
        uint64_t *grown = ss_arena_take(run, room * words);
        if (grown == NULL)
            return NULL;
        if (run->sent != NULL) {
            memcpy(grown, run->sent, run->sent_rows * words * sizeof *grown);
            ss_arena_give(run, run->sent, run->sent_room * words);
        }
        run->sent = grown;
        run->sent_room = room;
    }
    return run->sent + words * run->sent_rows++;
}

/* ---- what it accesses ---- */

/* Of a speculative run. Early results change the engine's protocol with its job, and this with it. */
static bool is_eager(const struct ss_run *run)
{
    return run->worker->engine->protocol->variant == SS_EAGER;
}

uint64_t ss_interpreted_load(struct ss_run *run, uint64_t byte, uint64_t size)
{
    struct ss_unit unit = ss_unit_at(byte, size);
    assert(unit.word < run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative)
        return ss_extract(ss_word_read(&run->state[unit.word]), unit);
    if (size == 8)
        return run->worker->engine->protocol->load(run, unit.word);
    return is_eager(run) ? ss_eager_load_bytes(run, byte, size) : ss_load_bytes(run, byte, size);
}

void ss_interpreted_store(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t value)
{
    struct ss_unit unit = ss_unit_at(byte, size);
    assert(unit.word < run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative)
        ss_store_in_place(run, unit, value);
    else if (size == 8)
        run->worker->engine->protocol->store(run, unit.word, value);
    else if (is_eager(run))
        ss_eager_store_bytes(run, byte, size, value);
    else
        ss_store_bytes(run, byte, size, value);
}

bool ss_interpreted_load_range(struct ss_run *run, uint64_t word, uint64_t count, uint64_t *into)
{
    assert(word + count <= run->worker->engine->config.state_words); /* invariant 5 */
    if (!run->speculative) {
        for (uint64_t i = 0; i < count; i++)
            into[i] = ss_word_read(&run->state[word + i]);
        return true;
    }
    const uint64_t *found = is_eager(run) ? ss_eager_load_range(run, word, count)
                                          : ss_load_range(run, word, count);
    if (found == NULL)
        return false;
    memcpy(into, found, count * sizeof *into);
    return true;
}

bool ss_interpreted_store_range(struct ss_run *run, uint64_t word, uint64_t count,
                                const uint64_t *values)
{
    assert(word + count <= run->worker->engine->config.state_words); /* invariant 5 */
    uint64_t *place = NULL;
    if (run->speculative)
        place = is_eager(run) ? ss_eager_store_range(run, word, count)
                              : ss_store_range(run, word, count);
    if (place != NULL) {
        memcpy(place, values, count * sizeof *values);
        return true;
    }
    for (uint64_t i = 0; i < count && run->verdict == SS_COMPLETED; i++)
        ss_interpreted_store(run, 8 * (word + i), 8, values[i]);
    return run->verdict == SS_COMPLETED;
}

uint64_t ss_interpreted_emit_words(const struct ss_run *run)
{
    return run->worker->engine->config.emit_words;
}

uint64_t *ss_interpreted_emit(struct ss_run *run)
{
    uint64_t words = ss_interpreted_emit_words(run);
    if (run->emit_top + words > run->emit_end && !ss_emit_grow(run))
        return NULL;
    uint64_t *row = run->emit_top;
    row[0] = (uint64_t)run->event;
    run->emit_top += words;
    return row;
}
