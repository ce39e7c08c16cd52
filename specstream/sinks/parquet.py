"""Where the emitted rows of a micro-batch go: Parquet files, one for each batch.

Spark may run a batch again under the same id, after an error or a restart. So a sink must be
idempotent: the file's name is the batch id, and the file appears whole or not at all, because it
is written under a hidden name and renamed. To write it is the long part, and shows nothing: a feed
with a checkpoint has it done while it writes its file (``delivery.py``).

With ``partition_by=`` a batch has a file in each directory that it has rows for, and they appear
one after the other. A crash in between leaves some of them, and the batch comes again.

What a compaction has put together (``sinks/compaction.py``) has lost its batch's own file. A
batch that comes again is known by the rows: those that are there are compared with those that came.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from specstream.checkpoint.format import failpoints
from specstream.declarations.options import place, refuses_unknown
from specstream.errors import ConfigurationError, SinkError
from specstream.files.part_files import Part, dataset_of, parts_of, rows_of_batch, standing
from specstream.files.tree import Lock, shown_uri, tree_of
from specstream.sinks.failing import named, of_another_run
from specstream.sinks.kept_types import kind_of
from specstream.sinks.partitions import (
    by_directory,
    checked_partition_by,
    columns_of,
    escaped,
)

__all__ = ["ParquetSink", "PreparedFiles", "parquet_dataset", "parquet_sink"]


class ParquetSink:
    """Writes each batch's rows to ``part-<batch id>.parquet``; see :func:`parquet_sink`, which
    explains ``path``.

    Attributes:
        partition_by: columns that directories inside of it are named after.
    """

    @refuses_unknown
    def __init__(self, path: str | os.PathLike[str], *, partition_by: Sequence[str] = ()) -> None:
        text = place("path", path, "a path or a URI of a directory")
        self.partition_by = checked_partition_by(partition_by)
        self._tree = tree_of("path", text)
        self._newest = -1  # of the batches that are there
        self._looked = False
        try:
            self._tree.make()
        except (OSError, pa.ArrowException) as error:
            raise ConfigurationError(
                f"path={shown_uri(text)!r} cannot be a directory of Parquet files: {error}: give "
                "the process the right to write there, or another directory"
            ) from error

    def __repr__(self) -> str:
        return f"parquet_sink({self._tree!r})"

    @property
    def path(self) -> Path:
        """The directory; of a URI its path in the store."""
        return Path(self._tree.root)

    @property
    def place(self) -> str:
        """Equal for two sinks that write to one directory."""
        return self._tree.key

    def file(self, batch_id: int) -> Path:
        """The file of the batch ``batch_id``, of a sink to a local directory without
        ``partition_by=``."""
        return Path(self._tree.root, Part("", batch_id, batch_id).name)

    def dataset(self) -> pyarrow.dataset.Dataset:
        """The rows that are there; see :func:`parquet_dataset`."""
        return dataset_of(self._tree)

    def check_first_batch(self, batch_id: int, *, is_new: bool) -> None:
        """Refuses a directory that has rows of another run, or of another program.

        A feed asks before it runs the first batch of a stream. A stream records a batch before any
        sink gets it: so where nothing is recorded, no file can be its own. Without a record, a
        crash after the sink brings the batch again, and its own files may be there; but none of a
        later batch, which comes only after this one is acknowledged. Files that are replaced or put
        together do not matter here: they are never those of the first batch of a new stream, and a
        rollback does not go back that far.

        Args:
            batch_id: the batch.
            is_new: whether the feed has a checkpoint, and nothing is recorded there.

        Raises:
            SinkError: there is a file of another run, or another file of Parquet; names it.
        """
        with named(self, batch_id):
            names = [name for name in self._tree.files() if name.endswith(".parquet")]
        parts = parts_of(names)
        own = {part.name for part in parts}
        if strange := next((name for name in names if name not in own), None):
            raise SinkError(
                f"{self!s}, batch {batch_id}: there is {strange!r} already, which no sink of "
                "specstream has written, and readers would take its rows for the query's: give a "
                "directory of its own"
            )
        last = max(parts, key=lambda part: part.last, default=None)
        if last is not None and (is_new or last.last > batch_id):
            problem = of_another_run(f"there is {last.name!r}", "a directory without such files")
            raise SinkError(f"{self!s}, batch {batch_id}: {problem}")

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        """Writes one batch durably, in place of earlier files of the same batch."""
        self.prepare(table, batch_id).commit()

    def prepare(self, table: pa.Table, batch_id: int) -> PreparedFiles:
        """Writes ``table``, the rows of batch ``batch_id``, durably under hidden names;
        ``commit()`` puts the files in their places.

        Raises:
            SinkError: it cannot be written; nothing is left of it.
        """
        tree, what = self._tree, f"{self!s}, batch {batch_id}"
        rows = by_directory(table, self.partition_by, what)
        with named(self, batch_id):
            # Until it is committed: what is hidden would not be in a directory put in its place.
            lock = tree.share()
            written: list[str] = []
            try:
                stale = self._make_room(rows, batch_id)
                for directory, of in rows.items():
                    name = Part(directory, batch_id, batch_id).name
                    with tree.writing(name) as file:
                        pq.write_table(of, file)
                    written.append(name)
            except BaseException:
                tree.discard(written)
                if lock is not None:
                    lock.release()
                raise
        return PreparedFiles(self, batch_id, written, stale, lock)

    def _make_room(self, rows: dict[str, pa.Table], batch_id: int) -> list[str]:
        """Looks at what is there. Takes out of ``rows`` what needs not be written, because it has
        been put together with other batches; returns the files that the batch has left over."""
        if self._looked and batch_id > self._newest:
            return []
        parts = standing(parts_of(self._tree.files()))[0]
        if not self._looked:
            self._check_layout(parts, batch_id)
            self._check_types(rows, parts, batch_id)
            self._looked = True
        self._newest = max([self._newest, *(part.last for part in parts)])
        stale = []
        for part in parts:
            if not part.has(batch_id):
                continue
            if not part.is_merged:
                if part.directory not in rows:
                    stale.append(part.name)
                continue
            there = rows_of_batch(self._tree, part, batch_id)
            came = rows.pop(part.directory, None)
            if not _are_same(there, came):
                raise SinkError(
                    f"{self!s}, batch {batch_id}: its rows are in {part.name!r}, put together with "
                    f"those of other batches, and they are others than those that come now "
                    f"({there.num_rows} and {0 if came is None else came.num_rows}). The query was "
                    "begun anew, or taken back to an earlier batch: give a new directory"
                )
        return stale

    def _check_layout(self, parts: list[Part], batch_id: int) -> None:
        own = [escaped(name) for name in self.partition_by]
        for part in parts:
            if (found := columns_of(part.directory)) != own:
                raise SinkError(
                    f"{self!s}, batch {batch_id}: there is {part.name!r}, with "
                    f"{_told(found)}, and the sink has {_told(own)}: readers need the same in all "
                    "files; give partition_by= as before, or a new directory"
                )

    def _check_types(self, rows: dict[str, pa.Table], parts: list[Part], batch_id: int) -> None:
        """Whether columns are of the same kind here and in the newest of the other files.

        Readers take the columns' types from one file for all: it would be chance what they are,
        whether times are instants, and whether the text "007" becomes a 7.
        """
        others = [part for part in parts if (part.first, part.last) != (batch_id, batch_id)]
        if not others or not rows:
            return
        newest = max(others, key=lambda part: part.last)
        try:
            with self._tree.reading(newest.name) as file:
                there = pq.read_schema(file)
        except (OSError, pa.ArrowException):
            return  # whoever reads the directory is told
        for field in next(iter(rows.values())).schema:
            at = there.get_field_index(field.name)
            of = field.type if at < 0 else there.field(at).type
            both = pa.types.is_timestamp(field.type) and pa.types.is_timestamp(of)
            if both and (field.type.tz is None) != (of.tz is None):
                zone = "None" if of.tz is None else f'"{of.tz}"'
                raise SinkError(
                    f"{self!s}: column {field.name!r} is {field.type}, and {of} in {newest.name}, "
                    "which is there, so that readers would take the times of one for the other's: "
                    f'declare it ss.timestamp("{of.unit}", {zone}) to go on as before '
                    "(datetime.datetime had no zone until version 0.2), or give a new directory"
                )
            own, kept = kind_of(field.type), kind_of(of)
            if own != kept and "null" not in (own, kept):
                raise SinkError(
                    f"{self!s}, batch {batch_id}: column {field.name!r} is {field.type}, and {of} "
                    f"in {newest.name}, which is there, so that readers would take the values of "
                    f"one for the other's: emit it as {kept} again, or give a new directory"
                )

    def _show(self, batch_id: int, written: list[str], stale: list[str]) -> None:
        with named(self, batch_id):
            for at, name in enumerate(written):
                if at:
                    failpoints.hit("between-files", batch_id)
                self._tree.publish([name])
            self._tree.delete(stale)
        self._newest = max(self._newest, batch_id)


class PreparedFiles:
    """A batch's files, written and not yet visible; made by :meth:`ParquetSink.prepare`."""

    def __init__(
        self,
        sink: ParquetSink,
        batch_id: int,
        written: list[str],
        stale: list[str],
        lock: Lock | None,
    ) -> None:
        self._sink, self._batch_id, self._lock = sink, batch_id, lock
        self._written, self._stale = written, stale

    def commit(self) -> None:
        """Makes them visible, in place of earlier files of the same batch.

        Raises:
            SinkError: it cannot be.
        """
        try:
            self._sink._show(self._batch_id, self._written, self._stale)
        finally:
            self._release()

    def abort(self) -> None:
        """Removes them."""
        try:
            self._sink._tree.discard(self._written)
        finally:
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _are_same(there: pa.Table, came: pa.Table | None) -> bool:
    """Whether rows that were read are those that came, which are to be written."""
    if came is None or not came.num_rows:
        return not there.num_rows
    if there.num_rows != came.num_rows:
        return False
    # As they come back: Parquet has not all of Arrow's types.
    buffer = pa.BufferOutputStream()
    pq.write_table(came, buffer)
    read = pq.read_table(pa.BufferReader(buffer.getvalue()))
    # In words every NaN is the same, and no zero is another one's negative.
    one, other = str(there.to_pydict()), str(read.to_pydict())
    return one == other


