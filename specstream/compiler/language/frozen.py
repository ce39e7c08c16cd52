"""Lists, dicts, sets, arrays, enums and records of a module, as an operator has them: frozen.

They are copied when the operator is declared. In the oracle the copies are its own containers,
which refuse to be changed. Compiled code reads them where they lie in this process, under a name
that has the digest of what they hold: they take no room in the machine code, and compiling takes no
longer when they are large. The code on disk has the names only; whoever loads it makes the data
known under them first. Lists and tables have the form of those that events make for themselves, so
that all that reads these reads those.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import hashlib
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from specstream.columns.strings import string_code
from specstream.compiler.language import numbers
from specstream.compiler.language.numbers import Int64, Uint64
from specstream.compiler.language.text import Text
from specstream.declarations.plain_values import plain

__all__ = [
    "EnumMembers",
    "Frozen",
    "digest_of",
    "freeze",
    "is_container",
    "is_frozen",
    "is_holder",
    "strings_in",
    "to_constants",
]

_NUMBERS = (bool, int, float, str, np.bool_, np.integer, np.floating)


# Asked first, as large lists are made of them.
_PLAIN = frozenset({int, float, str, bool, type(None)})


class Frozen:
    """Marks what was copied when the operator was declared."""

    __slots__ = ()


class FrozenList(Frozen, tuple[Any, ...]):
    """A list, or a set with its elements in order (:class:`FrozenSet`)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}{tuple.__repr__(self)}"

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class FrozenSet(FrozenList):
    """A set; its order is that of its elements where they have one."""

    __slots__ = ()


class FrozenDict(Frozen):
    """A dict."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[tuple[Any, Any], ...]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"FrozenDict({self.items!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenDict) and self.items == other.items

    def __hash__(self) -> int:
        return hash(self.items)

    def __reduce__(self) -> Any:
        return FrozenDict, (self.items,)


class FrozenArray(Frozen):
    """An array of one axis or more."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __repr__(self) -> str:
        return f"FrozenArray({digest_of(self)})"

    def __reduce__(self) -> Any:
        return FrozenArray, (self.array,)


