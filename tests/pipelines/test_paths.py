"""Paths: what came from one row meets again behind a diamond (rule PL-3); absence; last values."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import pytest

import specstream as ss


class Count(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Count, event={"x": int}, emits={"x": int})
def times_three(state, event, emit):
    for k in range(3):
        emit(10 * event.x + k)


@ss.operator(state=Count, event={"x": int}, emits={"x": int})
def even(state, event, emit):
    if event.x % 2 == 0:
        emit(event.x)


@ss.operator(state=Count, event={"x": int}, emits={"x": int})
def twice(state, event, emit):
    emit(event.x)
    emit(-event.x)


PAIR: dict[str, Any] = {"left": {"x": int}, "right": {"x": int}}


@ss.operator(
    state=Count,
    inputs=PAIR,
    emits={"left": int, "right": int, "met": bool},
)
def pairs(state, event, emit):
    state.count += 1
    emit(event.left.x, event.right.x, event.changed("left") and event.changed("right"))


def rows_of(p: ss.Pipeline, events: list[int]) -> list[tuple[Any, ...]]:
    expected = p.run_sequential({"x": events}).output
    for options in ({"threads": 1, "horizon": 0}, {"threads": 2, "horizon": 4, "chunk": 1}):
        with ss.Engine(p, **options) as engine:  # type: ignore[arg-type]
            assert engine.process({"x": events}).equals(expected)
    return [tuple(row.values()) for row in expected.to_pylist()]


def test_a_diamond_with_a_filter() -> None:
    p = ss.Pipeline("filter")
    many = p.add(times_three, p.source("s", {"x": int}))
    p.sink("out", p.add(pairs, left=many, right=p.add(even, many)))
    # Of 10, 11, 12 the second has nothing to meet: there the right one is the last that came.
    assert rows_of(p, [1, 2]) == [
        (10, 10, True),
        (11, 10, False),
        (12, 12, True),
        (20, 20, True),
        (21, 20, False),
        (22, 22, True),
    ]


def test_a_diamond_with_a_multiplier() -> None:
    p = ss.Pipeline("multiplier")
    many = p.add(times_three, p.source("s", {"x": int}))
    p.sink("out", p.add(pairs, left=many, right=p.add(twice, many)))
    # The first of the two rows that are made of each meets the row that they are made of.
    assert rows_of(p, [1]) == [
        (10, 10, True),
        (10, -10, False),
        (11, 11, True),
        (11, -11, False),
        (12, 12, True),
        (12, -12, False),
    ]


def test_a_diamond_with_both() -> None:
    p = ss.Pipeline("both")
    many = p.add(times_three, p.source("s", {"x": int}))
    p.sink("out", p.add(pairs, left=p.add(even, many), right=p.add(twice, many)))
    assert rows_of(p, [1]) == [
        (10, 10, True),
        (10, -10, False),
        (10, 11, False),
        (10, -11, False),
        (12, 12, True),
        (12, -12, False),
    ]


def test_two_multipliers_beside_each_other_meet_by_number() -> None:
    p = ss.Pipeline("beside")
    source = p.source("s", {"x": int})
    p.sink("out", p.add(pairs, left=p.add(times_three, source), right=p.add(twice, source)))
    assert rows_of(p, [1]) == [(10, 1, True), (11, -1, True), (12, -1, False)]


def test_a_vertex_without_a_message_does_not_run() -> None:
    p = ss.Pipeline("quiet")
    quiet = p.add(even, p.source("s", {"x": int}))
    p.sink("out", p.add(pairs, left=quiet, right=quiet))
    with ss.Engine(p) as engine:
        output = engine.process({"x": [1, 3, 4, 5]})
        assert engine.state.pairs.count == 1
    assert output.num_rows == 1


def test_an_input_that_never_had_a_row() -> None:
    p = ss.Pipeline("unknown")
    source = p.source("s", {"x": int})
    p.sink("out", p.add(pairs, left=source, right=p.add(even, source)))
    assert rows_of(p, [7, 8, 9]) == [(7, 0, False), (8, 8, True), (9, 8, False)]


@ss.operator(
    state=Count,
    inputs={"left": {"x": int}, "right": {"n": ss.nullable(int)}},
    emits={"null": bool, "known": bool, "n": int},
)
def asks(state, event, emit):
    emit(event.right.is_null("n"), event.known("right"), event.right.n)


@ss.operator(state=Count, event={"x": int}, emits={"n": ss.nullable(int)})
def after_two(state, event, emit):
    state.count += 1
    if state.count > 2:
        emit(event.x if event.x != 9 else None)


def test_a_nullable_input_that_never_had_a_row_is_null() -> None:
    p = ss.Pipeline("null")
    source = p.source("s", {"x": int})
    p.sink("out", p.add(asks, left=source, right=p.add(after_two, source)))
    known = [(False, True, 7), (True, True, 0)]
    assert rows_of(p, [5, 6, 7, 9]) == [(True, False, 0), (True, False, 0), *known]


def test_single_events_of_several_sources() -> None:
    p = ss.Pipeline("single")
    left, right = p.source("left", {"x": int}), p.source("right", {"x": int})
    p.sink("out", p.add(pairs, left=left, right=right))
    with ss.Engine(p, sources=["left", "right"]) as engine:
        engine.submit_event(1, "left", x=5, ordered=True)
        engine.submit_event(2, "right", x=6, ordered=True)
        engine.advance("left")
        engine.advance("right")
        assert engine.poll_rows(timeout=None) == [(5, 0, False), (5, 6, False)]


def test_last_values_outlive_a_batch_and_a_snapshot() -> None:
    p = ss.Pipeline("kept")
    source = p.source("s", {"x": int})
    p.sink("out", p.add(pairs, left=source, right=p.add(even, source)))
    with ss.Engine(p) as engine:
        engine.process({"x": [8]})
        snapshot = engine.snapshot()
        assert engine.process({"x": [9]})["right"].to_pylist() == [8]
    with ss.Engine(p, restore=snapshot) as engine:
        assert engine.process({"x": [11]})["right"].to_pylist() == [8]


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_out_of_order(protocol: str) -> None:
    p = ss.Pipeline("late")
    left, right = p.source("left", {"x": int}), p.source("right", {"x": int})
    p.sink("out", p.add(pairs, left=left, right=p.add(times_three, right)))
    tables = {
        "left": {"time": [1, 5, 9], "x": [1, 5, 9]},
        "right": {"time": [2, 5, 7], "x": [2, 5, 7]},
    }
    expected = p.run_sequential(tables, order_by="time").output
    with ss.Engine(
        p, threads=2, horizon=8, chunk=1, protocol=protocol, sources=["left", "right"]
    ) as engine:
        engine.submit(tables["right"], order_by="time", source="right")
        engine.submit(tables["left"], order_by="time", source="left")
        engine.advance("right", 8)
        engine.advance("left", 8)
        early = engine.poll(timeout=None)
        engine.advance("right")
        engine.advance("left")
        late = engine.poll(timeout=None)
    found = [*early.to_pylist(), *late.to_pylist()]
    assert found == expected.to_pylist()
    assert early.num_rows == expected.num_rows - 1
