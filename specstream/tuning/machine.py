"""The machine that figures were taken on, and what its cores can do."""

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
from specstream.engine import Engine

__all__ = ["capacity", "cores", "describe", "free_memory", "processor"]

MULTIPLIER = 6364136223846793005


class Unused(ss.State):
    """An operator has a state, even one that does not need it."""

    word = ss.scalar(int)


@ss.operator(state=Unused, event={"value": int, "rounds": int}, emits={"busy": int})
def busy_loop(state, event, emit):  # type: ignore[no-untyped-def]
    """A chain of operations that no optimiser shortens: what threads do that share nothing."""
    busy = event.value
    for _ in range(event.rounds):
        busy = (busy ^ (busy >> 32)) * MULTIPLIER
    emit(busy)


def capacity(threads: int, repeat: int = 5) -> float:
    """How many times faster ``threads`` threads are than one, here and now, if they share nothing.

    Where it is well below their number, other processes were busy, or the cores are not whole ones.
    """
    rows = 250 * threads
    events = pa.table(
        {"value": np.arange(1, rows + 1, dtype=np.int64), "rounds": np.full(rows, 4_000)}
    )
    ratios = []
    with (
        Engine(busy_loop, threads=1, chunk=4, execution="locked") as one,
        Engine(busy_loop, threads=threads, chunk=4, execution="locked") as all_of_them,
    ):
        for number in range(repeat + 1):
            seconds = []
            for engine in (one, all_of_them):
                before = engine.stats.seconds
                engine.process(events)
                seconds.append(engine.stats.seconds - before)
            if number:  # the first time starts threads and touches memory
                ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios)


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
    """The machine and the versions, without which no figure means anything."""
    return {
        "processor": processor(),
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
    """Its name, as the kernel or else Python has it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
