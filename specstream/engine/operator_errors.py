"""The error of an event that failed in compiled code, which only says that it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from specstream.columns.conversion import time_at
from specstream.columns.derived import NO_TEXTS
from specstream.columns.events import Events
from specstream.columns.failed_events import Failed, failed_firing, failed_of
from specstream.columns.phases import first_column
from specstream.columns.python_values import note_raised, place_text
from specstream.compiler.oracle.oracle import Oracle
from specstream.compiler.oracle_objects.containers import key_of
from specstream.compiler.oracle_objects.timers import timer_key, timer_text
from specstream.declarations.state_layout import Field
from specstream.engine.parts import Parts
from specstream.errors import (
    CompileError,
    OperatorCrashError,
    Partial,
    SpecstreamError,
    is_of_signal_handler,
)

if TYPE_CHECKING:
    from specstream._native import ss_outcome

__all__ = [
    *("failed_event", "failed_timer", "failure_of", "timer_failure"),
    *("oracle_of_event", "oracle_of_timer"),
]

# What is kept of an event that its function has raised for, and what it raised.
Kept = tuple[tuple[Failed, ...], Exception]


def failure_of(
    parts: Parts, outcome: ss_outcome, events: Events, row: int, first: int, partial: Partial
) -> BaseException:
    """What made the event in ``row`` fail, as the runtime's outcome has it: to be raised.

    Made before anybody is told that the event has failed: a signal handler may raise meanwhile.

    Args:
        outcome: a ``struct ss_outcome`` of a job that has failed.
        row: of the batch, in order.
        first: sequence number of the batch's first row.
    """
    if outcome.fault.signal:
        return _crash(parts, outcome.fault, events, row, first, partial)
    if outcome.no_memory:
        return _no_memory(parts, events, row, first, partial)
    if parts.operator.is_interpreted:
        return _interpreted_failure(parts, outcome, events, row, first, partial)
    return _compiled_failure(parts, outcome, events, row, first, partial)


def _compiled_failure(
    parts: Parts, outcome: ss_outcome, events: Events, row: int, first: int, partial: Partial
) -> BaseException:
    """What the event in ``row`` raises, from the user's own line.

    Native code only says that it raised. The real exception comes from the oracle, over an
    overlay of the committed state.
    """
    operator, key = parts.operator, _key_of_event(parts, outcome)
    if parts.code.error(key) is not None:
        return _interpreted_failure(parts, outcome, events, row, first, partial)
    oracle = _oracle(parts, events, first, parts.code.sent(key))
    try:
        oracle.run(row)
    except Exception as error:
        if is_of_signal_handler(error):
            raise
        strings = parts.committed.strings
        note_raised(error, parts.name, operator.event, events, row, first, strings)
        error.specstream_partial = partial  # type: ignore[attr-defined]
        return error
    asking = [form for form in operator.program.forms if form.errors]
    if asking and not parts.options.is_ordered:  # on a state that holds half of it
        failure = SpecstreamError(
            f"operator {parts.name!r}: event {_key(events, row, first)} emits the text of an "
            f"exception that Python alone knows ({', '.join(one.where for one in asking)}), and "
            f"execution={parts.options.execution!r} cannot ask for it, as it keeps no undo log: "
            'the state may hold half of the event. Make a new engine, with execution="ordered"'
        )
    else:
        failure = SpecstreamError(
            f"operator {parts.name!r}: compiled code raised at event {_key(events, row, first)}, "
            "and Python does not; the event is not applied. Please report the operator and the "
            "event"
        )
    failure.specstream_partial = partial  # type: ignore[attr-defined]
    return failure


def _interpreted_failure(
    parts: Parts, outcome: ss_outcome, events: Events, row: int, first: int, partial: Partial
) -> BaseException:
    """What an interpreted operator has raised, or an interpreted vertex."""
    error = parts.code.error(_key_of_event(parts, outcome))
    if error is None:
        error = SpecstreamError(
            f"operator {parts.name!r}: event {_key(events, row, first)} failed, and nobody knows "
            "why; it is not applied. Please report the operator and the event"
        )
    elif isinstance(error, Exception):
        strings = parts.committed.strings
        note_raised(error, parts.name, parts.operator.event, events, row, first, strings)
    error.specstream_partial = partial  # type: ignore[attr-defined]
    return error


def _key_of_event(parts: Parts, outcome: ss_outcome) -> int | None:
    """By what it is known what an event has raised, see :meth:`InterpretedCode.error`."""
    return int(outcome.failed_row) if _is_early(parts) else None


def _key_of_firing(parts: Parts, firing: Any) -> int | None:
    """Likewise of a timer's."""
    return -1 - int(firing.number) if _is_early(parts) else None


