"""One column's values, as JSON or Python has them, as Arrow has them: exactly, or not at all.

What JSON has no type for is text: times are ISO 8601, in UTC where they say no zone; decimals may
be text or numbers. A whole number is a time as well, in the unit of its column. A fraction is no
int, and nothing is rounded.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.columns.conversion import from_arrow
from specstream.columns.misfits import alone
from specstream.declarations.options import shown
from specstream.declarations.plain_values import plain
from specstream.declarations.schema import Column

__all__ = ["Misfit", "column_of", "expected"]

_DIGITS = 38
_ZONE = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$")
_FRACTION = re.compile(r"\.(\d+)")
_DECIMALS = {"s": 0, "ms": 3, "us": 6, "ns": 9}  # of a second, in each unit
_OWN = {bool, int, float, str, decimal.Decimal, datetime.datetime, datetime.date}
_PLAIN: dict[str, set[type]] = {"int": {int}, "float": {float, int}, "bool": {bool}, "str": {str}}


class Misfit(ValueError):
    """A value that a column cannot have; its text says which."""


def expected(column: Column) -> str:
    """What the values of a column are, for a message.

    >>> import specstream as ss
    >>> from specstream.declarations.schema import Schema
    >>> schema = Schema.of({"at": ss.timestamp("ms"), "paid": ss.decimal(2)}, "event")
    >>> print(*map(expected, schema.columns), sep="; ")
    a time in ISO 8601 to the ms, or a whole number of ms; a decimal with 2 digits after its point
    """
    of = column.arrow
    if pa.types.is_timestamp(of):
        return f"a time in ISO 8601 to the {of.unit}, or a whole number of {of.unit}"
    if pa.types.is_date(of):
        return "a date in ISO 8601"
    if pa.types.is_decimal(of):
        return f"a decimal with {of.scale} digits after its point"
    return column.kind


def column_of(values: Sequence[Any], column: Column) -> pa.Array:
    """The values of a column; None is a null, whether that may be or not.

    Raises:
        Misfit: one of them does not fit.
    """
    kinds = set(map(type, values)) - {type(None)}
    of = column.arrow
    try:
        if not kinds <= _OWN:
            values = list(map(_own, values))
            kinds = set(map(type, values)) - {type(None)}
        if pa.types.is_timestamp(of):
            return _times(values, kinds, of)
        if pa.types.is_date(of):
            return _dates(values, kinds, of)
        if pa.types.is_decimal(of):
            found = [None if one is None else _decimal(one, of.scale) for one in values]
            made = pa.array(found, pa.decimal128(_DIGITS, of.scale))
            _, wrong = from_arrow(made, column)
            if wrong is not None and wrong.any():
                raise Misfit(f"it is {shown(values[int(wrong.argmax())])}")
            return made
        if not kinds <= _PLAIN[column.kind]:
            values = [_plain(one, column) for one in values]
        return pa.array(values, of)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise Misfit(str(error)) from None


def _own(value: Any) -> Any:
    """A value of NumPy's, Arrow's or pandas' as Python has it."""
    value = plain(value)
    if isinstance(value, np.datetime64) or hasattr(value, "to_datetime64"):
        found = alone(value)
        return None if found.null_count else found[0].as_py()
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _plain(value: Any, column: Column) -> Any:
    """Anything that is not of the kind does not fit."""
    if value is None:
        return None
    if type(value) not in _PLAIN[column.kind]:
        raise Misfit(f"it is {shown(value)}")
    return value


def _times(values: Sequence[Any], kinds: set[type], of: pa.DataType) -> pa.Array:
    """Times with a zone are instants; a column without one has them in UTC."""
    instants = pa.timestamp(of.unit, "UTC")
    if kinds <= {int}:
        return pa.array(values, pa.int64()).cast(instants).cast(of)
    if kinds <= {str}:
        decimals = _DECIMALS[of.unit]
        texts = [None if one is None else _time_text(one, decimals) for one in values]
        return pa.array(texts, pa.string()).cast(instants).cast(of)
    if all(issubclass(kind, datetime.datetime) for kind in kinds):
        aware = [
            one if one is None or one.tzinfo is not None else one.replace(tzinfo=datetime.UTC)
            for one in values
        ]
        # Those of pandas have nanoseconds.
        unit = "ns" if any(getattr(one, "nanosecond", 0) for one in aware) else "us"
        return pa.array(aware, pa.timestamp(unit, "UTC")).cast(instants).cast(of)
    none = {type(None)}
    parts = [_times([one], {type(one)} - none, of) if _is_time(one) else None for one in values]
    if None in parts:
        raise Misfit(f"it is {shown(values[parts.index(None)])}")
    return pa.concat_arrays(parts)


def _is_time(value: Any) -> bool:
    return value is None or type(value) in (int, str) or isinstance(value, datetime.datetime)


def _time_text(text: str, decimals: int) -> str:
    """The text as Arrow reads it: with a zone, and without zeros beyond the column's unit."""
    day, sign, time = text.upper().replace(" ", "T", 1).partition("T")
    if not sign:
        return f"{day}T00:00:00Z"
    fraction = _FRACTION.search(time)
    if fraction is not None and not fraction[1][decimals:].strip("0"):
        kept = fraction[1][:decimals]
        time = time.replace(fraction[0], f".{kept}" if kept else "")
    return f"{day}T{time}" if _ZONE.search(time) else f"{day}T{time}Z"


def _dates(values: Sequence[Any], kinds: set[type], of: pa.DataType) -> pa.Array:
    if kinds <= {str}:
        return pa.array(values, pa.string()).cast(of)
    if all(map(_is_date, values)):
        return pa.array(values, of)
    for one in values:
        if not isinstance(one, str) and not _is_date(one):
            raise Misfit(f"it is {shown(one)}")
    return pa.concat_arrays([_dates([one], {type(one)}, of) for one in values])


def _is_date(value: Any) -> bool:
    is_time = isinstance(value, datetime.datetime)
    return value is None or (isinstance(value, datetime.date) and not is_time)


def _decimal(value: Any, scale: int) -> decimal.Decimal:
    """A number as it is, with no digits but zeros cut off: Arrow rounds where there are too many,
    and crashes where an exponent has a billion zeros.

    >>> _decimal("1.5000", 2), _decimal("0e-999999999", 2)
    (Decimal('1.50'), Decimal('0'))
    """
    if type(value) in (int, str, decimal.Decimal):
        try:
            found = decimal.Decimal(value)
        except decimal.InvalidOperation:
            found = decimal.Decimal("nan")
        if not found:
            return decimal.Decimal(0)
        if found.is_finite() and -scale <= found.adjusted() < _DIGITS:
            sign, digits, exponent = found.as_tuple()
            beyond = max(-scale - int(exponent), 0)
            if not any(digits[len(digits) - beyond :]):
                kept = digits[: len(digits) - beyond]
                return decimal.Decimal((sign, kept, int(exponent) + beyond))
    raise Misfit(f"it is {shown(value)}")
