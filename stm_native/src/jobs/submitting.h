/* An open job, seen from outside. */
#ifndef SPECSTREAM_SUBMITTING_H
#define SPECSTREAM_SUBMITTING_H

struct ss_engine;
struct ss_worker;

/* A hook has failed: nothing commits until somebody has heard of it. */
void ss_queue_fail(struct ss_engine *engine);
/* On_post_commit has been told of a committed event of the worker's segment. */
void ss_queue_told(struct ss_worker *worker);

#endif
