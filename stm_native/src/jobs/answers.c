/* Answers: what an event needs that compiled code does not know.
 *
 * Compiled code has no texts; that of an exception, say, may be known to Python alone. An event that comes
 * to such a thing *asks*. The first time there is no answer, and it leaves. Once it is the head, and rolled
 * back, somebody outside looks at the event on the state that the head runs on (with early results, the
 * applied image) and says all that it asks for, in the order in which it asks; and it runs again in place,
 * with these answers. So who answers need not apply anything: the event does that itself, through the same
 * logs as ever.
 *
 * An event asks the same things in each run on the same state, which is why their order will do. */
#include "jobs/answers.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "core/engine.h"
#include "core/turn.h"
#include "core/worker.h"
#include "specstream.h"

enum ss_answered_row { NO_ROW = -1, ROW_OF_TIMER = -2 };

void ss_engine_set_answering(struct ss_engine *engine, ss_answering answering, void *context)
{
    engine->answering.ask = answering;
    engine->answering.context = context;
}

const struct ss_answer_word *ss_answer(struct ss_run *run, uint64_t can_do_without)
{
    struct ss_engine *engine = run->worker->engine;
    int64_t row = run->fires != 0 ? ROW_OF_TIMER : run->event;
    /* Acquire: who sees the row sees the answers, which stay as long as a run of its event may look. */
    if (atomic_load_explicit(&engine->answering.row, memory_order_acquire) == row &&
        run->answered < engine->answering.count)
        return &engine->answering.answers[run->answered++];
    run->asks = can_do_without == 0;
    return NULL;
}

void ss_forget_answers(struct ss_engine *engine)
{
    /* Relaxed, both: who has the turn sees what its holders did. */
    if (atomic_load_explicit(&engine->answering.row, memory_order_relaxed) != NO_ROW)
        atomic_store_explicit(&engine->answering.row, NO_ROW, memory_order_relaxed);
}

bool ss_find_answers(struct ss_worker *worker, int64_t row, const struct ss_firing *firing)
{
    struct ss_engine *engine = worker->engine;
    const struct ss_run *run = &worker->run;
    int64_t answered = firing != NULL ? ROW_OF_TIMER : row;
    if (run->verdict != SS_RAISED || run->asks == 0)
        return false;
    assert(ss_turn_is_held(engine));
    /* Relaxed: as above. */
    bool had = atomic_load_explicit(&engine->answering.row, memory_order_relaxed) == answered;
    ss_forget_answers(engine);
    if (had || engine->answering.ask == NULL)
        return false;
    const struct ss_answer_word *answers = NULL;
    int64_t count = engine->answering.ask(engine->answering.context, row, firing, &answers);
    if (count <= 0)
        return false;
    engine->answering.answers = answers;
    engine->answering.count = (uint64_t)count;
    /* Release: see ss_answer. */
    atomic_store_explicit(&engine->answering.row, answered, memory_order_release);
    return true;
}
