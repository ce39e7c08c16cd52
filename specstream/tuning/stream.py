"""The events of a directory of Parquet files, in order, cut into batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset

from specstream.columns import compute as pc
from specstream.errors import InputError
from specstream.operator.operator import Operator

__all__ = ["Stream", "read_stream"]


@dataclass(frozen=True)
class Stream:
    """Events in order, and the columns that say so.

    Attributes:
        table: the columns that the operator reads, and those of the order key.
        order_by: column of the event time.
        source: column that tells sources apart, if any.
        left_out: rows of the input that are not in the table.
    """

    table: pa.Table
    order_by: str
    source: str | None
    left_out: int = 0

    @property
    def count(self) -> int:
        """Number of events."""
        return int(self.table.num_rows)

    @property
    def order(self) -> dict[str, str | None]:
        """The columns of the order key, as options of :meth:`specstream.Engine.process`."""
        return {"order_by": self.order_by, "source": self.source}

    def slice(self, first: int, count: int) -> Stream:
        """Events of it, from ``first`` on."""
        return Stream(self.table.slice(first, count), self.order_by, self.source)

    def batches(self, events: int) -> list[pa.Table]:
        """Pieces of so many events; a last one of less than half is left out.

        >>> stream = Stream(pa.table({"t": range(7)}), "t", None)
        >>> [batch.num_rows for batch in stream.batches(3)]
        [3, 3]
        >>> [batch.num_rows for batch in stream.batches(4)]
        [4, 3]
        >>> [batch.num_rows for batch in stream.batches(20)]
        [7]
        """
        events = max(1, min(events, self.count))
        pieces = [self.table.slice(at, events) for at in range(0, self.count, events)]
        if len(pieces) > 1 and 2 * pieces[-1].num_rows < events:
            pieces.pop()
        return pieces


def read_stream(
    directory: Path,
    operator: Operator,
    order_by: str,
    source: str | None,
    most: int,
) -> Stream:
    """Reads events as ``specstream run`` takes them: files by age, rows by their order key.

    Args:
        directory: of Parquet files, whose columns have been checked.
        operator: whose columns are read.
        order_by: column of the event time.
        source: column that tells sources apart; breaks ties.
        most: rows to read.

    Raises:
        InputError: there are no rows, or the operator is a pipeline with phases by time.
    """
    if operator.event.phases:
        raise InputError(
            f"pipeline {operator.name!r} has phases by time, and these events are cut into batches "
            'anywhere: measure it with phases="event"'
        )
    found = pyarrow.dataset.dataset(directory, format="parquet")
    files = sorted(found.files, key=lambda name: (Path(name).stat().st_mtime_ns, name))
    dataset = pyarrow.dataset.dataset(files, format="parquet")
    columns = dict.fromkeys((*operator.event.names, order_by, *([source] if source else [])))
    rows = dataset.count_rows()
    table = dataset.head(most, columns=list(columns))
    if table.num_rows == 0:
        raise InputError(f"--input {directory}: its Parquet files have no rows: give some events")
    keys = [(name, "ascending") for name in (order_by, source) if name is not None]
    table = table.take(pc.sort_indices(table, sort_keys=keys)).combine_chunks()
    return Stream(table, order_by, source, rows - table.num_rows)
