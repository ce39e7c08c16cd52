"""The sinusoidal load of Figures 4.16 and 4.17: the state that events share grows and shrinks.

Of a state of twenty words events use only the first *size*; the size follows a sinusoid from 1,
where all events conflict, to 20. The work is sleep, as six threads run on fewer cores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.chapter4.slowed import SlowedEngine
from specstream.predictors.predictor import Predictor

__all__ = ["PREDICTORS", "WORDS", "follow"]

WORDS = 20
THREADS = 6
WORK = 100e-6
# A decision ends a stretch, and with it all runs: after so many events that costs little.
BATCH = 1024
EVERY = BATCH // 4


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


def _predictors() -> dict[str, Predictor]:
    return {
        "abort-driven": ss.AbortDriven(every=EVERY, chunk=1, start=8, limit=16),
        "throughput-driven": ss.ThroughputDriven(every=EVERY, chunk=1, start=8, limit=16),
        "static 5": ss.Fixed(5, 1),
        "static 10": ss.Fixed(10, 1),
    }


PREDICTORS = tuple(_predictors())


def follow(
    wanted: Sequence[str], protocol: str, period: float
) -> Mapping[str, list[dict[str, float]]]:
    """One period with each predictor; they take turns batch by batch.

    Args:
        wanted: names out of ``PREDICTORS``.
        period: seconds that each predictor gets.

    Returns:
        By predictor, for each of its batches: "at" (seconds of its own time), "size", "rerun"
        (share of the speculative runs that were dropped), "throughput" (events per second),
        "horizon".
    """
    predictors = _predictors()
    engines = {
        name: SlowedEngine(process, threads=THREADS, predictor=predictors[name], protocol=protocol)
        for name in wanted
    }
    own = dict.fromkeys(wanted, 0.0)
    points: dict[str, list[dict[str, float]]] = {name: [] for name in wanted}
    generator = np.random.default_rng(1)
    try:
        while any(own[name] < period for name in wanted):
            for name, engine in engines.items():
                if own[name] < period:
                    point = _batch(engine, own[name], period, generator)
                    points[name].append(point)
                    own[name] += point.pop("seconds")
    finally:
        for engine in engines.values():
            engine.close()
    return points


def _batch(
    slowed: SlowedEngine, at: float, period: float, generator: np.random.Generator
) -> dict[str, Any]:
    size = round((WORDS + 1) / 2 + (WORDS - 1) / 2 * math.cos(2 * math.pi * at / period))
    value = generator.integers(0, 2**62, BATCH)
    events = pa.table({"value": value, "size": np.full(BATCH, size)})
    runs, dropped = slowed.dropped()
    began = time.perf_counter()
    slowed.run(events, sleep=WORK)
    seconds = time.perf_counter() - began
    more_runs, more_dropped = slowed.dropped()
    return {
        "at": at,
        "seconds": seconds,
        "size": size,
        "rerun": (more_dropped - dropped) / max(more_runs - runs, 1),
        "throughput": BATCH / seconds,
        "horizon": slowed.engine.stats.horizon,
    }
