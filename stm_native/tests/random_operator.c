#include "random_operator.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boosted.h"
#include "core/engine.h"
#include "core/narrow.h"
#include "core/state_words.h"
#include "core/worker.h"
#include "entries.h"
#include "local/arena.h"
#include "protocols/counter_prediction.h"
#include "protocols/delta.h"
#include "protocols/locks.h"
#include "specstream.h"

struct sightings sightings;

enum { LONGEST_RANGE = 70 };

/* One event under way. `run` is NULL in the model, `model` everywhere else. */
struct execution {
    enum ss_variant variant;
    bool interpreted; /* accesses are those of an interpreter */
    struct ss_run *run;
    struct model *model;
    const struct shape *shape;
    uint64_t *scratch;
    int64_t row; /* of the event; of a timer it is the runtime that numbers what it emits */
    uint64_t seed;
    int64_t now;
    uint64_t fires; /* a timer, of this container; 0: it is none */
    int64_t fires_at;
    enum temper temper;
    struct dice dice;
    uint64_t mixed; /* of everything read: a wrong value anywhere shows in later stores and rows */
    uint64_t range[LONGEST_RANGE];
};

static void see(_Atomic uint64_t *count)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static void out_of_memory(void)
{
    static const char message[] = "stress: out of memory\n";
    fputs(message, stderr);
    abort();
}

/* Everything below returns false when the event has to be left at once. */

static bool raise_error(struct execution *execution)
{
    if (execution->model != NULL)
        execution->model->raised = true;
    else
        execution->run->verdict = SS_RAISED;
    return false;
}

/* What compiled code does at the back-edge of a loop. */
static bool poll_kill(struct execution *execution)
{
    if (execution->model != NULL)
        return true;
    return __atomic_load_n(&execution->run->kill, __ATOMIC_RELAXED) == 0 ||
           !ss_poll(execution->run);
}

static bool load(struct execution *execution, uint64_t word, uint64_t *value)
{
    if (execution->model != NULL) {
        *value = execution->model->state[word];
    } else if (execution->interpreted) {
        *value = ss_interpreted_load(execution->run, 8 * word, 8);
        if (execution->run->verdict != SS_COMPLETED)
            return false;
    } else if (execution->variant == SS_EAGER) {
        *value = ss_eager_load(execution->run, word);
        if (execution->run->verdict != SS_COMPLETED)
            return false;
    } else if (execution->variant == SS_PLAIN || execution->variant == SS_TRANSACTIONAL) {
        *value = ss_load(execution->run, word);
        if (execution->run->verdict != SS_COMPLETED)
            return false;
    } else {
        *value = execution->run->state[word];
    }
    execution->mixed = mix(execution->mixed ^ *value) + word;
    return true;
}

static bool store(struct execution *execution, uint64_t word, uint64_t value)
{
    struct model *model = execution->model;
    if (model != NULL) {
        if (model->journal_count == model->journal_capacity) {
            model->journal_capacity = 2 * model->journal_capacity + 64;
            model->journal =
                realloc(model->journal, model->journal_capacity * sizeof *model->journal);
            if (model->journal == NULL)
                out_of_memory();
        }
        model->journal[model->journal_count].word = word;
        model->journal[model->journal_count++].value = model->state[word];
        model->state[word] = value;
        return true;
    }
    if (execution->interpreted) {
        ss_interpreted_store(execution->run, 8 * word, 8, value);
        return execution->run->verdict == SS_COMPLETED;
    }
    if (execution->variant == SS_EAGER) {
        ss_eager_store(execution->run, word, value);
        return execution->run->verdict == SS_COMPLETED;
    }
    if (execution->variant == SS_PLAIN || execution->variant == SS_TRANSACTIONAL) {
        const struct ss_undo *before = execution->run->undo_end;
        ss_store(execution->run, word, value);
        if (execution->run->undo_end != before)
            see(&sightings.undo_grown);
        return execution->run->verdict == SS_COMPLETED;
    }
    execution->run->state[word] = value;
    return true;
}

/* An element: `size` bytes of a word, from its byte `first` on. */
struct element {
    uint64_t word;
    uint64_t first;
    uint64_t size;
};

static bool load_element(struct execution *execution, struct element element, uint64_t *value)
{
    uint64_t byte = 8 * element.word + element.first;
    if (execution->interpreted) {
        *value = ss_interpreted_load(execution->run, byte, element.size);
        if (execution->run->verdict != SS_COMPLETED)
            return false;
    } else if (execution->model != NULL || execution->variant == SS_LOG_FREE ||
               execution->variant == SS_LOCKED) {
        uint64_t *state =
            execution->model != NULL ? execution->model->state : execution->run->state;
        *value = 0;
        memcpy(value, (unsigned char *)state + byte, element.size);
    } else {
        *value = execution->variant == SS_EAGER
                     ? ss_eager_load_bytes(execution->run, byte, element.size)
                     : ss_load_bytes(execution->run, byte, element.size);
        if (execution->run->verdict != SS_COMPLETED)
            return false;
    }
    execution->mixed = mix(execution->mixed ^ *value) + byte;
    return true;
}

