"""What submitted events have emitted, fetched by the caller: rows, early results, and errors.

Rows are handed out once: they are the caller's by the return, or by the exception that is raised in
its place. Until then a poll that a signal handler interrupts leaves them for the next one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from specstream.columns.events import rows_to_table
from specstream.columns.python_values import row_tuples
from specstream.declarations.options import number, one_of
from specstream.engine.early_results import Changes, EarlyAnswer, EarlyResults
from specstream.engine.emitted_rows import EmittedRows
from specstream.engine.interrupts import LatePartial
from specstream.engine.job_failures import JobFailures
from specstream.engine.native import WAIT_MILLISECONDS
from specstream.engine.open_job import OpenJob
from specstream.engine.parts import Parts
from specstream.errors import ConfigurationError, Partial

if TYPE_CHECKING:
    from specstream._native import ss_outcome

__all__ = ["Poller"]

T = TypeVar("T")

# Between two looks at the rows of events that are committing.
DRAIN_SECONDS = 0.001
WAIT_SECONDS = WAIT_MILLISECONDS / 1000


class Poller:
    """Polls of one engine. The public calls are documented at :class:`specstream.Engine`.

    Args:
        parts: of the engine.
        job: its open job.
        rows: what the job has emitted.
        early: early results of the job.
    """

    def __init__(self, parts: Parts, job: OpenJob, rows: EmittedRows, early: EarlyResults) -> None:
        self._parts = parts
        self._native = parts.native
        self._lifetime = parts.lifetime
        self._flight = parts.flight
        self._committed = parts.committed
        self._emits = parts.operator.emits
        self._job = job
        self._rows = rows
        self._early = early
        self._failures = JobFailures(parts, rows)
        self._pause = DRAIN_SECONDS

    def poll(self, timeout: float | None = 0.0) -> Any:
        """See :meth:`specstream.Engine.poll`."""
        return self._poll(timeout, self._by_sink)

    def poll_whole(self, timeout: float | None = 0.0) -> pa.Table:
        """With the rows of all sinks in one table."""
        return self._poll(timeout, self._as_table)

    def poll_rows(self, timeout: float | None = 0.0) -> list[tuple[Any, ...]]:
        """See :meth:`specstream.Engine.poll_rows`."""
        return self._poll(timeout, self._as_tuples)

    def late(self) -> pa.Table | None:
        """See :meth:`specstream.Engine.late`."""
        with self._lifetime.exclusive():
            return self._committed.pending.late.take()

    def _poll(self, timeout: float | None, convert: Callable[[Any], tuple[T, Partial]]) -> T:
        """What ``convert`` makes of the outcome and of all rows that are there for a poll."""
        until = _deadline(timeout)
        rows, failures = self._rows, self._failures
        handed_out: Partial | None = None
        try:
            while True:
                with self._lifetime.exclusive():
                    wait, outcome = self._collect(until)
                    if wait is None:
                        output, polled = convert(outcome)
                        failure, go_on = failures.next_failure(outcome, polled)
                        applied = rows.applied if outcome is None else outcome.consumed
                        aside = rows.set_aside if outcome is None else 0
                        # The caller's from here on: by the return, or by the exception. No call
                        # in between.
                        handed_out, rows.taken, self._committed.pending.held = polled, [], None
                        rows.firings, rows.applied, rows.set_aside = {}, applied, aside
                        failures.owed, self._lifetime.unsettled = failure, go_on
                        self._lifetime.settle()
                        self._committed.pending.segments.forget()
                        # Nor from here on.
                        failures.owed = None
                        if failure is not None:
                            raise failure
                        return output
                # Without the lock, as somebody else may bring what we wait for.
                self._lifetime.inside(wait)
        except BaseException as error:
            # Here, as a signal handler may raise when all is done and the engine is given back.
            if handed_out is not None:
                error.specstream_partial = handed_out  # type: ignore[attr-defined]
            raise

    def _by_sink(self, outcome: ss_outcome) -> tuple[Any, Partial]:
        output, whole = self._as_table(outcome)
        by_sink = self._parts.operator.rows(output)
        return by_sink, Partial(by_sink, whole.consumed)

    def _as_table(self, outcome: ss_outcome) -> tuple[pa.Table, Partial]:
        output = self._rows.table()
        return output, Partial(output, self._rows.consumed(outcome))

    def _as_tuples(self, outcome: ss_outcome) -> tuple[list[tuple[Any, ...]], Partial]:
        failed = self._failures.are_owed or (outcome is not None and outcome.failed)
        consumed = self._rows.consumed(outcome)
        if failed or self._parts.options.keys or self._committed.pending.held is not None:
            output, whole = self._as_table(outcome)
            columns = [output[name].to_pylist() for name in self._emits.names]
            return list(zip(*columns, strict=True)), whole
        words, strings = self._rows.array, self._committed.strings
        late = LatePartial(
            lambda: Partial(rows_to_table(words, self._emits, strings, None), consumed)
        )
        return row_tuples(self._emits, words, strings), late

    def _collect(self, until: float | None) -> tuple[Callable[[], None] | None, Any]:
        """Takes rows emitted since the last poll.

        Returns:
            What to wait for, without the lock, before the next look; None: that was the last. And
            then the C side's outcome; None: no job is open.
        """
        pending = self._committed.pending
        if pending.unsent or (pending.due and not self._flight.is_open):
            self._job.send()
        if not self._flight.is_open:
            return None, None
        if until is None:
            # All rows of events below the frontier, or of those before one that has failed.
            outcome, settled = self._parts.turn.taken(self._rows.take_settled)
            if self._failures.set_aside(outcome):
                self._pause = DRAIN_SECONDS / 16  # another one may be near
                return partial(self._wait, WAIT_SECONDS), None
            if outcome.failed or settled or self._failures.are_owed:
                return None, outcome
            # Rows keep coming; who fetched each of them would keep others from committing.
            pause = self._pause if outcome.row_count else 0.0
            self._pause = min(2 * self._pause, DRAIN_SECONDS)
            return partial(self._wait, WAIT_SECONDS, pause), None
        rest = until - time.monotonic()
        if self._native.await_news(0) or self._failures.are_owed or rest <= 0:
            outcome = self._parts.turn.taken(self._rows.take)
            if not self._failures.set_aside(outcome):
                return None, outcome
            outcome, is_over = self._go_on(outcome)
            rest = until - time.monotonic()
            if is_over or rest <= 0 or any(len(rows) for _, rows in self._rows.taken):
                return None, outcome
        return partial(self._wait, min(rest, WAIT_SECONDS)), None

    def _go_on(self, outcome: ss_outcome) -> tuple[Any, bool]:
        """An event was set aside that has kept those behind it from committing: takes their rows as
        well, for a while, so that who polls now and then does not fall behind.

        Returns:
            The outcome then, and whether there is nothing more to wait for.
        """
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            self._native.await_news(DRAIN_SECONDS)
            outcome, settled = self._parts.turn.taken(self._rows.take_settled)
            if self._failures.set_aside(outcome):
                continue
            if settled or outcome.failed or self._failures.are_owed:
                return outcome, True
        return outcome, False

    def _wait(self, seconds: float, at_least: float = 0.0) -> None:
        if at_least:
            # While rows keep coming there is always news, so that waiting for it would be no pause.
            # Each fetch holds up those that commit: a few at a time are fetched together.
            time.sleep(at_least)
        self._native.await_news(seconds)

    def poll_early(self, timeout: float | None, changes: Changes) -> EarlyAnswer:
        """See :meth:`specstream.Engine.poll_early`."""
        if not self._parts.options.early:
            raise ConfigurationError(
                f"poll_early: the engine of {self._parts.name!r} was made without early results; "
                "expected Engine(..., early=True)"
            )
        one_of("changes", changes, ("upsert", "retract"))
        self._early.tells = True
        until = _deadline(timeout, "all events to be applied")
        handed_out: EarlyAnswer | None = None
        try:
            while True:
                with self._lifetime.exclusive():
                    if self._committed.pending.unsent:
                        self._job.send()
                    wait, answer = self._collect_early(until, changes)
                    if answer is not None:
                        handed_out = answer
                        return answer
                self._lifetime.inside(wait)
        except BaseException as error:
            if handed_out is not None:
                error.specstream_partial = handed_out  # type: ignore[attr-defined]
            raise

    def _collect_early(
        self, until: float | None, changes: Changes
    ) -> tuple[Callable[[], object], EarlyAnswer | None]:
        """What to wait for, or what has changed."""
        rest = math.inf if until is None else until - time.monotonic()
        if not self._flight.is_open:
            answer = self._early.answer(changes, self._committed.strings)
            self._early.finish()
            return _nothing, answer

        def answer_now() -> EarlyAnswer | None:
            gathered = self._rows.gather_early()
            if gathered.no_memory:
                raise MemoryError(f"engine of {self._parts.name!r}: no memory for early results")
            if not gathered.is_settled and rest > 0:
                return None
            if not gathered.is_whole:  # taken back, and not yet done again
                self._early.leave()
                return self._early.nothing(changes, self._committed.strings)
            answer = self._early.answer(changes, self._committed.strings)
            self._early.finish()
            self._native.told_early(True)
            return answer

        answer_or_none = self._parts.turn.taken(answer_now)
        wait = partial(self._native.await_early, min(max(rest, 0.0), WAIT_SECONDS))
        return wait, answer_or_none


def _nothing() -> None:
    """What there is to wait for where no job is open."""


def _deadline(timeout: float | None, whole: str = "all events below the frontier") -> float | None:
    """Until when a poll waits; None: for the whole of it."""
    if timeout is None:
        return None
    seconds = f"seconds, 0 or more, or None to wait for {whole}"
    return time.monotonic() + number("timeout", timeout, 0, math.inf, seconds)
