"""Where the files of a checkpoint lie: a local directory, or any filesystem that Arrow reaches.

A file is either there whole or not there at all. Locally it is written under a hidden name and
synced, renamed, and then the directory is synced, because the new name is part of the directory and
not of the file. Elsewhere it is written under a hidden name and moved when it is complete.

A local directory is locked for the life of the process that writes to it. The lock is one of the
process (``fcntl.lockf``), which ends with it, however it ends; a child that it has forked does not
hold it on. It says nothing about a second user in the same process: that is for the caller to see.
Elsewhere there are no locks, and whoever writes holds a lease (``lease.py``).
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

import pyarrow as pa
from pyarrow import fs

from specstream.checkpoint.format import failpoints
from specstream.checkpoint.format.lease import SECONDS, Lease
from specstream.declarations.options import place
from specstream.errors import ConfigurationError
from specstream.files.tree import filesystem_of, shown_uri, sync_directory
from specstream.files.untrusted import Buffer
from specstream.files.writing import writing

__all__ = ["LocalStore", "RemoteStore", "Store", "check_beside_spark", "store_of"]

LOCK = "lock"
# What Spark has in its checkpointLocation, from a query's first batch on.
SPARKS = ("offsets", "commits", "metadata")
_SUFFIX = ".writing"


class Store(Protocol):
    """A directory of files that are there whole or not at all.

    Attributes:
        key: the same for two stores that are one directory.
    """

    key: str

    def open(self, lease: float = SECONDS) -> None:
        """Makes the directory, and keeps other processes out of it.

        Args:
            lease: how long a process that has not been heard of is waited for, in seconds, where
                there are no locks.

        Raises:
            ConfigurationError: it cannot be a directory, or another process uses it.
        """

    def check_place(self) -> None:
        """Looks whether it is outside of Spark's checkpoint, as far as Spark has made that.

        Raises:
            ConfigurationError: it is one, or inside of one.
        """

    def check_held(self) -> None:
        """Looks whether other processes are still kept out.

        Raises:
            ConfigurationError: another one has taken the directory over; names it.
            OSError, ArrowException: that cannot be known, as the filesystem is out of reach.
        """

    def names(self) -> list[str]:
        """Names of its files, without hidden ones."""

    def read(self, name: str) -> bytes:
        """A file's content."""

    def modified(self, name: str) -> datetime.datetime:
        """When it was written, in UTC."""

    def write(self, name: str, parts: Sequence[Buffer], batch_id: int) -> int:
        """Makes or replaces a file, durably; returns its length in bytes."""

    def note(self, name: str, parts: Sequence[Buffer]) -> None:
        """Makes or replaces a file that nothing depends on: not synced."""

    def delete(self, name: str) -> None:
        """Removes a file, if it is there."""

    def close(self) -> None:
        """Releases the directory lock."""


def store_of(checkpoint: str | os.PathLike[str]) -> Store:
    """The store that ``checkpoint=`` names: a path, or a URI that ``FileSystem.from_uri`` knows.

    Raises:
        ConfigurationError: it is neither.

    >>> store_of("top").key.endswith("/top")
    True
    """
    text = place("checkpoint", checkpoint, "a path or a URI of a directory, beside Spark's own")
    filesystem, there = filesystem_of("checkpoint", text)
    if isinstance(filesystem, fs.LocalFileSystem):
        return LocalStore(there)
    return RemoteStore(filesystem, there, text)


