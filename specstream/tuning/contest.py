"""Interleaved rounds: every contestant on the same events, in changing order.

Two runs one after the other differ by what else the machine does; the runs of one round share it.
So what is kept is the ratio to the baseline *of that round*; medians and quartiles of ratios are
shown. Times are those of the engine, without the conversion from and to Arrow, which is the same
for all.

A round is one batch. The contestants go through the batches side by side, each with a state of its
own, and start again from the first one when they are used up.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from specstream.definition.operator import Operator
from specstream.engine.engine import Engine
from specstream.errors import SpecstreamError

__all__ = [
    "UNORDERED",
    "Arena",
    "Contestant",
    "EngineContestant",
    "Measurement",
    "Order",
    "Rows",
    "quartiles",
    "same_rows",
    "time_per_event",
]

# What an engine gives for a batch: of a pipeline with several sinks a table of each.
Rows: TypeAlias = pa.Table | dict[str, pa.Table]
# The columns of the order key, as options of Engine.process.
Order = Mapping[str, Any]
UNORDERED: Order = {"order_by": None, "source": None}

# Below this, starting a batch is a good part of it.
SHORTEST_BATCH = 0.002


@dataclass(frozen=True)
class Measurement:
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
class Contestant(ABC):
    """Something that runs events and says how long it took.

    Attributes:
        name: what tables call it.
        exact: it promises the sequential answer.
        setting: for tables as well: "horizon 8, chunk 4".
        times: seconds per event by round, as the engine counts them.
        walls: the same with the conversion from and to Arrow and all that is around it.
        runs: speculative runs by round.
        dropped: how many of them were dropped.
        same: whether the rows were those of the baseline, by round.
    """

    name: str
    exact: bool = True
    setting: str = ""
    times: dict[int, float] = field(default_factory=dict)
    walls: dict[int, float] = field(default_factory=dict)
    runs: dict[int, int] = field(default_factory=dict)
    dropped: dict[int, int] = field(default_factory=dict)
    same: dict[int, bool] = field(default_factory=dict)

    def prepare(self, baseline: Contestant) -> None:  # noqa: B027 (most have nothing to do)
        """Called before a round, when nobody has run its batch."""

    @abstractmethod
    def run(self, batch: pa.Table, number: int) -> Rows | None:
        """Runs a batch and keeps what it took under the round's number; gives the rows, or None
        where they are not to be compared."""

    @abstractmethod
    def restart(self) -> None:
        """Back to the state before the first batch."""

    def aborts(self, rounds: Iterable[int]) -> float | None:
        """Dropped speculative runs per speculative run."""
        numbers = list(rounds)
        runs = sum(self.runs.get(number, 0) for number in numbers)
        return sum(self.dropped.get(n, 0) for n in numbers) / runs if runs else None

    def close(self) -> None:  # noqa: B027 (most hold none)
        """Gives up threads and memory."""


class EngineContestant(Contestant):
    """A compiled operator in an engine of its own.

    Args:
        name: what tables call it.
        operator: what it runs.
        order: the columns that order its batches.
        exact: it promises the sequential answer.
        setting: what tables call that.
        warm_up: events before the first batch; not timed.
        options: of the engine.
    """

    def __init__(
        self,
        name: str,
        operator: Operator,
        order: Order = UNORDERED,
        exact: bool = True,
        setting: str = "",
        warm_up: pa.Table | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, exact, setting)
        self.engine = Engine(operator, **options)
        self._order = order
        if warm_up is not None:
            self.engine.process(warm_up, **order)
        self._start = self.engine.savepoint()

    def run(self, batch: pa.Table, number: int) -> Rows | None:
        before = self.engine.stats
        began = time.perf_counter()
        rows = self.engine.process(batch, **self._order)
        self.walls[number] = (time.perf_counter() - began) / batch.num_rows
        after = self.engine.stats
        self.times[number] = (after.seconds - before.seconds) / batch.num_rows
        self.runs[number] = after.speculative_runs - before.speculative_runs
        self.dropped[number] = sum(after.aborts.values()) - sum(before.aborts.values())
        return rows

    def restart(self) -> None:
        self.engine.rollback(self._start)

    def close(self) -> None:
        self.engine.close()


class Arena:
    """Runs rounds.

    Args:
        batches: that can be gone through again and again; one makes a round.
        baseline: what all ratios are relative to, and whose rows are the sequential answer.
    """

    def __init__(self, batches: Iterable[pa.Table], baseline: Contestant) -> None:
        self.baseline = baseline
        self.rounds = 0
        self._batches = batches
        self._left: Iterator[pa.Table] = iter(())
        self._standing: set[Contestant] = set()  # those that have run all batches so far

    def round(self, contestants: Sequence[Contestant]) -> None:
        """Every contestant once, the baseline among them, in an order of its own.

        Raises:
            SpecstreamError: a contestant that promises the sequential answer gave another one.
        """
        everyone = list(dict.fromkeys((self.baseline, *contestants)))
        batch = next(self._left, None) if self._standing.issuperset(everyone) else None
        if batch is None:
            self._left = iter(self._batches)
            batch = next(self._left)
            for contestant in everyone:
                contestant.restart()
        self._standing = set(everyone)
        number = self.rounds
        order = list(everyone)
        random.Random(number).shuffle(order)
        for contestant in order:
            contestant.prepare(self.baseline)
        rows: dict[Contestant, Rows | None] = {}
        gc.disable()
        try:
            for contestant in order:
                rows[contestant] = contestant.run(batch, number)
        finally:
            gc.enable()
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

    def measured(
        self, contestant: Contestant, rounds: Iterable[int], baseline: Contestant | None = None
    ) -> Measurement:
        """Quartiles over rounds, each relative to the baseline of its round.

        Args:
            contestant: one that took part.
            rounds: their numbers.
            baseline: another one than the arena's.
        """
        base = (baseline or self.baseline).times
        numbers = [number for number in rounds if number in contestant.times]
        low, median, high = quartiles([base[n] / contestant.times[n] for n in numbers])
        same = [contestant.same[n] for n in numbers if n in contestant.same]
        return Measurement(
            median,
            low,
            high,
            statistics.median(contestant.times[n] for n in numbers) * 1e9,
            contestant.aborts(numbers),
            len(numbers),
            sum(same) / len(same) if same else 1.0,
        )

    def fastest(self, family: Sequence[Contestant], rounds: Sequence[int]) -> Contestant:
        """Of some contestants, for instance one operator in several settings."""
        return max(family, key=lambda one: self.measured(one, rounds).speed)


def time_per_event(contestant: Contestant, first: Callable[[int], pa.Table]) -> float:
    """Seconds per event, roughly: from the first events, of which some warm up.

    Args:
        contestant: it is back at its start afterwards when its arena restarts it.
        first: gives so many events, or all where there are fewer.
    """
    count = 64
    while True:
        contestant.restart()
        batch = first(count)
        contestant.run(batch, -1)
        took = contestant.times.pop(-1)
        contestant.walls.pop(-1)
        if batch.num_rows < count or took * count > SHORTEST_BATCH:
            return max(took, 1e-9)
        count *= 8


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


def same_rows(found: Rows, expected: Rows) -> bool:
    """Equal in every bit: a NaN equals itself. Of several sinks each.

    >>> nan = float("nan")
    >>> same_rows(pa.table({"x": [1.0, nan]}), pa.table({"x": [1.0, nan]}))
    True
    >>> same_rows(pa.table({"x": [0.0]}), pa.table({"x": [-0.0]}))
    False
    >>> table = pa.table({"x": [1]})
    >>> same_rows({"a": table, "b": table}, {"a": table, "b": table.slice(1)})
    False
    """
    if isinstance(found, dict) or isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and isinstance(expected, dict)
            and found.keys() == expected.keys()
            and all(same_rows(of, expected[name]) for name, of in found.items())
        )
    if found.schema != expected.schema or found.num_rows != expected.num_rows:
        return False
    for one, other in zip(found.columns, expected.columns, strict=True):
        if pa.types.is_float64(one.type):
            if not np.array_equal(one.to_numpy().view(np.int64), other.to_numpy().view(np.int64)):
                return False
        elif not one.equals(other):
            return False
    return True
