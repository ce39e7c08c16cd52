"""One row of the speed table, both kinds in the same rounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.harness import (
    BASELINE,
    Contestant,
    Effort,
    EngineContestant,
    Probe,
    Result,
    choose,
    events_for,
    summary,
    undisturbed_rounds,
)
from bench.speed.loads import KINDS, Load, calibrated
from bench.speed.native import NativeContestant
from bench.workloads import Workload

__all__ = ["CONTESTANTS", "AutoResult", "Row", "measure_row"]

CONTESTANTS = ("value", "eager", "plain", "lock", "Auto")
LOCK_CHUNKS = (1, 8, 64)


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


@dataclass(frozen=True)
class Row:
    """One load and one kind.

    Attributes:
        nanoseconds: per event of the log-free clone, as seen.
        results: by contestant.
        target: speed relative to the log-free clone that is asked for.
        judged: the contestant that the target was held against.
        reached: whether it was reached.
        capacity: speed of two independent threads relative to one.
    """

    name: str
    title: str
    kind: str
    nanoseconds: float
    results: dict[str, Result]
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
    everyone = [
        *(contestant for kind in KINDS for contestant in fixed[kind]),
        *(contestant for kind in KINDS for family in families[kind] for contestant in family),
    ]
    _check(everyone, workload)

    count = events_for(fixed["compiled"][0], workload, effort.seconds)
    say(f"{load.title}: choosing settings")
    others = [contestant for kind in KINDS for contestant in fixed[kind]]
    flat = [family for kind in KINDS for family in families[kind]]
    best = choose(flat, others, workload, count, effort.trials)
    size = len(families["C"])
    contestants = {
        "C": [*fixed["C"], *best[:size]],
        "compiled": [*fixed["compiled"], *best[size:]],
    }
    probe = Probe()
    kept, capacity = undisturbed_rounds(
        [contestant for kind in KINDS for contestant in contestants[kind]],
        workload,
        effort,
        count,
        probe,
        say,
    )
    rows = [_row(load, kind, contestants[kind], kept, capacity) for kind in KINDS]
    automatic = None if load.forced else _automatic(load, contestants["compiled"], kept)
    for closing in (*contestants["C"], *contestants["compiled"], probe):
        closing.close()
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
    return EngineContestant(name, workload, threads, *setting, execution, protocol)


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
        [
            _make(kind, load, workload, "lock", threads, (0, chunk), "locked")
            for chunk in LOCK_CHUNKS
        ],
    ]


def _check(everyone: list[Any], workload: Workload) -> None:
    """All warm up on the same events; what they promise to make of them is the same."""
    events = workload.events(workload.warm_up, 0)
    # The kinds turn their busy loops differently often, so only within a kind all emit the same.
    emitted: dict[type, Any] = {}
    state = None
    for contestant in everyone:
        if isinstance(contestant, NativeContestant):
            output, words = contestant.process(events)[:, 1].copy(), contestant.state
        else:  # it has warmed up already
            output, words = contestant.output["busy"].to_numpy(), contestant.engine.state.values
        state = words.copy() if state is None else state
        what = f"{workload.name}: {contestant.name} ({contestant.setting}) differs from {BASELINE}"
        assert np.array_equal(words, state), what
        if contestant.deterministic:
            assert np.array_equal(output, emitted.setdefault(type(contestant), output)), what


def _row(
    load: Load, kind: str, contestants: list[Contestant], kept: list[int], capacity: float
) -> Row:
    base = contestants[0]
    results = {
        contestant.name: summary(contestant, base, {}, kept) for contestant in contestants[1:]
    }
    target = load.target[kind]
    judged = max(load.judged[kind], key=lambda name: results[name].ratio)
    return Row(
        load.name,
        load.title,
        kind,
        statistics.median(base.times[number] for number in kept) * 1e9,
        results,
        target,
        judged,
        results[judged].ratio >= target,
        capacity,
    )


def _automatic(load: Load, contestants: list[Contestant], kept: list[int]) -> AutoResult:
    by_name = {contestant.name: contestant for contestant in contestants}
    auto = by_name["Auto"]
    rival = min(
        (by_name["plain"], by_name["value"]),
        key=lambda contestant: statistics.median(contestant.walls[number] for number in kept),
    )
    ratios = [rival.walls[number] / auto.walls[number] for number in kept]
    low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return AutoResult(load.title, f"{rival.name} {rival.setting}".strip(), ratio, low, high)
