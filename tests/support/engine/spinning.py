"""Operators that keep their workers busy: long events, endless ones, and two sums that conflict."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import specstream as ss


class Counters(ss.State):
    n = ss.scalar(int)
    left = ss.scalar(int, fill=1000)
    right = ss.scalar(int)
    a = ss.array(int, 32)


@ss.operator(state=Counters, event={"x": int}, emits={"n": int})
def spin_down(state, event, emit):
    """Takes long: x steps of arithmetic, then one step of the counter."""
    h = event.x
    steps = event.x
    while steps > 0:
        h = h * 6364136223846793005 + 1442695040888963407
        steps -= 1
    state.n += 1
    if h == 0:
        state.n += 1
    emit(state.n)


def busy(h, steps):
    """Local work that the optimiser cannot fold."""
    for _ in range(steps):
        h = (h ^ (h >> 7)) * 6364136223846793005
    return h


@ss.operator(state=Counters, event={"x": int}, emits={})
def transfer(state, event, emit):
    """Between two events left + right is always 1000; inside an event it is not."""
    state.left -= event.x
    state.a[busy(event.sequence, 50) % 32] += 1
    state.right += event.x


@ss.operator(state=Counters, event={"x": int}, emits={})
def endless(state, event, emit):
    """Never ends on a negative event."""
    while event.x < 0:
        state.n += 1


@ss.operator(state=Counters, event={"x": int}, emits={})
def swallowing(state, event, emit):
    """The same, and catches all that it raises."""
    while event.x < 0:
        try:
            state.n += 1
            state.a[state.n] += 1
        except Exception:
            continue
        finally:
            state.right = state.n


def flip_and_loop(state, event, emit):
    """Committed state always has left + right == 1000. A mixture of two states does not, and there
    the loop has no end."""
    left = state.left
    h = busy(event.x, 300)
    right = state.right
    while left + right != 1000:
        h = h * 3 + 1
    state.left = left - 1
    state.a[busy(h, 300) % 32] += 1
    state.right = right + 1


flip = ss.operator(state=Counters, event={"x": int}, emits={})(flip_and_loop)


class Seen(ss.State):
    count = ss.scalar(int)
    slots = ss.array(int, 64)


@ss.operator(state=Seen, event={"x": int}, emits={"count": int})
def spin(state, event, emit):
    """Takes x steps, and stores to a word that follows from its place."""
    total = 0
    for i in range(event.x):
        total += (i * i) % 7
    state.slots[event.sequence % 64] += total
    emit(event.x)
