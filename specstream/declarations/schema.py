"""The columns of events and of emitted rows.

A column is declared by a Python type or by one of the functions below. To an operator, and so to
the compiler, a value is an int (int64), a float (float64), a bool or a string: that is the column's
*kind*. What it is in a table is the column's Arrow type: a timestamp, say, whose number of
microseconds the operator sees as an int. :mod:`specstream.columns.conversion` goes from one to the
Inside an operator a string is the int64 code of its content (see
:mod:`specstream.columns.strings`).
"""

from __future__ import annotations

import datetime
import decimal as decimals
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from specstream.declarations.derived import Derived, Place, numbers_of
from specstream.declarations.forms import Form
from specstream.declarations.options import (
    integer,
    not_called,
    one_of,
    refuses_unknown,
    shown,
    text,
)
from specstream.declarations.plain_values import plain
from specstream.declarations.record_types import Record, columns_declared
from specstream.errors import DeclarationError

__all__ = [
    *("Column", "Declared", "EVENT_ATTRIBUTES", "Kind", "OneOf", "Schema"),
    *("decimal", "declared_column", "nullable", "timestamp"),
]

Kind = Literal["int", "float", "bool", "str"]

# Digits of the decimals that come out: as many as the largest int64 has.
DIGITS = 19
# Of the 64 bits, so that a word is never negative.
NULLS_PER_WORD = 63
_UNITS = ("s", "ms", "us", "ns")
EVENT_ATTRIBUTES = (
    *("timestamp", "source", "sequence", "random", "random_bits", "normal", "integer", "choice"),
    "is_null",
)


