/* Early results: how much of its time an engine spends on taking back.
 *
 * Where it is much, the head stays behind the newest event by as much as most late events are late. */
#include "jobs/early_budget.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/early.h"
#include "processor/now.h"

static const int64_t window_nanoseconds = 100000000;

void ss_budget_note_newest(struct ss_early *early, int64_t timestamp)
{
    struct ss_budget *budget = &early->budget;
    if (!budget->has_newest || timestamp > budget->newest)
        budget->newest = timestamp;
    budget->has_newest = true;
}

void ss_budget_note_late(struct ss_early *early, uint64_t lateness)
{
    struct ss_budget *budget = &early->budget;
    budget->lateness[budget->late++ % (sizeof budget->lateness / sizeof *budget->lateness)] = lateness;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Nine of ten were no later. */
static uint64_t most_lateness(const struct ss_budget *budget)
{
    uint64_t sorted[sizeof budget->lateness / sizeof *budget->lateness];
    uint64_t count = sizeof sorted / sizeof *sorted;
    if (budget->late < count)
        count = budget->late;
    memcpy(sorted, budget->lateness, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    return count == 0 ? 0 : sorted[(9 * count - 1) / 10];
}

void ss_budget_settle(struct ss_early *early)
{
    struct ss_budget *budget = &early->budget;
    int64_t now = ss_now();
    if (budget->since == 0)
        budget->since = now;
    uint64_t window = (uint64_t)(now - budget->since);
    if (window < (uint64_t)window_nanoseconds)
        return;
    uint64_t spent = early->figures.nanoseconds - budget->before;
    if (spent > window / 4) {
        uint64_t lateness = most_lateness(budget);
        budget->held = lateness + 1 > budget->held ? lateness + 1 : budget->held;
    } else if (spent < window / 16) {
        budget->held /= 2;
    }
    budget->since = now;
    budget->before = early->figures.nanoseconds;
}

