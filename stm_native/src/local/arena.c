/* The memory of an event's own lists, dicts and sets.
 *
 * A frame of compiled code owns nothing, because an event may be left at any point. So whatever an
 * event makes lies in an arena of its worker, which is emptied when the next event begins. Blocks have
 * sizes that are powers of two, and one that is given back, because its list has grown out of it, serves
 * the next that asks for its size. Blocks never move: a list is known by the address of its head.
 *
 * The arena is made of chunks, each twice as large as the one before. The first stays. The others
 * are given back to the system at the end of a job, and, in a job that lasts, one after the other when
 * `patience` events have not needed the largest.
 *
 * What a speculative run takes is limited, as its logs are: on inconsistent data a loop may append for
 * ever. The head may take what there is. */
#include "local/arena.h"

#include <signal.h>
#include <stdlib.h>

#include "processor/fault.h"
#include "processor/figure.h"
#include "processor/processor.h"
#include "specstream.h"
#include "specstream_local.h"

enum { CHUNKS = 48, SIZES = 60, FIRST_CHUNK_BITS = 11, LEAST_BLOCK_BITS = 3 };

static const uint64_t patience = 256;

struct ss_arena {
    uint64_t *top; /* what is free of the chunk in use */
    uint64_t *end;
    uint64_t limit; /* words that a speculative run may take */
    bool bounded;   /* any run, likewise: those on the shadow of boosted fields */
    uint64_t used;  /* number of the chunk in use; CHUNKS: none yet */
    uint64_t largest; /* number of the largest chunk that is there, likewise */
    uint64_t unused;  /* events since the largest one was needed */
    uint64_t bytes;
    uint64_t sizes; /* bit i: given[i] has a block */
    uint64_t *given[SIZES];
    uint64_t *chunks[CHUNKS]; /* NULL: not there */
};

static uint64_t words_of_chunk(uint64_t number)
{
    return (uint64_t)1 << (FIRST_CHUNK_BITS + number);
}

/* The power of two that a block of so many words takes. */
static uint64_t bits_of_block(uint64_t words)
{
    if (words <= (uint64_t)1 << LEAST_BLOCK_BITS)
        return LEAST_BLOCK_BITS;
    return 64 - (uint64_t)__builtin_clzll(words - 1);
}

static bool enter_chunk(struct ss_run *run, uint64_t bits)
{
    struct ss_arena *arena = run->arena;
    uint64_t number = arena->used == CHUNKS ? 0 : arena->used + 1;
    if (bits > FIRST_CHUNK_BITS && number < bits - FIRST_CHUNK_BITS)
        number = bits - FIRST_CHUNK_BITS;
    if (number >= CHUNKS)
        return false;
    if (arena->chunks[number] == NULL) {
        uint64_t bytes = words_of_chunk(number) * sizeof(uint64_t);
        sig_atomic_t was = ss_step_outside();
        arena->chunks[number] = malloc(bytes);
        ss_step_inside(was);
        if (arena->chunks[number] == NULL)
            return false;
        ss_grow(&arena->bytes, arena->bytes + bytes);
        if (arena->largest == CHUNKS || number > arena->largest)
            arena->largest = number;
    }
    arena->used = number;
    arena->top = arena->chunks[number];
    arena->end = arena->top + words_of_chunk(number);
    return true;
}

/* The run that works in this thread, where compiled code says so. */
static _Thread_local struct ss_run *current_run;

void ss_arena_enter(struct ss_run *run)
{
    current_run = run;
}

struct ss_run *ss_arena_run(struct ss_run *run)
{
    return run == NULL ? current_run : run;
}

