"""Events that come out of order: the answer is that of one sequential run in the order of keys."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journeys import run_submitted

import specstream as ss

PATIENCE = 20.0


class Six(ss.State):
    values = ss.array(int, 6)
    last = ss.scalar(int)


@ss.operator(
    state=Six,
    event={"at": int, "amount": int},
    emits={"at": int, "value": int, "before": int},
)
def entities(state, event, emit):
    """Reads and writes one entity, and depends on the event before."""
    state.values[event.at % 6] += event.amount
    if event.amount % 7 == 0:
        state.last = state.last * 3 + event.timestamp
    if event.amount == -1:
        raise ValueError(f"amount -1 at {event.at}")
    emit(event.at, state.values[event.at % 6], state.last)


@ss.operator(
    state=Six,
    event={"at": int},
    emits={"at": int, "sequence": int, "source": int, "bits": int},
)
def keyed(state, event, emit):
    emit(event.at, event.sequence, event.source, np.int64(event.random_bits(0)))


class Count(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Count, event={"name": str}, emits={"name": str, "place": int})
def places(state, event, emit):
    state.count += 1
    emit(event.name, state.count)


SETTINGS = [
    {"threads": 1, "horizon": 0},
    {"threads": 1, "horizon": 8, "chunk": 1},
    {"threads": 2, "horizon": 8, "chunk": 8},
    {"threads": 3, "horizon": 1, "chunk": 1},
    {"threads": 2, "horizon": 64, "chunk": 3},
    {"threads": 2, "horizon": 8, "chunk": 8, "protocol": "eager"},
    {"threads": 3, "horizon": 16, "chunk": 1, "protocol": "eager"},
    {"threads": 2, "horizon": "auto"},
]


def until(condition: Callable[[], bool]) -> None:
    """Waits for something that other threads bring about."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.001)


def drain(engine: ss.Engine, events: int) -> tuple[pa.Table, list[tuple[str, str]]]:
    """Everything that is still to come, and what was raised on the way."""
    parts, raised = [], []
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            parts.append(engine.poll(timeout=0.5))
        except ValueError as error:
            parts.append(error.specstream_partial.output)  # type: ignore[attr-defined]
            raised.append((type(error).__name__, str(error)))
        if engine.stats.events + len(raised) == events:
            break
        assert time.monotonic() < deadline, "not all events were applied"
    parts.append(engine.poll())
    return pa.concat_tables(parts), raised


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


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
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


# ---- late events ----


def late_engine(**options: Any) -> ss.Engine:
    engine = ss.Engine(entities, threads=2, horizon=4, chunk=1, **options)
    engine.submit({"time": [1, 9], "at": [0, 0], "amount": [1, 1]}, order_by="time", source="a")
    engine.advance("a", 5)
    return engine


LATE = {"time": [6, 4, 3], "at": [0, 0, 0], "amount": [7, 5, 5]}


def test_late_events_are_an_error() -> None:
    with late_engine() as engine:
        with pytest.raises(ss.InputError, match=r"2 event.* late.*'a' at time=3.*frontier"):
            engine.submit(LATE, order_by="time", source="a")
        assert engine.stats.pending <= 2
        with pytest.raises(ss.InputError, match="late"):
            engine.submit(
                {**LATE, "source": ["a", "new", "a"]}, order_by="time", source_column="source"
            )
        engine.advance("a")
        assert drain(engine, 2)[0]["value"].to_pylist() == [1, 2], "nothing of the tables came in"


def test_late_events_are_dropped_and_counted() -> None:
    with late_engine(late="drop") as engine:
        engine.submit(LATE, order_by="time", source="a")
        assert engine.stats.late == 2
        engine.advance("a")
        assert drain(engine, 3)[0]["value"].to_pylist() == [1, 8, 9]
        assert engine.late() is None


