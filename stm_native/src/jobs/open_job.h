/* Open jobs: events come while they run, in any order. */
#ifndef SPECSTREAM_OPEN_JOB_H
#define SPECSTREAM_OPEN_JOB_H

#include "core/job_kind.h"

extern const struct ss_job_kind ss_open_job;

#endif
