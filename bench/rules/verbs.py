"""Verbs beside the same written by hand.

Each row runs both on one thread, ``process`` of an Arrow table with all rows out, round by round in
turn; the ratio is that of the medians. The graphs at the end also run with two threads, which is
what section "events a second" has.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.options import Say
from bench.rules.rounds import Amount, DiffersError, compared, interleaved, short
from specstream.structures import increment

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

__all__ = ["PAIRS", "verbs"]

EVENT = {"k": int, "value": float}


@dataclass(frozen=True)
class Pair:
    """A verb and the same by hand.

    Attributes:
        name: of the row.
        verb: makes its operator or pipeline.
        by_hand: likewise.
        graph: whether it also runs with two threads.
        least: events a second that are asked for of two threads, in millions.
        far: whether some values are far from the others, as those of a normal distribution are.
    """

    name: str
    verb: Callable[[], Any]
    by_hand: Callable[[], Any]
    graph: bool = False
    least: float | None = None
    far: bool = False


class Sum(ss.State):
    value = ss.scalar(float)
    count = ss.scalar(int)
    square = ss.scalar(float)
    is_known = ss.scalar(bool)
    is_far = ss.scalar(bool)
    sums = ss.dict(int, float)
    last = ss.deque(float, maxlen=10)
    waiting = ss.deque(float)


class Total(ss.Record):
    sum: float = 0.0


def add(total, event):
    total.sum += event.value


def merge(total, other):
    total.sum += other.sum


def of_stream(build: Callable[[Any], Any]) -> Callable[[], Any]:
    """A pipeline of one source, for a function of its stream."""

    def made() -> Any:
        p = ss.Pipeline("of_verbs")
        p.sink("out", build(p.source("x", EVENT)))
        return p

    return made


def by_hand(emits: dict[str, Any], state: Any = None) -> Callable[[Any], Callable[[], Any]]:
    """The same of an operator as a vertex."""

    def made(function: Any) -> Callable[[], Any]:
        operator = ss.operator(state=state, event=EVENT, emits=emits, name="by_hand")(function)
        return of_stream(lambda x: x.add(operator))

    return made


V = {"value": float}


@by_hand(V)
def mapped(event, emit):
    emit(event.value * 2.0 + 1.0)


@by_hand(EVENT)
def filtered(event, emit):
    if event.value > 0.5:
        emit(event.k, event.value)


@by_hand(V, Sum)
def summed(state, event, emit):
    state.value += event.value
    emit(state.value)


@by_hand({"k": int, **V}, Sum)
def summed_by_key(state, event, emit):
    sum = state.sums.get(event.k, 0.0) + event.value
    state.sums[event.k] = sum
    emit(event.k, sum)


@by_hand(EVENT, Sum)
def skipped(state, event, emit):
    if state.count < 100:
        state.count += 1
    else:
        emit(event.k, event.value)


@by_hand(EVENT, Sum)
def every_tenth(state, event, emit):
    if (increment(state, "count") - 1) % 10 == 0:
        emit(event.k, event.value)


@by_hand(V, Sum)
def frozen(state, event, emit):
    if not state.is_known:
        state.is_known = True
        state.value = event.value
    emit(state.value)


@by_hand(V, Sum)
def highest_of_ten(state, event, emit):
    state.last.append(event.value)
    if len(state.last) == 10:
        emit(max(state.last))


@by_hand(V, Sum)
def figure_1(state, event, emit):
    state.waiting.append(event.value)
    state.count += 1
    if (state.count - 1) % 10 == 0:
        emit(state.waiting.popleft() + event.value)


@by_hand(V, Sum)
def second_moment(state, event, emit):
    state.value += event.value**2
    state.count += 1
    emit(state.value / state.count)


@by_hand({"far": bool}, Sum)
def query_5(state, event, emit):
    state.value += event.value**1
    state.square += event.value**2
    state.count += 1
    mean = state.value / state.count
    variance = state.square / state.count - mean**2
    far = abs(event.value - mean) > 2 * math.sqrt(max(variance, 0.0))
    if far and state.is_far:
        emit(True)
    state.is_far = far


@by_hand(EVENT, Sum)
def two_filters(state, event, emit):
    value = event.value * 2.0
    state.value += value
    if state.value > 100.0:
        emit(event.k, state.value)


def _sum_of_hundred() -> Any:
    return ss.windows.by_count(
        Total, add, 100, 1, event=EVENT, merge=merge, result=lambda t: (t.sum,), emits=V
    )


def _moment(x: Any, n: int = 2) -> Any:
    power = x.accumulate(lambda sum, e: sum + e.value**n, 0.0, sum=float)
    count = x.accumulate(lambda count, e: count + 1, 0, count=int)
    return power.zip(count).map(lambda a, b: a.sum / b.count, value=float)


def _query_5(x: Any) -> Any:
    """Two in a row that are more than two standard deviations from the mean (Hallé 2016)."""
    far = x.zip(_moment(x, 1), _moment(x)).map(
        lambda x, mean, square: (
            abs(x.value - mean.value) > 2 * math.sqrt(max(square.value - mean.value**2, 0.0))
        ),
        far=bool,
    )
    return far.zip(far.skip(1)).filter(lambda a, b: a.far and b.far)


PAIRS = [
    Pair("map", of_stream(lambda x: x.map(lambda e: e.value * 2.0 + 1.0, value=float)), mapped),
    Pair("filter", of_stream(lambda x: x.filter(lambda e: e.value > 0.5)), filtered),
    Pair(
        "accumulate",
        of_stream(lambda x: x.accumulate(lambda sum, e: sum + e.value, 0.0, value=float)),
        summed,
    ),
    Pair("skip, take", of_stream(lambda x: x.skip(100)), skipped),
    Pair("every", of_stream(lambda x: x.every(10)), every_tenth),
    Pair("freeze", of_stream(lambda x: x.map(lambda e: e.value, value=float).freeze()), frozen),
    Pair(
        "window, list of 10",
        of_stream(lambda x: x.window(10, lambda rows: max(r.value for r in rows), value=float)),
        highest_of_ten,
    ),
    Pair(
        "window, 100 with merge",
        of_stream(
            lambda x: x.window(
                100, lambda t: t.sum, record=Total, add=add, merge=merge, value=float
            )
        ),
        of_stream(lambda x: x.add(_sum_of_hundred())),
        graph=True,
        least=5.0,
    ),
    Pair(
        "accumulate by key",
        of_stream(lambda x: x.by("k").accumulate(lambda sum, e: sum + e.value, 0.0, value=float)),
        summed_by_key,
        graph=True,
        least=12.0,
    ),
    Pair(
        "Figure 1, n = 10",
        of_stream(lambda x: x.zip(x.every(10)).map(lambda a, b: a.value + b.value, value=float)),
        figure_1,
        graph=True,
        least=12.0,
    ),
    Pair("moment 2", of_stream(_moment), second_moment, graph=True, least=10.0),
    Pair("Query 5", of_stream(_query_5), query_5, graph=True, least=4.0, far=True),
    Pair(
        "map, sum, filter",
        of_stream(
            lambda x: (
                x.with_columns(lambda e: e.value * 2.0, value=float)
                .accumulate(lambda row, e: (e.k, row.value + e.value), (0, 0.0), emits=EVENT)
                .filter(lambda e: e.value > 100.0)
            )
        ),
        two_filters,
        graph=True,
    ),
]


def table(events: int, far: bool = False) -> pa.Table:
    """Events with a fixed seed; sums of 53 bits, which are the same in whatever order."""
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 1000, events)
    near = rng.integers(0, 1024, events) / 1024
    return pa.table({"k": keys, "value": rng.normal(size=events) if far else near})


def measured(pair: Pair, amount: Amount) -> dict[str, Any]:
    """Both in turn, and the graph with two threads."""
    events = amount.events
    data = table(events, pair.far)
    made = {"verb": pair.verb(), "by hand": pair.by_hand()}
    options: dict[str, dict[str, Any]] = {name: {"threads": 1, "horizon": 0} for name in made}
    if pair.graph:
        made["two threads"], options["two threads"] = pair.verb(), {"threads": 2}
    engines = {name: ss.Engine(operator, **options[name]) for name, operator in made.items()}

    def run(name: str) -> float:
        began = time.perf_counter()
        rows[name] = engines[name].process(data)
        return time.perf_counter() - began

    rows: dict[str, Any] = {}
    try:
        for name in engines:
            run(name)
        # A window by hand also says where it begins and ends.
        by_hand = rows["by hand"].select(rows["verb"].column_names)
        if any(not by_hand.equals(rows[name]) for name in rows if name != "by hand"):
            raise DiffersError(f"{pair.name} and the same by hand give other rows")
        runs = {name: partial(run, name) for name in engines}
        times = interleaved(runs, amount.rounds, amount.row)
    finally:
        for engine in engines.values():
            engine.close()
    found = compared(times["verb"], times["by hand"], events)
    if pair.graph:
        found["millions"] = short(events / statistics.median(times["two threads"]) / 1e6)
    return {"name": pair.name, "events": events, **found, "least": pair.least}


def verbs(amount: Amount, say: Say) -> dict[str, Any]:
    """All of them."""
    rows = []
    for pair in PAIRS:
        say(f"verb: {pair.name}")
        rows.append(measured(pair, amount))
    return {"rows": rows}
