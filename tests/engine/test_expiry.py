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
from support.engine.timed import Expiring, cuts, stream
from support.engine.timed import Model as Timed

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
        state.last.go_on(row["t"], row["t"])
        state.seen.go_on(row["t"], row["t"])
        before = copy.deepcopy(state)
        emitted: list[tuple[Any, ...]] = []
        event = SimpleNamespace(timestamp=row["t"], **row)
        try:
            act(state, event, lambda *values: emitted.append(values))  # type: ignore[no-untyped-call]  # noqa: B023
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


# ---- beside timers, and out of order ----


class Both(ss.State):
    timers = ss.timers(str)
    last = ss.dict(str, int, expire_after=6)
    seen = ss.set(str, expire_after=4)
    count = ss.scalar(int)


def notes(state, event, emit):  # type: ignore[no-untyped-def]
    if event.act < 5:
        state.last[event.user] = event.act
    elif event.act < 9:
        state.seen.add(event.user)
    if event.act % 2:
        state.timers.set(event.user, event.timestamp + event.wait)
    emit(event.user, event.user in state.last, event.user in state.seen, len(state.last))


def looks(state, timer, emit):  # type: ignore[no-untyped-def]
    state.count += len(state.seen)
    emit(timer.key, timer.key in state.last, state.count, len(state.last))
    if timer.key in state.last:
        state.last[timer.key] = 9
        state.timers.set(timer.key, timer.at + 5)
    else:
        state.seen.add(timer.key)


both = ss.operator(
    state=Both,
    event={"user": str, "act": int, "wait": int},
    emits={"user": str, "a": int, "b": int, "c": int},
    on_timer=looks,
)(notes)


@pytest.mark.parametrize("name", ENGINES)
def test_beside_timers(name: str) -> None:
    """Both come in the order of time; what expires when a timer fires has gone before."""
    is_open = ENGINES[name].get("execution") != "speculate"
    for seed in range(2):
        table = stream(70 + seed, 150)
        model = Timed(notes, looks, last=Expiring(6), seen=Expiring(4), count=0)
        for sequence, row in enumerate(table.to_pylist()):
            model.event(row.pop("t"), row.pop("src"), sequence, **row)
        model.end()
        rows = [tuple(map(_plain, row[3:])) for row in model.rows]
        state = model.state
        with ss.Engine(both, sources=[0, 1] if is_open else [], **ENGINES[name]) as engine:
            if is_open and seed:
                for source in (0, 1):
                    engine.submit(
                        table.filter(pa.array(table["src"].to_numpy() == source)),
                        order_by="t",
                        source=source,
                    )
                    engine.advance(source)
                output = engine.poll(timeout=None)
            else:
                output = engine.process(table, order_by="t", source="src", end=True)
            assert [tuple(row.values()) for row in output.to_pylist()] == rows
            assert list(engine.state.last.items()) == list(state.last.items())
            assert list(engine.state.seen) == list(state.seen)
            assert engine.state.timers == {key: at for key, (at, _) in state.timers.held.items()}
        run = both.run_sequential(table, order_by="t", source="src", end=True)
        assert run.output.equals(output)
        assert list(run.state.last.items()) == list(state.last.items())


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def test_what_is_declared() -> None:
    class Bad(ss.State):
        one = ss.dict(int, int, expire_after=0)

    with pytest.raises(ss.DeclarationError, match="expire_after=0; expected an integer"):
        Bad.layout()
    with ss.Engine(operator) as engine, pytest.raises(ss.InputError, match="entries that expire"):
        engine.process({"user": ["a"], "act": [1], "wait": [1]})
    with pytest.raises(ss.ConfigurationError, match="goes by the time of events"):
        ss.Engine(operator, execution="locked")


def test_what_it_begins_with_stays_until_it_is_written() -> None:
    events = {"user": ["a", "b", "b"], "act": [0, 8, 8], "wait": [0, 0, 0], "t": [1, 3, 100]}
    with ss.Engine(operator, initial={"last": {"a": (1, 2), "b": (3, 4)}}) as engine:
        engine.process(events, order_by="t")
        assert engine.state.last == {"b": (3, 4)}


