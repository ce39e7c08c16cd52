"""Kinds of values where int literals may become floats: of numbers, and of what holds some.

"int", "uint", "float", "bool", "str", :data:`LITERAL`, :data:`EITHER` and :data:`WIDE`; of a list,
array, dict or tuple, what it holds; None is what is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specstream.compiler.language.frozen import FrozenArray, FrozenDict, FrozenList
from specstream.declarations.containers import Container, Shape

__all__ = [
    "EITHER",
    "LITERAL",
    "WIDE",
    "Columns",
    "Fields",
    "Items",
    "Parts",
    "clash",
    "computed",
    "held_by",
    "holds_either",
    "is_either",
    "is_float",
    "joined",
    "kind_of",
    "raised",
]

LITERAL = "literal"
"""An int that a float has all digits of: a literal, or a count."""
EITHER = "either"
"""A float in compiled code and the oracle, and in Python perhaps the int of a literal."""
WIDE = "wide"
"""The same, where an int that is no literal met it: Python may have digits that a float has not."""
_WIDE = ("int", "uint", WIDE)
_INTS = ("int", "uint", LITERAL)


@dataclass(frozen=True)
class Items:
    """What a list, an array, or the values of a dict are.

    Attributes:
        is_declared: what is put in becomes what was declared, in Python as well.
    """

    of: Any
    keys: Any = None
    is_declared: bool = False


@dataclass(frozen=True)
class Parts:
    """What the parts of a tuple are."""

    of: tuple[Any, ...]


@dataclass(frozen=True)
class Fields:
    """A record: the kinds of its fields by their names."""

    of: Shape

    def kind(self, name: str) -> Any:
        parts = dict(zip(self.of.names, self.of.parts, strict=True))
        return parts[name].number if name in parts else None


@dataclass(frozen=True, eq=False)
class Columns:
    """A row: the kinds of its columns by their names."""

    of: Mapping[str, Any]

    def kind(self, name: str) -> Any:
        return self.of.get(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.of == other.of

    def __hash__(self) -> int:
        return hash(tuple(self.of.items()))


def is_either(kind: Any) -> bool:
    """Whether it is a float where it is compiled, and perhaps an int in Python."""
    return kind in (EITHER, WIDE)


def is_float(kind: Any) -> bool:
    """Whether it is a float where it is compiled."""
    return kind == "float" or is_either(kind)


def computed(op: ast.operator, one: Any, other: Any) -> Any:
    """The kind of what an operator makes of two numbers."""
    if isinstance(op, ast.Div) or "float" in (one, other):
        return "float"
    if is_either(one) or is_either(other):
        return WIDE if one in _WIDE or other in _WIDE else EITHER
    if one == other == LITERAL and isinstance(op, ast.Add | ast.Sub):
        return LITERAL
    return "int" if one is not None and other is not None else None


def joined(one: Any, other: Any) -> Any:
    """The kind of what is one here and the other there."""
    if one is None or other is None or one == other:
        return other if one is None else one
    if is_float(one) or is_float(other):
        if one in _WIDE or other in _WIDE:
            return WIDE
        is_int = any(kind in (LITERAL, EITHER) for kind in (one, other))
        return EITHER if is_int else "float"
    if one == LITERAL and other in _INTS:
        return other
    if isinstance(one, Items) and isinstance(other, Items):
        is_declared = one.is_declared and other.is_declared
        return Items(joined(one.of, other.of), joined(one.keys, other.keys), is_declared)
    if isinstance(one, Parts) and isinstance(other, Parts) and len(one.of) == len(other.of):
        return Parts(tuple(map(joined, one.of, other.of)))
    return one


def raised(one: Any, wanted: Any) -> Any:
    """A kind whose literals go where floats are wanted."""
    if isinstance(one, Items) and isinstance(wanted, Items) and not one.is_declared:
        return Items(raised(one.of, wanted.of), one.keys)
    if isinstance(one, Parts) and isinstance(wanted, Parts) and len(one.of) == len(wanted.of):
        return Parts(tuple(map(raised, one.of, wanted.of)))
    return EITHER if one == LITERAL and is_float(wanted) else one


def clash(one: Any, other: Any) -> bool:
    """Whether two kinds of numbers clash: one has ints where the other has floats."""
    if isinstance(one, Items) and isinstance(other, Items):
        return clash(one.of, other.of) or clash(one.keys, other.keys)
    if isinstance(one, Parts) and isinstance(other, Parts) and len(one.of) == len(other.of):
        return any(map(clash, one.of, other.of))
    return (one in _INTS and is_float(other)) or (other in _INTS and is_float(one))


def holds_either(kind: Any) -> bool:
    """Whether a kind is, or holds, that of a number that may be the int of a literal."""
    if isinstance(kind, Items):
        return holds_either(kind.of) or holds_either(kind.keys)
    return any(map(holds_either, kind.of)) if isinstance(kind, Parts) else is_either(kind)


def held_by(of: Container) -> Items:
    """The kind of a container of the state: the kinds of the numbers that it holds."""
    keys, values = (_of_shape(shape) if shape.parts else None for shape in (of.key, of.value))
    return Items(keys, None, True) if of.kind == "set" else Items(values, keys, True)


def _of_shape(shape: Shape) -> Any:
    if shape.record is not None:
        return Fields(shape)
    kinds = tuple(part.number for part in shape.parts)
    return Parts(kinds) if shape.is_tuple else kinds[0]


def kind_of(value: Any) -> Any:
    """The kind of a constant."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, float | np.floating):
        return "float"
    if isinstance(value, int | np.integer):
        return LITERAL if abs(int(value)) <= 2**53 else "int"
    if isinstance(value, str):
        return "str"
    if isinstance(value, FrozenArray):
        return kind_of(value.array)
    if isinstance(value, FrozenDict):
        return kind_of(dict(value.items[:100]))
    if isinstance(value, FrozenList):
        return Items(_joined_kinds(value))
    if isinstance(value, tuple):
        return Parts(tuple(map(kind_of, value)))
    if isinstance(value, np.ndarray):
        kind: Any = "float" if value.dtype.kind == "f" else "int"
        for _ in value.shape:
            kind = Items(kind)
        return kind
    if isinstance(value, list | set | frozenset):
        return Items(_joined_kinds(list(value)))
    if isinstance(value, dict):
        return Items(_joined_kinds(list(value.values())), _joined_kinds(list(value)) or "int")
    return None


def _joined_kinds(values: Sequence[Any]) -> Any:
    of_types = {type(value): value for value in values}
    is_plain = of_types.keys() <= {int, float, bool, str}
    found = None
    for value in of_types.values() if is_plain else values[:100]:
        found = joined(found, kind_of(value))
    return found
