"""The sinusoidal load of Figures 4.16 and 4.17: the state that events share grows and shrinks.

Of a state of twenty words events use only the first *size*; the size follows a sinusoid from 1,
where all events conflict, to 20. The work is sleep, as six threads run on fewer cores.

The predictors are those of Table 4.4 as well. The text gives no threshold, and counts the head in
its horizons; 100 transactions between two decisions are its example.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.chapter4.experiment import Effort
from bench.chapter4.margin import above, quartiles, shown
from bench.chapter4.slowed import Slept, SlowedEngine
from specstream.predictors.predictor import Predictor, Setting

__all__ = [
    "EVERY",
    "EXTREMES",
    "HORIZONS",
    "LIMIT",
    "PREDICTORS",
    "STRETCHES",
    "THREADS",
    "THRESHOLD",
    "WORDS",
    "WORK",
    "Stretches",
    "by_horizon",
    "follow",
    "mean_of",
    "parameters",
    "predictors",
    "static",
    "why_not_by_horizon",
]

WORDS = 20
THREADS = 6
WORK = 100e-6

# The same for Figures 4.16 and 4.17 and for Table 4.4. Horizons are ours: the head is not counted.
THRESHOLD = 0.1
EVERY = 100
START = 4
LIMIT = 9

BATCH = 5 * EVERY
# Words in use where there is nothing, or little, to run in parallel, and where there is most.
EXTREMES = {"narrow": 1, "wide": WORDS}
# As the text counts, for the control.
HORIZONS = (1, 2, 5, 10)
CONTROL_ROUNDS = 9
CONTROL_EVENTS = 4 * EVERY


class Local(ss.State):
    """Twenty words."""

    words = ss.array(int, WORDS)


@ss.operator(state=Local, event={"value": int, "size": int}, emits={"result": int}, name="sinusoid")
def process(state, event, emit):  # type: ignore[no-untyped-def]
    """Listing 4.2 of Brito 2010 with a state whose size comes with the event."""
    entry = event.value % event.size
    result = state.words[entry]
    state.words[entry] = result + 1
    emit(result)


def static(horizon: int) -> ss.Fixed:
    """A horizon as the text counts: with the head.

    >>> static(5).horizon
    4
    """
    return ss.Fixed(horizon - 1, 1)


class Stretches(ss.Fixed):
    """A static horizon that ends its stretches as the dynamic ones do, and decides nothing."""

    def next(self) -> Setting:
        return Setting(self.horizon, self.chunk, EVERY)


def predictors() -> dict[str, Predictor]:
    """New ones, by name; the static ones are named as in the text."""
    moving: dict[str, int] = {"every": EVERY, "chunk": 1, "start": START, "limit": LIMIT}
    return {
        "abort-driven": ss.AbortDriven(threshold=THRESHOLD, **moving),
        "throughput-driven": ss.ThroughputDriven(**moving),
        "static 5": static(5),
        "static 10": static(10),
    }


PREDICTORS = tuple(predictors())
# The control: what it costs that a decision ends a stretch.
STRETCHES = "static 10 in stretches"


def parameters() -> dict[str, str]:
    """What the words mean, for the page."""
    return {
        "horizon": (
            "how many transactions may run at once, counted as in the text, with the head; the "
            f"engine's own horizon, without it, is one less: *static 5* is `Fixed({START}, 1)`, "
            f"*static 10* is `Fixed({LIMIT}, 1)`"
        ),
        "abort-driven, throughput-driven": (
            f"both decide every {EVERY} committed transactions, start at a horizon of {START + 1} "
            f"and go up to {LIMIT + 1}; the threshold of the first is {THRESHOLD:.0%} (the text "
            "names none) of dropped runs per transaction. At a decision the threads wait for each "
            "other, as a stretch ends. The same in Figures 4.16 and 4.17 and in Table 4.4"
        ),
    }


def follow(
    wanted: Mapping[str, Predictor], protocol: str, period: float, rounds: int
) -> tuple[Mapping[str, list[list[dict[str, float]]]], Slept]:
    """Some periods with each predictor; they take turns batch by batch.

    Args:
        wanted: predictors by name.
        period: seconds that each predictor gets.
        rounds: how many periods.

    Returns:
        By predictor, for each period, for each of its batches: "at" (seconds of its own time),
        "size", "per transaction" (dropped runs per committed transaction), "per run" (per
        speculative run), "throughput" (events per second), "horizon" (as the text counts). And
        what all the sleep took.
    """
    generator = np.random.default_rng(1)
    points: dict[str, list[list[dict[str, float]]]] = {name: [] for name in wanted}
    with ExitStack() as stack:
        engines = {
            name: stack.enter_context(
                SlowedEngine(process, threads=THREADS, predictor=predictor, protocol=protocol)
            )
            for name, predictor in wanted.items()
        }
        for engine in engines.values():
            engine.run(_events(EVERY, WORDS, generator), sleep=WORK)  # the code is compiled
        for _ in range(rounds):
            own = dict.fromkeys(wanted, 0.0)
            for name in wanted:
                points[name].append([])
            while any(own[name] < period for name in wanted):
                for name, engine in engines.items():
                    if own[name] < period:
                        point = _batch(engine, own[name], period, generator)
                        points[name][-1].append(point)
                        own[name] += point.pop("seconds")
        slept = [engine.slept() for engine in engines.values()]
    return points, Slept(sum(one.asked for one in slept), sum(one.took for one in slept))


def _events(count: int, size: int, generator: np.random.Generator) -> pa.Table:
    return pa.table(
        {"value": generator.integers(0, 2**62, count), "size": np.full(count, size)},
    )


def _batch(
    slowed: SlowedEngine, at: float, period: float, generator: np.random.Generator
) -> dict[str, Any]:
    size = round((WORDS + 1) / 2 + (WORDS - 1) / 2 * math.cos(2 * math.pi * at / period))
    events = _events(BATCH, size, generator)
    before = slowed.runs()
    began = time.perf_counter()
    slowed.run(events, sleep=WORK)
    seconds = time.perf_counter() - began
    runs = slowed.runs() - before
    return {
        "at": at,
        "seconds": seconds,
        "size": size,
        "per transaction": runs.dropped_per_transaction,
        "per run": runs.dropped_per_run,
        "throughput": BATCH / seconds,
        "horizon": slowed.engine.stats.horizon + 1,
    }


def by_horizon(protocol: str, effort: Effort) -> dict[str, dict[str, dict[str, Any]]]:
    """The control: what a static horizon is good for where the state is narrow, and where wide.

    Returns:
        By place of EXTREMES and by horizon: "throughput" (quartiles) and "per transaction".
    """
    generator = np.random.default_rng(2)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with ExitStack() as stack:
        engines = {
            horizon: stack.enter_context(
                SlowedEngine(process, threads=THREADS, predictor=static(horizon), protocol=protocol)
            )
            for horizon in HORIZONS
        }
        for engine in engines.values():
            engine.run(_events(BATCH, WORDS, generator))
        for place, size in EXTREMES.items():
            rates: dict[int, list[float]] = {horizon: [] for horizon in HORIZONS}
            before = {horizon: engine.runs() for horizon, engine in engines.items()}
            count = effort.times(CONTROL_EVENTS)
            for _ in range(effort.times(CONTROL_ROUNDS)):
                events = _events(count, size, generator)
                for horizon, engine in engines.items():
                    rates[horizon].append(count / engine.run(events, sleep=WORK))
            found[place] = {
                str(horizon): {
                    "throughput": quartiles(rates[horizon]),
                    "per transaction": (engine.runs() - before[horizon]).dropped_per_transaction,
                }
                for horizon, engine in engines.items()
            }
    return found


def why_not_by_horizon(control: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> tuple[str, bool]:
    """Whether who goes by throughput has no reason to avoid dropped runs, with the control's words.

    It has a reason to keep a long horizon where that is faster, and none to leave it where it is
    not slower.
    """
    told, blind = [], False
    for place, rows in control.items():
        short, long = (rows[str(horizon)] for horizon in (HORIZONS[0], HORIZONS[-1]))
        slower = above(short["throughput"], long["throughput"])
        faster = above(long["throughput"], short["throughput"])
        blind = blind or (not slower and long["per transaction"] > THRESHOLD)
        told.append(
            f"with {_words(EXTREMES[place])} a static horizon of {HORIZONS[-1]} ran at "
            f"{shown(long['throughput'], '{:,.0f}')} events/s and dropped "
            f"{long['per transaction']:.2f} runs per transaction, no speculation at "
            f"{shown(short['throughput'], '{:,.0f}')}: running ahead was "
            + ("slower" if slower else "faster" if faster else "not slower")
        )
    return "; ".join(told), blind


def _words(count: int) -> str:
    return "one word" if count == 1 else f"{count} words"


def mean_of(points: Sequence[Mapping[str, float]], what: str) -> float:
    """Of a period; of rates that belong to equal numbers of events, the one of all of them."""
    values = [point[what] for point in points]
    return statistics.harmonic_mean(values) if what == "throughput" else statistics.fmean(values)
