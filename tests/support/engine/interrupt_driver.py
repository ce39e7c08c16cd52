"""Calls that KeyboardInterrupt cuts short, at random points or one after the other.

A call either returns its output, or its error has the rows of what was applied, or, of events out
of order, the next poll returns them; and the engine goes on behind that. All rows together, those
of errors included, are those of one run.

    python -m support.engine.interrupt_driver ROUNDS SEED
"""

from __future__ import annotations

import _weakrefset
import faulthandler
import inspect
import random
import signal
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

import specstream as ss

EVENTS = 200  # of a batch
TABLE = 40  # events out of order that come together

POLLS: dict[str, Callable[[ss.Engine], Any]] = {
    "poll": lambda engine: engine.poll(),
    "poll all": lambda engine: engine.poll(timeout=None),
    "poll_rows": lambda engine: engine.poll_rows(),
    "poll_rows, wait": lambda engine: engine.poll_rows(timeout=0.001),
}


class Count(ss.State):
    n = ss.scalar(int)


@ss.operator(state=Count, event={"x": int}, emits={"x": int, "n": int})
def count(state: Any, event: Any, emit: Any) -> None:
    state.n += 1
    emit(event.x, state.n)


def by_time() -> ss.Pipeline:
    """The same in phases by time, which are gathered when the frontier has passed them."""
    p = ss.Pipeline("by_time", phases="time")
    p.sink("rows", p.add(count, p.source("events", {"x": int})))
    return p


class Signals:
    """A signal at some point of each call, or soon after.

    Args:
        burst: signals come again and again, also while the first one's error is on its way.

    Attributes:
        wanted: they raise.
    """

    def __init__(self, rng: random.Random, burst: bool) -> None:
        self.rng = rng
        self.burst = burst
        self.wanted = False
        signal.signal(signal.SIGALRM, self.interrupt)

    def interrupt(self, number: int, frame: object) -> None:
        if self.wanted:
            raise KeyboardInterrupt

    def arm(self, what: str, longest: float) -> None:
        first = self.rng.uniform(1e-5, longest)
        signal.setitimer(signal.ITIMER_REAL, first, 3e-5 if self.burst else 0)

    def disarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


# Python ignores what a callback of a weak reference raises, and 3.11 then frees the profiling
# function while it is in use: "TypeError: 'traceback' object is not callable", at whatever call
# comes next.
_OF_WEAK_REFERENCES = (_weakrefset.__file__, weakref.__file__)


