/* Faults inside an operator cost an event, never the process (invariant 5).
 *
 * A hand-written operator counts words up and, at certain events, does what no compiled operator
 * should: it follows a wild pointer, writes to a read-only page, reads beyond the end of a file,
 * divides by zero, executes what is no instruction, or uses up its stack. Some events do so only in
 * speculative runs, and their results must be those of the sequential run; some also as the head,
 * and must leave no trace. Its operation on a boosted field faults wherever the runtime calls it: on
 * the shadow, at the commit, and as an inverse. And a fault that is not an operator's goes where it
 * went before. */
#define _GNU_SOURCE /* memfd_create */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/engine.h"
#include "core/worker.h"
#include "dice.h"
#include "entries.h"
#include "processor/fault.h"
#include "specstream.h"

enum { WORDS = 45, KEYS = 5, BOOSTED = WORDS - KEYS, LEFT = BOOSTED - 2, RIGHT = BOOSTED - 1 };
enum { EVENTS = 300, ROUNDS = 40, THREADS = 4 };

enum misfortune {
    NONE,
    NULL_POINTER,
    NO_ADDRESS,
    READ_ONLY_PAGE,
    BEYOND_FILE,
    NO_INSTRUCTION,
    DIVISION,
    OVERFLOW,
    OVERFLOW_IN_RUNTIME, /* where it would next be the allocator's */
    KINDS
};

static const int signal_of[KINDS] = {
    [NULL_POINTER] = SIGSEGV, [NO_ADDRESS] = SIGSEGV,    [READ_ONLY_PAGE] = SIGSEGV,
    [BEYOND_FILE] = SIGBUS,   [NO_INSTRUCTION] = SIGILL, [OVERFLOW] = SIGSEGV,
    [OVERFLOW_IN_RUNTIME] = SIGSEGV,
#if defined(__x86_64__)
    [DIVISION] = SIGFPE,
#else
    [DIVISION] = SIGILL, /* elsewhere a division by zero is no fault: see strike */
#endif
};

/* Volatile: the compiler need not know better. */
static volatile uintptr_t nearly_null = 8;
static volatile uintptr_t no_address = UINTPTR_MAX / 2 + 1;
static volatile char *read_only;
static volatile char *beyond_file;
static volatile char *mendable; /* read-only, until a handler of another mends it */
static size_t page;
static _Atomic uint64_t struck[2][KINDS]; /* in place, speculatively */
static uint64_t seed_of_round;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "FAILED: round %" PRIu64 ": line %d: %s\n", seed_of_round, __LINE__,   \
                    #condition);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- the operator ---- */

/* Sanitizers would report what is meant to happen. */
#define UNCHECKED __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

/* Frames that are left by a fault stay poisoned, and on the thread's own stack AddressSanitizer would
 * then stumble over them itself; those that it keeps elsewhere it collects. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_stack_use_after_return=1";
}

static volatile uint64_t endless = UINT64_MAX;

UNCHECKED static uint64_t use_up_stack(uint64_t depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth == endless ? 0 : use_up_stack(depth + 1) + (uint64_t)frame[0];
}

UNCHECKED static bool grow_at_the_end_of_the_stack(struct ss_run *run)
{
    volatile char frame[1024];
    frame[0] = 1;
    const char *lowest = ss_this_containment()->stacks.stack;
    bool at_the_end = (char *)__builtin_frame_address(0) < lowest + (12 << 10);
    return (at_the_end ? ss_undo_grow(run) : grow_at_the_end_of_the_stack(run)) && frame[0] == 1;
}

UNCHECKED static void strike(struct ss_run *run, enum misfortune kind)
{
    atomic_fetch_add_explicit(&struck[run->speculative][kind], 1, memory_order_relaxed);
    switch (kind) {
    case NULL_POINTER:
        (void)*(volatile char *)nearly_null;
        break;
    case NO_ADDRESS:
        (void)*(volatile char *)no_address;
        break;
    case READ_ONLY_PAGE:
        *read_only = 1;
        break;
    case BEYOND_FILE:
        (void)*beyond_file;
        break;
    case OVERFLOW:
        use_up_stack(0);
        break;
    case OVERFLOW_IN_RUNTIME:
        grow_at_the_end_of_the_stack(run);
        break;
#if defined(__x86_64__)
    case DIVISION:
        __asm__ volatile("xorl %%ecx, %%ecx; movl $1, %%eax; cltd; idivl %%ecx" ::
                             : "eax", "ecx", "edx");
        break;
#endif
    default:
#if defined(__aarch64__)
        __asm__ volatile(".inst 0"); /* a trap would be SIGTRAP */
