"""Operators written by hand, one for each way in which events can depend on each other."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import specstream as ss
from support.operators.container_families import CONTAINERS

SIZE = 64


class Words(ss.State):
    a = ss.array(int, SIZE)
    f = ss.array(float, SIZE, fill=0.5)
    flags = ss.array(bool, SIZE)
    grid = ss.array(int, (4, 8), fill=3)
    n = ss.scalar(int)
    total = ss.scalar(float)
    local = ss.scratch(int, 8)


EVENT = {"key": int, "value": float, "on": bool, "name": str}


def mix(x: int) -> int:
    """A few rounds of a wrapping integer hash."""
    x = (x ^ (x >> 33)) * -49064778989728563
    return x ^ (x >> 29)


def bounded(x: int, size: int) -> int:
    return mix(x) % size


@ss.operator(state=Words, event=EVENT, emits={"before": int, "after": int})
def one_word(state, event, emit):
    """Every event reads and writes the same word: nothing can run in parallel."""
    before = state.n
    state.n = before * 31 + event.key
    emit(before, state.n)


@ss.operator(state=Words, event=EVENT, emits={"at": int, "value": float})
def scattered(state, event, emit):
    """Words chosen by the event: conflicts are rare, and depend on the skew of the keys."""
    at = bounded(event.key, SIZE)
    state.a[at] += 1
    state.f[at] = state.f[at] * 0.75 + event.value
    if event.on:
        state.flags[at] = not state.flags[at]
    if state.a[at] % 3 == 0:
        emit(value=state.f[at], at=at)


@ss.operator(state=Words, event=EVENT, emits={"hops": int, "end": int})
def chase(state, event, emit):
    """Indices read from the state: a run on stale data goes somewhere else."""
    at = bounded(event.key, SIZE)
    hops = 0
    while hops < 12 and state.a[at] != 0:
        at = state.a[at]
        hops += 1
    state.a[at] = bounded(event.key + hops, SIZE)
    emit(hops, at)


@ss.operator(state=Words, event=EVENT, emits={"x": int})
def raises_often(state, event, emit):
    """Events that raise after they have written and emitted; these leave no trace."""
    state.n += 1
    state.a[event.key % SIZE] = state.n
    emit(state.n)
    if event.key % 11 == 0:
        raise ValueError(f"key {event.key} at {state.n}")
    emit(100 // (event.key % 7))
    state.total += math.sqrt(event.value)
    state.grid[event.key % 5, 0] += 1


@ss.operator(state=Words, event=EVENT, emits={"least": int, "most": int, "sum": float})
def views(state, event, emit):
    """Rows, slices, iteration, scratch, min, max, sum and membership."""
    row = state.grid[event.key % 4]
    for position in range(len(row)):
        state.local[position] = row[position] + event.key
        row[position] += position
    upper = state.grid[1:, 2:5]
    upper[0] = upper[1]
    state.a[2:10] = state.a[0:8]
    state.a[0] = event.key % 1000
    state.f[::9] = event.value
    total = 0.0
    for value in state.f:
        total += value
    if event.key % 1000 in state.a:
        total += 1.0
    state.total = total
    emit(min(state.local), max(row), sum(state.f[3:20]))


@ss.operator(state=Words, event=EVENT, emits={"name": str, "times": int, "draw": float})
def names(state, event, emit):
    """Strings as codes, random numbers, the order key."""
    at = bounded(event.name, SIZE)
    state.a[at] += 1
    if event.name == "rare":
        state.n = event.name
    draw = event.random(0) + float(event.random_bits(1) % 5)
    emit(event.name, state.a[at], draw)
    if state.n != 0:
        emit(state.n, event.sequence, float(event.timestamp))


@ss.operator(state=Words, event=EVENT, emits={})
def silent(state, event, emit):
    """Emits nothing."""
    state.n += 1


def shift_down(values, upto, item):
    """Helpers get arrays and change them."""
    for position in range(upto, 0, -1):
        values[position] = values[position - 1]
    values[0] = item


@ss.operator(state=Words, event=EVENT, emits={"item": int})
def recent(state, event, emit):
    """A list that every event shifts: long read and redo logs."""
    if event.on:
        shift_down(state.a, SIZE - 1, event.key)
    emit(state.a[SIZE // 2])


def tick(state, by):
    """A number that depends on all calls before this one."""
    state.n = (state.n * 31 + by) % 1000003
    return state.n


def weigh(first, second, third):
    return first * 100 + second * 10 + third


@ss.operator(state=Words, event=EVENT, emits={"x": int, "y": int, "z": float})
def effects(state, event, emit):
    """Calls that change the state, in every position."""
    state.a[state.n % SIZE] = tick(state, event.key)
    state.a[tick(state, 1) % SIZE] += tick(state, 2) - state.n
    state.grid[tick(state, 3) % 4, tick(state, 4) % 8], state.a[state.n % SIZE] = (
        state.n,
        tick(state, 5),
    )
    if 0 < tick(state, 6) % 8 < tick(state, 7) % 8 <= tick(state, 8) % 8 and event.on:
        state.local[tick(state, 9) % 8 :] = tick(state, 10)
    x = weigh(third=tick(state, 11), first=state.n % 7, second=tick(state, 12))
    if tick(state, 13) % 4 in state.grid[tick(state, 14) % 4]:
        x = min(tick(state, 15), x if tick(state, 16) % 2 == 0 else tick(state, 17), state.n)
    for step in range(tick(state, 18) % 3, tick(state, 19) % 9, tick(state, 20) % 2 + 1):
        x ^= tick(state, step)
    emit(z=float(tick(state, 21)), x=x, y=tick(state, 22) - sum(state.local))


class Narrow(ss.State):
    i8 = ss.array(np.int8, 21, fill=-3)
    i16 = ss.array(np.int16, (3, 5))
    i32 = ss.array(np.int32, 9, share=2)
    u8 = ss.array(np.uint8, 32, share=4)
    u16 = ss.array(np.uint16, 10, fill=65535)
    u32 = ss.array(np.uint32, (2, 3), fill=7)
    u64 = ss.array(np.uint64, 5, share=1)
    f32 = ss.array(np.float32, 11, fill=0.1)
    on = ss.array(np.bool_, 19)
    least = ss.scalar(np.int8, fill=127)
    newest = ss.scalar(np.float32)
    odd = ss.scalar(np.bool_)
    hash = ss.scalar(np.uint64)
    work = ss.scratch(np.int16, 7)
    mark = ss.scratch(np.bool_, 5)
    rest = ss.scratch(np.float32, 3)


def fit(x: int, bits: int) -> int:
    """The low bits of x, as a signed number."""
    half = 1 << (bits - 1)
    return ((x + half) & ((1 << bits) - 1)) - half


@ss.operator(state=Narrow, event=EVENT, emits={"at": int, "small": int, "sum": int})
def narrow_integers(state, event, emit):
    """Every width, signed and unsigned: single elements, rows, slices, reductions."""
    key = mix(event.key)
    at = key % 21
    state.i8[at] = fit(state.i8[at] * 3 + key, 8)
    state.u8[key % 32] ^= key & 255
    state.i16[key % 3, -1 - key % 5] -= key % 3
    state.i32[-(1 + key % 9)] = fit(key, 32)
    state.u16[key % 10] = (state.u16[key % 10] + 1) % 65536
    row = state.u32[key % 2]
    row[key % 3] = key & 4294967295
    state.work[1:4] = state.i8[at % 18 : at % 18 + 3]
    state.i8[3:9] = state.i8[2:8]
    state.i16[0] = state.work[0:5]
    state.least = min(state.i8)
    total = sum(state.u8) + max(state.i16[1]) + sum(state.u32[0])
    for value in state.u16[::3]:
        total += value
    if -3 in state.i8:
        total += 1
    if event.on:
        emit(at, state.least, total + state.work[2])


@ss.operator(state=Narrow, event=EVENT, emits={"x": float, "draw": int, "on": bool})
def narrow_others(state, event, emit):
    """float32, one-byte bools, and uint64."""
    key = mix(event.key)
    at = key % 11
    state.f32[at] = state.f32[at] * 1.5 + event.value
    state.f32[key % 5 : key % 5 + 3] = state.f32[key % 4 : key % 4 + 3]
    state.f32[3] = event.key
    state.rest[key % 3] = 1e30 * event.value * float(key % 100)
    state.newest = state.rest[key % 3] * event.value
    state.on[key % 19] = not state.on[key % 19]
    state.odd = state.on[(key >> 8) % 19] != event.on
    state.mark[key % 5] = state.odd
    bits = event.random_bits(0)
    state.u64[key % 5] = state.u64[key % 5] * np.uint64(31) + bits
    state.hash = state.hash ^ max(state.u64)
    state.u64[key % 3 : key % 3 + 2] = state.hash
    if state.mark[key % 5]:
        emit(min(state.f32) + sum(state.f32), np.int64(sum(state.u64)), True in state.on)
    emit(state.newest, np.int64(state.hash), state.odd)


@ss.operator(state=Narrow, event=EVENT, emits={"x": int})
def out_of_range(state, event, emit):
    """Integers that do not fit, after other stores and rows; these events leave no trace."""
    at = mix(event.key) % 32
    state.u8[at - 1] = at
    emit(state.u8[at])
    state.u8[at] += event.key % 40
    state.least = state.least // 2 - event.key % 3 * 60
    state.work[0] = event.key
    state.i16[at % 3, 0] = state.i16[at % 3, 0] * (event.sequence % 2 * 20) - 1
    emit(state.i16[at % 3, 0])


class Kept(ss.State):
    first = ss.array(int, 8)
    spent = ss.array(int, 8)
    n = ss.scalar(int)


@ss.operator(
    state=Kept,
    event={
        "key": int,
        "when": ss.timestamp("us"),
        "day": datetime.date,
        "price": ss.decimal(3),
        "maybe": ss.nullable(float),
        "note": ss.nullable(str),
    },
    emits={
        "when": ss.timestamp("us", "UTC"),
        "day": datetime.date,
        "price": ss.decimal(3),
        "note": str,
        "x": float,
        "missing": bool,
    },
)
def typed(state, event, emit):
    """Timestamps, dates, decimals and nulls."""
    at = mix(event.key) % 8
    if state.first[at] == 0:
        state.first[at] = event.when
    state.spent[at] += event.price
    missing = event.is_null("maybe") and not event.is_null("note")
    if event.is_null("note"):
        state.n += 1
    if event.note == "rare":
        emit(event.when, event.day + 2**31, 0, event.note, 0.0, True)
    emit(
        when=state.first[at] + state.n,
        day=event.day - state.n,
        price=state.spent[at],
        note=event.note,
        x=event.maybe + 1.0,
        missing=missing,
    )


def emit_day(emit, n, at):
    emit("rare" if at else None, None, n % 1000 + (2**31 if n % 50 == 49 else 0), None, n)


@ss.operator(
    state=Kept,
    event={"key": int, "maybe": ss.nullable(float), "note": ss.nullable(str)},
    emits={
        "note": ss.nullable(str),
        "when": ss.nullable(ss.timestamp("us", "UTC")),
        "day": ss.nullable(datetime.date),
        "price": ss.nullable(ss.decimal(3)),
        "n": int,
        "x": ss.nullable(float),
        "known": ss.nullable(bool),
        "first": ss.nullable(int),
    },
)
def nulls(state, event, emit):
    """Rows with nulls of every type: written out, chosen by a condition, left out."""
    at = mix(event.key) % 8
    state.n += 1
    if state.first[at] == 0:
        emit(n=state.n)
        state.first[at] = state.n
    last = event.key if at > 2 else 7
    emit(
        None if event.is_null("note") else event.note,
        state.n if at % 2 else None,
        n=last,
        x=event.maybe if not event.is_null("maybe") else None if at < 4 else 1.0 / (at - 3),
        price=None,
        first=state.first[at + 1] if at < 7 else None,
        known=at == 3 if at > 1 else None,
    )
    emit_day(emit, event.sequence, at)


@ss.operator(
    state=Words,
    event={"key": int, "name": str, "on": bool, "when": ss.timestamp("ms", "UTC")},
    emits={"label": str, "letters": int, "at": int},
)
def of_the_event(state, event, emit):
    """What Python computes of the event alone, raised exceptions included."""
    at = bounded(event.key, SIZE)
    initial = event.name[:1].upper()
    if initial > "M" and event.name.endswith(("7", "e")):
        state.a[at] += int(event.name[2:])  # of "rare" and "n7" there is none
    label = f"{initial}:{event.key % 100:03}"
    state.f[at] += ss.when(event.when).hour / 2
    if event.on:
        state.n = label
    if label:
        emit(label.lower() if state.a[at] % 2 else event.name, len(label) + state.a[at], at)


FAMILY = [
    typed,
    of_the_event,
    nulls,
    *(one_word, scattered, chase, raises_often, views, names, silent, recent),
    effects,
    *(narrow_integers, narrow_others, out_of_range),
    *CONTAINERS,
]


def events(count: int, seed: int = 0, skew: float = 1.3) -> pa.Table:
    """Events with a skewed key; deterministic."""
    rng = np.random.default_rng(seed)
    keys = np.minimum(rng.zipf(skew, count), 10**12).astype(np.int64)
    others = np.random.default_rng(seed + 1)
    cents = pa.array(others.integers(-(10**9), 10**9, count))
    notes = others.integers(0, 9, count)
    return pa.table(
        {
            "key": keys,
            "value": rng.random(count) * 100,
            "on": rng.random(count) < 0.3,
            "name": pa.array(
                [f"n{key % 40}" if key % 97 else "rare" for key in keys.tolist()], pa.string()
            ),
            "when": pa.array(others.integers(0, 10**12, count)).cast(pa.timestamp("ms", "UTC")),
            "day": pa.array(others.integers(0, 20_000, count).astype(np.int32)).cast(pa.date32()),
            "price": pc.multiply(cents.cast(pa.decimal128(19, 0)), pa.scalar(Decimal("0.01"))),
            "maybe": pa.array(others.random(count), mask=others.random(count) < 0.4),
            "note": pa.array(
                ["rare" if note == 8 else f"note {note}" for note in notes.tolist()],
                pa.string(),
                mask=notes < 3,
            ),
        }
    )
