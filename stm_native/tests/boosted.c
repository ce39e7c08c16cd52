#include "boosted.h"

#include "core/engine.h"
#include "core/state_words.h"
#include "core/worker.h"
#include "specstream.h"

enum { COUNT = 0, KEYS = 1, SLOTS = KEYS + BOOSTED_CAPACITY, NEXT = SLOTS + BOOSTED_SLOTS };

/* The place of the first key that is not less. */
static uint64_t place_of(const struct boosted_words *words, uint64_t key)
{
    uint64_t count = words->get(words->context, COUNT);
    uint64_t place = 0;
    while (place < count && words->get(words->context, KEYS + place) < key)
        place++;
    return place;
}

static bool is_at(const struct boosted_words *words, uint64_t place, uint64_t key)
{
    return place < words->get(words->context, COUNT) &&
           words->get(words->context, KEYS + place) == key;
}

static bool insert(const struct boosted_words *words, uint64_t key, uint64_t *result)
{
    void *context = words->context;
    uint64_t count = words->get(context, COUNT);
    uint64_t place = place_of(words, key);
    *result = !is_at(words, place, key);
    if (*result == 0)
        return true;
    /* Counted before it is known whether there is room: what raises is taken back. */
    words->set(context, COUNT, count + 1);
    if (count == BOOSTED_CAPACITY)
        return false;
    for (uint64_t at = count; at > place; at--)
        words->set(context, KEYS + at, words->get(context, KEYS + at - 1));
    words->set(context, KEYS + place, key);
    return true;
}

static bool take_out(const struct boosted_words *words, uint64_t key, uint64_t *result)
{
    void *context = words->context;
    uint64_t place = place_of(words, key);
    *result = is_at(words, place, key);
    if (*result == 0)
        return true;
    uint64_t count = words->get(context, COUNT) - 1;
    for (; place < count; place++)
        words->set(context, KEYS + place, words->get(context, KEYS + place + 1));
    words->set(context, KEYS + count, 0);
    words->set(context, COUNT, count);
    return true;
}

bool boosted_perform(const struct boosted_words *words, enum boosted_operation operation,
                     const uint64_t *operands, uint64_t *result)
{
    void *context = words->context;
    uint64_t slot = SLOTS + operands[0] % BOOSTED_SLOTS;
    switch (operation) {
    case BOOSTED_INSERT:
        return insert(words, operands[0], result);
    case BOOSTED_REMOVE:
        return take_out(words, operands[0], result);
    case BOOSTED_CONTAINS:
        *result = is_at(words, place_of(words, operands[0]), operands[0]);
        return true;
    case BOOSTED_EXCHANGE:
        *result = words->get(context, slot);
        words->set(context, slot, operands[1]);
        return operands[2] == 0;
    default:
        *result = words->get(context, NEXT);
        words->set(context, NEXT, *result + 1);
        return true;
    }
}

/* ---- what the runtime calls ---- */

static uint64_t get_of_run(void *context, uint64_t word)
{
    struct ss_run *run = context;
    uint64_t first = run->worker->engine->config.boosted_first;
    return ss_word_read(&run->state[first + word]);
}

static void set_of_run(void *context, uint64_t word, uint64_t value)
{
    struct ss_run *run = context;
    ss_store(run, run->worker->engine->config.boosted_first + word, value);
}

/* `reports`: a result of 0 says that nothing has changed. */
static int32_t perform(struct ss_run *run, enum boosted_operation operation, bool reports,
                       int64_t *returned)
{
    const struct boosted_words words = {run, get_of_run, set_of_run};
    uint64_t result = 0;
    bool done = boosted_perform(&words, operation, run->operands, &result);
    run->changed = !reports || result != 0;
    *returned = (int64_t)result;
    return done ? 0 : 1;
}

#define ENTRY(name, operation, reports)                                                            \
    static int32_t name(int64_t *returned, void **fault, struct ss_run *run)                       \
    {                                                                                              \
        *fault = NULL;                                                                             \
        return perform(run, operation, reports, returned);                                         \
    }

ENTRY(enter_insert, BOOSTED_INSERT, true)
ENTRY(enter_remove, BOOSTED_REMOVE, true)
ENTRY(enter_contains, BOOSTED_CONTAINS, true)
ENTRY(enter_exchange, BOOSTED_EXCHANGE, false)
ENTRY(enter_take, BOOSTED_TAKE, false)

static int32_t put_back(int64_t *returned, void **fault, struct ss_run *run)
{
    *fault = NULL;
    *returned = 0;
    set_of_run(run, SLOTS + run->operands[0] % BOOSTED_SLOTS, run->operands[SS_OPERANDS]);
    return 0;
}

/* Right where nobody has taken a number since; else it raises. */
static int32_t untake(int64_t *returned, void **fault, struct ss_run *run)
{
    *fault = NULL;
    *returned = 0;
    if (get_of_run(run, NEXT) != run->operands[SS_OPERANDS] + 1)
        return 1;
    set_of_run(run, NEXT, run->operands[SS_OPERANDS]);
    return 0;
}

struct ss_boosted boosted_entries(const struct ss_engine *engine, enum boosted_operation number)
{
    static const ss_operation_entry entries[BOOSTED_OPERATIONS][2] = {
        [BOOSTED_INSERT] = {enter_insert, enter_remove},
        [BOOSTED_REMOVE] = {enter_remove, enter_insert},
        [BOOSTED_CONTAINS] = {enter_contains, NULL},
        [BOOSTED_EXCHANGE] = {enter_exchange, put_back},
        [BOOSTED_TAKE] = {enter_take, untake},
    };
    return (struct ss_boosted){.entry = entries[number][0],
                               .inverse = entries[number][1],
                               .first = engine->config.boosted_first,
                               .words = BOOSTED_WORDS};
}

void boosted_open(struct ss_engine *engine)
{
    for (uint64_t i = 0; i < engine->config.operations; i++) {
        const struct ss_boosted operation = boosted_entries(engine, (enum boosted_operation)i);
        ss_engine_set_operation(engine, i, &operation);
    }
}
