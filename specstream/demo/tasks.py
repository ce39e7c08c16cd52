"""The two operators of the demo, and their sequential runs in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import SynchronizedArray
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss
from specstream.operators import nearest_neighbours, top_k

__all__ = ["TASKS", "Oracle", "Oracles", "Task", "oracles_beside", "timed"]


@dataclass(frozen=True)
class Task:
    """One operator of the demo.

    Attributes:
        name: of its directory and in the printed results.
        title: what it finds.
        make: makes the operator.
        where: the rows of the stream that are its events, as a condition for Spark and pandas.
    """

    name: str
    title: str
    make: Callable[[], ss.Operator]
    where: str | None = None


def _top_k() -> ss.Operator:
    # About 4,000 aircraft with much the same counts: a narrower sketch ranks by its own errors.
    made: ss.Operator = top_k(k=5, rows=5, width=16384, item=str)
    return made


def _nearest_neighbours() -> ss.Operator:
    made: ss.Operator = nearest_neighbours(grid=200, per_bucket=5, k=3)
    return made


TASKS = (
    # A flight that was cancelled before it had an aircraft has no tail number.
    Task("top_k", "most frequent aircraft", _top_k, "item is not null"),
    Task("nearest_neighbours", "similar earlier flights", _nearest_neighbours),
)


@dataclass(frozen=True)
class Oracle:
    """What a sequential run gave: emitted rows, and every field of the state; and what time it
    took of a core, in seconds."""

    output: pa.Table
    state: dict[str, Any]
    seconds: float


_progress: SynchronizedArray[int]


def _begin(progress: SynchronizedArray[int]) -> None:
    global _progress
    _progress = progress
    os.nice(19)


def _run_oracle(number: int, events: Path) -> Oracle:
    def done(rows: int) -> None:
        _progress[number] = rows

    operator, table = TASKS[number].make(), pq.read_table(events)
    started = time.process_time()
    run = operator.run_sequential(table, order_by="time", source="origin", keys=True, progress=done)
    return Oracle(run.output, run.state.to_dict(), time.process_time() - started)


def timed(
    task: Task, events: Path, batches: Sequence[int], threads: int, rounds: int = 3
) -> tuple[float, float]:
    """Seconds in engines without Spark: on one core, and on all with whatever the runtime chooses.

    Args:
        events: a Parquet file of the events, in order.
        batches: of so many events each.
        rounds: both run in each; medians count.
    """
    table = pq.read_table(events)
    settings: tuple[dict[str, Any], ...] = ({"threads": 1, "horizon": 0}, {"threads": threads})
    seconds: tuple[list[float], ...] = ([], [])
    for _ in range(rounds):
        for setting, found in zip(settings, seconds, strict=True):
            first = 0
            with ss.Engine(task.make(), **setting) as engine:
                for count in batches:
                    engine.process(table.slice(first, count), order_by="time", source="origin")
                    first += count
                found.append(engine.stats.time_per_event * engine.stats.events)
    one_core, all_cores = map(statistics.median, seconds)
    return one_core, all_cores


class Oracles:
    """The sequential runs of both operators, under way.

    Args:
        running: of each of ``TASKS``.
        progress: the number of events that each has done.
    """

    def __init__(self, running: list[Future[Oracle]], progress: SynchronizedArray[int]) -> None:
        self._running = running
        self._progress = progress

    def wait(self, report: Callable[[list[int]], None]) -> list[Oracle]:
        """What they gave.

        Args:
            report: called several times a second with the number of events each has done.
        """
        while wait(self._running, timeout=0.2).not_done:
            report(self._progress[:])
        return [future.result() for future in self._running]


@contextmanager
def oracles_beside(events: list[Path]) -> Iterator[Oracles]:
    """Runs both operators in plain Python, each in a process of the lowest priority: they take the
    time that others leave of the cores.

    Args:
        events: for each of ``TASKS`` a Parquet file of its events, in order.
    """
    context = multiprocessing.get_context("spawn")
    progress = context.Array("q", len(TASKS))
    with ProcessPoolExecutor(len(TASKS), context, _begin, (progress,)) as pool:
        try:
            yield Oracles(
                [pool.submit(_run_oracle, number, path) for number, path in enumerate(events)],
                progress,
            )
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
