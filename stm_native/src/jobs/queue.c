/* The queue of an open job.
 *
 * What is a ring in an ordered job is two structures here, both ordered by key (timestamp, source,
 * sequence):
 *
 *     pending  a heap of spans: consecutive events of one segment that nobody has claimed
 *     active   the transactions that are running or wait, a row sorted by their first event's key
 *
 * The mutex of the queue is held for all that is done here. */
#include "jobs/queue.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "processor/figure.h"
#include "protocols/boosting.h"
#include "specstream.h"

static const uint64_t first_pending = 64;

bool ss_queue_reserve(struct ss_queue *queue, uint64_t more)
{
    uint64_t needed = queue->pending_count + queue->claimed_spans + more;
    if (needed <= queue->pending_capacity)
        return true;
    uint64_t capacity = 2 * needed;
    struct ss_span *grown = realloc(queue->pending, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    queue->pending = grown;
    queue->pending_capacity = capacity;
    return true;
}

void ss_queue_push(struct ss_queue *queue, struct ss_span span)
{
    struct ss_span *heap = queue->pending;
    assert(queue->pending_count < queue->pending_capacity);
    uint64_t at = queue->pending_count++;
    for (; at > 0 && ss_span_starts_before(&span, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = span;
}

struct ss_span ss_queue_pop(struct ss_queue *queue)
{
    struct ss_span *heap = queue->pending;
    struct ss_span top = heap[0];
    struct ss_span last = heap[--queue->pending_count];
    uint64_t at = 0;
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= queue->pending_count)
            break;
        if (child + 1 < queue->pending_count && ss_span_starts_before(&heap[child + 1], &heap[child]))
            child++;
        if (!ss_span_starts_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

void ss_queue_drop_withdrawn(struct ss_queue *queue)
{
    while (queue->pending_count > 0 && queue->pending[0].segment->is_withdrawn)
        ss_queue_pop(queue).segment->left = 0;
}

uint64_t ss_active_before(const struct ss_engine *engine, struct ss_key key)
{
    uint64_t low = 0, high = engine->queue->active_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (ss_is_before(ss_first_key(ss_active_at(engine, middle)), key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t ss_active_position(const struct ss_engine *engine, const struct ss_transaction *transaction)
{
    uint64_t position = ss_active_before(engine, ss_first_key(transaction));
    while (ss_active_at(engine, position) != transaction)
        position++;
    return position;
}

void ss_active_insert(struct ss_queue *queue, uint64_t position, uint64_t slot)
{
    /* The row wanders to the right as its front is taken off; it has twice the room it needs. */
    if (queue->active_first + queue->active_count == 2 * queue->slots) {
        memmove(queue->active, queue->active + queue->active_first,
                queue->active_count * sizeof *queue->active);
        queue->active_first = 0;
    }
    uint64_t *at = queue->active + queue->active_first + position;
    memmove(at + 1, at, (queue->active_count - position) * sizeof *at);
    *at = slot;
    queue->active_count++;
}

static void remove_at(struct ss_queue *queue, uint64_t position)
{
    uint64_t *at = queue->active + queue->active_first + position;
    if (position == 0)
        queue->active_first++;
    else
        memmove(at, at + 1, (queue->active_count - position - 1) * sizeof *at);
    queue->active_count--;
}

void ss_active_discard(struct ss_engine *engine, uint64_t position)
{
    struct ss_queue *queue = engine->queue;
    struct ss_transaction *transaction = ss_active_at(engine, position);
    queue->claimed_spans -= transaction->span_count;
    remove_at(queue, position);
    queue->unused[(queue->unused_first + queue->unused_count++) % queue->slots] =
        (uint64_t)(transaction - engine->ring);
    ss_set_status(transaction, transaction->number, SS_FREE);
}

void ss_queue_give_back(struct ss_queue *queue, const struct ss_transaction *transaction,
                        bool but_one)
{
    for (uint64_t i = 0; i < transaction->span_count; i++) {
        struct ss_span span = transaction->spans[i];
        span.first = span.done;
        if (span.first == span.last)
            continue;
        if (but_one) {
            queue->failed_segment = span.segment;
            queue->failed_row = span.first;
            span.first++;
            but_one = false;
        }
        span.done = span.first;
        if (span.first < span.last)
            ss_queue_push(queue, span);
    }
}

void ss_dissolve(struct ss_engine *engine, uint64_t position, uint64_t status)
{
    struct ss_queue *queue = engine->queue;
    struct ss_transaction *transaction = ss_active_at(engine, position);
    engine->protocol->roll_back(engine, transaction);
    ss_boost_roll_back(engine, transaction);
    ss_count(&queue->reordered, status != SS_WAITING);
    queue->claimed_spans -= transaction->span_count;
    ss_queue_give_back(queue, transaction, false);
    queue->claimed_spans += transaction->span_count;
    ss_active_discard(engine, position);
}

void ss_ask_to_dissolve(struct ss_engine *engine, uint64_t position)
{
    struct ss_transaction *transaction = ss_active_at(engine, position);
    if (ss_is_dissolving(transaction))
        return;
    uint64_t status = ss_status_of(transaction);
    if (status != SS_RUNNING) {
        ss_dissolve(engine, position, status);
        return;
    }
    engine->queue->dissolving++;
    atomic_store_explicit(&transaction->dissolved, 1, memory_order_relaxed);
    /* Dekker with run_once: the wish is there before the flag is up. */
    atomic_thread_fence(memory_order_seq_cst);
    /* Relaxed: whoever claimed or repeats the run has set it with the mutex; the flag is only
     * polled, and the fence has put it behind the wish. */
    struct ss_worker *owner = atomic_load_explicit(&transaction->owner, memory_order_relaxed);
    if (owner != NULL)
        __atomic_store_n(&owner->run.kill, SS_LEAVE, __ATOMIC_RELAXED);
}

bool ss_queue_open(struct ss_engine *engine)
{
    struct ss_queue *queue = engine->queue;
    ss_queue_close(engine);
    queue->slots = engine->ring_size;
    queue->pending = malloc(first_pending * sizeof *queue->pending);
    queue->active = malloc(2 * queue->slots * sizeof *queue->active);
    queue->unused = malloc(queue->slots * sizeof *queue->unused);
    if (queue->pending == NULL || queue->active == NULL || queue->unused == NULL) {
        ss_queue_close(engine);
        return false;
    }
    queue->pending_capacity = first_pending;
    queue->unused_count = queue->slots;
    /* Relaxed: nobody is in the job yet, and the pool's mutex hands it to the workers. */
    atomic_store_explicit(&queue->runs, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->nanoseconds, 0, memory_order_relaxed);
    for (uint64_t i = 0; i < queue->slots; i++)
        queue->unused[i] = i;
    return true;
}

/* Forgets everything but the figures. */
void ss_queue_close(struct ss_engine *engine)
{
    struct ss_queue *queue = engine->queue;
    free(queue->pending);
    free(queue->active);
    free(queue->unused);
    queue->pending = NULL;
    queue->active = queue->unused = NULL;
    queue->pending_count = queue->pending_capacity = queue->claimed_spans = 0;
    queue->active_first = queue->active_count = 0;
    queue->unused_first = queue->unused_count = 0;
    queue->dissolving = queue->untold = 0;
    queue->has_frontier = queue->has_ended = false;
    queue->reached = INT64_MIN;
    queue->has_rows = queue->has_moved = queue->failed = false;
    queue->failed_segment = NULL;
    /* Relaxed: nobody is in a job, and who waits for news takes the mutex before it acts. */
    atomic_store_explicit(&queue->work, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->has_news, 1, memory_order_relaxed);
    atomic_store_explicit(&queue->is_settled, 1, memory_order_relaxed);
}
