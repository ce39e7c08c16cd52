/* Protocol `value`: conflicts are found by comparing values.
 *
 * A speculative run logs (word, value) of everything it read from the state and keeps what it wrote
 * in a redo log. Only the head writes the state, and whoever holds the turn is the only one who can
 * be the head; so while it compares a read log with the state, the state stands still and the
 * comparison is exact: the run read precisely what the head would read, hence did precisely what
 * the head would do. There are no versions to wrap, no ABA (a value that came back is the right
 * value), a store that changes nothing is no conflict, and neither is one to another element of a
 * word whose elements are narrow. Rows and slices are logged as one (ranges.c).
 *
 * A run may meanwhile have seen a mixture that never existed. It then cannot pass the comparison
 * (some logged value differs), and until then it is confined to its own logs. */
#include "core/value.h"

#include <assert.h>

#include "containers/keyed.h"
#include "containers/keyed_changes.h"
#include "core/engine.h"
#include "core/narrow.h"
#include "core/protocol.h"
#include "core/ranges.h"
#include "core/redo_log.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "protocols/counter_prediction.h"
#include "specstream.h"

static void begin(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_run *run = &worker->run;
    ss_redo_begin(worker, transaction);
    run->read_top = transaction->reads;
    run->read_end = transaction->reads + worker->engine->config.read_limit;
}

static void finish(struct ss_worker *worker, struct ss_transaction *transaction)
{
    transaction->read_count = (uint64_t)(worker->run.read_top - transaction->reads);
    transaction->redo_count = worker->run.redo_count;
    transaction->delta_count = worker->run.delta_count;
}

/* False: not everything; the first that has changed is the conflict. */
static inline bool unchanged(const struct ss_engine *engine, struct ss_transaction *transaction,
                             bool is_head)
{
    const uint64_t *state = engine->state;
    const struct ss_read *end = transaction->reads + transaction->read_count;
    for (const struct ss_read *read = transaction->reads; read != end; read++) {
        /* One question for both: words are asked it, too. */
        if (SS_UNLIKELY(read->bytes >= SS_ABSENT)) {
            bool is_range = read->bytes == SS_RANGE;
            if (is_head &&
                !(is_range ? ss_range_unchanged(engine, read, &transaction->conflict)
                           : ss_is_still_there(engine, read, &transaction->conflict)))
                return false;
            read += ss_range_entries(is_range ? read->value
                                              : engine->keyed[read->value].of.key_words);
            continue;
        }
        uint64_t changed = ss_word_read(&state[read->word]) ^ read->value;
        /* Only now the mask: a word that is the same costs what it did without masks. What was
         * predicted is there once those before it have committed. */
        if (changed != 0 && (read->bytes == SS_PREDICTION
                                 ? is_head
                                 : (changed & ss_bits_of(read->bytes)) != 0)) {
            transaction->conflict = ss_place_of(read);
            return false;
        }
    }
    return true;
}

static bool validate(const struct ss_engine *engine, struct ss_transaction *transaction)
{
    if (unchanged(engine, transaction, true))
        return true;
    transaction->reason = SS_ABORT_CONFLICT;
    return false;
}

/* A look without the turn, while others commit: rows, slices and keys that are not there are left to the
 * head. */
static bool is_outdated(const struct ss_engine *engine, struct ss_transaction *transaction)
{
    return !unchanged(engine, transaction, false);
}

static void publish(struct ss_engine *engine, struct ss_transaction *transaction)
{
    assert(unchanged(engine, transaction, true)); /* invariant 3: it read what the head reads */
    ss_redo_publish(engine->state, transaction);
    if (SS_UNLIKELY(transaction->change_count != 0)) {
        ss_changes_publish(engine, transaction);
        transaction->change_count = 0;
    }
}

/* Nobody has seen anything of it. */
static void roll_back(struct ss_engine *engine, struct ss_transaction *transaction)
{
    ss_changes_roll_back(engine, transaction);
}

const struct ss_protocol ss_protocol_value = {
    .variant = SS_TRANSACTIONAL,
    .head_speculates = false,
    .begin = begin,
    .load = ss_load,
    .store = ss_store,
    .finish = finish,
    .is_outdated = is_outdated,
    .validate = validate,
    .publish = publish,
    .roll_back = roll_back,
    .invalidate_readers = NULL,
};
