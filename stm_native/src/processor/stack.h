/* A worker's two stacks. */
#ifndef SPECSTREAM_STACK_H
#define SPECSTREAM_STACK_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum { SS_SIGNAL_STACK_BYTES = 64 << 10 };

struct ss_stacks {
    char *mapping; /* all of it */
    size_t bytes;
    char *stack; /* lowest byte of the thread's stack */
    size_t stack_bytes;
    stack_t signal_stack;
};

/* A worker's stacks, put into the attributes of its thread; false: out of memory. */
bool ss_stacks_map(struct ss_stacks *stacks, pthread_attr_t *attributes);
/* After the thread has been joined. */
void ss_stacks_unmap(struct ss_stacks *stacks);
/* Whether touching the address means that the worker's stack is used up. */
bool ss_stacks_guard_holds(const struct ss_stacks *stacks, const void *address);

#endif
