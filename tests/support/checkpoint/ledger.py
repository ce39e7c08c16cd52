"""The operator and the stream of a checkpoint that version 0.1 has written, and of its test.

It uses nothing that version 0.1 did not have, and never changes: the files were made with it.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np
import pyarrow as pa

import specstream as ss
from specstream.structures import allocate, maximum

BATCHES, ROWS, DELAY = 8, 24, 6
SOURCES = ("shop", "phone", "web")


class Ledger(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    wide = ss.scalar(np.uint64, fill=2**63)
    total = ss.scalar(float, fill=0.5)
    latest = ss.scalar(int)
    small = ss.array(np.int16, (2, 5))
    means = ss.array(np.float32, 5)
    marks = ss.array(np.bool_, 9)
    blocks = ss.heap(8, 2)
    first = ss.scalar(int)


@ss.operator(
    state=Ledger,
    event={"day": ss.timestamp("s"), "amount": float, "x": int, "name": ss.nullable(str)},
    emits={"x": int, "name": ss.nullable(str), "hash": int, "total": float},
)
def ledger(state, event, emit):
    # Every order of the same events gives another hash.
    state.hash = state.hash * 6364136223846793005 + event.x
    state.wide += np.uint64(event.x)
    state.seen += 1
    at = event.x % 5
    state.small[event.x % 2, at] += 1
    state.means[at] = 0.5 * state.means[at] + event.amount
    state.marks[event.x % 9] = not state.marks[event.x % 9]
    state.total += event.amount
    maximum(state, "latest", event.day)
    if event.x % 25 == 0:
        block = allocate(state.blocks)
        state.blocks[block, 1] = state.first
        state.blocks[block, 2] = event.x
        state.first = block
    if event.x % 3:
        emit(event.x, event.name, state.hash + state.small[0, at], state.total)


def batches() -> list[pa.Table]:
    """The rows of each batch: many ties, none later than the watermark, DELAY seconds."""
    rng = np.random.default_rng(17)
    count = BATCHES * ROWS
    times = np.sort(rng.integers(0, count // 4, count))
    order = np.argsort(times + rng.integers(0, DELAY, count), kind="stable")
    names = [None, "", "straße", "a longer name"]
    table = pa.table(
        {
            "day": pa.array(times + 1_700_000_000, pa.timestamp("s")),
            "source": pa.array(rng.choice(SOURCES, count)),
            "amount": rng.normal(size=count),
            "x": np.arange(count),
            "name": [names[at] for at in rng.integers(0, 4, count)],
        }
    ).take(order)
    return [table.slice(ROWS * at, ROWS) for at in range(BATCHES)]
