"""Event time across batches: whatever the batches are, the answer is that of the rows in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import specstream as ss

pytest.importorskip("pyspark")

import itertools

from specstream.spark.event_time import EventTime


class Chain(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    sums = ss.array(float, 7)


@ss.operator(
    state=Chain,
    event={"x": int, "weight": float, "origin": str},
    emits={"x": int, "origin": str, "hash": int, "sum": float},
)
def chain(state, event, emit):
    # Every order of the same events gives another hash.
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.x
    at = event.x % 7
    state.sums[at] += event.weight
    if event.x % 5:
        emit(event.x, event.origin, state.hash, state.sums[at])


@ss.operator(state=Chain, event={"x": int}, emits={"x": int, "seen": int})
def fragile(state, event, emit):
    state.seen += 1
    if event.x < 0:
        raise ValueError(f"x is {event.x}")
    emit(event.x, state.seen)


SETTINGS = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 4},
    {"threads": 3, "horizon": 16, "chunk": 1, "protocol": "eager"},
    {"threads": 2, "horizon": "auto"},
]
ORIGINS = ["EWR", "JFK", "LGA"]


def stream(rng: np.random.Generator, rows: int, delay: int) -> pa.Table:
    """Events with many ties, each of them at most ``delay`` behind the latest of its source."""
    times = np.sort(rng.integers(0, rows // 2 + 1, rows))
    # Those that would be in order, put off by less than the watermark.
    order = np.argsort(times + rng.integers(0, delay + 1, rows), kind="stable")
    return pa.table(
        {
            "time": times,
            "origin": pa.array(rng.choice(ORIGINS, rows)),
            "x": np.arange(rows),
            "weight": rng.normal(size=rows),
        }
    ).take(order)


def batches(rng: np.random.Generator, table: pa.Table, count: int) -> list[pa.Table]:
    cuts = [0, *sorted(rng.integers(0, table.num_rows + 1, count - 1)), table.num_rows]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]


def oracle(table: pa.Table) -> Any:
    """The sequential run over the rows in their order, worked out apart from specstream."""
    return chain.run_sequential(table.to_pandas().sort_values(["time", "origin"], kind="stable"))


def bits(state: Any) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in state.to_dict().items()}


def committed(batches: list[pa.Table], delay: int, sources: list[str]) -> list[int]:
    """After each batch, how many events are at or below the least frontier: by its definition."""
    counts, seen = [], []
    for batch in batches:
        seen += zip(batch["time"].to_pylist(), batch["origin"].to_pylist(), strict=True)
        latest = {name: max((t for t, o in seen if o == name), default=None) for name in sources}
        latest |= {o: max(t for t, p in seen if p == o) for _, o in seen}
        if None in latest.values() or not latest:
            counts.append(0)
            continue
        frontier = min((t - delay, o) for o, t in latest.items())
        counts.append(sum(event <= frontier for event in seen))
    return counts


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    options=st.sampled_from(SETTINGS),
    rows=st.integers(0, 160),
    delay=st.integers(0, 40),
    count=st.integers(1, 9),
    restarts=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_batches_of_any_shuffle_give_the_rows_in_order(
    options: Any, rows: int, delay: int, count: int, restarts: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table = stream(rng, rows, delay)
    parts = batches(rng, table, count)
    expected = oracle(table)

    def begin(restore: bytes | None = None) -> tuple[ss.Engine, EventTime]:
        engine = ss.Engine(chain, seed=3, restore=restore, **options)
        return engine, EventTime(
            engine, order_by="time", source="origin", watermark=delay, sources=ORIGINS
        )

    engine, event_time = begin()
    try:
        outputs, applied = [], []
        for part in parts:
            outputs.append(event_time.run(part))
            applied.append(int(engine.state.seen))
            assert (
                engine.stats.pending
                == sum(p.num_rows for p in parts[: len(applied)]) - (applied[-1])
            )
            if restarts:
                image = engine.snapshot()
                engine.close()
                engine, event_time = begin(image)
        outputs.append(event_time.finish())
        found = pa.concat_tables(outputs)
        ids = found["x"].to_pylist()
        place = {x: at for at, x in enumerate(expected.output["x"].to_pylist())}
        counts = {
            "lost": len(place.keys() - set(ids)),
            "duplicated": len(ids) - len(set(ids)),
            "reordered": sum(place[a] > place[b] for a, b in itertools.pairwise(ids)),
        }
        assert sum(counts.values()) == 0, counts
        assert found.equals(expected.output)
        assert bits(engine.state) == bits(expected.state)
        assert applied == committed(parts, delay, ORIGINS)
    finally:
        engine.close()
