"""Tables as users have them, and their rows and columns, as Arrow tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.columns.conversion import accepts
from specstream.columns.misfits import (
    Reads,
    are_alike,
    fitting_values,
    is_of_objects,
    with_misfits,
)
from specstream.declarations.options import meant, shown
from specstream.declarations.plain_values import plain
from specstream.declarations.schema import Column, Schema
from specstream.errors import InputError

__all__ = [
    "as_table",
    "in_utc",
    "in_zones",
    "key_names",
    "no_column",
    "one_array",
    "reading",
    "whole_microseconds",
]

_MOST_TEXT = 2**31 - 1  # bytes of the texts of an array whose offsets have 32 bits
_NO_COLUMN = (pa.ArrowException, ValueError, TypeError, OverflowError)
# What has one of these is an array of a library's, and no collection of Python's.
_OF_ARRAYS = ("dtype", "__array__", "__arrow_array__", "__arrow_c_array__", "__arrow_c_stream__")
_ACCEPTED = (
    "a table of pyarrow, pandas, polars, DuckDB or whatever else speaks the Arrow interface "
    "(__arrow_c_stream__), a dict of arrays, or a list of rows: dicts, objects of a dataclass, "
    "named tuples"
)


def as_table(
    data: Any,
    what: str,
    columns: Iterable[str | None] = (),
    event: Schema | None = None,
    order_by: str | None = None,
    source: str | None = None,
    goes_by_time: bool = False,
) -> pa.Table:
    """A table from what users have.

    Args:
        data: a pyarrow Table, RecordBatch or RecordBatchReader; anything that speaks the Arrow
            interface, like a frame of polars or a relation of DuckDB; a pandas frame; a dict of
            arrays; a list or tuple of rows, each a dict, an object of a dataclass, a named tuple.
        what: the operator, in errors.
        columns: that a list has, whatever its rows have.
        event: what its columns are declared as; what of Python's values does not fit is left out,
            and the table says of which rows (:mod:`specstream.columns.misfits`).
        order_by: the column of the times, if it is read; one of a dictionary is decoded.
        source: the column of the sources, if it is read.
        goes_by_time: the operator goes by the times' numbers.

    Raises:
        InputError: it is none of these, or its columns differ in length.

    >>> as_table([{"x": 1}, {"x": 2, "y": "b"}], "operator").to_pydict()
    {'x': [1, 2], 'y': [None, 'b']}
    """
    read: dict[str, Column | Reads] = {}
    if source is not None:
        read[source] = Reads.source()
    if order_by is not None:
        read[order_by] = Reads.order(goes_by_time)
    read |= {} if event is None else dict(event)
    if isinstance(data, pa.Table):
        table = data
    elif isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    elif isinstance(data, Mapping):
        table = _of_columns(data, what, read)
    elif type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
        names = list(map(_name, data.columns))
        _check_index(data.index.names, names, read, what)
        table = _of_columns(data, what, read, names)
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        table = _of_arrow(data, what)
    elif isinstance(data, list | tuple) and not hasattr(data, "_fields"):
        table = _of_rows(data, what, columns, read)
    else:
        raise InputError(f"{what}: got {_named(data)}; expected {_ACCEPTED}")
    return _decoded(_in_few_chunks(table), order_by, what)


def key_names(given: Sequence[str | None]) -> tuple[str | None, str | None]:
    """The names of the columns of times and of sources; None: there is none.

    >>> key_names(["time"])
    ('time', None)
    """
    order_by, source, *_ = (*given, None, None)
    return order_by, source


def _in_few_chunks(table: pa.Table) -> pa.Table:
    """A table without chunks of no rows. Of those that came through the C interface Arrow joins
    none that are a slice."""
    if all(len(chunk) for column in table.columns for chunk in column.chunks):
        return table
    columns = [pa.chunked_array(_chunks(column), column.type) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _chunks(column: pa.ChunkedArray) -> list[pa.Array]:
    return [chunk for chunk in column.chunks if len(chunk)]


def _decoded(table: pa.Table, order_by: str | None, what: str) -> pa.Table:
    """A table whose order column is no dictionary, of which values have no order."""
    places = [] if order_by is None else table.schema.get_all_field_indices(order_by)
    for at in places:
        field = table.schema.field(at)
        if pa.types.is_dictionary(field.type):
            with reading(what, field.name, field.type):
                chunks = [pc.without_views(one).dictionary_decode() for one in table[at].chunks]
                column = pa.chunked_array(chunks, field.type.value_type)
            table = table.set_column(at, field.with_type(column.type), column)
    return table


def in_zones(table: pa.Table, expected: pa.Schema) -> pa.Table:
    """A table whose timestamps are in the zones that a schema has for them; instants stay.

    Rows that were recorded may be older than the zone of their column.

    >>> old = pa.table({"at": pa.array([0], pa.timestamp("us"))})
    >>> in_zones(old, pa.schema({"at": pa.timestamp("us", "UTC")}))["at"].type
    TimestampType(timestamp[us, tz=UTC])
    """
    for number, field in enumerate(table.schema):
        at = expected.get_field_index(field.name)
        of = field.type if at < 0 else expected.field(at).type
        if (
            pa.types.is_timestamp(field.type)
            and pa.types.is_timestamp(of)
            and (field.type.unit == of.unit and field.type.tz != of.tz)
        ):
            table = table.set_column(number, field.with_type(of), table.column(number).cast(of))
    return table


def in_utc(table: pa.Table) -> pa.Table:
    """A table whose timestamps with a zone are in UTC; instants stay.

    >>> in_utc(pa.table({"at": pa.array([0], pa.timestamp("s", "Europe/Berlin"))}))["at"].type
    TimestampType(timestamp[s, tz=UTC])
    """
    fields: list[Any] = [
        field.with_type(pa.timestamp(field.type.unit, "UTC"))
        if pa.types.is_timestamp(field.type) and field.type.tz
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def whole_microseconds(table: pa.Table) -> pa.Table:
    """A table whose timestamps count microseconds, as those of Spark and Delta do.

    Raises:
        pyarrow.ArrowInvalid: nanoseconds would be cut off, or the time is too far.
    """
    fields: list[Any] = [
        field.with_type(pa.timestamp("us", field.type.tz))
        if pa.types.is_timestamp(field.type)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


class reading:
    """What Arrow cannot do with a column of the user's is an error that names the column.

    Args:
        what: the operator.
        name: of the column.
        of: its type.

    >>> with reading("operator 'op'", "x", pa.null()):
    ...     pa.array([1]).cast(pa.null())
    Traceback (most recent call last):
    specstream.errors.InputError: operator 'op': Arrow cannot read column 'x' of type null
    (Unsupported cast from int64 to null using function cast_null): convert it to another type
    """

    __slots__ = ("_name", "_of", "_what")

    def __init__(self, what: str, name: str, of: pa.DataType) -> None:
        self._what, self._name, self._of = what, name, of

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # An index may be beyond its dictionary: nobody has looked before.
        is_known = isinstance(error, pa.ArrowException | IndexError)
        if is_known and not isinstance(error, MemoryError):
            raise InputError(
                f"{self._what}: Arrow cannot read column {self._name!r} of type {self._of} "
                f"({error}): convert it to another type"
            ) from error


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece.

    Dictionaries of chunks need not go into one: its index type may be too small for the union, and
    Arrow unites none that has nulls or nested values. Then the values themselves are joined.

    >>> parts = [pa.array([f"{letter}{at}" for at in range(100)]) for letter in "ab"]
    >>> parts = [pa.DictionaryArray.from_arrays(pa.array(range(100), "int8"), one) for one in parts]
    >>> one_array(pa.chunked_array(parts))[150]
    <pyarrow.StringScalar: 'b50'>
    """
    chunks = _chunks(column)
    if len(chunks) == 1:
        return chunks[0]
    of = column.type
    if pa.types.is_dictionary(of):
        try:
            return _joined(column)
        except pa.ArrowException:
            decoded = [pc.without_views(one).dictionary_decode() for one in chunks]
            # Arrow makes no empty dictionary of some types.
            column = pa.chunked_array(decoded) if decoded else pa.chunked_array([], of.value_type)
            of = column.type
    if pa.types.is_string(of) and column.nbytes >= _MOST_TEXT:
        column = column.cast(pa.large_string())
    return _joined(column)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    chunks = _chunks(column)
    return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def no_column(what: str, problem: str, name: str, table: pa.Table) -> InputError:
    """The error for a column that is not there, or not once.

    Args:
        what: the operator.
        problem: what the batch has of such columns: "no column".
        name: of the column.
        table: the batch.
    """
    return InputError(
        f"{what}: the batch has {problem} {name!r}; it has "
        f"{', '.join(table.column_names) or 'none'}: "
        f"{'rename or add the column' if problem == 'no column' else 'rename or drop one of them'}"
        f"{meant(name, table.column_names) if problem == 'no column' else ''}"
    )


