"""What is first, nearest or numbered goes by the order of the events, not by those of one source.

Every operator of the library is fed by several sources where `library.agrees` runs it; here are
those whose answer has a number or a tie in it, with many ties, beside a model.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import bits
from support.operators.dealt import dealt, of_sources
from test_business import boards_by_sorting
from test_learning import votes
from test_operators import model_neighbours

import specstream as ss
from specstream.operators import nearest_neighbours
from specstream.operators.basic import join
from specstream.operators.business import leaderboard
from specstream.operators.learning import k_nearest
from specstream.operators.signals import cusum, exponential_average

SETTINGS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 2},
]


def with_times(count: int, seed: int, **columns: Any) -> pa.Table:
    """A few events at each time."""
    rng = np.random.default_rng(seed)
    return pa.table({**columns, "time": np.sort(rng.integers(-9, count // 4, count))})


@pytest.mark.parametrize("scores", ["last", "best"])
def test_of_equal_scores_the_one_that_was_reached_first_is_ahead(scores: str) -> None:
    rng = np.random.default_rng(1)
    names = rng.choice([f"player {n}" for n in range(12)], 200)
    table = with_times(200, 2, player=names, score=rng.integers(0, 4, 200))
    operator = leaderboard(4, scores, spare=2)
    for dice, options in enumerate(SETTINGS):
        merged, pieces = dealt(table, dice)
        found = of_sources(operator, pieces, **options)
        events = list(zip(merged["player"].to_pylist(), merged["score"].to_pylist(), strict=True))
        expected = boards_by_sorting(events, 4, scores)
        assert [tuple(row.values()) for row in found.output.to_pylist()] == expected


def test_a_score_of_a_later_table_is_reached_later_whatever_its_time() -> None:
    with ss.Engine(leaderboard(2), horizon=0) as engine:
        engine.process({"time": [9], "player": ["ann"], "score": [5]}, order_by="time")
        rows = engine.process({"time": [3], "player": ["bob"], "score": [5]}, order_by="time")
    assert rows.to_pylist() == [{"place": 2, "player": "bob", "score": 5}]


def corners(count: int) -> list[tuple[float, float]]:
    """Points on a grid, of which many are equally near."""
    rng = np.random.default_rng(4)
    return [(x / 8, y / 8) for x, y in rng.integers(0, 8, (count, 2)).tolist()]


def test_of_equally_near_points_the_earlier_one_comes_first() -> None:
    x, y = zip(*corners(150), strict=True)
    table = with_times(150, 5, x=x, y=y)
    operator = nearest_neighbours(grid=4, per_bucket=6, k=4)
    for dice, options in enumerate(SETTINGS):
        merged, pieces = dealt(table, dice)
        found = of_sources(operator, pieces, **options)
        points = list(zip(merged["x"].to_pylist(), merged["y"].to_pylist(), strict=True))
        expected = model_neighbours(points, 4, 6, 4)
        assert list(zip(*found.output.to_pydict().values(), strict=True)) == expected


class Points(ss.State):
    xs = ss.array(float, (16, 6))
    ys = ss.array(float, (16, 6))
    ids = ss.array(int, (16, 6))
    counts = ss.array(int, 16)


@ss.operator(
    state=Points,
    event={"x": float, "y": float},
    emits={"neighbour": int, "distance": float, "rank": int},
    name="nearest_neighbours",
)
def uncounted(state, event, emit):
    """Keeps what version 0.2 keeps."""
    own = int(event.y * 4) * 4 + int(event.x * 4)
    slot = state.counts[own] % 6
    state.xs[own, slot] = event.x
    state.ys[own, slot] = event.y
    state.ids[own, slot] = event.sequence
    state.counts[own] += 1


def test_a_snapshot_of_a_version_that_did_not_count_the_points_goes_on() -> None:
    points = corners(120)
    halves = [
        dict(zip("xy", zip(*part, strict=True), strict=True)) for part in (points[:60], points[60:])
    ]
    expected = model_neighbours(points, 4, 6, 4)
    with ss.Engine(uncounted, horizon=0) as before:
        before.process(halves[0])
        snapshot = before.snapshot()
    told = len(model_neighbours(points[:60], 4, 6, 4))
    for options in SETTINGS:
        with ss.Engine(nearest_neighbours(4, 6, 4), restore=snapshot, **options) as engine:
            found = engine.process(halves[1]).to_pydict().values()
            assert engine.state.points == 120
        assert list(zip(*found, strict=True)) == expected[told:]


def test_the_vote_of_equally_near_points_is_that_of_the_earlier_ones() -> None:
    x, y = zip(*corners(160), strict=True)
    label = np.random.default_rng(6).choice(["red", "green", "blue"], 160)
    table = with_times(160, 7, x=x, y=y, label=label)
    kept: dict[str, Any] = {"k": 3, "cells": 4, "per_cell": 5, "low": 0.0, "high": 1.0}
    operator = k_nearest(("x", "y"), **kept)
    merged, pieces = dealt(table, 8)
    found = of_sources(operator, pieces, **SETTINGS[1])
    points = np.column_stack([merged["x"].to_numpy(), merged["y"].to_numpy()])
    expected = votes(points, merged["label"].to_pylist(), **kept)
    assert list(zip(*found.output.to_pydict().values(), strict=True)) == expected


def test_an_alarm_tells_the_time_since_which_the_mean_has_shifted() -> None:
    value = [0.0, 1.0, 1.0, 1.0, 0.0, -1.0, -1.0, -1.0]
    table = pa.table({"key": ["a"] * 8, "value": value, "time": range(100, 180, 10)})
    _, pieces = dealt(table, 3)
    found = of_sources(cusum(2.0, 0.25, target=0.0), pieces, **SETTINGS[1]).output
    assert found["up"].to_pylist() == [True, False]
    assert found["since"].to_pylist() == [110, 150]


# ---- times that go back ----


class Left(ss.Record):
    user: str


class Right(ss.Record):
    user: str
    x: int


def same_user(left, right):
    return left.user == right.user


def test_a_join_by_time_refuses_an_event_before_the_last_one() -> None:
    p = ss.Pipeline("pairs")
    lefts, rights = p.source("lefts", {"user": str}), p.source("rights", {"user": str, "x": int})
    joined = join(Left, Right, same_user, left_window=10, right_window=20)
    p.sink("out", p.add(joined, left=lefts, right=rights))

    def right(time: int) -> dict[str, Any]:
        return {"rights": {"time": [time], "user": ["ann"], "x": [time]}}

    with ss.Engine(p, horizon=0) as engine:
        engine.process({"lefts": {"time": [50, 60], "user": ["bob", "ann"]}}, order_by="time")
        with pytest.raises(
            ValueError, match="join: an event at 45, and the last one was at 60; sort"
        ):
            engine.process(right(45), order_by="time")
        assert engine.process(right(60), order_by="time")["x"].to_pylist() == [60]
        with pytest.raises(
            ValueError, match="join: an event at 59, and the last one was at 60; sort"
        ):
            engine.process(right(59), order_by="time")


def test_an_exponential_average_takes_old_events_and_ages_beyond_64_bits() -> None:
    rng = np.random.default_rng(9)
    times, values = rng.integers(-500, 500, 60), rng.normal(size=60)
    with ss.Engine(exponential_average(40.0, by="time"), horizon=0) as engine:
        for at in range(60):
            event = {"time": [times[at]], "key": ["a"], "value": [values[at]]}
            (mean,) = engine.process(event, order_by="time")["mean"].to_pylist()
            weights = 0.5 ** ((times[: at + 1].max() - times[: at + 1]) / 40.0)
            assert mean == pytest.approx(np.average(values[: at + 1], weights=weights))
    far = {"time": [-(2**63), 2**63 - 1], "key": ["a", "a"], "value": [1.0, 3.0]}
    found = exponential_average(1.0, by="time").run_sequential(far, order_by="time").output
    assert bits(found["mean"]).tolist() == bits(pa.chunked_array([[1.0, 3.0]])).tolist()