class NthStep:
    """Calls of one kind are interrupted, at the n-th of the steps where Python looks for signals.

    Attributes:
        what: the kind of call.
        left: steps until then; below 0: that was it.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.left = 0
        self.wanted = False

    def step(self, frame: Any, event: str, argument: object) -> None:
        # Where a function of Python begins, and where one of C has returned. Loops go round behind
        # calls, and C functions that look for signals themselves do so before they return.
        if frame.f_code.co_filename in _OF_WEAK_REFERENCES:
            return
        if self.wanted and self.left >= 0 and event in ("call", "c_return"):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt

    def arm(self, what: str, longest: float) -> None:
        if what == self.what:
            sys.setprofile(self.step)

    def disarm(self) -> None:
        sys.setprofile(None)


class OwnStep(NthStep):
    """Where the steps are of specstream, and of no generator, which does not stand this."""

    def step(self, frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        if "/specstream/" in code.co_filename and not code.co_flags & inspect.CO_GENERATOR:
            super().step(frame, event, argument)


class Interrupted:
    """One engine, and what it was seen to do."""

    def __init__(
        self,
        rng: random.Random,
        by: Signals | NthStep,
        operator: ss.Operator = count,
        **options: Any,
    ) -> None:
        self.engine = ss.Engine(operator, **options)
        self.rng = rng
        self.by = by
        self.rows: list[int] = []  # `x` of the events whose rows were seen, in order
        self.next = 0  # of the events
        self.seen: Counter[str] = Counter()

    def call(self, what: str, longest: float, use: Callable[[], Any]) -> Any:
        """One call, that may be interrupted; its rows, or its error's."""
        output: Any = None
        self.by.arm(what, longest)
        try:
            self.by.wanted = True
            output = use()
            self.by.wanted = False  # no call since: else a handler might raise
            self.seen[f"{what}: done"] += 1
        except KeyboardInterrupt as error:
            self.by.wanted = False
            # Its first error is the call's, where the signals went on outside.
            raised: BaseException | None = error
            while output is None and raised is not None:
                partial = getattr(raised, "specstream_partial", None)
                if partial is not None:
                    output = partial.output
                    assert what != "process" or partial.consumed == output.num_rows
                raised = raised.__context__
            self.seen[f"{what}: {'with no' if output is None else 'with a'} partial"] += 1
            # While the error is there, and with it the frames that were interrupted.
            self.check()
        self.by.disarm()
        self.check()
        return output

    @property
    def applied(self) -> int:
        """Events, by the state."""
        state = self.engine.state
        of_vertex = isinstance(self.engine.operator, ss.Pipeline)
        return int(state.count.n if of_vertex else state.n)

    def check(self) -> None:
        """It can be used."""
        assert self.engine.snapshot()
        assert self.applied >= 0

    def take(self, output: Any) -> None:
        if isinstance(output, list):
            self.rows += [x for x, _ in output]
            numbers = [n for _, n in output]
        else:
            self.rows += [] if output is None else output["x"].to_pylist()
            numbers = [] if output is None else output["n"].to_pylist()
        told = len(self.rows)
        assert numbers == list(range(told - len(numbers) + 1, told + 1)), numbers

    def process(self) -> None:
        xs = list(range(self.next, self.next + EVENTS))
        table = {"x": pa.array(xs)}
        self.take(self.call("process", 0.0015, lambda: self.engine.process(table)))
        done = self.applied
        assert self.rows == list(range(done)), f"{done} were applied; rows of {self.rows[-1:]}"
        with self.engine.durable.exclusive():  # who enters settles what interrupts have left
            assert self.engine.durable.next_sequence == done
        self.next = done

    def submit(self) -> None:
        """Events out of order, in one of several ways."""
        draw = self.rng.random()
        self.come("submit_event" if draw < 0.4 else "submit two" if draw < 0.7 else "submit")
        self.advance()
        if self.rng.random() < 0.2:
            self.call("end", 1e-3, lambda: self.engine.rollback(self.engine.savepoint()))
        for poll in self.rng.choices(list(POLLS), k=2):
            self.poll(poll)
        self.check_all()

    def come(self, what: str) -> None:
        """All events of a table, or none of them."""
        engine, first = self.engine, self.next
        count = 1 if what == "submit_event" else TABLE
        times = list(range(first, first + count))
        table = {"t": times, "x": times, "s": [time % 2 for time in times]}
        ways: dict[str, Callable[[], Any]] = {
            "submit": lambda: engine.submit(table, order_by="t", source=0),
            "submit two": lambda: engine.submit(
                table, order_by="t", source_column="s", ordered=True
            ),
            "submit_event": lambda: engine.submit_event(first, x=first),
        }
        before = self.submitted()
        self.call(what, 1e-4 if what == "submit_event" else 0.0012, ways[what])
        came = self.submitted() - before
        assert came in (0, count), f"{came} of {count} events were submitted"
        self.next += came

    def advance(self) -> None:
        for source in (0, 1):
            self.call("advance", 1e-4, partial(self.engine.advance, source, self.next))

    def poll(self, what: str) -> None:
        self.take(self.call(what, 0.0015, lambda: POLLS[what](self.engine)))

    def check_all(self) -> None:
        """What was interrupted goes on, and nothing is missing in the end."""
        self.take(self.engine.poll(timeout=None))
        for source in (0, 1):
            self.engine.advance(source, self.next)
        self.take(self.engine.poll(timeout=None))
        assert self.rows == list(range(self.next)), (len(self.rows), self.next)
        assert self.applied == self.next
        assert self.engine.stats.pending == 0

    def submitted(self) -> int:
        """Events that have come, those that are not committed included."""
        with self.engine.durable.exclusive():
            return sum(source.next_sequence for source in self.engine.durable.pending.sources)


def main(rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    for burst in (False, True):
        for way in ("process", "submit"):
            several: list[dict[str, Any]] = [
                {"horizon": 0},
                {"horizon": 4, "chunk": 8},
                {"horizon": 0, "keys": True},
            ]
            if way == "submit":
                several.append({"operator": by_time(), "horizon": 4, "chunk": 2})
            for options in several:
                faulthandler.dump_traceback_later(60 + rounds // 10, exit=True)
                one = Interrupted(rng, Signals(rng, burst), **options)
                try:
                    for _ in range(rounds):
                        getattr(one, way)()
                finally:
                    one.by.wanted = False
                    one.by.disarm()
                one.engine.close()
                assert one.engine.parts.lifetime.closed
                seen += one.seen
    faulthandler.cancel_dump_traceback_later()
    for what, times in sorted(seen.items()):
        print(times, what)
    assert seen["process: with a partial"], "no call was interrupted: it proves nothing"
    assert seen["poll: with no partial"], "no poll was interrupted: it proves nothing"
    print("well")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
