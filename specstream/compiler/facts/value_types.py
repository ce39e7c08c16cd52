"""Types of values that Python computes: of constants, of annotations, of what is one or another.

Compiled code needs to know what a hidden column holds before any event is there. What functions,
methods and attributes give is in :mod:`specstream.compiler.facts.library_types`.
"""

from __future__ import annotations

import ast
import sys
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specstream.compiler.language.frozen import Frozen, FrozenDict, FrozenList
from specstream.compiler.language.parsing import parse

__all__ = [
    "ANY",
    "BOOL",
    "FLOAT",
    "INT",
    "NEVER",
    "NONE",
    "STR",
    "Type",
    "annotated",
    "chosen",
    "computed",
    "counted",
    "described",
    "dict_of",
    "element",
    "evaluated",
    "given_by",
    "hints_of",
    "is_column",
    "is_known",
    "is_number",
    "is_record",
    "is_scalar",
    "join",
    "list_of",
    "of_class",
    "of_hint",
    "of_value",
    "optional",
    "required",
    "tuple_of",
]


@dataclass(frozen=True)
class Type:
    """A type: a name, and the types of what it is made of.

    A set is a list here, and a dict is made of its values and its keys.

    >>> described(optional(tuple_of(INT, STR)))
    'tuple of (int, str) or None'

    Attributes:
        cls: of an object, its class, which is no type of these.
        counts: of a number, the column of dates, times or decimals that it is a value of.
        is_computed: the number is made of such values, and is none.
    """

    name: str
    of: tuple[Type, ...] = ()
    cls: type | None = None
    counts: Any = field(default=None, compare=False)
    is_computed: bool = field(default=False, compare=False)


INT, FLOAT, BOOL, STR = Type("int"), Type("float"), Type("bool"), Type("str")
NONE, ANY = Type("None"), Type("any")
NEVER = Type("never")
"""The type of an element where there is none, and of what is not known yet: any other joins it."""
BYTES, WHEN, DATE, DELTA = Type("bytes"), Type("datetime"), Type("date"), Type("timedelta")

_NAMES = {one.name: one for one in (INT, FLOAT, BOOL, STR, NONE)}


def optional(of: Type) -> Type:
    """The type, or None."""
    return of if of in (ANY, NONE) or of.name == "optional" else Type("optional", (of,))


def required(of: Type) -> Type:
    """What a value is that is not None."""
    return of.of[0] if of.name == "optional" else of


def tuple_of(*of: Type) -> Type:
    return Type("tuple", of)


def list_of(of: Type) -> Type:
    return Type("list", (of,))


def dict_of(value: Type, key: Type) -> Type:
    return Type("dict", (value, key))


def described(of: Type) -> str:
    """A value's type in words, for messages: ``int or None``, ``list of str``."""
    if of.name == "optional":
        return f"{described(of.of[0])} or None"
    if of.name in ("any", "never"):
        return "of a type that is not known"
    if of.cls is not None:
        return of.cls.__name__
    parts = reversed(of.of) if of.name == "dict" else of.of  # which has its value first
    inner = ", ".join(map(described, parts))
    if not of.of:
        return of.name
    return f"{of.name} of {inner}" if len(of.of) == 1 else f"{of.name} of ({inner})"


def is_number(of: Type) -> bool:
    return of in (INT, FLOAT, BOOL)


def is_column(of: Type) -> bool:
    """Whether a hidden column, or a few of them, can hold it."""
    if of.name == "tuple":
        return bool(of.of) and all(is_scalar(required(one)) for one in of.of)
    return is_scalar(required(of))


def is_scalar(of: Type) -> bool:
    return of in (INT, FLOAT, BOOL, STR)


def is_record(of: Type) -> bool:
    """Whether it is a named tuple of numbers, bools and strings, some of which may be None."""
    if of.cls is None or not issubclass(of.cls, tuple):
        return False
    return bool(of.of) and all(is_scalar(required(one)) for one in of.of)


def is_known(of: Type) -> bool:
    """Whether nothing in it is unknown."""
    return of.name not in ("any", "never") and all(map(is_known, of.of))


