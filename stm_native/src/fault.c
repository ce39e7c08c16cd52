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
 * matter, which is as well: a stack that overflows does so in any of them. Only the allocator owns
 * something while it runs, its locks, and compiled code gets to it through us alone: there the slow
 * path steps outside (ss_step_outside). Hence: a fault is an operator's if an instruction raised it
 * (nobody sent it) in a worker that is *inside*. Locks of SS_MODE_LOCKED stay taken, as they do
 * where an event raises.
 *
 * The way back. The handler does not jump, because then the signal would stay blocked. It changes
 * the registers that the kernel restores when the handler returns, so that the thread goes on in
 * `leave`, on its own stack, just below the frame of ss_call, with its old signal mask; and `leave`
 * jumps to where ss_call has saved its own registers. No system call on the way in: it is taken for
 * each chunk. */
#define _GNU_SOURCE /* names of saved registers */
#include "context.h"
#include "internal.h"

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

void ss_fault_open_thread(struct ss_worker *worker)
{
    pthread_setspecific(this_worker, worker);
    sigaltstack(&worker->stacks.signal_stack, &worker->signal_stack_before);
    fegetenv(&worker->arithmetic);
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

/* The frames of the operator are left without a return, so the sanitizer still watches what lies
 * around their variables; and what leaves them runs where they were. */
static void forget_frames(const struct ss_worker *worker)
{
    const char *lowest = worker->stacks.stack;
    if (__asan_unpoison_memory_region != NULL && lowest != NULL)
        __asan_unpoison_memory_region(lowest, (size_t)(worker->stack_inside - lowest));
}

static void leave(void *argument)
{
    struct ss_worker *worker = argument;
    siglongjmp(worker->way_back, 1);
}

bool ss_fault_bring_back(int signal, const siginfo_t *info, void *context)
{
    struct ss_worker *worker = pthread_getspecific(this_worker);
    if (worker == NULL || worker->inside == 0 || !is_raised(signal, info) ||
        !ss_redirect(context, leave, worker, worker->stack_inside))
        return false;
    worker->inside = 0;
    forget_frames(worker);
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
 * it, and the frame of ss_call lies above. */
__attribute__((noinline)) static int64_t go_inside(struct ss_worker *worker,
                                                   enum ss_variant variant, int64_t first,
                                                   int64_t last)
{
    int64_t next = first;
    void *unused = NULL;
    worker->stack_inside = __builtin_frame_address(0);
    worker->inside = 1;
    worker->engine->entries[variant](&next, &unused, &worker->run, first, last);
    worker->inside = 0;
    return next;
}

int64_t ss_call(struct ss_worker *worker, enum ss_variant variant, int64_t first, int64_t last)
{
    struct ss_run *run = &worker->run;
    /* As at the beginning of an event: a fault before the first one undoes nothing of another. */
    run->event = first;
    run->undo_top = run->undo_base;
    run->emit_mark = run->emit_top;
    /* 0: without the signal mask, which would cost a system call. */
    if (sigsetjmp(worker->way_back, 0) == 0)
        return go_inside(worker, variant, first, last);
    /* A function of libm that was left may have changed how numbers are rounded. */
    fesetenv(&worker->arithmetic);
    ss_boost_recover(worker);
    assert(first <= run->event && run->event < last);
    run->verdict = SS_FAULTED;
    worker->fault.event = run->event;
    return run->event;
}

/* The allocator must not be the one to use up the stack: it could not be left. (AddressSanitizer
 * would put the array somewhere else.) */
__attribute__((noinline, no_sanitize("address"))) static void touch_stack(void)
{
    volatile char below[16 << 10];
    below[0] = 0;
    (void)below[0];
}

sig_atomic_t ss_step_outside(struct ss_worker *worker)
{
    touch_stack();
    sig_atomic_t was = worker->inside;
    worker->inside = 0;
    /* Neither flag may move across what stands between them. */
    atomic_signal_fence(memory_order_seq_cst);
    return was;
}

void ss_step_inside(struct ss_worker *worker, sig_atomic_t was)
{
    atomic_signal_fence(memory_order_seq_cst);
    worker->inside = was;
}
