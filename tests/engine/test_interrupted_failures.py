"""Ctrl-C while events and timers fail: whatever it comes in the midst of, a run that goes on behind
it ends as one that nobody has interrupted, in each row, number, failed event and exception."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import sys
import threading
from collections.abc import Callable
from typing import Any, Literal

import pyarrow as pa
import pytest
from support.engine.interrupt_driver import OwnStep

import specstream as ss
from specstream.checkpoint.inspect.difference import first_difference, first_difference_of_states
from specstream.predictors import Measurement, Predictor, Setting

# Each a stream that is interrupted some ten times. Hundreds are for a quiet night.
STREAMS = int(os.environ.get("STREAMS", "2"))
ROWS = 24
ORDER: dict[str, Any] = {"order_by": "time", "source": "from"}
Errors = Literal["raise", "side"]
BOTH = pytest.mark.parametrize("errors", ["raise", "side"])


class Counts(ss.State):
    total = ss.scalar(int)
    fired = ss.scalar(int)
    by_key = ss.dict(int, int, limit=16)
    alarms = ss.timers(int, limit=64)


def ring(state, timer, emit):
    state.fired += 1
    state.by_key[timer.key] = 0
    emit(-timer.key, state.fired)
    if timer.at < 12:
        state.alarms.set(timer.key + 8, timer.at + 2)
    if timer.key % 3 == 1:
        raise KeyError(timer.key)


@ss.operator(state=Counts, event={"x": int}, emits={"x": int, "place": int}, on_timer=ring)
def counts(state, event, emit):
    state.total += 1
    state.by_key[event.x] = state.by_key.get(event.x, 0) + 1
    state.alarms.set(event.x, event.timestamp + 3)
    emit(event.x, state.total)
    if event.x % 4 == 2:
        raise ValueError(f"{event.x} at {state.by_key[event.x]}")


class Seen(ss.State):
    rows = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int, "place": int}, emits={"x": int, "place": int})
def behind(state, event, emit):
    state.rows += 1
    emit(event.x, event.place * 100 + state.rows)
    if event.place % 7 == 6:
        raise RuntimeError("six")


def pipeline(phases: Any) -> ss.Pipeline:
    p = ss.Pipeline("two", phases=phases)
    p.sink("rows", p.add(behind, p.add(counts, p.source("events", {"x": int}))))
    return p


OPERATORS: dict[str, Callable[[], ss.Operator]] = {
    "operator": lambda: counts,
    "interpreted": lambda: ss.operator(
        state=Counts,
        event={"x": int},
        emits={"x": int, "place": int},
        on_timer=ring,
        interpreted=True,
    )(counts.function),
    "pipeline": lambda: pipeline("event"),
    "by time": lambda: pipeline("time"),
}
SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2},
    {"threads": 2, "horizon": 4, "chunk": 1, "protocol": "eager"},
]


def stream(dice: random.Random, of: str) -> pa.Table:
    """Events in their order, of which some fail, and some of whose timers do."""
    times = sorted(dice.choices(range(1, 20), k=ROWS))
    return pa.table(
        {
            "time": times,
            "from": [of] * ROWS,
            "x": [dice.randrange(8) for _ in range(ROWS)],
        }
    )


def told(error: BaseException) -> str:
    timer = vars(error).get("specstream_timer")
    return f"{type(error).__name__}: {error}" + (f", timer {timer}" if timer else "")


class Run:
    """One engine, whose calls are interrupted, and what has come out of it.

    Args:
        most: interrupts come within so many steps of a call; 0: none does.
    """

    def __init__(
        self, operator: ss.Operator, errors: Errors, dice: random.Random, most: int, **options: Any
    ) -> None:
        self.engine = ss.Engine(operator, errors=errors, keys=True, **options)
        self.dice, self.most = dice, most
        self.by = OwnStep("call")
        self.rows: list[pa.Table] = []
        self.raised: list[str] = []
        self.failed: list[pa.Table] = []
        self.interrupts = 0
        self.longest = 0  # steps of a call that was not interrupted

    def call(self, use: Callable[[], pa.Table]) -> BaseException | None:
        """Takes a call's rows; what it has raised."""
        # What is left of an interrupted call is shorter.
        left = int(self.most * self.dice.random() ** 2)
        if not self.most or self.dice.random() < 0.1:
            left = 10**9
        self.by.left, output, found = left, None, None
        self.by.arm("call", 0)
        try:
            self.by.wanted = True
            output = use()
            self.by.wanted = False
        except BaseException as error:
            self.by.wanted = False
            found = error
        self.by.disarm()
        if isinstance(found, KeyboardInterrupt):
            self.interrupts += 1
            assert "specstream_timer" not in vars(found)  # it is nobody's failure
        elif found is not None:
            self.raised.append(told(found))
        else:
            self.longest = max(self.longest, left - self.by.left)
        if found is not None:
            partial = getattr(found, "specstream_partial", None)
            output = None if partial is None else partial.output
        if output is not None:
            self.rows.append(output)
        if self.dice.random() < 0.3:
            self.fetch()
        return found

    def fetch(self) -> None:
        failed = self.engine.failed_events()
        self.failed += [] if failed is None else [failed]

    def process(self, table: pa.Table, *, end: bool) -> None:
        """A batch, and what is left of it behind each exception."""
        at = 0
        while True:
            rest = table.slice(at)
            found = self.call(functools.partial(self.engine.process, rest, **ORDER, end=end))
            if found is None:
                return
            partial = getattr(found, "specstream_partial", None)
            if partial is None:
                assert isinstance(found, KeyboardInterrupt), found  # nothing was run
                continue
            _, failed = getattr(found, "specstream_phase", (None, 1))
            is_event = not (
                isinstance(found, KeyboardInterrupt) or hasattr(found, "specstream_timer")
            )
            at += partial.consumed + (failed if is_event else 0)

    def submit(self, table: pa.Table, source: str) -> None:
        """In pieces, with polls in between that are interrupted."""
        at = 0
        while at < table.num_rows:
            piece = table.slice(at, 5)
            at += 5
            self.engine.submit(piece, order_by="time", source=source)
            self.engine.advance(source, piece["time"][-1].as_py())
            self.call(lambda: self.engine.poll())
        self.engine.advance(source)
        while self.call(lambda: self.engine.poll(timeout=None)) is not None:
            pass

    def end(self) -> None:
        self.by.disarm()
        self.fetch()
        with self.engine.durable.exclusive():  # who enters settles what interrupts have left
            self.next_sequence = self.engine.durable.next_sequence
        self.state, self.stats = self.engine.state, self.engine.stats
        self.engine.close()