#else
        __builtin_trap();
#endif
    }
}

struct batch {
    uint64_t seeds[EVENTS];
    uint8_t always[EVENTS];      /* what befalls every run of the event */
    uint8_t speculative[EVENTS]; /* what befalls its speculative runs only */
};

static uint64_t word_of(uint64_t seed, uint64_t step)
{
    return mix(seed + step) % LEFT;
}

static uint64_t load(struct ss_run *run, enum ss_variant variant, uint64_t word)
{
    return variant == SS_EAGER ? ss_eager_load(run, word) : ss_load(run, word);
}

static bool store(struct ss_run *run, enum ss_variant variant, uint64_t word, uint64_t value)
{
    if (run->verdict == SS_COMPLETED && variant == SS_EAGER)
        ss_eager_store(run, word, value);
    else if (run->verdict == SS_COMPLETED)
        ss_store(run, word, value);
    return run->verdict == SS_COMPLETED;
}

static _Atomic uint64_t operations; /* that the runtime has called, and inverses */
static _Atomic uint64_t at_commits;

/* Faults now and then, in the middle of its work; in place it is not called. */
static int32_t add(struct ss_run *run, uint64_t amount, int64_t *returned)
{
    uint64_t word = BOOSTED + run->operands[0];
    ss_store(run, word, ss_load(run, word) + amount);
    uint64_t number = atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
    if (ss_this_containment() == &run->worker->containment)
        atomic_fetch_add_explicit(&at_commits, 1, memory_order_relaxed);
    if (mix(number) % 64 == 0)
        strike(run, 1 + number % (KINDS - 1));
    *returned = 0;
    run->changed = 1;
    return 0;
}

static int32_t count_key(int64_t *returned, void **fault, struct ss_run *run)
{
    *fault = NULL;
    return add(run, 1, returned);
}

static int32_t uncount_key(int64_t *returned, void **fault, struct ss_run *run)
{
    *fault = NULL;
    return add(run, UINT64_MAX, returned);
}

static bool count(struct ss_run *run, enum ss_variant variant, uint64_t key)
{
    const uint64_t operands[SS_OPERANDS] = {key};
    if (run->speculative)
        ss_boost(run, 0, operands);
    else if (store(run, variant, BOOSTED + key, ss_load(run, BOOSTED + key) + 1) && run->boosting)
        ss_boost_follow(run, 0, operands, 0);
    return run->verdict == SS_COMPLETED;
}

static bool process(struct ss_run *run, enum ss_variant variant, int64_t event)
{
    uint64_t seed = ((const uint64_t *)run->columns[0])[event];
    enum misfortune always = ((const uint8_t *)run->columns[1])[event];
    enum misfortune speculative = ((const uint8_t *)run->columns[2])[event];
    for (uint64_t step = 0; step < 4; step++) {
        uint64_t word = word_of(seed, step);
        if (!store(run, variant, word, load(run, variant, word) + seed % 100 + 1))
            return false;
    }
    if (!count(run, variant, seed % KEYS))
        return false;
    uint64_t left = load(run, variant, LEFT);
    uint64_t right = load(run, variant, RIGHT);
    if (run->verdict != SS_COMPLETED)
        return false;
    if (left != right) /* never on committed state */
        strike(run, 1 + seed % (KINDS - 1));
    if (!store(run, variant, LEFT, left + 1) || !store(run, variant, RIGHT, left + 1))
        return false;
    if (run->emit_end - run->emit_top < 2 && !ss_emit_grow(run))
        return false;
    run->emit_top[0] = (uint64_t)(run->first_sequence + event);
    run->emit_top[1] = left;
    run->emit_top += 2;
    if (always != NONE)
        strike(run, always);
    if (run->speculative && speculative != NONE)
        strike(run, speculative);
    return true;
}

