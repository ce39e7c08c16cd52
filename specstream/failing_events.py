"""The error of an event that failed in compiled code, which only says that it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specstream._native import lib
from specstream.columns import Events
from specstream.compiler.oracle import Oracle
from specstream.errors import OperatorCrashError, Partial, SpecstreamError
from specstream.plain_values import event_text

if TYPE_CHECKING:
    from specstream.out_of_order import OutOfOrder

__all__ = ["raise_crash", "raise_for"]


def raise_for(engine: OutOfOrder, events: Events, row: int, first: int, partial: Partial) -> None:
    """Raises what the event in ``row`` raises, from the user's own line.

    Native code only says that it raised. The real exception comes from the oracle, over an
    overlay of the committed state.
    """
    operator = engine.operator
    oracle = Oracle(operator.program, operator.layout, engine._words, overlay=True)
    oracle.begin(operator.event, operator.emits, events.columns, first, engine.seed)
    key = f"({events.keys[0][row]}, {events.keys[1][row]}, {first + row})"
    try:
        oracle.run(row)
    except Exception as error:
        error.add_note(
            f"raised by operator {engine.name!r} at event (timestamp, source, sequence) = {key}, "
            f"row {row} of the batch in order: {_text(engine, events, row)}"
        )
        error.specstream_partial = partial  # type: ignore[attr-defined]
        raise
    failure = SpecstreamError(
        f"operator {engine.name!r}: compiled code raised at event {key}, and Python does not; "
        "the event is not applied. Please report the operator and the event"
    )
    failure.specstream_partial = partial  # type: ignore[attr-defined]
    raise failure


def raise_crash(
    engine: OutOfOrder, fault: Any, events: Events, row: int, first: int, partial: Partial
) -> None:
    """Raises the error of a fault in compiled code; Python, which has no such, is not asked."""
    error = OperatorCrashError(
        engine.name,
        f"({events.keys[0][row]}, {events.keys[1][row]}, {first + row})",
        fault.signal,
        stack_overflow=fault.stack_overflow,
        address=fault.address if fault.has_address else None,
        undone=engine._mode in (lib.SS_MODE_ORDERED, lib.SS_MODE_SPECULATE),
    )
    error.add_note(f"row {row} of the batch in order: {_text(engine, events, row)}")
    error.specstream_partial = partial
    raise error


def _text(engine: OutOfOrder, events: Events, row: int) -> str:
    return event_text(engine.operator.event, events, row, engine._strings)
