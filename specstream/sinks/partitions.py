"""Directories named after the values of columns, as Hive, Spark, pandas and pyarrow read them.

``partition_by=["day", "place"]`` puts a row into ``day=2026-01-05/place=A%2FB``, and the file has
the other columns. Characters that a path or such a name cannot have are written as Hive writes
them, in hexadecimal behind a percent sign. A null and an empty text are both
``__HIVE_DEFAULT_PARTITION__`` there, and come back as a null.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.declarations.options import instance, items, shown
from specstream.errors import ConfigurationError, SinkError

__all__ = ["by_directory", "checked_partition_by", "columns_of", "escaped"]

NONE = "__HIVE_DEFAULT_PARTITION__"
# Those that Hive and Spark escape.
_ODD = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


def escaped(text: str) -> str:
    """A column's name, or one of its values, as part of a directory's name.

    >>> escaped("a/b=50%"), escaped("Zürich"), escaped("")
    ('a%2Fb%3D50%25', 'Zürich', '__HIVE_DEFAULT_PARTITION__')
    """
    return _ODD.sub(lambda found: f"%{ord(found[0]):02X}", text) if text else NONE


def checked_partition_by(given: object) -> tuple[str, ...]:
    """Names of columns.

    Raises:
        ConfigurationError: they are none, or readers would not see the directories.
    """
    expected = f"a list of columns' names: write partition_by=[{shown(given)}]"
    names = items("partition_by", given, expected)
    for name in names:
        instance("partition_by: a column", name, str, "its name")
        if not name or name.startswith((".", "_")):
            raise ConfigurationError(
                f"partition_by: column {name!r}: readers leave out directories whose names begin "
                "with '.' or '_': give the column another name"
            )
    if len(set(names)) < len(names):
        raise ConfigurationError(f"partition_by={shown(given)} has a column twice: give it once")
    return names


def columns_of(directory: str) -> list[str]:
    """The columns that a directory is named after, as they are written there.

    >>> columns_of("day=1/place=A%2FB"), columns_of("")
    (['day', 'place'], [])
    """
    return [one.partition("=")[0] for one in directory.split("/") if one]


def by_directory(table: pa.Table, names: Sequence[str], what: str) -> dict[str, pa.Table]:
    """The rows of each directory, in their order, without the columns that it is named after.

    Args:
        table: the rows.
        names: columns; none: all rows are of the topmost directory.
        what: begins an error.

    Raises:
        SinkError: a column is not there, nothing else is, or its values have no text to be named.

    >>> table = pa.table({"day": ["x", None, "x"], "n": [1, 2, 3]})
    >>> {name: rows["n"].to_pylist() for name, rows in by_directory(table, ["day"], "").items()}
    {'day=x': [1, 3], 'day=__HIVE_DEFAULT_PARTITION__': [2]}
    """
    if not names:
        return {"": table}
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise SinkError(
            f"{what}: partition_by= names column {missing[0]!r}, which the rows have not (columns: "
            f"{', '.join(table.column_names)}): emit it, or leave it out"
        )
    if len(names) == table.num_columns:
        raise SinkError(
            f"{what}: partition_by= names all columns ({', '.join(names)}), and a file needs one: "
            "emit another, or leave one of these out"
        )
    rest = pc.without_views(table.drop_columns(list(names)))
    if not table.num_rows:
        return {}
    codes = np.zeros(table.num_rows, np.int64)
    places = [""]
    for name in names:
        texts = _texts(table[name], name, what).dictionary_encode()
        distinct = texts.dictionary.to_pylist()
        if NONE in distinct:
            raise SinkError(
                f"{what}: column {name!r} of partition_by= has the text {NONE!r}, which readers "
                "take for a null: emit another text"
            )
        values = [f"{escaped(name)}={escaped(text or '')}" for text in distinct]
        values.append(f"{escaped(name)}={NONE}")
        at = pc.fill_null(texts.indices, len(values) - 1).to_numpy(zero_copy_only=False)
        # A null and an empty text are one directory.
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        own = np.array([numbers[value] for value in values])[at]
        used, codes = np.unique(codes * len(numbers) + own, return_inverse=True)
        named = list(numbers)
        places = [
            f"{places[code // len(numbers)]}/{named[code % len(numbers)]}".lstrip("/")
            for code in used.tolist()
        ]
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(places)))
    rows = rest.take(pa.array(order))
    begins = [0, *ends[:-1].tolist()]
    return {
        place: rows.slice(begin, end - begin)
        for place, begin, end in zip(places, begins, ends.tolist(), strict=True)
    }


def _texts(column: pa.ChunkedArray, name: str, what: str) -> pa.Array:
    """The values of a column as a path has them."""
    of = column.type
    if pa.types.is_dictionary(of):
        of = of.value_type
        column = column.cast(of)
    if pa.types.is_nested(of) or pa.types.is_binary(of) or pa.types.is_large_binary(of):
        raise SinkError(
            f"{what}: partition_by= names column {name!r} of type {of}, whose values cannot be "
            "names of directories: name a column of texts, numbers, bools, dates or times"
        )
    return column.cast(pa.string()).combine_chunks()
