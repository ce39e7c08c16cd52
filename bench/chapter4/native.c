/* What one access, one transaction, one abort costs: the measurements of Brito 2010, 4.5.1 and 4.5.2.
 *
 * A *lab* is an engine of the runtime whose threads sleep. The transactions are run by hand, through
 * the protocol's own functions, so that each phase can be timed alone; accesses are inlined as in
 * compiled operators. The rivals protect each word by itself: an atomic instruction, a mutex of the
 * system or a spin lock out of an array of LOCKS, chosen by the word.
 *
 * Beside them stand controls, which show what a difference is due to: a lock taken and given back in
 * the same two calls, but without an atomic instruction; a word of a lock that is not acquired, but
 * changed by one atomic instruction; `value` with a lock array beside it; words fetched into the
 * cache before; descriptor and logs allocated anew for each transaction. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../access.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/worker.h"
#include "protocols/ownership_records.h"
#include "specstream.h"

enum method { NONE, ATOMIC, MUTEX, SPIN, VALUE, EAGER, CALLS, TOUCH, RECORDED };
enum access { READ, WRITE, INCREMENT };
enum { LOCKS = 1 << 16, HORIZON = 8, ENTRIES = 1 << 12, RECORDS = 1 << 20 };
/* How a transaction is run; flags. */
enum { FETCHED = 1, ANEW = 2, RUN_BEFORE = 4, UNSEARCHED = 8 };
/* Transactions whose memory is collected together, where it is allocated anew; blocks of each. */
enum { COLLECTED = 64, BLOCKS = 4 };

struct lab {
    struct ss_engine *engine;
    uint64_t *state;
    pthread_mutex_t *mutexes;
    pthread_spinlock_t *spins;
    int *words;        /* of the locks that are none: CALLS and TOUCH */
    uint64_t *records; /* the lock array of RECORDED */
    void *garbage[COLLECTED][BLOCKS];
    int64_t collected;
    uint64_t sum; /* keeps the reads from being optimised away */
};

/* Phases of a transaction, in nanoseconds. */
struct phases {
    double create;
    double access;
    double commit;
};

static int32_t nothing(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)fault, (void)run, (void)first;
    *next = last;
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* What a pair of now() takes; it is subtracted from what is short. */
static double clock_cost(void)
{
    double best = 1e9;
    for (int i = 0; i < 1000; i++) {
        double began = now();
        double took = now() - began;
        best = took < best ? took : best;
    }
    return best;
}

/* `records`: length of the lock array of EAGER; 0: as an engine has it by default. */
struct lab *lab_open(uint64_t *state, uint64_t words, enum method method, uint64_t records)
{
    /* What is freed stays with the process: else a transaction whose memory is allocated anew pays for
     * new pages or does not, by what else is in the heap. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    struct lab *lab = calloc(1, sizeof *lab);
    if (lab == NULL)
        return NULL;
    struct ss_config config = {
        .state = state,
        .state_words = words,
        .emit_words = 1,
        .emit_limit = 1,
        .threads = 2,
        .read_limit = ENTRIES,
        .redo_limit = ENTRIES,
        .records = records,
        .protocol = method == EAGER ? SS_PROTOCOL_EAGER : SS_PROTOCOL_VALUE,
    };
    lab->state = state;
    lab->engine = ss_engine_new(&config);
    lab->mutexes = calloc(LOCKS, sizeof *lab->mutexes);
    lab->spins = calloc(LOCKS, sizeof *lab->spins);
    lab->words = calloc(LOCKS, sizeof *lab->words);
    lab->records = malloc(RECORDS * sizeof *lab->records);
    if (lab->engine == NULL || lab->mutexes == NULL || lab->spins == NULL || lab->words == NULL ||
        lab->records == NULL)
        return NULL;
    for (int i = 0; i < LOCKS; i++)
        lab->words[i] = 0; /* a page of its own each, not the one of zeros */
    memset(lab->records, 1, RECORDS * sizeof *lab->records);
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_init(&lab->mutexes[i], NULL);
        pthread_spin_init(&lab->spins[i], PTHREAD_PROCESS_PRIVATE);
    }
    for (int variant = 0; variant < SS_VARIANTS; variant++)
        ss_engine_set_entry(lab->engine, (enum ss_variant)variant, nothing);
    /* A job gives the engine its ring of transactions. */
    struct ss_job job = {.count = 64, .chunk = 1, .horizon = HORIZON, .mode = SS_MODE_ORDERED};
    if (!ss_engine_start(lab->engine, &job))
        return NULL;
    while (!ss_engine_wait(lab->engine, 50))
        continue;
    atomic_store(&lab->engine->next_commit, 0);
    return lab;
}

