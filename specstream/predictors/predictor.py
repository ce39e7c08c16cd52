"""Predictors: how far ahead, in how large pieces, and whether at all (Brito 2010, 4.2.3).

An engine runs a batch in *stretches*. Before each it asks its predictor for a setting, afterwards
it tells the predictor what the stretch took. The operator's answer never depends on any of it.

:class:`AbortDriven` and :class:`ThroughputDriven` are the dissertation's conflict predictors. They
move the horizon by one. :class:`specstream.Auto` (``auto.py``) goes by the one figure that counts,
the measured time per committed event, and moves horizon, chunk and on/off together.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from specstream.errors import ConfigurationError

__all__ = [
    "EVERYTHING",
    "LONGEST_CHUNK",
    "LONGEST_HORIZON",
    "AbortDriven",
    "Decision",
    "Fixed",
    "Measurement",
    "Predictor",
    "Setting",
    "ThroughputDriven",
    "check_range",
    "checked_predictor",
    "current_of",
    "least_of",
    "next_of",
    "open_of",
]

LONGEST_HORIZON = 1 << 16
LONGEST_CHUNK = 1 << 20


def check_range(option: str, value: object, low: int, high: int, other: str = "") -> None:
    """Refuses all but integers of a range.

    Raises:
        ConfigurationError: it is none; names the option.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigurationError(
            f"{option}={value!r}; expected an integer from {low} to {high}{other}"
        )


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
    """Base of all predictors. One predictor serves one engine.

    What a predictor of your own returns is looked at before it is used: a horizon from 0 to 65536
    (or what it was capped to), a chunk from 1 to 1048576, a stretch of at least one event, and of
    more than no time. Anything else ends the call with a ConfigurationError that names it.
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

    @property
    def speculates(self) -> bool:
        """Whether a stretch may have a horizon."""
        return True

    @abstractmethod
    def least(self) -> int:
        """The shortest horizon that it can be capped to."""

    @abstractmethod
    def cap(self, horizon: int) -> None:
        """Asks for no longer horizon from now on; called with at least :meth:`least`."""

    def record(self, setting: Setting, measured: Measurement) -> None:
        """Takes in what a stretch with ``setting`` took."""
        self._applied += measured.events
        if measured.events:
            self._learn(setting, measured)

    @abstractmethod
    def _learn(self, setting: Setting, measured: Measurement) -> None: ...

    def _decide(self, horizon: int, chunk: int, reason: str) -> None:
        self.decisions.append(Decision(self._applied, horizon, chunk, reason))


# Events of a stretch that only the batch or the clock ends.
EVERYTHING = 2**62


# ---- what a predictor asks for, looked at before the runtime gets it ----


def checked_predictor(predictor: object) -> Predictor:
    """The predictor.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(predictor, Predictor):
        raise ConfigurationError(
            f"predictor={predictor!r}; expected a predictor, like ss.Auto() or ss.Fixed(8, 8)"
        )
    if not hasattr(predictor, "decisions"):
        raise ConfigurationError(
            f"predictor {type(predictor).__name__} is not complete: its __init__ has to call "
            "super().__init__()"
        )
    return predictor


def next_of(predictor: Predictor, longest: int) -> Setting:
    """The setting of the next stretch; no horizon may be beyond ``longest``.

    Raises:
        ConfigurationError: it asks for what cannot be; names the predictor.
    """
    setting = predictor.next()
    asks = _Asks(predictor, "next", setting)
    if not isinstance(setting, Setting):
        raise asks.wrong("a Setting")
    horizon, chunk = asks.reach(setting.horizon, setting.chunk, longest)
    events, seconds = asks.integer("events", setting.events, 1), setting.seconds
    if seconds is not None:
        is_number = not isinstance(seconds, bool) and isinstance(seconds, int | float)
        if not is_number or not 0 < seconds < math.inf:
            raise asks.wrong("seconds above 0, or None")
    return replace(setting, horizon=horizon, chunk=chunk, events=events)


def open_of(predictor: Predictor, longest: int) -> tuple[int, int]:
    """Horizon and chunk for events out of order.

    Raises:
        ConfigurationError: as of :func:`next_of`.
    """
    return _Asks(predictor, "open", predictor.open()).pair(longest)


def current_of(predictor: Predictor) -> tuple[int, int]:
    """Horizon and chunk as they stand.

    Raises:
        ConfigurationError: as of :func:`next_of`.
    """
    return _Asks(predictor, "current", predictor.current()).pair(LONGEST_HORIZON)


def least_of(predictor: Predictor) -> int:
    """The shortest horizon that it can be capped to.

    Raises:
        ConfigurationError: as of :func:`next_of`.
    """
    least = predictor.least()
    return _Asks(predictor, "least", least).integer("the horizon", least, 0, LONGEST_HORIZON)


@dataclass(frozen=True)
class _Asks:
    """What a method of a predictor has returned."""

    predictor: Predictor
    method: str
    returned: object

    def pair(self, longest: int) -> tuple[int, int]:
        if not isinstance(self.returned, tuple) or len(self.returned) != 2:
            raise self.wrong("(horizon, chunk)")
        return self.reach(*self.returned, longest)

    def reach(self, horizon: object, chunk: object, longest: int) -> tuple[int, int]:
        return (
            self.integer("horizon", horizon, 0, longest),
            self.integer("chunk", chunk, 1, LONGEST_CHUNK),
        )

    def integer(self, what: str, value: Any, low: int, high: int | None = None) -> int:
        try:
            number = operator.index(value)  # NumPy's integers as well
        except TypeError:
            number = None
        if number is None or isinstance(value, bool) or number < low or number > (high or number):
            most = "or more" if high is None else f"to {high}"
            capped = high is not None and what == "horizon" and high < LONGEST_HORIZON
            why = ", as memory= has capped it with cap()" if capped else ""
            raise self.wrong(f"{what} an integer from {low} {most}{why}")
        return number

    def wrong(self, expected: str) -> ConfigurationError:
        return ConfigurationError(
            f"predictor {type(self.predictor).__name__}: {self.method}() returned "
            f"{self.returned!r}; expected {expected}"
        )


