"""The check of a checkpoint directory: what files need there works, and what is in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from specstream.doctor.filesystem import existing, kind
from specstream.doctor.finding import Check, Finding, Verdict
from specstream.doctor.machine import gigabytes

if TYPE_CHECKING:
    from specstream.checkpoint.format.checkpoint_files import CheckpointFiles
    from specstream.checkpoint.format.restart import Newest
    from specstream.checkpoint.format.store import LocalStore

__all__ = ["check"]

NAME = "checkpoint"
LEAST_ROOM = 256 << 20
NOT_THERE = "not there yet, and can be made"
COPY_BACK = "put a copy of the directory back, or begin a new stream: empty it, and the sinks"
# Not asked: a look at a bucket goes over the network.
REMOTE = ("s3", "gs", "abfss", "hdfs")
# What is in these goes with the machine, or with the container.
FLEETING = {"tmpfs": "a restart of the machine", "ramfs": "a restart of the machine",
            "overlay": "the container"}  # fmt: skip
# Of struct flock: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi")
_TAKE_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(9)
"""


class _Broken(Exception):
    """An operation that checkpoint files need does not work; the text says which."""


class _Unusable(Exception):
    """What is there cannot be gone on from.

    Attributes:
        found: what is there.
        advice: what to do.
    """

    def __init__(self, found: str, advice: str) -> None:
        super().__init__(found)
        self.found, self.advice = found, advice


def check(place: str) -> Check:
    """Of a directory, or of a URI, that ``checkpoint=`` could get. Nothing of it is changed."""
    return Check(NAME, lambda say: _look(place))


def _look(place: str) -> Finding:
    from specstream.checkpoint.format.store import LocalStore, check_beside_spark
    from specstream.checkpoint.run.run_directory import recorded_store
    from specstream.errors import ConfigurationError

    scheme, is_uri, _ = place.partition("://")
    if is_uri and scheme not in (*REMOTE, "file"):
        found = f"pyarrow reaches no {scheme}:// of {place}"
        advice = "name a path, or " + ", ".join(("file", *REMOTE)) + " (://)"
        return Finding(NAME, "missing", found, advice)
    if is_uri and scheme != "file":
        advice = "its first user finds out: foreach_batch tries it, and takes its lease"
        return Finding(NAME, "warning", f"{place}, of which nothing was asked", advice)
    try:
        store = recorded_store(place)
        assert isinstance(store, LocalStore)
        check_beside_spark(store.key, lambda paths: all(map(os.path.exists, paths)))
    except ConfigurationError as error:
        return Finding(NAME, "missing", str(error), "give another directory")
    path = store.path
    if os.path.lexists(path) and not path.is_dir():
        return Finding(NAME, "missing", f"{path} is no directory", "give another one")
    parent = existing(path)
    where = f"{path} ({kind(path)}, {gigabytes(shutil.disk_usage(parent).free)} free)"
    try:
        _try_operations(parent)
    except _Broken as broken:
        advice = f"use a directory where {parent} is yours, on a filesystem that does this"
        return Finding(NAME, "missing", f"{where}: {broken}", advice)
    lock = path / "lock"
    if os.path.lexists(lock) and not lock.is_file():
        return Finding(NAME, "missing", f"{where}: {lock} is no file", f"remove {lock}")
    verdict: Verdict = "ok"
    try:
        content, advice = _content(store) if parent == path else (NOT_THERE, "")
        holder = _holder(lock)
    except _Unusable as unusable:
        content, advice, verdict, holder = unusable.found, unusable.advice, "missing", None
    except PermissionError as error:
        content, verdict, holder = f"{error.filename}: {error.strerror}", "missing", None
        advice = "run as the user that the query has, or make the files that user's: chown -R"
    found = f"{where}: {content}"
    if not advice and holder:
        advice = "one query at a time: stop the one that runs before another one starts there"
        found += f", in use by process {holder}"
    if not advice and shutil.disk_usage(parent).free < LEAST_ROOM:
        advice = "make room: each checkpoint file may be as large as the state"
    if not advice and kind(path) in FLEETING:
        advice = f"what is there goes with {FLEETING[kind(path)]}: take a disk or a volume"
    return Finding(NAME, "warning" if advice and verdict == "ok" else verdict, found, advice)


