"""Events that wait and rows that nobody has fetched: in snapshots, and back at a savepoint."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from conftest import partial_of
from support.engine.arriving import PATIENCE, SETTINGS, Six, drain, entities, places, until

import specstream as ss


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
            first = partial_of(caught.value).output
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