def _named(data: Any) -> str:
    """What was given, and the step from it to a table where there is one."""
    of = type(data)
    if of.__module__.split(".")[0] == "polars" and hasattr(data, "collect"):
        return f"a {of.__name__} of polars, which is no table before .collect()"
    if of.__module__.startswith("pyspark") and hasattr(data, "toArrow"):
        return f"a {of.__name__} of Spark, which is no table before .toArrow()"
    return of.__name__


def _of_columns(
    data: Any,
    what: str,
    read: Mapping[str, Column | Reads],
    names: list[Any] | None = None,
) -> pa.Table:
    """Columns by their names, those of a pandas frame as well."""
    names = list(map(plain, data)) if names is None else names
    arrays: list[pa.Array] = []
    misfits: dict[int, str] = {}
    for name, (given, column) in zip(names, data.items(), strict=True):
        array, wrong = _arrow_column(what, given, column, read.get(name))
        arrays.append(array)
        misfits = wrong | misfits
    return with_misfits(_arrow_table(what, arrays, names), misfits)


def _check_index(index: Iterable[Any], names: list[str], read: Iterable[str], what: str) -> None:
    """Refuses a pandas frame whose index is a column that is read."""
    known = {_name(one) for one in index if one is not None}
    for name in read:
        if name in known and name not in names:
            raise InputError(
                f"{what}: column {name!r} is the index of the DataFrame, which is not read: give "
                "df.reset_index()"
            )


