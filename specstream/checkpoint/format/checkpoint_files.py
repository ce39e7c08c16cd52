"""The checkpoint files of one store: their names, which of them are whole, and which may go.

Files are numbered by their batch. Each is an increment to the one before, or full; two full ones
that were found good are kept, with all files after the earlier of them, so that damage to any one
file still leaves a state to go on from. Deletion goes from late to early files: whenever it is
interrupted, each file that is left still has what it builds on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specstream.checkpoint.format import failpoints
from specstream.checkpoint.format.file_format import CheckpointFile
from specstream.checkpoint.format.store import Store
from specstream.engine.snapshot import refused
from specstream.errors import SnapshotError
from specstream.files.container import DamagedFile
from specstream.files.untrusted import Buffer, Malformed

__all__ = ["NO_FILES", "CheckpointFiles", "FileName", "names_of", "read_file"]

# Of a directory that is no checkpoint, in errors.
NO_FILES = (
    "has no checkpoint files; expected the directory that foreach_batch(checkpoint=...) or "
    "specstream run --checkpoint got, with a batch in it"
)

# Full files that are kept, with the increments on them.
KEPT = 2

_NAME = re.compile(r"([0-9]{10})\.(full|increment)")


@dataclass(frozen=True, order=True)
class FileName:
    """The name of a checkpoint file; they sort by age."""

    batch_id: int
    kind: Literal["full", "increment"]

    def __str__(self) -> str:
        return f"{self.batch_id:010d}.{self.kind}"

    @property
    def is_full(self) -> bool:
        """Whether it needs no other."""
        return self.kind == "full"


def names_of(store: Store) -> list[FileName]:
    """The checkpoint files that are there, early ones first."""
    matches = map(_NAME.fullmatch, store.names())
    return sorted(
        FileName(int(match[1]), "full" if match[2] == "full" else "increment")
        for match in matches
        if match
    )


def read_file(store: Store, name: FileName, what: str) -> CheckpointFile:
    """A checkpoint file, which is whole.

    Args:
        store: where it is.
        name: which.
        what: names it in errors.

    Raises:
        FileNotFoundError: it is not there.
        DamagedFile: it is torn, or a byte of it has changed.
        SnapshotError: this version cannot read it, or it is none although its checksum is right.
    """
    content = store.read(str(name))
    with refused(what):
        try:
            found = CheckpointFile.from_bytes(content)
        except Malformed:
            raise
        except SnapshotError as error:
            raise SnapshotError(f"{what}: {error}") from None
        if found.about.batch_id != name.batch_id:
            raise Malformed(f"it is the file of batch {found.about.batch_id}")
    return found


class CheckpointFiles:
    """The files of a checkpoint that somebody writes.

    Args:
        store: where they are.
        what: names the checkpoint in errors.
        keep_batches: files reach back at least so many batches, where so many were written.
    """

    def __init__(self, store: Store, what: str, keep_batches: int) -> None:
        self._store = store
        self._what = what
        self._keep_batches = keep_batches
        self._good: set[FileName] = set()  # read whole, or written, by this process
        self._may_have_later = True

    def what(self, name: FileName) -> str:
        """Names a file in errors."""
        return f"{self._what}, file {name}"

    def names(self) -> list[FileName]:
        """Those that are there, early ones first."""
        return names_of(self._store)

    def read(self, name: FileName) -> CheckpointFile:
        """One of them, as of :func:`read_file`."""
        found = read_file(self._store, name, self.what(name))
        self._good.add(name)
        return found

    def write(self, name: FileName, parts: Sequence[Buffer]) -> int:
        """Makes or replaces one, durably; gives its length in bytes."""
        length = self._store.write(str(name), parts, name.batch_id)
        self._good.add(name)
        return length

    def delete_superseded(self, newest: FileName) -> None:
        """Deletes what the files that are kept do not need.

        That is also what is later than the newest: a history that a damaged file has ended.
        """
        if not newest.is_full and not self._may_have_later:
            return
        self._may_have_later = False
        names = self.names()
        kept = newest.batch_id
        found = 0
        reach = newest.batch_id - self._keep_batches
        for name in reversed(names):
            if found >= KEPT and kept <= reach:
                break
            if name <= newest and name.is_full and self._is_good(name):
                found, kept = found + 1, name.batch_id
        if found < KEPT:
            kept = 0
        for name in reversed(names):
            after = name.batch_id >= newest.batch_id and name != newest
            if after or name.batch_id < kept:
                self._store.delete(str(name))
                failpoints.hit("between-deletes", newest.batch_id)

    def _is_good(self, name: FileName) -> bool:
        """Whether a file is whole: the last thing to ask before it is all that can be had."""
        if name not in self._good:
            try:
                self.read(name)
            except (DamagedFile, SnapshotError):
                return False
        return True