RUN_EACH_EVENT(process)
ENTRY(run_plain, SS_PLAIN)
ENTRY(run_transactional, SS_TRANSACTIONAL)
ENTRY(run_eager, SS_EAGER)

/* An entry that is no code at all faults before its first event has begun. */
static int32_t run_nothing(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                           int64_t last)
{
    (void)next, (void)fault, (void)first, (void)last;
    strike(run, NULL_POINTER);
    return 0;
}

/* An entry that faults while it has stepped outside, as in the allocator. */
static int32_t run_outside(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                           int64_t last)
{
    (void)fault, (void)run, (void)first;
    sig_atomic_t was = ss_step_outside();
    *mendable = 1;
    ss_step_inside(was);
    *next = last;
    return 0;
}

/* An entry in which somebody sends the worker a signal. */
static int32_t run_signalled(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                             int64_t last)
{
    (void)fault, (void)run, (void)first;
    raise(SIGSEGV);
    *next = last;
    return 0;
}

/* The sequential run. */
static void model_event(uint64_t *state, uint64_t *rows, uint64_t seed, int64_t sequence)
{
    for (uint64_t step = 0; step < 4; step++)
        state[word_of(seed, step)] += seed % 100 + 1;
    state[BOOSTED + seed % KEYS]++;
    rows[0] = (uint64_t)sequence;
    rows[1] = state[LEFT]++;
    state[RIGHT]++;
}

/* ---- the rounds ---- */

static struct ss_engine *open_engine(uint64_t *state, enum ss_protocol_kind protocol)
{
    struct ss_config config = {.state = state,
                               .state_words = WORDS,
                               .emit_words = 2,
                               .threads = THREADS,
                               .read_limit = 4096,
                               .redo_limit = 1024,
                               .emit_limit = 256,
                               .protocol = protocol,
                               .operations = 1,
                               .boosted_first = BOOSTED,
                               .boosted_end = WORDS};
    static const struct ss_boosted operation = {
        .entry = count_key, .inverse = uncount_key, .first = BOOSTED, .words = KEYS};
    struct ss_engine *engine = ss_engine_new(&config);
    CHECK(engine != NULL);
    ss_engine_set_operation(engine, 0, &operation);
    ss_engine_set_entry(engine, SS_PLAIN, run_plain);
    ss_engine_set_entry(engine, SS_LOG_FREE, run_plain);
    ss_engine_set_entry(engine, SS_TRANSACTIONAL, run_transactional);
    ss_engine_set_entry(engine, SS_EAGER, run_eager);
    return engine;
}

static struct ss_outcome run_job(struct ss_engine *engine, struct batch *batch, int64_t first,
                                 struct ss_job job)
{
    void *columns[] = {batch->seeds + first, batch->always + first, batch->speculative + first};
    job.columns = columns;
    job.count = EVENTS - first;
    job.first_sequence = first;
    CHECK(ss_engine_start(engine, &job));
    while (!ss_engine_wait(engine, 50))
        continue;
    return ss_engine_outcome(engine);
}

static void draw(struct batch *batch, struct dice *dice)
{
    memset(batch, 0, sizeof *batch);
    for (int i = 0; i < EVENTS; i++) {
        batch->seeds[i] = roll(dice);
        if (chance(dice, 40))
            batch->always[i] = (uint8_t)(1 + below(dice, KINDS - 1));
        if (chance(dice, 4))
            batch->speculative[i] = (uint8_t)(1 + below(dice, KINDS - 1));
    }
}

static void check_fault(const struct ss_fault *fault, enum misfortune kind, int64_t event)
{
    CHECK(fault->signal == signal_of[kind]);
    CHECK(fault->stack_overflow == (kind == OVERFLOW || kind == OVERFLOW_IN_RUNTIME));
    CHECK(fault->event == event);
    if (kind == NULL_POINTER)
        CHECK(fault->has_address && fault->address == nearly_null);
    if (kind == READ_ONLY_PAGE)
        CHECK(fault->has_address && fault->address == (uintptr_t)read_only);
    if (kind == DIVISION || kind == NO_INSTRUCTION)
        CHECK(!fault->has_address);
}

