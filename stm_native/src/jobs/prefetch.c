/* What the next commits need, fetched while this one goes on.
 *
 * Commits are serial, so with enough cores nothing but their time counts; and most of that goes into
 * waiting for cache lines: the logs lie in the cache of the core that has run the transaction, and the
 * words of the state wherever they were written last. Who drains the wait queue knows what comes next. So
 * there is a pipeline: while the head is committed, the state that the next one has read and will write is
 * on its way, and the logs of the one behind that, which say where in the state the next step is to
 * look, and the descriptor of the third. Nothing is fetched of transactions that still run: whoever writes
 * a log wants its lines for himself. */
#include "jobs/prefetch.h"

#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "processor/processor.h"

/* Of each log, so much at most: a core has a dozen lines on their way at one time. */
enum { MOST_LINES = 8, MOST_WORDS = 32 };

static void fetch(const void *from, uint64_t bytes)
{
    const char *end = (const char *)from + bytes;
    int lines = 0;
    for (const char *line = from; line < end && lines < MOST_LINES; line += SS_CACHE_LINE, lines++)
        __builtin_prefetch(line);
}

static void fetch_descriptor(const struct ss_transaction *transaction)
{
    fetch(transaction, 2 * SS_CACHE_LINE);
}

static void fetch_logs(const struct ss_transaction *transaction)
{
    fetch(transaction->reads, transaction->read_count * sizeof *transaction->reads);
    fetch(transaction->redo, transaction->redo_count * sizeof *transaction->redo);
    fetch(transaction->rows, transaction->row_words * sizeof *transaction->rows);
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Entries of rows, slices and keys name other words, or none: to fetch these is in vain, and harmless. */
static void fetch_state(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    uintptr_t state = (uintptr_t)engine->state;
    uint64_t reads = least_of(transaction->read_count, MOST_WORDS);
    uint64_t writes = least_of(transaction->redo_count, MOST_WORDS);
    for (uint64_t i = 0; i < reads; i++)
        __builtin_prefetch((const void *)(state + 8 * (uintptr_t)transaction->reads[i].word));
    for (uint64_t i = 0; i < writes; i++)
        __builtin_prefetch((const void *)(state + 8 * (uintptr_t)transaction->redo[i].word), 1);
}

void ss_prefetch_behind(struct ss_engine *engine, int64_t head)
{
    struct ss_transaction *next = ss_slot_of(engine, head + 1);
    struct ss_transaction *second = ss_slot_of(engine, head + 2);
    /* Finished, and nobody's but of who holds the turn: a doubtful one may be running again, and so may
     * any that is finished where the head speculates. */
    if (engine->protocol->head_speculates || !ss_has_status(next, head + 1, SS_FINISHED))
        return;
    fetch_state(engine, next);
    if (!ss_has_status(second, head + 2, SS_FINISHED))
        return;
    fetch_logs(second);
    fetch_descriptor(ss_slot_of(engine, head + 3));
}
