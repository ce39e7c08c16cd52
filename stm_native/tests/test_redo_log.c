/* The redo log and its index, from one thread: a load finds the store of its own transaction, and
 * nothing of an earlier one. */
#include <stdio.h>

#include "core/engine.h"
#include "core/redo_log.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "specstream.h"
#include "steps.h"

/* As many stores as the log holds, and words whose places in the index collide and wrap around. */
enum { STORES = LOG_LIMIT, INDEX = 4 * LOG_LIMIT };

static struct ss_worker *worker;
static struct ss_transaction transaction;
static struct ss_write redo[STORES + 1];
static struct ss_read reads[STORES + 1];

static void begin(const char *name)
{
    scenario = name;
    CHECK(worker->run.slot_mask == INDEX - 1);
    worker->run.speculative = 1;
    worker->run.verdict = SS_COMPLETED;
    transaction.redo = redo;
    transaction.reads = reads;
    ss_redo_begin(worker, &transaction);
    worker->run.read_top = reads;
    worker->run.read_end = reads + STORES;
}

static bool loads(uint64_t word, uint64_t value)
{
    return ss_load(&worker->run, word) == value;
}

static void own_stores_are_found(void)
{
    begin("own stores are found");
    for (uint64_t i = 0; i < STORES; i++)
        ss_store(&worker->run, 3 * i, 100 + i);
    for (uint64_t i = 0; i < STORES; i++)
        CHECK(loads(3 * i, 100 + i));
    CHECK(worker->run.read_top == reads); /* the state was not asked */
    ss_store(&worker->run, 3, 7);
    CHECK(loads(3, 7) && worker->run.redo_count == STORES);
}

/* Compiled code has the hash as well: whoever changes it here changes it there. */
static void places_in_the_index(void)
{
    begin("where in the index a word is looked for");
    CHECK(ss_index_hash(0) == 0 && ss_index_hash(5) == 5 && ss_index_hash(2047) == 2047);
    CHECK(ss_index_hash(2048) == 2049 && ss_index_hash(6149) == 6150);
    CHECK(ss_index_hash(UINT32_MAX) == 0xffe00000);
    ss_store(&worker->run, 5, 7);
    CHECK(worker->run.slots[ss_index_hash(5)].key == (worker->run.epoch_key | 5));
}

static void colliding_words_are_told_apart(void)
{
    begin("words that want the last place of the index");
    /* The hash keeps the low bits below 2048, so these collide and go on at the first place. */
    for (uint64_t i = 0; i < 4; i++)
        ss_store(&worker->run, i * INDEX + INDEX - 1, 50 + i);
    for (uint64_t i = 0; i < 4; i++)
        CHECK(loads(i * INDEX + INDEX - 1, 50 + i));
    CHECK(loads(0, 0) && worker->run.read_top == reads + 1);
}

static void earlier_stores_are_not_found(void)
{
    begin("what an earlier transaction stored");
    ss_store(&worker->run, 5, 1);
    begin("what an earlier transaction stored is not found");
    CHECK(loads(5, 0) && worker->run.read_top == reads + 1);
}

/* After 2^31 - 1 transactions the epochs begin anew, and old entries must not come back to life. */
static void epochs_begin_anew(void)
{
    worker->epoch = 0;
    begin("the first epoch");
    ss_store(&worker->run, 5, 1);
    worker->epoch = UINT32_MAX - 1;
    begin("the first epoch, for the second time");
    CHECK(loads(5, 0));
    ss_store(&worker->run, 5, 2);
    CHECK(loads(5, 2));
}

static void limits(void)
{
    begin("one store more than the log holds");
    for (uint64_t i = 0; i < STORES; i++)
        ss_store(&worker->run, i, i);
    CHECK(worker->run.verdict == SS_COMPLETED);
    ss_store(&worker->run, STORES, 1);
    CHECK(worker->run.verdict == SS_LOG_FULL && worker->run.redo_count == STORES);
    begin("one load more than the log holds");
    for (uint64_t i = 0; i < STORES; i++)
        CHECK(loads(i, 0));
    CHECK(worker->run.verdict == SS_COMPLETED);
    ss_load(&worker->run, STORES);
    CHECK(worker->run.verdict == SS_LOG_FULL && worker->run.read_top == reads + STORES);
}

int main(void)
{
    struct setting setting = {.threads = 1};
    patience_start(20);
    stage_open(&setting);
    worker = &stage_engine()->workers[0];
    own_stores_are_found();
    places_in_the_index();
    colliding_words_are_told_apart();
    earlier_stores_are_not_found();
    epochs_begin_anew();
    limits();
    stage_close();
    patience_stop();
    puts("redo log: passed");
    return 0;
}
