/* Lists and deques of the state: what compiled code calls.
 *
 * The words of a sequence are words like all others: COUNT, of a deque also START and CAPACITY,
 * and the elements are loaded and stored as the variant does. Where elements have to make room,
 * or close a gap, they are moved one by one. So two runs conflict if one of them changes how
 * many there are, or what lies where the other looks: positions are what a sequence is about.
 *
 * A deque moves whichever end is nearer. Its ring is as large as it had to become, a power of
 * two. It grows in place only, as all may have to move: a speculative run that needs a larger
 * one is run as the head. With early results nothing runs in place that can be helped, and it grows
 * like everything else.
 *
 * On inconsistent data a run may come here with any position; it then works on some element of
 * the region, as START is taken modulo the ring and positions are bounded by what there is room
 * for. */
#include <assert.h>

#include "containers/keyed.h"
#include "core/engine.h"
#include "core/narrow.h"
#include "core/protocol.h"
#include "core/state_words.h"
#include "core/undo_log.h"
#include "core/worker.h"
#include "specstream.h"
#include "specstream_containers.h"
#include "specstream_objects.h"

static const uint64_t least_ring = 16;

/* A sequence, as this run sees it. */
struct sequence {
    struct ss_run *run;
    struct ss_keyed *container;
    const struct ss_container *of;
    uint64_t count;
    uint64_t start;
    uint64_t capacity; /* of a list: all that it has room for */
};

static uint64_t load(struct ss_run *run, uint64_t word)
{
    return run->speculative ? run->worker->engine->protocol->load(run, word)
                            : ss_word_read(&run->state[word]);
}

static void store(const struct sequence *sequence, uint64_t word, uint64_t value)
{
    struct ss_run *run = sequence->run;
    if (run->verdict != SS_COMPLETED)
        return;
    if (run->speculative)
        run->worker->engine->protocol->store(run, word, value);
    else if (sequence->container->undone)
        ss_store_in_place(run, (struct ss_unit){word, 0, 0}, value);
    else
        ss_word_write(&run->state[word], value);
}

static void store_header(const struct sequence *sequence, uint64_t at, uint64_t value)
{
    store(sequence, sequence->of->header + at, value);
}

/* Where its elements lie; the count is loaded by who needs it. */
static struct sequence open_sequence(struct ss_run *run, uint64_t container)
{
    assert(container < run->worker->engine->config.container_count);
    struct ss_keyed *at = &run->keyed[container];
    struct sequence sequence = {
        .run = run, .container = at, .of = &at->of, .capacity = at->of.room};
    if (at->of.kind == SS_DEQUE) {
        sequence.start = load(run, at->of.header + SS_HEADER_START);
        sequence.capacity = load(run, at->of.header + SS_HEADER_CAPACITY);
    }
    return sequence;
}

static uint64_t element(const struct sequence *sequence, uint64_t at)
{
    const struct ss_container *of = sequence->of;
    if (of->kind == SS_DEQUE && sequence->capacity != 0)
        at = (sequence->start + at) & (sequence->capacity - 1);
    return of->region + (at < of->room ? at : 0) * of->entry_words;
}

/* Loads and stores an element. */
static void move(const struct sequence *sequence, uint64_t from, uint64_t to)
{
    for (uint64_t i = 0; i < sequence->of->entry_words; i++)
        store(sequence, to + i, load(sequence->run, from + i));
    ss_object_moved(sequence->run, from, to);
}

/* Elements [first, end) by `by` places to the front, from the first on. */
static void move_down(const struct sequence *sequence, uint64_t first, uint64_t end, uint64_t by)
{
    for (uint64_t at = first; at < end && sequence->run->verdict == SS_COMPLETED; at++)
        move(sequence, element(sequence, at), element(sequence, at - by));
}

/* Likewise to the back, from the last on. */
static void move_up(const struct sequence *sequence, uint64_t first, uint64_t end, uint64_t by)
{
    for (uint64_t at = end; at-- > first && sequence->run->verdict == SS_COMPLETED;)
        move(sequence, element(sequence, at), element(sequence, at + by));
}

