"""Events that are submitted to an engine out of order, and commit below the frontier.

What :class:`specstream.Engine` has beside whole batches. ``arrivals.py`` keeps the sources and the
events; what is here hands them to the runtime, whose *open job* takes events while it runs, and
brings back what they emit.
"""

from __future__ import annotations

import numbers
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi, lib
from specstream.arrivals import (
    Arrivals,
    Late,
    Name,
    Segment,
    Sources,
    checked_late,
    checked_sources,
)
from specstream.bad_rows import BadRows
from specstream.columns import as_table, rows_to_table
from specstream.compiler.types import Variant
from specstream.compiler.variants import Entry, compile_entry
from specstream.conversion import time_at
from specstream.errors import ConfigurationError, InputError, Partial
from specstream.failing_events import raise_failure
from specstream.hooks import Hooks
from specstream.operator import Operator
from specstream.plain_values import row_tuples
from specstream.predictor import Predictor, open_of
from specstream.strings import StringTable
from specstream.turns import WAIT_MILLISECONDS, native_turn

__all__ = ["NO_FRONTIER", "OutOfOrder"]

# Nothing is below it: there is no earlier key.
NO_FRONTIER = (-(2**63), -(2**63))
# Between two looks at the rows of events that are committing.
DRAIN_SECONDS = 0.001


