"""Ten thousand of a hundred thousand events raise, wherever they are: what is left is the run
without them, whichever way the events go.

There are three witnesses: the sequential run over the events that do not raise, in which nothing
ever fails; the functions themselves under plain Python, on plain objects, in which an event that
raises is caught and undone; and the sequential run that sets aside.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import specstream as ss
from specstream.checkpoint.inspect.difference import first_difference, first_difference_of_states

EVENTS, POISON = 100_000, 10_000
ORDER: dict[str, Any] = {"order_by": "time", "source": "from"}
EVENT = {"x": int, "place": int, "parts": int, "name": str}
ROW = {"x": int, "name": str, "hash": int}
SETTINGS: dict[str, Any] = {"threads": 2, "horizon": 8, "chunk": 16}
seeds = pytest.mark.parametrize("seed", [1, 2])


class Book(ss.State):
    count = ss.scalar(int)
    hash = ss.scalar(int)
    places = ss.array(int, 16)
    names = ss.dict(str, int, limit=64)
    latest = ss.deque(int, maxlen=4)


@ss.operator(state=Book, event=EVENT, emits=ROW)
def book(state, event, emit):
    # Every order of the same events gives another hash; so does one that fails and is applied.
    state.count += 1
    state.hash = (state.hash * 31 + event.x) % 1_000_003
    state.names[event.name] = state.names.get(event.name, 0) + 1
    state.latest.append(state.hash)
    emit(event.x, event.name, state.hash)
    state.places[event.place] += event.x  # of those that fail some are beyond its end
    share = state.count // event.parts
    if event.name == "poison":
        raise ValueError(f"{event.x} is poison")
    if event.x % 4 == 0:
        emit(event.x, event.name, state.names[event.name] + share)


class Tally(ss.State):
    hash = ss.scalar(int)
    names = ss.dict(str, int, limit=64)


@ss.operator(state=Tally, event=ROW, emits=ROW)
def audit(state, event, emit):
    state.hash = (state.hash * 37 + event.hash) % 1_000_003
    state.names[event.name] = state.names.get(event.name, 0) + 1
    if event.name == "late poison":
        raise RuntimeError(f"{event.x} of {state.names[event.name]}")
    emit(event.x, event.name, state.hash)


def pipeline() -> ss.Pipeline:
    p = ss.Pipeline("book and audit")
    p.sink("out", p.add(audit, p.add(book, p.source("events", EVENT))))
    return p


def interpreted() -> ss.Operator:
    return ss.operator(state=Book, event=EVENT, emits=ROW, interpreted=True)(book.function)


def events(seed: int, ways: int) -> tuple[pa.Table, pa.Table]:
    """Events of two sources in their order, and those of them that do not raise.

    Args:
        seed: another one, other events that raise.
        ways: in so many they do.
    """
    rng = np.random.default_rng(seed)
    time, source = np.cumsum(rng.choice([0, 1, 1, 2], EVENTS)), rng.integers(0, 2, EVENTS)
    order = np.lexsort((source, time))
    way = np.zeros(EVENTS, int)
    raising = rng.choice(EVENTS, POISON, replace=False)
    way[raising] = rng.integers(1, ways + 1, POISON)
    name = np.array([f"name {at}" for at in range(20)], object)[rng.integers(0, 20, EVENTS)]
    name[way == 3] = "poison"
    name[way == 4] = "late poison"
    table = pa.table(
        {
            "time": time[order],
            "from": source[order],
            "x": np.arange(EVENTS),
            "place": np.where(way == 1, 16, rng.integers(0, 16, EVENTS)),
            "parts": np.where(way == 2, 0, rng.integers(1, 9, EVENTS)),
            "name": name,
        }
    )
    return table, table.filter(pa.array(way == 0))


@dataclass
class Plain:
    """What plain Python makes of the events."""

    states: list[Any] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    failed: list[tuple[int, str, str]] = field(default_factory=list)


def plainly(functions: list[Callable[..., None]], table: pa.Table) -> Plain:
    """Runs functions, of which each one gets what the one before it emits, on plain objects."""
    seen = Plain(
        [
            SimpleNamespace(
                count=0, hash=0, places=[0] * 16, names={}, latest=collections.deque(maxlen=4)
            )
            for _ in functions
        ]
    )

    def emitting(number: int) -> Callable[..., None]:
        def emit(*values: Any) -> None:
            if number + 1 == len(functions):
                seen.rows.append(values)
            else:
                run(number + 1, SimpleNamespace(**dict(zip(ROW, values, strict=True))))

        return emit

    emits = [emitting(number) for number in range(len(functions))]

    def run(number: int, event: Any) -> None:
        functions[number](seen.states[number], event, emits[number])

    for row in table.to_pylist():
        before = [{name: copy.copy(of) for name, of in vars(one).items()} for one in seen.states]
        count = len(seen.rows)
        try:
            run(0, SimpleNamespace(**row))
        except Exception as error:
            seen.states = [SimpleNamespace(**of) for of in before]
            del seen.rows[count:]
            seen.failed.append((row["x"], type(error).__name__, said(error)))
    return seen


def said(error: Exception) -> str:
    """What an operator itself has raised; Python's own errors may have other words."""
    return str(error) if isinstance(error, ValueError | RuntimeError) else ""


