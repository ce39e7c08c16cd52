/* Boosted structures (Brito 2010, 4.4.1; after Herlihy and Koskinen, PPoPP 2008).
 *
 * To insert one key into a sorted list, an event reads all smaller ones, and conflicts with every
 * change to them. But insertions of different keys commute: which of two comes first cannot be told
 * from what they return. A boosted structure is not instrumented. Its operations run as they are, on
 * memory that all speculative runs share, and what is known of them keeps transactions apart:
 *
 *   abstract locks  an operation takes the lock of its key, found by the key's hash, and keeps it until
 *                   its transaction has committed or is dropped. What changes something excludes all
 *                   others; what only looks, or reports that there was nothing to change, goes with
 *                   its like (Table 4.2). An earlier transaction that finds a later one's lock in
 *                   its way takes it, and the later one is dropped; a later one that finds an
 *                   earlier one's is dropped itself.
 *   inverses        each change has an inverse. When a transaction is dropped, the inverses of its
 *                   operations run, the last one first. All that others have done meanwhile commutes
 *                   with them, or they would not have got the locks.
 *
 * Two copies. The state belongs to the head (invariant 1), and where in a list of blocks a key ends
 * up depends on the order of all insertions, so the memory that speculation shares cannot be the
 * state. It is a *shadow* of the boosted fields. A speculative run does its operations on the shadow
 * and takes what they return; when it has become the head, the same operations are done on the state,
 * in the order of events, and must return the same: so the state is that of the sequential run in
 * every bit, and an operation that was declared wrongly costs reruns and never a result. The head in
 * place works on the state, and each of its operations follows on the shadow at once.
 *
 * One *latch* guards shadow, locks, and the list of what each transaction has done. It is held for one
 * operation; who waits for long has the operation killed, as speculation may have called it with any
 * arguments. Whoever takes a lock over runs the inverses himself, under the latch: so the victim need
 * not be waited for, and learns of it at its next operation, or when it wants to commit.
 *
 * An operation that raises is taken back by an undo log of its own; a run that catches what it raised
 * holds the lock as one that has only looked. Where an inverse fails, or the head
 * sees something else on the shadow than on the state, the shadow is *broken*: all that have worked on
 * it are dropped, and whoever next holds the turn copies the state.
 *
 * To fault is to fail (fault.c). On the shadow a fault costs the speculative run that asked for the
 * operation, or the shadow, where it was an inverse or an operation of the head's; and at the commit a
 * run in place, which names the event if it faults again. What keeps the latch is itself never left
 * half-way: it works outside, and only the operation is inside.
 *
 * One file, because the shadow, the locks on it and the operations done are one structure under one latch. */
#include "protocols/boosting.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/call.h"
#include "core/engine.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/undo_log.h"
#include "core/worker.h"
#include "local/arena.h"
#include "processor/fault.h"
#include "processor/processor.h"
#include "processor/stack.h"
#include "specstream.h"
#include "specstream_local.h"

enum { BUCKET_BITS = 10, BUCKETS = 1 << BUCKET_BITS };
/* Operations of one transaction. */
enum { MOST_PERFORMED = 512 };
/* An operation that others wait for longer than this is killed. */
enum { PATIENCE_NANOSECONDS = 20000000 };
enum { UNDO_ENTRIES = 256 };

/* The abstract lock of a key of a field. */
struct lock {
    uint64_t field; /* its first word */
    uint64_t key;
};

/* An operation that a transaction has done on the shadow, and the lock that it holds for it. */
struct ss_performed {
    struct ss_transaction *by;
    struct ss_performed *next; /* of the same bucket */
    struct ss_performed *previous;
    uint32_t operation;
    struct lock lock;
    bool excludes; /* it has changed something */
    uint32_t raised; /* its status, where it has raised; then it has changed nothing */
    uint64_t operands[SS_OPERANDS];
    uint64_t result;
};

struct ss_boost {
    pthread_mutex_t latch; /* guards all that follows and is not atomic */
    struct ss_boosted *operations;
    uint64_t *shadow; /* of the words of the state from `first` on */
    uint64_t first;
    struct ss_performed *held[BUCKETS]; /* locks that are held, by their hash */
    /* Works on the shadow for whoever has the latch: its run's state is the shadow. It is lent to
     * threads that are no workers, and so has a signal stack. */
    struct ss_worker shadow_worker;
    _Atomic uint32_t broken;
    bool stale; /* between jobs: the state has changed since */
};

/* ---- life ---- */

