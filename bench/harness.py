"""Interleaved rounds in one process.

Two runs one after the other differ by what else the machine does; the runs of one round share it.
So each round runs every contestant once on the same events, in changing order, and what is kept is
the ratio to the log-free clone *of that round*. Medians and quartiles of ratios are shown. Times
are those of the engine, without the conversion from and to Arrow.

With two threads on two cores every other process takes away from the one that needs both, and a
virtual machine may not have got both cores in the first place, which it cannot see. So before and
after each round two threads without anything in common run a busy loop: *capacity* is how much
faster they are than one. Rounds are repeated, within limits, until enough of them were undisturbed;
the best are kept, and their capacity is shown.
"""

from __future__ import annotations

import gc
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import llvmlite
import numba
import numpy as np
import pyarrow as pa

import specstream as ss
from bench.workloads import Workload, busy_loop, values
from specstream.columns import read_events
from specstream.compiler.oracle import Oracle
from specstream.engine import Amount
from specstream.strings import StringTable
from specstream.tuning.machine import processor

__all__ = [
    "BASELINE",
    "Contestant",
    "Effort",
    "EngineContestant",
    "Measurement",
    "Probe",
    "Result",
    "choose",
    "events_for",
    "machine",
    "measure",
    "run_round",
    "summary",
    "undisturbed_rounds",
]

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


@dataclass
class Result:
    """One contestant of one workload.

    Attributes:
        ratio: speed relative to the log-free clone in the same round: median.
        low, high: its quartiles.
        nanoseconds: per event, median; only meaningful beside the others of its table.
        aborts: dropped speculative runs per speculative run; None where nothing speculates.
        setting: what was chosen, for instance "horizon 8, chunk 8".
        target: the ratio asked for, if any.
    """

    contestant: str
    ratio: float
    low: float
    high: float
    nanoseconds: float
    aborts: float | None
    setting: str
    target: float | None


@dataclass
class Measurement:
    """What came out for one workload.

    Attributes:
        capacity: speed of two independent threads relative to one, mean over the kept rounds.
    """

    results: list[Result]
    capacity: float


@dataclass(eq=False)
class Contestant:
    """Something that runs events and says how long it took.

    Attributes:
        learns: it looks for its setting itself, while it runs.
        times: seconds per event in each round, as the engine counts them.
        walls: the same with the conversion from and to Arrow and all that is around it.
    """

    name: str
    setting: str = ""
    learns: bool = False
    times: list[float] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)

    def run(self, events: pa.Table) -> None:
        raise NotImplementedError

    def aborts(self) -> float | None:
        return None

    def forget(self) -> None:
        """Drops what the trials measured."""
        self.times.clear()
        self.walls.clear()

    def close(self) -> None:
        pass


class EngineContestant(Contestant):
    """A compiled operator in an engine of its own."""

    def __init__(
        self,
        name: str,
        workload: Workload,
        threads: int,
        horizon: Amount,
        chunk: Amount,
        execution: str,
        protocol: str = "value",
        fine: bool = False,
    ) -> None:
        settings = {
            "ordered": f"horizon {horizon}, chunk {chunk}" if horizon else "horizon 0",
            "speculate": f"horizon {horizon}, chunk {chunk}",
            "locked": f"chunk {chunk}",
        }
        super().__init__(name, settings.get(execution, ""), learns=horizon == "auto")
        self.deterministic = execution != "locked" or threads == 1
        self.engine = ss.Engine(
            (workload.fine if fine else workload.rival)
            if execution == "locked"
            else workload.operator,
            threads=threads,
            horizon=horizon,
            chunk=chunk,
            execution=execution,  # type: ignore[arg-type]
            protocol=protocol,
        )
        self.output = self.engine.process(workload.events(workload.warm_up, 0))
        self.before = self.engine.stats

    def run(self, events: pa.Table) -> None:
        before = self.engine.stats.seconds
        began = time.perf_counter()
        self.engine.process(events)
        self.walls.append((time.perf_counter() - began) / events.num_rows)
        self.times.append((self.engine.stats.seconds - before) / events.num_rows)

    def aborts(self) -> float | None:
        after = self.engine.stats
        runs = after.speculative_runs - self.before.speculative_runs
        dropped = sum(after.aborts.values()) - sum(self.before.aborts.values())
        return dropped / runs if runs else None

    def forget(self) -> None:
        super().forget()
        self.before = self.engine.stats

    def close(self) -> None:
        self.engine.close()


