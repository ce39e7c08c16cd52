"""A day of orders, made from a seed, with violations in it.

An order is placed, paid or cancelled within 30 minutes, packed and sent; some come back, and are
refunded when somebody else has approved it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "ODD", "WRONG", "as_table", "made", "write_files"]

COLUMNS = ["time", "order", "kind", "by", "amount"]
SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("order", pa.string()),
        ("kind", pa.string()),
        ("by", pa.string()),
        ("amount", pa.float64()),
    ]
)
BEGIN = pd.Timestamp("2026-01-05", tz="UTC")
MINUTE, HOUR = 60_000_000, 3_600_000_000  # microseconds
LAST = 14 * HOUR  # orders are placed until then
STAFF = ("ann", "bob", "eve", "kim", "lou")
EACH = 4.1  # events of an order, about
# What may be wrong with an order, and the rule that says so.
WRONG = {
    "paid late": "paid_in_time",
    "never paid": "paid_in_time",
    "refunded by who approved": "four_eyes",
    "refunded, not approved": "four_eyes",
    "sent, then paid": "sent_when_paid",
    "sent, though cancelled": "sent_when_paid",
    "refunded, then back": "back_before_refund",
    "refunded, never back": "back_before_refund",
}
# What looks wrong and is not.
ODD = ("paid at the deadline", "small refund by one")

Step = tuple[str, int, str]  # what, so many microseconds later, by whom


def _steps(what: str, after: Callable[[float, float], int], staff: list[str]) -> list[Step]:
    """The life of an order; ``after`` draws a time between two numbers of minutes."""
    first, second, third = staff
    paid = ("paid", after(1, 28), "customer")
    sent = [("packed", after(20, 90), first), ("sent", after(5, 60), second)]
    back = ("back", after(60, 240), third)
    refund = [("approved", after(5, 60), first), ("refunded", after(5, 60), second)]
    match what:
        case "cancelled":
            return [("cancelled", after(1, 29), "customer")]
        case "paid late":
            return [("paid", after(31, 90), "customer"), *sent]
        case "never paid":
            return []
        case "paid at the deadline":
            return [("paid", 30 * MINUTE, "customer"), *sent]
        case "refunded by who approved" | "small refund by one":
            return [paid, *sent, back, refund[0], ("refunded", after(5, 60), first)]
        case "refunded, not approved":
            return [paid, *sent, back, refund[1]]
        case "sent, then paid":
            return [("packed", after(1, 9), first), ("sent", after(1, 9), second), _later(paid, 9)]
        case "sent, though cancelled":
            return [paid, ("cancelled", after(1, 9), "customer"), *sent]
        case "refunded, then back":
            return [paid, *sent, *refund, back]
        case "refunded, never back":
            return [paid, *sent, *refund]
        case "back":
            return [paid, *sent, back, *refund]
    return [paid, *sent]


def _later(step: Step, most: int) -> Step:
    """As much as fits before the deadline of a payment, behind steps of ``most`` minutes."""
    kind, after, by = step
    return kind, after * (30 - 2 * most) // 30, by


def made(count: int, seed: int, violations: int) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """About so many events of a day, in order, and what is wrong with them.

    Args:
        count: of the events, about.
        seed: they are made from it.
        violations: so many orders of each kind of violation.

    Returns:
        The events; and for each order that is wrong the rule that says so, and the order.
    """
    rng = np.random.default_rng(seed)
    many = int(count / EACH)
    whats = [what for what in (*WRONG, *ODD) for _ in range(violations)]
    rest = rng.choice(["", "cancelled", "back"], max(many - len(whats), 0), p=[0.8, 0.1, 0.1])
    lives = rng.permutation([*whats, *rest.tolist()]).tolist()
    begins = np.sort(rng.integers(0, LAST, len(lives)))

    def after(least: float, most: float) -> int:
        return int(rng.integers(int(least * MINUTE), int(most * MINUTE)))

    rows: list[tuple[int, str, str, str, float]] = []
    planted = []
    for number, (what, time) in enumerate(zip(lives, begins.tolist(), strict=True)):
        order = f"o{number + 1:05d}"
        amount = round(float(rng.lognormal(4.0, 0.8)), 2)
        if what in WRONG:
            planted.append((WRONG[what], order))
            amount += 100.01
        if what == "small refund by one":
            amount = min(amount, 99.0)
        rows.append((time, order, "placed", "customer", amount))
        for kind, later, by in _steps(what, after, rng.permutation(STAFF)[:3].tolist()):
            time += later
            rows.append((time, order, kind, by, amount))
    rows.sort()
    events = pd.DataFrame(rows, columns=COLUMNS)
    times = BEGIN + pd.to_timedelta(events["time"], unit="us")
    return events.assign(time=times.astype("datetime64[us, UTC]")), planted


def as_table(events: pd.DataFrame) -> pa.Table:
    """Events as Arrow has them."""
    return pa.Table.from_pandas(events, SCHEMA, preserve_index=False)


def write_files(events: pd.DataFrame, directory: Path, files: int) -> None:
    """Writes events as so many files, which Spark takes one after the other."""
    directory.mkdir(parents=True)
    table = as_table(events)
    for number, rows in enumerate(np.array_split(np.arange(len(events)), files)):
        path = directory / f"{number:04d}.parquet"
        pq.write_table(table.slice(rows[0], len(rows)), path)
        # Spark takes files in the order of their modification.
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
