"""Batches whose events come out of order, and an operator whose every row depends on the order."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss

WATERMARK = 40
KEY = ["timestamp", "source", "sequence", "n"]


class Chain(ss.State):
    hash = ss.scalar(int)
    sums = ss.array(float, 7)


@ss.operator(
    state=Chain,
    event={"x": int, "weight": float, "origin": str},
    emits={"x": int, "origin": str, "hash": int, "sum": float},
)
def chain(state, event, emit):
    state.hash = state.hash * 6364136223846793005 + event.x
    at = event.x % 7
    state.sums[at] += event.weight
    # With an event before it another number of rows, so that rows are withdrawn.
    for number in range((state.hash >> 20) % 3):
        emit(event.x + number, event.origin, state.hash, state.sums[at])


@ss.operator(event={"x": int, "hash": int}, emits={"x": int, "hash": int})
def some(event, emit):
    if event.hash % 5 < 3:
        emit(event.x, event.hash)


def forked() -> ss.Pipeline:
    """The chain, and a second sink that does not get all of it."""
    p = ss.Pipeline("forked")
    chained = p.add(chain, p.source("events", {"x": int, "weight": float, "origin": str}))
    p.sink("all", chained)
    p.sink("some", p.add(some, chained))
    return p


def events(rng: np.random.Generator, batches: int, rows: int) -> list[pa.Table]:
    """Micro-batches that overlap in time by less than the watermark."""
    return [
        pa.table(
            {
                "time": rng.integers(0, WATERMARK, rows) + number * rows,
                "origin": pa.array(rng.choice(["EWR", "JFK"], rows)),
                "x": np.arange(rows) + number * rows,
                "weight": rng.normal(size=rows),
            }
        )
        for number in range(batches)
    ]


def oracle(batches: Sequence[pa.Table]) -> pa.Table:
    """What the sequential run emits over the events of all batches in their order, with keys."""
    table = pa.concat_tables(batches)
    return chain.run_sequential(table, order_by="time", source="origin", keys=True).output


def told_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows without what says when and how they were told."""
    names = ["x", "origin", "hash", "sum", "timestamp", "source"]
    rows: list[dict[str, Any]] = table.select(names).to_pylist()
    return rows
