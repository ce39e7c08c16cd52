/* The life of containers beside that of their engine.
 *
 * What the engine knows beyond the words, the indices and which entries are free, follows from
 * the words. It is made of them when the owner of the state says that he has changed it, or
 * before the first job: by whoever needs it next, the job that begins or a look at a key. */
#include "containers/containers.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "containers/keyed.h"
#include "containers/keyed_entries.h"
#include "containers/keyed_index.h"
#include "containers/timer_heap.h"
#include "core/engine.h"
#include "core/protocol.h"
#include "core/state_words.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/worker.h"
#include "processor/figure.h"
#include "processor/processor.h"
#include "specstream.h"
#include "specstream_containers.h"

/* A multiple of the alignment. */
static uint64_t parts_bytes(const struct ss_config *config)
{
    return config->threads * sizeof(struct ss_keyed_part);
}

static uint64_t ahead_bytes(const struct ss_config *config)
{
    return config->threads * config->container_count * sizeof(struct ss_ahead);
}

static bool open_one(struct ss_engine *engine, struct ss_keyed *keyed)
{
    pthread_mutex_init(&keyed->operation, NULL);
    pthread_mutex_init(&keyed->mutex, NULL);
    keyed->parts = aligned_alloc(SS_CACHE_LINE, parts_bytes(&engine->config));
    if (keyed->parts == NULL)
        return false;
    memset(keyed->parts, 0, parts_bytes(&engine->config));
    return true;
}

bool ss_containers_open(struct ss_engine *engine)
{
    const struct ss_config *config = &engine->config;
    pthread_mutex_init(&engine->containers_mutex, NULL);
    uint64_t bytes = config->container_count * sizeof(struct ss_keyed);
    if (bytes == 0)
        return true;
    engine->keyed = aligned_alloc(SS_CACHE_LINE, bytes);
    if (engine->keyed == NULL)
        return false;
    memset(engine->keyed, 0, bytes);
    engine->ahead = aligned_alloc(SS_CACHE_LINE, ahead_bytes(config));
    bool complete = engine->ahead != NULL;
    if (complete)
        memset(engine->ahead, 0, ahead_bytes(config));
    for (uint64_t i = 0; i < config->container_count; i++) {
        engine->keyed[i].of = config->containers[i];
        complete = open_one(engine, &engine->keyed[i]) && complete;
    }
    engine->config.containers = NULL; /* the caller's need only last for the call */
    /* Relaxed: nobody else knows the engine yet. */
    atomic_store_explicit(&engine->containers_stale, 1, memory_order_relaxed);
    return complete;
}

void ss_containers_close(struct ss_engine *engine)
{
    for (uint64_t i = 0; engine->keyed != NULL && i < engine->config.container_count; i++) {
        struct ss_keyed *keyed = &engine->keyed[i];
        ss_index_close(keyed);
        free(keyed->parts);
        pthread_mutex_destroy(&keyed->operation);
        pthread_mutex_destroy(&keyed->mutex);
    }
    free(engine->keyed);
    free(engine->ahead);
    pthread_mutex_destroy(&engine->containers_mutex);
}

struct ss_ahead *ss_containers_ahead(const struct ss_engine *engine, uint64_t worker)
{
    return engine->config.container_count == 0
               ? NULL
               : &engine->ahead[worker * engine->config.container_count];
}

void ss_containers_start(struct ss_engine *engine)
{
    enum ss_mode mode = engine->job.mode;
    for (uint64_t i = 0; i < engine->config.container_count; i++) {
        struct ss_keyed *keyed = &engine->keyed[i];
        keyed->locked = mode == SS_MODE_LOCKED;
        keyed->undone = mode != SS_MODE_LOCKED && mode != SS_MODE_LOG_FREE;
        /* Without a horizon a timer may come before a head that has run. */
        keyed->eager = keyed->undone && (engine->job.horizon > 0 || mode == SS_MODE_SPECULATE) &&
                       engine->protocol->variant == SS_EAGER;
    }
}

