"""Events that are submitted to an engine out of order, and commit below the frontier.

``sources.py`` and ``pending_events.py`` keep the sources and the events; what is here hands them to
the runtime, whose *open job* takes events while it runs, and brings back what they emit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import lib
from specstream.columns.events import as_table, column, rows_to_table
from specstream.columns.python_values import row_tuples
from specstream.declarations.options import flag, number, refused, text
from specstream.engine.native import WAIT_MILLISECONDS
from specstream.engine.operator_errors import raise_failure
from specstream.engine.parts import Parts
from specstream.engine.segments import Segment
from specstream.engine.sources import Name
from specstream.errors import ConfigurationError, Partial, SpecstreamError
from specstream.predictors.checked import open_of

__all__ = ["OutOfOrder"]

# Nothing is below it: there is no earlier key.
NO_FRONTIER = (-(2**63), -(2**63))
# Between two looks at the rows of events that are committing.
DRAIN_SECONDS = 0.001


class OutOfOrder:
    """The open job of one engine. The public calls are documented at :class:`specstream.Engine`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._native = parts.native
        self._lifetime = parts.lifetime
        self._flight = parts.flight
        self._committed = parts.committed
        self._emits = parts.operator.emits
        self._frontier = NO_FRONTIER  # that the open job was told
        self._highest = NO_FRONTIER  # key of the last event that it was given
        self._applied = 0  # events of the open job that a poll has told of
        self._taken: list[npt.NDArray[np.int64]] = []  # rows of the open job, not yet a table

    def submit(
        self,
        table: Any,
        *,
        order_by: str,
        source: Name | None = None,
        source_column: str | None = None,
        ordered: bool = False,
    ) -> None:
        """See :meth:`specstream.Engine.submit`."""
        text("order_by", order_by, "the name of a column")
        column("source_column", source_column)
        ordered = flag("ordered", ordered)
        if order_by is None:
            raise refused("order_by", order_by, "the name of a column: the time of the events")
        if source is not None and source_column is not None:
            raise ConfigurationError(
                "source and source_column were both given: name the one source of the table, or "
                "the column that names each row's"
            )
        with self._lifetime.exclusive():
            known = len(self._committed.strings)
            try:
                segments = self._committed.pending.read(
                    as_table(table, f"operator {self._parts.name!r}"),
                    order_by,
                    0 if source is None and source_column is None else source,
                    source_column,
                )
            except BaseException:
                self._committed.strings.truncate(known)
                raise
            self._start_open_job()
            for segment in segments:
                self._submit(segment, ordered)
            if ordered:
                self._move_frontier()

    def submit_event(
        self, timestamp: Any, source: Name, ordered: bool, values: Mapping[str, Any]
    ) -> None:
        """See :meth:`specstream.Engine.submit_event`."""
        ordered = flag("ordered", ordered)
        with self._lifetime.exclusive():
            known = len(self._committed.strings)
            try:
                segment = self._committed.pending.one(source, timestamp, values)
            except BaseException:
                self._committed.strings.truncate(known)
                raise
            self._start_open_job()
            if segment is not None:
                self._submit(segment, ordered)
            if ordered:
                self._move_frontier()

    def _submit(self, segment: Segment, ordered: bool) -> None:
        self._check((segment.since, segment.source.rank), self._frontier, "an event")
        self._native.submit(segment.native)
        self._highest = max(self._highest, (segment.until, segment.source.rank))
        if ordered:
            source = segment.source
            reached = source.frontier
            source.frontier = segment.until if reached is None else max(reached, segment.until)

    def advance(self, source: Name, to: Any = None) -> None:
        """See :meth:`specstream.Engine.advance`."""
        with self._lifetime.exclusive():
            pending, strings = self._committed.pending, len(self._committed.strings)
            known = len(pending.sources)
            try:
                pending.advance(pending.sources.get(source), to)
            except BaseException:
                pending.sources.truncate(known)
                self._committed.strings.truncate(strings)
                raise
            self._start_open_job()

    def poll(self, timeout: float | None = 0.0) -> pa.Table:
        """See :meth:`specstream.Engine.poll`."""
        with self._lifetime.exclusive():
            outcome = self._collect(timeout)
            output = self._polled()
            self._finish_poll(outcome, output)
            return output

    def poll_rows(self, timeout: float | None = 0.0) -> list[tuple[Any, ...]]:
        """See :meth:`specstream.Engine.poll_rows`."""
        with self._lifetime.exclusive():
            outcome = self._collect(timeout)
            failed = self._parts.hooks.has_errors or (outcome is not None and outcome.failed)
            if not failed and not self._committed.pending.has_held:
                rows = row_tuples(self._emits, self._taken_rows(), self._committed.strings)
                self._finish_poll(outcome, None)
                return rows
            output = self._polled()
            self._finish_poll(outcome, output)
            names = self._emits.names
            return list(zip(*(output[name].to_pylist() for name in names), strict=True))

    def late(self) -> pa.Table | None:
        """See :meth:`specstream.Engine.late`."""
        with self._lifetime.exclusive():
            return self._committed.pending.take_late()

    def _start_open_job(self) -> None:
        """Has a job that takes events, with those that were restored, and the frontier as it is."""
        if not self._flight.is_open:
            self._start_job()
        # The frontier last: what lies below it commits at once, though earlier ones were to follow.
        unsent = self._committed.pending.unsent
        while unsent:
            self._submit(unsent[-1], ordered=False)
            unsent.pop()
        # And before what is submitted next: a source that joins may have moved it back.
        self._move_frontier()

    def _start_job(self) -> None:
        if not self._parts.options.is_ordered:
            raise ConfigurationError(
                'events can be submitted to an engine with execution="ordered" only'
            )
        horizon, chunk = open_of(self._parts.predictor, self._parts.longest)
        self._parts.code.compile_for(horizon, self._parts.native)
        self._native.start(chunk=chunk, horizon=horizon, mode=lib.SS_MODE_OPEN)
        self._flight.is_open = True
        self._applied = 0
        self._flight.locate = None
        self._frontier = self._highest = NO_FRONTIER

    def end_job(self) -> None:
        """Ends the open job, if there is one; what it has emitted is kept for the next poll."""
        if self._flight.is_open:
            self._native.end_job()
            self._flight.is_open = False
            # Its event is still pending: it will be asked again.
            self._parts.hooks.take_refusal()
            with self._parts.turn.taken():
                self.hold_rows()
            self._committed.pending.forget()

    def advance_all(self, reached: Mapping[Name, int | None]) -> None:
        """Moves frontiers, given as they are kept: order keys of the order column's values.

        None: the source has ended.
        """
        with self._lifetime.exclusive():
            self._committed.pending.sources.advance(reached)
            self._start_open_job()

    def _move_frontier(self) -> None:
        frontier = self._committed.pending.sources.frontier() or NO_FRONTIER
        if frontier != self._frontier:
            self._check(frontier, min(self._frontier, self._highest), "the frontier")
            self._frontier = frontier
            self._native.advance(frontier)

    def _check(self, at: tuple[int, int], committed: tuple[int, int], what: str) -> None:
        """What the runtime relies on: nothing comes below what may be committed already.

        Late events were sorted out by their sources' frontiers, so this can only be a bug here; but
        the answer would be wrong without a word.
        """
        if at < committed:
            raise SpecstreamError(
                f"operator {self._parts.name!r}: {what} lies at {at}, and events are committed up "
                f"to (timestamp, source) = {committed}; expected nothing below. This is a bug in "
                "specstream: please report it, and make a new engine from an earlier snapshot"
            )

    def _collect(self, timeout: float | None) -> Any:
        """Takes rows emitted since the last call; the C side's outcome, None: no job is open."""
        if timeout is not None:
            seconds = "seconds, 0 or more, or None to wait for all events below the frontier"
            timeout = number("timeout", timeout, 0, math.inf, seconds)
        until = time.monotonic() + (timeout or 0.0)
        while self._flight.is_open or self._committed.pending.unsent:
            if self._committed.pending.unsent:
                self._start_open_job()
            rest, pause = WAIT_MILLISECONDS, 0.0
            if timeout is None:
                # All rows of events below the frontier, or of those before one that has failed.
                with self._parts.turn.taken():
                    outcome = self._take_rows()
                    settled = self._native.is_settled()
                    if outcome.failed or settled or self._parts.hooks.has_errors:
                        return outcome
                # Rows keep coming; who fetched each of them would keep others from committing.
                pause = DRAIN_SECONDS if len(self._taken[-1]) else 0.0
            else:
                rest = min(rest, int(1000 * min(until - time.monotonic(), 1.0) + 0.999))
                if self._native.await_news(0) or self._parts.hooks.has_errors or rest <= 0:
                    with self._parts.turn.taken():
                        return self._take_rows()
            self._wait(rest, pause)
        return None

    def _wait(self, milliseconds: int, at_least: float = 0.0) -> None:
        """Waits for news of the open job; without the lock, as somebody else may bring them."""
        try:
            self._lifetime.lock.release()
            if at_least:
                time.sleep(at_least)
            self._native.await_news(milliseconds)
        finally:
            self._lifetime.regain_lock()
        self._lifetime.check_open()

    def _take_rows(self) -> Any:
        """With the turn: takes the emitted rows of the open job; its outcome."""
        outcome = self._native.outcome()
        if self._has_heard(outcome):
            self._native.resume(outcome.failed_row)
            outcome.failed = False
        self._taken.append(self._native.rows(outcome, self._emits.row_words).copy())
        self._native.clear_rows()
        self._committed.pending.settle()
        return outcome

    def _taken_rows(self) -> npt.NDArray[np.int64]:
        taken, self._taken = self._taken, []
        return np.concatenate([np.empty((0, self._emits.row_words), np.int64), *taken])

    def abandon(self) -> None:
        """Ends the open job, if there is one, with the engine."""
        if self._flight.is_open:
            self._native.end_job()
            self._flight.is_open = False

    def hold_rows(self) -> None:
        """With the turn: keeps what nobody has polled for the next poll."""
        self._take_rows()
        self._committed.pending.hold(self._polled())

    def _polled(self) -> pa.Table:
        """All that is there for a poll."""
        rows = self._taken_rows()
        keys = self._committed.pending.keys(rows[:, 0]) if self._parts.options.keys else None
        output = rows_to_table(rows, self._emits, self._committed.strings, keys)
        held = self._committed.pending.take_held()
        return output if held is None else pa.concat_tables([held, output])

    def _finish_poll(self, outcome: Any, output: pa.Table | None) -> None:
        """Raises one thing that keeps the events from going on; after the last they go on."""
        consumed = 0
        if outcome is not None:
            consumed = int(outcome.consumed - self._applied)
            self._applied = outcome.consumed
        heard = output is not None and outcome is not None and outcome.failed
        try:
            if output is None:
                return
            partial = Partial(output, consumed)
            error = self._parts.hooks.take_error()
            if error is not None:
                # Whatever else has failed is for the next call.
                heard = outcome is not None and self._has_heard(outcome)
            elif heard:
                error = self._parts.hooks.take_refusal()
                if error is None and outcome.failed_row >= 0:
                    segment, row = self._committed.pending.find(outcome.failed_row)
                    first = segment.first_sequence
                    raise_failure(self._parts, outcome, segment.events, row, first, partial)
                error = error or MemoryError(
                    f"engine of {self._parts.name!r}: no memory for more events"
                )
            if error is not None:
                error.specstream_partial = partial  # type: ignore[attr-defined]
                raise error
        finally:
            if heard:
                self._native.resume(outcome.failed_row)
            self._committed.pending.forget()

    def _has_heard(self, outcome: Any) -> bool:
        """Whether the job waits for nothing but that somebody hears of hooks that have raised.

        A hook's thread may halt the job only when its error is taken already.
        """
        by_hook = outcome.failed and outcome.failed_row == lib.SS_NO_ROW_FOR_HOOK
        return bool(by_hook and not self._parts.hooks.has_errors)
