/* Records as objects, while an event runs: what compiled code knows of them.
 *
 * An operator's records behave as Python's objects do: two names of one record see the same, and a
 * record that is taken out of a container remains what it is. In the state a record is its words and
 * nothing else. So each that an event touches by a name has an *object* in the worker's arena. An
 * object that *forwards* to a place, the first word of a record in the state, has its words there, and
 * compiled code loads and stores them like all others of the state. Any other has words of its own, as
 * they would lie in the state.
 *
 * A place of which a name is given away gets one object (ss_object_of). Before a place is overwritten or
 * removed, the objects that forward to it leave it (ss_object_leave); what is stored there
 * afterwards forwards to it (ss_object_settle). When elements of a sequence move, their objects go
 * with them (ss_object_moved). See src/containers/object.c. */
#ifndef SPECSTREAM_OBJECTS_H
#define SPECSTREAM_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

struct ss_run;

struct ss_object {
    uint64_t forward; /* the place where its words are; SS_NOWHERE: `words` */
    uint64_t also;    /* another place that it was stored to, and goes to when it leaves the first */
    struct ss_object *same; /* it has met this one, which is the same record: see ss_object_resolved */
    uint64_t kinds; /* of its words, as of an element in specstream_local.h */
    struct ss_run *run;
    struct ss_object *next; /* of those that forward, with the same hash */
    struct ss_object *next_also; /* likewise of those with a second place */
    uint64_t words[];
};

/* A record that is nowhere in the state; the caller gives it all its words. NULL: as of lists. */
struct ss_object *ss_object_new(struct ss_run *run, uint64_t kinds);
/* Where the words of an object are, if `same` is not NULL. */
struct ss_object *ss_object_resolved(struct ss_object *object);
/* The one that forwards to a place, made where there is none. NULL: likewise. */
struct ss_object *ss_object_of(struct ss_run *run, uint64_t kinds, uint64_t place);
/* The record at a place is about to be overwritten or removed: the objects that have to take its
 * words along, in a chain by `next`. They forward no longer, and in `words[0]` each has the place where
 * these still are. Those that have a second place forward to that from now on. */
struct ss_object *ss_object_leave(struct ss_run *run, uint64_t place);
/* Likewise all records in the words [first, first + words). */
struct ss_object *ss_objects_leave(struct ss_run *run, uint64_t first, uint64_t words);
/* The words of an object have been copied to a place, which is not where it forwards. False: no
 * memory. */
bool ss_object_settle(struct ss_object *object, uint64_t place);
/* The record at a place now lies at another, where none is any more. */
void ss_object_moved(struct ss_run *run, uint64_t from, uint64_t to);
/* A word of a record, under every variant; the run may end. */
uint64_t ss_object_word(const struct ss_object *object, uint64_t at);

#endif
