"""The two ready operators as the text has them, and how their variants are measured side by side.

The text's events compute all the time, so half of an event's work stands before the accesses here,
half of it after them.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench import locked
from bench.chapter4.experiment import Effort, Say
from bench.chapter4.margin import quartiles, shown
from bench.chapter4.slowed import Runs, Slept, SlowedEngine, busy_rounds
from bench.workloads import NEIGHBOURS, TOP_K, skewed_items, uniform_points
from specstream.operators import nearest_neighbours, top_k

__all__ = [
    "BEFORE",
    "COARSE",
    "COUNTS",
    "DISTINCT",
    "FEW_REPEATS",
    "READY",
    "SEQUENTIAL",
    "SLEEP",
    "Ready",
    "Variant",
    "by_length",
    "drops_more",
    "engine_of",
    "held_back_by_cores",
    "in_rounds",
    "meanings",
    "pace_of",
    "per_transaction",
    "rates",
    "rounds_for",
    "why_no_faster",
]

# Options of an engine whose one thread neither speculates nor locks.
SEQUENTIAL: Mapping[str, Any] = {"threads": 1, "horizon": 0}
# Share of an event's work before its accesses.
BEFORE = 0.5
# Sleep is coarse: it takes so many times what an event of the text takes.
SLEEP = 10
COUNTS = (
    "A share of dropped runs is above another where the difference is more than two standard "
    "errors of the counts."
)


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
        first: makes the events of the warm-up; None: ``events`` does.
    """

    name: str
    operator: Callable[[], ss.Operator]
    fine: Callable[[], ss.Operator]
    events: Callable[[int, int], pa.Table]
    warm_up: int
    seconds: float
    first: Callable[[int, int], pa.Table] | None = None


def repeating(share: float) -> Callable[[int, int], pa.Table]:
    """Items of which that share is as skewed as ever; the others do not come twice."""

    def events(count: int, seed: int) -> pa.Table:
        generator = np.random.default_rng(seed)
        items = generator.integers(2**40, 2**62, count)
        repeated = generator.random(count) < share
        skewed = skewed_items(count, seed)["item"].to_numpy()
        return pa.table({"item": np.where(repeated, skewed, items)})

    return events


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
# Controls. The same operator and the same list, which nobody changes: without most conflicts.
DISTINCT = replace(
    READY[0], name="top-k, distinct items", events=repeating(0.0), first=skewed_items
)
# As few conflicts as the text had, not as few as can be.
FEW_REPEATS = replace(
    READY[0], name="top-k, one item in 16 repeated", events=repeating(1 / 16), first=skewed_items
)
# The same with a hundred times as many conflicts.
COARSE = replace(
    READY[1],
    name="nearest neighbours, grid 10",
    operator=functools.cache(lambda: nearest_neighbours(**NEIGHBOURS | {"grid": 10})),
    fine=functools.cache(lambda: locked.nearest_neighbours(**NEIGHBOURS | {"grid": 10}, fine=True)),
    warm_up=2_000,
)

# Words that several experiments share, as the page explains them.
_MEANINGS = {
    "speed": "time of the sequential run divided by that of this one, same events; no unit",
    "sequential": "one thread that neither speculates nor locks, at the same length",
    "the text's length": (
        f"a busy loop makes an event take {1e6 * READY[0].seconds:.2f} µs (top-k) or "
        f"{1e6 * READY[1].seconds:.2f} µs"
    ),
    "asleep": (
        "the work is sleep, ten times the text's length asked for: threads beyond the two cores "
        "keep their conflicts; in brackets above each panel: what an event really takes in the "
        "sequential run"
    ),
    "dropped runs per transaction": (
        "speculative runs that were dropped, divided by committed transactions; in percent"
    ),
    "dropped runs per speculative run": "the same divided by all speculative runs",
    "value, eager": "the protocols: conflicts found by values at the end, by locks at once",
}


def meanings(*words: str) -> dict[str, str]:
    """Of some words, for the definitions of an experiment."""
    return {word: _MEANINGS[word] for word in words}


def engine_of(
    ready: Ready, fine: bool = False, warm_up: int | None = None, **options: Any
) -> SlowedEngine:
    """An engine whose state is as after a long run, or after ``warm_up`` events."""
    slowed = SlowedEngine(ready.fine() if fine else ready.operator(), **options)
    slowed.run((ready.first or ready.events)(warm_up or ready.warm_up, 0))
    return slowed


def rounds_for(ready: Ready) -> int:
    """Rounds of the busy loop that make an event take what it took in the text, all in all."""
    # A control gets those of what it controls.
    return _rounds_for(next(one for one in READY if one.seconds == ready.seconds))


@functools.cache
def _rounds_for(ready: Ready) -> int:
    with engine_of(ready, **SEQUENTIAL) as slowed:
        events = ready.events(20_000, 1)
        bare: float = min(slowed.run(events) for _ in range(5)) / events.num_rows
    return round((ready.seconds - bare) * busy_rounds())


def pace_of(ready: Ready, length: str) -> tuple[float, dict[str, Any]]:
    """Seconds of an event, roughly, and how they are spent."""
    if length == "asleep":
        seconds = SLEEP * ready.seconds
        return seconds, {"sleep": seconds, "before": BEFORE}
    if length == "today's length":
        return 0.3e-6, {}
    return ready.seconds, {"rounds": rounds_for(ready), "before": BEFORE}