void lab_close(struct lab *lab)
{
    ss_engine_free(lab->engine);
    free(lab->mutexes);
    free((void *)lab->spins);
    free(lab->words);
    free(lab->records);
    free(lab);
}

/* ---- one access ---- */

INLINE void plainly(struct lab *lab, enum access access, uint64_t word)
{
    uint64_t *address = &lab->state[word];
    if (access == READ)
        lab->sum += *(volatile uint64_t *)address;
    else if (access == WRITE)
        *(volatile uint64_t *)address = word;
    else
        *(volatile uint64_t *)address += 1;
}

INLINE void atomically(struct lab *lab, enum access access, uint64_t word)
{
    uint64_t *address = &lab->state[word];
    if (access == READ)
        lab->sum += __atomic_load_n(address, __ATOMIC_SEQ_CST);
    else if (access == WRITE)
        __atomic_store_n(address, word, __ATOMIC_SEQ_CST);
    else
        __atomic_fetch_add(address, 1, __ATOMIC_SEQ_CST);
}

/* A function that is not inlined, like those of the system's locks. */
static void __attribute__((noinline)) take_plainly(volatile int *word)
{
    while (*word != 0)
        continue;
    *word = 1;
}

static void __attribute__((noinline)) give_plainly(volatile int *word)
{
    *word = 0;
}

INLINE void in_value(struct lab *lab, struct ss_run *run, const struct fixed *fixed,
                     enum access access, uint64_t word)
{
    uint64_t value = word;
    if (access != WRITE)
        load_transactional(fixed, run, word, &value);
    if (access != READ)
        store_transactional(fixed, run, word, value + 1);
    lab->sum += value;
}

/* As in_value, and with what the lock array costs `eager`: the word's entry is read before and after a
 * read, and exchanged at the first write. */
