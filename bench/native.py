"""Benchmarks in C: the runtime and one more file in a shared library, driven from this process.

It is compiled on demand, once per process, from the sources of the runtime as they stand.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import cffi

from stm_native.build import declarations

__all__ = ["FLAGS", "RUNTIME", "compiled", "folder", "opened", "shared_library"]

RUNTIME = Path(__file__).resolve().parents[1] / "stm_native"
FLAGS = ["-std=gnu11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Wundef", "-Werror"]


def shared_library(source: Path, more: str, runtime: bool = True) -> tuple[Any, Any]:
    """The runtime with a source file of a benchmark's own, and the declarations of both.

    Args:
        source: a C file.
        more: what the file offers, as C declarations.
        runtime: False: the file takes only declarations of it.

    Raises:
        RuntimeError: it does not compile.
    """
    target = folder() / "native.so"
    sources = [source, *(sorted((RUNTIME / "src").rglob("*.c")) if runtime else ())]
    options = ["-shared", "-fPIC", "-DNDEBUG", f"-I{RUNTIME / 'include'}", f"-I{RUNTIME / 'src'}"]
    compiled([*FLAGS, *options, *map(str, sources), "-lm", "-lpthread"], target)
    return opened(target, more)


def folder() -> Path:
    """One that is there as long as this process."""
    made = Path(tempfile.mkdtemp(prefix="bench-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def compiled(options: list[str], target: Path) -> Path:
    """What the C compiler makes of its options.

    Raises:
        RuntimeError: they do not compile, and why.
    """
    built = subprocess.run(["cc", "-o", str(target), *options], capture_output=True, text=True)
    if built.returncode != 0:
        raise RuntimeError(f"{target.name} does not compile:\n{built.stderr}")
    return target


def opened(library: Path, more: str) -> tuple[Any, Any]:
    """A shared library with the runtime and ``more`` in it, and the declarations of both."""
    ffi = cffi.FFI()
    text = declarations("specstream.h")
    ffi.cdef("\n".join(line for line in text.splitlines() if not line.startswith("#")))
    ffi.cdef(more)
    return ffi, ffi.dlopen(str(library))
