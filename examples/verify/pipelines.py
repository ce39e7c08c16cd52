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


def _pipeline(name: str, build: Callable[[Any, Any], Any]) -> Any:
    """One that reads ``x`` from its only source."""
    p = ss.Pipeline(name)
    p.sink("rows", build(p, p.source("numbers", NUMBER)))
    return p


def passthrough(modulo: int | None = None) -> Any:
    """Gives out what comes in."""
    return _pipeline("passthrough", lambda p, x: p.add(same, x))


def delayed(modulo: int | None = None) -> Any:
    """The same, one event later."""
    return _pipeline("delayed", lambda p, x: p.add(delay, x))


def window(k: int = 3, modulo: int | None = None) -> Any:
    """The sum of k successive events."""
    return _pipeline("window", lambda p, x: p.add(window_sum(k, modulo), x))


def ones_on_window(k: int = 3, modulo: int | None = None) -> Any:
    """Turns each event into a 1, and sums k of them: always k."""
    return _pipeline("ones_on_window", lambda p, x: p.add(window_sum(k, modulo), p.add(one, x)))


def smaller_than(k: int = 3, modulo: int | None = None) -> Any:
    """Turns each event into a 1, and gives out k of them."""
    return _pipeline("smaller_than", lambda p, x: p.add(first(k), p.add(one, x)))


def product(k: int = 3, modulo: int | None = None, limit: int | None = None) -> Any:
    """The product of the events i and k * i: those in between wait."""

    def build(p: Any, x: Any) -> Any:
        both = p.add(pair(limit), left=p.add(decimate(k), x), right=x)
        return p.add(times(modulo), both)

    return _pipeline("product", build)


def sum_of_doubles(modulo: int | None = None) -> Any:
    """Doubles each event, and sums the stream."""
    return _pipeline("doubles", lambda p, x: p.add(cumulate(modulo), p.add(double(modulo), x)))


def sum_of_odds(
    modulo: int | None = None, limit: int | None = None, condition: str = "even"
) -> Any:
    """Figure 5a: 1, 4, 9, 16 ... on every second event; with ``condition="odd"`` the sums of even
    numbers, 2, 6, 12 ..."""

    def build(p: Any, x: Any) -> Any:
        count = p.add(cumulate(modulo), p.add(one, x), name="count")
        test = is_even if condition == "even" else is_odd
        following = p.add(test, p.add(trim(1), count))
        kept = p.add(keep, p.add(pair(limit), left=count, right=following))
        return p.add(cumulate(modulo), kept, name="sum")

    return _pipeline("sum_of_odds", build)


def squares(modulo: int | None = None, limit: int | None = None) -> Any:
    """Figure 5b: 1, 4, 9, 16 ... on every event."""

    def build(p: Any, x: Any) -> Any:
        count = p.add(cumulate(modulo), p.add(one, x))
        return p.add(times(modulo), p.add(pair(limit), left=count, right=count))

    return _pipeline("squares", build)


def sum_of_evens(modulo: int | None = None) -> Any:
    """Figure 5c: 2, 6, 12, 20 ... on every event."""

    def build(p: Any, x: Any) -> Any:
        evens = p.add(cumulate(modulo), p.add(constant(2), x), name="evens")
        return p.add(cumulate(modulo), evens, name="sum")

    return _pipeline("sum_of_evens", build)


def window_of_trimmed(k: int = 2, modulo: int | None = None, limit: int | None = None) -> Any:
    """The sum of k successive events, put together from the stream and the stream without its first
    1 to k - 1 events."""

    def build(p: Any, x: Any) -> Any:
        total = x
        for number in range(1, k):
            later = p.add(trim(number), x, name=f"later{number}")
            both = p.add(pair(limit), left=total, right=later, name=f"pair{number}")
            total = p.add(plus(modulo), both, name=f"plus{number}")
        return total

    return _pipeline("window_of_trimmed", build)


def chain(modulo: int | None = None, limit: int | None = None) -> Any:
    """Twenty-two processors: seven times, each event is added to the one before it."""

    def build(p: Any, x: Any) -> Any:
        total = p.add(same, x)
        for number in range(1, 8):
            later = p.add(trim(1), total, name=f"later{number}")
            both = p.add(pair(limit), left=total, right=later, name=f"pair{number}")
            total = p.add(plus(modulo), both, name=f"plus{number}")
        return total

    return _pipeline("chain", build)