def test_late_events_go_to_the_side() -> None:
    with late_engine(late="side") as engine:
        engine.submit(LATE, order_by="time", source="a")
        side = engine.late()
        assert side is not None
        assert side.to_pydict() == {"time": [4, 3], "at": [0, 0], "amount": [5, 5]}
        assert engine.late() is None
        engine.advance("a")
        assert drain(engine, 3)[0]["value"].to_pylist() == [1, 8, 9]


def test_an_event_without_a_time_does_not_settle_the_type_of_the_others() -> None:
    with ss.Engine(places, rejected_rows="side") as engine:
        engine.submit_event(None, name="nobody")
        engine.submit({"time": [None, None], "name": ["no", "body"]}, order_by="time")
        engine.submit_event(7, name="somebody", ordered=True)
        assert engine.poll_rows(timeout=None) == [("somebody", 1)]
        engine.submit_event(None, name="nobody")
        assert engine.stats.rejected_rows == 4
        bad = engine.rejected_rows()
        assert bad is not None
        null = "column 'time' is null"
        assert bad["reason"].to_pylist() == ["the time is null", null, null, "the time is null"]
    with ss.Engine(places) as engine:
        with pytest.raises(ss.InputError, match="source 3 has no time"):
            engine.submit_event(None, 3, name="nobody")
        engine.submit_event(datetime.datetime(2013, 1, 1), 3, name="somebody", ordered=True)
        assert engine.poll_rows(timeout=None) == [("somebody", 1)]


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


# ---- beside the rest of an engine ----


@pytest.mark.parametrize("options", SETTINGS)
def test_an_event_that_raises_is_not_applied_and_the_others_go_on(options: Any) -> None:
    with ss.Engine(entities, **options) as engine:
        engine.submit(
            {"time": [1, 2, 3, 4], "at": [0, 0, 0, 0], "amount": [1, -1, 2, -1]}, order_by="time"
        )
        engine.advance(0)

        def poll_on() -> None:
            while True:
                engine.poll(timeout=PATIENCE)

        with pytest.raises(ValueError, match="amount -1") as raised:
            poll_on()
        assert "source, sequence) = (2, 0, 1)" in raised.value.__notes__[0]
        output, errors = drain(engine, 3)
        assert output["value"].to_pylist() in ([3], [])
        assert errors == [("ValueError", "amount -1 at 0")]
        assert engine.state.values[0] == 3


def test_process_waits_for_submitted_events() -> None:
    table = {"at": [0], "amount": [1]}
    with ss.Engine(entities, threads=2, horizon=4, chunk=1) as engine:
        engine.process(table)
        engine.submit({"time": [5], **table}, order_by="time", source="a")
        with pytest.raises(ss.InputError, match=r"1 submitted event.*advance.*poll"):
            engine.process(table)
        engine.advance("a")
        until(lambda: engine.stats.pending == 0)
        assert engine.poll()["value"].to_pylist() == [2]
        assert engine.process(table)["value"].to_pylist() == [3]
        engine.submit({"time": [6], **table}, order_by="time", source="b")
        engine.advance("b")
        assert engine.poll(timeout=PATIENCE)["value"].to_pylist() == [4]
        assert engine.stats.events == 4


def test_state_is_a_whole_number_of_events_while_they_commit() -> None:
    class Pair(ss.State):
        left = ss.scalar(int)
        right = ss.scalar(int)

    @ss.operator(state=Pair, event={"x": int}, emits={})
    def both(state, event, emit):
        state.left += event.x
        for _ in range(20):
            state.right += 0
        state.right += event.x

    with ss.Engine(both, threads=2, horizon=8, chunk=2) as engine:
        seen = set()
        over = threading.Event()

        def read() -> None:
            while not over.is_set():
                state = engine.state
                seen.add(state.left - state.right)

        reader = threading.Thread(target=read)
        for start in range(0, 4000, 40):
            engine.submit(
                {"time": range(start, start + 40), "x": [1] * 40}, order_by="time", ordered=True
            )
            if start == 0:
                reader.start()  # before, the engine is idle, and a view of its state is live
            engine.poll()
        engine.advance(0)
        drain(engine, 4000)
        over.set()
        reader.join()
        assert seen == {0}
        assert engine.state.left == 4000


