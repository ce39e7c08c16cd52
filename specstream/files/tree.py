"""Directories of data files, local or in another filesystem; a file is there whole or not at all.

It is written under a hidden name, which readers skip, and published when it is complete. Locally
that is a rename, and both the file and the directories are synced. Elsewhere it is a move, and what
outlives a crash is up to the store.

A local directory can be locked, by ``flock`` on the directory itself: whoever has files under way
in it shares the lock, and whoever exchanges it for another one (``sinks/compaction.py``) has
it alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from specstream.errors import ConfigurationError
from specstream.files.places import is_uri, local_path, spelling
from specstream.files.writing import writing

__all__ = [
    "HIDDEN",
    "LocalTree",
    "RemoteTree",
    "Tree",
    "filesystem_of",
    "shown_uri",
    "sync_directory",
    "tree_of",
]

HIDDEN = ".writing"
_LOOK_AGAIN = 0.01  # seconds


class Tree(Protocol):
    """A directory and those inside of it; files have names like ``day=1/part-00000012.parquet``.

    Attributes:
        filesystem: Arrow's.
    """

    filesystem: fs.FileSystem

    @property
    def key(self) -> str:
        """The same for two that are one directory."""

    @property
    def root(self) -> str:
        """The directory's path in the filesystem."""

    def make(self) -> None:
        """Makes the directory, if it is not there."""

    def files(self) -> dict[str, int]:
        """The files that readers see, with their sizes in bytes; in order of names."""

    def unpublished(self) -> list[str]:
        """The names of files that are there under their hidden ones."""

    def writing(self, name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
        """A file under a hidden name, complete and durable at the end of the block; replaces what
        an earlier one has left. When the block raises, nothing is left."""

    def publish(self, names: Iterable[str]) -> None:
        """Puts complete ones in their places, one after the other; outlives a crash."""

    def discard(self, names: Iterable[str]) -> None:
        """Removes complete ones that were not published."""

    def delete(self, names: Iterable[str]) -> None:
        """Removes files, those that are there."""

    def reading(self, name: str) -> Any:
        """A file, open to be read."""

    def share(self) -> Lock | None:
        """Keeps the directory from being exchanged; None: nobody can."""


def filesystem_of(option: str, text: str) -> tuple[fs.FileSystem, str]:
    """The filesystem that a path or a URI names, and the path there.

    Args:
        option: names it in errors.
        text: a path, or a URI that ``FileSystem.from_uri`` knows.

    Raises:
        ConfigurationError: it is a URI that cannot be reached.

    >>> filesystem_of("path", "top")[1]
    'top'
    """
    if not is_uri(text):
        return fs.LocalFileSystem(), text
    try:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(text)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{option}={shown_uri(text)!r} is no URI that pyarrow.fs.FileSystem.from_uri reaches: "
            f"{str(error).replace(text, shown_uri(text))}{_instead(text)}"
        ) from error
    return found


def _instead(text: str) -> str:
    """What to write for a URI that cannot be reached by that name, where that is known."""
    shown = shown_uri(text)
    other = spelling(shown)
    return "" if other in (None, repr(shown)) else f": write {other}"


def shown_uri(text: str) -> str:
    """A path or a URI as messages have it: without the password.

    >>> shown_uri("s3://key:secret@bucket/rows?region=eu"), shown_uri("/data/a:b@c")
    ('s3://key:***@bucket/rows?region=eu', '/data/a:b@c')
    """
    head, found, _ = text.partition("://")
    if not found:
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return f"{head}://***"
    user, at, host = parts.netloc.rpartition("@")
    if not at or ":" not in user:
        return text
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***@{host}"))


def tree_of(option: str, text: str) -> Tree:
    """The directory that a path or a URI names; it need not be there.

    Raises:
        ConfigurationError: as of :func:`filesystem_of`.

    >>> tree_of("path", "top").key.endswith("/top")
    True
    """
    filesystem, path = filesystem_of(option, text)
    if isinstance(filesystem, fs.LocalFileSystem):
        return LocalTree(path)
    return RemoteTree(filesystem, path, text)


