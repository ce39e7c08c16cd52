"""One column's values, as JSON or Python has them, as Arrow has them: exactly, or not at all.

What JSON has no type for is text: times are ISO 8601, in UTC where they say no zone; decimals may
be text or numbers. A whole number is a time as well, in the unit of its column. A fraction is no
int, and nothing is rounded.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.columns.conversion import from_arrow, target
from specstream.columns.misfits import alone
from specstream.declarations.options import shown
from specstream.declarations.plain_values import plain
from specstream.declarations.schema import Column

__all__ = ["Misfit", "column_of", "decimal_of", "expected", "float_of", "problem"]

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


def problem(value: Any, column: Column, wanted: str | None = None) -> str | None:
    """What is wrong with a value that a column cannot have, for a message; None: nothing.

    Args:
        value: as JSON or Python has it.
        column: where it is to go.
        wanted: what values of the column are, if not what :func:`expected` says.

    >>> import specstream as ss
    >>> from specstream.declarations.schema import Schema
    >>> (whole,) = Schema.of({"n": int}, "event").columns
    >>> problem("5", whole), problem(2**63, whole), problem(5, whole)
    ("is '5'; expected int", 'is 9223372036854775808, which does not fit int64', None)
    """
    wanted = expected(column) if wanted is None else wanted
    try:
        made = column_of([value], column)
    except Misfit:
        fits = f", which does not fit {target(column)}"
        wrong = fits if _is_large(value, column) else f"; expected {wanted}"
        return f"is {shown(value)}{wrong}"
    if made.null_count and not column.nullable:  # None, NaT, or a null of Arrow's
        return f"is null; expected {wanted}"
    return None


def float_of(number: str | decimal.Decimal) -> float | decimal.Decimal:
    """A number that is written as a float, or exactly as it is where that would be infinite.

    >>> float_of("0.5"), float_of("1e400")
    (0.5, Decimal('1E+400'))
    """
    found = float(number)
    if not math.isinf(found):
        return found
    exact = decimal_of(number) if isinstance(number, str) else number
    is_meant = isinstance(number, decimal.Decimal) and not number.is_finite()
    return found if is_meant else exact


def decimal_of(number: str) -> decimal.Decimal:
    """A number that is written as text, exactly; one with an exponent that no decimal has is about
    as large or as small.

    >>> decimal_of("1.10"), decimal_of("-1e99999999999999999999")
    (Decimal('1.10'), Decimal('-Infinity'))
    """
    try:
        return decimal.Decimal(number)
    except decimal.InvalidOperation:
        digits, _, exponent = number.lower().partition("e")
        mantissa = decimal.Decimal(digits)
        if not mantissa:
            return decimal.Decimal(0)
        far = "1e-999999999" if exponent.startswith("-") else "Infinity"
        return decimal.Decimal(far).copy_sign(mantissa)


def _is_large(value: object, column: Column) -> bool:
    """Whether a value is of the column's kind, and too large for it."""
    of = column.arrow
    if type(value) is int:
        return column.kind in ("int", "float") and not pa.types.is_date(of)
    if not isinstance(value, decimal.Decimal) or not value.is_finite():
        return False
    if column.kind == "float":
        return math.isinf(float(value))
    return pa.types.is_decimal(of) and bool(value.copy_abs() >= 2**63 // 10**of.scale)


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
