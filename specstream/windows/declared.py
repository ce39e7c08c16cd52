"""What all windows have in common: their options, their keys, and the rows that they emit."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specstream.declarations.durations import PER_SECOND, nanoseconds
from specstream.declarations.options import function, integer, one_of, refused
from specstream.declarations.record_types import columns_declared
from specstream.declarations.records import is_record, record_fields
from specstream.declarations.schema import Schema
from specstream.errors import ConfigurationError

__all__ = ["EARLY", "LATE", "LIMIT", "ON_TIME", "Windowed", "declared", "ticks"]

EARLY, ON_TIME, LATE = "early", "on time", "late"
LIMIT = 2**24
_OWN: dict[str, Any] = {"start": int, "end": int, "kind": str}


@dataclass(frozen=True)
class Windowed:
    """The options of windows that all kinds have, checked.

    Attributes:
        event: columns of the events.
        emits: columns of the rows.
        columns: those of the events that are the key.
        place: type of what is kept by key and number.
        values: of a window, the columns that are its own.
    """

    event: Any
    emits: dict[str, Any]
    columns: tuple[str, ...]
    place: tuple[type, ...]
    values: Callable[[Any], tuple[Any, ...]]


def declared(
    what: str,
    record: Any,
    event: Any,
    key: str | Sequence[str],
    result: Callable[..., Any] | None,
    emits: Any,
) -> Windowed:
    """Checks what all windows are declared with.

    Raises:
        ConfigurationError: an option is not what it must be.
        DeclarationError: ``event`` or ``emits`` are no columns.
    """
    if not is_record(record):
        raise refused(f"{what}: record", record, "a class of records, class Volume(ss.Record)")
    found = record_fields(record)
    types = {"int": int, "float": float, "bool": bool, "str": str}
    fields = {one.name: types[one.storage.number] for one in found}
    columns = (key,) if isinstance(key, str) else tuple(key)
    schema = Schema.of(event, "event")
    kinds: dict[str, type] = {"int": int, "str": str}
    for column in columns:
        if column not in schema.names:
            raise refused(
                f"{what}: key", column, f"a column of the events: {', '.join(schema.names)}"
            )
        kind = schema.kind(column)
        if kind not in kinds or column in schema.nullable:
            raise ConfigurationError(
                f"{what}: key={column!r} is a column of {kind}s"
                f"{' with nulls' if column in schema.nullable else ''}; expected ints or strings "
                "that are no nulls"
            )
    if (result is None) != (emits is None):
        raise ConfigurationError(
            f"{what}: result= and emits= go together: the columns that the function gives, in its "
            "order; without both, rows have the fields of the record"
        )
    own = fields if emits is None else dict(columns_declared(emits, "emits"))
    before = [*columns, *_OWN]
    for name in own:
        if name in before:
            raise ConfigurationError(
                f"{what}: rows have two columns {name!r}: beside {', '.join(map(repr, before))} "
                "those of the window: call it otherwise"
            )
    given = columns_declared(event, "event")
    rows = {**{column: given[column] for column in columns}, **_OWN, **own}
    place = (*(kinds[schema.kind(column) or ""] for column in columns), int)
    names = tuple(fields)

    def all_fields(window: Any) -> tuple[Any, ...]:
        return tuple(getattr(window, name) for name in names)

    values = all_fields if result is None else function(f"{what}: result", result, "a function")
    return Windowed(event, rows, columns, place, values)


def ticks(option: str, value: int | str | datetime.timedelta, unit: str, least: int = 1) -> int:
    """A length of time in the unit of the order column; an int is in it already.

    >>> ticks("by_time: length", "1 minute", "ms")
    60000
    """
    one_of(f"{option.partition(':')[0]}: unit", unit, tuple(PER_SECOND))
    if isinstance(value, str | datetime.timedelta):
        length, of = nanoseconds(option, value), 10**9 // PER_SECOND[unit]
        if length % of:
            raise ConfigurationError(f"{option}={value!r} is no whole number of {unit}")
        value = length // of
    return integer(option, value, least, 2**62)