/* All events, job after job, each job after the event at which the last one failed. */
static void run_round(struct ss_engine *engine, uint64_t *state, struct dice *dice)
{
    struct batch batch;
    uint64_t model[WORDS];
    uint64_t rows[2 * EVENTS];
    struct ss_job job = {.chunk = 1 + (int64_t)below(dice, 8),
                         .horizon = (int64_t)below(dice, 12),
                         .mode = chance(dice, 2) ? SS_MODE_ORDERED : SS_MODE_SPECULATE};
    int64_t first = 0;
    draw(&batch, dice);
    memcpy(model, state, sizeof model);
    while (first < EVENTS) {
        struct ss_outcome outcome = run_job(engine, &batch, first, job);
        int64_t applied = 0;
        for (; first + applied < EVENTS && batch.always[first + applied] == NONE; applied++)
            model_event(model, rows + 2 * applied, batch.seeds[first + applied], first + applied);
        CHECK(outcome.consumed == applied);
        CHECK(outcome.row_count == (uint64_t)applied);
        CHECK(memcmp(outcome.rows, rows, (size_t)applied * 2 * sizeof *rows) == 0);
        CHECK(memcmp(state, model, sizeof model) == 0);
        CHECK(outcome.failed == (first + applied < EVENTS));
        if (outcome.failed)
            check_fault(&outcome.fault, batch.always[first + applied], applied);
        else
            CHECK(outcome.fault.signal == 0);
        first += applied + 1;
    }
}

static void results_are_those_of_the_sequential_run(enum ss_protocol_kind protocol)
{
    uint64_t state[WORDS] = {0};
    struct ss_engine *engine = open_engine(state, protocol);
    memset(struck, 0, sizeof struck);
    operations = at_commits = 0;
    for (seed_of_round = 0; seed_of_round < ROUNDS; seed_of_round++) {
        struct dice dice = dice_for(seed_of_round, protocol);
        run_round(engine, state, &dice);
    }
    for (int kind = 1; kind < KINDS; kind++)
        CHECK(struck[0][kind] > 0 && struck[1][kind] > 0);
    CHECK(ss_engine_statistics(engine).aborts[SS_ABORT_FAULT] > ROUNDS);
    CHECK(at_commits > 10 * ROUNDS && operations - at_commits > 10 * ROUNDS);
    ss_engine_free(engine);
}

static void an_entry_that_faults_at_once_undoes_nothing(void)
{
    static struct batch batch;
    uint64_t state[WORDS] = {0};
    uint64_t before[WORDS];
    struct ss_job job = {.chunk = 1, .horizon = 0, .mode = SS_MODE_ORDERED};
    struct ss_engine *engine = open_engine(state, SS_PROTOCOL_VALUE);
    CHECK(run_job(engine, &batch, 0, job).consumed == EVENTS);
    memcpy(before, state, sizeof before);
    ss_engine_set_entry(engine, SS_PLAIN, run_nothing);
    struct ss_outcome outcome = run_job(engine, &batch, 0, job);
    CHECK(outcome.failed && outcome.consumed == 0 && outcome.row_count == 0);
    check_fault(&outcome.fault, NULL_POINTER, 0);
    CHECK(memcmp(state, before, sizeof before) == 0);
    ss_engine_free(engine);
}

static void without_undo_log_the_job_fails_as_well(void)
{
    static struct batch batch;
    uint64_t state[WORDS] = {0};
    struct ss_job job = {.chunk = EVENTS, .horizon = 0, .mode = SS_MODE_LOG_FREE};
    struct ss_engine *engine = open_engine(state, SS_PROTOCOL_VALUE);
    batch.always[7] = NO_INSTRUCTION;
    struct ss_outcome outcome = run_job(engine, &batch, 0, job);
    CHECK(outcome.failed && outcome.consumed == 7 && outcome.row_count == 7);
    check_fault(&outcome.fault, NO_INSTRUCTION, 7);
    ss_engine_free(engine);
}

