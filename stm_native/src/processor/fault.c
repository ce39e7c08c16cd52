/* The way out of compiled code when the processor refuses an instruction.
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
 * `leave`, on its own stack, just below the frame of `ss_contain`, with its old signal mask; and `leave`
 * jumps to where `ss_contain` has saved its own registers. No system call on the way in: it is taken for
 * each chunk.
 *
 * All compiled code is entered this way (call.c): the entries of an operator, and those of operations on
 * boosted structures and of their inverses. These run inside of a run as well, hence ways back
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

#include "processor/context.h"
#include "processor/signal_chain.h"
#include "processor/stack.h"
#include "specstream.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* That of the thread. pthread_getspecific only reads memory of the thread, in every libc:
 * it may be called in a handler, where a thread-local variable might first have to be allocated. */
static pthread_key_t this_containment;
static bool opened;

static void open_process(void)
{
    opened = pthread_key_create(&this_containment, NULL) == 0;
}

bool ss_fault_open(void)
{
    pthread_once(&once, open_process);
    if (opened)
        ss_signals_take_front();
    return opened;
}

struct ss_containment *ss_this_containment(void)
{
    /* Without an engine there is no key yet, and what the number 0 stands for is somebody else's. */
    return opened ? pthread_getspecific(this_containment) : NULL;
}

bool ss_fault_open_thread(struct ss_containment *own)
{
    if (pthread_setspecific(this_containment, own) != 0)
        return false;
    sigaltstack(&own->stacks.signal_stack, &own->signal_stack_before);
    fegetenv(&own->arithmetic);
    return true;
}

void ss_fault_close_thread(struct ss_containment *own)
{
    sigaltstack(&own->signal_stack_before, NULL);
    pthread_setspecific(this_containment, NULL);
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
    const struct ss_containment *own = argument;
    siglongjmp(own->way_back->registers, 1);
}

bool ss_fault_bring_back(int signal, const siginfo_t *info, void *context)
{
    struct ss_containment *own = ss_this_containment();
    const char *lowest = ss_stack_top(context);
    if (own == NULL || own->inside == 0 || !is_raised(signal, info) ||
        !ss_redirect(context, leave, own, own->way_back->stack))
        return false;
    own->inside = 0;
    forget_frames(lowest, own->way_back);
    bool memory = signal == SIGSEGV || signal == SIGBUS;
    own->fault = (struct ss_fault){
        .signal = signal,
        .stack_overflow = memory && ss_stacks_guard_holds(&own->stacks, info->si_addr),
        /* The processor does not say which address had no meaning at all. */
        .has_address = memory && info->si_code != SI_KERNEL,
        .address = (uintptr_t)info->si_addr,
    };
    return true;
}

/* A function of its own, and never inlined: what lies below its frame is free once a fault has ended
 * it, and the frame of `ss_contain` lies above. */
__attribute__((noinline)) static void go_inside(struct ss_containment *own, void (*body)(void *),
                                                void *argument)
{
    own->way_back->stack = __builtin_frame_address(0);
    own->inside = 1;
    body(argument);
    own->inside = 0;
}

bool ss_contain(struct ss_containment *own, void (*body)(void *), void *argument)
{
    struct ss_way_back here = {.outer = own->way_back};
    assert(own->inside == 0);
    own->way_back = &here;
    /* 0: without the signal mask, which would cost a system call. */
    bool faulted = sigsetjmp(here.registers, 0) != 0;
    if (!faulted)
        go_inside(own, body, argument);
    else
        /* A function of libm that was left may have changed how numbers are rounded. */
        fesetenv(&own->arithmetic);
    own->way_back = here.outer;
    return !faulted;
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
    struct ss_containment *own = ss_this_containment();
    if (own == NULL)
        return 0;
    touch_stack();
    sig_atomic_t was = own->inside;
    own->inside = 0;
    /* Neither flag may move across what stands between them. */
    atomic_signal_fence(memory_order_seq_cst);
    return was;
}

void ss_step_inside(sig_atomic_t was)
{
    struct ss_containment *own = ss_this_containment();
    if (own == NULL)
        return;
    atomic_signal_fence(memory_order_seq_cst);
    own->inside = was;
}
