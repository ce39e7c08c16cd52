"""Interleaved rounds: every contestant on the same events, in changing order.

The runs of one round share what else the machine does, so what is kept is the ratio to the baseline
*of that round*; medians and quartiles of ratios are shown. Times are those of the engine, without
the conversion from and to Arrow, which is the same for all.

A round is one batch of the stream. The contestants go through the stream side by side, each with a
state of its own, and start again from its beginning when it is used up.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.engine import Engine
from specstream.errors import SpecstreamError
from specstream.operator import Operator
from specstream.tuning.stream import Stream

__all__ = ["Arena", "Contestant", "EngineContestant", "Figures", "same_rows"]


@dataclass(frozen=True)
class Figures:
    """What came out for one contestant.

    Attributes:
        speed: relative to the baseline in the same round, median.
        low: first quartile.
        high: third quartile.
        nanoseconds: per event, median; only meaningful beside the others of its table.
        aborts: dropped speculative runs per speculative run; None where nothing speculated.
        rounds: that were counted.
        same: share of the rounds whose rows were those of the sequential run.
    """

    speed: float
    low: float
    high: float
    nanoseconds: float
    aborts: float | None
    rounds: int
    same: float


@dataclass(eq=False)
class Contestant:
    """Something that runs events and says how long it took.

    Attributes:
        name: what tables call it.
        exact: it promises the sequential answer.
        times: seconds per event by round.
        same: whether the rows were those of the baseline, by round.
    """

    name: str
    exact: bool = True
    times: dict[int, float] = field(default_factory=dict)
    same: dict[int, bool] = field(default_factory=dict)

    def prepare(self, baseline: Contestant) -> None:
        """Called before a round, when nobody has run its batch."""

    def run(self, batch: pa.Table, number: int) -> pa.Table | None:
        """Runs a batch and keeps its time under the round's number; gives the rows, or None where
        they are not all of the batch's."""
        raise NotImplementedError

    def restart(self) -> None:
        """Back to the start of the stream."""
        raise NotImplementedError

    def aborts(self) -> float | None:
        """Dropped speculative runs per speculative run."""
        return None

    def close(self) -> None:
        """Gives up threads and memory."""


class EngineContestant(Contestant):
    """A compiled operator in an engine of its own.

    Args:
        name: what tables call it.
        operator: what it runs.
        stream: whose batches it gets; says how they are ordered.
        exact: it promises the sequential answer.
        warm_up: events before the start of the stream; not timed.
        options: of the engine.
    """

    def __init__(
        self,
        name: str,
        operator: Operator,
        stream: Stream,
        exact: bool = True,
        warm_up: pa.Table | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, exact)
        self.engine = Engine(operator, **options)
        self._order = stream.order
        if warm_up is not None:
            self.engine.process(warm_up, **self._order)
        self._start = self.engine.mark()
        self._before = self.engine.stats
        self.walls: list[float] = []

    def run(self, batch: pa.Table, number: int) -> pa.Table | None:
        before = self.engine.stats.seconds
        began = time.perf_counter()
        rows = self.engine.process(batch, **self._order)
        self.walls.append((time.perf_counter() - began) / batch.num_rows)
        self.times[number] = (self.engine.stats.seconds - before) / batch.num_rows
        return rows

    def restart(self) -> None:
        self.engine.rewind(self._start)

    def aborts(self) -> float | None:
        after = self.engine.stats
        runs = after.speculative_runs - self._before.speculative_runs
        dropped = sum(after.aborts.values()) - sum(self._before.aborts.values())
        return dropped / runs if runs else None

    def close(self) -> None:
        self.engine.close()


class Arena:
    """Runs rounds over a stream.

    Args:
        stream: the events.
        events: in one batch.
        baseline: what all ratios are relative to, and whose rows are the sequential answer.
    """

    def __init__(self, stream: Stream, events: int, baseline: Contestant) -> None:
        self.batches = stream.batches(events)
        self.baseline = baseline
        self.rounds = 0
        self._next = 0
        self._standing: set[Contestant] = set()  # those that are where the stream is

    def round(self, contestants: Sequence[Contestant]) -> None:
        """Every contestant once, the baseline among them, in an order of its own.

        Raises:
            SpecstreamError: a contestant that promises the sequential answer gave another one.
        """
        everyone = list(dict.fromkeys((self.baseline, *contestants)))
        if self._next == len(self.batches) or not self._standing.issuperset(everyone):
            self._next = 0
            for contestant in everyone:
                contestant.restart()
            self._standing = set(everyone)
        batch, number = self.batches[self._next], self.rounds
        order = list(everyone)
        random.Random(number).shuffle(order)
        for contestant in order:
            contestant.prepare(self.baseline)
        rows = {}
        gc.disable()
        try:
            for contestant in order:
                rows[contestant] = contestant.run(batch, number)
        finally:
            gc.enable()
        self._standing &= set(everyone)
        self._next += 1
        self.rounds += 1
        expected = rows[self.baseline]
        for contestant, found in rows.items():
            if found is None or expected is None:
                continue
            contestant.same[number] = same_rows(found, expected)
            if contestant.exact and not contestant.same[number]:
                raise SpecstreamError(
                    f"{contestant.name!r} gave other rows than {self.baseline.name!r} for the same "
                    "events, which must not be: please report the operator and the data"
                )

    def rounds_for(
        self,
        contestants: Sequence[Contestant],
        seconds: float,
        least: int,
        say: Callable[[str], None],
    ) -> range:
        """Rounds until the time is used up, and no less than ``least``; gives their numbers."""
        first, until = self.rounds, time.perf_counter() + seconds
        while self.rounds - first < least or time.perf_counter() < until:
            self.round(contestants)
            say(f"round {self.rounds}, {len(contestants)} settings")
        return range(first, self.rounds)

    def figures(self, contestant: Contestant, rounds: Sequence[int]) -> Figures:
        """Quartiles over rounds, each relative to the baseline of its round."""
        numbers = [number for number in rounds if number in contestant.times]
        ratios = [self.baseline.times[n] / contestant.times[n] for n in numbers]
        low, median, high = quartiles(ratios)
        same = [contestant.same[n] for n in numbers if n in contestant.same]
        return Figures(
            median,
            low,
            high,
            statistics.median(contestant.times[n] for n in numbers) * 1e9,
            contestant.aborts(),
            len(numbers),
            sum(same) / len(same) if same else 1.0,
        )


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median, third quartile.

    >>> quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    (2.0, 3.0, 4.0)
    >>> quartiles([7.0])
    (7.0, 7.0, 7.0)
    """
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high


def same_rows(found: pa.Table, expected: pa.Table) -> bool:
    """Equal in every bit: a NaN equals itself.

    >>> nan = float("nan")
    >>> same_rows(pa.table({"x": [1.0, nan]}), pa.table({"x": [1.0, nan]}))
    True
    >>> same_rows(pa.table({"x": [0.0]}), pa.table({"x": [-0.0]}))
    False
    """
    if found.schema != expected.schema or found.num_rows != expected.num_rows:
        return False
    for one, other in zip(found.columns, expected.columns, strict=True):
        if pa.types.is_float64(one.type):
            if not np.array_equal(one.to_numpy().view(np.int64), other.to_numpy().view(np.int64)):
                return False
        elif not one.equals(other):
            return False
    return True
