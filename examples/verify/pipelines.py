"""The pipelines of a paper on model checking, made of small operators (Bédard and Hallé, *Model
Checking of Stream Processing Pipelines*, TIME 2021, appendix), by their text.

``modulo=N`` has sums and products computed modulo N, as in the paper; without, they are 64-bit
integers. ``limit=Q`` is the length of the queues in which one stream waits for another; one that is
full raises.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import specstream as ss

NUMBER = {"x": int}
BOTH = {"left": int, "right": int}


# ---- processors ----


def reduced(modulo: int | None) -> Callable[[Any], Any]:
    """What is made of a result."""
    if modulo is None:
        return lambda value: value
    return lambda value: value % modulo


@ss.operator(event=NUMBER, emits=NUMBER)
def same(event, emit):
    emit(event.x)


@ss.operator(event=NUMBER, emits=NUMBER)
def one(event, emit):
    emit(1)


@ss.operator(event=NUMBER, emits=NUMBER)
def is_even(event, emit):
    emit(1 - event.x % 2)


@ss.operator(event=NUMBER, emits=NUMBER)
def is_odd(event, emit):
    emit(event.x % 2)


@ss.operator(event=BOTH, emits=NUMBER)
def keep(event, emit):
    """The left one, if the right one is 1."""
    if event.right == 1:
        emit(event.left)


def constant(value: int) -> Any:
    """Turns every event into a number."""

    @ss.operator(event=NUMBER, emits=NUMBER)
    def turn_into(event, emit):
        emit(value)

    return turn_into


def double(modulo: int | None) -> Any:
    """Twice each event."""
    made = reduced(modulo)

    @ss.operator(event=NUMBER, emits=NUMBER)
    def double(event, emit):
        emit(made(2 * event.x))

    return double


def plus(modulo: int | None) -> Any:
    """The sum of two events."""
    made = reduced(modulo)

    @ss.operator(event=BOTH, emits=NUMBER)
    def plus(event, emit):
        emit(made(event.left + event.right))

    return plus


def times(modulo: int | None) -> Any:
    """The product of two events."""
    made = reduced(modulo)

    @ss.operator(event=BOTH, emits=NUMBER)
    def times(event, emit):
        emit(made(event.left * event.right))

    return times


class Counted(ss.State):
    n = ss.scalar(int)


class Last(ss.State):
    x = ss.scalar(int)
    is_there = ss.scalar(bool)


def decimate(k: int) -> Any:
    """One event of k: the first, the one k behind it, and so on."""

    @ss.operator(state=Counted, event=NUMBER, emits=NUMBER)
    def decimate(state, event, emit):
        if state.n == 0:
            emit(event.x)
        state.n = (state.n + 1) % k

    return decimate


def trim(k: int) -> Any:
    """All but the first k events."""

    @ss.operator(state=Counted, event=NUMBER, emits=NUMBER)
    def trim(state, event, emit):
        if state.n == k:
            emit(event.x)
        else:
            state.n += 1

    return trim


def first(k: int) -> Any:
    """The first k events, and none after them."""

    @ss.operator(state=Counted, event=NUMBER, emits=NUMBER)
    def first(state, event, emit):
        if state.n < k:
            state.n += 1
            emit(event.x)

    return first


def cumulate(modulo: int | None) -> Any:
    """The sum of all events so far."""
    made = reduced(modulo)

    @ss.operator(state=Counted, event=NUMBER, emits=NUMBER)
    def cumulate(state, event, emit):
        state.n = made(state.n + event.x)
        emit(state.n)

    return cumulate


def window_sum(k: int, modulo: int | None) -> Any:
    """The sum of the last k events, from the k-th on."""
    made = reduced(modulo)

    class Window(ss.State):
        events = ss.deque(int, maxlen=k)

    @ss.operator(state=Window, event=NUMBER, emits=NUMBER)
    def window_sum(state, event, emit):
        state.events.append(event.x)
        if len(state.events) == k:
            emit(made(sum(state.events)))

    return window_sum


@ss.operator(state=Last, event=NUMBER, emits=NUMBER)
def delay(state, event, emit):
    """Each event when the next one comes."""
    if state.is_there:
        emit(state.x)
    state.x, state.is_there = event.x, True


def pair(limit: int | None) -> Any:
    """The n-th events of two streams, together: who is ahead waits in a queue."""
    room = {} if limit is None else {"limit": limit}

    class Queues(ss.State):
        left = ss.deque(int, **room)
        right = ss.deque(int, **room)

    @ss.operator(state=Queues, inputs={"left": NUMBER, "right": NUMBER}, emits=BOTH)
    def pair(state, event, emit):
        if event.changed("left"):
            state.left.append(event.left.x)
        if event.changed("right"):
            state.right.append(event.right.x)
        if len(state.left) > 0 and len(state.right) > 0:
            emit(state.left.popleft(), state.right.popleft())

    return pair


# ---- pipelines ----


class Graph:
    """Vertices of one pipeline whose names begin alike, so that another one has room beside it."""

    def __init__(self, pipeline: Any, prefix: str = "") -> None:
        self.pipeline, self.prefix = pipeline, prefix

    def add(self, operator: Any, *streams: Any, name: str = "", **inputs: Any) -> Any:
        return self.pipeline.add(
            operator, *streams, name=self.prefix + (name or operator.name), **inputs
        )


Build = Callable[[Graph, Any], Any]
"""Adds vertices behind a stream, and gives the one whose rows come out."""


def whole(name: str, build: Build) -> Any:
    """A pipeline that reads ``x`` from its only source."""
    p = ss.Pipeline(name)
    p.sink("rows", build(Graph(p), p.source("numbers", NUMBER)))
    return p


def of_passthrough(modulo: int | None = None, limit: int | None = None) -> Build:
    return lambda g, x: g.add(same, x)


def of_delay(modulo: int | None = None, limit: int | None = None) -> Build:
    return lambda g, x: g.add(delay, x)


def of_window(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Build:
    return lambda g, x: g.add(window_sum(k, modulo), x)


def of_ones_on_window(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Build:
    return lambda g, x: g.add(window_sum(k, modulo), g.add(one, x))


def of_smaller_than(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Build:
    return lambda g, x: g.add(first(k), g.add(one, x))


def of_product(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Build:
    def build(g, x):
        both = g.add(pair(limit), left=g.add(decimate(k), x), right=x)
        return g.add(times(modulo), both)

    return build


def of_sum_of_doubles(modulo: int | None = None, limit: int | None = None) -> Build:
    return lambda g, x: g.add(cumulate(modulo), g.add(double(modulo), x))


def of_sum_of_odds(
    modulo: int | None = None, limit: int | None = None, condition: str = "even"
) -> Build:
    def build(g, x):
        count = g.add(cumulate(modulo), g.add(one, x), name="count")
        test = is_even if condition == "even" else is_odd
        following = g.add(test, g.add(trim(1), count))
        kept = g.add(keep, g.add(pair(limit), left=count, right=following))
        return g.add(cumulate(modulo), kept, name="sum")

    return build


def of_squares(modulo: int | None = None, limit: int | None = None) -> Build:
    def build(g, x):
        count = g.add(cumulate(modulo), g.add(one, x))
        return g.add(times(modulo), g.add(pair(limit), left=count, right=count))

    return build


def of_sum_of_evens(modulo: int | None = None, limit: int | None = None) -> Build:
    def build(g, x):
        evens = g.add(cumulate(modulo), g.add(constant(2), x), name="evens")
        return g.add(cumulate(modulo), evens, name="sum")

    return build


def of_window_of_trimmed(k: int = 2, modulo: int | None = None, limit: int | None = None) -> Build:
    def build(g, x):
        total = x
        for number in range(1, k):
            later = g.add(trim(number), x, name=f"later{number}")
            both = g.add(pair(limit), left=total, right=later, name=f"pair{number}")
            total = g.add(plus(modulo), both, name=f"plus{number}")
        return total

    return build


def of_chain(modulo: int | None = None, limit: int | None = None) -> Build:
    def build(g, x):
        total = g.add(same, x)
        for number in range(1, 8):
            later = g.add(trim(1), total, name=f"later{number}")
            both = g.add(pair(limit), left=total, right=later, name=f"pair{number}")
            total = g.add(plus(modulo), both, name=f"plus{number}")
        return total

    return build


def passthrough(modulo: int | None = None, limit: int | None = None) -> Any:
    """Gives out what comes in."""
    return whole("passthrough", of_passthrough())


def delayed(modulo: int | None = None, limit: int | None = None) -> Any:
    """The same, one event later."""
    return whole("delayed", of_delay())


def window(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Any:
    """The sum of k successive events."""
    return whole("window", of_window(k, modulo))


def ones_on_window(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Any:
    """Turns each event into a 1, and sums k of them: always k."""
    return whole("ones_on_window", of_ones_on_window(k, modulo))


def smaller_than(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Any:
    """Turns each event into a 1, and gives out k of them."""
    return whole("smaller_than", of_smaller_than(k))


def product(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Any:
    """The product of the events i and k * i: those in between wait."""
    return whole("product", of_product(k, modulo, limit))


def sum_of_doubles(modulo: int | None = None, limit: int | None = None) -> Any:
    """Doubles each event, and sums the stream."""
    return whole("sum_of_doubles", of_sum_of_doubles(modulo))


def sum_of_odds(
    modulo: int | None = None, limit: int | None = None, condition: str = "even"
) -> Any:
    """Figure 5a: 1, 4, 9, 16 ... on every second event; with ``condition="odd"`` the sums of even
    numbers, 2, 6, 12 ..."""
    return whole("sum_of_odds", of_sum_of_odds(modulo, limit, condition))


def squares(modulo: int | None = None, limit: int | None = None) -> Any:
    """Figure 5b: 1, 4, 9, 16 ... on every event."""
    return whole("squares", of_squares(modulo, limit))


def sum_of_evens(modulo: int | None = None, limit: int | None = None) -> Any:
    """Figure 5c: 2, 6, 12, 20 ... on every event."""
    return whole("sum_of_evens", of_sum_of_evens(modulo))


def window_of_trimmed(k: int = 2, modulo: int | None = None, limit: int | None = None) -> Any:
    """The sum of k successive events, put together from the stream and the stream without its first
    1 to k - 1 events."""
    return whole("window_of_trimmed", of_window_of_trimmed(k, modulo, limit))


def chain(modulo: int | None = None, limit: int | None = None) -> Any:
    """Twenty-two processors: seven times, each event is added to the one before it."""
    return whole("chain", of_chain(modulo, limit))


# ---- two side by side (Figure 4) ----


@ss.operator(inputs={"left": NUMBER, "right": NUMBER}, emits=NUMBER)
def differ_at_once(event, emit):
    """A row where one of two streams has an event and the other has not the same."""
    if event.changed("left") != event.changed("right"):
        emit(0)
    elif event.changed("left") and event.left.x != event.right.x:
        emit(1)


@ss.operator(event=BOTH, emits=NUMBER)
def differ(event, emit):
    """A row where the two are not the same."""
    if event.left != event.right:
        emit(1)


def side_by_side(one: Build, other: Build, rows: str = "stepwise", limit: int | None = None) -> Any:
    """Both behind one source; a row comes out where they differ."""
    p = ss.Pipeline("side_by_side")
    x = p.source("numbers", NUMBER)
    left, right = one(Graph(p, "old_"), x), other(Graph(p, "new_"), x)
    if rows == "stepwise":
        p.sink("rows", p.add(differ_at_once, left=left, right=right))
    else:
        p.sink("rows", p.add(differ, p.add(pair(limit), left=left, right=right, name="rows")))
    return p


# ---- behind another system (4.3) ----


def system(k: int, is_wrong: bool = False) -> Any:
    """Another system: whatever it is told to do, it says how often it was told yes in the last k
    steps. The wrong one forgets to count the step before the last."""

    class Steps(ss.State):
        told = ss.deque(bool, maxlen=k)

    @ss.operator(state=Steps, event={"turn": bool}, emits={"a": bool, "b": int})
    def system(state, event, emit):
        state.told.append(event.turn)
        count = 0
        for at in range(len(state.told)):
            if state.told[at] and not (is_wrong and at == len(state.told) - 2):
                count += 1
        emit(event.turn, count)

    return system


def counts_last(k: int) -> Any:
    """A monitor: a row wherever b is not the number of times that a was true in the last k events
    (Figure 2b)."""

    class Window(ss.State):
        ones = ss.deque(int, maxlen=k)

    @ss.operator(state=Window, event={"a": bool, "b": int}, emits={"expected": int, "b": int})
    def counts_last(state, event, emit):
        state.ones.append(1 if event.a else 0)
        expected = sum(state.ones)
        if event.b != expected:
            emit(expected, event.b)

    return counts_last


def watched(k: int = 3, wrong: bool = False) -> Any:
    """The system with its monitor: its input is its free choices, its rows are violations."""
    p = ss.Pipeline("watched")
    choice = p.source("choice", {"turn": bool})
    p.sink("violations", p.add(counts_last(k), p.add(system(k, wrong), choice)))
    return p


class Lock(ss.State):
    locked = ss.scalar(bool, fill=True)
    open = ss.scalar(bool)


def door(wrong: bool = False) -> Any:
    """A door with a lock, and a monitor: it is never open and locked. The wrong one can be locked
    while it is open."""

    @ss.operator(
        state=Lock, event={"turn": bool, "push": bool}, emits={"locked": bool, "open": bool}
    )
    def lock(state, event, emit):
        if event.turn and (wrong or not state.open):
            state.locked = not state.locked
        if event.push and not state.locked:
            state.open = not state.open
        emit(state.locked, state.open)

    @ss.operator(event={"locked": bool, "open": bool}, emits={"locked": bool})
    def never_both(event, emit):
        if event.locked and event.open:
            emit(event.locked)

    p = ss.Pipeline("door")
    choices = p.source("choices", {"turn": bool, "push": bool})
    p.sink("violations", p.add(never_both, p.add(lock, choices)))
    return p


def silent(rows):
    """No row comes out."""
    return len(rows) == 0