class LocalStore:
    """A local or mounted directory, locked."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        self.key = str(self.path)
        self._lock: IO[str] | None = None

    def __repr__(self) -> str:
        return repr(self.key)

    def check_place(self) -> None:
        check_beside_spark(self.key, self._is_there)

    def open(self, lease: float = SECONDS) -> None:
        self.check_place()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            sync_directory(self.path.parent)
            self._lock = self._locked()
        except OSError as error:
            raise ConfigurationError(
                f"checkpoint={self.key!r} cannot be a directory of checkpoint files: {error}"
            ) from error
        for left in self.path.glob(f".*{_SUFFIX}"):
            left.unlink()  # of a writer that was killed

    def check_held(self) -> None:
        pass  # the lock ends with the process

    @staticmethod
    def _is_there(paths: list[str]) -> bool:
        return all(map(os.path.exists, paths))

    def _locked(self) -> IO[str]:
        lock = (self.path / LOCK).open("a+", errors="replace")
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read(200).strip() or "unknown"
            lock.close()
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
            raise ConfigurationError(
                f"checkpoint={self.key!r} is in use by another process ({holder}): stop the "
                "query there, or give every query a checkpoint of its own"
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()}\n")
        lock.flush()
        return lock

    def names(self) -> list[str]:
        return [path.name for path in self.path.iterdir() if not path.name.startswith(".")]

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def modified(self, name: str) -> datetime.datetime:
        return _time((self.path / name).stat().st_mtime_ns)

    def write(self, name: str, parts: Sequence[Buffer], batch_id: int) -> int:
        hidden = self.path / f".{name}{_SUFFIX}"
        try:
            with writing(hidden, _length(parts)):
                length = _write(hidden, parts, batch_id)
            failpoints.hit("before-rename", batch_id)
            os.replace(hidden, self.path / name)
        except BaseException:
            with contextlib.suppress(OSError):
                hidden.unlink(missing_ok=True)  # on a full disk it would be in its own way
            raise
        failpoints.hit("after-rename", batch_id)
        sync_directory(self.path)
        return length

    def note(self, name: str, parts: Sequence[Buffer]) -> None:
        hidden = self.path / f".{name}{_SUFFIX}"
        try:
            with writing(hidden, _length(parts)), hidden.open("wb") as file:
                file.writelines(parts)
            os.replace(hidden, self.path / name)
        except BaseException:
            with contextlib.suppress(OSError):
                hidden.unlink(missing_ok=True)
            raise

    def delete(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()


class RemoteStore:
    """A directory of another filesystem, of which the process that writes there has the lease."""

    def __init__(self, filesystem: fs.FileSystem, path: str, key: str) -> None:
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self.key = key.rstrip("/")
        self._lease: Lease | None = None

    def __repr__(self) -> str:
        return repr(shown_uri(self.key))

    def check_place(self) -> None:
        check_beside_spark(self._path, self._is_there, shown_uri(self.key))

    def open(self, lease: float = SECONDS) -> None:
        try:
            self.check_place()
            self._filesystem.create_dir(self._path, recursive=True)
            self.names()
            taken = Lease(self._filesystem, self._path, f"checkpoint={self!r}", lease)
            taken.take()
            self._lease = taken
        except (OSError, pa.ArrowException) as error:  # Azure's without credentials is no OSError
            raise ConfigurationError(
                f"checkpoint={self!r} cannot be a directory of checkpoint files: {error}"
            ) from error

    def check_held(self) -> None:
        if self._lease is not None:
            self._lease.check()

    def _is_there(self, paths: list[str]) -> bool:
        found = self._filesystem.get_file_info(paths)
        return all(info.type != fs.FileType.NotFound for info in found)

    def names(self) -> list[str]:
        found = self._filesystem.get_file_info(fs.FileSelector(self._path))
        return [info.base_name for info in found if not info.base_name.startswith(".")]

    def read(self, name: str) -> bytes:
        with self._filesystem.open_input_file(f"{self._path}/{name}") as file:
            content: bytes = file.read()
        return content

    def modified(self, name: str) -> datetime.datetime:
        info = self._filesystem.get_file_info(f"{self._path}/{name}")
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(f"{self.key}/{name}")
        return _time(info.mtime_ns or 0)

    def write(self, name: str, parts: Sequence[Buffer], batch_id: int) -> int:
        hidden, length = self._hidden(name, parts)
        failpoints.hit("before-rename", batch_id)
        self.check_held()
        try:
            self._filesystem.move(hidden, f"{self._path}/{name}")
        except OSError:
            self.check_held()  # who has taken over has moved the same name
            raise
        failpoints.hit("after-rename", batch_id)
        return length

    def note(self, name: str, parts: Sequence[Buffer]) -> None:
        hidden, _ = self._hidden(name, parts)
        self._filesystem.move(hidden, f"{self._path}/{name}")

    def _hidden(self, name: str, parts: Sequence[Buffer]) -> tuple[str, int]:
        """A file under a hidden name, and its length."""
        hidden = f"{self._path}/.{name}{_SUFFIX}"
        # A stream that is left by an exception is closed as well, and some filesystems make a file
        # of what it has got by then: hence the other name.
        try:
            with self._filesystem.open_output_stream(hidden) as file:
                for part in parts:
                    file.write(part)
                length: int = file.tell()
        except OSError as error:
            reason = f"{error} (of {_length(parts):,} bytes)"
            raise OSError(error.errno or errno.EIO, reason, f"{self.key}/{name}") from error
        return hidden, length

    def delete(self, name: str) -> None:
        self.check_held()
        with contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(f"{self._path}/{name}")

    def close(self) -> None:
        if self._lease is not None:
            self._lease.release()


def check_beside_spark(
    path: str, is_there: Callable[[list[str]], bool], shown: str | None = None
) -> None:
    """Whether a directory is outside of Spark's checkpoint, as far as Spark has made that.

    Args:
        path: the directory, absolute.
        is_there: whether all of some paths are.
        shown: names the directory in the error; None: its path.

    Raises:
        ConfigurationError: it is one, or inside of one.
        OSError, ArrowException: the filesystem cannot be reached.
    """
    place = PurePosixPath(path)
    for spark in (place, *place.parents):
        try:
            found = bool(spark.name) and is_there([str(spark / name) for name in SPARKS])
        except (OSError, pa.ArrowException):
            if spark == place:
                raise
            return  # what is above the directory need not be readable
        if found:
            where = "is" if spark == place else "is inside"
            raise ConfigurationError(
                f"checkpoint={shown or path!r} {where} the checkpointLocation {str(spark)!r} of "
                "Spark: give a directory beside it"
            )


def _length(parts: Sequence[Buffer]) -> int:
    return sum(map(len, parts))


def _write(path: Path, parts: Sequence[Buffer], batch_id: int) -> int:
    *most, last = parts
    with path.open("wb", buffering=1 << 20) as file:
        for part in most:
            file.write(part)
        file.flush()
        failpoints.hit("half-written", batch_id)
        file.write(last)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def _time(nanoseconds: int) -> datetime.datetime:
    """In whole numbers, as a float of that size has no microseconds to be compared by."""
    since = datetime.timedelta(microseconds=nanoseconds // 1000)
    return datetime.datetime.fromtimestamp(0, datetime.UTC) + since
