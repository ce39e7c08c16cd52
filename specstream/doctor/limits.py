"""Limits of this process that something else has run into."""

from __future__ import annotations

import re
import resource

__all__ = ["LEAST_FILES", "LEAST_PROCESSES", "hint"]

# A JVM with Spark has a hundred threads and more; each executor core and the engine add theirs.
LEAST_PROCESSES = 1024
LEAST_FILES = 1024
_NO_THREADS = re.compile("new thread|no threads|native thread|GC thread|temporarily unavailable")


def hint(told: str) -> str:
    """Which limits to lift, where they are why something failed; empty where none is.

    >>> hint("RuntimeError: can't start new thread")
    'lift the limit: ulimit -u 1024'
    """
    if "No module named" in told:
        return ""
    lift = []
    if "Too many open files" in told:
        lift.append(f"ulimit -n {LEAST_FILES}")
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    few = processes != resource.RLIM_INFINITY and processes < LEAST_PROCESSES
    if few or _NO_THREADS.search(told):
        lift.append(f"ulimit -u {LEAST_PROCESSES}")
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        lift.append("ulimit -v unlimited")
    return f"lift the limit: {', '.join(lift)}" if lift else ""
