/* Predictive log synchronisation (Brito 2010, 4.4.2): counters whose value every event needs.
 *
 * An event that increments a word and uses the result depends on every earlier event that does the
 * same. Run as an ordinary read and write, no two such events run at once. But what the earlier ones
 * do to the word is easily foretold. So:
 *
 *   log      a transaction says how often it has incremented each counter
 *   predict  it does not read the word, but takes for its value what the word was when some earlier
 *            transaction began, and what those from there up to itself have logged
 *   recheck  it logs this as its read; when it is the head, the value must be there
 *   undo     what a dropped run has logged goes with its run, and is no more than a guess from then
 *   fold     whoever commits a transaction notes the value that the next one begins with
 *
 * Of a transaction that has not finished, what it has logged is not all: it is taken to increment
 * as often as committed ones did of late, or more if it has already done so. Where each event
 * increments once this is exact. Of late is in the mean, to the nearest: where one event in four
 * increments, the best guess of one that has not is that it will not, whatever the last one did. And
 * as one that has incremented is seen to have done so, few are left to be guessed. One that was
 * dropped at its end is taken to do again what it did. Nothing here is relied on: a wrong prediction
 * costs a rerun, never a result.
 *
 * The note of a counter is read by all and changed by who holds the turn: a number of -1 says that
 * it is being changed, and a number that is the same before and after that nothing was.
 *
 * In an open job (open_job.c) numbers do not tell the order, but the row of active transactions
 * does. It is looked at when a transaction is formed or repeated, under the mutex that is held for
 * that anyway: what the counter was after the last commit, and what all before it in the row add,
 * each event what those of the last commit added. The sum stands whatever commits meanwhile. An
 * event that comes late, between others, makes the predictions of those behind it wrong that are
 * there already. */
#include "protocols/counter_prediction.h"

#include <stdatomic.h>

#include "core/engine.h"
#include "core/narrow.h"
#include "core/redo_index.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "protocols/delta.h"
#include "specstream.h"

/* Of what transactions add the mean is kept in parts of one, over about the last eight of them. What each
 * sample moves it by is rounded to whole parts: so these are small. */
enum { PARTS = 4096, MOST_SAMPLES = 8 };

static const uint64_t unknown = UINT64_MAX;

static uint64_t to_the_nearest(uint64_t dividend, uint64_t divisor)
{
    return (dividend + divisor / 2) / divisor;
}

/* Which counter a word is; -1: there are more counters than places. A word takes its place with its
 * first increment and keeps it. */
static int counter_of(struct ss_engine *engine, uint64_t word)
{
    for (int i = 0; i < SS_COUNTERS; i++) {
        _Atomic uint64_t *name = &engine->counters[i].name;
        /* Relaxed: a name, once there, stays, and nothing else is read on its account. */
        uint64_t known = atomic_load_explicit(name, memory_order_relaxed);
        if (known == 0)
            atomic_compare_exchange_strong_explicit(name, &known, word + 1, memory_order_relaxed,
                                                    memory_order_relaxed);
        if (known == word + 1 || known == 0)
            return i;
    }
    return -1;
}

/* What a transaction adds to a counter, as far as one can know; `usual`: what one like it does. */
static uint64_t foreseen_increments(struct ss_engine *engine, int64_t number, int counter,
                                    uint64_t usual)
{
    struct ss_transaction *transaction = ss_slot_of(engine, number);
    bool finished = ss_has_finished(transaction, number);
    /* Relaxed, here and below: a look at another one's run; if it is wrong, it costs a rerun. */
    uint64_t logged =
        atomic_load_explicit(&transaction->increments[counter], memory_order_relaxed);
    if (finished)
        return logged;
    if (atomic_load_explicit(&transaction->counted, memory_order_relaxed) != (uint64_t)number + 1)
        return usual;
    /* A run in place logs nothing: what is there is what its dropped run has logged. */
    if (ss_has_status(transaction, number, SS_IN_PLACE))
        return logged;
    uint64_t expected =
        atomic_load_explicit(&transaction->expected[counter], memory_order_relaxed);
    uint64_t least = expected == unknown ? usual : expected;
    return logged > least ? logged : least;
}

