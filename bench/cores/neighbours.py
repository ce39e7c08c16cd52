"""Events that read as nearest neighbours do, on more cores than there are.

An event looks at some buckets of 21 neighbouring words each (ten points and their number), of ten
thousand, and writes four words in one of them. With the whole square of nine buckets that is what
the operator did once; with those that are near enough, two or three. What else it does takes the
time that is varied: it says from where on cores are worth having.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bench.cores.native import Load, on_machine

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
