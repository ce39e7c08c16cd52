"""What all windows have in common: their options, their keys, and the rows that they emit."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specstream.declarations.chosen_columns import kept_as, key_of
from specstream.declarations.durations import PER_SECOND, nanoseconds
from specstream.declarations.options import flag, function, integer, one_of, refused
from specstream.declarations.record_types import columns_declared
from specstream.declarations.records import is_record, record_fields
from specstream.declarations.schema import Schema
from specstream.errors import ConfigurationError

__all__ = [
    "EARLY",
    "LATE",
    "LIMIT",
    "LONGEST",
    "ON_TIME",
    "Windowed",
    "declared",
    "takes",
    "ticks",
    "within",
]

EARLY, ON_TIME, LATE = "early", "on time", "late"
LIMIT = 2**24
LONGEST = 2**61
FARTHEST = 2**62
"""Of times, on either side of 0: where a window begins and ends is within 64 bits then."""
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
        limit: entries of a container.
    """

    event: Any
    emits: dict[str, Any]
    columns: tuple[str, ...]
    place: tuple[type, ...]
    values: Callable[[Any], tuple[Any, ...]]
    limit: int


def declared(
    what: str,
    record: Any,
    event: Any,
    key: str | Sequence[str],
    result: Callable[..., Any] | None,
    emits: Any,
    limit: int,
    collect: bool = False,
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
    bare = [one.name for one in found if not one.has_default]
    if bare:
        raise ConfigurationError(
            f"{what}: record={record.__name__}, whose field {bare[0]!r} has no default; expected "
            f"what it is in a window without events: {bare[0]}: {fields[bare[0]].__name__} = ..."
        )
    given = columns_declared(event, "event")
    Schema.of(given, "event")
    columns = key_of(f"{what}: key", key, given, ("int", "str"), least=0)
    limit = integer(f"{what}: limit", limit, 1, 2**31)
    if flag(f"{what}: collect", collect) and result is None:
        raise ConfigurationError(
            f"{what}: collect=True gives the rows of a window to result=, and there is none"
        )
    if (result is None) != (emits is None):
        raise ConfigurationError(
            f"{what}: result= and emits= go together: the columns that the function gives, in its "
            "order; without both, rows have the fields of the record"
        )
    own = fields if emits is None else dict(columns_declared(emits, "emits"))
    before = [*columns, *_OWN]
    twice = [name for at, name in enumerate(before) if name in before[:at]]
    if twice:
        raise ConfigurationError(
            f"{what}: rows have two columns {twice[0]!r}: beside those of the key a row has "
            "start, end and kind: give each column once, and call it otherwise"
        )
    for name in own:
        if name in before:
            raise ConfigurationError(
                f"{what}: rows have two columns {name!r}: beside {', '.join(map(repr, before))} "
                "those of the window: call it otherwise"
            )
    rows = {**{column: given[column] for column in columns}, **_OWN, **own}
    place = (*(kept_as(given[column]) for column in columns), int)
    names = tuple(fields)

    def all_fields(window: Any) -> tuple[Any, ...]:
        return tuple(getattr(window, name) for name in names)

    values = all_fields if result is None else function(f"{what}: result", result, "a function")
    return Windowed(event, rows, columns, place, values, limit)


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
    return integer(option, value, least, LONGEST)


def within(time: Any) -> None:
    """What an operator calls with the time of its event.

    Raises:
        OverflowError: it is too far from 0.
    """
    if time > FARTHEST or time < -FARTHEST:
        raise OverflowError("the time of an event of windows is within 2**62 of 0")


def takes(what: str, option: str, given: Any, *parameters: str) -> None:
    """Refuses what cannot be called with so many values.

    Raises:
        ConfigurationError: names the option.
    """
    function(f"{what}: {option}", given, f"a function ({', '.join(parameters)})")
    try:
        inspect.signature(given).bind(*parameters)
    except TypeError as error:
        raise ConfigurationError(
            f"{what}: {option} cannot be called as {option}({', '.join(parameters)}): {error}"
        ) from None
