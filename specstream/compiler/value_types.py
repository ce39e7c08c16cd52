"""The types of expressions that Python computes: what is known of a method's or function's result.

Compiled code needs to know what a hidden column holds before any event is there. So types are
inferred here from those of the event's columns, along tables of what strings, dates, matches of
regular expressions and a few functions give. What is in no table is of type ``ANY``, and has to be
annotated.
"""

from __future__ import annotations

import ast
import datetime
import re
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "ANY",
    "BOOL",
    "FLOAT",
    "INT",
    "NONE",
    "STR",
    "Type",
    "annotated",
    "attribute",
    "described",
    "element",
    "function",
    "is_column",
    "is_number",
    "join",
    "list_of",
    "method",
    "of_value",
    "optional",
    "required",
    "tuple_of",
]


@dataclass(frozen=True)
class Type:
    """A type: a name, and the types of what it is made of.

    >>> described(optional(tuple_of(INT, STR)))
    'tuple of (int, str) or None'
    """

    name: str
    of: tuple[Type, ...] = ()


INT, FLOAT, BOOL, STR = Type("int"), Type("float"), Type("bool"), Type("str")
NONE, ANY = Type("None"), Type("any")
BYTES, MATCH, PATTERN, WHEN = Type("bytes"), Type("match"), Type("pattern"), Type("datetime")
DATE, TIME, DELTA = Type("date"), Type("time"), Type("timedelta")

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


def described(of: Type) -> str:
    """For messages."""
    if of.name == "optional":
        return f"{described(of.of[0])} or None"
    if of.name == "any":
        return "of a type that is not known"
    inner = ", ".join(map(described, of.of))
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


def join(of: Iterable[Type]) -> Type:
    """The type of what is one of these.

    >>> described(join([STR, NONE])), join([INT, STR]) is ANY
    ('str or None', True)
    """
    found = list(dict.fromkeys(of))
    plain = list(dict.fromkeys(required(one) for one in found if one != NONE))
    if not plain:
        return NONE
    if len(plain) > 1:
        return ANY
    has_none = NONE in found or any(one.name == "optional" for one in found)
    return optional(plain[0]) if has_none else plain[0]


def of_value(value: Any) -> Type:
    """The type of a constant."""
    if value is None:
        return NONE
    if isinstance(value, bool | np.bool_):
        return BOOL
    if isinstance(value, int | np.integer) and not isinstance(value, np.timedelta64):
        return INT
    if isinstance(value, float | np.floating):
        return FLOAT
    simple = {str: STR, bytes: BYTES, re.Pattern: PATTERN, datetime.datetime: WHEN}
    simple |= {datetime.date: DATE, datetime.timedelta: DELTA, datetime.time: TIME}
    if type(value) in simple:
        return simple[type(value)]
    if type(value) is tuple:
        return tuple_of(*map(of_value, value))
    if isinstance(value, list | set | frozenset):
        return list_of(join(map(of_value, value)) if value else ANY)
    if isinstance(value, dict):
        return Type("dict", (join(map(of_value, value.values())) if value else ANY,))
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
            return _written(ast.parse(annotation, mode="eval").body)
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


def _table(**rows: tuple[Type, str]) -> dict[str, Type]:
    return {name: of for of, names in rows.values() for name in names.split()}


