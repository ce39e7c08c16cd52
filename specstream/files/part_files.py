"""The files that a Parquet sink writes, by their names; which of them stand, and how to read those.

Batch 12 is ``part-00000012.parquet``, with ``partition_by=`` one in each directory that it has rows
for. Batches 3 to 11, put together by a compaction, are ``part-00000003-00000011.parquet``: it has
their rows in order, and the numbers of them in the metadata of its schema. Where files of single
batches of that span lie beside it in the same directory, they are superseded. So the moment in
which it gets its name decides what is read, however many files are to be deleted afterwards.

Who reads a directory without knowing that would see rows twice in between. Where the filesystem
can do it, a compaction therefore shows nobody a state in between (``sinks/compaction.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from specstream.errors import ConfigurationError, SinkError
from specstream.files.joined_schema import joined_schema
from specstream.files.tree import Tree

__all__ = [
    "BATCHES",
    "Part",
    "batches_of",
    "check_written",
    "dataset_of",
    "merge",
    "parts_of",
    "rows_of_batch",
    "standing",
]

BATCHES = b"specstream.batches"
_NAME = re.compile(r"part-([0-9]{8,})(?:-([0-9]{8,}))?\.parquet")
_ROW_GROUP = 64 << 20  # bytes in memory


@dataclass(frozen=True, order=True)
class Part:
    """A file of rows.

    Attributes:
        directory: that it is in, as in ``day=1/hour=2``; empty: the topmost.
        first: the batch, or the first of those that it has.
        last: the last of them.

    >>> Part("day=1", 12, 12).name, Part("", 3, 11).name
    ('day=1/part-00000012.parquet', 'part-00000003-00000011.parquet')
    """

    directory: str
    first: int
    last: int

    @property
    def name(self) -> str:
        """Its name in the tree."""
        last = "" if self.last == self.first else f"-{self.last:08d}"
        slash = "/" if self.directory else ""
        return f"{self.directory}{slash}part-{self.first:08d}{last}.parquet"

    @property
    def is_merged(self) -> bool:
        """Whether it has several batches."""
        return self.last > self.first

    def has(self, batch_id: int) -> bool:
        """Whether all rows that the batch has for this directory are in it."""
        return self.first <= batch_id <= self.last


def parts_of(names: Iterable[str]) -> list[Part]:
    """The parts among the files of a tree, by directory and batch.

    >>> parts_of(["part-00000003-00000011.parquet", "day=1/part-00000012.parquet", "other.parquet"])
    [Part(directory='', first=3, last=11), Part(directory='day=1', first=12, last=12)]
    """
    found = []
    for name in names:
        directory, _, last = name.rpartition("/")
        if match := _NAME.fullmatch(last):
            found.append(Part(directory, int(match[1]), int(match[2] or match[1])))
    return sorted(found)


def check_written(option: str, tree: Tree, *, alone: bool = True) -> None:
    """Looks whether a directory is one that a Parquet sink writes; it may have no batch yet.

    Args:
        option: names it in the error.
        tree: the directory.
        alone: whether no other sink may have a directory inside of it.

    Raises:
        ConfigurationError: it has other files and none of a sink's, or is above those of several.
    """
    names = tree.files()
    parts = parts_of(names)
    expected = "expected the directory of one ss.sinks.parquet_sink, or of specstream run --output"
    if names and not parts:
        raise ConfigurationError(
            f"{option}={tree!r} has no files of a sink (part-00000000.parquet and so on), but "
            f"others ({', '.join(list(names)[:3])}): {expected}"
        )
    inner = {part.directory.split("/")[0] for part in parts if part.directory and alone}
    # Those of partition_by= are called column=value.
    if others := sorted(name for name in inner if "=" not in name):
        raise ConfigurationError(
            f"{option}={tree!r} has the directories of several sinks ({', '.join(others[:3])}): "
            f"{expected}, such as {f'{tree.root}/{others[0]}'!r}"
        )


def standing(parts: Iterable[Part]) -> tuple[list[Part], list[Part]]:
    """The parts to be read, and those that they supersede.

    Raises:
        SinkError: two of them share some batches, and none has all of the other's.

    >>> standing([Part("", 0, 0), Part("", 0, 2), Part("", 2, 2), Part("", 3, 3)])[1]
    [Part(directory='', first=0, last=0), Part(directory='', first=2, last=2)]
    """
    stands: list[Part] = []
    superseded = []
    # Whatever has another one in it comes before that.
    for part in sorted(parts, key=lambda one: (one.directory, one.first, -one.last)):
        before = stands[-1] if stands else None
        if before is None or before.directory != part.directory or before.last < part.first:
            stands.append(part)
        elif part.last <= before.last:
            superseded.append(part)
        else:
            raise SinkError(
                f"{before.name!r} and {part.name!r} have batches in common, and neither has all "
                "of the other's: two compactions have run at the same time. Delete the one that is "
                "older, if the files of its batches are there, or put a copy of it back"
            )
    return stands, superseded


def batches_of(part: Part, file: pq.ParquetFile) -> list[tuple[int, int]]:
    """The batches of which a file has rows, and how many, in the order of the rows.

    Raises:
        SinkError: it is one of several batches, and does not say that.
    """
    if not part.is_merged:
        return [(part.first, file.metadata.num_rows)]
    said = (file.schema_arrow.metadata or {}).get(BATCHES)
    try:
        found = [(int(batch), int(rows)) for batch, rows in json.loads(said or b"")]
    except (ValueError, TypeError):
        found = []
    if sum(rows for _, rows in found) != file.metadata.num_rows:
        raise SinkError(
            f"{part.name!r} does not say which rows are of which batch, as a file that specstream "
            "has put together does: put a copy of it back"
        )
    return found


def rows_of_batch(tree: Tree, part: Part, batch_id: int) -> pa.Table:
    """The rows that a file has of one batch; perhaps none."""
    with tree.reading(part.name) as source, pq.ParquetFile(source) as file:
        at = 0
        for batch, rows in batches_of(part, file):
            if batch == batch_id:
                return plain(file.read()).slice(at, rows)
            at += rows
        return plain(file.schema_arrow.empty_table())


def plain(table: pa.Table) -> pa.Table:
    """A table without what is said of its batches."""
    return table.replace_schema_metadata(_other_metadata(table.schema))


def _other_metadata(schema: pa.Schema) -> dict[bytes, bytes] | None:
    kept = {key: value for key, value in (schema.metadata or {}).items() if key != BATCHES}
    return kept or None


def merge(tree: Tree, parts: list[Part], target: Any) -> int:
    """Writes the rows of some parts, one after the other, into one file.

    Args:
        tree: where they are.
        parts: of one directory and one schema, in the order of their batches.
        target: a file that is open to be written.

    Returns:
        How many rows.
    """
    batches: list[tuple[int, int]] = []
    schema = None
    for part in parts:
        with tree.reading(part.name) as source, pq.ParquetFile(source) as file:
            batches += batches_of(part, file)
            schema = schema or file.schema_arrow
    assert schema is not None
    said = json.dumps(batches, separators=(",", ":")).encode()
    schema = schema.with_metadata({**(_other_metadata(schema) or {}), BATCHES: said})
    with pq.ParquetWriter(target, schema) as writer:
        held: list[pa.Table] = []
        for part in parts:
            with tree.reading(part.name) as source:
                held.append(pq.read_table(source).replace_schema_metadata(schema.metadata))
            if sum(table.nbytes for table in held) >= _ROW_GROUP:
                writer.write_table(pa.concat_tables(held))
                held = []
        if held:
            writer.write_table(pa.concat_tables(held))
    return sum(rows for _, rows in batches)


def dataset_of(tree: Tree) -> pyarrow.dataset.Dataset:
    """The rows that stand, with the columns that directories are named after.

    Raises:
        SinkError: files contradict each other, by their batches or by the type of a column.
    """
    names = [part.name for part in standing(parts_of(tree.files()))[0]]
    if not names:
        return pyarrow.dataset.FileSystemDataset(
            [], pa.schema([]), pyarrow.dataset.ParquetFileFormat(), tree.filesystem
        )
    paths = [f"{tree.root}/{name}" for name in names]
    options = {
        "format": "parquet",
        "filesystem": tree.filesystem,
        "partitioning": "hive",
        "partition_base_dir": tree.root,
    }
    found = pyarrow.dataset.dataset(paths, **options)
    # The files of later batches may have more columns; Arrow has looked at the first file alone.
    schemas = [plain(one.physical_schema.empty_table()).schema for one in found.get_fragments()]
    schema = joined_schema(zip(names, schemas, strict=True), repr(tree), SinkError)
    _check_values(found, names, schemas, schema, repr(tree))
    for field in found.schema:
        if field.name not in schema.names:  # of directories
            schema = schema.append(field)
    if schema.equals(found.schema):
        return found
    return pyarrow.dataset.dataset(paths, schema=schema, **options)


def _check_values(
    found: pyarrow.dataset.Dataset,
    names: list[str],
    schemas: list[pa.Schema],
    joined: pa.Schema,
    what: str,
) -> None:
    """Refuses values that the joined type does not hold: whoever reads them would not be told of
    which column and file they are.

    Raises:
        SinkError: there is one; names column and file.
    """
    for name, own, fragment in zip(names, schemas, found.get_fragments(), strict=True):
        for field in own:
            of = joined.field(field.name)
            if not pa.types.is_integer(field.type) or _holds_all(of.type, field.type):
                continue
            try:
                for _ in fragment.to_batches(schema=pa.schema([of]), columns=[of.name]):
                    pass
            except pa.ArrowInvalid as error:
                raise SinkError(
                    f"{what}: column {of.name!r} is {field.type} in {name}, other files make it "
                    f"{of.type}, and that does not hold all of its values ({error}): cast one of "
                    "them, or read them apart"
                ) from error


def _holds_all(of: pa.DataType, integers: pa.DataType) -> bool:
    """Whether a type holds all integers of another one."""
    if of == integers:
        return True
    if pa.types.is_integer(of):
        return bool(of.bit_width > integers.bit_width)
    return bool(pa.types.is_float64(of) and integers.bit_width < 64)