static bool store_element(struct execution *execution, struct element element, uint64_t value)
{
    uint64_t byte = 8 * element.word + element.first;
    struct model *model = execution->model;
    if (model != NULL) {
        uint64_t word = model->state[element.word];
        memcpy((unsigned char *)&word + element.first, &value, element.size);
        return store(execution, element.word, word);
    }
    struct ss_run *run = execution->run;
    bool is_direct = execution->variant == SS_LOG_FREE || execution->variant == SS_LOCKED;
    if (is_direct && !execution->interpreted) {
        memcpy((unsigned char *)run->state + byte, &value, element.size);
        return true;
    }
    value &= (UINT64_C(1) << 8 * element.size) - 1;
    if (execution->interpreted)
        ss_interpreted_store(run, byte, element.size, value);
    else if (execution->variant == SS_EAGER)
        ss_eager_store_bytes(run, byte, element.size, value);
    else
        ss_store_bytes(run, byte, element.size, value);
    return run->verdict == SS_COMPLETED;
}

/* A commutative update; the model does at once what the head does later. */
static bool update(struct execution *execution, struct element element, uint64_t delta,
                   uint64_t operand)
{
    uint64_t byte = 8 * element.word + element.first;
    struct ss_run *run = execution->run;
    if (execution->model == NULL && execution->variant == SS_EAGER) {
        ss_eager_delta(run, byte, element.size, delta, operand);
        return run->verdict == SS_COMPLETED;
    }
    if (execution->model == NULL &&
        (execution->variant == SS_PLAIN || execution->variant == SS_TRANSACTIONAL)) {
        ss_delta(run, byte, element.size, delta, operand);
        return run->verdict == SS_COMPLETED;
    }
    uint64_t *state = execution->model != NULL ? execution->model->state : run->state;
    uint64_t word = state[element.word];
    struct ss_unit unit = ss_unit_at(byte, element.size);
    struct ss_write write = {
        .word = (uint32_t)unit.word, .bytes = unit.bytes, .delta = delta & 15, .value = operand};
    if (!ss_delta_apply(&write, &word))
        return raise_error(execution);
    return store(execution, element.word, word);
}

static bool count(struct execution *execution)
{
    struct ss_run *run = execution->run;
    uint64_t words = execution->shape->free_words;
    /* More words than are predicted. */
    uint64_t word = below(&execution->dice, words < SS_COUNTERS + 2 ? words : SS_COUNTERS + 2);
    uint64_t value;
    if (execution->model != NULL || execution->variant == SS_LOG_FREE ||
        execution->variant == SS_LOCKED) {
        value = (execution->model != NULL ? execution->model->state : run->state)[word] + 1;
        store(execution, word, value);
    } else {
        value = execution->variant == SS_EAGER ? ss_eager_increment(run, word)
                                               : ss_increment(run, word);
        if (run->verdict != SS_COMPLETED)
            return false;
    }
    execution->mixed = mix(execution->mixed ^ value) + word;
    return true;
}

static bool emit(struct execution *execution, uint64_t value)
{
    uint64_t words = execution->shape->emit_words;
    uint64_t *row;
    if (execution->model != NULL) {
        struct model *model = execution->model;
        if (model->row_words + words > model->row_capacity) {
            model->row_capacity = 2 * model->row_capacity + words;
            model->rows = realloc(model->rows, model->row_capacity * sizeof *model->rows);
            if (model->rows == NULL)
                out_of_memory();
        }
        row = model->rows + model->row_words;
        model->row_words += words;
    } else if (execution->interpreted) {
        row = ss_interpreted_emit(execution->run);
        if (row == NULL)
            return false;
    } else {
        struct ss_run *run = execution->run;
        if ((uint64_t)(run->emit_end - run->emit_top) < words) {
            if (!ss_emit_grow(run))
                return false;
            see(&sightings.output_grown);
        }
        row = run->emit_top;
        run->emit_top += words;
    }
    row[0] = (uint64_t)execution->row;
    for (uint64_t i = 1; i < words; i++)
        row[i] = mix(value + i);
    return true;
}

/* Takes time, and sometimes the processor away: that is when others move on. */
static bool dawdle(struct execution *execution)
{
    uint64_t turns = below(&execution->dice, execution->shape->work + 1);
    bool rest = chance(&execution->dice, 64);
    uint64_t value = execution->mixed;
    for (uint64_t i = 0; i < turns; i++) {
        value = mix(value);
        if (!poll_kill(execution))
            return false;
    }
    execution->mixed ^= value;
    if (rest && execution->model == NULL)
        sched_yield();
    return true;
}

static uint64_t free_word(struct execution *execution)
{
    const struct shape *shape = execution->shape;
    uint64_t range = shape->free_words >> below(&execution->dice, shape->skew + 1);
    return below(&execution->dice, range > 0 ? range : 1);
}

static uint64_t account_word(struct execution *execution)
{
    const struct shape *shape = execution->shape;
    return shape->free_words + shape->narrow_words + below(&execution->dice, shape->accounts);
}

static uint64_t pair_word(struct execution *execution)
{
    const struct shape *shape = execution->shape;
    return shape->words - 2 * (1 + below(&execution->dice, shape->pairs));
}

/* All elements of a word have one size, as the fields of a state see to. */
static struct element narrow_element(struct execution *execution)
{
    const struct shape *shape = execution->shape;
    uint64_t word = shape->free_words + below(&execution->dice, shape->narrow_words);
    uint64_t size = UINT64_C(1) << word % 3;
    return (struct element){word, size * below(&execution->dice, 8 / size), size};
}

