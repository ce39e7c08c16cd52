/* Protocol `value`: conflicts are found by comparing values.
 *
 * A speculative run logs (word, value) of everything it read from the state and keeps what it wrote
 * in a redo log. Only the head writes the state, and whoever holds the turn is the only one who can
 * be the head; so while it compares a read log with the state, the state stands still and the
 * comparison is exact: the run read precisely what the head would read, hence did precisely what
 * the head would do. There are no versions to wrap, no ABA (a value that came back is the right
 * value), and a store that changes nothing is no conflict.
 *
 * A run may meanwhile have seen a mixture that never existed. It then cannot pass the comparison
 * (some logged value differs), and until then it is confined to its own logs. */
#include "internal.h"

void ss_value_begin(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_run *run = &worker->run;
    ss_redo_begin(worker, transaction);
    run->read_top = transaction->reads;
    run->read_end = transaction->reads + worker->engine->config.read_limit;
}

void ss_value_finish(struct ss_worker *worker, struct ss_transaction *transaction)
{
    transaction->read_count = (uint64_t)(worker->run.read_top - transaction->reads);
    transaction->redo_count = worker->run.redo_count;
}

bool ss_value_validate(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    const uint64_t *state = engine->config.state;
    const struct ss_read *end = transaction->reads + transaction->read_count;
    for (const struct ss_read *read = transaction->reads; read != end; read++)
        if (ss_word_read(&state[read->word]) != read->value)
            return false;
    return true;
}

void ss_value_publish(struct ss_engine *engine, const struct ss_transaction *transaction)
{
    assert(ss_turn_is_held(engine)); /* invariant 1: the state is changed by the head only */
    assert(ss_value_validate(engine, transaction)); /* invariant 3: and it read what the head reads */
    uint64_t *state = engine->config.state;
    const struct ss_write *end = transaction->redo + transaction->redo_count;
    for (const struct ss_write *write = transaction->redo; write != end; write++)
        ss_word_write(&state[write->word], write->value);
}
