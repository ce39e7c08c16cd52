"""One batch: its events as jobs of the runtime, stretch by stretch, and its rows as a table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi, lib
from specstream.columns.conversion import time_at
from specstream.columns.events import Events, keys_of, keys_with_firings, rows_to_table
from specstream.engine.interrupts import LatePartial, insist
from specstream.engine.lock_errors import lock_error
from specstream.engine.native import WAIT_MILLISECONDS
from specstream.engine.operator_errors import (
    failed_event,
    failed_timer,
    failure_of,
    timer_failure,
)
from specstream.engine.parts import Parts
from specstream.errors import EngineClosedError, FailedEventsError, Partial
from specstream.predictors.checked import longest_of, next_of
from specstream.predictors.predictor import Measurement, Setting

__all__ = ["Batch"]

_POINTERS = ffi.typeof("void *[]")
_ABORTS = lib.SS_ABORT_REASONS


class Batch:
    """A batch that runs, and what it has done so far.

    A signal handler may raise at any step. So what is done is what the attributes say and, for the
    stretch in flight, what the runtime says; and :meth:`leave` may be begun anew. Of what has
    failed the batch ends before it, as if it had not run, until what leaves :meth:`run` is the
    exception that tells of it.

    Args:
        parts: of the engine; the caller has it to himself.
        events: of the batch.
        ordered: they have order times.
        ends_input: no event follows.

    Attributes:
        has_begun: it has an effect: the events' rejected rows are kept, the events run.
        partial: what it has done, for the exception that cuts it short.
    """

    def __init__(
        self, parts: Parts, events: Events, ordered: bool, ends_input: bool = False
    ) -> None:
        self._parts = parts
        self._events = events
        self._ordered = ordered
        self._ends_input = ends_input and parts.operator.has_timers
        self._first = parts.committed.next_sequence
        self._counted = parts.native.statistics()  # before what is not yet measured
        self._applied_before = int(self._counted.events)
        self._done = 0
        self._outcome = parts.native.outcome()  # of the last job that is counted
        self._job = int(self._outcome.job)
        self._failed = False
        self._failure: BaseException | None = None  # tells of it
        self._tables: list[pa.Table] = []
        self._columns: Any = None  # of the stretch in flight; None: none is
        self._is_settled = False
        self._behind = 0  # number of the next event, if the one that has failed keeps its own
        self.has_begun = False
        self.partial = LatePartial(self._told)

    def run(self) -> pa.Table:
        """Runs it, stretch by stretch, each with the predictor's setting; gives its output."""
        parts, events = self._parts, self._events
        if parts.operator.has_timers and not parts.flight.end_is_unheard:
            parts.native.go_on_ending(0)
        parts.lifetime.unsettled = self.leave
        self.has_begun = True
        parts.flight.end_is_unheard = False  # unless this one raises as well
        try:
            with parts.flight.between:
                if self._ordered:
                    parts.flight.batch = events, self._applied_before
                parts.flight.counted = 0, self._job
            unheard = parts.hooks.take_error()
            if unheard is not None:  # of an earlier call, which could raise one only
                raise unheard
            if parts.operator.layout.lasting:
                parts.committed.settle_times(events.keys[0].type)
            while self._done < events.count and not self._failed:
                setting = next_of(parts.predictor, parts.longest)
                self._stretch(setting, longest_of(parts.predictor, parts.longest))
            if self._ends_input and not self._failed:
                self._end_input()
            if self._failed:
                self._failure = self._found_failure()
                raise self._failure
            insist(self.leave)
            parts.lifetime.unsettled = None
            return self.partial.output
        except BaseException as error:
            insist(self.settle)
            if error is not self._failure:
                insist(self.leave)
            else:
                # Who raises it tells of it, if no handler raises before: no call from here to the
                # end. The failing event keeps its own number.
                parts.committed.next_sequence = self._behind
                parts.flight.unheard = None
            self._failure = None  # likewise: its traceback has this frame
            parts.lifetime.unsettled = None
            raise

    def _found_failure(self) -> BaseException:
        outcome = self._outcome
        if outcome.lock_fault.kind:
            return lock_error(self._parts.operator, outcome.lock_fault, self.partial)
        if outcome.timer_failed:
            failure = timer_failure(self._parts, outcome, self.partial)
        else:
            row = self._done
            if outcome.fault.signal:  # where events run in no order, it says which one it was
                row += outcome.fault.event - outcome.consumed
            failure = failure_of(self._parts, outcome, self._events, row, self._first, self.partial)
        self._parts.code.forget(failure)
        try:
            return failure
        finally:
            # This frame is behind one of its traceback: with it here, only the collector would
            # take the two, and the engine with them.
            del failure

    def _set_aside(self) -> bool:
        """Sets the event or the timer aside that has failed, and goes on behind it; False: none
        has, or not because its function raises, or it is to be raised.

        Raises:
            FailedEventsError: it is one too many.
        """
        parts, events, outcome, row = self._parts, self._events, self._outcome, self._done
        failed = parts.committed.failed
        if not (self._failed and failed.sets_aside):
            return False
        if outcome.timer_failed:
            kept = failed_timer(parts, outcome, events.keys[0].type, events.keys[1].type)
        else:
            kept = failed_event(parts, outcome, events, row, self._first)
        if kept is None:
            return False
        what, error = kept
        try:
            failed.check(what, error)
        except FailedEventsError as too_many:
            self._failure = too_many
            raise
        done, job = row + (not outcome.timer_failed), self._job
        batch = parts.flight.batch
        if batch is not None:  # so that its time is told of, whose event is not applied
            batch = events, self._applied_before - (done - row)
            self._applied_before = batch[1]

        def step() -> None:
            with parts.flight.between:
                failed.keep(what)
                parts.code.forget(error)
                # No call from here to the end: all of it, or none.
                self._failed, self._done = False, done
                parts.flight.counted, parts.flight.batch = (done, job), batch
                parts.flight.unheard = None

        insist(step)
        return True

    def _run(
        self, setting: Setting, *, longest: int = 0, ends_input: bool = False
    ) -> BaseException | None:
        """Runs a stretch: one job, and one more behind each event that is set aside.

        Returns:
            What has cut it short.
        """
        end = min(self._done + setting.events, self._events.count)
        limit = None if setting.seconds is None else time.monotonic() + setting.seconds
        interruption: BaseException | None = None
        while True:
            try:
                self._await_job(setting, longest, end - self._done, limit, ends_input)
            except BaseException as error:
                interruption = error
            insist(self._count)
            self._failure = self._parts.hooks.take_refusal()
            # What an event raised comes first; the next call raises what hooks did besides.
            interruption = interruption or self._failure
            try:
                if interruption is not None or not self._set_aside():
                    return interruption
            except BaseException as error:
                return error
            is_over = limit is not None and time.monotonic() >= limit
            if not ends_input and (self._done >= end or is_over):
                return None

    def _stretch(self, setting: Setting, longest: int) -> None:
        parts = self._parts
        parts.code.compile_for(setting.horizon, parts.native)
        interruption = self._run(setting, longest=longest)
        if interruption is None and not self._failed:
            interruption = parts.hooks.take_error()
        try:
            before, self._counted = self._counted, parts.native.statistics()
            parts.predictor.record(setting, _difference(before, self._counted))
        except Exception as error:
            # After what the stretch has done is counted; and what an event raised comes first.
            interruption = interruption or (None if self._failed else error)
        if interruption is not None:
            raise interruption

    def _end_input(self) -> None:
        """Fires the timers that are left: a job without events."""
        interruption = self._run(Setting(horizon=0, chunk=1, events=1), ends_input=True)
        if interruption is not None:
            raise interruption

    def _await_job(
        self, setting: Setting, longest: int, count: int, limit: float | None, ends_input: bool
    ) -> None:
        """Runs so many events from the first that is not done on, until something cuts them
        short."""
        parts, events, first, begin = self._parts, self._events, self._first, self._done
        self._check_open()  # a job may be over before we have to wait for it
        parts.flight.locate = lambda row: (
            events,
            begin + row,
            time_at(events.keys[0], begin + row),
            events.keys[1][begin + row].as_py(),
            first + begin + row,
        )
        self._columns = ffi.new(
            _POINTERS,
            [
                ffi.from_buffer(column) + (begin * column.itemsize if at < events.own else 0)
                for at, column in enumerate(events.columns)
            ],
        )
        with parts.flight.between:
            parts.native.start(
                columns=self._columns,
                count=count,
                first_sequence=self._first + begin,
                chunk=setting.chunk,
                horizon=setting.horizon,
                longest_horizon=longest,
                mode=parts.options.mode,
                ends_input=ends_input,
            )
        while True:
            milliseconds = WAIT_MILLISECONDS
            if limit is not None:
                rest = max(int(1000 * (limit - time.monotonic())), 1)
                milliseconds = min(milliseconds, rest)
            if parts.native.wait(milliseconds):
                break
            self._check_open()
            if limit is not None and time.monotonic() >= limit:
                parts.native.stop()

    def _check_open(self) -> None:
        if self._parts.lifetime.closing:
            raise EngineClosedError(f"engine of {self._parts.name!r} was closed during process()")

    def _count(self) -> None:
        """Counts what the stretch in flight has done, and takes its rows. May be begun anew.

        At once, because the next stretch writes over the rows; and not gathered, because copying
        the rows of short events takes a fifth of the events' own time.
        """
        if self._columns is None:
            return  # counted, or not begun
        native = self._parts.native
        if not native.wait(0):
            native.end_job()
        outcome = native.outcome()
        if outcome.job == self._job:
            return  # counted, or not begun
        rows = native.rows(outcome, self._parts.operator.emits.row_words)
        table = self._table(rows, native.firings(outcome))
        tables, done, job = [*self._tables, table], self._done + outcome.consumed, outcome.job
        failed = outcome.failed
        with self._parts.flight.between:
            # No call from here to the end: all of it, or none.
            self._tables, self._done, self._job = tables, done, job
            self._failed, self._outcome = failed, outcome
            self._parts.flight.counted, self._parts.flight.unheard = (done, job), outcome
            self._columns = None

    def leave(self) -> None:
        """Ends it, and nobody has heard of what has failed: an event is still to run, and a timer
        still to fire. May be begun anew."""
        self.settle()
        flight, native = self._parts.flight, self._parts.native
        if self._failed and self._outcome.timer_failed:
            self._parts.turn.taken(native.take_back_timer)
        flight.unheard = None

    def settle(self) -> None:
        """Ends it: the engine goes on behind what was applied. May be begun anew."""
        if self._is_settled:
            return
        committed, flight = self._parts.committed, self._parts.flight
        committed.rejected.keep(self._events.rejected)
        self._count()
        output = self._joined()
        reached = committed.reached
        if self._ordered and self._done:
            reached = time_at(self._events.keys[0], self._done - 1)
        done = self._events.events_before(self._done)
        self.partial.tell(output, done)
        failed = 0
        if self._failed and not self._outcome.timer_failed:
            failed = self._events.events_in(self._done)
        with flight.between:
            # No call from here to the end: all of it, or none.
            committed.next_sequence = self._first + done
            self._behind = self._first + done + failed
            committed.reached = reached
            flight.counted = flight.batch = None
            self._is_settled = True

    def _told(self) -> Partial:
        """For who asks before it is settled: after more interrupts than we have tries."""
        if not self._is_settled:
            with self._parts.lifetime.exclusive():  # who enters settles
                pass
        return Partial(self.partial.output, self.partial.consumed)

    def _table(
        self, rows: npt.NDArray[np.int64], firings: Sequence[tuple[int, int]] = ()
    ) -> pa.Table:
        """Rows of the stretch that begins behind what is done."""
        keys = None
        if self._parts.options.keys:
            keys = keys_with_firings(rows[:, 0], self._keys, firings)
        return rows_to_table(rows, self._parts.operator.emits, self._parts.committed.strings, keys)

    def _keys(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        return keys_of(self._events, rows + self._done, self._first)

    def _joined(self) -> pa.Table:
        """The batch's output, of one chunk for each stretch."""
        if not self._tables:
            return self._table(np.empty((0, self._parts.operator.emits.row_words), np.int64))
        return self._tables[0] if len(self._tables) == 1 else pa.concat_tables(self._tables)


def _difference(before: Any, after: Any) -> Measurement:
    return Measurement(
        events=int(after.events - before.events),
        seconds=int(after.nanoseconds - before.nanoseconds) / 1e9,
        commits=int(after.commits - before.commits),
        aborts=sum(ffi.unpack(after.aborts, _ABORTS)) - sum(ffi.unpack(before.aborts, _ABORTS)),
    )