class Record(Frozen):
    """A frozen dataclass, a named tuple or the member of an enum: named values in order."""

    __slots__ = ("name", "names", "values")

    def __init__(self, name: str, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
        self.name, self.names, self.values = name, names, values

    def __repr__(self) -> str:
        return f"{self.name}({self.names}, {self.values})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __getattr__(self, name: str) -> Any:
        names = object.__getattribute__(self, "names")
        if name in names:
            return self.values[names.index(name)]
        raise AttributeError(name)

    def __reduce__(self) -> Any:
        return Record, (self.name, self.names, self.values)


class EnumMembers(Frozen):
    """An enum: its members by their names, and what each is made of."""

    __slots__ = ("members", "name", "values")

    def __init__(self, name: str, members: tuple[tuple[str, Any], ...], values: Any) -> None:
        self.name, self.members, self.values = name, members, values

    def __repr__(self) -> str:
        return f"{self.name}({self.members}, {self.values})"

    def __getattr__(self, name: str) -> Any:
        found = dict(object.__getattribute__(self, "members"))
        if name in found:
            return found[name]
        raise AttributeError(name)

    def __reduce__(self) -> Any:
        return EnumMembers, (self.name, self.members, self.values)

    @property
    def all(self) -> FrozenList:
        return FrozenList(member for _, member in self.members)

    @property
    def by_value(self) -> FrozenDict:
        members = dict(self.members)
        return FrozenDict(tuple((value, members[name]) for value, name in self.values))


def is_container(value: Any) -> bool:
    """Whether a module's value is frozen for an operator: a list, an enum, a record."""
    if isinstance(value, Frozen):
        return True
    if isinstance(value, type):
        return issubclass(value, enum.Enum)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return any(map(is_container, value))
    containers = (list, Mapping, set, frozenset, collections.deque, np.ndarray, enum.Enum)
    return isinstance(value, containers) or is_holder(value)


def is_holder(value: Any) -> bool:
    """Whether attributes of a value are read as frozen ones: of a class, enum or record."""
    if isinstance(value, types.ModuleType):
        return False
    if isinstance(value, type):
        return not issubclass(value, BaseException) and value.__module__ not in (
            *("builtins", "numpy", "datetime", "decimal"),
        )
    return isinstance(value, Record | EnumMembers) or _is_record(value) or _is_member(value)


def _is_record(value: Any) -> bool:
    if isinstance(value, type):
        return False
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        return True
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


def _is_member(value: Any) -> bool:
    return isinstance(value, enum.Enum)


def is_frozen(value: Any) -> bool:
    """Whether a value is kept frozen, after :func:`freeze`."""
    if isinstance(value, tuple) and not isinstance(value, Frozen):
        return any(map(is_frozen, value))
    return isinstance(value, Frozen)


def freeze(value: Any, refuse: Callable[[str, str], Any]) -> Any:
    """A copy of a container that nobody else has; other values as they are.

    Args:
        refuse: is called with a problem and a way out.
    """
    if type(value) in _PLAIN or isinstance(value, Frozen):
        return value
    if isinstance(value, enum.Enum):
        return _member(value, refuse)
    if isinstance(value, type) and issubclass(value, enum.Enum):
        names = tuple((name, _member(one, refuse)) for name, one in value.__members__.items())
        values = tuple((freeze(one.value, refuse), one.name) for one in value)
        return EnumMembers(value.__name__, names, values)
    if _is_record(value):
        fields = getattr(value, "_fields", None) or tuple(
            one.name for one in dataclasses.fields(value)
        )
        parts = tuple(freeze(getattr(value, name), refuse) for name in fields)
        return Record(type(value).__name__, tuple(fields), parts)
    if isinstance(value, tuple):
        return tuple(freeze(one, refuse) for one in value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf" or value.ndim == 0 or value.dtype == np.float16:
            refuse(
                f"an array of {value.dtype} cannot be read",
                "use one of ints, floats or bools, with one axis or more",
            )
        return FrozenArray(np.ascontiguousarray(value).copy())
    if isinstance(value, set | frozenset):
        members = [freeze(one, refuse) for one in value]
        try:
            members = sorted(members)
        except TypeError:
            members = sorted(members, key=repr)
        return FrozenSet(members)
    if isinstance(value, list | collections.deque):
        return FrozenList(freeze(one, refuse) for one in value)
    if isinstance(value, Mapping):
        return FrozenDict(
            tuple((freeze(key, refuse), freeze(one, refuse)) for key, one in value.items())
        )
    if value is None or isinstance(value, _NUMBERS):
        return own_scalar(value)
    return refuse(
        f"it holds {type(value).__name__}, which cannot be compiled",
        "let it hold numbers, strings, tuples, lists, dicts, sets, enums, frozen dataclasses and "
        "named tuples of these",
    )


def own_scalar(value: Any) -> Any:
    """A number or text without a class of the user's; NumPy's stay as wide as they are."""
    if type(value) is tuple:
        return tuple(map(own_scalar, value))
    if isinstance(value, Int64 | Uint64 | np.bool_ | np.integer | np.floating):
        return value
    return plain(value)


def _member(value: enum.Enum, refuse: Callable[[str, str], Any]) -> Any:
    if isinstance(value, int | str):
        return plain(value)
    parts = (freeze(value.value, refuse), value.name)
    return Record(type(value).__name__, ("value", "name"), parts)


def strings_in(value: Any) -> list[str]:
    """The strings that a frozen value holds."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple):
        kinds = set(map(type, value))
        if kinds <= {int, float, bool}:
            return []
        return list(value) if kinds == {str} else [t for one in value for t in strings_in(one)]
    if isinstance(value, FrozenDict):
        return strings_in(value.items)
    if isinstance(value, Record):
        return strings_in(value.values)
    if isinstance(value, EnumMembers):
        return strings_in(value.all) + strings_in(tuple(one for one, _ in value.values))
    return []


def digest_of(value: Any) -> str:
    """What a frozen value holds, as a digest: a part of the compiled code's key."""
    digest = hashlib.sha256()
    if isinstance(value, FrozenArray):
        digest.update(repr((value.array.dtype.str, value.array.shape)).encode())
        digest.update(value.array.data if value.array.size else b"")
    else:
        digest.update(repr((type(value).__name__, value)).encode())
    return digest.hexdigest()[:24]


_CLASSES: dict[tuple[str, tuple[str, ...]], Any] = {}


def record_class(name: str, names: tuple[str, ...]) -> Any:
    """The named tuple that stands for a module's frozen record, in oracle and native code."""
    key = (name, names)
    if key not in _CLASSES:
        _CLASSES[key] = collections.namedtuple(name, names, rename=True)
    return _CLASSES[key]


def to_constants(value: Any) -> Any:
    """Frozen values: scalars, tuples and records as constants, while containers stay frozen.

    They are as the oracle has them, for native code as well.
    """
    kind = type(value)
    if kind is int or kind is float:
        return numbers.to_oracle(value)
    if isinstance(value, Record):
        return record_class(value.name, value.names)(*map(to_constants, value.values))
    if isinstance(value, Frozen):
        return value
    if isinstance(value, tuple):
        return tuple(map(to_constants, value))
    if isinstance(value, str):
        return Text(string_code(value), value)
    return numbers.to_oracle(value)