/* A ring with room for one more; false: the run ends. */
static bool grow(struct sequence *sequence)
{
    struct sequence grown = *sequence;
    if (sequence->run->speculative && sequence->run->worker->engine->early == NULL) {
        sequence->run->verdict = SS_LOG_FULL;
        return false;
    }
    grown.capacity = sequence->capacity == 0 ? least_ring : 2 * sequence->capacity;
    if (grown.capacity > sequence->of->room)
        grown.capacity = sequence->of->room;
    /* What lies at the beginning of the ring goes on behind its end; the rest stays. */
    for (uint64_t at = sequence->capacity - sequence->start;
         at < sequence->count && sequence->run->verdict == SS_COMPLETED; at++)
        move(sequence, element(sequence, at), element(&grown, at));
    store_header(&grown, SS_HEADER_CAPACITY, grown.capacity);
    *sequence = grown;
    return sequence->run->verdict == SS_COMPLETED;
}

static uint64_t insert(struct sequence *sequence, uint64_t at)
{
    struct ss_run *run = sequence->run;
    bool is_deque = sequence->of->kind == SS_DEQUE;
    run->raised = 0;
    if (sequence->count >= sequence->of->limit) {
        run->raised = SS_FULL;
        run->verdict = SS_RAISED;
        return SS_NOWHERE;
    }
    if (at > sequence->count)
        at = sequence->count;
    if (is_deque && sequence->count >= sequence->capacity && !grow(sequence))
        return SS_NOWHERE;
    if (is_deque && at < sequence->count - at) {
        sequence->start = (sequence->start - 1) & (sequence->capacity - 1);
        store_header(sequence, SS_HEADER_START, sequence->start);
        move_down(sequence, 1, at + 1, 1);
    } else {
        move_up(sequence, at, sequence->count, 1);
    }
    store_header(sequence, SS_HEADER_COUNT, sequence->count + 1);
    return run->verdict == SS_COMPLETED ? element(sequence, at) : SS_NOWHERE;
}

static void delete(struct sequence *sequence, uint64_t first, uint64_t step, uint64_t length)
{
    uint64_t count = sequence->count;
    uint64_t end = first + (length - 1) * step + 1;
    if (length == 0 || end > count)
        return; /* the second on inconsistent data only */
    if (sequence->of->kind == SS_DEQUE && (step == 1 || length == 1) && first < count - end) {
        move_up(sequence, 0, first, length);
        store_header(sequence, SS_HEADER_START,
                     (sequence->start + length) & (sequence->capacity - 1));
    } else {
        for (uint64_t gone = 1; gone < length; gone++)
            move_down(sequence, first + (gone - 1) * step + 1, first + gone * step, gone);
        move_down(sequence, end, count, length);
    }
    store_header(sequence, SS_HEADER_COUNT, count - length);
}

/* ---- the operations ---- */

uint64_t ss_sequence_count(struct ss_run *run, uint64_t container)
{
    return load(run, run->keyed[container].of.header + SS_HEADER_COUNT);
}

uint64_t ss_sequence_element(struct ss_run *run, uint64_t container, uint64_t at)
{
    struct sequence sequence = open_sequence(run, container);
    return run->verdict == SS_COMPLETED ? element(&sequence, at) : SS_NOWHERE;
}

uint64_t ss_sequence_insert(struct ss_run *run, uint64_t container, uint64_t at)
{
    struct ss_keyed *at_work = &run->keyed[container];
    uint64_t made = SS_NOWHERE;
    ss_keyed_lock(at_work);
    struct sequence sequence = open_sequence(run, container);
    sequence.count = ss_sequence_count(run, container);
    if (run->verdict == SS_COMPLETED)
        made = insert(&sequence, at);
    ss_keyed_unlock(at_work);
    return made;
}

void ss_sequence_delete(struct ss_run *run, uint64_t container, uint64_t first, uint64_t step,
                        uint64_t length)
{
    struct ss_keyed *at_work = &run->keyed[container];
    ss_keyed_lock(at_work);
    struct sequence sequence = open_sequence(run, container);
    sequence.count = ss_sequence_count(run, container);
    if (run->verdict == SS_COMPLETED)
        delete(&sequence, first, step, length);
    ss_keyed_unlock(at_work);
}