INLINE void in_recorded(struct lab *lab, struct ss_run *run, const struct fixed *fixed,
                        enum access access, uint64_t word)
{
    uint64_t *record = &lab->records[word % RECORDS];
    uint64_t value = word;
    if (access != WRITE) {
        uint64_t before = __atomic_load_n(record, __ATOMIC_ACQUIRE);
        load_transactional(fixed, run, word, &value);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        lab->sum += before ^ __atomic_load_n(record, __ATOMIC_RELAXED);
    }
    if (access != READ) {
        uint64_t stored = run->redo_count;
        store_transactional(fixed, run, word, value + 1);
        uint64_t version = __atomic_load_n(record, __ATOMIC_ACQUIRE);
        if (run->redo_count != stored)
            __atomic_compare_exchange_n(record, &version, version + 2, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
    }
    lab->sum += value;
}

INLINE void in_eager(struct lab *lab, struct ss_run *run, enum access access, uint64_t word)
{
    uint64_t value = word;
    if (access != WRITE)
        value = ss_eager_load(run, word);
    if (access != READ)
        ss_eager_store(run, word, value + 1);
    lab->sum += value;
}

/* `count` accesses; in a transaction of `run` where the method has transactions. */
INLINE void accesses(struct lab *lab, struct ss_run *run, enum method method, enum access access,
                     const uint32_t *words, int64_t count)
{
    const struct fixed fixed = fixed_of(run);
    for (int64_t i = 0; i < count; i++) {
        uint64_t word = words[i];
        switch (method) {
        case NONE:
            plainly(lab, access, word);
            break;
        case ATOMIC:
            atomically(lab, access, word);
            break;
        case MUTEX:
            pthread_mutex_lock(&lab->mutexes[word % LOCKS]);
            plainly(lab, access, word);
            pthread_mutex_unlock(&lab->mutexes[word % LOCKS]);
            break;
        case SPIN:
            pthread_spin_lock(&lab->spins[word % LOCKS]);
            plainly(lab, access, word);
            pthread_spin_unlock(&lab->spins[word % LOCKS]);
            break;
        case VALUE:
            in_value(lab, run, &fixed, access, word);
            break;
        case EAGER:
            in_eager(lab, run, access, word);
            break;
        case CALLS:
            take_plainly(&lab->words[word % LOCKS]);
            plainly(lab, access, word);
            give_plainly(&lab->words[word % LOCKS]);
            break;
        case TOUCH:
            __atomic_fetch_add(&lab->words[word % LOCKS], 1, __ATOMIC_SEQ_CST);
            plainly(lab, access, word);
            break;
        case RECORDED:
            in_recorded(lab, run, &fixed, access, word);
            break;
        }
    }
}

/* With the method and the kind of access known to the compiler. */
static void run_accesses(struct lab *lab, struct ss_run *run, enum method method,
                         enum access access, const uint32_t *words, int64_t count)
{
#define WITH_ACCESS(method)                                                                        \
    case method:                                                                                   \
        if (access == READ)                                                                        \
            accesses(lab, run, method, READ, words, count);                                        \
        else if (access == WRITE)                                                                  \
            accesses(lab, run, method, WRITE, words, count);                                       \
        else                                                                                       \
            accesses(lab, run, method, INCREMENT, words, count);                                   \
        break;
    switch (method) {
        WITH_ACCESS(NONE)
        WITH_ACCESS(ATOMIC)
        WITH_ACCESS(MUTEX)
        WITH_ACCESS(SPIN)
        WITH_ACCESS(VALUE)
        WITH_ACCESS(EAGER)
        WITH_ACCESS(CALLS)
        WITH_ACCESS(TOUCH)
        WITH_ACCESS(RECORDED)
    }
#undef WITH_ACCESS
}

/* ---- one transaction ---- */

static bool transactional(enum method method)
{
    return method == VALUE || method == EAGER || method == RECORDED;
}

static struct ss_transaction *begin(struct lab *lab, uint64_t worker, int64_t number)
{
    struct ss_worker *own = &lab->engine->workers[worker];
    struct ss_transaction *transaction = ss_slot_of(lab->engine, number);
    own->run.verdict = SS_COMPLETED;
    own->run.speculative = 1;
    transaction->number = number;
    lab->engine->protocol->begin(own, transaction);
    return transaction;
}

/* As the head does it: with the turn, validation, and giving the turn back. */
static bool commit(struct lab *lab, uint64_t worker, struct ss_transaction *transaction)
{
    const struct ss_protocol *protocol = lab->engine->protocol;
    protocol->finish(&lab->engine->workers[worker], transaction);
    if (!ss_try_turn(lab->engine))
        return false;
    bool valid = protocol->validate(lab->engine, transaction);
    if (valid)
        protocol->publish(lab->engine, transaction);
    ss_release_turn(lab->engine);
    return valid;
}

static void undo(struct lab *lab, uint64_t worker, struct ss_transaction *transaction)
{
    struct ss_worker *own = &lab->engine->workers[worker];
    own->run.verdict = SS_ABORTED;
    lab->engine->protocol->finish(own, transaction);
    lab->engine->protocol->roll_back(lab->engine, transaction);
}

/* ---- memory of its own for each transaction ---- */

/* What the ring's own transaction has, while it has memory of one that is new. */
struct kept {
    struct ss_read *reads;
    struct ss_write *redo;
    struct ss_owned *owned;
};

/* Descriptor and logs as large as those of the ring. */
static void allocate(struct lab *lab, enum method method, struct kept *kept)
{
    struct ss_transaction *transaction = ss_slot_of(lab->engine, 0);
    void **blocks = lab->garbage[lab->collected];
    *kept = (struct kept){transaction->reads, transaction->redo, transaction->owned};
    blocks[0] = calloc(1, sizeof *transaction);
    blocks[1] = malloc(ENTRIES * sizeof *transaction->reads);
    blocks[2] = malloc(ENTRIES * sizeof *transaction->redo);
    blocks[3] = method == EAGER ? malloc(ENTRIES * sizeof *transaction->owned) : NULL;
    if (blocks[0] == NULL || blocks[1] == NULL || blocks[2] == NULL ||
        (method == EAGER && blocks[3] == NULL))
        abort(); /* a benchmark: nobody could go on */
    transaction->reads = blocks[1];
    transaction->redo = blocks[2];
    transaction->owned = blocks[3];
}

static void collect(struct lab *lab)
{
    for (int i = 0; i < lab->collected; i++)
        for (int block = 0; block < BLOCKS; block++)
            free(lab->garbage[i][block]);
    lab->collected = 0;
}

/* The transaction is over. Its memory is garbage, and some of it is collected now and then. */
static void discard(struct lab *lab, const struct kept *kept)
{
    struct ss_transaction *transaction = ss_slot_of(lab->engine, 0);
    transaction->reads = kept->reads;
    transaction->redo = kept->redo;
    transaction->owned = kept->owned;
    if (++lab->collected == COLLECTED)
        collect(lab);
}

/* Mean phases of `batches` transactions of `count` accesses each, one batch of words after the other.
 * Without transactions there are only accesses. FETCHED: the words are in the cache, but not what
 * protects them. ANEW: a transaction has memory of its own, and the creation is charged with
 * collecting it. */
struct phases lab_phases(struct lab *lab, enum method method, enum access access,
                         const uint32_t *words, int64_t count, int64_t batches, int how)
{
    struct phases sum = {0, 0, 0};
    struct ss_run *run = &lab->engine->workers[0].run;
    struct kept kept;
    double clock = clock_cost();
    for (int64_t batch = 0; batch < batches; batch++, words += count) {
        if (how & FETCHED)
            run_accesses(lab, run, NONE, READ, words, count);
        double began = now();
        if (how & ANEW)
            allocate(lab, method, &kept);
        struct ss_transaction *transaction = transactional(method) ? begin(lab, 0, 0) : NULL;
        double created = now();
        run_accesses(lab, run, method, access, words, count);
        double accessed = now();
        if (transaction != NULL) {
            commit(lab, 0, transaction);
            sum.create += created - began - clock;
            sum.commit += now() - accessed - clock;
        }
        sum.access += accessed - created - clock;
        if (how & ANEW) {
            double over = now();
            discard(lab, &kept);
            sum.create += now() - over - clock;
        }
    }
    collect(lab);
    return (struct phases){sum.create / (double)batches, sum.access / (double)batches,
                           sum.commit / (double)batches};
}

/* Mean nanoseconds of a task that turns a busy loop and then makes its accesses. */
double lab_tasks(struct lab *lab, enum method method, enum access access, const uint32_t *words,
                 int64_t count, int64_t tasks, int64_t rounds, int how)
{
    struct ss_run *run = &lab->engine->workers[0].run;
    struct kept kept;
    uint64_t busy = 1;
    double began = now();
    for (int64_t task = 0; task < tasks; task++, words += count) {
        if (how & ANEW)
            allocate(lab, method, &kept);
        struct ss_transaction *transaction = transactional(method) ? begin(lab, 0, 0) : NULL;
        for (int64_t round = 0; round < rounds; round++)
            busy = scramble(busy);
        run_accesses(lab, run, method, access, words, count);
        if (transaction != NULL)
            commit(lab, 0, transaction);
        if (how & ANEW)
            discard(lab, &kept);
    }
    collect(lab);
    double took = now() - began;
    lab->sum += busy;
    return took / (double)tasks;
}

/* Mean nanoseconds to abort a transaction that has made `count` accesses; `outside`: it has made none,
 * they were made beside it, without protection. */
double lab_undo(struct lab *lab, enum method method, enum access access, const uint32_t *words,
                int64_t count, int64_t batches, bool outside)
{
    double sum = 0, clock = clock_cost();
    for (int64_t batch = 0; batch < batches; batch++, words += count) {
        struct ss_transaction *transaction = begin(lab, 0, 0);
        run_accesses(lab, &lab->engine->workers[0].run, outside ? NONE : method, access, words,
                     count);
        double began = now();
        undo(lab, 0, transaction);
        sum += now() - began - clock;
    }
    return sum / (double)batches;
}

/* ---- two threads ---- */

/* What the other thread does between two runs of the first. */
struct interference {
    struct lab *lab;
    enum method method;
    const uint32_t *words;
    int64_t count;
    int core;
    bool swaps; /* only exchange the entries of `records` */
    pthread_t thread;
    atomic_int stage;
};

enum { WRITING, WRITTEN, MEASURED };

/* Exchanges an entry of the lock array for each of the words, as a lock is taken and given back. */
static void swap_entries(struct lab *lab, const uint32_t *words, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t *record = &lab->records[words[i] % RECORDS];
        uint64_t version = __atomic_load_n(record, __ATOMIC_ACQUIRE);
        __atomic_compare_exchange_n(record, &version, version + 2, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
    }
}

static cpu_set_t only(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return set;
}

/* False: this machine does not let the thread choose its core. */
static bool move_to(int core)
{
    cpu_set_t set = only(core);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

/* Increments the words, in an earlier transaction that commits. */
static void write_words(const struct interference *other)
{
    struct lab *lab = other->lab;
    if (other->swaps) {
        swap_entries(lab, other->words, other->count);
        return;
    }
    struct ss_transaction *transaction = transactional(other->method) ? begin(lab, 1, 0) : NULL;
    run_accesses(lab, &lab->engine->workers[1].run, other->method, INCREMENT, other->words,
                 other->count);
    if (transaction != NULL)
        commit(lab, 1, transaction);
}

static void *interfere(void *argument)
{
    struct interference *other = argument;
    write_words(other);
    atomic_store(&other->stage, WRITTEN);
    while (atomic_load(&other->stage) != MEASURED)
        ;
    return NULL;
}

/* Both threads turn until the other one is done: a core that sleeps may empty its caches, and then
 * words come from the same place whoever has written them. */
static bool begin_interference(struct interference *other)
{
    atomic_store(&other->stage, WRITING);
    /* It begins there: beside this thread, which does not wait asleep, it would wait for its turn. */
    cpu_set_t set = only(other->core);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    bool begun = pthread_attr_setaffinity_np(&attributes, sizeof set, &set) == 0 &&
                 pthread_create(&other->thread, &attributes, interfere, other) == 0;
    pthread_attr_destroy(&attributes);
    while (begun && atomic_load(&other->stage) == WRITING)
        ;
    return begun;
}

static void end_interference(struct interference *other)
{
    atomic_store(&other->stage, MEASURED);
    pthread_join(other->thread, NULL);
}

/* A word that two threads hand to and fro. */
struct handover {
    _Alignas(SS_CACHE_LINE) _Atomic int64_t turn;
    int64_t rounds;
    int core;
};

static void *hand_back(void *argument)
{
    struct handover *handover = argument;
    /* Also where it may not choose its core: the other one waits. */
    bool placed = move_to(handover->core);
    for (int64_t round = 0; round < handover->rounds; round++) {
        while (atomic_load_explicit(&handover->turn, memory_order_acquire) != 2 * round + 1)
            ;
        atomic_store_explicit(&handover->turn, 2 * round + 2, memory_order_release);
    }
    return placed ? argument : NULL;
}

/* Mean nanoseconds until one core sees what the other has written. Negative: as below. */
double lab_handover(int64_t rounds, int core, int other_core)
{
    struct handover handover = {0, rounds, other_core};
    pthread_t thread;
    void *placed = NULL;
    if (!move_to(core) || pthread_create(&thread, NULL, hand_back, &handover) != 0)
        return -1;
    double began = now();
    for (int64_t round = 0; round < rounds; round++) {
        atomic_store_explicit(&handover.turn, 2 * round + 1, memory_order_release);
        while (atomic_load_explicit(&handover.turn, memory_order_acquire) != 2 * round + 2)
            ;
    }
    double took = now() - began;
    pthread_join(thread, &placed);
    return placed != NULL ? took / (2.0 * (double)rounds) : -1;
}

/* Mean nanoseconds of one access of the first thread to words that it has accessed before, and the
 * first `changed` of which a thread on `other_core` has incremented meanwhile; `unprotected`: without
 * the method, so that locks and records stay where they are. Negative: the threads could not be placed. */
double lab_interference(struct lab *lab, enum method method, enum access access,
                        const uint32_t *words, int64_t count, int64_t batches, int64_t changed,
                        bool unprotected, int core, int other_core)
{
    struct ss_run *run = &lab->engine->workers[0].run;
    double sum = 0, clock = clock_cost();
    if (!move_to(core))
        return -1;
    for (int64_t batch = 0; batch < batches; batch++, words += count) {
        struct interference other = {.lab = lab,
                                     .method = unprotected ? NONE : method,
                                     .words = words,
                                     .count = changed,
                                     .core = other_core};
        struct ss_transaction *transaction = transactional(method) ? begin(lab, 0, 1) : NULL;
        run_accesses(lab, run, method, access, words, count);
        if (transaction != NULL)
            undo(lab, 0, transaction);
        if (!begin_interference(&other))
            return -1;
        if (transaction != NULL)
            transaction = begin(lab, 0, 1);
        double began = now();
        run_accesses(lab, run, method, access, words, count);
        sum += now() - began - clock;
        end_interference(&other);
        if (transaction != NULL)
            undo(lab, 0, transaction);
    }
    return sum / (double)(batches * count);
}

/* Mean nanoseconds of exchanging an entry of the lock array that was exchanged before, and the first
 * `changed` of which a thread on `other_core` has exchanged meanwhile. Negative: as above. */
double lab_swaps(struct lab *lab, const uint32_t *words, int64_t count, int64_t batches,
                 int64_t changed, int core, int other_core)
{
    double sum = 0, clock = clock_cost();
    if (!move_to(core))
        return -1;
    for (int64_t batch = 0; batch < batches; batch++, words += count) {
        struct interference other = {.lab = lab,
                                     .method = NONE,
                                     .words = words,
                                     .count = changed,
                                     .core = other_core,
                                     .swaps = true};
        swap_entries(lab, words, count);
        if (changed != 0 && !begin_interference(&other))
            return -1;
        double began = now();
        swap_entries(lab, words, count);
        sum += now() - began - clock;
        if (changed != 0)
            end_interference(&other);
    }
    return sum / (double)(batches * count);
}

/* A transaction that is aborted by an earlier one and runs again; in nanoseconds. */
struct rerun {
    double first; /* the run */
    double abort; /* finding out, and taking it back */
    double again; /* the second run */
};

/* Means over `batches`. The earlier transaction, on `other_core`, increments the first `changed` of
 * the words that the other one reads or writes. RUN_BEFORE: the first run finds its data in the cache,
 * as one before it has had the same. UNSEARCHED: a transaction whose locks were stolen gives back the
 * others without looking for the words of those. */
struct rerun lab_rerun(struct lab *lab, enum method method, enum access access,
                       const uint32_t *words, int64_t count, int64_t batches, int64_t changed,
                       int how, int core, int other_core)
{
    struct rerun sum = {0, 0, 0};
    double clock = clock_cost();
    if (!move_to(core))
        return (struct rerun){-1, -1, -1};
    for (int64_t batch = 0; batch < batches; batch++, words += count) {
        struct interference other = {.lab = lab,
                                     .method = method,
                                     .words = words,
                                     .count = changed,
                                     .core = other_core};
        if (how & RUN_BEFORE) {
            struct ss_transaction *before = begin(lab, 0, 1);
            run_accesses(lab, &lab->engine->workers[0].run, method, access, words, count);
            undo(lab, 0, before);
        }
        double began = now();
        struct ss_transaction *transaction = begin(lab, 0, 1);
        run_accesses(lab, &lab->engine->workers[0].run, method, access, words, count);
        double ran = now();
        if (!begin_interference(&other))
            return (struct rerun){-1, -1, -1};
        double resumed = now();
        if (how & UNSEARCHED)
            transaction->reason = SS_ABORT_CONFLICT;
        else if (commit(lab, 0, transaction))
            return (struct rerun){-2, -2, -2}; /* it should not have committed */
        undo(lab, 0, transaction);
        double undone = now();
        transaction = begin(lab, 0, 1);
        run_accesses(lab, &lab->engine->workers[0].run, method, access, words, count);
        double ended = now();
        end_interference(&other);
        undo(lab, 0, transaction);
        sum.first += ran - began - clock;
        sum.abort += undone - resumed - clock;
        sum.again += ended - undone - clock;
    }
    return (struct rerun){sum.first / (double)batches, sum.abort / (double)batches,
                          sum.again / (double)batches};
}
