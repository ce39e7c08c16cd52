"""The columns of rows as a Delta table has them, checked before anything is written.

Delta has no unsigned integers, and delta-rs makes signed ones of the same width of them; here they
become wider ones. And of some types and values the text that names a partition does not come back
as what it was, a negative decimal even makes the whole table unreadable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from specstream.columns import compute as pc
from specstream.columns.tables import in_utc, whole_microseconds
from specstream.errors import SinkError
from specstream.sinks.kept_types import as_kept, kind_of

__all__ = ["as_delta", "check_names", "check_partitions"]

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def as_delta(rows: pa.Table, known: Any | None, what: str) -> pa.Table:
    """The rows in the types that the table has, or gets.

    Args:
        rows: the rows.
        known: the ``DeltaTable``; None: it is not there yet.
        what: names the sink and the batch in errors.

    Raises:
        SinkError: a column has a type that Delta does not have, is not in the table, or is of a
            type there that does not hold its values; names it.
        pyarrow.ArrowInvalid: a time has nanoseconds that would be cut off.
    """
    rows = in_utc(whole_microseconds(rows))
    if known is not None:
        kept = pa.schema(known.schema().to_arrow())
        for name in rows.column_names:
            if name not in kept.names:
                raise SinkError(
                    f"{what}: the table has no column {name!r} (it has {', '.join(kept.names)}): "
                    "add it to the table (deltalake: DeltaTable(path).alter.add_columns), or give "
                    "a new table"
                )
        return as_kept(rows, {field.name: field.type for field in kept}, what)
    for at, field in enumerate(rows.schema):
        of = _WIDER.get(field.type)
        if of is not None:
            rows = rows.set_column(at, field.with_type(of), rows.column(at).cast(of))
        _check_type(rows.schema.field(at), what)
    return rows


def _check_type(field: pa.Field, what: str) -> None:
    from deltalake import Schema

    try:
        Schema.from_arrow(pa.schema([field]))
    except Exception as error:  # delta-rs raises nothing narrower
        raise SinkError(
            f"{what}: column {field.name!r} is of type {field.type}, which Delta does not have; "
            "expected bools, integers, floats, decimals of up to 38 digits, texts, bytes, dates, "
            "timestamps, or lists, structs and maps of them: convert it to one of these"
        ) from error


def check_names(names: Sequence[str], what: str) -> None:
    """Refuses names of columns that a later merge, which takes upper and lower case for the same,
    could not tell apart or write.

    Raises:
        SinkError: there is one.

    >>> check_names(["name", "Name"], "it")
    Traceback (most recent call last):
    specstream.errors.SinkError: it: columns 'name' and 'Name' differ only in upper and lower \
case, which the table takes for the same: emit one of them by another name
    """
    seen: dict[str, str] = {}
    for name in names:
        if "`" in name:
            raise SinkError(
                f"{what}: column {name!r} has a backtick in its name, with which Delta cannot "
                "merge: emit it by another name"
            )
        if (other := seen.setdefault(name.lower(), name)) != name:
            own = name if name not in _RESERVED else other
            raise SinkError(
                f"{what}: columns {other!r} and {name!r} differ only in upper and lower case, "
                "which the table takes for the same: emit "
                + (f"{own!r}" if {other, name} & _RESERVED else "one of them")
                + " by another name"
            )


_RESERVED = {"timestamp", "source", "sequence", "n", "version", "change"}


def check_partitions(rows: pa.Table, names: Sequence[str], what: str, *, is_new: bool) -> None:
    """Refuses columns of ``partition_by`` whose values would not come back as they are.

    Args:
        rows: the rows.
        names: the columns that the table is partitioned by.
        what: names the sink and the batch in errors.
        is_new: whether the table is made with these rows.

    Raises:
        SinkError: a column is not there, or of a type or with a value that would be another one;
            names it.
    """
    for name in names:
        if name not in rows.column_names:
            raise SinkError(
                f"{what}: partition_by= names column {name!r}, which is not a column of the rows "
                f"({', '.join(rows.column_names)}): emit it, or leave it out"
            )
        column, kind = rows[name], kind_of(rows[name].type)
        begin = f"{what}: partition_by= names column {name!r} of type {column.type}"
        if kind == "bytes" or (kind == "decimal" and is_new):
            raise SinkError(
                f"{begin}, whose values Delta does not give back as they are from the name of a "
                "partition: name another column, or emit a str for it"
            )
        if kind == "decimal" and pc.any(pc.less(column, pa.scalar(0, column.type))).as_py():
            raise SinkError(
                f"{begin}, which has a negative value in the batch: it would make the whole table "
                "unreadable. Give a new table that is partitioned by another column, or by a str"
            )
        if kind == "str":
            texts = pc.unique(column).to_pylist()
            bad = next((text for text in ("", _NO_PARTITION) if text in texts), None)
            if bad is not None:
                raise SinkError(
                    f"{begin}, which has {bad!r} in the batch, and Delta gives that back as null: "
                    "emit another text or None for it, or name another column"
                )
