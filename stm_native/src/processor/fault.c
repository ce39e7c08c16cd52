/* The way into compiled code, and the way out of it when the processor refuses an instruction.
 *
 * A compiled operator checks what Python checks, so that it cannot fault: a bug in the compiler, or
 * in code that was not compiled by us, can. A fault must then cost the event and not the process: it
 * ends the run like an exception, with the verdict SS_FAULTED. What a speculative run did is dropped
 * and run again as the head; what the head did to the state is in its undo log, and rolled back.
 *
 * Whose fault it is. Compiled code and what it calls may be left at any instruction where the frames
 * that are left own nothing. Compiled code owns nothing (operators may not allocate, and a fault is
 * no C++ exception); nor do the functions of libm, memset, and our own slow paths (of `eager`:
 * between locking a record and noting it, nothing can fault). So the program counter does not
 * matter, which is as well: a stack that overflows does so in any of them. What owns something while
 * it runs is the allocator, its locks, and boosting.c, its latch; compiled code gets to both through
 * us alone, and there the slow path steps outside (ss_step_outside). Hence: a fault is an operator's
 * if an instruction raised it (nobody sent it) in a worker that is *inside*. Locks of SS_MODE_LOCKED
 * stay taken, as they do where an event raises.
 *
 * The way back. The handler does not jump, because then the signal would stay blocked. It changes
 * the registers that the kernel restores when the handler returns, so that the thread goes on in
 * `leave`, on its own stack, just below the frame of `contain`, with its old signal mask; and `leave`
 * jumps to where `contain` has saved its own registers. No system call on the way in: it is taken for
 * each chunk.
 *
 * All compiled code is entered here: the entries of an operator, and those of operations on boosted
 * structures and of their inverses (boosting.c). These run inside of a run as well, hence ways back
 * are nested, and a fault takes the innermost: an operation that faults has failed, and what called
 * it decides what that costs. They also run in threads that are no workers, when somebody submits an
 * event; such a thread counts as the worker that it is lent. */
#define _GNU_SOURCE /* names of saved registers */
#include "processor/fault.h"

#include <assert.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/context.h"
#include "processor/signal_chain.h"
#include "processor/stack.h"
#include "specstream.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* The worker that a thread is. pthread_getspecific only reads memory of the thread, in every libc:
 * it may be called in a handler, where a thread-local variable might first have to be allocated. */
static pthread_key_t this_worker;
static bool opened;

static void open_process(void)
{
    opened = pthread_key_create(&this_worker, NULL) == 0;
}

bool ss_fault_open(void)
{
    pthread_once(&once, open_process);
    if (opened)
        ss_signals_take_front();
    return opened;
}

struct ss_worker *ss_this_worker(void)
{
    /* Without an engine there is no key yet, and what the number 0 stands for is somebody else's. */
    return opened ? pthread_getspecific(this_worker) : NULL;
}

bool ss_fault_open_thread(struct ss_worker *worker)
{
    if (pthread_setspecific(this_worker, worker) != 0)
        return false;
    sigaltstack(&worker->stacks.signal_stack, &worker->signal_stack_before);
    fegetenv(&worker->arithmetic);
    return true;
}

void ss_fault_close_thread(struct ss_worker *worker)
{
    sigaltstack(&worker->signal_stack_before, NULL);
    pthread_setspecific(this_worker, NULL);
}

/* Whether the thread's own instruction raised it. */
static bool is_raised(int signal, const siginfo_t *info)
{
    if (info->si_code <= 0)
        return false; /* sent, by kill or raise */
    /* Memory that is broken is nobody's bug, and the state may be what was lost. */
    return signal != SIGBUS || (info->si_code != BUS_MCEERR_AR && info->si_code != BUS_MCEERR_AO);
}

/* There where AddressSanitizer is, and nowhere else. */
void __asan_unpoison_memory_region(void const volatile *first, size_t bytes) __attribute__((weak));

/* The frames of compiled code are left without a return, so the sanitizer still watches what lies
 * around their variables; and what leaves them runs where they were. */
static void forget_frames(const char *lowest, const struct ss_way_back *way_back)
{
    if (__asan_unpoison_memory_region != NULL && lowest < way_back->stack)
        __asan_unpoison_memory_region(lowest, (size_t)(way_back->stack - lowest));
}

static void leave(void *argument)
{
    struct ss_worker *worker = argument;
    siglongjmp(worker->way_back->registers, 1);
}

