/* The virtual machine by itself: what everything takes there, worked out by hand.
 *
 * Only what a test says costs anything, so that the times of a few cores can be added up. */
#include "machine.h"

#include <errno.h>
#include <stdio.h>

#include "dice.h"
#include "patience.h"

enum { NS = 1000 /* picoseconds */, THREADS = MACHINE_CORES - 1 };

/* Of sleeping and waking, and of cache lines. */
static const struct costs of_sleep = {.call = 10 * NS, .wake = 100 * NS, .sleep = 20 * NS};
static const struct costs of_lines = {.access = 1 * NS,
                                      .transfer = 60 * NS,
                                      .bulk = 10 * NS,
                                      .shared = 8 * NS,
                                      .store = 2 * NS,
                                      .atomic = 6 * NS};

static const char *scenario;
static int64_t began;
static int64_t ends[THREADS]; /* of what each thread has done, since it all began */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("%s: %s:%d: %s", scenario, __FILE__, __LINE__, #condition);                       \
    } while (0)

static int64_t since(void)
{
    return machine_now() - began;
}

static void run_case(void *body)
{
    began = machine_now();
    (*(void (**)(void))body)();
}

static void on_machine(const char *name, struct costs costs, void (*body)(void))
{
    scenario = name;
    patience_note(NULL, "%s", name);
    CHECK(machine_run(&costs, run_case, &body) == 0);
}

static pthread_t started(void *(*body)(void *), intptr_t argument)
{
    pthread_t thread = 0;
    CHECK(pthread_create(&thread, NULL, body, (void *)argument) == 0);
    return thread;
}

