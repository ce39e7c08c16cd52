"""How much of its time an operator that Python runs holds the lock of the interpreter.

Nothing says so from outside: what is called gives the lock back where it likes. So another thread
looks now and then: it sleeps for a moment, without the lock, reads the clock, and has the lock to
get. That takes next to nothing where nobody holds it, and else until it is given back. The looks
would come at random, at some rate, if none of them had to wait; so those that would have come while
one waits are counted as that one is, and the share of the looks that found it held is that of the
time.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from specstream._native import lib
from specstream.definition.operator import Operator
from specstream.engine.engine import Engine

__all__ = ["share_held"]

# Enough for a share that is right to some hundredths.
SAMPLES = 500
# Nanoseconds from one to the next, about.
BETWEEN = 200_000
# However short the events are, and at most, in seconds.
MOST_SECONDS = 10.0
# A wait is longer than this many times what getting a free lock takes.
LONGER = 4


class _Sampler:
    """A thread that looks whether the lock is held.

    Attributes:
        waits: nanoseconds that each look had to wait.
        slept: nanoseconds before each.
    """

    def __init__(self) -> None:
        self.waits: list[int] = []
        self.slept: list[int] = []
        self._is_over = False
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        draw, now = random.Random(0), time.monotonic_ns()
        while not self._is_over:
            began = now
            at = lib.ss_sleep(min(int(draw.expovariate(1 / BETWEEN)), 10 * BETWEEN))
            now = time.monotonic_ns()
            self.slept.append(at - began)
            self.waits.append(now - at)

    def during(self, run: Callable[[], object]) -> None:
        """Looks while something runs, as often as it takes for enough of them."""
        self._thread.start()
        began = time.monotonic()
        while len(self.waits) < SAMPLES and time.monotonic() - began < MOST_SECONDS:
            run()
        self._is_over = True
        self._thread.join()

    def share(self, waited: float) -> float:
        """Of the looks that there would have been, those that had to wait for longer than that."""
        between = sum(self.slept) / len(self.slept)
        held = sum(1 + wait / between for wait in self.waits if wait > waited)
        return held / (held + sum(wait <= waited for wait in self.waits))


def share_held(
    operator: Operator, warm_up: pa.Table, batch: pa.Table, order: dict[str, Any]
) -> float:
    """Of the time of a batch on one thread, the share in which the interpreter's lock is held.

    Args:
        operator: what to run.
        warm_up: events that come before.
        batch: the events.
        order: the columns of the order key, as of :meth:`specstream.Engine.process`.
    """
    idle, busy = _Sampler(), _Sampler()
    idle.during(lambda: time.sleep(0.01))  # the lock is free: what a look costs by itself
    with Engine(operator, threads=1, horizon=0) as engine:
        engine.process(warm_up, **order)
        start = engine.savepoint()

        def run() -> None:
            engine.rollback(start)
            engine.process(batch, **order)

        busy.during(run)
    return busy.share(waited=LONGER * statistics.median(idle.waits))
