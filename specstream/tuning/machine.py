"""The machine that was measured on, and what its cores can do."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa

import specstream as ss
from specstream.engine.engine import Engine

__all__ = [
    "MULTIPLIER",
    "Probe",
    "busy_loop",
    "caches",
    "capacity",
    "cores",
    "describe",
    "free_memory",
    "processor",
]

MULTIPLIER = 6364136223846793005


class Unused(ss.State):
    """An operator has a state, even one that does not need it."""

    word = ss.scalar(int)


@ss.operator(state=Unused, event={"value": int, "work": int}, emits={"busy": int})
def busy_loop(state, event, emit):  # type: ignore[no-untyped-def]
    """A chain of operations that no optimiser shortens: what threads do that share nothing."""
    busy = event.value
    for _ in range(event.work):
        busy = (busy ^ (busy >> 32)) * MULTIPLIER
    emit(busy)


class Probe:
    """What threads that share nothing gain over one, here and now.

    Args:
        threads: how many.
    """

    def __init__(self, threads: int) -> None:
        rows = 250 * threads
        self._events = pa.table(
            {"value": np.arange(1, rows + 1, dtype=np.int64), "work": np.full(rows, 4_000)}
        )
        self._engines = [
            Engine(busy_loop, threads=count, chunk=4, execution="locked") for count in (1, threads)
        ]
        self.capacity()  # the first time starts threads and touches memory

    def capacity(self) -> float:
        """How many times faster they are than one.

        Where it is well below their number, other processes were busy, or the cores are not whole
        ones.
        """
        seconds = []
        for engine in self._engines:
            before = engine.stats.seconds
            engine.process(self._events)
            seconds.append(engine.stats.seconds - before)
        return seconds[0] / seconds[1]

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *error: object) -> None:
        for engine in self._engines:
            engine.close()


def capacity(threads: int, repeat: int = 5) -> float:
    """The median of several looks at what so many threads gain over one."""
    with Probe(threads) as probe:
        return statistics.median(probe.capacity() for _ in range(repeat))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def free_memory() -> int:
    """Bytes of memory that nobody uses, roughly."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 1 << 30


def describe() -> dict[str, Any]:
    """The machine and the versions, without which no measurement means anything."""
    return {
        "processor": processor(),
        "caches": caches(),
        "cores": cores(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "specstream": ss.__version__,
        "numba": numba.__version__,
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }


def processor() -> str:
    """Its name, as the kernel or else Python has it; with family and model, if they have numbers.

    A virtual machine often hides which processor it is in the name, and tells it by the numbers.
    """
    about: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            about.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    name = about.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in about and "model" in about:
        name += f" (family {about['cpu family']}, model {about['model']})"
    return name


def caches() -> str:
    """Sizes of the caches of the first core, as the kernel tells them; "unknown": it does not."""
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            found.append(f"L{level} {size.removesuffix('K')} KiB")
    return " / ".join(found) or "unknown"
