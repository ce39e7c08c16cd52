/* The version clock and the validity interval (Brito 2010, 2.2).
 *
 * The clock counts the commits that changed the state. A transaction carries the interval of ticks
 * over which everything that it has read was current. A version beyond the interval's end makes it
 * validate what it has read and extend the interval to now; if that fails, no instant ever showed
 * all these values together, and it aborts. */
#include "protocols/validity_interval.h"

#include <stdatomic.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "protocols/counter_prediction.h"
#include "protocols/forced_abort.h"
#include "protocols/ownership_records.h"
#include "specstream.h"

/* Whether a read is still current: no later commit, and no earlier transaction's lock that announces
 * one. */
static bool read_holds(const struct ss_engine *engine, const struct ss_transaction *transaction,
                       const struct ss_read *read)
{
    uint64_t record = ss_record_of(engine, read->word);
    uint64_t content, version;
    do {
        content = ss_read_record(engine, record);
        version = content >> 1;
        if (!ss_is_locked(content))
            break;
        if (ss_relation_to(engine, transaction, content) == SS_EARLIER)
            return false;
        version = ss_version_below(engine, content);
    } while (!ss_is_still(engine, record, content));
    return version == read->value;
}

bool ss_reads_hold(const struct ss_engine *engine, struct ss_transaction *transaction,
                   const struct ss_read *end)
{
    for (const struct ss_read *read = transaction->reads; read != end; read++) {
        if (SS_UNLIKELY(read->bytes == SS_PREDICTION))
            continue;
        if (!read_holds(engine, transaction, read)) {
            transaction->conflict = ss_place_of(read);
            return false;
        }
    }
    return true;
}

void ss_extend_interval(struct ss_run *run, uint64_t version)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_transaction *transaction = run->worker->transaction;
    /* Acquire: before the clock moved, the commit had its records locked or marked; who sees the
     * tick has to see that too. */
    uint64_t now = atomic_load_explicit(&engine->clock, memory_order_acquire);
    if (version > now) {
        /* The head runs in place and is marking its records. Not at once again, or we would spin
         * for as long as the thread that marks them is kept from running. Meanwhile it may have
         * committed, and we be the head, which waits for nobody. */
        int64_t head = atomic_load_explicit(&engine->next_commit, memory_order_relaxed);
        bool waits = ss_goes_by_key(engine) ? head != transaction->number : head < transaction->number;
        transaction->conflict = ss_place_of(run->read_top - 1);
        ss_eager_abort(run, SS_ABORT_INCONSISTENT_SNAPSHOT, waits ? head : -1);
    } else if (!ss_reads_hold(engine, transaction, run->read_top)) {
        ss_eager_abort(run, SS_ABORT_INCONSISTENT_SNAPSHOT, -1);
    } else {
        transaction->valid_to = now;
    }
}
