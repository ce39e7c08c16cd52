"""Columns that the caller of an operator's factory names, looked at once, before it is made.

How an operator then reads them is in ``docs/guides/operators.md``, "Functions and globals".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import specstream as ss
from specstream.declarations.options import items, refused

__all__ = ["columns_of", "kept_as", "key_of"]

_KINDS: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


def columns_of(option: str, given: object) -> dict[str, Any]:
    """The columns, as ``{name: type}``.

    Raises:
        ConfigurationError: it is no such mapping, or has no column.
    """
    if not isinstance(given, Mapping) or not given:
        raise refused(option, given, 'the columns by their names, {"user": str, "price": float}')
    return dict(given)


def key_of(option: str, given: object, columns: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the columns that are the key; one may be given as it is.

    Raises:
        ConfigurationError: there is no such column, or it can be no part of a key.
    """
    expected = f"columns that may be a key, of {', '.join(columns)}"
    names = (given,) if isinstance(given, str) else items(option, given, expected)
    if not names or len(set(map(str, names))) < len(names):
        raise refused(option, given, expected)
    for name in names:
        if not isinstance(name, str) or name not in columns:
            raise refused(option, given, expected)
        if kept_as(columns[name]) is float or ss.nullable(columns[name]) == columns[name]:
            raise refused(option, given, f"{expected}: no float, and none that may be null")
    return tuple(names)


def kept_as(column: Any) -> type:
    """What an operator has of a column, and what a container keeps: of a time, an int.

    >>> kept_as(str), kept_as(ss.timestamp("us")), kept_as(ss.nullable(float))
    (<class 'str'>, <class 'int'>, <class 'float'>)
    """
    return _KINDS[ss.nullable(column).kind]