static uint64_t foresee(struct ss_run *run, uint64_t word, int counter)
{
    struct ss_engine *engine = run->worker->engine;
    const struct ss_transaction *transaction = run->worker->transaction;
    int64_t own = transaction->number;
    if (counter >= 0 && ss_goes_by_key(engine) && transaction->foretold[counter].known)
        return transaction->foretold[counter].value;
    if (counter < 0 || ss_goes_by_key(engine))
        return ss_word_read(&run->state[word]);
    struct ss_counter *noted = &engine->counters[counter];
    /* Acquire: the value belongs to this number, or a later look at the number tells. */
    int64_t number = atomic_load_explicit(&noted->number, memory_order_acquire);
    uint64_t value = atomic_load_explicit(&noted->value, memory_order_relaxed);
    uint64_t usual = to_the_nearest(atomic_load_explicit(&noted->usual, memory_order_relaxed),
                                    PARTS);
    /* Without the fence the number could be looked at again before the value is read. */
    atomic_thread_fence(memory_order_acquire);
    if (number < 0 || number > own ||
        atomic_load_explicit(&noted->number, memory_order_relaxed) != number)
        return ss_word_read(&run->state[word]);
    /* The head's is there to be read. What was noted may be older than a timer that has fired before it
     * and changed the word; and a head that foretold the same again would run again for ever. */
    if (number == own)
        return ss_word_read(&run->state[word]);
    for (; number < own; number++)
        value += foreseen_increments(engine, number, counter, usual);
    return value;
}

uint64_t ss_predict_increment(struct ss_run *run, uint64_t word, ss_reader read)
{
    struct ss_slot *slot = ss_redo_find(run, word);
    int counter = counter_of(run->worker->engine, word);
    if (slot->key == (run->epoch_key | SS_PENDING | word) &&
        ss_delta_find(run, slot, ss_unit_at(8 * word, 8), read) == NULL)
        return 0;
    if (ss_slot_is_empty(run, slot)) {
        if (run->read_top == run->read_end || run->redo_count == run->redo_limit) {
            run->verdict = SS_LOG_FULL;
            return 0;
        }
        uint64_t value = foresee(run, word, counter);
        *run->read_top++ = (struct ss_read){(uint32_t)word, SS_PREDICTION, run->site, value};
        struct ss_write write = {.word = (uint32_t)word, .delta = SS_FORESEEN, .value = value};
        ss_redo_append(run, slot, write);
        run->delta_count++;
    }
    if (counter >= 0) {
        _Atomic uint64_t *logged = &run->worker->transaction->increments[counter];
        /* Relaxed: only this thread writes it, and who reads it guesses. */
        uint64_t before = atomic_load_explicit(logged, memory_order_relaxed);
        atomic_store_explicit(logged, before + 1, memory_order_relaxed);
    }
    return ++*ss_slot_value(run, slot);
}

