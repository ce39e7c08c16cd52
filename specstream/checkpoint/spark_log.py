"""Which batches Spark has planned and acknowledged, read from its checkpointLocation without Spark.

``offsets/N`` is there when batch N is planned, ``commits/N`` when it is done. At a start Spark goes
on behind the last one that is done; one that was planned and not done comes again, with the same
rows. So Spark is taken back to batch N by deleting what it has of later ones, but for the plan of
N + 1: what is left is what a crash in batch N + 1 would leave.

A source of files keeps a log of its own in ``sources``, which files it has given to which batch.
Unless that is taken back as well, all files of later batches come in one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from specstream.checkpoint.store import Store, store_of
from specstream.errors import ConfigurationError
from specstream.files.untrusted import Malformed, json_of, object_of

__all__ = ["Deletion", "SparkLog"]

_BATCH = re.compile(r"[0-9]+")
_COMPACT = re.compile(r"([0-9]+)(\.compact)?")


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
        self.directory = os.fspath(directory).rstrip("/")
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


def _batches(store: Store) -> list[int]:
    return sorted(int(name) for name in store.names() if _BATCH.fullmatch(name))


def _number(match: re.Match[str]) -> int:
    return int(match[1])
