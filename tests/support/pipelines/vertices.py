"""Operators to make graphs of: each reads and emits the same columns, and does something else."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from collections.abc import Callable
from typing import Any

import numpy as np

import specstream as ss
from specstream.structures import add

ROW: dict[str, Any] = {"x": int, "y": float, "s": str, "n": ss.nullable(int)}
SOURCE: dict[str, Any] = {"x": int, "y": float, "s": str, "n": ss.nullable(int)}

IN_PYTHON: dict[ss.Operator, ss.Operator] = {}
"""Of each operator of this module the same, interpreted."""


def vertex(**declared: Any) -> Callable[[Callable[..., None]], ss.Operator]:
    """An operator, and beside it the one that Python runs as it is written."""

    def made(function: Callable[..., None]) -> ss.Operator:
        one = ss.operator(**declared)(function)
        name = f"{function.__name__}_in_python"
        IN_PYTHON[one] = ss.operator(**declared, name=name, interpreted=True)(function)
        return one

    return made


class Tally(ss.State):
    count = ss.scalar(int)
    last = ss.scalar(float)


class Table(ss.State):
    sums = ss.array(int, 8)
    small = ss.array(np.int16, 5)
    word = ss.scalar(str)
    local = ss.scratch(int, 3)


class Keyed(ss.State):
    counts = ss.dict(int, int, limit=100)
    recent = ss.deque(float, maxlen=4)


class Nothing(ss.State):
    seen = ss.scalar(bool)


@vertex(state=Tally, event={"x": int, "y": float, "s": str}, emits=ROW)
def always(state, event, emit):
    state.count += 1
    state.last = 0.5 * state.last + event.y
    emit((event.x + state.count) % 1000, state.last, event.s, state.count if event.x % 2 else None)


@vertex(state=Tally, event={"x": int, "n": ss.nullable(int)}, emits=ROW)
def sometimes(state, event, emit):
    state.count += 1
    if (event.x * 7 + state.count) % 3 == 0:
        n = -1 if event.is_null("n") else event.n
        emit(event.x + n % 5, float(n), "some", n)
        return
    if state.count % 5 == 0:
        emit(x=1, y=event.random(0), s="fifth")


@vertex(state=Table, event={"x": int, "s": str, "y": float}, emits=ROW)
def several(state, event, emit):
    for k in range(event.x % 4):
        state.sums[(event.x + k) % 8] += k + 1
        state.local[k % 3] += 1
        emit(state.sums[k] % 100 + k, event.y * k, event.s, k)
    state.small[event.x % 5] = event.x % 100
    if event.s == "some":
        state.word = event.s


@vertex(state=Nothing, event={"y": float}, emits=ROW)
def never(state, event, emit):
    if event.y != event.y:
        emit(0, 0.0, "", 0)
    state.seen = True


@vertex(state=Keyed, event={"x": int, "y": float}, emits=ROW)
def keyed(state, event, emit):
    key = event.x % 10
    state.counts[key] = state.counts.get(key, 0) + 1
    state.recent.append(event.y)
    if state.counts[key] > 20:
        del state.counts[key]
        emit(key, sum(state.recent), "twenty", None)


@vertex(state=Tally, event={"x": int}, emits=ROW)
def failing(state, event, emit):
    state.count += event.x
    emit(state.count % 50, 1.0, "fails", 1)
    if event.x % 13 == 4:
        raise ValueError("four")


@vertex(state=Tally, event={"x": int, "y": float}, emits=ROW)
def adding(state, event, emit):
    add(state, "count", event.x % 3)
    if event.y > 0.7:
        emit(event.x, event.integer(0, 10, 1) + event.y, "added", event.x)


@vertex(
    state=Tally,
    inputs={"a": {"x": int, "s": str}, "b": {"x": int, "y": float, "n": ss.nullable(int)}},
    emits=ROW,
)
def both(state, event, emit):
    state.count += 1
    if event.changed("a") and event.changed("b"):
        n = None if event.b.is_null("n") else event.b.n
        emit(event.a.x * 3 + event.b.x, event.b.y, event.a.s, n)
    elif event.known("b") and state.count % 2:
        null = -5 if event.b.is_null("n") else event.b.n
        emit(event.a.x - event.b.x, state.last, "one", null)
    state.last = event.b.y


@vertex(
    state=Keyed,
    inputs={"a": {"x": int}, "b": {"x": int, "y": float}, "c": {"s": str, "n": ss.nullable(int)}},
    emits=ROW,
)
def three(state, event, emit):
    total = event.a.x + event.b.x
    if event.changed("c") and event.c.s == "some":
        emit(total, 3.0, event.c.s, None if event.c.n is None else event.c.n)
    if event.c.n is not None:
        total += event.c.n
    state.counts[total % 7] = total
    state.recent.append(event.b.y)
    if event.changed("a") or not event.known("b"):
        emit(total % 100, float(len(state.recent)), "three")


@vertex(
    state=Table,
    inputs={name: {"x": int} for name in "abcdefgh"},
    emits=ROW,
)
def eight(state, event, emit):
    known = 0
    if event.known("a"):
        known += 1
    if event.known("h"):
        known += 2
    total = event.a.x + 2 * event.b.x + 3 * event.c.x + 4 * event.d.x
    total += 5 * event.e.x + 6 * event.f.x + 7 * event.g.x + 8 * event.h.x
    state.sums[total % 8] += 1
    if event.changed("d"):
        emit(total % 500, event.random(known), "eight", known)


@vertex(event={"x": int, "y": float, "s": str}, emits=ROW)
def passing(event, emit, step=4):
    if event.x % step != 2:
        emit(event.x, event.y + 1.0, event.s, None if event.x % 2 else event.x)


@vertex(inputs={"a": {"x": int, "s": str}, "b": {"y": float}}, emits=ROW)
def pairs(event, emit):
    if event.known("b") and event.changed("a"):
        for k in range(event.a.x % 3):
            emit(event.a.x + k, event.b.y * k, event.a.s)


@vertex(state=Tally, event={"x": int, "y": float}, emits=ROW)
def many(state, event, emit):
    state.count += 1
    if event.x % 11 == 3:
        for k in range(state.count % 20):
            emit(event.x % 7 + k, event.y, "many", k if k % 2 else None)


@vertex(
    state=Table,
    inputs={"a": {"x": int}, "b": {"x": int, "y": float}},
    emits=ROW,
)
def breaking(state, event, emit):
    state.sums[7] += 1
    emit(event.a.x % 100, event.b.y, "breaks", 100 // (event.b.x % 31 - 30))
    state.sums[max(event.a.x % 40 - 31, 0)] += 1  # of eight
    state.small[0] = 1


class Waiting(ss.State):
    timers = ss.timers(int)
    seen = ss.dict(int, float, limit=100)
    fired = ss.scalar(int)


def waited(state, timer, emit):
    state.fired += 1
    if timer.key == 10 and state.fired % 3 == 0:
        raise ValueError("ten")
    emit(timer.key + state.fired, state.seen.get(timer.key, 0.0) + timer.random(1), "waited")
    if timer.key % 4 == 1:  # one timer sets another
        state.timers.set(timer.key + 1, timer.at + 1 + state.fired % 3)
    if timer.key % 5 == 2:
        emit(timer.key, 0.5, "", timer.timestamp - timer.at)


@vertex(state=Waiting, event={"x": int, "y": float}, emits=ROW, on_timer=waited)
def waiting(state, event, emit):
    key = event.x % 12
    state.seen[key] = event.y
    if event.x % 5 == 0:
        state.timers.cancel(key)
    else:  # some for now, some for the past
        state.timers.set(key, event.timestamp + event.x % 7 - 1)
    if event.x % 3 == 0:
        emit(event.x, event.random(1), "now", len(state.timers))


class Silent(ss.State):
    timers = ss.timers((str, int))
    rows = ss.scalar(int)


def is_silent(state, timer, emit):
    word, number = timer.key
    if number > 0:
        state.timers.set((word, number - 1), timer.at + 2)
    emit(timer.sequence % 7 + number, float(timer.at % 50), word, state.rows)


def wait(state, event, emit, number):
    state.rows += 1
    if event.changed("b") and event.b.is_null("n"):
        emit(event.a.x, event.random(2), event.a.s, number % 100)
    if event.changed("a"):
        state.timers.set((event.a.s, event.a.x % 3), event.timestamp + event.a.x % 4)


@vertex(
    state=Silent,
    inputs={"a": {"s": str, "x": int}, "b": {"n": ss.nullable(int)}},
    emits=ROW,
    on_timer=is_silent,
)
def silent(state, event, emit):
    wait(state, event, emit, event.sequence)


@vertex(
    state=Silent,
    inputs={"a": {"s": str, "x": int}, "b": {"n": ss.nullable(int)}},
    emits=ROW,
    on_timer=is_silent,
)
def silent_by_time(state, event, emit):
    wait(state, event, emit, event.timestamp)


TIMED: list[ss.Operator] = [waiting, silent]
# A phase by time has no number.
TIMED_BY_TIME: list[ss.Operator] = [waiting, silent_by_time]

VERTICES: list[ss.Operator] = [
    *(always, sometimes, several, many, never, keyed, adding, passing),
    *(both, three, eight, pairs),
]
RAISING: list[ss.Operator] = [failing, breaking]
# More than one row may come of these: behind a few of them there are thousands for one event.
MULTIPLYING: list[ss.Operator] = [several, many, three, pairs]
