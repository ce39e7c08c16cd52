"""The two ready operators as the text has them, beside their lock-based versions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench import locked
from bench.chapter4.slowed import SlowedEngine, busy_rounds
from bench.workloads import NEIGHBOURS, TOP_K, skewed_items, uniform_points
from specstream.operators import nearest_neighbours, top_k

__all__ = ["READY", "Ready", "engine_of", "rounds_for"]


@dataclass(frozen=True)
class Ready:
    """An operator, its load, and what an event cost in the text.

    Attributes:
        name: "top-k" or "nearest neighbours".
        operator: from a factory, so that nothing is compiled before it is needed.
        fine: the same with fine-grained locks.
        events: makes a table of that many events.
        warm_up: events after which the state is as in a long run.
        seconds: of an event in the sequential run of the text.
    """

    name: str
    operator: Callable[[], ss.Operator]
    fine: Callable[[], ss.Operator]
    events: Callable[[int, int], pa.Table]
    warm_up: int
    seconds: float

    def values(self, generator: np.random.Generator) -> dict[str, Any]:
        """The columns of one event."""
        row: dict[str, Any]
        (row,) = self.events(1, int(generator.integers(2**31))).to_pylist()
        return row


READY = (
    Ready(
        "top-k",
        functools.cache(lambda: top_k(**TOP_K)),
        functools.cache(lambda: locked.top_k(**TOP_K, fine=True)),
        skewed_items,
        20_000,
        12.42e-6,
    ),
    Ready(
        "nearest neighbours",
        functools.cache(lambda: nearest_neighbours(**NEIGHBOURS)),
        functools.cache(lambda: locked.nearest_neighbours(**NEIGHBOURS, fine=True)),
        uniform_points,
        100_000,
        26.68e-6,
    ),
)


def engine_of(ready: Ready, fine: bool = False, **options: Any) -> SlowedEngine:
    """An engine whose state is as after a long run."""
    slowed = SlowedEngine(ready.fine() if fine else ready.operator(), **options)
    slowed.run(ready.events(ready.warm_up, 0))
    return slowed


@functools.cache
def rounds_for(ready: Ready) -> int:
    """Rounds of the busy loop that make an event take what it took in the text, all in all."""
    with engine_of(ready, threads=1, horizon=0) as slowed:
        events = ready.events(20_000, 1)
        bare: float = min(slowed.run(events) for _ in range(5)) / events.num_rows
    return round((ready.seconds - bare) * busy_rounds())
