/* Lists and deques of the state. */
#include "specstream.h"
#include "specstream_containers.h"

uint64_t ss_sequence_element(struct ss_run *run, uint64_t container, uint64_t at)
{
    (void)run, (void)container, (void)at;
    return SS_NOWHERE;
}
uint64_t ss_sequence_count(struct ss_run *run, uint64_t container)
{
    (void)run, (void)container;
    return 0;
}
uint64_t ss_sequence_insert(struct ss_run *run, uint64_t container, uint64_t at)
{
    return ss_sequence_element(run, container, at);
}
void ss_sequence_delete(struct ss_run *run, uint64_t container, uint64_t first, uint64_t step,
                        uint64_t length)
{
    (void)run, (void)container, (void)first, (void)step, (void)length;
}
