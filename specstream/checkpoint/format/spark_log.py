"""Which batches Spark has planned and acknowledged, read from its checkpointLocation without Spark.

``offsets/N`` is there when batch N is planned, ``commits/N`` when it is done. At a start Spark goes
on behind the last one that is done; one that was planned and not done comes again, with the same
rows. So Spark is taken back to batch N by deleting what it has of later ones, but for the plan of
N + 1: what is left is what a crash in batch N + 1 would leave.

A source of files keeps a log of its own in ``sources``, which files it has given to which batch.
Unless that is taken back as well, all files of later batches come in one.

Beside each file Hadoop keeps a checksum, in a local directory: so damage shows before Spark
stumbles over it. Where there is none, the lines of a file have to be what Spark writes.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from specstream.checkpoint.format.store import Store, store_of
from specstream.declarations.options import place
from specstream.errors import ConfigurationError
from specstream.files.untrusted import Malformed, json_of, object_of

__all__ = ["Deletion", "SparkLog"]

_BATCH = re.compile(r"[0-9]+")
_COMPACT = re.compile(r"([0-9]+)(\.compact)?")
_SOURCE = re.compile(r"sources/([0-9]+)/([0-9]+)(?:\.compact)?")
_VERSION = re.compile(rb"v[0-9]+")
_NO_OFFSET = b"-"
# How Hadoop's checksums begin: what they are, and of how many bytes each is.
_CHECKSUMS = struct.Struct(">4sI")


@dataclass(frozen=True)
class Deletion:
    """A file that is to go.

    Attributes:
        store: the directory that it is in.
        name: its name there.
    """

    store: Store
    name: str

    def __str__(self) -> str:
        return f"{self.store.key}/{self.name}"

    def apply(self) -> None:
        """Removes it; that it is gone already is no error."""
        # Its checksum first: Spark reads a file that has none, and a checksum that is left behind
        # nobody would find again.
        self.store.delete(f".{self.name}.crc")
        self.store.delete(self.name)


class SparkLog:
    """Spark's checkpoint of one query.

    Args:
        directory: path or URI of the ``checkpointLocation``.

    Raises:
        ConfigurationError: it is none, or cannot be read.

    Attributes:
        directory: as it was given.
        query: id of the query; None: it does not say.
        planned: ids of the batches whose plans are there, ascending.
        done: ids of those that were acknowledged, as far as Spark has kept them.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = place("checkpointLocation", directory).rstrip("/")
        self._offsets = self._store("offsets")
        self._commits = self._store("commits")
        try:
            self.planned = _batches(self._offsets)
            self.query = self._query()
        except OSError as error:
            raise ConfigurationError(
                f"{self.directory!r} cannot be read as a checkpointLocation of Spark: {error}"
            ) from None
        try:
            self.done = _batches(self._commits)
        except OSError:  # before the first batch is done
            self.done = []

    def _store(self, name: str) -> Store:
        path, mark, options = self.directory.partition("?")  # of a URI
        return store_of(f"{path}/{name}{mark}{options}")

    def _query(self) -> str | None:
        try:
            found = object_of(self._store("").read("metadata"), "metadata").get("id")
        except (FileNotFoundError, Malformed):
            return None
        return found if isinstance(found, str) else None

    @property
    def next_batch(self) -> int | None:
        """The batch that a start begins with, if it plans no other; None: it has planned none."""
        if not self.planned:
            return None
        last = self.planned[-1]
        return last + 1 if last in self.done else last

    @cached_property
    def files(self) -> list[tuple[str, Store, str]]:
        """All that a start may read: its directory, by name and as a store, and its name there."""
        found = [("", self._store(""), "metadata")]
        found += [("offsets/", self._offsets, str(number)) for number in self.planned]
        found += [("commits/", self._commits, str(number)) for number in self.done]
        try:
            sources = [name for name in self._store("sources").names() if _BATCH.fullmatch(name)]
        except OSError:  # none keeps a log
            sources = []
        for source in sorted(sources, key=int):
            store = self._store(f"sources/{source}")
            names = [name for name in store.names() if _COMPACT.fullmatch(name)]
            found += [(f"sources/{source}/", store, name) for name in sorted(names)]
        return found

    @cached_property
    def damaged(self) -> dict[str, str]:
        """What is wrong with its files that are not whole, by their names in it. Reads them all."""
        looks = ((place + name, _trouble(place, store, name)) for place, store, name in self.files)
        return {name: trouble for name, trouble in looks if trouble is not None}

    def troubles_at(self, batch_id: int | None = None) -> dict[str, str]:
        """What keeps a start from going on from here, as it is or once it is taken back to a batch:
        of its files, by their names."""
        if not self.planned:
            return {}
        last, done = self.planned[-1], self.done[-1] if self.done else None
        if batch_id is not None:
            following = batch_id + 1 in self.planned
            if batch_id not in self.planned or (following and batch_id not in self.done):
                return {f"offsets/{batch_id}": "it is not there, or what says that it is done"}
            last = batch_id + following
            done = max((number for number in self.done if number <= batch_id), default=None)
        needed = {"metadata", f"offsets/{last}", f"offsets/{last - 1}", f"commits/{done}"}
        found = {name: trouble for name, trouble in self.damaged.items() if name in needed}
        ends = {} if found or batch_id is None else dict(self._file_offsets(last))
        for name, trouble in self.damaged.items():
            source = _SOURCE.fullmatch(name)
            if source and int(source[2]) <= ends.get(int(source[1]), int(source[2])):
                found[name] = trouble  # later ones go when it is taken back
        if last > 0 and last - 1 not in self.planned:
            found[f"offsets/{last - 1}"] = (
                "it is not there, and the last batch begins where it ends"
            )
        return found

    def back_to(self, batch_id: int) -> list[Deletion]:
        """What has to go so that the batch after this one is the next, in the order in which it
        may: broken off at any place, Spark sends a batch that the other checkpoint refuses, or the
        right one.

        Raises:
            ConfigurationError: Spark does not know enough of that time any more.
        """
        if batch_id not in self.planned:
            kept = f"{self.planned[0]} to {self.planned[-1]}" if self.planned else "none"
            raise ConfigurationError(
                f"{self.directory!r} cannot be taken back to batch {batch_id}: Spark has kept the "
                f"batches {kept}: name one of those"
            )
        following = batch_id + 1 in self.planned
        if following and batch_id not in self.done:
            raise ConfigurationError(
                f"{self.directory!r} cannot be taken back to batch {batch_id}: commits/{batch_id} "
                "is not there, and the plan of a later batch is: put a copy of the directory back"
            )
        back = [Deletion(self._commits, str(n)) for n in reversed(self.done) if n > batch_id]
        last = batch_id + following
        back += [Deletion(self._offsets, str(n)) for n in reversed(self.planned) if n > last]
        for number, offset in self._file_offsets(last):
            back += self._of_source(number, offset) or []
        return back

    def merges_files(self, batch_id: int) -> bool:
        """Whether files of batches behind the one after this will come in one batch: the log of
        their source cannot be taken back, because it was put together since."""
        last = batch_id + (batch_id + 1 in self.planned)
        found = [self._of_source(number, offset) for number, offset in self._file_offsets(last)]
        return None in found

    def _file_offsets(self, batch_id: int) -> Iterator[tuple[int, int]]:
        """Of the sources of files their numbers, and where in their logs a batch ends."""
        version, _, *offsets = [*self._offsets.read(str(batch_id)).splitlines(), b"", b""]
        if version.strip() != b"v1":
            return
        for number, line in enumerate(offsets):
            try:
                found = json_of(line, "an offset")
            except Malformed:
                continue
            if isinstance(found, dict) and found.keys() == {"logOffset"}:
                offset = found["logOffset"]
                if isinstance(offset, int):
                    yield number, offset

    def _of_source(self, number: int, offset: int) -> list[Deletion] | None:
        """What goes from the log of a source, the last first; None: the rest would not be whole."""
        store = self._store(f"sources/{number}")
        try:
            names = [match for match in map(_COMPACT.fullmatch, store.names()) if match]
        except OSError:
            return []
        later = sorted((name for name in names if int(name[1]) > offset), key=_number, reverse=True)
        kept = {int(name[1]) for name in names if int(name[1]) <= offset}
        whole = max((int(n[1]) for n in names if n[2] and int(n[1]) <= offset), default=0)
        if later and not kept >= set(range(whole, offset + 1)):
            return None
        return [Deletion(store, name[0]) for name in later]


