"""Speed on more cores: on the machine, beside real threads, asleep and busy, and beside the ideal.

All speeds are relative to one thread.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bench.cores.native import Load, Numbers, on_machine, real
from bench.cores.recorded import order_book_times

__all__ = [
    "CELLS",
    "FULL",
    "GOALS",
    "KINDS",
    "MOST_WAITED",
    "QUICK",
    "SIGMAS",
    "Amount",
    "Cell",
    "Goal",
    "asleep",
    "busy",
    "durations",
    "error",
    "ideal",
    "more_cores",
    "reach",
    "speed_on_machine",
]

SIGMAS = (0.0, 0.5, 1.0)
MICRO = 1_000
# Threads that sleep say something as long as they are ready, and have no core, no longer than that.
MOST_WAITED = 0.1


class Cell(NamedTuple):
    """Mean nanoseconds of an event, threads, and horizon."""

    time: int
    threads: int
    horizon: int


class Goal(NamedTuple):
    """A cell that is to be reached, with any horizon and chunk; ``target`` relative to one core."""

    time: int
    sigma: float
    threads: int
    target: float


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
    Cell(1000 * MICRO, 64, 256),
)
GOALS = (
    Goal(50 * MICRO, 0.0, 16, 14.4),
    Goal(50 * MICRO, 0.0, 64, 54.0),
    Goal(10 * MICRO, 0.5, 16, 13.0),
    Goal(2 * MICRO, 0.0, 8, 5.0),
)
# Commits a second that are to be reached, of events with so many reads and writes.
COMMITS, COMMIT_READS, COMMIT_WRITES = 4e6, 20, 5
# What events take, mean and all: 50 microseconds.
CURVE = 50 * MICRO
KINDS: dict[str, Callable[[int], Numbers]] = {
    "all alike": lambda count: durations(CURVE, 0.0, count),
    "lognormal, sigma 0.5": lambda count: durations(CURVE, 0.5, count),
    "lognormal, sigma 1": lambda count: durations(CURVE, 1.0, count),
    "recorded": lambda count: order_book_times(CURVE, count),
}
# Real threads that are busy: as many as there are cores to be had.
BUSY = ((1, 1), (2, 8))
BUSY_TIMES = (1 * MICRO, 5 * MICRO, 20 * MICRO)


@dataclass(frozen=True)
class Amount:
    """How much to run.

    Attributes:
        cells: of the table beside threads that sleep.
        seconds: of work in each, on one thread.
        repeats: of the real runs, of which the median counts.
        events: on the machine.
        cores: that are looked at.
    """

    cells: Sequence[Cell]
    seconds: float
    repeats: int
    events: int
    cores: Sequence[int]


FULL = Amount(CELLS, 2.0, 3, 4000, (1, 2, 4, 8, 16, 32, 64))
QUICK = Amount(CELLS[:2], 0.05, 1, 300, (1, 2, 4))


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
    >>> round(ideal(np.full(100, 5), 4, 1), 2)
    2.0
    """
    free = [0] * threads
    committed: list[int] = []
    for number, taken in enumerate(times.tolist()):
        opens = committed[number - horizon - 1] if number > horizon else 0
        end = max(heapq.heappop(free), opens) + taken
        heapq.heappush(free, end)
        committed.append(max(end, committed[-1] if committed else 0))
    return int(times.sum()) / committed[-1]


