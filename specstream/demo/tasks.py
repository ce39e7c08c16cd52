"""The two operators of the demo, and their sequential runs in processes of their own."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import SynchronizedArray
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss
from specstream.operators import nearest_neighbours, top_k

__all__ = ["TASKS", "Oracle", "Task", "on_one_core", "run_oracles"]


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
    """What a sequential run gave: emitted rows, and every field of the state; and its seconds."""

    output: pa.Table
    state: dict[str, Any]
    seconds: float


_progress: SynchronizedArray[int]


def _share(progress: SynchronizedArray[int]) -> None:
    global _progress
    _progress = progress


def _run_oracle(number: int, events: Path) -> Oracle:
    def done(rows: int) -> None:
        _progress[number] = rows

    operator, table = TASKS[number].make(), pq.read_table(events)
    started = time.perf_counter()
    run = operator.run_sequential(table, order_by="time", source="origin", keys=True, progress=done)
    return Oracle(run.output, run.state.to_dict(), time.perf_counter() - started)


def on_one_core(task: Task, events: Path, batches: Sequence[int]) -> float:
    """Seconds in an engine that runs the same batches on one core, and speculates nothing.

    Args:
        events: a Parquet file of the events, in order.
        batches: of so many events each.
    """
    table, first = pq.read_table(events), 0
    with ss.Engine(task.make(), threads=1, horizon=0, keys=True) as engine:
        for count in batches:
            engine.process(table.slice(first, count), order_by="time", source="origin")
            first += count
        return engine.stats.time_per_event * engine.stats.events


def run_oracles(events: list[Path], report: Callable[[list[int]], None]) -> list[Oracle]:
    """Runs both operators in plain Python, each in a process, so that two cores are used.

    Args:
        events: for each of ``TASKS`` a Parquet file of its events, in order.
        report: called several times a second with the number of events each has done.
    """
    context = multiprocessing.get_context("spawn")
    progress = context.Array("q", len(TASKS))
    with ProcessPoolExecutor(len(TASKS), context, _share, (progress,)) as pool:
        running: list[Future[Oracle]] = [
            pool.submit(_run_oracle, number, path) for number, path in enumerate(events)
        ]
        while wait(running, timeout=0.2).not_done:
            report(progress[:])
        return [future.result() for future in running]
