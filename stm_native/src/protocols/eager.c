/* Protocol `eager`: conflicts are found at the access (Brito 2010, 2.2 and 4.2).
 *
 * Its parts are those of the dissertation: the records that say who has locked a word
 * (ownership_records.c), the clock and the interval over which all that was read is current
 * (validity_interval.c), stolen locks (forced_abort.c), dropped runs that wait for the one that they
 * lost to (retry_queue.c). Here is what is made of them: loads, stores, and the commit.
 *
 * Order. Of two transactions that want one record, the earlier one has it (Table 4.1, in eager.h). Reads are
 * not visible, and memory keeps the committed value until the commit, so an earlier transaction
 * reads below a later one's lock (cases 3 and 4), a later one that finds an earlier one's lock
 * aborts (5 and 7), one that has read before an earlier one writes fails its validation (6), and
 * an earlier writer takes the lock over, with the version, and dooms the later owner (8), which sees
 * it at its next load, store, or at its commit. The head is the earliest of all: it finds no lock
 * that it may not take and nobody commits beside it, so nobody delays or aborts it.
 *
 * In-place runs. A chunk that can make no progress as a transaction (it raised, passed a limit or
 * was killed) is run plain by the holder of the turn, event by event, and its stores go past the
 * records. After each event the records of all words in the undo log get a new version, and only
 * then the clock moves; a lock found there is stolen. Until then others may read the new values
 * under the old version. Such a read does no harm: it is in the read log with the old version, and
 * nothing commits before the record has the new one, because the turn is taken. The same holds for
 * an event that is undone: its words are back, but who has read them in between must fail.
 *
 * Deltas (delta.c) lock nothing before they are published, so that two transactions that only update
 * a word never meet. Publication treats their words like those of an event that ran in place. */
#include "protocols/eager.h"

#include <assert.h>
#include <stdatomic.h>

#include "containers/keyed.h"
#include "containers/keyed_changes.h"
#include "core/engine.h"
#include "core/narrow.h"
#include "core/protocol.h"
#include "core/ranges.h"
#include "core/redo_index.h"
#include "core/redo_log.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/worker.h"
#include "processor/processor.h"
#include "protocols/counter_prediction.h"
#include "protocols/delta.h"
#include "protocols/forced_abort.h"
#include "protocols/ownership_records.h"
#include "protocols/validity_interval.h"
#include "specstream.h"
#include "specstream_containers.h"

/* ---- load and store ---- */

/* Words of one record, from the state, with one entry of the log; the verdict says whether the run may
 * go on. A record stands for whole words, so neighbours in one conflict; which bytes were meant is for
 * the profile. */
static void read_words(struct ss_run *run, uint64_t word, uint32_t bytes, uint64_t count,
                       uint64_t *values)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_transaction *transaction = run->worker->transaction;
    uint64_t record = ss_record_of(engine, word);
    uint64_t content, version;
    do {
        content = ss_read_record(engine, record);
        version = content >> 1;
        if (ss_is_locked(content)) {
            if (ss_relation_to(engine, transaction, content) == SS_EARLIER) { /* case 5 */
                transaction->conflict =
                    (struct ss_place){(uint32_t)word, (uint16_t)bytes, run->site};
                ss_eager_abort(run, SS_ABORT_LOCKED,
                          ss_number_of_owner(engine, transaction->number, content));
                return;
            }
            version = ss_version_below(engine, content); /* case 4, or a neighbour of an own word */
        }
        for (uint64_t i = 0; i < count; i++)
            values[i] = ss_word_read(&run->state[word + i]);
        /* Each repetition is another one's progress. */
    } while (SS_UNLIKELY(!ss_is_still(engine, record, content)));

    if (SS_UNLIKELY(run->read_top == run->read_end)) {
        run->verdict = SS_LOG_FULL;
        return;
    }
    *run->read_top++ = (struct ss_read){(uint32_t)word, (uint16_t)bytes, run->site, version};
    if (version > transaction->valid_to)
        ss_extend_interval(run, version);
}

static inline uint64_t read_word(struct ss_run *run, uint64_t word, uint32_t bytes)
{
    uint64_t value = 0;
    read_words(run, word, bytes, 1, &value);
    return value;
}

static bool lock_record(struct ss_run *run, struct ss_place place);

static inline struct ss_place place_of_unit(const struct ss_run *run, struct ss_unit unit)
{
    return (struct ss_place){(uint32_t)unit.word, (uint16_t)unit.bytes, run->site};
}

