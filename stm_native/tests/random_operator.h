/* A family of random operators, and the sequential run that says what they ought to do.
 *
 * An event is a seed: from it the operator draws a row of steps, and every step may depend on what
 * the earlier ones read. One body serves all variants; only how it loads, stores and emits differs.
 *
 * The state has six regions:
 *
 *     free words | narrow words | accounts | pairs | a boosted structure (boosted.h) |
 *     containers (random_containers.h)
 *
 * Anything may happen to the free words, and to the elements of 1, 2 or 4 bytes in the narrow ones.
 * Steps move amounts between accounts, so their sum is constant; the two words of a pair are always
 * equal. Both hold between events only, and a speculative run can see them broken: that is what
 * makes it raise, index wildly, fault, or loop for ever, which no run on committed state does.
 *
 * random_operator.c is one file: a step is drawn, done, and done once more by the sequential run, and
 * these three have to be read beside each other. */
#ifndef SPECSTREAM_TESTS_RANDOM_OPERATOR_H
#define SPECSTREAM_TESTS_RANDOM_OPERATOR_H

#include <stdatomic.h>

#include "dice.h"
#include "random_containers.h"
#include "specstream.h"

enum step {
    STEP_READ,
    STEP_WRITE,
    STEP_MODIFY,
    STEP_CHASE,    /* follows words as indices */
    STEP_TRANSFER, /* from account to account */
    STEP_ADVANCE,  /* changes both words of a pair */
    STEP_AGREE,    /* loops while the words of a pair differ: a runaway run */
    STEP_REREAD,   /* the same, reading anew each time: fills the read log */
    STEP_DOUBT,    /* indexes by the difference of a pair: raises out of bounds, or faults */
    STEP_EMIT,
    STEP_FLOOD,   /* emits many rows */
    STEP_FILL,    /* stores many words */
    STEP_REMIT,   /* from account to account, by deltas */
    STEP_DELTA,   /* commutative updates of words and elements, of which some are read later */
    STEP_COUNT,   /* increments one of a few words, and uses the result */
    STEP_NARROW,  /* reads and writes elements smaller than a word */
    STEP_RANGE,   /* reads neighbouring words at once, moves one of them */
    STEP_BOOST,   /* operations on a boosted structure */
    STEP_OVERWRITE, /* stores neighbouring words at once, and meets them again */
    STEP_KEYED,     /* reads and changes a dict */
    STEP_SEQUENCE,  /* a list or deque */
    STEP_TIMER,     /* sets a timer, or cancels it */
    STEP_SCRATCH,
    STEP_WORK,
    STEPS
};

/* Whether an event raises. */
enum temper {
    TEMPER_CALM,
    TEMPER_RAISES,        /* after its steps, all effects to be undone */
    TEMPER_RAISES_MIDWAY, /* somewhere between its steps */
    TEMPER_MAY_RAISE      /* if what it read says so */
};

struct shape {
    uint64_t words;
    uint64_t free_words;
    uint64_t narrow_words;
    uint64_t accounts;
    uint64_t pairs;
    uint64_t boosted_words; /* behind the others, and not counted in `words` */
    struct container_shape containers; /* behind those */
    uint64_t total; /* of the accounts */
    uint64_t scratch_words;
    uint64_t emit_words;

    uint64_t most_steps;
    uint64_t skew; /* 0: every free word as likely as the other */
    uint64_t work; /* turns of a loop that only takes time */
    uint32_t weights[STEPS];
    bool looks_ahead[2]; /* at the keys that events have in their columns: of dict and pairs */
    bool timers_raise;   /* some of them */
};

/* The columns of a batch. */
enum column {
    COLUMN_TIMESTAMP,
    COLUMN_SEED,
    COLUMN_TEMPER,
    COLUMN_SHAPE,
    COLUMN_KEY, /* of the dict */
    COLUMN_LEFT, /* both words of a pair */
    COLUMN_RIGHT,
    COLUMNS
};

/* What the entries saw; so that a test which never went where it should does not pass. */
struct sightings {
    _Atomic uint64_t yields;      /* in-place runs that returned between two events */
    _Atomic uint64_t stops;       /* likewise speculative ones */
    _Atomic uint64_t plain_kills; /* events in flight at the head that were rolled back */
    _Atomic uint64_t undo_grown;
    _Atomic uint64_t output_grown;
    _Atomic uint64_t ranges_stored; /* as one entry */
    _Atomic uint64_t looks_ahead;
    _Atomic uint64_t interpreted_left; /* events that an interpreter has left before their end */
};
extern struct sightings sightings;

/* Divides `words` into regions and draws the steps. */
void shape_regions(struct shape *shape, uint64_t words, struct dice *dice);
void shape_steps(struct shape *shape, struct dice *dice);
/* A first state that meets the invariants; sets shape->total. */
void shape_fill(struct shape *shape, uint64_t *state, struct dice *dice);
/* NULL, or what is broken. */
const char *shape_violation(const struct shape *shape, const uint64_t *state);

extern const ss_entry random_operator[SS_VARIANTS];
/* The same for ss_engine_interpret: with the accesses of an interpreter, and outside. */
int64_t random_interpreter(void *context, struct ss_run *run, int32_t variant, int64_t first,
                           int64_t last);
/* Of the next job: a timer has no column for it. */
void timers_run_as(const struct shape *shape);

enum { MOST_FIRINGS = 1 << 16 };

/* The sequential run: direct access to a state of its own, and nothing of the runtime. */
struct model {
    uint64_t *state;
    uint64_t *scratch;
    uint64_t *rows;
    uint64_t row_words;
    uint64_t row_capacity;
    struct {
        uint64_t word;
        uint64_t value;
    } *journal;
    uint64_t journal_count;
    uint64_t journal_capacity;
    struct contents contents; /* of the containers */
    struct contents before;   /* the event began */
    bool has_changed;         /* the event has worked on them */
    uint64_t firings[MOST_FIRINGS]; /* numbers of timers that have emitted rows */
    uint64_t firing_count;
    uint64_t expired;
    bool raised;
    bool astray; /* met something that cannot be on committed state: the test itself is wrong */
};

bool model_open(struct model *model, const struct shape *shape, const uint64_t *state);
void model_close(struct model *model);
/* False: it raised, and nothing of it is applied. */
bool model_event(struct model *model, void *const *columns, int64_t event, int64_t sequence);
/* No event has come since the rows were cleared. */
void model_clear_rows(struct model *model);

/* Fires timers that are due by a time, and removes what expires; or at the end of the input (INT64_MAX).
 * False: the last one that has fired raises; it is consumed. */
bool model_fire(struct model *model, const struct shape *shape, int64_t time);
/* Before an event of that time. */
bool model_fire_before(struct model *model, const struct shape *shape, int64_t time);
/* As far as so many timers have fired. */
void model_fire_to(struct model *model, const struct shape *shape, uint64_t fired);
/* By when timers are due before it. */
int64_t model_time(const struct model *model, int64_t time);
/* As far as the engine has come, which was stopped or lends the turn. */
void model_follow(struct model *model, const struct shape *shape, int64_t time,
                  struct ss_engine *engine, const uint64_t *state,
                  const struct ss_outcome *outcome);
/* An event of that time is applied. */
void model_pass(struct model *model, const struct shape *shape, int64_t time);

#endif
