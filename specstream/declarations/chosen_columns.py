"""Columns that the caller of an operator's factory names, looked at once, before it is made.

How an operator then reads them is in ``docs/guides/operators.md``, "Functions and globals".
"""

from __future__ import annotations

import keyword
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from specstream.declarations.options import items, refused
from specstream.declarations.plain_values import plain
from specstream.declarations.schema import EVENT_ATTRIBUTES, Kind, Schema

__all__ = ["column_name", "columns_of", "kept_as", "key_of", "named_column"]

_KINDS: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


def columns_of(option: str, given: object) -> dict[str, Any]:
    """The columns, as ``{name: type}``.

    Raises:
        ConfigurationError: it is no such mapping, or has no column.
    """
    if not isinstance(given, Mapping) or not given or not all(isinstance(n, str) for n in given):
        raise refused(option, given, 'the columns by their names, {"user": str, "price": float}')
    return {plain(name): of for name, of in given.items()}


def column_name(option: str, given: object, taken: Collection[str] = ()) -> str:
    """The name of a column of events; ``taken`` are those of the operator's other columns.

    >>> column_name("cusum: value", "price", ("symbol",))
    'price'

    Raises:
        ConfigurationError: no column has that name.
    """
    given = plain(given)
    if not isinstance(given, str) or not given.isidentifier() or keyword.iskeyword(given):
        raise refused(option, given, "the name of a column, a Python identifier")
    if given in EVENT_ATTRIBUTES:
        raise refused(option, given, "the name of a column, and every event has this one already")
    if given in taken:
        raise refused(option, given, f"the name of another column than {', '.join(taken)}")
    return given


def named_column(
    option: str,
    given: object,
    name: str,
    types: Sequence[type] = (int, str),
    taken: Collection[str] = (),
) -> tuple[str, type]:
    """Name and type of a column that is given as ``{name: type}``, or, to call it ``name``, a type.

    >>> named_column("cusum: key", str, "key"), named_column("cusum: key", {"user": int}, "key")
    (('key', <class 'str'>), ('user', <class 'int'>))

    Raises:
        ConfigurationError: it is neither, or such a column has another type.
    """
    of: Any = given
    if isinstance(given, Mapping) and len(given) == 1:
        ((name, of),) = given.items()
    if not any(of is one for one in types):
        *others, last = (one.__name__ for one in types)
        expected = f"{', '.join(others)} or {last}, or with the column's name {{'user': {last}}}"
        raise refused(option, given, expected)
    return column_name(option, name, taken), of


def key_of(
    option: str,
    given: object,
    columns: Mapping[str, Any],
    kinds: Collection[Kind] = ("int", "bool", "str"),
    least: int = 1,
    most: int | None = None,
) -> tuple[str, ...]:
    """The names of the columns that are the key; one may be given as it is.

    Args:
        option: that names it.
        given: by the caller.
        columns: of the events.
        kinds: that a column of the key may have.
        least: columns of a key.
        most: likewise; None: any number.

    Raises:
        ConfigurationError: there is no such column, or it can be no part of a key.
    """
    among = f"of {', '.join(columns)}"
    expected = f"the name of a column that may be a key, or several different ones, {among}"
    if isinstance(given, set | frozenset):  # in another order in the next process
        raise refused(option, given, "a list of them, in an order")
    names = (given,) if isinstance(given, str) else items(option, given, expected)
    names = tuple(map(plain, names))
    if len(names) < least or len(set(map(str, names))) < len(names):
        raise refused(option, given, expected)
    if most is not None and len(names) > most:
        raise refused(option, given, f"at most {most} columns")
    for name in names:
        if not isinstance(name, str) or name not in columns:
            raise refused(option, given, expected)
        (column,) = Schema.of({name: columns[name]}, "event").columns
        if column.kind not in kinds:
            *others, last = (f"{kind}s" for kind in kinds)
            are = f"{', '.join(others)} or {last}".replace("strs", "strings")
            raise refused(option, given, f"{among} columns of {are}: {name!r} is one of {column}s")
        if column.nullable:
            hint = ""
            if isinstance(columns[name], pa.Field):
                hint = (
                    ". A field of a pyarrow schema may be null unless it says otherwise: "
                    f"pa.field({name!r}, ..., nullable=False)"
                )
            raise refused(option, given, f"columns without nulls: {name!r} is nullable{hint}")
    return tuple(names)


def kept_as(column: Any) -> type:
    """What an operator has of a column, and what a container keeps: of a time, an int.

    >>> from specstream.declarations.schema import nullable, timestamp
    >>> kept_as(str), kept_as(timestamp("us")), kept_as(nullable(float))
    (<class 'str'>, <class 'int'>, <class 'float'>)
    """
    (kind,) = Schema.of({"column": column}, "event").kinds
    return _KINDS[kind]
