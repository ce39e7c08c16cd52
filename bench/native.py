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

__all__ = ["shared_library"]

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
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / "native.so"
    sources = [source, *(sorted((RUNTIME / "src").glob("*.c")) if runtime else ())]
    command = ["cc", *FLAGS, "-shared", "-fPIC", "-DNDEBUG", f"-I{RUNTIME / 'include'}"]
    built = subprocess.run(
        [*command, "-o", str(target), *map(str, sources), "-lm", "-lpthread"],
        capture_output=True,
        text=True,
    )
    if built.returncode != 0:
        raise RuntimeError(f"{source} does not compile:\n{built.stderr}")
    ffi = cffi.FFI()
    text = declarations("specstream.h")
    ffi.cdef("\n".join(line for line in text.splitlines() if not line.startswith("#")))
    ffi.cdef(more)
    return ffi, ffi.dlopen(str(target))
