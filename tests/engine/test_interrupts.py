"""Exceptions of signal handlers, at each step of a call where Python looks for signals."""

from __future__ import annotations

import dis
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from support import processes
from support.engine import interrupt_driver
from support.engine.interrupt_driver import POLLS, Interrupted, NthStep, by_time

import specstream as ss

pytestmark = pytest.mark.slow

OPTIONS: list[dict[str, Any]] = [{"horizon": 0}, {"horizon": 4, "chunk": 8, "keys": True}]


def each_step(
    what: str, around: Callable[[Interrupted], None], options: Mapping[str, Any]
) -> Counter[str]:
    """Has the calls of one kind interrupted, each time one step later; what was seen."""
    by = NthStep("nothing yet")
    one = Interrupted(random.Random(0), by, **options)
    around(one)  # whatever is there from the first event on
    by.what = what
    for number in range(10_000):
        by.left = number
        around(one)
        if by.left >= 0:  # there are no more steps
            break
    one.engine.close()
    assert number > 5, "it was interrupted nowhere: it proves nothing"
    return one.seen


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_whatever_step_of_a_batch_is_interrupted_its_error_tells_what_was_applied(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupt_driver, "EVENTS", 8)
    seen = each_step("process", Interrupted.process, options)
    assert seen["process: with a partial"] > 50
    assert seen["process: with no partial"] > 20


CALLS = ("submit", "submit two", "submit_event", "advance", "end", *POLLS)


# Each step of each call: every day with one of the two operators, in turn.
@pytest.mark.parametrize(
    ("what", "is_by_time"),
    [
        pytest.param(what, is_by_time, marks=[pytest.mark.long] if (at + is_by_time) % 2 else [])
        for at, what in enumerate(CALLS)
        for is_by_time in (False, True)
    ],
)
def test_whatever_step_is_interrupted_out_of_order_nothing_is_lost_or_done_twice(
    what: str, is_by_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupt_driver, "TABLE", 4)

    def around(one: Interrupted) -> None:
        one.come(what if what.startswith("submit") else "submit two")
        one.advance()
        assert isinstance(one.by, NthStep)
        if what == "end" or one.by.left % 8 == 0:  # now and then it has to begin with a new job
            here = one.engine.savepoint()
            one.call("end", 0, lambda: one.engine.rollback(here))
        one.poll(what if what in POLLS else "poll_rows")
        one.check_all()

    each_step(what, around, OPTIONS[0] | ({"operator": by_time()} if is_by_time else {}))


@pytest.mark.parametrize(
    "method", ["process", "submit", "poll", "poll_rows", "poll_early", "failed_events"]
)
def test_python_looks_for_no_signal_between_the_rows_and_the_caller(method: str) -> None:
    """Python 3.11 does behind a call with ``*args`` or ``**named``. What checked the names of
    options was such a call, and rows that were behind it were lost."""
    code = getattr(ss.Engine, method).__code__
    assert "CALL_FUNCTION_EX" not in {one.opname for one in dis.get_instructions(code)}


def test_interrupts_that_come_again_and_again() -> None:
    """In a process of its own, whose main thread gets the signals."""
    done = subprocess.run(
        processes.command("support.engine.interrupt_driver", 40, 1),
        env=processes.environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("well\n"), done.stdout


class TimesUp(Exception):
    """What handlers of SIGALRM like to raise, and no BaseException only."""


class Alarm:
    """Handlers as people write them: a function, a method, an object."""

    def method(self, number: int, frame: object) -> None:
        raise TimesUp

    __call__ = method


def alarm(number: int, frame: object) -> None:
    raise TimesUp


@pytest.fixture(params=[alarm, Alarm().method, Alarm()], ids=["function", "method", "object"])
def handled(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, request.param)
    yield
    signal.signal(signal.SIGALRM, before)


@ss.pure
def alarming(x: int) -> str:
    if x == 3:
        signal.raise_signal(signal.SIGALRM)
    return str(x)


@ss.operator(state=interrupt_driver.Count, event={"x": int}, emits={"x": str})
def reads(state, event, emit):  # type: ignore[no-untyped-def]
    state.n += 1
    emit(alarming(event.x))


@ss.operator(state=interrupt_driver.Count, event={"x": int}, emits={"x": int})
def refuses(state, event, emit):  # type: ignore[no-untyped-def]
    state.n += 1
    if event.x % 2:
        raise ValueError(alarming(event.x))
    emit(event.x)


@pytest.mark.parametrize("errors", ["raise", "side"])
@pytest.mark.parametrize(("operator", "applied"), [(reads, 0), (refuses, 1)], ids=["before", "for"])
def test_what_a_handler_raises_is_no_error_of_an_event(
    operator: ss.Operator, applied: int, errors: Any, handled: None
) -> None:
    """What Python computes of events before they run, and for the text of their errors, were taken
    to have raised it: events were set aside, and nobody heard of the signal."""
    with ss.Engine(operator, errors=errors) as engine:
        with pytest.raises(TimesUp):
            engine.process({"x": [2, 3, 4]})
        assert engine.state.n == applied
        failed = engine.failed_events() if errors == "side" else None
        assert failed is None or failed.num_rows == 0
        assert engine.process({"x": [4]}).num_rows == 1
    with pytest.raises(TimesUp):
        operator.run_sequential({"x": [2, 3, 4]}, on_error="skip")
