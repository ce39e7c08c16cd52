/* Recording: how long each run of a transaction took, and what it read and wrote.
 *
 * It is for a model of the scheduler on other machines (specstream/model/), and for engines of one
 * thread: there every transaction runs in its turn, so that what is recorded is the sequential
 * course of the state. The buffers are the caller's; when one is full, recording ends. */
#include "internal.h"

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

void ss_record_speculative(struct ss_engine *engine, const struct ss_transaction *transaction,
                           int64_t nanoseconds)
{
    struct ss_recorder *recorder = engine->recorder;
    bool completed = transaction->verdict == SS_COMPLETED;
    uint64_t reads = completed ? transaction->read_count : 0;
    uint64_t writes = completed ? transaction->redo_count : 0;
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
    if (recorder->entries == NULL)
        return;
    for (uint64_t i = 0; i < reads; i++)
        recorder->entries[recorder->entry_count++] = transaction->reads[i];
    for (uint64_t i = 0; i < writes; i++) {
        const struct ss_write *write = &transaction->redo[i];
        recorder->entries[recorder->entry_count++] =
            (struct ss_read){write->word, write->bytes, write->value};
    }
}

int64_t ss_clock_nanoseconds(void)
{
    enum { READINGS = 1000 };
    int64_t began = ss_now();
    for (int i = 1; i < READINGS; i++)
        ss_now();
    return (ss_now() - began) / READINGS;
}
