/* The turn: the right to commit, which exactly one thread holds at a time.
 *
 * It is a lock that workers only ever try and never wait for. Who holds it is the only one who changes
 * the state, so for threads outside the pool that want to see the state stand still (readers) it is the
 * right to look as well.
 *
 * Readers and workers take turns. A reader that wants the state to stand still announces itself and is
 * let in between two events; were it the next one's turn as soon as it has gone, a few threads that
 * look again and again would keep all commits from happening. So when a reader gives the turn back and
 * a worker was turned away meanwhile, the next reader waits until the workers have had the turn for as
 * long as the reader had it, and a little longer. It does not wait for ever for them to come: who was
 * turned away may be in a long run by now, or find that there is nothing left to commit.
 *
 * All of it is in the fields `share_end`, until when readers wait, and `owed`, how long the workers are
 * to have the turn once they have come. Both are written by whoever holds the turn, so they change in
 * the order of its holders, and who has just acquired the turn sees what the one before has stored.
 * That is why a reader looks once more when it has it, and gives it back if it is not its time. Who
 * looks without the turn may see an old value: it then tries for a turn that it does not get or does
 * not keep, or waits for one more backoff. */
#include "core/turn.h"

#include <assert.h>
#include <stdatomic.h>
#include <time.h>

#include "core/engine.h"
#include "core/parking.h"
#include "core/worker.h"
#include "processor/now.h"
#include "processor/processor.h"
#include "specstream.h"

/* What it costs to hand the turn over twice. */
static const int64_t hand_over_nanoseconds = 100000;

static bool workers_come_first(struct ss_engine *engine)
{
    /* Relaxed: see above. When the job is over, nobody comes. */
    return ss_now() < atomic_load_explicit(&engine->share_end, memory_order_relaxed) &&
           atomic_load_explicit(&engine->over, memory_order_relaxed) == 0;
}

bool ss_reader_comes_first(struct ss_engine *engine)
{
    /* Relaxed: who must not miss a reader looks again when it was told, see run_range_in_place. */
    return atomic_load_explicit(&engine->readers, memory_order_relaxed) != 0 &&
           !workers_come_first(engine);
}

/* With the turn: a worker has come, and its share begins. */
static void begin_share(struct ss_engine *engine)
{
    assert(ss_turn_is_held(engine));
    /* Relaxed, here and in turn_away: a hint. A worker that is turned away after the reader has looked
     * tries again, and is noticed by the reader that turns it away then. */
    if (SS_UNLIKELY(atomic_load_explicit(&engine->turned_away, memory_order_relaxed) != 0))
        atomic_store_explicit(&engine->turned_away, 0, memory_order_relaxed);
    if (SS_UNLIKELY(engine->owed != 0)) {
        /* Relaxed: published with the turn. */
        atomic_store_explicit(&engine->share_end, ss_now() + engine->owed, memory_order_relaxed);
        engine->owed = 0;
    }
}

static void turn_away(struct ss_engine *engine)
{
    if (atomic_load_explicit(&engine->turned_away, memory_order_relaxed) == 0)
        atomic_store_explicit(&engine->turned_away, 1, memory_order_relaxed);
}

bool ss_try_turn(struct ss_engine *engine)
{
    uint32_t free = 0;
    if (ss_reader_comes_first(engine)) {
        turn_away(engine);
        return false;
    }
    /* Acquire: the state as the last holder left it. */
    if (!atomic_compare_exchange_strong_explicit(&engine->turn, &free, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    begin_share(engine);
    return true;
}

void ss_release_turn(struct ss_engine *engine)
{
    atomic_store_explicit(&engine->turn, 0, memory_order_release);
    /* Dekker with run_speculatively: the turn is free before we look at the head again. */
    atomic_thread_fence(memory_order_seq_cst);
}

void ss_lend_turn(struct ss_engine *engine)
{
    /* Before the turn is free: the reader that gets it sees that somebody waits. */
    turn_away(engine);
    ss_release_turn(engine);
    ss_wake(engine);
    uint32_t free;
    do {
        while (ss_reader_comes_first(engine)) {
            struct timespec backoff = {0, 20000};
            nanosleep(&backoff, NULL);
        }
        free = 0;
    } while (!atomic_compare_exchange_strong_explicit(&engine->turn, &free, 1, memory_order_acquire,
                                                      memory_order_relaxed));
    begin_share(engine);
}

/* A reader has got the turn; false: it is not its time, and it gives the turn back. */
static bool may_read(struct ss_engine *engine)
{
    if (workers_come_first(engine)) {
        ss_release_turn(engine);
        ss_wake(engine);
        return false;
    }
    engine->reading_since = ss_now();
    return true;
}

bool ss_engine_try_turn(struct ss_engine *engine, int64_t milliseconds, bool *held)
{
    int64_t until = ss_now() + milliseconds * 1000000;
    /* Before the first look, so that workers leave the turn to us from now on; the fence below
     * pairs with that of a run in place. */
    atomic_fetch_add_explicit(&engine->readers, 1, memory_order_seq_cst);
    for (;;) {
        uint32_t free = 0;
        if (workers_come_first(engine)) {
            ; /* and are not disturbed meanwhile */
        } else if (atomic_compare_exchange_strong_explicit(
                       &engine->turn, &free, 1, memory_order_acquire, memory_order_relaxed)) {
            if (!may_read(engine))
                continue;
            *held = true;
            return true;
        } else {
            /* Dekker with run_in_place: we are announced before the flags are up. */
            atomic_thread_fence(memory_order_seq_cst);
            for (uint64_t i = 0; i < engine->config.threads; i++)
                __atomic_store_n(&engine->workers[i].run.yield, 1, __ATOMIC_RELAXED);
            /* Whoever commits one event is soon done. */
            for (int i = 0; i < 100; i++) {
                /* Relaxed, here and below: a look; the exchange decides. */
                if (atomic_load_explicit(&engine->turn, memory_order_relaxed) == 0)
                    break;
                ss_relax();
            }
            if (atomic_load_explicit(&engine->turn, memory_order_relaxed) == 0)
                continue;
        }
        if (ss_now() >= until) {
            /* Whoever is woken finds us gone: before the fence in ss_wake. */
            atomic_fetch_sub_explicit(&engine->readers, 1, memory_order_seq_cst);
            ss_wake(engine);
            return false;
        }
        struct timespec backoff = {0, 5000};
        nanosleep(&backoff, NULL);
    }
}

void ss_engine_take_turn(struct ss_engine *engine)
{
    bool held;
    while (!ss_engine_try_turn(engine, 1000, &held))
        continue;
}

void ss_engine_release_turn(struct ss_engine *engine)
{
    /* Relaxed: a hint; see begin_share. */
    if (atomic_load_explicit(&engine->turned_away, memory_order_relaxed) != 0) {
        int64_t now = ss_now();
        engine->owed = now - engine->reading_since + hand_over_nanoseconds;
        atomic_store_explicit(&engine->share_end, now + engine->owed + engine->patience_nanoseconds,
                              memory_order_relaxed);
    }
    /* Release: the next holder sees whose share it is, and what this one has stored. Then, before the
     * fence in ss_wake, we are gone: whoever is woken leaves the turn to no reader. */
    atomic_store_explicit(&engine->turn, 0, memory_order_release);
    atomic_fetch_sub_explicit(&engine->readers, 1, memory_order_seq_cst);
    ss_wake(engine);
}
