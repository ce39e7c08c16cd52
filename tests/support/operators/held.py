"""A state with containers of every kind, random contents for it, an operator that changes it."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import random
from typing import Any

import numpy as np

import specstream as ss
from specstream.declarations.ordered_set import OrderedSet
from specstream.declarations.state_layout import Field


class Spot(ss.Record):
    price: float
    size: int = 3
    is_open: bool = False
    name: str = ""


class Held(ss.State):
    before = ss.scalar(int, fill=7)
    totals = ss.dict(str, int)
    pairs = ss.dict((str, int), (float, bool, str))
    between = ss.array(np.int8, 5)
    seen = ss.set((int, bool))
    label = ss.scalar(str, fill="none")
    prices = ss.list(float)
    names = ss.list((int, str))
    recent = ss.deque(int, maxlen=5)
    waiting = ss.deque((float, int))
    nearest = ss.priority_queue((float, int))
    spot = ss.scalar(Spot, fill=Spot(0.5, name="first"))
    spots = ss.array(Spot, (2, 3))
    by_number = ss.dict(int, Spot)
    queue = ss.deque(Spot)
    after = ss.scalar(float)


@ss.operator(state=Held, event={"key": str, "x": int}, emits={"total": int, "size": int})
def hold(state, event, emit):
    """Inserts, updates and removes, so that places are used again and rings turn."""
    x = event.x
    state.before += 1
    state.after += x / 4
    state.totals[event.key] = state.totals.get(event.key, 0) + x
    if x % 5 == 0 and event.key in state.totals:
        del state.totals[event.key]
    state.pairs[(event.key, x % 7)] = (x / 8, x % 2 == 0, event.key)
    if x % 3 == 0:
        state.pairs.pop((event.key, x % 4), None)
    state.seen.add((x % 20, x % 2 == 0))
    state.seen.discard((x % 15, True))
    state.prices.append(x * 0.5)
    if len(state.prices) > 12:
        state.prices.pop(0)
    state.recent.append(x)
    state.waiting.append((x * 1.0, x))
    if x % 2 == 0 and len(state.waiting) > 3:
        state.waiting.popleft()
    state.between[x % 5] = x % 100
    state.spot.size += x
    state.spots[x % 2, x % 3].name = event.key
    state.by_number[x % 9] = Spot(x / 2, x, x % 2 == 0, event.key)
    if x % 4 == 0:
        state.by_number[x % 9].price = -0.0
    state.queue.append(Spot(1.0, size=x))
    if len(state.queue) > 6:
        state.queue.popleft()
    emit(state.before, len(state.totals))


def events(seed: int, count: int) -> dict[str, list[Any]]:
    """A table for :data:`hold`."""
    dice = random.Random(seed)
    return {
        "key": [dice.choice(["", "a", "b", "c", "Zoë", f"k{seed}"]) for _ in range(count)],
        "x": [dice.randrange(200) for _ in range(count)],
    }


FLOATS = (0.0, -0.0, 1.5, float("nan"), float("inf"), -(2.0**60))


def value(field: Field, dice: random.Random, most: int) -> Any:
    """A random value of a container."""
    of = field.container
    assert of is not None

    def one(part: Any) -> Any:
        return {
            "int": lambda: dice.choice([0, -1, 2**63 - 1, -(2**63), dice.randrange(50)]),
            "float": lambda: dice.choice(FLOATS),
            "bool": lambda: dice.random() < 0.5,
            "str": lambda: dice.choice(["", "a", "Zoë", f"text {dice.randrange(30)}"]),
        }[part.number]()

    def whole(shape: Any) -> Any:
        parts = tuple(one(part) for part in shape.parts)
        if shape.record is not None:
            return shape.record(*parts)
        return parts if shape.is_tuple else parts[0]

    count = dice.randrange(min(most, of.most) + 1)
    if of.kind == "dict":
        return {whole(of.key): whole(of.value) for _ in range(count)}
    if of.kind == "set":
        return OrderedSet(whole(of.key) for _ in range(count))
    elements = [whole(of.value) for _ in range(count)]
    if of.kind == "deque":
        return collections.deque(elements, of.maxlen)
    if of.kind == "priority_queue":
        return sorted(one for one in elements if repr(one).count("nan") == 0)
    return elements


def values(dice: random.Random, most: int = 40) -> dict[str, Any]:
    """Random values for some containers of :class:`Held`, and for the other fields."""
    made = {
        field.name: value(field, dice, most)
        for field in Held.layout().containers
        if dice.random() < 0.8
    }
    return {"before": dice.randrange(99), "label": dice.choice(["", "x"]), "after": 0.5, **made}


def exactly(given: Any) -> str:
    """What was given, so that it compares by its bits and in its order."""
    return repr(given)
