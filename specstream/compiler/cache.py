"""Compiled entries on disk.

Numba's own cache looks at the user's file and does not notice that an ``@overload`` or one of our
intrinsics has changed. The key here is what the machine code is made of: the rewritten source and
its constants, the layout and the schemas, every file of the compiler, our ABI, and the versions of
Numba and of the processor. A cache that cannot be written or read costs a compilation, and nothing
else.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba

from specstream._native import lib
from specstream.compiler.source import Program
from specstream.compiler.types import PROFILED, Variant
from specstream.schema import Schema
from specstream.state import Layout

__all__ = ["Stored", "directory", "key", "load", "store"]


@dataclass(frozen=True)
class Stored:
    """One entry: the symbol to call, and Numba's serialised library."""

    symbol: str
    library: Any


def directory() -> Path | None:
    """Where entries are kept: ``SPECSTREAM_CACHE_DIR``, else the user's cache; empty: no cache."""
    configured = os.environ.get("SPECSTREAM_CACHE_DIR")
    if configured is not None:
        return Path(configured) if configured else None
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "specstream"


@functools.cache
def _toolchain() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    host = llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()
    versions = numba.__version__, llvmlite.__version__, lib.SS_ABI_VERSION
    digest.update(repr((versions, host)).encode())
    return digest.hexdigest()


def key(program: Program, layout: Layout, event: Schema, emits: Schema, variant: Variant) -> str:
    """Name of the file that holds the entry."""
    # Machine code that names lines depends on where they are; the fingerprint does not.
    lines = program.lines() if variant in PROFILED.values() else ()
    made_of = _toolchain(), program.fingerprint, lines, layout, event, emits, variant
    return hashlib.sha256(repr(made_of).encode()).hexdigest()


def load(name: str) -> Stored | None:
    """The stored entry, or None."""
    folder = directory()
    if folder is None:
        return None
    try:
        data = (folder / name).read_bytes()
        digest, body = data[:32], data[32:]
        if hashlib.sha256(body).digest() != digest:
            return None
        stored = pickle.loads(body)
    except (OSError, pickle.UnpicklingError, EOFError, AttributeError):
        return None
    return stored if isinstance(stored, Stored) else None


def store(name: str, entry: Stored) -> None:
    """Writes an entry under a temporary name and renames it, so that readers see all or nothing."""
    folder = directory()
    if folder is None:
        return
    body = pickle.dumps(entry)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(hashlib.sha256(body).digest() + body)
        os.replace(file.name, folder / name)
    except OSError:
        return