static bool read_pair(struct execution *execution, uint64_t word, uint64_t *left, uint64_t *right)
{
    if (!load(execution, word, left) || !dawdle(execution) || !load(execution, word + 1, right))
        return false;
    if (execution->model != NULL && *left != *right) {
        execution->model->astray = true;
        return raise_error(execution);
    }
    return true;
}

static bool chase(struct execution *execution)
{
    uint64_t word = free_word(execution);
    uint64_t value = 0;
    uint64_t hops = 1;
    /* The length comes from the data as well, but only the first word's: it must end. */
    for (uint64_t i = 0; i < hops; i++) {
        if (!poll_kill(execution) || !load(execution, word, &value))
            return false;
        if (i == 0)
            hops += value % 16;
        word = value % execution->shape->free_words;
    }
    return store(execution, word, execution->mixed);
}

static bool transfer(struct execution *execution)
{
    uint64_t from = account_word(execution);
    uint64_t to = account_word(execution);
    uint64_t balance;
    if (!load(execution, from, &balance))
        return false;
    uint64_t amount = execution->mixed % 1000;
    if (!store(execution, from, balance - amount) || !dawdle(execution) ||
        !load(execution, to, &balance))
        return false;
    return store(execution, to, balance + amount);
}

static bool remit(struct execution *execution)
{
    struct element from = {account_word(execution), 0, 8};
    struct element to = {account_word(execution), 0, 8};
    uint64_t amount = execution->mixed % 1000;
    const uint64_t add = SS_FIRST_DELTA + 3 * SS_ADD + SS_SIGNED;
    return update(execution, from, add, 0 - amount) && dawdle(execution) &&
           update(execution, to, add, amount);
}

static bool use_deltas(struct execution *execution)
{
    const struct shape *shape = execution->shape;
    struct dice *dice = &execution->dice;
    struct element at = {free_word(execution), 0, 8};
    struct element neighbour = at;
    if (shape->narrow_words != 0 && chance(dice, 2)) {
        at = narrow_element(execution);
        neighbour = at;
        neighbour.first = at.size * below(dice, 8 / at.size);
    }
    for (uint64_t updates = 1 + below(dice, 4); updates > 0; updates--) {
        uint64_t number = below(dice, at.size == 8 || at.size == 4 ? 3 : 2);
        uint64_t delta = SS_FIRST_DELTA + 3 * below(dice, 3) + number;
        double sum = (double)below(dice, 9) / 7;
        /* An event that must not raise leaves out sums that a narrow integer may not hold. */
        if (execution->temper == TEMPER_CALM && at.size < 8 && number != SS_FLOAT &&
            delta < SS_FIRST_DELTA + 3 * SS_MINIMUM)
            continue;
        uint64_t operand = below(dice, 5) - (number == SS_SIGNED ? 2 : 0);
        if (number == SS_FLOAT)
            memcpy(&operand, &sum, sizeof operand);
        if (!update(execution, chance(dice, 3) ? neighbour : at, delta, operand))
            return false;
    }
    uint64_t value;
    if (!chance(dice, 3) || !dawdle(execution))
        return execution->model != NULL || execution->run->verdict == SS_COMPLETED;
    if (at.size == 8)
        return (chance(dice, 2) || store(execution, at.word, execution->mixed)) &&
               load(execution, at.word, &value);
    if (chance(dice, 2) && !store_element(execution, neighbour, execution->mixed))
        return false;
    return load_element(execution, chance(dice, 2) ? at : neighbour, &value);
}

static bool advance_pair(struct execution *execution)
{
    uint64_t word = pair_word(execution);
    uint64_t left, right;
    if (!read_pair(execution, word, &left, &right))
        return false;
    uint64_t next = left + 1 + execution->mixed % 8;
    return store(execution, word, next) && dawdle(execution) && store(execution, word + 1, next);
}

static bool agree(struct execution *execution, bool reread)
{
    uint64_t word = pair_word(execution);
    uint64_t left, right;
    if (!read_pair(execution, word, &left, &right))
        return false;
    while (left != right) {
        if (!poll_kill(execution))
            return false;
        /* From one word only: rereading both would find the committed pair equal, and end. */
        if (reread && !load(execution, 0, &right))
            return false;
    }
    return true;
}

/* What compiled code would do if it did not check its indices. Sanitizers would end the program. */
__attribute__((noinline, no_sanitize("address", "undefined", "thread"))) static uint64_t
follow(uint64_t address)
{
    return *(volatile uint64_t *)(uintptr_t)address;
}

static bool doubt(struct execution *execution)
{
    const struct shape *shape = execution->shape;
    uint64_t left, right, value;
    if (!read_pair(execution, pair_word(execution), &left, &right))
        return false;
    /* The words of a pair are never far apart: an address that no process has. */
    if (left != right && execution->mixed % 2 == 0 && !execution->interpreted)
        execution->mixed ^= follow((left - right) * 8);
    uint64_t word = free_word(execution) + (left - right) * UINT64_C(0x10001);
    if (word >= shape->words)
        return raise_error(execution);
    return load(execution, word, &value);
}

