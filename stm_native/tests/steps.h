/* The scheduler step by step: real workers, and events that stop where the test says.
 *
 * An event is a row of steps over a small state. At `STOP(point)` its run
 * waits until the test lets it go on, so the test decides which run does what before which, and can
 * look at everything that stands still meanwhile. Without STOP the same events are an ordinary
 * load. In both cases a job must end as the sequential run of the same rows does: state, rows and
 * how many events were consumed are compared after each job.
 *
 * Nothing here waits without a limit: a wait that lasts `patience` fails and says for what.
 *
 * steps.c is one file because the operator of the steps, and the test that lets it go on, talk through
 * the same few variables. */
#ifndef SPECSTREAM_TESTS_STEPS_H
#define SPECSTREAM_TESTS_STEPS_H

#include "core/transaction.h"
#include "dice.h"
#include "patience.h"
#include "specstream.h"

/* What the test is about just now, for messages. */
extern const char *scenario;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("%s: %s:%d: %s", scenario, __FILE__, __LINE__, #condition);                       \
    } while (0)

enum { STATE_WORDS = 256, MOST_EVENTS = 128, MOST_STEPS = 24, POINTS = 4, LOG_LIMIT = 16 };

enum step_kind {
    STEP_END = 0,
    STEP_READ,         /* of `word` */
    STEP_WRITE,        /* of `value` */
    STEP_PUT,          /* of a mixture of all that the event has read */
    STEP_ADD,          /* reads `word`, writes what it read plus `value` */
    STEP_COUNT,        /* increments `word`, a counter, and reads it */
    STEP_FILL,         /* as STEP_ADD of 1, `value` times, to one word after the other */
    STEP_EMIT,         /* `value` rows: the sequence number, and the mixture */
    STEP_STOP,         /* at point `value` */
    STEP_RAISE,        /* always */
    STEP_CRASH,        /* a speculative run: faults */
    STEP_RAISE_UNLESS, /* `word` holds `value` */
    STEP_LOOP_UNLESS,  /* likewise, for ever: a runaway run, until it is killed */
    STEP_LINGER,       /* takes time: `value` turns, and sometimes the processor away */
    STEP_OVERSTAY      /* a speculative run: loops until it was suspected and cleared so often */
};

struct step {
    enum step_kind kind;
    uint64_t word;
    uint64_t value;
};

/* One event; the steps that are not given end it. */
typedef struct step row[MOST_STEPS];

#define READ(word) {STEP_READ, (word), 0}
#define WRITE(word, value) {STEP_WRITE, (word), (value)}
#define PUT(word) {STEP_PUT, (word), 0}
#define ADD(word, value) {STEP_ADD, (word), (value)}
#define COUNT(word) {STEP_COUNT, (word), 0}
#define FILL(times) {STEP_FILL, 0, (times)}
#define EMIT {STEP_EMIT, 0, 1}
#define FLOOD(rows) {STEP_EMIT, 0, (rows)}
#define STOP(point) {STEP_STOP, 0, (point)}
#define RAISE {STEP_RAISE, 0, 0}
#define CRASH {STEP_CRASH, 0, 0}
#define RAISE_UNLESS(word, value) {STEP_RAISE_UNLESS, (word), (value)}
#define LOOP_UNLESS(word, value) {STEP_LOOP_UNLESS, (word), (value)}
#define LINGER(turns) {STEP_LINGER, 0, (turns)}
#define OVERSTAY(times) {STEP_OVERSTAY, 0, (times)}

struct setting {
    enum ss_protocol_kind protocol;
    enum ss_mode mode;
    uint64_t threads;
    int64_t horizon;
    int64_t longest_horizon; /* 0: the horizon stays */
    int64_t chunk; /* 0: 1 */
    uint64_t record_shift;
    /* A parked worker does not wake by itself: a lost wake-up is a wait that fails. */
    bool long_sleeps;
    /* Bit k: who is about to validate the transaction of event k stops at VALIDATION. */
    uint64_t validations_held;
};

/* Two points of every event. VALIDATION: whoever holds the turn and finds it finished, before it is
 * validated; stops only where the setting says so. LOOPING: a runaway run has begun to loop; never
 * stops. */
enum { VALIDATION = POINTS - 1, LOOPING = POINTS - 2 };

/* An engine over a state of zeros. One at a time. */
void stage_open(const struct setting *setting);
void stage_close(void);
/* Starts a job of `count` events, event k being the row `events[k]`, with sequence numbers from
 * `first_sequence` on. */
void stage_start(const row *events, int64_t count, int64_t first_sequence);
/* Lets everything go, waits for the end of the job and compares it with the sequential run. */
struct ss_outcome stage_end(void);
/* Its two halves: the first only waits. */
struct ss_outcome stage_wait(void);
void stage_compare(const struct ss_outcome *outcome);
/* A hook of the test refuses the event of the job at hand: in the sequential run it raises. */
void stage_refuse(int64_t event);
void stage_let_everything_go(void);
/* The sequential run of one event, whose rows must be those of the outcome from `*next_row` on. False:
 * it raises, and leaves no trace. */
bool stage_expect(int64_t event, const struct ss_outcome *outcome, uint64_t *next_row);
bool stage_is_as_expected(void);
/* Whether a wait since then has lasted too long; takes a backoff. */
bool stage_waits_too_long(int64_t since);

/* An ordinary event: up to `most` steps on the words below `words`, none of which raises. Returns
 * how many steps it drew. */
uint64_t draw_event(struct dice *dice, struct step *steps, uint64_t most, uint64_t words);

struct ss_engine *stage_engine(void);
/* Of the stage: between two jobs, for whoever holds the turn, or where nothing moves. */
uint64_t stage_word(uint64_t word);

/* Waits until a reader has asked the first worker, which is in a run, for the turn. */
void await_asked(void);
/* Waits until runs of the event have arrived at the point so many times. */
void await_stop(int64_t event, uint64_t point, uint64_t times);
/* One run that waits there, or the next to arrive, goes on. */
void let_go(int64_t event, uint64_t point);
/* No run is stopped there any more. */
void let_all_go(int64_t event, uint64_t point);
uint64_t runs_of(int64_t event);
void await_committed(int64_t transactions);
void await_status(int64_t number, enum ss_status status);
/* Waits until so many workers have looked for work anew, each at all that there is, and found none.
 * So with nothing else moving, what has not begun now never will. With long sleeps: until they
 * sleep. */
void await_idle(uint64_t workers);
/* Number of the transaction that a dropped one waits for. */
int64_t waits_for(int64_t number);
/* Between two jobs; the second: of all reasons. */
uint64_t aborts(enum ss_abort_reason reason);
uint64_t all_aborts(void);

/* Counted by the events themselves, over all jobs of the stage. */
uint64_t most_running(void);   /* at one time */
int64_t furthest_ahead(void); /* of the head, in transactions, when a run began */

#endif