static uint64_t shadow_words(const struct ss_config *config)
{
    return config->boosted_end - config->boosted_first;
}

uint64_t ss_boost_bytes(const struct ss_config *config)
{
    if (config->operations == 0)
        return 0;
    return sizeof(struct ss_boost) + shadow_words(config) * sizeof(uint64_t) +
           config->operations * sizeof(struct ss_boosted) +
           UNDO_ENTRIES * sizeof(struct ss_undo) + SS_SIGNAL_STACK_BYTES +
           ss_arena_most_bytes(config);
}

uint64_t ss_boost_transaction_bytes(const struct ss_config *config)
{
    return config->operations == 0 ? 0 : MOST_PERFORMED * sizeof(struct ss_performed);
}

bool ss_boost_open(struct ss_engine *engine)
{
    const struct ss_config *config = &engine->config;
    if (config->operations == 0)
        return true;
    struct ss_boost *boost = NULL;
    if (posix_memalign((void **)&boost, SS_CACHE_LINE, sizeof *boost) != 0)
        return false;
    memset(boost, 0, sizeof *boost);
    engine->boost = boost;
    pthread_mutex_init(&boost->latch, NULL);
    boost->first = config->boosted_first;
    boost->stale = true;
    /* Zeroed by the system where it is touched: what lies between two boosted fields takes none. */
    boost->shadow = calloc(shadow_words(config), sizeof *boost->shadow);
    boost->operations = calloc(config->operations, sizeof *boost->operations);
    struct ss_run *run = &boost->shadow_worker.run;
    boost->shadow_worker.engine = engine;
    boost->shadow_worker.undo_entries = UNDO_ENTRIES;
    run->worker = &boost->shadow_worker;
    run->undo_base = malloc(UNDO_ENTRIES * sizeof *run->undo_base);
    boost->shadow_worker.containment.stacks.signal_stack = (stack_t){
        .ss_sp = malloc(SS_SIGNAL_STACK_BYTES),
        .ss_size = SS_SIGNAL_STACK_BYTES,
    };
    if (boost->shadow == NULL || boost->operations == NULL || run->undo_base == NULL ||
        !ss_arena_open(run, config, true) || boost->shadow_worker.containment.stacks.signal_stack.ss_sp == NULL)
        return false;
    run->undo_top = run->undo_base;
    run->undo_end = run->undo_base + UNDO_ENTRIES;
    /* Words are counted from the start of the state. As an integer: the pointer is outside of what
     * was allocated until an offset within the fields is added. */
    run->state = (uint64_t *)((uintptr_t)boost->shadow - boost->first * sizeof(uint64_t));
    return true;
}

void ss_boost_close(struct ss_engine *engine)
{
    struct ss_boost *boost = engine->boost;
    if (boost == NULL)
        return;
    pthread_mutex_destroy(&boost->latch);
    free(boost->shadow_worker.run.undo_base);
    ss_arena_close(&boost->shadow_worker.run);
    free(boost->shadow_worker.containment.stacks.signal_stack.ss_sp);
    free(boost->shadow);
    free(boost->operations);
    free(boost);
}

void ss_engine_set_operation(struct ss_engine *engine, uint64_t number,
                             const struct ss_boosted *operation)
{
    engine->boost->operations[number] = *operation;
}

void ss_boost_state_changed(struct ss_engine *engine)
{
    if (engine->boost != NULL)
        engine->boost->stale = true;
}

/* ---- the latch ---- */

static bool lock_within(pthread_mutex_t *mutex, int64_t nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until); /* which pthread_mutex_timedlock counts in */
    int64_t at = until.tv_nsec + nanoseconds;
    until.tv_sec += (time_t)(at / 1000000000);
    until.tv_nsec = (long)(at % 1000000000);
    return pthread_mutex_timedlock(mutex, &until) == 0;
}

static void take_latch(struct ss_boost *boost)
{
    if (pthread_mutex_trylock(&boost->latch) == 0)
        return;
    while (!lock_within(&boost->latch, PATIENCE_NANOSECONDS))
        /* Relaxed: it is polled, and asked again until it is seen. */
        __atomic_store_n(&boost->shadow_worker.run.kill, SS_LEAVE, __ATOMIC_RELAXED);
}

static void give_latch(struct ss_boost *boost)
{
    pthread_mutex_unlock(&boost->latch);
}

/* ---- operations ---- */

