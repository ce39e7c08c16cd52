/* The account of memory, against the allocator's own: to the byte, while logs, undo logs and output
 * grow, and nothing left at the end.
 *
 * The allocator is AddressSanitizer's, which knows how many bytes were asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "specstream.h"
#include "specstream_containers.h"

enum { WORDS = 1000, EMITTED = 3, EVENTS = 400 };

/* Of AddressSanitizer's; its header is not everywhere where the sanitizer is. */
size_t __sanitizer_get_current_allocated_bytes(void);

/* Behind the words a set, into which each event inserts a key of its own. */
enum {
    LIMIT = 5 * EVENTS,
    ROOM = LIMIT + 100,
    REGION = WORDS + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    TIMERS_HEADER = REGION + 3 * ROOM,
    TIMERS_REGION = TIMERS_HEADER + SS_HEADER_WORDS + SS_ABSENCE_WORDS,
    ALL = TIMERS_REGION + 3 * ROOM
};
/* It may go by time: then an entry ends with the time of its last write. */
enum going { STAYS, EXPIRES, EXPIRES_BESIDE_TIMERS };
static enum going going;

static uint64_t state[ALL];

/* An event stores to many words and emits many rows, as compiled code does it. */
static int32_t run_events(int64_t *next, struct ss_run *run, int64_t first, int64_t last,
                          uint64_t (*load)(struct ss_run *, uint64_t),
                          void (*store)(struct ss_run *, uint64_t, uint64_t))
{
    for (*next = first; *next < last && run->verdict == SS_COMPLETED; ++*next) {
        run->emit_mark = run->emit_top;
        if (!run->speculative)
            run->undo_top = run->undo_base;
        for (uint64_t word = 0; word < WORDS && run->verdict == SS_COMPLETED; word++)
            store(run, word, load(run, word) + 1);
        uint64_t key = (uint64_t)(run->first_sequence + *next);
        run->event = *next;
        if (run->verdict == SS_COMPLETED && ss_keyed_find(run, 0, &key) == SS_NOWHERE &&
            run->verdict == SS_COMPLETED) {
            uint64_t entry = ss_keyed_insert(run, 0, &key);
            if (run->verdict == SS_COMPLETED && going != STAYS)
                store(run, entry + 2, 0);
        }
        if (run->verdict == SS_COMPLETED && going == EXPIRES_BESIDE_TIMERS)
            ss_timer_set(run, 1, &key, 1000);
        for (int row = 0; row < 50 && run->verdict == SS_COMPLETED; row++) {
            if (run->emit_top + EMITTED > run->emit_end && !ss_emit_grow(run))
                break;
            for (int word = 0; word < EMITTED; word++)
                *run->emit_top++ = (uint64_t)*next;
        }
        if (run->verdict != SS_COMPLETED)
            break;
    }
    return 0;
}

static int32_t plain(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)fault;
    return run_events(next, run, first, last, ss_load, ss_store);
}

static int32_t eager(int64_t *next, void **fault, struct ss_run *run, int64_t first, int64_t last)
{
    (void)fault;
    return run_events(next, run, first, last, ss_eager_load, ss_eager_store);
}

/* What the threads of an engine need of the C library, found with the first one. */
static uint64_t overhead;
static bool checked;

static void check(const char *when, uint64_t counted, uint64_t before)
{
    uint64_t held = __sanitizer_get_current_allocated_bytes() - before;
    if (counted > 0)
        held -= overhead;
    if (checked && held != counted) {
        fprintf(stderr, "FAILED: %s: %" PRIu64 " bytes are held, %" PRIu64 " are counted\n", when,
                held, counted);
        exit(1);
    }
}

