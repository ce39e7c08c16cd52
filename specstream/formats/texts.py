"""Values that are written as text: the number, bool or time that a text is, if it is one.

The forms are those of XML Schema (W3C 2004, part 2), which everything that writes XML knows: digits
of ASCII, a point and no other mark, ``true``, ``1``, ``NaN``, ``INF``; and Python's ``nan`` and
``inf``. Python's own ``int`` and ``float`` take more, such as ``1_000`` and the digits of every
script, of which nobody may have thought as numbers.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from specstream.columns.message_values import expected, float_of
from specstream.declarations.schema import Column

__all__ = ["Unread", "value_of", "wanted"]

_SPACE = " \t\r\n"
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_BOOLS = {"true": True, "false": False, "1": True, "0": False}


class Unread:
    """A text that is no value of its column: a value that no column takes, shown as the text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return repr(self.text)


def value_of(text: str, of: Column) -> Any:
    """The value that a text is, as JSON has those of a column; or something that no column takes.

    >>> from specstream.declarations.schema import declared_column
    >>> whole, real = (declared_column(one, "column 'x'") for one in (int, float))
    >>> value_of(" 007 ", whole), value_of("1e3", real), value_of("1_000", real)
    (7, 1000.0, '1_000')
    """
    if of.kind == "str":
        return text
    trimmed = text.strip(_SPACE)
    if of.kind == "bool":
        found: Any = _BOOLS.get(trimmed)
    elif pa.types.is_timestamp(of.arrow) or pa.types.is_date(of.arrow):
        # Digits alone are a number, or a day without hyphens: who knows?
        found = None if trimmed.isdigit() else trimmed
    elif pa.types.is_decimal(of.arrow):
        found = trimmed if _NUMBER.fullmatch(trimmed) else None
    elif _WHOLE.fullmatch(trimmed):
        found = int(trimmed)
    elif of.kind == "float" and _NUMBER.fullmatch(trimmed):
        found = float_of(trimmed)
    else:
        is_special = of.kind == "float" and _NO_NUMBER.fullmatch(trimmed)
        found = float(trimmed) if is_special else None
    return Unread(text) if found is None else found


def wanted(of: Column) -> str:
    """What texts are values of a column, for a message.

    >>> import datetime
    >>> from specstream.declarations.schema import declared_column
    >>> wanted(declared_column(datetime.datetime, "column 'at'"))
    'a time in ISO 8601 to the us'
    """
    if pa.types.is_timestamp(of.arrow):
        return f"a time in ISO 8601 to the {of.arrow.unit}"
    if of.kind == "bool":
        return "true, false, 1 or 0"
    return expected(of)
