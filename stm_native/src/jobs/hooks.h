/* What an engine's owner is told, and asked. */
#ifndef SPECSTREAM_HOOKS_H
#define SPECSTREAM_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/engine.h"
#include "specstream.h"

struct ss_transaction;
struct ss_worker;

static inline bool ss_has_hook(const struct ss_engine *engine, enum ss_hook_kind kind)
{
    return (engine->hooks.kinds & (uint32_t)kind) != 0;
}

void ss_tell_abort(struct ss_engine *engine, int64_t row, enum ss_abort_reason reason);
void ss_tell_dropped(struct ss_engine *engine, const struct ss_transaction *transaction,
                     enum ss_abort_reason reason);
/* Without the turn, after it was given back: tells of the commit that it was held for. */
void ss_after_commit(struct ss_worker *worker);
/* With the turn: whether the event of a row may commit. */
enum ss_answer ss_ask_commit(struct ss_engine *engine, int64_t row, const uint64_t *rows,
                             uint64_t words);
enum ss_answer ss_ask_finished(struct ss_engine *engine, const struct ss_transaction *transaction);
/* The event of a transaction, where hooks are set. */
int64_t ss_row_of(const struct ss_engine *engine, const struct ss_transaction *transaction);

#endif
