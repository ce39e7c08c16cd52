"""Python's values that do not fit the column which they are given for: which rows, and why.

Arrow converts a column as a whole or not at all. What has no place in it is left out, and the table
says of which rows that is, in the metadata of its schema: whoever reads the events rejects these.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.columns.conversion import accepts, from_arrow
from specstream.declarations.options import shown
from specstream.declarations.plain_values import plain
from specstream.declarations.schema import Column

__all__ = ["fitting_values", "is_of_objects", "is_taken", "misfits_of", "with_misfits"]

_KEY = b"specstream.misfits"


def is_of_objects(column: Any) -> bool:
    """Whether a column is one of Python's objects, each of its own type."""
    is_array = isinstance(column, np.ndarray) and column.dtype == object
    return is_array or isinstance(column, list | tuple)


def is_taken(values: Any, made: pa.Array, column: Column) -> bool:
    """Whether Arrow has made of the values what the column takes, and has cut off none."""
    if made.null_count == len(made):
        return True
    if pa.types.is_date(made.type) and any(isinstance(one, datetime.datetime) for one in values):
        return False
    return accepts(column, made.type)


def fitting_values(
    values: Sequence[Any], name: str, column: Column
) -> tuple[pa.Array, dict[int, str]]:
    """The values that fit, as a column that is null elsewhere; and what is wrong with the others.

    Raises:
        pyarrow.ArrowException: those that fit make no column.

    >>> from specstream.declarations.schema import Schema
    >>> (column,) = Schema.of({"x": int}, "event").columns
    >>> fitting_values([1, "b"], "x", column)[1]
    {1: "column 'x' is 'b'; expected int"}
    """
    wrong: dict[int, str] = {}
    kept: list[Any] = []
    for row, value in enumerate(map(plain, values)):
        fits = value is None or _fits(value, column)
        kept.append(value if fits else None)
        if not fits:
            is_large = type(value) is int and column.kind in ("int", "float")
            told = f", which does not fit {column.arrow}" if is_large else f"; expected {column}"
            wrong[row] = f"column {name!r} is {shown(value)}{told}"
    if all(value is None for value in kept):
        return pa.nulls(len(kept), column.arrow), wrong
    made = pa.array(kept)
    return (made if accepts(column, made.type) else pa.array(kept, column.arrow)), wrong


def _fits(value: Any, column: Column) -> bool:
    try:
        array = pa.array([value])
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    if array.null_count:
        return True
    if not accepts(column, array.type):
        return False
    wrong = None if column.kind == "str" else from_arrow(array, column)[1]
    return wrong is None or not wrong.any()


def with_misfits(table: pa.Table, misfits: dict[int, str]) -> pa.Table:
    """A table that says which of its rows have values that do not fit, and why."""
    if not misfits:
        return table
    told = json.dumps(misfits).encode()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: told})


def misfits_of(table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
    """The table without what it says of them, and that."""
    metadata = dict(table.schema.metadata or {})
    if _KEY not in metadata:
        return table, {}
    told = json.loads(metadata.pop(_KEY))
    return table.replace_schema_metadata(metadata or None), {
        int(row): reason for row, reason in told.items()
    }
