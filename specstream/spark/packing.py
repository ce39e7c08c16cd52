"""Rows on their way through Spark as Arrow, many rows to one binary value.

Spark hands a stateful Python function its rows one by one: it makes a tuple of each and a pandas
frame of the tuples, in which an integer column with a null is a column of floats. So rows are
packed before, in the partitions that they come from, each piece a small Arrow stream with its own
schema, and unpacked behind it. Spark moves few large values and the types stay what they were.

A shuffle has no order. So a piece says where it was: in which partition, and where in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from specstream.files.arrow_stream import stream_of
from specstream.files.untrusted import read_table

__all__ = [
    "MARK",
    "MOST_ROWS",
    "empty_table",
    "pack",
    "pack_marked",
    "pack_rows",
    "quoted",
    "to_bytes",
    "to_table",
    "unpack",
]

# In one piece; and what a task holds before it packs.
MOST_ROWS = 100_000
# A piece that each partition with rows has beside those of its shards; no shard has this number.
MARK = -1
# Positions within a partition; the partition's number is above them.
POSITION_BITS = 33

SCHEMA = "shard int, position long, rows binary"
_ARROW = pa.schema([("shard", pa.int32()), ("position", pa.int64()), ("rows", pa.binary())])


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    return bytes(stream_of(table))


def to_table(piece: bytes) -> pa.Table:
    """The table of :func:`to_bytes`.

    Raises:
        SnapshotError: it is none.
    """
    return read_table(piece, "a piece of rows from Spark")


def pack(
    frame: DataFrame, columns: Iterable[str], shard: Column, *, marked: bool = False
) -> DataFrame:
    """The rows as pieces: shard, position, rows. Those of a piece have the same shard.

    Args:
        frame: the rows.
        columns: which of its columns.
        shard: each row's.
        marked: with an empty piece for the shard :data:`MARK` wherever there are rows.
    """
    names = list(columns)
    # mapInArrow looks its columns up by name, and takes a dot for the field of a struct.
    plain = [F.col(quoted(name)).alias(f"column {at}") for at, name in enumerate(names)]
    packing = partial(pack_marked if marked else pack_rows, names=names)
    return frame.select(shard.cast("int").alias("shard"), *plain).mapInArrow(packing, SCHEMA)


def quoted(column: str) -> str:
    """A column's name as Spark reads it."""
    # Without backticks Spark would take a dot for the field of a struct.
    return "`" + column.replace("`", "``") + "`"


def empty_table(frame: DataFrame) -> pa.Table:
    """A table without rows, of the types in which Spark hands over a DataFrame's columns."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    # Since 4.2 it asks for the zone; before, instants are in UTC.
    named: Any = {"timezone": zone} if "timezone" in signature(to_arrow_schema).parameters else {}
    fields = [
        field.with_type(pa.timestamp(field.type.unit, zone))
        if pa.types.is_timestamp(field.type) and field.type.tz is not None
        else field
        for field in to_arrow_schema(frame.schema, **named)
    ]
    return pa.schema(fields).empty_table()


def pack_rows(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.RecordBatch]:
    """Packs one partition, whose first column is the shard; ``names`` are those of the others."""
    context = TaskContext.get()
    position = (context.partitionId() if context is not None else 0) << POSITION_BITS
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= MOST_ROWS:
            yield _pieces(held, position, names)
            held, rows, position = [], 0, position + 1
    if rows:
        yield _pieces(held, position, names)


def pack_marked(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.RecordBatch]:
    """:func:`pack_rows`, and a mark before the first piece."""
    for number, pieces in enumerate(pack_rows(batches, names)):
        if number == 0:
            yield pa.RecordBatch.from_pylist(
                [{"shard": MARK, "position": 0, "rows": b""}], schema=_ARROW
            )
        yield pieces


def _pieces(batches: list[pa.RecordBatch], position: int, names: list[str]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches)
    shards = table.column(0).to_numpy()
    table = table.remove_column(0).rename_columns(names)
    order = np.argsort(shards, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        table = table.take(pa.array(order))
    found, starts = np.unique(shards[order], return_index=True)
    ends = [*starts[1:], len(order)]
    pieces = [
        to_bytes(table.slice(start, end - start)) for start, end in zip(starts, ends, strict=True)
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(found, pa.int32()),
            pa.array([position] * len(found), pa.int64()),
            pa.array(pieces, pa.binary()),
        ],
        schema=_ARROW,
    )


def unpack(column: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: the rows of the pieces in a column."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch.column(column):
                yield from to_table(piece.as_py()).to_batches()

    return rows