class OutOfOrder:
    """The part of an engine that takes submitted events."""

    name: str
    operator: Operator
    seed: int
    _arrivals: Arrivals
    _late: Late
    _declared: tuple[Name, ...]
    _is_open: bool
    _frontier: tuple[int, int]
    _taken: list[npt.NDArray[np.int64]]  # rows of the open job, not yet a table
    _applied: int
    _locate: Any
    _lock: threading.RLock
    _native: Any
    _words: npt.NDArray[np.int64]
    _mode: int
    _keys: bool
    _entries: dict[Variant, Entry]
    _speculative: Variant
    _predictor: Predictor
    _longest: int
    _hooks: Hooks
    _strings: StringTable
    _bad_rows: BadRows

    if TYPE_CHECKING:  # of the engine

        def _open(self) -> AbstractContextManager[None]: ...
        def _check_open(self) -> None: ...
        def _set_entry(self, variant: Variant) -> None: ...
        def _end_job(self) -> None: ...
        def _rows(self, outcome: Any) -> npt.NDArray[np.int64]: ...

    def submit(
        self,
        table: Any,
        *,
        order_by: str,
        source: Name | None = None,
        source_column: str | None = None,
        ordered: bool = False,
    ) -> None:
        """Hands in events that may be out of order with those before; does not wait for them.

        Events run at once, ahead of their turn, and commit in the order of (timestamp, source,
        sequence number within the source), when the frontiers of all sources have passed them. The
        outcome is that of one sequential run in this order. :meth:`advance` moves a frontier,
        :meth:`poll` gets what was emitted.

        Args:
            table: as for :meth:`process`.
            order_by: column of the timestamps; of one type in all tables.
            source: name of the source that all rows are of; 0 by default.
            source_column: instead of ``source``: the column that names each row's source.
            ordered: the source sends no earlier event later: moves its frontier to the table's
                last timestamp.

        Raises:
            InputError: the table does not fit, or has late events and the engine was made with
                ``late="error"``; nothing is submitted.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     count = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={"x": int, "place": int})
        ... def number(state, event, emit):
        ...     state.count += 1
        ...     emit(event.x, state.count)
        >>> with ss.Engine(number, threads=2, horizon=8, chunk=1, sources=["a", "b"]) as engine:
        ...     engine.submit({"time": [10, 30], "x": [1, 3]}, order_by="time", source="a")
        ...     engine.submit({"time": [20], "x": [2]}, order_by="time", source="b")
        ...     engine.advance("a", 40)
        ...     engine.advance("b", 25)
        ...     engine.poll(timeout=5)["x"].to_pylist()
        [1, 2]
        """
        if source is not None and source_column is not None:
            raise ConfigurationError(
                "source and source_column were both given: name the one source of the table, or "
                "the column that names each row's"
            )
        with self._open():
            known = len(self._strings)
            try:
                segments = self._arrivals.read(
                    as_table(table, f"operator {self.name!r}"),
                    order_by,
                    0 if source is None and source_column is None else source,
                    source_column,
                )
            except BaseException:
                self._strings.truncate(known)
                raise
            self._start_open_job()
            for segment in segments:
                self._submit(segment, ordered)
            if ordered:
                self._move_frontier()

    def submit_event(
        self, timestamp: Any, source: Name = 0, *, ordered: bool = False, **values: Any
    ) -> None:
        """:meth:`submit` for one event, without the cost of a table.

        Args:
            timestamp: its time; an integer costs least.
            source: the source that it is of.
            ordered: as for :meth:`submit`.
            values: of all columns of the operator's event schema, by name.

        Raises:
            InputError: the event does not fit, or is late and the engine was made with
                ``late="error"``; it is not submitted.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     count = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": float}, emits={"x": float, "place": int})
        ... def number(state, event, emit):
        ...     state.count += 1
        ...     emit(event.x, state.count)
        >>> with ss.Engine(number, threads=2) as engine:
        ...     engine.submit_event(7, x=0.5, ordered=True)
        ...     engine.poll_rows(timeout=5)
        [(0.5, 1)]
        """
        with self._open():
            known = len(self._strings)
            try:
                segment = self._arrivals.one(source, timestamp, values)
            except BaseException:
                self._strings.truncate(known)
                raise
            self._start_open_job()
            if segment is not None:
                self._submit(segment, ordered)
            if ordered:
                self._move_frontier()

    def _submit(self, segment: Segment, ordered: bool) -> None:
        if not lib.ss_engine_submit(self._native, segment.native):
            raise MemoryError(f"engine of {self.name!r}: no memory for more events")
        if ordered:
            source = segment.source
            reached = source.frontier
            source.frontier = segment.until if reached is None else max(reached, segment.until)

    def advance(self, source: Name, to: Any = None) -> None:
        """Moves a source's frontier: none of its events below ``to`` comes any more.

        Args:
            source: its name; one that is new is declared by this.
            to: a timestamp of the order column's type; None: the source has ended. A frontier never
                moves back: an earlier ``to`` changes nothing.

        Raises:
            InputError: ``to`` is of another type, or no time at all.
        """
        with self._open():
            self._arrivals.advance(self._arrivals.sources.get(source), to)
            self._start_open_job()

    def poll(self, timeout: float | None = 0.0) -> pa.Table:
        """What submitted events have emitted since the last call, in the order of their keys.

        Pending events of a snapshot or a mark go on with the first call of this, :meth:`submit` or
        :meth:`advance` after it was restored.

        Args:
            timeout: seconds to wait for rows; less if events have committed without emitting any,
                and no other can commit now. None: waits until all events below the frontier have
                committed, so that the rows depend on the events and frontiers alone.

        Returns:
            A table as :meth:`process` gives it. Its events are committed.

        Raises:
            ConfigurationError: ``timeout`` is negative or no number.
            Exception: what the operator raised. Its event is not applied; later ones are, and
                the next call goes on behind it. ``specstream_partial`` on the exception holds what
                this call would have returned, and how many events were applied since the last.
        """
        with self._open():
            outcome = self._collect(timeout)
            output = self._polled()
            self._finish_poll(outcome, output)
            return output

    def poll_rows(self, timeout: float | None = 0.0) -> list[tuple[Any, ...]]:
        """:meth:`poll` for few rows at a time: tuples of the columns of ``emits``, without keys."""
        with self._open():
            outcome = self._collect(timeout)
            failed = self._hooks.has_errors or (outcome is not None and outcome.failed)
            if not failed and not self._arrivals.has_held:
                rows = row_tuples(self.operator.emits, self._taken_rows(), self._strings)
                self._finish_poll(outcome, None)
                return rows
            output = self._polled()
            self._finish_poll(outcome, output)
            names = self.operator.emits.names
            return list(zip(*(output[name].to_pylist() for name in names), strict=True))

    def late(self) -> pa.Table | None:
        """Late events since the last call, as they were given; None: none.

        They are kept by engines made with ``late="side"``; ``stats.late`` counts them under every
        policy but "error".
        """
        with self._open():
            return self._arrivals.take_late()

    def _start_open_job(self) -> None:
        """Has a job that takes events, with those that were restored, and the frontier as it is."""
        if not self._is_open:
            self._open_job()
        # The frontier last: what lies below it commits at once, though earlier ones were to follow.
        unsent = self._arrivals.unsent
        while unsent:
            self._submit(unsent[-1], ordered=False)
            unsent.pop()
        # And before what is submitted next: a source that joins may have moved it back.
        self._move_frontier()

    def _open_job(self) -> None:
        if self._mode not in (lib.SS_MODE_ORDERED, lib.SS_MODE_SPECULATE):
            raise ConfigurationError(
                'events can be submitted to an engine with execution="ordered" only'
            )
        horizon, chunk = open_of(self._predictor, self._longest)
        self._compile_for(horizon)
        job = ffi.new(
            "struct ss_job *", {"chunk": chunk, "horizon": horizon, "mode": lib.SS_MODE_OPEN}
        )
        if not lib.ss_engine_start(self._native, job):
            raise MemoryError(f"engine of {self.name!r}: no memory for logs: use a smaller horizon")
        self._is_open = True
        self._applied = 0
        self._locate = None
        self._frontier = NO_FRONTIER

    def _compile_for(self, horizon: int) -> None:
        """Makes sure that there is code for speculation if a job may ask for it."""
        if horizon > 0 and "plain" in self._entries and self._speculative not in self._entries:
            operator = self.operator
            self._entries[self._speculative] = compile_entry(
                operator.program,
                operator.layout,
                operator.event,
                operator.emits,
                self._speculative,
            )
            self._set_entry(self._speculative)

    def _end_open_job(self) -> None:
        if self._is_open:
            self._end_job()
            self._is_open = False
            self._hooks.take_refusal()  # its event is still pending: it will be asked again
            with native_turn(self):
                self._hold_rows()
            self._arrivals.forget()

    def _expect(self, sources: Iterable[Name], late: Late | None) -> None:
        """Declares more sources, and what happens to late events."""
        with self._open():
            declared = (*self._declared, *checked_sources(sources))
            late = self._late if late is None else checked_late(late)
            self._arrivals.expect(declared, late)
            self._declared, self._late = declared, late

    def _advance_all(self, reached: Mapping[Name, int]) -> None:
        """Moves frontiers, given as they are kept: order keys of the order column's values."""
        with self._open():
            self._arrivals.sources.advance(reached)
            self._start_open_job()

    def _check_nothing_pending(self, what: str) -> None:
        pending = self._arrivals.pending
        if pending:
            raise InputError(
                f"{what}: {pending} submitted event(s) are not committed: advance() their sources "
                "and poll() first, or submit() this table as well"
            )

    def _new_arrivals(self, strings: StringTable) -> Arrivals:
        what = f"operator {self.name!r}"
        arrivals = Arrivals(
            Sources(strings, what),
            self.operator.event,
            strings,
            self._late,
            self._bad_rows,
            self.operator.program.reads_timestamp,
            what,
        )
        arrivals.sources.declare(self._declared)
        return arrivals

    def _arrivals_of(self, strings: StringTable, image: bytes) -> Arrivals:
        """What :meth:`Arrivals.to_bytes` gave, as arrivals.

        Raises:
            SnapshotError: events or rows are in it that do not fit the operator, or it is none.
        """
        arrivals = self._new_arrivals(strings)
        arrivals.from_bytes(image)
        nothing = np.empty((0, self.operator.emits.row_words), np.int64)
        keys = arrivals.keys(nothing[:, 0]) if self._keys else None
        arrivals.check_held(rows_to_table(nothing, self.operator.emits, strings, keys).schema)
        return arrivals

    def _move_frontier(self) -> None:
        frontier = self._arrivals.sources.frontier() or NO_FRONTIER
        if frontier != self._frontier:
            self._frontier = frontier
            at = ffi.new("struct ss_frontier *", {"timestamp": frontier[0], "source": frontier[1]})
            lib.ss_engine_advance(self._native, at[0])

    def _collect(self, timeout: float | None) -> Any:
        """Takes rows emitted since the last call; the C side's outcome, None: no job is open."""
        if timeout is not None and not (_is_number(timeout) and timeout >= 0):
            raise ConfigurationError(
                f"timeout={timeout!r}; expected seconds, 0 or more, or None to wait for all events "
                "below the frontier"
            )
        until = time.monotonic() + (timeout or 0.0)
        while self._is_open or self._arrivals.unsent:
            if self._arrivals.unsent:
                self._start_open_job()
            rest, pause = WAIT_MILLISECONDS, 0.0
            if timeout is None:
                # All rows of events below the frontier, or of those before one that has failed.
                with native_turn(self):
                    outcome = self._take_rows()
                    settled = lib.ss_engine_is_settled(self._native)
                    if outcome.failed or settled or self._hooks.has_errors:
                        return outcome
                # Rows keep coming; who fetched each of them would keep others from committing.
                pause = DRAIN_SECONDS if len(self._taken[-1]) else 0.0
            else:
                rest = min(rest, int(1000 * min(until - time.monotonic(), 1.0) + 0.999))
                news = lib.ss_engine_await(self._native, 0) or self._hooks.has_errors
                if news or rest <= 0:
                    with native_turn(self):
                        return self._take_rows()
            self._wait(rest, pause)
        return None

    def _wait(self, milliseconds: int, at_least: float = 0.0) -> None:
        """Waits for news of the open job; without the lock, as somebody else may bring them."""
        try:
            self._lock.release()
            if at_least:
                time.sleep(at_least)
            lib.ss_engine_await(self._native, milliseconds)
        finally:
            self._regain_lock()
        self._check_open()

    def _regain_lock(self) -> None:
        """Takes the lock, whatever a signal handler raises meanwhile: the caller releases it."""
        try:
            while not self._lock._is_owned():  # type: ignore[attr-defined]
                self._lock.acquire()
        except BaseException:
            self._regain_lock()
            raise

    def _take_rows(self) -> Any:
        """With the turn: takes the emitted rows of the open job; its outcome."""
        outcome = lib.ss_engine_outcome(self._native)
        if self._has_heard(outcome):
            lib.ss_engine_resume(self._native, outcome.failed_row)
            outcome.failed = False
        self._taken.append(self._rows(outcome).copy())
        lib.ss_engine_clear_rows(self._native)
        self._arrivals.settle()
        return outcome

    def _taken_rows(self) -> npt.NDArray[np.int64]:
        taken, self._taken = self._taken, []
        return np.concatenate([np.empty((0, self.operator.emits.row_words), np.int64), *taken])

    def _hold_rows(self) -> None:
        """With the turn: keeps what nobody has polled for the next poll."""
        self._take_rows()
        self._arrivals.hold(self._polled())

    def _polled(self) -> pa.Table:
        """All that is there for a poll."""
        rows = self._taken_rows()
        keys = self._arrivals.keys(rows[:, 0]) if self._keys else None
        output = rows_to_table(rows, self.operator.emits, self._strings, keys)
        held = self._arrivals.take_held()
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
            error = self._hooks.take_error()
            if error is not None:
                # Whatever else has failed is for the next call.
                heard = outcome is not None and self._has_heard(outcome)
            elif heard:
                error = self._hooks.take_refusal()
                if error is None and outcome.failed_row >= 0:
                    segment, row = self._arrivals.find(outcome.failed_row)
                    first = segment.first_sequence
                    raise_failure(self, outcome, segment.events, row, first, partial)
                error = error or MemoryError(f"engine of {self.name!r}: no memory for more events")
            if error is not None:
                error.specstream_partial = partial  # type: ignore[attr-defined]
                raise error
        finally:
            if heard:
                lib.ss_engine_resume(self._native, outcome.failed_row)
            self._arrivals.forget()

    def _has_heard(self, outcome: Any) -> bool:
        """Whether the job waits for nothing but that somebody hears of hooks that have raised.

        A hook's thread may halt the job only when its error is taken already.
        """
        by_hook = outcome.failed and outcome.failed_row == lib.SS_NO_ROW_FOR_HOOK
        return bool(by_hook and not self._hooks.has_errors)

    def _locate_arrival(self, row: int) -> Any:
        segment, at = self._arrivals.find(row)
        keys = segment.events.keys
        return (
            segment.events,
            at,
            time_at(keys[0], at),
            segment.source.name,
            segment.first_sequence + at,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