def join(of: Iterable[Type]) -> Type:
    """The type of what is one of these; an int that may be a float as well is a float.

    >>> described(join([STR, NONE])), join([INT, FLOAT]) is FLOAT, join([INT, STR]) is ANY
    ('str or None', True, True)
    """
    found = [one for one in {(one, counted(one)): one for one in of}.values() if one != NEVER]
    plain = [required(one) for one in found if one != NONE]
    if not found:
        return NEVER
    if not plain:
        return NONE
    first, *others = plain
    for other in others:
        first = _join(first, other)
    has_none = NONE in found or any(one.name == "optional" for one in found)
    return optional(first) if has_none else first


def chosen(op: ast.boolop, of: list[Type]) -> Type:
    """The type of ``and`` or ``or``, of what is chosen from: ``or`` passes None by.

    >>> described(chosen(ast.Or(), [optional(STR), STR]))
    'str'
    """
    if isinstance(op, ast.Or):
        of = [required(one) if one != NONE else NEVER for one in of[:-1]] + of[-1:]
    return join(of)


def counted(of: Type) -> tuple[Any, ...]:
    """Which columns the numbers in a type are values of: types that are equal may differ in it."""
    return of.counts, of.is_computed, *(counted(one) for one in of.of)


def computed(of: Type, *parts: Type) -> Type:
    """The type of a number that is made of others."""
    column = next((one.counts for one in parts if one.counts is not None), None)
    return (
        of
        if column is None or of not in (INT, FLOAT)
        else replace(of, counts=column, is_computed=True)
    )


def _are_of_like_columns(one: Type, other: Type) -> bool:
    """Whether a value that is one or another integer has one type: of one column, or two alike.

    Two columns are alike that are of one Arrow type.
    """
    if counted(one) == counted(other):
        return True
    of_both = one.counts is not None and other.counts is not None
    is_plain = not one.is_computed and not other.is_computed
    return bool(of_both and is_plain and one.counts.arrow == other.counts.arrow)


def _join(one: Type, other: Type) -> Type:
    if one == other == INT:
        return one if _are_of_like_columns(one, other) else computed(INT, one, other)
    if {one, other} == {INT, FLOAT}:
        return FLOAT
    same = one.name == other.name and one.cls == other.cls and len(one.of) == len(other.of)
    if not same or not one.of:
        return one if one == other else ANY
    return Type(one.name, tuple(join(both) for both in zip(one.of, other.of, strict=True)), one.cls)


def of_value(value: Any) -> Type:
    """The type of a constant."""
    if value is None:
        return NONE
    if isinstance(value, bool | np.bool_):
        return BOOL
    if isinstance(value, int | np.integer) and not isinstance(value, np.timedelta64):
        return of_class(type(value)) if _is_own(type(value)) else INT
    if isinstance(value, float | np.floating):
        return FLOAT
    if type(value) is tuple:
        return tuple_of(*map(of_value, value))
    if isinstance(value, list | set | frozenset | FrozenList):
        return list_of(join(map(of_value, value)))
    if isinstance(value, FrozenDict):
        value = dict(value.items)
    if isinstance(value, dict):
        return dict_of(join(map(of_value, value.values())), join(map(of_value, value)))
    if isinstance(value, Frozen | np.ndarray | type | types.ModuleType) or callable(value):
        return ANY
    return of_class(type(value))


def _is_own(cls: type) -> bool:
    return cls.__module__ not in ("builtins", "numpy")


def of_class(cls: type) -> Type:
    """The value type of a class: of a constant, by an annotation, or of what calling it makes.

    That of a class of the standard library is its name.
    """
    if cls in (int, float, bool, str, bytes, type(None)):
        return NONE if cls is type(None) else Type(cls.__name__)
    if cls in (object, type, Any):
        return ANY
    if cls in (list, set, frozenset):
        return list_of(ANY)
    if cls in (dict, tuple):
        return dict_of(ANY, ANY) if cls is dict else ANY
    is_library = cls.__module__.split(".")[0] in sys.stdlib_module_names - {"__main__"}
    if is_library and cls.__name__ in _LIBRARY:
        return Type(cls.__name__)
    names = getattr(cls, "_fields", ())
    hints = hints_of(cls) if names else {}
    return Type("object", tuple(of_hint(hints.get(name, Any)) for name in names), cls)


