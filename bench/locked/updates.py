"""A few updates of a large state under a lock."""

import specstream as ss
from bench.locked.lock import GLOBAL, acquire, release

MULTIPLIER = 6364136223846793005


def updates(words: int, count: int) -> ss.Operator:
    """As :func:`bench.workloads.updates`."""

    class Words(ss.State):
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
        acquire(GLOBAL)
        for _ in range(count):
            at = (at ^ (at >> 32)) * MULTIPLIER
            state.values[(at >> 32) % words] += 1
        release(GLOBAL)
        emit(busy)

    return process
