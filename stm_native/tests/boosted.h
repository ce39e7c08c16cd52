/* A boosted structure for the stress test: a sorted set of keys, and slots that keep a value.
 *
 * Its operations are written twice: as those that the runtime calls, on a shadow or the state, and as
 * what an event does, in the model and where there is no speculation. Both share the code that works
 * on the words, given how to read and write one. */
#ifndef SPECSTREAM_TESTS_BOOSTED_H
#define SPECSTREAM_TESTS_BOOSTED_H

#include "specstream.h"

enum boosted_operation {
    BOOSTED_INSERT,   /* of a key; raises where the set is full */
    BOOSTED_REMOVE,   /* of a key */
    BOOSTED_CONTAINS, /* whether the key is there; changes nothing */
    /* A slot's value for another one; its inverse needs what it returned. Raises halfway where the
     * third operand is not 0. */
    BOOSTED_EXCHANGE,
    BOOSTED_TAKE,     /* the next number: said to commute, and does not */
    BOOSTED_OPERATIONS
};

enum { BOOSTED_CAPACITY = 24, BOOSTED_KEYS = 24, BOOSTED_SLOTS = 6 };
/* The count, the keys in order, the slots, the next number. */
enum { BOOSTED_WORDS = 1 + BOOSTED_CAPACITY + BOOSTED_SLOTS + 1 };

/* How the words of the structure are read and written, from 0 on. */
struct boosted_words {
    void *context;
    uint64_t (*get)(void *context, uint64_t word);
    void (*set)(void *context, uint64_t word, uint64_t value);
};

/* False: it raises, perhaps in the middle of its work. */
bool boosted_perform(const struct boosted_words *words, enum boosted_operation operation,
                     const uint64_t *operands, uint64_t *result);

/* Says what they are to an engine whose config has them. */
void boosted_open(struct ss_engine *engine);
struct ss_boosted boosted_entries(const struct ss_engine *engine, enum boosted_operation number);

#endif
