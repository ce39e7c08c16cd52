"""A few updates of a large state under a lock, or under one for each of many parts.

Of the latter each is held for one update. A lock for each word would take eight times the memory of
the words.
"""

import specstream as ss
from specstream.tuning.machine import MULTIPLIER

PARTS = 4096


def updates(words: int, count: int, parts: int = 1) -> ss.Operator:
    """As :func:`bench.workloads.updates`; the words share ``parts`` locks evenly."""
    fine = parts > 1

    class Words(ss.State):
        locks = ss.locks(parts)
        values = ss.array(int, words)

    @ss.operator(
        state=Words,
        event={"value": int, "work": int},
        emits={"busy": int},
        name="updates_fine" if fine else "updates_locked",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        busy = event.value
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        at = event.value
        if not fine:
            state.locks[0].acquire()
        for _ in range(count):
            at = (at ^ (at >> 32)) * MULTIPLIER
            word = (at >> 32) % words
            if fine:
                state.locks[word % parts].acquire()
            state.values[word] += 1
            if fine:
                state.locks[word % parts].release()
        if not fine:
            state.locks[0].release()
        emit(busy)

    return process
