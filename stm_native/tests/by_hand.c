#include "by_hand.h"

#include <stdatomic.h>

#include "containers/keyed_changes.h"
#include "containers/keyed_entries.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/undo_log.h"
#include "core/worker.h"
#include "protocols/counter_prediction.h"
#include "protocols/delta.h"
#include "protocols/eager.h"
#include "specstream.h"

struct ss_engine *engine;

bool is_eager(void)
{
    return engine->protocol == &ss_protocol_eager;
}

struct ss_run *run_of(int number)
{
    return &engine->workers[number].run;
}

struct ss_transaction *transaction_of(int number)
{
    return &engine->ring[number];
}

void begin(int number)
{
    struct ss_run *run = run_of(number);
    run->speculative = 1;
    run->verdict = SS_COMPLETED;
    transaction_of(number)->number = number;
    engine->protocol->begin(&engine->workers[number], transaction_of(number));
    ss_set_status(transaction_of(number), number, SS_RUNNING);
}

bool finishes(int number)
{
    engine->protocol->finish(&engine->workers[number], transaction_of(number));
    ss_set_status(transaction_of(number), number, SS_FINISHED);
    return run_of(number)->verdict == SS_COMPLETED;
}

bool commits(int number)
{
    struct ss_transaction *transaction = transaction_of(number);
    if (!finishes(number) || !engine->protocol->validate(engine, transaction) ||
        !ss_delta_fits(engine, transaction) || !ss_changes_fit(engine, transaction))
        return false;
    engine->protocol->publish(engine, transaction);
    ss_prediction_fold(engine, number + 1);
    atomic_store(&engine->next_commit, number + 1);
    return true;
}

void begin_in_place(int number, int64_t event)
{
    struct ss_run *run = run_of(number);
    run->speculative = 0;
    run->verdict = SS_COMPLETED;
    run->event = event;
    run->undo_top = run->undo_base;
    run->arena_words = 0;
}

void end_in_place(int number, bool undone)
{
    struct ss_worker *worker = &engine->workers[number];
    const struct ss_undo *end = worker->run.undo_top;
    if (undone)
        ss_undo_roll_back(&worker->run);
    ss_touched_settle(worker, undone);
    if (engine->protocol->invalidate_readers != NULL)
        engine->protocol->invalidate_readers(worker, number, end);
}

void hand_drop(int number)
{
    finishes(number);
    engine->protocol->roll_back(engine, transaction_of(number));
}

void hand_open(const char *name, struct ss_config config, void (*first)(void))
{
    scenario = name;
    config.emit_words = config.emit_limit = 1;
    config.threads = 3;
    struct ss_job job = {.chunk = 1, .horizon = 3, .mode = SS_MODE_SPECULATE};
    engine = ss_engine_new(&config);
    CHECK(engine != NULL && ss_engine_start(engine, &job));
    while (!ss_engine_wait(engine, 50)) /* it has no events */
        continue;
    ss_engine_take_turn(engine);
    begin(0);
    if (first != NULL)
        first();
    CHECK(commits(0));
    begin(1);
    begin(2);
}

void hand_close(void)
{
    hand_drop(1);
    hand_drop(2);
    ss_engine_release_turn(engine);
    ss_engine_free(engine);
}
