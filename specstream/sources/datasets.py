"""Files as a source: all rows of an Arrow dataset, file after file, and then the end.

A dataset of Arrow's has one schema, which it takes from its first file, and casts the others to it:
that rounds and cuts, and leaves out what is new. Here each file is read by its own schema, as if it
were a table given to ``process()``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.json as pj

from specstream.columns.events import fitting
from specstream.columns.tables import one_array
from specstream.declarations.options import meant, meant_path, place, refused, refuses_unknown
from specstream.errors import ConfigurationError, InputError, SourceError, SpecstreamError
from specstream.files.places import is_uri
from specstream.sources.source import Position, Rows, Source, Wanted

__all__ = ["DatasetSource", "dataset"]


class _Part(NamedTuple):
    """Rows of one fragment, from its row ``first`` on."""

    table: pa.Table
    number: int
    path: str
    first: int

    @property
    def end(self) -> int:
        return self.first + int(self.table.num_rows)


class DatasetSource(Source):
    """The rows of a dataset; see :func:`dataset`."""

    @refuses_unknown
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
            given = place("of", of)
            where = given if is_uri(given) else os.path.realpath(given)
            try:
                self._dataset = pds.dataset(where, format=format)
            except FileNotFoundError as error:
                raise ConfigurationError(
                    f"of={os.fspath(of)!r}: there is no such file or directory"
                    f"{'' if is_uri(given) else meant_path(given)}"
                ) from error
            except (OSError, ValueError, pa.ArrowException) as error:
                raise ConfigurationError(
                    f"of={os.fspath(of)!r} cannot be read as {format}: {error}; expected files "
                    'whose format= is "parquet", "ipc", "csv", "json" or "orc". If a file is '
                    "incomplete, write it again or take it out of the directory"
                ) from error
            self.name = f"the dataset {where!r}"
        else:
            raise refused("of", of, "a path, a pyarrow.dataset.Dataset, or a table of pyarrow")
        self._stopped = False

    def open(self, wanted: Wanted, position: Position | None) -> None:
        self._wanted = wanted
        # By path: a file that comes later has to sort behind the others.
        self._fragments = list(self._dataset.get_fragments())
        self._declared = self._not_of(self._fragments[:1])
        self._fragments.sort(key=_path)
        self._number, self._done = 0, 0
        if position is not None:
            self._go_to(position)
        if not self._fragments:
            self._check_names(self._dataset.schema, self.name)
        elif not self._done:
            first = self._fragments[self._number]
            self._check_names(self._schema_of(first), _path(first) or self.name)
        self._batches = self._rest()
        self._left: pa.Table | None = None
        self._error: SpecstreamError | None = None

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

    def _not_of(self, first: list[Any]) -> list[pa.Field]:
        """What the dataset's schema says that it cannot have from its first file: whoever has made
        the dataset has said it, or the names of its directories do."""
        if not first:
            return []
        own = self._own_schema(first[0])
        return [
            field
            for field in self._dataset.schema
            if field.name not in own.names or field.type not in _types(own, field.name)
        ]

    def _own_schema(self, fragment: Any) -> pa.Schema:
        try:
            return fragment.physical_schema
        except (OSError, pa.ArrowException) as error:
            raise self._cannot_be_read(fragment, error) from error

    def _schema_of(self, fragment: Any) -> pa.Schema:
        """By which a file is read."""
        schema = self._own_schema(fragment)
        for field in self._declared:
            at = schema.get_field_index(field.name)
            schema = schema.append(field) if at < 0 else schema.set(at, field)
        if _format(fragment) == "json":
            # What a line of JSON lacks is null, and so is what all of them lack.
            for name, column in self._wanted.columns.items():
                if column.nullable and name not in schema.names:
                    schema = schema.append(pa.field(name, column.arrow))
        return schema

    def _check_names(self, schema: pa.Schema, where: str) -> None:
        for name in self._wanted.names:
            count = len(schema.get_all_field_indices(name))
            if count != 1:
                problem = "has not" if not count else "has more than once"
                raise InputError(
                    f"{self._wanted.what} reads column {name!r}, which {where} {problem} (columns: "
                    f"{', '.join(schema.names)}): rename or add it"
                    f"{meant(name, schema.names) if not count else ''}"
                )

    def _check_types(self, table: pa.Table, path: str) -> None:
        """Refuses a column by the name of its file; what is wrong with rows is told by these."""
        what = f"{self._wanted.what}, file {path!r}" if path else self._wanted.what
        for name, column in self._wanted.columns.items():
            if not pa.types.is_null(table.field(name).type):
                fitting(one_array(table[name]), name, column, what)

    def _rest(self) -> Iterator[pa.Table]:
        skip = self._done
        for number in range(self._number, len(self._fragments)):
            fragment = self._fragments[number]
            self._number, self._done = number, 0
            schema, path = self._schema_of(fragment), _path(fragment)
            # Arrow refuses a name that is there twice in words of its own; ours come with the rows.
            columns = [name for name in self._wanted.names if schema.names.count(name) == 1]
            chosen = None if self._wanted.whole else columns
            if _format(fragment) == "json":
                batches = self._lines_of(fragment, schema, chosen)
            else:
                # Little is read ahead: who waits for the engine keeps no files in memory.
                batches = fragment.to_batches(
                    schema=schema,
                    columns=chosen,
                    batch_size=self._wanted.rows,
                    batch_readahead=1,
                    fragment_readahead=1,
                    # Arrow's threads go on as far as the end of the file.
                    use_threads=self._wanted.ahead,
                )
            for batch in batches:
                self._done += batch.num_rows
                kept = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - kept.num_rows
                if kept.num_rows:
                    # Not of a file that was read before: the operator may be another since.
                    self._check_names(schema, path or self.name)
                    table = pa.Table.from_batches([kept])
                    self._check_types(table, path)
                    yield table
            if skip:
                raise SourceError(
                    f"{self._wanted.what}: {self.name}: file {path!r} has {skip} row(s) less than "
                    "have been read of it: put it back as it was"
                )

    def _lines_of(
        self, fragment: Any, schema: pa.Schema, columns: list[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file of JSON lines.

        Arrow's datasets have a column as nulls where the first block of the file, a megabyte, lacks
        it, and Arrow's reader of JSON does not.
        """
        own, keys = (
            self._own_schema(fragment),
            pds.get_partition_keys(fragment.partition_expression),
        )
        fields = []
        for field in schema:
            if field.name in keys and field.name not in own.names:
                continue
            at = own.get_field_index(field.name)
            is_known = at >= 0 and not pa.types.is_null(own.field(at).type)
            wanted = self._wanted.columns.get(field.name)
            if is_known:
                fields.append(own.field(at))
            elif wanted is not None:
                fields.append(pa.field(field.name, wanted.arrow))
        options = pj.ParseOptions(
            explicit_schema=pa.schema(fields),
            unexpected_field_behavior="infer" if columns is None else "ignore",
        )
        with fragment.open() as file, pj.open_json(file, parse_options=options) as reader:
            for block in reader:
                table = pa.Table.from_batches([block])
                for name, value in keys.items():
                    if name in schema.names and name not in table.column_names:
                        of = schema.field(name).type
                        whole = pa.repeat(pa.scalar(value, of), table.num_rows)
                        table = table.append_column(name, whole)
                for name in schema.names if columns is None else columns:
                    at, of = table.column_names.index(name), schema.field(name).type
                    if table.field(at).type != of and not pa.types.is_null(of):
                        table = table.set_column(at, name, table[name].cast(of))
                table = table if columns is None else table.select(columns)
                yield from table.to_batches(max_chunksize=self._wanted.rows)

    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        if self._stopped:
            return None
        parts: list[_Part] = []
        missing = rows
        # All is there, and nothing to wait for: how a file was cut into row groups is not seen.
        while missing and self._fill(is_first=not parts) and self._goes_with(parts):
            assert self._left is not None
            path = _path(self._fragments[self._number])
            first = self._done - self._left.num_rows
            parts.append(_Part(self._left.slice(0, missing), self._number, path, first))
            missing -= parts[-1].table.num_rows
            rest = self._left.slice(parts[-1].table.num_rows)
            self._left = rest if rest.num_rows else None
        if not parts:
            return None
        last = parts[-1]
        position = {"number": last.number, "path": last.path, "rows": last.end}
        table = pa.concat_tables([part.table for part in parts])
        # More than one range of rows there is of the pieces of a table only.
        ranges = [(parts[0].first, parts[0].path, 0)]
        at = 0
        for before, part in itertools.pairwise(parts):
            at += before.table.num_rows
            if part.number != before.number:
                ranges.append((part.first, part.path, at))
        return Rows(table, position, self._place(parts), lambda row: self._row(ranges, row))

    def _fill(self, is_first: bool) -> bool:
        """Whether there are rows; what is wrong with the next ones is told behind those before."""
        if self._left is None and self._error is None:
            try:
                self._left = next(self._batches, None)
            except (OSError, pa.ArrowException) as error:
                self._error = self._cannot_be_read(self._fragments[self._number], error)
                self._error.__cause__ = error
            except SpecstreamError as error:
                self._error = error
        if self._error is not None and is_first:
            raise self._error
        return self._left is not None

    def _goes_with(self, parts: list[_Part]) -> bool:
        """Whether the next rows may be in a batch with others: those of one file, or of a table."""
        if not parts:
            return True
        assert self._left is not None
        path = _path(self._fragments[self._number])
        is_same = self._number == parts[-1].number or not (path or parts[-1].path)
        return is_same and self._left.schema == parts[-1].table.schema

    def _place(self, parts: list[_Part]) -> str:
        files = itertools.groupby(parts, key=lambda part: part.number)
        ranges = [(of[0], of[-1]) for of in (list(group) for _, group in files)]
        return "; ".join(
            f"rows {first.first} to {last.end - 1} of {first.path or self.name}"
            for first, last in ranges
        )

    def _row(self, ranges: list[tuple[int, str, int]], row: int) -> str:
        first, path, at = next(one for one in reversed(ranges) if one[2] <= row)
        return f"row {first + row - at} of {f'file {path!r}' if path else self.name}"

    def _cannot_be_read(self, fragment: Any, error: Exception) -> SourceError:
        path = _path(fragment)
        which = f"{self.name}: file {path!r}" if path else self.name
        return SourceError(
            f"{self._wanted.what}: {which} cannot be read: {error}. If it is incomplete, write it "
            "again or take it out of the directory"
        )

    def stop(self) -> None:
        self._stopped = True


def _path(fragment: Any) -> str:
    return str(getattr(fragment, "path", ""))


def _format(fragment: Any) -> str:
    return str(getattr(getattr(fragment, "format", None), "default_extname", ""))


def _types(schema: pa.Schema, name: str) -> list[pa.DataType]:
    return [schema.field(at).type for at in schema.get_all_field_indices(name)]


@refuses_unknown
def dataset(of: Any, *, format: str = "parquet") -> DatasetSource:
    """The rows of files, of a table, or of another dataset of Arrow's; then the source ends.

    Files are read in the order of their paths, each from its first row to its last. The position is
    a file and a row in it: a run goes on from there, also with files that have come since. Files
    that were read must stay, and the names of new ones must sort behind theirs.

    A micro-batch has ``max_rows`` of a file, or what is left at its end. ``max_wait`` has no
    effect, as all rows are there. How the file was cut into row groups makes no difference.

    Each file has its own columns and types, and is taken as :meth:`specstream.Engine.process` takes
    a table: an int32 in one and an int64 in the next are both an ``int``, and text is an error that
    names file and column. Columns that the schema of a ``pyarrow.dataset.Dataset`` or the names of
    directories define keep their types.

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
