"""One batch: its events as jobs of the runtime, stretch by stretch, and its rows as a table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi, lib
from specstream.columns import Events, keys_of, rows_to_table
from specstream.conversion import time_at
from specstream.errors import EngineClosedError, Partial
from specstream.failing_events import raise_failure
from specstream.lock_faults import lock_error
from specstream.predictor import Measurement, Setting, next_of
from specstream.stats import ABORT_REASONS
from specstream.turns import WAIT_MILLISECONDS

if TYPE_CHECKING:
    from specstream.engine import Engine

__all__ = ["run_batch"]


def run_batch(engine: Engine, events: Events, ordered: bool) -> pa.Table:
    """Runs a batch, stretch by stretch, each with the predictor's setting."""
    first = engine._next_sequence
    if ordered:
        engine._in_flight = events, int(lib.ss_engine_statistics(engine._native).events)
    done = 0
    failed = False
    parts: list[pa.Table] = []
    try:
        unheard = engine._hooks.take_error()
        if unheard is not None:  # of an earlier call, which could raise one only
            raise unheard
        while done < events.count and not failed:
            setting = next_of(engine._predictor, engine._longest)
            engine._compile_for(setting.horizon)
            engine._locate = lambda row, begin=done: (
                events,
                begin + row,
                time_at(events.keys[0], begin + row),
                events.keys[1][begin + row].as_py(),
                first + begin + row,
            )
            outcome, measured, interruption = _run_stretch(engine, events, done, setting)
            # At once, because the next stretch writes over the rows; and not gathered, because
            # copying the rows of short events takes a fifth of the events' own time.
            parts.append(_table(engine, engine._rows(outcome), events, done, first))
            done += outcome.consumed
            failed = outcome.failed
            refusal = engine._hooks.take_refusal()
            # What an event raised comes first; the next call raises what hooks did besides.
            interruption = interruption or refusal
            if interruption is None and not failed:
                interruption = engine._hooks.take_error()
            try:
                engine._predictor.record(setting, measured)
            except Exception as error:
                # After what the stretch has done is counted; and what an event raised comes first.
                interruption = interruption or (None if failed else error)
            if interruption is not None:
                raise interruption
    except BaseException as error:
        output = _joined(engine, parts, events, first)
        error.specstream_partial = Partial(output, done)  # type: ignore[attr-defined]
        raise
    finally:
        with engine._between:
            # The failing event keeps its own number.
            engine._next_sequence = first + done + (1 if failed else 0)
            engine._begun = None
        if ordered and done:
            engine._reached = time_at(events.keys[0], done - 1)
        engine._in_flight = None
    output = _joined(engine, parts, events, first)
    if failed and outcome.lock_fault.kind:
        raise lock_error(engine.operator, outcome.lock_fault, Partial(output, done))
    if failed:
        # Where events run in no order, a fault says which one it was.
        row = done - outcome.consumed + outcome.fault.event if outcome.fault.signal else done
        raise_failure(engine, outcome, events, row, first, Partial(output, done))
    return output


def _run_stretch(
    engine: Engine, events: Events, begin: int, setting: Setting
) -> tuple[Any, Measurement, BaseException | None]:
    """Runs events from ``begin`` on; gives outcome and cost, and what cut the batch short."""
    columns = ffi.new(
        "void *[]",
        [ffi.cast("void *", c.ctypes.data + begin * c.itemsize) for c in events.columns],
    )
    job = ffi.new(
        "struct ss_job *",
        {
            "columns": columns,
            "count": min(setting.events, events.count - begin),
            "first_sequence": engine._next_sequence + begin,
            "chunk": setting.chunk,
            "horizon": setting.horizon,
            "mode": engine._mode,
        },
    )
    before = lib.ss_engine_statistics(engine._native)
    interruption: BaseException | None = None
    try:
        with engine._between:
            if not lib.ss_engine_start(engine._native, job):
                raise MemoryError(
                    f"engine of {engine.name!r}: no memory for logs: use a smaller horizon"
                )
            engine._begun = begin
        limit = None if setting.seconds is None else time.monotonic() + setting.seconds
        while True:
            milliseconds = WAIT_MILLISECONDS
            if limit is not None:
                rest = max(int(1000 * (limit - time.monotonic())), 1)
                milliseconds = min(milliseconds, rest)
            if lib.ss_engine_wait(engine._native, milliseconds):
                break
            if engine._closing:
                raise EngineClosedError(f"engine of {engine.name!r} was closed during process()")
            if limit is not None and time.monotonic() >= limit:
                lib.ss_engine_stop(engine._native)
    except BaseException as error:
        engine._end_job()
        interruption = error
    outcome = lib.ss_engine_outcome(engine._native)
    measured = _difference(before, lib.ss_engine_statistics(engine._native))
    return outcome, measured, interruption


def _table(
    engine: Engine, rows: npt.NDArray[np.int64], events: Events, begin: int, first: int
) -> pa.Table:
    """A stretch's rows; it began at row ``begin`` of the batch."""
    keys = keys_of(events, rows[:, 0] + begin, first) if engine._keys else None
    return rows_to_table(rows, engine.operator.emits, engine._strings, keys)


def _joined(engine: Engine, parts: list[pa.Table], events: Events, first: int) -> pa.Table:
    """The batch's output, of one chunk for each stretch."""
    if not parts:
        return _table(
            engine, np.empty((0, engine.operator.emits.row_words), np.int64), events, 0, first
        )
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts)


def _difference(before: Any, after: Any) -> Measurement:
    return Measurement(
        events=int(after.events - before.events),
        seconds=int(after.nanoseconds - before.nanoseconds) / 1e9,
        commits=int(after.commits - before.commits),
        aborts=sum(after.aborts[at] - before.aborts[at] for at in ABORT_REASONS.values()),
    )
