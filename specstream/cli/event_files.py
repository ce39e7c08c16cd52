"""The rows of files that a command is given, batch by batch: Parquet, CSV, lines of JSON.

Of a text the types are those that the operator declares. Times, and an order column that it does
not declare, are as the first block of their file has them: integers, or ISO 8601.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.dataset as pds
import pyarrow.json as pj

from specstream.columns import compute
from specstream.columns.conversion import is_text, of_order, time_at
from specstream.columns.tables import one_array
from specstream.declarations.options import meant, meant_path
from specstream.declarations.schema import Column
from specstream.definition.operator import Operator
from specstream.errors import InputError
from specstream.sources.datasets import DatasetSource
from specstream.sources.source import Wanted

__all__ = ["FORMATS", "Batch", "EventFiles"]

ROWS = 65_536
_BLOCK = 2**22
_MARK = b"\xef\xbb\xbf"
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
_BY_SUFFIX = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".json": "JSON lines",
}
FORMATS = "Parquet (.parquet), CSV (.csv) or JSON lines (.jsonl, .ndjson, .json)"


class Batch(NamedTuple):
    """Rows of one file.

    Attributes:
        table: the columns that were asked for.
        path: of the file.
        first: number of the first of them in the file.
    """

    table: pa.Table
    path: Path
    first: int

    def place(self, row: int) -> str:
        """What messages call one of them.

        >>> Batch(pa.table({}), Path("a.csv"), 100).place(7)
        'row 107 of a.csv'
        """
        return f"row {self.first + row} of {self.path}"


@dataclass
class EventFiles:
    """Files, one after the other, whose rows are in order.

    Attributes:
        what: reads them, in messages.
        operator: whose columns are read.
        columns: their types.
        order_by: column of the times; None: rows are in order as they are.
        paths: files and directories of such, as given.
    """

    what: str
    operator: Operator
    columns: Mapping[str, Column]
    order_by: str | None
    paths: Iterable[Path]

    def __post_init__(self) -> None:
        self.files = [file for path in self.paths for file in _files_of(path)]
        self.time_type: pa.DataType | None = None

    @property
    def names(self) -> list[str]:
        """Of the columns that are read."""
        order = [] if self.order_by is None else [self.order_by]
        return list(dict.fromkeys([*self.columns, *order]))

    def batches(self) -> Iterator[Batch]:
        """All rows.

        Raises:
            InputError: a file cannot be read, lacks a column or has another type, or its rows are
                not in order.
        """
        before: tuple[int, str] | None = None
        for file, kind in self.files:
            first = 0
            for table in self._tables(file, kind):
                batch = Batch(table, file, first)
                first += table.num_rows
                if self.order_by is not None and table.num_rows:
                    batch = batch._replace(table=self._with_times(batch))
                    before = self._check_order(batch, before)
                yield batch

    def _tables(self, file: Path, kind: str) -> Iterator[pa.Table]:
        if kind == "Parquet":
            return self._parquet(file)
        return self._text(file, kind, _csv if kind == "CSV" else _json)

    def _parquet(self, file: Path) -> Iterator[pa.Table]:
        beside = {} if self.order_by is None else {"--order-by": self.order_by}
        wanted = Wanted(
            *(self.what, self.operator, self.columns, beside),
            sets_aside=False,
            whole=False,
            rows=ROWS,
            ahead=False,
        )
        try:
            # By default the bytes of the whole file are read first.
            found = pds.dataset(file, format=pds.ParquetFileFormat(pre_buffer=False))
        except (pa.ArrowException, OSError) as error:
            raise self._cannot_be_read(file, "Parquet", error) from error
        source = DatasetSource(found)
        source.open(wanted, None)
        while (rows := source.read(ROWS, 0, 0)) is not None:
            yield rows.table

    def _text(
        self, file: Path, kind: str, opened: Callable[..., Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.Table]:
        try:
            with _Lines(file, skips_comments=kind == "CSV") as stream:
                # Of CSV a header is expected, which nothing else needs.
                first = None if stream.is_empty and kind != "CSV" else next(opened(stream), None)
            if first is None:
                return
            self._check_names(file, first, kind)
            types = {name: self._type(file, name, first) for name in self.names}
            with _Lines(file, skips_comments=kind == "CSV") as stream:
                for block in opened(stream, types):
                    whole = pa.Table.from_batches([block]).select(self.names)
                    if kind == "CSV":
                        whole = self._with_texts(whole)
                    for batch in whole.to_batches(max_chunksize=ROWS):
                        yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError, EOFError) as error:
            raise self._cannot_be_read(file, kind, error) from error

    def _cannot_be_read(self, file: Path, kind: str, error: Exception) -> InputError:
        expected = ", ".join(f"{name}: {column}" for name, column in self.columns.items())
        return InputError(
            f"{self.what}: {file} cannot be read as {kind}: {error}; expected columns {expected}"
        )

    def _check_names(self, file: Path, block: pa.RecordBatch, kind: str) -> None:
        names = block.schema.names
        for name in self.names:
            count = names.count(name)
            column = self.columns.get(name)
            if count == 1 or (not count and kind != "CSV" and column and column.nullable):
                continue
            problem = "has not" if not count else "has more than once"
            raise InputError(
                f"{self.what} reads column {name!r}, which {file} {problem} (columns: "
                f"{', '.join(names)}): rename or add it{'' if count else meant(name, names)}"
            )

    def _type(self, file: Path, name: str, block: pa.RecordBatch) -> pa.DataType:
        """By which a column of a text is read."""
        column = self.columns.get(name)
        if column is not None and not pa.types.is_timestamp(column.arrow):
            return column.arrow
        if name not in block.schema.names:
            assert column is not None
            return column.arrow
        found = _time_type(block[name])
        if found is None or (column is not None and not pa.types.is_timestamp(found)):
            of = "integers or ISO times" if column is None else "ISO times"
            shown = next((one for one in block[name].to_pylist() if one is not None), None)
            raise InputError(
                f"{self.what}: column {name!r} of {file} has {shown!r}; expected {of}, like "
                "2024-02-29T12:00:00.5Z"
            )
        return found

    def _with_texts(self, table: pa.Table) -> pa.Table:
        """Rows with empty texts where nothing stands between two commas and there is no null."""
        for at, name in enumerate(table.column_names):
            column = self.columns.get(name)
            if column is not None and column.kind == "str" and not column.nullable:
                table = table.set_column(at, name, table[name].fill_null(""))
        return table

    def _with_times(self, batch: Batch) -> pa.Table:
        """Rows whose times are of the type of those before."""
        table, name = batch.table, self.order_by
        times = table[name]
        if times.null_count:
            row = int(np.flatnonzero(one_array(times).is_null().to_numpy(zero_copy_only=False))[0])
            raise InputError(
                f"{self.what}: {batch.place(row)} has no value in the column {name!r} of "
                "--order-by; expected a time in every row"
            )
        if self.time_type is None:
            self.time_type = times.type
        if times.type == self.time_type:
            return table
        try:
            # Integers may be cast to times, and mean something else.
            if pa.types.is_temporal(times.type) != pa.types.is_temporal(self.time_type):
                raise pa.ArrowInvalid("they have no common order")
            times = times.cast(self.time_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"{self.what}: column {name!r} of {batch.path} is {times.type}, and in the files "
                f"before {self.time_type}: {error}; expected one type"
            ) from error
        return table.set_column(table.column_names.index(name), name, times)

    def _check_order(self, batch: Batch, before: tuple[int, str] | None) -> tuple[int, str]:
        """The last time, and how it is shown."""
        times = one_array(batch.table[self.order_by])
        found = of_order(times)
        if found is None:
            raise InputError(
                f"{self.what}: column {self.order_by!r} of {batch.path} is {times.type}; expected "
                "integers or times in --order-by"
            )
        numbers, _ = found
        if before is not None and numbers[0] < before[0]:
            self._refuse_order(batch, 0, str(time_at(times, 0)), before[1])
        falls = np.flatnonzero(numbers[1:] < numbers[:-1])
        if falls.size:
            row = int(falls[0]) + 1
            self._refuse_order(batch, row, str(time_at(times, row)), str(time_at(times, row - 1)))
        return int(numbers[-1]), str(time_at(times, len(times) - 1))

    def _refuse_order(self, batch: Batch, row: int, time: str, before: str) -> None:
        name = self.order_by
        others = "give the files in the order of their times, or " if len(self.files) > 1 else ""
        raise InputError(
            f"{self.what}: {batch.place(row)} has {name} {time}, and the row before it {before}; "
            f"expected rows in the order of --order-by {name}: {others}sort them first, as "
            f"with pyarrow, table.sort_by({name!r})"
        )


def _files_of(path: Path) -> list[tuple[Path, str]]:
    """A file and its format, or those of a directory in the order of their names.

    Raises:
        click.UsageError: there are none, or not of a format that is read.
    """
    if not path.exists():
        raise click.UsageError(f"there is no file {str(path)!r}{meant_path(str(path))}")
    files = [path]
    if path.is_dir():
        inside = sorted(one for one in path.rglob("*") if one.is_file())
        files = [
            one for one in inside if not any(p[0] in "._" for p in one.relative_to(path).parts)
        ]
        if not files:
            raise click.UsageError(f"there are no files in {str(path)!r}; expected {FORMATS}")
    formats = list(map(_format, files))
    for file, kind in zip(files, formats, strict=True):
        if not kind:
            out = "; or take it out of the directory" if file is not path else ""
            raise click.UsageError(
                f"the format of {str(file)!r} is not known by its ending; expected {FORMATS}, "
                f"texts also packed ({', '.join(_PACKED)}){out}"
            )
    return list(zip(files, formats, strict=True))


def _format(file: Path) -> str:
    """By the ending of its name; empty: it is not known."""
    suffix = file.suffix.lower()
    if suffix in _PACKED:
        found = _BY_SUFFIX.get(file.with_suffix("").suffix.lower(), "")
        return "" if found == "Parquet" else found
    return _BY_SUFFIX.get(suffix, "")


def _time_type(values: pa.Array) -> pa.DataType | None:
    """Of a column of times, by the values of its first block; None: they are none."""
    of = values.type
    if pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_date(of):
        return of
    if pa.types.is_null(of) and not len(values):
        return of
    if pa.types.is_timestamp(of):
        # Whole seconds are no sign that later ones are.
        return pa.timestamp(_unit(values), of.tz)
    if is_text(of):
        for wanted in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
            try:
                return pa.timestamp(_unit(values.cast(wanted)), wanted.tz)
            except pa.ArrowInvalid:
                continue
    return None


def _unit(times: pa.Array) -> str:
    if times.type.unit != "ns":
        return "us"
    rest = times.cast(pa.timestamp("us", times.type.tz), safe=False).cast(times.type)
    return "ns" if bool(compute.any(compute.not_equal(rest, times)).as_py()) else "us"


def _csv(
    stream: io.RawIOBase, types: Mapping[str, pa.DataType] | None = None
) -> Iterator[pa.RecordBatch]:
    options = pc.ConvertOptions(
        column_types=dict(types or {}),
        include_columns=list(types or ()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    # Threads do not know the number of a row that is in error.
    reading = pc.ReadOptions(use_threads=False, block_size=_BLOCK)
    yield from pc.open_csv(stream, read_options=reading, convert_options=options)


def _json(
    stream: io.RawIOBase, types: Mapping[str, pa.DataType] | None = None
) -> Iterator[pa.RecordBatch]:
    options = None
    if types is not None:
        schema = pa.schema(list(types.items()))
        options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pj.ReadOptions(use_threads=False, block_size=_BLOCK)
    yield from pj.open_json(stream, read_options=reading, parse_options=options)


class _Lines(io.RawIOBase):
    """The bytes of a text.

    Args:
        file: its path; what is packed is unpacked.
        skips_comments: whether lines that begin with ``#`` are left out.
    """

    def __init__(self, file: Path, *, skips_comments: bool) -> None:
        super().__init__()
        self._file = io.BufferedReader(pa.input_stream(file, compression="detect"))
        self._skips = skips_comments
        self._held = memoryview(b"")
        self._is_first = True

    def readable(self) -> bool:
        return True

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        while not self._held:
            lines = self._file.read(_BLOCK)
            if not lines:
                return True
            lines += self._file.readline()
            if self._is_first:
                lines, self._is_first = lines.removeprefix(_MARK), False
            if self._skips and (lines.startswith(b"#") or b"\n#" in lines):
                lines = b"".join(one for one in io.BytesIO(lines) if not one.startswith(b"#"))
            self._held = memoryview(lines)
        return False

    def readinto(self, buffer: Any) -> int:
        if self.is_empty:
            return 0
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