def _is_early(parts: Parts) -> bool:
    """Whether the job that runs applies its events early."""
    return parts.options.early and parts.flight.is_open


def _interpreted_timer(parts: Parts, firing: Any) -> BaseException | None:
    """What an interpreted operator or vertex has raised when a timer fired, and which timer."""
    error = parts.code.error(_key_of_firing(parts, firing))
    if error is not None:
        field, key = _fired(parts, firing)
        note = (
            f"raised by operator {parts.name!r} when the timer {timer_text(key, field)} fired, "
            f"which was set for {firing.at}"
        )
        if note not in getattr(error, "__notes__", ()):  # asked once more
            error.add_note(note)
        vars(error)["specstream_timer"] = timer_key(key, field), firing.at
    return error


def timer_failure(parts: Parts, outcome: ss_outcome, partial: Partial) -> BaseException:
    """Likewise what made a timer fail that has fired."""
    failed = outcome.failed_timer
    field, key = _fired(parts, failed)
    timer = timer_text(key, field)
    what = f"when the timer {timer} fired, which was set for {failed.at}"
    error: BaseException
    if outcome.fault.signal:
        fault = outcome.fault
        error = OperatorCrashError(
            parts.name,
            f"({failed.time}, None, {failed.number}), the timer {timer} set for {failed.at}",
            fault.signal,
            stack_overflow=fault.stack_overflow,
            address=fault.address if fault.has_address else None,
            undone=parts.options.is_ordered,
        )
    elif outcome.no_memory:
        error = MemoryError(
            f"operator {parts.name!r}: no memory for what it stores and emits {what}. Give the "
            "process more memory, or let on_timer store and emit less"
        )
    elif parts.operator.is_interpreted or _interpreted_timer(parts, failed) is not None:
        error = _interpreted_timer(parts, failed) or SpecstreamError(
            f"operator {parts.name!r}: failed {what}, and nobody knows why; its effects are "
            "undone. Please report the operator and the timer"
        )
    else:
        try:
            sent = parts.code.sent(_key_of_firing(parts, failed))
            oracle = _oracle(parts, sent=sent)
            oracle.fire_alone(field, failed.at, key, failed.time, failed.number)
        except Exception as raised:
            if is_of_signal_handler(raised):
                raise
            raised.specstream_partial = partial  # type: ignore[attr-defined]
            return raised
        error = SpecstreamError(
            f"operator {parts.name!r}: compiled code raised {what}, and Python does not; its "
            "effects are undone. Please report the operator and the timer"
        )
    vars(error).update(
        specstream_partial=partial, specstream_timer=(timer_key(key, field), failed.at)
    )
    return error


def failed_event(
    parts: Parts, outcome: ss_outcome, events: Events, row: int, first: int
) -> Kept | None:
    """What is kept of the event in ``row``, which has failed, and what it raised.

    None: it did not fail because its function raises, and :func:`failure_of` says why.
    """
    if outcome.fault.signal or outcome.no_memory:
        return None
    by_key = _key_of_event(parts, outcome)
    raised = parts.code.error(by_key)
    if parts.operator.is_interpreted or raised is not None:
        error = _exception(raised)
    else:
        sent = parts.code.sent(by_key)
        error = _what_raises(parts, lambda: _oracle(parts, events, first, sent).run(row))
    if error is None:
        return None
    return failed_of(error, parts.operator.event, events, row, first), error


def failed_timer(
    parts: Parts, outcome: ss_outcome, times: pa.DataType, sources: pa.DataType
) -> Kept | None:
    """Likewise of a timer that has fired; ``times`` and ``sources`` are the types of the events'
    keys."""
    if outcome.fault.signal or outcome.no_memory:
        return None
    fired = outcome.failed_timer
    raised = _interpreted_timer(parts, fired)
    if parts.operator.is_interpreted or raised is not None:
        error = _exception(raised)
    else:
        field, key = _fired(parts, fired)
        oracle = _oracle(parts, sent=parts.code.sent(_key_of_firing(parts, fired)))
        error = _what_raises(
            parts, lambda: oracle.fire_alone(field, fired.at, key, fired.time, fired.number)
        )
    if error is None:
        return None
    return failed_firing(error, fired.time, fired.number, times, sources), error


def _exception(error: BaseException | None) -> Exception | None:
    """One that an event may fail by; KeyboardInterrupt and the like end the batch."""
    return error if isinstance(error, Exception) else None


