"""Rows one by one into a user's function or writer, with the face of Spark's ``foreach``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from specstream.declarations.options import refuses_unknown, shown
from specstream.errors import ConfigurationError

__all__ = ["ForeachSink", "foreach_sink"]


class ForeachSink:
    """Calls a function or a writer for each row; see :func:`foreach_sink`.

    Attributes:
        writer: the function or the writer.
    """

    def __init__(self, writer: Any) -> None:
        self.writer = writer
        self._process: Callable[[Row], object] = getattr(writer, "process", writer)
        self._open = getattr(writer, "open", None)
        self._close = getattr(writer, "close", None)
        for name, method in (("process", self._process), ("open", self._open)):
            if not (callable(method) or (name == "open" and method is None)):
                raise ConfigurationError(
                    f"writer={shown(writer)}: expected a function (row), or an object with "
                    "process(row) and, if need be, open(partition_id, batch_id) and close(error)"
                )

    def __repr__(self) -> str:
        name = getattr(self.writer, "__qualname__", type(self.writer).__qualname__)
        return f"foreach_sink({name})"

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        """Gives the writer one batch."""
        at = f"{self!r}, batch {batch_id}"
        with _noted(at):
            wanted = self._open is None or self._open(0, batch_id)
        error: BaseException | None = None
        try:
            for number, row in enumerate(_rows(table) if wanted else ()):
                with _noted(f"{at}, row {number}"):
                    self._process(row)
        except BaseException as raised:
            error = raised
            raise
        finally:
            if self._close is not None:
                with _noted(at):
                    self._close(error)


@contextlib.contextmanager
def _noted(at: str) -> Iterator[None]:
    """What the writer raises is its own, and stays as it is; a note says where it was."""
    try:
        yield
    except Exception as error:
        error.add_note(at)
        raise


def _rows(table: pa.Table) -> Iterator[Row]:
    """Rows as Spark's ``foreach`` gives them."""
    made = Row(*table.column_names)
    for batch in table.to_batches(max_chunksize=10_000):
        columns = [column.to_pylist() for column in batch.columns]
        yield from (made(*values) for values in zip(*columns, strict=True))


@refuses_unknown
def foreach_sink(writer: Any) -> ForeachSink:
    """A sink that gives the rows of each batch, in order, to a function or a writer.

    A writer is what Spark's ``DataStreamWriter.foreach`` takes, with one call of open and close for
    each batch:

    - ``open(partition_id, batch_id)``, if it is there: the partition is always 0. When it returns
      False, the rows of the batch are left out.
    - ``process(row)``: a :class:`pyspark.sql.Row`.
    - ``close(error)``, if it is there: what process has raised, or None. When it returns, the rows
      must be stored.

    A function, or a writer without open, gets a batch again that was not acknowledged: at least
    once. A writer whose open returns False for a batch that it has stored, and whose close stores
    rows and batch id together, gets every row into its store exactly once.

    Args:
        writer: a function ``(row)``, or an object with such methods.

    Raises:
        ConfigurationError: it is neither.

    >>> import pyarrow as pa, sqlite3
    >>> class Table:
    ...     def __init__(self, database):
    ...         self.database = database
    ...         database.execute("create table counts (count)")
    ...         database.execute("create table batches (id primary key)")
    ...     def open(self, partition_id, batch_id):
    ...         seen = self.database.execute("select 1 from batches where id = ?", [batch_id])
    ...         if seen.fetchone():
    ...             return False
    ...         self.database.execute("insert into batches values (?)", [batch_id])
    ...         return True
    ...     def process(self, row):
    ...         self.database.execute("insert into counts values (?)", [row["count"]])
    ...     def close(self, error):
    ...         self.database.rollback() if error else self.database.commit()
    >>> database = sqlite3.connect(":memory:")
    >>> sink = foreach_sink(Table(database))
    >>> sink(pa.table({"count": [1, 2]}), 0)
    >>> sink(pa.table({"count": [3]}), 1)
    >>> sink(pa.table({"count": [3]}), 1)      # batch 1 again
    >>> database.execute("select count from counts").fetchall()
    [(1,), (2,), (3,)]
    """
    return ForeachSink(writer)
