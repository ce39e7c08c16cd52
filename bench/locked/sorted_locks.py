"""An operator whose events say beforehand which keys they touch, under a lock for each of these.

An event takes all of them before it begins, by rising number and each once, and gives them back
when it is over: so no two wait for each other, and each event is seen whole or not at all. Which of
two events comes first is whoever gets the lock first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import specstream as ss
from specstream.declarations.element_types import storage_of
from specstream.declarations.state_layout import Field, Layout


def under_sorted_locks(
    operator: ss.Operator, keys: Callable[[Any, Any], Any], locks: int, most: int
) -> ss.Operator:
    """The operator with all locks of an event around it.

    Args:
        keys: fills the array that it is given with the locks of an event; gives their number.
        locks: how many there are.
        most: locks of an event.
    """
    function = operator.function

    def process(state, event, emit):  # type: ignore[no-untyped-def]
        taken = 0
        for given in range(keys(state.specstream_given, event)):
            lock = state.specstream_given[given]
            at = taken
            while at > 0 and state.specstream_taken[at - 1] > lock:
                at -= 1
            if at == 0 or state.specstream_taken[at - 1] != lock:
                for above in range(taken, at, -1):
                    state.specstream_taken[above] = state.specstream_taken[above - 1]
                state.specstream_taken[at] = lock
                taken += 1
        for at in range(taken):
            state.specstream_locks[state.specstream_taken[at]].acquire()
        function(state, event, emit)
        for at in range(taken):
            state.specstream_locks[state.specstream_taken[at]].release()

    layout, number = operator.layout, storage_of(int, "locks")
    beyond = layout.words("scratch")
    return ss.Operator.of_layout(
        process,
        f"{operator.name}_under_sorted_locks",
        Layout(
            layout.name,
            (
                *layout.fields,
                Field("specstream_given", number, (most,), 0, "scratch", beyond),
                Field("specstream_taken", number, (most,), 0, "scratch", beyond + most),
                Field("specstream_locks", number, (locks,), 0, "locks", layout.words("locks")),
            ),
        ),
        operator.event,
        operator.emits,
    )
