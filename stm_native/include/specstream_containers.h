/* Dicts, sets, lists and deques of the state: what compiled code and Python know of them.
 *
 * A container is a *header* of a few words, which lies among the other fields of the state, and a
 * *region* of words behind all fields, as large as the container may ever become. The system gives
 * memory to a region only where it is touched.
 *
 * Keyed containers (dicts, sets; src/containers/keyed.c). An entry is a stamp, the words of its key, those of its
 * value. It stays where it is until it is removed. The stamp tells insertions apart and says in which
 * order they came; 0: there is no entry here. Stamps are counted by the engine and never used twice;
 * only the head fills them in. An index from keys to entries belongs to the engine and not to the
 * state: it is made anew of the entries.
 *
 * Sequences (lists, deques; src/containers/sequence.c). Elements lie one behind the other in a ring of `capacity`
 * elements; that of a list begins at 0 and is the whole region. */
#ifndef SPECSTREAM_CONTAINERS_H
#define SPECSTREAM_CONTAINERS_H

#include <stdbool.h>
#include <stdint.h>

struct ss_engine;
struct ss_run;

/* Words of a header. */
enum {
    SS_HEADER_COUNT = 0,    /* entries, or elements */
    SS_HEADER_CHANGES = 1,  /* keyed: another number after each insertion and removal; never one twice */
    SS_HEADER_USED = 2,     /* keyed: entries from the first on that have ever been taken; no part of
                             * what the state means, never logged, and grows without the turn as well */
    SS_HEADER_START = 3,    /* deque: position of the first element in the ring */
    SS_HEADER_FIRED = 3,    /* timers, the first ones: how many have fired */
    SS_HEADER_CAPACITY = 4, /* deque: elements of the ring, a power of two; 0: none yet */
    SS_HEADER_CLOCK = 4,    /* likewise: the largest time of events and firings so far, from INT64_MIN on */
    SS_HEADER_TICK = 5,     /* entries that expire after a duration: nanoseconds from one time to the next;
                             * 0: no event has come that would say */
    SS_HEADER_WORDS = 8,
    /* Keyed: the header goes on with words that stand for the absence of keys, by their hash: what
     * ownership records protect under `eager`. Under `value` they are not used. */
    SS_ABSENCE_WORDS = 1024
};

enum { SS_MOST_KEY_WORDS = 8, SS_MOST_ENTRY_WORDS = 32 };

enum ss_container_kind { SS_KEYED = 0, SS_LIST = 1, SS_DEQUE = 2 };

struct ss_container {
    enum ss_container_kind kind;
    uint64_t header;      /* its first word in the state */
    uint64_t region;      /* likewise */
    uint64_t room;        /* entries or elements that the region has room for; keyed: more than `limit`,
                           * as speculative runs take entries that they may not use */
    uint64_t limit;       /* entries or elements at most */
    uint64_t key_words;   /* of an entry; sequences: 0 */
    uint64_t entry_words; /* keyed: 1 + key_words + those of the value; sequences: of an element */
    /* Keyed: an entry goes so long after its last write, whose time is its last word, which whoever
     * stores the value stores as well; 0: it stays. Of a container whose header has a tick, in
     * nanoseconds, else in the unit of the times. */
    int64_t expires;
    uint64_t rank; /* its place among those that hold timers, from 1; 0: it holds none */
};

/* Where the keys of neighbouring events were found before these run, by the lowest bits of the rows: the
 * first word of an entry; 0: nobody knows. */
enum { SS_AHEAD = 16, SS_MOST_AHEAD_WORDS = 4 };
struct ss_ahead {
    uint32_t entries[SS_AHEAD];
};

/* No entry. */
#define SS_NOWHERE UINT64_MAX

/* ---- what compiled code calls; `container` is an index into config.containers ----
 *
 * Under every variant: the run says whether it speculates and the engine by which protocol. What may
 * end the run says so in the verdict, and then gives SS_NOWHERE, false or 0.
 *
 * Words of entries and elements are loaded and stored like all others of the state. Keys are compared
 * by their words; the caller has seen to it that no NaN is in one. */

/* The first word of a key's entry; SS_NOWHERE: it has none, or the run ends. The run depends on just
 * that: an insertion or removal of this very key conflicts, and no other. */
uint64_t ss_keyed_find(struct ss_run *run, uint64_t container, const uint64_t *key);
/* Looks up what the events from `first` on will ask for, up to `last` or the next one whose row divides
 * by SS_AHEAD, and keeps where it was found: then it is found without the index, and without waiting for
 * memory. A hint: what has changed by then is looked up as ever. The words of the keys are in these
 * columns, one number in each 16 bits of `columns`. Not where containers are locked. */
