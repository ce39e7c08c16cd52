/* The containers of an engine. */
#ifndef SPECSTREAM_CONTAINERS_INTERNAL_H
#define SPECSTREAM_CONTAINERS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct ss_ahead;
struct ss_config;
struct ss_engine;

/* Copies their description; false: out of memory. */
bool ss_containers_open(struct ss_engine *engine);
void ss_containers_close(struct ss_engine *engine);
/* A worker's part of what is looked up ahead. */
struct ss_ahead *ss_containers_ahead(const struct ss_engine *engine, uint64_t worker);
/* A job begins: its mode and horizon are known. */
void ss_containers_start(struct ss_engine *engine);
/* Where the state has been changed by its owner, and no job runs: what the engine knows about it
 * is made anew. False: out of memory. */
bool ss_containers_renew(struct ss_engine *engine);
uint64_t ss_containers_bytes(const struct ss_config *config);
/* What has grown since. */
uint64_t ss_containers_grown(const struct ss_engine *engine);

#endif
