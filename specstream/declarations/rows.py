"""Rows as values: what operators that are made from functions hand to these, in place of an event.

A row is a named tuple in plain Python, in the oracle and in compiled code alike. Users do not make
rows; they read columns of those that they get.
"""

from __future__ import annotations

import collections
import copyreg
from collections.abc import Mapping
from typing import Any

__all__ = ["is_row", "number_kinds_of", "row_class"]

_KINDS = "__ss_kinds__"


class _RowClass(type):
    """The type of rows' classes, so that :mod:`pickle` asks how they travel."""


_CLASSES: dict[tuple[tuple[str, str | None], ...], Any] = {}


def row_class(kinds: Mapping[str, str | None]) -> Any:
    """The class of rows with such columns.

    Args:
        kinds: of each column, what its numbers are: "int", "float", "bool"; None: it has none.

    >>> row_class({"price": "float"})(2.5)
    Row(price=2.5)
    """
    key = tuple(kinds.items())
    if key not in _CLASSES:
        named: Any = collections.namedtuple("Row", list(kinds), rename=True)  # type: ignore[misc]
        _CLASSES[key] = _RowClass("Row", (named,), {"__slots__": (), _KINDS: dict(kinds)})
    return _CLASSES[key]


copyreg.pickle(_RowClass, lambda row: (row_class, (number_kinds_of(row),)))


def is_row(value: object) -> bool:
    """Whether something is a class of rows."""
    return isinstance(value, _RowClass)


def number_kinds_of(row: Any) -> dict[str, str | None]:
    """Of each column of a class of rows, what its numbers are."""
    found: dict[str, str | None] = vars(row)[_KINDS]
    return found
