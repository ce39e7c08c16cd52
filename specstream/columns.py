"""Tables in and out: columns as the arrays that workers read, emitted rows as Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from specstream.errors import InputError
from specstream.schema import Kind, Schema
from specstream.strings import StringTable

__all__ = [
    "KEY_COLUMNS",
    "Events",
    "as_table",
    "keys_of",
    "order_key",
    "read_events",
    "rows_to_table",
]

KEY_COLUMNS = ("timestamp", "source", "sequence")


def as_table(data: Any, what: str) -> pa.Table:
    """A table from what users have: Arrow table or batch, pandas frame, dict of arrays.

    Raises:
        InputError: it is none of these, or its columns differ in length.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, Mapping):
        try:
            return pa.table({name: pa.array(column) for name, column in data.items()})
        except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError) as error:
            raise InputError(
                f"{what}: the dict is no table ({error}): give one array per column, "
                "all of one length"
            ) from None
    if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
        # A NaN in a column of plain floats is a number here, not a missing value.
        columns = {
            str(name): pa.array(
                column.to_numpy() if isinstance(column.dtype, np.dtype) else column,
                from_pandas=not (isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"),
            )
            for name, column in data.items()
        }
        return pa.table(columns)
    raise InputError(
        f"{what}: got {type(data).__name__}; expected a pyarrow Table or RecordBatch, a pandas "
        "DataFrame, or a dict of arrays"
    )


@dataclass(frozen=True)
class Events:
    """A batch of events, in order, as plain arrays.

    Attributes:
        count: number of events.
        columns: timestamp (int64), source (int64), then those of the schema: int64 for int and str,
            float64 for float, uint8 for bool; all contiguous and of length ``count``.
        keys: timestamp and source as the table had them, for output and messages.
        positions: row of each event in the table.
    """

    count: int
    columns: tuple[npt.NDArray[Any], ...]
    keys: tuple[pa.Array, pa.Array]
    positions: npt.NDArray[np.int64]

    def take(self, rows: npt.NDArray[np.int64]) -> Events:
        """Some of the events, copied."""
        at = pa.array(rows)
        return Events(
            len(rows),
            tuple(column[rows] for column in self.columns),
            (self.keys[0].take(at), self.keys[1].take(at)),
            self.positions[rows],
        )


def read_events(
    table: pa.Table,
    schema: Schema,
    strings: StringTable,
    what: str,
    first_sequence: int,
    order_by: str | None = None,
    source: str | None = None,
    reads_timestamp: bool = False,
) -> Events:
    """Checks a table against an event schema, orders its rows, and gives their columns.

    With ``order_by``, rows are ordered by (order_by, source, position). Without it they keep their
    order, and the timestamp of an event is its sequence number.

    Raises:
        InputError: a column is missing, has another type, has nulls, or cannot be ordered by.
    """
    count = table.num_rows
    columns = [_column(table, name, kind, strings, what) for name, kind in schema]
    source_key, source_rank, source_code = _source(table, source, strings, what)
    if order_by is None:
        timestamp = np.arange(first_sequence, first_sequence + count, dtype=np.int64)
        timestamp_key: pa.Array = pa.array(timestamp)
        return Events(
            count,
            (timestamp, source_code, *columns),
            (timestamp_key, source_key),
            np.arange(count),
        )

    timestamp_key, timestamp = _timestamp(table, order_by, what, reads_timestamp)
    order = np.lexsort((source_rank, timestamp))
    if not np.array_equal(order, np.arange(count)):
        timestamp, source_code = timestamp[order], source_code[order]
        columns = [column[order] for column in columns]
        timestamp_key, source_key = (
            timestamp_key.take(pa.array(order)),
            source_key.take(pa.array(order)),
        )
    return Events(count, (timestamp, source_code, *columns), (timestamp_key, source_key), order)


def _get(table: pa.Table, name: str, what: str) -> pa.Array:
    found = table.schema.get_all_field_indices(name)
    if len(found) != 1:
        problem = "has no column" if not found else "has more than one column"
        raise InputError(
            f"{what}: the batch {problem} {name!r}; it has "
            f"{', '.join(table.column_names) or 'none'}"
            ": rename or add the column"
        )
    column = table.column(found[0])
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    if array.null_count:
        row = pc.index(array.is_null(), True).as_py()
        raise InputError(
            f"{what}: column {name!r} has {array.null_count} null(s), the first in row {row}: fill "
            "or drop them before the operator"
        )
    return array


def _fits(kind: Kind, of: pa.DataType) -> bool:
    if pa.types.is_dictionary(of):
        of = of.value_type
    fits: bool = {
        "int": pa.types.is_integer(of),
        "float": pa.types.is_floating(of) or pa.types.is_integer(of),
        "bool": pa.types.is_boolean(of),
        "str": pa.types.is_string(of) or pa.types.is_large_string(of),
    }[kind]
    return fits


_WRITE = {
    "int": "cast it to int64",
    "float": "cast it to float64",
    "bool": "compare it, so that it becomes a bool",
    "str": "cast it to string",
}


def _column(
    table: pa.Table, name: str, kind: Kind, strings: StringTable, what: str
) -> npt.NDArray[Any]:
    array = _get(table, name, what)
    if len(array) == 0:
        return np.empty(0, {"float": np.float64, "bool": np.uint8}.get(kind, np.int64))
    if not _fits(kind, array.type):
        raise InputError(
            f"{what}: column {name!r} has type {array.type}; the operator declares {kind}: "
            f"{_WRITE[kind]}"
        )
    if kind == "str":
        return _codes(array, strings)[0]
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind == "bool":
        return np.ascontiguousarray(array.cast(pa.uint8()).to_numpy(zero_copy_only=False))
    target = pa.int64() if kind == "int" else pa.float64()
    try:
        numbers = array.cast(target).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{what}: column {name!r} of type {array.type} does not fit {target} ({error}): "
            f"{_WRITE[kind]} yourself, so that you decide what happens to such values"
        ) from None
    return np.ascontiguousarray(numbers)


