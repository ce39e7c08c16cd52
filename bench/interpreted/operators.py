"""The operators: nothing, accesses, and work that has or has not the interpreter lock."""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import time
from typing import Any

import numpy as np

import specstream as ss

__all__ = ["ACCESSES", "empty", "events", "loops", "numpy", "pure", "reads", "waits", "writes"]

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


def numpy(size: int) -> ss.Operator:
    """Two products of matrices of ``size`` rows, for which NumPy releases the interpreter lock."""
    matrix = np.random.default_rng(1).random((size, size))

    @ss.operator(
        state=Words, event=EVENT, emits={"y": float}, interpreted=True, name=f"numpy_{size}"
    )
    def numpy(state, event, emit):
        found = matrix @ matrix @ matrix
        state.words[event.key] += event.x * found[0, 0]
        emit(state.words[event.key])

    return numpy


@ss.operator(state=Words, event=EVENT, emits={"y": float}, interpreted=True)
def waits(state, event, emit):
    """1 ms, as for an answer of the network."""
    time.sleep(0.001)  # the work itself: what waits gives the lock back
    state.words[event.key] += event.x
    emit(state.words[event.key])


def pure(steps: int) -> ss.Operator:
    """Nothing that releases the lock."""

    @ss.operator(
        state=Words, event=EVENT, emits={"y": float}, interpreted=True, name=f"pure_{steps}"
    )
    def pure(state, event, emit):
        total = 0.0
        for at in range(steps):
            total += state.words[event.key + at]
        state.words[event.key] = total + event.x
        emit(total)

    return pure


def events(count: int) -> dict[str, Any]:
    """Events on words at random."""
    rng = np.random.default_rng(count)
    return {"key": rng.integers(0, WORDS - 1000, count), "x": rng.random(count)}