class _PurePython(Contestant):
    """The oracle, over a copy of an engine's warm state, on the first few of the events."""

    def __init__(self, workload: Workload, state: Any, count: int) -> None:
        super().__init__("pure Python")
        self.operator = workload.operator
        self.count = count
        layout = self.operator.layout
        words = layout.allocate()
        for layout_field in layout.fields:
            if layout_field.space == "state":
                layout.elements(words, layout_field)[...] = getattr(state, layout_field.name)
        self.oracle = Oracle(self.operator.program, layout, words)

    def run(self, events: pa.Table) -> None:
        operator = self.operator
        table = events.slice(0, self.count)
        read = read_events(table, operator.event, StringTable(()), operator.name, 0)
        self.oracle.begin(operator.event, operator.emits, read.columns, 0, 0)
        before = time.perf_counter()
        for row in range(read.count):
            self.oracle.run(row)
        self.times.append((time.perf_counter() - before) / read.count)


def measure(workload: Workload, effort: Effort, say: Callable[[str], None]) -> Measurement:
    """Runs all contestants of a workload.

    Raises:
        AssertionError: a contestant that promises the sequential answer gave another one.
    """
    say(f"{workload.name}: compiling and warming up")
    base = EngineContestant(BASELINE, workload, 1, 0, 1, "log_free")
    plain = EngineContestant("plain", workload, 1, 0, 1, "ordered")
    automatic = EngineContestant("automatic, 2 threads", workload, 2, "auto", "auto", "ordered")
    families = [
        [
            EngineContestant("lock, 1 thread", workload, 1, 0, chunk, "locked")
            for chunk in (1, 8, 64)
        ],
        [
            EngineContestant("lock, 2 threads", workload, 2, 0, chunk, "locked")
            for chunk in (1, 8, 64)
        ],
        [
            EngineContestant("fine locks, 1 thread", workload, 1, 0, chunk, "locked", fine=True)
            for chunk in (1, 8, 64)
        ],
        [
            EngineContestant("fine locks, 2 threads", workload, 2, 0, chunk, "locked", fine=True)
            for chunk in (1, 8, 64)
        ],
        [
            EngineContestant("speculation, 1 thread", workload, 1, horizon, chunk, "ordered")
            for horizon, chunk in workload.settings
        ],
        [
            EngineContestant(
                "forced speculation, 1 thread", workload, 1, horizon, chunk, "speculate"
            )
            for horizon, chunk in workload.settings
        ],
        [
            EngineContestant("speculation, 2 threads", workload, 2, horizon, chunk, "ordered")
            for horizon, chunk in workload.settings
        ],
    ]
    for engine in (plain, automatic, *(engine for family in families for engine in family)):
        if engine.deterministic:
            assert engine.output.equals(base.output), (
                f"{workload.name}: {engine.name} ({engine.setting}) differs from {BASELINE}"
            )

    count = events_for(base, workload, effort.seconds)
    say(f"{workload.name}: choosing settings")
    best = choose(families, [base, plain, automatic], workload, count, effort.trials)
    chosen = [base, plain, *best, automatic]

    # The oracle gets as much time as the others, which is one event or a few.
    python = _PurePython(workload, base.engine.state, 1)
    python.run(workload.events(1, 2))
    python.count = min(count, max(1, int(effort.seconds / python.times[-1])))
    python.times.clear()

    contestants: list[Contestant] = [python, *chosen]
    probe = Probe()
    kept, capacity = undisturbed_rounds(contestants, workload, effort, count, probe, say)
    results = [summary(contestant, base, workload.target, kept) for contestant in contestants]
    for contestant in (*contestants, probe):
        contestant.close()
    return Measurement(results, capacity)


