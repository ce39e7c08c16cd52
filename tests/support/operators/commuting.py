"""Operators whose updates commute, and which look at what they update now and then."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np
import pyarrow as pa

import specstream as ss
from specstream.structures import add, maximum, minimum


class Sums(ss.State):
    total = ss.scalar(float, fill=0.1)
    count = ss.scalar(int)
    highest = ss.scalar(float, fill=-1e300)
    floats = ss.array(float, 4)
    ints = ss.array(int, (2, 3))
    unsigned = ss.array(np.uint64, 3)
    bytes = ss.array(np.int8, 8, fill=3)
    shorts = ss.array(np.uint16, 6)
    singles = ss.array(np.float32, 3)
    flag = ss.scalar(bool)


EVENT = {"x": int, "y": float}


def work(x, turns):
    """Time, without state."""
    for _ in range(turns):
        x = (x ^ (x >> 7)) * 31
    return x


@ss.operator(state=Sums, event=EVENT, emits={"seen": int, "total": float}, name="sums")
def sums(state, event, emit):
    """Everything at once; some events look at what they update, store to it, or raise."""
    at = event.x % 3
    add(state, "total", event.y)
    add(state, "count", 1)
    maximum(state, "highest", event.y)
    minimum(state.floats, at, event.y)
    add(state.floats, 3, event.x)
    add(state.ints, (1, at), event.x)
    add(state.ints[0], at, event.x << 40)
    add(state.unsigned, at, event.random_bits(0))
    minimum(state.unsigned, 0, event.random_bits(1))
    maximum(state.shorts, at, event.x % 500)
    add(state.shorts, 3 + at, 1)
    add(state.singles, at, event.y)
    add(state.bytes, event.x % 8, event.x % 3 - 1)
    if event.x % 17 == 0:
        emit(state.count, state.total)
        add(state, "total", 0.1)
    if event.x % 19 == 0:
        state.bytes[at] = 5
        add(state.bytes, at, 1)
        emit(state.bytes[at + 1], state.singles[at])
    if event.x % 23 == 0:
        state.floats[3] = 0.5
    if event.x % 29 == 0:
        add(state.bytes, 7, 120)
    if event.x % 31 == 0:
        add(state.bytes, 7, -120)
    if event.x % 37 == 0:
        raise ValueError(f"{event.x}")


def events(count: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"x": rng.integers(0, 10**6, count), "y": rng.normal(size=count)})


@ss.operator(state=Sums, event=EVENT, emits={"seen": float}, name="rows")
def rows(state, event, emit):
    """Rows that are read and copied as a whole, with updates of some of their elements pending."""
    at = event.x % 3
    for _ in range(event.x % 7):
        add(state.ints[at % 2], at, 1)
        maximum(state.floats, at, event.y)
    if event.x % 5 == 0:
        emit(float(sum(state.ints[0])) + max(state.floats))
    if event.x % 11 == 0:
        state.ints[1] = state.ints[0]
        add(state.ints, (1, at), event.x)
        state.floats[1:] = state.floats[:3]
    if event.x % 13 == 0:
        emit(sum(state.floats[at:]))
