"""Interpreted operators: what an event and an access cost, and what several threads make of them.

``python -m bench.interpreted`` prints a table. Ratios are medians of interleaved rounds in one
process.
"""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import specstream as ss
from specstream.tuning.machine import describe

__all__ = ["measured"]

ACCESSES = 10
WORDS = 100_000
EVENT = {"key": int, "x": float}


class Words(ss.State):
    words = ss.array(float, WORDS)


@ss.operator(state=Words, event=EVENT, emits={}, interpreted=True)
def empty(state, event, emit):
    pass


@ss.operator(state=Words, event=EVENT, emits={}, interpreted=True)
def reads(state, event, emit):
    words, key = state.words, event.key
    for _ in range(ACCESSES):
        words[key]


@ss.operator(state=Words, event=EVENT, emits={}, interpreted=True)
def writes(state, event, emit):
    words, key = state.words, event.key
    for _ in range(ACCESSES):
        words[key] = 1.0


@ss.operator(state=Words, event=EVENT, emits={}, interpreted=True)
def loops(state, event, emit):
    words, key = [0.0], 0
    for _ in range(ACCESSES):
        words[key]


MATRIX = np.random.default_rng(1).random((128, 128))


@ss.operator(state=Words, event=EVENT, emits={"y": float}, interpreted=True)
def numpy(state, event, emit):
    """About 200 µs in which NumPy has released the interpreter lock."""
    found = MATRIX @ MATRIX @ MATRIX
    state.words[event.key] += event.x * found[0, 0]
    emit(state.words[event.key])


@ss.operator(state=Words, event=EVENT, emits={"y": float}, interpreted=True)
def waits(state, event, emit):
    """1 ms, as for an answer of the network."""
    time.sleep(0.001)
    state.words[event.key] += event.x
    emit(state.words[event.key])


@ss.operator(state=Words, event=EVENT, emits={"y": float}, interpreted=True)
def pure(state, event, emit):
    """Nothing that releases the lock."""
    total = 0.0
    for at in range(30):
        total += state.words[event.key + at]
    state.words[event.key] = total + event.x
    emit(total)


def _events(count: int) -> dict[str, Any]:
    rng = np.random.default_rng(count)
    return {"key": rng.integers(0, WORDS - 100, count), "x": rng.random(count)}


def _seconds(operator: ss.Operator, count: int, options: Mapping[str, Any]) -> tuple[float, int]:
    """Seconds for each event, and the horizon at the end."""
    given = _events(count)
    with ss.Engine(operator, **options) as engine:
        engine.process({name: values[: count // 5] for name, values in given.items()})
        began = time.perf_counter()
        engine.process(given)
        return (time.perf_counter() - began) / count, engine.stats.horizon


ALONE: dict[str, Any] = {"threads": 1, "horizon": 0}
RATIOS: dict[str, tuple[ss.Operator, int, dict[str, Any]]] = {
    "NumPy of 200 µs, two threads": (numpy, 2_000, {"threads": 2, "horizon": 8, "chunk": 1}),
    "look-up of 1 ms, 16 threads": (waits, 2_000, {"threads": 16, "horizon": 32, "chunk": 1}),
    "pure Python, two threads, auto": (pure, 20_000, {"threads": 2}),
}
COSTS: dict[str, tuple[ss.Operator, dict[str, Any]]] = {
    "in place": (reads, ALONE),
    "speculative": (reads, {"threads": 1, "horizon": 8, "chunk": 16, "execution": "speculate"}),
}


def measured(rounds: int, part: float = 1.0) -> dict[str, Any]:
    """All figures.

    Args:
        part: of the events.
    """
    found: dict[str, Any] = {"machine": describe(), "costs": {}, "ratios": {}}
    count = max(int(20_000 * part), 50)
    for name, (_, options) in COSTS.items():
        event, read, write = [], [], []
        for _ in range(rounds):
            nothing, of_loop, of_reads, of_writes = (
                _seconds(one, count, options)[0] for one in (empty, loops, reads, writes)
            )
            event.append(1e6 * nothing)
            read.append(1e6 * (of_reads - of_loop) / ACCESSES)
            write.append(1e6 * (of_writes - of_loop) / ACCESSES)
        # The least: what others take on a shared machine only adds.
        found["costs"][name] = {"event": min(event), "read": min(read), "write": min(write)}
    for name, (operator, events, options) in RATIOS.items():
        ratios, horizon, alone = [], 0, 0.0
        for _ in range(rounds):
            alone, _ = _seconds(operator, max(int(events * part), 50), ALONE)
            taken, horizon = _seconds(operator, max(int(events * part), 50), options)
            ratios.append(alone / taken)
        found["ratios"][name] = {
            "ratio": statistics.median(ratios),
            "alone_us": 1e6 * alone,
            "horizon": horizon,
        }
    return found


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("bench.interpreted", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--part", type=float, default=1.0, help="of the events")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(given)
    found = measured(options.rounds, options.part)
    if options.json:
        print(json.dumps(found))
        return 0
    print(", ".join(f"{name} {value}" for name, value in found["machine"].items()))
    for name, costs in found["costs"].items():
        shown = ", ".join(f"{what} {taken:.2f} µs" for what, taken in costs.items())
        print(f"{name}: {shown}")
    for name, of in found["ratios"].items():
        print(f"{name}: {of['ratio']:.2f} times one thread of {of['alone_us']:,.0f} µs an event")
    return 0


if __name__ == "__main__":
    sys.exit(main())
