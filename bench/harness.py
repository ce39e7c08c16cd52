"""What the benchmarks of this repository add to :mod:`specstream.tuning.contest`.

The best setting of each family of contestants is chosen first; then rounds are run. With two
threads on two cores every other process takes away from the one that needs both, and a virtual
machine may not have got both cores in the first place, which it cannot see. So before and after
each round two threads without anything in common run a busy loop: *capacity* is how much faster
they are than one. Rounds are repeated, within limits, until enough of them were undisturbed; the
best are kept, and their capacity is shown.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bench.workloads import Workload
from specstream.engine.engine import Amount
from specstream.tuning.contest import (
    Arena,
    Contestant,
    EngineContestant,
    Measurement,
    time_per_event,
)
from specstream.tuning.machine import Probe
from specstream.tuning.rivals import CHUNKS, SequentialCheck

__all__ = [
    "BASELINE",
    "CORES",
    "Batches",
    "Effort",
    "Measured",
    "Result",
    "choose",
    "engine_contestant",
    "events_for",
    "fastest",
    "measure",
    "setting_of",
    "undisturbed_rounds",
]

CORES = 2
# Capacity of a round that counts as undisturbed.
UNDISTURBED = 1.9

BASELINE = "log-free"


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: that are kept.
        seconds: of one contestant in one round, roughly.
        trials: rounds for the choice among settings; those are not kept.
        patience: rounds that are run in search of undisturbed ones, per round that is kept.
    """

    rounds: int
    seconds: float
    trials: int
    patience: int = 3


@dataclass(frozen=True)
class Result:
    """One contestant of one workload.

    Attributes:
        setting: what was chosen, for instance "horizon 8, chunk 8".
        measured: relative to the log-free clone.
        target: the speed asked for, if any.
    """

    contestant: str
    setting: str
    measured: Measurement
    target: float | None


@dataclass(frozen=True)
class Measured:
    """What came out for one workload.

    Attributes:
        capacity: speed of two independent threads relative to one, mean over the kept rounds.
    """

    results: list[Result]
    capacity: float


@dataclass(frozen=True)
class Batches:
    """Batches without end: other events in each, the same again from the start.

    Attributes:
        make: one, of a seed.
    """

    make: Callable[[int], pa.Table]

    def __iter__(self) -> Iterator[pa.Table]:
        return (self.make(1000 + at) for at in itertools.count())


def setting_of(execution: str, horizon: object, chunk: object) -> str:
    """What tables say of a setting."""
    if execution == "log_free" or (execution == "ordered" and horizon == 0):
        return ""
    return f"chunk {chunk}" if execution == "locked" else f"horizon {horizon}, chunk {chunk}"


def engine_contestant(
    name: str,
    workload: Workload,
    threads: int,
    setting: tuple[Amount, Amount],
    execution: str,
    *,
    protocol: str = "value",
    fine: bool = False,
) -> EngineContestant:
    """A workload's operator, or its rival under locks, in an engine with a warm state.

    Args:
        setting: horizon and chunk.
        fine: of the rivals the one under fine-grained locks.
    """
    locked = execution == "locked"
    return EngineContestant(
        name,
        (workload.fine if fine else workload.rival) if locked else workload.operator,
        exact=not locked or threads == 1,
        setting=setting_of(execution, *setting),
        warm_up=workload.events(workload.warm_up, 0),
        threads=threads,
        horizon=setting[0],
        chunk=setting[1],
        execution=execution,
        protocol=protocol,
    )


