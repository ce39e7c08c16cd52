"""What containers of the state raise has Python's text, compiled and interpreted."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import specstream as ss


class Containers(ss.State):
    ints = ss.list(int)
    floats = ss.list(float)
    texts = ss.list(str)
    queue = ss.deque(int)
    names = ss.deque(str)
    last = ss.deque(int, maxlen=2)
    counts = ss.dict(str, int)
    seen = ss.set(int)


def misses(state, event, emit):
    """Of what is not there, in containers that are empty and in others."""
    x, name = event.x, event.name
    try:
        state.ints.index(x)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.ints.remove(x)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.ints.pop()
    except IndexError as error:
        emit(f"{error}")
    try:
        state.ints[x] = 3
    except IndexError as error:
        emit(f"{error}")
    try:
        state.floats.index(x / 2)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.floats.remove(x / 2)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.texts.index(name)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.queue.index(x)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.queue.remove(x)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.names.index(name)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.names.remove(name)
    except ValueError as error:
        emit(f"{error}")
    try:
        state.queue.popleft()
    except IndexError as error:
        emit(f"{error}")
    try:
        state.queue[x] = 3
    except IndexError as error:
        emit(f"{error}")
    try:
        del state.queue[x]
    except IndexError as error:
        emit(f"{error}")
    try:
        state.counts.pop(name)
    except KeyError as error:
        emit(f"{error}")
    try:
        state.counts.popitem()
    except KeyError as error:
        emit(f"{error}")
    try:
        state.seen.remove(x)
    except KeyError as error:
        emit(f"{error}")
    state.last.append(x)
    state.last.append(x)
    try:
        state.last.insert(0, x)
    except IndexError as error:
        emit(f"{error}")


def found(state, event, emit):
    """What is there, from one place to another."""
    state.ints.extend([1, 2, 1, event.x])
    state.queue.extend([4, event.x, 4])
    emit(f"{state.ints.index(1, 1)} {state.ints.index(1, -2)} {state.queue.index(4, 1)}")
    try:
        state.ints.index(event.x, 0, 3)
    except ValueError as error:
        emit(f"{error}")
    state.ints.remove(1)
    state.queue.remove(4)
    emit(f"{len(state.ints)} {state.ints[0]} {len(state.queue)} {state.queue[0]}")


@pytest.mark.parametrize("function", [misses, found])
def test_containers_raise_with_the_text_of_python(function: Any) -> None:
    state = SimpleNamespace(
        ints=[], floats=[], texts=[], queue=deque(), names=deque(), last=deque(maxlen=2)
    )
    state.counts, state.seen = {}, set()
    expected: list[str] = []
    function(state, SimpleNamespace(x=7, name="é"), expected.append)
    assert "" not in expected
    table = {"x": [7], "name": ["é"]}
    for interpreted in (False, True):
        operator = ss.operator(
            state=Containers,
            event={"x": int, "name": str},
            emits={"text": str},
            interpreted=interpreted,
        )(function)
        assert operator.run_sequential(table).output["text"].to_pylist() == expected
        with ss.Engine(operator) as engine:
            assert engine.process(table)["text"].to_pylist() == expected


class Arrays(ss.State):
    row = ss.array(int, 4)
    grid = ss.array(float, (2, 3))


def beyond_arrays(state, event, emit):
    x = event.x
    try:
        state.row[x] += 1
    except IndexError as error:
        emit(f"{error}")
    try:
        state.grid[1, -x] = 0.5
    except LookupError as error:
        emit(str(error))
    try:
        emit(f"{state.grid[x][0]}")
    except Exception as error:
        emit(f"{type(error).__name__}: {error}")
    state.row[x] = 1


@pytest.mark.parametrize("interpreted", [False, True])
def test_an_index_beyond_an_array_has_the_text_of_numpy_where_it_is_caught(
    interpreted: bool,
) -> None:
    """Where it leaves the operator, it names the field."""
    state = SimpleNamespace(row=np.zeros(4, int), grid=np.zeros((2, 3)))
    expected: list[str] = []
    with pytest.raises(IndexError):
        beyond_arrays(state, SimpleNamespace(x=7), expected.append)
    operator = ss.operator(
        state=Arrays, event={"x": int}, emits={"text": str}, interpreted=interpreted
    )(beyond_arrays)
    left = "index 7 is out of bounds for axis 0 of state.row, which has length 4"
    with pytest.raises(IndexError, match=left):
        operator.run_sequential({"x": [7]})
    with ss.Engine(operator) as engine, pytest.raises(IndexError, match=left):
        engine.process({"x": [7]})

    def catches(state, event, emit):
        try:
            beyond_arrays(state, event, emit)
        except IndexError as error:
            emit(f"{error}")

    expected.append("index 7 is out of bounds for axis 0 with size 4")
    operator = ss.operator(
        state=Arrays, event={"x": int}, emits={"text": str}, interpreted=interpreted
    )(catches)
    for threads in (1, 2):
        with ss.Engine(operator, threads=threads, horizon=4 * (threads - 1)) as engine:
            assert engine.process({"x": [7] * 9})["text"].to_pylist() == expected * 9
    assert operator.run_sequential({"x": [7]}).output["text"].to_pylist() == expected


class Due(ss.State):
    due = ss.timers(int)


def sets(state, event, emit):
    state.due.set(1, event.timestamp + 5)


def sets_again(state, timer, emit):
    state.due.set(1, timer.at)


@pytest.mark.parametrize("interpreted", [False, True])
def test_a_timer_that_sets_one_too_early_is_told_both_times(interpreted: bool) -> None:
    declared: dict[str, Any] = {"state": Due, "event": {"x": int}, "emits": {}}
    operator = ss.operator(on_timer=sets_again, interpreted=interpreted, **declared)(sets)
    table = {"time": [10, 30], "x": [1, 1]}
    said = r"state.due.set: the timer that fires is for 15 and sets one for 15; expected a later"
    with pytest.raises(ValueError, match=said):
        operator.run_sequential(table, order_by="time")
    for threads in (1, 2):
        engine = ss.Engine(operator, threads=threads, horizon=4 * (threads - 1))
        with engine, pytest.raises(ValueError, match=said):
            engine.process(table, order_by="time")
