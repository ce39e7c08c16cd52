/* A worker's two stacks, in one mapping:
 *
 *     guard | stack of the thread | guard | stack of the signal handler
 *
 * A thread that has used up its stack touches the first guard, and the handler of that fault needs
 * another stack to run on. Both are ours, so that it is known which addresses mean "stack overflow".
 * The stack is as large as any other thread's (`ulimit -s`), at least a mebibyte; pages that were
 * never touched take no memory. The first guard is wide, because compiled code does not touch its
 * frame page by page: a large frame must not step over it. */
#include "processor/stack.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t guard_bytes = 256 << 10;
static const size_t least_stack_bytes = 1 << 20;

bool ss_stacks_map(struct ss_stacks *stacks, pthread_attr_t *attributes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = 0;
    if (pthread_attr_getstacksize(attributes, &bytes) != 0 || bytes < least_stack_bytes)
        bytes = least_stack_bytes;
    stacks->stack_bytes = (bytes + page - 1) / page * page;
    stacks->bytes = guard_bytes + stacks->stack_bytes + guard_bytes + SS_SIGNAL_STACK_BYTES;
    stacks->mapping = mmap(NULL, stacks->bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stacks->mapping == MAP_FAILED) {
        stacks->mapping = NULL;
        return false;
    }
    stacks->stack = stacks->mapping + guard_bytes;
    stacks->signal_stack = (stack_t){
        .ss_sp = stacks->stack + stacks->stack_bytes + guard_bytes,
        .ss_size = SS_SIGNAL_STACK_BYTES,
    };
    return mprotect(stacks->stack, stacks->stack_bytes, PROT_READ | PROT_WRITE) == 0 &&
           mprotect(stacks->signal_stack.ss_sp, SS_SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE) == 0 &&
           pthread_attr_setstack(attributes, stacks->stack, stacks->stack_bytes) == 0;
}

void ss_stacks_unmap(struct ss_stacks *stacks)
{
    if (stacks->mapping != NULL)
        munmap(stacks->mapping, stacks->bytes);
    stacks->mapping = NULL;
}

bool ss_stacks_guard_holds(const struct ss_stacks *stacks, const void *address)
{
    uintptr_t low = (uintptr_t)stacks->mapping;
    return (uintptr_t)address >= low && (uintptr_t)address < low + guard_bytes;
}