/* Calls an operation or an inverse; false: it has not come to its end. */
static bool call(struct ss_run *run, ss_operation_entry entry, const uint64_t *operands,
                 uint64_t result, uint64_t *returned)
{
    memcpy(run->operands, operands, SS_OPERANDS * sizeof *operands);
    run->operands[SS_OPERANDS] = result;
    return ss_call_operation(run, entry, returned);
}

/* On the shadow. What it has changed is in the hand's undo log until the next one. */
static bool perform(struct ss_boost *boost, ss_operation_entry entry, const uint64_t *operands,
                    uint64_t result, uint64_t *returned)
{
    struct ss_run *run = &boost->shadow_worker.run;
    run->undo_top = run->undo_base;
    ss_arena_begin(run);
    /* Relaxed: with the latch; one that was meant for the last operation is taken down. */
    __atomic_store_n(&run->kill, 0, __ATOMIC_RELAXED);
    struct ss_run *event = ss_arena_run(NULL); /* in whose midst it is performed */
    ss_arena_enter(run);
    bool has_returned = call(run, entry, operands, result, returned);
    ss_arena_enter(event);
    if (!has_returned)
        ss_undo_roll_back(run);
    return has_returned;
}

/* Whether the operation just performed has to exclude others. */
static bool has_changed(const struct ss_boost *boost, const struct ss_boosted *operation)
{
    return operation->inverse != NULL && boost->shadow_worker.run.changed != 0;
}

/* ---- abstract locks ---- */

static struct lock lock_of(const struct ss_boosted *operation, const uint64_t *operands)
{
    return (struct lock){operation->first, operands[0]};
}

static struct ss_performed **bucket_of(struct ss_boost *boost, struct lock lock)
{
    uint64_t mixed = (lock.key + lock.field) * UINT64_C(0x9e3779b97f4a7c15);
    return &boost->held[mixed >> (64 - BUCKET_BITS)];
}

static bool is_earlier(const struct ss_engine *engine, const struct ss_transaction *one,
                       const struct ss_transaction *other)
{
    return ss_goes_by_key(engine) ? ss_has_earlier_key(one, other) : one->number < other->number;
}

/* Changed with the latch. Whoever runs or drops the transaction looks without it, and goes on where
 * there is nothing: acquire, because a thief who has set it to 0 has looked at the transaction's
 * number before, which may be written next. */
static uint32_t performed_count(const struct ss_transaction *transaction)
{
    return atomic_load_explicit(&transaction->performed_count, memory_order_acquire);
}

static void set_performed_count(struct ss_transaction *transaction, uint32_t count)
{
    /* Release: pairs with the acquire in performed_count. */
    atomic_store_explicit(&transaction->performed_count, count, memory_order_release);
}

static void release(struct ss_boost *boost, struct ss_performed *held)
{
    if (held->previous != NULL)
        held->previous->next = held->next;
    else
        *bucket_of(boost, held->lock) = held->next;
    if (held->next != NULL)
        held->next->previous = held->previous;
}

static void set_stolen(struct ss_transaction *victim, int64_t thief)
{
    /* Relaxed: the victim's next operation sees it by the latch, and its commit by the turn. */
    atomic_store_explicit(&victim->stolen_by, thief, memory_order_relaxed);
}

/* Nobody's operations on the shadow count any more. */
static void break_shadow(struct ss_engine *engine)
{
    struct ss_boost *boost = engine->boost;
    for (uint64_t i = 0; i < engine->ring_size; i++) {
        struct ss_transaction *transaction = &engine->ring[i];
        if (performed_count(transaction) == 0)
            continue;
        set_performed_count(transaction, 0);
        set_stolen(transaction, -1);
    }
    memset(boost->held, 0, sizeof boost->held);
    /* Relaxed: with the latch, with which it is believed. */
    atomic_store_explicit(&boost->broken, 1, memory_order_relaxed);
}

/* Takes back what a transaction has done, the last operation first. */
static void take_back(struct ss_engine *engine, struct ss_transaction *transaction)
{
    struct ss_boost *boost = engine->boost;
    for (uint32_t i = performed_count(transaction); i > 0; i--) {
        struct ss_performed *done = &transaction->performed[i - 1];
        const struct ss_boosted *operation = &boost->operations[done->operation];
        uint64_t ignored;
        if (done->excludes &&
            !perform(boost, operation->inverse, done->operands, done->result, &ignored)) {
            break_shadow(engine);
            return;
        }
        release(boost, done);
        set_performed_count(transaction, i - 1);
    }
}

