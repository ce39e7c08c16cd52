"""Compiled entries on disk.

Numba's own cache looks at the user's file and does not notice that an ``@overload`` or one of our
intrinsics has changed. The key here is what the machine code is made of: the rewritten source and
its constants, the layout and the schemas, every file of ours that decides (those of the compiler,
of declarations and structures, and that of the strings' codes), our ABI, and the versions of Numba
and of the processor. A cache that cannot be written or read costs a compilation, and nothing else.

An entry is a pickle and machine code: whoever can write it runs code as us. So the directory and
each file in it must be ours and writable by nobody else; what is not is refused, with a warning.
What is looked at is what is used: the directory is opened once, and all else is relative to that
descriptor, no link is followed, and a file is read through the descriptor that was checked. Hence
the parents do not matter. Who can rename them, or the directory itself, can only put another one
there, and it has to be ours as well; we never remove anything from it but what is named like an
entry. An entry is bound to its name, so that to move it is to damage it.

Entries that were not used for long are removed, and the oldest where they take too much room: once
in a process, by the first one that it stores, as it has just compiled for a thousand times as long.
Other processes may do the same at any time. An entry that is gone is compiled again.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import pickle
import pwd
import re
import secrets
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba

from specstream._native import lib
from specstream.compiler.backend.numba_types import PROFILED, Variant
from specstream.compiler.frontend.program import Program
from specstream.compiler.language.user_code import PACKAGE
from specstream.declarations.options import nearest
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Layout

__all__ = ["Stored", "directory", "key", "load", "not_ours", "store"]

DAYS_KEPT = 90
MOST_BYTES = 512 << 20

_DAY = 24 * 3600
# The name of an entry, and that of one which is being written.
_NAMES = re.compile(r"[0-9a-f]{64}(\.[0-9a-f]{16})?")
_DIGEST_BYTES = 32
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC

# What decides about machine code: these folders, and which code stands for which string.
_ROOMS = ("declarations", "structures", "compiler", "pipelines")
_FILES = ("columns/strings.py",)

_VARIABLES = (
    "SPECSTREAM_CACHE_DIR",
    "SPECSTREAM_CRASH",
    "SPECSTREAM_CRASH_LOG",
    "SPECSTREAM_FORECAST",
)

# Of this process: warnings that it has seen, and whether it has looked for entries to remove.
_said: set[str] = set()
_pruned = False


@dataclass(frozen=True)
class Stored:
    """One entry: the symbol to call, and Numba's serialised library."""

    symbol: str
    library: Any


def directory() -> Path | None:
    """Where entries are kept; None: nowhere.

    ``SPECSTREAM_CACHE_DIR``, or none where that is empty; else ``specstream`` in the user's cache,
    which is ``XDG_CACHE_HOME`` or ``.cache`` at home. Who has no home, as users of containers may
    not, has no cache.
    """
    check_environment()
    configured = os.environ.get("SPECSTREAM_CACHE_DIR")
    if configured is not None:
        return Path(configured).absolute() if configured else None
    # A relative path is as good as none: so says the specification of XDG_CACHE_HOME.
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base, "specstream")
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    return Path(home, ".cache", "specstream") if os.path.isabs(home) else None


@functools.cache
def check_environment() -> None:
    """Warns of variables of the environment that look like ours, and that nobody reads."""
    for name in sorted(os.environ):
        if name.startswith("SPECSTREAM") and name not in _VARIABLES:
            close = nearest(name, _VARIABLES)
            meant = f"did you mean {close}?" if close else "expected SPECSTREAM_CACHE_DIR"
            _warn(f"the environment has {name}, which specstream does not read; {meant}")


def _files_that_decide() -> list[Path]:
    """Every file of ours that decides what machine code is made of an operator."""
    found = [file for room in _ROOMS for file in sorted(PACKAGE.joinpath(room).rglob("*.py"))]
    return [*found, *(PACKAGE / file for file in _FILES)]


@functools.cache
def _toolchain() -> str:
    digest = hashlib.sha256()
    for path in _files_that_decide():
        digest.update(path.read_bytes())
    host = llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()
    versions = numba.__version__, llvmlite.__version__, lib.SS_ABI
    # NUMBA_OPT: who sets it wants to see the other code.
    digest.update(repr((versions, int(numba.config.OPT), host)).encode())
    return digest.hexdigest()


def key(program: Program, layout: Layout, event: Schema, emits: Schema, variant: Variant) -> str:
    """Name of the file that holds the entry."""
    # Machine code that names lines depends on where they are; the fingerprint does not.
    lines = program.lines() if variant in PROFILED.values() else ()
    made_of = _toolchain(), program.fingerprint, lines, layout, event, emits, variant
    return hashlib.sha256(repr(made_of).encode()).hexdigest()