def measure(workload: Workload, effort: Effort, say: Callable[[str], None]) -> Measured:
    """Runs all contestants of a workload.

    Raises:
        SpecstreamError: a contestant that promises the sequential answer gave another one.
    """

    def contestant(name: str, threads: int, setting: Any, how: str, **more: Any) -> Contestant:
        made = engine_contestant(name, workload, threads, setting, how, **more)
        stack.callback(made.close)
        return made

    with ExitStack() as stack:
        say(f"{workload.name}: compiling and warming up")
        base = contestant(BASELINE, 1, (0, 1), "log_free")
        plain = contestant("plain", 1, (0, 1), "ordered")
        automatic = contestant("automatic, 2 threads", 2, ("auto", "auto"), "ordered")
        python = SequentialCheck(workload.operator, effort.seconds)
        locks = [(0, chunk) for chunk in CHUNKS]
        families = [
            [contestant(name, threads, setting, how, **more) for setting in settings]
            for name, threads, settings, how, more in (
                ("lock, 1 thread", 1, locks, "locked", {}),
                ("lock, 2 threads", 2, locks, "locked", {}),
                ("fine locks, 1 thread", 1, locks, "locked", {"fine": True}),
                ("fine locks, 2 threads", 2, locks, "locked", {"fine": True}),
                ("speculation, 1 thread", 1, workload.settings, "ordered", {}),
                ("forced speculation, 1 thread", 1, workload.settings, "speculate", {}),
                ("speculation, 2 threads", 2, workload.settings, "ordered", {}),
            )
        ]
        count = events_for(base, workload, effort.seconds)
        arena = Arena(Batches(lambda seed: workload.events(count, seed)), base)
        say(f"{workload.name}: choosing settings")
        best = choose(arena, families, [plain, automatic, python], [automatic], effort.trials)
        contestants = [python, base, plain, *best, automatic]
        probe = stack.enter_context(Probe(CORES))
        kept, capacity = undisturbed_rounds(arena, contestants, effort, probe, workload.name, say)
        results = [
            Result(one.name, one.setting, arena.measured(one, kept), workload.target.get(one.name))
            for one in contestants
        ]
        return Measured(results, capacity)


def events_for(base: Contestant, workload: Workload, seconds: float) -> int:
    """How many events take the baseline so long."""
    return max(64, int(seconds / time_per_event(base, lambda count: workload.events(count, 1))))


def choose(
    arena: Arena,
    families: Sequence[Sequence[Contestant]],
    others: Sequence[Contestant],
    learners: Sequence[Contestant],
    trials: int,
) -> list[Contestant]:
    """The fastest of each family; the rest is closed."""
    chosen = fastest(arena, families, others, learners, trials)
    for family in families:
        for contestant in family:
            if contestant not in chosen:
                contestant.close()
    return chosen


def fastest(
    arena: Arena,
    families: Sequence[Sequence[Contestant]],
    others: Sequence[Contestant],
    learners: Sequence[Contestant],
    trials: int,
) -> list[Contestant]:
    """The fastest of each family. The others run along, to share the noise.

    Who looks for his setting himself gets as many runs for that as the largest family has had.
    """
    everyone = [*others, *(contestant for family in families for contestant in family)]
    first = arena.rounds
    for _ in range(trials):
        arena.round(everyone)
    chosen = [arena.fastest(family, range(first, arena.rounds)) for family in families]
    for _ in range(trials * (max(map(len, families)) - 1)):
        arena.round(learners)
    return chosen


def undisturbed_rounds(
    arena: Arena,
    contestants: Sequence[Contestant],
    effort: Effort,
    probe: Probe,
    name: str,
    say: Callable[[str], None],
) -> tuple[list[int], float]:
    """Runs rounds until enough were undisturbed; the numbers of the best, and their capacity."""
    capacity: dict[int, float] = {}
    before = probe.capacity()
    while sum(share > UNDISTURBED for share in capacity.values()) < effort.rounds and (
        len(capacity) < effort.patience * effort.rounds
    ):
        say(f"{name}: round {len(capacity) + 1}")
        number = arena.rounds
        arena.round(contestants)
        after = probe.capacity()
        capacity[number] = min(before, after)
        before = after
    kept = sorted(capacity, key=capacity.__getitem__, reverse=True)[: effort.rounds]
    return kept, statistics.fmean(capacity[number] for number in kept)
