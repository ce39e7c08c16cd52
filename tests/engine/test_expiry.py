"""Entries that expire: engine, oracle and a model in plain Python agree."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import PATHS, partial_of
from timed import cuts, stream

import specstream as ss

ENGINES = {name: options for name, options in PATHS.items() if options is not None}


class State(ss.State):
    last = ss.dict(str, (int, int), expire_after=5)
    seen = ss.set((str, int), expire_after=11)
    kept = ss.dict(str, int)
    count = ss.scalar(int)


def act(state, event, emit):  # type: ignore[no-untyped-def]
    key, pair = event.user, (event.user, event.act % 3)
    there = key in state.last
    if event.act < 4:
        state.last[key] = (event.act, event.wait)
        state.seen.add(pair)
    elif event.act == 4:
        state.last.setdefault(key, (7, 7))
        state.seen.discard(pair)
    elif event.act == 5:
        state.last.pop(key, (0, 0))
    elif event.act == 6:
        state.seen.add(pair)
        state.last[key] = (1, 1)
        if event.wait > 6:
            raise KeyError(key)
    elif event.act == 7 and there:
        first, second = state.last[key]
        state.kept[key] = first + second
    elif event.act == 8:
        state.count += len(state.last) + len(state.seen)
    elif event.act == 9:
        for one in state.last:
            state.count += state.last[one][1]
    elif event.act == 10 and event.wait == 3:
        state.seen.clear()
    emit(key, there, pair in state.seen, state.count)


operator = ss.operator(
    state=State,
    event={"user": str, "act": int, "wait": int},
    emits={"user": str, "there": int, "seen": int, "count": int},
    name="expires",
)(act)


class Expiring(dict[Any, Any]):
    """A dict whose entries go so long after they were written."""

    def __init__(self, after: int) -> None:
        self.after, self.now = after, 0
        self.times: dict[Any, int] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.times[key] = self.now

    def setdefault(self, key: Any, value: Any = None) -> Any:
        if key not in self:
            self[key] = value
        return self[key]

    def go_on(self, now: int) -> None:
        self.now = now
        for key in [key for key in self if self.times[key] + self.after <= now]:
            del self[key]

    def __deepcopy__(self, memo: Any) -> Expiring:
        made = Expiring(self.after)
        dict.update(made, self)
        made.now, made.times = self.now, self.times.copy()
        return made

    # As a set.

    def add(self, one: Any) -> None:
        self[one] = None

    def discard(self, one: Any) -> None:
        self.pop(one, None)


class Model:
    last: Expiring
    seen: Expiring

    def __init__(self) -> None:
        self.last, self.seen = Expiring(5), Expiring(11)
        self.kept: dict[str, int] = {}
        self.count = 0

    def held(self) -> tuple[Any, ...]:
        return list(self.last.items()), list(self.seen), list(self.kept.items()), self.count


def expected(table: pa.Table) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    state, rows = Model(), []
    for row in table.to_pylist():
        state.last.go_on(row["t"])
        state.seen.go_on(row["t"])
        before = copy.deepcopy(state)
        emitted: list[tuple[Any, ...]] = []
        event = SimpleNamespace(timestamp=row["t"], **row)
        try:
            act(state, event, lambda *values: emitted.append(values))  # noqa: B023
            rows += [(user, int(there), int(seen), count) for user, there, seen, count in emitted]
        except KeyError:
            state = before
    return rows, state.held()


def held(state: Any) -> tuple[Any, ...]:
    return list(state.last.items()), list(state.seen), list(state.kept.items()), int(state.count)


def outputs(engine: ss.Engine, table: pa.Table) -> Iterator[pa.Table]:
    while True:
        try:
            yield engine.process(table, order_by="t", source="src")
            return
        except KeyError as error:
            yield partial_of(error).output
            table = table.slice(partial_of(error).consumed + 1)


def test_the_oracle_is_the_model() -> None:
    for seed in range(3):
        table = stream(seed, 300)
        run = operator.run_sequential(table, order_by="t", source="src", on_error="skip")
        rows, state = expected(table)
        assert [tuple(row.values()) for row in run.output.to_pylist()] == rows
        assert held(run.state) == state


@pytest.mark.parametrize("name", ENGINES)
def test_cut_at_random_and_restored(name: str) -> None:
    for seed in range(2):
        table = stream(50 + seed, 250)
        rng = np.random.default_rng(seed)
        rows, state = expected(table)
        found: list[pa.Table] = []
        snapshot: bytes | None = None
        for first, last in cuts(rng, len(table), 3):
            with ss.Engine(operator, restore=snapshot, **ENGINES[name]) as engine:
                found += outputs(engine, table.slice(first, last - first))
                snapshot = engine.snapshot()
                now = held(engine.state)
        assert [tuple(row.values()) for part in found for row in part.to_pylist()] == rows
        assert now == state
