"""What an engine has done so far. The C side counts, and is asked without stopping it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from specstream.columns.conversion import order_distance, time_at
from specstream.declarations.deprecated import renamed
from specstream.display.sheet import Sheet
from specstream.display.values import duration, reasons_of, size
from specstream.engine.early_statistics import EarlyCount, EarlyStatistics
from specstream.engine.native import ABORT_REASONS
from specstream.engine.one_core import why_one_core
from specstream.engine.parts import Parts
from specstream.engine.string_sweep import StringSweep
from specstream.errors import EngineClosedError
from specstream.predictors.checked import current_of
from specstream.predictors.predictor import Decision
from specstream.profiling import HotPlace, hot_places

__all__ = ["Counted", "Statistics"]

# That a look at the statistics waits at most for a plain run to count what it has done.
ASK_NANOSECONDS = 1_000_000


@dataclass(frozen=True)
class Statistics:
    """What an engine has done since it was made, and how it stands.

    What only grows (events, commits, runs, aborts, seconds) is never smaller in a later reading.
    The numbers of one reading are not of one instant, as nothing stops for it: while a batch is in
    flight they are a few microseconds apart.

    Attributes:
        events: events applied; of a pipeline with phases by time the phases.
        commits: transactions committed.
        head_runs: transactions that the head ran in place at their first try.
        speculative_runs: runs ahead of their turn, and runs of a head that keeps logs as well (with
            protocol "eager", and with early results). A transaction that is dropped while it waits
            runs so once more, and so does what had run ahead of an event that raised, which is not
            among ``aborts``: so there may be more runs than transactions.
        aborts: speculative runs dropped, by reason: "conflict" (a value read had changed),
            "raised", "log_full" (a limit was passed, or memory ran out), "runaway" (the head for
            long, on values that did not hold), "fault" (its machine code crashed), "shadow" (the
            inverse of an operation on a boosted field has failed, or operations commute less than
            they were said to). Protocol "eager" distinguishes its conflicts (Brito 2010, 4.2.2):
            "inconsistent_snapshot" (i), "locked" by an earlier transaction (ii), "conflict" (iii:
            validation failed), "stolen" (iv: an earlier transaction took a lock). Where events come
            out of order: "reordered" (one came that belongs between those of a chunk). "hook":
            ``on_commit`` asked for it. "timer": one was due between the events of a chunk.
            "revoked": of early results, an earlier event came and changed what this one had read.
        reruns: runs that took the place of a dropped one.
        head_aborts: runs that began as the head and were dropped for a conflict. They occur with
            protocol "eager" alone, where a timer fires or an entry expires before the head.
        parks: times a worker went to sleep inside a batch.
        timers: timers that have fired.
        seconds: time inside batches.
        memory: bytes that the engine holds for logs and buffers, the state not counted. The undo
            log of the head and the output of the largest batch are part of it; they have no limit.
        state_bytes: bytes of the state; a container counts with the most that it has held.
        string_bytes: bytes of the string table.
        threads: number of worker threads.
        horizon: transactions that may start ahead of the head, as it stands.
        chunk: events per transaction, as set; with a hook a transaction is one event whatever it
            says.
        decisions: the predictor's latest changes of setting, each with its reason.
        pending: submitted events that are not committed.
        late: submitted events that came below their source's frontier.
        rejected_rows: rows that were left out because they cannot be events.
        failed_events: events and firings of timers that were set aside because their function has
            raised; they are not among ``events``.
        failed_timers: of these, firings of timers.
        running: a batch is in flight.
        waiting: length of the wait queue: transactions that have run ahead of their turn and are
            not yet committed.
        reached: order time of the last event that ``process`` has applied or set aside, as the
            table had it; None: there is none, or no ``order_by``.
        lag: how far the applied events are behind those that have come, in order time: seconds
            where the order column holds times, else its own unit. Of submitted events: from the
            frontier to the last event. None: nothing has an order time.
        early: early results, see :class:`specstream.engine.early_statistics.EarlyStatistics`; None:
            the engine was made without ``early=True``.
        string_sweeps: how often the string table was searched for strings that nothing refers to
            any more.
        string_sweep_seconds: seconds that these searches have taken.
        longest_string_sweep: the longest of them, in seconds.
        why_one_core: why events run on one core now, in a sentence with what was measured or set;
            empty: they run ahead on several, or none was applied.
    """

    events: int
    commits: int
    head_runs: int
    speculative_runs: int
    aborts: Mapping[str, int]
    reruns: int
    head_aborts: int
    parks: int
    timers: int
    seconds: float
    memory: int
    state_bytes: int
    string_bytes: int
    threads: int
    horizon: int
    chunk: int
    decisions: tuple[Decision, ...]
    pending: int
    late: int
    rejected_rows: int
    failed_events: int
    failed_timers: int
    running: bool
    waiting: int
    reached: Any
    lag: float | None
    early: EarlyStatistics | None = None
    string_sweeps: int = 0
    string_sweep_seconds: float = 0.0
    longest_string_sweep: float = 0.0
    why_one_core: str = ""

    @property
    def bad_rows(self) -> int:
        """Old name of ``rejected_rows``, until version 0.3."""
        renamed("stats.bad_rows", "stats.rejected_rows")
        return self.rejected_rows

    @property
    def time_per_event(self) -> float:
        """Seconds per applied event; 0.0 before the first."""
        return self.seconds / self.events if self.events else 0.0

    @property
    def abort_rate(self) -> float:
        """Dropped speculative runs per speculative run; 0.0 before the first."""
        runs = self.speculative_runs
        return sum(self.aborts.values()) / runs if runs else 0.0

    @property
    def commit_rate(self) -> float:
        """Committed transactions per run, speculative or not; 1.0 before the first."""
        runs = self.commits + sum(self.aborts.values())
        return self.commits / runs if runs else 1.0

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "aborts": dict(self.aborts)}  # a proxy is not pickled

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        vars(self).update(pickled, aborts=MappingProxyType(pickled["aborts"]))

    def __repr__(self) -> str:
        return self.sheet("Statistics").text()

    def _repr_html_(self) -> str:
        return self.sheet("Statistics").html()

    def sheet(self, title: str, setting: str = "") -> Sheet:
        """What is worth showing of them, under a title; ``setting`` goes before their own."""
        now = f"{self.threads} threads, horizon {self.horizon}, chunk {self.chunk}"
        lost = f", {self.abort_rate:.1%} of speculative runs" if self.speculative_runs else ""
        facts = [
            ("events", f"{self.events:,}, each in {duration(self.time_per_event)}"),
            (
                "transactions",
                f"{self.commits:,}; runs: {self.head_runs:,} as the head, "
                f"{self.speculative_runs:,} speculative",
            ),
            ("aborts", reasons_of(self.aborts) + lost),
            ("setting", setting + now),
            (
                "memory",
                f"state {size(self.state_bytes)}, strings {size(self.string_bytes)}, "
                f"logs and buffers {size(self.memory)}",
            ),
        ]
        counts = {
            "pending": self.pending,
            "wait queue": self.waiting,
            "late": self.late,
            "rejected rows": self.rejected_rows,
            "failed events": self.failed_events,
            "timers fired": self.timers,
        }
        facts += [(name, f"{count:,}") for name, count in counts.items() if count]
        if self.string_sweeps:
            sweeps = f"{self.string_sweeps:,} in {duration(self.string_sweep_seconds)}"
            longest = duration(self.longest_string_sweep)
            facts.append(("string sweeps", f"{sweeps}, the longest {longest}"))
        if self.early is not None:
            facts += _early_facts(self.early)
        if self.reached is not None:
            facts.append(("order time", f"{self.reached}, lag {self.lag or 0.0:,.6g}"))
        if self.running:
            facts.append(("running", "a batch is in flight"))
        if self.why_one_core:
            facts.append(("one core", self.why_one_core))
        if self.decisions:
            facts.append(("latest decision", self.decisions[-1].reason))
        decisions = [
            ("before event", "horizon", "chunk", "reason"),
            *(
                (f"{one.event:,}", f"{one.horizon:,}", f"{one.chunk:,}", one.reason)
                for one in self.decisions[-10:]
            ),
        ]
        return Sheet(title, facts, more=("latest decisions of the predictor", decisions))

    def to_dict(self) -> dict[str, Any]:
        """All of them as plain data, for JSON."""
        reached = self.reached
        if not isinstance(reached, int | float | None):
            reached = str(reached)
        plain = replace(self, aborts=dict(self.aborts), reached=reached)
        return {
            **asdict(plain),
            "bad_rows": self.rejected_rows,  # the old name, until version 0.3
            "decisions": [asdict(decision) for decision in self.decisions],
            "time_per_event": self.time_per_event,
            "abort_rate": self.abort_rate,
            "commit_rate": self.commit_rate,
        }


def _early_facts(early: EarlyStatistics) -> list[tuple[str, str]]:
    facts = [
        (
            "applied, not final",
            f"{early.transactions:,} transactions, {size(early.bytes)} "
            f"(at most {size(early.most_bytes)})",
        ),
        (
            "revocations",
            f"{early.revocations:,} in {duration(early.seconds)}; transactions: "
            f"{early.revoked:,} revoked, {early.republished:,} republished, {early.rerun:,} rerun",
        ),
    ]
    if early.lead_median is not None and early.lead_p99 is not None:
        lead = f"median {duration(early.lead_median)}, 99th percentile {duration(early.lead_p99)}"
        facts.append(("early before final", lead))
    return facts


class Counted:
    """The statistics of one engine, as far as somebody has looked at them.

    Args:
        parts: of the engine.
        early: figures of its early results; None: it has none.
        sweep: of its string table.

    Attributes:
        latest: what the last look has found.
        hot_places: the words that speculative runs were dropped for, likewise.
    """

    def __init__(self, parts: Parts, early: EarlyCount | None, sweep: StringSweep) -> None:
        self._parts, self._early, self._sweep = parts, early, sweep
        # Held by who looks at the statistics: of two looks, the later one sees no less.
        self._lock = threading.RLock()
        self._seconds = 0.0  # that a look has told of
        self.hot_places: tuple[HotPlace, ...] = ()
        self.count()

    def count(self) -> None:
        """Looks at the engine as it stands."""
        native = self._parts.native
        early = None if self._early is None else self._early.look()
        self.latest = self._statistics(native.memory(), native.waiting(), early)

    def look(self) -> Statistics:
        """The statistics as they are at this instant; in a forked process, or of an engine that is
        closed, as they were at the end."""
        lifetime = self._parts.lifetime
        if lifetime.is_inherited():
            # No mutex may be asked for, and what was in flight has no end.
            if not lifetime.closed and lifetime.lock.acquire(blocking=False):
                try:
                    self.latest = self._statistics(self.latest.memory, 0, self.latest.early)
                finally:
                    lifetime.lock.release()
            return self.latest
        with contextlib.suppress(EngineClosedError):
            lifetime.inside(self._look)
        return self.latest

    def _look(self) -> None:
        with self._lock:
            if self._parts.flight.counted is not None:
                self._parts.native.ask(ASK_NANOSECONDS)
            self.count()

    def look_at_places(self) -> None:
        """Takes in the places of conflicts, if nobody else uses the engine."""
        lifetime = self._parts.lifetime
        if lifetime.is_inside():
            return
        with contextlib.suppress(EngineClosedError):
            lifetime.inside(lambda: lifetime.try_lock(self.take_places))

    def take_places(self) -> None:
        """Takes in the places of conflicts; between two jobs."""
        self.hot_places = hot_places(self._parts.native.hot_places())

    def _statistics(self, memory: int, waiting: int, early: EarlyStatistics | None) -> Statistics:
        """Since the engine was made. Given what is asked for with a mutex: bytes of its logs and
        buffers, events that wait, early results."""
        parts, committed = self._parts, self._parts.committed
        counted = parts.native.statistics()
        self._seconds = max(self._seconds, int(counted.nanoseconds) / 1e9)
        reached, lag = self._progress(int(counted.events))
        horizon, chunk = current_of(parts.predictor)
        aborts = {name: int(counted.aborts[at]) for name, at in ABORT_REASONS.items()}
        return Statistics(
            events=int(counted.events),
            commits=int(counted.commits),
            head_runs=int(counted.head_runs),
            speculative_runs=int(counted.speculative_runs),
            aborts=MappingProxyType(aborts),
            reruns=int(counted.reruns),
            head_aborts=int(counted.head_aborts),
            parks=int(counted.parks),
            timers=int(counted.timers),
            seconds=self._seconds,
            memory=memory,
            state_bytes=committed.state_bytes,
            string_bytes=committed.strings.memory,
            threads=parts.options.threads,
            horizon=horizon,
            chunk=chunk,
            # A copy is made at one go; iterating would fail where one is added meanwhile.
            decisions=tuple(parts.predictor.decisions.copy()),
            pending=committed.pending.segments.left,
            late=committed.pending.late.count,
            rejected_rows=committed.rejected.count,
            failed_events=committed.failed.count,
            failed_timers=committed.failed.firings,
            running=parts.flight.counted is not None,
            waiting=waiting,
            reached=reached,
            lag=lag,
            early=early,
            string_sweeps=self._sweep.count,
            string_sweep_seconds=self._sweep.seconds,
            longest_string_sweep=self._sweep.longest,
            why_one_core=why_one_core(
                parts.options,
                parts.predictor,
                int(counted.events),
                int(counted.speculative_runs),
            ),
        )

    def _progress(self, events: int) -> tuple[Any, float | None]:
        """Order time of the last event applied, and how far it lies behind what has come."""
        committed, in_flight = self._parts.committed, self._parts.flight.batch
        if in_flight is None or not in_flight[0].count:
            lag = committed.pending.lag()
            return committed.reached, 0.0 if lag is None and committed.reached is not None else lag
        batch, before = in_flight
        times, numbers = batch.keys[0], batch.columns[0]
        row = min(events - before, batch.count) - 1
        reached = time_at(times, row) if row >= 0 else committed.reached
        return reached, order_distance(times.type, int(numbers[-1]), int(numbers[max(row, 0)]))
