"""What is measured: engines take turns on the same events, and are compared in the same round."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

import specstream as ss
from bench.chapter4.margin import quartiles
from bench.interpreted.operators import (
    ACCESSES,
    empty,
    events,
    loops,
    numpy,
    pure,
    reads,
    waits,
    writes,
)
from bench.options import Say

__all__ = ["FULL", "LOOK_UP", "NUMPY", "PURE", "QUICK", "Amount", "costs", "lengths", "threads"]

ALONE: dict[str, Any] = {"threads": 1, "horizon": 0}
COSTS: dict[str, dict[str, Any]] = {
    "in place": ALONE,
    "ahead": {"threads": 1, "horizon": 8, "chunk": 16, "execution": "speculate"},
}
NUMPY, LOOK_UP, PURE = "NumPy, 128 x 128", "look-up of 1 ms", "Python alone"
# By threads; those that wait are more than the cores.
THREADS: dict[str, tuple[ss.Operator, tuple[int, ...]]] = {
    NUMPY: (numpy(128), (1, 2, 4)),
    LOOK_UP: (waits, (1, 2, 4, 8, 16)),
    PURE: (pure(30), (1, 2, 4)),
}
LENGTHS: dict[str, dict[str, ss.Operator]] = {
    "NumPy, N x N": {f"N = {size}": numpy(size) for size in (8, 32, 64, 90, 128, 200)},
    "Python, N reads": {f"N = {steps}": pure(steps) for steps in (3, 30, 300)},
}


@dataclass(frozen=True)
class Amount:
    """How much: rounds of each comparison, and seconds of one thread in each turn."""

    rounds: int
    seconds: float


FULL = Amount(11, 0.4)
QUICK = Amount(2, 0.02)


class _Turns:
    """Engines of one operator on the same events; the first one is what the others are held to."""

    def __init__(self, operator: ss.Operator, options: list[dict[str, Any]], seconds: float):
        self._stack = ExitStack()
        # NumPy's own threads would take the cores away from the engine's.
        self._stack.enter_context(threadpool_limits(1))
        self.engines = [self._stack.enter_context(ss.Engine(operator, **one)) for one in options]
        self.count = 50
        while (taken := self._taken(0, events(self.count))) < seconds / 8:
            self.count *= 2
        self.count = max(50, int(self.count * seconds / taken))
        self.given = events(self.count)
        for at in range(len(self.engines)):  # "auto" finds out
            self._taken(at, self.given)

    def _taken(self, at: int, given: dict[str, Any]) -> float:
        began = time.perf_counter()
        self.engines[at].process(given)
        return time.perf_counter() - began

    def rounds(self, count: int) -> list[list[float]]:
        """Microseconds of an event, by round and engine."""
        return [
            [1e6 * self._taken(at, self.given) / self.count for at in range(len(self.engines))]
            for _ in range(count)
        ]

    def __enter__(self) -> _Turns:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def costs(amount: Amount, say: Say) -> dict[str, Any]:
    """Microseconds of an event without accesses, of a read and of a write.

    The least of the rounds: what others take on a shared machine only adds.
    """
    found = {}
    for name, options in COSTS.items():
        say(name)
        least = []
        for operator in (empty, loops, reads, writes):
            with _Turns(operator, [options], amount.seconds) as turns:
                least.append(min(taken for (taken,) in turns.rounds(amount.rounds)))
        nothing, of_loop, of_reads, of_writes = least
        found[name] = {
            "event": nothing,
            "read": (of_reads - of_loop) / ACCESSES,
            "write": (of_writes - of_loop) / ACCESSES,
        }
    return found


def threads(amount: Amount, say: Say) -> dict[str, Any]:
    """Speed by threads, relative to one after the other; with a horizon of two for each thread."""
    found = {}
    for name, (operator, numbers) in THREADS.items():
        say(name)
        options = [{"threads": one, "horizon": 2 * one, "chunk": 1} for one in numbers]
        with _Turns(operator, [ALONE, *options], amount.seconds) as turns:
            rounds = turns.rounds(amount.rounds)
        found[name] = {
            "microseconds": quartiles([taken[0] for taken in rounds])[1],
            "speed": {
                str(one): quartiles([taken[0] / taken[at] for taken in rounds])
                for at, one in enumerate(numbers, 1)
            },
        }
    return found


def lengths(amount: Amount, say: Say) -> dict[str, Any]:
    """By the length of an event: two threads that always speculate, and what "auto" makes of it."""
    found: dict[str, Any] = {}
    for kind, operators in LENGTHS.items():
        found[kind] = {}
        for name, operator in operators.items():
            say(f"{kind.partition(',')[0]}, {name}")
            options = [ALONE, {"threads": 2, "horizon": 4, "chunk": 1}, {"threads": 2}]
            with _Turns(operator, options, amount.seconds) as turns:
                rounds = turns.rounds(amount.rounds)
                horizon = turns.engines[2].stats.horizon
            found[kind][name] = {
                "microseconds": quartiles([taken[0] for taken in rounds])[1],
                "always": quartiles([taken[0] / taken[1] for taken in rounds]),
                "auto": quartiles([taken[0] / taken[2] for taken in rounds]),
                "horizon": horizon,
            }
    return found