def load(name: str) -> Stored | None:
    """The stored entry, or None."""
    with _opened(create=False) as folder:
        data = None if folder is None else _read(folder, name)
    if data is None:
        return None
    body = data[_DIGEST_BYTES:]
    if data[:_DIGEST_BYTES] != _digest(name, body):
        return None
    try:
        stored = pickle.loads(body)
    except (pickle.UnpicklingError, EOFError, AttributeError):
        return None
    return stored if isinstance(stored, Stored) else None


def store(name: str, entry: Stored) -> None:
    """Writes an entry under a temporary name and renames it, so that readers see all or nothing."""
    global _pruned
    body = pickle.dumps(entry)
    with _opened(create=True) as folder:
        if folder is None:
            return
        try:
            _write(folder, name, _digest(name, body) + body)
        except OSError as error:
            _say_unwritable(error)
            return
        if not _pruned:
            _pruned = True
            with contextlib.suppress(OSError):
                _prune(folder)


def _digest(name: str, body: bytes) -> bytes:
    return hashlib.sha256(name.encode() + body).digest()


# ---- what is ours ----


@contextlib.contextmanager
def _opened(create: bool) -> Iterator[int | None]:
    """The directory's descriptor; None: there is none that can be used."""
    path = directory()
    folder = None if path is None else _open(path, create)
    try:
        yield folder
    finally:
        if folder is not None:
            os.close(folder)


def _open(path: Path, create: bool) -> int | None:
    try:
        if create:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    except OSError as error:
        # Of a link it depends on the system which; and mkdir says that something is there.
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST) and os.path.lexists(path):
            what = "is a symbolic link" if path.is_symlink() else "is no directory"
            _refuse_directory(path, what, "name the directory itself")
        elif create and "SPECSTREAM_CACHE_DIR" in os.environ:
            # Where nobody named one, a home that cannot be written is as good as none.
            _say_unwritable(error)
        return None
    problem = not_ours(os.fstat(folder))
    if problem is None:
        return folder
    os.close(folder)
    _refuse_directory(path, problem, f"look at what is in it, and then chmod go-w {path}")
    return None


def not_ours(found: os.stat_result) -> str | None:
    """Why somebody else may have written it; None: nobody could."""
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, not to user {os.geteuid()}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written by its group or others (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def _refuse_directory(path: Path, problem: str, hint: str) -> None:
    _warn(
        f"the directory of the compile cache, {path}, {problem}: the cache holds code that is "
        "executed, so it is not used, and each process compiles its operators itself. Expected a "
        "directory that belongs to the user of the process and that nobody else can write to: "
        f"{hint}, or name another directory in SPECSTREAM_CACHE_DIR (empty: no cache)"
    )


def _say_unwritable(error: OSError) -> None:
    _warn(
        f"the compile cache, {directory()}, cannot be written: {error.strerror}. Each process "
        "compiles its operators itself; make room or let the user of the process write there, or "
        "name another directory in SPECSTREAM_CACHE_DIR (empty: no cache)"
    )


def _warn(message: str) -> None:
    if message not in _said:
        _said.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=2)


# ---- files ----


def _read(folder: int, name: str) -> bytes | None:
    try:
        # Without waiting: a named pipe would otherwise do so for its writer.
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            _refuse_entry(name, "is a symbolic link")
        return None
    try:
        found = os.fstat(file)
        problem = not_ours(found) if stat.S_ISREG(found.st_mode) else "is no file"
        if problem is not None:
            _refuse_entry(name, problem)
            return None
        if time.time() - found.st_mtime > _DAY:
            os.utime(file)  # when it was used last
        with open(file, "rb", closefd=False) as opened:
            return opened.read()
    except OSError:
        return None
    finally:
        os.close(file)


def _refuse_entry(name: str, problem: str) -> None:
    _warn(
        f"entry {directory()}/{name} of the compile cache {problem}: it is not used. Expected a "
        "file that belongs to the user of the process and that nobody else can write to: remove it"
    )


def _write(folder: int, name: str, data: bytes) -> None:
    temporary = f"{name}.{secrets.token_hex(8)}"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=folder)
    try:
        with open(file, "wb") as opened:
            opened.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _prune(folder: int) -> None:
    """Removes entries that were not used for long, and the oldest of too many."""
    entries = []
    with os.scandir(folder) as found:
        for entry in found:
            if _NAMES.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # another process has removed it
                    status = entry.stat(follow_symlinks=False)
                    entries.append((status.st_mtime, status.st_size, entry.name))
    oldest = time.time() - DAYS_KEPT * _DAY
    total = 0
    for used, size, name in sorted(entries, reverse=True):
        total += size
        if used < oldest or total > MOST_BYTES:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
