/* Calls of compiled code: the entries of an operator, and operations on boosted structures. */
#include "core/call.h"

#include <assert.h>
#include <stddef.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/fault.h"
#include "specstream.h"

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
    if (ss_contain(&worker->containment, run_entry, &call))
        return call.next;
    assert(first <= run->event && run->event < last);
    run->verdict = SS_FAULTED;
    worker->containment.fault.event = run->event;
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
    struct ss_containment *own = ss_this_containment();
    run->verdict = SS_COMPLETED;
    run->raised = 0;
    /* Without a way back it is not tried. */
    if (own == NULL || !ss_contain(own, run_operation, &call))
        run->verdict = SS_FAULTED;
    *returned = (uint64_t)call.returned;
    return run->raised == 0 && run->verdict == SS_COMPLETED;
}