static bool stands_in_the_way(const struct ss_performed *held, struct lock lock,
                              const struct ss_transaction *transaction, bool excludes)
{
    return held->by != transaction && held->lock.key == lock.key &&
           held->lock.field == lock.field && (excludes || held->excludes);
}

/* The earliest transaction that holds a lock and may keep it; NULL: there is none. */
static const struct ss_transaction *keeper_of(const struct ss_engine *engine, struct lock lock,
                                              const struct ss_transaction *transaction,
                                              bool excludes)
{
    const struct ss_transaction *keeper = NULL;
    for (const struct ss_performed *held = *bucket_of(engine->boost, lock); held != NULL;
         held = held->next)
        if (stands_in_the_way(held, lock, transaction, excludes) &&
            is_earlier(engine, held->by, transaction) &&
            (keeper == NULL || is_earlier(engine, held->by, keeper)))
            keeper = held->by;
    return keeper;
}

/* Takes a lock from all others that stand in the way; `transaction` NULL: for the head in place. */
static void take_over(struct ss_engine *engine, struct lock lock,
                      const struct ss_transaction *transaction, bool excludes, int64_t thief)
{
    struct ss_performed **bucket = bucket_of(engine->boost, lock);
    struct ss_performed *held = *bucket;
    while (held != NULL) {
        struct ss_transaction *victim = held->by;
        if (!stands_in_the_way(held, lock, transaction, excludes)) {
            held = held->next;
            continue;
        }
        set_stolen(victim, thief);
        take_back(engine, victim);
        held = *bucket; /* which is another list now */
    }
}

/* ---- speculative runs ---- */

/* What a run is said to be dropped for: the field that it has lost. */
static struct ss_place place_of(const struct ss_boosted *operation, uint16_t site)
{
    return (struct ss_place){(uint32_t)operation->first, 0, site};
}

static void abort_run(struct ss_run *run, const struct ss_boosted *operation,
                      enum ss_abort_reason reason, int64_t lost_to)
{
    struct ss_transaction *transaction = run->worker->transaction;
    run->verdict = SS_ABORTED;
    transaction->reason = reason;
    transaction->conflict = place_of(operation, run->site);
    /* Relaxed: the status of the dropped run releases it. */
    atomic_store_explicit(&transaction->waits_for, lost_to, memory_order_relaxed);
}

static void copy_state(struct ss_engine *engine)
{
    struct ss_boost *boost = engine->boost;
    const uint64_t *state = engine->state;
    for (uint64_t i = 0; i < engine->config.operations; i++) {
        const struct ss_boosted *operation = &boost->operations[i];
        if (i > 0 && operation->first == operation[-1].first)
            continue; /* of the same field */
        for (uint64_t word = operation->first; word < operation->first + operation->words; word++)
            boost->shadow[word - boost->first] = ss_word_read(&state[word]);
    }
    /* Relaxed: with the latch, or between jobs. */
    atomic_store_explicit(&boost->broken, 0, memory_order_relaxed);
}

/* Whether the shadow can be used; only with the turn it can be copied, so that may have to wait. */
static bool is_whole(struct ss_engine *engine)
{
    /* Relaxed: with the latch. */
    if (atomic_load_explicit(&engine->boost->broken, memory_order_relaxed) == 0)
        return true;
    if (!ss_try_turn(engine))
        return false;
    copy_state(engine);
    /* Who wanted the turn meanwhile relies on us to look at the head: we do, after this run. */
    ss_release_turn(engine);
    return true;
}

static void note(struct ss_boost *boost, struct ss_transaction *transaction,
                 struct ss_performed done)
{
    uint32_t count = performed_count(transaction);
    struct ss_performed *entry = &transaction->performed[count];
    *entry = done;
    entry->by = transaction;
    struct ss_performed **bucket = bucket_of(boost, done.lock);
    for (const struct ss_performed *held = *bucket; held != NULL; held = held->next)
        assert(!stands_in_the_way(held, done.lock, transaction, done.excludes));
    entry->next = *bucket;
    if (entry->next != NULL)
        entry->next->previous = entry;
    *bucket = entry;
    set_performed_count(transaction, count + 1);
}

