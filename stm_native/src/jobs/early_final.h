/* Early results: what becomes final, and what is told. */
#ifndef SPECSTREAM_EARLY_FINAL_H
#define SPECSTREAM_EARLY_FINAL_H

#include <stdbool.h>
#include <stdint.h>

struct ss_applied;
struct ss_engine;
struct ss_firing;
struct ss_span;
struct ss_undo;
struct ss_worker;

/* ---- with the turn ---- */

/* Writes its words into the owner's, and its rows to the output; false: out of memory, and nothing is
 * done. */
bool ss_applied_finish(struct ss_worker *worker, struct ss_applied *applied);
/* An event of these spans ran in place, or a timer, with nothing applied before it: its stores, and its
 * rows from `first` on. */
void ss_early_copy(struct ss_worker *worker, const struct ss_undo *end, uint64_t first,
                   const struct ss_span *spans, const struct ss_firing *firing);
void ss_early_copy_words(struct ss_engine *engine, const struct ss_undo *first,
                         const struct ss_undo *end);

/* Rows that somebody knows are no longer there. */
void ss_early_void(struct ss_engine *engine, const struct ss_applied *applied);

#endif
