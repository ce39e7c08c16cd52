"""The sum of the last three values, two ways: added up again, and kept.

``specstream verify examples/verify/average.py:new --against examples/verify/average.py:old`` proves
that both give the same rows for every stream.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs

from __future__ import annotations

import specstream as ss


class Window(ss.State):
    values = ss.deque(int, maxlen=3)


@ss.operator(state=Window, event={"x": int}, emits={"average": int})
def old(state, event, emit):
    state.values.append(event.x)
    emit(sum(state.values) // len(state.values))


class Kept(ss.State):
    values = ss.deque(int, maxlen=3)
    total = ss.scalar(int)


@ss.operator(state=Kept, event={"x": int}, emits={"average": int})
def new(state, event, emit):
    if len(state.values) == 3:
        state.total -= state.values[0]
    state.values.append(event.x)
    state.total += event.x
    emit(state.total // len(state.values))


@ss.operator(state=Kept, event={"x": int}, emits={"average": int})
def wrong(state, event, emit):
    if len(state.values) == 3:
        state.total -= state.values[1]
    state.values.append(event.x)
    state.total += event.x
    emit(state.total // len(state.values))
