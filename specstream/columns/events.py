"""Tables in and out: columns as the arrays that workers read, emitted rows as Arrow columns."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.columns.conversion import (
    accepts,
    from_arrow,
    hint,
    in_time_unit,
    of_order,
    order_values,
    target,
    tick_of,
    to_arrow,
)
from specstream.columns.derived import Texts, derived_columns
from specstream.columns.forms import formed_texts
from specstream.columns.misfits import alone, misfits_of
from specstream.columns.rejected_rows import REASON, Policy, RowError, check_no_reason
from specstream.columns.strings import StringTable
from specstream.columns.tables import as_table, no_column, one_array, reading
from specstream.columns.unentered import ColumnTexts, numbers_of
from specstream.declarations.durations import UNIT_NAMES, UNIT_TICKS
from specstream.declarations.options import meant, text
from specstream.declarations.schema import Column, OneOf, Schema
from specstream.errors import InputError

__all__ = [
    "ALL",
    "KEY_COLUMNS",
    "CheckTimes",
    "Events",
    "called",
    "check_int64",
    "check_unit_declared",
    "column",
    "fitting",
    "keys_of",
    "keys_with_firings",
    "order_key",
    "plain_value",
    "read_events",
    "read_value",
    "rows_to_table",
    "some_rows",
]

# Raises InputError where times may not be of a type, and says whose.
CheckTimes = Callable[[pa.DataType, str], None]
ALL = 2**31
KEY_COLUMNS = ("timestamp", "source", "sequence")


def column(option: str, name: object) -> str | None:
    """The name of a column that an option gives, or None.

    Raises:
        ConfigurationError: it is none.
    """
    return None if name is None else text(option, name, "the name of a column or None")


class _Keys(Sequence[pa.Array]):
    """Columns that are made, and brought into the order of the events, when they are asked for.

    Most batches never ask; making them takes as long as running an event, and ordering them as long
    as ordering what the events read.

    Args:
        columns: Arrow's, or the numbers that they are made of.
        order: of the events; None: that of the columns.
    """

    def __init__(
        self, *columns: pa.Array | npt.NDArray[np.int64], order: npt.NDArray[np.int64] | None = None
    ) -> None:
        self._given = columns
        self._order = order
        self._made: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return len(self._given)

    def __getitem__(self, at: Any) -> Any:
        made = self._made.get(at)
        if made is None:
            made = self._given[at]
            if isinstance(made, np.ndarray):
                made = pa.array(made)
            if self._order is not None:
                made = made.take(pa.array(self._order))
            self._made[at] = made
        return made

    def kept(self) -> _Keys:
        """A copy, for longer than the table is there."""
        given = [
            one.copy() if isinstance(one, np.ndarray) else one.take(pa.array(np.arange(len(one))))
            for one in self._given
        ]
        return _Keys(*given, order=self._order)


@dataclass(frozen=True)
class Events:
    """A batch of events, in order, as plain arrays.

    Attributes:
        count: number of events.
        columns: timestamp (int64), source (int64), then those of the schema: int64 for int and str,
            float64 for float, uint8 for bool; then a uint8 for each nullable column, 1 where it is
            null; then those of the derived values; all contiguous and of length ``count``.
        keys: timestamp and source as the table had them, for output and messages, in the order of
            the events.
        positions: row of each event in the table.
        rejected: rows of the table that are no events, as they were given, with the column
            "reason";
            None: there are none.
        starts: where they are phases: which of the events is the first of each, and behind that the
            number of all events; None: each is one event.
        own: how many of the columns go by their number; those behind them go by that of the events
            that phases are made of. Of events it is more than there are columns.
        sequences: of the first event of each phase, where these do not run on.
        members: the events of all phases, in order, and their sequence numbers where these do not
            run on; None: they are no phases.
    """

    count: int
    columns: tuple[npt.NDArray[Any], ...]
    keys: Sequence[pa.Array]
    positions: npt.NDArray[np.int64]
    rejected: pa.Table | None = None
    starts: npt.NDArray[np.int64] | None = None
    own: int = ALL
    sequences: npt.NDArray[np.int64] | None = None
    members: tuple[Events, npt.NDArray[np.int64] | None] | None = None
    texts: Texts = field(default_factory=dict)

    def events_before(self, row: int) -> int:
        """How many events are before the one in that row, or before the phase."""
        return row if self.starts is None else int(self.starts[row])

    def events_in(self, row: int) -> int:
        """How many events are in that row: of what is no phase one."""
        return self.events_before(row + 1) - self.events_before(row)

    def sequence_at(
        self, rows: npt.NDArray[np.int64], first_sequence: int
    ) -> npt.NDArray[np.int64]:
        """Sequence numbers of events, or of the first ones of phases."""
        if self.sequences is not None:
            return self.sequences[rows]
        return first_sequence + (rows if self.starts is None else self.starts[rows])

    def kept(self) -> Events:
        """A copy, for longer than the table is there: whoever gave it may fill it with others.

        Raises:
            InputError: a text is not UTF-8.
        """
        keys = self.keys
        return replace(
            self,
            columns=tuple(one if one.base is None else one.copy() for one in self.columns),
            keys=keys.kept() if isinstance(keys, _Keys) else keys,
            texts={name: of.kept() for name, of in self.texts.items()},
        )

    def take(self, rows: npt.NDArray[np.int64]) -> Events:
        """Some of the events, copied."""
        at = pa.array(rows)
        return Events(
            len(rows),
            tuple(column[rows] for column in self.columns),
            (self.keys[0].take(at), self.keys[1].take(at)),
            self.positions[rows],
            texts={name: texts.take(rows) for name, texts in self.texts.items()},
        )


def read_events(
    table: pa.Table,
    schema: Schema,
    strings: StringTable,
    what: str,
    first_sequence: int,
    *,
    order_by: str | None = None,
    source: str | None = None,
    reads_timestamp: bool = False,
    rejected_rows: Policy = "error",
    check_times: CheckTimes | None = None,
    enters_all: bool = True,
) -> Events:
    """Checks a table against an event schema, orders its rows, and gives their columns.

    With ``order_by``, rows are ordered by (order_by, source, position). Without it they keep their
    order, and the timestamp of an event is its sequence number. With ``rejected_rows="side"``, rows
    that cannot be events are left out. ``check_times`` is asked whether the order column may have
    its type. Without ``enters_all``, strings are not entered of which the schema says that they
    need not be.

    Raises:
        InputError: a column is missing, has another type, has nulls or values that do not fit,
            cannot be ordered by, or has the name of one that is put beside rejected rows.
    """
    if rejected_rows == "side":
        check_no_reason(table.column_names, what)
    if order_by is None and reads_timestamp and schema.time_unit is not None:
        warnings.warn(
            f"{what}: it declares time_unit={schema.time_unit!r} and reads event.timestamp, and "
            "order_by= is not given: event.timestamp is the number of the row; name the column of "
            "times with order_by=",
            stacklevel=_levels_inside(),
        )
    table, misfits = misfits_of(table)
    given = table
    positions = np.arange(table.num_rows)
    reasons: list[str | None] = []
    if misfits:
        if rejected_rows == "error":
            error = _of_misfits(misfits, table.num_rows, what)
            if schema.one_of is not None:
                error = _of_its_source(error, table[schema.one_of.tag], schema.one_of)
            raise error
        reasons = [None] * given.num_rows
        for row, reason in misfits.items():
            reasons[row] = f"row {row}: {reason}"
        positions = np.array([row for row in range(given.num_rows) if row not in misfits], np.int64)
        table = some_rows(table, np.array([one is None for one in reasons], np.bool_), what)
    while True:
        try:
            arrays = [
                read_column(table, name, column, what, *called(what, name, schema.one_of))
                for name, column in schema
            ]
            if schema.one_of is not None:
                _check_kinds(dict(zip(schema.names, arrays, strict=True)), schema.one_of, what)
            source_key = _source(table, source, what)
            time = None
            if order_by is not None:
                time = _time(table, order_by, schema, what, reads_timestamp, check_times)
            break
        except RowError as error:
            if rejected_rows == "error":
                if schema.one_of is not None:
                    raise _of_its_source(error, table[schema.one_of.tag], schema.one_of) from None
                raise
            # One problem at a time: a row that is rejected is not looked at again.
            reasons = reasons or [None] * given.num_rows
            for position in positions[error.wrong].tolist():
                reasons[position] = error.reason
            positions = positions[~error.wrong]
            table = some_rows(table, ~error.wrong, what)

    # Strings last, because those of a row that is left out are not to be remembered.
    columns: list[npt.NDArray[Any]] = []
    texts: dict[str, ColumnTexts] = {}
    literals = {} if enters_all else dict(schema.unentered)
    for name, read in zip(schema.names, arrays, strict=True):
        if name in literals:
            assert read.texts is not None
            with reading(what, name, read.texts.type):
                columns.append(numbers_of(read.texts, literals[name]))
            texts[name] = ColumnTexts(read.texts)
        else:
            columns.append(_values(read, strings, name, what))
    if schema.nullable:
        columns += [
            array.nulls
            for array, (_, column) in zip(arrays, schema, strict=True)
            if column.nullable
        ]
    source_code = _values(source_key, strings, source or "", what)
    count = table.num_rows
    keys: Sequence[pa.Array]
    if time is None:
        timestamp = np.arange(first_sequence, first_sequence + count, dtype=np.int64)
        keys = _Keys(timestamp, source_key.array)
    else:
        timestamp = time[1]
        order = None
        if not _in_order(timestamp, source_key):
            order = np.lexsort((_ranks(source_key), timestamp))
            timestamp, source_code = timestamp[order], source_code[order]
            columns = [column[order] for column in columns]
            texts = {name: of.ordered(order) for name, of in texts.items()}
            positions = positions[order]
        keys = _Keys(time[0], source_key.array, order=order)
    rejected = _rejected(given, reasons, what) if reasons else None
    declared = (timestamp, source_code, *columns)
    derived = derived_columns(schema, declared, strings, texts) if schema.derived else ()
    return Events(count, (*declared, *derived), keys, positions, rejected, texts=texts)


def _of_misfits(misfits: Mapping[int, str], count: int, what: str) -> RowError:
    """The error for rows with values that do not fit."""
    wrong = np.zeros(count, np.bool_)
    wrong[list(misfits)] = True
    reason = misfits[int(wrong.argmax())]
    return RowError(
        lambda row: (
            f"{what}: {row}: {reason}: correct or convert the value before, or use "
            'rejected_rows="side", which sets such rows aside'
        ),
        wrong,
        reason,
    )


def _in_order(timestamp: npt.NDArray[np.int64], source: _Read) -> bool:
    """Whether rows are in the order of (timestamp, source); a fraction of the time of a sort."""
    falls = np.flatnonzero(timestamp[1:] <= timestamp[:-1])
    if len(falls) == 0:
        return True
    if bool((timestamp[falls + 1] < timestamp[falls]).any()):
        return False
    rank = _ranks(source)
    return bool((rank[falls + 1] >= rank[falls]).all())


def _rejected(given: pa.Table, reasons: list[str | None], what: str) -> pa.Table:
    """The rows that have a reason, with it."""
    column = pa.array(reasons, pa.string())
    wrong = column.is_valid().to_numpy(zero_copy_only=False)
    return some_rows(given.append_column(REASON, column), wrong, what)


def some_rows(table: pa.Table, which: npt.NDArray[np.bool_], what: str) -> pa.Table:
    """The rows of a table that ``which`` says, as they are.

    Raises:
        InputError: Arrow cannot pick rows of such a table, because of the type of a column.
    """
    mask = pa.array(which)
    some: list[pa.ChunkedArray] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            some.append(pc.without_views(column).filter(mask))
        except pa.ArrowException as error:
            raise InputError(
                f"{what}: some rows are to be put aside, and Arrow cannot take them out of "
                f"column {name!r} of type {column.type} ({error}): cast it, or leave it out"
            ) from None
    fields = [one.with_type(of.type) for one, of in zip(table.schema, some, strict=True)]
    return pa.table(some, pa.schema(fields, table.schema.metadata))


def _get(table: pa.Table, name: str, what: str) -> pa.Array:
    found = table.schema.get_all_field_indices(name)
    if len(found) != 1:
        problem = "no column" if not found else "more than one column"
        raise no_column(what, problem, name, table)
    column = table.column(found[0])
    with reading(what, name, column.type):
        array = one_array(column)
        if pa.types.is_dictionary(array.type):
            array = pc.without_views(array)  # views that are no dictionary are read as they are
            if array.dictionary.null_count:
                array = array.dictionary_decode()  # so that its nulls are counted
    return array


def called(what: str, name: str, of: OneOf | None) -> tuple[str, str]:
    """Whose a column is, and what its user calls it: each of several sources has its own names."""
    if of is None:
        return what, name
    source, dot, column = name.partition(".")
    is_of_one = dot and source in dict(of.required)
    return (f"{what}, source {source!r}", column) if is_of_one else (what, name)


def _of_its_source(error: RowError, tags: pa.ChunkedArray, of: OneOf) -> RowError:
    """The error with the number that its first row has among those of its source."""
    row = int(error.wrong.argmax())
    source = tags[row].as_py()
    if source not in dict(of.required):
        return error
    tags = pc.without_views(tags)
    number = pc.sum(pc.equal(tags.slice(0, row), source), min_count=0).as_py()
    return error.at(f"row {number} of source {source!r}")


def _check_nulls(
    array: pa.Array, name: str, what: str, called: str | None = None, role: str = ""
) -> None:
    """No row may have a null; ``role``: of an order or source column, whatever is declared."""
    if array.null_count:
        wrong = array.is_null().to_numpy(zero_copy_only=False)
        declare = "" if role else " declare the column ss.nullable(...),"
        raise RowError(
            lambda row: (
                f"{what}: {role}column {(called or name)!r} has "
                f"{array.null_count} null(s), the first in {row}: fill or drop them before the "
                f'operator,{declare} or use rejected_rows="side"'
            ),
            wrong,
            f"column {name!r} is null",
        )


def _no_value(count: int, name: str, whose: str, shown: str, table: pa.Table) -> RowError:
    """The error for a column that has nulls alone: it may be called otherwise.

    Args:
        count: of the rows.
        name: of the column.
        whose: column it is.
        shown: its name in errors.
        table: the rows.
    """
    others = [other for other in table.column_names if other != name]
    rest = (
        f"value of column {shown!r}; {'it has' if count == 1 else 'they have'} "
        f"{', '.join(others) or 'no other column'}: rename or add the column where the rows come "
        f'from, declare it ss.nullable(...), or use rejected_rows="side"{meant(shown, others)}'
    )
    return RowError(
        lambda row: (
            f"{whose}: {row} has no {rest}"
            if count == 1
            else f"{whose}: none of {count:,} rows, from {row} on, has a {rest}"
        ),
        np.ones(count, np.bool_),
        f"column {name!r} is null",
    )


def _check_kinds(columns: Mapping[str, _Read], of: OneOf, what: str) -> None:
    """Whether each row is of a kind, and has what that requires."""
    kinds = pc.without_views(columns[of.tag].array)
    if pa.types.is_dictionary(kinds.type):
        kinds = kinds.dictionary_decode()
    known = pa.array([kind for kind, _ in of.required], kinds.type)
    wrong = ~pc.is_in(kinds, known).to_numpy(zero_copy_only=False)
    if wrong.any():
        given = kinds[int(wrong.argmax())].as_py()
        raise RowError(
            lambda row: (
                f"{what}: column {of.tag!r} has {given!r} in {row}; expected "
                f"{', '.join(kind for kind, _ in of.required)}"
            ),
            wrong,
            f"column {of.tag!r} names no source",
        )
    for kind, required in of.required:
        is_of_kind = pc.equal(kinds, pa.scalar(kind, kinds.type)).to_numpy(zero_copy_only=False)
        for name in required:
            wrong = is_of_kind & (columns[name].nulls != 0)
            if wrong.any():
                whose, own = called(what, name, of)
                count = int(wrong.sum())
                raise RowError(
                    lambda row, whose=whose, own=own, count=count: (  # type: ignore[misc]
                        f"{whose}: column {own!r} has {count} null(s), the first in {row}: fill or "
                        "drop them before the pipeline, declare the column ss.nullable(...), or "
                        'use rejected_rows="side"'
                    ),
                    wrong,
                    f"column {name!r} is null",
                )


class _Read(NamedTuple):
    """A column: numbers, or texts whose codes are still to be found; a nullable one's nulls.

    Of a source that has numbers ``array`` is these as well: whoever asks makes it Arrow's.
    """

    array: Any
    numbers: npt.NDArray[Any]
    texts: pa.Array | None
    nulls: npt.NDArray[np.uint8]


def read_column(
    table: pa.Table, name: str, column: Column, what: str, whose: str, shown: str
) -> _Read:
    """A column of a table, checked and converted.

    Args:
        table: the table.
        name: of the column.
        column: what the operator declares.
        what: the operator, in errors.
        whose: whose column it is, in errors.
        shown: its name in errors.
    """
    array = _get(table, name, what)
    # Of a list of rows a column that none of them has comes as nulls.
    is_empty = not column.nullable and 0 < len(array) == array.null_count
    if is_empty and (pa.types.is_null(array.type) or accepts(column, array.type)):
        raise _no_value(len(array), name, whose, shown, table)
    with reading(whose, shown, array.type):
        return _read(array, name, column, whose, shown)


def fitting(
    array: pa.Array, name: str, column: Column, what: str, called: str | None = None
) -> pa.Array:
    """A column whose type its declaration accepts.

    A column of nulls alone says nothing by its type, which whoever has made it had to choose. A
    nullable one has nulls, whatever that is; of one that is not nullable another type is an error
    of the column, and no matter of its rows.

    Args:
        array: the column.
        name: of it.
        column: what the operator declares.
        what: whose column it is, in errors.
        called: its name in errors, where that is another.

    Raises:
        InputError: it is of another type.
    """
    shown, count = called or name, len(array)
    if count == 0 or (column.nullable and array.null_count == count):
        return pa.nulls(count, column.arrow)
    if accepts(column, array.type):
        return array
    if pa.types.is_null(array.type):
        _check_nulls(array, name, what, called)
    raise InputError(
        f"{what}: column {shown!r} has type {array.type}; the operator declares "
        f"{_declared(column, name, shown)}: "
        f"{_ints_again(array, column) or hint(column, array.type)}"
    )


def _ints_again(array: pa.Array, column: Column) -> str | None:
    """What to do about ints that have become floats because some are missing; None: they are not.

    A cast fails, or makes numbers of what is missing.
    """
    if not (pa.types.is_floating(array.type) and pa.types.is_integer(column.arrow)):
        return None
    missing = array.null_count + (pc.sum(pc.is_nan(array)).as_py() or 0)
    if not missing:
        return None
    declare = "" if column.nullable else ", and declare it ss.nullable(int)"
    return (
        f"pandas makes floats of ints of which some are missing ({missing} here): keep these as "
        f'nulls, .astype("Int64") of the column or df.convert_dtypes(){declare}; or fill or drop '
        f"them, and cast the column to {column.arrow}"
    )


def _read(
    array: pa.Array, name: str, column: Column, what: str, called: str | None = None
) -> _Read:
    """A column, checked and converted.

    Args:
        called: its name in errors, where that is another.
    """
    shown = called or name
    array = fitting(array, name, column, what, called)
    nulls = np.empty(0, np.uint8)
    if column.nullable:
        nulls = array.is_null().to_numpy(zero_copy_only=False).astype(np.uint8)
    else:
        _check_nulls(array, name, what, called)
    if column.kind == "str":
        return _Read(array, np.empty(0), array, nulls)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    numbers, wrong = from_arrow(array, column)
    if wrong is not None and wrong.any():
        first = _shown(array[int(wrong.argmax())])
        by_hand = (
            f"{hint(column, array.type)} yourself, so that you decide what happens to such values"
        )
        advice = "give it values that do" if array.type == column.arrow else by_hand
        raise RowError(
            lambda row: (
                f"{what}: column {shown!r} of type {array.type} does not fit {target(column)} "
                f'({row}: {first}): {advice}, or use rejected_rows="side"'
            ),
            wrong,
            f"column {name!r} does not fit {target(column)}",
        )
    return _Read(array, numbers, None, nulls)


def _declared(column: Column, name: str, called: str) -> str:
    # Each of several sources' columns can be null inside, as it is in the events of others.
    return str(column) if called == name else str(column).removeprefix("nullable ")


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value)
    except (OverflowError, ValueError, KeyError):
        return "out of range"  # a year or a zone that Python has not


def read_value(
    value: Any, name: str, column: Column, strings: StringTable, what: str, of: OneOf | None = None
) -> tuple[Any, bool]:
    """A single Python value as operators read it, and whether it is null.

    Args:
        of: the kinds of events, as of their schema.

    Raises:
        InputError: it does not fit.
    """
    whose, shown = called(what, name, of)
    declares = _declared(column, name, shown)
    message = f"{whose}: column {shown!r} gets {value!r}; the operator declares {declares}"
    try:
        array = alone(value)
    except OverflowError:
        if not accepts(column, pa.int64()):
            raise InputError(message) from None
        raise RowError(
            f"{whose}: column {shown!r} gets {value!r}, which does not fit {target(column)}: give "
            'it a value that does, or use rejected_rows="side"',
            np.ones(1, np.bool_),
            f"column {name!r} does not fit {target(column)}",
        ) from None
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(message) from None
    if not array.null_count and not accepts(column, array.type):
        raise InputError(message)
    read = _read(array, name, column, whose, shown)
    number = _values(read, strings, shown, whose)[0]
    return number.item(), bool(column.nullable and read.nulls[0])


def _values(read: _Read, strings: StringTable, name: str, what: str) -> npt.NDArray[Any]:
    """Numbers of a column; codes where it has texts."""
    if read.texts is None:
        return read.numbers
    with reading(what, name, read.texts.type):
        try:
            return strings.add_all(read.texts)
        except InputError as error:
            raise InputError(f"{what}: column {name!r}: {error}") from None


def _ranks(source: _Read) -> npt.NDArray[np.int64]:
    """Sources in their order: the numbers themselves, or the ranks of the texts."""
    if source.texts is None:
        return source.numbers
    encoded = source.array.dictionary_encode()
    distinct = encoded.dictionary
    ranks = np.empty(len(distinct), np.int64)
    ranks[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
    found: npt.NDArray[np.int64] = ranks[encoded.indices.to_numpy()]
    return found


def _source(table: pa.Table, name: str | None, what: str) -> _Read:
    """The source column as given, and its numbers or texts."""
    if name is None:
        zeros = np.zeros(table.num_rows, np.int64)
        return _Read(zeros, zeros, None, np.empty(0, np.uint8))
    array = _get(table, name, what)
    if pa.types.is_null(array.type) and not len(array):
        array = array.cast(pa.int64())
    _check_nulls(array, name, what, role="source ")
    number, text = Column("int", pa.int64()), Column("str", pa.string())
    with reading(what, name, array.type):
        if accepts(number, array.type):
            read = _read(array, name, number, what)
            return read._replace(array=read.numbers)
        if not accepts(text, array.type) and not pa.types.is_null(array.type):
            raise InputError(
                f"{what}: source column {name!r} has type {array.type}; expected integers or "
                "strings: cast it"
            )
        read = _read(array, name, text, what)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return read._replace(array=array.cast(pa.string()))


def _time(
    table: pa.Table,
    name: str,
    schema: Schema,
    what: str,
    reads_timestamp: bool,
    check_times: CheckTimes | None,
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The order column in the operator's unit, and as int64 of the same order."""
    array = _get(table, name, what)
    if pa.types.is_null(array.type):
        _check_nulls(array, name, what, role="order ")
        check_times = None  # there are no rows
        array = array.cast(pa.int64())
    if of_order(array[:0]) is None:
        raise _no_order(array.type, name, what)
    _check_nulls(array, name, what, role="order ")
    array = _in_unit(array, name, schema.time_unit, what)
    if len(array):
        check_unit_declared(array.type, schema, f"order column {name!r}", what)
    if check_times is not None:
        check_times(array.type, f"order column {name!r}")
    if reads_timestamp:
        check_int64(array.type, f"order column {name!r}", what)
    return array, order_key(array, name, what)