def _name(given: object) -> str:
    found = plain(given)
    return found if isinstance(found, str) else str(given)


def _of_arrow(data: Any, what: str) -> pa.Table:
    """What the Arrow interface gives."""
    try:
        found = pa.table(data)
    except Exception as error:  # of the library that the data is of, or of Arrow
        raise InputError(
            f"{what}: the {type(data).__name__} gives no table ({type(error).__name__}: "
            f"{shown(str(error))}): give a table, whose columns have names"
        ) from error
    return found


def _of_rows(
    data: Sequence[Any],
    what: str,
    columns: Iterable[str | None],
    read: Mapping[str, Column | Reads],
) -> pa.Table:
    """Rows; what one of them lacks is null in it, whatever the others have."""
    rows = [_row(row, number, what) for number, row in enumerate(data)]
    wanted = [name for name in columns if name is not None]
    if not rows:
        return pa.table({name: pa.nulls(0) for name in wanted})
    names = list(dict.fromkeys([*(name for row in rows for name in row), *wanted]))
    values = {name: [row.get(name) for row in rows] for name in names}
    return _of_columns(values, what, read)


def _row(row: Any, number: int, what: str) -> Mapping[Any, Any]:
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {one.name: getattr(row, one.name) for one in dataclasses.fields(row)}
    names = getattr(row, "_fields", None) or getattr(row, "__fields__", None)  # the latter Spark's
    if isinstance(row, tuple) and names:
        return dict(zip(names, row, strict=True))
    raise InputError(
        f"{what}: row {number} of the list is {shown(row)}, which does not name its columns; "
        f"expected {_ACCEPTED}"
    )


