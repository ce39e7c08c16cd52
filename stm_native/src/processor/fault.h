/* The way into compiled code, and out of it when the processor refuses an instruction. */
#ifndef SPECSTREAM_FAULT_H
#define SPECSTREAM_FAULT_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "specstream.h"

struct ss_worker;

/* To where compiled code was called from. */
struct ss_way_back {
    struct ss_way_back *outer; /* of what has called us from inside */
    char *stack;               /* where the stack is free once the code has been left */
    sigjmp_buf registers;
};

/* Runs events [first, last); gives the first one that did not complete. */
int64_t ss_call(struct ss_worker *worker, enum ss_variant variant, int64_t first, int64_t last);
/* Catches faults from now on, before everybody else; false: out of thread-local keys. */
bool ss_fault_open(void);
/* Calls an operation on a boosted structure, or an inverse; false: it has not come to its end, and the
 * run's verdict says so unless it has raised. */
bool ss_call_operation(struct ss_run *run, ss_operation_entry entry, uint64_t *returned);
/* Called by the worker's own thread, or by another one that it is lent to; false: out of memory. */
bool ss_fault_open_thread(struct ss_worker *worker);
/* NULL: the thread is not opened. */
struct ss_worker *ss_this_worker(void);
void ss_fault_close_thread(struct ss_worker *worker);
/* In a signal handler. True: it was an operator's fault, and the run ends when the handler returns. */
bool ss_fault_bring_back(int signal, const siginfo_t *info, void *context);
/* Around what compiled code calls and must not leave half-way: the allocator, what keeps a lock. */
sig_atomic_t ss_step_outside(void);
void ss_step_inside(sig_atomic_t was);

#endif
