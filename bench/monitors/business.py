"""Two rules of the guide, and tables for them."""

from __future__ import annotations

import textwrap

import numpy as np

__all__ = ["MINUTE", "RULES", "orders", "payments"]

Columns = dict[str, np.ndarray]
MINUTE = 60_000_000

# By name: the module with ``def rule(e)``, the columns of an event, and what ``@ss.rule`` has more.
RULES: dict[str, tuple[str, dict[str, type], dict[str, str]]] = {
    "paid_in_time": (
        textwrap.dedent("""\
            from specstream.rules import eventually, implies


            def settled(e):
                return e.kind in ("paid", "cancelled")


            def rule(e):
                return implies(e.kind == "placed", eventually(settled, within="30 minutes"))
        """),
        {"order": str, "kind": str},
        {"key": "order"},
    ),
    "four_eyes": (
        textwrap.dedent("""\
            from specstream.rules import implies, once


            def rule(e):
                return implies(
                    e.what == "release" and e.amount > 10_000,
                    once(
                        lambda before: before.what == "approve"
                        and before.payment == e.payment
                        and before.by != e.by,
                        within="7 days",
                    ),
                )
        """),
        {"what": str, "payment": str, "by": str, "amount": float},
        {},
    ),
}


def orders(events: int, seed: int, late: float = 0.01, open_at_once: int = 10_000) -> Columns:
    """Orders, each placed, and paid or cancelled.

    Args:
        events: exactly so many; the last orders have no end then.
        seed: of what is at random.
        late: the share of orders that are paid after more than 30 minutes, or never; at most half.
        open_at_once: about how many are neither paid nor cancelled at a time.

    Returns:
        ``time`` in microseconds, in order; ``order``; ``kind``.
    """
    rng = np.random.default_rng(seed)
    many = events // 2 + events // 10 + 10
    # An order takes 15 minutes on average.
    placed = np.sort(rng.random(many)) * many * (15 * MINUTE / open_at_once)
    takes = rng.random(many) * 30 * MINUTE
    is_late = rng.random(many) < late
    takes = np.where(is_late, (31 + 60 * rng.random(many)) * MINUTE, takes)
    kinds = np.where(rng.random(many) < 0.9, "paid", "cancelled")
    ends = (~is_late) | (rng.random(many) < 0.5)
    names = np.char.add("o", np.arange(many).astype(str))
    time = np.concatenate([placed, (placed + takes)[ends]]).astype(np.int64)
    order = np.concatenate([names, names[ends]])
    kind = np.concatenate([np.full(many, "placed"), kinds[ends]])
    first = np.argsort(time, kind="stable")[:events]
    return {"time": time[first], "order": order[first], "kind": kind[first]}


def payments(events: int, seed: int, wrong: float = 0.01) -> Columns:
    """Payments, each approved by one or two and released by another; most of them large.

    Args:
        events: at least so many, whole payments.
        seed: of what is at random.
        wrong: the share that is released without an approval, or by who has approved alone.

    Returns:
        ``time`` in microseconds, in order; ``what``; ``payment``; ``by``; ``amount``.
    """
    rng = np.random.default_rng(seed)
    many = events // 2 + 1
    approved = np.sort(rng.random(many)) * many * MINUTE
    released = approved + rng.random(many) * 24 * 60 * MINUTE
    by = rng.integers(0, 50, many)
    other = (by + 1 + rng.integers(0, 49, many)) % 50
    other = np.where(rng.random(many) < wrong, by, other)
    amount = np.round(rng.lognormal(10.0, 1.0, many), 2)
    names = np.char.add("p", np.arange(many).astype(str))
    people = np.char.add("u", np.arange(50).astype(str))
    time = np.concatenate([approved, released]).astype(np.int64)
    first = np.argsort(time, kind="stable")
    columns = {
        "time": time,
        "what": np.repeat(["approve", "release"], many),
        "payment": np.concatenate([names, names]),
        "by": people[np.concatenate([by, other])],
        "amount": np.concatenate([amount, amount]),
    }
    return {name: column[first] for name, column in columns.items()}