def _codes(array: pa.Array, strings: StringTable) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Codes of strings, and the ranks of the strings in the order of their text."""
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    used = np.unique(indices)
    codes = np.zeros(len(texts), np.int64)
    for index in used:
        codes[index] = strings.add(texts[index])
    ranks = np.zeros(len(texts), np.int64)
    ranks[np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)] = np.arange(
        len(texts)
    )
    return codes[indices], ranks[indices]


def _source(
    table: pa.Table, name: str | None, strings: StringTable, what: str
) -> tuple[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The source column as given, its rank among ties, and its code inside operators."""
    if name is None:
        zeros = np.zeros(table.num_rows, np.int64)
        return pa.array(zeros), zeros, zeros
    array = _get(table, name, what)
    if _fits("int", array.type):
        codes = _column(table, name, "int", strings, what)
        return pa.array(codes), codes, codes
    if not _fits("str", array.type):
        raise InputError(
            f"{what}: source column {name!r} has type {array.type}; expected integers or strings: "
            "cast it"
        )
    codes, ranks = _codes(array, strings)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.string()), np.asarray(ranks), codes


def _timestamp(
    table: pa.Table, name: str, what: str, reads_timestamp: bool
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The order column as given, and as int64 of the same order."""
    array = _get(table, name, what)
    if reads_timestamp and pa.types.is_floating(array.type):
        raise InputError(
            f"{what}: the operator reads event.timestamp, an int64, and order column {name!r} "
            f"has type {array.type}: cast it to an integer or a timestamp"
        )
    return array, order_key(array, name, what)


def order_key(array: pa.Array, name: str, what: str) -> npt.NDArray[np.int64]:
    """An order column as int64 of the same order.

    Raises:
        InputError: it is of a type without an order, or holds a NaN.
    """
    of = array.type
    if pa.types.is_floating(of):
        numbers = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(np.isnan(numbers))
        if len(wrong):
            raise InputError(
                f"{what}: order column {name!r} has a NaN in row {wrong[0]}, which has no place in "
                "an order: drop such rows, or give them a time"
            )
        # The usual order-preserving image of a float; + 0.0 makes the two zeros equal.
        bits = (np.ascontiguousarray(numbers) + 0.0).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    if pa.types.is_integer(of) or pa.types.is_temporal(of):
        try:
            plain = array.cast(pa.int32()) if pa.types.is_date32(of) else array
            return np.ascontiguousarray(plain.cast(pa.int64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{what}: order column {name!r} of type {of} does not fit int64 ({error}): cast it"
            ) from None
    raise InputError(
        f"{what}: order column {name!r} has type {of}; expected integers, floats, timestamps or "
        "dates: cast it"
    )


def rows_to_table(
    rows: npt.NDArray[np.int64],
    schema: Schema,
    strings: StringTable,
    keys: Mapping[str, pa.Array] | None = None,
) -> pa.Table:
    """Emitted rows as an Arrow table, which shares no memory with them.

    Args:
        rows: shape (n, 1 + number of columns), int64 words: the event's row, then the values.
        schema: the emit schema.
        strings: table for columns of kind str; a code that is in no table comes out as null.
        keys: the order-key columns of the rows, to be added.
    """
    arrays = []
    for number, kind in enumerate(schema.kinds):
        words = np.array(rows[:, 1 + number], order="C")
        if kind == "float":
            arrays.append(pa.array(words.view(np.float64), from_pandas=False))
        elif kind == "bool":
            arrays.append(pa.array(words != 0))
        elif kind == "str":
            codes, inverse = np.unique(words, return_inverse=True)
            texts = pa.array([strings.text(code) for code in codes.tolist()], pa.string())
            arrays.append(texts.take(pa.array(inverse)))
        else:
            arrays.append(pa.array(words))
    table = pa.Table.from_arrays(arrays, schema=schema.arrow())
    for name, column in (keys or {}).items():
        table = table.append_column(name, column)
    return table


def keys_of(
    events: Events, rows: npt.NDArray[np.int64], first_sequence: int
) -> dict[str, pa.Array]:
    """The order-key columns of a batch's events, by their rows."""
    at = pa.array(rows)
    return {
        "timestamp": events.keys[0].take(at),
        "source": events.keys[1].take(at),
        "sequence": pa.array(rows + first_sequence),
    }
