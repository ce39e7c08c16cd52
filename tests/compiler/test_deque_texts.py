"""What a deque of an event's own raises says deque, as Python's own does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

import specstream as ss


class Kept(ss.State):
    n = ss.scalar(int)
    f = ss.scalar(float)


def removed(state: Any, event: Any, emit: Any) -> None:
    d = deque([event.s, "x"])
    try:
        d.remove(event.u)
    except ValueError as e:
        emit(str(e))


def found(state: Any, event: Any, emit: Any) -> None:
    d = deque([(event.k, 1), (2, state.n)])
    try:
        emit(f"{d.index((7, 7))}")
    except ValueError as e:
        emit(str(e))


def bounded(state: Any, event: Any, emit: Any) -> None:
    d = deque([state.f, 2.5], maxlen=3)
    try:
        d.remove(0.1)
    except ValueError as e:
        emit(str(e))


def placed(state: Any, event: Any, emit: Any) -> None:
    q = deque([event.k, 5])
    q[-1] += 4
    q[0] = q[1]
    del q[1]
    try:
        q[event.k + 3] = 7
    except IndexError as e:
        emit(f"{e} {len(q)}")


def from_place(state: Any, event: Any, emit: Any) -> None:
    q = deque(event.s.split("a"))
    try:
        q.index("zz", 1)
    except ValueError as x:
        emit(str(x))


def swapped(state: Any, event: Any, emit: Any) -> None:
    q = deque([event.k, 5])
    q[0], q[1] = q[1], q[0]
    q[0] -= 1
    emit(f"{q[0]} {q[1]}")


ROWS = [{"k": 1, "s": "abab", "u": "y"}, {"k": 9, "s": "x", "u": "x"}]


class Plain:
    n = 3
    f = 1.5


@pytest.mark.parametrize(
    "function",
    [removed, found, bounded, placed, from_place, swapped],
    ids=lambda function: function.__name__,
)
def test_it_says_what_python_says(function: Callable[..., None]) -> None:
    expected: list[str] = []
    for row in ROWS:
        function(Plain, type("Event", (), row), expected.append)
    op = ss.operator(state=Kept, event={"k": int, "s": str, "u": str}, emits={"made": str})(
        function
    )
    with ss.Engine(op, initial={"n": 3, "f": 1.5}) as engine:
        assert engine.process(ROWS)["made"].to_pylist() == expected
    ran = op.run_sequential(ROWS, initial={"n": 3, "f": 1.5})
    assert ran.output["made"].to_pylist() == expected
