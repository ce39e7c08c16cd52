#include "patience.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/engine.h"
#include "core/worker.h"
#include "processor/now.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool over;
static int64_t patience;
static int64_t noted_at;
static struct ss_engine *working;
static char note[4096];

/* Only atomics, for the engine may still be at work: enough to see who waits for what. */
static void describe_engine(struct ss_engine *engine)
{
    static const char *const names[] = {"free", "running", "finished", "in place",
                                         "waiting", "doubtful", "?",        "?"};
    int64_t head = atomic_load(&engine->next_commit);
    int64_t start = atomic_load(&engine->next_start);
    fprintf(stderr,
            "  engine: head %lld, next to start %lld, turn %u, over %u, stop %u, readers %u, "
            "sleepers %u\n",
            (long long)head, (long long)start, atomic_load(&engine->turn),
            atomic_load(&engine->over), atomic_load(&engine->stop), atomic_load(&engine->readers),
            atomic_load(&engine->sleepers));
    for (int64_t number = head; number < start && number < head + 80; number++) {
        uint64_t slot = (uint64_t)number & (engine->ring_size - 1);
        uint64_t status = atomic_load(&engine->ring[slot].status);
        fprintf(stderr, "  transaction %lld: slot says %lld, %s\n", (long long)number,
                (long long)(status >> 3), names[status & 7]);
    }
    for (uint64_t i = 0; i < engine->config.threads; i++) {
        struct ss_run *run = &engine->workers[i].run;
        fprintf(stderr, "  worker %llu: kill %u, yield %u\n", (unsigned long long)i,
                __atomic_load_n(&run->kill, __ATOMIC_RELAXED),
                __atomic_load_n(&run->yield, __ATOMIC_RELAXED));
    }
}

static void *watch(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&mutex);
    while (!over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&ended, &mutex, &until);
        if (over || ss_now() - noted_at < patience * 1000000000)
            continue;
        fprintf(stderr, "\nFAILED: no progress for %lld seconds: the engine hangs\n%s\n",
                (long long)patience, note);
        if (working != NULL)
            describe_engine(working);
        /* A core says where each thread stands. */
        abort();
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

void patience_start(int64_t patience_seconds)
{
    patience = patience_seconds;
    noted_at = ss_now();
    if (pthread_create(&thread, NULL, watch, NULL) != 0) {
        fputs("stress: cannot start a thread\n", stderr);
        exit(1);
    }
}

void patience_stop(void)
{
    pthread_mutex_lock(&mutex);
    over = true;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}

void patience_note(struct ss_engine *engine, const char *format, ...)
{
    va_list arguments;
    pthread_mutex_lock(&mutex);
    working = engine;
    noted_at = ss_now();
    va_start(arguments, format);
    vsnprintf(note, sizeof note, format, arguments);
    va_end(arguments);
    pthread_mutex_unlock(&mutex);
}

void fail(const char *format, ...)
{
    va_list arguments;
    /* Never given back: one failure is reported, the first. */
    pthread_mutex_lock(&mutex);
    fputs("\nFAILED: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n%s\n", note);
    fflush(NULL);
    _exit(1);
}
