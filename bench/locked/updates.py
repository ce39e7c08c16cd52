"""A few updates of a large state under a lock, and under one for each of many parts."""

import specstream as ss

MULTIPLIER = 6364136223846793005


def updates(words: int, count: int) -> ss.Operator:
    """As :func:`bench.workloads.updates`."""

    class Words(ss.State):
        locks = ss.locks(1)
        values = ss.array(int, words)

    @ss.operator(
        state=Words,
        event={"value": int, "work": int},
        emits={"busy": int},
        name="updates_locked",
    )
    def process(state, event, emit):
        busy = event.value
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        at = event.value
        with state.locks[0]:
            for _ in range(count):
                at = (at ^ (at >> 32)) * MULTIPLIER
                state.values[(at >> 32) % words] += 1
        emit(busy)

    return process


def updates_fine(words: int, count: int, locks: int = 4096) -> ss.Operator:
    """One lock for each of ``locks`` parts of the state, held for one update.

    One for each word would take eight times the memory of the words.
    """

    class Words(ss.State):
        values = ss.array(int, words)
        locks_of_parts = ss.locks(locks)

    @ss.operator(
        state=Words,
        event={"value": int, "work": int},
        emits={"busy": int},
        name="updates_fine",
    )
    def process(state, event, emit):
        busy = event.value
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        at = event.value
        for _ in range(count):
            at = (at ^ (at >> 32)) * MULTIPLIER
            word = (at >> 32) % words
            with state.locks_of_parts[word % locks]:
                state.values[word] += 1
        emit(busy)

    return process
