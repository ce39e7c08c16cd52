"""Listing 4.2 of Brito 2010 under a lock: the busy loop runs outside of it."""

import specstream as ss
from bench.locked.lock import GLOBAL, acquire, release

MULTIPLIER = 6364136223846793005


def listing_4_2(size: int) -> ss.Operator:
    """As :func:`bench.workloads.listing_4_2`."""

    class Local(ss.State):
        local_state = ss.array(int, size)

    @ss.operator(
        state=Local,
        event={"value": int, "work": int},
        emits={"result": int, "busy": int},
        name=f"listing_4_2_locked_{size}",
    )
    def process(state, event, emit):
        entry = event.value % size
        acquire(GLOBAL)
        result = state.local_state[entry]
        state.local_state[entry] = result + 1
        release(GLOBAL)
        busy = event.value
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        emit(result, busy)

    return process
