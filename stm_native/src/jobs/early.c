/* Early results: events are applied in the order known so far, and are final later (after Brito 2010,
 * 5.2.1 and 5.2.2).
 *
 * In such a job there are two images of the state. The owner's words are the final one, which everybody
 * outside sees. The workers' is a copy, the *applied* image: the head of the job is the next event to
 * be applied, whether or not earlier ones may still come, and when the frontier has passed an applied
 * transaction, what it has written is written to the owner's words as well, in order.
 *
 *     final | applied, in a row by key, with their logs | the head | running or waiting | pending
 *
 * An event that comes too late for that belongs before some that are applied. These are *revoked*:
 * taken back, the last one first, by the words that they had found. The late event runs; then those
 * behind it become the head again, one by one. Where all that one had read is as it was, what it wrote is
 * published again without running it; else its events are pending again.
 *
 * So a transaction that is applied keeps its logs: what it read, with values; what it wrote; what it
 * overwrote; its rows. Deltas are applied again, to whatever is there by then.
 *
 * Timers. One that is due before the next event fires in place, on the applied image, and so does
 * an event of an operator with boosted fields: of neither there is a log of reads. What they have
 * overwritten is kept, and so is what these words are now, for the final image; they are taken back like
 * others, and never published again. The removal of an entry that has expired is such a unit, too. A timer
 * has the key of its time, before all events of that time; or, where that has come already, that of
 * what was applied last.
 *
 * Containers. A removed entry is free when its removal is final: until then it could come back. The
 * index knows all entries that were ever taken, as it is but a hint. A transaction that is published
 * again gives its entries the stamps they had if nothing in the container has come or gone before it
 * meanwhile, and new ones else; so the order of stamps is that of the events, and no stamp stands for two
 * contents. That a key has an entry is logged as such, and not as a stamp (keyed.c). */
#include "jobs/early.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "containers/keyed.h"
#include "containers/keyed_changes.h"
#include "containers/keyed_entries.h"
#include "containers/keyed_index.h"
#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/ranges.h"
#include "core/redo_log.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/value.h"
#include "core/worker.h"
#include "protocols/delta.h"
#include "specstream.h"
#include "specstream_containers.h"

enum { COPIED_WORDS = 512, FIRST_ROOM = 64 };

/* ---- the two images ---- */

/* Regions of containers are mostly untouched, and have no memory then: where there are zeros only, the
 * copy stays untouched as well. */
static void copy_words(uint64_t *to, const uint64_t *from, uint64_t words)
{
    static const uint64_t zeros[COPIED_WORDS];
    for (uint64_t at = 0; at < words; at += COPIED_WORDS) {
        uint64_t count = words - at < COPIED_WORDS ? words - at : COPIED_WORDS;
        if (memcmp(from + at, zeros, count * sizeof *from) != 0)
            memcpy(to + at, from + at, count * sizeof *from);
    }
}

bool ss_early_open(struct ss_engine *engine, uint64_t limit)
{
    assert(engine->early == NULL);
    struct ss_early *early = calloc(1, sizeof *early);
    if (early == NULL)
        return false;
    early->limit = limit;
    early->image = calloc(engine->config.state_words + 1, sizeof *early->image);
    if (early->image == NULL || !ss_early_reserve(early)) {
        free(early->image);
        free(early);
        return false;
    }
    copy_words(early->image, engine->config.state, engine->config.state_words);
    engine->early = early;
    engine->state = early->image;
    /* Relaxed: no worker is in a job, and the pool's mutex hands it to them. */
    atomic_store_explicit(&engine->revocations, 0, memory_order_relaxed);
    /* What a transaction that is applied has read is compared by value when it is looked at again; so it
     * logs values. */
    early->protocol = engine->protocol;
    engine->protocol = &ss_protocol_value;
    return true;
}

