"""The rules: what must hold of orders, and the pipeline that asks all of them."""

# Rules carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import specstream as ss
from specstream.rules import eventually, implies, once, since, unless

__all__ = ["RULES", "back_before_refund", "four_eyes", "orders", "paid_in_time", "sent_when_paid"]

ORDER = {"order": str, "kind": str, "by": str, "amount": float}
UTC = ss.timestamp("us", "UTC")  # of the times in the alarms
MUCH = 100.0  # a refund above needs two people


def settled(e):
    return e.kind in ("paid", "cancelled")


@ss.rule(event=ORDER, key="order", keep=["amount"], unit=UTC)
def paid_in_time(e):
    """An order is paid or cancelled within 30 minutes."""
    return implies(e.kind == "placed", eventually(settled, within="30 minutes"))


@ss.rule(event=ORDER, keep=["order", "by", "amount"], unit=UTC)
def four_eyes(e):
    """Somebody else has approved a large refund of that order, in the week before."""
    return implies(
        e.kind == "refunded" and e.amount > MUCH,
        once(
            lambda before: (
                before.kind == "approved" and before.order == e.order and before.by != e.by
            ),
            within="7 days",
        ),
    )


@ss.rule(event=ORDER, key="order", keep=["by"], unit=UTC)
def sent_when_paid(e):
    """What is sent has been paid, and not cancelled since."""
    is_paid = since(lambda b: b.kind != "cancelled", lambda b: b.kind == "paid")
    return implies(e.kind == "sent", is_paid)


@ss.rule(event=ORDER, key="order", keep=["amount"], unit=UTC)
def back_before_refund(e):
    """What is sent is not refunded before it is back, if it ever is."""
    return implies(
        e.kind == "sent",
        unless(lambda later: later.kind != "refunded", lambda later: later.kind == "back"),
    )


RULES = (paid_in_time, four_eyes, sent_when_paid, back_before_refund)


def orders() -> ss.Pipeline:
    """The pipeline, new: a vertex and a sink for each rule."""
    p = ss.Pipeline("orders")
    source = p.source("orders", ORDER)
    for rule in RULES:
        p.sink(rule.name, source.add(rule))
    return p