@dataclass(frozen=True)
class Variant:
    """What takes part in a comparison.

    Attributes:
        ready: the operator and its events.
        options: of the engine.
        how: an event's work, as :meth:`SlowedEngine.run` takes it.
        count: events of a round.
        base: name of the variant that its speed is relative to.
        fine: with fine-grained locks.
        waits: its time is that from dequeuing to commit, not that of the whole round.
        settle: rounds before the first that counts, for what has to find itself.
    """

    ready: Ready
    options: Mapping[str, Any]
    how: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1000
    base: str = "sequential"
    fine: bool = False
    waits: bool = False
    settle: int = 1


def in_rounds(variants: Mapping[str, Variant], effort: Effort, rounds: int) -> dict[str, Any]:
    """All variants in turn, round by round, in one process.

    Returns:
        By variant: "speed" relative to its base (quartiles), "microseconds" of an event (median),
        "transactions", "dropped" (runs) and "per run" (share of the speculative runs that were
        dropped) over all rounds, "ahead" (speculative runs per transaction), "nap" (how many times
        longer a sleep took than was asked for) and "horizon" (mean of the rounds' ends).
    """
    with ExitStack() as stack:
        engines = {
            name: stack.enter_context(
                engine_of(one.ready, one.fine, effort.times(one.ready.warm_up, 2000), **one.options)
            )
            for name, one in variants.items()
        }
        for name, one in variants.items():
            for number in range(effort.times(one.settle)):
                engines[name].run(one.ready.events(one.count, 10_000 + number), **one.how)
        before: dict[str, tuple[Runs, Slept]] = {
            name: (engine.runs(), engine.slept()) for name, engine in engines.items()
        }
        took: dict[str, list[float]] = {name: [] for name in variants}
        horizons: dict[str, list[int]] = {name: [] for name in variants}
        # Where one is behind the same other one every time, that is part of what is measured.
        order = list(variants)
        for number in range(effort.times(rounds, 2)):
            for name in order if number % 2 == 0 else reversed(order):
                took[name].append(_seconds_per_event(engines[name], variants[name], 1 + number))
                horizons[name].append(engines[name].engine.stats.horizon)
        return {
            name: {
                "speed": quartiles(
                    [b / m for b, m in zip(took[one.base], took[name], strict=True)]
                ),
                "microseconds": 1e6 * statistics.median(took[name]),
                **_runs_since(engines[name], *before[name]),
                "horizon": statistics.mean(horizons[name]),
            }
            for name, one in variants.items()
        }


def by_length(
    ready: Ready,
    lengths: Sequence[str],
    variants: Callable[[Ready, str, Effort], Mapping[str, Variant]],
    effort: Effort,
    rounds: int,
    say: Say,
) -> dict[str, Any]:
    """Of an operator, what :func:`in_rounds` gives for the variants at each length of an event."""
    found = {}
    for length in lengths:
        say(f"{ready.name}, {length}")
        found[length] = in_rounds(variants(ready, length, effort), effort, rounds)
    return found


def _seconds_per_event(engine: SlowedEngine, one: Variant, seed: int) -> float:
    """Of a round: its time divided by its events, or what they took from dequeuing to commit."""
    events = one.ready.events(one.count, seed)
    if one.waits:
        return float(np.mean(engine.waits(events, **one.how))) / 1e9
    return engine.run(events, **one.how) / one.count


def _runs_since(engine: SlowedEngine, runs_before: Runs, slept_before: Slept) -> dict[str, Any]:
    """What :func:`in_rounds` tells of runs and sleep."""
    runs = engine.runs() - runs_before
    return {
        "transactions": runs.transactions,
        "dropped": runs.dropped,
        "per run": runs.dropped_per_run,
        "ahead": runs.speculative / max(runs.transactions, 1),
        "nap": (engine.slept() - slept_before).ratio,
    }


def per_transaction(row: Mapping[str, Any]) -> float:
    """Dropped runs per committed transaction: what the text's percentages are."""
    return float(row["dropped"] / max(row["transactions"], 1))


def drops_more(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether it drops more runs per transaction by more than two standard errors of the counts."""
    error = sum((row["dropped"] + 1) / max(row["transactions"], 1) ** 2 for row in (one, other))
    return bool(per_transaction(one) - per_transaction(other) > 2 * error**0.5)


def rates(row: Mapping[str, Any]) -> str:
    """Both shares of dropped runs, in words."""
    return f"{per_transaction(row):.2%} per transaction, {row['per run']:.2%} per speculative run"


def held_back_by_cores(locks: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    """Why two threads are too slow where two that keep no order are as well.

    Args:
        locks: two threads with fine-grained locks.
        mine: what is too slow.
    """
    return (
        "two threads with fine-grained locks, which keep no order and drop nothing, reach no more "
        f"than {shown(locks['speed'])} of these cores; {rates(mine)} were dropped here"
    )


def why_no_faster(
    mine: Mapping[str, Any], free: Mapping[str, Any] | None, wanted: float, what: str
) -> str:
    """Why some threads do not reach the speed that is wanted: conflicts, if a control shows it.

    Args:
        mine: what is too slow.
        free: the same without most conflicts.
        wanted: speed.
        what: of the control, in words.
    """
    lost = f"{rates(mine)} were dropped"
    if free is None:
        return f"not explained: {lost}"
    seen = f"{what}, of which {rates(free)} are dropped, reach {shown(free['speed'])}"
    explained = free["speed"][1] >= wanted and drops_more(mine, free)
    return f"conflicts: {lost}; {seen}" if explained else f"not explained: {lost}; {seen}"