def hints_of(cls: type | types.FunctionType) -> dict[str, Any]:
    """The annotations of a class or a function; none where they name what is not there."""
    try:
        return typing.get_type_hints(cls)
    except Exception:
        return {}


# Classes of the standard library whose methods and attributes are in a table.
_LIBRARY = frozenset(
    (
        *("datetime", "date", "time", "timedelta", "struct_time", "Match", "Pattern", "UUID"),
        *("ParseResult", "SplitResult", "Decimal", "Fraction", "SequenceMatcher", "HASH"),
        *("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"),
    )
)


def of_hint(hint: Any) -> Type:
    """The type that an annotation says, of whatever kind; ANY where it says none."""
    known = annotated(hint)
    if known is not None:
        return known
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        return of_class(hint)
    origin, inner = typing.get_origin(hint), [of_hint(one) for one in typing.get_args(hint)]
    if origin in (list, set, frozenset) and len(inner) == 1:
        return list_of(inner[0])
    if origin is dict and len(inner) == 2:
        return dict_of(inner[1], inner[0])
    if origin is tuple and Ellipsis not in typing.get_args(hint):
        return tuple_of(*inner)
    if origin in (typing.Union, types.UnionType):
        return join(inner)
    return ANY


def annotated(annotation: Any) -> Type | None:
    """The type that an annotation says: one of int, float, bool, str, None, a tuple or list of
    such, or one of these or None; None: it is no such.

    >>> described(annotated(ast.parse("tuple[int, str] | None", mode="eval").body))
    'tuple of (int, str) or None'
    """
    if isinstance(annotation, ast.expr):
        return _written(annotation)
    if annotation is None or annotation is type(None):
        return NONE
    if isinstance(annotation, str):
        try:
            return _written(parse(annotation, mode="eval").body)
        except SyntaxError:
            return None
    if isinstance(annotation, type) and annotation.__name__ in _NAMES:
        return _NAMES[annotation.__name__]
    origin, of = typing.get_origin(annotation), typing.get_args(annotation)
    inner = [annotated(one) for one in of]
    if any(one is None for one in inner):
        return None
    found = typing.cast(list[Type], inner)
    if origin is tuple:
        return tuple_of(*found)
    if origin is list:
        return list_of(*found)
    if origin in (typing.Union, types.UnionType):
        return join(found)
    return None


def _written(node: ast.expr) -> Type | None:
    if isinstance(node, ast.Constant):
        return annotated(node.value) if node.value is None or isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return _NAMES.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        parts = [_written(node.left), _written(node.right)]
        return None if None in parts else join(one for one in parts if one)
    if isinstance(node, ast.Subscript):
        name = node.value.attr if isinstance(node.value, ast.Attribute) else ast.unparse(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        found = [_written(one) for one in inner]
        if any(one is None for one in found):
            return None
        if name in ("tuple", "Tuple"):
            return tuple_of(*(one for one in found if one))
        if name in ("list", "List") and found[0]:
            return list_of(found[0])
        if name == "Optional" and found[0]:
            return optional(found[0])
    return None


def given_by(annotation: Any, function: Any) -> Type:
    """The type that the return annotation of a function marked as pure says; ANY: it says none.

    Besides what :func:`annotated` knows, a named tuple or a list of such.
    """
    known = annotated(annotation)
    if known is not None:
        return known
    given = of_hint(evaluated(annotation, function))
    inner = given.of[0] if given.name == "list" else given
    return given if is_record(required(inner)) else ANY


def evaluated(annotation: Any, function: Any) -> Any:
    """The return annotation of a function; where it is a text that names a class, of that class."""
    if not isinstance(annotation, str) or annotated(annotation) is not None:
        return annotation
    return hints_of(function).get("return", annotation)


def element(of: Type) -> Type:
    """What iterating gives, or an index that is not written out."""
    of = required(of)
    if of == STR:
        return STR
    if of == BYTES:
        return INT
    if of.name in ("list", "dict"):
        return of.of[-1]
    return join(of.of) if of.of else ANY
