/* The codes of many strings, on several threads.
 *
 * A thread is created for a part and ends with it: that costs tens of microseconds, as long as hashing some
 * hundred strings takes, so that parts have some thousand. Where a thread cannot be had, the caller does
 * its part. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "specstream_strings.h"
#include "strings/blake2b.h"
#include "strings/string_column.h"

enum { PART = 4096, MOST_THREADS = 64 };

struct part {
    const struct ss_octets *texts;
    uint64_t count;
    uint64_t *codes;
    pthread_t thread;
    bool has_thread;
};

static void *hash_part(void *argument)
{
    struct part *part = argument;
    ss_blake2b_codes(part->texts, part->count, part->codes);
    return NULL;
}

static void hash_texts(const struct ss_octets *texts, uint64_t count, uint64_t threads,
                       uint64_t *codes)
{
    struct part parts[MOST_THREADS];
    uint64_t number = count / PART;
    number = number < threads ? number : threads;
    number = number < MOST_THREADS ? number : MOST_THREADS;
    number = number > 0 ? number : 1;
    /* Signals belong to the interpreter's threads. */
    sigset_t blocked, before;
    if (number > 1) {
        sigfillset(&blocked);
        pthread_sigmask(SIG_SETMASK, &blocked, &before);
    }
    for (uint64_t i = 0; i < number; i++) {
        uint64_t begin = count * i / number, end = count * (i + 1) / number;
        parts[i] = (struct part){.texts = texts + begin, .count = end - begin, .codes = codes + begin};
        if (i > 0)
            parts[i].has_thread =
                pthread_create(&parts[i].thread, NULL, hash_part, &parts[i]) == 0;
    }
    if (number > 1)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (uint64_t i = 0; i < number; i++)
        if (!parts[i].has_thread)
            hash_part(&parts[i]);
    for (uint64_t i = 1; i < number; i++)
        if (parts[i].has_thread)
            pthread_join(parts[i].thread, NULL);
}

bool ss_string_codes(const struct ss_string_column *column, uint64_t threads, int64_t *codes)
{
    uint64_t count = (uint64_t)column->count;
    struct ss_octets *texts = malloc((count + 1) * sizeof *texts);
    if (texts == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++)
        texts[i] = ss_column_text(column, (int64_t)i);
    hash_texts(texts, count, threads, (uint64_t *)codes);
    free(texts);
    return true;
}