/* For deltas that are settled: their word is read, and from now on stored to. */
static uint64_t read_and_lock(struct ss_run *run, struct ss_unit unit)
{
    uint64_t value = read_word(run, unit.word, unit.bytes);
    if (run->verdict == SS_COMPLETED)
        lock_record(run, place_of_unit(run, unit));
    return value;
}

/* A range (ranges.c) is as many entries of the log as it has records. */
const uint64_t *ss_eager_load_range(struct ss_run *run, uint64_t word, uint64_t count)
{
    struct ss_engine *engine = run->worker->engine;
    assert(word + count <= engine->config.state_words); /* invariant 5 */
    if (ss_leave_if_doomed(run))
        return NULL;
    if (ss_range_is_own(run, word, count))
        return ss_range_by_words(run, word, count);
    uint64_t *values = ss_buffer(run, count);
    if (values == NULL)
        return NULL;
    for (uint64_t i = 0, next; i < count; i = next) {
        uint64_t record = ss_record_of(engine, word + i);
        next = i + 1;
        while (next < count && ss_record_of(engine, word + next) == record)
            next++;
        read_words(run, word + i, 0, next - i, values + i);
        if (run->verdict != SS_COMPLETED)
            return NULL;
    }
    return values;
}

uint64_t ss_eager_load(struct ss_run *run, uint64_t word)
{
    assert(word < run->worker->engine->config.state_words); /* invariant 5 */
    if (ss_leave_if_doomed(run))
        return 0;
    struct ss_slot *slot = ss_redo_find(run, word);
    if (slot->key == (run->epoch_key | word))
        return *ss_slot_value(run, slot);
    if (slot->key == (run->epoch_key | SS_PENDING | word)) {
        const struct ss_write *settled =
            ss_delta_find(run, slot, ss_unit_at(8 * word, 8), read_and_lock);
        return settled != NULL ? settled->value : 0;
    }
    return read_word(run, word, 0);
}

uint64_t ss_eager_load_bytes(struct ss_run *run, uint64_t byte, uint64_t size)
{
    struct ss_unit unit = ss_unit_at(byte, size);
    assert(unit.word < run->worker->engine->config.state_words); /* invariant 5 */
    if (ss_leave_if_doomed(run))
        return 0;
    const struct ss_write *own = ss_redo_find_unit(run, unit, read_and_lock);
    return ss_extract(own != NULL ? own->value : read_word(run, unit.word, unit.bytes),
                      unit);
}

/* Locks the record of a word; false: the run ends. */
static bool lock_record(struct ss_run *run, struct ss_place place)
{
    struct ss_engine *engine = run->worker->engine;
    struct ss_transaction *transaction = run->worker->transaction;
    uint64_t record = ss_record_of(engine, place.word);
    uint64_t content = ss_read_record(engine, record);
    for (;;) {
        uint64_t version = content >> 1;
        enum ss_relation owner = SS_SELF;
        if (ss_is_locked(content)) {
            owner = ss_relation_to(engine, transaction, content);
            if (owner == SS_SELF)
                return true;
            if (owner == SS_EARLIER) { /* case 7 */
                transaction->conflict = place;
                ss_eager_abort(run, SS_ABORT_LOCKED,
                          ss_number_of_owner(engine, transaction->number, content));
                return false;
            }
            version = ss_version_below(engine, content); /* case 8 */
        }
        if (SS_UNLIKELY(transaction->owned_count == engine->owned_limit)) {
            run->verdict = SS_LOG_FULL;
            return false;
        }
        struct ss_owned *entry = &transaction->owned[transaction->owned_count];
        entry->record = (uint32_t)record;
        entry->site = place.site;
        /* Relaxed: the exchange below releases it. */
        atomic_store_explicit(&entry->version, version, memory_order_relaxed);
        uint64_t mine = ss_reference(engine, transaction, transaction->owned_count);
        /* Release: who follows the reference finds the entry filled in. Acquire on failure: the next
         * turn follows another one's reference. */
        if (atomic_compare_exchange_strong_explicit(&engine->records[record], &content, mine,
                                                    memory_order_acq_rel, memory_order_acquire)) {
            transaction->owned_count++;
            /* After the exchange, so that only who really lost a lock is doomed. It cannot commit
             * in between: we are earlier, and have not committed. */
            if (owner == SS_LATER)
                ss_doom(engine, content, transaction->number);
            return true;
        }
    }
}

