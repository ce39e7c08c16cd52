"""Many small files of a Parquet sink put together into few, under the eyes of readers and the sink.

A stream leaves a file for each batch. Here neighbouring ones of a directory become one file, whose
name says which batches it has (``files/part_files.py``). Somebody may list the directory at any
moment, and the process may be killed at any; no row may then be there twice, or not at all. Two
files cannot be replaced by one in a single step. But on Linux two *directories* can be exchanged
for each other (``renameat2``): so the whole directory is built anew beside the old one, of links to
the files that stay and of the files that were put together, and the two are exchanged. Killed
before, there is the old directory, and killed after, the new one; what lies beside it has a hidden
name, and the next compaction removes it. A reader who has listed the old directory before, and
opens a file that is gone, gets an error: it reads again.

An object store has nothing of that kind, and neither have some network filesystems. There it takes
``in_place=True``: a file that was put together gets its name, which is the moment of the change for
``ss.sinks.parquet_dataset``, as that knows which files are superseded; then those are deleted.
Other readers may see rows twice from the one to the other.

A sink that writes meanwhile is kept out only while the links are made. The newest batches, which
may come again, stay as they are unless ``leave=`` says otherwise.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from specstream.checkpoint.format import failpoints
from specstream.checkpoint.format.lease import Lease
from specstream.declarations.options import flag, integer, number, place, refuses_unknown
from specstream.errors import ConfigurationError, SinkError
from specstream.files.part_files import Part, check_written, merge, parts_of, plain, standing
from specstream.files.tree import HIDDEN, LocalTree, Lock, Tree, sync_directory, tree_of

__all__ = ["STEPS", "Compaction", "compact"]

# Where a test has it killed; the batch is the last of the files that are put together first.
STEPS = (
    "merged",  # a file is put together, where nobody looks
    "before-exchange",
    "after-exchange",  # the old files are still there, under a hidden name
    "between-removals",
    "before-publish",  # in place: a file is put together, under a hidden name
    "after-publish",  # it has its name, and the files that it supersedes are there
)
TARGET_SIZE = 128 << 20
_WAIT = 60.0  # for a sink to be between two batches, in seconds
_TRIES = 3
# Where the lease of a compaction is in a store: readers leave such directories out.
_LEASE = "_compaction"
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2
_HERE = -100  # AT_FDCWD
# What a filesystem says that cannot exchange two directories, or these.
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.EXDEV, errno.EBUSY, errno.EPERM, errno.ENOTSUP}


@dataclass(frozen=True)
class Compaction:
    """What a compaction has done.

    Attributes:
        path: the directory.
        before: number of files that had rows to be read.
        after: number of them now.
        merged: how many of the files before were put together.
        rows: that these have.

    >>> Compaction("rows", 12, 2, 11, 340).merged
    11
    """

    path: str
    before: int
    after: int
    merged: int
    rows: int


@dataclass(frozen=True)
class _Plan:
    """Parts that become one each, those that nobody reads any more, and how many are read now."""

    groups: list[list[Part]]
    superseded: list[Part]
    standing: int

    @property
    def is_empty(self) -> bool:
        return not self.groups and not self.superseded

    @property
    def gone(self) -> list[Part]:
        return [*(part for group in self.groups for part in group), *self.superseded]

    @property
    def batch_id(self) -> int:
        """For failpoints."""
        return self.groups[0][-1].last if self.groups else self.superseded[-1].last


@refuses_unknown
def compact(
    path: str | os.PathLike[str],
    *,
    target_size: int = TARGET_SIZE,
    leave: int = 1,
    in_place: bool = False,
    grace: float = 10.0,
) -> Compaction:
    """Puts the files of many batches in a directory of ``parquet_sink`` together into few.

    Whoever reads the directory meanwhile sees each row once, also while the sink goes on writing,
    and after this was killed; then run it again. A batch that was put together with others stays
    known to the sink: if it comes again with the same rows, nothing changes.

    Args:
        path: what the sink has got: a directory or a URI.
        target_size: about how many bytes a file may have; larger files stay as they are.
        leave: how many of the newest batches keep their files: those that may come again, and those
            that a rollback may take out.
        in_place: for a directory that cannot be exchanged as a whole, in an object store or on some
            network filesystems. While it runs, and until it has run again if it was killed, only
            ``ss.sinks.parquet_dataset`` sees each row once.
        grace: seconds for which the old files are kept, for readers that have listed them.

    Raises:
        ConfigurationError: an option has a value that it cannot have, another compaction or a sink
            works there, the directory is not what one sink writes, or it cannot be exchanged and
            ``in_place`` is False.
        SinkError: a file is not what it must be; nothing has changed.

    >>> import tempfile
    >>> from specstream.sinks import parquet_dataset, parquet_sink
    >>> with tempfile.TemporaryDirectory() as path:
    ...     sink = parquet_sink(path + "/rows")
    ...     for batch_id in range(5):
    ...         sink(pa.table({"n": [batch_id]}), batch_id)
    ...     done = compact(path + "/rows", grace=0)
    ...     sink(pa.table({"n": [3]}), 3)  # again
    ...     done.before, done.after, parquet_dataset(path + "/rows").to_table()["n"].to_pylist()
    (5, 2, [0, 1, 2, 3, 4])
    """
    tree = tree_of("path", place("path", path, "the path or the URI of a directory"))
    target_size = integer("target_size", target_size, 1)
    leave = integer("leave", leave, 0)
    in_place = flag("in_place", in_place)
    grace = number("grace", grace, 0, 86_400, "seconds, up to 86400")
    if not isinstance(tree, LocalTree) and not in_place:
        raise ConfigurationError(
            f"path={tree!r}: this store cannot exchange a directory as a whole, so that readers "
            "would see rows twice meanwhile: give in_place=True (specstream compact --in-place) "
            "where it is read by ss.sinks.parquet_dataset alone, or not at all, until it is done"
        )
    try:
        if isinstance(tree, LocalTree):
            if not tree.path.is_dir():
                raise ConfigurationError(
                    f"path={tree!r} is no directory; expected one that ss.sinks.parquet_sink writes"
                )
            check_written("path", tree)
            if not in_place:
                return _exchanged(LocalTree(tree.key), target_size, leave, grace)
            return _in_place(tree, target_size, leave, grace)
        if tree.filesystem.get_file_info(tree.root).type != fs.FileType.Directory:
            raise ConfigurationError(
                f"path={tree!r} is no directory; expected one that ss.sinks.parquet_sink writes"
            )
        check_written("path", tree)
        lease = Lease(tree.filesystem, f"{tree.root}/{_LEASE}", f"path={tree!r}")
        lease.take()
        try:
            return _in_place(tree, target_size, leave, grace, lease)
        finally:
            lease.release()
    except (OSError, pa.ArrowException) as error:
        raise SinkError(
            f"compact({tree!r}): {error}; correct the cause, and run it again"
        ) from error


def _plan(tree: Tree, sizes: dict[str, int], target_size: int, leave: int) -> _Plan:
    stands, superseded = standing(parts_of(sizes))
    newest = sorted({part.last for part in stands})[-leave:] if leave else []
    groups: list[list[Part]] = [[]]
    schema, size = None, 0
    for part in stands:
        group = groups[-1]
        if part.last in newest or sizes[part.name] >= target_size:
            groups.append([])
            continue
        with tree.reading(part.name) as file:
            own = plain(pq.read_schema(file).empty_table()).schema
        if group and (
            group[-1].directory != part.directory
            or size + sizes[part.name] > target_size
            or not own.equals(schema)
        ):
            group = []
            groups.append(group)
        if not group:
            schema, size = own, 0
        group.append(part)
        size += sizes[part.name]
    return _Plan([group for group in groups if len(group) > 1], superseded, len(stands))


def _of(group: list[Part]) -> Part:
    """The part that a group becomes."""
    return Part(group[0].directory, group[0].first, group[-1].last)


def _done(tree: Tree, plan: _Plan, rows: int) -> Compaction:
    merged = sum(map(len, plan.groups))
    after = plan.standing - merged + len(plan.groups)
    return Compaction(str(tree.root), plan.standing, after, merged, rows)


# ---- by exchanging the directory ----


def _exchanged(tree: LocalTree, target_size: int, leave: int, grace: float) -> Compaction:
    path = tree.path
    beside = path.with_name(f".{path.name}.compacting")
    with _alone(beside, path):
        _emptied(beside, grace)
        for _ in range(_TRIES):
            sizes = tree.files()
            plan = _plan(tree, sizes, target_size, leave)
            if plan.is_empty:
                return _done(tree, plan, 0)
            looked = {part: _identity(path / part.name) for part in plan.gone}
            rows = _merged(tree, plan, beside)
            with _locked(path):
                if looked == {part: _identity(path / part.name) for part in plan.gone}:
                    _link(path, beside, {part.name for part in plan.gone})
                    failpoints.hit("before-exchange", plan.batch_id)
                    _exchange(beside, path)
                    failpoints.hit("after-exchange", plan.batch_id)
                    sync_directory(path.parent)
                    break
            _emptied(beside, 0)  # a batch has come again meanwhile
        else:
            raise ConfigurationError(
                f"path={str(path)!r}: its files change all the time: stop the query, or give "
                "leave= the batches that come again"
            )
    # What is beside is the old directory now; the next compaction can remove it as well.
    with contextlib.suppress(ConfigurationError), _alone(beside, path):
        _emptied(beside, grace, plan.batch_id)
    return _done(tree, plan, rows)


@contextlib.contextmanager
def _alone(beside: Path, path: Path) -> Iterator[None]:
    """The directory that the new one is built in, which one compaction has at a time."""
    beside.mkdir(exist_ok=True)
    try:
        lock = Lock.of(beside, alone=True, wait=0)
    except TimeoutError:
        raise ConfigurationError(
            f"path={str(path)!r}: another compaction is at work there: wait until it has ended"
        ) from None
    if lock is None:
        beside.rmdir()
        raise _cannot(path, "it has no locks (flock)")
    try:
        yield
    finally:
        lock.release()
        with contextlib.suppress(OSError):
            beside.rmdir()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The directory, while no sink has a file under way in it."""
    try:
        lock = Lock.of(path, alone=True, wait=_WAIT)
    except TimeoutError:
        raise ConfigurationError(
            f"path={str(path)!r}: a sink has had a batch under way there for {_WAIT:.0f} s: try "
            "again, or stop the query"
        ) from None
    if lock is None:
        raise _cannot(path, "it has no locks (flock)")
    try:
        yield
    finally:
        lock.release()


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Another one when a file was replaced."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _merged(tree: LocalTree, plan: _Plan, beside: Path) -> int:
    """Writes the files that the groups become; returns how many rows they have."""
    rows = 0
    for group in plan.groups:
        target = beside / _of(group).name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            rows += merge(tree, group, file)
            file.flush()
            os.fsync(file.fileno())
        _made_like(tree.path / group[0].name, target)
        failpoints.hit("merged", plan.batch_id)
    return rows


