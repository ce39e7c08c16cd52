"""Files as a source: all rows of an Arrow dataset, file after file, and then the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pds

from specstream.declarations.options import refused
from specstream.errors import ConfigurationError, InputError, SourceError
from specstream.sources.source import Position, Rows, Source, Wanted

__all__ = ["DatasetSource", "dataset"]


class DatasetSource(Source):
    """The rows of a dataset; see :func:`dataset`."""

    def __init__(self, of: Any, format: str = "parquet") -> None:
        if isinstance(of, pa.Table | pa.RecordBatch):
            self._dataset = pds.dataset(of)
            self.name = "a table"
        elif isinstance(of, pds.Dataset):
            self._dataset = of
            self.name = "a dataset"
        elif isinstance(of, str | os.PathLike):
            # By its real path the files in a position are the same, however the next start calls
            # the directory, and wherever it runs.
            given = os.fspath(of)
            where = given if "://" in given else os.path.realpath(given)
            try:
                self._dataset = pds.dataset(where, format=format)
            except (OSError, ValueError, pa.ArrowException) as error:
                raise ConfigurationError(
                    f"of={os.fspath(of)!r} cannot be read as {format}: {error}"
                ) from error
            self.name = f"the dataset {where!r}"
        else:
            raise refused("of", of, "a path, a pyarrow.dataset.Dataset, or a table of pyarrow")
        self._stopped = False

    def open(self, wanted: Wanted, position: Position | None) -> None:
        self._wanted = wanted
        names = self._dataset.schema.names
        for name in wanted.names:
            if name not in names:
                raise InputError(
                    f"{wanted.what} reads column {name!r}, which {self.name} has not (columns: "
                    f"{', '.join(names)}): rename or add it"
                )
        # By path: a file that comes later has to sort behind the others.
        self._fragments = list(self._dataset.get_fragments())
        self._fragments.sort(key=_path)
        self._number, self._done = 0, 0
        if position is not None:
            self._go_to(position)
        self._batches = self._rest()
        self._left: pa.Table | None = None

    def _go_to(self, position: Position) -> None:
        number, path = position["number"], position["path"]
        count = len(self._fragments)
        found = _path(self._fragments[number]) if number < count else None
        # An earlier version has written down paths as they were given.
        if found is None or os.path.realpath(found) != os.path.realpath(path):
            now = f"that file is {found!r} now"
            if found is None:
                now = f"the number of files is {count} now"
            raise SourceError(
                f"{self._wanted.what}: {self.name} was read up to file {number}, {path!r}, and "
                f"{now}: files that were read must stay, and names of new ones must sort behind "
                "them"
            )
        self._number, self._done = number, position["rows"]

    def _rest(self) -> Iterator[pa.Table]:
        columns = None if self._wanted.whole else self._wanted.names
        skip = self._done
        for number in range(self._number, len(self._fragments)):
            # Little is read ahead: who waits for the engine keeps no files in memory.
            batches = self._fragments[number].to_batches(
                schema=self._dataset.schema,
                columns=columns,
                batch_size=self._wanted.rows,
                batch_readahead=1,
                fragment_readahead=1,
            )
            self._number, self._done = number, 0
            for batch in batches:
                self._done += batch.num_rows
                kept = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - kept.num_rows
                if kept.num_rows:
                    yield pa.Table.from_batches([kept])
            if skip:
                raise SourceError(
                    f"{self._wanted.what}: {self.name}: file {_path(self._fragments[number])!r} "
                    f"has {skip} row(s) less than have been read of it: put it back as it was"
                )

    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        if self._stopped:
            return None
        try:
            if self._left is None:
                self._left = next(self._batches, None)
        except (OSError, pa.ArrowException) as error:
            raise SourceError(
                f"{self._wanted.what}: {self.name} cannot be read: {error}"
            ) from error
        if self._left is None:
            return None
        table = self._left.slice(0, rows)
        rest = self._left.slice(rows)
        self._left = rest if rest.num_rows else None
        done = self._done - rest.num_rows
        path = _path(self._fragments[self._number])
        position = {"number": self._number, "path": path, "rows": done}
        which = f"rows {done - table.num_rows} to {done - 1}"
        return Rows(table, position, f"{which} of {path or self.name}")

    def stop(self) -> None:
        self._stopped = True


def _path(fragment: Any) -> str:
    return str(getattr(fragment, "path", ""))


def dataset(of: Any, *, format: str = "parquet") -> DatasetSource:
    """The rows of files, of a table, or of another dataset of Arrow's; then the source ends.

    Files are read in the order of their paths, each from its first row to its last. They have a
    position, the file and its row: a run goes on there, and with what has come behind. Files that
    were read have to stay, and names of new ones to sort behind them.

    Args:
        of: a path, a ``pyarrow.dataset.Dataset``, or a table.
        format: of the files at a path, as of ``pyarrow.dataset.dataset``: "parquet", "ipc", "csv",
            "json" or "orc".

    Raises:
        ConfigurationError: it is none of these, or cannot be read.

    >>> import pyarrow as pa
    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     total = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
    ... def running_total(state, event, emit):
    ...     state.total += event.x
    ...     emit(state.total)
    >>> with ss.Engine(running_total) as engine:
    ...     stats = ss.sources.run(
    ...         engine,
    ...         ss.sources.dataset(pa.table({"x": [1, 2, 3]})),
    ...         to=lambda rows, batch_id: print(batch_id, rows["total"].to_pylist()),
    ...         max_rows=2,
    ...     )
    0 [1, 3]
    1 [6]
    """
    return DatasetSource(of, format)