def _try_operations(directory: Path) -> None:
    """Does what a checkpoint does, in a directory of its own inside, which is removed again.

    Raises:
        _Broken: one of it does not work.
    """
    doing = "making a file"
    try:
        with tempfile.TemporaryDirectory(prefix=".specstream-doctor-", dir=directory) as made:
            first, second = Path(made, "first"), Path(made, "second")
            with first.open("w+b") as file:
                file.write(b"specstream")
                file.flush()
                doing = "fsync"
                os.fsync(file.fileno())
                doing = "locking (fcntl)"
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                command = [sys.executable, "-S", "-c", _TAKE_LOCK, str(first)]
                if subprocess.run(command, capture_output=True, check=False).returncode != 9:
                    raise _Broken("a lock (fcntl) does not keep another process out")
            doing = "renaming"
            second.write_bytes(b"")
            os.replace(first, second)
            if second.read_bytes() != b"specstream":
                raise _Broken("a renamed file has not got its content")
            doing = "fsync of a directory"
            descriptor = os.open(made, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        reason = error.strerror or str(error)
        raise _Broken(f"{doing} does not work in {directory}: {reason}") from error


def _holder(lock: Path) -> int | None:
    """The process that holds a lock; None: nobody does. Asking takes none.

    Raises:
        PermissionError: it may not be read, or not be written.
    """
    try:
        file = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind_of_lock, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    finally:
        os.close(file)
    return None if kind_of_lock == fcntl.F_UNLCK else int(process)


def _content(store: LocalStore) -> tuple[str, str]:
    """Whose files are there, and what to do where they are somebody else's.

    Raises:
        _Unusable: no query can go on from what is there, or only from before its end.
        PermissionError: a file cannot be read.
    """
    from specstream.checkpoint.format.checkpoint_files import CheckpointFiles, names_of
    from specstream.errors import SnapshotError

    names = names_of(store)
    for name in names:
        path = store.path / str(name)
        if path.exists() and not path.is_file():  # to open a pipe would wait for a writer
            raise _Unusable(f"{name} is no file", f"remove {path}")
    if not names:
        others = [name for name in store.names() if name != "lock"]
        if others:
            advice = "give the query a directory of its own, beside Spark's checkpointLocation"
            return f"no checkpoint files, but others ({', '.join(sorted(others)[:3])})", advice
        return "empty", ""
    try:
        found = _newest(CheckpointFiles(store, "checkpoint", keep_batches=0))
    except SnapshotError as error:
        raise _Unusable(f"{len(names)} checkpoint file(s): {error}", COPY_BACK) from None
    broken = "; ".join(found.damaged)
    if found.chain is None:
        text = f"{found.files} checkpoint file(s), none of which can be used: "
        raise _Unusable(text + (broken or "there is no full one"), COPY_BACK)
    about = found.chain.last.about
    text = f"operator {about.operator!r}, state {about.state!r}, after batch {about.batch_id}"
    text += f", {len(names)} checkpoint file(s)" + (", ended" if about.finished else "")
    if broken:
        advice = (
            f"put a copy of the directory back; without one a query begins after batch "
            f"{about.batch_id}, and fails if Spark is further: troubleshooting, Checkpoints"
        )
        raise _Unusable(f"{text}; not usable: {broken}", advice)
    return text, ""


def _newest(files: CheckpointFiles) -> Newest:
    """What a start would go on from, also while a query that runs removes files."""
    from specstream.checkpoint.format.restart import newest_chain

    for _ in range(3):
        with contextlib.suppress(FileNotFoundError):
            return newest_chain(files)
    return newest_chain(files)