def test_closing_with_pending_events_ends_at_once() -> None:
    engine = ss.Engine(entities, threads=2, horizon=4, chunk=1)
    engine.submit({"time": [1], "at": [0], "amount": [1]}, order_by="time")
    engine.close()
    assert engine.state.values.sum() == 0
    with pytest.raises(ss.EngineClosedError):
        engine.poll()


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order_by": "when"}, "no column 'when'"),
        ({"order_by": "time", "source": 1.5}, "source 1.5; expected an integer or a string"),
        ({"order_by": "time", "source": "a", "source_column": "time"}, "both given"),
        ({"order_by": "time", "source_column": "from"}, "no column 'from'"),
    ],
)
def test_wrong_submissions_change_nothing(arguments: Any, message: str) -> None:
    with ss.Engine(entities, threads=1, horizon=2, chunk=1) as engine:
        table = {"time": [1], "at": [0], "amount": [1]}
        with pytest.raises((ss.InputError, ss.ConfigurationError), match=message):
            engine.submit(table, **arguments)
        engine.submit(table, order_by="time", source=3)
        with pytest.raises(ss.InputError, match="name them all alike"):
            engine.submit(table, order_by="time", source="a")
        with pytest.raises(ss.InputError, match="order column 'time' has type double"):
            engine.submit({**table, "time": [1.5]}, order_by="time", source=3)
        with pytest.raises(ss.InputError, match="time 'soon' is no int64"):
            engine.advance(3, "soon")
        with pytest.raises(ss.InputError, match=r"time 1.5 is no int64"):
            engine.advance(3, 1.5)
        engine.advance(3)
        assert engine.poll(timeout=PATIENCE)["value"].to_pylist() == [1]


def test_wrong_policies_are_refused() -> None:
    with pytest.raises(ss.ConfigurationError, match="late='ignore'; expected one of error, drop"):
        ss.Engine(entities, late="ignore")  # type: ignore[arg-type]
    with (
        ss.Engine(entities, execution="log_free") as engine,
        pytest.raises(ss.ConfigurationError, match='execution="ordered"'),
    ):
        engine.advance("a")


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
        found = type(expected)(output, engine.state.to_dict(), tuple(raised))
    assert_identical(found, expected)


# ---- snapshots ----


@pytest.mark.parametrize("keys", [False, True])
def test_a_snapshot_holds_pending_events_sources_and_output(keys: bool) -> None:
    """An engine that goes on from it gives what the first one had still to give."""
    options: dict[str, Any] = {
        "threads": 2,
        "horizon": 8,
        "chunk": 2,
        "keys": keys,
        "sources": ["a", "b", "silent"],
    }
    with ss.Engine(entities, **options) as engine:
        rows = {"at": [0] * 4, "amount": [1, 2, 3, 4]}
        engine.submit({"time": [1, 3, 5, 7], **rows}, order_by="time", source="a")
        engine.submit({"time": [2, 4, 6, 8], **rows}, order_by="time", source="b")
        engine.submit_event(9, "b", at=0, amount=5)
        for source in ("a", "b", "silent"):
            engine.advance(source, 5)
        until(lambda: engine.stats.events == 5)
        snapshot = engine.snapshot()
        first = engine.poll()
        assert first["value"].to_pylist() == [1, 2, 4, 6, 9]
    with ss.Engine(entities, **options, restore=snapshot) as engine:
        assert (engine.stats.pending, engine.state.values[0]) == (4, 9)
        assert engine.poll().equals(first), "it was committed, and nobody had it before"
        with pytest.raises(ss.InputError, match="late"):
            engine.submit_event(4, "silent", at=0, amount=1)
        engine.submit_event(6, "a", at=0, amount=100)
        engine.advance("a")
        engine.advance("b")
        assert engine.poll(timeout=0.05).num_rows == 0, "the silent source holds it back"
        engine.advance("silent")
        output, _ = drain(engine, 5)
        assert output["value"].to_pylist() == [109, 112, 116, 120, 125]
        if keys:
            assert output["sequence"].to_pylist() == [4, 2, 3, 3, 4]
            assert output["source"].to_pylist() == ["a", "b", "a", "b", "b"]


