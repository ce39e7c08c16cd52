"""The pipeline: from payments to decisions, each with its reason.

Three vertices look at one card; the last one also at what other cards have met with.
"""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math

import specstream as ss
from specstream.operators.business import velocity

__all__ = ["fraud", "kilometres"]

MINUTE = 60_000_000  # microseconds
DAY = 24 * 60 * MINUTE

WINDOW, MOST = 10 * MINUTE, 4  # a fifth payment of a card within ten minutes is declined
FASTEST = 1000.0  # km/h from one payment of a card to the next; airliners are slower
NEAR = 50.0  # km: so far is never too far, whatever the time
KNOWN = 5  # payments after which it is known what a card usually pays
WEIGHT = 0.1  # of one payment in that
NOTICED, ALONE = 3.0, 8.0  # times the usual: worth a second look; enough by itself
LISTED = DAY  # a merchant is on the list for so long since its last alarm

PAYMENT = {
    "number": int,
    "card": str,
    "merchant": str,
    "latitude": float,
    "longitude": float,
    "amount": ss.decimal(2),  # inside an operator an int: cents
}
DECISION = {
    "time": ss.timestamp("us", "UTC"),
    "number": int,
    "card": str,
    "merchant": str,
    "amount": ss.decimal(2),
    "decision": str,
    "reason": str,
}


# ---- what one card tells ----


def kilometres(latitude, longitude, of_other, longitude_of_other):
    """From one place on the earth to another, along a great circle; places are in degrees."""
    half = math.radians(of_other - latitude) / 2.0
    across = math.radians(longitude_of_other - longitude) / 2.0
    cosines = math.cos(math.radians(latitude)) * math.cos(math.radians(of_other))
    squared = math.sin(half) ** 2 + cosines * math.sin(across) ** 2
    return 2.0 * 6371.0 * math.asin(math.sqrt(min(squared, 1.0)))


class Place(ss.Record):
    time: int
    latitude: float
    longitude: float


class Places(ss.State):
    last = ss.dict(str, Place)


@ss.operator(state=Places, event=PAYMENT, emits={"kilometres": float}, time_unit="us")
def travel(state, event, emit):
    """A payment so far from the card's last one that nobody can have come there meanwhile."""
    last = state.last.get(event.card)
    if last is not None:
        far = kilometres(last.latitude, last.longitude, event.latitude, event.longitude)
        hours = (event.timestamp - last.time) / (60.0 * MINUTE)
        if far > NEAR and far > FASTEST * hours:
            emit(far)
            return  # the owner is where the card was before
    state.last[event.card] = Place(event.timestamp, event.latitude, event.longitude)


class Usual(ss.Record):
    payments: int = 0
    mean: float = 0.0


class Usuals(ss.State):
    by_card = ss.dict(str, Usual)


@ss.operator(state=Usuals, event=PAYMENT, emits={"times": float})
def unusual(state, event, emit):
    """An amount that is several times what the card usually pays."""
    usual = state.by_card.setdefault(event.card, Usual())
    if usual.payments >= KNOWN and event.amount >= NOTICED * usual.mean:
        emit(event.amount / max(usual.mean, 1.0))
        return  # and does not change what is usual
    usual.payments += 1
    usual.mean += (event.amount - usual.mean) * max(WEIGHT, 1.0 / usual.payments)


# ---- what all cards tell together ----


class Merchants(ss.State):
    alarms = ss.dict(str, str, expire_after=LISTED)  # by merchant, the card of the last alarm
    hit = ss.set(str, expire_after=LISTED)  # those where two cards had one


@ss.operator(
    state=Merchants,
    inputs={
        "payment": PAYMENT,
        "velocity": {"events": int},
        "travel": {"kilometres": float},
        "unusual": {"times": float},
    },
    emits=DECISION,
)
def decide(state, event, emit):
    """A decision on each payment that is not just approved."""
    merchant = event.payment.merchant
    decision, reason = "decline", ""
    if event.changed("velocity"):
        reason = "velocity"
    elif event.changed("travel"):
        reason = "travel"
    elif event.changed("unusual") and event.unusual.times >= ALONE:
        reason = "amount"
    if reason != "":
        card = event.payment.card
        # Two cards with an alarm at one merchant: it is the merchant, and not the cards.
        if merchant in state.hit or state.alarms.get(merchant, card) != card:
            state.hit.add(merchant)
        state.alarms[merchant] = card
    elif event.changed("unusual") and merchant in state.hit:
        decision, reason = "review", "merchant"  # what alone would not be enough
    if reason != "":
        emit(
            event.timestamp, event.payment.number, event.payment.card, merchant,
            event.payment.amount, decision, reason,
        )  # fmt: skip


# ---- the graph ----


def fraud() -> ss.Pipeline:
    """The pipeline, new; its source is ``payments``, its sink ``decisions``."""
    p = ss.Pipeline("fraud")
    payments = p.source("payments", PAYMENT)
    fast = p.add(velocity(WINDOW, most_events=MOST), payments)
    far = p.add(travel, payments)
    much = p.add(unusual, payments)
    p.sink("decisions", p.add(decide, payment=payments, velocity=fast, travel=far, unusual=much))
    return p
