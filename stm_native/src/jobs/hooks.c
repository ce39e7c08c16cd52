/* Hooks: what happens to transactions, told to whoever set them (Brito 2010, 4.2.4).
 *
 * They are called where it happens, in the worker's thread. On_commit is called with the turn held, so
 * nobody else commits meanwhile, and what the event did is not yet to be seen by readers. Of a run
 * in place the stores are in memory by then, but only speculators can look at them, and those are
 * validated; where the hook wants the event run again, the undo log takes them back.
 *
 * On_post_commit is called without the turn: who has committed a transaction gives the turn back
 * first. Who fails outside of a commit ends the job, or halts an open one, at the next event
 * boundary. */
#include "jobs/hooks.h"

#include <assert.h>

#include "core/engine.h"
#include "core/job_kind.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "specstream.h"

void ss_engine_set_hook(struct ss_engine *engine, uint32_t kinds, ss_hook hook, void *context)
{
    engine->hooks.kinds = kinds;
    engine->hooks.hook = hook;
    engine->hooks.context = context;
}

int64_t ss_row_of(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    return engine->kind->row_of(transaction);
}

static enum ss_answer call(struct ss_engine *engine, const struct ss_occasion *occasion)
{
    return (enum ss_answer)engine->hooks.hook(engine->hooks.context, occasion);
}

void ss_tell_abort(struct ss_engine *engine, int64_t row, enum ss_abort_reason reason)
{
    if (SS_UNLIKELY(ss_has_hook(engine, SS_ON_ABORT)) &&
        call(engine, &(struct ss_occasion){.kind = SS_ON_ABORT, .row = row, .reason = reason}) ==
        SS_FAIL)
        engine->kind->fail(engine);
}

void ss_tell_dropped(struct ss_engine *engine, const struct ss_transaction *transaction,
                     enum ss_abort_reason reason)
{
    if (SS_UNLIKELY(ss_has_hook(engine, SS_ON_ABORT)))
        ss_tell_abort(engine, ss_row_of(engine, transaction), reason);
}

enum ss_answer ss_ask_commit(struct ss_engine *engine, int64_t row, const uint64_t *rows,
                             uint64_t words)
{
    assert(ss_turn_is_held(engine));
    return call(engine, &(struct ss_occasion){.kind = SS_ON_COMMIT,
                                              .row = row,
                                              .rows = rows,
                                              .row_count = words / engine->config.emit_words});
}

enum ss_answer ss_ask_finished(struct ss_engine *engine, const struct ss_transaction *transaction)
{
    if (!SS_UNLIKELY(ss_has_hook(engine, SS_ON_COMMIT)))
        return SS_PROCEED;
    return ss_ask_commit(engine, ss_row_of(engine, transaction), transaction->rows,
                         transaction->row_words);
}

void ss_after_commit(struct ss_worker *worker)
{
    const struct ss_job_kind *kind = worker->engine->kind;
    int64_t row = worker->committed_row;
    if (SS_UNLIKELY(row >= 0)) {
        worker->committed_row = -1;
        if (call(worker->engine,
                 &(struct ss_occasion){.kind = SS_ON_POST_COMMIT, .row = row}) == SS_FAIL)
            kind->fail(worker->engine);
        /* After its failure: who finds that all was told also finds what failed. */
        if (kind->told != NULL)
            kind->told(worker);
    }
}
