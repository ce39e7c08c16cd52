/* Looking at an entry of the committed state without the turn.
 *
 * A number, the version, is odd while whoever holds the turn changes the state: publishes a run, or runs
 * events in place. Who looks reads the number, the entry, and the number again; where it was even and is
 * the same, he has seen what is committed, and a whole number of events. He keeps nobody from anything,
 * but for plain runs: these he asks to come to the end of their event, as a reader of turn.c does,
 * and they wait for him for less than a microsecond.
 *
 * Events that take long, or a machine that is busy with others, may leave him no instant. Then he is told
 * so, and takes the turn. */
#include <stdatomic.h>

#include "containers/keyed.h"
#include "core/engine.h"
#include "core/state_words.h"
#include "core/version.h"
#include "core/worker.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "specstream_containers.h"

static const int64_t look_nanoseconds = 200000;

/* What is there at this instant, whole or not; false: there is no such entry. */
static bool read_row(struct ss_engine *engine, uint64_t container, const uint64_t *key,
                     uint64_t *row)
{
    const uint64_t *state = engine->config.state;
    const struct ss_container *of = &engine->keyed[container].of;
    if (key == NULL) {
        row[0] = ss_word_read(&state[of->header + SS_HEADER_COUNT]);
        return true;
    }
    uint64_t entry = ss_engine_find(engine, container, key);
    if (entry == SS_NOWHERE)
        return false;
    for (uint64_t i = 1; i < of->entry_words; i++)
        row[i - 1] = ss_word_read(&state[entry + i]);
    return ss_word_read(&state[entry]) != 0;
}

enum ss_look ss_engine_look(struct ss_engine *engine, uint64_t container, const uint64_t *key,
                            uint64_t *row)
{
    enum ss_look found = SS_LOOK_AGAIN;
    int64_t until = ss_now() + look_nanoseconds;
    /* Before the first look, and before the fence below. */
    atomic_fetch_add_explicit(&engine->looking, 1, memory_order_seq_cst);
    do {
        /* Acquire: what is read below is not older. */
        uint64_t version = atomic_load_explicit(&engine->version, memory_order_acquire);
        if (version % 2 == 0) {
            bool there = read_row(engine, container, key, row);
            /* Acquire: the number is read after the words. */
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(&engine->version, memory_order_relaxed) == version) {
                found = there ? SS_LOOK_FOUND : SS_LOOK_ABSENT;
                break;
            }
            continue;
        }
        /* Dekker with run_range_in_place: we are counted before the flags are up. */
        atomic_thread_fence(memory_order_seq_cst);
        for (uint64_t i = 0; i < engine->config.threads; i++)
            __atomic_store_n(&engine->workers[i].run.yield, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < 16; i++)
            ss_relax();
    } while (ss_now() < until);
    /* Relaxed: a hint to who waits for us. */
    atomic_fetch_sub_explicit(&engine->looking, 1, memory_order_relaxed);
    return found;
}

void ss_engine_change(struct ss_engine *engine, bool begins)
{
    if (begins)
        ss_version_begin(engine);
    else
        ss_version_end(engine);
}
