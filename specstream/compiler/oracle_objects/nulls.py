"""Nulls of columns in the oracle: zeros that know what they are.

They are numbers and strings like all others, until somebody asks whether they are None.
"""

from __future__ import annotations

from typing import Any

from specstream.compiler.language.bool_operators import NullBool
from specstream.compiler.language.numbers import Int64, shown_as
from specstream.compiler.language.text import Text

__all__ = ["attribute_is_none", "is_none", "null_or_value"]


@shown_as("int")
class _NullInt(Int64):
    __slots__ = ()
    plain = Int64(0)

    def __pos__(self) -> Int64:
        return Int64(0)


@shown_as("float")
class _NullFloat(float):
    __slots__ = ()
    plain = 0.0


@shown_as("str")
class _NullText(Text):
    __slots__ = ()
    plain = Text(0)


_NULLS: dict[type, Any] = {
    bool: NullBool(0),
    Int64: int.__new__(_NullInt, 0),
    float: _NullFloat(0.0),
    Text: _NullText(0),
}


def is_none(value: Any) -> bool:
    """``value is None``."""
    return value is None or isinstance(value, _NullInt | _NullFloat | _NullText | NullBool)


def null_or_value(owner: Any, name: str) -> Any:
    """``event.name`` in the oracle, kept in a name: a null is a zero that knows what it is."""
    value = getattr(owner, name)
    if name in getattr(owner, "_nulls", ()) and owner.is_null(name):
        return _NULLS.get(type(value), value)
    return value


def attribute_is_none(owner: Any, name: str) -> bool:
    """``owner.name is None`` in the oracle, where a null of a column is a zero."""
    value = getattr(owner, name)
    return value is None or (name in getattr(owner, "_nulls", ()) and owner.is_null(name))
