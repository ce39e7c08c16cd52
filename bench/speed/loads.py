"""The loads of the speed table: events that update K random words of 8 MB, and local work.

Both kinds get the same events. Each has a column of its own for the rounds of the busy loop,
because a round takes another time in C than in compiled Python: they are chosen so that an event of
the log-free clone takes the time in the load's name, all in all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import locked
from bench.speed.native import native_rounds_for
from bench.workloads import MULTIPLIER, UPDATED_WORDS, Workload, rounds_for, updates

__all__ = ["KINDS", "LOADS", "Load", "calibrated", "events_of"]

KINDS = ("C", "compiled")

# (horizon, chunk) to choose the best from, for events below and above three microseconds.
SHORT = ((2, 4), (4, 8), (8, 16), (8, 32), (4, 64))
LONG = ((1, 1), (2, 1), (16, 1), (32, 1), (8, 4))


@dataclass(frozen=True)
class Load:
    """A row of the table.

    Attributes:
        name: short, for ``--only``.
        title: what the table says.
        updates: words that an event updates.
        seconds: per event of the log-free clone, on the mean.
        target: speed relative to the log-free clone that is asked for, by kind.
        judged: which contestants the target is for, by kind; the best of them counts.
        hot: share of the events whose first update is of word 0.
        varied: durations of the busy loop vary 1:10.
        forced: one thread that speculates always, instead of two that speculate ahead of the head.
    """

    name: str
    title: str
    updates: int
    seconds: float
    target: dict[str, float]
    judged: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: {"C": ("value",), "compiled": ("value",)}
    )
    hot: float = 0.0
    varied: bool = False
    forced: bool = False

    @property
    def settings(self) -> tuple[tuple[int, int], ...]:
        """Candidates for horizon and chunk."""
        return SHORT if self.seconds < 3e-6 else LONG


# Where speculation cannot win, what counts is what a policy can make of it.
POLICY = {"C": ("value", "plain"), "compiled": ("Auto",)}


def _targets(native: float, compiled: float | None = None) -> dict[str, float]:
    """Operators compiled from Python may give away a tenth, where nothing else is said."""
    return {"C": native, "compiled": 0.9 * native if compiled is None else compiled}


LOADS = (
    Load("5-110ns", "K = 5, 110 ns", 5, 110e-9, _targets(0.95), POLICY),
    Load("5-0.6us", "K = 5, 0.6 µs", 5, 0.6e-6, _targets(1.5)),
    Load("20-0.7us", "K = 20, 0.7 µs", 20, 0.7e-6, _targets(1.3, 1.1)),
    Load("5-6us", "K = 5, 6 µs", 5, 6e-6, _targets(1.85)),
    Load("100-6.5us", "K = 100, 6.5 µs", 100, 6.5e-6, _targets(1.55, 1.3)),
    Load("5-6us-varied", "K = 5, 6 µs, durations 1:10", 5, 6e-6, _targets(1.8), varied=True),
    Load(
        "5-6us-varied-half-hot",
        "K = 5, 6 µs, 1:10, half hit one word",
        5,
        6e-6,
        _targets(1.2),
        varied=True,
        hot=0.5,
    ),
    Load("5-6us-all-hot", "K = 5, 6 µs, all hit one word", 5, 6e-6, _targets(0.93), POLICY, 1.0),
    Load(
        "5-110ns-forced",
        "K = 5, 110 ns, one thread, forced",
        5,
        110e-9,
        {"C": 1 / 1.5, "compiled": 1 / 1.5},
        forced=True,
    ),
)


def calibrated(load: Load) -> Workload:
    """The load as operators and events, with busy loops that take as long as they should."""
    operator = updates(UPDATED_WORDS, load.updates)
    native = native_rounds_for(load.updates, load.seconds)
    compiled = rounds_for(operator, load.seconds, whole_event=True)
    return Workload(
        name=load.name,
        title=load.title,
        operator=operator,
        rival=locked.updates(UPDATED_WORDS, load.updates),
        fine=locked.updates(UPDATED_WORDS, load.updates, locked.PARTS),
        events=events_of(load, native, compiled),
        warm_up=20_000 if load.seconds < 3e-6 else 2_000,
        settings=load.settings,
        target={},
    )


def events_of(load: Load, native: int, compiled: int) -> Callable[[int, int], pa.Table]:
    def events(count: int, seed: int) -> pa.Table:
        generator = np.random.default_rng(seed)
        value = generator.integers(0, 2**62, count)
        hot = generator.random(count) < load.hot
        value[hot] = _hits_word_0(generator, int(hot.sum()))
        # Rounds from 1 to 10 parts, 5.5 on the mean.
        part = generator.integers(1, 11, count) / 5.5 if load.varied else np.ones(count)
        return pa.table(
            {
                "value": value,
                "work": np.rint(compiled * part).astype(np.int64),
                "native_work": np.rint(native * part).astype(np.int64),
            }
        )

    return events


def _hits_word_0(generator: np.random.Generator, count: int) -> npt.NDArray[Any]:
    """Values of events whose first update is of word 0: the hash of the operator run backwards."""
    found = np.zeros(0, np.int64)
    inverse = np.uint64(pow(MULTIPLIER, -1, 2**64))
    while len(found) < count:
        product = generator.integers(0, 2**64, 2 * count + 16, np.uint64)
        product &= ~np.uint64((UPDATED_WORDS - 1) << 32)  # the bits that choose the word
        value = (product * inverse).astype(np.int64)
        # x ^ (x >> 32) is its own inverse where x is not negative.
        value = (value ^ (value >> 32))[value >= 0]
        found = np.concatenate([found, value])
    return found[:count]
