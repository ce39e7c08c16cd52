"""Payments that look wrong."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import math
from collections import deque

import numpy as np
import pyarrow as pa

import specstream as ss
from corpus.case import case

COUNTRIES = ["DE", "FR", "US", "NG", "", "xx"]


def payments(rng):
    n = 220
    amount = np.round(rng.lognormal(3, 1.2, n), 2)
    amount[[5, 90]] = 0.0, 9999.99
    return pa.table(
        {
            "card": rng.integers(0, 12, n),
            "merchant": rng.integers(0, 30, n),
            "amount": amount,
            "time": rng.integers(0, 90, n).cumsum(),
            "country": rng.choice(COUNTRIES, n),
            "lat": rng.uniform(-90, 90, n),
            "lon": rng.uniform(-180, 180, n),
            "number": [f"{x:016d}" for x in rng.integers(0, 10**16, n)],
            "limit": pa.array(rng.integers(10, 100, n) * 1.0, mask=rng.random(n) < 0.4),
        }
    )


PAYMENT = {
    "card": int,
    "merchant": int,
    "amount": float,
    "time": int,
    "country": str,
    "lat": float,
    "lon": float,
    "number": str,
    "limit": ss.nullable(float),
}


class Velocity(ss.State):
    times = ss.array(int, (12, 3), fill=-(10**6))


def velocity_by_hand(table):
    seen = {card: deque(maxlen=4) for card in range(12)}
    rows = []
    for row, (card, time) in enumerate(
        zip(table["card"].to_pylist(), table["time"].to_pylist(), strict=True)
    ):
        seen[card].append(time)
        if len(seen[card]) == 4 and time - seen[card][0] < 3600:
            rows.append((card, row))
    return rows


@case(
    "four payments within an hour",
    payments,
    velocity_by_hand,
    state=Velocity,
    event=PAYMENT,
    emits={"card": int, "row": int},
)
def velocity(state, event, emit):
    times = state.times[event.card]
    if event.time - times[0] < 3600:
        emit(event.card, event.sequence)
    times[:-1] = times[1:]
    times[-1] = event.time


class Profile(ss.State):
    n = ss.array(int, 12)
    mean = ss.array(float, 12)
    m2 = ss.array(float, 12)


def zscore_by_pandas(table):
    d = table.to_pandas()
    before = d.groupby("card").amount.transform(lambda a: a.expanding().mean().shift())
    std = d.groupby("card").amount.transform(lambda a: a.expanding().std().shift())
    n = d.groupby("card").cumcount()
    z = (d.amount - before) / std
    return [(int(c), float(x)) for c, x, k in zip(d.card, z, n, strict=True) if k >= 3 and x > 2]


def deviation(m2, n):
    if n < 2:
        return 0.0
    return math.sqrt(m2 / (n - 1))


@case(
    "amounts far from a card's own mean (Welford)",
    payments,
    zscore_by_pandas,
    state=Profile,
    event=PAYMENT,
    emits={"card": int, "score": float},
)
def unusual_amount(state, event, emit):
    c, x = event.card, event.amount
    if state.n[c] >= 3:
        std = deviation(state.m2[c], state.n[c])
        if std > 0 and (score := (x - state.mean[c]) / std) > 2:
            emit(c, score)
    state.n[c] += 1
    delta = x - state.mean[c]
    state.mean[c] += delta / state.n[c]
    state.m2[c] += delta * (x - state.mean[c])


class Where(ss.State):
    lat = ss.array(float, 12, fill=np.nan)
    lon = ss.array(float, 12, fill=np.nan)
    time = ss.array(int, 12)


def distance(lat1, lon1, lat2, lon2, radius=6371.0):
    p1, p2 = math.radians(lat1), math.radians(lat2)
    h = (
        math.sin((p2 - p1) / 2) ** 2
        + math.cos(p1) * math.cos(p2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    )
    return 2 * radius * math.asin(math.sqrt(h))


def travel_by_numpy(table):
    d = table.to_pandas()
    rows = []
    for _, g in d.groupby("card"):
        v = np.stack(
            [
                np.cos(np.radians(g.lat)) * np.cos(np.radians(g.lon)),
                np.cos(np.radians(g.lat)) * np.sin(np.radians(g.lon)),
                np.sin(np.radians(g.lat)),
            ]
        )
        angle = np.arccos(np.clip((v[:, 1:] * v[:, :-1]).sum(axis=0), -1, 1))
        hours = np.diff(g.time) / 3600
        for i, a, h in zip(g.index[1:], angle, hours, strict=True):
            if a * 6371 > 900 * h:
                rows.append((int(i), a * 6371))
    return [(int(d.card[i]), km) for i, km in sorted(rows)]


@case(
    "faster than an aeroplane between two payments",
    payments,
    travel_by_numpy,
    state=Where,
    event=PAYMENT,
    emits={"card": int, "km": float},
)
def impossible_travel(state, event, emit):
    c = event.card
    if not math.isnan(state.lat[c]):
        km = distance(state.lat[c], state.lon[c], event.lat, event.lon)
        hours = (event.time - state.time[c]) / 3600
        if km > 900 * hours:
            emit(c, km)
    state.lat[c], state.lon[c], state.time[c] = event.lat, event.lon, event.time


class Invalid(ss.State):
    invalid = ss.scalar(int)


def luhn(number: str) -> bool:
    total = 0
    for i, digit in enumerate(reversed(number)):
        d = int(digit)
        if i % 2:
            d *= 2
            if d > 9:
                d -= 9
        total += d
    return total % 10 == 0


def luhn_by_hand(table):
    rows, bad = [], 0
    for number in table["number"].to_pylist():
        digits = [int(c) for c in number]
        doubled = [sum(divmod(2 * d, 10)) for d in digits[::2]]
        if (sum(doubled) + sum(digits[1::2])) % 10:
            bad += 1
        else:
            rows.append((number[:4] + " **** **** " + number[-4:], bad))
    return rows


@case(
    "check digits of card numbers, letters by letters",
    payments,
    luhn_by_hand,
    state=Invalid,
    event=PAYMENT,
    emits={"masked": str, "invalid": int},
)
def check_digits(state, event, emit):
    if not luhn(event.number):
        state.invalid += 1
        return
    emit(f"{event.number[:4]} **** **** {event.number[-4:]}", state.invalid)


HIGH_RISK = {"NG", "XX"}


class Risk(ss.State):
    points = ss.array(int, 12)
    blocked = ss.array(bool, 12)


def risk_by_hand(table):
    points = [0] * 12
    rows = []
    for t in table.to_pylist():
        if points[t["card"]] >= 100:
            continue
        p = 0
        if t["country"].upper() in {"NG", "XX"}:
            p += 30
        elif t["country"] == "":
            p += 10
        if t["amount"] > 200:
            p += 50
        if t["amount"] == 0:
            p += 5
        points[t["card"]] += p
        if points[t["card"]] >= 100:
            rows.append((t["card"], points[t["card"]], t["country"] or "??"))
    return rows


def points_of(country, amount):
    points = 0
    if country.upper() in HIGH_RISK:
        points += 30
    elif not country:
        points += 10
    match amount:
        case 0.0:
            points += 5
        case large if large > 200:
            points += 50
    return points


@case(
    "points by rules until a card is blocked; a set of the module",
    payments,
    risk_by_hand,
    state=Risk,
    event=PAYMENT,
    emits={"card": int, "points": int, "country": str},
)
def risk_points(state, event, emit):
    if state.blocked[event.card]:
        return
    state.points[event.card] += points_of(event.country, event.amount)
    if state.points[event.card] >= 100:
        state.blocked[event.card] = True
        emit(event.card, state.points[event.card], event.country or "??")


class Merchants(ss.State):
    seen = ss.array(bool, (12, 30))


def new_merchants_by_pandas(table):
    d = table.to_pandas()
    new = ~d.duplicated(["card", "merchant"])
    d = d[new]
    d["n"] = d.groupby("card").cumcount() + 1
    return list(zip(d.card, d.merchant, d.n, strict=True))


@case(
    "first payment at a merchant",
    payments,
    new_merchants_by_pandas,
    state=Merchants,
    event=PAYMENT,
    emits={"card": int, "merchant": int, "merchants": int},
)
def new_merchant(state, event, emit):
    seen = state.seen[event.card]
    if not seen[event.merchant]:
        seen[event.merchant] = True
        emit(event.card, event.merchant, sum(seen))


class Limits(ss.State):
    spent = ss.array(float, 12)


class LimitExceeded(ValueError):
    def __init__(self, card, over):
        super().__init__(f"card {card} is over by {over:.2f}")
        self.over = over


@case(
    "an exception when a card is over its limit, null for none",
    payments,
    None,
    raises=True,
    are_none=True,
    state=Limits,
    event=PAYMENT,
    emits={"card": int, "spent": float},
)
def limits(state, event, emit):
    limit = math.inf if event.limit is None else event.limit
    if event.amount > limit:
        raise LimitExceeded(event.card, event.amount - limit)
    state.spent[event.card] += event.amount
    emit(event.card, state.spent[event.card])


class Top(ss.State):
    amounts = ss.array(float, 12)


def top_by_pandas(table):
    d = table.to_pandas()
    rows = []
    for i in range(len(d)):
        total = d[: i + 1].groupby("card").amount.sum().reindex(range(12), fill_value=0.0)
        best = sorted(range(12), key=lambda c: (-round(total[c], 6), c))[:3]
        rows.append((*best,))
    return rows


@case(
    "the three cards with the largest sums",
    payments,
    top_by_pandas,
    state=Top,
    event=PAYMENT,
    emits={"first": int, "second": int, "third": int},
)
def top_cards(state, event, emit):
    state.amounts[event.card] += event.amount
    ranking = sorted(range(12), key=lambda c: -state.amounts[c])
    first, second, third = ranking[:3]
    emit(first, second, third)


class Best(ss.State):
    amount = ss.array(float, 12)


def nearest_by_numpy(table):
    last = np.zeros(12)
    rows = []
    for c, a in zip(table["card"].to_pylist(), table["amount"].to_pylist(), strict=True):
        others = [(abs(last[k] - a), k) for k in range(12) if k != c and last[k] > 0]
        rows.append((c, min(others)[1] if others else -1))
        last[c] = a
    return rows


@case(
    "the other card with the most similar last amount, beginning with None",
    payments,
    nearest_by_numpy,
    state=Best,
    event=PAYMENT,
    emits={"card": int, "like": int},
)
def most_similar(state, event, emit):
    best = None
    smallest = None
    for other in range(12):
        if other == event.card or state.amount[other] <= 0:
            continue
        difference = abs(state.amount[other] - event.amount)
        if smallest is None or difference < smallest:
            best, smallest = other, difference
    emit(event.card, best if best is not None else -1)
    state.amount[event.card] = event.amount


class Benford(ss.State):
    digits = ss.array(int, 10)


def benford_by_pandas(table):
    d = table.to_pandas()
    digit = d.amount.map(lambda a: int(f"{a:e}"[0]))
    count = digit.groupby(digit).cumcount() + 1
    n = np.arange(1, len(d) + 1)
    return [(int(x), float(c / k)) for x, c, k in zip(digit, count, n, strict=True)]


@case(
    "share of each leading digit",
    payments,
    benford_by_pandas,
    state=Benford,
    event=PAYMENT,
    emits={"digit": int, "share": float},
)
def leading_digit(state, event, emit):
    x = event.amount
    while x >= 10:
        x /= 10
    while 0 < x < 1:
        x *= 10
    digit = int(x)
    state.digits[digit] += 1
    emit(digit, state.digits[digit] / sum(state.digits))
