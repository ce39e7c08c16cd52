/* Early results: the head is applied. */
#ifndef SPECSTREAM_EARLY_APPLY_H
#define SPECSTREAM_EARLY_APPLY_H

struct ss_transaction;
struct ss_worker;

/* The worker runs the head when it has given the turn back: an event may take long, or never end, and
 * who wants to look meanwhile need not wait for it. With the mutex. */
void ss_early_run_next(struct ss_worker *worker, struct ss_transaction *transaction);
/* Applies the head, which has run, or has it run again. */
void ss_early_apply(struct ss_worker *worker, struct ss_transaction *transaction);
/* The head cannot run but in place, and everything before it is final. */
void ss_early_apply_in_place(struct ss_worker *worker, struct ss_transaction *transaction);

#endif
