/* Early results: what becomes final, and what is told of rows meanwhile.
 *
 * Whoever asks for early rows is told of each that is there, once, and again where one has gone or is final. */
#include "jobs/early_final.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "containers/keyed.h"
#include "containers/keyed_changes.h"
#include "containers/timer_heap.h"
#include "containers/timer_words.h"
#include "core/emit.h"
#include "core/engine.h"
#include "core/redo_log.h"
#include "core/state_words.h"
#include "core/statistics.h"
#include "core/transaction.h"
#include "core/turn.h"
#include "core/version.h"
#include "core/worker.h"
#include "jobs/early.h"
#include "jobs/queue.h"
#include "jobs/queue_work.h"
#include "processor/figure.h"
#include "specstream.h"
#include "specstream_containers.h"

static bool append(struct ss_words *words, const uint64_t *from, uint64_t count)
{
    if (words->count + count > words->capacity) {
        uint64_t capacity = 2 * (words->count + count);
        uint64_t *grown = realloc(words->at, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        words->at = grown;
        words->capacity = capacity;
    }
    if (count > 0)
        memcpy(words->at + words->count, from, count * sizeof *from);
    words->count += count;
    return true;
}

/* Which row of its event, to its sink, the one at `row` is; those from `rows` on are told. */
static uint64_t place_of(const struct ss_engine *engine, const struct ss_words *words,
                         const uint64_t *rows, const uint64_t *row)
{
    uint64_t width = engine->config.emit_words;
    const uint64_t *told = words->at + words->count;
    for (const uint64_t *before = row; before != rows;) {
        before -= width;
        told -= SS_KEY_WORDS + width;
        if (before[0] != row[0])
            break;
        if (!engine->config.emits_to_sinks || before[1] == row[1])
            return told[SS_KEY_WORDS - 1] + 1;
    }
    return 0;
}

/* Rows that are to be told, each behind its key: of events of these spans, in their order, or of a timer. */
static bool append_rows(struct ss_engine *engine, struct ss_words *words, const uint64_t *rows,
                        uint64_t row_words, const struct ss_span *span,
                        const struct ss_firing *firing)
{
    uint64_t width = engine->config.emit_words, before = words->count;
    for (const uint64_t *row = rows; row < rows + row_words; row += width) {
        int64_t whose = (int64_t)row[0];
        struct ss_key key;
        if (firing != NULL) {
            key = (struct ss_key){firing->time, 0, firing->number};
            whose = INT64_MIN + firing->number;
        } else {
            while (whose < span->first || whose >= span->last)
                span++;
            key = ss_key_at(span->segment, whose);
        }
        const uint64_t told[SS_KEY_WORDS + 1] = {(uint64_t)key.timestamp, (uint64_t)key.source,
                                                 (uint64_t)key.sequence,
                                                 place_of(engine, words, rows, row), (uint64_t)whose};
        if (!append(words, told, SS_KEY_WORDS + 1) || !append(words, row + 1, width - 1)) {
            words->count = before;
            return false;
        }
    }
    return true;
}

static bool append_applied(struct ss_engine *engine, struct ss_words *words,
                           const struct ss_applied *applied)
{
    return append_rows(engine, words, applied->rows, applied->row_words, applied->spans,
                       applied->firing);
}

static void finish_changes(struct ss_engine *engine, const struct ss_applied *applied)
{
    uint64_t *final = engine->config.state;
    for (uint64_t i = 0, end; i < applied->change_count; i = end) {
        const struct ss_container *of = &engine->keyed[applied->changes[i].container].of;
        end = ss_end_of_group(applied, i);
        for (uint64_t at = i; at < end; at++)
            if (applied->changes[at].kind == SS_INSERTED)
                /* Release, here and below: as when they were applied. */
                __atomic_store_n(&final[applied->changes[at].entry + SS_STAMP_WORD],
                                 applied->given[at].stamp, __ATOMIC_RELEASE);
        ss_word_write(&final[of->header + SS_HEADER_USED],
                      ss_word_read(&engine->state[of->header + SS_HEADER_USED]));
        __atomic_store_n(&final[of->header + SS_HEADER_CHANGES], applied->given[i].changes,
                         __ATOMIC_RELEASE);
    }
}

/* In the final image. */
static void finish_time(struct ss_engine *engine, const struct ss_applied *applied)
{
    if (!ss_has_timers(engine) || ss_timers_clock_word(engine) == NULL || applied->raised ||
        applied->of_time)
        return;
    /* With its sign turned: so the time of a new state, whose words are 0, is the least. */
    uint64_t *clock = &engine->config.state[ss_timers_clock_word(engine) - engine->state];
    uint64_t time = (uint64_t)applied->last.timestamp ^ UINT64_C(1) << 63;
    if (time > ss_word_read(clock))
        ss_word_write(clock, time);
}

bool ss_applied_finish(struct ss_worker *worker, struct ss_applied *applied)
{
    struct ss_engine *engine = worker->engine;
    struct ss_early *early = engine->early;
    struct ss_transaction transaction = ss_applied_seen(applied);
    assert(ss_turn_is_held(engine)); /* invariant 1 */
    uint64_t width = engine->config.emit_words;
    bool has_fired = applied->firing != NULL && applied->row_words > 0;
    if (!ss_rows_reserve(engine, applied->row_words) ||
        (has_fired && !ss_timers_keep_firing(engine, applied->firing)) ||
        (early->tells &&
         !append_applied(engine, applied->told ? &early->kept : &early->finals, applied)))
        return false;
    uint64_t row = engine->row_words;
    ss_rows_append(engine, applied->rows, applied->row_words);
    for (; has_fired && row < engine->row_words; row += width)
        engine->rows[row] = (uint64_t)(INT64_MIN + applied->firing->number);
    ss_version_begin(engine);
    ss_redo_publish(engine->config.state, &transaction);
    finish_changes(engine, applied);
    finish_time(engine, applied);
    ss_version_end(engine);
    ss_applied_give_entries(engine, applied, false);
    ss_count(&worker->statistics.timers, applied->firing != NULL);
    if (!applied->of_time) {
        early->has_final = true;
        early->final = applied->last;
    }
    ss_apply(worker, applied->raised ? 0 : applied->events);
    return true;
}

void ss_early_copy_words(struct ss_engine *engine, const struct ss_undo *first,
                         const struct ss_undo *end)
{
    for (const struct ss_undo *undo = first; undo != end; undo++)
        ss_word_write(&engine->config.state[undo->address - engine->state],
                      ss_word_read(undo->address));
}

void ss_early_copy(struct ss_worker *worker, const struct ss_undo *end, uint64_t first,
                   const struct ss_span *spans, const struct ss_firing *firing)
{
    struct ss_engine *engine = worker->engine;
    struct ss_early *early = engine->early;
    ss_early_copy_words(engine, worker->run.undo_base, end);
    for (uint64_t i = 0; i < engine->config.container_count; i++) {
        uint64_t used = engine->keyed[i].of.header + SS_HEADER_USED;
        if (engine->keyed[i].of.kind == SS_KEYED)
            ss_word_write(&engine->config.state[used], ss_word_read(&engine->state[used]));
    }
    if (early->tells && !append_rows(engine, &early->finals, engine->rows + first,
                                     engine->row_words - first, spans, firing))
        early->lost = true;
}

/* ---- what is told ---- */

void ss_early_void(struct ss_engine *engine, const struct ss_applied *applied)
{
    struct ss_early *early = engine->early;
    if (applied->told && !append_applied(engine, &early->voids, applied))
        early->lost = true;
}

/* What was revoked waits for long, behind an event that is held back: meanwhile it is not there. */
static void withdraw_revoked(struct ss_engine *engine)
{
    struct ss_early *early = engine->early;
    for (uint64_t i = early->applied; i < early->count; i++) {
        ss_early_void(engine, ss_applied_at(early, i));
        ss_applied_at(early, i)->told = false;
    }
    if (early->applied < early->untold)
        early->untold = early->applied;
}

struct ss_early_told ss_engine_tell_early(struct ss_engine *engine)
{
    struct ss_early *early = engine->early;
    struct ss_early_told told = {0};
    uint64_t width = SS_KEY_WORDS + engine->config.emit_words;
    assert(ss_turn_is_held(engine));
    if (early == NULL)
        return told;
    uint64_t standing = ss_queue_standing(engine, &told.is_settled);
    if (told.is_settled)
        withdraw_revoked(engine);
    told.is_whole = standing == early->count || told.is_settled;
    early->tells = true;
    early->news.count = 0;
    for (uint64_t i = early->untold; told.is_whole && i < early->applied; i++) {
        const struct ss_applied *applied = ss_applied_at(early, i);
        if (!applied->told && !append_applied(engine, &early->news, applied))
            told.no_memory = true; /* until the next time */
    }
    told.no_memory = told.no_memory || early->lost;
    told.edition = early->edition;
    told.voids = early->voids.at;
    told.void_count = early->voids.count / width;
    told.kept = early->kept.at;
    told.kept_count = early->kept.count / width;
    told.finals = early->finals.at;
    told.final_count = early->finals.count / width;
    told.news = early->news.at;
    told.news_count = early->news.count / width;
    told.has_final = early->has_final;
    told.has_applied = early->has_final;
    told.final_to = told.applied_to = early->final;
    for (uint64_t i = standing; i-- > 0;)
        if (!ss_applied_at(early, i)->of_time) {
            told.applied_to = ss_applied_at(early, i)->last;
            told.has_applied = true;
            break;
        }
    return told;
}

void ss_engine_told_early(struct ss_engine *engine, bool news)
{
    struct ss_early *early = engine->early;
    assert(ss_turn_is_held(engine));
    if (early == NULL)
        return;
    for (uint64_t i = early->untold; news && i < early->applied; i++)
        ss_applied_at(early, i)->told = true;
    if (news)
        early->untold = early->applied;
    early->edition++;
    early->voids.count = early->kept.count = early->finals.count = early->news.count = 0;
}

struct ss_early_figures ss_engine_early_figures(struct ss_engine *engine)
{
    struct ss_early_figures figures = {0};
    /* The mutex keeps the job where it is. */
    pthread_mutex_lock(&engine->queue->mutex);
    if (engine->early != NULL) {
        figures = engine->early->figures;
        figures.transactions = engine->early->applied;
        figures.bytes = engine->early->bytes;
        figures.held = engine->early->budget.held;
    }
    pthread_mutex_unlock(&engine->queue->mutex);
    return figures;
}