def events_for(base: Contestant, workload: Workload, seconds: float) -> int:
    """How many events take the baseline so long; it has run a few already."""
    base.run(workload.events(256, 1))
    count = max(64, int(seconds / base.times[-1]))
    base.forget()
    return count


def choose(
    families: Sequence[Sequence[Contestant]],
    others: Sequence[Contestant],
    workload: Workload,
    count: int,
    trials: int,
) -> list[Contestant]:
    """The fastest of each family; the rest is closed. The others run along, to share the noise.

    Who looks for his setting himself gets as many runs for that as the largest family has had.
    """
    everyone = [*others, *(contestant for family in families for contestant in family)]
    for trial in range(trials):
        run_round(everyone, workload.events(count, 1000 + trial), trial)
    learners = [contestant for contestant in others if contestant.learns]
    for trial in range(trials * (max(map(len, families)) - 1)):
        run_round(learners, workload.events(count, 1500 + trial), trial)
    chosen = []
    for family in families:
        best = min(family, key=lambda contestant: statistics.median(contestant.times))
        chosen.append(best)
        for contestant in family:
            if contestant is not best:
                contestant.close()
    for contestant in (*others, *chosen):
        contestant.forget()
    return chosen


def undisturbed_rounds(
    contestants: Sequence[Contestant],
    workload: Workload,
    effort: Effort,
    count: int,
    probe: Probe,
    say: Callable[[str], None],
) -> tuple[list[int], float]:
    """Runs rounds until enough were undisturbed; the numbers of the best, and their capacity."""
    capacity: list[float] = []
    before = probe.capacity()
    while sum(share > UNDISTURBED for share in capacity) < effort.rounds and (
        len(capacity) < effort.patience * effort.rounds
    ):
        number = len(capacity)
        say(f"{workload.name}: round {number + 1}")
        run_round(contestants, workload.events(count, 2000 + number), number)
        after = probe.capacity()
        capacity.append(min(before, after))
        before = after
    kept = sorted(range(len(capacity)), key=capacity.__getitem__, reverse=True)[: effort.rounds]
    return kept, statistics.fmean(capacity[number] for number in kept)


class Probe:
    """What two threads that share nothing gain over one, here and now."""

    def __init__(self) -> None:
        self.events = values(4_000)(500, 0)
        self.engines = [
            ss.Engine(busy_loop, threads=threads, chunk=4, execution="locked") for threads in (1, 2)
        ]
        self.capacity()  # the first time starts threads and touches memory

    def capacity(self) -> float:
        seconds = []
        for engine in self.engines:
            before = engine.stats.seconds
            engine.process(self.events)
            seconds.append(engine.stats.seconds - before)
        return seconds[0] / seconds[1]

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def run_round(contestants: Sequence[Contestant], events: pa.Table, seed: int) -> None:
    """Every contestant once, on the same events, in an order of its own."""
    order = list(contestants)
    random.Random(seed).shuffle(order)
    gc.disable()
    try:
        for contestant in order:
            contestant.run(events)
    finally:
        gc.enable()


def summary(
    contestant: Contestant, base: Contestant, target: Mapping[str, float], kept: Sequence[int]
) -> Result:
    """Quartiles over the rounds that are kept, each relative to the baseline of its round."""
    ratios = [base.times[number] / contestant.times[number] for number in kept]
    low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Result(
        contestant.name,
        ratio,
        low,
        high,
        statistics.median(contestant.times[number] for number in kept) * 1e9,
        contestant.aborts(),
        contestant.setting,
        target.get(contestant.name),
    )


def machine() -> dict[str, Any]:
    """The machine and the versions, without which no figure means anything."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "specstream": ss.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }


def to_dict(measurement: Measurement) -> dict[str, Any]:
    """A measurement as plain data, for JSON."""
    return asdict(measurement)