static bool use_scratch(struct execution *execution)
{
    uint64_t words = execution->shape->scratch_words;
    uint64_t value;
    memset(execution->scratch, 0, words * sizeof *execution->scratch);
    for (uint64_t i = 0; i < words; i++) {
        if (!poll_kill(execution) || !load(execution, free_word(execution), &value))
            return false;
        execution->scratch[value % words] += value;
    }
    for (uint64_t i = 0; i < words; i++)
        execution->mixed = mix(execution->mixed ^ execution->scratch[i]);
    return true;
}

/* Few words with many elements: neighbours are written at the same time, and one by one. */
static bool use_narrow(struct execution *execution)
{
    if (execution->shape->narrow_words == 0)
        return true;
    struct element from = narrow_element(execution);
    struct element to = chance(&execution->dice, 2) ? from : narrow_element(execution);
    uint64_t value;
    if (!load_element(execution, from, &value))
        return false;
    if (chance(&execution->dice, 3))
        return true;
    value += 1 + below(&execution->dice, 3);
    if (!store_element(execution, to, value) || !dawdle(execution))
        return false;
    return load_element(execution, narrow_element(execution), &value);
}

static const uint64_t *load_range(struct execution *execution, uint64_t word, uint64_t count)
{
    if (execution->model != NULL)
        return execution->model->state + word;
    if (execution->interpreted)
        return ss_interpreted_load_range(execution->run, word, count, execution->range)
                   ? execution->range
                   : NULL;
    if (execution->variant == SS_LOG_FREE || execution->variant == SS_LOCKED)
        return execution->run->state + word;
    return execution->variant == SS_EAGER ? ss_eager_load_range(execution->run, word, count)
                                          : ss_load_range(execution->run, word, count);
}

/* The range may hold what the event itself has stored, and a neighbour of it changes afterwards. */
static bool use_range(struct execution *execution)
{
    uint64_t words = execution->shape->free_words;
    uint64_t first = free_word(execution);
    uint64_t longest = words - first < LONGEST_RANGE ? words - first : LONGEST_RANGE;
    uint64_t count = 1 + below(&execution->dice, longest);
    if (chance(&execution->dice, 2) &&
        !store(execution, first + below(&execution->dice, count), execution->mixed))
        return false;
    const uint64_t *values = load_range(execution, first, count);
    if (values == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++)
        execution->mixed = mix(execution->mixed ^ values[i]) + i;
    return dawdle(execution) && (chance(&execution->dice, 2) ||
                                 store(execution, free_word(execution), execution->mixed));
}

static uint64_t get_directly(void *context, uint64_t word)
{
    const struct execution *execution = context;
    word += execution->shape->words;
    return execution->model != NULL ? execution->model->state[word]
                                    : ss_word_read(&execution->run->state[word]);
}

static void set_directly(void *context, uint64_t word, uint64_t value)
{
    struct execution *execution = context;
    store(execution, execution->shape->words + word, value);
}

/* What compiled code does for `state.field.operation(...)`. */
static bool boost(struct execution *execution, enum boosted_operation operation,
                  const uint64_t *operands)
{
    const struct boosted_words words = {execution, get_directly, set_directly};
    struct ss_run *run = execution->run;
    uint64_t result = 0;
    if (execution->model == NULL &&
        (execution->variant == SS_TRANSACTIONAL || execution->variant == SS_EAGER)) {
        result = ss_boost(run, operation, operands);
        if (run->verdict != SS_COMPLETED)
            return false;
    } else {
        if (!boosted_perform(&words, operation, operands, &result))
            return raise_error(execution);
        if (execution->model == NULL && run->boosting != 0)
            ss_boost_follow(run, operation, operands, result);
    }
    execution->mixed = mix(execution->mixed ^ result) + operation;
    return true;
}

static bool use_boosted(struct execution *execution)
{
    struct dice *dice = &execution->dice;
    if (execution->shape->boosted_words == 0)
        return true;
    for (uint64_t times = 1 + below(dice, 3); times > 0; times--) {
        enum boosted_operation operation = below(dice, BOOSTED_OPERATIONS);
        /* One in many: each costs everybody's work on the structure. */
        if (operation == BOOSTED_TAKE && !chance(dice, 8))
            operation = BOOSTED_EXCHANGE;
        uint64_t raises = execution->temper == TEMPER_MAY_RAISE && chance(dice, 4);
        uint64_t operands[SS_OPERANDS] = {below(dice, BOOSTED_KEYS), execution->mixed, raises};
        if (operation == BOOSTED_EXCHANGE)
            operands[0] %= BOOSTED_SLOTS;
        if (!boost(execution, operation, operands) || !dawdle(execution))
            return false;
    }
    return true;
}

/* What compiled code does with a row or slice: as one entry of the log, or word by word. */
static bool store_range(struct execution *execution, uint64_t word, uint64_t count, uint64_t value)
{
    bool logs = execution->model == NULL &&
                (execution->variant == SS_TRANSACTIONAL || execution->variant == SS_EAGER);
    uint64_t *values = NULL;
    if (execution->interpreted) {
        for (uint64_t i = 0; i < count; i++)
            execution->range[i] = value + i;
        return ss_interpreted_store_range(execution->run, word, count, execution->range);
    }
    if (logs) {
        values = execution->variant == SS_EAGER ? ss_eager_store_range(execution->run, word, count)
                                                : ss_store_range(execution->run, word, count);
        if (execution->run->verdict != SS_COMPLETED)
            return false;
    }
    for (uint64_t i = 0; i < count; i++)
        if (values != NULL)
            values[i] = value + i;
        else if (!store(execution, word + i, value + i))
            return false;
    if (values != NULL)
        see(&sightings.ranges_stored);
    return true;
}