/* The first store to a word: locks its record and appends to the redo log. */
static void write_word(struct ss_run *run, struct ss_slot *slot, struct ss_write write)
{
    if (SS_UNLIKELY(run->redo_count == run->redo_limit)) {
        run->verdict = SS_LOG_FULL;
        return;
    }
    /* A version beyond the interval needs no extension here: a store reads nothing, and an own
     * earlier read of the record is compared with this version when the reads are validated. */
    struct ss_place place = {write.word, (uint16_t)write.bytes, run->site};
    if (lock_record(run, place))
        ss_redo_append(run, slot, write);
}

/* A store to a word whose deltas are pending; true: it is done, or the run ends. */
static bool store_beside_deltas(struct ss_run *run, struct ss_slot *slot, struct ss_unit unit,
                                uint64_t value)
{
    if (slot->key != (run->epoch_key | SS_PENDING | unit.word))
        return false;
    return !lock_record(run, place_of_unit(run, unit)) ||
           ss_delta_store(run, slot, unit, value, read_and_lock) || run->verdict != SS_COMPLETED;
}

void ss_eager_store(struct ss_run *run, uint64_t word, uint64_t value)
{
    assert(word < run->worker->engine->config.state_words); /* invariant 5 */
    if (ss_leave_if_doomed(run))
        return;
    struct ss_unit whole = ss_unit_at(8 * word, 8);
    struct ss_slot *slot = ss_redo_find(run, word);
    if (store_beside_deltas(run, slot, whole, value))
        return;
    if (slot->key == (run->epoch_key | word))
        *ss_slot_value(run, slot) = value;
    else
        write_word(run, slot, ss_store_entry(whole, value));
}

/* The records are locked one by one; the entry of the redo log is the same as under `value`. */
uint64_t *ss_eager_store_range(struct ss_run *run, uint64_t word, uint64_t count)
{
    assert(word + count <= run->worker->engine->config.state_words); /* invariant 5 */
    if (ss_leave_if_doomed(run))
        return NULL;
    uint64_t locked = UINT64_MAX;
    for (uint64_t i = word; i < word + count; i++) {
        uint64_t record = ss_record_of(run->worker->engine, i);
        if (record != locked && !lock_record(run, (struct ss_place){(uint32_t)i, 0, run->site}))
            return NULL;
        locked = record;
    }
    return ss_store_range(run, word, count);
}

void ss_eager_store_bytes(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t value)
{
    struct ss_unit unit = ss_unit_at(byte, size);
    assert(unit.word < run->worker->engine->config.state_words); /* invariant 5 */
    if (ss_leave_if_doomed(run))
        return;
    struct ss_slot *slot = ss_redo_find(run, unit.word);
    if (store_beside_deltas(run, slot, unit, value))
        return;
    if (slot->key == (run->epoch_key | unit.word))
        ss_redo_merge(run, slot, unit, value);
    else
        write_word(run, slot, ss_store_entry(unit, value));
}

void ss_eager_delta(struct ss_run *run, uint64_t byte, uint64_t size, uint64_t delta,
                    uint64_t operand)
{
    struct ss_unit unit = ss_unit_at(byte, size);
    assert(unit.word < run->worker->engine->config.state_words); /* invariant 5 */
    if (!ss_leave_if_doomed(run))
        ss_delta_log(run, unit, (uint32_t)delta, operand);
}

uint64_t ss_eager_increment(struct ss_run *run, uint64_t word)
{
    assert(word < run->worker->engine->config.state_words); /* invariant 5 */
    if (ss_leave_if_doomed(run))
        return 0;
    return ss_predict_increment(run, word, read_and_lock);
}

/* ---- begin, end ---- */

static void begin(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_engine *engine = worker->engine;
    struct ss_run *run = &worker->run;
    assert(transaction->owned_count == 0);
    ss_redo_begin(worker, transaction);
    run->read_top = transaction->reads;
    run->read_end = transaction->reads + engine->config.read_limit;
    /* Pairs with the fence in ss_is_still: the records were given back before an entry is written anew,
     * also in the eyes of who still reads the old ones. */
    atomic_thread_fence(memory_order_release);
    transaction->incarnation = (transaction->incarnation + 1) & ss_incarnation_mask;
    /* Relaxed: who could doom this run has its reference, and with that this store. */
    atomic_store_explicit(&transaction->doom, transaction->incarnation << 32, memory_order_relaxed);
    /* Relaxed: this thread reads it, or who sees the status that it is released with. Acquire:
     * who begins as the head sees what the one before has left. */
    atomic_store_explicit(&transaction->waits_for, -1, memory_order_relaxed);
    if (!ss_goes_by_key(engine))
        transaction->began_as_head = atomic_load_explicit(&engine->next_commit,
                                                          memory_order_acquire) ==
                                     transaction->number;
    /* Acquire: as in ss_extend_interval. */
    transaction->valid_from = transaction->valid_to =
        atomic_load_explicit(&engine->clock, memory_order_acquire);
}

