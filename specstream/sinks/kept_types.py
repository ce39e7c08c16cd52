"""Whether the columns that a table has hold the values of new rows exactly.

After a change of the operator an emitted column may be of another type than in the rows that are
there. Databases and table formats then convert silently, "007" to 7 or 2.5 to 2. Here the rule is
one for all sinks: the kind stays, and a narrower type of the same kind is checked by the values.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from specstream.columns import compute as pc
from specstream.errors import SinkError

__all__ = ["as_kept", "kind_of"]


def kind_of(of: pa.DataType) -> str:
    """The kind of a type: types of one kind differ only in how much they hold.

    >>> kind_of(pa.int8()) == kind_of(pa.uint64()), kind_of(pa.float32()), kind_of(pa.bool_())
    (True, 'float', 'bool')
    >>> kind_of(pa.dictionary(pa.int8(), pa.large_string())), kind_of(pa.list_(pa.int8()))
    ('str', 'list<int>')
    """
    is_ = pa.types
    if is_.is_dictionary(of):
        return kind_of(of.value_type)
    if is_.is_timestamp(of):
        return "timestamp with time zone" if of.tz else "timestamp without time zone"
    if is_.is_list(of) or is_.is_large_list(of) or is_.is_fixed_size_list(of):
        return f"list<{kind_of(of.value_type)}>"
    if is_.is_struct(of):
        return f"struct<{', '.join(f'{one.name}: {kind_of(one.type)}' for one in of)}>"
    if is_.is_map(of):
        return f"map<{kind_of(of.key_type)}, {kind_of(of.item_type)}>"
    return next((kind for kind, test in _KINDS if test(of)), str(of))


_KINDS = (
    ("bool", pa.types.is_boolean),
    ("int", pa.types.is_integer),
    ("float", pa.types.is_floating),
    ("decimal", pa.types.is_decimal),
    (
        "str",
        lambda of: (
            pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of)
        ),
    ),
    (
        "bytes",
        lambda of: (
            pa.types.is_binary(of)
            or pa.types.is_large_binary(of)
            or pa.types.is_fixed_size_binary(of)
            or pa.types.is_binary_view(of)
        ),
    ),
    ("date", pa.types.is_date),
    ("time", pa.types.is_time),
)
_NUMBERS = ("int", "float", "decimal")


def as_kept(
    rows: pa.Table,
    kept: Mapping[str, pa.DataType],
    what: str,
    said: Mapping[str, str] | None = None,
) -> pa.Table:
    """The rows, with their numbers in the types that the table's columns have.

    Args:
        rows: the rows; a column that is not in ``kept`` stays as it is.
        kept: the types of the table's columns.
        what: names the sink and the batch in errors.
        said: the types as the table's own language has them, where that is another.

    Raises:
        SinkError: a column is of another kind, or has a value that the table's type does not hold;
            names the column and both types.

    >>> as_kept(pa.table({"n": [7]}), {"n": pa.int32()}, "it")["n"].type
    DataType(int32)
    >>> as_kept(pa.table({"n": ["007"]}), {"n": pa.int64()}, "it")
    Traceback (most recent call last):
    specstream.errors.SinkError: it: column 'n' is int64 in the table, and the rows have string, \
which the table cannot hold as it is: emit 'n' as int again, or give a new table. Nothing of the \
batch is written
    """
    for at, name in enumerate(rows.column_names):
        column, of = rows.column(at), kept.get(name)
        if of is None or column.type == of or column.null_count == len(column):
            continue
        own, there = kind_of(column.type), kind_of(of)
        if own != there and (own, there) != ("int", "decimal"):
            raise _misfit(what, name, of, column.type, "which the table cannot hold as it is", said)
        if there not in _NUMBERS:
            continue
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            fitting = column.cast(of)
            fits = there != "float" or _are_equal(fitting, column)
        except pa.ArrowInvalid:
            fits = False
        if not fits:
            why = "with values that the table's type does not hold exactly"
            raise _misfit(what, name, of, column.type, why, said)
        rows = rows.set_column(at, rows.schema.field(at).with_type(of), fitting)
    return rows


def _are_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Whether floats are the same numbers; every NaN is the same."""
    one, other = one.cast(pa.float64()), other.cast(pa.float64())
    both_nan = pc.and_(pc.is_nan(one), pc.is_nan(other))
    return pc.all(pc.or_(pc.equal(one, other), both_nan)).as_py() is not False


def _misfit(
    what: str,
    name: str,
    kept: pa.DataType,
    own: pa.DataType,
    why: str,
    said: Mapping[str, str] | None,
) -> SinkError:
    there = (said or {}).get(name, str(kept))
    return SinkError(
        f"{what}: column {name!r} is {there} in the table, and the rows have {own}, {why}: emit "
        f"{name!r} as {kind_of(kept)} again, or give a new table. Nothing of the batch is written"
    )
