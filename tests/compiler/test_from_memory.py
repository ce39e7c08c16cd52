"""What people write of the state's containers from memory: engine, oracle and Python agree."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss


class Place(ss.Record):
    n: int
    x: float = 0.0


class Kept(ss.State):
    counts = ss.dict(str, int)
    rates = ss.dict(int, float)
    pairs = ss.dict((int, str), (int, float))
    places = ss.dict(str, Place)
    seen = ss.set(int)
    queue = ss.list(int)
    last = ss.deque(int)


EVENT = {"k": str, "i": int, "x": float, "o": ss.nullable(int)}
EMITS = {"n": int, "s": ss.nullable(str)}
PATHS: dict[str, dict[str, Any]] = {
    "plain": {"horizon": 0},
    "log-free": {"execution": "log_free"},
    "value": {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
    "eager": {"threads": 2, "horizon": 4, "chunk": 1, "protocol": "eager"},
}
FROM_MEMORY: list[Callable[..., None]] = []


def operator_of(function: Callable[..., None]) -> ss.Operator:
    return ss.operator(state=Kept, event=EVENT, emits=EMITS)(function)


def from_memory(function: Callable[..., None]) -> Callable[..., None]:
    FROM_MEMORY.append(function)
    return function


@from_memory
def backwards(state, event, emit):
    if event.i == 3:
        state.counts.pop(event.k, 0)
        state.rates.clear()
    state.counts[event.k] = event.i
    state.rates[event.i] = event.x
    for key in reversed(state.counts):
        emit(0, key)
    for key in reversed(state.counts.keys()):
        emit(1, key)
    for n in reversed(state.counts.values()):
        emit(n)
    for key, n in reversed(state.counts.items()):
        emit(n, key)
    emit(next(reversed(state.rates)))
    emit(len(list(reversed(state.rates.items()))))
    state.last.append(event.i)
    for n in reversed(state.last):
        emit(n)


@from_memory
def backwards_through_its_own(state, event, emit):
    mine = {n: n * 2 for n in range(event.i)}
    mine.pop(1, 0)
    mine[event.i % 2] = 7
    for n in reversed(mine):
        emit(n)
    for n, twice in reversed(mine.items()):
        emit(n + twice)
    mine.clear()
    emit(sum(1 for _ in reversed(mine.values())))


@from_memory
def changed_while_going_backwards(state, event, emit):
    if event.i > 2:
        mine = {1: 2, 3: 4}
        for n in reversed(mine):
            mine[n + event.i] = 0
    for key in reversed(state.rates):
        if key == event.i:
            del state.rates[key]
    state.rates[event.i] = event.x


@from_memory
def values_and_items_that_are_there(state, event, emit):
    state.counts[event.k] = event.i
    state.pairs[event.i, event.k] = (event.i, event.x)
    state.places[event.k] = Place(event.i, event.x)
    mine = {event.k: event.x}
    emit(3 in state.counts.values())
    emit((event.k, 3) in state.counts.items())
    emit(("a", event.i) not in state.counts.items())
    emit((2, 0.5) in state.pairs.values())
    emit(((2, "a"), (event.i, event.x)) in state.pairs.items())
    emit(Place(2, 0.5) in state.places.values())
    emit(("a", Place(2, 0.5)) in state.places.items())
    emit(0.5 in mine.values())
    emit(("a", 0.5) in mine.items())


@from_memory
def more_for_a_list(state, event, emit):
    state.queue.append(event.i)
    state.queue *= 2
    state.queue += [event.i, 7]
    state.queue += (event.i, 3)
    state.queue += range(event.i)
    state.last += [event.i]
    state.queue += state.last
    state.queue += state.queue
    emit(sum(state.queue) + len(state.queue))
    if len(state.queue) > 40:
        state.queue.clear()
        state.last.clear()


@from_memory
def updates(state, event, emit):
    state.counts.update(x=1, y=event.i)
    state.counts.update({"z": 2}, x=event.i)
    state.counts.update([(event.k, event.i), ("z", 1)])
    state.counts.update((key, n + 1) for key, n in state.counts.items())
    state.counts.update()
    state.counts |= {event.k: event.i}
    emit(sum(state.counts.values()), event.k)


@from_memory
def sets_of_several(state, event, emit):
    state.seen.update([event.i, 9], {event.i + 1})
    emit(sum(state.seen.union([1], {event.i, 7}, state.seen)))
    emit(sum(state.seen.intersection([1, 2, event.i], {event.i, 1})))
    emit(sum(state.seen.difference([1, 2], (n for n in range(event.i)))))
    emit(len(state.seen.union()) + len(state.seen.intersection()) + len(state.seen.difference()))
    mine = {1, event.i}
    mine.update([2], [3])
    mine.intersection_update([1, 2, 3], {event.i, 2})
    emit(sum(mine) + sum(mine.union({5}, [6])))
    if event.i == 2:
        state.seen.difference_update([event.i], {9})
    if event.i == 4:
        state.seen.intersection_update([event.i, 9, 1], range(20))
    state.seen.update()


@from_memory
def nulls_that_were_tested(state, event, emit):
    o = event.o
    if o is None:
        return
    state.counts[event.k] = o
    state.rates[o] = 0.5
    state.pairs[o, event.k] = (o, 0.5)
    state.queue.append(o)
    emit(state.counts.setdefault(event.k, o) + len(state.rates))


@from_memory
def what_was_there_or_else(state, event, emit):
    n = state.counts.get(event.k)
    if n is None:
        n = event.i
    state.counts[event.k] = n
    state.queue.append(n)
    state.queue[0] = n
    pair = state.pairs.get((0, event.k))
    if pair is None:
        pair = (event.i, 0.5)
    state.pairs[0, event.k] = pair
    emit(n + pair[0])


@from_memory
def what_may_be_none(state, event, emit):
    n = None
    if event.i > 1:
        n = event.i
    if event.i > 2:
        state.queue.append(n)
    else:
        state.counts[event.k] = n
    emit(len(state.queue))


def table() -> pa.Table:
    rng = np.random.default_rng(3)
    n = 60
    return pa.table(
        {
            "k": rng.choice(["a", "b", "c"], n),
            "i": rng.integers(0, 5, n),
            "x": rng.integers(-1, 3, n) / 2,
            "o": pa.array([int(one) or None for one in rng.integers(0, 4, n)], pa.int64()),
        }
    )


@pytest.mark.parametrize("function", FROM_MEMORY, ids=lambda one: one.__name__)
def test_engine_oracle_and_python_agree(function: Callable[..., None]) -> None:
    operator = operator_of(function)
    expected = run_oracle(operator, table())
    for options in PATHS.values():
        if options.get("execution") == "log_free" and expected.raised:
            continue
        assert_identical(run_engine(operator, table(), **options), expected)
    assert witness.assert_agrees(operator, table(), are_none=True) == table().num_rows
    assert expected.output.num_rows or expected.raised


# ---- the texts of errors ----


def changed_dict(d, q, s, i):
    for key in d:
        d["zz"] = i + (key == "")


def changed_set(d, q, s, i):
    for n in s:
        s.add(n + 10)


def changed_deque(d, q, s, i):
    for n in q:
        q.append(n)


def no_such_element(d, q, s, i):
    q.index(i + 50)


def no_such_element_to_remove(d, q, s, i):
    q.remove(i + 50)


def an_empty_set(d, q, s, i):
    s.clear()
    s.pop()


def an_empty_dict(d, q, s, i):
    d.clear()
    d.popitem()


def the_greatest_of_none(d, q, s, i):
    s.clear()
    max(s)


def the_least_of_none(d, q, s, i):
    d.clear()
    min(d.values())


def the_least_of_an_empty_deque(d, q, s, i):
    q.clear()
    min(q)


ERRORS = [
    *(changed_dict, changed_set, changed_deque, no_such_element, no_such_element_to_remove),
    *(an_empty_set, an_empty_dict, the_greatest_of_none, the_least_of_none),
    the_least_of_an_empty_deque,
]


@pytest.mark.parametrize("wrong", ERRORS, ids=lambda one: one.__name__)
def test_errors_have_the_texts_of_python(wrong: Callable[..., Any]) -> None:
    def raises(state, event, emit):
        state.counts[event.k] = event.i
        state.last.append(event.i)
        state.seen.add(event.i)
        wrong(state.counts, state.last, state.seen, event.i)

    with pytest.raises((RuntimeError, ValueError, KeyError)) as of_python:
        wrong({"a": 1}, collections.deque([1]), {1}, 1)
    operator, given = operator_of(raises), table().slice(0, 1)
    for run in (
        lambda: operator.run_sequential(given),
        lambda: ss.Engine(operator, horizon=0).process(given),
    ):
        with pytest.raises(type(of_python.value)) as found:
            run()
        said = str(of_python.value).replace("51", str(given["i"][0].as_py() + 50))
        assert str(found.value) == said


# ---- what cannot be ----


class Waiting(ss.State):
    waits = ss.timers(str)


def test_a_timer_has_no_nulls() -> None:
    def fires(state, timer, emit):
        if not timer.is_null("o"):
            emit(1, timer.key)

    def sets(state, event, emit):
        state.waits.set(event.k, event.i)

    with pytest.raises(ss.CompileError, match=r"a timer has no columns.*it has key, at"):
        ss.operator(state=Waiting, event=EVENT, emits=EMITS, on_timer=fires)(sets)
