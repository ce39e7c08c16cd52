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

from specstream.declarations.options import (
    instance,
    items,
    place,
    refused,
    refuses_unknown,
    shown,
)
from specstream.errors import ConfigurationError, SinkError
from specstream.files.places import is_uri
from specstream.sinks.delta_columns import as_delta, check_partitions
from specstream.sinks.failing import named, of_another_run

__all__ = ["DeltaSink", "delta_sink"]


class DeltaSink:
    """Appends each batch to a Delta table; see :func:`delta_sink`.

    Attributes:
        path: path or URI of the table.
        app_id: names the writer in the table's log.
    """

    @refuses_unknown
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        app_id: str,
        partition_by: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(
                'delta_sink needs the package deltalake: pip install "specstream[delta]"'
            ) from error
        if not isinstance(app_id, str) or not app_id:
            raise ConfigurationError(
                f"app_id={shown(app_id)}: expected a name for this query in the table's log, of "
                "which it is the only user"
            )
        columns = f"a list of columns' names: write partition_by=[{shown(partition_by)}]"
        for name in items("partition_by", partition_by, columns):
            instance("partition_by: a column", name, str, "its name")
        if storage_options is not None:
            instance("storage_options", storage_options, Mapping, texts := "a dict of texts")
            if not all(isinstance(t, str) for item in storage_options.items() for t in item):
                raise refused("storage_options", storage_options, texts)
        self.path = place("path", path)
        self.app_id = app_id
        self._partition_by = list(partition_by)
        self._storage_options = dict(storage_options or {})

    def __repr__(self) -> str:
        return f"delta_sink({self.path!r})"

    @property
    def place(self) -> tuple[str, str]:
        """Equal for two sinks that the table's log cannot distinguish."""
        return place_of(self.path), self.app_id

    def check_first_batch(self, batch_id: int, *, is_new: bool) -> None:
        """Refuses a table that has batches of another run; ``batch_id`` and ``is_new`` are as of
        :meth:`ParquetSink.check_first_batch`."""
        from deltalake import DeltaTable

        with named(self, batch_id):
            if not DeltaTable.is_deltatable(self.path, self._storage_options):
                return
            known = DeltaTable(self.path, storage_options=self._storage_options)
            last = known.transaction_version(self.app_id)
            if last is not None and (is_new or last > batch_id):
                raise self._of_another_run(batch_id, last)

    def _of_another_run(self, batch_id: int, last: int) -> SinkError:
        problem = of_another_run(
            f"the table has batch {last} of app_id={self.app_id!r}",
            "a table without its rows, and another app_id=",
        )
        return SinkError(f"{self!r}, batch {batch_id}: {problem}")

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        """Appends the rows of one batch, unless the table has that batch."""
        with named(self, batch_id):
            self._append(table, batch_id)

    def _append(self, table: pa.Table, batch_id: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

        there = DeltaTable.is_deltatable(self.path, self._storage_options)
        known = DeltaTable(self.path, storage_options=self._storage_options) if there else None
        if known is not None:
            last = known.transaction_version(self.app_id)
            if last == batch_id:
                return
            if last is not None and last > batch_id:
                raise self._of_another_run(batch_id, last)
            if table.num_rows == 0:
                return
        first = 0 if known is None else known.version() + 1
        what = f"{self!r}, batch {batch_id}"
        rows = as_delta(table, known, what)
        if known is not None:
            _check_complete(rows, known, what)
        by = self._partition_by if known is None else known.metadata().partition_columns
        check_partitions(rows, by, what, is_new=known is None)
        write_deltalake(
            known or self.path,
            rows,
            mode="append",
            partition_by=self._partition_by or None,
            storage_options=None if known else self._storage_options,
            commit_properties=CommitProperties(
                app_transactions=[Transaction(self.app_id, batch_id)]
            ),
        )
        if not is_uri(self.path):
            to_disk(Path(self.path), first)


def _check_complete(rows: pa.Table, known: Any, what: str) -> None:
    for field in known.schema().fields:
        if field.name not in rows.column_names:
            raise SinkError(
                f"{what}: the rows have no column {field.name!r}, which the table has (they have "
                f"{', '.join(rows.column_names)}): emit it again, or give a new table"
            )


def place_of(path: str) -> str:
    """The same for all ways to write the path or URI of a table."""
    path = path.removeprefix("file://")
    return path.rstrip("/") if is_uri(path) else os.path.realpath(path)


def to_disk(path: Path, first: int) -> None:
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


@refuses_unknown
def delta_sink(
    path: str | os.PathLike[str],
    *,
    app_id: str,
    partition_by: Sequence[str] = (),
    storage_options: Mapping[str, str] | None = None,
) -> DeltaSink:
    """A sink that appends to a Delta table, each batch in one transaction, exactly once.

    The table's log says which batch came last, so a batch that comes again changes nothing. Needs
    the package deltalake (``pip install "specstream[delta]"``); neither Spark nor Java is used.
    A batch without rows makes the table if it is not there, and no commit otherwise.

    Args:
        path: path or URI of the table, made with the first batch if it is not there.
        app_id: a name in the table's log, under which the last batch is known: one for each query
            and sink that writes to the table, the same at each start, and a new one for a query
            that begins anew, with batch 0.
        partition_by: columns, when the table is made: neither decimals nor bytes, whose values
            Delta does not give back as they were.
        storage_options: credentials and the like, as deltalake takes them.

    Raises:
        ConfigurationError: deltalake is not installed, ``app_id`` is no name, or ``partition_by``
            no list.
        SinkError: a batch cannot be written; names table and batch. Or one of its columns is not in
            the table, or of a type there that does not hold its values exactly; or a column of
            ``partition_by`` has an empty text, which Delta gives back as a null. Names the column.

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
