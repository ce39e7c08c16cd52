"""Early results of a pipeline: sources with clocks of their own, a log of changes for each sink."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import specstream as ss


class Latest(ss.State):
    prices = ss.dict(str, float, limit=16)
    count = ss.scalar(int)


@ss.operator(
    state=Latest,
    event={"symbol": str, "price": float},
    emits={"symbol": str, "change": float},
)
def moves(state, event, emit):
    """Of a symbol, by how much its price has changed."""
    state.count += 1
    before = state.prices.get(event.symbol, event.price)
    state.prices[event.symbol] = event.price
    if event.price != before:
        emit(event.symbol, event.price - before)


class Both(ss.State):
    total = ss.scalar(float)
    seen = ss.dict(str, int, limit=16)


@ss.operator(
    state=Both,
    inputs={
        "moved": {"symbol": str, "by": float},
        "news": {"symbol": str, "weight": float},
    },
    emits={"symbol": str, "score": float, "times": int},
)
def scores(state, event, emit):
    """Adds up moves and news, in the order in which they were."""
    if event.changed("moved"):
        state.total = state.total * 0.5 + event.moved.by
        symbol = event.moved.symbol
        state.seen[symbol] = state.seen.get(symbol, 0) + 1
        emit(symbol, state.total, state.seen[symbol])
    if event.changed("news"):
        state.total += event.news.weight
        emit(event.news.symbol, state.total, state.seen.get(event.news.symbol, 0))


def trading() -> ss.Pipeline:
    p = ss.Pipeline("trading")
    ticks = p.source("ticks", {"symbol": str, "price": float})
    news = p.source("news", {"symbol": str, "weight": float})
    moved = p.add(renamed, p.add(moves, ticks, name="moves"))
    p.sink("moves", moved)
    p.sink("scores", p.add(scores, moved=moved, news=news))
    return p


class Nothing(ss.State):
    """None."""

    unused = ss.scalar(int)


@ss.operator(
    state=Nothing,
    event={"symbol": str, "change": float},
    emits={"symbol": str, "by": float},
)
def renamed(state, event, emit):
    emit(event.symbol, event.change)


def drawn(dice: random.Random, count: int) -> dict[str, pa.Table]:
    symbols = ["A", "B", "C"]
    halves = [round(dice.uniform(0, 8)) / 2 for _ in range(count)]
    return {
        "ticks": pa.table(
            {
                "t": sorted(dice.randrange(100) for _ in range(count)),
                "symbol": [dice.choice(symbols) for _ in range(count)],
                "price": halves,
            }
        ),
        "news": pa.table(
            {
                "t": sorted(dice.randrange(100) for _ in range(count // 3)),
                "symbol": [dice.choice(symbols) for _ in range(count // 3)],
                "weight": [dice.random() for _ in range(count // 3)],
            }
        ),
    }


@pytest.mark.parametrize("seed", range(3))
def test_each_sink_has_a_log_that_adds_up(seed: int) -> None:
    settings = [one for one in ss.testing.settings() if one.options.get("early")]
    found = ss.testing.check(
        trading(), drawn(random.Random(seed), 60), order_by="t", seed=seed, settings=settings
    )
    assert found.output["moves"].num_rows > 20


def test_changes_by_sink() -> None:
    with ss.Engine(trading(), early=True, threads=2, horizon=8) as engine:
        engine.submit_event(10, "ticks", symbol="A", price=1.0)
        engine.submit_event(30, "ticks", symbol="A", price=4.0)
        first: dict[str, Any] = engine.poll_early(timeout=None).changes
        assert first["moves"]["by"].to_pylist() == [3.0]
        assert first["scores"]["score"].to_pylist() == [3.0]
        engine.submit_event(20, "news", symbol="A", weight=0.5)
        second = engine.poll_early(timeout=None).changes
        assert second["moves"].num_rows == 0  # it does not depend on news
        assert second["scores"]["score"].to_pylist() == [0.5, 3.25]
        engine.advance("ticks", None)
        engine.advance("news", None)
        rows = engine.poll(timeout=None)
        assert rows["scores"]["score"].to_pylist() == [0.5, 3.25]
        last = engine.poll_early(timeout=None).changes
        assert set(last["scores"]["change"].to_pylist()) == {"final"}


def test_a_column_of_early_results_is_refused_in_a_sink() -> None:
    p = ss.Pipeline("clash")
    p.sink("moves", p.add(moves, p.source("ticks", {"symbol": str, "price": float})))
    with pytest.raises(ss.ConfigurationError, match="'clash' emits a column 'change'"):
        ss.Engine(p, early=True)


def test_a_tentative_event_of_one_of_several_sources_is_revised() -> None:
    with ss.Engine(trading(), early=True, threads=2) as engine:
        engine.submit_event(10, "ticks", symbol="A", price=1.0)
        engine.submit_event(20, "ticks", final=False, sequence=7, symbol="A", price=4.0)
        assert engine.poll_early(timeout=None).changes["moves"]["by"].to_pylist() == [3.0]
        engine.revise("ticks", 7, version=2, price=9.0)
        assert engine.poll_early(timeout=None).changes["moves"]["by"].to_pylist() == [8.0]
        with pytest.raises(ss.InputError, match="weight"):
            engine.revise("ticks", 7, version=3, weight=1.0)
        with pytest.raises(ss.InputError, match="changes no column"):
            engine.revise("ticks", 7, version=3)


def test_phases_by_time_are_refused() -> None:
    p = ss.Pipeline("desk", phases="time")
    p.sink("moves", p.add(moves, p.source("ticks", {"symbol": str, "price": float})))
    with pytest.raises(ss.ConfigurationError) as caught:
        ss.Engine(p, early=True)
    assert str(caught.value) == (
        "early=True: operator 'desk' is a pipeline with phases by time, of which nothing is known "
        'before a phase is whole; expected phases="events", or an engine without early='
    )
