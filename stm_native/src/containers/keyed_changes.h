/* What a speculative run inserts into keyed containers and removes from them, and its commit. */
#ifndef SPECSTREAM_KEYED_CHANGES_H
#define SPECSTREAM_KEYED_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/transaction.h"
#include "specstream.h"

struct ss_engine;
struct ss_keyed;
struct ss_worker;

enum ss_change_kind {
    SS_INSERTED = 0,
    SS_INSERTED_IN_VAIN = 1, /* the run has removed it again */
    SS_REMOVED = 2,
    SS_REMOVED_OWN = 3 /* what it had inserted */
};

/* An insertion or removal, in the order in which the run has done them. */
struct ss_change {
    uint32_t entry; /* its first word */
    uint32_t tag;   /* upper half of the hash of what was inserted */
    uint32_t next;  /* an insertion: the one before of its group, plus 1; 0: none */
    uint32_t container : 28;
    uint32_t kind : 4;
};

/* In the place of a stamp: of an entry that the run has inserted, and the number of its change. */
static const uint64_t ss_own_stamp = UINT64_C(1) << 63;

/* In the place of a delta: a stamp, which the head fills in. */
enum { SS_STAMP = 13 };
/* In the place of bytes in a read log of `value`: that a key is absent, whose words follow, two
 * in an entry. `word` is that of the container's header, `value` its number. */
enum { SS_ABSENT = 0x4000 };
/* With early results, likewise: that a key has its entry at `word`, whatever its stamp. */
enum { SS_PRESENT = 0x5000 };

void ss_changes_begin(struct ss_worker *worker);
/* The run's own entry of a key; SS_NOWHERE: it has inserted none. */
uint64_t ss_changes_find(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key,
                         uint64_t hash);
/* False: the log is full. */
bool ss_changes_add(struct ss_run *run, const struct ss_keyed *keyed, uint64_t entry, uint64_t hash,
                    enum ss_change_kind kind);
/* Logs, under `value`, that a key is absent. */
void ss_log_absence(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key);
/* Logs, with early results, that it has this entry. */
void ss_log_presence(struct ss_run *run, const struct ss_keyed *keyed, const uint64_t *key,
                     uint64_t entry);
/* A run is about to look at entries that it does not log, but for the number of the container's changes,
 * which may be the same again after a revocation. */
void ss_log_walk(struct ss_run *run);

/* ---- with the turn ---- */

/* Whether a key that was absent or present still is; if not, `conflict` is its entry. */
bool ss_is_still_there(const struct ss_engine *engine, const struct ss_read *read,
                       struct ss_place *conflict);
/* Whether there is room for all that a run inserts; if not, reason and perhaps the verdict say
 * why. */
bool ss_changes_fit(struct ss_engine *engine, struct ss_transaction *transaction);
/* After the redo log; the caller empties the list. */
void ss_changes_publish(struct ss_engine *engine, const struct ss_transaction *transaction);

/* Gives back what a run has taken that does not commit; idempotent. */
void ss_changes_roll_back(struct ss_engine *engine, struct ss_transaction *transaction);
size_t ss_changes_bytes(const struct ss_config *config);

#endif