def _told(columns: Sequence[str]) -> str:
    return f"partition_by={list(columns)}" if columns else "no partition_by="


@refuses_unknown
def parquet_dataset(path: str | os.PathLike[str]) -> pyarrow.dataset.Dataset:
    """The rows that a :func:`parquet_sink` has written, each of them once.

    That is what ``pyarrow.dataset.dataset(path, partitioning="hive")`` gives as well, but for two
    cases. While a compaction in place is at work, and where one was killed, files are there that
    others supersede. This knows them, and leaves them out. ``dataset.files`` are those that stand.
    And where files have other columns than the first one, this has all of them.

    Args:
        path: what the sink has got: a directory or a URI.

    Raises:
        ConfigurationError: it is neither.
        SinkError: the files contradict each other, also by the type of a column.

    >>> import pyarrow as pa, tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     sink = parquet_sink(path, partition_by=["day"])
    ...     sink(pa.table({"day": ["mon", "tue"], "count": [1, 2]}), 0)
    ...     parquet_dataset(path).to_table().to_pydict()
    {'count': [1, 2], 'day': ['mon', 'tue']}
    """
    return dataset_of(tree_of("path", place("path", path, "a path or a URI of a directory")))


@refuses_unknown
def parquet_sink(path: str | os.PathLike[str], *, partition_by: Sequence[str] = ()) -> ParquetSink:
    """A sink that writes one Parquet file per micro-batch into a directory.

    Batch 12 becomes ``part-00000012.parquet``. A batch that is run again replaces its file. A
    batch that emits nothing becomes a file without rows, so that the directory always has a
    schema. Read the directory with ``pyarrow.dataset.dataset(path)``, pandas, or Spark.

    With ``partition_by=["day"]`` the rows go into directories inside of it, ``day=2026-01-05`` and
    so on, as Hive and Spark write them; readers have the column again (pyarrow with
    ``partitioning="hive"``). A batch has a file in each that it has rows for, and they become
    visible one after the other. A null and an empty text share a directory, and are read as null.

    :func:`specstream.sinks.compact`, or ``specstream compact``, puts many small files together.

    Args:
        path: a directory, made if it is not there; local or mounted, or a URI that
            ``pyarrow.fs.FileSystem.from_uri`` reaches, as ``checkpoint=`` takes it.
        partition_by: names of emitted columns: texts, numbers, bools, dates or times.

    Raises:
        ConfigurationError: ``path`` cannot be reached, or cannot be made; ``partition_by`` is no
            list of columns.
        SinkError: a batch cannot be written; names directory and batch. Or a column is of another
            kind than in the files that are there, such as text instead of integers, or times with a
            zone instead of without; or these have other directories; or a column of
            ``partition_by`` is not there.

    >>> import pyarrow as pa, pyarrow.dataset, tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     sink = parquet_sink(path)
    ...     sink(pa.table({"count": [1, 2]}), 0)
    ...     sink(pa.table({"count": [3]}), 1)
    ...     sink(pa.table({"count": [4]}), 1)      # batch 1 again
    ...     pyarrow.dataset.dataset(path).to_table()["count"].to_pylist()
    [1, 2, 4]
    """
    return ParquetSink(path, partition_by=partition_by)
