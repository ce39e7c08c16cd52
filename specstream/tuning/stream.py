"""The events of directories of Parquet files, in order, cut into batches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset

from specstream.columns import compute as pc
from specstream.columns.tables import no_column, one_array
from specstream.definition.operator import Operator
from specstream.errors import InputError
from specstream.files.joined_schema import joined_tables

__all__ = ["Stream", "as_stream", "read_stream"]


@dataclass(frozen=True)
class Stream:
    """Events in order, and the columns that say so.

    Attributes:
        table: the columns that the operator reads, and those of the order key.
        order_by: column of the event time; None: they are in order as they are.
        source: column that tells sources apart, if any.
        left_out: rows of the input that are not in the table.
        by_time: of a pipeline whose phases are all events of one time: no batch ends in one.
    """

    table: pa.Table
    order_by: str | None
    source: str | None
    left_out: int = 0
    by_time: bool = False

    @property
    def about(self) -> str:
        """How much of the input it is."""
        more = f", {self.left_out:,} more left out (--events)" if self.left_out else ""
        return f"{self.count:,} events{more}"

    @property
    def count(self) -> int:
        """Number of events."""
        return int(self.table.num_rows)

    @property
    def order(self) -> dict[str, Any]:
        """How a batch is in order, as options of :meth:`specstream.Engine.process`."""
        order = {"order_by": self.order_by, "source": self.source}
        return {**order, "end": True} if self.by_time else order

    def slice(self, first: int, count: int) -> Stream:
        """Events of it, from ``first`` on."""
        return replace(self, table=self.table.slice(first, count), left_out=0)

    def first(self, count: int) -> pa.Table:
        """So many events, or all where there are fewer."""
        return self.table.slice(0, count)

    def batches(self, events: int) -> list[pa.Table]:
        """Pieces of so many events; a last one of less than half is left out.

        >>> stream = Stream(pa.table({"t": range(7)}), "t", None)
        >>> [batch.num_rows for batch in stream.batches(3)]
        [3, 3]
        >>> [batch.num_rows for batch in stream.batches(4)]
        [4, 3]
        >>> [batch.num_rows for batch in stream.batches(20)]
        [7]
        >>> stream = Stream(pa.table({"t": [1, 2, 2, 2, 3, 4]}), "t", None, by_time=True)
        >>> [batch["t"].to_pylist() for batch in stream.batches(2)]
        [[1, 2, 2, 2], [3, 4]]
        """
        events = max(1, min(events, self.count))
        cuts = [*range(0, self.count, events), self.count]
        if self.by_time:
            times = one_array(self.table[self.order_by])
            changes = pc.not_equal(times[1:], times[:-1])
            begins = np.flatnonzero(np.append(True, changes.to_numpy(zero_copy_only=False)))
            begins = np.append(begins, self.count)
            cuts = np.unique(begins[np.searchsorted(begins, cuts)]).tolist()
        pieces = [self.table.slice(at, end - at) for at, end in pairwise(cuts)]
        if len(pieces) > 1 and 2 * pieces[-1].num_rows < events:
            pieces.pop()
        return pieces


def read_stream(
    paths: Path | dict[str, Path],
    operator: Operator,
    order_by: str | None,
    source: str | None,
    most: int,
) -> Stream:
    """Reads events as ``specstream run`` takes them: files by age, rows by their order key.

    Args:
        paths: a directory of Parquet files, whose columns have been checked; or that of each source
            of a pipeline.
        operator: whose columns are read.
        order_by: column of the event time; None: rows stay as they are in the files.
        source: column that tells sources apart; breaks ties.
        most: rows to read.

    Raises:
        InputError: there are no rows.
    """
    beside = [one for one in (order_by, source) if one is not None]
    given: Any
    if isinstance(paths, Path):
        given, rows = _first(paths, (*operator.event.names, *beside), most)
        where = str(paths)
    else:
        found = {
            name: _first(path, (*operator.sources[name], *beside), most)
            for name, path in paths.items()
        }
        given = {name: table for name, (table, _) in found.items()}
        rows = sum(count for _, count in found.values())
        where = ", ".join(map(str, paths.values()))
    if rows == 0:
        raise InputError(f"--input {where}: its Parquet files have no rows: give some events")
    stream = as_stream(given, operator, order_by, source)
    table = stream.table.slice(0, most)
    return replace(stream, table=table, left_out=rows - table.num_rows)


def as_stream(
    events: Any, operator: Operator, order_by: str | None = None, source: str | None = None
) -> Stream:
    """Events as :meth:`specstream.Engine.process` takes them, in order.

    Args:
        events: a table; of a pipeline with several sources one of each by its name.
        operator: whose columns are read.
        order_by: column of the event time; None: the rows are in order.
        source: column that tells sources apart; breaks ties.

    Raises:
        InputError: a column is missing or has the wrong type, or there are no rows.
    """
    what = f"operator {operator.name!r}"
    table = operator.events_table(events, what, (order_by, source))
    if table.num_rows == 0:
        raise InputError(f"{what}: there are no events to measure with")
    for name in (order_by, operator.source_column(source)):
        if name is not None and name not in table.column_names:
            raise no_column(what, "no column", name, table)
    if order_by is not None:
        names = (order_by, operator.source_column(source))
        keys = [(name, "ascending") for name in names if name is not None]
        table = pc.without_views(table)
        table = table.take(pc.sort_indices(table, sort_keys=keys))
    table = pa.table([one_array(column) for column in table.columns], table.column_names)
    return Stream(table, order_by, source, by_time=bool(operator.event.phases))


def _first(directory: Path, columns: Iterable[str], most: int) -> tuple[pa.Table, int]:
    """The first rows of the files of a directory, and how many there are."""
    found = pyarrow.dataset.dataset(directory, format="parquet")
    files = sorted(found.files, key=lambda name: (Path(name).stat().st_mtime_ns, name))
    names = list(dict.fromkeys(columns))
    tables: list[pa.Table] = []
    rows, left = 0, most
    # Each file by its own schema: that of the first would round and cut what others have.
    for file in files:
        one = pyarrow.dataset.dataset(file, format="parquet")
        rows += one.count_rows()
        if left or not tables:
            tables.append(one.head(left, columns=names))
            left -= tables[-1].num_rows
    return joined_tables(tables, f"--input {directory}", InputError), rows
