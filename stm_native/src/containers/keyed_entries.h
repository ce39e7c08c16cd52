/* Which entries of a keyed container are free. */
#ifndef SPECSTREAM_KEYED_ENTRIES_H
#define SPECSTREAM_KEYED_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;
struct ss_keyed;
struct ss_run;
struct ss_worker;

#define SS_WAS_THERE (UINT64_C(1) << 63)
static inline uint64_t ss_touched_container(uint64_t touched)
{
    return (touched & ~SS_WAS_THERE) >> 32;
}

/* Free entries, linked one to the next. All zeros: none. */
struct ss_chain {
    uint64_t first;
    uint64_t last;
    uint64_t count;
};

/* An entry that nobody else knows: its first word. For a speculative run; SS_NOWHERE: it has to
 * end, as speculative runs hold too many. */
uint64_t ss_entry_take(struct ss_run *run, struct ss_keyed *keyed);
/* For a run in place, of a container with less than `limit` entries: then there always is one, but to
 * an early one; SS_NOWHERE: it has to wait until earlier ones are final. It is touched. */
uint64_t ss_entry_take_in_place(struct ss_run *run, struct ss_keyed *keyed);
/* An entry whose stamp is 0 for good. */
void ss_chain_add(uint64_t *state, struct ss_chain *chain, uint64_t entry);
/* `lent`: how many of them had been lent. The chain is empty then. */
void ss_entries_give(struct ss_engine *engine, struct ss_keyed *keyed, struct ss_chain *chain,
                     uint64_t lent);

/* An event in place begins, or goes on, to work on containers: those of the one before are settled.
 * False: no memory for one more entry that is touched. */
bool ss_touch_begin(struct ss_run *run);
void ss_touch(struct ss_run *run, const struct ss_keyed *keyed, uint64_t entry, bool was_there);
/* The last event of a range in place that has worked on containers is over. `undone`: that event's
 * stores have been taken back, if it is the one at which the range has ended. */
void ss_touched_settle(struct ss_worker *worker, bool undone);
/* The same, but no entry is free: whoever has asked gives them later. */
void ss_touched_keep(struct ss_worker *worker);

/* No job runs: all entries that are not there are free. Returns how many are. */
uint64_t ss_entries_renew(struct ss_engine *engine, struct ss_keyed *keyed, uint64_t *last_stamp);

#endif
