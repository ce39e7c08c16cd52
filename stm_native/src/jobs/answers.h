/* What compiled code does not know, and somebody outside does. */
#ifndef SPECSTREAM_ANSWERS_H
#define SPECSTREAM_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;
struct ss_firing;
struct ss_worker;

/* With the turn, and the event (or what a timer runs) that has ended the worker's run rolled back: whether
 * it had asked, and there are answers now. It is then run again, and ss_forget_answers follows. */
bool ss_find_answers(struct ss_worker *worker, int64_t row, const struct ss_firing *firing);
void ss_forget_answers(struct ss_engine *engine);

#endif
