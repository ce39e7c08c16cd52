"""What a process needs so that a sanitizer is there before Python is."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Literal

from support import processes

__all__ = ["REPORTED", "Sanitizer", "environment"]

Sanitizer = Literal["address", "thread"]

# Exit status of a process of which a sanitizer has reported something.
REPORTED = 66
LIBRARIES = {"address": "libasan.so", "thread": "libtsan.so"}


def environment(sanitizer: Sanitizer | None, package: Path | None) -> dict[str, str]:
    """Of a process that runs a package built with a sanitizer.

    Args:
        sanitizer: which one; None: none, and what is there already of the package.
        package: the directory that has it.
    """
    found = processes.environment(*([] if package is None else [package]))
    found |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONMALLOC": "malloc"}
    if sanitizer is None or package is None:
        return found
    compiler = sysconfig.get_config_var("CC").split()[0]
    # C++'s library as well: AddressSanitizer looks once, at its start, for what throws.
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in (LIBRARIES[sanitizer], "libstdc++.so")
    ]
    found["LD_PRELOAD"] = ":".join(map(os.path.realpath, libraries))
    # What is asked for beyond two gigabytes was never needed for inputs of some kilobytes.
    found["ASAN_OPTIONS"] = (
        "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048"
        f":exitcode={REPORTED}"
    )
    found["UBSAN_OPTIONS"] = f"print_stacktrace=1:exitcode={REPORTED}"
    # Python, NumPy and Arrow are not instrumented: what they call of the C library is no access
    # that can be judged, as their own atomics are not seen. Locks count, whoever takes them.
    found["TSAN_OPTIONS"] = (
        f"halt_on_error=1:exitcode={REPORTED}:ignore_noninstrumented_modules=1:history_size=7"
        ":second_deadlock_stack=1"
    )
    return found