def test_a_snapshot_can_be_restored_into_an_engine_at_work() -> None:
    with ss.Engine(entities, threads=2, horizon=8, chunk=1) as engine:
        engine.submit_event(5, at=0, amount=1)
        snapshot = engine.snapshot()
        engine.submit_event(6, at=0, amount=10)
        engine.advance(0)
        drain(engine, 2)
        engine.restore(snapshot)
        assert engine.stats.pending == 1
        engine.submit_event(7, at=0, amount=100)
        engine.advance(0)
        until(lambda: engine.stats.pending == 0)
        assert engine.poll()["value"].to_pylist() == [1, 101]


@pytest.mark.parametrize("restored", SETTINGS)
@pytest.mark.parametrize("back", ["new engine", "restore", "rewind"])
def test_events_below_the_frontier_come_back_in_their_order(restored: Any, back: str) -> None:
    """One of each of many sources, the last one first; and nobody but poll() makes them go."""
    count = 300
    with ss.Engine(entities, threads=2, horizon=8, chunk=4) as engine:
        for number in reversed(range(count)):
            engine.submit_event(7 * number, number, at=0, amount=-1 if number == 0 else 7)
        for number in range(count):
            engine.advance(number)
        # The first event raises; until somebody has polled that, none of the others commits.
        snapshot, mark = engine.snapshot(), engine.savepoint()
        assert engine.stats.pending == count
        expected, raised = drain(engine, count)
        assert raised == [("ValueError", "amount -1 at 0")]
        assert expected["value"].to_pylist() == list(range(7, 7 * count, 7))
        again = engine
        if back == "new engine":
            again = ss.Engine(entities, restore=snapshot, **restored)
        elif back == "restore":
            again = ss.Engine(entities, **restored)
            again.submit_event(3, at=0, amount=1)  # which is forgotten
            again.restore(snapshot)
        else:
            again.rollback(mark)
        with again:
            assert (again.stats.pending, again.state.values[0]) == (count, 0)
            with pytest.raises(ValueError, match="amount -1 at 0") as caught:
                again.poll(timeout=None)
            first = caught.value.specstream_partial.output  # type: ignore[attr-defined]
            assert first.num_rows == 0
            assert again.poll(timeout=None).equals(expected)
            assert again.stats.pending == 0


@pytest.mark.parametrize("timeout", [None, PATIENCE])
def test_poll_alone_makes_restored_events_go(timeout: float | None) -> None:
    with ss.Engine(entities, threads=2, horizon=8, chunk=1, sources=["a"]) as engine:
        engine.submit_event(5, "a", at=0, amount=-1)
        engine.submit_event(6, "a", at=0, amount=10)
        engine.advance("a")
        snapshot, mark = engine.snapshot(), engine.savepoint()
        for number in range(3):
            if number == 1:
                engine.rollback(mark)
            elif number == 2:
                engine.restore(snapshot)
            with pytest.raises(ValueError, match="amount -1"):
                engine.poll(timeout)
            assert engine.poll_rows(timeout) == [(0, 10, 0)]


@pytest.mark.parametrize("before", [0, 1])
def test_sources_that_join_after_all_others_have_ended(before: int) -> None:
    """No event of theirs commits before all of the table are there, though nothing was awaited."""
    count = 200
    with ss.Engine(entities, threads=2, horizon=8, chunk=1, sources=[-1], late="drop") as engine:
        for _ in range(before):
            engine.submit_event(0, -1, at=0, amount=1)
        engine.advance(-1)
        assert engine.poll(timeout=None).num_rows == before
        times = np.arange(count, 0, -1)  # the first source's event is the last
        engine.submit(
            {"time": times, "from": np.arange(count), "at": [0] * count, "amount": times},
            order_by="time",
            source_column="from",
        )
        for number in range(count):
            engine.advance(number)
        output = engine.poll(timeout=None)
        assert output["value"].to_pylist() == (np.cumsum(times[::-1]) + before).tolist()


