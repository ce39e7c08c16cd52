/* A worker's buffer for elements on their way from one place of the state to another.
 *
 * Where two slices overlap, the source is read as a whole before the target is written. The buffer
 * belongs to the worker and holds nothing between two assignments, so a run may be left at any point.
 * It grows to the largest slice so assigned, which is at most a field: also on inconsistent data,
 * because bounds are those of the declaration. */
#include <signal.h>
#include <stdlib.h>

#include "core/worker.h"
#include "processor/fault.h"
#include "processor/figure.h"
#include "specstream.h"

static const uint64_t first_words = 64;

uint64_t *ss_buffer(struct ss_run *run, uint64_t words)
{
    struct ss_worker *worker = run->worker;
    if (words <= worker->buffer_words && worker->buffer != NULL)
        return worker->buffer;
    uint64_t room = worker->buffer_words == 0 ? first_words : worker->buffer_words;
    while (room < words)
        room *= 2;
    sig_atomic_t was = ss_step_outside();
    uint64_t *grown = realloc(worker->buffer, room * sizeof *grown);
    ss_step_inside(was);
    if (grown == NULL) {
        run->verdict = SS_NO_MEMORY;
        return NULL;
    }
    worker->buffer = grown;
    ss_grow(&worker->buffer_words, room);
    return grown;
}
