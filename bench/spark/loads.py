"""The operators that are measured in Spark, and the files that their rows come from.

A micro-batch is four files, one of each source: within a source rows are in the order of their
times, and the sources overlap, as with four partitions of a log. Spark reads the files in parallel.
So whoever wants the order of events has to make it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss
from bench.workloads import (
    NEIGHBOURS,
    TOP_K,
    busy_loop,
    rounds_for,
    skewed_items,
    slowed,
    uniform_points,
    with_work,
)
from specstream.operators import nearest_neighbours, top_k

__all__ = ["LOADS", "SOURCES", "Load", "operator_of", "write_files"]

SOURCES = 4
BUSY_SECONDS = 10e-6


@dataclass(frozen=True)
class Load:
    """An operator and its rows.

    Attributes:
        name: short, for ``--only``.
        title: what the table says.
        least: speed of specstream relative to the bare loop that is asked for.
        rivals: speed relative to either of Spark's own ways that is asked for; None: nothing is.
        events: makes a table of that many events, another one for every seed.
    """

    name: str
    title: str
    least: float
    rivals: float | None
    events: Callable[[int, int], pa.Table]


@cache
def _busy_rounds() -> int:
    return rounds_for(busy_loop, BUSY_SECONDS)


def _busy_items(count: int, seed: int) -> pa.Table:
    return with_work(skewed_items, _busy_rounds())(count, seed)


LOADS = (
    Load("top_k", "top-k", 0.9, 3.5, skewed_items),
    Load("neighbours", "nearest neighbours", 0.9, 3.5, uniform_points),
    Load("busy", "top-k after 10 µs of work", 1.6, None, _busy_items),
)


@cache
def operator_of(name: str) -> ss.Operator:
    """The operator of a load; one for each process, so that it is compiled once."""
    operator: ss.Operator = (
        nearest_neighbours(**NEIGHBOURS) if name == "neighbours" else top_k(**TOP_K)
    )
    return slowed(operator) if name == "busy" else operator


def write_files(load: Load, rows: int, number: int, path: Path) -> list[Path]:
    """The files of one micro-batch, the ``number``-th of its stream."""
    table = load.events(rows, number)
    # A microsecond on the mean between two events, and some at the same time.
    gaps = np.random.default_rng(number).integers(0, 3, rows)
    time = np.cumsum(gaps) + number * 4 * rows + 1_700_000_000_000_000
    source = np.arange(rows) % SOURCES
    table = table.append_column("time", pa.array(time).cast(pa.timestamp("us", "UTC")))
    table = table.append_column("source", pa.array(source, pa.int32()))
    files = [path / f"{number:04d}-{at}.parquet" for at in range(SOURCES)]
    for at, file in enumerate(files):
        hidden = file.with_name(f".{file.name}")
        pq.write_table(table.filter(pa.array(source == at)), hidden)
        # Spark takes files in the order in which they were modified.
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        os.replace(hidden, file)
    return files
