"""A Delta table, to which each batch is one transaction.

Delta's log has an entry for this very purpose: ``txn``, the identifier of a writer and the version
of what it wrote last. The rows of a batch and ``txn`` with the batch id are one commit, so that a
batch that comes again is known, whatever became of the process that wrote it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark import SparkContext

from specstream.errors import ConfigurationError, SinkError
from specstream.spark.sinks.failing import named

__all__ = ["DeltaSink", "delta_sink"]


class DeltaSink:
    """Appends each batch to a Delta table; see :func:`delta_sink`.

    Attributes:
        path: path or URI of the table.
        app_id: identifies the writer in the table's log; None: the id of the streaming query.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        app_id: str | None = None,
        partition_by: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(
                'delta_sink needs the package deltalake: pip install "specstream[delta]"'
            ) from error
        if app_id is not None and not (isinstance(app_id, str) and app_id):
            raise ConfigurationError(f"app_id={app_id!r}: expected a name or None")
        self.path = os.fspath(path)
        self.app_id = app_id
        self._partition_by = list(partition_by)
        self._storage_options = dict(storage_options or {})

    def __repr__(self) -> str:
        return f"delta_sink({self.path!r})"

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        """Appends the rows of one batch, unless the table has that batch."""
        with named(self, batch_id):
            self._append(table, batch_id)

    def _append(self, table: pa.Table, batch_id: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

        writer = self._writer(batch_id)
        there = DeltaTable.is_deltatable(self.path, self._storage_options)
        known = DeltaTable(self.path, storage_options=self._storage_options) if there else None
        if known is not None:
            last = known.transaction_version(writer)
            if last == batch_id:
                return
            if last is not None and last > batch_id:
                raise SinkError(
                    f"{self!r}, batch {batch_id}: the table has batches up to {last} of app_id "
                    f"{writer!r} already: the query was begun anew, or taken back to an earlier "
                    "batch. Give it another app_id, or restore the table to the version before "
                    "and then give it another app_id"
                )
            if table.num_rows == 0:
                return
        first = 0 if known is None else known.version() + 1
        write_deltalake(
            known or self.path,
            _whole_microseconds(table),
            mode="append",
            partition_by=self._partition_by or None,
            storage_options=None if known else self._storage_options,
            commit_properties=CommitProperties(app_transactions=[Transaction(writer, batch_id)]),
        )
        if "://" not in self.path:
            _to_disk(Path(self.path), first)

    def _writer(self, batch_id: int) -> str:
        """The name under which this query's batches are known in the table's log."""
        if self.app_id is not None:
            return self.app_id
        context = SparkContext._active_spark_context
        query = context and context.getLocalProperty("sql.streaming.queryId")
        if not query:
            raise ConfigurationError(
                f"{self!r}, batch {batch_id}: called outside of a streaming query's callback, "
                "whose id it would use: give delta_sink(path, app_id=...)"
            )
        return str(query)


def _whole_microseconds(table: pa.Table) -> pa.Table:
    """Timestamps as Delta has them; nanoseconds are not cut off in silence."""
    fields: list[Any] = [
        field.with_type(pa.timestamp("us", field.type.tz))
        if pa.types.is_timestamp(field.type)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _to_disk(path: Path, first: int) -> None:
    """Makes the commits of a local table from version ``first`` on survive the machine's crash.

    The library leaves that to the operating system, but Spark acknowledges the batch next.
    """
    log = path / "_delta_log"
    touched = {path, log}
    for commit in log.glob("*.json"):
        if commit.stem.isdigit() and int(commit.stem) >= first:
            touched.add(commit)
            actions = map(json.loads, commit.read_text().splitlines())
            touched |= {
                path / unquote(action["add"]["path"]) for action in actions if "add" in action
            }
    for file in touched | {file.parent for file in touched - {path, log}}:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def delta_sink(
    path: str | os.PathLike[str],
    *,
    app_id: str | None = None,
    partition_by: Sequence[str] = (),
    storage_options: Mapping[str, str] | None = None,
) -> DeltaSink:
    """A sink that appends to a Delta table, each batch in one transaction, exactly once.

    The table's log says which batch came last, so a batch that comes again changes nothing. Needs
    the package deltalake (``pip install "specstream[delta]"``); neither Spark nor Java is used.
    A batch without rows makes the table if it is not there, and no commit otherwise.

    Args:
        path: path or URI of the table, made with the first batch if it is not there.
        app_id: names the writer in the table's log: one for each query that writes to the table,
            and a new one for a query that begins anew. None: the query's own id, which Spark keeps
            in its checkpoint, and which is all that.
        partition_by: columns, when the table is made.
        storage_options: credentials and the like, as deltalake takes them.

    Raises:
        ConfigurationError: deltalake is not installed, or ``app_id`` is no name.
        SinkError: a batch cannot be written; names table and batch.

    >>> import pyarrow as pa, deltalake, tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     sink = delta_sink(path, app_id="counts")
    ...     sink(pa.table({"count": [1, 2]}), 0)
    ...     sink(pa.table({"count": [3]}), 1)
    ...     sink(pa.table({"count": [3]}), 1)      # batch 1 again
    ...     sorted(deltalake.DeltaTable(path).to_pyarrow_table()["count"].to_pylist())
    [1, 2, 3]
    """
    return DeltaSink(
        path, app_id=app_id, partition_by=partition_by, storage_options=storage_options
    )