/* With the latch. */
static uint64_t perform_speculatively(struct ss_run *run, uint64_t number, const uint64_t *operands)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_boost *boost = engine->boost;
    struct ss_transaction *transaction = run->worker->transaction;
    const struct ss_boosted *operation = &boost->operations[number];
    struct ss_performed done = {.operation = (uint32_t)number,
                                .lock = lock_of(operation, operands)};
    /* Relaxed: with the latch, with which it changes. */
    int64_t stolen_by = atomic_load_explicit(&transaction->stolen_by, memory_order_relaxed);

    if (stolen_by != SS_NOT_STOLEN) {
        abort_run(run, operation, stolen_by < 0 ? SS_ABORT_SHADOW : SS_ABORT_STOLEN, stolen_by);
        return 0;
    }
    if (!is_whole(engine)) {
        abort_run(run, operation, SS_ABORT_SHADOW, -1);
        return 0;
    }
    if (performed_count(transaction) == MOST_PERFORMED) {
        run->verdict = SS_LOG_FULL;
        return 0;
    }
    const struct ss_transaction *keeper = keeper_of(engine, done.lock, transaction, false);
    if (keeper == NULL) {
        take_over(engine, done.lock, transaction, false, transaction->number);
        bool returned = perform(boost, operation->entry, operands, 0, &done.result);
        uint32_t verdict = boost->shadow_worker.run.verdict;
        if (!returned && verdict != SS_COMPLETED) {
            run->verdict = verdict;
            return 0;
        }
        done.raised = boost->shadow_worker.run.raised;
        done.excludes = returned && has_changed(boost, operation);
        if (done.excludes) {
            keeper = keeper_of(engine, done.lock, transaction, true);
            if (keeper == NULL)
                take_over(engine, done.lock, transaction, true, transaction->number);
            else
                ss_undo_roll_back(&boost->shadow_worker.run);
        }
    }
    if (keeper != NULL) {
        abort_run(run, operation, SS_ABORT_LOCKED, keeper->number);
        return 0;
    }
    /* Taking over may have broken the shadow, and ourselves with it. */
    if (atomic_load_explicit(&boost->broken, memory_order_relaxed) != 0) {
        abort_run(run, operation, SS_ABORT_SHADOW, -1);
        return 0;
    }
    memcpy(done.operands, operands, sizeof done.operands);
    note(boost, transaction, done);
    run->raised = done.raised;
    if (done.raised != 0)
        run->verdict = SS_RAISED;
    return done.result;
}

uint64_t ss_boost(struct ss_run *run, uint64_t operation, const uint64_t *operands)
{
    sig_atomic_t was = ss_step_outside();
    take_latch(run->worker->engine->boost);
    uint64_t result = perform_speculatively(run, operation, operands);
    give_latch(run->worker->engine->boost);
    ss_step_inside(was);
    return result;
}

void ss_boost_begin(struct ss_transaction *transaction)
{
    assert(performed_count(transaction) == 0);
    set_stolen(transaction, SS_NOT_STOLEN);
}

void ss_boost_roll_back(struct ss_engine *engine, struct ss_transaction *transaction)
{
    struct ss_boost *boost = engine->boost;
    if (performed_count(transaction) == 0)
        return;
    take_latch(boost);
    bool stranger = ss_this_containment() == NULL &&
                    ss_fault_open_thread(&boost->shadow_worker.containment);
    take_back(engine, transaction);
    if (stranger)
        ss_fault_close_thread(&boost->shadow_worker.containment);
    give_latch(boost);
}

/* ---- the head ---- */

/* With the latch: ends a transaction's hold on the shadow; false: something was stolen from it. */
static bool let_go(struct ss_engine *engine, struct ss_transaction *transaction, uint32_t *count)
{
    *count = performed_count(transaction);
    /* Relaxed: with the latch. */
    if (atomic_load_explicit(&transaction->stolen_by, memory_order_relaxed) != SS_NOT_STOLEN)
        return false;
    for (uint32_t i = 0; i < *count; i++)
        release(engine->boost, &transaction->performed[i]);
    set_performed_count(transaction, 0);
    return true;
}

enum ss_abort_reason ss_boost_loss(struct ss_engine *engine, struct ss_transaction *transaction)
{
    int64_t thief = atomic_load_explicit(&transaction->stolen_by, memory_order_relaxed);
    /* The entries are still what they were, though they count no more. */
    const struct ss_performed *done = &transaction->performed[0];
    transaction->conflict = place_of(&engine->boost->operations[done->operation], 0);
    return thief < 0 ? SS_ABORT_SHADOW : SS_ABORT_STOLEN;
}

