"""Predictors: how far ahead, in how large pieces, and whether at all (Brito 2010, 4.2.3).

An engine runs a batch in *stretches*. Before each it asks its predictor for a setting, afterwards
it tells the predictor what the stretch took. The operator's answer never depends on any of it.

:class:`AbortDriven` and :class:`ThroughputDriven` are the dissertation's conflict predictors. They
move the horizon by one. :class:`Auto` goes by the one figure that counts, the measured time per
committed event, and moves horizon, chunk and on/off together.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specstream.errors import ConfigurationError

__all__ = [
    "AbortDriven",
    "Auto",
    "Decision",
    "Fixed",
    "Measurement",
    "Predictor",
    "Setting",
    "ThroughputDriven",
]


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


class Predictor:
    """Base of all predictors. One predictor serves one engine."""

    def __init__(self) -> None:
        self.decisions: deque[Decision] = deque(maxlen=64)
        self._applied = 0

    def current(self) -> tuple[int, int]:
        """Horizon and chunk as they stand."""
        raise NotImplementedError

    def open(self) -> tuple[int, int]:
        """Horizon and chunk for events that come out of order: not measured, hence not moved."""
        return self.current()

    def next(self) -> Setting:
        """The setting of the next stretch."""
        raise NotImplementedError

    def least(self) -> int:
        """The shortest horizon that it can be capped to."""
        raise NotImplementedError

    def cap(self, horizon: int) -> None:
        """Asks for no longer horizon from now on; called with at least :meth:`least`."""
        raise NotImplementedError

    def record(self, setting: Setting, measured: Measurement) -> None:
        """Takes in what a stretch with ``setting`` took."""
        self._applied += measured.events
        if measured.events:
            self._learn(setting, measured)

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        raise NotImplementedError

    def _decide(self, horizon: int, chunk: int, reason: str) -> None:
        self.decisions.append(Decision(self._applied, horizon, chunk, reason))


_EVERYTHING = 2**62


class Fixed(Predictor):
    """Always the same setting."""

    def __init__(self, horizon: int, chunk: int) -> None:
        super().__init__()
        self.horizon = horizon
        self.chunk = chunk

    def current(self) -> tuple[int, int]:
        return self.horizon, self.chunk

    def next(self) -> Setting:
        return Setting(self.horizon, self.chunk, _EVERYTHING)

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
        for option, value in (("every", every), ("chunk", chunk), ("limit", limit)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{option}={value!r}; expected an integer of at least 1")
        if not 0 <= start <= limit:
            raise ConfigurationError(f"start={start!r}; expected 0 to {limit} (limit)")
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
        if not 0 <= threshold <= 1:
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


class Auto(Predictor):
    """Plain or speculative, whichever takes less time per committed event now.

    It runs the better of the two in long stretches and tries the other in short ones from time to
    time: often while the two are close or the figures move, rarely while the verdict stands. A
    change of mind needs a margin, so that noise does not toggle it. While it speculates, it also
    tries shorter and longer chunks.

    Args:
        threads: of the engine.
        chunk: events per transaction; None: chosen, for transactions of 2 to 5 microseconds.
        horizon: transactions ahead of the head while it speculates.
    """

    # Durations in seconds. A probe of the losing side costs at most its length per pause.
    STRETCH = 0.010
    PROBE = 0.001
    SHORTEST_PAUSE = 0.020
    LONGEST_PAUSE = 0.200
    TRANSACTION = 4e-6
    MARGIN = 0.95
    MOVED = 1.3

    def __init__(
        self, threads: int = 2, *, chunk: int | None = None, horizon: int | None = None
    ) -> None:
        super().__init__()
        self.threads = threads
        self._free_chunk = chunk is None
        self.chunk = chunk or 8
        self._free_horizon = horizon is None
        self.horizon = horizon or max(8, 4 * threads)
        self._plain = float("inf")  # seconds per event, as last measured
        self._speculative = float("inf")
        self._speculating = False
        self._since_probe = 0.0
        self._pause = 0.0  # the first probe comes at once
        self._probing = False
        self._chunk_times: dict[int, float] = {}
        self._stretches = 0

    def current(self) -> tuple[int, int]:
        return (self.horizon if self._speculating else 0), self.chunk

    def open(self) -> tuple[int, int]:
        return self.horizon, self.chunk

    def next(self) -> Setting:
        self._probing = self._since_probe >= self._pause and self._plain < float("inf")
        if self._probing and not self._speculating:
            self._fit_chunk()
        speculate = self._speculating != self._probing and self.threads > 1
        known = self._speculative if speculate else self._plain
        length = self.PROBE if self._probing or known == float("inf") else self.STRETCH
        # Where nothing is known yet, the clock ends the first stretch.
        events = int(length / known) if 0 < known < float("inf") else _EVERYTHING
        horizon = self.horizon if speculate else 0
        # A transaction is never longer than the piece that the batch is cut into.
        events = max(events, 64 * self.chunk)
        return Setting(horizon, self.chunk, events, 2 * length)

    def least(self) -> int:
        if self.threads == 1:
            return 0
        return 1 if self._free_horizon else self.horizon

    def cap(self, horizon: int) -> None:
        if self._free_horizon:
            self.horizon = min(self.horizon, horizon)

    def _fit_chunk(self) -> None:
        if self._free_chunk:
            self.chunk = min(max(round(self.TRANSACTION / self._plain), 1), 64)

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        took = measured.time_per_event
        speculative = setting.horizon > 0
        before = self._speculative if speculative else self._plain
        if speculative:
            self._speculative = took
        else:
            self._plain = took
        if self._probing:
            if before == float("inf"):
                return  # the first run of all pays for memory that was never touched: probe again
            self._since_probe = 0.0
            self._compare()
            return
        self._since_probe += measured.seconds
        if before < float("inf") and not before / self.MOVED < took < before * self.MOVED:
            # The workload may have changed, and what is known of the other side be out of date. On
            # a busy machine it is noise more often than not: so look sooner, and not at once.
            self._pause = max(self._pause / 2, self.SHORTEST_PAUSE)
        if speculative and self._free_chunk:
            self._climb(measured)

    def _compare(self) -> None:
        """With both sides measured: stay or change, and when to look again."""
        if self.threads == 1:
            self._pause = float("inf")
            return
        mine, other = self._plain, self._speculative
        if self._speculating:
            mine, other = other, mine
        figures = (
            f"plain {self._plain * 1e9:.0f} ns, speculative {self._speculative * 1e9:.0f} ns "
            "per event"
        )
        if other < mine * self.MARGIN:
            self._speculating = not self._speculating
            self._pause = self.SHORTEST_PAUSE
            self._chunk_times.clear()
            horizon = self.horizon if self._speculating else 0
            self._decide(horizon, self.chunk, figures)
        elif other > mine * self.MOVED:
            self._pause = min(max(2 * self._pause, self.SHORTEST_PAUSE), self.LONGEST_PAUSE)
        else:
            self._pause = max(self._pause, 2 * self.SHORTEST_PAUSE)

    def _climb(self, measured: Measurement) -> None:
        """One step towards the chunk that takes the least time per event."""
        self._stretches += 1
        self._chunk_times[self.chunk] = measured.time_per_event
        if measured.aborts > 0.1 * measured.commits and self.chunk > 1:
            self._resize(self.chunk // 2, f"{measured.aborts / measured.commits:.0%} aborted")
            return
        best = min(self._chunk_times, key=self._chunk_times.__getitem__)
        if self._chunk_times[self.chunk] > self._chunk_times[best] / self.MARGIN:
            self._resize(best, f"{best} events a transaction took less")
        elif self._stretches % 8 == 0:
            # What was measured long ago is forgotten, one neighbour at a time.
            neighbour = self.chunk * 2 if self._stretches % 16 else max(self.chunk // 2, 1)
            if neighbour <= 64:
                self._chunk_times.pop(neighbour, None)
                self._resize(neighbour, "trying a neighbour")

    def _resize(self, chunk: int, reason: str) -> None:
        if chunk != self.chunk:
            self.chunk = chunk
            self._decide(self.horizon, chunk, reason)