def _trouble(place: str, store: Store, name: str) -> str | None:
    """What is wrong with a file; None: it is whole, or has gone meanwhile."""
    try:
        content = store.read(name)
    except FileNotFoundError:
        return None
    try:
        checksums = store.read(f".{name}.crc")
    except FileNotFoundError:
        return _malformed(place, content)
    if _are_of(checksums, content):
        return None
    return f"its checksum is wrong: a byte of it, or of .{name}.crc beside it, has changed"


def _are_of(checksums: bytes, content: bytes) -> bool:
    """Whether Hadoop's checksums are of that: a CRC-32 of so many bytes each."""
    if len(checksums) < _CHECKSUMS.size:
        return False
    mark, each = _CHECKSUMS.unpack_from(checksums)
    if mark != b"crc\0" or each == 0:
        return False
    found = [zlib.crc32(content[at : at + each]) for at in range(0, len(content), each)]
    return checksums[_CHECKSUMS.size :] == struct.pack(f">{len(found)}I", *found)


def _malformed(place: str, content: bytes) -> str | None:
    """Why Spark cannot have written it, as far as its form is known."""
    try:
        if not place:
            if type(object_of(content, "it").get("id")) is not str:
                raise Malformed("it names no query")
        elif place in ("offsets/", "commits/"):
            version, *lines = content.splitlines() or [b""]
            if not _VERSION.fullmatch(version):
                raise Malformed("it does not begin with its version")
            if version == b"v1" and not lines:
                raise Malformed("it ends behind its version")
            for line in lines if version == b"v1" else ():
                if line != _NO_OFFSET:
                    json_of(line, "a line of it")
    except Malformed as error:
        return str(error)
    return None


def _batches(store: Store) -> list[int]:
    return sorted(int(name) for name in store.names() if _BATCH.fullmatch(name))


def _number(match: re.Match[str]) -> int:
    return int(match[1])
