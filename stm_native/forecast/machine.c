/* See machine.h.
 *
 * Each thread of the runtime is a core, and a coroutine here. The one whose clock is least runs, until
 * that of another is less by a part of what a line takes from core to core: so accesses of all cores
 * come in the order of their times, as far as cores can tell, and a run can be repeated. What an access costs depends on who has touched its cache line last: a line is
 * where it was written, or where it was read since. Caches are without end; what a core does beside
 * accesses is in the cost of an access. A core that waits for a line goes on looking ahead, as far as the
 * next fence or locked instruction: lines that it reads right behind come in bulk.
 *
 * A core that waits for a mutex or a condition sleeps, and is woken by who gives it; its clock goes on
 * from there, plus the time that waking takes. */
#define MACHINE_ITSELF
#include "machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* Where the memory of the cores lies, and the most of it, of which only what is touched is there. */
static char *const memory_begin = (char *)0x300000000000;
static const size_t memory_bytes = (size_t)1 << 38;

/* A core waits for so many lines at one time. */
enum { FILLS = 10 };
enum { STACK_BYTES = 1 << 20, LINE_SHIFT = 6, TABLE_BITS = 20 };
/* A bit for each core. */
enum { READER_WORDS = (MACHINE_CORES + 63) / 64 };

enum state { RUNNABLE, ASLEEP, OVER };

struct core {
    jmp_buf at;
    ucontext_t begin;
    bool has_begun;
    enum state state;
    int64_t clock; /* picoseconds */
    int64_t waited;  /* of these, for lines and asleep */
    int64_t arrived; /* until then a line that it reads may have been on its way with the one before */
    int64_t alarm; /* asleep: until then; INT64_MAX: until somebody wakes it */
    bool timed_out;
    const void *waits_for; /* a mutex, a condition, or a core */
    int pauses; /* one behind the other */
    int64_t spent;  /* awake, picoseconds */
    int64_t paused; /* of these until it paused last */
    void *(*entry)(void *);
    void *argument;
    void *stack;
    void *own; /* what pthread_setspecific has set */
    struct { /* lines that were asked for ahead, and when they are there */
        uint64_t tag;
        int64_t at;
    } fills[FILLS];
    int64_t filled_at; /* all of them */
};

struct line {
    uint64_t tag;
    int32_t writer; /* the core that has it as it wrote it, and that nobody has read since; -1: none */
    uint64_t readers[READER_WORDS]; /* the cores that have it as it was written last */
};

static struct core cores[MACHINE_CORES];
static int64_t ready[MACHINE_CORES]; /* when each can go on; of the running one an old time */
static int count, current;
static struct costs cost;
static int64_t limit; /* the running core's clock must not pass it */
static int64_t ahead; /* of the next one it may be by so much */
static struct line *table;
static int64_t transfers, accesses;
static struct machine_times times; /* picoseconds */
static jmp_buf outside;
static char *memory_end;

/* ---- who runs ---- */

static void set_ready(const struct core *core)
{
    int64_t *at = &ready[core - cores];
    if (core->state == RUNNABLE)
        *at = core->clock;
    else
        *at = core->state == ASLEEP ? core->alarm : INT64_MAX;
}

static void switch_core(void);

static void run_entry(void)
{
    struct core *core = &cores[current];
    core->entry(core->argument);
    core->state = OVER;
    for (int i = 0; i < count; i++)
        if (cores[i].state == ASLEEP && cores[i].waits_for == core) {
            cores[i].state = RUNNABLE;
            cores[i].clock = cores[i].clock > core->clock ? cores[i].clock : core->clock;
            set_ready(&cores[i]);
        }
    if (current == 0)
        _longjmp(outside, 1);
    switch_core();
}

/* The core that is the earliest; its clock must not pass that of the next by more than `ahead`. */
static int earliest(void)
{
    int found = -1;
    int64_t least = INT64_MAX, second = INT64_MAX;
    set_ready(&cores[current]);
    for (int i = 0; i < count; i++) {
        int64_t at = ready[i];
        if (at < least) {
            second = least;
            least = at;
            found = i;
        } else if (at < second) {
            second = at;
        }
    }
    if (found < 0) {
        fprintf(stderr, "machine: all cores are asleep for ever\n");
        abort();
    }
    limit = second < INT64_MAX - ahead ? second + ahead : INT64_MAX;
    return found;
}

static void go_on(struct core *core)
{
    current = (int)(core - cores);
    if (core->has_begun)
        _longjmp(core->at, 1);
    core->has_begun = true;
    setcontext(&core->begin);
}

