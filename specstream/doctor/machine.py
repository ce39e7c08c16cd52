"""Checks of the machine: cores, memory, limits of the process, temporary files.

In a container the limits are those of its control groups, of version 1 or 2.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from specstream.doctor.finding import Check, Finding
from specstream.doctor.installation import has_spark
from specstream.doctor.limits import LEAST_FILES, LEAST_PROCESSES

__all__ = ["CHECKS", "gigabytes", "memory_limit", "quota"]

ROOT = Path("/")
GIB = 1 << 30
# Spark's heap is 1 GiB if nothing else is said, and the engine has its memory outside of it.
LEAST_WITH_SPARK, LEAST = 2 * GIB, GIB // 2
LEAST_ROOM = 256 << 20


def gigabytes(count: float) -> str:
    """An amount of memory as people write it.

    >>> gigabytes(3 << 29), gigabytes(5 << 20)
    ('1.5 GiB', '5 MiB')
    """
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / (1 << 20):.0f} MiB"


def _limits(controller: str, new: str, old: str, root: Path) -> list[str]:
    """What the files of a controller say, in the group of this process and all above it."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    mounted = root / "sys/fs/cgroup"
    found = []
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top, name = (mounted / controller, old) if controllers else (mounted, new)
        place = top / path.lstrip("/")
        files = [group / name for group in (place, *place.parents) if group.is_relative_to(top)]
        found += [file.read_text().strip() for file in files if file.is_file()]
    return found


def quota(root: Path = ROOT) -> float | None:
    """Of how many cores a container may use the time; None: of all."""
    shares = []
    for text in _limits("cpu", "cpu.max", "cpu.cfs_quota_us", root):
        amount, _, period = text.partition(" ")
        if not period:
            periods = _limits("cpu", "cpu.max", "cpu.cfs_period_us", root)
            period = periods[0] if periods else "100000"
        if amount != "max" and int(amount) > 0:
            shares.append(int(amount) / int(period))
    return min(shares, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Bytes that a container may use; None: no limit below what the machine has."""
    texts = _limits("memory", "memory.max", "memory.limit_in_bytes", root)
    limits = [int(text) for text in texts if text != "max"]
    # Version 1 says "none" by a number that no machine has.
    return min((limit for limit in limits if limit < 1 << 50), default=None)


def _cores(say: Callable[[str], None]) -> Finding:
    there = len(os.sched_getaffinity(0))
    share = quota()
    if share is not None and share < there:
        threads = max(1, int(share))
        found = f"{there}, of which the container may use the time of {share:.3g}"
        advice = (
            f"threads above the quota cost time: ss.Engine(..., threads={threads}), and "
            f"--threads {threads} for the commands, or a larger quota"
        )
        return Finding("cores", "warning", found, advice)
    if there == 1:
        advice = "the answer is the same on one core, and nothing gets faster: give it two or more"
        return Finding("cores", "warning", "1", advice)
    return Finding("cores", "ok", str(there))


def _memory(say: Callable[[str], None]) -> Finding:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    sizes = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) > 2}
    total, free, limit = sizes["MemTotal"], sizes["MemAvailable"], memory_limit()
    found = f"{gigabytes(total)}, {gigabytes(free)} free"
    if limit is not None and limit < total:
        found += f"; limit of the container {gigabytes(limit)}"
    most = min(free, total if limit is None else limit)
    least = LEAST_WITH_SPARK if has_spark() else LEAST
    if most < least:
        advice = (
            f"give it {gigabytes(least)} or more, else the system may kill it (exit status 137)"
            + ("; Spark's heap and the engine's memory add up" if has_spark() else "")
        )
        return Finding("memory", "warning", found, advice)
    return Finding("memory", "ok", found)


def _process_limits(say: Callable[[str], None]) -> Finding:
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    pids = [int(text) for text in _limits("pids", "pids.max", "pids.max", ROOT) if text != "max"]
    if processes != resource.RLIM_INFINITY:
        pids.append(processes)
    tasks = min(pids, default=None)
    advice = []
    if tasks is not None and tasks < LEAST_PROCESSES:
        advice.append(
            f"threads cannot be started when {tasks} are reached: ulimit -u {LEAST_PROCESSES} or "
            "more; in a container, its limit of pids"
        )
    if files != resource.RLIM_INFINITY and files < LEAST_FILES:
        advice.append(f"Spark opens many files: ulimit -n {LEAST_FILES} or more")
    if space != resource.RLIM_INFINITY:
        advice.append(
            f"addresses are limited to {gigabytes(space)}, and Java and the engine reserve more "
            "than they use: ulimit -v unlimited"
        )
    shown = "no limit" if tasks is None else tasks
    found = f"threads and processes: {shown}; open files: {files if files >= 0 else 'no limit'}"
    if space != resource.RLIM_INFINITY:
        found += f"; addresses: {gigabytes(space)}"
    return Finding("limits", "warning" if advice else "ok", found, "; ".join(advice))


def _temporary(say: Callable[[str], None]) -> Finding:
    name = "temporary files"
    try:
        place = tempfile.gettempdir()
        with tempfile.TemporaryFile() as file:
            file.write(b"specstream")
            file.flush()
    except OSError as error:
        advice = "Spark and Python need one that can be written: set TMPDIR to it"
        return Finding(name, "missing", str(error), advice)
    free = shutil.disk_usage(place).free
    found = f"{place}, {gigabytes(free)} free"
    if free < LEAST_ROOM:
        advice = "make room there, or set TMPDIR (and SPARK_LOCAL_DIRS) to another directory"
        return Finding(name, "warning", found, advice)
    return Finding(name, "ok", found)


CHECKS = (
    Check("cores", _cores, is_required=False),
    Check("memory", _memory, is_required=False),
    Check("limits", _process_limits, is_required=False),
    Check("temporary files", _temporary, is_required=False),
)
