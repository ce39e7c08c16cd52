"""Identifiers and counters: the sequential answer, with few aborts."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Path, assert_identical, run_oracle

import specstream as ss
from specstream.structures import (
    add,
    approximate_count,
    approximate_counter,
    increment,
    unique_id,
)


class Counters(ss.State):
    words = ss.array(int, 4096)
    seen = ss.scalar(int)
    about = approximate_counter()
    several = ss.array(int, (2, 3))


EVENT = {"x": int, "turns": int}


def busy(state, event):
    """The other work of an event: some time, and a word that is rarely shared."""
    x = event.x
    for _ in range(event.turns):
        x = (x ^ (x >> 7)) * 31
    state.words[x % 4096] += x
    return x


@ss.operator(state=Counters, event=EVENT, emits={"n": int, "x": int}, name="plain_counter")
def plain_counter(state, event, emit):
    state.seen += 1
    emit(state.seen, busy(state, event))


@ss.operator(state=Counters, event=EVENT, emits={"n": int, "x": int}, name="precise_counter")
def precise_counter(state, event, emit):
    emit(increment(state, "seen"), busy(state, event))


@ss.operator(state=Counters, event=EVENT, emits={"n": int, "x": int}, name="approximate")
def approximate(state, event, emit):
    emit(approximate_count(state.about, event, 256), busy(state, event))


@ss.operator(state=Counters, event=EVENT, emits={"n": int, "x": int}, name="identified")
def identified(state, event, emit):
    emit(unique_id(event, 0), busy(state, event))


@ss.operator(state=Counters, event=EVENT, emits={"n": int, "m": int}, name="several_counters")
def several_counters(state, event, emit):
    """More counters than are predicted, used in every way; now and then an event raises."""
    n = increment(state, "seen")
    if event.x % 3 != 0:
        n += increment(state.several, (1, event.x % 3))
    if event.x % 5 == 0:
        n = n * 31 + increment(state.several[0], event.x % 2)
        n = n * 31 + increment(state, "seen")
    if event.x % 7 == 0:
        add(state, "seen", 2)
        n += increment(state, "seen") + state.seen
    if event.x % 11 == 0:
        state.seen = state.seen // 2
    if event.x % 13 == 0:
        add(state.several, (1, 2), 5)
        n = n * 31 + increment(state.several, (1, 2))
    if event.x % 41 == 0:
        raise ValueError(f"{event.x}")
    emit(n, unique_id(event, event.x % 4096))


def events(count: int, turns: int = 3) -> pa.Table:
    x = np.random.default_rng(1).integers(0, 10**9, count)
    return pa.table({"x": x, "turns": np.full(count, turns)})


@pytest.mark.parametrize(
    "operator", [several_counters, precise_counter, approximate], ids=lambda o: o.name
)
def test_every_path_gives_the_answer_of_the_sequential_run(
    operator: ss.Operator, path: Path
) -> None:
    table = events(800)
    assert_identical(path(operator, table), run_oracle(operator, table))


def aborts(operator: ss.Operator, protocol: str, rounds: int, enough: int) -> tuple[int, int]:
    """Dropped runs, and rounds of 500 events: until there are enough of the first."""
    table = events(500, turns=4000)
    dropped = done = 0
    with ss.Engine(operator, threads=2, horizon=8, chunk=1, protocol=protocol) as engine:
        while done < rounds and dropped < enough:
            engine.process(table)
            done += 1
            dropped = sum(engine.stats.aborts.values())
    return dropped, done


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_plain_counter_aborts_far_more_than_the_other_three(protocol: str) -> None:
    plain, rounds = aborts(plain_counter, protocol, rounds=400, enough=400)
    assert plain >= 400
    for operator in (precise_counter, approximate, identified):
        # Where a thread that holds a lock is not running, the other one is dropped again and again:
        # on a busy machine one attempt says little.
        found = [aborts(operator, protocol, rounds, enough=plain)[0]]
        while found[-1] >= plain / 4 and len(found) < 4:
            found.append(aborts(operator, protocol, rounds, enough=plain)[0])
        assert min(found) < plain / 4, (operator.name, plain, found)


def submitted(
    operator: ss.Operator, protocol: str, rounds: int, enough: int
) -> tuple[int, int, list[dict[str, Any]]]:
    """Dropped runs of events that three sources submit, rounds as above, and the rows of the first.

    Every round the sources' events alternate, and all are there before the frontier moves; when the
    second source comes, what runs of the first has to run again, whatever the counter."""
    dropped = done = 0
    first: list[dict[str, Any]] = []
    with ss.Engine(
        operator, threads=2, horizon=8, chunk=1, protocol=protocol, sources=[0, 1, 2]
    ) as engine:
        while done < rounds and dropped < enough:
            begin = 3000 * done
            for source in range(3):
                time = np.arange(begin + source, begin + 3000, 3)
                table = {"time": time, "x": time * 7919, "turns": np.full(1000, 4000)}
                engine.submit(table, source=source, order_by="time")
            for source in range(3):
                engine.advance(source, begin + 3000)
            found = engine.poll(timeout=None).to_pylist()
            first = first or found
            done += 1
            dropped = sum(engine.stats.aborts.values())
        assert engine.state.seen == 3000 * done
    return dropped, done, first


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_plain_counter_aborts_far_more_than_a_predicted_one_in_submitted_events(
    protocol: str,
) -> None:
    plain, rounds, expected = submitted(plain_counter, protocol, rounds=80, enough=400)
    assert plain >= 400
    found, _, rows = submitted(precise_counter, protocol, rounds, enough=plain)
    assert found < plain / 4
    assert rows == expected
    assert [row["n"] for row in rows] == list(range(1, 3001))


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_submitted_events_that_come_late_are_counted_in_their_order(protocol: str) -> None:
    time = np.arange(900)
    whole = pa.table({"time": time, "x": time * 7919 % 5000, "turns": np.full(900, 3)})
    rows = []
    with ss.Engine(
        precise_counter, threads=2, horizon=8, chunk=3, protocol=protocol, sources=[0, 1, 2]
    ) as engine:
        # Each source is a hundred events behind the one before it.
        for begin in range(0, 1100, 30):
            for source in range(3):
                low = begin - 100 * source
                piece = whole.filter((time % 3 == source) & (time >= low) & (time < low + 30))
                engine.submit(piece, source=source, order_by="time")
                engine.advance(source, min(low + 30, 900))
            rows += engine.poll().to_pylist()
        rows += engine.poll(timeout=None).to_pylist()
        state = engine.state.to_dict()
    oracle = run_oracle(precise_counter, whole)
    assert rows == oracle.output.to_pylist()
    assert all(np.array_equal(state[name], oracle.state[name]) for name in state)


def test_identifiers_are_unique_and_rise() -> None:
    @ss.operator(state=Counters, event=EVENT, emits={"id": int}, name="several_each")
    def several_each(state, event, emit):
        for i in range(event.x % 4):
            emit(unique_id(event, i))

    with ss.Engine(several_each, threads=2, horizon=8, chunk=2) as engine:
        tables = [engine.process(events(500).slice(at, 100)) for at in range(0, 500, 100)]
    found = pa.concat_tables(tables)["id"].to_numpy()
    assert len(found) > 500
    assert (np.diff(found) > 0).all()


def test_identifiers_of_several_sources_are_unique() -> None:
    found: list[int] = []
    with ss.Engine(identified, threads=2, horizon=8, chunk=1) as engine:
        for source in (3, 4):
            engine.submit(
                {"time": range(100), "x": range(100), "turns": [3] * 100},
                source=source,
                order_by="time",
            )
        for source in (3, 4):
            engine.advance(source)
        while len(found) < 200:
            found += engine.poll(timeout=20)["n"].to_pylist()
    assert len(set(found)) == 200


def test_an_approximate_count_lags_by_no_more_than_it_may() -> None:
    table = events(2000)
    with ss.Engine(approximate, threads=2, horizon=8, chunk=1) as engine:
        about = engine.process(table)["n"].to_numpy()
        assert engine.state.about[0] == 2000
    exact = np.arange(1, 2001)
    assert (np.diff(about) >= 0).all()
    assert ((exact - about >= 0) & (exact - about < 256)).all()


def test_what_is_refused() -> None:
    class Narrow(ss.State):
        small = ss.array(np.int32, 4)

    def narrow(state, event, emit):
        increment(state.small, 0)

    def no_element(state, event, emit):
        increment(state, "words")

    for state, function, message in (
        (Narrow, narrow, "increment counts in an array, which is declared int32"),
        (Counters, no_element, r"field 'words' is an array; write increment\(state.words, i"),
    ):
        with pytest.raises(ss.CompileError, match=message):
            ss.Engine(ss.operator(state=state, event=EVENT, emits={})(function), threads=1).close()

    def outside(state, event, emit):
        emit(unique_id(event, event.x))

    operator = ss.operator(state=Counters, event=EVENT, emits={"id": int})(outside)
    settings: dict[str, Any] = {"threads": 2}
    with (
        ss.Engine(operator, **settings) as engine,
        pytest.raises(ValueError, match="the index of an identifier is 0 to 4095"),
    ):
        engine.process({"x": [4096], "turns": [0]})
