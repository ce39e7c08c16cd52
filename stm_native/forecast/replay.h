/* Recorded events on the machine of machine.h, run by the runtime's own code. */
#ifndef SPECSTREAM_REPLAY_H
#define SPECSTREAM_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

enum replay_kind {
    REPLAY_LOAD = 0,
    REPLAY_STORE = 1,
    REPLAY_ADD = 2 /* to a word, which it does not read: an update that commutes */
};

struct replay_access {
    uint64_t byte;  /* of the state */
    uint64_t value; /* that it stores, or adds */
    uint32_t size;  /* in bytes: 1, 2, 4 or 8 */
    uint32_t kind;  /* enum replay_kind */
};

/* Its accesses are spread evenly over its time. */
struct replay_event {
    int64_t plain;       /* nanoseconds in place */
    int64_t speculative; /* of a speculative run */
    int64_t first;       /* accesses [first, last) */
    int64_t last;
    int64_t row_words; /* that it emits */
    int64_t is_dropped; /* a speculative run of it never commits */
};

struct replay_load {
    int64_t threads, horizon, chunk;
    bool is_eager; /* which protocol */
    bool is_forced; /* the head is never run in place at its first try */
    int64_t held; /* of 1000 parts of an event those with the interpreter's lock; 0: there is none */
    int64_t count; /* events */
    int64_t warm;  /* so many of them run before it is measured */
    uint64_t read_limit, redo_limit, row_limit; /* of a speculative run, in words */
    const struct replay_event *events;
    const struct replay_access *accesses;
    uint64_t state_words;
    const uint64_t *regions; /* of protocol `eager`: the first word, and shift, of each struct ss_region */
    uint64_t region_count;
    /* What is not 0 in the state at the beginning, and all words that are compared at the end. */
    const uint64_t *words;
    const uint64_t *before;
    const uint64_t *behind;
    int64_t word_count;
    const int64_t *costs; /* the machine's: struct costs, as machine.h has them */
};

/* Why nothing was replayed; negative, where nanoseconds are expected. */
enum replay_failure {
    REPLAY_NO_MEMORY = -1,
    REPLAY_BAD_SETTING = -2, /* no threads or more than there are cores, no chunk, a negative number */
    REPLAY_BAD_EVENT = -3    /* it takes less than no time, or ends before it begins */
};

struct replay_result {
    int64_t nanoseconds; /* or enum replay_failure */
    int64_t bad_event;   /* of REPLAY_BAD_EVENT */
    int64_t transfers;   /* lines that went from core to core */
    int64_t accesses;    /* all, by which what it took to compute can be foretold */
    int64_t wrong;       /* words that are not `behind` in the end */
    uint64_t speculative_runs;
    uint64_t dropped; /* of these */
    uint64_t parks;
};

/* One at a time in a process. */
struct replay_result replay_run(const struct replay_load *load);

#endif
