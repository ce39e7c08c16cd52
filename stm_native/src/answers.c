/* Answers: what an event needs that compiled code does not know.
 *
 * Compiled code has no texts; that of an exception, say, may be known to Python alone. An event that comes
 * to such a thing *asks*. The first time there is no answer, and it leaves. Once it is the head, and rolled
 * back, somebody outside looks at the event on the committed state and says all that it asks for, in the
 * order in which it asks; and it runs again, with these answers. So who answers need not apply anything:
 * the event does that itself, through the same logs as ever.
 *
 * An event asks the same things in each run on the same state, which is why their order will do. */
#include "answers.h"

#include <assert.h>
#include <stddef.h>

#include "engine.h"
#include "turn.h"
#include "worker.h"

void ss_engine_set_answering(struct ss_engine *engine, ss_answering answering, void *context)
{
    engine->answering.ask = answering;
    engine->answering.context = context;
}

const struct ss_answer_word *ss_answer(struct ss_run *run, uint64_t can_do_without)
{
    if (run->answers != NULL && run->answered < run->answer_count)
        return &run->answers[run->answered++];
    run->asks = can_do_without == 0;
    return NULL;
}

void ss_forget_answers(struct ss_worker *worker)
{
    worker->run.answers = NULL;
    worker->run.answer_count = 0;
}

bool ss_find_answers(struct ss_worker *worker, int64_t row, const struct ss_firing *firing)
{
    struct ss_engine *engine = worker->engine;
    struct ss_run *run = &worker->run;
    assert(ss_turn_is_held(engine));
    bool asks = run->verdict == SS_RAISED && run->asks != 0 && run->answers == NULL;
    ss_forget_answers(worker);
    if (!asks || engine->answering.ask == NULL)
        return false;
    const struct ss_answer_word *answers = NULL;
    int64_t count = engine->answering.ask(engine->answering.context, row, firing, &answers);
    if (count <= 0)
        return false;
    run->answers = answers;
    run->answer_count = (uint64_t)count;
    return true;
}
