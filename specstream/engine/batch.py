"""One batch: its events as jobs of the runtime, stretch by stretch, and its rows as a table."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi
from specstream.columns.conversion import time_at
from specstream.columns.events import Events, keys_of, rows_to_table
from specstream.engine.lock_errors import lock_error
from specstream.engine.native import ABORT_REASONS, WAIT_MILLISECONDS
from specstream.engine.operator_errors import raise_failure
from specstream.engine.parts import Parts
from specstream.errors import EngineClosedError, Partial
from specstream.predictors.checked import next_of
from specstream.predictors.predictor import Measurement, Setting

__all__ = ["run_batch"]


def run_batch(parts: Parts, events: Events, ordered: bool) -> pa.Table:
    """Runs a batch, stretch by stretch, each with the predictor's setting."""
    first = parts.committed.next_sequence
    if ordered:
        parts.flight.batch = events, int(parts.native.statistics().events)
    done = 0
    failed = False
    tables: list[pa.Table] = []
    try:
        unheard = parts.hooks.take_error()
        if unheard is not None:  # of an earlier call, which could raise one only
            raise unheard
        while done < events.count and not failed:
            setting = next_of(parts.predictor, parts.longest)
            parts.code.compile_for(setting.horizon, parts.native)
            parts.flight.locate = lambda row, begin=done: (
                events,
                begin + row,
                time_at(events.keys[0], begin + row),
                events.keys[1][begin + row].as_py(),
                first + begin + row,
            )
            outcome, measured, interruption = _run_stretch(parts, events, done, setting)
            # At once, because the next stretch writes over the rows; and not gathered, because
            # copying the rows of short events takes a fifth of the events' own time.
            tables.append(
                _table(
                    parts,
                    parts.native.rows(outcome, parts.operator.emits.row_words),
                    events,
                    done,
                    first,
                )
            )
            done += outcome.consumed
            failed = outcome.failed
            refusal = parts.hooks.take_refusal()
            # What an event raised comes first; the next call raises what hooks did besides.
            interruption = interruption or refusal
            if interruption is None and not failed:
                interruption = parts.hooks.take_error()
            try:
                parts.predictor.record(setting, measured)
            except Exception as error:
                # After what the stretch has done is counted; and what an event raised comes first.
                interruption = interruption or (None if failed else error)
            if interruption is not None:
                raise interruption
    except BaseException as error:
        output = _joined(parts, tables, events, first)
        error.specstream_partial = Partial(output, done)  # type: ignore[attr-defined]
        raise
    finally:
        with parts.flight.between:
            # The failing event keeps its own number.
            parts.committed.next_sequence = first + done + (1 if failed else 0)
            parts.flight.begun = None
        if ordered and done:
            parts.committed.reached = time_at(events.keys[0], done - 1)
        parts.flight.batch = None
    output = _joined(parts, tables, events, first)
    if failed and outcome.lock_fault.kind:
        raise lock_error(parts.operator, outcome.lock_fault, Partial(output, done))
    if failed:
        # Where events run in no order, a fault says which one it was.
        row = done - outcome.consumed + outcome.fault.event if outcome.fault.signal else done
        raise_failure(parts, outcome, events, row, first, Partial(output, done))
    return output


def _run_stretch(
    parts: Parts, events: Events, begin: int, setting: Setting
) -> tuple[Any, Measurement, BaseException | None]:
    """Runs events from ``begin`` on; gives outcome and cost, and what cut the batch short."""
    columns = ffi.new(
        "void *[]",
        [ffi.cast("void *", c.ctypes.data + begin * c.itemsize) for c in events.columns],
    )
    before = parts.native.statistics()
    interruption: BaseException | None = None
    try:
        with parts.flight.between:
            parts.native.start(
                columns=columns,
                count=min(setting.events, events.count - begin),
                first_sequence=parts.committed.next_sequence + begin,
                chunk=setting.chunk,
                horizon=setting.horizon,
                mode=parts.options.mode,
            )
            parts.flight.begun = begin
        limit = None if setting.seconds is None else time.monotonic() + setting.seconds
        while True:
            milliseconds = WAIT_MILLISECONDS
            if limit is not None:
                rest = max(int(1000 * (limit - time.monotonic())), 1)
                milliseconds = min(milliseconds, rest)
            if parts.native.wait(milliseconds):
                break
            if parts.lifetime.closing:
                raise EngineClosedError(f"engine of {parts.name!r} was closed during process()")
            if limit is not None and time.monotonic() >= limit:
                parts.native.stop()
    except BaseException as error:
        parts.native.end_job()
        interruption = error
    outcome = parts.native.outcome()
    measured = _difference(before, parts.native.statistics())
    return outcome, measured, interruption


def _table(
    parts: Parts, rows: npt.NDArray[np.int64], events: Events, begin: int, first: int
) -> pa.Table:
    """A stretch's rows; it began at row ``begin`` of the batch."""
    keys = keys_of(events, rows[:, 0] + begin, first) if parts.options.keys else None
    return rows_to_table(rows, parts.operator.emits, parts.committed.strings, keys)


def _joined(parts: Parts, tables: list[pa.Table], events: Events, first: int) -> pa.Table:
    """The batch's output, of one chunk for each stretch."""
    if not tables:
        nothing = np.empty((0, parts.operator.emits.row_words), np.int64)
        return _table(parts, nothing, events, 0, first)
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _difference(before: Any, after: Any) -> Measurement:
    return Measurement(
        events=int(after.events - before.events),
        seconds=int(after.nanoseconds - before.nanoseconds) / 1e9,
        commits=int(after.commits - before.commits),
        aborts=sum(after.aborts[at] - before.aborts[at] for at in ABORT_REASONS.values()),
    )
