"""Pipelines set aside the events of a phase that raises, with the vertex that raised."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from specstream.checkpoint.inspect.difference import first_difference, first_difference_of_states

SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 3, "horizon": 6, "chunk": 2},
    {"threads": 2, "horizon": 8, "chunk": 1, "protocol": "eager"},
]


class Sum(ss.State):
    total = ss.scalar(int)
    alarms = ss.timers(int, limit=32)


def ring(state, timer, emit):
    state.total += 1
    emit(-timer.key, float(state.total))
    if timer.key % 2:
        raise KeyError(timer.key)


@ss.operator(
    state=Sum, event={"x": int, "price": float}, emits={"x": int, "price": float}, on_timer=ring
)
def first(state, event, emit):
    state.total += event.x
    state.alarms.set(event.x % 5, event.timestamp + 4)
    if event.x % 7 == 3:
        raise ValueError("three")
    emit(state.total, event.price)


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(
    state=Seen,
    inputs={"row": {"x": int, "price": float}, "news": {"x": int}},
    emits={"x": int, "count": int},
)
def second(state, event, emit):
    state.count += 1
    if event.changed("news") and event.news.x % 4 == 2:
        raise RuntimeError("two")
    emit(event.row.x if event.changed("row") else 0, state.count)


def pipeline(phases: Any) -> ss.Pipeline:
    p = ss.Pipeline("both", phases=phases)
    rows = p.add(first, p.source("ticks", {"x": int, "price": float}))
    news = p.source("news", {"x": int})
    p.sink("out", p.add(second, row=rows, news=news))
    return p


def events(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    time, of = np.cumsum(rng.choice([0, 1, 3], count)), rng.integers(0, 2, count)
    order = np.lexsort((of == 0, time))  # sources by their names
    ticks = of[order] == 0
    x = rng.integers(0, 40, count)
    return pa.table(
        {
            "time": time[order],
            "stream": np.where(ticks, "ticks", "news"),
            "ticks.x": pa.array(x, mask=~ticks),
            "ticks.price": pa.array(rng.random(count), mask=~ticks),
            "news.x": pa.array(x, mask=ticks),
        }
    )


@pytest.mark.parametrize("phases", ["event", "time"])
@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_failed_events_are_those_of_the_sequential_run(
    phases: str, options: dict[str, Any]
) -> None:
    p, table = pipeline(phases), events(150, 3)
    expected = p.run_sequential(table, order_by="time", errors="side", end=True)
    wanted = expected.failed_events
    assert wanted is not None
    assert set(wanted["vertex"].to_pylist()) == {"first", "second"}
    with ss.Engine(p, errors="side", **options) as engine:
        output = engine.process(table, order_by="time", end=True)
        failed = engine.failed_events()
        assert failed is not None
        assert first_difference(wanted, failed) is None
        assert first_difference(expected.output, output) is None
        assert first_difference_of_states(expected.state, engine.state) is None
        assert engine.stats.failed_events == wanted.num_rows
    with ss.Engine(p, errors="side", sources=["ticks", "news"], **options) as engine:
        dice = random.Random(1)
        for arrival in ss.testing.arrivals(table, order_by="time", source="stream", seed=1):
            arrival.submit_to(engine)
            if dice.random() < 0.5:
                engine.poll()
        for name in ("ticks", "news"):
            engine.advance(name)
        engine.poll(timeout=None)
        failed = engine.failed_events()
        assert failed is not None
        # Numbers of submitted events are those of their sources.
        assert first_difference(wanted.drop(["sequence"]), failed.drop(["sequence"])) is None
        assert first_difference_of_states(expected.state, engine.state) is None


def test_of_a_phase_by_time_all_events_are_set_aside() -> None:
    table = pa.table(
        {
            "time": [1, 1, 2, 2, 3],
            "stream": ["news", "ticks", "news", "ticks", "ticks"],
            "ticks.x": [None, 1, None, 3, 4],
            "ticks.price": [None, 0.5, None, 1.5, 2.5],
            "news.x": [7, None, 8, None, None],
        }
    )
    with ss.Engine(pipeline("time"), errors="side") as engine:
        engine.process(table, order_by="time", end=True)
        failed = engine.failed_events()
        assert failed is not None
        failed = failed.filter(failed["timer"].is_null())
        assert failed.select(["timestamp", "source", "sequence", "vertex"]).to_pylist() == [
            {"timestamp": 2, "source": source, "sequence": sequence, "vertex": "first"}
            for source, sequence in (("news", 2), ("ticks", 3))
        ]
        names = table.column_names[1:]
        assert failed.select(names).to_pylist() == table.slice(2, 2).select(names).to_pylist()
        assert failed["message"].to_pylist() == ["three", "three"]
