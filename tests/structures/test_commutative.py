"""Commutative updates: the sequential answer, and no conflicts."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

from typing import Any

import pytest
from conftest import Path, assert_identical, partial_of, run_engine, run_oracle
from support.engine.ahead import run_ahead
from support.operators.commuting import EVENT, Sums, events, rows, sums, work

import specstream as ss
from specstream.structures import add, maximum, minimum


def test_every_path_gives_the_answer_of_the_sequential_run(path: Path) -> None:
    table = events(1500)
    assert_identical(path(sums, table, seed=5), run_oracle(sums, table, seed=5))


def test_rows_with_updates_pending_are_those_of_the_sequential_run(path: Path) -> None:
    table = events(1500, 3)
    assert_identical(path(rows, table), run_oracle(rows, table))


@ss.operator(state=Sums, event=EVENT, emits={"x": int}, name="only_adds")
def only_adds(state, event, emit):
    add(state, "total", event.y)
    add(state.bytes, 2, event.x % 2 * 2 - 1)
    maximum(state.bytes, 2, -20)
    minimum(state.bytes, 2, 20)
    emit(work(event.x, 200))


@ss.operator(state=Sums, event=EVENT, emits={"x": int}, name="only_reads")
def only_reads(state, event, emit):
    state.total += event.y
    emit(work(event.x, 200))


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_events_that_only_update_one_word_never_conflict(protocol: str) -> None:
    table = events(320, 2)
    stats, state = run_ahead(only_adds, table, protocol)
    assert stats.speculative_runs == 320
    assert sum(stats.aborts.values()) == 0
    assert state["total"] == run_oracle(only_adds, table).state["total"]
    stats, _ = run_ahead(only_reads, table, protocol)
    assert sum(stats.aborts.values()) >= 300


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_updates_stay_updates_where_an_engine_profiles(protocol: str) -> None:
    table = events(3000, 4)
    options: dict[str, Any] = {"protocol": protocol, "horizon": 16, "chunk": 4, "profile": True}
    with ss.Engine(only_adds, threads=2, **options) as engine:
        engine.process(table)
        assert sum(engine.stats.aborts.values()) == 0
        assert engine.state.total == run_oracle(only_adds, table).state["total"]
    assert_identical(run_engine(sums, table, seed=5, **options), run_oracle(sums, table, seed=5))


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_chunks_that_only_update_one_word_never_conflict(protocol: str) -> None:
    table = events(3000, 2)
    with ss.Engine(only_adds, threads=2, horizon=16, chunk=4, protocol=protocol) as engine:
        for _ in range(10):
            engine.process(table)
        assert sum(engine.stats.aborts.values()) == 0


def test_a_sum_that_does_not_fit_raises_at_its_event() -> None:
    @ss.operator(state=Sums, event=EVENT, emits={"x": int}, name="overflowing")
    def overflowing(state, event, emit):
        add(state.shorts, 1, event.x)
        emit(work(event.x, 100))

    table = {"x": [30000, 30000, 5000, 600], "y": [0.0] * 4}
    for protocol in ("value", "eager"):
        with ss.Engine(overflowing, threads=2, horizon=8, chunk=2, protocol=protocol) as engine:
            with pytest.raises(OverflowError, match=r"state.shorts is declared uint16") as raised:
                engine.process(table)
            assert partial_of(raised.value).consumed == 3
            assert engine.state.shorts[1] == 65000
            engine.process({"x": [500], "y": [0.0]})
            assert engine.state.shorts[1] == 65500


def test_what_is_refused() -> None:
    def on_a_bool(state, event, emit):
        add(state, "flag", True)

    def on_a_row(state, event, emit):
        add(state.ints, 0, 1)

    def on_an_array(state, event, emit):
        add(state, "ints", 1)

    def a_float_into_an_int(state, event, emit):
        minimum(state, "count", event.y)

    def on_a_number(state, event, emit):
        add(state.count, 0, 1)

    def with_two_arguments(state, event, emit):
        add(state.count, 1)

    for function, message in (
        (on_a_bool, "add works on numbers"),
        (on_a_row, "add works on one element"),
        (on_an_array, r"field 'ints' is an array; write add\(state.ints, i, "),
        (a_float_into_an_int, "field 'count' is declared int and gets float64"),
        (on_a_number, r"add is given int64; write add\(state.array, i, "),
        (with_two_arguments, r"add takes \(container, key, value\)"),
    ):
        with pytest.raises(ss.CompileError, match=message):
            ss.Engine(ss.operator(state=Sums, event=EVENT, emits={})(function), threads=1).close()
