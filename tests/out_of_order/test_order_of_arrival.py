"""Events that come out of order: the answer is that of one sequential run in the order of keys."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import Result, assert_identical, run_oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.engine.arriving import (
    PATIENCE,
    SETTINGS,
    Count,
    Six,
    drain,
    entities,
    keyed,
    places,
    until,
)
from support.engine.journeys import run_submitted

import specstream as ss

PIECES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.lists(st.integers(0, 40), min_size=1, max_size=12),
        st.sampled_from(["advance", "poll", "singly", "nothing"]),
    ),
    min_size=1,
    max_size=12,
)


def nothing(occasion: object) -> None:
    """A hook."""


def twice() -> Callable[[object], None]:
    """A hook that has every third event run once more."""
    calls = iter(range(1 << 62))

    def on_commit(occasion: object) -> None:
        if next(calls) % 3 == 0:
            raise ss.Abort

    return on_commit


HOOKED = [
    {"threads": 2, "horizon": 8, "on_commit": twice(), "on_abort": nothing},
    {"threads": 2, "horizon": 4, "protocol": "eager", "on_post_commit": nothing},
]


@ss.operator(
    state=Six,
    event={"at": int, "amount": int, "name": str},
    emits={"at": int, "value": int, "before": int, "name": str},
)
def named(state, event, emit):
    """As ``entities``, with strings."""
    state.values[event.at % 6] += event.amount
    if event.amount % 7 == 0:
        state.last = state.last * 3 + event.timestamp
    if event.amount == -1:
        raise ValueError(f"amount -1 at {event.at}")
    emit(event.at, state.values[event.at % 6], state.last, event.name)


@pytest.mark.slow
@settings(max_examples=share_of(80), suppress_health_check=list(HealthCheck))
@given(
    pieces=PIECES,
    paths=st.lists(st.sampled_from(SETTINGS + HOOKED), min_size=1, max_size=3),
    salt=st.integers(0, 50),
    dice=st.integers(0, 2**32),
)
def test_any_arrival_gives_the_sequential_answer(
    pieces: Any, paths: Any, salt: int, dice: int
) -> None:
    """Random pieces of three sources.

    Between any two calls the engine may be put aside, brought back, and taken back.
    """
    rng = np.random.default_rng(salt)
    sent = []
    for number, (source, times, action) in enumerate(pieces):
        count = len(times)
        table = pa.table(
            {
                "time": np.array(times, np.int64),
                "at": rng.integers(0, 30, count),
                "amount": rng.integers(-1 if salt % 3 == 0 else 0, 9, count),
                # Each piece has a string that those before have not.
                "name": [f"{number // 2 * 2 + at % 2}" for at in range(count)],
            }
        )
        sent.append((source, table, action))
    whole = pa.concat_tables(
        [table.append_column("source", [[name] * table.num_rows]) for name, table, _ in sent]
    )
    expected = run_oracle(named, whole, order_by="time", source="source")
    expected = replace(expected, raised=tuple((0, kind, text) for _, kind, text in expected.raised))
    assert_identical(run_submitted(named, sent, paths, dice), expected)


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_the_six_steps_of_figure_4_3(protocol: str) -> None:
    """Brito 2010, Figure 4.3: two ordered channels, one thread, entities instead of positions."""

    def event(time: int, at: int) -> dict[str, list[int]]:
        return {"time": [time], "at": [at], "amount": [1]}

    with ss.Engine(
        entities,
        threads=1,
        horizon=8,
        chunk=1,
        protocol=protocol,
        sources=["lower", "upper"],
    ) as engine:

        def send(source: str, time: int, at: int) -> None:
            engine.submit(event(time, at), order_by="time", source=source, ordered=True)

        def ahead() -> int:
            return engine.stats.speculative_runs

        # (a) 9 commits; the upper channel is empty then, and who is next is not known.
        # (b) 11 runs ahead of its turn, and waits.
        send("upper", 9, 0)
        send("lower", 11, 2)
        until(lambda: engine.stats.commits == 1 and engine.stats.pending == 1)
        assert engine.poll()["at"].to_pylist() == [0]
        before = ahead()
        # (c) so does 13.
        send("lower", 13, 3)
        until(lambda: ahead() == before + 1)
        assert (engine.poll().num_rows, engine.stats.commits) == (0, 1)
        # (d) 12 comes in the upper channel: 11 is next, and commits as it is; (e) 12 commits.
        send("upper", 12, 5)
        until(lambda: engine.stats.commits == 3)
        assert engine.poll()["at"].to_pylist() == [2, 5]
        # 15 touches what 12 has touched; it comes later, so it sees that.
        send("lower", 15, 5)
        until(lambda: ahead() >= before + 2)
        # (f) all queues are empty, 13 and 15 wait for news of the upper channel.
        assert (engine.poll().num_rows, engine.stats.commits, engine.stats.pending) == (0, 3, 2)
        assert sum(engine.stats.aborts.values()) == 0
        engine.advance("upper")
        until(lambda: engine.stats.pending == 0)
        assert engine.poll_rows() == [(3, 1, 0), (5, 2, 0)]
        assert sum(engine.stats.aborts.values()) == 0, "none of the runs ahead was in vain"
        assert engine.state.values.tolist() == [1, 0, 1, 1, 0, 2]


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_an_event_inside_a_finished_chunk(protocol: str) -> None:
    """Eight events have run together; the ninth belongs between them."""
    with ss.Engine(
        entities, threads=2, horizon=8, chunk=8, protocol=protocol, sources=["a", "b"]
    ) as engine:
        times = list(range(10, 90, 10))
        engine.submit(
            {"time": times, "at": [0] * 8, "amount": [1] * 8}, order_by="time", source="a"
        )
        until(lambda: engine.stats.speculative_runs == 1)
        engine.submit({"time": [45], "at": [0], "amount": [100]}, order_by="time", source="b")
        until(lambda: engine.stats.aborts["reordered"] == 1)
        engine.advance("a")
        engine.advance("b")
        output, raised = drain(engine, 9)
        assert not raised
        assert output["value"].to_pylist() == [1, 2, 3, 4, 104, 105, 106, 107, 108]


def test_a_frontier_inside_a_finished_chunk_does_not_hold_back_its_first_events() -> None:
    with ss.Engine(entities, threads=2, horizon=8, chunk=8) as engine:
        engine.submit(
            {"time": [1, 2, 3, 4], "at": [0] * 4, "amount": [1] * 4}, order_by="time", source="a"
        )
        until(lambda: engine.stats.speculative_runs == 1)
        engine.advance("a", 3)
        until(lambda: engine.stats.events == 2 or engine.stats.events == 3)
        assert engine.poll(timeout=PATIENCE)["value"].to_pylist()[:2] == [1, 2]


def test_ties_gaps_and_a_silent_source() -> None:
    with ss.Engine(entities, threads=2, horizon=8, chunk=2, sources=[1, 2, 3], keys=True) as engine:
        for source, times in ((2, [5, 5, 1000]), (1, [5, 7]), (2, [5])):
            engine.submit(
                {"time": times, "at": [0] * len(times), "amount": [1] * len(times)},
                order_by="time",
                source=source,
            )
        for source in (1, 2):
            engine.advance(source)
        assert engine.poll(timeout=0.05).num_rows == 0, "source 3 has not said anything"
        engine.advance(3, 6)
        rows = engine.poll(timeout=PATIENCE)
        until(lambda: engine.stats.events == 4)
        rows = pa.concat_tables([rows, engine.poll()])
        assert rows["source"].to_pylist() == [1, 2, 2, 2]
        assert rows["sequence"].to_pylist() == [0, 0, 1, 3]
        assert rows["value"].to_pylist() == [1, 2, 3, 4]
        engine.advance(3)
        rows, _ = drain(engine, 6)
        assert rows["timestamp"].to_pylist() == [7, 1000]


@pytest.mark.parametrize("options", SETTINGS)
def test_sequence_numbers_and_randomness_do_not_depend_on_the_arrival(options: Any) -> None:
    """They are those of the source, however its events and others' are mixed on the way."""
    answers = []
    for order in ([0, 1, 2, 3], [2, 0, 3, 1], [2, 3, 0, 1]):
        pieces = [
            ("x", {"time": [1, 4], "at": [0, 1]}),
            ("x", {"time": [6, 6], "at": [2, 3]}),
            ("y", {"time": [1, 2], "at": [4, 5]}),
            ("y", {"time": [5, 9], "at": [6, 7]}),
        ]
        with ss.Engine(keyed, seed=7, sources=["x", "y"], **options) as engine:
            for number in order:
                engine.submit(pieces[number][1], order_by="time", source=pieces[number][0])
            engine.advance("x")
            engine.advance("y")
            answers.append(drain(engine, 8)[0])
    assert answers[0]["at"].to_pylist() == [0, 4, 5, 1, 6, 2, 3, 7]
    assert answers[0]["sequence"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert answers[0].equals(answers[1])
    assert answers[0].equals(answers[2])


def test_sources_in_a_column_and_strings() -> None:
    with ss.Engine(places, threads=2, horizon=4, chunk=2, sources=["JFK", "LGA"]) as engine:
        day = datetime.datetime(2013, 1, 1)
        hour = datetime.timedelta(hours=1)
        engine.submit(
            {
                "when": [day + 2 * hour, day, day + hour],
                "from": ["LGA", "JFK", "LGA"],
                "name": ["c", "a", "b"],
            },
            order_by="when",
            source_column="from",
        )
        engine.advance("JFK", day + 5 * hour)
        engine.advance("LGA", day + 2 * hour)
        assert engine.poll(timeout=PATIENCE)["name"].to_pylist()[:2] == ["a", "b"]
        engine.advance("LGA", day + 3 * hour)
        until(lambda: engine.stats.pending == 0)
        engine.poll()
        assert engine.state.count == 3


def test_a_source_that_joins_late_starts_where_nothing_is_committed() -> None:
    with ss.Engine(entities, threads=2, horizon=8, chunk=1, late="drop", sources=["m"]) as engine:
        send = {"time": [10], "at": [0], "amount": [1]}
        engine.submit(send, order_by="time", source="m", ordered=True)
        drain(engine, 1)
        # Before "m" in the order of ties: an event at 10 would have to be applied before.
        engine.submit(send, order_by="time", source="a")
        assert (engine.stats.late, engine.stats.pending) == (1, 0)
        engine.submit(send, order_by="time", source="z")
        assert (engine.stats.late, engine.stats.pending) == (1, 1)


@pytest.mark.parametrize("options", SETTINGS)
def test_a_poll_without_a_timeout_brings_all_that_is_below_the_frontier(options: Any) -> None:
    rng = np.random.default_rng(3)
    count, begin = 400, 0
    times = rng.permutation(count)
    with ss.Engine(keyed, **options) as engine:
        assert engine.poll(timeout=None).num_rows == 0
        # Singles and tables, many of which are done while earlier ones are not.
        for at, time_ in enumerate(times[:100].tolist()):
            engine.submit_event(time_, at=at)
        engine.submit({"time": times[100:], "at": np.arange(100, count)}, order_by="time")
        for end in (0, 1, 37, 38, 250, count):
            engine.advance(0, end - 1)
            found = engine.poll(timeout=None)["at"].to_numpy()
            assert times[found].tolist() == list(range(begin, end))
            assert engine.stats.pending == count - end
            begin = end


def test_rows_and_tables_are_the_same() -> None:
    @ss.operator(
        state=Count,
        event={"i": int, "f": float, "b": bool, "s": str},
        emits={"i": int, "f": float, "b": bool, "s": str},
    )
    def same(state, event, emit):
        emit(event.i, event.f, event.b, event.s)

    events = {"time": [1, 2], "i": [3, -4], "f": [0.5, -0.0], "b": [True, False], "s": ["x", "ä"]}
    with ss.Engine(same, threads=1, horizon=4, chunk=1) as engine:
        engine.submit(events, order_by="time", ordered=True)
        until(lambda: engine.stats.events == 2)
        assert engine.poll_rows() == [(3, 0.5, True, "x"), (-4, -0.0, False, "ä")]
        assert engine.poll_rows() == []


def test_identical_to_process_in_the_same_order() -> None:
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "time": rng.integers(0, 3000, 4000),
            "source": rng.choice(["a", "b"], 4000),
            "at": rng.integers(0, 6, 4000),
            "amount": rng.integers(0, 50, 4000),
        }
    )
    expected = run_oracle(entities, table, order_by="time", source="source")
    with ss.Engine(entities, threads=2, horizon=16, chunk=8) as engine:
        for start in range(0, 4000, 100):
            engine.submit(table.slice(start, 100), order_by="time", source_column="source")
        engine.advance("a")
        engine.advance("b")
        output, raised = drain(engine, 4000)
        found = Result(output, engine.state.to_dict(), ())
    assert raised == []
    assert_identical(found, expected)