def _arrow_column(
    what: str, name: object, column: Any, of: Column | Reads | None
) -> tuple[pa.Array, dict[int, str]]:
    """One column as Arrow has it, and the rows whose values do not fit what it is read as."""
    if isinstance(column, pa.ChunkedArray):
        column = one_array(column)  # chunks of dictionaries have no common array else
    kind = getattr(column, "dtype", None)
    from_pandas = None
    if type(column).__module__.split(".")[0] == "pandas" and isinstance(kind, np.dtype):
        # A NaN among floats is a number here, not a missing value.
        is_of_floats = isinstance(of, Column) and of.kind == "float"
        from_pandas = kind.kind != "f" and not is_of_floats
        column = column.to_numpy()
    if _is_collection(column):
        column = list(column)
    if isinstance(kind, np.dtype) and not kind.isnative:
        raise InputError(
            f"{what}: column {name!r} is big-endian ({kind.str}): convert it, "
            'column.astype(column.dtype.newbyteorder("="))'
        )
    if not is_of_objects(column):
        try:
            return pa.array(column, from_pandas=from_pandas), {}
        except _NO_COLUMN as error:
            raise _no_array(what, name, column, str(error)) from None
    if are_alike(column, from_pandas):
        try:
            made = _exactly(column, pa.array(column, from_pandas=from_pandas))
            if of is None or made.null_count == len(made) or _takes(of, made.type):
                return made, {}
        except _NO_COLUMN:
            pass
    if any(type(value).__name__ == "NAType" for value in column):  # pandas.NA
        column = [None if type(value).__name__ == "NAType" else value for value in column]
    found, wrong = fitting_values(column, str(name), of or Reads.whatever(), from_pandas)
    if of is None and wrong:
        row, reason = next(iter(wrong.items()))
        return _together(what, name, column, f"row {row}: {reason}"), {}
    return found, wrong


def _together(what: str, name: object, column: Sequence[Any], problem: str) -> pa.Array:
    """What nobody reads as Arrow has it, where it cuts off nothing."""
    if not any(isinstance(value, np.generic) for value in column):
        try:
            made = pa.array(column)
            if not pa.types.is_primitive(made.type) or pa.types.is_decimal(made.type):
                return made
        except _NO_COLUMN:
            pass
    raise _no_array(what, name, column, problem)


def _is_collection(column: Any) -> bool:
    """Whether a column is one of Python's that Arrow would read as a list, and is none."""
    is_list = isinstance(column, (list, tuple, range, str, bytes, Mapping))
    is_array = any(hasattr(column, name) for name in _OF_ARRAYS)
    return isinstance(column, Iterable) and not is_list and not is_array


def _takes(of: Column | Reads, given: pa.DataType) -> bool:
    return of.accepts(given) if isinstance(of, Reads) else accepts(of, given)


def _no_array(what: str, name: object, column: Any, problem: str) -> InputError:
    kind = getattr(column, "dtype", None)
    found = type(column).__name__ if kind is None else f"{type(column).__name__} of {kind}"
    return InputError(
        f"{what}: column {name!r} is no column of a table ({found}: {problem}): give one array per "
        "column, of integers, floats, bools, strings or times that Arrow has"
    )


def _exactly(column: Any, made: pa.Array) -> pa.Array:
    """What Arrow has made of Python's objects of one class, where it goes by their text or cuts
    them off."""
    if pa.types.is_decimal(made.type):
        return pa.array([plain(value) for value in column])
    is_time = pa.types.is_timestamp(made.type) and made.type.unit != "ns"
    if is_time and any(getattr(value, "nanosecond", 0) for value in column):  # of pandas
        return pa.array(column, pa.timestamp("ns", made.type.tz))
    return made


def _arrow_table(what: str, columns: list[pa.Array], names: list[Any]) -> pa.Table:
    try:
        return pa.Table.from_arrays(columns, names)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(
            f"{what}: the columns are no table ({error}): give one array per column, all of one "
            "length, with a string as its name"
        ) from None
