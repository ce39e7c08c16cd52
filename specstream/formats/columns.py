"""Columns of the rows that a format makes: how they are declared, and which values they have.

A column has a type that columns of events have, and a value is converted by the rules of messages
(:mod:`specstream.columns.message_values`): exactly, or not at all. A row has what an operator sees
of it, the int of a time in its unit, say. A source is told more, with the unit.
"""

from __future__ import annotations

import functools
import keyword
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from specstream.columns.conversion import from_arrow
from specstream.columns.message_values import Misfit, column_of
from specstream.declarations.options import meant, shown
from specstream.declarations.schema import Column, declared_column
from specstream.errors import DeclarationError

__all__ = [
    "Field",
    "annotation",
    "as_message",
    "as_seen",
    "declared",
    "row_class",
    "type_text",
]

_FIELDS: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}
_OPTIONS = ("malformed", "namespaces")


@dataclass(frozen=True)
class Field:
    """A column of the rows.

    Attributes:
        name: of the column; empty: a row is the value itself.
        path: from what the path of the rows selects; None: it is there by its name.
        of: its type.
    """

    name: str
    path: str | None
    of: Column

    @property
    def shown(self) -> str:
        """What messages call it."""
        return f"column {self.name!r}" if self.name else "a value"

    @property
    def of_row(self) -> tuple[str, str, bool]:
        """What the named tuple of a row has of it; see :func:`row_class`."""
        return self.name, self.of.kind, self.of.nullable


def declared(what: str, of: Any, columns: Mapping[str, Any]) -> list[Field]:
    """The columns of rows, or the only value of each.

    Args:
        what: made the rows, in errors.
        of: the type of the values; None: the rows have columns.
        columns: types by name, or pairs of a path and a type.

    Raises:
        DeclarationError: one cannot be; names the column.

    >>> declared("xml", None, {"price": ("@price", float)})[0].path
    '@price'
    """
    if of is not None and columns:
        raise DeclarationError(
            f"{what}: has a type, {shown(of)}, and columns, {', '.join(columns)}; expected one of "
            "these: a type for the values themselves, or columns for rows"
        )
    if of is not None:
        return [Field("", None, declared_column(of, f"{what}: the type of the values"))]
    if not columns:
        raise DeclarationError(
            f"{what}: has no columns; expected some, like id=int, or a type for the values "
            "themselves"
        )
    return [_field(what, name, given) for name, given in columns.items()]


def _field(what: str, name: str, given: Any) -> Field:
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise DeclarationError(
            f"{what}: column {name!r} cannot be read as an attribute of a row; expected an "
            "identifier that does not begin with _: give it another name, and say where it is, "
            f"name=({name!r}, type)"
        )
    if not isinstance(given, tuple):
        near = meant(name, _OPTIONS) if isinstance(given, str | Mapping) else ""
        return Field(name, None, declared_column(given, f"{what}: column {name!r}{near}"))
    if len(given) != 2 or not isinstance(given[0], str):
        raise DeclarationError(
            f"{what}: column {name!r} is {shown(given)}; expected a type, or a path and a type: "
            f"{name}=('path', float)"
        )
    return Field(name, given[0], declared_column(given[1], f"{what}: column {name!r}"))


# ---- rows ----


@functools.cache
def row_class(fields: tuple[tuple[str, str, bool], ...]) -> Any:
    """The named tuple of rows: one class for equal columns, so that their rows can be pickled.

    Args:
        fields: name and kind of each column, and whether it may be None.

    >>> row_class((("id", "int", False), ("note", "str", True))).__annotations__
    {'id': <class 'int'>, 'note': str | None}
    """
    types: list[tuple[str, Any]] = [
        (name, _FIELDS[kind] | None if may_be_none else _FIELDS[kind])
        for name, kind, may_be_none in fields
    ]
    make: Any = typing.NamedTuple
    made = make("Row", types)
    made.__module__ = __name__
    made.__doc__ = "What a format has read of one node."
    # No module has the class under its name.
    made.__reduce__ = lambda row: (_row, (fields, *row))
    return made


def _row(fields: tuple[tuple[str, str, bool], ...], *values: Any) -> Any:
    return row_class(fields)(*values)


def annotation(of: Column) -> Any:
    """What an operator sees of a column, as an annotation.

    >>> import datetime
    >>> annotation(declared_column(datetime.date | None, "column 'day'"))
    int | None
    """
    seen = _FIELDS[of.kind]
    return seen | None if of.nullable else seen


def type_text(of: Column) -> str:
    """A type as it is declared.

    >>> from specstream.declarations.schema import decimal, nullable
    >>> type_text(nullable(decimal(2)))
    'ss.nullable(ss.decimal(2))'
    """
    if pa.types.is_timestamp(of.arrow):
        text = f"ss.timestamp({of.arrow.unit!r}, {of.arrow.tz!r})"
    elif pa.types.is_date(of.arrow):
        text = "datetime.date"
    elif pa.types.is_decimal(of.arrow):
        text = f"ss.decimal({of.arrow.scale})"
    else:
        text = of.kind
    return f"ss.nullable({text})" if of.nullable else text


# ---- values ----


def as_seen(values: Sequence[Any], of: Column) -> Sequence[Any]:
    """Values as an operator sees them; a null is None.

    Raises:
        Misfit: one of them does not fit.

    >>> import datetime
    >>> as_seen(["1970-01-02", None], declared_column(datetime.date | None, "column 'day'"))
    [1, None]
    """
    if _are_ready(values, of):
        return values
    made = column_of(values, of)
    if of.is_plain:
        found: list[Any] = made.to_pylist()
        return found
    numbers, wrong = from_arrow(made, of)
    if wrong is not None and wrong.any():
        raise Misfit("one of them does not fit")
    is_there = made.is_valid().to_pylist()
    return [one if there else None for one, there in zip(numbers.tolist(), is_there, strict=True)]


def as_message(values: Sequence[Any], of: Column) -> Sequence[Any]:
    """Values as JSON has them, of which a time does not need its unit, nor a decimal its scale.

    Raises:
        Misfit: one of them does not fit.

    >>> import datetime
    >>> as_message([0], declared_column(datetime.date, "column 'day'"))
    Traceback (most recent call last):
    specstream.columns.message_values.Misfit: it is 0
    >>> from specstream.declarations.schema import timestamp
    >>> as_message([1500], timestamp("ms"))
    ['1970-01-01 00:00:01.500']
    """
    if _are_ready(values, of):
        return values
    made = column_of(values, of)
    if of.is_plain:
        found: list[Any] = made.to_pylist()
        return found
    if pa.types.is_timestamp(of.arrow):  # in UTC, as text without a zone is
        made = made.cast(pa.timestamp(of.arrow.unit, "UTC")).cast(pa.timestamp(of.arrow.unit))
    return [None if one is None else str(one) for one in _texts(made)]


def _texts(made: pa.Array) -> Iterator[Any]:
    if pa.types.is_decimal(made.type):
        yield from made.to_pylist()
    else:
        yield from made.cast(pa.string()).to_pylist()


def _are_ready(values: Sequence[Any], of: Column) -> bool:
    """Whether values are what an operator sees already, so that Arrow need not be asked."""
    kinds = set(map(type, values))
    if of.nullable:
        kinds.discard(type(None))
    if not of.is_plain or not kinds <= {_FIELDS[of.kind]}:
        return False
    numbers = [one for one in values if one is not None] if of.kind == "int" else []
    return not numbers or (min(numbers) >= -(2**63) and max(numbers) < 2**63)