def _what_raises(parts: Parts, run: Callable[[], None]) -> Exception | None:
    """What a function raises under Python; None: nothing, or that it cannot be compiled."""
    try:
        run()
    except CompileError:
        return None
    except Exception as error:
        if is_of_signal_handler(error):
            raise
        return error
    return None


def oracle_of_event(parts: Parts, events: Events, row: int, first: int, key: int) -> Oracle:
    """The oracle of the state that the head runs on, when it has run one event of these.

    Args:
        first: sequence number of the first of the events.
        key: the event's row in the job.
    """
    sent = parts.code.sent(key if _is_early(parts) else None)
    oracle = _oracle(parts, events, first, sent, is_head=True)
    oracle.run(row)
    return oracle


def oracle_of_timer(parts: Parts, firing: Any) -> Oracle:
    """Likewise what a timer runs that has fired, a ``struct ss_firing``."""
    field, key = _fired(parts, firing)
    sent = parts.code.sent(_key_of_firing(parts, firing))
    oracle = _oracle(parts, sent=sent, is_head=True)
    oracle.fire_alone(field, firing.at, key, firing.time, firing.number)
    return oracle


def _oracle(
    parts: Parts,
    events: Events | None = None,
    first: int = 0,
    sent: Any = None,
    *,
    is_head: bool = False,
) -> Oracle:
    """That of the committed state, which it leaves as it is, with the events of a batch, or with
    none.

    Args:
        sent: by interpreted vertices, which are not run again.
        is_head: of the state that the head runs on, which with early results is the applied one.
    """
    operator, native = parts.operator, parts.native
    state, layout, find_entry = parts.committed.words, operator.layout, native.find
    if is_head and (image := native.early_image(len(state))) is not None:
        state, find_entry = image, native.find_applied

    def find(field: Field, key: Any) -> Any:
        at = find_entry(layout.containers.index(field), key)
        assert field.container is not None
        return None if at is None else state[at + 1 : at + 1 + field.container.row_words]

    oracle = Oracle(operator.program, layout, state, over=find, sent=sent)
    columns: Sequence[Any]
    if events is not None:
        columns, texts = events.columns, events.texts
    else:
        own: list[Any] = [np.int64] * first_column(operator.event)
        texts = NO_TEXTS
        columns = [np.empty(0, dtype) for dtype in (*own, *operator.event.dtypes)]
    oracle.begin(
        operator.event,
        operator.emits,
        columns,
        first,
        parts.options.seed,
        strings=parts.committed.strings,
        texts=texts,
    )
    return oracle


def _fired(parts: Parts, firing: Any) -> tuple[Field, Any]:
    """The field of a timer, a ``struct ss_firing``, and its key."""
    field = parts.operator.layout.containers[firing.container]
    assert field.container is not None
    words = np.array([firing.key[at] for at in range(field.container.key.words)], np.uint64)
    return field, key_of(words.view(np.int64), field, parts.committed.strings)


def _crash(
    parts: Parts, fault: Any, events: Events, row: int, first: int, partial: Partial
) -> BaseException:
    """The error of a fault in compiled code; Python, which has no such, is not asked."""
    error = OperatorCrashError(
        parts.name,
        _key(events, row, first),
        fault.signal,
        stack_overflow=fault.stack_overflow,
        address=fault.address if fault.has_address else None,
        undone=parts.options.is_ordered,
    )
    error.add_note(place_text(parts.operator.event, events, row, parts.committed.strings))
    error.specstream_partial = partial
    return error


def _no_memory(
    parts: Parts, events: Events, row: int, first: int, partial: Partial
) -> BaseException:
    """The error of an event for whose stores or rows the runtime found no memory."""
    at = ""
    if parts.options.execution != "locked":  # where nobody knows which events were running
        at = f" at event (timestamp, source, sequence) = {_key(events, row, first)}"
    if parts.options.is_ordered:
        effect = "The event is not applied, and the engine goes on with the next call"
    else:
        effect = (
            "This execution keeps no undo log, so the state may hold half of the event: make a new "
            "engine"
        )
    error = MemoryError(
        f"operator {parts.name!r}: no memory for what it stores and emits{at}. {effect}. Give the "
        "process more memory, or let an event store and emit less"
    )
    error.add_note(place_text(parts.operator.event, events, row, parts.committed.strings))
    error.specstream_partial = partial  # type: ignore[attr-defined]
    return error


def _key(events: Events, row: int, first: int) -> str:
    return f"({time_at(events.keys[0], row)}, {events.keys[1][row]}, {first + row})"