/* Whatever comes after it in the same chunk may read, change, update or overwrite its words again. */
static bool overwrite(struct execution *execution)
{
    struct dice *dice = &execution->dice;
    uint64_t words = execution->shape->free_words;
    uint64_t first = free_word(execution);
    uint64_t longest = words - first < LONGEST_RANGE ? words - first : LONGEST_RANGE;
    uint64_t count = 1 + below(dice, longest);
    uint64_t inside = first + below(dice, count);
    uint64_t value;
    if (chance(dice, 4) && !store(execution, inside, execution->mixed))
        return false;
    /* Few different values, as in STEP_WRITE. */
    if (!store_range(execution, first, count, chance(dice, 2) ? 0 : execution->mixed) ||
        !dawdle(execution))
        return false;
    inside = first + below(dice, count);
    switch (below(dice, 5)) {
    case 0:
        return load(execution, inside, &value);
    case 1:
        return store(execution, inside, execution->mixed);
    case 2:
        return update(execution, (struct element){inside, 0, 8},
                      SS_FIRST_DELTA + 3 * SS_ADD + SS_SIGNED, 1 + execution->mixed % 9);
    case 3:
        return store_range(execution, inside, first + count - inside, execution->mixed);
    default:
        return true;
    }
}

/* Containers have their own words; only what was seen of them comes back. */
static bool use_containers(struct execution *execution, bool (*step)(struct container_work *))
{
    struct model *model = execution->model;
    struct container_work work = {.run = execution->run,
                                  .variant = execution->variant,
                                  .shape = &execution->shape->containers,
                                  .dice = &execution->dice,
                                  .mixed = &execution->mixed,
                                  .seed = execution->seed,
                                  .now = execution->now,
                                  .fires = execution->fires,
                                  .fires_at = execution->fires_at,
                                  .may_raise = execution->temper == TEMPER_MAY_RAISE};
    if (work.shape->words == 0)
        return true;
    if (model != NULL) {
        if (!model->has_changed)
            model->before = model->contents;
        model->has_changed = true;
        work.contents = &model->contents;
    }
    for (uint64_t times = 1 + below(&execution->dice, 3); times > 0; times--) {
        if (!step(&work)) {
            if (model != NULL)
                model->raised = true;
            return false;
        }
        if (!dawdle(execution))
            return false;
    }
    return true;
}

static bool take_step(struct execution *execution, enum step step)
{
    struct dice *dice = &execution->dice;
    uint64_t word, value;
    switch (step) {
    case STEP_READ:
        return load(execution, free_word(execution), &value);
    case STEP_WRITE:
        /* Few different values: a store of what is there already is no conflict. */
        word = free_word(execution);
        return store(execution, word, chance(dice, 2) ? below(dice, 2) : execution->mixed);
    case STEP_MODIFY:
        word = free_word(execution);
        return load(execution, word, &value) && store(execution, word, value + 1 + roll(dice) % 9);
    case STEP_CHASE:
        return chase(execution);
    case STEP_TRANSFER:
        return execution->shape->accounts == 0 || transfer(execution);
    case STEP_ADVANCE:
        return execution->shape->pairs == 0 || advance_pair(execution);
    case STEP_AGREE:
        return execution->shape->pairs == 0 || agree(execution, false);
    case STEP_REREAD:
        return execution->shape->pairs == 0 || agree(execution, true);
    case STEP_DOUBT:
        return execution->shape->pairs == 0 || doubt(execution);
    case STEP_EMIT:
        return emit(execution, execution->mixed);
    case STEP_FLOOD:
        for (uint64_t rows = below(dice, 400); rows > 0; rows--)
            if (!poll_kill(execution) || !emit(execution, execution->mixed + rows))
                return false;
        return true;
    case STEP_FILL:
        word = free_word(execution);
        for (uint64_t stores = below(dice, 900); stores > 0; stores--)
            if (!poll_kill(execution) ||
                !store(execution, (word + stores) % execution->shape->free_words,
                       execution->mixed + stores))
                return false;
        return true;
    case STEP_REMIT:
        return execution->shape->accounts == 0 || remit(execution);
    case STEP_DELTA:
        return use_deltas(execution);
    case STEP_COUNT:
        return count(execution);
    case STEP_NARROW:
        return use_narrow(execution);
    case STEP_RANGE:
        return use_range(execution);
    case STEP_BOOST:
        return use_boosted(execution);
    case STEP_OVERWRITE:
        return overwrite(execution);
    case STEP_KEYED:
        return use_containers(execution, container_step_keyed);
    case STEP_SEQUENCE:
        return use_containers(execution, container_step_sequence);
    case STEP_TIMER:
        return !execution->shape->containers.has_timers ||
               use_containers(execution, container_step_timer);
    case STEP_SCRATCH:
        return use_scratch(execution);
    default:
        return dawdle(execution);
    }
}

