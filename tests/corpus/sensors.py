"""Readings of machines and the weather."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import datetime
import itertools
import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa

import specstream as ss
from corpus.case import case

SENSORS = 6
LOW, HIGH = -40.0, 85.0


def readings(rng):
    n = 240
    value = rng.normal(20, 5, n)
    value[[3, 50, 51]] = math.nan, 120.0, -60.0
    start = datetime.datetime(2024, 2, 28, 23)
    return pa.table(
        {
            "sensor": rng.integers(0, SENSORS, n),
            "value": value,
            "status": rng.integers(0, 256, n),
            "unit": rng.choice(["C", "F", "K", " c "], n),
            "x": rng.normal(size=n),
            "y": rng.normal(size=n),
            "day": pa.array(
                [(start + datetime.timedelta(hours=int(h))).date() for h in np.arange(n) * 3],
                pa.date32(),
            ),
            "payload": [
                json.dumps({"id": int(i), "battery": float(b)}) if b > 0.05 else "{broken"
                for i, b in enumerate(rng.random(n).round(3))
            ],
            "maybe": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.25),
        }
    )


READING = {
    "sensor": int,
    "value": float,
    "status": int,
    "unit": str,
    "x": float,
    "y": float,
    "day": datetime.date,
    "payload": str,
    "maybe": ss.nullable(float),
}


class Smoothing(ss.State):
    window = ss.array(float, (SENSORS, 5))
    n = ss.array(int, SENSORS)


def median_by_pandas(table):
    d = table.to_pandas()
    d = d[d.value.between(LOW, HIGH)]
    m = d.groupby("sensor").value.transform(lambda v: v.rolling(5, min_periods=1).median())
    return list(zip(d.sensor, m, strict=True))


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


@case(
    "median of the last five good readings",
    readings,
    median_by_pandas,
    state=Smoothing,
    event=READING,
    emits={"sensor": int, "median": float},
)
def rolling_median(state, event, emit):
    s = event.sensor
    if not LOW <= event.value <= HIGH:
        return
    state.window[s, state.n[s] % 5] = event.value
    state.n[s] += 1
    emit(s, median([state.window[s, i] for i in range(min(5, state.n[s]))]))


class Flags(ss.State):
    on = ss.array(int, 8)


def flags_by_numpy(table):
    status = table["status"].to_numpy()
    bits = (status[:, None] >> np.arange(8)) & 1
    return [
        (int(b.sum()), int(np.argmax(c)), int(c.max()))
        for b, c in zip(bits, bits.cumsum(axis=0), strict=True)
    ]


@case(
    "bits of a status word, and the most frequent one",
    readings,
    flags_by_numpy,
    state=Flags,
    event=READING,
    emits={"set": int, "often": int, "count": int},
)
def status_bits(state, event, emit):
    flags = [bool(event.status & (1 << i)) for i in range(8)]
    for i, flag in enumerate(flags):
        if flag:
            state.on[i] += 1
    often = max(range(8), key=lambda i: state.on[i])
    emit(sum(flags), often, state.on[often])


class Kalman(ss.State):
    x = ss.array(float, SENSORS, fill=20.0)
    p = ss.array(float, SENSORS, fill=1.0)


def kalman_by_hand(table):
    x, p = np.full(SENSORS, 20.0), np.ones(SENSORS)
    rows = []
    for s, v in zip(table["sensor"].to_pylist(), table["value"].to_pylist(), strict=True):
        p[s] += 0.01
        if v == v:
            k = p[s] / (p[s] + 4.0)
            x[s], p[s] = x[s] + k * (v - x[s]), (1 - k) * p[s]
        rows.append((s, float(x[s])))
    return rows


@case(
    "a Kalman filter in one dimension",
    readings,
    kalman_by_hand,
    state=Kalman,
    event=READING,
    emits={"sensor": int, "estimate": float},
)
def kalman(state, event, emit, *, q=0.01, r=4.0):
    s = event.sensor
    state.p[s] += q
    if not math.isnan(event.value):
        gain = state.p[s] / (state.p[s] + r)
        state.x[s] += gain * (event.value - state.x[s])
        state.p[s] *= 1 - gain
    emit(s, state.x[s])


class Units(ss.State):
    total = ss.scalar(float)


def celsius(value, unit):
    match unit:
        case "C":
            return value
        case "F":
            return (value - 32) * 5 / 9
        case "K":
            return value - 273.15
    raise ValueError(f"unknown unit {unit}")


def units_by_pandas(table):
    d = table.to_pandas()
    u = d.unit.str.strip().str.upper()
    c = d.value.where(u == "C", ((d.value - 32) * 5 / 9).where(u == "F", d.value - 273.15))
    return [(a, float(b)) for a, b in zip(u, c, strict=True)]


@case(
    "units, written in several ways, to degrees Celsius",
    readings,
    units_by_pandas,
    state=Units,
    event=READING,
    emits={"unit": str, "celsius": float},
)
def to_celsius(state, event, emit):
    unit = event.unit.strip().upper()
    value = celsius(event.value, unit)
    if value == value:
        state.total += value
    emit(unit, value)


class Regression(ss.State):
    n = ss.scalar(int)
    sums = ss.array(float, 5)


def regression_by_numpy(table):
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    return [tuple(map(float, np.polyfit(x[: i + 1], y[: i + 1], 1))) for i in range(2, len(x))]


@case(
    "a line through all points so far",
    readings,
    regression_by_numpy,
    state=Regression,
    event=READING,
    emits={"slope": float, "intercept": float},
)
def regression(state, event, emit):
    x, y = event.x, event.y
    for i, term in enumerate((x, y, x * x, x * y, y * y)):
        state.sums[i] += term
    state.n += 1
    if state.n < 3:
        return
    sx, sy, sxx, sxy, _ = state.sums
    slope = (state.n * sxy - sx * sy) / (state.n * sxx - sx**2)
    emit(slope, intercept=(sy - slope * sx) / state.n)


class Days(ss.State):
    day = ss.scalar(int)
    low = ss.scalar(float, fill=math.inf)
    high = ss.scalar(float, fill=-math.inf)


def days_by_pandas(table):
    d = table.to_pandas().dropna(subset="value")
    g = d.groupby("day", sort=False).value.agg(["min", "max"])
    return [(day, float(a), float(b)) for day, a, b in g.itertuples()][:-1]


@case(
    "lowest and highest of each day, at the day's end",
    readings,
    days_by_pandas,
    state=Days,
    event=READING,
    emits={"day": datetime.date, "low": float, "high": float},
)
def daily_range(state, event, emit):
    if math.isnan(event.value):
        return
    if event.day != state.day:
        if state.day:
            emit(state.day, state.low, state.high)
        state.day = event.day
        state.low = math.inf
        state.high = -math.inf
    state.low = min(state.low, event.value)
    state.high = max(state.high, event.value)


class Battery(ss.State):
    broken = ss.scalar(int)
    lowest = ss.scalar(float, fill=1.0)


def battery_by_hand(table):
    rows, broken, lowest = [], 0, 1.0
    for text in table["payload"].to_pylist():
        if text.startswith("{b"):
            broken += 1
            continue
        lowest = min(lowest, float(text.split(": ")[2].rstrip("}")))
        rows.append((broken, lowest))
    return rows


@case(
    "JSON in a column, some of it broken",
    readings,
    battery_by_hand,
    state=Battery,
    event=READING,
    emits={"broken": int, "lowest": float},
)
def battery(state, event, emit):
    try:
        level: float = json.loads(event.payload)["battery"]
    except ValueError:
        state.broken += 1
        return
    if level < state.lowest:
        state.lowest = level
    emit(state.broken, state.lowest)


class Quantile(ss.State):
    q = ss.scalar(float)
    n = ss.scalar(int)


@case(
    "a quantile by stochastic steps",
    readings,
    None,
    state=Quantile,
    event=READING,
    emits={"q": float},
)
def quantile_step(state, event, emit):
    if math.isnan(event.value):
        return
    state.n += 1
    step = 1 / math.sqrt(state.n)
    state.q += step * (0.9 if event.value > state.q else -0.1)
    if state.n % 10 == 0:
        emit(state.q)


class Alarm(ss.State):
    active = ss.array(bool, SENSORS)
    since = ss.array(int, SENSORS)


def alarms_by_hand(table):
    active, rows = {}, []
    for i, (s, v) in enumerate(
        zip(table["sensor"].to_pylist(), table["value"].to_pylist(), strict=True)
    ):
        if s not in active and v > 27:
            active[s] = i
            rows.append((s, "on", 0))
        elif s in active and v < 22:
            rows.append((s, "off", i - active.pop(s)))
    return rows


@case(
    "alarms with hysteresis",
    readings,
    alarms_by_hand,
    state=Alarm,
    event=READING,
    emits={"sensor": int, "alarm": str, "events": int},
)
def hysteresis(state, event, emit):
    s = event.sensor
    match (state.active[s], event.value):
        case (False, v) if v > 27:
            state.active[s] = True
            state.since[s] = event.sequence
            emit(s, "on", 0)
        case (True, v) if v < 22:
            state.active[s] = False
            emit(s, "off", event.sequence - state.since[s])


class Filled(ss.State):
    last = ss.array(float, SENSORS)
    known = ss.array(bool, SENSORS)


def filled_by_pandas(table):
    d = table.to_pandas()
    f = d.groupby("sensor").maybe.ffill()
    return [(int(s), None if pd.isna(v) else float(v)) for s, v in zip(d.sensor, f, strict=True)]


@case(
    "nulls filled with the sensor's last value",
    readings,
    filled_by_pandas,
    are_none=True,
    state=Filled,
    event=READING,
    emits={"sensor": int, "value": ss.nullable(float)},
)
def fill_forward(state, event, emit):
    s = event.sensor
    if event.maybe is not None:
        state.last[s] = event.maybe
        state.known[s] = True
    emit(s, state.last[s] if state.known[s] else None)


class Covered(ss.State):
    seen = ss.array(bool, (4, 4))


def covered_by_pandas(table):
    d = table.to_pandas()
    cell = np.clip(np.floor(d.x + 2), 0, 3) * 4 + np.clip(np.floor(d.y + 2), 0, 3)
    return [(int(n), bool(n == 16)) for n in (~cell.duplicated()).cumsum()]


@case(
    "cells of a grid that were visited",
    readings,
    covered_by_pandas,
    state=Covered,
    event=READING,
    emits={"cells": int, "all": bool},
)
def coverage(state, event, emit):
    i = int(np.clip(math.floor(event.x + 2), 0, 3))
    j = int(np.clip(math.floor(event.y + 2), 0, 3))
    state.seen[i, j] = True
    cells = sum(sum(row) for row in state.seen)
    emit(cells, all(all(row) for row in state.seen))


class Coldest(ss.State):
    latest = ss.array(float, SENSORS, fill=99.0)


def coldest_by_numpy(table):
    latest = np.full(SENSORS, 99.0)
    rows = []
    for s, v in zip(table["sensor"].to_pylist(), table["value"].to_pylist(), strict=True):
        if v == v:
            latest[s] = v
        rows.append((int(latest.argmin()), round(float(latest.mean()), 2)))
    return rows


@case(
    "the coldest sensor and the mean, by methods of arrays",
    readings,
    coldest_by_numpy,
    state=Coldest,
    event=READING,
    emits={"sensor": int, "mean": float},
)
def coldest(state, event, emit):
    if not np.isnan(event.value):
        state.latest[event.sensor] = event.value
    emit(state.latest.argmin(), round(state.latest.mean(), 2))


class Hottest(ss.State):
    top = ss.array(float, 5, fill=-99.0)


def hottest_by_numpy(table):
    value = table["value"].to_numpy()
    rows = []
    for i in range(len(value)):
        seen = np.sort(np.append(value[: i + 1][~np.isnan(value[: i + 1])], [-99.0] * 5))[::-1]
        rows.append((float(seen[0]), float(seen[4])))
    return rows


@case(
    "the five highest readings: a sorted list put back into a field",
    readings,
    hottest_by_numpy,
    state=Hottest,
    event=READING,
    emits={"first": float, "fifth": float},
)
def hottest(state, event, emit):
    if not math.isnan(event.value):
        state.top[:] = sorted([*state.top, event.value], reverse=True)[:5]
    emit(state.top[0], state.top[4])


class Blocks(ss.State):
    hits = ss.array(int, (4, 4))


def blocks_by_numpy(table):
    x = np.clip(np.floor(table["x"].to_numpy() + 2), 0, 3).astype(int)
    y = np.clip(np.floor(table["y"].to_numpy() + 2), 0, 3).astype(int)
    hits, rows = np.zeros((4, 4), int), []
    for i, j in zip(x, y, strict=True):
        hits[i, j] += 1
        rows.append((int((hits == 0).sum()), int(np.trace(hits))))
    return rows


@case(
    "empty cells of a grid, by itertools.product",
    readings,
    blocks_by_numpy,
    state=Blocks,
    event=READING,
    emits={"empty": int, "diagonal": int},
)
def empty_cells(state, event, emit):
    i = min(max(math.floor(event.x + 2), 0), 3)
    j = min(max(math.floor(event.y + 2), 0), 3)
    state.hits[i, j] += 1
    empty = 0
    for a, b in itertools.product(range(4), range(4)):
        if state.hits[a, b] == 0:
            empty += 1
    emit(empty, sum(state.hits[a, a] for a in range(4)))
