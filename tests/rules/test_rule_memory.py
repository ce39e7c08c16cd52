"""What a keyed rule holds: what is open, however many keys have come and gone."""

# Rules carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import specstream as ss
from specstream.rules import eventually, implies

MINUTE = 60_000_000
WITHIN = 30 * MINUTE
ORDERS, AT_ONCE = 10_000_000, 10_000
# One is placed so often that as many are open: an order takes 15 minutes on average.
GAP = 15 * MINUTE // AT_ONCE
BLOCK = 250_000
UNPAID = 0.01
LIMIT = 50_000_000


@ss.rule(event={"order": str, "kind": str}, key="order")
def paid_in_time(e):
    return implies(
        e.kind == "placed",
        eventually(lambda later: later.kind in ("paid", "cancelled"), within="30 minutes"),
    )


def blocks(orders: int) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Events in the order of time, so many orders at a time, and which of these stay unpaid."""
    rng = np.random.default_rng(3)
    pending = np.empty((2, 0), np.int64)  # payments that come later: when, and of which order
    for first in range(0, orders, BLOCK):
        order = np.arange(first, min(first + BLOCK, orders))
        placed = order * GAP
        is_unpaid = rng.random(len(order)) < UNPAID
        paid = np.array([placed + rng.integers(0, WITHIN + 1, len(order)), order])[:, ~is_unpaid]
        pending = np.concatenate([pending, paid], axis=1)
        is_now = (pending[0] < (order[-1] + 1) * GAP) | (order[-1] == orders - 1)
        paid, pending = pending[:, is_now], pending[:, ~is_now]
        by_time = np.argsort(np.concatenate([placed, paid[0]]), kind="stable")
        number = np.concatenate([order, paid[1]])[by_time]
        kind = np.repeat(["placed", "paid"], [len(order), paid.shape[1]])[by_time]
        time = np.concatenate([placed, paid[0]])[by_time]
        columns = {
            "time": pa.array(time, pa.timestamp("us")),
            "order": pc.binary_join_element_wise("o", pa.array(number).cast(pa.string()), ""),
            "kind": pa.array(kind),
        }
        yield pa.table(columns), order[is_unpaid]


# Twenty million events.
@pytest.mark.long
def test_ten_million_orders_with_ten_thousand_open_hold_less_than_50_megabytes() -> None:
    unpaid, told, waiting = [], [], []
    with ss.Engine(paid_in_time, threads=1) as engine:
        for number, (table, missing) in enumerate(blocks(ORDERS)):
            unpaid.append(missing)
            is_last = (number + 1) * BLOCK >= ORDERS
            rows = engine.process(table, order_by="time", end=is_last)
            lateness = pc.subtract(rows["decided"].cast(pa.int64()), rows["time"].cast(pa.int64()))
            assert pc.all(pc.equal(lateness, WITHIN)).as_py()
            told.append(rows["time"].cast(pa.int64()).to_numpy() // GAP)
            waiting.append(len(engine.state.waiting))
            stats = engine.stats
            assert stats.state_bytes + stats.string_bytes < LIMIT
            assert len(engine.snapshot()) < LIMIT
        assert not engine.state.waiting
        assert not engine.state.chains
    # All unpaid orders, in the order in which they were placed, and no other one.
    assert np.array_equal(np.concatenate(told), np.concatenate(unpaid))
    assert min(waiting[:-1]) > 0.95 * AT_ONCE