/* Goes on with the core that is the earliest. */
static void switch_core(void)
{
    struct core *from = &cores[current], *to = &cores[earliest()];
    if (to->state == ASLEEP) {
        to->state = RUNNABLE;
        to->timed_out = true;
        to->clock = to->alarm;
    }
    if (to != from && (from->state == OVER || _setjmp(from->at) == 0))
        go_on(to);
}

static inline void spend(int64_t picoseconds)
{
    if (table == NULL)
        return; /* outside of the machine */
    struct core *core = &cores[current];
    core->clock += picoseconds;
    core->spent += picoseconds;
    times.awake += picoseconds;
    if (core->clock > limit)
        switch_core();
}

/* ---- cache lines ---- */

static struct line *line_of(uintptr_t address)
{
    uint64_t tag = (address >> LINE_SHIFT) + 1;
    uint64_t at = (tag * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - TABLE_BITS);
    for (;; at = (at + 1) & ((1 << TABLE_BITS) - 1)) {
        if (table[at].tag == tag)
            return &table[at];
        if (table[at].tag == 0) {
            table[at].tag = tag;
            table[at].writer = -1;
            return &table[at];
        }
    }
}

static uint64_t bit_of(int core)
{
    return UINT64_C(1) << (core & 63);
}

static bool has(const struct line *line, int core)
{
    return (line->readers[core >> 6] & bit_of(core)) != 0;
}

static bool has_any_but(const struct line *line, int core)
{
    uint64_t others = line->readers[core >> 6] & ~bit_of(core);
    for (int word = 0; word < READER_WORDS; word++)
        others |= word == core >> 6 ? 0 : line->readers[word];
    return others != 0;
}

/* Until a line is there that was asked for ahead. */
static int64_t rest_of(const struct line *line)
{
    const struct core *core = &cores[current];
    if (core->filled_at > core->clock)
        for (int i = 0; i < FILLS; i++)
            if (core->fills[i].tag == line->tag && core->fills[i].at > core->clock)
                return core->fills[i].at - core->clock;
    return 0;
}

enum access { READ, WRITE, PREFETCH };

static int64_t cost_of(uintptr_t address, enum access access)
{
    bool writes = access == WRITE;
    struct line *line = line_of(address);
    int me = current;
    accesses++;
    if (writes) {
        if (line->writer == me)
            return cost.access;
        bool is_ours = line->writer < 0 && !has_any_but(line, me);
        line->writer = me;
        memset(line->readers, 0, sizeof line->readers);
        if (is_ours)
            return cost.access;
        transfers++;
        return cost.access + cost.store;
    }
    if (line->writer == me || has(line, me))
        return cost.access + rest_of(line);
    struct core *core = &cores[me];
    int64_t taken = cost.shared;
    if (line->writer >= 0)
        taken = core->clock < core->arrived && access == READ ? cost.bulk : cost.transfer;
    if (access == READ)
        core->arrived = core->clock + taken + cost.transfer;
    transfers += line->writer >= 0;
    if (line->writer >= 0) {
        line->readers[line->writer >> 6] |= bit_of(line->writer);
        line->writer = -1;
    }
    line->readers[me >> 6] |= bit_of(me);
    return cost.access + taken;
}

static inline void touch(const volatile void *address, enum access access)
{
    if (table == NULL)
        return;
    int64_t taken = cost_of((uintptr_t)address, access);
    cores[current].waited += taken - cost.access;
    if (access == WRITE)
        cores[current].pauses = 0;
    spend(taken);
}

/* A locked instruction needs the line at once. */
static inline void touch_atomic(const volatile void *address)
{
    if (table == NULL)
        return;
    uintptr_t at = (uintptr_t)address;
    int64_t before = transfers;
    int64_t taken = cost_of(at, WRITE) + (transfers > before ? cost.transfer - cost.store : 0);
    cores[current].waited += taken - cost.access;
    cores[current].arrived = 0;
    cores[current].pauses = 0;
    spend(taken + cost.atomic);
}

/* ---- threads, mutexes, conditions ---- */

struct machine_mutex {
    int32_t owner; /* the core plus 1; 0: nobody */
    int32_t waiting;
};
_Static_assert(sizeof(struct machine_mutex) <= sizeof(pthread_mutex_t), "it lies in there");

