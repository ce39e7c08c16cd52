"""Speed on more cores: on the machine, asleep for real, and the ideal; relative to one thread."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bench.cores.native import Load, Numbers, on_machine, real

__all__ = [
    "CELLS",
    "FULL",
    "QUICK",
    "SIGMAS",
    "Amount",
    "Cell",
    "durations",
    "error",
    "ideal",
    "speed_on_machine",
    "table",
]

SIGMAS = (0.0, 0.5, 1.0)
MICRO = 1_000


class Cell(NamedTuple):
    """Mean nanoseconds of an event, threads, and horizon."""

    time: int
    threads: int
    horizon: int


CELLS = (
    Cell(50 * MICRO, 4, 16),
    Cell(50 * MICRO, 8, 32),
    Cell(50 * MICRO, 8, 128),
    Cell(200 * MICRO, 16, 64),
    Cell(200 * MICRO, 16, 256),
    Cell(200 * MICRO, 32, 512),
    Cell(1000 * MICRO, 8, 32),
    Cell(1000 * MICRO, 16, 64),
    Cell(1000 * MICRO, 32, 128),
    Cell(1000 * MICRO, 32, 512),
)


@dataclass(frozen=True)
class Amount:
    """How much to run.

    Attributes:
        cells: of the table.
        seconds: of work in each, on one thread.
        repeats: of the real runs, of which the median counts.
    """

    cells: Sequence[Cell]
    seconds: float
    repeats: int


FULL = Amount(CELLS, 2.0, 3)
QUICK = Amount(CELLS[:2], 0.05, 1)


def durations(mean: int, sigma: float, count: int) -> Numbers:
    """Nanoseconds of so many events, lognormal, always the same; with sigma 0 all alike."""
    normal = np.random.default_rng(5).normal(0.0, 1.0, count)
    drawn: Numbers = np.rint(mean * np.exp(sigma * normal - sigma**2 / 2)).astype(np.int64)
    return drawn


def ideal(times: Numbers, threads: int, horizon: int) -> float:
    """How much faster threads are than one that take events in their order, run ahead of the first
    one that has not ended by at most ``horizon``, and need nothing else.

    >>> round(ideal(np.full(100, 5), 4, 16), 2)
    4.0
    """
    free = [0] * threads
    committed: list[int] = []
    for number, time in enumerate(times.tolist()):
        opens = committed[number - horizon] if number >= horizon else 0
        end = max(heapq.heappop(free), opens) + time
        heapq.heappush(free, end)
        committed.append(max(end, committed[-1] if committed else 0))
    return int(times.sum()) / committed[-1]


def table(amount: Amount, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """For each cell and sigma: ideal, asleep and on the machine."""
    rows = []
    for cell in amount.cells:
        for sigma in SIGMAS:
            times = durations(cell.time, sigma, max(200, int(amount.seconds * 1e9 / cell.time)))
            load = Load(times, cell.threads, cell.horizon)
            say(f"{cell.time / MICRO:g} µs, {cell.threads} threads, sigma {sigma:g}")
            rows.append(
                {
                    "time": cell.time,
                    "threads": cell.threads,
                    "horizon": cell.horizon,
                    "sigma": sigma,
                    "ideal": ideal(times, cell.threads, cell.horizon),
                    "asleep": _asleep(load, amount.repeats),
                    "machine": speed_on_machine(load),
                }
            )
    return rows


def error(row: Mapping[str, Any]) -> float:
    """By how much the machine is above what was seen, as a part of that."""
    return float(row["machine"] / row["asleep"] - 1)


def _alone(load: Load) -> Load:
    return replace(load, threads=1, horizon=0)


def _asleep(load: Load, repeats: int) -> float:
    ratios = []
    # A sleep is longer than it should be: the same for one thread and for many.
    alone = _alone(replace(load, times=load.times[: max(200, len(load.times) // 8)]))
    for _ in range(repeats):
        one, many = real(alone, asleep=True), real(load, asleep=True)
        # As long as one thread would take for all of them.
        all_seconds = one.seconds * float(load.times.sum()) / float(alone.times.sum())
        ratios.append(all_seconds / many.seconds)
    return statistics.median(ratios)


def speed_on_machine(load: Load) -> float:
    """On the machine, relative to one thread.

    Raises:
        AssertionError: the answers differ.
    """
    one, many = on_machine(_alone(load)), on_machine(load)
    if one.sum != many.sum:
        raise AssertionError("the answer depends on the threads")
    return one.seconds / many.seconds
