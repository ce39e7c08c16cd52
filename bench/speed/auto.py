"""The automatic setting over loads that change every second.

Every contestant keeps its engine through all phases: so the automatic one has to notice, and the
fixed ones are what one would have had to know beforehand. Within a phase all take turns batch by
batch, so that they share what disturbs them, until each has had a second; then comes the next. In
each, throughput is compared with the better of plain and the best fixed setting *of that phase*, by
wall time; and over all, with the one setting that does best.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import specstream as ss
from bench.harness import CORES
from bench.speed.loads import LOADS
from bench.workloads import UPDATED_WORDS, Workload, updates
from specstream.tuning.machine import Probe

__all__ = ["Phase", "measure_phases", "over_all"]

# Names of loads, one phase each; all of five updates, as an engine has one operator.
PHASES = (
    "5-110ns",
    "5-6us",
    "5-6us-all-hot",
    "5-0.6us",
    "5-110ns",
    "5-6us-varied-half-hot",
    "5-6us",
    "5-6us-all-hot",
)
QUICK_PHASES = ("5-110ns", "5-6us", "5-6us-all-hot")
SETTINGS = ((1, 1), (2, 1), (32, 1), (8, 4), (4, 64))
QUICK_SETTINGS = ((2, 1), (4, 8))

# Of one call of process(), roughly.
BATCH_SECONDS = 0.05
BATCHES = 3


@dataclass(frozen=True)
class Phase:
    """What came out of one phase.

    Attributes:
        throughput: events per second by contestant.
        rival: the best but for Auto.
        ratio: throughput of Auto relative to it.
        capacity: speed of two independent threads relative to one, the lesser of before and after.
    """

    title: str
    throughput: dict[str, float]
    rival: str
    ratio: float
    capacity: float


def measure_phases(
    workloads: dict[str, Workload], quick: bool, say: Callable[[str], None]
) -> list[Phase]:
    """All phases, one after the other.

    Args:
        workloads: that are calibrated already, by the name of their load.
    """
    names, settings, seconds = (
        (QUICK_PHASES, QUICK_SETTINGS, 0.5) if quick else (PHASES, SETTINGS, 1.0)
    )
    operator = updates(UPDATED_WORDS, 5)
    engines = {"Auto": ss.Engine(operator), "plain": ss.Engine(operator, horizon=0)}
    for horizon, chunk in settings:
        engines[f"horizon {horizon}, chunk {chunk}"] = ss.Engine(
            operator, horizon=horizon, chunk=chunk
        )
    phases = []
    try:
        with Probe(CORES) as probe:
            for number, name in enumerate(names):
                workload = workloads[name]
                say(f"phase {number + 1} of {len(names)}: {workload.title}")
                phases.append(_phase(workload, _batches(name, workload), engines, seconds, probe))
    finally:
        for engine in engines.values():
            engine.close()
    return phases


def over_all(phases: Sequence[Phase]) -> tuple[float, str]:
    """Throughput of Auto over all phases relative to the best that keeps its setting; and that one.

    Each phase counts as much work as plain does in one second of it.
    """
    seconds = {
        name: sum(phase.throughput["plain"] / phase.throughput[name] for phase in phases)
        for name in phases[0].throughput
    }
    rival = min((name for name in seconds if name != "Auto"), key=seconds.__getitem__)
    return seconds[rival] / seconds["Auto"], rival


def _batches(name: str, workload: Workload) -> list[pa.Table]:
    (seconds,) = (load.seconds for load in LOADS if load.name == name)
    return [workload.events(int(BATCH_SECONDS / seconds), seed) for seed in range(BATCHES)]


def _phase(
    workload: Workload,
    batches: Sequence[pa.Table],
    engines: dict[str, Any],
    seconds: float,
    probe: Probe,
) -> Phase:
    before = probe.capacity()
    throughput = _throughput(workload, batches, engines, seconds)
    capacity = min(before, probe.capacity())
    rival = max((name for name in engines if name != "Auto"), key=throughput.__getitem__)
    ratio = throughput["Auto"] / throughput[rival]
    return Phase(workload.title, throughput, rival, ratio, capacity)


def _throughput(
    workload: Workload, batches: Sequence[pa.Table], engines: dict[str, Any], seconds: float
) -> dict[str, float]:
    """Events per second of wall time, batch by batch in turn, until each had its time."""
    generator = random.Random(workload.name)
    spent = dict.fromkeys(engines, 0.0)
    done = dict.fromkeys(engines, 0)
    number = 0
    while behind := [name for name in engines if spent[name] < seconds]:
        generator.shuffle(behind)
        batch = batches[number % len(batches)]
        number += 1
        for name in behind:
            began = time.perf_counter()
            engines[name].process(batch)
            spent[name] += time.perf_counter() - began
            done[name] += batch.num_rows
    return {name: done[name] / spent[name] for name in engines}