void ss_early_close(struct ss_engine *engine)
{
    struct ss_early *early = engine->early;
    if (early == NULL)
        return;
    for (uint64_t i = 0; i < early->count; i++)
        free(ss_applied_at(early, i));
    free(early->row);
    free(early->image);
    free(early->voids.at);
    free(early->kept.at);
    free(early->finals.at);
    free(early->news.at);
    engine->protocol = early->protocol;
    free(early);
    ss_timers_state_changed(engine);
    /* Which entries are free is said by the owner's words again. With the mutex: who looks at a key may
     * find out at once. */
    pthread_mutex_lock(&engine->containers_mutex);
    engine->early = NULL;
    engine->state = engine->config.state;
    atomic_store_explicit(&engine->containers_stale, 1, memory_order_relaxed);
    pthread_mutex_unlock(&engine->containers_mutex);
}

/* ---- the row ---- */

uint64_t ss_applied_before(const struct ss_early *early, struct ss_key key)
{
    uint64_t low = 0, high = early->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (ss_is_before(ss_applied_at(early, middle)->first, key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ss_early_reserve(struct ss_early *early)
{
    if (early->first + early->count < early->capacity)
        return true;
    if (early->first > early->capacity / 2) {
        memmove(early->row, early->row + early->first, early->count * sizeof *early->row);
        early->first = 0;
        return true;
    }
    uint64_t capacity = early->capacity == 0 ? FIRST_ROOM : 2 * early->capacity;
    struct ss_applied **grown = realloc(early->row, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    early->row = grown;
    early->capacity = capacity;
    return true;
}

void ss_early_insert(struct ss_early *early, uint64_t place, struct ss_applied *applied)
{
    struct ss_applied **at = early->row + early->first + place;
    memmove(at + 1, at, (early->count - place) * sizeof *at);
    *at = applied;
    early->count++;
    early->bytes += applied->bytes;
    if (early->bytes > early->figures.most_bytes)
        early->figures.most_bytes = early->bytes;
    if (place < early->untold)
        early->untold = place;
}

void ss_early_leave(struct ss_early *early, const struct ss_applied *applied)
{
    early->bytes -= applied->bytes;
    early->divided -= applied->divided;
}

struct ss_applied *ss_early_remove(struct ss_early *early, uint64_t place)
{
    struct ss_applied **at = early->row + early->first + place;
    struct ss_applied *applied = *at;
    if (place == 0)
        early->first++;
    else
        memmove(at, at + 1, (early->count - place - 1) * sizeof *at);
    early->count--;
    ss_early_leave(early, applied);
    if (place < early->untold)
        early->untold--;
    return applied;
}

/* ---- one transaction ---- */

static uint64_t undo_words(const struct ss_transaction *transaction)
{
    uint64_t words = transaction->change_count; /* at most one group for each */
    for (uint64_t i = 0; i < transaction->redo_count; i += ss_redo_step(&transaction->redo[i]))
        words += ss_redo_words(&transaction->redo[i]);
    return words;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static void *placed(char **room, uint64_t bytes)
{
    void *at = *room;
    *room += rounded(bytes);
    return at;
}

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* One with room for that many of each. */
static struct ss_applied *allocate(const struct ss_applied *of, uint64_t undo_count)
{
    uint64_t spans = of->span_count * sizeof *of->spans;
    uint64_t reads = of->read_count * sizeof *of->reads;
    uint64_t redo = of->redo_count * sizeof *of->redo;
    uint64_t changes = of->change_count * sizeof *of->changes;
    uint64_t given = of->change_count * sizeof *of->given;
    uint64_t rows = of->row_words * sizeof *of->rows;
    uint64_t undo = undo_count * sizeof *of->undo;
    uint64_t firing = of->firing == NULL ? 0 : sizeof *of->firing;
    uint64_t bytes = rounded(sizeof *of) + rounded(spans) + rounded(reads) + rounded(redo) +
                     rounded(changes) + rounded(given) + rounded(rows) + rounded(undo) +
                     rounded(firing);
    struct ss_applied *applied = malloc(bytes);
    if (applied == NULL)
        return NULL;
    char *room = (char *)applied + rounded(sizeof *applied);
    *applied = *of;
    applied->bytes = bytes;
    applied->spans = placed(&room, spans);
    applied->reads = placed(&room, reads);
    applied->redo = placed(&room, redo);
    applied->changes = placed(&room, changes);
    applied->given = placed(&room, given);
    applied->rows = placed(&room, rows);
    applied->undo = placed(&room, undo);
    if (firing > 0) {
        applied->firing = placed(&room, firing);
        *applied->firing = *of->firing;
    }
    if (given > 0)
        memset(applied->given, 0, given);
    return applied;
}

/* Room for the word that says how far time has come. */
static uint64_t clock_words(const struct ss_engine *engine)
{
    return ss_has_timers(engine) && ss_timers_clock_word(engine) != NULL;
}

struct ss_applied *ss_applied_new(const struct ss_engine *engine,
                                  const struct ss_transaction *transaction, struct ss_key first,
                                  struct ss_key last)
{
    bool raised = transaction->verdict != SS_COMPLETED;
    struct ss_applied of = {
        .first = first,
        .last = last,
        .events = transaction->last - transaction->first,
        .span_count = transaction->span_count,
        .read_count = transaction->read_count,
        .least_timer = raised ? INT64_MAX : transaction->least_timer,
        .raised = raised,
    };
    if (!raised) {
        of.redo_count = transaction->redo_count;
        of.delta_count = transaction->delta_count;
        of.change_count = transaction->change_count;
        of.row_words = transaction->row_words;
    }
    struct ss_applied *applied = allocate(&of, raised ? 0 : undo_words(transaction) + clock_words(engine));
    if (applied == NULL)
        return NULL;
    copy(applied->spans, transaction->spans, of.span_count * sizeof *of.spans);
    copy(applied->reads, transaction->reads, of.read_count * sizeof *of.reads);
    copy(applied->redo, transaction->redo, of.redo_count * sizeof *of.redo);
    copy(applied->changes, transaction->changes, of.change_count * sizeof *of.changes);
    copy(applied->rows, transaction->rows, of.row_words * sizeof *of.rows);
    return applied;
}

/* An entry that a run in place has touched, as a change of it; false: it only has another key now. */
static bool change_of(const uint64_t *state, uint64_t touched, struct ss_change *change)
{
    uint64_t entry = touched & UINT32_MAX;
    bool is_there = ss_word_read(&state[entry + SS_STAMP_WORD]) != 0;
    bool was_there = (touched & SS_WAS_THERE) != 0;
    *change = (struct ss_change){.entry = (uint32_t)entry};
    change->container = ss_touched_container(touched) & UINT32_C(0xfffffff);
    change->kind = was_there ? SS_REMOVED : is_there ? SS_INSERTED : SS_INSERTED_IN_VAIN;
    return !was_there || !is_there;
}

static void keep(struct ss_applied *applied, uint64_t *address)
{
    applied->undo[applied->undo_count++] = (struct ss_undo){address, ss_word_read(address)};
}

/* Time has come so far with it. */
static void pass_time(struct ss_engine *engine, struct ss_applied *applied)
{
    if (!ss_has_timers(engine) || applied->raised || applied->of_time)
        return;
    if (clock_words(engine) > 0)
        keep(applied, ss_timers_clock_word(engine));
    ss_timers_pass(engine, applied->last.timestamp);
}

struct ss_applied *ss_applied_in_place(struct ss_worker *worker, struct ss_key first,
                                       struct ss_key last, const struct ss_in_place *run)
{
    struct ss_engine *engine = worker->engine;
    const struct ss_touched *touched = &worker->touched;
    const struct ss_undo *undone = worker->run.undo_base;
    const uint64_t *rows = engine->rows + engine->row_words;
    uint64_t undo_count = run->word_count + (uint64_t)(worker->run.undo_top - undone);
    struct ss_change change;
    struct ss_applied of = {
        .first = first,
        .last = last,
        .events = run->span != NULL,
        .span_count = run->span != NULL,
        .row_words = (uint64_t)(worker->run.emit_top - rows),
        .firing = (struct ss_firing *)run->firing,
        .least_timer = INT64_MAX,
        .of_time = run->firing != NULL || run->expired,
        .raised = run->raised,
        .reruns = true,
    };
    for (uint64_t i = 0; i < touched->count; i++)
        of.change_count += change_of(engine->state, touched->entries[i], &change);
    undo_count += clock_words(engine);
    of.redo_count = undo_count;
    struct ss_applied *applied = allocate(&of, undo_count);
    if (applied == NULL)
        return NULL;
    copy(applied->spans, run->span, of.span_count * sizeof *of.spans);
    copy(applied->rows, rows, of.row_words * sizeof *of.rows);
    copy(applied->undo, run->words, run->word_count * sizeof *of.undo);
    applied->undo_count = run->word_count;
    for (; undone != worker->run.undo_top; undone++)
        applied->undo[applied->undo_count++] = *undone;
    pass_time(engine, applied);
    /* What its words are now is what they will be when it is final. */
    applied->redo_count = applied->undo_count;
    for (uint64_t i = 0; i < applied->undo_count; i++)
        applied->redo[i] = (struct ss_write){
            .word = (uint32_t)(applied->undo[i].address - engine->state),
            .delta = SS_NO_DELTA,
            .value = ss_word_read(applied->undo[i].address),
        };
    applied->change_count = 0;
    for (uint64_t i = 0; i < touched->count; i++) {
        if (!change_of(engine->state, touched->entries[i], &change))
            continue;
        const struct ss_container *of_it = &engine->keyed[change.container].of;
        applied->given[applied->change_count] = (struct ss_given){
            .stamp = ss_word_read(&engine->state[change.entry + SS_STAMP_WORD]),
            .changes = ss_word_read(&engine->state[of_it->header + SS_HEADER_CHANGES]),
        };
        applied->changes[applied->change_count++] = change;
    }
    return applied;
}

struct ss_transaction ss_applied_seen(const struct ss_applied *applied)
{
    return (struct ss_transaction){
        .first = 0,
        .last = applied->events,
        .spans = applied->spans,
        .span_count = applied->span_count,
        .verdict = applied->raised ? SS_RAISED : SS_COMPLETED,
        .reads = applied->reads,
        .read_count = applied->read_count,
        .redo = applied->redo,
        .redo_count = applied->redo_count,
        .delta_count = applied->delta_count,
        .changes = applied->changes,
        .change_count = applied->change_count,
        .rows = applied->rows,
        .row_words = applied->row_words,
    };
}

bool ss_applied_holds(struct ss_engine *engine, struct ss_applied *applied)
{
    struct ss_transaction transaction = ss_applied_seen(applied);
    return !applied->reruns && engine->protocol->validate(engine, &transaction) &&
           ss_delta_fits(engine, &transaction) && ss_changes_fit(engine, &transaction);
}

uint64_t ss_end_of_group(const struct ss_applied *applied, uint64_t at)
{
    uint32_t container = applied->changes[at].container;
    while (at < applied->change_count && applied->changes[at].container == container)
        at++;
    return at;
}

/* Entries that it has inserted are no longer only lent to it, or are so again. */
static void count_lent(const struct ss_engine *engine, const struct ss_applied *applied, bool back)
{
    for (uint64_t i = 0; i < applied->change_count; i++) {
        struct ss_keyed *keyed = &engine->keyed[applied->changes[i].container];
        /* Relaxed: a figure that only has to be right in the end. */
        if (applied->changes[i].kind < SS_REMOVED)
            atomic_fetch_add_explicit(&keyed->lent, back ? 1 : UINT64_MAX, memory_order_relaxed);
    }
}

static void publish_changes(struct ss_engine *engine, struct ss_applied *applied)
{
    uint64_t *state = engine->state;
    for (uint64_t i = 0, end; i < applied->change_count; i = end) {
        end = ss_end_of_group(applied, i);
        struct ss_keyed *keyed = &engine->keyed[applied->changes[i].container];
        uint64_t *number = &state[keyed->of.header + SS_HEADER_CHANGES];
        struct ss_given *group = &applied->given[i];
        bool same = group->changes != 0 && group->before == ss_word_read(number);
        for (uint64_t at = i; at < end; at++) {
            uint64_t entry = applied->changes[at].entry;
            if (applied->changes[at].kind != SS_INSERTED)
                continue;
            if (!same)
                applied->given[at].stamp = ++engine->stamp;
            /* Release: who sees the stamp sees the key. */
            __atomic_store_n(&state[entry + SS_STAMP_WORD], applied->given[at].stamp,
                             __ATOMIC_RELEASE);
            ss_index_enter(keyed, ss_hash_key(&state[entry + SS_KEY_WORD], keyed->of.key_words),
                           entry);
        }
        keep(applied, number);
        if (!same) {
            group->before = ss_word_read(number);
            group->changes = ++engine->stamp;
        }
        /* Release: who sees the number sees what has come and gone. */
        __atomic_store_n(number, group->changes, __ATOMIC_RELEASE);
    }
    count_lent(engine, applied, false);
}

bool ss_applied_reserve(struct ss_engine *engine, const struct ss_applied *applied)
{
    /* An item for each entry that it inserts, and for each that it writes with an earlier time. */
    return !ss_has_timers(engine) || ss_timers_reserve(engine, applied->redo_count + applied->change_count);
}

void ss_applied_publish(struct ss_engine *engine, struct ss_applied *applied)
{
    assert(ss_turn_is_held(engine)); /* invariant 1 */
    struct ss_transaction transaction = ss_applied_seen(applied);
    applied->undo_count = 0;
    for (uint64_t i = 0; i < applied->redo_count; i += ss_redo_step(&applied->redo[i])) {
        const struct ss_write *write = &applied->redo[i];
        for (uint64_t word = 0; word < ss_redo_words(write); word++)
            keep(applied, &engine->state[write->word + word]);
    }
    ss_redo_publish(engine->state, &transaction);
    publish_changes(engine, applied);
    pass_time(engine, applied);
    if (ss_has_timers(engine))
        ss_timers_note(engine, applied->undo, applied->undo + applied->undo_count, false);
}

void ss_applied_revoke(struct ss_engine *engine, struct ss_applied *applied)
{
    assert(ss_turn_is_held(engine)); /* invariant 1 */
    /* Newest first: a word written twice has its oldest value in front. */
    for (uint64_t i = applied->undo_count; i-- > 0;)
        ss_word_write(applied->undo[i].address, applied->undo[i].value);
    count_lent(engine, applied, true);
}

void ss_early_begin_back(struct ss_engine *engine)
{
    if (engine->early == NULL)
        return;
    /* Relaxed: only who has the turn writes it. Release: who meets a word that is taken back sees it. */
    atomic_fetch_add_explicit(&engine->revocations, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

void ss_early_end_back(struct ss_engine *engine)
{
    /* Release: who sees it meets none of these words. */
    if (engine->early != NULL)
        atomic_fetch_add_explicit(&engine->revocations, 1, memory_order_release);
}

void ss_applied_give_entries(struct ss_engine *engine, const struct ss_applied *applied, bool inserted)
{
    for (uint64_t i = 0, end; i < applied->change_count; i = end) {
        struct ss_keyed *keyed = &engine->keyed[applied->changes[i].container];
        struct ss_chain chain = {0, 0, 0};
        end = ss_end_of_group(applied, i);
        for (uint64_t at = i; at < end; at++) {
            uint32_t kind = applied->changes[at].kind;
            bool gone = kind == SS_INSERTED_IN_VAIN || kind == SS_REMOVED;
            if (inserted ? kind < SS_REMOVED : gone)
                ss_chain_add(engine->state, &chain, applied->changes[at].entry);
        }
        ss_entries_give(engine, keyed, &chain, inserted ? chain.count : 0);
    }
}

void ss_applied_drop(struct ss_engine *engine, struct ss_applied *applied)
{
    ss_applied_give_entries(engine, applied, true);
}

/* ---- runs that a revocation meets ---- */

bool ss_early_is_mixed(struct ss_engine *engine, const struct ss_transaction *transaction)
{
    if (engine->early == NULL || transaction->walked == 0)
        return false;
    /* Pairs with the fence in ss_early_begin_back: whoever has met a word that was taken back sees that. */
    atomic_thread_fence(memory_order_acquire);
    uint64_t now = atomic_load_explicit(&engine->revocations, memory_order_relaxed);
    return now % 2 != 0 || now + 1 != transaction->walked;
}