class Case:
    """An operator, its events, and what the witnesses make of them."""

    def __init__(self, operator: Any, functions: list[Any], seed: int, ways: int = 3) -> None:
        self.operator = operator
        self.table, kept = events(seed, ways)
        assert self.table.num_rows - kept.num_rows == POISON
        self.left = operator.run_sequential(kept, **ORDER)  # or it raises
        self.aside = operator.run_sequential(self.table, **ORDER, errors="side")
        self.plain = plainly(functions, self.table)
        assert len(self.plain.failed) == POISON
        assert first_difference(self.left.output, self.aside.output) is None

    def check(self, engine: ss.Engine, output: list[pa.Table], failed: list[pa.Table]) -> None:
        rows, told = pa.concat_tables(output), pa.concat_tables(failed)
        assert first_difference(self.left.output, rows) is None
        assert first_difference_of_states(self.left.state, engine.state) is None
        assert [tuple(row.values()) for row in rows.to_pylist()] == self.plain.rows
        assert self.aside.failed_events is not None
        # Numbers of events that come out of order are those of their arrival.
        wanted = self.aside.failed_events.drop(["sequence"])
        assert first_difference(wanted, told.drop(["sequence"])) is None
        found = [(one["x"], one["error"], one["message"]) for one in told.to_pylist()]
        own = ("ValueError", "RuntimeError")
        found = [(x, error, text if error in own else "") for x, error, text in found]
        assert found == self.plain.failed
        stats = engine.stats
        assert (stats.events, stats.failed_events) == (EVENTS - POISON, POISON)
        assert (stats.failed_timers, stats.pending) == (0, 0)
        self.check_metrics(engine)

    @staticmethod
    def check_metrics(engine: ss.Engine) -> None:
        client = pytest.importorskip("prometheus_client")
        registry = client.CollectorRegistry()
        ss.metrics.watch(engine, registry=registry)
        found = {
            sample.name: sample.value for metric in registry.collect() for sample in metric.samples
        }
        assert found["specstream_failed_events"] == POISON
        assert found["specstream_events_total"] == EVENTS - POISON
        assert found["specstream_pending_events"] == 0

    def process(self, seed: int, **options: Any) -> None:
        """In batches of any size, with the failed events fetched now and then."""
        dice = random.Random(seed)
        cuts = sorted(dice.randrange(EVENTS) for _ in range(20))
        output, failed = [], []
        with ss.Engine(self.operator, errors="side", **options) as engine:
            for at, end in zip([0, *cuts], [*cuts, EVENTS], strict=True):
                output.append(engine.process(self.table.slice(at, end - at), **ORDER))
                if dice.random() < 0.5 and (found := engine.failed_events()) is not None:
                    failed.append(found)
            if (found := engine.failed_events()) is not None:
                failed.append(found)
            self.check(engine, output, failed)

    def submit(self, seed: int, names: list[Any], **options: Any) -> None:
        """Out of order, polled now and then."""
        dice = random.Random(seed)
        output, failed = [], []
        with ss.Engine(self.operator, errors="side", sources=names, **options) as engine:
            arriving = ss.testing.arrivals(
                self.table, order_by="time", source="from", disorder=100, rows=500, seed=seed
            )
            for arrival in arriving:
                arrival.submit_to(engine)
                output.append(engine.poll(dice.choice([0, 0.01, None])))
                if dice.random() < 0.2 and (found := engine.failed_events()) is not None:
                    failed.append(found)
            for name in names:
                engine.advance(name)
            output.append(engine.poll(timeout=None))
            if (found := engine.failed_events()) is not None:
                failed.append(found)
            self.check(engine, output, failed)


@pytest.mark.long
@seeds
def test_in_batches_and_out_of_order(seed: int) -> None:
    case = Case(book, [book.function], seed)
    assert {error for _, error, _ in case.plain.failed} == {
        *("IndexError", "ZeroDivisionError", "ValueError")
    }
    case.process(seed, **SETTINGS)
    case.process(seed, threads=3, horizon=8, chunk=4, protocol="eager")
    case.process(seed, threads=1, horizon=0)
    case.submit(seed, [0, 1], **SETTINGS)


@pytest.mark.long
@seeds
def test_in_a_pipeline_in_either_vertex(seed: int) -> None:
    case = Case(pipeline(), [book.function, audit.function], seed, ways=4)
    assert case.aside.failed_events is not None
    of = pc.value_counts(case.aside.failed_events["vertex"]).to_pylist()
    told = {one["values"]: one["counts"] for one in of}
    assert told.keys() == {"book", "audit"}
    assert min(told.values()) > 2000
    case.process(seed, **SETTINGS)
    case.process(seed, threads=1, horizon=0)


@pytest.mark.long
@seeds
def test_interpreted(seed: int) -> None:
    case = Case(interpreted(), [book.function], seed)
    case.process(seed, **SETTINGS)
    case.submit(seed, [0, 1], threads=2, horizon=4)