@pytest.mark.parametrize("name", ENGINES)
def test_at_the_last_time_of_all(name: str) -> None:
    """An entry ends at the latest then, as there is no later one."""
    last = 2**63 - 1
    for times in ([1, last], [last - 6, last - 1], [last - 3, last - 1, last], [last, last]):
        users = [f"u{n}" for n in range(len(times))]
        table = pa.table({"user": users, "act": [1] * len(users), "wait": times, "t": times})
        begin: dict[str, Any] = {"initial": {"last": {"z": (1, 2)}}}
        run = operator.run_sequential(table, order_by="t", **begin)
        with ss.Engine(operator, **begin, **ENGINES[name]) as engine:
            assert engine.process(table, order_by="t").equals(run.output)
            assert held(engine.state) == held(run.state)


def test_floats_are_refused_one_by_one_as_well() -> None:
    with ss.Engine(both) as engine:
        with pytest.raises(ss.InputError, match="the time of source 0 has type double: cast it"):
            engine.submit_event(1.5, user="a", act=1, wait=1)
        engine.submit_event(1, user="a", act=1, wait=1)


class Dated(ss.State):
    last = ss.dict(int, int, expire_after=3)
    seen = ss.set(int, expire_after=3)


@ss.operator(
    state=Dated, event={"k": int}, emits={"t": int, "was": int, "there": bool, "n": int, "m": int}
)
def dated(state, event, emit):  # type: ignore[no-untyped-def]
    n, m = len(state.last), len(state.seen)
    emit(event.timestamp, state.last.get(event.k, -1), event.k in state.seen, n, m)
    state.last[event.k] = event.timestamp
    state.seen.add(event.k)
    if event.k == 9:
        raise ValueError(event.k)


BEGINNING = {"last": {1: 5, 2: 6, 3: 7}, "seen": [1, 2, 3]}


def rows_of(engine: ss.Engine, keys: list[int], times: list[int]) -> list[tuple[Any, ...]]:
    output = engine.process({"k": keys, "time": times}, order_by="time")
    return list(zip(*output.to_pydict().values(), strict=True))


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("options", ENGINES.values(), ids=ENGINES)
def test_what_a_state_begins_with_goes_after_its_first_write(
    options: dict[str, Any], size: int
) -> None:
    keys, times = [1, 1, 2, 7, 8, 8, 3], [1000, 1003, 1004, 1005, 5000, 5002, 9000]
    expected = [
        (1000, 5, True, 3, 3),
        (1003, -1, False, 2, 2),
        (1004, 6, True, 3, 3),
        (1005, -1, False, 3, 3),
        (5000, -1, False, 1, 1),
        (5002, 5000, True, 2, 2),
        (9000, 7, True, 1, 1),
    ]
    sequential = dated.run_sequential(
        {"k": keys, "time": times}, order_by="time", initial=BEGINNING
    )
    assert list(zip(*sequential.output.to_pydict().values(), strict=True)) == expected
    with ss.Engine(dated, initial=BEGINNING, **options) as engine:
        rows = []
        for at in range(0, len(keys), size):
            rows += rows_of(engine, keys[at : at + size], times[at : at + size])
        assert rows == expected
        assert engine.state.last == {3: 9000}
        assert engine.state.seen == {3}


@pytest.mark.parametrize("options", ENGINES.values(), ids=ENGINES)
def test_a_batch_that_begins_before_the_end_of_the_last_one(options: dict[str, Any]) -> None:
    """A write is the last one whatever time it has: the entry goes so long after it."""
    with ss.Engine(dated, **options) as engine:
        rows_of(engine, [1, 2], [100, 101])
        assert rows_of(engine, [1, 4, 4], [50, 52, 53]) == [
            (50, 100, True, 2, 2),
            (52, -1, False, 2, 2),
            (53, 52, True, 2, 2),
        ]
        assert engine.state.last == {2: 101, 4: 53}
        assert rows_of(engine, [2, 2], [60, 63]) == [(60, 101, True, 1, 1), (63, -1, False, 0, 0)]


@pytest.mark.parametrize(
    "options",
    [one for one in ENGINES.values() if one.get("execution") != "log_free"],
    ids=str,
)
def test_a_first_write_that_is_undone_is_none(options: dict[str, Any]) -> None:
    beginning = {"last": {1: 5, 9: 6}, "seen": [1, 9]}
    with ss.Engine(dated, initial=beginning, **options) as engine:
        with pytest.raises(ValueError, match="9"):
            rows_of(engine, [9, 1], [10, 11])
        assert rows_of(engine, [1, 1], [40, 42]) == [(40, 5, True, 2, 2), (42, 40, True, 2, 2)]
        assert rows_of(engine, [1], [45]) == [(45, -1, False, 1, 1)]
