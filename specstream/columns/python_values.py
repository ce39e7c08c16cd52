"""Events and emitted rows as plain Python values, for hooks, messages and single rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.conversion import time_at
from specstream.columns.events import Events, plain_value
from specstream.columns.forms import formed_texts
from specstream.columns.phases import note_phase
from specstream.columns.strings import StringTable
from specstream.declarations.schema import Schema

__all__ = [
    "event_text",
    "event_values",
    "note_raised",
    "phase_text",
    "place_text",
    "row_tuples",
]

# Of each source of a phase.
_SHOWN_EVENTS = 4


def event_values(schema: Schema, events: Events, row: int, strings: StringTable) -> dict[str, Any]:
    """An event's columns; None for a null."""
    nulls = dict(zip(schema.nullable, events.columns[2 + len(schema) :], strict=False))
    return {
        name: None
        if name in nulls and nulls[name][row]
        else events.texts[name][row]
        if name in events.texts
        else plain_value(values[row], column, strings)
        for (name, column), values in zip(schema, events.columns[2:], strict=False)
    }


def event_text(schema: Schema, events: Events, row: int, strings: StringTable) -> str:
    """The same, for a message."""
    values = event_values(schema, events, row, strings)
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def phase_text(schema: Schema, phases: Events, row: int, strings: StringTable) -> str:
    """The events of a phase, by source: of each the first few."""
    members = replace(phases, columns=(*phases.columns[:2], *phases.columns[phases.own :]))
    shown = []
    for number, name in enumerate(schema.phases):
        first, count = (int(phases.columns[2 + 2 * number + at][row]) for at in (0, 1))
        shown += [
            f"{name} {at}: {event_text(schema, members, first + at, strings)}"
            for at in range(min(count, _SHOWN_EVENTS))
        ]
        if count > _SHOWN_EVENTS:
            shown.append(f"... {count} of {name}")
    return "; ".join(shown)


def note_raised(
    error: BaseException,
    operator: str,
    schema: Schema,
    events: Events,
    row: int,
    first: int,
    strings: StringTable,
) -> None:
    """Says on an exception which event has raised it, or which phase.

    Args:
        error: what was raised.
        operator: or the pipeline.
        schema: of the events.
        events: among which it is.
        row: of the event or phase.
        first: sequence number of the first event.
        strings: their texts.
    """
    place = place_text(schema, events, row, strings)
    if events.starts is not None:
        note_phase(error, events, row)
        _add_note(error, f"raised by pipeline {operator!r} {place}")
        return
    key = f"({time_at(events.keys[0], row)}, {events.keys[1][row]}, {first + row})"
    _add_note(
        error,
        f"raised by operator {operator!r} at event (timestamp, source, sequence) = {key}, {place}",
    )


def _add_note(error: BaseException, note: str) -> None:
    """Unless somebody who was interrupted has added it already."""
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def place_text(schema: Schema, events: Events, row: int, strings: StringTable) -> str:
    """Which event it is, or which phase, with the first of its events by source."""
    if events.starts is None:
        return f"row {row} of the batch in order: {event_text(schema, events, row, strings)}"
    time, text = time_at(events.keys[0], row), phase_text(schema, events, row, strings)
    return f"in the phase of time {time}, of {events.events_in(row)} event(s): {text}"


def row_tuples(
    emits: Schema, rows: npt.NDArray[np.int64], strings: StringTable
) -> list[tuple[Any, ...]]:
    """Emitted rows, as the runtime has them: the event's row, the columns, the bits of nulls."""
    columns: list[list[Any]] = []
    for at, of in enumerate(emits.columns, start=1):
        words = rows[:, at].view(np.float64) if of.kind == "float" else rows[:, at]
        if of.is_plain and of.kind in ("int", "float"):
            columns.append(words.tolist())
        else:
            columns.append([plain_value(word, of, strings) for word in words])
    for number, (which, texts) in formed_texts(rows, emits, strings).items():
        for row, text in zip(np.flatnonzero(which), texts, strict=True):
            columns[number][row] = text
    for number, (word, bit) in emits.null_bits.items():
        for row in np.flatnonzero(rows[:, word] >> bit & 1):
            columns[number][row] = None
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)
