"""Arrow's types as those of PostgreSQL; a table's rows in the types of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from specstream.errors import SinkError

__all__ = ["NAME_BYTES", "Column", "as_table", "columns_of", "identifier", "is_name"]

# By the name that PostgreSQL's catalogue has for a type: what rows are copied as.
_COPIED = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
# What else a column may be that takes all values of a type.
_WIDER = {"int2": ("int4", "int8"), "int4": ("int8",), "float4": ("float8",), "text": ("varchar",)}
_INTEGERS = {"int2": 5, "int4": 10, "int8": 19}  # decimal digits
_MICROSECONDS = 6  # digits of a second that rows have
NAME_BYTES = 63
_IN_WORDS = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
}


@dataclass(frozen=True)
class Column:
    """A column of rows, as PostgreSQL would have it.

    Attributes:
        name: its name.
        arrow: its type in the rows.
        kind: the type's name in the catalogue.
        type: how a statement says it.
    """

    name: str
    arrow: pa.DataType
    kind: str
    type: str


def columns_of(schema: pa.Schema) -> list[Column]:
    """The columns that rows need.

    Raises:
        SinkError: one is of a type that there is none for, or has a name that no column can have;
            names it.

    >>> [one.type for one in columns_of(pa.schema({"a": pa.uint32(), "b": pa.decimal128(9, 2)}))]
    ['bigint', 'numeric(9,2)']
    """
    return [_column(field) for field in schema]


def identifier(name: str) -> str:
    """A name as it stands in a statement."""
    return '"' + name.replace('"', '""') + '"'


def is_name(name: str) -> bool:
    """Whether PostgreSQL takes a name as it is: longer ones it cuts off, without an error.

    >>> [is_name(name) for name in ("a" * 63, "a" * 64, "é" * 32, "")]
    [True, False, False, False]
    """
    return 0 < len(name.encode()) <= NAME_BYTES and "\0" not in name


def _column(field: pa.Field) -> Column:
    if not is_name(field.name):
        raise SinkError(
            f"column {field.name!r} has a name that PostgreSQL does not take as it is; expected 1 "
            f"to {NAME_BYTES} bytes in UTF-8, none of them 0: emit it by another name"
        )
    is_ = pa.types
    of = field.type.value_type if is_.is_dictionary(field.type) else field.type
    kind = next((kind for kind, test in _KINDS if test(of)), None)
    if kind is None:
        raise SinkError(
            f"column {field.name!r} is of type {field.type}, for which there is no column in "
            "PostgreSQL here: emit its parts as columns of their own, or as a text"
        )
    said = _IN_WORDS.get(kind, kind)
    if kind == "timestamp" and of.tz is not None:
        kind = said = "timestamptz"
    if kind == "numeric":
        digits = (20, 0) if is_.is_uint64(of) else (of.precision, of.scale)
        said = f"numeric({digits[0]},{digits[1]})"
    return Column(field.name, field.type, kind, said)


_KINDS = (
    ("bool", pa.types.is_boolean),
    ("int2", lambda of: of in (pa.int8(), pa.int16(), pa.uint8())),
    ("int4", lambda of: of in (pa.int32(), pa.uint16())),
    ("int8", lambda of: of in (pa.int64(), pa.uint32())),
    ("numeric", lambda of: pa.types.is_uint64(of) or pa.types.is_decimal(of)),
    ("float4", lambda of: of in (pa.float16(), pa.float32())),
    ("float8", pa.types.is_float64),
    (
        "text",
        lambda of: pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_null(of),
    ),
    ("bytea", lambda of: pa.types.is_binary(of) or pa.types.is_large_binary(of)),
    ("date", pa.types.is_date),
    ("time", pa.types.is_time),
    ("timestamp", pa.types.is_timestamp),
)


def _takes(said: str, column: Column) -> bool:
    """Whether a column of a type, with its precision, takes all values: PostgreSQL would round.

    >>> amount, at = columns_of(pa.schema({"a": pa.decimal128(9, 2), "t": pa.timestamp("us")}))
    >>> [_takes(said, amount) for said in ("numeric(9,2)", "numeric", "numeric(9,1)")]
    [True, True, False]
    >>> [_takes(said, at) for said in ("timestamp", "timestamp(6)", "timestamp(3)", "date")]
    [True, True, False, False]
    """
    kind, _, within = said.partition("(")
    if kind == "numeric" and not within:
        return column.kind in ("int2", "int4", "int8", "numeric")
    if kind != column.kind:
        return kind in _WIDER.get(column.kind, ())
    if kind == "numeric":
        digits, scale = _digits(within)
        own, own_scale = _digits(column.type.partition("(")[2])
        return scale >= own_scale and digits - scale >= own - own_scale
    if kind in ("time", "timestamp", "timestamptz") and within:
        return _digits(within)[0] >= _MICROSECONDS
    return True


def _advice(said: str, column: Column) -> str:
    """What to do where a column of a type does not take all values of the rows; no statement that
    would change the values that are there.

    >>> amount, count = columns_of(pa.schema({"a": pa.decimal128(19, 1), "n": pa.int64()}))
    >>> _advice("numeric(19,2)", amount)
    'ALTER TABLE ... ALTER COLUMN "a" TYPE numeric(20,2)'
    >>> _advice("float8", count)
    "emit 'n' so that it is double precision: a change of its type might alter values"
    """
    kind, _, within = said.partition("(")
    quoted = identifier(column.name)
    of: str | None = column.type
    using = ""
    if kind == column.kind == "numeric":
        (digits, scale), (own, own_scale) = _digits(within), _digits(column.type.partition("(")[2])
        most = max(scale, own_scale)
        of = f"numeric({max(digits - scale, own - own_scale) + most},{most})"
    elif kind == "numeric" and column.kind in _INTEGERS:
        of = "numeric"  # without digits it takes all
    elif column.kind == "numeric" and kind in _INTEGERS:
        own, own_scale = _digits(column.type.partition("(")[2])
        of = f"numeric({max(own - own_scale, _INTEGERS[kind]) + own_scale},{own_scale})"
    elif {kind, column.kind} == {"timestamp", "timestamptz"}:
        # Without it the times that are there would be taken for those of the session's zone.
        using = f" USING {quoted} AT TIME ZONE 'UTC'"
    elif kind != column.kind and column.kind not in (*_WIDER.get(kind, ()), "text"):
        of = None
    if of is None:
        return (
            f"emit {column.name!r} so that it is {_IN_WORDS.get(kind, said)}: a change of its type "
            "might alter values"
        )
    return f"ALTER TABLE ... ALTER COLUMN {quoted} TYPE {of}{using}"


def _digits(within: str) -> list[int]:
    return [int(one) for one in within.rstrip(")").split(",")]


def as_table(
    rows: pa.Table, columns: Sequence[Column], there: Mapping[str, str], what: str
) -> pa.Table:
    """Rows in the types that the columns of a table are copied from.

    Args:
        rows: the rows.
        columns: theirs.
        there: of the table, names of types by names of columns, with their lengths or precisions
            where they have some, like "numeric(9,2)".
        what: names it in errors.

    Raises:
        SinkError: a column is not there, or of a type that does not take it.

    >>> rows = pa.table({"n": pa.array([1], pa.int32())})
    >>> as_table(rows, columns_of(rows.schema), {"n": "int8", "more": "text"}, "it").schema.types
    [DataType(int64)]
    >>> as_table(rows, columns_of(rows.schema), {"m": "int8"}, "it")
    Traceback (most recent call last):
    specstream.errors.SinkError: it has no column 'n' (it has m): ALTER TABLE ... ADD COLUMN "n" \
integer, or leave it out of the rows
    """
    arrays = []
    for column, array in zip(columns, rows.columns, strict=True):
        said = there.get(column.name)
        if said is None:
            raise SinkError(
                f"{what} has no column {column.name!r} (it has {', '.join(there)}): ALTER TABLE "
                f"... ADD COLUMN {identifier(column.name)} {column.type}, or leave it out of the "
                "rows"
            )
        kind = said.partition("(")[0]
        if not _takes(said, column):
            raise SinkError(
                f"{what}: column {column.name!r} is {_IN_WORDS.get(kind, said)}, and the rows have "
                f"{column.arrow}, which takes {column.type}: {_advice(said, column)}, or give "
                "another table"
            )
        of = _COPIED.get(kind)
        if kind == "numeric" and pa.types.is_integer(column.arrow):
            of = pa.decimal128(20, 0)
        if pa.types.is_dictionary(column.arrow):
            array = array.cast(column.arrow.value_type)
        arrays.append(array if of is None or array.type == of else array.cast(of))
    return pa.table(arrays, names=rows.column_names)
