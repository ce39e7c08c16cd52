/* Runs taken down, for the forecast of more cores; with a recorder only. */
#ifndef SPECSTREAM_RECORDER_H
#define SPECSTREAM_RECORDER_H

#include <stdint.h>

struct ss_engine;
struct ss_transaction;

void ss_record_in_place(struct ss_engine *engine, const struct ss_transaction *transaction,
                        int64_t nanoseconds);
void ss_record_speculative(struct ss_engine *engine, const struct ss_transaction *transaction,
                           int64_t nanoseconds);

#endif