class LocalTree:
    """A local or mounted directory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.filesystem: fs.FileSystem = fs.LocalFileSystem()

    @property
    def key(self) -> str:
        """The same for all ways to write the path."""
        return os.path.realpath(self.path)

    @property
    def root(self) -> str:
        """The directory."""
        return str(local_path(self.path))

    def __repr__(self) -> str:
        return repr(str(self.path))

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    def files(self) -> dict[str, int]:
        found = {}
        for name in self._names():
            if _is_shown(name.rpartition("/")[2]):
                with contextlib.suppress(FileNotFoundError):  # replaced meanwhile
                    found[name] = (self.path / name).stat().st_size
        return found

    def unpublished(self) -> list[str]:
        return _unhidden(self._names())

    def _names(self) -> list[str]:
        found = []
        for at, directories, names in os.walk(self.path):
            directories[:] = [name for name in directories if _is_shown(name)]
            found += [Path(at, name).relative_to(self.path).as_posix() for name in names]
        return sorted(found)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        hidden = self.path / _hidden(name)
        hidden.parent.mkdir(parents=True, exist_ok=True)
        # Who was stopped in the middle of it, on another host, may go on, in a file that is gone.
        hidden.unlink(missing_ok=True)
        with _removed_if_raising(hidden), writing(hidden), hidden.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def publish(self, names: Iterable[str]) -> None:
        changed = set()
        for name in names:
            hidden, path = self.path / _hidden(name), self.path / name
            with _removed_if_raising(hidden):
                os.replace(hidden, path)
            changed |= {path.parent, *(self.path / up for up in Path(name).parent.parents)}
        for directory in changed:
            sync_directory(directory)

    def discard(self, names: Iterable[str]) -> None:
        self.delete(map(_hidden, names))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def reading(self, name: str) -> Any:
        return (self.path / name).open("rb")

    def share(self) -> Lock | None:
        return Lock.of(self.path, alone=False)


class RemoteTree:
    """A directory of another filesystem."""

    def __init__(self, filesystem: fs.FileSystem, path: str, uri: str) -> None:
        self.filesystem = filesystem
        self._root = path.rstrip("/")
        self._key = uri.rstrip("/")

    @property
    def key(self) -> str:
        """The URI."""
        return self._key

    @property
    def root(self) -> str:
        """The directory."""
        return self._root

    def __repr__(self) -> str:
        return repr(shown_uri(self.key))

    def make(self) -> None:
        self.filesystem.create_dir(self.root, recursive=True)

    def files(self) -> dict[str, int]:
        return {
            name: size for name, size in self._sizes().items() if _is_shown(name.rpartition("/")[2])
        }

    def unpublished(self) -> list[str]:
        return _unhidden(self._sizes())

    def _sizes(self) -> dict[str, int]:
        selector = fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        found = {}
        for info in self.filesystem.get_file_info(selector):
            name = info.path.removeprefix(self.root).lstrip("/")
            if info.type == fs.FileType.File and all(map(_is_shown, name.split("/")[:-1])):
                found[name] = info.size or 0
        return dict(sorted(found.items()))

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        directory = name.rpartition("/")[0]
        if directory:
            self.filesystem.create_dir(f"{self.root}/{directory}", recursive=True)
        hidden = _hidden(name)
        try:
            with self.filesystem.open_output_stream(self._at(hidden)) as file:
                yield file
        except BaseException:
            # A stream that is left by an exception is closed as well, which can make a file.
            with contextlib.suppress(OSError, pa.ArrowException):
                self.delete([hidden])
            raise

    def publish(self, names: Iterable[str]) -> None:
        for name in names:
            self.filesystem.move(self._at(_hidden(name)), self._at(name))

    def discard(self, names: Iterable[str]) -> None:
        self.delete(map(_hidden, names))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self.filesystem.delete_file(self._at(name))

    def reading(self, name: str) -> Any:
        return self.filesystem.open_input_file(self._at(name))

    def share(self) -> Lock | None:
        return None

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}"


class Lock:
    """A lock on a local directory, of whatever process and thread; gone with its holder."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def of(cls, path: Path, *, alone: bool, wait: float | None = None) -> Lock | None:
        """The lock, when it can be had.

        Args:
            path: the directory, which may be exchanged for another one meanwhile.
            alone: whether nobody else may have it.
            wait: so many seconds at most; None: for ever.

        Returns:
            None where the filesystem has no such locks.

        Raises:
            TimeoutError: somebody else has it all the time.
        """
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        until = None if wait is None else time.monotonic() + wait
        while True:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                is_had = True
            except BlockingIOError:
                is_had = False
            except OSError:
                os.close(descriptor)
                return None
            # What is locked may be what the name has been before.
            if is_had and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return cls(descriptor)
            os.close(descriptor)
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"{str(path)!r} is locked")
            time.sleep(_LOOK_AGAIN)  # flock itself waits without an end, and may wait on an old one

    def release(self) -> None:
        """Gives it back; once more does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Makes the names in a directory outlive a crash."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _hidden(name: str) -> str:
    directory, slash, last = name.rpartition("/")
    return f"{directory}{slash}.{last}{HIDDEN}"


def _unhidden(names: Iterable[str]) -> list[str]:
    """What is hidden, by the names that it is to get."""
    found = []
    for name in names:
        directory, slash, last = name.rpartition("/")
        if last.startswith(".") and last.endswith(HIDDEN):
            found.append(f"{directory}{slash}{last[1 : -len(HIDDEN)]}")
    return found


def _is_shown(name: str) -> bool:
    return not name.startswith((".", "_"))


@contextlib.contextmanager
def _removed_if_raising(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)  # on a full disk it would be in its own way
        raise