void ss_prediction_begin(struct ss_transaction *transaction)
{
    uint64_t name = (uint64_t)transaction->number + 1;
    /* Relaxed, all of them: who reads it guesses. */
    bool again = atomic_load_explicit(&transaction->counted, memory_order_relaxed) == name;
    /* A run that ended early may not have come to its increments. */
    bool is_whole = again && transaction->verdict == SS_COMPLETED;
    for (int i = 0; i < SS_COUNTERS; i++) {
        uint64_t logged = atomic_load_explicit(&transaction->increments[i], memory_order_relaxed);
        if (is_whole || !again)
            atomic_store_explicit(&transaction->expected[i], is_whole ? logged : unknown,
                                  memory_order_relaxed);
        atomic_store_explicit(&transaction->increments[i], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&transaction->counted, name, memory_order_relaxed);
}

/* A transaction of so many events has added so much: its part in what they add in the mean. */
static void learn(struct ss_counter *counter, uint64_t added, uint64_t events)
{
    /* Relaxed: only who may change a note changes it, and who reads it guesses. */
    uint64_t usual = atomic_load_explicit(&counter->usual, memory_order_relaxed);
    /* What it has by a plain store is not counted, and must not be expected for long. */
    uint64_t most = usual / PARTS + events;
    if ((int64_t)added < 0)
        added = 0;
    if (added > most)
        added = most;
    if (counter->samples < MOST_SAMPLES)
        counter->samples++;
    int64_t off = (int64_t)(PARTS * added - usual) / (int64_t)counter->samples;
    atomic_store_explicit(&counter->usual, usual + (uint64_t)off, memory_order_relaxed);
}

/* The word, at the instant at which transaction `number` begins. */
static void note(struct ss_engine *engine, struct ss_counter *counter, int64_t number)
{
    /* Relaxed, but for the last store: only who holds the turn, or in an open job its mutex,
     * changes a note. */
    uint64_t word = atomic_load_explicit(&counter->name, memory_order_relaxed) - 1;
    uint64_t value = ss_word_read(&engine->state[word]);
    uint64_t before = atomic_load_explicit(&counter->value, memory_order_relaxed);
    bool follows = atomic_load_explicit(&counter->number, memory_order_relaxed) == number - 1;
    atomic_store_explicit(&counter->number, -1, memory_order_relaxed);
    /* Without the fence a new value could be seen under the old number. */
    atomic_thread_fence(memory_order_release);
    if (follows && number > 0)
        learn(counter, value - before, (uint64_t)engine->job.chunk);
    atomic_store_explicit(&counter->value, value, memory_order_relaxed);
    /* Release: who sees the number sees the value. */
    atomic_store_explicit(&counter->number, number, memory_order_release);
}

void ss_prediction_fold(struct ss_engine *engine, int64_t number)
{
    for (int i = 0; i < SS_COUNTERS; i++) {
        /* Relaxed: a name that is seen late is noted from the next commit on. */
        if (atomic_load_explicit(&engine->counters[i].name, memory_order_relaxed) == 0)
            return;
        note(engine, &engine->counters[i], number);
    }
}

void ss_prediction_look_ahead(struct ss_engine *engine, struct ss_transaction *transaction,
                              const uint64_t *earlier, uint64_t count)
{
    uint64_t chunk = (uint64_t)engine->job.chunk;
    for (int i = 0; i < SS_COUNTERS; i++) {
        const struct ss_counter *counter = &engine->counters[i];
        /* Relaxed: in an open job it is noted under the mutex that we hold. */
        uint64_t value = atomic_load_explicit(&counter->value, memory_order_relaxed);
        uint64_t usual = atomic_load_explicit(&counter->usual, memory_order_relaxed);
        /* Before the head there is nothing to foretell: see foresee. */
        bool known =
            count > 0 && atomic_load_explicit(&counter->number, memory_order_relaxed) >= 0;
        for (uint64_t at = 0; known && at < count; at++) {
            const struct ss_transaction *other = &engine->ring[earlier[at]];
            uint64_t events = (uint64_t)(other->last - other->first);
            value += foreseen_increments(engine, other->number, i,
                                         to_the_nearest(usual * events, PARTS * chunk));
        }
        transaction->foretold[i].known = known;
        transaction->foretold[i].value = value;
    }
}

void ss_prediction_fold_open(struct ss_engine *engine, int64_t events)
{
    uint64_t chunk = (uint64_t)engine->job.chunk;
    for (int i = 0; i < SS_COUNTERS; i++) {
        struct ss_counter *counter = &engine->counters[i];
        /* Relaxed, here and below: only who holds the mutex changes a note. */
        if (atomic_load_explicit(&counter->name, memory_order_relaxed) == 0)
            return;
        bool known = atomic_load_explicit(&counter->number, memory_order_relaxed) >= 0;
        uint64_t before = atomic_load_explicit(&counter->value, memory_order_relaxed);
        note(engine, counter, 0);
        uint64_t more = atomic_load_explicit(&counter->value, memory_order_relaxed) - before;
        if (known && events > 0)
            learn(counter, to_the_nearest(more * chunk, (uint64_t)events), chunk);
    }
}

void ss_prediction_start(struct ss_engine *engine, int64_t chunk_before)
{
    for (int i = 0; i < SS_COUNTERS; i++) {
        struct ss_counter *counter = &engine->counters[i];
        /* Relaxed, here and below: no worker is in a job. */
        uint64_t usual = atomic_load_explicit(&counter->usual, memory_order_relaxed);
        uint64_t now = (uint64_t)engine->job.chunk;
        /* As often for each event as before. */
        if (chunk_before > 0 && chunk_before != engine->job.chunk)
            usual = usual * now / (uint64_t)chunk_before;
        atomic_store_explicit(&counter->usual, usual, memory_order_relaxed);
        atomic_store_explicit(&counter->number, -1, memory_order_relaxed);
    }
    ss_prediction_fold(engine, 0);
}
