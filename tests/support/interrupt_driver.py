"""Calls that a signal handler interrupts with KeyboardInterrupt, at random points.

A call either returns its output, or its error has the rows of what was applied, or, of events out
of order, the next poll returns them; and the engine goes on behind that. All rows together, those
of errors included, are those of one run.

    interrupt_driver.py ROUNDS SEED
"""

from __future__ import annotations

import faulthandler
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import specstream as ss

EVENTS = 200


class Count(ss.State):
    n = ss.scalar(int)


@ss.operator(state=Count, event={"x": int}, emits={"x": int, "n": int})
def count(state, event, emit):
    state.n += 1
    emit(event.x, state.n)


class Signals:
    """They raise, as long as somebody wants them to."""

    wanted = False

    def __call__(self, number: int, frame: object) -> None:
        if self.wanted:
            raise KeyboardInterrupt


interrupt = Signals()


class Interrupted:
    """One engine, and what it was seen to do.

    Args:
        burst: signals come again and again, also while the first one's error is on its way.
    """

    def __init__(self, rng: random.Random, burst: bool, **options: Any) -> None:
        self.engine = ss.Engine(count, **options)
        self.rng = rng
        self.burst = burst
        self.rows: list[int] = []  # `x` of the events whose rows were seen, in order
        self.next = 0  # of the events
        self.seen: Counter[str] = Counter()

    def call(self, what: str, longest: float, use: Callable[[], Any]) -> Any:
        """One call, with a signal at some point of it or soon after; its rows, or its error's."""
        output: Any = None
        first = self.rng.uniform(1e-5, longest)
        signal.setitimer(signal.ITIMER_REAL, first, 3e-5 if self.burst else 0)
        try:
            interrupt.wanted = True
            output = use()
            interrupt.wanted = False  # no call since: else a handler might raise
            self.seen[f"{what}: done"] += 1
        except KeyboardInterrupt as error:
            interrupt.wanted = False
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
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.check()
        return output

    def check(self) -> None:
        """It can be used."""
        assert self.engine.snapshot()
        assert self.engine.state.n >= 0

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
        done = self.engine.state.n
        assert self.rows == list(range(done)), f"{done} were applied; rows of {self.rows[-1:]}"
        assert self.engine.durable.next_sequence == done
        self.next = done

    def submit(self) -> None:
        """All of a table, or nothing of it; one by one now and then; and some polls."""
        draw = self.rng.random()
        if draw < 0.6:
            times = list(range(self.next, self.next + 40))
            table = {"t": times, "x": times, "s": [time % 2 for time in times]}
            where: dict[str, Any] = {"source_column": "s"} if draw < 0.3 else {"source": 0}
            before = self.submitted()
            self.call(
                "submit",
                0.0012,
                lambda: self.engine.submit(table, order_by="t", ordered=draw < 0.3, **where),
            )
            came = self.submitted() - before
            assert came in (0, 40), f"{came} of 40 events were submitted"
            self.next += came
        else:
            before = self.submitted()
            self.call(
                "submit_event", 1e-4, lambda: self.engine.submit_event(self.next, x=self.next)
            )
            came = self.submitted() - before
            assert came in (0, 1)
            self.next += came
        for source in (0, 1):
            self.call("advance", 1e-4, lambda source=source: self.engine.advance(source, self.next))
        if self.rng.random() < 0.2:
            self.call("end", 1e-3, lambda: self.engine.rollback(self.engine.savepoint()))
        polls: list[Callable[[], Any]] = [
            lambda: self.engine.poll(),
            lambda: self.engine.poll(timeout=None),
            lambda: self.engine.poll_rows(),
            lambda: self.engine.poll_rows(timeout=0.001),
        ]
        for poll in self.rng.choices(polls, k=2):
            self.take(self.call("poll", 0.0015, poll))
        self.take(self.engine.poll(timeout=None))
        for source in (0, 1):
            self.engine.advance(source, self.next)
        self.take(self.engine.poll(timeout=None))
        assert self.rows == list(range(self.next)), (len(self.rows), self.next)
        assert self.engine.state.n == self.next

    def submitted(self) -> int:
        """Events that have come, those that are not committed included."""
        return sum(source.next_sequence for source in self.engine.durable.pending.sources)


def main(rounds: int, seed: int) -> None:
    signal.signal(signal.SIGALRM, interrupt)
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    for burst in (False, True):
        for way in ("process", "submit"):
            for options in (
                {"horizon": 0},
                {"horizon": 4, "chunk": 8},
                {"horizon": 0, "keys": True},
            ):
                faulthandler.dump_traceback_later(60 + rounds // 10, exit=True)
                one = Interrupted(rng, burst, **options)
                for _ in range(rounds):
                    getattr(one, way)()
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
