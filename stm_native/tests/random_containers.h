/* What random operators do with containers, and the plain arrays that say what must come of it. */
#ifndef SPECSTREAM_TESTS_RANDOM_CONTAINERS_H
#define SPECSTREAM_TESTS_RANDOM_CONTAINERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dice.h"
#include "specstream.h"
#include "specstream_containers.h"

enum container { DICT, PAIRS, TIMERS, MORE_TIMERS, LIST, DEQUE, CONTAINERS };
enum { MOST_KEYS = 192, MOST_ELEMENTS = 40 };
/* Of a row: the key, the value, the time of the last write, and when it was inserted. */
enum { ROW_VALUE = 2, ROW_WRITTEN = 4, ROW_STAMP = 5, ROW = 6 };

/* A dict, a dict of pairs, timers and more of them, a list and a deque, behind all other words of a state. */
struct container_shape {
    uint64_t words; /* 0: the state has none */
    bool has_timers;
    bool goes_by_time; /* there are timers, or something expires */
    uint64_t keys;  /* that there are, of either dict */
    uint64_t stride; /* from key to key */
    struct ss_container of[CONTAINERS];
};

/* Of each: rows in their order. Of a timer the value is its time. */
struct contents {
    int64_t clock;  /* the largest time of events and firings, where there are timers */
    uint64_t fired; /* timers */
    uint64_t stamp; /* the last one */
    uint64_t ends;  /* the input has ended, and timers up to this stamp fire; 0: it has not */
    uint64_t count[CONTAINERS];
    uint64_t rows[CONTAINERS][MOST_KEYS][ROW];
};

/* An event at work. `run` is NULL in the model, `contents` everywhere else. */
struct container_work {
    struct ss_run *run;
    enum ss_variant variant;
    struct contents *contents;
    const struct container_shape *shape;
    struct dice *dice;
    uint64_t *mixed;
    uint64_t seed; /* of the event: it has keys of its own */
    int64_t now;
    uint64_t fires; /* it is a timer, of this container; 0: it is none */
    int64_t fires_at; /* for this time */
    bool may_raise; /* where a container is full */
    bool raised;
};

static inline bool is_timers(uint64_t container)
{
    return container == TIMERS || container == MORE_TIMERS;
}

/* Draws containers that begin at word `first`. */
void container_shape_draw(struct container_shape *shape, uint64_t first, struct dice *dice);
/* A step; false: the event is left. */
bool container_step_keyed(struct container_work *work);
bool container_step_sequence(struct container_work *work);
/* Sets a timer, cancels it or looks at it. */
bool container_step_timer(struct container_work *work);
/* The keys that an event has in its columns: of the dict, and both words of that of the pairs. */
void container_keys(const struct container_shape *shape, uint64_t seed, uint64_t keys[3]);

/* The next timer that fires, or entry that goes, of the sequential run. */
struct container_due {
    uint64_t container; /* of timers: it fires */
    uint64_t row;
    int64_t at;
};
/* What is due by a time; false: nothing. At the end of the input (INT64_MAX) timers fire whenever they
 * are due, and only what is over by then goes. */
bool contents_due(const struct container_shape *shape, const struct contents *contents,
                  int64_t time, struct container_due *due);
void contents_take_out(struct contents *contents, const struct container_due *due);

/* With the turn, or between jobs: fails where the words are no containers, or the engine does
 * not find what is there. */
void contents_read(const struct container_shape *shape, struct ss_engine *engine,
                   const uint64_t *state, struct contents *contents);
/* At any time, but while the containers are restored: looks a key up, and at its row; whether this
 * could show it. `unordered` is odd while a job runs that does not say when it changes the state. */
bool container_look_up(const struct container_shape *shape, struct ss_engine *engine,
                       const uint64_t *state, struct dice *dice,
                       const _Atomic uint64_t *unordered);
/* The same as contents_read, and fails where they do not hold what they ought to. */
void contents_compare(const struct container_shape *shape, struct ss_engine *engine,
                      const uint64_t *state, const struct contents *expected);
/* Between jobs: as a snapshot has them, with their entries side by side and numbered from 1. */
void contents_restore(const struct container_shape *shape, uint64_t *state,
                      struct contents *contents);

#endif