@pytest.mark.parametrize("back", ["restore", "rewind"])
def test_what_nobody_has_fetched_comes_back(back: str) -> None:
    """Late events, bad rows, and frontiers that were given before any event."""
    options: dict[str, Any] = {"late": "side", "rejected_rows": "side", "sources": ["a", "b"]}
    with ss.Engine(places, **options) as engine:
        engine.advance("a", datetime.datetime(2013, 1, 2))
        snapshot, mark = engine.snapshot(), engine.savepoint()
        engine.restore(snapshot) if back == "restore" else engine.rollback(mark)
        engine.advance("b")
        engine.submit_event(datetime.datetime(2013, 1, 1), "a", name="too late")
        engine.submit_event(None, "a", name="never")
        engine.submit_event(datetime.datetime(2013, 1, 2), "a", name="in time")
        assert engine.poll_rows(timeout=None) == [("in time", 1)]
        snapshot, mark = engine.snapshot(), engine.savepoint()
        for _ in range(2):
            late, bad = engine.late(), engine.rejected_rows()
            assert late is not None
            assert bad is not None
            assert late["name"].to_pylist() == ["too late"]
            assert bad["name"].to_pylist() == ["never"]
            assert engine.stats.late == 1
            engine.restore(snapshot) if back == "restore" else engine.rollback(mark)


def test_marks_may_be_gone_back_to_in_any_order() -> None:
    """Also behind a snapshot that was restored: each knows its strings."""
    with ss.Engine(places, threads=2, horizon=8, chunk=1, rejected_rows="side") as engine:
        snapshot = engine.snapshot()
        marks = []
        for name in ("one", "two", "three"):
            marks.append(engine.savepoint())
            engine.submit({"time": [len(marks)] * 2, "name": [name, None]}, order_by="time")
        marks.append(engine.savepoint())
        for at in (3, 1, 2, 0, 3):
            engine.restore(snapshot)
            engine.rollback(marks[at])
            bad = engine.rejected_rows()
            assert (0 if bad is None else bad.num_rows) == at
            if at:
                engine.advance(0)
            expected = [(name, n + 1) for n, name in enumerate(("one", "two", "three")[:at])]
            assert engine.poll_rows(timeout=None) == expected


def test_pending_events_of_other_columns_are_refused() -> None:
    with ss.Engine(entities, threads=1, horizon=2, chunk=1) as engine:
        engine.submit_event(5, at=0, amount=1)
        snapshot = engine.snapshot()

    @ss.operator(state=Six, event={"at": int}, emits={"at": int})
    def other(state, event, emit):
        state.values[0] += event.at
        emit(event.at)

    with pytest.raises(ss.SnapshotError, match=r"1 event.* not committed.*'amount'"):
        ss.Engine(other, restore=snapshot)


def test_output_survives_a_change_to_batches() -> None:
    """What nobody polled before process() is still there after it."""
    with ss.Engine(entities, threads=2, horizon=8, chunk=1) as engine:
        engine.submit_event(5, at=0, amount=1, ordered=True)
        until(lambda: engine.stats.pending == 0)
        engine.process({"at": [0], "amount": [1]})
        assert engine.poll_rows() == [(0, 1, 0)]
        assert engine.poll_rows() == []


# ---- several threads ----


def test_who_submits_does_not_wait_for_who_polls() -> None:
    with ss.Engine(entities, threads=2, horizon=4, chunk=1, sources=["a", "b"]) as engine:
        rows: list[Any] = []

        def poll_on() -> None:
            while len(rows) < 100:
                rows.extend(engine.poll_rows(timeout=30))

        engine.submit_event(-1, "a", at=0, amount=1)  # it waits for b
        poller = threading.Thread(target=poll_on)
        poller.start()
        time.sleep(0.05)
        began = time.monotonic()
        for number in range(99):
            engine.submit_event(number, "a", at=number, amount=1)
        assert time.monotonic() - began < 5
        engine.advance("a")
        engine.advance("b")
        poller.join(PATIENCE)
        assert not poller.is_alive()
        assert len(rows) == 100


