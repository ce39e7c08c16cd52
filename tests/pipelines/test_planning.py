"""What many vertices cost before they run: counted in steps, not in seconds."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba.core import event as numba_events
from support.pipelines.graphs import events_of
from support.pipelines.vertices import ROW, SOURCE

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


# ---- one code for all vertices of an operator ----


class Point(ss.Record):
    x: int
    y: float


class Everything(ss.State):
    grid = ss.array(np.int16, (2, 3), fill=1)
    table = ss.dict(int, int, limit=60)
    points = ss.dict((str, int), Point, limit=60)
    seen = ss.set(str, limit=60)
    lasting = ss.dict(int, float, limit=60, expire_after=7)
    values = ss.list(float, limit=60)
    places = ss.list(Point, limit=60)
    recent = ss.deque(int, maxlen=3)
    queue = ss.priority_queue(int, limit=60)
    total = ss.scalar(float)
    work = ss.scratch(int, 4)


def use_all(state, x, y, s):
    state.grid[x % 2, x % 3] += x % 5
    state.table[x % 7] = state.table.get(x % 7, 0) + x
    state.points[s, x % 3] = Point(x, y)
    state.points[s, x % 3].x += state.grid[0, 1]
    state.seen.add(s)
    state.lasting[x % 11] = y
    state.values.append(y)
    state.places.append(Point(x, 0.5))
    state.places[-1].y += y
    state.recent.append(x)
    state.queue.push(x % 13)
    state.work[x % 4] = x
    if len(state.values) > 8:
        del state.values[2]
        state.values.insert(1, 0.25)
        state.values.pop(0)
    if len(state.queue) > 5:
        state.total += state.queue.pop()
    if len(state.places) > 4:
        state.places.clear()
    if x % 17 == 3:
        state.points.clear()
        state.table.pop(x % 7)
    for value in state.recent:
        state.total += value
    for key, value in state.table.items():
        state.total += key * value
    return state.total + sum(state.values) + len(state.lasting) + sum(state.work)


def everything(factor: int) -> ss.Operator:
    @ss.operator(state=Everything, event=SOURCE, emits=ROW)
    def everything(state, event, emit):
        total = use_all(state, event.x * factor, event.y, event.s)
        emit(int(total) % 100, total / 8.0, event.s, len(state.seen) if event.x % 2 else None)

    return everything


def small(factor: int) -> ss.Operator:
    @ss.operator(state=Counts, event=X, emits=X)
    def small(state, event, emit):
        key = int(event.x) * factor % 7
        state.counts[key] = state.counts.get(key, 0) + 1
        state.last.append(event.x)
        emit(sum(state.last) % 50.0 + state.counts[key])

    return small


def chain(operator: ss.Operator, count: int, columns: Any) -> ss.Pipeline:
    """So many vertices, one behind the other."""
    p = ss.Pipeline("chain")
    stream = p.source("ticks", columns)
    for number in range(count):
        stream = p.add(operator, stream, name=f"v{number}")
    p.sink("out", stream)
    return p


def compare(p: ss.Pipeline, table: pa.Table) -> None:
    expected = p.run_sequential(table, order_by="time")
    for protocol in ("value", "eager"):
        options: dict[str, Any] = {"threads": 2, "horizon": 4, "chunk": 2, "protocol": protocol}
        with ss.Engine(p, execution="speculate", **options) as engine:
            found = [engine.process(table.slice(at, 20), order_by="time") for at in (0, 20, 40)]
            assert repr(engine.state.to_dict()) == repr(expected.state.to_dict())
        assert pa.concat_tables(found).equals(expected.output)


def programs(p: ss.Pipeline) -> int:
    return len({id(one.program) for one in p.plan.vertices.values()})


@pytest.mark.slow
@pytest.mark.long
def test_vertices_with_containers_share_their_code() -> None:
    p = chain(everything(1), 5, SOURCE)
    # The first reads the source, of whose events Python could compute something.
    assert programs(p) == 2
    table, _ = events_of(p, 60, seed=1)
    compare(p, table.append_column("time", pa.array(range(0, 120, 2))))


def test_many_vertices_with_containers_share_their_code() -> None:
    """Of which those run that have a message."""
    p = chain(small(3), 66, X)
    assert programs(p) == 2
    compare(p, pa.table({"x": [n * 0.75 for n in range(60)], "time": range(60)}))


def test_few_vertices_with_containers_have_code_of_their_own() -> None:
    p = chain(small(5), 4, X)
    assert programs(p) == 4
    compare(p, pa.table({"x": [n * 0.75 for n in range(60)], "time": range(60)}))


def test_more_vertices_of_an_operator_compile_no_more_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", str(tmp_path))

    def compiled(factor: int, count: int) -> int:
        # Whatever several compile once is compiled by the first.
        with (
            numba_events.install_recorder("numba:compile") as recorder,
            ss.Engine(chain(small(factor), count, X), threads=1, horizon=0),
        ):
            pass
        return sum(event.is_start for _, event in recorder.buffer)

    compiled(3, 5)
    few = compiled(5, 5)
    assert few > 0
    assert compiled(7, 20) <= few


# ---- planning ----


def test_planning_four_times_the_vertices_takes_four_times_the_steps() -> None:
    few, many = (lines(lambda count=count: graph(count).program) for count in (100, 400))  # type: ignore[misc]
    assert many < 5 * few