/* What a transaction has stored to under one of its records; the first, if there is more. */
static struct ss_place place_below(const struct ss_engine *engine,
                                   const struct ss_transaction *transaction,
                                   const struct ss_owned *entry)
{
    struct ss_place place = {0, 0, entry->site};
    const struct ss_write *end = transaction->redo + transaction->redo_count;
    for (const struct ss_write *write = transaction->redo; write != end;
         write += ss_redo_step(write)) {
        /* Deltas and predictions lock nothing. */
        if (write->delta != SS_NO_DELTA && write->delta != SS_STORED_RANGE &&
            write->delta != SS_STAMP)
            continue;
        for (uint64_t i = 0; i < ss_redo_words(write); i++) {
            if (ss_record_of(engine, write->word + i) != entry->record)
                continue;
            place.word = write->word + (uint32_t)i;
            place.bytes = (uint16_t)write->bytes;
            return place;
        }
    }
    return place;
}

static void roll_back(struct ss_engine *engine, struct ss_transaction *transaction)
{
    const struct ss_owned *lost = NULL;
    for (uint64_t i = 0; i < transaction->owned_count; i++) {
        struct ss_owned *entry = &transaction->owned[i];
        uint64_t mine = ss_reference(engine, transaction, i);
        uint64_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);
        /* It fails where an earlier transaction has taken the lock over: the version went with it.
         * Release: a plain version stands for words, and it was acquired with those. */
        bool kept =
            atomic_compare_exchange_strong_explicit(&engine->records[entry->record], &mine,
                                                    ss_unlocked(version), memory_order_release,
                                                    memory_order_relaxed);
        if (!kept && lost == NULL)
            lost = entry;
    }
    /* One place is named, so one is searched for: an earlier transaction may have taken them all. */
    if (lost != NULL && transaction->reason == SS_ABORT_STOLEN)
        transaction->conflict = place_below(engine, transaction, lost);
    transaction->owned_count = 0;
    transaction->redo_count = 0;
    ss_changes_roll_back(engine, transaction);
}

static void finish(struct ss_worker *worker, struct ss_transaction *transaction)
{
    struct ss_run *run = &worker->run;
    if (run->verdict == SS_COMPLETED)
        ss_leave_if_doomed(run);
    transaction->read_count = (uint64_t)(run->read_top - transaction->reads);
    transaction->redo_count = run->redo_count;
    transaction->delta_count = run->delta_count;
    if (run->verdict != SS_COMPLETED)
        roll_back(worker->engine, transaction);
}

/* ---- the head ---- */

/* If one does not, it is the conflict. */
static bool predictions_hold(const struct ss_engine *engine, struct ss_transaction *transaction)
{
    const struct ss_read *end = transaction->reads + transaction->read_count;
    for (const struct ss_read *read = transaction->reads; read != end; read++)
        if (read->bytes == SS_PREDICTION &&
            ss_word_read(&engine->state[read->word]) != read->value) {
            transaction->conflict = ss_place_of(read);
            return false;
        }
    return true;
}

static bool validate(const struct ss_engine *engine, struct ss_transaction *transaction)
{
    int64_t thief;
    transaction->reason = SS_ABORT_STOLEN;
    if (ss_is_doomed(transaction, transaction->number, &thief))
        return false;
    transaction->reason = SS_ABORT_CONFLICT;
    if (transaction->delta_count != 0 && !predictions_hold(engine, transaction))
        return false;
    /* Relaxed: only holders of the turn move the clock. Nothing has committed since the end of the
     * interval: nothing can have changed. */
    return atomic_load_explicit(&engine->clock, memory_order_relaxed) == transaction->valid_to ||
           ss_reads_hold(engine, transaction, transaction->reads + transaction->read_count);
}