def _in_unit(array: pa.Array, name: str, unit: str | None, what: str) -> pa.Array:
    """The order column in the unit that the operator counts in.

    Raises:
        RowError: a time is not whole in it, or too far for it.
    """
    given = array.type
    array, wrong = in_time_unit(array, unit)
    if wrong is not None:
        rounded = UNIT_NAMES[str(unit)][:-1]
        raise RowError(
            lambda row: (
                f"{what}: order column {name!r} of type {given} does not fit {array.type} ({row}), "
                f"and the operator counts in time_unit={unit!r}: round the column, "
                f"pyarrow.compute.floor_temporal(x, unit={rounded!r}), declare a finer "
                'time_unit=, or use rejected_rows="side"'
            ),
            wrong,
            f"order column {name!r} does not fit {array.type}",
        )
    return array


def check_unit_declared(of: pa.DataType, schema: Schema, whose: str, what: str) -> None:
    """Warns of times that count in a unit, for an operator that goes by their numbers and does not
    say in which: the same operator means something else with a column of another unit.

    Args:
        of: type of the times.
        schema: of the operator's events.
        whose: what has the type, like "order column 'time'".
        what: names the operator.
    """
    tick = tick_of(of)
    if schema.assumed and pa.types.is_integer(of):
        warnings.warn(
            f"{what}: {schema.assumed}, {whose} has type {of}, and unit= is not given: its numbers "
            'are taken for microseconds; say what they count, as in unit="ms"',
            stacklevel=_levels_inside(),
        )
    if not schema.counts_times or schema.time_unit is not None or tick is None:
        return
    unit = next(name for name, length in UNIT_TICKS.items() if length == tick)
    warnings.warn(
        f"{what}: {schema.counts_times}, and does not say in which unit; {whose} has type {of}, so "
        f"they count {UNIT_NAMES[unit]}, and something else with a column of another type: declare "
        'the unit that its numbers are meant in, time_unit="us" of @ss.operator or of a ready '
        "operator, unit= of windows; times are then cast to it. Version 0.4 refuses such an "
        "operator",
        FutureWarning,
        stacklevel=_levels_inside(),
    )