/* ---- the others ---- */

static _Atomic int seen_before, seen_after;
static struct sigaction found;

static void who_came_before(int signal)
{
    (void)signal;
    seen_before++;
    mprotect((void *)mendable, page, PROT_READ | PROT_WRITE);
}

/* Like Python's faulthandler: reports, steps back, and raises the signal again. */
static void who_came_after(int signal)
{
    seen_after++;
    sigaction(signal, &found, NULL);
    raise(signal);
}

static void come_after(void)
{
    struct sigaction action = {.sa_handler = who_came_after, .sa_flags = SA_NODEFER};
    CHECK(sigaction(SIGSEGV, &action, &found) == 0);
}

static void a_signal_that_was_sent_goes_to_the_others(void)
{
    uint64_t state[WORDS] = {0};
    struct ss_engine *engine = open_engine(state, SS_PROTOCOL_VALUE);
    int before = seen_before;
    raise(SIGSEGV);
    CHECK(seen_before == before + 1);
    /* To a worker as well: the handler of who came before returns, and it goes on. */
    pthread_kill(engine->workers[0].thread, SIGSEGV);
    while (seen_before != before + 2)
        sched_yield();
    for (int times = 0; times < 20; times++) {
        struct dice dice = dice_for(seed_of_round, (uint64_t)times);
        come_after();
        run_round(engine, state, &dice); /* the newcomer is not asked */
        CHECK(seen_after == times);
        raise(SIGSEGV); /* he is, and after him who came before */
        CHECK(seen_after == times + 1 && seen_before == before + times + 3);
    }
    ss_engine_free(engine);
}

static void a_signal_sent_to_an_operator_is_no_fault(void)
{
    static struct batch batch;
    uint64_t state[WORDS] = {0};
    struct ss_job job = {.chunk = EVENTS, .horizon = 0, .mode = SS_MODE_ORDERED};
    struct ss_engine *engine = open_engine(state, SS_PROTOCOL_VALUE);
    ss_engine_set_entry(engine, SS_PLAIN, run_signalled);
    int before = seen_before;
    CHECK(!run_job(engine, &batch, 0, job).failed && seen_before == before + 1);
    ss_engine_free(engine);
}

static void a_fault_outside_goes_to_the_others(void)
{
    static struct batch batch;
    uint64_t state[WORDS] = {0};
    struct ss_job job = {.chunk = EVENTS, .horizon = 0, .mode = SS_MODE_ORDERED};
    struct ss_engine *engine = open_engine(state, SS_PROTOCOL_VALUE);
    ss_engine_set_entry(engine, SS_PLAIN, run_outside);
    int before = seen_before;
    CHECK(mprotect((void *)mendable, page, PROT_READ) == 0);
    CHECK(!run_job(engine, &batch, 0, job).failed);
    CHECK(seen_before == before + 1 && *mendable == 1);
    CHECK(mprotect((void *)mendable, page, PROT_READ) == 0);
    *mendable = 2; /* in a thread that is no worker */
    CHECK(seen_before == before + 2 && *mendable == 2);
    ss_engine_free(engine);
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    int file = memfd_create("empty", 0);
    read_only = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mendable = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    beyond_file = mmap(NULL, page, PROT_READ, MAP_SHARED, file, 0);
    struct sigaction action = {.sa_handler = who_came_before};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(file >= 0 && read_only != MAP_FAILED && beyond_file != MAP_FAILED);
    CHECK(mendable != MAP_FAILED);

    results_are_those_of_the_sequential_run(SS_PROTOCOL_VALUE);
    results_are_those_of_the_sequential_run(SS_PROTOCOL_EAGER);
    an_entry_that_faults_at_once_undoes_nothing();
    without_undo_log_the_job_fails_as_well();
    CHECK(seen_before == 0);
    a_fault_outside_goes_to_the_others();
    a_signal_sent_to_an_operator_is_no_fault();
    a_signal_that_was_sent_goes_to_the_others();
    puts("faults: passed");
    return 0;
}
