"""A key is read while a batch runs: what is committed, and nobody waits for it."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import specstream as ss

KEYS = 8
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"threads": 1, "horizon": 0},
    "value": {"threads": 2, "horizon": 8, "chunk": 2},
    "eager": {"threads": 2, "horizon": 8, "chunk": 2, "protocol": "eager"},
    "forced": {"threads": 2, "horizon": 8, "chunk": 4, "execution": "speculate"},
    "automatic": {"threads": 2},
}


class Tallies(ss.State):
    n = ss.scalar(int)
    tallies = ss.dict(int, (int, int, str))
    names = ss.dict(str, float)
    odd = ss.set(int)
    last = ss.list(int)


@ss.operator(state=Tallies, event={"key": int, "name": str, "fails": bool}, emits={"n": int})
def tally(state, event, emit):
    """Between two events the parts of a tally add up to 0, and each key and name is there."""
    key = event.key
    first, second, _name = state.tallies[key]
    state.tallies[key] = (first + 1, 7, "wrong")
    del state.names[event.name]
    state.odd.discard(key)
    state.tallies[key + 100] = (1, 1, "wrong")
    total = 0
    for n in range(40):
        total += n * first % 3
    if event.fails:
        raise ValueError("undone")
    del state.tallies[key + 100]
    state.odd.add(key)
    state.names[event.name] = total * 0.0 + 0.5
    state.tallies[key] = (first + 1, second - 1, event.name)
    state.last.append(key)
    if len(state.last) > 3:
        state.last.pop(0)
    state.n += 1
    emit(state.n)


INITIAL: dict[str, Any] = {
    "tallies": dict.fromkeys(range(KEYS), (0, 0, "name 0")),
    "names": {f"name {key}": 0.5 for key in range(KEYS)},
    "odd": set(range(KEYS)),
    "last": [1, 2, 3],
}
COUNT = 3000


def batch(fails: bool = False) -> dict[str, list[Any]]:
    keys = [(n * n + n // 3) % KEYS for n in range(COUNT)]
    return {
        "key": keys,
        "name": [f"name {key}" for key in keys],
        "fails": [fails and n == COUNT // 2 for n in range(COUNT)],
    }


@contextmanager
def running(setting: str) -> Iterator[ss.Engine]:
    """An engine that runs batches in a thread of its own until the end."""
    errors: list[BaseException] = []
    over = threading.Event()

    def run() -> None:
        try:
            mark = engine.savepoint()
            for number in itertools.count(1):
                if over.is_set():
                    break
                if number % 4 == 0:
                    engine.rollback(mark)
                with suppress(ValueError):
                    engine.process(batch(fails=number % 3 == 0))
        except BaseException as error:
            errors.append(error)

    with ss.Engine(tally, initial=INITIAL, **SETTINGS[setting]) as engine:
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield engine
        finally:
            over.set()
            thread.join()
    assert not errors, errors


@pytest.mark.parametrize("setting", list(SETTINGS))
def test_a_key_is_seen_as_it_is_committed(setting: str) -> None:
    seen: set[Any] = set()
    with running(setting) as engine:
        key = 0
        while len(seen) < 60 or engine.stats.events < 2 * COUNT:
            key = (key + 1) % KEYS
            first, second, name = engine.state.tallies[key]
            assert first + second == 0
            assert name in ("name 0", f"name {key}")
            assert engine.state.names.get(f"name {key}") == 0.5
            assert key in engine.state.odd
            assert key + 100 not in engine.state.tallies
            assert len(engine.state.tallies) == len(engine.state.names) == KEYS
            if engine.stats.running:
                seen.add((key, first))


@pytest.mark.parametrize("setting", ["plain", "value"])
def test_all_entries_are_of_one_instant(setting: str) -> None:
    looks = 0
    with running(setting) as engine:
        while looks < 20 or engine.stats.events < 2 * COUNT:
            looks += engine.stats.running
            fields = engine.state.to_dict()
            assert sum(first for first, _, _ in fields["tallies"].values()) == fields["n"]
            # A copy while a batch is in flight; between two it is live, and a batch may begin or be
            # rolled back from one look to the next.
            in_flight = engine.stats.running
            view = engine.state.tallies
            in_flight = in_flight and engine.stats.running
            # Asks for the keys, and for one value after the other.
            total = sum(first for first, _, _ in dict(view).values())
            assert total == sum(first for first, _, _ in view.values()) or not in_flight
            assert len(engine.state.last) == 3
            assert len(engine.state.table("names")) == KEYS


def test_nobody_has_to_have_the_turn_for_a_key() -> None:
    """It is held by a thread that stays in a hook until the key was read."""
    read = threading.Event()
    held = threading.Event()
    waited: list[bool] = []

    def on_commit(notification: ss.Notification) -> None:
        if not held.is_set():
            held.set()
            waited.append(read.wait(60))

    with ss.Engine(
        tally, initial=INITIAL, on_commit=on_commit, horizon=8, execution="speculate"
    ) as engine:
        thread = threading.Thread(target=lambda: engine.process(batch()))
        thread.start()
        assert held.wait(60)
        first, second, _ = engine.state.tallies[3]
        assert first + second == 0
        assert len(engine.state.names) == KEYS
        assert 3 in engine.state.odd
        read.set()
        thread.join()
        assert waited == [True]


def test_a_view_shows_what_is_there_now_before_during_and_after() -> None:
    with ss.Engine(tally, initial=INITIAL) as engine:
        view = engine.state.tallies
        mark = engine.savepoint()
        assert view[0] == (0, 0, "name 0")
        engine.process(batch())
        after = engine.state.to_dict()["tallies"]
        assert view[0] == after[0] != (0, 0, "name 0")
        assert view == after
        engine.rollback(mark)
        assert view[0] == (0, 0, "name 0")
        assert dict(view) == INITIAL["tallies"]
        engine.process(batch())
        engine.close()
        assert view == after
        assert view[1] == after[1]
        assert view.get(100) is None
        assert len(view) == KEYS


def test_a_hook_is_told_that_it_cannot_look() -> None:
    errors: list[Exception] = []
    views: list[Any] = []

    def on_commit(notification: ss.Notification) -> None:
        for look in (lambda: engine.state, lambda: views[0][1], lambda: len(views[0])):
            try:
                look()
            except ss.SpecstreamError as error:
                errors.append(error)

    with ss.Engine(tally, initial=INITIAL, on_commit=on_commit) as engine:
        views.append(engine.state.tallies)
        engine.process({name: column[:1] for name, column in batch().items()})
        assert len(errors) == 3
        assert all("a hook uses the engine" in str(error) for error in errors)


class Passing(ss.State):
    last = ss.dict(str, (int, str), expire_after=100)
    seen = ss.set(int, expire_after=100)


@ss.operator(state=Passing, event={"x": int})
def write(state, event, emit):
    state.last["a"] = (event.x, "b")
    state.seen.add(event.x)


def test_a_key_that_expires_is_read_as_others() -> None:
    with ss.Engine(write) as engine:
        engine.process({"x": [5], "time": [10]}, order_by="time")
        assert engine.state.last["a"] == (5, "b")
        assert 5 in engine.state.seen
        assert engine.state.last == {"a": (5, "b")}
        assert engine.state.table("last").to_pylist() == [
            {"key": "a", "value_0": 5, "value_1": "b"}
        ]