/* Its number; -1: there is no other core, or no memory for its stack. */
static int add(void *(*entry)(void *), void *argument, int64_t clock)
{
    void *stack = MAP_FAILED;
    if (count < MACHINE_CORES)
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return -1;
    struct core *core = &cores[count];
    *core = (struct core){.entry = entry, .argument = argument, .clock = clock, .alarm = INT64_MAX};
    core->stack = stack;
    getcontext(&core->begin);
    core->begin.uc_stack.ss_sp = core->stack;
    core->begin.uc_stack.ss_size = STACK_BYTES;
    core->begin.uc_link = NULL;
    makecontext(&core->begin, run_entry, 0);
    set_ready(core);
    return count++;
}

int machine_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*entry)(void *),
                   void *argument)
{
    (void)attributes;
    int number = add(entry, argument, cores[current].clock);
    if (number < 0)
        return EAGAIN;
    *thread = (pthread_t)number;
    limit = cores[current].clock;
    return 0;
}

static void sleep_until(const void *waits_for, int64_t alarm)
{
    struct core *core = &cores[current];
    core->waits_for = waits_for;
    core->alarm = alarm;
    core->timed_out = false;
    core->state = ASLEEP;
    int64_t since = core->clock;
    switch_core();
    core->waited += core->clock - since;
    core->waits_for = NULL;
}

int machine_join(pthread_t thread, void **result)
{
    struct core *other = &cores[(int)thread];
    if (result != NULL)
        *result = NULL;
    while (other->state != OVER)
        sleep_until(other, INT64_MAX);
    return 0;
}

/* Makes those that wait for something go on: at most so many, the one that has waited longest first.
 * The core that runs goes on meanwhile: it may be about to sleep itself, as nobody may see half. */
static void rouse(const void *what, int most)
{
    while (most-- > 0) {
        int found = -1;
        for (int i = 0; i < count; i++)
            if (cores[i].state == ASLEEP && cores[i].waits_for == what &&
                (found < 0 || cores[i].clock < cores[found].clock))
                found = i;
        if (found < 0)
            return;
        struct core *core = &cores[found];
        int64_t at = cores[current].clock + cost.wake;
        core->clock = core->clock > at ? core->clock : at;
        core->state = RUNNABLE;
        core->waits_for = NULL;
        set_ready(core);
        limit = core->clock + ahead < limit ? core->clock + ahead : limit;
        cores[current].clock += cost.call;
    }
}

static void wake(const void *what, int most)
{
    rouse(what, most);
    spend(0);
}

static int lock_until(pthread_mutex_t *mutex, int64_t alarm)
{
    struct machine_mutex *own = (struct machine_mutex *)mutex;
    touch_atomic(own);
    while (own->owner != 0) {
        own->waiting++;
        cores[current].clock += cost.sleep;
        sleep_until(own, alarm);
        own->waiting--;
        if (cores[current].timed_out && own->owner != 0)
            return ETIMEDOUT;
        touch_atomic(own);
    }
    own->owner = current + 1;
    return 0;
}

int machine_mutex_lock(pthread_mutex_t *mutex)
{
    return lock_until(mutex, INT64_MAX);
}

static int64_t picoseconds(const struct timespec *time)
{
    return ((int64_t)time->tv_sec * 1000000000 + time->tv_nsec) * 1000;
}

int machine_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    return lock_until(mutex, picoseconds(until));
}

int machine_mutex_trylock(pthread_mutex_t *mutex)
{
    struct machine_mutex *own = (struct machine_mutex *)mutex;
    touch_atomic(own);
    if (own->owner != 0)
        return EBUSY;
    own->owner = current + 1;
    return 0;
}

int machine_mutex_unlock(pthread_mutex_t *mutex)
{
    struct machine_mutex *own = (struct machine_mutex *)mutex;
    touch_atomic(own);
    own->owner = 0;
    if (own->waiting > 0)
        wake(own, 1);
    return 0;
}

int machine_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    int64_t alarm = until == NULL ? INT64_MAX : picoseconds(until);
    struct core *core = &cores[current];
    core->clock += cost.sleep;
    struct machine_mutex *own = (struct machine_mutex *)mutex;
    own->owner = 0;
    if (own->waiting > 0)
        rouse(own, 1);
    alarm = alarm > core->clock ? alarm : core->clock;
    sleep_until(condition, alarm);
    bool timed_out = core->timed_out;
    machine_mutex_lock(mutex);
    return timed_out ? ETIMEDOUT : 0;
}

int machine_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return machine_cond_timedwait(condition, mutex, NULL);
}

int machine_cond_broadcast(pthread_cond_t *condition)
{
    wake(condition, MACHINE_CORES);
    return 0;
}

int machine_cond_signal(pthread_cond_t *condition)
{
    wake(condition, 1);
    return 0;
}

