/* An open job: from pending events to a transaction. */
#ifndef SPECSTREAM_FORMING_H
#define SPECSTREAM_FORMING_H

#include <stdint.h>

#include "core/transaction.h"

struct ss_engine;
struct ss_queue;
struct ss_transaction;

/* For counters: what the transaction at this place will find. */
void ss_queue_look_ahead(struct ss_engine *engine, uint64_t position);
/* With the mutex. An event that has failed is heard of first: with early results others run meanwhile. */
void ss_queue_fail_for_memory(struct ss_queue *queue);
/* Forms the transaction of the least pending events; NULL: out of memory. */
struct ss_transaction *ss_queue_form(struct ss_engine *engine, enum ss_status status);

#endif