static void run_job(struct ss_engine *engine, int64_t horizon, enum ss_mode mode)
{
    static int64_t times[EVENTS];
    void *columns[] = {times};
    struct ss_job job = {.columns = columns, .count = EVENTS, .chunk = 2, .horizon = horizon,
                         .mode = mode,
                         .first_sequence = (int64_t)state[WORDS + SS_HEADER_COUNT]};
    if (!ss_engine_start(engine, &job)) {
        fprintf(stderr, "FAILED: no memory\n");
        exit(1);
    }
    while (!ss_engine_wait(engine, 1000))
        continue;
    if (ss_engine_outcome(engine).row_count != 50 * EVENTS) {
        fprintf(stderr, "FAILED: rows are missing\n");
        exit(1);
    }
}

static void live(enum ss_protocol_kind protocol, uint64_t scratch, enum going goes)
{
    going = goes;
    struct ss_container containers[] = {
        {SS_KEYED, WORDS, REGION, ROOM, LIMIT, 1, goes == STAYS ? 2 : 3, goes == STAYS ? 0 : 1000, 0},
        {SS_KEYED, TIMERS_HEADER, TIMERS_REGION, ROOM, LIMIT, 1, 3, 0, goes == EXPIRES_BESIDE_TIMERS},
    };
    uint64_t before = __sanitizer_get_current_allocated_bytes();
    memset(state, 0, sizeof state);
    struct ss_config config = {.state = state, .state_words = ALL, .containers = containers,
                               .container_count = 2, .timers = goes == EXPIRES_BESIDE_TIMERS ? 2 : 0, .scratch_words = scratch,
                               .emit_words = EMITTED, .threads = 3, .locks = 2, .read_limit = 3000,
                               .redo_limit = 2500, .emit_limit = 150, .protocol = protocol};
    struct ss_engine *engine = ss_engine_new(&config);
    if (engine == NULL)
        exit(1);
    for (int variant = 0; variant < SS_VARIANTS; variant++)
        ss_engine_set_entry(engine, (enum ss_variant)variant, variant == SS_EAGER ? eager : plain);
    /* Not before a job: a thread that starts asks the allocator for what it soon gives back. */
    static const int64_t horizons[] = {0, 1, 8, 3};
    uint64_t longest = 0;
    for (size_t i = 0; i < sizeof horizons / sizeof *horizons; i++) {
        run_job(engine, horizons[i], SS_MODE_ORDERED);
        if (!checked)
            overhead = __sanitizer_get_current_allocated_bytes() - before - ss_engine_memory(engine);
        check("after a job", ss_engine_memory(engine), before);
        struct ss_memory needed = ss_memory_needed(&config, horizons[i], SS_MODE_ORDERED);
        longest = needed.transactions > longest ? needed.transactions : longest;
        if (engine->ring_size != longest || ss_engine_memory(engine) <= needed.total) {
            fprintf(stderr, "FAILED: the ring has %" PRIu64 " slots\n", engine->ring_size);
            exit(1);
        }
    }
    if (goes == STAYS) /* what goes by time has an order */
        run_job(engine, 8, SS_MODE_LOCKED);
    if (goes == STAYS && state[WORDS + SS_HEADER_COUNT] != 5 * EVENTS) {
        fprintf(stderr, "FAILED: keys are missing\n");
        exit(1);
    }
    check("after a job with locks", ss_engine_memory(engine), before);
    ss_engine_free(engine);
    check("at the end", 0, before);
}

int main(void)
{
    live(SS_PROTOCOL_VALUE, 0, STAYS);
    if (overhead > 3 * 1024) {
        fprintf(stderr, "FAILED: %" PRIu64 " bytes are not counted\n", overhead);
        exit(1);
    }
    checked = true;
    live(SS_PROTOCOL_VALUE, 0, STAYS);
    live(SS_PROTOCOL_VALUE, 21, STAYS);
    live(SS_PROTOCOL_EAGER, 21, STAYS);
    live(SS_PROTOCOL_VALUE, 0, EXPIRES);
    live(SS_PROTOCOL_EAGER, 0, EXPIRES);
    live(SS_PROTOCOL_VALUE, 0, EXPIRES_BESIDE_TIMERS);
    live(SS_PROTOCOL_EAGER, 0, EXPIRES_BESIDE_TIMERS);
    printf("memory: passed\n");
    return 0;
}
