"""Listing 4.2 of Brito 2010 under locks: the busy loop runs outside of them."""

import specstream as ss
from specstream.tuning.machine import MULTIPLIER


def listing_4_2(size: int, count: int = 1) -> ss.Operator:
    """As :func:`bench.workloads.listing_4_2`; entries share ``count`` locks evenly; as many as
    entries is the fine-grained version."""

    class Local(ss.State):
        locks = ss.locks(count)
        local_state = ss.array(int, size)

    @ss.operator(
        state=Local,
        event={"value": int, "work": int},
        emits={"result": int, "busy": int},
        name=f"listing_4_2_locked_{size}_{count}",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        entry = event.value % size
        with state.locks[entry % count]:
            result = state.local_state[entry]
            state.local_state[entry] = result + 1
        busy = event.value
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        emit(result, busy)

    return process