def _levels_inside() -> int:
    """The stacklevel with which the caller's warning names the line of whoever uses the package."""
    frame, levels = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("specstream."):
        frame, levels = frame.f_back, levels + 1
    return levels


def check_int64(of: pa.DataType, whose: str, what: str) -> None:
    """Refuses times of floats, for an operator that goes by their number."""
    if pa.types.is_floating(of):
        raise InputError(
            f"{what}: the operator goes by event.timestamp, an int64 (it reads it, or has timers "
            f"or entries that expire), and {whose} has type {of}: cast it to an integer or a "
            "timestamp"
        )


def sequence_numbers(table: Any, name: str, what: str) -> npt.NDArray[np.int64]:
    """A column of sequence numbers of tentative events.

    Raises:
        InputError: it is not there, or holds something else.
    """
    found = _get(as_table(table, what), name, what)
    if not pa.types.is_integer(found.type) or found.null_count:
        raise InputError(
            f"{what}: column {name!r}, the events' sequence numbers, is of type {found.type} with "
            f"{found.null_count} null(s); expected integers, one for each event"
        )
    numbers = found.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if len(numbers) and numbers.min() < 0:
        raise InputError(
            f"{what}: column {name!r} holds the sequence number {numbers.min()}; expected 0 or more"
        )
    result: npt.NDArray[np.int64] = numbers
    return result