uint64_t *ss_arena_take(struct ss_run *run, uint64_t words)
{
    struct ss_arena *arena = run->arena;
    uint64_t bits = bits_of_block(words);
    uint64_t size = (uint64_t)1 << (bits & 63);
    bool bounded = run->speculative || arena->bounded;
    if (SS_UNLIKELY(bits >= SIZES || (bounded && run->arena_words + size > arena->limit))) {
        run->verdict = bounded ? SS_LOG_FULL : SS_NO_MEMORY;
        return NULL;
    }
    uint64_t *block = arena->top;
    if (arena->sizes >> bits & 1) {
        block = arena->given[bits];
        arena->given[bits] = (uint64_t *)(uintptr_t)block[0];
        if (arena->given[bits] == NULL)
            arena->sizes &= ~((uint64_t)1 << bits);
    } else if (SS_UNLIKELY((uint64_t)(arena->end - arena->top) < size)) {
        if (!enter_chunk(run, bits)) {
            run->verdict = SS_NO_MEMORY;
            return NULL;
        }
        block = arena->top;
        arena->top += size;
    } else {
        arena->top += size;
    }
    run->arena_words += size;
    run->arena_dirty = 1;
    return block;
}

void ss_arena_give(struct ss_run *run, uint64_t *block, uint64_t words)
{
    struct ss_arena *arena = run->arena;
    uint64_t bits = bits_of_block(words);
    if (block == NULL)
        return;
    block[0] = arena->sizes >> bits & 1 ? (uint64_t)(uintptr_t)arena->given[bits] : 0;
    arena->given[bits] = block;
    arena->sizes |= (uint64_t)1 << bits;
    run->arena_words -= (uint64_t)1 << bits;
}

static void free_chunk(struct ss_arena *arena, uint64_t number)
{
    sig_atomic_t was = ss_step_outside();
    free(arena->chunks[number]);
    ss_step_inside(was);
    if (arena->chunks[number] != NULL)
        ss_grow(&arena->bytes, arena->bytes - words_of_chunk(number) * sizeof(uint64_t));
    arena->chunks[number] = NULL;
    while (arena->largest > 0 && arena->chunks[arena->largest] == NULL)
        arena->largest--;
    if (arena->chunks[arena->largest] == NULL)
        arena->largest = CHUNKS;
}

static void start_over(struct ss_run *run)
{
    struct ss_arena *arena = run->arena;
    arena->sizes = 0;
    arena->used = arena->chunks[0] == NULL ? CHUNKS : 0;
    arena->top = arena->chunks[0];
    arena->end = arena->top == NULL ? NULL : arena->top + words_of_chunk(0);
    run->arena_words = 0;
    run->objects = NULL;
    run->arena_dirty = arena->largest != CHUNKS && arena->largest > 0;
}

void ss_arena_clear(struct ss_run *run)
{
    struct ss_arena *arena = run->arena;
    if (arena->largest == CHUNKS || arena->largest == 0 || arena->used == arena->largest) {
        arena->unused = 0;
    } else if (++arena->unused >= patience) {
        free_chunk(arena, arena->largest);
        arena->unused = 0;
    }
    start_over(run);
}

void ss_arena_shrink(struct ss_run *run)
{
    struct ss_arena *arena = run->arena;
    if (arena == NULL)
        return;
    while (arena->largest != CHUNKS && arena->largest > 0)
        free_chunk(arena, arena->largest);
    start_over(run);
}

bool ss_arena_open(struct ss_run *run, const struct ss_config *config, bool bounded)
{
    if (config->element_limit == 0)
        return true;
    struct ss_arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        return false;
    arena->limit = config->element_limit;
    arena->bounded = bounded;
    arena->used = arena->largest = CHUNKS;
    run->arena = arena;
    run->arena_words = 0;
    run->objects = NULL;
    return true;
}

void ss_arena_close(struct ss_run *run)
{
    for (uint64_t i = 0; run->arena != NULL && i < CHUNKS; i++)
        free(run->arena->chunks[i]);
    free(run->arena);
    run->arena = NULL;
}

uint64_t ss_arena_bytes(const struct ss_run *run)
{
    return run->arena == NULL ? 0 : sizeof *run->arena + ss_counted(&run->arena->bytes);
}

uint64_t ss_arena_most_bytes(const struct ss_config *config)
{
    if (config->element_limit == 0)
        return 0;
    /* Of each chunk but the last less than half may be lost, because the next block does not fit. */
    uint64_t words = words_of_chunk(0);
    while (words < 4 * config->element_limit)
        words *= 2;
    return sizeof(struct ss_arena) + words * sizeof(uint64_t);
}
