#include "open_steps.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/engine.h"
#include "core/transaction.h"
#include "jobs/queue.h"
#include "processor/now.h"
#include "specstream.h"

static struct {
    int64_t count;
    const struct place *places;
    int64_t timestamps[MOST_EVENTS];
    void *columns[1];
    struct ss_segment segments[MOST_EVENTS];
    int64_t segment_count;
} open_stage;

void open_start(const row *events, const struct place *places, int64_t count)
{
    open_stage.count = count;
    open_stage.places = places;
    open_stage.segment_count = 0;
    open_stage.columns[0] = open_stage.timestamps;
    for (int64_t event = 0; event < count; event++)
        open_stage.timestamps[event] = places[event].timestamp;
    stage_start(events, count, 0);
}

void open_submit(int64_t first, int64_t last)
{
    struct ss_segment *segment = &open_stage.segments[open_stage.segment_count++];
    *segment = (struct ss_segment){.columns = open_stage.columns,
                                   .first = first,
                                   .last = last,
                                   .source = open_stage.places[first].source};
    CHECK(ss_engine_submit(stage_engine(), segment));
}

void open_advance(int64_t timestamp, int64_t source)
{
    ss_engine_advance(stage_engine(), (struct ss_frontier){timestamp, source});
}

int64_t open_left(void)
{
    struct ss_queue *queue = stage_engine()->queue;
    int64_t left = 0;
    pthread_mutex_lock(&queue->mutex);
    for (int64_t i = 0; i < open_stage.segment_count; i++)
        left += open_stage.segments[i].left;
    pthread_mutex_unlock(&queue->mutex);
    return left;
}

int64_t open_not_applied(void)
{
    int64_t waiting = open_left();
    for (int64_t i = 0; i < open_stage.segment_count; i++)
        waiting -= open_stage.segments[i].ahead;
    return waiting;
}

void await_left(int64_t events)
{
    int64_t since = ss_now();
    while (open_left() != events)
        if (stage_waits_too_long(since))
            fail("%s: %lld events are left, not %lld", scenario, (long long)open_left(),
                 (long long)events);
}

static bool holds(const struct ss_transaction *transaction, int64_t event)
{
    for (uint64_t i = 0; i < transaction->span_count; i++)
        if (transaction->spans[i].first <= event && event < transaction->spans[i].last)
            return true;
    return false;
}

/* The status of the transaction that holds the event. */
static enum ss_status status_of(int64_t event, int64_t *number)
{
    struct ss_engine *engine = stage_engine();
    struct ss_queue *queue = engine->queue;
    enum ss_status found = SS_FREE;
    *number = -1;
    pthread_mutex_lock(&queue->mutex);
    for (uint64_t i = 0; i < queue->active_count; i++) {
        struct ss_transaction *transaction = &engine->ring[queue->active[queue->active_first + i]];
        if (holds(transaction, event)) {
            found = (enum ss_status)(atomic_load(&transaction->status) & 7);
            *number = transaction->number;
        }
    }
    pthread_mutex_unlock(&queue->mutex);
    return found;
}

int64_t await_event(int64_t event, enum ss_status status)
{
    int64_t since = ss_now();
    int64_t number;
    enum ss_status found;
    while ((found = status_of(event, &number)) != status)
        if (stage_waits_too_long(since))
            fail("%s: the status of event %lld is %d, and does not become %d", scenario,
                 (long long)event, (int)found, (int)status);
    return number;
}

int64_t await_failure(void)
{
    int64_t since = ss_now();
    struct ss_outcome outcome;
    for (;;) {
        ss_engine_await(stage_engine(), 50000000);
        ss_engine_take_turn(stage_engine());
        outcome = ss_engine_outcome(stage_engine());
        ss_engine_release_turn(stage_engine());
        if (outcome.failed)
            return outcome.failed_row;
        if (stage_waits_too_long(since))
            fail("%s: no event fails", scenario);
    }
}

static bool is_earlier(int64_t a, int64_t b)
{
    struct place left = open_stage.places[a], right = open_stage.places[b];
    if (left.timestamp != right.timestamp)
        return left.timestamp < right.timestamp;
    return left.source != right.source ? left.source < right.source : a < b;
}

static void compare(const struct ss_outcome *outcome)
{
    int64_t order[MOST_EVENTS], applied = 0;
    uint64_t next_row = 0;
    for (int64_t event = 0; event < open_stage.count; event++) {
        int64_t at = event;
        for (; at > 0 && is_earlier(event, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = event;
    }
    for (int64_t i = 0; i < open_stage.count; i++)
        applied += stage_expect(order[i], outcome, &next_row);
    CHECK(outcome->consumed == applied && !outcome->failed);
    CHECK(outcome->row_count == next_row);
    CHECK(stage_is_as_expected());
}

struct ss_outcome open_end(void)
{
    stage_let_everything_go();
    open_advance(INT64_MAX, INT64_MAX);
    await_left(0);
    ss_engine_stop(stage_engine());
    struct ss_outcome outcome = stage_wait();
    compare(&outcome);
    return outcome;
}
