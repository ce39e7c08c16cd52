"""The vertices that the graphs are made of, and the same written as one function.

``work`` of an event is the number of rounds of a busy loop. So every graph runs with events that do
next to nothing, too, where answers are compared with plain Python.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

import specstream as ss
from bench.workloads import MULTIPLIER

__all__ = [
    "CHEAP",
    "EDGES",
    "ROW",
    "cheap",
    "cheap_function",
    "cheap_in_turn",
    "count_of_key",
    "drawn_edges",
    "edges_function",
    "free",
    "gate",
    "heavy",
    "heavy_function",
    "hot",
    "hot_function",
    "of_one",
    "of_three",
    "of_two",
    "offset",
    "pair",
    "quiet_of_one",
    "quiet_of_two",
    "rows_of_pair",
    "rows_of_three",
    "rows_of_two",
]

ROW = {"value": int, "work": int}
CELLS = 1 << 16
FEW_CELLS = 1 << 10


def turned(value, rounds):
    """A chain of operations that no optimiser shortens."""
    busy = value
    for _ in range(rounds):
        busy = (busy ^ (busy >> 32)) * MULTIPLIER
    return busy


class Cells(ss.State):
    cells = ss.array(int, CELLS)


def in_cells(state, value, work):
    """What a vertex does: it turns, and counts in one of many cells."""
    value = turned(value, work)
    at = (value >> 20) % CELLS
    state.cells[at] += 1
    return value + state.cells[at]


# ---- random edges ----


def drawn_edges(seed: int = 1, vertices: int = 10, most: int = 3) -> tuple[tuple[int, ...], ...]:
    """Random edges: what each vertex reads, of those before it; 0 is the source. The last one also
    reads those that nobody else reads.

    >>> drawn_edges() == EDGES
    True
    """
    rng = np.random.default_rng(seed)
    edges: list[tuple[int, ...]] = []
    for vertex in range(1, vertices + 1):
        count = min(vertex, int(rng.integers(1, most + 1)))
        edges.append(tuple(sorted(rng.choice(vertex, count, replace=False).tolist())))
    unread = set(range(1, vertices)).difference(*edges)
    edges[-1] = tuple(sorted(unread.union(edges[-1])))
    return tuple(edges)


# As a person would have written the graph down.
EDGES = ((0,), (0, 1), (0,), (0, 1, 3), (4,), (2,), (0, 3), (4, 5, 7), (1, 6), (4, 8, 9))


@ss.operator(state=Cells, event=ROW, emits=ROW)
def of_one(state, event, emit):
    emit(in_cells(state, event.value, event.work), event.work)


@ss.operator(state=Cells, inputs={"a": ROW, "b": ROW}, emits=ROW)
def of_two(state, event, emit):
    emit(in_cells(state, event.a.value + 3 * event.b.value, event.a.work), event.a.work)


@ss.operator(state=Cells, inputs={"a": ROW, "b": ROW, "c": ROW}, emits=ROW)
def of_three(state, event, emit):
    value = event.a.value + 3 * event.b.value + 5 * event.c.value
    emit(in_cells(state, value, event.a.work), event.a.work)


# The same for engines of their own, which get what is joined by hand in one row.


@ss.operator(state=Cells, event={"a": int, "b": int, "work": int}, emits=ROW)
def rows_of_two(state, event, emit):
    emit(in_cells(state, event.a + 3 * event.b, event.work), event.work)


@ss.operator(state=Cells, event={"a": int, "b": int, "c": int, "work": int}, emits=ROW)
def rows_of_three(state, event, emit):
    emit(in_cells(state, event.a + 3 * event.b + 5 * event.c, event.work), event.work)


class CellsOfTen(ss.State):
    cells = ss.array(int, (10, CELLS))


def in_cells_of(state, vertex, value, work):
    value = turned(value, work)
    at = (value >> 20) % CELLS
    state.cells[vertex, at] += 1
    return value + state.cells[vertex, at]


@ss.operator(state=CellsOfTen, event=ROW, emits=ROW)
def edges_function(state, event, emit):
    source, work = event.value, event.work
    v1 = in_cells_of(state, 0, source, work)
    v2 = in_cells_of(state, 1, source + 3 * v1, work)
    v3 = in_cells_of(state, 2, source, work)
    v4 = in_cells_of(state, 3, source + 3 * v1 + 5 * v3, work)
    v5 = in_cells_of(state, 4, v4, work)
    v6 = in_cells_of(state, 5, v2, work)
    v7 = in_cells_of(state, 6, source + 3 * v3, work)
    v8 = in_cells_of(state, 7, v4 + 3 * v5 + 5 * v7, work)
    v9 = in_cells_of(state, 8, v1 + 3 * v6, work)
    emit(in_cells_of(state, 9, v4 + 3 * v8 + 5 * v9, work), work)


# ---- a heavy one between two cheap ones ----


class Offsets(ss.State):
    offsets = ss.array(int, 256, fill=17)


@ss.operator(state=Offsets, event=ROW, emits=ROW)
def offset(state, event, emit):
    emit(event.value ^ state.offsets[event.value % 256], event.work)


class Few(ss.State):
    cells = ss.array(int, FEW_CELLS)


@ss.operator(state=Few, event=ROW, emits={"value": int})
def heavy(state, event, emit):
    value = turned(event.value, event.work)
    at = (value >> 20) % FEW_CELLS
    state.cells[at] += 1
    emit(value + state.cells[at])


class Keys(ss.State):
    counts = ss.array(int, CELLS)


@ss.operator(state=Keys, event={"value": int}, emits={"value": int, "count": int})
def count_of_key(state, event, emit):
    key = (event.value >> 30) % CELLS
    state.counts[key] += 1
    emit(event.value, state.counts[key])


class AllOfHeavy(ss.State):
    offsets = ss.array(int, 256, fill=17)
    cells = ss.array(int, FEW_CELLS)
    counts = ss.array(int, CELLS)


@ss.operator(state=AllOfHeavy, event=ROW, emits={"value": int, "count": int})
def heavy_function(state, event, emit):
    value = turned(event.value ^ state.offsets[event.value % 256], event.work)
    at = (value >> 20) % FEW_CELLS
    state.cells[at] += 1
    value += state.cells[at]
    key = (value >> 30) % CELLS
    state.counts[key] += 1
    emit(value, state.counts[key])


# ---- a chain of cheap ones ----

CHEAP = 20
SMOOTHED = 1 << 12


class Smoothed(ss.State):
    cells = ss.array(int, SMOOTHED)


@ss.operator(state=Smoothed, event=ROW, emits=ROW)
def cheap(state, event, emit):
    value = turned(event.value, event.work)
    at = (value >> 20) % SMOOTHED
    state.cells[at] += (value - state.cells[at]) >> 3
    emit(value + state.cells[at], event.work)


class SmoothedInTurn(ss.State):
    cells = ss.array(int, SMOOTHED)
    last = ss.scalar(int)


@ss.operator(state=SmoothedInTurn, event=ROW, emits=ROW)
def cheap_in_turn(state, event, emit):
    value = turned(event.value + state.last, event.work)
    at = (value >> 20) % SMOOTHED
    state.cells[at] += (value - state.cells[at]) >> 3
    state.last = value
    emit(value + state.cells[at], event.work)


class AllSmoothed(ss.State):
    cells = ss.array(int, (CHEAP, SMOOTHED))


@ss.operator(state=AllSmoothed, event=ROW, emits=ROW)
def cheap_function(state, event, emit):
    value = event.value
    for stage in range(CHEAP):
        value = turned(value, event.work)
        at = (value >> 20) % SMOOTHED
        state.cells[stage, at] += (value - state.cells[stage, at]) >> 3
        value += state.cells[stage, at]
    emit(value, event.work)


# ---- a hot one and a free one ----


class Total(ss.State):
    total = ss.scalar(int)


VALUE = {"value": int}


@ss.operator(state=Total, event=ROW, emits=VALUE)
def hot(state, event, emit):
    # From the value of the last event to that of this one: nothing of it can be done before.
    state.total = turned(state.total + event.value, event.work // 4)
    emit(state.total)


@ss.operator(state=Cells, event=ROW, emits=VALUE)
def free(state, event, emit):
    emit(in_cells(state, event.value, event.work))


class Nothing(ss.State):
    word = ss.scalar(int)


@ss.operator(state=Nothing, inputs={"hot": VALUE, "free": VALUE}, emits=VALUE)
def pair(state, event, emit):
    emit(event.hot.value ^ event.free.value)


@ss.operator(state=Nothing, event={"hot": int, "free": int}, emits=VALUE)
def rows_of_pair(state, event, emit):
    emit(event.hot ^ event.free)


class TotalAndCells(ss.State):
    total = ss.scalar(int)
    cells = ss.array(int, CELLS)


@ss.operator(state=TotalAndCells, event=ROW, emits=VALUE)
def hot_function(state, event, emit):
    state.total = turned(state.total + event.value, event.work // 4)
    emit(state.total ^ in_cells(state, event.value, event.work))


# ---- phases in which nothing changes ----


class Level(ss.State):
    level = ss.scalar(int)


LEVEL = {"level": int}


@ss.operator(state=Level, event={"level": int, "work": int}, emits=LEVEL)
def gate(state, event, emit):
    level = event.level
    if turned(level, event.work) == 1:  # it never is, but no optimiser knows
        level += 1
    if level != state.level:
        state.level = level
        emit(level)


class Sums(ss.State):
    sum = ss.scalar(int)


@ss.operator(state=Sums, event=LEVEL, emits=LEVEL)
def quiet_of_one(state, event, emit):
    state.sum += event.level
    emit(state.sum)


@ss.operator(state=Sums, inputs={"a": LEVEL, "b": LEVEL}, emits=LEVEL)
def quiet_of_two(state, event, emit):
    state.sum += event.a.level + 3 * event.b.level
    emit(state.sum)
