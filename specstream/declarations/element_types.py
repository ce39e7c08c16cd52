"""How the elements of a field lie in its words.

A field starts on a word of 64 bits and ends with one; in between its elements are packed densely,
1, 2, 4 or 8 bytes each, in the order of a little-endian processor (others are not supported). A
word belongs to one field, so all elements in it have one size. Inside an operator there are no
narrow numbers: reads widen to int64, float64 or bool (uint64 stays what it is), and a store of an
integer that does not fit is an error, never a wrapped value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from specstream.declarations.options import shown
from specstream.errors import DeclarationError

__all__ = ["Number", "Storage", "found_storage", "storage_of", "type_named", "type_shown"]

Number = Literal["int", "uint", "float", "bool", "str"]


@dataclass(frozen=True)
class Storage:
    """An element type.

    Attributes:
        name: "int", "float", "bool" and "str" for the Python types, whose elements take a whole
            word (a string's is its code), else NumPy's name ("int8", "uint64", "float32"), and
            "bool8" for ``np.bool_``.
        number: what a read gives: "int" (int64), "uint" (uint64), "float" (float64),
            "bool" or "str".
        dtype: of the elements in memory.
    """

    name: str
    number: Number
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def is_narrow(self) -> bool:
        """Whether several elements share a word."""
        return self.size < 8

    @cached_property
    def bounds(self) -> tuple[int, int] | None:
        """Least and greatest value of an integer type; None for the others."""
        if self.number not in ("int", "uint"):
            return None
        limits = np.iinfo(self.dtype)
        return int(limits.min), int(limits.max)


_INT = Storage("int", "int", np.dtype(np.int64))
_FLOAT = Storage("float", "float", np.dtype(np.float64))
_BOOL = Storage("bool", "bool", np.dtype(np.int64))
_STR = Storage("str", "str", np.dtype(np.int64))
_NARROW = (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32)

_STORAGES: dict[object, Storage] = {
    int: _INT,
    float: _FLOAT,
    bool: _BOOL,
    str: _STR,
    np.int64: _INT,
    np.float64: _FLOAT,
    **{narrow: Storage(narrow.__name__, "int", np.dtype(narrow)) for narrow in _NARROW},
    np.uint64: Storage("uint64", "uint", np.dtype(np.uint64)),
    np.float32: Storage("float32", "float", np.dtype(np.float32)),
    np.bool_: Storage("bool8", "bool", np.dtype(np.bool_)),
}


def storage_of(declared: object, what: str) -> Storage:
    """The element type that a declared Python or NumPy type stands for.

    Raises:
        DeclarationError: it stands for none.

    >>> storage_of(np.uint8, "field 'a'").bounds
    (0, 255)
    """
    storage = found_storage(declared)
    if storage is None:
        numpy = ", ".join(
            f"np.{of.__name__}"
            for of in _STORAGES
            if isinstance(of, type) and issubclass(of, np.generic)
        )
        raise DeclarationError(
            f"{what} has type {type_shown(declared)}; expected one of int, float, bool, str, or of "
            f"{numpy}"
        )
    return storage


def found_storage(declared: object) -> Storage | None:
    """The element type that a type stands for; None: there is none."""
    return _STORAGES.get(declared) if isinstance(declared, type) else None


def type_shown(declared: object) -> str:
    """What was declared as a type, for messages."""
    return declared.__name__ if isinstance(declared, type) else shown(declared)


def type_named(name: str) -> type:
    """The type to declare for an element type of that name.

    Raises:
        DeclarationError: there is no such element type.

    >>> type_named("uint8"), type_named("int"), type_named("bool8")
    (<class 'numpy.uint8'>, <class 'int'>, <class 'numpy.bool'>)
    """
    for declared, storage in _STORAGES.items():
        if isinstance(declared, type) and storage.name == name:
            return declared
    names = ", ".join(dict.fromkeys(storage.name for storage in _STORAGES.values()))
    raise DeclarationError(f"there is no element type {name!r}; expected one of {names}")