static bool process(struct execution *execution, enum temper temper)
{
    const struct shape *shape = execution->shape;
    uint64_t steps = below(&execution->dice, shape->most_steps + 1);
    uint64_t misfortune = below(&execution->dice, steps + 1);
    uint64_t sum = 0;
    for (int step = 0; step < STEPS; step++)
        sum += shape->weights[step];
    for (uint64_t i = 0; i < steps; i++) {
        if (temper == TEMPER_RAISES_MIDWAY && i == misfortune)
            return raise_error(execution);
        uint64_t at = below(&execution->dice, sum);
        int step = 0;
        while (at >= shape->weights[step])
            at -= shape->weights[step++];
        if (!poll_kill(execution) || !take_step(execution, (enum step)step))
            return false;
    }
    if (temper == TEMPER_RAISES || temper == TEMPER_RAISES_MIDWAY ||
        (temper == TEMPER_MAY_RAISE && execution->mixed % 2 == 0))
        return raise_error(execution);
    /* Something of what was read always leaves the event, or a wrong read could stay unseen. */
    return emit(execution, execution->mixed);
}

static enum temper temper_of(void *const *columns, int64_t event)
{
    return (enum temper)((const uint8_t *)columns[COLUMN_TEMPER])[event];
}

static struct execution begin(void *const *columns, int64_t event, int64_t sequence)
{
    const uint64_t *seeds = columns[COLUMN_SEED];
    return (struct execution){.shape = columns[COLUMN_SHAPE],
                              .row = event,
                              .seed = seeds[event],
                              .now = ((const int64_t *)columns[COLUMN_TIMESTAMP])[event],
                              .temper = temper_of(columns, event),
                              .dice = {seeds[event]},
                              .mixed = seeds[event] ^ mix((uint64_t)sequence)};
}

/* For the keys of the next events, as the compiler writes it. */
static void look_ahead(struct ss_run *run, int64_t row, int64_t first, int64_t last)
{
    static const uint64_t columns[] = {COLUMN_KEY, COLUMN_LEFT | COLUMN_RIGHT << 16};
    const struct shape *shape = run->columns[COLUMN_SHAPE];
    if ((row != first && row % SS_AHEAD != 0) || shape->containers.words == 0)
        return;
    for (uint64_t container = DICT; container <= PAIRS; container++)
        if (shape->looks_ahead[container]) {
            ss_keyed_ahead(run, container, columns[container], row, last);
            see(&sightings.looks_ahead);
        }
}

/* The loop inside an entry, as the compiler writes it. */
static int32_t run_range(int64_t *next, struct ss_run *run, int64_t first, int64_t last,
                         enum ss_variant variant)
{
    for (int64_t i = first; i < last; i++) {
        if (variant != SS_EAGER && i != first &&
            __atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0) {
            see(run->speculative ? &sightings.stops : &sightings.yields);
            *next = i;
            return 0;
        }
        run->event = i;
        run->emit_mark = run->emit_top;
        run->undo_top = run->undo_base;
        ss_arena_begin(run);
        struct execution execution = begin(run->columns, i, run->first_sequence + i);
        execution.variant = variant;
        execution.run = run;
        execution.scratch = run->scratch;
        if (variant == SS_LOCKED)
            ss_lock(run, 0);
        else
            look_ahead(run, i, first, last);
        bool completed = process(&execution, temper_of(run->columns, i));
        if (variant == SS_LOCKED)
            ss_unlock(run, 0);
        if (!completed) {
            if (variant == SS_PLAIN && run->verdict == SS_KILLED)
                see(&sightings.plain_kills);
            *next = i;
            return 1;
        }
    }
    *next = last;
    return 0;
}

static const struct shape *shape_of_timers;

void timers_run_as(const struct shape *shape)
{
    shape_of_timers = shape;
}

static struct execution begin_timer(const struct shape *shape, uint64_t container, uint64_t key,
                                    int64_t at, int64_t time, int64_t number)
{
    uint64_t seed = mix(mix(container ^ key ^ (uint64_t)at) ^ mix((uint64_t)time ^ (uint64_t)number << 32));
    struct execution execution = {.shape = shape,
                                  .seed = seed,
                                  .now = time,
                                  .fires = container,
                                  .fires_at = at,
                                  .dice = {seed},
                                  .mixed = seed};
    if (shape->timers_raise && chance(&execution.dice, 8))
        execution.temper = TEMPER_RAISES + (int)below(&execution.dice, 3);
    return execution;
}

/* The one that is the row of a run. */
static struct execution timer_of(struct ss_run *run)
{
    struct execution execution = begin_timer(
        shape_of_timers, TIMERS + *(const uint64_t *)run->columns[SS_TIMER_PLACE],
        *(const uint64_t *)run->columns[3], *(const int64_t *)run->columns[2],
        *(const int64_t *)run->columns[0], run->first_sequence);
    execution.variant = SS_PLAIN;
    execution.run = run;
    execution.scratch = run->scratch;
    return execution;
}

static int32_t run_timer(int64_t *next, void **fault, struct ss_run *run, int64_t first,
                         int64_t last)
{
    *fault = NULL;
    if (first != 0 || last != 1 || *(const int64_t *)run->columns[1] != INT64_MIN)
        abort(); /* it is one row, and of no source */
    run->event = first;
    run->emit_mark = run->emit_top;
    run->undo_top = run->undo_base;
    ss_arena_begin(run);
    struct execution execution = timer_of(run);
    *next = process(&execution, execution.temper) ? last : first;
    return *next == first;
}

