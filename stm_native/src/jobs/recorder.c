/* Recording: how long each run of a transaction took, and what it read and wrote.
 *
 * It is for the forecast of other machines (specstream/tuning/forecast/), and for engines of one
 * thread: there every transaction runs in its turn, so that what is recorded is the sequential
 * course of the state. The buffers are the caller's; when one is full, recording ends. */
#include "jobs/recorder.h"

#include "containers/keyed.h"
#include "containers/keyed_changes.h"
#include "containers/keyed_index.h"
#include "core/engine.h"
#include "core/ranges.h"
#include "core/transaction.h"
#include "processor/now.h"
#include "protocols/counter_prediction.h"
#include "protocols/delta.h"
#include "specstream.h"
#include "specstream_containers.h"

void ss_engine_record(struct ss_engine *engine, struct ss_recorder *recorder)
{
    engine->recorder = engine->config.threads == 1 ? recorder : NULL;
}

static struct ss_record *next_record(struct ss_recorder *recorder, uint64_t entries)
{
    bool fits = recorder->entries == NULL ||
                recorder->entry_count + entries <= recorder->entry_capacity;
    if (recorder->full || recorder->record_count == recorder->record_capacity || !fits) {
        recorder->full = true;
        return NULL;
    }
    return &recorder->records[recorder->record_count++];
}

void ss_record_in_place(struct ss_engine *engine, const struct ss_transaction *transaction,
                        int64_t nanoseconds)
{
    struct ss_record *record = next_record(engine->recorder, 0);
    if (record != NULL)
        *record = (struct ss_record){
            .first = transaction->first,
            .last = transaction->last,
            .nanoseconds = nanoseconds,
        };
}

/* Reads, word by word also where a range is one entry of the log (ranges.c). Returns how many;
 * `entries` may be NULL. */
static uint64_t take_reads(const struct ss_engine *engine,
                           const struct ss_transaction *transaction, struct ss_read *entries)
{
    uint64_t count = 0;
    const struct ss_read *end = transaction->reads + transaction->read_count;
    for (const struct ss_read *read = transaction->reads; read != end; read++) {
        if (read->bytes == SS_ABSENT) {
            const struct ss_keyed *keyed = &engine->keyed[read->value];
            uint64_t hash = ss_hash_key((const uint64_t *)(read + 1), keyed->of.key_words);
            if (entries != NULL)
                entries[count] = (struct ss_read){(uint32_t)ss_absence_word(keyed, hash), 0,
                                                  read->site, 0};
            count++;
            read += ss_range_entries(keyed->of.key_words);
            continue;
        }
        if (read->bytes == SS_PREDICTION)
            continue; /* what it is compared with is no dependence on who wrote it */
        if (read->bytes != SS_RANGE) {
            if (entries != NULL)
                entries[count] = *read;
            count++;
            continue;
        }
        const uint64_t *values = (const uint64_t *)(read + 1);
        for (uint64_t i = 0; i < read->value; i++, count++)
            if (entries != NULL)
                entries[count] =
                    (struct ss_read){read->word + (uint32_t)i, 0, read->site, values[i]};
        read += ss_range_entries(read->value);
    }
    return count;
}

/* What publication stores for the changes of keyed containers beside the redo log, and which
 * keys are no longer absent, or present. */
static uint64_t take_changes(const struct ss_engine *engine,
                             const struct ss_transaction *transaction, struct ss_read *entries)
{
    const struct ss_change *end = transaction->changes + transaction->change_count;
    uint64_t count = 0;
    for (const struct ss_change *change = transaction->changes; change != end; change++) {
        const struct ss_keyed *keyed = &engine->keyed[change->container];
        uint64_t absence = ss_absence_word(keyed, (uint64_t)change->tag << 32);
        uint64_t changes = keyed->of.header + SS_HEADER_CHANGES;
        /* Any values that were not there before. */
        uint64_t value = (uint64_t)transaction->first + 1;
        if (entries != NULL) {
            entries[count] = (struct ss_read){(uint32_t)absence, 0, 0, value};
            entries[count + 1] = (struct ss_read){(uint32_t)changes, 0, 0, value | ss_own_stamp};
        }
        count += 2;
    }
    return count;
}

/* Writes; of deltas what they make of their word, as the head will; in place of a line, an entry
 * tells the kind of update that it was. May be NULL: as above. */
static uint64_t take_writes(const struct ss_engine *engine,
                            const struct ss_transaction *transaction, struct ss_read *entries)
{
    uint64_t count = 0;
    const struct ss_write *end = transaction->redo + transaction->redo_count;
    for (const struct ss_write *write = transaction->redo; write != end;
         write += ss_redo_step(write)) {
        if (write->delta == SS_STORED_RANGE) {
            const uint64_t *values = (const uint64_t *)(write + 1);
            for (uint64_t i = 0; i < write->value; i++, count++)
                if (entries != NULL)
                    entries[count] = (struct ss_read){write->word + (uint32_t)i, 0, 0, values[i]};
            continue;
        }
        uint32_t bytes = write->bytes;
        uint64_t value = write->value;
        uint16_t kind = (uint16_t)write->delta;
        if (write->is_last)
            ss_delta_chain(engine, transaction, write, &value, &bytes);
        else if (write->delta != SS_NO_DELTA && write->delta != SS_FORESEEN &&
                 write->delta != SS_STAMP)
            continue; /* the last one of its chain stands for all */
        if (entries != NULL)
            entries[count] = (struct ss_read){write->word, (uint16_t)bytes, kind, value};
        count++;
    }
    return count + take_changes(engine, transaction, entries == NULL ? NULL : entries + count);
}

void ss_record_speculative(struct ss_engine *engine, const struct ss_transaction *transaction,
                           int64_t nanoseconds)
{
    struct ss_recorder *recorder = engine->recorder;
    bool completed = transaction->verdict == SS_COMPLETED;
    bool takes = recorder->entries != NULL;
    uint64_t reads = completed ? transaction->read_count : 0;
    uint64_t writes = completed ? transaction->redo_count : 0;
    if (takes && completed) {
        reads = take_reads(engine, transaction, NULL);
        writes = take_writes(engine, transaction, NULL);
    }
    struct ss_record *record = next_record(recorder, reads + writes);
    if (record == NULL)
        return;
    *record = (struct ss_record){
        .first = transaction->first,
        .last = transaction->last,
        .nanoseconds = nanoseconds,
        .speculative = true,
        .dropped = !completed,
        .entry = recorder->entry_count,
        .reads = reads,
        .writes = writes,
        .row_words = transaction->row_words,
    };
    if (!takes || !completed)
        return;
    take_reads(engine, transaction, recorder->entries + recorder->entry_count);
    take_writes(engine, transaction, recorder->entries + recorder->entry_count + reads);
    recorder->entry_count += reads + writes;
}

int64_t ss_clock_nanoseconds(void)
{
    enum { READINGS = 1000 };
    int64_t began = ss_now();
    for (int i = 1; i < READINGS; i++)
        ss_now();
    return (ss_now() - began) / READINGS;
}

int64_t ss_sleep(int64_t nanoseconds)
{
    struct timespec time = {.tv_nsec = nanoseconds};
    nanosleep(&time, NULL);
    return ss_now();
}