class Fixed(Predictor):
    """Always the same setting.

    Args:
        horizon: transactions that may start ahead of the head, 0 to 65536; 0: plain, on one thread.
        chunk: events per transaction, 1 to 1048576.

    Raises:
        ConfigurationError: one of them is none.
    """

    def __init__(self, horizon: int, chunk: int) -> None:
        super().__init__()
        check_range("Fixed: horizon", horizon, 0, LONGEST_HORIZON)
        check_range("Fixed: chunk", chunk, 1, LONGEST_CHUNK)
        self.horizon = horizon
        self.chunk = chunk

    def current(self) -> tuple[int, int]:
        return self.horizon, self.chunk

    def next(self) -> Setting:
        return Setting(self.horizon, self.chunk, EVERYTHING)

    @property
    def speculates(self) -> bool:
        return self.horizon > 0

    def least(self) -> int:
        return self.horizon

    def cap(self, horizon: int) -> None:
        pass

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        pass


class _Moving(Predictor):
    """A horizon that moves by one every so many transactions."""

    def __init__(self, every: int, chunk: int, start: int, limit: int) -> None:
        super().__init__()
        check_range("every", every, 1, EVERYTHING)
        check_range("chunk", chunk, 1, LONGEST_CHUNK)
        check_range("limit", limit, 1, LONGEST_HORIZON)
        check_range("start", start, 0, limit, " (limit)")
        self.every = every
        self.chunk = chunk
        self.limit = limit
        self.horizon = start

    def current(self) -> tuple[int, int]:
        return self.horizon, self.chunk

    def next(self) -> Setting:
        return Setting(self.horizon, self.chunk, self.every * self.chunk)

    def least(self) -> int:
        return 1

    def cap(self, horizon: int) -> None:
        self.limit = min(self.limit, horizon)
        self.horizon = min(self.horizon, horizon)

    def _move(self, horizon: int, reason: str) -> None:
        horizon = min(max(horizon, 0), self.limit)
        if horizon != self.horizon:
            self.horizon = horizon
            self._decide(horizon, self.chunk, reason)


class AbortDriven(_Moving):
    """Shrinks the horizon while more than ``threshold`` of the transactions abort, else grows it.

    The dissertation counts the head in, so what is "set to 2" there from time to time when it has
    come down to 1 is set to 1 here when it has come down to 0.

    Args:
        threshold: share of committed transactions that had to be run again, 0 to 1.
        every: transactions between two decisions.
        chunk: events per transaction.
        start: first horizon.
        limit: longest horizon.
        retry: decisions at horizon 0 before one transaction ahead is tried again.

    >>> predictor = AbortDriven(threshold=0.1, every=100, chunk=1, start=4)
    >>> predictor.record(predictor.next(), Measurement(100, 0.001, 100, aborts=50))
    >>> predictor.next().horizon
    3
    >>> predictor.record(predictor.next(), Measurement(100, 0.001, 100, aborts=2))
    >>> predictor.next().horizon
    4
    """

    def __init__(
        self,
        threshold: float = 0.1,
        every: int = 100,
        *,
        chunk: int = 8,
        start: int = 8,
        limit: int = 32,
        retry: int = 10,
    ) -> None:
        super().__init__(every, chunk, start, limit)
        check_range("retry", retry, 1, EVERYTHING)
        if (
            isinstance(threshold, bool)
            or not isinstance(threshold, int | float)
            or not 0 <= threshold <= 1
        ):
            raise ConfigurationError(f"threshold={threshold!r}; expected a number from 0 to 1")
        self.threshold = threshold
        self.retry = retry
        self._idle = 0

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        if setting.horizon == 0:
            # Without speculation nothing aborts, and nothing can be learned from that.
            self._idle += 1
            if self._idle >= self.retry:
                self._idle = 0
                self._move(1, f"retry after {self.retry} decisions without speculation")
            return
        share = measured.aborts / max(measured.commits, 1)
        if share > self.threshold:
            self._move(self.horizon - 1, f"{share:.1%} aborted, above {self.threshold:.1%}")
        else:
            self._move(self.horizon + 1, f"{share:.1%} aborted, not above {self.threshold:.1%}")


class ThroughputDriven(_Moving):
    """Repeats its last move while the throughput rises, and reverses it otherwise.

    Args:
        every: transactions between two decisions.
        chunk: events per transaction.
        start: first horizon.
        limit: longest horizon.

    >>> predictor = ThroughputDriven(every=100, chunk=1, start=4)
    >>> for seconds in (0.0010, 0.0008, 0.0009):
    ...     predictor.record(predictor.next(), Measurement(100, seconds, 100, aborts=0))
    ...     print(predictor.next().horizon)
    5
    6
    5
    """

    def __init__(
        self, every: int = 100, *, chunk: int = 8, start: int = 8, limit: int = 32
    ) -> None:
        super().__init__(every, chunk, start, limit)
        self._step = 1
        self._before = 0.0

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        throughput = measured.events / measured.seconds if measured.seconds > 0 else float("inf")
        rose = throughput > self._before
        # At either limit it turns round, and so keeps looking.
        if not rose or not 0 <= self.horizon + self._step <= self.limit:
            self._step = -self._step
        change = "rose" if rose else "fell"
        self._move(
            self.horizon + self._step,
            f"throughput {change} from {self._before:.3g} to {throughput:.3g} events/s",
        )
        self._before = throughput
