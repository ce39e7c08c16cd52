"""What a state shows, given to another engine: it goes on as if nothing had been taken out."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import specstream as ss


class Spot(ss.Record):
    size: int
    name: str
    price: float = 0.5


class Kinds(ss.State):
    count = ss.scalar(int)
    label = ss.scalar(str, fill="none")
    bytes = ss.array(np.uint8, (2, 2))
    names = ss.array(str, 2, fill="-")
    spots = ss.array(Spot, 2)
    texts = ss.set(str)
    pairs = ss.set((int, bool))
    numbers = ss.set(int)
    by_key = ss.dict((str, int), Spot)
    prices = ss.dict(int, float)
    listed = ss.list((str, float))
    recent = ss.deque(Spot, maxlen=3)
    nearest = ss.priority_queue((float, int))
    timers = ss.timers((str, int))


def fire(state, timer, emit):
    emit(f"fired {timer.key[0]}", timer.at, 0.0)
    if len(state.numbers) > 0:
        emit("number", state.numbers.pop(), 0.0)


@ss.operator(
    state=Kinds,
    event={"k": str, "v": int},
    emits={"what": str, "i": int, "f": float},
    on_timer=fire,
)
def kinds(state, event, emit):
    """Emits what each field has, in its order, and takes out what only that order tells."""
    k, v = event.k, event.v
    state.count += 1
    state.label = k
    state.bytes[0, 1] = v
    state.names[v % 2] = k
    state.spots[v % 2].size += v
    state.by_key[k, v % 9] = Spot(v, k)
    state.prices[v % 7] = v / 2
    state.listed.append((k, v / 4))
    state.recent.append(Spot(v, k))
    state.nearest.push((v / 8, v))
    state.timers.set((k, v % 5), event.timestamp + 3)
    if v % 3 or len(state.texts) < 2:
        state.texts.add(k)
        state.pairs.add((v % 9, v > 5))
        state.numbers.add(v % 11)
    else:
        emit(f"text {state.texts.pop()}", 0, 0.0)
        number, flag = state.pairs.pop()
        emit("pair", number, float(flag))
    if v % 4 == 0:
        price, number = state.nearest.pop()
        emit("nearest", number, price)
        state.by_key.popitem()
    for text in state.texts:
        emit(f"has {text}", 0, 0.0)
    for number, flag in state.pairs:
        emit("has", number, float(flag))
    for key, spot in state.by_key.items():
        emit(f"{key[0]} {spot.name}", key[1], spot.price)
    for number, price in state.prices.items():
        emit("price", number, price)
    for key in state.timers:
        emit(f"waits {key[0]}", key[1], 0.0)
    emit(f"{state.label} {state.names[0]} {state.recent[0].name}", state.spots[1].size, 0.0)
    emit(f"{state.listed[0][0]}", int(state.bytes[0, 1]), state.listed[-1][1])


ROWS, CUT = 60, 25
DICE = random.Random(3)
EVENTS: dict[str, list[Any]] = {
    "time": list(range(ROWS)),
    "k": [DICE.choice(["", "é", "b", "a", " c", "d"]) for _ in range(ROWS)],
    "v": [DICE.randrange(30) for _ in range(ROWS)],
}


def between(first: int, end: int) -> dict[str, list[Any]]:
    return {name: values[first:end] for name, values in EVENTS.items()}


@pytest.fixture(scope="module")
def halfway() -> tuple[bytes, dict[str, Any], list[Any]]:
    """A snapshot, what its state shows, and the rows that an uninterrupted run emits from there."""
    with ss.Engine(kinds, threads=1, horizon=0) as engine:
        before = engine.process(between(0, CUT), order_by="time").num_rows
        found = engine.snapshot(), engine.state.to_dict()
    whole = kinds.run_sequential(EVENTS, order_by="time", end=True).output.to_pylist()
    return *found, whole[before:]


def changed_and_back(old: dict[str, Any]) -> dict[str, Any]:
    """Sets that a migration changes in place keep the order of what it leaves."""
    old["numbers"].add(-1)
    old["numbers"] -= {-1}
    old["texts"] |= {"new"}
    old["texts"].discard("new")
    return old


WAYS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "dict": dict,
    "as it is": lambda old: old,
    "copied": lambda old: {
        name: value if isinstance(value, str) else copy.copy(value) for name, value in old.items()
    },
    "deeply": copy.deepcopy,
    "pickled": lambda old: pickle.loads(pickle.dumps(old)),
    "listed": lambda old: old | {name: list(old[name]) for name in ("texts", "pairs", "numbers")},
    "keys": lambda old: old | {"texts": dict.fromkeys(old["texts"]).keys()},
    "changed": changed_and_back,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_field_goes_on_through_migrate(way: str, halfway: Any) -> None:
    snapshot, _, expected = halfway
    options: dict[str, Any] = {"restore": snapshot, "migrate": WAYS[way]}
    with ss.Engine(kinds, threads=1, horizon=0, **options) as engine:
        rows = engine.process(between(CUT, ROWS), order_by="time", end=True)
    assert rows.to_pylist() == expected


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_field_goes_on_through_initial(way: str, halfway: Any) -> None:
    _, shown, expected = halfway
    given = WAYS[way](copy.deepcopy(shown))
    rest = between(CUT, ROWS)
    with ss.Engine(kinds, threads=1, horizon=0, initial=given) as engine:
        assert engine.process(rest, order_by="time", end=True).to_pylist() == expected
    run = kinds.run_sequential(rest, order_by="time", end=True, initial=given)
    assert run.output.to_pylist() == expected


def test_views_are_given_back_in_their_order(halfway: Any) -> None:
    snapshot, shown, _ = halfway
    with ss.Engine(kinds, threads=1, horizon=0, restore=snapshot) as engine:
        view = engine.state.texts
        for given in (
            view,
            view.copy(),
            pickle.loads(pickle.dumps(view)),
            view | set(),
            list(view),
        ):
            with ss.Engine(kinds, threads=1, horizon=0, initial={"texts": given}) as other:
                assert list(other.state.texts) == list(shown["texts"])
    assert list(shown["texts"]) != sorted(shown["texts"])
