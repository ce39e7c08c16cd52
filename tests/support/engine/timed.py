"""Timers told in plain Python, and random streams for operators that have some."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from specstream._native import lib

NULL = -(2**63)


class PlainTimers:
    """What ``state.timers`` is: a dict of (time, how many were set before)."""

    def __init__(self) -> None:
        self.held: dict[Any, tuple[int, int]] = {}
        self.stamp = 0
        self.floor: int | None = None

    def set(self, key: Any, at: int) -> None:
        if self.floor is not None and at <= self.floor:
            raise ValueError(at)
        self.stamp += 1
        self.held.pop(key, None)
        self.held[key] = at, self.stamp

    def cancel(self, key: Any) -> None:
        self.held.pop(key, None)

    def get(self, key: Any) -> int | None:
        return self.held.get(key, (None,))[0]

    def __contains__(self, key: object) -> bool:
        return key in self.held

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.held)


class Expiring(dict[Any, Any]):
    """A dict whose entries go so long after they were written."""

    def __init__(self, after: int) -> None:
        self.after, self.now = after, 0
        self.times: dict[Any, int] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.times[key] = self.now

    def setdefault(self, key: Any, value: Any = None) -> Any:
        if key not in self:
            self[key] = value
        return self[key]

    def go_on(self, reached: int, now: int) -> None:
        self.now = now
        for key in [key for key in self if self.times[key] + self.after <= reached]:
            del self[key]

    def __deepcopy__(self, memo: Any) -> Expiring:
        made = Expiring(self.after)
        dict.update(made, self)
        made.now, made.times = self.now, self.times.copy()
        return made

    # As a set.

    def add(self, one: Any) -> None:
        self[one] = None

    def discard(self, one: Any) -> None:
        self.pop(one, None)


class Model:
    """One event after the other, and the timers between them.

    Attributes:
        rows: (time, source, sequence) and what was emitted; source None: by a timer.
        raised: names of the exceptions, with the timer's key or None.
    """

    def __init__(
        self, process: Callable[..., None], on_timer: Callable[..., None], **state: Any
    ) -> None:
        self.process, self.on_timer = process, on_timer
        self.state = SimpleNamespace(timers=PlainTimers(), **state)
        self.rows: list[tuple[Any, ...]] = []
        self.raised: list[tuple[str, Any]] = []
        self.clock = NULL
        self.fired = 0

    def event(self, time: int, source: int, sequence: int, **columns: Any) -> None:
        self.time(time)
        event = SimpleNamespace(timestamp=time, source=source, sequence=sequence, **columns)
        self._go_on(max(time, self.clock), time)
        if self._run(self.process, event, (time, source, sequence), None):
            self.clock = max(self.clock, time)

    def time(self, time: int) -> None:
        """A frontier, or the time of an event."""
        while due := self._due(lambda at, stamp: at <= max(time, self.clock)):
            self._fire(*due)

    def _go_on(self, reached: int, now: int) -> None:
        for held in vars(self.state).values():
            if isinstance(held, Expiring):
                held.go_on(reached, now)

    def end(self) -> None:
        last = self.state.timers.stamp
        while due := self._due(lambda at, stamp: stamp <= last):
            self._fire(*due)

    def _due(self, wanted: Callable[[int, int], bool]) -> tuple[int, int, Any] | None:
        held = self.state.timers.held
        found = [(at, stamp, key) for key, (at, stamp) in held.items() if wanted(at, stamp)]
        return min(found, key=lambda due: due[:2], default=None)

    def _fire(self, at: int, stamp: int, key: Any) -> None:
        del self.state.timers.held[key]
        self.clock = max(self.clock, at)
        self._go_on(self.clock, self.clock)
        number, self.fired = self.fired, self.fired + 1

        def random(draw: int) -> float:
            bits = int(lib.ss_random_bits(0, self.clock, NULL, number, draw))
            return (bits >> 11) * 2.0**-53

        timer = SimpleNamespace(
            key=key, at=at, timestamp=self.clock, source=NULL, sequence=number, random=random
        )
        self.state.timers.floor = at
        self._run(self.on_timer, timer, (self.clock, None, number), key)
        self.state.timers.floor = None

    def _run(self, function: Any, of: Any, key: tuple[Any, ...], timer: Any) -> bool:
        rows: list[tuple[Any, ...]] = []
        before = copy.deepcopy(self.state)
        try:
            function(self.state, of, lambda *values: rows.append((*key, *values)))
        except Exception as error:
            # How often timers were set is not taken back: nothing depends on it.
            self.state = before
            self.raised.append((type(error).__name__, timer))
            return False
        self.rows += rows
        return True


def stream(seed: int, events: int, users: int = 6) -> pa.Table:
    """Events of two sources, in their order: time ``t``, source ``src``, a ``user``, what it does
    (``act``) and how far from now (``wait``)."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.choice([0, 0, 1, 1, 2, 9], events)) - 20
    src = rng.integers(0, 2, events)
    order = np.lexsort((src, t))
    return pa.table(
        {
            "t": t[order],
            "src": src[order],
            "user": [f"u{n}" for n in rng.integers(0, users, events)],
            "act": rng.integers(0, 12, events),
            "wait": rng.integers(-3, 15, events),
        }
    )


def cuts(rng: np.random.Generator, count: int, pieces: int) -> list[tuple[int, int]]:
    """A random division of rows, some of them empty."""
    inner = sorted(rng.integers(0, count + 1, pieces - 1).tolist())
    return list(zip([0, *inner], [*inner, count], strict=True))