def _link(path: Path, beside: Path, gone: set[str]) -> None:
    """Gives the new directory all that stays of the old one, and makes it durable."""
    try:
        for at, directories, names in os.walk(path):
            own = beside / Path(at).relative_to(path)
            for name in directories:
                if (linked := Path(at, name)).is_symlink():
                    (own / name).symlink_to(linked.readlink())
                else:
                    (own / name).mkdir(exist_ok=True)
            for name in names:
                there = Path(at, name)
                left = name.startswith(".part-") and name.endswith(HIDDEN)  # of a killed sink
                if not left and there.relative_to(path).as_posix() not in gone:
                    os.link(there, own / name, follow_symlinks=False)
            _made_like(Path(at), own)
            sync_directory(own)
    except OSError as error:
        raise _cannot(path, str(error)) from error


def _made_like(old: Path, new: Path) -> None:
    """Gives a file or a directory the permissions of another one, and its owner, if it may."""
    found = old.stat()
    new.chmod(stat.S_IMODE(found.st_mode))
    with contextlib.suppress(PermissionError):
        os.chown(new, found.st_uid, found.st_gid)


def _exchange(one: Path, other: Path) -> None:
    """Two directories get each other's names, in one step."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        raise _cannot(other, "the C library has no renameat2")
    if renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return
    number = ctypes.get_errno()
    if number in _CANNOT:
        raise _cannot(other, os.strerror(number))
    raise OSError(number, os.strerror(number), str(other))


def _cannot(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"path={str(path)!r}: it cannot be exchanged for another directory as a whole ({why}): "
        "give the sink a directory inside of a local filesystem; or in_place=True (specstream "
        "compact --in-place), where it is read by ss.sinks.parquet_dataset alone, or not at all, "
        "until it is done"
    )


def _emptied(beside: Path, grace: float, batch_id: int = -1) -> None:
    """Removes what is in the directory beside: a new one half built, or the old one, which
    somebody may be listing who has opened it before."""
    if any(beside.iterdir()):
        # A directory's own time of change is that of its last renaming, or later.
        left = grace - (time.time() - beside.stat().st_ctime)
        # Nobody tells when a reader has done with a listing: it is given the time that is left.
        time.sleep(min(max(left, 0.0), grace))
    for one in sorted(beside.iterdir()):
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink()
        failpoints.hit("between-removals", batch_id)


# ---- in place ----


def _in_place(
    tree: Tree, target_size: int, leave: int, grace: float, lease: Lease | None = None
) -> Compaction:
    # Of one that was killed; a sink writes no such files.
    tree.discard(part.name for part in parts_of(tree.unpublished()) if part.is_merged)
    plan = _plan(tree, tree.files(), target_size, leave)
    if plan.is_empty:
        return _done(tree, plan, 0)
    rows = 0
    for group in plan.groups:
        name = _of(group).name
        with tree.writing(name) as file:
            rows += merge(tree, group, file)
        failpoints.hit("before-publish", plan.batch_id)
        if lease is not None:
            lease.check()
        tree.publish([name])
        failpoints.hit("after-publish", plan.batch_id)
    time.sleep(grace)  # for readers that have listed the old files, of whom nobody knows
    if lease is not None:
        lease.check()
    for part in plan.gone:
        tree.delete([part.name])
        failpoints.hit("between-removals", plan.batch_id)
    return _done(tree, plan, rows)