ENTRY(run_plain, SS_PLAIN)
ENTRY(run_transactional, SS_TRANSACTIONAL)
ENTRY(run_log_free, SS_LOG_FREE)
ENTRY(run_locked, SS_LOCKED)
ENTRY(run_eager, SS_EAGER)

const ss_entry random_operator[SS_VARIANTS] = {
    [SS_PLAIN] = run_plain,
    [SS_TRANSACTIONAL] = run_transactional,
    [SS_LOG_FREE] = run_log_free,
    [SS_LOCKED] = run_locked,
    [SS_EAGER] = run_eager,
    [SS_TIMER] = run_timer,
};

int64_t random_interpreter(void *context, struct ss_run *run, int32_t variant, int64_t first,
                           int64_t last)
{
    (void)context;
    for (int64_t i = first; i < last; i++) {
        if (variant != SS_EAGER && i != first && __atomic_load_n(&run->yield, __ATOMIC_RELAXED) != 0) {
            see(run->speculative ? &sightings.stops : &sightings.yields);
            return i;
        }
        ss_interpreted_begin(run, i);
        for (uint64_t word = 0; word < run->worker->engine->config.scratch_words; word++)
            if (run->scratch[word] != 0)
                abort(); /* an event sees what another one has left */
        struct execution execution;
        if (variant == SS_TIMER) {
            execution = timer_of(run);
        } else {
            execution = begin(run->columns, i, run->first_sequence + i);
            execution.variant = (enum ss_variant)variant;
            execution.run = run;
            execution.scratch = run->scratch;
        }
        execution.interpreted = true;
        if (!process(&execution, execution.temper)) {
            if (variant == SS_PLAIN && run->verdict == SS_KILLED)
                see(&sightings.plain_kills);
            see(&sightings.interpreted_left);
            return i;
        }
    }
    return last;
}

void shape_regions(struct shape *shape, uint64_t words, struct dice *dice)
{
    shape->words = words;
    shape->pairs = words < 4 ? 0 : 1 + below(dice, words / 4 < 8 ? words / 4 : 8);
    shape->accounts = words < 8 ? 0 : 2 + below(dice, words / 4 < 64 ? words / 4 - 1 : 63);
    shape->narrow_words = words < 16 ? 0 : below(dice, words / 4 < 24 ? words / 4 : 24);
    shape->free_words = words - shape->narrow_words - shape->accounts - 2 * shape->pairs;
    shape->boosted_words = chance(dice, 2) ? BOOSTED_WORDS : 0;
    shape->scratch_words = 1 + below(dice, 16);
    shape->emit_words = 1 + below(dice, 4);
}

void shape_steps(struct shape *shape, struct dice *dice)
{
    static const uint32_t usual[STEPS] = {
        [STEP_READ] = 200,    [STEP_WRITE] = 80,  [STEP_MODIFY] = 120, [STEP_CHASE] = 60,
        [STEP_TRANSFER] = 60, [STEP_ADVANCE] = 40, [STEP_AGREE] = 4,   [STEP_REREAD] = 8,
        [STEP_DOUBT] = 12,    [STEP_EMIT] = 60,   [STEP_FLOOD] = 1,    [STEP_FILL] = 2,
        [STEP_SCRATCH] = 10,  [STEP_WORK] = 60,   [STEP_NARROW] = 120,
        [STEP_REMIT] = 60,    [STEP_DELTA] = 120, [STEP_COUNT] = 60,  [STEP_RANGE] = 60,
        [STEP_BOOST] = 80,
        [STEP_OVERWRITE] = 40, [STEP_KEYED] = 120, [STEP_SEQUENCE] = 60,
        [STEP_TIMER] = 100,
    };
    memcpy(shape->weights, usual, sizeof usual);
    /* Operators differ: each leaves some steps out and is fond of one. */
    for (int step = 1; step < STEPS; step++)
        if (chance(dice, 3))
            shape->weights[step] = 0;
    shape->weights[below(dice, STEP_ADVANCE + 1)] += 200;
    shape->most_steps = spread(dice, 40);
    shape->skew = chance(dice, 2) ? 0 : below(dice, 16);
    shape->work = spread(dice, 300);
    for (uint64_t container = DICT; container <= PAIRS; container++)
        shape->looks_ahead[container] = chance(dice, 2);
}

void shape_fill(struct shape *shape, uint64_t *state, struct dice *dice)
{
    for (uint64_t i = 0; i < shape->words; i++)
        state[i] = roll(dice);
    for (uint64_t i = 0; i < shape->boosted_words; i++)
        state[shape->words + i] = 0;
    shape->total = 0;
    for (uint64_t i = 0; i < shape->accounts; i++)
        shape->total += state[shape->free_words + shape->narrow_words + i];
    for (uint64_t i = shape->words - 2 * shape->pairs; i < shape->words; i += 2)
        state[i + 1] = state[i];
}

const char *shape_violation(const struct shape *shape, const uint64_t *state)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < shape->accounts; i++)
        total += state[shape->free_words + shape->narrow_words + i];
    if (total != shape->total)
        return "the accounts do not add up: an event is half applied";
    for (uint64_t i = shape->words - 2 * shape->pairs; i < shape->words; i += 2)
        if (state[i] != state[i + 1])
            return "the words of a pair differ: an event is half applied";
    return NULL;
}