def compare(found: Run, wanted: Run) -> None:
    assert first_difference(pa.concat_tables(wanted.rows), pa.concat_tables(found.rows)) is None
    assert found.raised == wanted.raised
    assert first_difference_of_states(wanted.state, found.state) is None
    assert found.next_sequence == wanted.next_sequence
    assert found.stats.failed_events == wanted.stats.failed_events
    assert found.stats.timers == wanted.stats.timers
    assert len(found.failed) == 0 or len(wanted.failed) > 0
    if wanted.failed:
        failed = pa.concat_tables(wanted.failed), pa.concat_tables(found.failed)
        assert first_difference(*failed) is None


def both(
    name: str, errors: Errors, way: str, seed: int, options: dict[str, Any]
) -> tuple[Run, Run]:
    """A run that was interrupted, and one that was not."""
    operator = OPERATORS[name]()
    is_pipeline = isinstance(operator, ss.Pipeline)
    of = "events" if is_pipeline else "a"
    dice = random.Random(seed)
    table = stream(dice, of)
    cut = dice.randint(0, ROWS)
    runs: list[Run] = []
    for most in (0, 1):
        # Most steps are those of Python's runs of what has failed.
        most = max(runs[0].longest, 500) if most else 0
        more = {"sources": [of]} if way == "submit" else {}
        run = Run(operator, errors, dice, most, **options, **more)
        if way == "submit":
            run.submit(table, of)
        elif name == "by time":
            run.process(table, end=True)
        else:
            run.process(table.slice(0, cut), end=False)
            run.process(table.slice(cut), end=True)
        run.end()
        runs.append(run)
    return runs[1], runs[0]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("way", ["process", "submit"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_run_that_is_interrupted_at_random_ends_as_one_that_is_not(
    name: str, way: str, errors: Errors
) -> None:
    interrupts = 0
    for number in range(STREAMS):
        options = SETTINGS[number % len(SETTINGS)]
        if way == "submit" and number % 2 and name != "by time":
            options = options | {"early": True}
        found, wanted = both(name, errors, way, number, options)
        assert wanted.interrupts == 0
        assert wanted.raised if errors == "raise" else wanted.failed
        compare(found, wanted)
        interrupts += found.interrupts
    assert interrupts > 1, "it was interrupted nowhere: it proves nothing"


# ---- single moments ----


@contextlib.contextmanager
def under_python(act: Callable[[], None]) -> Any:
    """In the midst of the next run of a failing event, or timer, by plain Python, once."""

    def look(frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        is_oracle = (
            code.co_filename.endswith("/compiler/oracle/oracle.py") and code.co_name == "_run"
        )
        if event == "call" and is_oracle:
            sys.setprofile(None)
            act()

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def ctrl_c() -> None:
    raise KeyboardInterrupt


def table(times: list[int], xs: list[int]) -> pa.Table:
    return pa.table({"time": times, "from": ["a"] * len(times), "x": xs})


RINGS = table([1, 9, 10], [4, 0, 0])  # one timer, for 4, which fails before the second event


def assert_tells_of_the_timer(engine: ss.Engine, errors: Errors, rest: pa.Table) -> None:
    """A call with the rest of the events does."""
    if errors == "raise":
        with pytest.raises(KeyError, match="4") as caught:
            engine.process(rest, **ORDER)
        assert vars(caught.value)["specstream_timer"] == (4, 4)
        assert vars(caught.value)["specstream_partial"].consumed == 0
    else:
        engine.process(rest, **ORDER)
        failed = engine.failed_events()
        assert failed is not None
        assert failed.select(["timestamp", "sequence", "error", "timer"]).to_pylist() == [
            {"timestamp": 4, "sequence": 0, "error": "KeyError", "timer": "4, set for 4"}
        ]
        assert engine.failed_events() is None
    assert engine.state.fired == 0


@BOTH
@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_a_timer_that_ctrl_c_has_kept_from_being_told_of_is_still_set(
    errors: Errors, options: dict[str, Any]
) -> None:
    rest = RINGS
    with ss.Engine(counts, errors=errors, **options) as engine:
        for consumed in (1, 0):
            with under_python(ctrl_c), pytest.raises(KeyboardInterrupt) as caught:
                engine.process(rest, **ORDER)
            assert vars(caught.value)["specstream_partial"].consumed == consumed
            assert "specstream_timer" not in vars(caught.value)
            assert engine.state.alarms == {4: 4}
            rest = rest.slice(consumed)
        snapshot = engine.snapshot()
        assert_tells_of_the_timer(engine, errors, rest)
        assert engine.stats.timers == 1
    with ss.Engine(counts, errors=errors, restore=snapshot, **options) as engine:
        assert_tells_of_the_timer(engine, errors, rest)


@BOTH
def test_at_the_end_a_timer_that_was_not_told_of_fires_at_the_same_end(errors: Errors) -> None:
    """And what was set at it meanwhile stays."""
    events = table([1, 2, 3], [4, 0, 4])  # the timer for 0 sets another; that for 4 fails
    with ss.Engine(counts, errors=errors, threads=1, horizon=0) as engine:
        with under_python(ctrl_c), pytest.raises(KeyboardInterrupt):
            engine.process(events, **ORDER, end=True)
        assert set(engine.state.alarms) == {4, 8}
        if errors == "raise":
            with pytest.raises(KeyError):
                engine.process(events.slice(3), **ORDER, end=True)
        engine.process(events.slice(3), **ORDER, end=True)
        failed = engine.failed_events()
        assert (failed is None) == (errors == "raise")
        wanted = counts.run_sequential(events, **ORDER, errors="side", end=True)
        assert set(wanted.state.alarms) == {8}
        assert first_difference_of_states(wanted.state, engine.state) is None


class Chained(ss.State):
    alarms = ss.timers(int)


def chain(state, timer, emit):
    emit(timer.key)
    state.alarms.set(timer.key + 1, timer.at + 1)


@ss.operator(state=Chained, event={"x": int}, emits={"x": int}, on_timer=chain)
def chained(state, event, emit):
    state.alarms.set(event.x, event.timestamp + 10)


def test_an_end_that_an_interrupt_has_kept_from_its_caller_is_no_second_one() -> None:
    """Who calls again, as he cannot know that all was done, gets no timer that the end has set."""
    events = table([1, 1], [10, 20])
    by = OwnStep("call")
    for step in range(10**4):
        with ss.Engine(chained, threads=1, horizon=0) as engine:
            rows, rest, interrupts = [], events, 0
            by.left = step
            while True:
                by.arm("call", 0)
                try:
                    by.wanted = True
                    output = engine.process(rest, **ORDER, end=True)
                    by.wanted = False
                    by.disarm()
                    rows += output["x"].to_pylist()
                    break
                except KeyboardInterrupt as error:
                    by.wanted = False
                    by.disarm()
                    interrupts += 1
                    partial = getattr(error, "specstream_partial", None)
                    if partial is not None:
                        rows += partial.output["x"].to_pylist()
                        rest = rest.slice(partial.consumed)
            assert rows == [10, 20], f"step {step}"
            assert set(engine.state.alarms) == {11, 21}
            # The caller has heard of this end, so that the next one is another.
            assert engine.process(events.slice(2), **ORDER, end=True)["x"].to_pylist() == [11, 21]
        if interrupts == 0:
            return
    raise AssertionError("the call does not end")


@BOTH
def test_a_snapshot_from_another_thread_has_a_timer_set_that_nobody_has_heard_of(
    errors: Errors,
) -> None:
    found: list[bytes] = []

    def look() -> None:
        thread = threading.Thread(target=lambda: found.append(engine.snapshot()))
        thread.start()
        thread.join()

    engine = ss.Engine(counts, errors=errors, threads=1, horizon=0)
    with engine, under_python(look), contextlib.suppress(KeyError):
        engine.process(RINGS, **ORDER)
    with ss.Engine(counts, errors=errors, restore=found[0], threads=1, horizon=0) as engine:
        assert_tells_of_the_timer(engine, errors, RINGS.slice(1))


@BOTH
def test_an_event_keeps_its_number_however_often_it_is_interrupted(errors: Errors) -> None:
    events = table([1, 2, 3, 4], [0, 2, 3, 6])
    sequences: list[int] = []
    numbers: list[str] = []  # of those that have raised

    def note(output: pa.Table) -> None:
        rows = output.select(["source", "sequence"]).to_pylist()
        sequences.extend(row["sequence"] for row in rows if row["source"])  # no timer's

    with ss.Engine(counts, errors=errors, keys=True, threads=1, horizon=0) as engine:
        rest = events.slice(0)
        for consumed in (1, 0, 0):
            with under_python(ctrl_c), pytest.raises(KeyboardInterrupt) as caught:
                engine.process(rest, **ORDER)
            partial = vars(caught.value)["specstream_partial"]
            assert partial.consumed == consumed
            note(partial.output)
            rest = rest.slice(consumed)
        while rest.num_rows:
            try:
                note(engine.process(rest, **ORDER))
                break
            except ValueError as error:
                numbers += re.findall(r", a, (\d+)\), row", error.__notes__[0])
                partial = vars(error)["specstream_partial"]
                note(partial.output)
                rest = rest.slice(partial.consumed + 1)
        assert sequences == [0, 2]
        assert numbers == (["1", "3"] if errors == "raise" else [])
        failed = engine.failed_events()
        assert (None if failed is None else failed["sequence"].to_pylist()) == (
            [1, 3] if errors == "side" else None
        )
        sequences.clear()
        note(engine.process(table([5], [0]), **ORDER))
        assert sequences == [4]


@BOTH
@pytest.mark.parametrize("of_timer", [False, True])
def test_a_poll_that_is_interrupted_under_python_tells_of_it_the_next_time(
    errors: Errors, of_timer: bool
) -> None:
    events = RINGS if of_timer else table([1, 9, 10], [2, 0, 0])
    with ss.Engine(counts, errors=errors, sources=["a"]) as engine:
        engine.submit(events, order_by="time", source="a")
        engine.advance("a", 10)
        for _ in range(2):
            with under_python(ctrl_c), pytest.raises(KeyboardInterrupt):
                engine.poll(timeout=None)
        rows: list[int] = []
        if errors == "raise":
            with pytest.raises(KeyError if of_timer else ValueError) as caught:
                engine.poll(timeout=None)
            rows += vars(caught.value)["specstream_partial"].output["x"].to_pylist()
        rows += engine.poll(timeout=None)["x"].to_pylist()
        assert rows == ([4, 0, 0] if of_timer else [0, 0])
        failed = engine.failed_events()
        assert (failed is None) == (errors == "raise")
        assert failed is None or failed.num_rows == 1


# ---- closing ----


class OneByOne(Predictor):
    """A stretch for each event."""

    def next(self) -> Setting:
        return Setting(horizon=0, chunk=1, events=1)

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        pass

    def current(self) -> tuple[int, int]:
        return 0, 1

    def least(self) -> int:
        return 0

    def cap(self, horizon: int) -> None:
        pass


@pytest.mark.parametrize("fails", [False, True])
def test_closing_is_noticed_at_the_next_event_however_short_its_jobs_are(fails: bool) -> None:
    ran: list[int] = []

    @ss.operator(event={"x": int}, emits={"x": int}, interpreted=True)
    def closes(event, emit):
        ran.append(int(event.x))
        emit(event.x)
        if event.x == 2:
            closer.start()
            while not engine.closed:
                pass
        if fails and event.x > 0:
            raise ValueError("of the event")

    predictor = None if fails else OneByOne()
    options: dict[str, Any] = {"errors": "side"} if fails else {}
    engine = ss.Engine(closes, threads=1, predictor=predictor, **options)
    closer = threading.Thread(target=engine.close)
    with pytest.raises(ss.EngineClosedError, match=r"was closed during process\(\)") as caught:
        engine.process({"x": range(1000)})
    closer.join()
    assert ran == [0, 1, 2]
    partial = vars(caught.value)["specstream_partial"]
    assert partial.output["x"].to_pylist() == ([0] if fails else [0, 1, 2])
    assert partial.consumed == 3
