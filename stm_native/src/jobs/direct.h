/* Execution without transactions: log-free, and under the operator's own locks. */
#ifndef SPECSTREAM_DIRECT_H
#define SPECSTREAM_DIRECT_H

#include "core/job_kind.h"

extern const struct ss_job_kind ss_log_free_job;
extern const struct ss_job_kind ss_locked_job;

#endif