bool model_open(struct model *model, const struct shape *shape, const uint64_t *state)
{
    *model = (struct model){0};
    uint64_t words = shape->words + shape->boosted_words;
    model->state = malloc(words * sizeof *state);
    model->scratch = malloc(shape->scratch_words * sizeof *model->scratch);
    if (model->state == NULL || model->scratch == NULL)
        return false;
    memcpy(model->state, state, words * sizeof *state);
    model->contents.clock = INT64_MIN;
    return true;
}

void model_close(struct model *model)
{
    free(model->state);
    free(model->scratch);
    free(model->rows);
    free(model->journal);
}

/* False: it has raised, and nothing of it is applied. */
static bool model_run(struct model *model, struct execution *execution)
{
    uint64_t rows_before = model->row_words;
    execution->model = model;
    execution->scratch = model->scratch;
    model->journal_count = 0;
    model->has_changed = false;
    model->raised = false;
    if (process(execution, execution->temper))
        return true;
    while (model->journal_count > 0) {
        model->journal_count--;
        model->state[model->journal[model->journal_count].word] =
            model->journal[model->journal_count].value;
    }
    if (model->has_changed)
        model->contents = model->before;
    model->row_words = rows_before;
    return false;
}

bool model_event(struct model *model, void *const *columns, int64_t event, int64_t sequence)
{
    struct execution execution = begin(columns, event, sequence);
    return model_run(model, &execution);
}

void model_clear_rows(struct model *model)
{
    model->row_words = model->firing_count = 0;
}

/* False: a timer has raised, and is consumed. */
static bool model_unit(struct model *model, const struct shape *shape,
                            const struct container_due *due)
{
    struct contents *contents = &model->contents;
    if (!is_timers(due->container)) {
        contents_take_out(contents, due);
        model->expired++;
        return true;
    }
    int64_t time = due->at > contents->clock ? due->at : contents->clock;
    struct execution execution =
        begin_timer(shape, due->container, contents->rows[due->container][due->row][0], due->at,
                    time, (int64_t)contents->fired);
    contents_take_out(contents, due);
    uint64_t rows = model->row_words;
    bool completed = model_run(model, &execution);
    for (uint64_t row = rows; row < model->row_words; row += shape->emit_words)
        model->rows[row] = (uint64_t)INT64_MIN + contents->fired;
    if (model->row_words != rows && model->firing_count < MOST_FIRINGS)
        model->firings[model->firing_count++] = contents->fired;
    contents->fired++;
    contents->clock = time;
    return completed;
}

/* The end goes on until none is left of those that were set when it came. */
static bool next_due(struct model *model, const struct shape *shape, int64_t time,
                     struct container_due *due)
{
    struct contents *contents = &model->contents;
    bool is_end = time == INT64_MAX;
    if (!shape->containers.goes_by_time)
        return false;
    if (is_end && contents->ends == 0)
        contents->ends = contents->stamp;
    if (contents_due(&shape->containers, contents, time, due))
        return true;
    if (is_end)
        contents->ends = 0;
    return false;
}

bool model_fire(struct model *model, const struct shape *shape, int64_t time)
{
    struct container_due due;
    while (next_due(model, shape, time, &due))
        if (!model_unit(model, shape, &due))
            return false;
    return true;
}

int64_t model_time(const struct model *model, int64_t time)
{
    return time > model->contents.clock ? time : model->contents.clock;
}

bool model_fire_before(struct model *model, const struct shape *shape, int64_t time)
{
    model->contents.ends = 0;
    return model_fire(model, shape, model_time(model, time));
}

void model_fire_to(struct model *model, const struct shape *shape, uint64_t fired)
{
    struct container_due due;
    while (model->contents.fired < fired && next_due(model, shape, INT64_MAX - 1, &due))
        model_unit(model, shape, &due);
}

void model_follow(struct model *model, const struct shape *shape, int64_t time,
                  struct ss_engine *engine, const uint64_t *state,
                  const struct ss_outcome *outcome)
{
    const struct container_shape *containers = &shape->containers;
    struct contents *contents = &model->contents;
    struct container_due due;
    if (!containers->goes_by_time)
        return;
    uint64_t ends = contents->ends, before = contents->stamp;
    uint64_t fired = state[containers->of[TIMERS].header + SS_HEADER_FIRED];
    while (next_due(model, shape, time, &due)) {
        const uint64_t *key = contents->rows[due.container][due.row];
        if (contents->fired == fired &&
            (is_timers(due.container) || ss_engine_find(engine, due.container, key) != SS_NOWHERE))
            break;
        if (!model_unit(model, shape, &due))
            break;
    }
    /* Whether the end has begun shows by nothing but what it says. What fired at it may have set
     * others, which are not of it, also where none of its own is left. */
    if (outcome->ending == 0)
        contents->ends = 0;
    else if (contents->ends == 0)
        contents->ends = ends != 0 ? ends : time == INT64_MAX ? before : contents->stamp;
}

void model_pass(struct model *model, const struct shape *shape, int64_t time)
{
    if (shape->containers.has_timers && time > model->contents.clock)
        model->contents.clock = time;
}
