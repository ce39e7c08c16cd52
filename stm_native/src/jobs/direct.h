/* Execution without transactions: log-free, and under the operator's own locks. */
#ifndef SPECSTREAM_DIRECT_H
#define SPECSTREAM_DIRECT_H

struct ss_worker;

void ss_run_log_free(struct ss_worker *worker);
void ss_run_locked(struct ss_worker *worker);

#endif