def order_key(array: pa.Array, name: str, what: str) -> npt.NDArray[np.int64]:
    """An order column as int64 of the same order.

    Raises:
        InputError: it is of a type without an order, or holds a NaN.
    """
    of = array.type
    with reading(what, name, of):
        found = of_order(array)
    if found is None:
        raise _no_order(of, name, what)
    numbers, wrong = found
    if wrong is None or not wrong.any():
        return numbers
    first = _shown(array[int(wrong.argmax())])
    if pa.types.is_floating(of):
        raise RowError(
            lambda row: (
                f"{what}: order column {name!r} has a NaN in {row}, which has no place in "
                'an order: drop such rows, give them a time, or use rejected_rows="side"'
            ),
            wrong,
            f"order column {name!r} is NaN",
        )
    raise RowError(
        lambda row: (
            f"{what}: order column {name!r} of type {of} does not fit int64 ({row}: {first}): "
            'cast it, or use rejected_rows="side"'
        ),
        wrong,
        f"order column {name!r} does not fit int64",
    )


def _no_order(of: pa.DataType, name: str, what: str) -> InputError:
    return InputError(
        f"{what}: order column {name!r} has type {of}; expected integers, floats, timestamps or "
        "dates: cast it"
    )


def keys_with_firings(
    rows: npt.NDArray[np.int64],
    of_events: Callable[[npt.NDArray[np.int64]], dict[str, pa.Array]],
    firings: Sequence[tuple[int, int]],
) -> dict[str, pa.Array]:
    """The order-key columns of emitted rows, of which some are of timers.

    Args:
        rows: the events' rows, and of the timer that has fired as number n INT64_MIN + n.
        of_events: gives the columns of events.
        firings: number and time of those timers at least, in the order of their numbers.
    """
    is_fired = rows < -(2**62)
    found = of_events(rows[~is_fired])
    if not is_fired.any():
        return found
    numbers = rows[is_fired] ^ np.int64(-(2**63))
    known = np.array(firings, np.int64).reshape(-1, 2)
    times = known[np.searchsorted(known[:, 0], numbers), 1]
    of_type = found["timestamp"].type
    fired = {
        "timestamp": order_values(times, of_type),
        "source": pa.nulls(len(numbers), found["source"].type),
        "sequence": pa.array(numbers),
    }
    # Behind the events; this brings each row back to its place.
    back = pa.array(np.argsort(np.argsort(is_fired, kind="stable"), kind="stable"))
    return {name: _both(found[name], fired[name]).take(back) for name in found}