bool ss_boost_commit(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_engine *engine = worker->engine;
    struct ss_boost *boost = engine->boost;
    struct ss_run *run = &worker->run;
    uint32_t count;
    if (boost == NULL)
        return true;
    assert(ss_turn_is_held(engine)); /* invariant 1 */
    take_latch(boost);
    bool kept = let_go(engine, transaction, &count);
    give_latch(boost);
    if (!kept) { /* only just: nobody but a broken shadow takes it from the head */
        transaction->reason = SS_ABORT_SHADOW;
        return false;
    }
    run->undo_top = run->undo_base;
    ss_arena_begin(run);
    ss_arena_enter(run);
    /* Relaxed: as before a run in place (commit.c). A wish to leave that is still up is not
     * meant for the commit. */
    __atomic_store_n(&run->speculative, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&run->kill, 0, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; i++) {
        const struct ss_performed *done = &transaction->performed[i];
        uint64_t result;
        uint64_t before = (uint64_t)((char *)run->undo_top - (char *)run->undo_base);
        bool returned =
            call(run, boost->operations[done->operation].entry, done->operands, 0, &result);
        if (returned && done->raised == 0 && result == done->result)
            continue;
        if (done->raised != 0 && run->raised == done->raised && run->verdict == SS_COMPLETED) {
            ss_undo_back(run, before); /* an operation that raises changes nothing */
            continue;
        }
        /* Not what the shadow said: two operations commute less than they were said to. Or a fault,
         * or no memory: the run in place may meet it again, and tells of which event. */
        ss_undo_roll_back(run);
        transaction->reason = SS_ABORT_SHADOW;
        if (run->verdict == SS_FAULTED || run->verdict == SS_NO_MEMORY) {
            transaction->verdict = run->verdict;
            transaction->reason = ss_reason_of(run->verdict);
        }
        transaction->conflict = place_of(&boost->operations[done->operation], 0);
        take_latch(boost);
        break_shadow(engine);
        give_latch(boost);
        return false;
    }
    run->undo_top = run->undo_base;
    return true;
}

void ss_boost_follow(struct ss_run *run, uint64_t number, const uint64_t *operands, uint64_t result)
{
    struct ss_worker *worker = run->worker;
    struct ss_engine *engine = worker->engine;
    struct ss_boost *boost = engine->boost;
    const struct ss_boosted *operation = &boost->operations[number];
    struct lock lock = lock_of(operation, operands);
    /* Relaxed: only holders of the turn move the head. */
    int64_t thief = atomic_load_explicit(&engine->next_commit, memory_order_relaxed);
    assert(ss_turn_is_held(engine));
    sig_atomic_t was = ss_step_outside();
    take_latch(boost);
    worker->has_followed = 1;
    /* Relaxed: with the latch. */
    if (atomic_load_explicit(&boost->broken, memory_order_relaxed) == 0) {
        uint64_t same;
        /* All others are later. */
        take_over(engine, lock, NULL, false, thief);
        if (!perform(boost, operation->entry, operands, 0, &same) || same != result)
            break_shadow(engine);
        else if (has_changed(boost, operation))
            take_over(engine, lock, NULL, true, thief);
    }
    give_latch(boost);
    ss_step_inside(was);
}

void ss_boost_undo_head(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    if (engine->boost == NULL || worker->has_followed == 0)
        return;
    worker->has_followed = 0;
    take_latch(engine->boost);
    break_shadow(engine);
    copy_state(engine);
    give_latch(engine->boost);
}

/* ---- jobs ---- */

void ss_boost_start(struct ss_engine *engine)
{
    struct ss_boost *boost = engine->boost;
    const struct ss_job *job = &engine->job;
    if (boost == NULL)
        return;
    /* With early results such events run in place only, and nobody needs the shadow. */
    bool boosting = job->mode == SS_MODE_SPECULATE ||
                    (job->mode == SS_MODE_OPEN && job->early_bytes == 0) ||
                    (job->mode == SS_MODE_ORDERED && job->horizon > 0);
    /* What the last job has left in the wait queue is not committed. */
    for (uint64_t i = 0; i < engine->ring_size; i++) {
        boost->stale = boost->stale || performed_count(&engine->ring[i]) > 0;
        set_performed_count(&engine->ring[i], 0);
    }
    /* Relaxed: no worker is in a job. */
    boost->stale = boost->stale || atomic_load_explicit(&boost->broken, memory_order_relaxed) != 0;
    if (boosting && boost->stale) {
        memset(boost->held, 0, sizeof boost->held);
        copy_state(engine);
    }
    boost->stale = !boosting;
    for (uint64_t i = 0; i < engine->config.threads; i++) {
        engine->workers[i].run.boosting = boosting;
        engine->workers[i].has_followed = 0;
    }
}
