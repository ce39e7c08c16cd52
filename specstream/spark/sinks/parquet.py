"""Where the emitted rows of a micro-batch go: one Parquet file per batch.

Spark may run a batch again under the same id, after an error or a restart. So a sink must be
idempotent: the file's name is the batch id, and the file appears whole or not at all, because it
is written under a hidden name and renamed. To write it is the long part, and shows nothing: a feed
with a checkpoint has it done while it writes its file (``delivery.py``).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from specstream.declarations.options import path as checked_path
from specstream.errors import ConfigurationError, SinkError
from specstream.files.writing import writing
from specstream.spark.sinks.failing import named

__all__ = ["ParquetSink", "PreparedFile", "parquet_sink"]


class ParquetSink:
    """Writes each batch's rows to ``part-<batch id>.parquet``; see :func:`parquet_sink`.

    Attributes:
        path: the directory.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = checked_path("path", path)
        if "://" in text:
            raise ConfigurationError(
                f"path={text!r}: the Parquet sink writes to a local or mounted directory; for "
                "other stores pass to= a function (pyarrow.Table, batch_id)"
            )
        self.path = Path(text)
        self._zones_fit = False  # with the files that are there: looked at once
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"path={text!r} cannot be a directory of Parquet files: {error}"
            ) from error

    def __repr__(self) -> str:
        return f"parquet_sink({str(self.path)!r})"

    @property
    def place(self) -> str:
        """The same for two sinks that write to one directory."""
        return os.path.realpath(self.path)

    def file(self, batch_id: int) -> Path:
        """The file of the batch ``batch_id``."""
        return self.path / f"part-{batch_id:08d}.parquet"

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        """Writes one batch durably, in place of an earlier file of the same batch."""
        self.prepare(table, batch_id).commit()

    def prepare(self, table: pa.Table, batch_id: int) -> PreparedFile:
        """Writes ``table``, the rows of batch ``batch_id``, durably under a hidden name;
        ``commit()`` puts it in its place.

        Raises:
            SinkError: it cannot be written; nothing is left of it.
        """
        target = self.file(batch_id)
        if not self._zones_fit:
            self._check_zones(table, target)
            self._zones_fit = True
        # Readers skip names with a leading dot. The replay overwrites what a crash leaves.
        hidden = target.with_name(f".{target.name}.writing")
        with (
            named(self, batch_id),
            _removed_if_raising(hidden),
            writing(hidden),
            hidden.open("wb") as file,
        ):
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        return PreparedFile(self, batch_id, hidden)

    def _check_zones(self, table: pa.Table, target: Path) -> None:
        """Whether times are instants here and in the newest of the other files, or in neither.

        Readers take the columns' types from one file for all: it would be chance what they are.
        """
        others = [one for one in self.path.glob("part-*.parquet") if one.name != target.name]
        if not others:
            return
        newest = max(others)
        try:
            there = pq.read_schema(newest)
        except (OSError, pa.ArrowException):
            return  # whoever reads the directory is told
        for field in table.schema:
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


class PreparedFile:
    """A batch's file, written and not yet visible; made by :meth:`ParquetSink.prepare`."""

    def __init__(self, sink: ParquetSink, batch_id: int, hidden: Path) -> None:
        self._sink, self._batch_id, self._hidden = sink, batch_id, hidden

    def commit(self) -> None:
        """Makes it visible, in place of an earlier file of the same batch.

        Raises:
            SinkError: it cannot be.
        """
        sink = self._sink
        with named(sink, self._batch_id):
            with _removed_if_raising(self._hidden):
                os.replace(self._hidden, sink.file(self._batch_id))
            # Spark acknowledges the batch after this call: the new name must survive a crash too.
            directory = os.open(sink.path, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def abort(self) -> None:
        """Removes it."""
        self._hidden.unlink(missing_ok=True)


@contextlib.contextmanager
def _removed_if_raising(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)  # on a full disk it would be in its own way
        raise


def parquet_sink(path: str | os.PathLike[str]) -> ParquetSink:
    """A sink that writes one Parquet file per micro-batch into a directory.

    Batch 12 becomes ``part-00000012.parquet``. A batch that is run again replaces its file. A
    batch that emits nothing becomes a file without rows, so that the directory always has a
    schema. Read the directory with ``pyarrow.dataset.dataset(path)``, pandas, or Spark.

    Args:
        path: a local directory, made if it is not there.

    Raises:
        ConfigurationError: ``path`` is not local, or cannot be made.
        SinkError: a batch cannot be written; names directory and batch. Or it has times with a
            zone where the files that are there have them without, or the other way round.

    >>> import pyarrow as pa, pyarrow.dataset, tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     sink = parquet_sink(path)
    ...     sink(pa.table({"count": [1, 2]}), 0)
    ...     sink(pa.table({"count": [3]}), 1)
    ...     sink(pa.table({"count": [4]}), 1)      # batch 1 again
    ...     pyarrow.dataset.dataset(path).to_table()["count"].to_pylist()
    [1, 2, 4]
    """
    return ParquetSink(path)