def _both(one: pa.Array, other: pa.Array) -> pa.Array:
    of = other.type if pa.types.is_integer(other.type) else one.type
    parts = [part for half in (one, other) for part in _pieces(half.cast(of))]
    return pa.concat_arrays(parts)


def _pieces(array: Any) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]


def rows_to_table(
    rows: npt.NDArray[np.int64],
    schema: Schema,
    strings: StringTable,
    keys: Mapping[str, pa.Array] | None = None,
) -> pa.Table:
    """Emitted rows as an Arrow table, which shares no memory with them.

    Args:
        rows: shape (n, ``schema.row_words``), int64 words: the event's row, the values, the nulls,
            the parts of formatted strings.
        schema: the emit schema.
        strings: table for columns of kind str; a code that is in no table comes out as null.
        keys: the order-key columns of the rows, to be added.
    """
    arrays = []
    null_bits = schema.null_bits
    formed = formed_texts(rows, schema, strings) if schema.forms else {}
    for number, column in enumerate(schema.columns):
        words = np.array(rows[:, 1 + number], order="C")
        if column.kind == "str":
            codes, inverse = np.unique(words, return_inverse=True)
            texts = strings.texts(codes).take(pa.array(inverse))
            if number in formed:
                which, made = formed[number]
                texts = pc.replace_with_mask(texts, pa.array(which), pa.array(made, texts.type))
            arrays.append(texts.cast(pa.string()))
        else:
            arrays.append(to_arrow(words, column))
        if number in null_bits:
            word, bit = null_bits[number]
            null = pa.array(rows[:, word] >> bit & 1 != 0)
            arrays[-1] = pc.if_else(null, pa.scalar(None, arrays[-1].type), arrays[-1])
    of = schema.arrow()
    for name, key in (keys or {}).items():
        of = of.append(pa.field(name, key.type))
        arrays.append(key)
    return pa.Table.from_arrays(arrays, schema=of)


def plain_value(value: Any, column: Column, strings: StringTable) -> Any:
    """An element of a column, or an emitted word, as a plain Python value."""
    if column.kind == "str":
        return strings.text(int(value))
    if column.kind == "bool":
        return bool(value)
    if column.is_plain:
        return value.item()
    try:
        return to_arrow(np.array([value]), column)[0].as_py()
    except (OverflowError, ValueError):
        return int(value)  # no year that Python has


def keys_of(
    events: Events, rows: npt.NDArray[np.int64], first_sequence: int
) -> dict[str, pa.Array]:
    """The order-key columns of a batch's events, by their rows."""
    at = pa.array(rows)
    return {
        "timestamp": events.keys[0].take(at),
        "source": events.keys[1].take(at),
        "sequence": pa.array(events.sequence_at(rows, first_sequence)),
    }
