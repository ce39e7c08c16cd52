"""Values of interpreted operators: Python's own numbers and strings, and how they are stored.

What comes from the state or the event is an ``int``, ``float``, ``bool``, ``str`` or None. What is
stored or emitted may also be one of NumPy's numbers. What does not fit is an error at the store.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from specstream.columns.strings import StringTable
from specstream.declarations.element_types import Storage
from specstream.declarations.options import shown
from specstream.declarations.plain_values import plain
from specstream.declarations.schema import Column

__all__ = ["Texts", "emitted", "layout_of", "stored"]

_NAN = float("nan")
INT64 = -(2**63), 2**63 - 1

_CODES = {"int": "i", "uint": "u", "float": "d", "bool": "?", "str": "i"}


def layout_of(storage: Storage) -> tuple[int, int]:
    """The kind and the size of an element, as a backend's ``elements`` takes them."""
    if storage.name == "float32":
        return ord("f"), 4
    is_unsigned = storage.name.startswith("uint")
    return ord("u" if is_unsigned else _CODES[storage.number]), storage.size


def mismatch(what: str, declared: str, value: Any, conversion: str) -> TypeError:
    """What is raised for a value of another type.

    Args:
        conversion: what makes a value of the right type of most others.
    """
    hint = f"write {conversion}"
    if value is None:
        hint = "test it for None before"
        if what.startswith("emitted"):
            hint += f", or declare the column as ss.nullable({declared})"
    elif isinstance(value, list | tuple | dict | set) or getattr(value, "shape", ()) != ():
        hint = "give one element at a time, like x[0]"
    found = f"{shown(value)} ({type(value).__name__})"
    return TypeError(f"{what} is declared {declared} and gets {found}: {hint}")


def whole(value: Any, what: str, declared: str, low: int, high: int) -> int:
    if value.__class__ is not int:
        try:
            value = int(operator.index(plain(value)))
        except TypeError:
            raise mismatch(what, declared, value, "int(x)") from None
    if not low <= value <= high:
        raise OverflowError(
            f"{what} is declared {declared}, which holds {low} to {high}, and gets {value}: "
            "declare a wider type, or test the value before it is stored"
        )
    found: int = value
    return found


def real(value: Any, what: str, declared: str) -> float:
    if value.__class__ is not float:
        if not isinstance(value, float | int | np.floating | np.integer | np.bool_):
            raise mismatch(what, declared, value, "float(x)")
        try:
            value = float(plain(value))
        except OverflowError:
            raise OverflowError(
                f"{what} is declared {declared} and gets an int that no float holds: test the "
                "value before it is stored"
            ) from None
    return value if value == value else _NAN


def truth(value: Any, what: str, declared: str) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise mismatch(what, declared, value, "x != 0")


def text(value: Any, what: str, declared: str) -> str:
    if isinstance(value, str):
        found: str = plain(value)
        return found
    raise mismatch(what, declared, value, "str(x)")


@functools.cache
def stored(storage: Storage) -> Callable[[Any, str], Any]:
    """What checks a value for elements of a type: of (value, what it is stored to)."""
    name = storage.name
    if storage.bounds is not None:
        low, high = storage.bounds
        return lambda value, what: whole(value, what, name, low, high)
    if name == "float32":
        return lambda value, what: ctypes.c_float(real(value, what, name)).value
    check: Callable[[Any, str, str], Any] = {"float": real, "bool": truth, "str": text}[
        storage.number
    ]
    return lambda value, what: check(value, what, name)


def emitted(column: Column, name: str, strings: StringTable) -> Callable[[Any], Any]:
    """What makes a word of a value for an emitted column."""
    what, declared = f"emitted column {name!r}", str(column)
    if column.kind == "str":
        return lambda value: strings.add(text(value, what, declared))
    if column.kind == "float":
        return lambda value: real(value, what, declared)
    if column.kind == "bool":
        return lambda value: int(truth(value, what, declared))
    low, high = column.bounds or INT64
    return lambda value: whole(value, what, declared, low, high)


class Texts:
    """Elements that are strings; what lies there are their codes."""

    __slots__ = ("_codes", "_known", "_strings")

    def __init__(self, codes: Any, strings: StringTable) -> None:
        self._codes, self._strings = codes, strings
        self._known: dict[int, str] = {}

    def __getitem__(self, at: int) -> str:
        return self.text(self._codes[at])

    def __setitem__(self, at: int, text: str) -> None:
        self._codes[at] = self.code(text)

    def text(self, code: int) -> str:
        """The string of a code of the state."""
        if not code:
            return ""
        found = self._known.get(code)
        if found is None:
            # A run on values that never existed together may read any word.
            found = self._strings.text(code) or ""
            if len(self._known) >= 4096:
                self._known.clear()
            self._known[code] = found
        return found

    def code(self, text: str) -> int:
        """The code that the state holds for a string."""
        return self._strings.add(text) if text else 0