void ss_keyed_ahead(struct ss_run *run, uint64_t container, uint64_t columns, int64_t first,
                    int64_t last);
/* A new entry for a key that has none, as ss_keyed_find has said; the caller stores all words of its
 * value. SS_NOWHERE: the run ends; `raised` of the run says SS_FULL if that is because the container
 * holds `limit` entries. */
uint64_t ss_keyed_insert(struct ss_run *run, uint64_t container, const uint64_t *key);
/* In place: the last write of an entry that expires is about to have an earlier time than the one before. */
void ss_timers_rewound(struct ss_run *run, uint64_t container, uint64_t entry);
/* Removes the entry whose first word is `entry`, which ss_keyed_find or a walk has given. */
void ss_keyed_remove(struct ss_run *run, uint64_t container, uint64_t entry);
void ss_keyed_clear(struct ss_run *run, uint64_t container);
/* Entries: the word is read, so that insertions and removals conflict. */
uint64_t ss_keyed_count(struct ss_run *run, uint64_t container);

/* All entries in the order of their insertion, those of this run last, in the run's arena: each is the
 * number of its first word. NULL: the run ends. */
struct ss_keyed_walk {
    uint64_t count;
    uint64_t changes; /* ss_keyed_changes when it was made */
    uint64_t *entries;
};
struct ss_keyed_walk *ss_keyed_entries(struct ss_run *run, uint64_t container);
/* Insertions and removals of this run in this container so far: another number after each. */
uint64_t ss_keyed_changes(struct ss_run *run, uint64_t container);
/* The words of an entry's key, which never change while it is there. */
uint64_t ss_keyed_key(struct ss_run *run, uint64_t container, uint64_t entry, uint64_t at);

/* Sequences. The first word of element `at`, which the caller has compared with the count. */
uint64_t ss_sequence_element(struct ss_run *run, uint64_t container, uint64_t at);
uint64_t ss_sequence_count(struct ss_run *run, uint64_t container);
/* Makes room for an element before position `at`, from 0 to the count; the caller stores all of its
 * words. SS_NOWHERE: as ss_keyed_insert. */
uint64_t ss_sequence_insert(struct ss_run *run, uint64_t container, uint64_t at);
/* Removes `length` elements: first, first + step ... (step > 0). */
void ss_sequence_delete(struct ss_run *run, uint64_t container, uint64_t first, uint64_t step,
                        uint64_t length);

/* Timers are a keyed container whose one value is a time. Sets the timer of a key, or sets it anew; the
 * answer is an enum ss_timer_answer. See src/jobs/timer_firing.c. */
uint64_t ss_timer_set(struct ss_run *run, uint64_t container, const uint64_t *key, int64_t at);

/* Of the row that runs when one fires, the column that says in which container of timers it was, from 0. */
enum { SS_TIMER_PLACE = 11 };

enum ss_timer_answer {
    SS_TIMER_IS_SET = 0, /* or the run ends */
    SS_TIMER_TOO_EARLY = 1, /* by a timer that fires, for a time that is not after its own */
    SS_TIMERS_FULL = 2
};

/* How `raised` says that a container is full. */
enum { SS_FULL = 1 };

/* ---- what Python calls ---- */

/* Between jobs, or with the turn: the first word of the entry of a key in the committed state, or
 * SS_NOWHERE. Without the turn as well: then the entry may be changed or removed at any moment, and the
 * caller reads its stamp before and after. */
uint64_t ss_engine_find(struct ss_engine *engine, uint64_t container, const uint64_t *key);
/* With the turn: the same in the state that the head runs on, which with early results is the applied one. */
uint64_t ss_engine_find_applied(struct ss_engine *engine, uint64_t container, const uint64_t *key);

/* Without the turn: the words of the row of a key as it is committed, behind a whole number of events,
 * into `row`; without a key (NULL) the number of entries or elements, into its first word. */
enum ss_look {
    SS_LOOK_ABSENT = 0,
    SS_LOOK_FOUND = 1,
    SS_LOOK_AGAIN = 2 /* there was no instant at which the state was whole: take the turn */
};
enum ss_look ss_engine_look(struct ss_engine *engine, uint64_t container, const uint64_t *key,
                            uint64_t *row);

/* With the turn, before and after the owner of the state changes it; who looks meanwhile is told to look
 * again. Beginning twice is beginning once. */
void ss_engine_change(struct ss_engine *engine, bool begins);

#endif
