"""What early results have cost, and how far they are ahead of the final ones.

The runtime counts within a job, and forgets that with it; here the counts of all jobs add up. What
it does not know is when somebody was told: that is measured here, for a sample of the events that
is bounded however many of them are applied and not final.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from specstream.engine.native import Native

if TYPE_CHECKING:
    from specstream._native import ss_early_figures

__all__ = ["EarlyCount", "EarlyStatistics", "Leads"]

Numbers = npt.NDArray[np.int64]

# Events that are waited for, of those that were told and are not final; one in so many is.
_MOST_WATCHED = 4096
# The latest leads, which quantiles are of.
_KEPT = 4096
# Spreads the numbers of events, so that one in so many is not always the same source's.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_WORD_BITS = 64


@dataclass(frozen=True)
class EarlyStatistics:
    """Early results of an engine, since it was made and as they stand.

    Attributes:
        transactions: applied and not final, now.
        bytes: that are held for them.
        most_bytes: that ever were.
        revocations: times that applied transactions were taken back, as an earlier event came.
        revoked: transactions that were; of these
        republished: published again without a run, as all that they had read was as before, and
        rerun: run again. What is neither was given up, as an event came in its midst or what a
            timer raised has become final: its events begin anew.
        seconds: time spent revoking and publishing again.
        lead_median: seconds from the answer of ``poll_early`` that first told an event's rows until
            they were final, or a poll took them as such; the median of the latest 4,096 events that
            this was measured for. None: it was for none yet.
        lead_p99: likewise the 99th percentile: one event in a hundred has had a longer lead.
    """

    transactions: int = 0
    bytes: int = 0
    most_bytes: int = 0
    revocations: int = 0
    revoked: int = 0
    republished: int = 0
    rerun: int = 0
    seconds: float = 0.0
    lead_median: float | None = None
    lead_p99: float | None = None


class Leads:
    """Times from telling an event's rows early until they were final, of a sample of the events.

    Whoever calls the first three has the engine; anybody may ask for the quantiles.

    >>> leads = Leads()
    >>> leads.told(np.array([3, 3, 4]), at=10.0)
    >>> leads.told(np.array([3]), at=11.0)
    >>> leads.final(np.array([3]), at=12.5)
    >>> leads.quantiles()
    (2.5, 2.5)
    """

    def __init__(self) -> None:
        self.watched: dict[int, float] = {}
        self.bits = 0  # one event in 2 ** bits is watched
        self._found = np.zeros(_KEPT)
        self._count = 0
        self._quantiles: tuple[int, tuple[float | None, float | None]] = (0, (None, None))

    @property
    def are_waiting(self) -> bool:
        """Whether there are events whose end is waited for."""
        return bool(self.watched)

    def told(self, events: Numbers, at: float | None = None) -> None:
        """Rows of these events, by number, were told early; at once, by default."""
        at = time.monotonic() if at is None else at
        sample = np.unique(self._of_sample(events))
        while len(sample) + len(self.watched) > _MOST_WATCHED:
            self.bits += 1
            sample = self._of_sample(sample)
            kept = self._of_sample(self._numbers())
            self.watched = {event: self.watched[event] for event in kept.tolist()}
        for event in sample.tolist():
            self.watched.setdefault(event, at)

    def withdrawn(self, events: Numbers) -> None:
        """There are no rows of these any more."""
        for event in self._watched_of(events):
            self.watched.pop(event, None)

    def final(self, events: Numbers, at: float | None = None) -> None:
        """The rows of these are final; those that were never told early are passed over."""
        at = time.monotonic() if at is None else at
        for event in self._watched_of(events):
            since = self.watched.pop(event, None)
            if since is not None:
                self._found[self._count % _KEPT] = at - since
                self._count += 1
        if self.bits > 0 and len(self.watched) < _MOST_WATCHED // 4:
            self.bits -= 1

    def forget(self) -> None:
        """What was told and is not final will be told anew."""
        self.watched = {}

    def quantiles(self) -> tuple[float | None, float | None]:
        """Median and 99th percentile, in seconds; None: nothing was measured."""
        count = self._count
        known, quantiles = self._quantiles
        if known != count:
            found = self._found[: min(count, _KEPT)].copy()
            median, high = np.quantile(found, [0.5, 0.99], method="inverted_cdf").tolist()
            quantiles = median, high
            self._quantiles = count, quantiles
        return quantiles

    def _numbers(self) -> Numbers:
        return np.fromiter(self.watched, np.int64, len(self.watched))

    def _watched_of(self, events: Numbers) -> list[int]:
        """Those of them that are watched, each of its rows once."""
        if not self.watched or not len(events):
            return []
        found: list[int] = events[np.isin(events, self._numbers())].tolist()
        return found

    def _of_sample(self, events: Numbers) -> Numbers:
        """Those of them that are to be watched."""
        if self.bits == 0:
            return events
        spread = events.astype(np.uint64) * _SPREAD
        sample: Numbers = events[spread >> np.uint64(_WORD_BITS - self.bits) == 0]
        return sample


class EarlyCount:
    """The figures of one engine over all its jobs.

    Args:
        native: the engine in the runtime.

    Attributes:
        leads: of early results over final ones.
    """

    def __init__(self, native: Native) -> None:
        self._native = native
        self.leads = Leads()
        # Of two looks, the later one sees no less of what only grows.
        self._lock = threading.RLock()
        self._latest = EarlyStatistics()
        # Of the jobs that have ended; and whether the runtime's own figures are among them.
        self._past = EarlyStatistics(), True

    def begun(self) -> None:
        """A job has begun, and the runtime counts anew."""
        self._past = self._past[0], False

    def ended(self) -> None:
        """The job has ended, and the runtime still has its figures. May be begun anew."""
        past, is_counted = self._past
        if not is_counted:
            self._past = _sum(past, self._native.early_figures(), is_over=True), True

    def look(self) -> EarlyStatistics:
        """The figures at this instant. Any thread may ask."""
        with self._lock:
            past, is_counted = self._past
            if not is_counted:
                past = _sum(past, self._native.early_figures(), is_over=False)
            median, high = self.leads.quantiles()
            # A job that begins or ends in between is seen in part.
            before = self._latest
            self._latest = EarlyStatistics(
                transactions=past.transactions,
                bytes=past.bytes,
                most_bytes=max(past.most_bytes, before.most_bytes),
                revocations=max(past.revocations, before.revocations),
                revoked=max(past.revoked, before.revoked),
                republished=max(past.republished, before.republished),
                rerun=max(past.rerun, before.rerun),
                seconds=max(past.seconds, before.seconds),
                lead_median=median,
                lead_p99=high,
            )
            return self._latest


def _sum(past: EarlyStatistics, job: ss_early_figures, *, is_over: bool) -> EarlyStatistics:
    """With a job's ``struct ss_early_figures``; of one that is over nothing is applied any more."""
    return EarlyStatistics(
        transactions=0 if is_over else int(job.transactions),
        bytes=0 if is_over else int(job.bytes),
        most_bytes=max(past.most_bytes, int(job.most_bytes)),
        revocations=past.revocations + int(job.passes),
        revoked=past.revoked + int(job.revoked),
        republished=past.republished + int(job.republished),
        rerun=past.rerun + int(job.rerun),
        seconds=past.seconds + int(job.nanoseconds) / 1e9,
    )
