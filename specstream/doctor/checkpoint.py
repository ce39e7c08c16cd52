"""The check of a checkpoint directory: what files need there works, and what is in it."""

from __future__ import annotations

import errno
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
from specstream.doctor.finding import Check, Finding
from specstream.doctor.machine import gigabytes

if TYPE_CHECKING:
    from specstream.checkpoint.store import LocalStore

__all__ = ["check"]

NAME = "checkpoint"
LEAST_ROOM = 256 << 20
NO_FILE = "put a copy of the directory back, or begin a new stream with an empty one"
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


def check(place: str) -> Check:
    """Of a directory, or of a URI, that ``checkpoint=`` could get. Nothing of it is changed."""
    return Check(NAME, lambda say: _look(place))


def _look(place: str) -> Finding:
    from specstream.checkpoint.store import LocalStore, check_beside_spark
    from specstream.errors import ConfigurationError

    scheme, is_uri, rest = place.partition("://")
    if scheme == "file":
        place, is_uri = rest, ""
    if is_uri and scheme not in REMOTE:
        found = f"pyarrow reaches no {scheme}:// of {place}"
        advice = "name a path, or " + ", ".join(("file", *REMOTE)) + " (://)"
        return Finding(NAME, "missing", found, advice)
    if is_uri:
        advice = "it is not locked: see to it that one query at a time writes there"
        return Finding(NAME, "warning", f"{place}, of which nothing was asked", advice)
    store = LocalStore(place)
    try:
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
    content, advice = ("not there yet, and can be made", "") if parent != path else _content(store)
    found = f"{where}: {content}"
    lock = path / "lock"
    if os.path.lexists(lock) and not lock.is_file():
        return Finding(NAME, "missing", f"{found}; {lock} is no file", f"remove {lock}")
    if advice == NO_FILE:
        return Finding(NAME, "missing", found, advice)
    if not advice and (holder := _holder(lock)):
        advice = "one query at a time: stop the one that runs before another one starts there"
        found += f", in use by process {holder}"
    if not advice and shutil.disk_usage(parent).free < LEAST_ROOM:
        advice = "make room: each checkpoint file may be as large as the state"
    if not advice and kind(path) in FLEETING:
        advice = f"what is there goes with {FLEETING[kind(path)]}: take a disk or a volume"
    return Finding(NAME, "warning" if advice else "ok", found, advice)


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
    """The process that holds a lock; None: nobody does. Asking takes none."""
    try:
        file = os.open(lock, os.O_RDONLY)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind_of_lock, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    finally:
        os.close(file)
    return None if kind_of_lock == fcntl.F_UNLCK else int(process)


def _content(store: LocalStore) -> tuple[str, str]:
    """Whose files are there, and what to do where they cannot be used."""
    from specstream.checkpoint.checkpoint_files import names_of, read_file
    from specstream.errors import SpecstreamError

    names = names_of(store)
    if not names:
        others = [name for name in store.names() if name != "lock"]
        if others:
            advice = "give the query a directory of its own, beside Spark's checkpointLocation"
            return f"no checkpoint files, but others ({', '.join(sorted(others)[:3])})", advice
        return "empty", ""
    damaged = []
    for name in reversed(names):
        if not Path(store.path, str(name)).is_file():  # to open a pipe would wait for a writer
            damaged.append(f"{name}: no file")
            continue
        try:
            about = read_file(store, name, str(name)).about
        except FileNotFoundError:
            continue  # a query that runs has removed it
        except SpecstreamError as error:
            damaged.append(f"{name}: {error}")
            continue
        text = f"operator {about.operator!r}, state {about.state!r}, after batch {about.batch_id}"
        text += f", {len(names)} checkpoint file(s)" + (", ended" if about.finished else "")
        if damaged:
            advice = "look at the disk; what a start does then: troubleshooting, Checkpoints"
            return f"{text}; not usable: {damaged[0]}", advice
        return text, ""
    return f"{len(names)} checkpoint file(s), none of which can be used: {damaged[0]}", NO_FILE