/* Gives a record the version of a commit that is not over yet; who has locked it loses it. Before the
 * clock moves to that version: see ss_extend_interval. */
static void mark_record(struct ss_engine *engine, uint64_t record, uint64_t version, int64_t number)
{
    uint64_t content = ss_read_record(engine, record);
    /* Release: who sees the version sees the words. Acquire on failure: as in lock_record. */
    while (!atomic_compare_exchange_weak_explicit(&engine->records[record], &content,
                                                  ss_unlocked(version), memory_order_acq_rel,
                                                  memory_order_acquire))
        continue;
    if (ss_is_locked(content))
        ss_doom(engine, content, number);
}

/* A word that was changed beside the locks, unless the transaction holds its record itself. */
static void mark_word(struct ss_engine *engine, const struct ss_transaction *transaction,
                      uint64_t word, uint64_t version)
{
    uint64_t record = ss_record_of(engine, word);
    uint64_t content = ss_read_record(engine, record);
    if (!ss_is_locked(content) || ss_owner_of(engine, content) != transaction)
        mark_record(engine, record, version, transaction->number);
}

/* What deltas have changed, and the numbers of the containers' changes. */
static void mark_deltas(struct ss_engine *engine, const struct ss_transaction *transaction,
                        uint64_t version)
{
    const struct ss_write *end = transaction->redo + transaction->redo_count;
    for (const struct ss_write *write = transaction->redo; write != end;
         write += ss_redo_step(write)) {
        if (write->delta != SS_NO_DELTA && write->delta != SS_SETTLED)
            mark_word(engine, transaction, write->word, version);
    }
    for (uint64_t i = 0; i < transaction->change_count; i++) {
        const struct ss_keyed *keyed = &engine->keyed[transaction->changes[i].container];
        mark_word(engine, transaction, keyed->of.header + SS_HEADER_CHANGES, version);
    }
}

static void publish(struct ss_engine *engine, struct ss_transaction *transaction)
{
    assert(ss_reads_hold(engine, transaction, transaction->reads + transaction->read_count));
    if (transaction->owned_count == 0 && transaction->delta_count == 0)
        return;
    /* Relaxed: only holders of the turn move the clock. */
    uint64_t now = atomic_load_explicit(&engine->clock, memory_order_relaxed) + 1;
    if (SS_UNLIKELY(transaction->delta_count != 0)) {
        ss_redo_publish(engine->state, transaction);
        ss_changes_publish(engine, transaction);
        mark_deltas(engine, transaction, now);
        transaction->change_count = 0;
    }
    /* Release, and before the records: who begins at this tick must see our locks, or it could read
     * an old word under its old version and find its interval up to date when it commits. */
    atomic_store_explicit(&engine->clock, now, memory_order_release);
    if (transaction->delta_count == 0)
        ss_redo_publish(engine->state, transaction);
    for (uint64_t i = 0; i < transaction->owned_count; i++) {
        _Atomic uint64_t *record = &engine->records[transaction->owned[i].record];
        assert(atomic_load_explicit(record, memory_order_relaxed) ==
               ss_reference(engine, transaction, i)); /* nobody is earlier than the head */
        /* Release: who sees the version sees the words. */
        atomic_store_explicit(record, ss_unlocked(now), memory_order_release);
    }
    transaction->owned_count = 0;
}

static void invalidate_readers(struct ss_worker *worker, int64_t number, const struct ss_undo *end)
{
    struct ss_engine *engine = worker->engine;
    assert(ss_turn_is_held(engine));
    if (end == worker->run.undo_base)
        return;
    /* Relaxed: only holders of the turn move the clock. */
    uint64_t now = atomic_load_explicit(&engine->clock, memory_order_relaxed) + 1;
    for (const struct ss_undo *undo = worker->run.undo_base; undo != end; undo++) {
        uint64_t record = ss_record_of(engine, (uint64_t)(undo->address - engine->state));
        mark_record(engine, record, now, number);
    }
    /* Release, and after the records: who sees the tick sees all of them marked. */
    atomic_store_explicit(&engine->clock, now, memory_order_release);
}

const struct ss_protocol ss_protocol_eager = {
    .variant = SS_EAGER,
    .head_speculates = true,
    .begin = begin,
    .load = ss_eager_load,
    .store = ss_eager_store,
    .finish = finish,
    .validate = validate,
    .publish = publish,
    .roll_back = roll_back,
    .invalidate_readers = invalidate_readers,
};
