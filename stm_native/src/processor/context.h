/* The saved registers of an interrupted thread: the one place that knows the processor. */
#ifndef SPECSTREAM_CONTEXT_H
#define SPECSTREAM_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* How far the thread's stack went. NULL: not known how on this processor. */
static inline char *ss_stack_top(const ucontext_t *context)
{
#if defined(__x86_64__) && defined(__linux__)
    return (char *)(uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__) && defined(__linux__)
    return (char *)(uintptr_t)context->uc_mcontext.sp;
#else
    (void)context;
    return NULL;
#endif
}

/* Makes the thread, once its signal handler returns, call `function(argument)` on the stack below
 * `stack`. The function must not return. False: not known how on this processor; then nothing is
 * changed, and a fault ends the process as it would without us. */
static inline bool ss_redirect(ucontext_t *context, void (*function)(void *), void *argument,
                               char *stack)
{
    uintptr_t aligned = (uintptr_t)stack & ~(uintptr_t)15;
#if defined(__x86_64__) && defined(__linux__)
    greg_t *registers = context->uc_mcontext.gregs;
    /* Eight below alignment: as if a call had just pushed its return address. */
    registers[REG_RSP] = (greg_t)(aligned - 8);
    registers[REG_RIP] = (greg_t)(uintptr_t)function;
    registers[REG_RDI] = (greg_t)(uintptr_t)argument;
    /* The direction flag: functions expect strings to go up. */
    registers[REG_EFL] &= ~(greg_t)0x400;
    return true;
#elif defined(__aarch64__) && defined(__linux__)
    context->uc_mcontext.sp = aligned;
    context->uc_mcontext.pc = (uintptr_t)function;
    context->uc_mcontext.regs[0] = (uintptr_t)argument;
    /* BTYPE: the function is not the target of the branch that may just have been taken. */
    context->uc_mcontext.pstate &= ~(UINT64_C(3) << 10);
    return true;
#else
    (void)context;
    (void)function;
    (void)argument;
    (void)aligned;
    return false;
#endif
}

#endif
