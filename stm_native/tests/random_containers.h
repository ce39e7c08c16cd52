/* What random operators do with containers, and the plain arrays that say what must come of it. */
#ifndef SPECSTREAM_TESTS_RANDOM_CONTAINERS_H
#define SPECSTREAM_TESTS_RANDOM_CONTAINERS_H

#include <stdbool.h>
#include <stdint.h>

#include "dice.h"
#include "specstream.h"
#include "specstream_containers.h"

enum { CONTAINERS = 4, MOST_KEYS = 192, MOST_ELEMENTS = 40, ROW = 4 };

/* A dict, a dict of pairs, a list and a deque, behind all other words of a state. */
struct container_shape {
    uint64_t words; /* 0: the state has none */
    uint64_t keys;  /* that there are, of either dict */
    uint64_t stride; /* from key to key */
    struct ss_container of[CONTAINERS];
};

/* Of each: rows in their order. Of a dict: the key, of two words, and two words of value. */
struct contents {
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
    bool may_raise; /* where a container is full */
    bool raised;
};

/* Draws containers that begin at word `first`. */
void container_shape_draw(struct container_shape *shape, uint64_t first, struct dice *dice);
/* A step; false: the event is left. */
bool container_step_keyed(struct container_work *work);
bool container_step_sequence(struct container_work *work);

/* With the turn, or between jobs: fails where the words are no containers, or the engine does
 * not find what is there. */
void contents_read(const struct container_shape *shape, struct ss_engine *engine,
                   const uint64_t *state, struct contents *contents);
/* At any time, but while the containers are restored: looks a key up. */
void container_look_up(const struct container_shape *shape, struct ss_engine *engine,
                       const uint64_t *state, struct dice *dice);
/* The same as contents_read, and fails where they do not hold what they ought to. */
void contents_compare(const struct container_shape *shape, struct ss_engine *engine,
                      const uint64_t *state, const struct contents *expected);
/* Between jobs: as a snapshot has them, with their entries side by side and numbered from 1. */
void contents_restore(const struct container_shape *shape, uint64_t *state,
                      const struct contents *contents);

#endif