/* With the mutex. */
static bool renew(struct ss_engine *engine)
{
    uint64_t last_stamp = engine->stamp;
    /* What runs of the last job have taken and not given back is nobody's: the words say what is
     * free. */
    for (uint64_t i = 0; i < engine->ring_size; i++)
        engine->ring[i].change_count = 0;
    for (uint64_t i = 0; i < engine->config.container_count; i++) {
        struct ss_keyed *keyed = &engine->keyed[i];
        if (keyed->of.kind != SS_KEYED)
            continue;
        uint64_t changes =
            ss_word_read(&engine->state[keyed->of.header + SS_HEADER_CHANGES]);
        last_stamp = changes > last_stamp ? changes : last_stamp;
        uint64_t there = ss_entries_renew(engine, keyed, &last_stamp);
        if (!ss_index_renew(engine, keyed, there))
            return false;
    }
    engine->stamp = last_stamp;
    return ss_timers_renew(engine);
}

bool ss_containers_renew(struct ss_engine *engine)
{
    bool done = true;
    /* Acquire: who sees that it was done sees what was made. */
    if (atomic_load_explicit(&engine->containers_stale, memory_order_acquire) == 0)
        return true;
    pthread_mutex_lock(&engine->containers_mutex);
    if (atomic_load_explicit(&engine->containers_stale, memory_order_relaxed) != 0) {
        done = renew(engine);
        if (done)
            atomic_store_explicit(&engine->containers_stale, 0, memory_order_release);
    }
    pthread_mutex_unlock(&engine->containers_mutex);
    return done;
}

/* One entry after the other. */
static uint64_t search(const uint64_t *state, const struct ss_keyed *keyed, const uint64_t *key)
{
    const struct ss_container *of = &keyed->of;
    uint64_t used = ss_word_read(&state[of->header + SS_HEADER_USED]);
    for (uint64_t i = 0; i < used; i++) {
        uint64_t entry = of->region + i * of->entry_words;
        if (ss_word_read(&state[entry]) != 0 && ss_key_is(&state[entry], key, of->key_words))
            return entry;
    }
    return SS_NOWHERE;
}

static uint64_t find(struct ss_engine *engine, const uint64_t *state, uint64_t container,
                     const uint64_t *key)
{
    const struct ss_keyed *keyed = &engine->keyed[container];
    uint64_t words = keyed->of.key_words;
    if (!ss_containers_renew(engine))
        return search(state, keyed, key); /* no memory for an index */
    /* Dekker with retire, in keyed_index.c: we are counted before we see the index. */
    atomic_fetch_add_explicit(&engine->lookers, 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    struct ss_found found =
        ss_index_find(keyed, state, key, words, ss_hash_key(key, words));
    /* Release: who sees that we have gone may free the index. */
    atomic_fetch_sub_explicit(&engine->lookers, 1, memory_order_release);
    return found.first;
}

uint64_t ss_engine_find(struct ss_engine *engine, uint64_t container, const uint64_t *key)
{
    return find(engine, engine->config.state, container, key);
}

uint64_t ss_engine_find_applied(struct ss_engine *engine, uint64_t container, const uint64_t *key)
{
    assert(ss_turn_is_held(engine));
    return find(engine, engine->state, container, key);
}

uint64_t ss_containers_bytes(const struct ss_config *config)
{
    return config->container_count * (sizeof(struct ss_keyed) + parts_bytes(config)) +
           ahead_bytes(config);
}

uint64_t ss_containers_grown(const struct ss_engine *engine)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < engine->config.container_count; i++)
        bytes += ss_counted(&engine->keyed[i].index_bytes);
    for (uint64_t i = 0; i < engine->config.threads; i++)
        bytes += ss_counted(&engine->workers[i].touched.capacity) * sizeof(uint64_t);
    return bytes;
}
