/* Dicts and sets of the state. */
#include "specstream.h"
#include "specstream_containers.h"

uint64_t ss_keyed_find(struct ss_run *run, uint64_t container, const uint64_t *key)
{
    (void)run, (void)container, (void)key;
    return SS_NOWHERE;
}
uint64_t ss_keyed_insert(struct ss_run *run, uint64_t container, const uint64_t *key)
{
    return ss_keyed_find(run, container, key);
}
void ss_keyed_remove(struct ss_run *run, uint64_t container, uint64_t entry)
{
    (void)run, (void)container, (void)entry;
}
void ss_keyed_clear(struct ss_run *run, uint64_t container)
{
    (void)run, (void)container;
}
uint64_t ss_keyed_count(struct ss_run *run, uint64_t container)
{
    (void)run, (void)container;
    return 0;
}
struct ss_keyed_walk *ss_keyed_entries(struct ss_run *run, uint64_t container)
{
    (void)run, (void)container;
    return NULL;
}
uint64_t ss_keyed_changes(struct ss_run *run, uint64_t container)
{
    return ss_keyed_count(run, container);
}
uint64_t ss_keyed_key(struct ss_run *run, uint64_t container, uint64_t entry, uint64_t at)
{
    (void)run, (void)container, (void)entry, (void)at;
    return 0;
}
uint64_t ss_engine_find(struct ss_engine *engine, uint64_t container, const uint64_t *key)
{
    (void)engine, (void)container, (void)key;
    return SS_NOWHERE;
}
