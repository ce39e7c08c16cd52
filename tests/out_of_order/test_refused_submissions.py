"""Times, frontiers, policies and columns that cannot be: each is named, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.engine.arriving import PATIENCE, entities, places

import specstream as ss


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
        with pytest.raises(ss.InputError, match=r"order column 'time' is 1\.5; expected"):
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


@pytest.mark.parametrize("call", ["submit", "column", "event", "advance"])
def test_a_declared_source_that_is_written_otherwise_is_not_waited_for(call: str) -> None:
    @ss.operator(event={"x": int}, emits={"x": int})
    def passes(event: Any, emit: Any) -> None:
        emit(event.x)

    with ss.Engine(passes, sources=["Left", "right"]) as engine:
        calls: dict[str, Callable[[str], None]] = {
            "submit": lambda name: engine.submit({"at": [1], "x": [1]}, order_by="at", source=name),
            "column": lambda name: engine.submit(
                {"at": [1], "x": [1], "of": [name]}, order_by="at", source_column="of"
            ),
            "event": lambda name: engine.submit_event(1, source=name, x=1),
            "advance": engine.advance,
        }
        said = "source 'left ' is not among sources=, and 'Left' is, for which events would wait"
        with pytest.raises(ss.InputError, match=said):
            calls[call]("left ")
        # A source that is called otherwise joins, and one that has sent is not silent.
        calls[call]("middle")
        engine.submit_event(2, source="Left", x=2)
        calls[call]("left ")
        for name in ("Left", "right", "middle", "left "):
            engine.advance(name)
        assert 2 in engine.poll(timeout=None)["x"].to_pylist()


def test_sources_that_are_declared_are_those_that_are_meant() -> None:
    @ss.operator(event={"x": int}, emits={"x": int})
    def passes(event: Any, emit: Any) -> None:
        emit(event.x)

    with ss.Engine(passes, sources=["a", "A"]) as engine:
        engine.advance("A")
        engine.submit_event(1, source="a", x=1)
        engine.advance("a")
        assert engine.poll(timeout=None)["x"].to_pylist() == [1]