@dataclass(frozen=True)
class Column:
    """The type of a column.

    Attributes:
        kind: what an operator sees.
        arrow: what comes out, and what is accepted as near as may be.
        nullable: whether there may be nulls.
    """

    kind: Kind
    arrow: pa.DataType
    nullable: bool = False

    def __str__(self) -> str:
        name = self.kind if self.is_plain else str(self.arrow)
        return f"nullable {name}" if self.nullable else name

    @property
    def is_plain(self) -> bool:
        """Whether a table has what an operator sees, or its text."""
        return bool(self.arrow == _PLAIN[self.kind])

    def reads_as(self, other: Column) -> bool:
        """Whether a value of this column is one of another, and means the same: a time without a
        zone is in UTC."""
        return bool(_in_utc(self.arrow) == _in_utc(other.arrow))

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the greatest int that comes out; None: every int64 does."""
        return (-(2**31), 2**31 - 1) if pa.types.is_date(self.arrow) else None

    @property
    def dtype(self) -> type:
        """Of the array that workers read."""
        return {"float": np.float64, "bool": np.uint8}.get(self.kind, np.int64)


def _in_utc(of: pa.DataType) -> pa.DataType:
    return pa.timestamp(of.unit, of.tz or "UTC") if pa.types.is_timestamp(of) else of


# A type of Python's, also in Optional[...] and Annotated[...]; a column; Arrow's type or field.
Declared = Any
_PLAIN: dict[Kind, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "str": pa.string(),
}
_TYPES: dict[object, Column] = {
    int: Column("int", pa.int64()),
    float: Column("float", pa.float64()),
    bool: Column("bool", pa.bool_()),
    str: Column("str", pa.string()),
    datetime.datetime: Column("int", pa.timestamp("us", "UTC")),
    datetime.date: Column("int", pa.date32()),
}

# What is written where types have names, as in SQL and pandas, and what a column is declared as.
_BY_NAME = {
    **dict.fromkeys(("int", "int64", "integer", "long", "bigint"), "int"),
    **dict.fromkeys(("float", "float64", "double", "real"), "float"),
    **dict.fromkeys(("bool", "boolean"), "bool"),
    **dict.fromkeys(("str", "string", "text", "varchar", "object"), "str"),
    **dict.fromkeys(("datetime", "timestamp", "datetime64"), "datetime.datetime"),
    "date": "datetime.date",
    **dict.fromkeys(("decimal", "numeric"), "ss.decimal(scale)"),
}


@refuses_unknown
def timestamp(unit: str = "us", zone: str | None = None) -> Column:
    """A column of timestamps; an int inside an operator, in ``unit`` since 1970-01-01 (UTC).

    Args:
        unit: "s", "ms", "us" or "ns". Columns of other units are converted; a value that is not a
            whole number of units is an error.
        zone: of an emitted column, like "UTC" or "Europe/Berlin": the values are instants, and are
            shown in that zone; their numbers stay the same. ``datetime.datetime`` is
            ``timestamp("us", "UTC")``. None: without a zone, for Spark a ``TIMESTAMP_NTZ``, which a
            session takes for a time in its own zone where it meets instants. Events may have any
            zone.

    Raises:
        DeclarationError: there is no such unit.

    >>> str(timestamp("ms", "UTC"))
    'timestamp[ms, tz=UTC]'
    """
    one_of("ss.timestamp: unit", unit, _UNITS, DeclarationError)
    text(
        "ss.timestamp: zone", zone, "the name of a time zone, like 'UTC', or None", DeclarationError
    )
    return Column("int", pa.timestamp(unit, zone))


@refuses_unknown
def decimal(scale: int) -> Column:
    """A column of decimals with ``scale`` digits after the point; an int inside an operator.

    The int is the value times 10 to the power of ``scale``: with ``ss.decimal(2)``, a price is in
    cents.

    Raises:
        DeclarationError: the scale is not from 0 to 18.

    >>> str(decimal(2))
    'decimal128(19, 2)'
    """
    after = ", the number of digits after the point"
    digits = integer("ss.decimal: scale", scale, 0, DIGITS - 1, after, DeclarationError)
    return Column("int", pa.decimal128(DIGITS, digits))


@refuses_unknown
def nullable(declared: Declared) -> Column:
    """A column that may have nulls.

    In an event, ``event.is_null("x")`` says whether it is null; a null reads as 0, 0.0, False, or
    the code 0, which no string has. In an emitted row, ``emit(x=None)`` or ``emit(x=value if known
    else None)`` makes it null, and so does a call that leaves it out.

    Raises:
        DeclarationError: ``declared`` is not the type of a column.

    >>> str(nullable(float))
    'nullable float'
    """
    return replace(declared_column(declared, "ss.nullable: the column"), nullable=True)


def declared_column(declared: Any, what: str) -> Column:
    """A column of a type that somebody has declared.

    Args:
        declared: the type.
        what: names the column in errors.

    Raises:
        DeclarationError: it is no type of a column.

    >>> str(declared_column(float | None, "column 'price'"))
    'nullable float'
    """
    if isinstance(declared, Column):
        return declared
    if isinstance(declared, pa.Field):
        return replace(_of_arrow(declared.type, what), nullable=declared.nullable)
    if isinstance(declared, pa.DataType):
        return _of_arrow(declared, what)
    origin = typing.get_origin(declared)
    if origin is typing.Annotated:
        # What is said beside a type, like ss.decimal(2) beside Decimal, is more than the type.
        base, *beside = typing.get_args(declared)
        told = [one for one in beside if isinstance(one, Column | pa.DataType)]
        column = declared_column(told[0] if told else base, what)
        return replace(column, nullable=True) if told and _without_none(base)[1] else column
    if origin in (typing.Union, types.UnionType):
        alone, has_none = _without_none(declared)
        if has_none and alone is not None:
            return replace(declared_column(alone, what), nullable=True)
    plain = _TYPES.get(declared) if isinstance(declared, type) else None
    if plain is None:
        found = declared.__name__ if isinstance(declared, type) else shown(declared)
        hint = ""
        if declared is decimals.Decimal:
            hint = ": write ss.decimal(scale), or Annotated[Decimal, ss.decimal(2)]"
        elif isinstance(declared, str) and declared.lower() in _BY_NAME:
            hint = f": write {_BY_NAME[declared.lower()]}, without quotation marks"
        bare = not_called(declared)
        if bare is not None:
            raise DeclarationError(
                f"{what} has type {bare}, which is not called: write {bare}(...), with parentheses"
            )
        raise DeclarationError(
            f"{what} has type {found}; expected one of int, float, bool, str, datetime.datetime, "
            "datetime.date, ss.timestamp(...), ss.decimal(...), ss.nullable(...), one of these "
            f"| None, or Arrow's types{hint}"
        )
    return plain


def _without_none(declared: Any) -> tuple[Any, bool]:
    """What ``X | None`` is but for None, and whether None is in it; None: several types."""
    if typing.get_origin(declared) not in (typing.Union, types.UnionType):
        return declared, False
    parts = typing.get_args(declared)
    others = [part for part in parts if part is not type(None)]
    return others[0] if len(others) == 1 else None, len(others) < len(parts)


def _of_arrow(declared: pa.DataType, what: str) -> Column:
    """The column of which tables have that type: the widest of its kind."""
    of = declared.value_type if pa.types.is_dictionary(declared) else declared
    is_of = pa.types
    if is_of.is_integer(of):
        return _TYPES[int]
    if is_of.is_floating(of) and of.bit_width >= 32:
        return _TYPES[float]
    if is_of.is_boolean(of):
        return _TYPES[bool]
    if is_of.is_string(of) or is_of.is_large_string(of) or is_of.is_string_view(of):
        return _TYPES[str]
    if is_of.is_timestamp(of):
        return Column("int", of)
    if is_of.is_date(of):
        return _TYPES[datetime.date]
    if is_of.is_decimal(of) and not is_of.is_decimal256(of) and 0 <= of.scale < DIGITS:
        return Column("int", pa.decimal128(DIGITS, of.scale))
    if is_of.is_run_end_encoded(of):
        raise DeclarationError(
            f"{what} has Arrow's type {declared}, which is run-end encoded; declare it as what its "
            f"values are, {of.value_type}, and give it decoded, pyarrow.compute.run_end_decode(x)"
        )
    raise DeclarationError(
        f"{what} has Arrow's type {declared}; expected integers, floats of 32 or 64 bits, bools, "
        f"strings, timestamps, dates, or decimals with 0 to {DIGITS - 1} digits after the point: "
        "cast the column"
    )


def _check_comes_out(declared: Any, column: Column, what: str) -> None:
    """An emitted column has the type that was declared, to the bit."""
    of = declared.type if isinstance(declared, pa.Field) else declared
    if isinstance(of, pa.DataType) and of != column.arrow:
        raise DeclarationError(
            f"{what} has Arrow's type {of}, and an operator's rows come out as {column.arrow}: "
            "declare that, and cast the output where it is needed narrower"
        )


@dataclass(frozen=True)
class OneOf:
    """What rows are that are of several kinds: each has a null in the columns of the others.

    Attributes:
        tag: the column that names a row's kind.
        required: of each kind the columns that are never null.
    """

    tag: str
    required: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Schema:
    """Names and types of columns, in order.

    Attributes:
        names: of the columns.
        columns: their types.
        derived: values that are made of an event's columns before an operator sees the event. They
            are no columns to anybody else; a batch has their arrays behind all others.
        forms: formatted strings among the emitted rows; a row has their parts behind all others.
        one_of: where the rows are of several kinds, what these are.
        phases: where a batch has all events of a timestamp together: the names of the sources, of
            each of which it has the number of the first such event and of how many there are (see
            :mod:`specstream.columns.phases`). Empty: it has each event by itself.
        unentered: columns of strings of which an operator asks no more than which of these literals
            they are (see :mod:`specstream.columns.unentered`).
        time_unit: of the times of events, as the operator counts them: "s", "ms", "us", "ns" or
            "day"; None: that of the order column, whatever it is.
        counts_times: where the operator goes by the numbers of times, without saying their unit:
            "'deadline', line 7, adds to a time"; empty: nowhere.
        assumed: why ``time_unit`` is microseconds, where nobody has said so; empty: somebody has.

    >>> Schema.of({"item": int, "price": float}, "event").names
    ('item', 'price')
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    derived: tuple[Derived, ...] = ()
    forms: tuple[Form, ...] = ()
    one_of: OneOf | None = None
    phases: tuple[str, ...] = ()
    unentered: tuple[tuple[str, tuple[str, ...]], ...] = ()
    time_unit: str | None = None
    counts_times: str = ""
    assumed: str = ""

    @classmethod
    def of(cls, declared: Record, what: str) -> Schema:
        """A schema from ``{name: type}``, or from another declaration of a record's columns.

        ``what`` names it in errors ("event", "emits").

        Raises:
            DeclarationError: names the column that cannot be one.
        """
        given = columns_declared(declared, what)
        columns = []
        given = {plain(name): of for name, of in given.items()}
        for name, of in given.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise DeclarationError(
                    f"{what}= has column name {name!r}; expected a Python identifier, because the "
                    f"operator reads it as an attribute: rename the column"
                )
            if what == "event" and name in EVENT_ATTRIBUTES:
                raise DeclarationError(
                    f"event= has a column {name!r}, which every event has already "
                    f"({', '.join(EVENT_ATTRIBUTES)}): rename the column"
                )
            columns.append(declared_column(of, f"{what} column {name!r}"))
            if what == "emits":
                _check_comes_out(of, columns[-1], f"emits column {name!r}")
        return cls(tuple(given), tuple(columns))

    def __iter__(self) -> Iterator[tuple[str, Column]]:
        return zip(self.names, self.columns, strict=True)

    def __len__(self) -> int:
        return len(self.names)

    def __getstate__(self) -> dict[str, Any]:
        # Without what is computed: another version may read it, and compute something else.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """What an operator sees of each column."""
        return tuple(column.kind for column in self.columns)

    @cached_property
    def nullable(self) -> tuple[str, ...]:
        """Names of the nullable columns.

        Behind its other arrays, a batch has one of bytes for each of them: 1 where it is null.
        """
        return tuple(name for name, column in self if column.nullable)

    @property
    def has_sinks(self) -> bool:
        """Whether the rows are those of several sinks: their columns are called sink.column, and
        the first says which it is."""
        return any("." in name for name in self.names)

    @cached_property
    def row_words(self) -> int:
        """Words of an emitted row: the event's row, the values, a bit for each nullable column, and
        the formatted strings.

        The bits, 1 where it is null, are those of as many words as they need, from the lowest on.
        """
        return self._plain_words + sum(1 + count for count in self._form_parts.values())

    @cached_property
    def _plain_words(self) -> int:
        """Words of a row in front of the formatted strings."""
        return 1 + len(self) + -(-len(self.nullable) // NULLS_PER_WORD)

    @cached_property
    def _form_parts(self) -> dict[int, int]:
        """Of each column that has formatted strings, by its number: the most words of one."""
        most: dict[int, int] = {}
        for form in self.forms:
            number = self.names.index(form.column)
            most[number] = max(most.get(number, 0), form.words)
        return most

    @cached_property
    def form_words(self) -> dict[int, int]:
        """Of each such column, which word of a row says what form it is; the parts follow."""
        words, at = {}, self._plain_words
        for number, count in self._form_parts.items():
            words[number] = at
            at += 1 + count
        return words

    @cached_property
    def null_bits(self) -> dict[int, tuple[int, int]]:
        """Of each nullable column, by its number: which word of a row, and which bit of that."""
        numbers = [number for number, column in enumerate(self.columns) if column.nullable]
        return {
            number: (1 + len(self) + at // NULLS_PER_WORD, at % NULLS_PER_WORD)
            for at, number in enumerate(numbers)
        }

    @property
    def dtypes(self) -> list[type[Any]]:
        """Of the arrays that workers read: those of the columns, of the nulls, and derived ones."""
        derived = (dtype for one in self.derived for dtype in one.dtypes)
        return [*self.declared_dtypes, *derived]

    @property
    def declared_dtypes(self) -> list[type[Any]]:
        """Of the arrays that a table has the values of: those of the columns, and of the nulls."""
        return [*(column.dtype for column in self.columns), *(np.uint8 for _ in self.nullable)]

    @cached_property  # the oracle of a pipeline asks in every run of a vertex
    def declared(self) -> Schema:
        """The same without what an operator adds."""
        return replace(self, derived=(), forms=(), unentered=())

    def derived_place(self, name: str) -> Place | None:
        """Where the derived value of that name lies among the arrays of :attr:`dtypes`."""
        found = numbers_of(name)
        if found is None:
            return None
        number, at = found
        before = self.derived[:number]
        raised = len(self.declared_dtypes) + sum(len(one.dtypes) for one in before)
        if at is None:
            tells = any(one.tells for one in self.derived[number : number + 1])
            return Place(number, raised, None, raised, tells)
        own = self.derived[number]
        values = raised + 1 + own.tells + sum(len(part.dtypes) for part in own.parts[:at])
        return Place(number, raised, own.parts[at], values, own.tells)

    def row(self, values: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """What ``emit(*values, **named)`` gives, in the order of the columns; a nullable one that
        is not given is None.

        Raises:
            TypeError: it gives too many values, or too few; or one that is of no column.
        """
        names = self.names
        given = dict(zip(names, values, strict=False))
        problem = ""
        if len(values) > len(names):
            problem = f"emit takes {len(names)} values, got {len(values)}"
        for name in named:
            if name not in names:
                problem = problem or f"emit has no column {name!r}"
            elif name in given:
                problem = problem or f"emit gets column {name!r} twice"
        given |= named
        missing = [name for name, of in self if name not in given and not of.nullable]
        if missing:
            problem = problem or f"emit lacks {', '.join(map(repr, missing))}"
        if problem:
            raise TypeError(f"{problem}; expected emit({', '.join(names)})")
        return tuple(given.get(name) for name in names)

    def kind(self, name: str) -> Kind | None:
        """Kind of a column, or None where there is no such column."""
        return self.kinds[self.names.index(name)] if name in self.names else None

    def describe(self) -> list[tuple[str, str]]:
        """Names and types as plain data."""
        return [(name, str(column)) for name, column in self]

    def arrow(self) -> pa.Schema:
        """The same columns as an Arrow schema."""
        return self._arrow

    @cached_property
    def _arrow(self) -> pa.Schema:
        return pa.schema([pa.field(name, column.arrow) for name, column in self])
