"""Interleaved rounds in one process.

Two runs one after the other differ by what else the machine does; the runs of one round share it.
So each round runs every contestant once on the same events, in changing order, and what is kept is
the ratio to the log-free clone *of that round*. Medians and quartiles of ratios are shown. Times
are those of the engine, without the conversion from and to Arrow.

With two threads on two cores every other process takes away from the one that needs both. Rounds
are repeated, within limits, until enough of them were undisturbed; the quietest are kept, and how
much of the machine other processes used in them is shown.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
import pyarrow as pa

import specstream as ss
from bench.workloads import Workload
from specstream.columns import read_events
from specstream.compiler.oracle import Oracle
from specstream.strings import StringTable

__all__ = ["BASELINE", "Effort", "Measurement", "Result", "machine", "measure"]

# Share of the machine that others may use in a round that counts as undisturbed.
DISTURBED = 0.05

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
        others: share of the machine that other processes used in the rounds that were kept.
    """

    results: list[Result]
    others: float


@dataclass
class _Contestant:
    """Something that runs events and says how long it took."""

    name: str
    setting: str = ""
    times: list[float] = field(default_factory=list)

    def run(self, events: pa.Table) -> None:
        raise NotImplementedError

    def aborts(self) -> float | None:
        return None

    def close(self) -> None:
        pass


class _Engine(_Contestant):
    def __init__(
        self, name: str, workload: Workload, threads: int, horizon: int, chunk: int, execution: str
    ) -> None:
        settings = {
            "ordered": f"horizon {horizon}, chunk {chunk}" if horizon else "horizon 0",
            "speculate": f"horizon {horizon}, chunk {chunk}",
            "locked": f"chunk {chunk}",
        }
        super().__init__(name, settings.get(execution, ""))
        self.deterministic = execution != "locked" or threads == 1
        self.engine = ss.Engine(
            workload.rival if execution == "locked" else workload.operator,
            threads=threads,
            horizon=horizon,
            chunk=chunk,
            execution=execution,  # type: ignore[arg-type]
            locks=1,
        )
        self.output = self.engine.process(workload.events(workload.warm_up, 0))
        self.before = self.engine.stats

    def run(self, events: pa.Table) -> None:
        before = self.engine.stats.seconds
        self.engine.process(events)
        self.times.append((self.engine.stats.seconds - before) / events.num_rows)

    def aborts(self) -> float | None:
        after = self.engine.stats
        runs = after.speculative_runs - self.before.speculative_runs
        dropped = sum(after.aborts.values()) - sum(self.before.aborts.values())
        return dropped / runs if runs else None

    def forget(self) -> None:
        """Drops what the trials measured."""
        self.times.clear()
        self.before = self.engine.stats

    def close(self) -> None:
        self.engine.close()


class _PurePython(_Contestant):
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
        self.oracle = Oracle(self.operator.program.oracle, layout, words)

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
    base = _Engine(BASELINE, workload, 1, 0, 1, "log_free")
    plain = _Engine("plain", workload, 1, 0, 1, "ordered")
    families = [
        [_Engine("lock, 1 thread", workload, 1, 0, chunk, "locked") for chunk in (1, 8, 64)],
        [_Engine("lock, 2 threads", workload, 2, 0, chunk, "locked") for chunk in (1, 8, 64)],
        [
            _Engine("speculation, 1 thread", workload, 1, horizon, chunk, "ordered")
            for horizon, chunk in workload.settings
        ],
        [
            _Engine("forced speculation, 1 thread", workload, 1, horizon, chunk, "speculate")
            for horizon, chunk in workload.settings
        ],
        [
            _Engine("speculation, 2 threads", workload, 2, horizon, chunk, "ordered")
            for horizon, chunk in workload.settings
        ],
    ]
    for engine in (plain, *(engine for family in families for engine in family)):
        if engine.deterministic:
            assert engine.output.equals(base.output), (
                f"{workload.name}: {engine.name} ({engine.setting}) differs from {BASELINE}"
            )

    base.run(workload.events(256, 1))
    count = max(64, int(effort.seconds / base.times[-1]))
    base.forget()

    say(f"{workload.name}: choosing settings")
    everyone = [base, plain, *(engine for family in families for engine in family)]
    for trial in range(effort.trials):
        _round(everyone, workload.events(count, 1000 + trial), trial)
    chosen = [base, plain]
    for family in families:
        best = min(family, key=lambda engine: statistics.median(engine.times))
        chosen.append(best)
        for engine in family:
            if engine is not best:
                engine.close()
    for engine in chosen:
        engine.forget()

    # The oracle gets as much time as the others, which is one event or a few.
    python = _PurePython(workload, base.engine.state, 1)
    python.run(workload.events(1, 2))
    python.count = min(count, max(1, int(effort.seconds / python.times[-1])))
    python.times.clear()

    contestants: list[_Contestant] = [python, *chosen]
    disturbance: list[float] = []
    while sum(share < DISTURBED for share in disturbance) < effort.rounds and (
        len(disturbance) < effort.patience * effort.rounds
    ):
        number = len(disturbance)
        say(f"{workload.name}: round {number + 1}")
        events = workload.events(count, 2000 + number)
        others = _Others()
        _round(contestants, events, number)
        disturbance.append(others.share())
    kept = sorted(range(len(disturbance)), key=disturbance.__getitem__)[: effort.rounds]
    results = [_result(contestant, base, workload, kept) for contestant in contestants]
    for contestant in contestants:
        contestant.close()
    return Measurement(results, statistics.fmean(disturbance[number] for number in kept))


class _Others:
    """Watches how much of the machine other processes use."""

    def __init__(self) -> None:
        self.start = self.now()

    @staticmethod
    def now() -> tuple[float, float, float]:
        """Seconds of processor time used by all, seconds used by us, seconds on the wall."""
        own = os.times()
        busy = 0.0
        with contextlib.suppress(OSError):  # elsewhere than on Linux nothing is known
            user, nice, system, _idle, _wait, *rest = map(
                int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
            )
            busy = (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
        return busy, own.user + own.system, time.monotonic()

    def share(self) -> float:
        """Of all cores, since the object was made; 0 to 1."""
        busy, own, wall = (b - a for a, b in zip(self.start, self.now(), strict=True))
        return max(0.0, busy - own) / (wall * (os.cpu_count() or 1))


def _round(contestants: Any, events: pa.Table, seed: int) -> None:
    order = list(contestants)
    random.Random(seed).shuffle(order)
    gc.disable()
    try:
        for contestant in order:
            contestant.run(events)
    finally:
        gc.enable()


def _result(
    contestant: _Contestant, base: _Contestant, workload: Workload, kept: list[int]
) -> Result:
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
        workload.target.get(contestant.name),
    )


def machine() -> dict[str, Any]:
    """The machine and the versions, without which no figure means anything."""
    return {
        "processor": _processor(),
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


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def to_dict(measurement: Measurement) -> dict[str, Any]:
    """A measurement as plain data, for JSON."""
    return asdict(measurement)
