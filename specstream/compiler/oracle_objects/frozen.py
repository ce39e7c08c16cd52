"""Frozen containers in the oracle: its own lists, dicts, sets and arrays that cannot be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from specstream.compiler.language.frozen import (
    EnumMembers,
    Frozen,
    FrozenArray,
    FrozenDict,
    FrozenList,
    FrozenSet,
    Record,
    record_class,
    to_constants,
)
from specstream.compiler.language.methods import names_where
from specstream.compiler.language.numbers import shown_as
from specstream.compiler.language.text import refuse
from specstream.compiler.oracle_objects.elements import elements_of
from specstream.compiler.oracle_objects.local import Dict, List, Set
from specstream.compiler.oracle_objects.view import View, strides_of
from specstream.declarations.element_types import storage_of

__all__ = ["WAY_OUT", "in_oracle"]

WAY_OUT = "copy it first, like list(x) or dict(x), or keep what changes in the state"


def _refusing(what: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: object, **named: object) -> Any:
        refuse(f"a {what} of a module is frozen, and is changed", WAY_OUT)

    return method


@shown_as("list")
class _List(List):
    __slots__ = ()


@shown_as("dict")
class _Dict(Dict):
    __slots__ = ()


@shown_as("set")
class _Set(Set):
    __slots__ = ()


@shown_as("numpy.ndarray")
class _Array(View):
    __slots__ = ()

    def _view(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> View:
        return _Array(self._name, self._storage, self._words, self._journal, offset, shape, strides)


_CHANGING = (
    *names_where(lambda one: one.changes),
    *("__setitem__", "__delitem__", "__iadd__", "__imul__"),
    *("__ior__", "__iand__", "__isub__", "__ixor__", "_update"),
)
for _class, _what in ((_List, "list"), (_Set, "set"), (_Array, "array")):
    for _name in _CHANGING:
        if hasattr(_class, _name):
            setattr(_class, _name, _refusing(_what))
for _name in _CHANGING:
    if hasattr(_Dict, _name) and _name != "update":
        setattr(_Dict, _name, _refusing("dict"))


class _Enum:
    """An enum: called with a value, gone through, asked for a name."""

    def __init__(self, of: EnumMembers) -> None:
        self._name = of.name
        self._all = in_oracle(of.all)
        self._by_value = {to_constants(key): in_oracle(one) for key, one in of.by_value.items}

    def __call__(self, value: Any) -> Any:
        if value in self._by_value:
            return self._by_value[value]
        raise ValueError(f"{value!r} is not a valid {self._name}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, one: object) -> bool:
        return one in self._all


def in_oracle(value: Any) -> Any:
    """A frozen value as the oracle has it."""
    if type(value) in (int, float, str):
        return to_constants(value)
    if isinstance(value, Record):
        return record_class(value.name, value.names)(*map(in_oracle, value.values))
    if isinstance(value, FrozenSet):
        members = Dict([(in_oracle(one), None) for one in value])
        made = _Set.__new__(_Set)
        made.members = members
        return made
    if isinstance(value, FrozenList):
        return _List(map(in_oracle, value))
    if isinstance(value, FrozenDict):
        of = _Dict.__new__(_Dict)
        of.changes = 0
        of.entries = {in_oracle(key): in_oracle(one) for key, one in value.items}
        return of
    if isinstance(value, FrozenArray):
        return _array(value.array)
    if isinstance(value, EnumMembers):
        return _Enum(value)
    if isinstance(value, tuple) and not isinstance(value, Frozen):
        return tuple(map(in_oracle, value))
    return to_constants(value)


def _array(array: Any) -> View:
    kinds: dict[str, type] = {"f": float, "b": bool, "i": int, "u": int}
    storage = storage_of(np.uint64 if array.dtype == np.uint64 else kinds[array.dtype.kind], "")
    words = np.ascontiguousarray(array.astype(storage.dtype)).reshape(-1)
    return _Array("array", storage, elements_of(words), [], 0, array.shape, strides_of(array.shape))