bool ss_fault_bring_back(int signal, const siginfo_t *info, void *context)
{
    struct ss_worker *worker = ss_this_worker();
    const char *lowest = ss_stack_top(context);
    if (worker == NULL || worker->inside == 0 || !is_raised(signal, info) ||
        !ss_redirect(context, leave, worker, worker->way_back->stack))
        return false;
    worker->inside = 0;
    forget_frames(lowest, worker->way_back);
    bool memory = signal == SIGSEGV || signal == SIGBUS;
    worker->fault = (struct ss_fault){
        .signal = signal,
        .stack_overflow = memory && ss_stacks_guard_holds(worker, info->si_addr),
        /* The processor does not say which address had no meaning at all. */
        .has_address = memory && info->si_code != SI_KERNEL,
        .address = (uintptr_t)info->si_addr,
    };
    return true;
}

/* A function of its own, and never inlined: what lies below its frame is free once a fault has ended
 * it, and the frame of `contain` lies above. */
__attribute__((noinline)) static void go_inside(struct ss_worker *worker, void (*body)(void *),
                                                void *argument)
{
    worker->way_back->stack = __builtin_frame_address(0);
    worker->inside = 1;
    body(argument);
    worker->inside = 0;
}

/* Calls `body`, which calls compiled code; false: it has faulted. From outside: also where it is called
 * from a run, which has then stepped outside. */
static bool contain(struct ss_worker *worker, void (*body)(void *), void *argument)
{
    struct ss_way_back here = {.outer = worker->way_back};
    assert(worker->inside == 0);
    worker->way_back = &here;
    /* 0: without the signal mask, which would cost a system call. */
    bool faulted = sigsetjmp(here.registers, 0) != 0;
    if (!faulted)
        go_inside(worker, body, argument);
    else
        /* A function of libm that was left may have changed how numbers are rounded. */
        fesetenv(&worker->arithmetic);
    worker->way_back = here.outer;
    return !faulted;
}

struct call {
    struct ss_run *run;
    ss_entry entry;
    int64_t first;
    int64_t last;
    int64_t next;
};

static void run_entry(void *argument)
{
    struct call *call = argument;
    void *unused = NULL;
    call->entry(&call->next, &unused, call->run, call->first, call->last);
}

int64_t ss_call(struct ss_worker *worker, enum ss_variant variant, int64_t first, int64_t last)
{
    struct ss_run *run = &worker->run;
    struct call call = {run, worker->engine->entries[variant], first, last, first};
    /* As at the beginning of an event: a fault before the first one undoes nothing of another. */
    run->event = first;
    run->undo_top = run->undo_base;
    run->emit_mark = run->emit_top;
    run->answered = 0;
    run->asks = 0;
    run->fires = variant == SS_TIMER;
    if (contain(worker, run_entry, &call))
        return call.next;
    assert(first <= run->event && run->event < last);
    run->verdict = SS_FAULTED;
    worker->fault.event = run->event;
    return run->event;
}

struct operation_call {
    struct ss_run *run;
    ss_operation_entry entry;
    int64_t returned;
};

static void run_operation(void *argument)
{
    struct operation_call *call = argument;
    void *unused = NULL;
    call->run->raised = (uint32_t)call->entry(&call->returned, &unused, call->run);
}

bool ss_call_operation(struct ss_run *run, ss_operation_entry entry, uint64_t *returned)
{
    struct operation_call call = {.run = run, .entry = entry};
    struct ss_worker *worker = ss_this_worker();
    run->verdict = SS_COMPLETED;
    run->raised = 0;
    /* Without a way back it is not tried. */
    if (worker == NULL || !contain(worker, run_operation, &call))
        run->verdict = SS_FAULTED;
    *returned = (uint64_t)call.returned;
    return run->raised == 0 && run->verdict == SS_COMPLETED;
}

/* The allocator must not be the one to use up the stack: it could not be left. (AddressSanitizer
 * would put the array somewhere else.) */
__attribute__((noinline, no_sanitize("address"))) static void touch_stack(void)
{
    volatile char below[16 << 10];
    below[0] = 0;
    (void)below[0];
}

sig_atomic_t ss_step_outside(void)
{
    struct ss_worker *worker = ss_this_worker();
    if (worker == NULL)
        return 0;
    touch_stack();
    sig_atomic_t was = worker->inside;
    worker->inside = 0;
    /* Neither flag may move across what stands between them. */
    atomic_signal_fence(memory_order_seq_cst);
    return was;
}

void ss_step_inside(sig_atomic_t was)
{
    struct ss_worker *worker = ss_this_worker();
    if (worker == NULL)
        return;
    atomic_signal_fence(memory_order_seq_cst);
    worker->inside = was;
}