@pytest.mark.parametrize("way", ["table", "event"])
def test_ordered_moves_the_frontier_to_the_last_of_this_table(way: str) -> None:
    """Not to the last that the source has ever sent."""
    with ss.Engine(places, threads=2, keys=True) as engine:
        engine.submit({"time": [62], "name": ["later"]}, order_by="time")
        if way == "table":
            engine.submit({"time": [47, 46], "name": ["b", "a"]}, order_by="time", ordered=True)
        else:
            engine.submit_event(46, name="a")
            engine.submit_event(47, name="b", ordered=True)
        assert engine.poll(None)["timestamp"].to_pylist() == [46, 47]
        engine.submit_event(50, name="between")
        engine.advance(0)
        assert engine.poll(None)["timestamp"].to_pylist() == [50, 62]


def _as_given(form: str, columns: dict[str, Any]) -> Any:
    forms: dict[str, Callable[[], Any]] = {
        "dict": lambda: columns,
        "pandas": lambda: pd.DataFrame(columns, copy=False),
        "arrow": lambda: pa.table(columns),
    }
    return forms[form]()


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("form", ["dict", "pandas", "arrow"])
def test_arrays_may_be_filled_again_once_they_were_submitted(form: str, early: bool) -> None:
    @ss.operator(event={"x": int, "y": float}, emits={"x": int, "y": float})
    def passes(event: Any, emit: Any) -> None:
        emit(event.x, event.y)

    columns = {"at": np.zeros(3, np.int64), "x": np.zeros(3, np.int64), "y": np.zeros(3)}
    expected = []
    with ss.Engine(passes, sources=["a"], threads=2, early=early, keys=True) as engine:
        for first in (1, 11, 21):
            columns["at"][:] = first, first + 1, first + 2
            columns["x"][:] = columns["at"] * 100
            columns["y"][:] = columns["at"] / 8
            expected += [(at, at * 100, at / 8) for at in columns["at"].tolist()]
            engine.submit(_as_given(form, columns), order_by="at", source="a")
            if early:
                engine.poll_early(timeout=None)
        for column in columns.values():
            column[:] = 7
        engine.advance("a")
        rows = engine.poll(timeout=None).to_pylist()
    assert [(row["timestamp"], row["x"], row["y"]) for row in rows] == expected
