/* An open job: from pending events to a transaction.
 *
 * The events of a transaction must follow each other: no event, claimed or not, lies between them. A chunk
 * that begins below the frontier ends there.
 *
 * Numbers. A transaction still has one: count * slots + slot. It is its identity and says which slot
 * is its; it says nothing about order. */
#include "jobs/forming.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/engine.h"
#include "core/protocol.h"
#include "core/transaction.h"
#include "core/worker.h"
#include "jobs/early.h"
#include "jobs/queue.h"
#include "processor/processor.h"
#include "protocols/counter_prediction.h"
#include "specstream.h"

static const uint64_t first_spans = 8;

/* Without speculation the chunk is no unit of anything: as many events as are there, within reason. */
static const int64_t plain_chunk = 1024;

static bool add_span(struct ss_queue *queue, struct ss_transaction *transaction,
                     struct ss_span span)
{
    if (transaction->span_count == transaction->span_capacity) {
        uint64_t capacity =
            transaction->span_capacity == 0 ? first_spans : 2 * transaction->span_capacity;
        struct ss_span *grown = realloc(transaction->spans, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        transaction->spans = grown;
        transaction->span_capacity = capacity;
    }
    span.done = span.first;
    transaction->spans[transaction->span_count++] = span;
    queue->claimed_spans++;
    return true;
}

/* Takes the least pending events into a transaction, up to a chunk of them that nothing lies
 * between. False: out of memory, and nothing has changed. */
static bool take_events(struct ss_engine *engine, struct ss_transaction *transaction,
                        uint64_t place, int64_t most)
{
    struct ss_queue *queue = engine->queue;
    bool only_safe = ss_queue_is_safe(queue, ss_pending_key(queue));
    bool has_next = place < queue->active_count;
    struct ss_key next = {0, 0, 0};
    if (has_next)
        next = ss_first_key(ss_active_at(engine, place));
    if (engine->early != NULL && engine->early->applied < engine->early->count) {
        struct ss_key revoked = ss_applied_at(engine->early, engine->early->applied)->first;
        next = !has_next || ss_is_before(revoked, next) ? revoked : next;
        has_next = true;
    }

    transaction->span_count = 0;
    int64_t count = 0;
    while (queue->pending_count > 0 && count < most) {
        struct ss_key key = ss_pending_key(queue);
        if ((only_safe && !ss_queue_is_safe(queue, key)) || (has_next && ss_is_before(next, key)))
            break;
        /* A transaction of its own: what is behind it must not wait for what is said of it. */
        bool is_tentative = queue->pending[0].segment->is_tentative;
        if (is_tentative && count > 0)
            break;
        if (!ss_queue_reserve(queue, 2) || !add_span(queue, transaction, queue->pending[0]))
            break;
        struct ss_span rest = ss_queue_pop(queue);
        int64_t row = rest.first;
        do {
            row++;
            count++;
            if (row == rest.last || count == most)
                break;
            key = ss_key_at(rest.segment, row);
        } while (!(only_safe && !ss_queue_is_safe(queue, key)) && !(has_next && ss_is_before(next, key)) &&
                 (queue->pending_count == 0 || ss_is_before(key, ss_pending_key(queue))));
        transaction->spans[transaction->span_count - 1].last = row;
        rest.first = rest.done = row;
        if (rest.first < rest.last)
            ss_queue_push(queue, rest);
        ss_queue_drop_withdrawn(queue);
        if (is_tentative)
            break;
    }
    transaction->first = 0;
    transaction->last = count;
    return count > 0;
}

void ss_queue_look_ahead(struct ss_engine *engine, uint64_t position)
{
    struct ss_queue *queue = engine->queue;
    if (SS_UNLIKELY(ss_predicts(engine->counters)))
        ss_prediction_look_ahead(engine, ss_active_at(engine, position),
                                 queue->active + queue->active_first, position);
}

void ss_queue_fail_for_memory(struct ss_queue *queue)
{
    if (!queue->failed)
        queue->failed_row = SS_NO_ROW_FOR_MEMORY;
    queue->failed = true;
}

struct ss_transaction *ss_queue_form(struct ss_engine *engine, enum ss_status status)
{
    struct ss_queue *queue = engine->queue;
    uint64_t place = ss_active_before(engine, ss_pending_key(queue));
    int64_t most = engine->job.chunk;
    if (engine->job.horizon == 0 && most < plain_chunk && engine->hooks.kinds == 0)
        most = plain_chunk;
    if (engine->early != NULL) {
        most = engine->early->singly > 0 || engine->boost != NULL ? 1 : engine->job.chunk;
        engine->early->singly -= engine->early->singly > 0;
    }
    assert(queue->unused_count > 0);
    uint64_t slot = queue->unused[queue->unused_first % queue->slots];
    struct ss_transaction *transaction = &engine->ring[slot];
    if (!take_events(engine, transaction, place, most)) {
        ss_queue_fail_for_memory(queue);
        return NULL;
    }
    queue->unused_first = (queue->unused_first + 1) % queue->slots;
    queue->unused_count--;
    transaction->number = queue->claims++ * (int64_t)engine->ring_size + (int64_t)slot;
    transaction->began_as_head = engine->protocol->head_speculates && place == 0 &&
                                 ss_queue_is_safe(queue, ss_last_key(transaction));
    transaction->barrier = false;
    /* Relaxed: the slot is ours, and the release of its status, below, shows all of it. */
    atomic_store_explicit(&transaction->dissolved, 0, memory_order_relaxed);
    atomic_store_explicit(&transaction->owner, NULL, memory_order_relaxed);
    struct ss_key key = ss_first_key(transaction);
    /* Pairs with the fence in eager.c's is_still: who still follows a reference to the last tenant
     * and sees this key also sees that the reference is gone. */
    atomic_thread_fence(memory_order_release);
    /* Relaxed: ordered by the fence above; a stale look is told from a true one by looking at
     * the record again. */
    atomic_store_explicit(&transaction->key.timestamp, key.timestamp, memory_order_relaxed);
    atomic_store_explicit(&transaction->key.source, key.source, memory_order_relaxed);
    atomic_store_explicit(&transaction->key.sequence, key.sequence, memory_order_relaxed);
    ss_set_status(transaction, transaction->number, status);
    ss_active_insert(queue, place, slot);
    ss_queue_look_ahead(engine, place);
    return transaction;
}