int machine_set(pthread_key_t key, const void *value)
{
    (void)key;
    cores[current].own = (void *)(uintptr_t)value;
    return 0;
}

void *machine_get(pthread_key_t key)
{
    (void)key;
    return cores[current].own;
}

int machine_affinity(void)
{
    return 0;
}

int machine_sigaction(int signal, const struct sigaction *action, struct sigaction *before)
{
    (void)signal, (void)action;
    if (before != NULL)
        *before = (struct sigaction){.sa_handler = SIG_DFL};
    return 0;
}

int machine_sigaltstack(const stack_t *stack, stack_t *before)
{
    (void)stack;
    if (before != NULL)
        *before = (stack_t){.ss_flags = SS_DISABLE};
    return 0;
}

int machine_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    (void)how, (void)set;
    if (before != NULL)
        sigemptyset(before);
    return 0;
}

/* ---- memory ---- */

/* Its size stands before each piece, as the system's allocator has it; nothing is used twice. */
void *machine_aligned_alloc(size_t alignment, size_t bytes)
{
    alignment = alignment < 16 ? 16 : alignment;
    uintptr_t at = ((uintptr_t)memory_end + 16 + alignment - 1) / alignment * alignment;
    if (at + bytes > (uintptr_t)memory_begin + memory_bytes)
        return NULL;
    memory_end = (char *)at + bytes;
    ((size_t *)at)[-1] = bytes;
    return (void *)at;
}

void *machine_malloc(size_t bytes)
{
    return machine_aligned_alloc(16, bytes);
}

void *machine_calloc(size_t count, size_t bytes)
{
    return machine_aligned_alloc(16, count * bytes); /* it is the system's, and 0 */
}

void *machine_realloc(void *before, size_t bytes)
{
    void *grown = machine_malloc(bytes);
    if (grown != NULL && before != NULL) {
        size_t had = ((size_t *)before)[-1];
        memcpy(grown, before, had < bytes ? had : bytes);
    }
    return grown;
}

int machine_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    *memory = machine_aligned_alloc(alignment, bytes);
    return *memory == NULL ? ENOMEM : 0;
}

void machine_free(void *memory)
{
    (void)memory;
}

/* ---- time ---- */

int64_t machine_now(void)
{
    return cores[current].clock / 1000;
}

int machine_clock(clockid_t clock, struct timespec *now)
{
    (void)clock;
    spend(20000); /* what the system's takes */
    now->tv_sec = (time_t)(machine_now() / 1000000000);
    now->tv_nsec = (long)(machine_now() % 1000000000);
    return 0;
}

/* Of an operator. */
static void work(int64_t picoseconds)
{
    cores[current].pauses = 0;
    times.working += picoseconds;
    spend(picoseconds);
}

void machine_work(int64_t nanoseconds)
{
    work(nanoseconds * 1000);
}

int64_t machine_busy(void)
{
    return cores[current].clock - cores[current].waited;
}

void machine_work_until(int64_t busy)
{
    int64_t left = busy - machine_busy();
    if (left > 0)
        work(left);
}

void machine_touch(const volatile void *address, bool writes)
{
    touch(address, writes ? WRITE : READ);
}

int machine_sleep(const struct timespec *time, struct timespec *rest)
{
    (void)rest;
    sleep_until(time, cores[current].clock + cost.sleep + picoseconds(time));
    return 0;
}

int machine_yield(void)
{
    spend(cost.call);
    return 0;
}

/* A core that has waited for long looks less often, or a wait would take long to compute. */
void machine_pause(void)
{
    enum { AS_OFTEN = 16, MOST = 8 };
    struct core *core = &cores[current];
    int longer = 1 + core->pauses / AS_OFTEN;
    int64_t taken = cost.pause * (longer < MOST ? longer : MOST);
    /* What lies between two pauses is looking for work. */
    times.looking += taken + (core->pauses++ > 0 ? core->spent - core->paused : 0);
    core->paused = core->spent + taken;
    spend(taken);
}

void machine_prefetch(const volatile void *address)
{
    if (table == NULL)
        return;
    struct core *core = &cores[current];
    int64_t taken = cost_of((uintptr_t)address, PREFETCH) - cost.access;
    int earliest = 0;
    for (int i = 1; i < FILLS; i++)
        if (core->fills[i].at < core->fills[earliest].at)
            earliest = i;
    if (taken > 0) {
        if (core->fills[earliest].at > core->clock)
            core->clock = core->fills[earliest].at;
        core->fills[earliest].tag = line_of((uintptr_t)address)->tag;
        core->fills[earliest].at = core->clock + taken;
        if (core->filled_at < core->fills[earliest].at)
            core->filled_at = core->fills[earliest].at;
    }
    spend(cost.access);
}

