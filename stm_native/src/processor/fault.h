/* The way out of compiled code when the processor refuses an instruction. */
#ifndef SPECSTREAM_FAULT_H
#define SPECSTREAM_FAULT_H

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>

#include "processor/stack.h"
#include "specstream.h"

/* To where compiled code was called from. */
struct ss_way_back {
    struct ss_way_back *outer; /* of what has called us from inside */
    char *stack;               /* where the stack is free once the code has been left */
    sigjmp_buf registers;
};

/* Of a thread that calls compiled code. */
struct ss_containment {
    volatile sig_atomic_t inside; /* 1: a fault now is that of compiled code */
    struct ss_way_back *way_back; /* the innermost */
    struct ss_fault fault; /* the last one: of the run in place whose verdict is SS_FAULTED */
    fenv_t arithmetic;     /* as it was when the thread began */
    struct ss_stacks stacks;
    stack_t signal_stack_before;
};

/* Catches faults from now on, before everybody else; false: out of thread-local keys. */
bool ss_fault_open(void);
/* Called by the worker's own thread, or by another one that it is lent to; false: out of memory. */
bool ss_fault_open_thread(struct ss_containment *own);
/* NULL: the thread is not opened. */
struct ss_containment *ss_this_containment(void);
void ss_fault_close_thread(struct ss_containment *own);
/* Calls `body`, which calls compiled code; false: it has faulted. From outside: also where it is called
 * from a run, which has then stepped outside. */
bool ss_contain(struct ss_containment *own, void (*body)(void *), void *argument);
/* In a signal handler. True: it was an operator's fault, and the run ends when the handler returns. */
bool ss_fault_bring_back(int signal, const siginfo_t *info, void *context);
/* Around what compiled code calls and must not leave half-way: the allocator, what keeps a lock. */
sig_atomic_t ss_step_outside(void);
void ss_step_inside(sig_atomic_t was);

#endif