static void ended(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- cores ---- */

static void *work_for(void *nanoseconds)
{
    machine_work((intptr_t)nanoseconds);
    return NULL;
}

static void beside_each_other(void)
{
    pthread_t one = started(work_for, 300), other = started(work_for, 500);
    ended(one);
    CHECK(since() == 300);
    ended(other);
    CHECK(since() == 500);
    machine_work(200);
    CHECK(since() == 700);
    CHECK(machine_times().working == 1000 && machine_times().awake == 1000);
}

static void one_after_the_other(void)
{
    ended(started(work_for, 300));
    ended(started(work_for, 500));
    CHECK(since() == 800);
}

static void *nothing(void *unused)
{
    return unused;
}

static void as_many_as_there_are(void)
{
    pthread_t threads[THREADS], more;
    for (int i = 0; i < THREADS; i++)
        threads[i] = started(work_for, i);
    CHECK(pthread_create(&more, NULL, nothing, NULL) == EAGAIN);
    for (int i = 0; i < THREADS; i++)
        ended(threads[i]);
    CHECK(since() == THREADS - 1);
}

/* ---- sleeping and waking ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static bool is_there;

static void *hold_for_300(void *number)
{
    pthread_mutex_lock(&mutex);
    machine_work(300);
    pthread_mutex_unlock(&mutex);
    ends[(intptr_t)number] = since();
    return NULL;
}

/* The first holds it from 0 to 300; the second one wakes at 400 and holds it until 700. */
static void a_mutex(void)
{
    pthread_t first = started(hold_for_300, 0), second = started(hold_for_300, 1);
    ended(first);
    ended(second);
    CHECK(ends[0] == 300 + 10 && ends[1] == 300 + 100 + 300);
}

static void *wait_for_it(void *number)
{
    pthread_mutex_lock(&mutex);
    while (!is_there)
        pthread_cond_wait(&woken, &mutex);
    pthread_mutex_unlock(&mutex);
    machine_work(50);
    ends[(intptr_t)number] = since();
    return NULL;
}

static void a_condition(void)
{
    is_there = false;
    pthread_t sleeper = started(wait_for_it, 0);
    machine_work(500);
    is_there = true;
    pthread_cond_signal(&woken);
    CHECK(since() == 500 + 10);
    ended(sleeper);
    CHECK(ends[0] == 500 + 100 + 50 && since() == ends[0]);
}

/* Who wakes several calls for each, and they wake one after the other. */
static void all_that_wait(void)
{
    is_there = false;
    pthread_t sleepers[3];
    for (int i = 0; i < 3; i++)
        sleepers[i] = started(wait_for_it, i);
    machine_work(500);
    is_there = true;
    pthread_cond_broadcast(&woken);
    CHECK(since() == 530);
    for (int i = 0; i < 3; i++) {
        ended(sleepers[i]);
        CHECK(ends[i] == 500 + 10 * i + 100 + 50);
    }
}

static void *wait_twice(void *unused)
{
    int64_t at = began + 700;
    struct timespec until = {at / 1000000000, at % 1000000000};
    pthread_mutex_lock(&mutex);
    CHECK(pthread_cond_timedwait(&woken, &mutex, &until) == 0);
    ends[0] = since();
    CHECK(pthread_cond_timedwait(&woken, &mutex, &until) == ETIMEDOUT);
    ends[1] = since();
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Woken before its alarm, at 600, and by it. */
static void an_alarm(void)
{
    pthread_t sleeper = started(wait_twice, 0);
    machine_work(500);
    pthread_cond_signal(&woken);
    ended(sleeper);
    CHECK(ends[0] == 500 + 100 && ends[1] == 700);
    pthread_cond_signal(&woken);
    CHECK(since() == 700); /* nobody is called */
}

/* A core that finds nothing for long looks less often. */
static void pauses(void)
{
    for (int i = 0; i < 16; i++)
        machine_pause();
    CHECK(since() == 16 * 14);
    machine_pause();
    CHECK(since() == 18 * 14);
    machine_work(100);
    machine_pause();
    CHECK(since() == 19 * 14 + 100);
    CHECK(machine_times().looking == 19 * 14 && machine_times().working == 100);
}

/* ---- cache lines ---- */

static _Alignas(64) char lines[4][64];

static int64_t taken_by(int line, bool writes)
{
    int64_t before = machine_now();
    machine_touch(lines[line], writes);
    return machine_now() - before;
}

static void *write_two(void *unused)
{
    CHECK(taken_by(0, true) == 1 && taken_by(1, true) == 1);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Another core has written the first two lines, long ago. */
static void let_another_write(void)
{
    ended(started(write_two, 0));
    machine_work(1000);
}

static void lines_of_others(void)
{
    let_another_write();
    int64_t busy = machine_busy(), transfers = machine_transfers();
    int64_t accesses = machine_accesses();
    CHECK(taken_by(0, false) == 1 + 60);
    CHECK(taken_by(1, false) == 1 + 10); /* they are on their way together */
    CHECK(taken_by(0, false) == 1);
    CHECK(taken_by(2, false) == 1 + 8); /* nobody has written it */
    CHECK(taken_by(0, true) == 1 + 2);  /* the other one has it as well */
    CHECK(taken_by(0, true) == 1);
    CHECK(machine_busy() - busy == 6 * NS); /* all else was waiting */
    CHECK(machine_transfers() - transfers == 3 && machine_accesses() - accesses == 6);
}

static void a_locked_instruction(void)
{
    let_another_write();
    int64_t before = machine_now();
    pthread_mutex_lock(&mutex);
    CHECK(machine_now() - before == 1 + 60 + 6); /* the line is needed at once */
    before = machine_now();
    pthread_mutex_unlock(&mutex);
    CHECK(machine_now() - before == 1 + 6);
}

static void lines_fetched_ahead(void)
{
    let_another_write();
    int64_t before = machine_now();
    machine_prefetch(lines[0]);
    machine_work(30);
    machine_touch(lines[0], false); /* it is there 60 behind the beginning of the fetch */
    CHECK(machine_now() - before == 60 + 1);
    machine_prefetch(lines[1]);
    machine_work(100);
    CHECK(taken_by(1, false) == 1);
}

/* While a core waits for a line it does not work. */
static void waiting_and_working(void)
{
    let_another_write();
    int64_t before = machine_now(), busy = machine_busy();
    machine_touch(lines[0], false);
    machine_work_until(busy + 100 * NS);
    CHECK(machine_now() - before == 60 + 100);
    machine_work_until(busy + 100 * NS);
    CHECK(machine_now() - before == 60 + 100);
}

static void *read_twice(void *number)
{
    ends[(intptr_t)number] = taken_by(0, false) + taken_by(0, false);
    return NULL;
}

/* The first one that reads a line takes it from who has written it, and the others from memory. */
static void of_all_cores(void)
{
    pthread_t threads[THREADS];
    CHECK(taken_by(0, true) == 1);
    for (int i = 0; i < THREADS; i++)
        threads[i] = started(read_twice, i);
    for (int i = 0; i < THREADS; i++) {
        ended(threads[i]);
        CHECK(ends[i] == (i == 0 ? 60 : 8) + 2);
    }
    CHECK(taken_by(0, true) == 1 + 2);
}

/* ---- again ---- */

static int64_t first_time[3];

static void *at_random(void *number)
{
    struct dice own = dice_for(7, (uint64_t)(intptr_t)number);
    for (int i = 0; i < 200; i++) {
        machine_work((int64_t)below(&own, 100));
        machine_touch(lines[below(&own, 4)], chance(&own, 3));
        if (chance(&own, 4)) {
            pthread_mutex_lock(&mutex);
            machine_work((int64_t)below(&own, 20));
            pthread_mutex_unlock(&mutex);
        }
    }
    return NULL;
}

static void the_same_again(void)
{
    pthread_t threads[5];
    for (int i = 0; i < 5; i++)
        threads[i] = started(at_random, i);
    for (int i = 0; i < 5; i++)
        ended(threads[i]);
    const int64_t found[] = {since(), machine_transfers(), machine_accesses()};
    for (int i = 0; i < 3; i++) {
        CHECK(found[i] > 0 && (first_time[i] == 0 || first_time[i] == found[i]));
        first_time[i] = found[i];
    }
}

int main(void)
{
    const struct costs none = {0};
    struct costs all = of_lines;
    all.call = of_sleep.call;
    all.wake = of_sleep.wake;
    all.sleep = of_sleep.sleep;
    patience_start(60);
    on_machine("cores work beside each other", none, beside_each_other);
    on_machine("one core works on one thing at a time", none, one_after_the_other);
    on_machine("no more threads than cores", none, as_many_as_there_are);
    on_machine("a mutex is waited for asleep", of_sleep, a_mutex);
    on_machine("waking takes its time", of_sleep, a_condition);
    on_machine("all that wait are woken", of_sleep, all_that_wait);
    on_machine("an alarm wakes", of_sleep, an_alarm);
    on_machine("a waiting loop", (struct costs){.pause = 14 * NS}, pauses);
    on_machine("lines of other cores", of_lines, lines_of_others);
    on_machine("a locked instruction", of_lines, a_locked_instruction);
    on_machine("lines are fetched ahead", of_lines, lines_fetched_ahead);
    on_machine("who waits does not work", of_lines, waiting_and_working);
    on_machine("lines of all cores", of_lines, of_all_cores);
    for (int time = 0; time < 2; time++)
        on_machine("the same again", all, the_same_again);
    patience_stop();
    puts("machine: passed");
    return 0;
}
