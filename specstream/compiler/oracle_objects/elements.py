"""Elements as the oracle has them: what may be stored as which type, and what comes back."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from specstream.columns.strings import StringTable
from specstream.compiler.language.bool_operators import NullBool
from specstream.compiler.language.numbers import Int64, Uint64
from specstream.compiler.language.text import Text, refuse
from specstream.declarations.codes import EMPTY
from specstream.declarations.element_types import Storage
from specstream.declarations.schema import Column

__all__ = [
    "LOAD",
    "STORE",
    "OverlaidWords",
    "TextWords",
    "elements_of",
    "emitted",
    "load_int",
    "mismatch",
    "store_of",
]

NAN = float("nan")
_EMPTY = Text(EMPTY, "")


def elements_of(array: Any) -> memoryview:
    """Elements of a memoryview are Python's own, and come several times faster than NumPy's."""
    return memoryview(array)


class TextWords:
    """The elements of fields of strings: as strings they come and go, and codes are what is there.

    Attributes:
        texts: what the codes stand for.
    """

    def __init__(self, words: Any) -> None:
        self._words = words
        self.texts: StringTable | None = None

    def __getitem__(self, at: int) -> Text:
        code = self._words[at]
        return Text(code, self.texts) if code else _EMPTY

    def __setitem__(self, at: int, text: Text) -> None:
        self._words[at] = 0 if text.code == EMPTY else text.code


class OverlaidWords:
    """Elements that can be read and written without changing those below: what the failing event is
    rerun on, over committed state, without a copy. Each element type has an overlay of its own: no
    word is of two types."""

    def __init__(self, words: Any) -> None:
        self._words = words
        self._changed: dict[int, Any] = {}

    def __getitem__(self, at: int) -> Any:
        return self._changed[at] if at in self._changed else self._words[at]

    def __setitem__(self, at: int, value: Any) -> None:
        self._changed[at] = value


def _store_int(value: Any, what: str, declared: str = "int") -> int:
    if isinstance(value, Text) and declared == "int":
        return value.code
    if isinstance(value, Int64 | bool) or type(value) is int:
        return int(value)
    raise TypeError(mismatch(what, declared, value))


def _store_float(value: Any, what: str, declared: str = "float") -> float:
    if isinstance(value, float | Int64 | bool) or type(value) is int:
        return NAN if value != value else float(value)
    raise TypeError(mismatch(what, declared, value))


def _store_str(value: Any, what: str) -> Text:
    if not isinstance(value, Text):
        refuse(
            f"{what} is declared str and gets {value!r} ({type(value).__name__})",
            'write "" for no string' if value is None else "keep it in a field of numbers",
        )
    return value if value.code else _EMPTY  # of a null


def _store_bool(value: Any, what: str) -> int:
    if isinstance(value, bool | NullBool):
        return int(value)
    raise TypeError(mismatch(what, "bool", value))


def _store_uint64(value: Any, what: str) -> int:
    if isinstance(value, Uint64):
        return int(value)
    raise TypeError(mismatch(what, "uint64", value))


def _store_float32(value: Any, what: str) -> float:
    """Rounded here and not by the memory, because an overlay has to give it back rounded."""
    return ctypes.c_float(_store_float(value, what, "float32")).value


def _store_narrow(storage: Storage, value: Any, what: str) -> int:
    exact = _store_int(value, what, storage.name)
    assert storage.bounds is not None
    low, high = storage.bounds
    if low <= exact <= high:
        return exact
    raise OverflowError(
        f"{what} is declared {storage.name}, which holds {low} to {high}, and gets {exact}: "
        "declare a wider type, or test the value before it is stored"
    )


def mismatch(what: str, declared: str, value: Any) -> str:
    if isinstance(value, Text):
        refuse(
            f"{what} is declared {declared} and gets a string",
            "keep it in a field, or emit it into a column that is declared str",
        )
    return f"{what} is declared {declared} and gets {value!r} ({type(value).__name__})"


load_int: Callable[[int], Int64] = functools.partial(int.__new__, Int64)


LOAD: dict[str, Callable[[Any], Any]] = {
    "int": load_int,
    "uint": functools.partial(int.__new__, Uint64),
    "float": float,
    "bool": bool,
    "str": lambda text: text,
}
STORE: dict[str, Callable[[Any, str], Any]] = {
    "int": _store_int,
    "uint64": _store_uint64,
    "float": _store_float,
    "float32": _store_float32,
    "bool": _store_bool,
    "bool8": _store_bool,
    "str": _store_str,
}


def store_of(storage: Storage) -> Callable[[Any, str], Any]:
    """What checks a value and makes it what the elements hold."""
    return STORE.get(storage.name) or functools.partial(_store_narrow, storage)


def emitted(value: Any, column: Column, name: str, strings: StringTable | None) -> Any:
    what = f"emitted column {name!r}"
    may_be_code = column.kind != "str" or not isinstance(value, Int64) or value == 0
    if not may_be_code and strings is not None and strings.text(int(value)) is None:
        raise TypeError(f"{mismatch(what, str(column), int(value))}: write str(x)")
    if isinstance(value, Text) and column.kind != "str":
        raise TypeError(mismatch(what, str(column), value))
    # A code that was kept in an int field is a string again.
    stored = (_store_int if column.kind == "str" else STORE[column.kind])(value, what)
    if column.bounds is not None and not column.bounds[0] <= stored <= column.bounds[1]:
        raise OverflowError(
            f"{what} is declared {column}, which holds {column.bounds[0]} to {column.bounds[1]}, "
            f"and gets {stored}: test the value before it is emitted"
        )
    return stored
