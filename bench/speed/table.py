"""One row of the speed table, both kinds in the same rounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.harness import (
    BASELINE,
    CORES,
    Batches,
    Effort,
    choose,
    engine_contestant,
    events_for,
    undisturbed_rounds,
)
from bench.speed.loads import KINDS, Load, calibrated
from bench.speed.native import NativeContestant
from bench.workloads import Workload
from specstream.tuning.contest import (
    Arena,
    Contestant,
    Measurement,
    quartiles,
)
from specstream.tuning.machine import Probe
from specstream.tuning.rivals import CHUNKS

__all__ = ["CONTESTANTS", "AutoResult", "Row", "measure_row"]

CONTESTANTS = ("value", "eager", "plain", "lock", "Auto")


@dataclass(frozen=True)
class AutoResult:
    """The automatic setting beside the better of plain and the best fixed setting.

    Attributes:
        rival: which of the two that was.
        ratio, low, high: speed relative to it in the same round, by wall time, as the engine's own
            count misses what is between two stretches: median and quartiles.
    """

    name: str
    rival: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One load and one kind.

    Attributes:
        nanoseconds: per event of the log-free clone, as seen.
        results: by contestant, relative to the log-free clone.
        setting: that was chosen for the contestant "value".
        target: speed relative to the log-free clone that is asked for.
        judged: the contestant that the target was held against.
        reached: whether it was reached.
        capacity: speed of two independent threads relative to one.
    """

    name: str
    title: str
    kind: str
    nanoseconds: float
    results: dict[str, Measurement]
    setting: str
    target: float
    judged: str
    reached: bool
    capacity: float


def measure_row(
    load: Load, effort: Effort, say: Callable[[str], None]
) -> tuple[list[Row], AutoResult | None]:
    """Both kinds of one load, and what the automatic setting made of it.

    Raises:
        AssertionError: a contestant that promises the sequential answer gave another one.
    """
    say(f"{load.title}: calibrating, compiling, warming up")
    workload = calibrated(load)
    fixed = {kind: _fixed(kind, load, workload) for kind in KINDS}
    families = {kind: _families(kind, load, workload) for kind in KINDS}
    flat = [family for kind in KINDS for family in families[kind]]
    others = [contestant for kind in KINDS for contestant in fixed[kind]]
    _check([*others, *(contestant for family in flat for contestant in family)], workload)

    base = fixed["compiled"][0]
    count = events_for(base, workload, effort.seconds)
    arena = Arena(Batches(lambda seed: workload.events(count, seed)), base)
    say(f"{load.title}: choosing settings")
    learners = [contestant for contestant in others if contestant.name == "Auto"]
    best = choose(arena, flat, others, learners, effort.trials)
    size = len(families["C"])
    contestants = {
        "C": [*fixed["C"], *best[:size]],
        "compiled": [*fixed["compiled"], *best[size:]],
    }
    everyone = [*contestants["C"], *contestants["compiled"]]
    with Probe(CORES) as probe:
        kept, capacity = undisturbed_rounds(arena, everyone, effort, probe, load.title, say)
    rows = [_row(load, kind, contestants[kind], arena, kept, capacity) for kind in KINDS]
    automatic = None if load.forced else _automatic(load, contestants["compiled"], kept)
    for contestant in everyone:
        contestant.close()
    return rows, automatic


def _make(
    kind: str,
    load: Load,
    workload: Workload,
    name: str,
    threads: int,
    setting: tuple[Any, Any],
    execution: str,
    protocol: str = "value",
) -> Any:
    if kind == "C":
        return NativeContestant(name, load.updates, threads, *setting, execution, protocol)
    return engine_contestant(name, workload, threads, setting, execution, protocol=protocol)


def _fixed(kind: str, load: Load, workload: Workload) -> list[Contestant]:
    """The baseline first, and those whose setting is not chosen."""
    base = _make(kind, load, workload, BASELINE, 1, (0, 1), "log_free")
    plain = _make(kind, load, workload, "plain", 1, (0, 1), "ordered")
    if kind == "C" or load.forced:
        return [base, plain]
    return [base, plain, _make(kind, load, workload, "Auto", 2, ("auto", "auto"), "ordered")]


def _families(kind: str, load: Load, workload: Workload) -> list[list[Contestant]]:
    """Those whose best setting is to be chosen."""
    threads, execution = (1, "speculate") if load.forced else (2, "ordered")
    return [
        *(
            [
                _make(kind, load, workload, protocol, threads, setting, execution, protocol)
                for setting in load.settings
            ]
            for protocol in ("value", "eager")
        ),
        [_make(kind, load, workload, "lock", threads, (0, chunk), "locked") for chunk in CHUNKS],
    ]


def _check(everyone: list[Any], workload: Workload) -> None:
    """All warm up on the same events; what they promise to make of them is the same."""
    events = workload.events(workload.warm_up, 0)
    # The kinds turn their busy loops differently often, so only within a kind all emit the same.
    native = None
    state = None
    for contestant in everyone:
        what = f"{workload.name}: {contestant.name} ({contestant.setting}) differs from {BASELINE}"
        if isinstance(contestant, NativeContestant):
            emitted = contestant.warm_up(events)[:, 1].copy()
            native = emitted if native is None else native
            assert not contestant.exact or np.array_equal(emitted, native), what
            words = contestant.state
        else:
            words = contestant.engine.state.values
        state = words.copy() if state is None else state
        assert np.array_equal(words, state), what


def _row(
    load: Load,
    kind: str,
    contestants: list[Contestant],
    arena: Arena,
    kept: list[int],
    capacity: float,
) -> Row:
    base = contestants[0]
    results = {one.name: arena.measured(one, kept, base) for one in contestants[1:]}
    target = load.target[kind]
    judged = max(load.judged[kind], key=lambda name: results[name].speed)
    return Row(
        name=load.name,
        title=load.title,
        kind=kind,
        nanoseconds=arena.measured(base, kept).nanoseconds,
        results=results,
        setting=next(one.setting for one in contestants if one.name == "value"),
        target=target,
        judged=judged,
        reached=results[judged].speed >= target,
        capacity=capacity,
    )


def _automatic(load: Load, contestants: list[Contestant], kept: list[int]) -> AutoResult:
    by_name = {contestant.name: contestant for contestant in contestants}
    auto = by_name["Auto"]
    rival = min(
        (by_name["plain"], by_name["value"]),
        key=lambda contestant: statistics.median(contestant.walls[number] for number in kept),
    )
    ratios = [rival.walls[number] / auto.walls[number] for number in kept]
    low, ratio, high = quartiles(ratios)
    return AutoResult(load.title, f"{rival.name} {rival.setting}".strip(), ratio, low, high)
