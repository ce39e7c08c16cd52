"""Python's values, each by itself: those that make a column, and which rows have others, and why.

Arrow converts a column as a whole: it goes by the first value, and makes of those behind it what
their class lets it, ``int(x)`` of a UUID or a fraction cut off; of some together it crashes, such
as a ``datetime64`` and a bool of NumPy's. So it is asked about values of one class at a time. What
has no place in the column is left out, and the table says of which rows that is, in the metadata of
its schema: whoever reads the events rejects these.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.conversion import accepts, from_arrow, is_text, of_order, target, to_arrow
from specstream.declarations.durations import PER_SECOND
from specstream.declarations.options import shown
from specstream.declarations.plain_values import plain
from specstream.declarations.schema import Column

__all__ = [
    "Reads",
    "alone",
    "are_alike",
    "fitting_values",
    "is_of_objects",
    "misfits_of",
    "with_misfits",
]

_KEY = b"specstream.misfits"
_NO_ARRAY = (pa.ArrowException, ValueError, TypeError, OverflowError)


class Reads(NamedTuple):
    """A column that nobody declares, and what is read of it.

    Attributes:
        name: what the column is, in messages.
        expected: what its values are.
        of: the kinds of types that it may have; None: each.
    """

    name: str
    expected: str
    of: frozenset[str] | None

    @classmethod
    def order(cls, of_numbers: bool) -> Reads:
        """The times of events; ``of_numbers``: the operator goes by them as int64."""
        if of_numbers:
            expected = "an integer, a timestamp or a date, as the operator goes by event.timestamp"
        else:
            expected = "an integer, a float, a timestamp or a date"
        return cls("order column", expected, _TIMES if of_numbers else _TIMES | {"float"})

    @classmethod
    def source(cls) -> Reads:
        """The sources of events."""
        return cls("source column", "an integer or a string", frozenset({"int", "text"}))

    @classmethod
    def whatever(cls) -> Reads:
        """What nobody reads."""
        return cls("column", "values of one type", None)

    def accepts(self, of: pa.DataType) -> bool:
        """Whether its values may be of that type."""
        return self.of is None or _kind(of) in self.of


_TIMES = frozenset({"int", "timestamp", "date", "time"})


class _Piece(NamedTuple):
    """Values that Arrow has read together, and their rows."""

    rows: list[int]
    array: pa.Array


def is_of_objects(column: Any) -> bool:
    """Whether a column is one of Python's objects, each of its own type."""
    is_array = isinstance(column, np.ndarray) and column.dtype == object
    return is_array or isinstance(column, list | tuple)


def are_alike(values: Iterable[Any], from_pandas: bool | None = None) -> bool:
    """Whether Arrow may be asked about values as a whole; in objects of pandas a NaN is a null.

    >>> are_alike([1, None, 2.5]), are_alike([1, np.True_]), are_alike(["a", np.nan], True)
    (True, False, True)
    """
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) <= 1 or kinds == {int, float}:
        return True
    is_with_nans = from_pandas and float in kinds and len(kinds) == 2
    return bool(is_with_nans) and all(value != value for value in values if type(value) is float)


def alone(value: Any) -> pa.Array:
    """An array of one value.

    Raises:
        pyarrow.ArrowException: or another error; Arrow has no type for it.

    >>> alone(np.datetime64(5, "s")).type
    TimestampType(timestamp[s])
    """
    return _array([plain(value)], None)


def _array(values: list[Any], from_pandas: bool | None) -> pa.Array:
    """Plain values of one class as an array, without anything cut off."""
    if hasattr(values[0], "to_datetime64"):  # times of pandas, and its NaT
        if any(value != value for value in values):
            return pa.nulls(len(values))
        if any(value.nanosecond for value in values):
            zone = pa.array(values[:1]).type.tz
            return pa.array(values, pa.timestamp("ns", zone))
    return pa.array(values, from_pandas=from_pandas)


def fitting_values(
    values: Sequence[Any], name: str, of: Column | Reads, from_pandas: bool | None = None
) -> tuple[pa.Array, dict[int, str]]:
    """The values that fit, as a column that is null elsewhere; and what is wrong with the others.

    Args:
        values: of Python's.
        name: of the column.
        of: what it is declared as, or what is read of it: then its type is that of the most.
        from_pandas: as of ``pyarrow.array``.

    >>> from specstream.declarations.schema import Schema
    >>> (column,) = Schema.of({"x": int}, "event").columns
    >>> fitting_values([1, "b"], "x", column)[1]
    {1: "column 'x' is 'b'; expected int"}
    >>> fitting_values(["a", 7, 9], "t", Reads.order(False))[1]
    {0: "order column 't' is 'a'; expected an integer, a float, a timestamp or a date"}
    """
    values = list(map(plain, values))
    pieces, unread = _pieces(values, from_pandas)
    column = of if isinstance(of, Column) else _column_of(pieces, of)
    wrong: dict[int, str] = {}
    kept: list[_Piece] = []
    for rows, array in pieces:
        if column is None or not _takes(column, array.type):
            wanted = _expected(of, column, array.type)
            wrong |= {row: f"{shown(values[row])}; expected {wanted}" for row in rows}
            continue
        array, misfits = _exactly(array, column)
        kept.append(_Piece(rows, array))
        if misfits is not None:
            beyond = f"which does not fit {target(column)}"
            wrong |= {rows[at]: f"{shown(values[rows[at]])}, {beyond}" for at in misfits}
    for row in unread:
        is_large = type(values[row]) is int and (column is None or column.kind in ("int", "float"))
        wanted = f"; expected {_expected(of, column, None)}"
        if is_large and (column is None or accepts(column, pa.int64())):
            wanted = f", which does not fit {pa.int64() if column is None else target(column)}"
        wrong[row] = f"{shown(values[row])}{wanted}"
    what = of.name if isinstance(of, Reads) else "column"
    reasons = {row: f"{what} {name!r} is {wrong[row]}" for row in sorted(wrong)}
    type_ = pa.null() if column is None else column.arrow
    return _joined(kept, reasons, len(values), type_), reasons


