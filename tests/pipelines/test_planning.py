"""What many vertices cost before they run: counted in steps, not in seconds."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import specstream as ss


class Mean(ss.State):
    mean = ss.scalar(float)
    work = ss.scratch(int, 2)


class Counts(ss.State):
    counts = ss.dict(int, int, limit=50)
    last = ss.deque(float, maxlen=3)


X = {"x": float}


@ss.operator(state=Mean, event=X, emits=X)
def average(state, event, emit):
    state.mean += 0.5 * (event.x - state.mean)
    emit(state.mean)


@ss.operator(state=Counts, event=X, emits=X)
def counted(state, event, emit):
    state.counts[int(event.x) % 5] = state.counts.get(int(event.x) % 5, 0) + 1
    state.last.append(event.x)
    emit(sum(state.last))


@ss.operator(state=Mean, inputs={"a": X, "b": X}, emits=X)
def both(state, event, emit):
    state.mean += event.a.x + event.b.x
    emit(state.mean)


def graph(count: int) -> ss.Pipeline:
    """So many vertices; each has a sink."""
    p = ss.Pipeline("large")
    streams = [p.source("ticks", X)]
    for number in range(count):
        name, one = f"v{number}", streams[number // 3]
        if number % 3 == 0:
            streams.append(p.add(average, one, name=name))
        elif number % 3 == 1:
            streams.append(p.add(both, a=streams[-1], b=one, name=name))
        else:
            streams.append(p.add(counted, one, name=name))
        p.sink(f"of_{name}", streams[-1])
    return p


def lines(function: Callable[[], Any]) -> int:
    """How many lines of Python run; a loop that goes round is another one."""
    count = 0

    def trace(frame: Any, event: str, of: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def test_planning_four_times_the_vertices_takes_four_times_the_steps() -> None:
    few, many = (lines(lambda count=count: graph(count).program) for count in (100, 400))  # type: ignore[misc]
    assert many < 5 * few
