"""Meters, batteries and prices of power."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import datetime
from collections.abc import Callable
from decimal import Decimal
from math import exp, floor, inf, isclose, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import specstream as ss
from corpus.case import case

METERS = 8


def meters(rng):
    n = 240
    count = rng.integers(0, 50, n).cumsum()
    count[[100, 101]] = 5, 7
    start = datetime.datetime(2024, 1, 31, 22, 0)
    return pa.table(
        {
            "meter": rng.integers(0, METERS, n),
            "count": count,
            "watts": rng.normal(300, 400, n),
            "time": pa.array(
                [start + datetime.timedelta(minutes=7 * i) for i in range(n)], pa.timestamp("ms")
            ),
            "price": pa.array(
                [Decimal(int(p)) / 100 for p in rng.integers(-500, 9000, n)], pa.decimal128(10, 2)
            ),
            "phase": rng.choice(["L1", "L2", "L3"], n),
            "on": pa.array(rng.random(n) < 0.5, mask=rng.random(n) < 0.2),
            "temperature": rng.normal(8, 9, n).astype(np.float32),
        }
    )


METER = {
    "meter": int,
    "count": int,
    "watts": float,
    "time": ss.timestamp("s", "UTC"),
    "price": ss.decimal(2),
    "phase": str,
    "on": ss.nullable(bool),
    "temperature": float,
}


class Counters(ss.State):
    last = ss.array(int, METERS, fill=-1)
    total = ss.scalar(int)


def consumption_by_hand(table):
    last, total, rows = {}, 0, []
    for m, c in zip(table["meter"].to_pylist(), table["count"].to_pylist(), strict=True):
        used = c - last.get(m, c)
        last[m] = c
        used = c if used < 0 else used
        total += used
        rows.append((m, used, total))
    return rows


def used_since(last: int, now: int) -> int:
    """What was used; a counter that runs backwards has been replaced."""
    if last < 0:
        return 0
    if now < last:
        return now
    return now - last


@case(
    "consumption from counters that may be replaced; everything annotated",
    meters,
    consumption_by_hand,
    state=Counters,
    event=METER,
    emits={"meter": int, "used": int, "total": int},
)
def consumption(state: Counters, event: Any, emit: Callable[..., None]) -> None:
    """Adds up what all meters counted."""
    used: int = used_since(state.last[event.meter], event.count)
    state.last[event.meter] = event.count
    state.total += used
    emit(event.meter, used, state.total)


class Phases(ss.State):
    load = ss.array(float, 3)


def imbalance_by_pandas(table):
    d = table.to_pandas()
    wide = d.pivot(columns="phase", values="watts").ffill().fillna(0.0)
    return [(float(x),) for x in wide.max(axis=1) - wide.min(axis=1)]


@case(
    "imbalance of three phases",
    meters,
    imbalance_by_pandas,
    state=Phases,
    event=METER,
    emits={"spread": float},
)
def imbalance(state, event, emit):
    state.load[int(event.phase[1]) - 1] = event.watts
    low, *_, high = sorted(state.load)
    emit(high - low)


class Store(ss.State):
    charge = ss.scalar(float, fill=5.0)
    cycles = ss.scalar(float)


def battery_by_hand(table):
    charge, cycles, rows = 5.0, 0.0, []
    for w in table["watts"].to_pylist():
        before = charge
        charge = float(np.clip(charge - w / 1000 * (0.9 if w < 0 else 1 / 0.9), 0.0, 10.0))
        cycles += abs(charge - before) / 20
        rows.append((charge, cycles, charge in (0.0, 10.0)))
    return rows


def bounded(value, *, low=0.0, high):
    if not low <= value <= high:
        return (low, True) if value < low else (high, True)
    return value, value in (low, high)


@case(
    "a battery with losses; keyword-only arguments and returned tuples",
    meters,
    battery_by_hand,
    state=Store,
    event=METER,
    emits={"charge": float, "cycles": float, "at_end": bool},
)
def battery(state, event, emit):
    efficiency = 0.9 if event.watts < 0 else 1 / 0.9
    charge, at_end = bounded(state.charge - event.watts / 1000 * efficiency, high=10.0)
    state.cycles += abs(charge - state.charge) / 20
    state.charge = charge
    emit(charge, state.cycles, at_end)


class Bill(ss.State):
    cents = ss.array(int, METERS)
    dearest = ss.scalar(int, fill=-(2**63))


def bills_by_hand(table):
    total, rows = [Decimal(0)] * METERS, []
    prices = table["price"].to_pylist()
    for i, (m, p) in enumerate(zip(table["meter"].to_pylist(), prices, strict=True)):
        total[m] += p * 3
        rows.append((total[m], max(prices[: i + 1])))
    return rows


@case(
    "bills in exact decimals",
    meters,
    bills_by_hand,
    state=Bill,
    event=METER,
    emits={"bill": ss.decimal(2), "dearest": ss.decimal(2)},
)
def bills(state, event, emit):
    state.cents[event.meter] += 3 * event.price
    state.dearest = max(event.price, state.dearest)
    emit(state.cents[event.meter], state.dearest)


class Months(ss.State):
    month = ss.scalar(int)
    sum = ss.scalar(float)
    n = ss.scalar(int)


def hours_by_pandas(table):
    d = table.to_pandas()
    g = d.groupby(d.time.dt.floor("h")).watts.agg(["mean", "size"])
    return [(int(t.hour), float(m), int(n)) for t, m, n in g.itertuples()][:-1]


@case(
    "means of each hour, by arithmetic on seconds",
    meters,
    hours_by_pandas,
    state=Months,
    event=METER,
    emits={"hour": int, "mean": float, "n": int},
)
def hourly(state, event, emit):
    hour = event.time // 3600
    if state.n > 0 and hour != state.month:
        emit(state.month % 24, state.sum / state.n, state.n)
        state.sum, state.n = 0, 0
    state.month = hour
    state.sum += event.watts
    state.n += 1


class Runtime(ss.State):
    on = ss.array(bool, METERS)
    since = ss.array(int, METERS)
    seconds = ss.array(int, METERS)


def runtime_by_hand(table):
    since, seconds, rows = {}, [0] * METERS, []
    stamps = pc.cast(table["time"].cast(pa.timestamp("s")), pa.int64()).to_pylist()
    for m, on, t in zip(table["meter"].to_pylist(), table["on"].to_pylist(), stamps, strict=True):
        if on is None:
            continue
        if on:
            since.setdefault(m, t)
        elif m in since:
            seconds[m] += t - since.pop(m)
            rows.append((m, seconds[m]))
    return rows


@case(
    "how long things were on; nulls left out by is_null",
    meters,
    runtime_by_hand,
    state=Runtime,
    event=METER,
    emits={"meter": int, "seconds": int},
)
def runtime(state, event, emit):
    m = event.meter
    if event.is_null("on") or event.on == state.on[m]:
        return
    state.on[m] = not state.on[m]
    if state.on[m]:
        state.since[m] = event.time
    else:
        state.seconds[m] += event.time - state.since[m]
        emit(m, state.seconds[m])


class Comfort(ss.State):
    degree_days = ss.scalar(float)


def comfort_by_numpy(table):
    t = table["temperature"].to_numpy().astype(float)
    vapour = 6.112 * np.exp(17.62 * t / (243.12 + t))
    return [
        (float(a), float(b)) for a, b in zip(np.maximum(18 - t, 0).cumsum(), vapour, strict=True)
    ]


@case(
    "degree days and vapour pressure",
    meters,
    comfort_by_numpy,
    state=Comfort,
    event=METER,
    emits={"degree_days": float, "pressure": float},
)
def comfort(state, event, emit):
    t = event.temperature
    state.degree_days += max(18.0 - t, 0.0)
    pressure = 6.112 * exp(17.62 * t / (243.12 + t))
    emit(state.degree_days, pressure)


TARIFF = {"night": (0, 6, 0.21), "day": (6, 20, 0.34), "evening": (20, 24, 0.40)}


class Tariffs(ss.State):
    spent = ss.scalar(float)


def tariffs_by_pandas(table):
    d = table.to_pandas()
    price = pd.cut(d.time.dt.hour, [-1, 5, 19, 23], labels=[0.21, 0.34, 0.40]).astype(float)
    name = pd.cut(d.time.dt.hour, [-1, 5, 19, 23], labels=["night", "day", "evening"])
    return list(zip(name, (price * d.watts.clip(lower=0)).cumsum(), strict=True))


@case(
    "tariffs by the hour, in a dict of tuples of the module",
    meters,
    tariffs_by_pandas,
    state=Tariffs,
    event=METER,
    emits={"tariff": str, "spent": float},
)
def tariffs(state, event, emit):
    hour = event.time // 3600 % 24
    for name, (begin, end, price) in TARIFF.items():
        if begin <= hour < end:
            state.spent += price * max(event.watts, 0.0)
            emit(name, state.spent)
            break


WEIGHTS = np.array([0.5, 0.25, 0.15, 0.1])


class Filter(ss.State):
    recent = ss.array(float, 4)


def filter_by_numpy(table):
    w = table["watts"].to_numpy()
    return [(float(x),) for x in np.convolve(w, [0.5, 0.25, 0.15, 0.1])[3 : len(w)]]


@case(
    "a filter with weights in a NumPy array of the module",
    meters,
    filter_by_numpy,
    state=Filter,
    event=METER,
    emits={"filtered": float},
)
def filtered(state, event, emit):
    state.recent[1:] = state.recent[:-1]
    state.recent[0] = event.watts
    if event.sequence >= 3:
        emit(sum(w * x for w, x in zip(WEIGHTS, state.recent)))  # noqa: B905


class Outliers(ss.State):
    ring = ss.array(float, 16)
    n = ss.scalar(int)


def outliers_by_pandas(table):
    w = table["watts"].to_pandas()
    rows = []
    for i in range(16, len(w)):
        last = w[i - 16 : i]
        middle = last.median()
        mad = (last - middle).abs().median()
        if abs(w[i] - middle) > 3 * mad:
            rows.append((float(w[i]), float(middle)))
    return rows


@case(
    "outliers by the median of absolute deviations",
    meters,
    outliers_by_pandas,
    state=Outliers,
    event=METER,
    emits={"watts": float, "median": float},
)
def outliers(state, event, emit):
    def median(values):
        values.sort()
        return (values[7] + values[8]) / 2

    if state.n >= 16:
        middle = median(list(state.ring))
        mad = median([abs(x - middle) for x in state.ring])
        if abs(event.watts - middle) > 3 * mad:
            emit(event.watts, middle)
    state.ring[state.n % 16] = event.watts
    state.n += 1


class Solver(ss.State):
    root = ss.scalar(float, fill=1.0)


def roots_by_numpy(table):
    w = np.abs(table["watts"].to_numpy())
    return [(float(x), int(y)) for x, y in zip(np.sqrt(w), np.floor(np.sqrt(w)), strict=True)]


@case(
    "a root by Newton's steps, while and else",
    meters,
    roots_by_numpy,
    state=Solver,
    event=METER,
    emits={"root": float, "whole": int},
)
def newton(state, event, emit):
    target, steps = abs(event.watts), 0
    while abs(state.root * state.root - target) > 1e-12 * target:
        state.root = (state.root + target / state.root) / 2
        steps += 1
        if steps == 60:
            break
    root = state.root if abs(state.root - sqrt(target)) < 1e-9 else inf
    emit(root, floor(sqrt(target)))


class Steps(ss.State):
    level = ss.scalar(float)
    steps = ss.scalar(int)


def steps_by_hand(table):
    level, n, rows = 0.0, 0, []
    for t in np.round(table["temperature"].to_numpy().astype(float)):
        if abs(t - level) > 1e-9 * max(abs(t), abs(level)):
            level, n = float(t), n + 1
            rows.append((level, n))
    return rows


@case(
    "changes of a rounded value (isclose)",
    meters,
    steps_by_hand,
    state=Steps,
    event=METER,
    emits={"level": float, "steps": int},
)
def steps(state, event, emit):
    now = float(round(event.temperature))
    if isclose(now, state.level):
        return
    state.level = now
    state.steps += 1
    emit(now, steps=state.steps)
