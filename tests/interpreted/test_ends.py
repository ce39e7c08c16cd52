"""Runs of interpreted operators that must not go on: doomed, endless, failed, interrupted."""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
import traceback
import weakref
from typing import Any

import numpy as np
import pytest

import specstream as ss

PATIENCE = 60  # seconds; only a test that fails waits so long


class Pair(ss.State):
    left = ss.scalar(int)
    right = ss.scalar(int)
    done = ss.array(int, 8)


# What has happened so far; made anew by each test.
read = threading.Event()
committed = threading.Event()
swallowed: list[int] = []
calls: list[int] = []


@pytest.fixture(autouse=True)
def _anew() -> None:
    read.clear()
    committed.clear()
    swallowed.clear()
    calls.clear()


def told(notification: ss.Notification) -> None:
    committed.set()


def see_halves(state, event):
    """Event 0 writes both when event 1 has read one of them; that one reads the other one then."""
    if event.number == 0:
        assert read.wait(PATIENCE)
        state.left = 1
        state.right = 1
        return 0, 0
    left = state.left
    read.set()
    assert committed.wait(PATIENCE)
    return left, state.right


def wait_for_it(left, right):
    while left != right:
        pass


@ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
def loops(state, event, emit):
    left, right = see_halves(state, event)
    while left != right:
        pass
    emit(event.number)


@ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
def loops_in_a_helper(state, event, emit):
    left, right = see_halves(state, event)
    wait_for_it(left, right)
    emit(event.number)


@ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
def loops_over_the_state(state, event, emit):
    left, right = see_halves(state, event)
    # No loop of the operator's own: the access ends it.
    list(iter(lambda: state.done[0] + (left != right), 0))
    emit(event.number)


@ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
def swallows(state, event, emit):
    left, right = see_halves(state, event)
    while left != right:
        try:
            state.done[1] += 1
        except BaseException:
            swallowed.append(event.number)
    emit(event.number)


@ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
def raises(state, event, emit):
    left, right = see_halves(state, event)
    calls.append(event.number)
    if left != right:
        raise ValueError("values that never existed together")
    emit(event.number)


@pytest.mark.parametrize(
    "operator",
    [loops, loops_in_a_helper, loops_over_the_state, swallows, raises],
    ids=lambda o: o.name,
)
@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_run_on_values_that_never_existed_together_ends(
    operator: ss.Operator, protocol: str
) -> None:
    with ss.Engine(
        operator, threads=2, horizon=2, chunk=1, protocol=protocol, on_post_commit=told
    ) as engine:
        output = engine.process({"number": [0, 1]})
        assert output["number"].to_pylist() == [0, 1]
        assert (engine.state.left, engine.state.right) == (1, 1)
        assert engine.state.done.sum() == 0  # what the doomed run did is gone
        assert sum(engine.stats.aborts.values()) >= 1


@ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
def fails_at_five(state, event, emit):
    state.done[event.number % 8] += 1
    emit(event.number)
    if event.number == 5:
        raise ArithmeticError(f"event {event.number} with {state.left}")
    state.left += 1


@pytest.mark.parametrize("protocol", ["value", "eager"])
@pytest.mark.parametrize("chunk", [1, 4])
def test_the_exception_of_the_head_is_raised_with_its_own_traceback(
    protocol: str, chunk: int
) -> None:
    table = {"number": np.arange(12)}
    with ss.Engine(
        fails_at_five, threads=3, horizon=8, chunk=chunk, protocol=protocol, execution="speculate"
    ) as engine:
        with pytest.raises(ArithmeticError, match="event 5 with 5") as caught:
            engine.process(table)
        partial = vars(caught.value)["specstream_partial"]
        assert partial.consumed == 5
        assert partial.output["number"].to_pylist() == [0, 1, 2, 3, 4]
        assert engine.state.done.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]
        lines = traceback.extract_tb(caught.value.__traceback__)
        assert any("raise ArithmeticError" in (one.line or "") for one in lines)
        assert any("number=5" in note for note in caught.value.__notes__)
        rest = engine.process({"number": np.arange(6, 12)})
        assert rest["number"].to_pylist() == [6, 7, 8, 9, 10, 11]
    expected = fails_at_five.run_sequential(table, on_error="skip")
    assert [(row, str(error)) for row, error in expected.raised] == [(5, "event 5 with 5")]


@ss.operator(state=Pair, event={"number": int}, emits={}, interpreted=True)
def never_ends(state, event, emit):
    state.left += 1
    if event.number == 3:
        if state.left == 4:  # it has seen the ones before it, so that they are committed
            read.set()
        state.left = 100
        while True:
            pass


@pytest.mark.parametrize("horizon", [0, 4])
def test_an_endless_event_is_ended_by_close_and_leaves_no_trace(horizon: int) -> None:
    engine = ss.Engine(never_ends, threads=2, horizon=horizon, chunk=1)

    def close() -> None:
        read.wait(PATIENCE)
        engine.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(ss.EngineClosedError):
        engine.process({"number": np.arange(6)})
    closer.join()
    assert engine.state.left == 3


@ss.operator(state=Pair, event={"number": int}, emits={}, interpreted=True)
def interrupts(state, event, emit):
    state.left += 1
    if event.number == 3 and 3 not in calls:
        if not calls:
            calls.append(0)
            os.kill(os.getpid(), signal.SIGINT)
        while 3 not in calls:  # also when an attempt is repeated before the signal is handled
            pass


