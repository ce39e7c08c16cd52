/* A string table without memory: each request for some fails in turn, and nothing is half done.
 *
 * What had no memory says so and has changed nothing: the table's strings are those of before, and the same call
 * is right when there is memory again. A thread that cannot be had costs nothing but time. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"
#include "specstream_strings.h"

enum { ROWS = 20000, FEW = 300, LENGTH = 20 };
static const uint64_t secret[] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};

static const char *scenario;
static int64_t asked, refused; /* requests so far; the one that fails, counted from 1, or 0 */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("request %" PRId64 " of %s: line %d: %s", refused, scenario, __LINE__,            \
                 #condition);                                                                      \
    } while (0)

static bool was_refused;

static bool is_refused(void)
{
    bool is_one = ++asked == refused;
    was_refused = was_refused || is_one;
    return is_one;
}

/* The linker puts these in the place of what the runtime calls: see the Makefile. Threads of the runtime's
 * do not ask for memory. */
#define WRAP(result, failure, name, parameters, arguments)                                         \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        return is_refused() ? failure : __real_##name arguments;                                   \
    }
WRAP(void *, NULL, malloc, (size_t bytes), (bytes))
WRAP(void *, NULL, calloc, (size_t count, size_t size), (count, size))
WRAP(void *, NULL, realloc, (void *memory, size_t bytes), (memory, bytes))
WRAP(int, 12, posix_memalign, (void **memory, size_t alignment, size_t bytes),
     (memory, alignment, bytes))
WRAP(int, 11, pthread_create,
     (pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument),
     (thread, attributes, body, argument))

static char data[ROWS * LENGTH + 1];
static int64_t offsets[ROWS + 1], codes[ROWS], again[ROWS];
static struct ss_string_table *table;
static struct ss_string_column few, all;

/* The strings are the first so many, each with its code. */
static void holds(int64_t count)
{
    struct ss_texts texts;
    int64_t before = refused;
    refused = 0;
    CHECK(ss_strings_count(table) == count);
    CHECK(ss_strings_since(table, 0, &texts));
    CHECK(texts.count == count && memcmp(texts.data, data, (uint64_t)(count * LENGTH)) == 0);
    ss_texts_free(&texts);
    CHECK(ss_strings_texts(table, codes, ROWS, &texts));
    CHECK(texts.null_count == ROWS - count);
    CHECK(memcmp(texts.data, data, (uint64_t)(count * LENGTH)) == 0);
    ss_texts_free(&texts);
    refused = before;
}

static bool adds(void)
{
    struct ss_texts told;
    int32_t status = ss_strings_add(table, &all, 1, again, &told);
    CHECK(status == SS_STRINGS_DONE || status == SS_STRINGS_NO_MEMORY);
    if (status == SS_STRINGS_DONE)
        CHECK(memcmp(again, codes, sizeof codes) == 0);
    holds(status == SS_STRINGS_DONE ? ROWS : FEW);
    return status == SS_STRINGS_DONE;
}

static bool sweeps(void)
{
    int64_t *dropped;
    struct ss_texts told;
    int64_t before = refused;
    refused = 0;
    CHECK(ss_strings_add(table, &all, 1, again, &told) == SS_STRINGS_DONE);
    refused = before;
    asked = 0;
    ss_strings_sweep_begin(table);
    ss_strings_mark(table, codes, FEW);
    int64_t count = ss_strings_sweep_end(table, -1, &dropped);
    CHECK(count == -1 || count == ROWS - FEW);
    CHECK((dropped == NULL) == (count == -1));
    ss_codes_free(dropped);
    holds(count == -1 ? ROWS : FEW);
    return count != -1;
}

static bool looks_up(void)
{
    struct ss_texts texts;
    bool found = ss_strings_texts(table, codes, ROWS, &texts);
    if (found)
        ss_texts_free(&texts);
    bool is_since = ss_strings_since(table, 0, &texts);
    if (is_since)
        ss_texts_free(&texts);
    bool is_coded = ss_string_codes(&few, 2, again);
    holds(FEW);
    return found && is_since && is_coded;
}

static bool reports(void)
{
    struct ss_texts told;
    int64_t code;
    int32_t status = ss_strings_add_one(table, "\xff", 1, &code, &told);
    CHECK(status == SS_STRINGS_NO_UTF8 || status == SS_STRINGS_NO_MEMORY);
    if (status == SS_STRINGS_NO_UTF8)
        ss_texts_free(&told);
    holds(FEW);
    return status == SS_STRINGS_NO_UTF8;
}

/* Each request fails in turn, until there are no more. */
static void run(const char *name, bool (*does)(void), bool may_need_threads)
{
    int64_t failures = 0;
    scenario = name;
    for (int64_t number = 1;; number++) {
        patience_note(NULL, "%s, request %" PRId64, name, number);
        struct ss_texts told;
        refused = 0;
        table = ss_strings_open(secret);
        CHECK(table != NULL);
        CHECK(ss_strings_add(table, &few, 1, again, &told) == SS_STRINGS_DONE);
        asked = 0;
        was_refused = false;
        refused = number;
        bool was_done = does();
        bool is_over = !was_refused;
        refused = 0;
        /* Nothing stands in the way of doing it now. */
        if (!was_done) {
            failures++;
            CHECK(does());
        }
        ss_strings_close(table);
        if (is_over)
            break;
        CHECK(!was_done || may_need_threads);
    }
    CHECK(failures > 0);
    printf("%s: each of %" PRId64 " requests failed\n", name, failures);
}

int main(void)
{
    patience_start(300);
    for (int i = 0; i < ROWS; i++) {
        sprintf(data + LENGTH * i, "%020d", i);
        offsets[i + 1] = LENGTH * (i + 1);
    }
    all = (struct ss_string_column){SS_OFFSETS_64, 0, ROWS, NULL, offsets, (uint8_t *)data, NULL};
    few = all;
    few.count = FEW;
    scenario = "opening";
    CHECK(ss_string_codes(&all, 1, codes));
    for (refused = 1;; refused++) {
        asked = 0;
        table = ss_strings_open(secret);
        if (table != NULL)
            break;
    }
    CHECK(refused > 3);
    ss_strings_close(table);
    run("adding", adds, true);
    run("sweeping", sweeps, false);
    run("looking up", looks_up, false);
    run("reporting", reports, false);
    patience_stop();
    return 0;
}
