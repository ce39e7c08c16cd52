"""Predictors: how far ahead, in how large pieces, and whether at all (Brito 2010, 4.2.3).

An engine runs a batch in *stretches*. Before each it asks its predictor for a setting, afterwards
it tells the predictor what the stretch took. The operator's answer never depends on any of it.

:class:`specstream.AbortDriven` and :class:`specstream.ThroughputDriven` are the dissertation's
conflict predictors. They move the horizon by one. :class:`specstream.Auto` goes by the one number
that counts, the measured time per committed event, and moves horizon, chunk and on/off together.

Here is what they have in common; each predictor has a file of its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass

from specstream.declarations.options import refuses_unknown

__all__ = [
    "EVERYTHING",
    "LONGEST_CHUNK",
    "LONGEST_HORIZON",
    "Decision",
    "Measurement",
    "Predictor",
    "Setting",
]

LONGEST_HORIZON = 1 << 16
LONGEST_CHUNK = 1 << 20


@refuses_unknown
@dataclass(frozen=True)
class Setting:
    """What a stretch runs with.

    Attributes:
        horizon: transactions that may start ahead of the head; 0: plain, on one thread.
        chunk: events per transaction.
        events: length of the stretch, in events.
        seconds: the stretch is cut short after this time; None: it is not.
    """

    horizon: int
    chunk: int
    events: int
    seconds: float | None = None


@dataclass(frozen=True)
class Measurement:
    """What a stretch took.

    Attributes:
        events: events applied.
        seconds: wall time.
        commits: transactions committed.
        aborts: speculative runs dropped.
    """

    events: int
    seconds: float
    commits: int
    aborts: int

    @property
    def time_per_event(self) -> float:
        """Seconds per applied event."""
        return self.seconds / self.events if self.events else float("inf")


@dataclass(frozen=True)
class Decision:
    """A change of mind.

    Attributes:
        event: number of events applied before it.
        horizon: transactions that may start ahead of the head, from then on.
        chunk: events per transaction, from then on.
        reason: why, with the figures that it rests on.
    """

    event: int
    horizon: int
    chunk: int
    reason: str


class Predictor(ABC):
    """Base of all predictors. One predictor serves one open engine at a time.

    A predictor of your own calls ``super().__init__()`` and defines five methods:

    - ``next()``: the :class:`Setting` of the next stretch.
    - ``_learn(setting, measured)``: takes in what a stretch took, a :class:`Measurement`; it is
      called after each that has applied events. ``self._decide(horizon, chunk, reason)`` puts a
      change of mind into ``decisions``, of which ``engine.stats`` tells.
    - ``current()``: horizon and chunk as they stand, for statistics, and for ``open()``.
    - ``least()`` and ``cap(horizon)``: the shortest horizon that it can do with, and the longest
      that there is memory for (``Engine(memory=...)``). It asks for no longer one from then on.

    It may define ``open()``, horizon and chunk for events that are submitted out of order,
    ``longest()``, how far the runtime may lengthen a horizon, and ``speculates``, which is False
    where no stretch ever has a horizon, and ``why_plain()``, of which ``engine.stats`` tells.

    What it returns is looked at before it is used: a horizon from 0 to 65536 (or what it was capped
    to), a chunk from 1 to 1048576, a stretch of at least one event, and of more than no time.
    Anything else ends the call with a ConfigurationError that names it. Whatever it asks for, the
    operator's answer is the same.

    >>> import specstream as ss
    >>> from specstream.predictors import Measurement, Predictor, Setting
    >>> class Alternating(Predictor):
    ...     '''A thousand events ahead, a thousand plainly, and so on.'''
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.horizon, self.most = 8, 8
    ...     def next(self):
    ...         return Setting(self.horizon, chunk=4, events=1000)
    ...     def _learn(self, setting, measured):
    ...         self.horizon = 0 if self.horizon else self.most
    ...         self._decide(self.horizon, 4, f"{measured.events} events were run")
    ...     def current(self):
    ...         return self.horizon, 4
    ...     def least(self):
    ...         return 0
    ...     def cap(self, horizon):
    ...         self.most = min(self.most, horizon)
    ...         self.horizon = min(self.horizon, horizon)
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={})
    ... def count(state, event, emit):
    ...     state.count += 1
    >>> predictor = Alternating()
    >>> with ss.Engine(count, threads=2, predictor=predictor) as engine:
    ...     _ = engine.process({"x": [0] * 2500})
    ...     engine.state.count
    2500
    >>> [(decision.event, decision.horizon) for decision in predictor.decisions]
    [(1000, 0), (2000, 8), (2500, 0)]
    """

    def __init__(self) -> None:
        self.decisions: deque[Decision] = deque(maxlen=64)
        self._applied = 0

    @abstractmethod
    def current(self) -> tuple[int, int]:
        """Horizon and chunk as they stand."""

    def open(self) -> tuple[int, int]:
        """Horizon and chunk for events that come out of order: not measured, hence not moved."""
        return self.current()

    @abstractmethod
    def next(self) -> Setting:
        """The setting of the next stretch."""

    def longest(self) -> int | None:
        """While threads starve, the runtime may lengthen a horizon to this by itself; None: it may
        not. Only for transactions of 20 µs and more, and while conflicts are few."""
        return None

    @property
    def speculates(self) -> bool:
        """Whether a stretch may have a horizon."""
        return True

    def why_plain(self) -> str:
        """Why no event runs ahead now, in a sentence with what was measured; empty: nothing says
        so, or some do. By default the reason of the latest decision."""
        if self.current()[0] > 0:
            return ""
        latest = f": {self.decisions[-1].reason}" if self.decisions else ""
        return f"the predictor {type(self).__name__} has chosen horizon 0{latest}"

    @abstractmethod
    def least(self) -> int:
        """The shortest horizon that it can be capped to."""

    @abstractmethod
    def cap(self, horizon: int) -> None:
        """Asks for no longer horizon from now on; called with at least :meth:`least`."""

    def record(self, setting: Setting, measured: Measurement) -> None:
        """Takes in ``measured``: what a stretch with ``setting`` took."""
        self._applied += measured.events
        if measured.events:
            self._learn(setting, measured)

    @abstractmethod
    def _learn(self, setting: Setting, measured: Measurement) -> None: ...

    def _decide(self, horizon: int, chunk: int, reason: str) -> None:
        self.decisions.append(Decision(self._applied, horizon, chunk, reason))


# Events of a stretch that only the batch or the clock ends.
EVERYTHING = 2**62