int64_t machine_transfers(void)
{
    return transfers;
}

int64_t machine_accesses(void)
{
    return accesses;
}

struct machine_times machine_times(void)
{
    return (struct machine_times){times.working / 1000, times.looking / 1000, times.awake / 1000};
}

static void *main_entry(void *argument)
{
    void **both = argument;
    ((void (*)(void *))(uintptr_t)both[0])(both[1]);
    return NULL;
}

int machine_run(const struct costs *costs, void (*main)(void *), void *argument)
{
    void *both[2] = {(void *)(uintptr_t)main, argument};
    cost = *costs;
    ahead = cost.transfer / 4;
    table = calloc(1 << TABLE_BITS, sizeof *table);
    memory_end = mmap(memory_begin, memory_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    const bool has_memory = memory_end == memory_begin;
    count = current = 0;
    transfers = accesses = 0;
    times = (struct machine_times){0};
    limit = INT64_MAX;
    const bool runs = table != NULL && has_memory && add(main_entry, both, 1000000) == 0;
    if (runs) {
        if (_setjmp(outside) == 0) {
            cores[0].has_begun = true;
            setcontext(&cores[0].begin);
        }
    }
    for (int i = 0; i < count; i++)
        munmap(cores[i].stack, STACK_BYTES);
    if (has_memory)
        munmap(memory_begin, memory_bytes);
    free(table);
    table = NULL;
    return runs ? 0 : -1;
}

/* ---- what the compiler calls ---- */

void __tsan_init(void) {}
void __tsan_func_entry(void *from) { (void)from; }
void __tsan_func_exit(void) {}

#define PLAIN(bytes)                                                                               \
    void __tsan_read##bytes(void *at) { touch(at, READ); }                                        \
    void __tsan_write##bytes(void *at) { touch(at, WRITE); }                                        \
    void __tsan_unaligned_read##bytes(void *at) { touch(at, READ); }                              \
    void __tsan_unaligned_write##bytes(void *at) { touch(at, WRITE); }                              \
    void __tsan_volatile_read##bytes(void *at) { touch(at, READ); }                               \
    void __tsan_volatile_write##bytes(void *at) { touch(at, WRITE); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *at, unsigned long bytes)
{
    for (unsigned long i = 0; i < bytes; i += 64)
        touch((char *)at + i, READ);
}

void __tsan_write_range(void *at, unsigned long bytes)
{
    for (unsigned long i = 0; i < bytes; i += 64)
        touch((char *)at + i, WRITE);
}

/* The access itself comes after its time: what others do until then is there. */
#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                            \
    {                                                                                              \
        (void)order;                                                                               \
        touch(at, READ);                                                                           \
        return *at;                                                                                \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                     \
    {                                                                                              \
        if (order == __ATOMIC_SEQ_CST)                                                             \
            touch_atomic(at);                                                                      \
        else                                                                                       \
            touch(at, WRITE);                                                                       \
        *at = value;                                                                               \
    }                                                                                              \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)                  \
    {                                                                                              \
        (void)order;                                                                               \
        touch_atomic(at);                                                                          \
        type before = *at;                                                                         \
        *at = value;                                                                               \
        return before;                                                                             \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,           \
                                                      type value, int order, int failure)          \
    {                                                                                              \
        (void)order, (void)failure;                                                                \
        touch_atomic(at);                                                                          \
        if (*at == *expected) {                                                                    \
            *at = value;                                                                           \
            return 1;                                                                              \
        }                                                                                          \
        *expected = *at;                                                                           \
        return 0;                                                                                  \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected, type value, \
                                                    int order, int failure)                        \
    {                                                                                              \
        return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, order, failure); \
    }                                                                                              \
    FETCH(bits, type, add, +)                                                                      \
    FETCH(bits, type, sub, -)                                                                      \
    FETCH(bits, type, and, &)                                                                      \
    FETCH(bits, type, or, |)                                                                       \
    FETCH(bits, type, xor, ^)
#define FETCH(bits, type, name, sign)                                                              \
    type __tsan_atomic##bits##_fetch_##name(volatile type *at, type value, int order)              \
    {                                                                                              \
        (void)order;                                                                               \
        touch_atomic(at);                                                                          \
        type before = *at;                                                                         \
        *at = (type)(before sign value);                                                           \
        return before;                                                                             \
    }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order)
{
    if (order == __ATOMIC_SEQ_CST)
        spend(cost.atomic);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
