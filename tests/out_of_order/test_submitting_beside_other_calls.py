"""Submitted events beside batches, errors, views of the state, other threads and the end."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from support.engine.arriving import PATIENCE, SETTINGS, drain, entities, until

import specstream as ss


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
