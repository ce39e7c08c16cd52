"""``python -m bench neighbours``: events that read as nearest neighbours do, on more cores.

An event looks at some buckets of 21 neighbouring words each (ten points and their number), of ten
thousand, and writes four words in one of them. With the whole square of nine buckets that is what
the operator did once; with those that are near enough, two or three. What else it does takes the
time that is varied: it says from where on cores are worth having.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.cores.native import COSTS, Load, on_machine
from bench.report import print_table

__all__ = ["FULL", "QUICK", "Amount", "Shape", "Speed", "table"]

BUCKET = 21
BUCKETS = 10_000
WRITES = 4


class Shape(NamedTuple):
    """What an event reads, in buckets, and nanoseconds that it takes beside that."""

    buckets: float
    time: int


class Speed(NamedTuple):
    """Of some threads relative to one, at the best setting; and what an event had then."""

    shape: Shape
    threads: int
    speed: float
    horizon: int
    chunk: int
    reruns: float
    transfers: float


@dataclass(frozen=True)
class Amount:
    """How much to run: shapes, threads, chunks to choose from, and events of each."""

    shapes: Sequence[Shape]
    threads: Sequence[int]
    chunks: Sequence[int]
    events: int


FULL = Amount(
    [Shape(buckets, time) for buckets in (9, 2.5) for time in (80, 1_000, 3_000, 10_000)],
    (2, 4, 16),
    (1, 4, 16),
    3_000,
)
QUICK = Amount([Shape(2.5, 1_000)], (2,), (4,), 200)


def table(amount: Amount, say: Callable[[str], None]) -> list[Speed]:
    """The best speed of each shape for each number of threads.

    Raises:
        AssertionError: the answers differ.
    """
    found = []
    for shape in amount.shapes:
        say(f"{shape.buckets:g} buckets and {shape.time} ns")
        alone = Load(
            np.full(amount.events, shape.time, np.int64),
            threads=1,
            horizon=0,
            reads=round(shape.buckets * BUCKET),
            run=BUCKET,
            writes=WRITES,
            words=BUCKET * BUCKETS,
        )
        one = on_machine(alone)
        for threads in amount.threads:
            speeds = []
            for chunk in amount.chunks:
                load = replace(alone, threads=threads, horizon=2 * threads, chunk=chunk)
                many = on_machine(load)
                if many.sum != one.sum:
                    raise AssertionError("the answer depends on the threads")
                speeds.append(
                    Speed(
                        shape,
                        threads,
                        one.seconds / many.seconds,
                        load.horizon,
                        chunk,
                        many.reruns / amount.events,
                        many.transfers / amount.events,
                    )
                )
            found.append(max(speeds, key=lambda one: one.speed))
    return found


HEAD = ("buckets", "beside", "threads", "speed", "horizon", "chunk", "reruns", "lines")


def main() -> int:
    """Runs the table, prints it, and writes the file that was asked for."""
    parser = argparse.ArgumentParser("python -m bench neighbours", description=__doc__)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what was seen")
    parser.add_argument("--quick", action="store_true", help="short; to see that it runs")
    arguments = parser.parse_args()
    seen = table(QUICK if arguments.quick else FULL, lambda what: print(what, flush=True))
    rows = [
        [
            f"{one.shape.buckets:g}",
            f"{one.shape.time / 1000:g} µs",
            str(one.threads),
            f"{one.speed:.2f}",
            str(one.horizon),
            str(one.chunk),
            f"{one.reruns:.3f}",
            f"{one.transfers:.1f}",
        ]
        for one in seen
    ]
    title = "Speed relative to one thread; runs again and lines from core to core, by event"
    print_table(title, HEAD, rows, range(len(HEAD)))
    if arguments.json:
        table_ = [one._asdict() | {"shape": one.shape._asdict()} for one in seen]
        arguments.json.write_text(json.dumps({"costs": COSTS, "table": table_}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