def _pieces(values: list[Any], from_pandas: bool | None) -> tuple[list[_Piece], list[int]]:
    """Plain values but for nulls, by their class, and where that does not do by the type that Arrow
    has for each; and the rows of those that it has none for."""
    by_class: defaultdict[type, list[int]] = defaultdict(list)
    for row, value in enumerate(values):
        if value is not None:
            by_class[type(value)].append(row)
    pieces: list[_Piece] = []
    unread: list[int] = []
    for rows in by_class.values():
        try:
            array = _array([values[row] for row in rows], from_pandas)
            if not pa.types.is_decimal256(array.type):  # wide enough for all, not as each needs it
                pieces.append(_Piece(rows, array))
                continue
        except _NO_ARRAY:
            pass
        by_type: defaultdict[pa.DataType, list[tuple[int, pa.Array]]] = defaultdict(list)
        for row in rows:
            try:
                one = _array([values[row]], from_pandas)
                by_type[one.type].append((row, one))
            except _NO_ARRAY:
                unread.append(row)
        for found in by_type.values():
            array = pa.concat_arrays([one for _, one in found])
            pieces.append(_Piece([row for row, _ in found], array))
    known = [piece for piece in pieces if piece.array.null_count < len(piece.rows)]
    return list(map(_without_nulls, known)), unread


def _without_nulls(piece: _Piece) -> _Piece:
    rows, array = piece
    if not array.null_count:
        return piece
    valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    return _Piece([rows[at] for at in valid.tolist()], array.drop_null())


def _kind(of: pa.DataType) -> str:
    """What a type has in common with others, in which a column may have its values."""
    types = pa.types
    if types.is_timestamp(of):
        return "timestamp"
    if types.is_date(of):
        return "date"
    if types.is_integer(of):
        return "int"
    if types.is_floating(of):
        return "float"
    if is_text(of):
        return "text"
    return "time" if of_order(pa.nulls(0, of)) is not None else str(of)


def _column_of(pieces: list[_Piece], of: Reads) -> Column | None:
    """The column that most of the values make, of those that may be; None: none does."""
    found = [piece for piece in pieces if of.accepts(piece.array.type)]
    counts: dict[str, int] = {}
    for rows, array in sorted(found, key=lambda piece: piece.rows[0]):
        kind = _kind(array.type)
        kind = {"float": "int", "time": str(array.type)}.get(kind, kind)
        counts[kind] = counts.get(kind, 0) + len(rows)
    if not counts:
        return None
    most = max(counts, key=lambda kind: counts[kind])
    types = [array.type for _, array in found]
    if most == "int":
        is_float = "float" in map(_kind, types)
        return Column("float", pa.float64()) if is_float else Column("int", pa.int64())
    if most == "text":
        return Column("str", pa.string())
    if most == "date":
        return Column("int", pa.date32())
    if most == "timestamp":
        times = [of_type for of_type in types if pa.types.is_timestamp(of_type)]
        unit = max((one.unit for one in times), key=lambda unit: PER_SECOND[unit])
        zone = next((one.tz for one in times if one.tz), None)
        return Column("int", pa.timestamp(unit, zone))
    return Column("int", next(of_type for of_type in types if str(of_type) == most))


def _takes(column: Column, of: pa.DataType) -> bool:
    """Whether a column takes values of a type."""
    is_known = column.is_plain or _kind(column.arrow) in ("timestamp", "date")
    if is_known or pa.types.is_decimal(column.arrow):
        return accepts(column, of)
    return bool(of == column.arrow)


def _expected(of: Column | Reads, column: Column | None, found: pa.DataType | None) -> str:
    if isinstance(of, Column):
        return str(of)
    if column is None or found is None or not of.accepts(found):
        return of.expected
    return f"{column}, as other rows have"


def _exactly(array: pa.Array, column: Column) -> tuple[pa.Array, list[int] | None]:
    """An array without nulls as one of a column's own type, and where values do not fit."""
    if array.type == column.arrow:
        return array, None
    if column.kind == "str":
        return array.cast(column.arrow), None
    numbers, misfits = from_arrow(array, column)
    words = numbers.view(np.int64) if column.kind == "float" else numbers
    return to_arrow(words, column), None if misfits is None else np.flatnonzero(misfits).tolist()


def _joined(pieces: list[_Piece], wrong: dict[int, str], count: int, of: pa.DataType) -> pa.Array:
    """Pieces as one column, which is null where there is none and where a value is wrong."""
    if not pieces:
        return pa.nulls(count, of)
    places: npt.NDArray[np.int64] = np.full(count, -1)
    first = 0
    for rows, _ in pieces:
        places[rows] = np.arange(first, first + len(rows))
        first += len(rows)
    places[list(wrong)] = -1
    whole = pa.concat_arrays([array for _, array in pieces])
    return whole.take(pa.array(places, mask=places < 0))


def with_misfits(table: pa.Table, misfits: dict[int, str]) -> pa.Table:
    """A table that says which of its rows have values that do not fit, and why."""
    if not misfits:
        return table
    text = json.dumps(misfits).encode()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: text})


def misfits_of(table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
    """The table without what it says of them, and that."""
    metadata = dict(table.schema.metadata or {})
    if _KEY not in metadata:
        return table, {}
    record = json.loads(metadata.pop(_KEY))
    return table.replace_schema_metadata(metadata or None), {
        int(row): reason for row, reason in record.items()
    }