@pytest.mark.parametrize("horizon", [0, 4])
def test_ctrl_c_ends_an_endless_event_and_the_engine_goes_on(horizon: int) -> None:
    with ss.Engine(interrupts, threads=2, horizon=horizon, chunk=1) as engine:
        with pytest.raises(KeyboardInterrupt) as caught:
            engine.process({"number": np.arange(6)})
        calls.append(3)
        done = vars(caught.value)["specstream_partial"].consumed
        assert engine.state.left == done <= 3
        engine.process({"number": np.arange(done, 6)})
        assert engine.state.left == 6


@ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
def exits(state, event, emit):
    state.left += 1
    if event.number == 3 and calls:
        raise SystemExit("three")
    emit(event.number)


@pytest.mark.parametrize("errors", ["raise", "side"])
@pytest.mark.parametrize("horizon", [0, 4])
def test_what_is_no_exception_of_an_event_ends_the_call(horizon: int, errors: Any) -> None:
    """SystemExit is not set aside, and the engine goes on."""
    calls.append(
        3
    )  # until it is taken out, whoever runs the event: the first run may be speculative
    with ss.Engine(exits, threads=2, horizon=horizon, chunk=1, errors=errors) as engine:
        with pytest.raises(SystemExit, match="three") as caught:
            engine.process({"number": np.arange(6)})
        done = vars(caught.value)["specstream_partial"].consumed
        assert done == engine.state.left == 3
        assert engine.failed_events() is None
        calls.clear()
        assert engine.process({"number": np.arange(3, 6)})["number"].to_pylist() == [3, 4, 5]


@ss.operator(state=Pair, event={"number": int}, emits={}, interpreted=True)
def waits(state, event, emit):
    state.left += 1
    time.sleep(0.0005)  # without the interpreter lock, as for an answer of the network
    state.right += 1


@pytest.mark.parametrize("horizon", [0, 4])
def test_who_looks_at_the_state_meanwhile_sees_whole_events(horizon: int) -> None:
    with ss.Engine(waits, threads=2, horizon=horizon, chunk=1) as engine:
        worker = threading.Thread(target=engine.process, args=({"number": np.arange(200)},))
        worker.start()
        seen = []
        while worker.is_alive():
            of = engine.state.to_dict()
            assert of["left"] == of["right"]
            seen.append(int(of["left"]))
        worker.join()
        assert seen == sorted(seen)
        assert engine.state.left == 200


def test_an_engine_that_nobody_holds_is_gone_at_once() -> None:
    """Without the collector, also where an event has raised, whose traceback holds frames."""

    def used() -> ss.Engine:
        engine = ss.Engine(fails_at_five, threads=2, horizon=4, chunk=1)
        engine.process({"number": [0, 1, 2]})
        with pytest.raises(ArithmeticError):
            engine.process({"number": [5]})
        return engine

    used().close()  # whatever is made at the first time
    gc.collect()
    gc.disable()
    try:
        engine = used()
        gone = weakref.ref(engine)
        del engine
        assert gone() is None
    finally:
        gc.enable()


kept: list[object] = []


def test_a_state_that_was_kept_is_refused_between_events() -> None:
    @ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
    def keeps(state, event, emit):
        kept[:] = [state, emit]
        emit(event.number)

    with ss.Engine(keeps, threads=1) as engine:
        engine.process({"number": [1]})
        state, emit = kept
        with pytest.raises(RuntimeError, match="behind the end of their event"):
            state.left  # type: ignore[attr-defined]  # noqa: B018
        with pytest.raises(RuntimeError, match="behind the end of their event"):
            emit(1)  # type: ignore[operator]
        assert engine.process({"number": [2]})["number"].to_pylist() == [2]


@pytest.mark.parametrize("horizon", [0, 4])
def test_another_thread_is_refused_while_the_event_runs(horizon: int) -> None:
    @ss.operator(state=Pair, event={"number": int}, emits={"number": int}, interpreted=True)
    def asks_a_thread(state, event, emit):
        state.left += 1
        told = []

        def other():
            for read in (lambda: state.left, lambda: event.number, lambda: emit(1)):
                try:
                    read()
                except RuntimeError as error:
                    told.append("in another thread" in str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        emit(sum(told))

    with ss.Engine(asks_a_thread, threads=2, horizon=horizon, chunk=1) as engine:
        output = engine.process({"number": [1, 2, 3]})
        assert output["number"].to_pylist() == [3, 3, 3]
        assert engine.state.left == 3


def test_a_fork_during_a_batch_of_another_thread() -> None:
    """The child's engine of the parent is refused, and another one works; the parent goes on."""
    with ss.Engine(waits, threads=3, horizon=4, chunk=1) as engine:
        worker = threading.Thread(target=engine.process, args=({"number": np.arange(400)},))
        worker.start()
        while engine.state.left < 5:
            assert worker.is_alive()
        child = os.fork()
        if child == 0:  # no exception may get out of here
            status = 1
            try:
                with contextlib.suppress(ss.EngineClosedError):
                    engine.process({"number": [0]})
                    os._exit(2)
                engine.close()
                with ss.Engine(waits, threads=2, horizon=4, chunk=1) as other:
                    other.process({"number": [0, 1]})
                    assert other.state.left == 2
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        worker.join()
        assert engine.state.left == 400


def test_an_engine_forked_between_batches_is_read_and_another_one_works_in_the_child() -> None:
    with ss.Engine(fails_at_five, threads=2, horizon=4, chunk=1) as engine:
        engine.process({"number": [0, 1, 2]})
        child = os.fork()
        if child == 0:  # no exception may get out of here
            status = 1
            try:
                assert engine.state.left == 3
                with ss.Engine(fails_at_five, threads=2, horizon=4, chunk=1) as other:
                    other.process({"number": [0, 1]})
                    assert other.state.left == 2
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        engine.process({"number": [3]})
        assert engine.state.left == 4
