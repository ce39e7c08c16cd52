"""Figures of an engine. The C side does the counting, and is asked without stopping it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from specstream._native import lib
from specstream.declarations.deprecated import renamed
from specstream.engine.pending_events import PendingEvents
from specstream.predictors.checked import current_of
from specstream.predictors.predictor import Decision, Predictor

__all__ = ["ABORT_REASONS", "Statistics"]

ABORT_REASONS = {
    "conflict": lib.SS_ABORT_CONFLICT,
    "raised": lib.SS_ABORT_RAISED,
    "log_full": lib.SS_ABORT_LOG_FULL,
    "runaway": lib.SS_ABORT_RUNAWAY,
    "inconsistent_snapshot": lib.SS_ABORT_INCONSISTENT_SNAPSHOT,
    "locked": lib.SS_ABORT_LOCKED,
    "stolen": lib.SS_ABORT_STOLEN,
    "reordered": lib.SS_ABORT_REORDERED,
    "hook": lib.SS_ABORT_HOOK,
    "fault": lib.SS_ABORT_FAULT,
    "shadow": lib.SS_ABORT_SHADOW,
}


@dataclass(frozen=True)
class Statistics:
    """What an engine has done since it was made, and how it stands.

    Of two looks, the later one sees no less of what only grows: events, commits, runs, aborts,
    seconds. Figures of one look are not of one instant, as nobody stops for it: while a batch is in
    flight they differ by what happens in a few microseconds.

    Attributes:
        events: events applied.
        commits: transactions committed.
        head_runs: transactions that the head ran in place at their first try.
        speculative_runs: transactions run speculatively.
        aborts: speculative runs dropped, by reason: "conflict" (a value read had changed),
            "raised", "log_full" (a limit was passed, or memory ran out), "runaway" (the head for
            long, on values that did not hold), "fault" (its machine code crashed), "shadow" (the
            inverse of an operation on a boosted field has failed, or operations commute less than
            they were said to).
            Protocol "eager" tells its conflicts apart (Brito 2010, 4.2.2): "inconsistent_snapshot"
            (i), "locked" by an earlier transaction (ii), "conflict" (iii: validation failed),
            "stolen" (iv: an earlier transaction took a lock). Where events come out of order:
            "reordered" (one came that belongs between those of a chunk). "hook": ``on_commit``
            asked for it.
        reruns: runs that took the place of a dropped one.
        head_aborts: runs that began as the head and were dropped for a conflict; always 0.
        parks: times a worker went to sleep inside a batch.
        seconds: time inside batches.
        memory: bytes that the engine holds for logs and buffers, the state not counted. The undo
            log of the head and the output of the largest batch are part of it; they have no limit.
        state_bytes: bytes of the state.
        string_bytes: bytes of the string table.
        threads: number of worker threads.
        horizon: transactions that may start ahead of the head, as it stands.
        chunk: events per transaction, as it stands.
        decisions: the predictor's latest changes of setting, each with its reason.
        pending: submitted events that are not committed.
        late: submitted events that came below their source's frontier.
        rejected_rows: rows that were left out because they cannot be events.
        running: a batch is in flight.
        waiting: length of the wait queue: transactions that have run ahead of their turn and are
            not yet committed.
        reached: order time of the last event applied by ``process``, as the table had it; None:
            there is none, or no ``order_by``.
        lag: how far what is applied lies behind what has come, in order time: seconds where the
            order column holds times, else its own unit. Of submitted events: from the frontier to
            the last event. None: nothing has an order time.
    """

    events: int
    commits: int
    head_runs: int
    speculative_runs: int
    aborts: Mapping[str, int]
    reruns: int
    head_aborts: int
    parks: int
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
    running: bool
    waiting: int
    reached: Any
    lag: float | None

    @property
    def bad_rows(self) -> int:
        """Old name of ``rejected_rows``, for one release."""
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

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data, for JSON."""
        reached = self.reached
        if not isinstance(reached, int | float | None):
            reached = str(reached)
        plain = replace(self, aborts=dict(self.aborts), reached=reached)
        return {
            **asdict(plain),
            "bad_rows": self.rejected_rows,  # the old name, for one release
            "decisions": [asdict(decision) for decision in self.decisions],
            "time_per_event": self.time_per_event,
            "abort_rate": self.abort_rate,
            "commit_rate": self.commit_rate,
        }

    @classmethod
    def of(
        cls,
        counted: Any,
        seconds: float,
        memory: int,
        state_bytes: int,
        string_bytes: int,
        threads: int,
        predictor: Predictor,
        arrivals: PendingEvents,
        rejected_rows: int,
        running: bool,
        waiting: int,
        reached: Any,
        lag: float | None,
    ) -> Statistics:
        """From the C runtime's ``struct ss_statistics``."""
        horizon, chunk = current_of(predictor)
        aborts = {name: int(counted.aborts[at]) for name, at in ABORT_REASONS.items()}
        return cls(
            events=int(counted.events),
            commits=int(counted.commits),
            head_runs=int(counted.head_runs),
            speculative_runs=int(counted.speculative_runs),
            aborts=MappingProxyType(aborts),
            reruns=int(counted.reruns),
            head_aborts=int(counted.head_aborts),
            parks=int(counted.parks),
            seconds=seconds,
            memory=memory,
            state_bytes=state_bytes,
            string_bytes=string_bytes,
            threads=threads,
            horizon=horizon,
            chunk=chunk,
            # A copy is made at one go; iterating would fail where one is added meanwhile.
            decisions=tuple(predictor.decisions.copy()),
            pending=arrivals.pending,
            late=arrivals.late,
            rejected_rows=rejected_rows,
            running=running,
            waiting=waiting,
            reached=reached,
            lag=lag,
        )