def test_closing_ends_a_poll() -> None:
    engine = ss.Engine(entities, threads=2, horizon=4, chunk=1)
    engine.submit_event(1, at=0, amount=1)
    ended: list[str] = []

    def poll_on() -> None:
        try:
            while True:
                engine.poll(timeout=30)
        except ss.EngineClosedError:
            ended.append("closed")

    poller = threading.Thread(target=poll_on)
    poller.start()
    time.sleep(0.05)
    engine.close()
    poller.join(PATIENCE)
    assert ended == ["closed"]


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


@pytest.mark.parametrize("time", [2**63, -(2**63) - 1, 10**400])
@pytest.mark.parametrize("before", [False, True])
def test_times_beyond_int64_are_refused(time: int, before: bool) -> None:
    with ss.Engine(places, threads=1) as engine:
        if before:
            engine.submit_event(1, name="a")
            with pytest.raises(ss.InputError, match=r"time -?[\d.]+ is no int64"):
                engine.advance(0, time)
        with pytest.raises(ss.InputError, match=r"time -?[\d.]+ is no int64"):
            engine.submit_event(time, name="a")
        engine.submit_event(2, name="b", ordered=True)
        assert engine.poll(None)["name"].to_pylist() == ["a", "b"][1 - before :]


@pytest.mark.parametrize("to", ["x", float("nan"), b"", [1], 2**63, 10**400, True])
def test_a_frontier_before_any_event_must_be_a_time(to: Any) -> None:
    with ss.Engine(places, threads=1) as engine:
        with pytest.raises(ss.InputError, match=r"time .* of source 0's frontier"):
            engine.advance(0, to)
        engine.submit_event(5, name="a", ordered=True)
        assert engine.poll(None)["name"].to_pylist() == ["a"]


@pytest.mark.parametrize("timeout", ["x", -1, float("nan"), [], True])
@pytest.mark.parametrize("poll", ["poll", "poll_rows"])
def test_timeouts_that_are_none_are_refused(poll: str, timeout: Any) -> None:
    with ss.Engine(places, threads=1) as engine:
        engine.submit_event(5, name="a", ordered=True)
        with pytest.raises(ss.ConfigurationError, match=r"timeout=.*; expected seconds"):
            getattr(engine, poll)(timeout)
        assert engine.poll_rows(float("inf")) == [("a", 1)]


def test_the_highest_source_is_named_in_the_error() -> None:
    with pytest.raises(ss.ConfigurationError, match=f"an integer from .* to {2**63 - 2}"):
        ss.Engine(places, sources=[2**63 - 1])


def test_a_frontier_of_another_type_than_the_events_is_not_forgotten() -> None:
    with ss.Engine(places, threads=1) as engine:
        engine.advance(0, 1.5)
        for _ in range(2):
            with pytest.raises(ss.InputError, match=r"frontier 1.5 of source 0 is no int64"):
                engine.submit_event(1, name="a")
            with pytest.raises(ss.InputError, match=r"frontier 1.5 of source 0 is no int64"):
                engine.submit({"time": [1], "name": ["a"]}, order_by="time")
        engine.advance(0, 2)
        with pytest.raises(ss.InputError, match="late"):
            engine.submit_event(1, name="a")


@pytest.mark.filterwarnings("error")
def test_the_lag_of_infinite_times_warns_of_nothing() -> None:
    with ss.Engine(places, threads=1) as engine:
        for name, time in (("a", -float("inf")), ("b", 1.0), ("c", float("inf"))):
            engine.submit_event(time, name=name, ordered=True)
            assert engine.stats.events >= 0
        assert engine.poll(None)["name"].to_pylist() == ["a", "b", "c"]
        assert engine.stats.events == 3