_OF_STR = _table(
    text=(
        STR,
        "lower upper strip lstrip rstrip title capitalize casefold swapcase replace removeprefix "
        "removesuffix zfill ljust rjust center expandtabs translate format join format_map",
    ),
    test=(
        BOOL,
        "startswith endswith isdigit isdecimal isnumeric isalpha isalnum isspace islower isupper "
        "istitle isidentifier isascii isprintable",
    ),
    place=(INT, "find rfind index rindex count"),
    parts=(list_of(STR), "split rsplit splitlines"),
    three=(tuple_of(STR, STR, STR), "partition rpartition"),
    octets=(BYTES, "encode"),
)
_OF_WHEN = _table(
    number=(INT, "weekday isoweekday toordinal"),
    text=(STR, "isoformat strftime ctime"),
    seconds=(FLOAT, "timestamp"),
    same=(WHEN, "replace astimezone"),
    day=(DATE, "date"),
    time=(TIME, "time timetz"),
    week=(tuple_of(INT, INT, INT), "isocalendar"),
)
_METHODS: dict[str, dict[str, Type]] = {
    "str": _OF_STR,
    "datetime": _OF_WHEN,
    "date": {**_OF_WHEN, "replace": DATE},
    "time": {"isoformat": STR, "strftime": STR, "replace": TIME},
    "timedelta": {"total_seconds": FLOAT},
    "match": {"start": INT, "end": INT, "groups": ANY, "expand": STR, "span": tuple_of(INT, INT)},
    "pattern": _table(
        match=(optional(MATCH), "match search fullmatch"),
        text=(STR, "sub"),
        counted=(tuple_of(STR, INT), "subn"),
        all=(ANY, "findall finditer"),
        parts=(list_of(optional(STR)), "split"),
    ),
    "bytes": {"decode": STR, "hex": STR},
    "int": {"bit_length": INT, "bit_count": INT},
    "float": {"is_integer": BOOL, "hex": STR, "as_integer_ratio": ANY},
    "list": {"index": INT, "count": INT},
    "tuple": {"index": INT, "count": INT},
}
_ATTRIBUTES: dict[str, dict[str, Type]] = {
    "datetime": dict.fromkeys(
        ("year", "month", "day", "hour", "minute", "second", "microsecond", "nanosecond"), INT
    ),
    "date": dict.fromkeys(("year", "month", "day"), INT),
    "time": dict.fromkeys(("hour", "minute", "second", "microsecond", "fold"), INT),
    "timedelta": dict.fromkeys(("days", "seconds", "microseconds"), INT),
    "match": {"string": STR, "lastindex": optional(INT), "pos": INT, "endpos": INT},
    "pattern": {"pattern": STR},
}
_FUNCTIONS: dict[Any, Type] = {
    **dict.fromkeys((len, int, ord, round), INT),
    float: FLOAT,
    **dict.fromkeys((bool, isinstance, any, all, callable), BOOL),
    **dict.fromkeys((str, repr, ascii, chr, hex, oct, bin, format), STR),
    **dict.fromkeys((re.match, re.search, re.fullmatch), optional(MATCH)),
    re.sub: STR,
    re.escape: STR,
    re.compile: PATTERN,
    re.split: list_of(optional(STR)),
    bytes: BYTES,
    datetime.datetime.fromisoformat: WHEN,
    datetime.datetime.strptime: WHEN,
    datetime.date.fromisoformat: DATE,
}


def method(of: Type, name: str, arguments: list[ast.expr], given: list[Type]) -> Type:
    """What a method gives, of these arguments and their types."""
    of = required(of)
    if of.name == "match" and name in ("group", "__getitem__"):
        # Group 0 is the whole; another may not have taken part.
        whole = not arguments or (
            isinstance(arguments[0], ast.Constant) and arguments[0].value == 0
        )
        return ANY if len(arguments) > 1 else STR if whole else optional(STR)
    if of.name == "dict" and name == "get":
        return join([of.of[0], *(given[1:2] or [NONE])])
    return _METHODS.get(of.name, {}).get(name, ANY)


def attribute(of: Type, name: str) -> Type:
    """What an attribute is."""
    return _ATTRIBUTES.get(required(of).name, {}).get(name, ANY)


def function(value: Any, given: list[Type]) -> Type:
    """What a function gives that is not the user's own."""
    try:
        known = _FUNCTIONS.get(value)
    except TypeError:  # what cannot be hashed
        return ANY
    if known is not None:
        return given[0] if value is round and len(given) == 2 else known
    if value in (sorted, list, set, frozenset, reversed) and len(given) == 1:
        return list_of(element(given[0]))
    if value is tuple and len(given) == 1:
        return given[0] if given[0].name == "tuple" else list_of(element(given[0]))
    if value in (min, max) and given:
        return element(given[0]) if len(given) == 1 else join(given)
    if value is abs and len(given) == 1 and given[0] in (INT, FLOAT):
        return given[0]
    if value is sum and given:
        return element(given[0]) if element(given[0]) in (INT, FLOAT) else ANY
    return tuple_of(INT, INT) if value is divmod and given == [INT, INT] else ANY


def element(of: Type) -> Type:
    """What iterating gives, or an index that is not written out."""
    of = required(of)
    if of == STR:
        return STR
    if of == BYTES:
        return INT
    if of.name in ("list", "dict"):
        return of.of[0] if of.name == "list" else ANY
    return join(of.of) if of.name == "tuple" and of.of else ANY