def asleep(amount: Amount, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """For each cell and sigma: ideal, real threads asleep, and on the machine."""
    rows = []
    for cell in amount.cells:
        for sigma in SIGMAS:
            times = durations(cell.time, sigma, max(200, int(amount.seconds * 1e9 / cell.time)))
            load = Load(times, cell.threads, cell.horizon)
            say(f"{cell.time / MICRO:g} µs, {cell.threads} threads, sigma {sigma:g}")
            speed, waited = _asleep(load, amount.repeats)
            rows.append(
                {
                    "time": cell.time,
                    "threads": cell.threads,
                    "horizon": cell.horizon,
                    "sigma": sigma,
                    "ideal": ideal(times, cell.threads, cell.horizon),
                    "real": speed,
                    "waited": waited,
                    "machine": speed_on_machine(load),
                }
            )
    return rows


def error(row: Mapping[str, Any]) -> float:
    """By how much the machine is above what real threads did, as a part of that.

    The machine has a core for each thread. Where real ones waited for one, it is less that time.
    """
    return float(row["machine"] * (1 - row.get("waited", 0.0)) / row["real"] - 1)


def busy(amount: Amount, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One thread that runs everything as transactions, and two, really busy and on the machine."""
    rows = []
    for mean in BUSY_TIMES:
        for reads, writes in ((10, 2), (COMMIT_READS, COMMIT_WRITES)):
            times = durations(mean, 0.5, max(300, int(amount.seconds * 0.1e9 / mean)))
            for threads, horizon in BUSY:
                say(f"{mean / MICRO:g} µs, {reads} reads, {threads} busy")
                load = Load(
                    times, threads, horizon, reads=reads, writes=writes, forced=threads == 1
                )
                # In turns, and the median: whatever else runs takes from the faster one.
                ratios = [
                    real(_alone(load), asleep=False).seconds / real(load, asleep=False).seconds
                    for _ in range(2 * amount.repeats + 1)
                ]
                rows.append(
                    {
                        "time": mean,
                        "reads": reads,
                        "writes": writes,
                        "threads": threads,
                        "real": statistics.median(ratios),
                        "machine": speed_on_machine(load),
                    }
                )
    return rows


def more_cores(amount: Amount, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """By kind of duration and number of cores: the ideal, the machine, and where its time goes."""
    rows = []
    for kind, times_of in KINDS.items():
        times = times_of(amount.events)
        for cores in amount.cores:
            say(f"{kind}, {cores} cores")
            load = Load(times, cores, 4 * cores, longest=64 * cores, writes=2)
            seen = on_machine(load)
            of_all = seen.seconds * cores
            rows.append(
                {
                    "kind": kind,
                    "cores": cores,
                    "ideal": ideal(times, cores, 64 * cores),
                    "machine": on_machine(_alone(load)).seconds / seen.seconds,
                    "running": seen.working / of_all,
                    "committing": seen.committing / of_all,
                    "waiting": max(0.0, 1 - (seen.working + seen.committing) / of_all),
                    "reruns": seen.reruns / len(times),
                }
            )
    return rows


def reach(amount: Amount, say: Callable[[str], None]) -> dict[str, Any]:
    """What is to be reached, with the best horizon and chunk; and how many commits a second."""
    rows = []
    for goal in GOALS:
        say(f"{goal.time / MICRO:g} µs, {goal.threads} cores")
        times = durations(goal.time, goal.sigma, amount.events)
        alone = on_machine(_alone(Load(times, 1, 0, writes=2))).seconds
        tried = [
            (alone / on_machine(load).seconds, load.horizon, load.chunk)
            for load in _settings(times, goal.threads, (1, 2, 4) if goal.time < CURVE else (1,))
        ]
        speed, horizon, chunk = max(tried)
        rows.append({**goal._asdict(), "machine": speed, "horizon": horizon, "chunk": chunk})
    say("commits a second")
    few = durations(MICRO // 2, 0.0, amount.events)
    commits = [
        (len(few) / on_machine(load).seconds, load.threads, load.horizon)
        for threads in (4, 8, 16)
        for load in _settings(few, threads, (1,), COMMIT_READS, COMMIT_WRITES)
    ]
    most, threads, horizon = max(commits)
    return {
        "cells": rows,
        "commits": {"target": COMMITS, "machine": most, "threads": threads, "horizon": horizon},
    }


def _settings(
    times: Numbers, threads: int, chunks: Iterable[int], reads: int = 10, writes: int = 2
) -> list[Load]:
    return [
        Load(times, threads, per_thread * threads, chunk, reads=reads, writes=writes)
        for per_thread in (2, 4, 8)
        for chunk in chunks
    ]


def _alone(load: Load) -> Load:
    return replace(load, threads=1, horizon=0, chunk=1, longest=0, forced=False)


def _asleep(load: Load, repeats: int) -> tuple[float, float]:
    """The speed of threads that sleep, and the part of their time that they waited for a core,
    beyond that of one thread alone."""
    ratios, waited = [], []
    # A sleep is longer than it should be: the same for one thread and for many.
    alone = _alone(replace(load, times=load.times[: max(200, len(load.times) // 8)]))
    for _ in range(repeats):
        one, many = real(alone, asleep=True), real(load, asleep=True)
        # As long as one thread would take for all of them.
        all_seconds = one.seconds * float(load.times.sum()) / float(alone.times.sum())
        ratios.append(all_seconds / many.seconds)
        has_core = (1 - one.queued / one.seconds, 1 - many.queued / many.seconds / load.threads)
        waited.append(1 - has_core[1] / has_core[0])
    return statistics.median(ratios), statistics.median(waited)


def speed_on_machine(load: Load) -> float:
    """On the machine, relative to one thread.

    Raises:
        AssertionError: the answers differ.
    """
    one, many = on_machine(_alone(load)), on_machine(load)
    if one.sum != many.sum:
        raise AssertionError("the answer depends on the threads")
    return one.seconds / many.seconds
