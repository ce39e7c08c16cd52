"""A sink for notebooks and tests: the rows stay in the memory of the driver."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa

from specstream.declarations.options import refuses_unknown, shown
from specstream.errors import ConfigurationError, SinkError
from specstream.files.joined_schema import joined_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MemorySink", "memory_sink"]


class MemorySink:
    """Keeps the rows of all batches; see :func:`memory_sink`.

    Attributes:
        name: of the temporary view.
    """

    @refuses_unknown
    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ConfigurationError(
                f"name={shown(name)}: expected the name of a temporary view, letters, digits and "
                "_ only"
            )
        self.name = name
        self._batches: dict[int, pa.Table] = {}
        # The sink is called on Spark's thread, and asked on the user's.
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"memory_sink({self.name!r})"

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        """Keeps the rows of one batch, in place of earlier ones of the same batch."""
        with self._guard:
            self._batches[batch_id] = table

    @property
    def batches(self) -> dict[int, pa.Table]:
        """The rows of each batch so far, by batch id."""
        with self._guard:
            return dict(sorted(self._batches.items()))

    def to_arrow(self) -> pa.Table:
        """The rows so far, in the order of the batches; no columns before the first batch.

        A column that came later is null in the rows of batches before.

        Raises:
            SinkError: no type holds what a column has in different batches.
        """
        tables = list(self.batches.values())
        return joined_tables(tables, str(self), SinkError) if tables else pa.table({})

    def view(self, session: SparkSession) -> DataFrame:
        """The rows so far as a DataFrame, and as the temporary view ``name`` of that session.

        Both stand still: call it again for what has come since.

        Raises:
            ConfigurationError: no batch has come, so that the columns are not known.
        """
        table = self.to_arrow()
        if not table.num_columns:
            raise ConfigurationError(
                f"{self!r} has no rows and no columns yet: wait for a batch, as with "
                "query.processAllAvailable()"
            )
        frame = session.createDataFrame(table)
        frame.createOrReplaceTempView(self.name)
        return frame


@refuses_unknown
def memory_sink(name: str) -> MemorySink:
    """A sink that keeps all rows in memory, for notebooks and tests.

    A batch that is run again replaces its rows. The rows are gone when the process ends: a query
    that goes on from a checkpoint begins with an empty sink.

    Args:
        name: of the temporary view that :meth:`MemorySink.view` makes.

    Raises:
        ConfigurationError: ``name`` is no identifier.

    >>> import pyarrow as pa
    >>> sink = memory_sink("counts")
    >>> sink(pa.table({"count": [1, 2]}), 0)
    >>> sink(pa.table({"count": [3]}), 1)
    >>> sink(pa.table({"count": [4]}), 1)      # batch 1 again
    >>> sink.to_arrow()["count"].to_pylist()
    [1, 2, 4]

    ::

        sink.view(session)
        session.sql("select max(count) from counts").show()
    """
    return MemorySink(name)
