"""Interpreted operators that use all there is of fields, containers, records and timers."""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

import specstream as ss


class Order(ss.Record):
    price: float
    quantity: int
    tag: str = "x"


class Everything(ss.State):
    counts = ss.dict(str, int)
    pairs = ss.set((int, str), limit=1000)
    lately = ss.list(int, limit=30)
    window = ss.deque(float, maxlen=7)
    best = ss.priority_queue((float, int))
    orders = ss.array(Order, 5)
    last = ss.scalar(Order)
    by_key = ss.dict(int, Order)
    book = ss.list(Order)
    timers = ss.timers(int)
    scratch = ss.scratch(int, 4)
    fresh = ss.dict(int, int, expire_after=50)
    weights = ss.array(float, (3, 4))
    small = ss.array(np.int8, 9)
    single = ss.array(np.float32, 5)
    large = ss.array(np.uint64, 2)
    flags = ss.array(np.bool_, 6)
    names = ss.array(str, 4)
    total = ss.scalar(float)


def on_timer(state, timer, emit):
    emit("timer", timer.key, float(timer.at) + timer.random(1))
    state.counts["fired"] = state.counts.get("fired", 0) + 1
    if timer.key % 3 == 0:
        state.timers.set(timer.key + 1, timer.at + 13)


def _arrays(state, event):
    k = event.k
    state.weights[k % 3] += np.array([1.0, 2.0, 3.0, 4.0]) * event.x
    state.weights[:, 1] = state.weights[:, 0] - 1
    state.weights[0, ::2] = [event.x, k]
    state.total += float(np.linalg.norm(state.weights @ state.weights.T))
    state.small[k % 9] = k % 100
    state.small[2:5] = state.small[5:8]
    state.single[k % 5] = event.x / 3
    state.large[k % 2] = 2**64 - 1 - k
    state.flags[k % 6] = not state.flags[(k + 1) % 6]
    state.names[k % 4] = event.name + state.names[(k + 1) % 4][:3]


@ss.operator(
    state=Everything,
    event={"time": int, "k": int, "x": float, "name": str, "maybe": ss.nullable(float)},
    emits={"what": str, "number": int, "value": ss.nullable(float)},
    interpreted=True,
    on_timer=on_timer,
)
def everything(state, event, emit):
    k = event.k
    state.counts[event.name] = state.counts.get(event.name, 0) + k
    if k % 5 == 0:
        state.counts.pop(event.name)
    state.pairs.add((k % 11, event.name))
    if k % 6 == 0:
        state.pairs -= {(k % 11, event.name)}
    if len(state.lately) < 25:
        state.lately.append(k)
    else:
        state.lately.sort()
        del state.lately[3:10]
        state.lately[0:2] = [1, 2, 3]
    state.window.append(event.x)
    if k % 4 == 0:
        state.window.rotate(2)
    state.best.push((event.x, k))
    if len(state.best) > 12:
        emit("best", state.best.pop()[1])
    order = Order(event.x, k)
    state.orders[k % 5] = order
    order.quantity += 1  # which is in the state by now
    state.last.price += 1
    state.orders[(k + 1) % 5].quantity = k
    state.by_key[k % 13] = Order(1.0, 2, event.name)
    found = state.by_key[k % 13]
    found.quantity += k
    if k % 7 == 0:
        del state.by_key[k % 13]
        found.quantity = 0  # which is not any more
    state.book.insert(0, Order(event.x, k))
    oldest = state.book[-1]
    if len(state.book) > 6:
        state.book.sort(key=lambda one: one.quantity)
        gone = state.book.pop(2)
        oldest.quantity += 1
        emit("gone", gone.quantity, gone.price)
    state.timers.set(k % 20, event.time + k % 17)
    if k % 9 == 0:
        state.timers.cancel(k % 4)
    state.fresh[k % 10] = k
    emit("fresh", len(state.fresh), event.maybe)
    for i, value in enumerate(state.counts.values()):
        state.scratch[i % 4] += value
    emit(list(state.counts)[-1] if state.counts else "none", state.scratch[2])
    _arrays(state, event)
    if k % 31 == 30:
        raise ValueError(f"no {k}")
    emit(number=event.integer(0, 1000, 1), what="drawn", value=event.random(2) + event.normal(3))


def stream(count: int, seed: int) -> pa.Table:
    """Events in the order of their times, some of which are equal and some far apart."""
    rng = random.Random(seed)
    time, rows = 0, []
    for at in range(count):
        time += rng.choice([0, 1, 2, 30, 70]) if at % 10 == 0 else rng.choice([0, 1])
        maybe = None if rng.random() < 0.3 else rng.random()
        name = rng.choice("abcdefg")
        rows.append(
            {"time": time, "k": rng.randrange(100), "x": rng.random(), "name": name, "maybe": maybe}
        )
    return pa.Table.from_pylist(rows)
