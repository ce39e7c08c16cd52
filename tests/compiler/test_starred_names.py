"""What a star in an assignment takes is a list, also of values that are written out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

import specstream as ss

# Some of it is what Python has no answer to.
# mypy: disable-error-code="var-annotated,comparison-overlap,operator"


class Kept(ss.State):
    n = ss.scalar(int)
    pairs = ss.deque((int, int, int), maxlen=8)
    keys = ss.dict((int, int), int)


class Plain:
    def __init__(self) -> None:
        self.n = 0
        self.pairs: deque[Any] = deque(maxlen=8)
        self.keys: dict[Any, int] = {}


ROWS = [{"a": a, "b": b, "on": a > b} for a, b in ((1, 2), (5, 3), (-4, -4), (2**62, 0))]


def difference(x: Any, y: Any) -> Any:
    return x - y


def appended(state: Any, event: Any, emit: Any) -> None:
    _, *rest = event.a, event.b, state.n
    rest.append(7)
    rest[0] += 1
    rest.sort()
    emit(f"{len(rest)} {rest[0]} {rest[-1]}")


def compared(state: Any, event: Any, emit: Any) -> None:
    first, *rest, last = event.a, event.b, state.n, event.a
    is_same = rest == [event.b, state.n]
    more = rest + [1, 2]  # noqa: RUF005
    emit(f"{is_same} {rest < [first, last]} {len(more)}")


def shortened(state: Any, event: Any, emit: Any) -> None:
    _, *rest = event.a, event.b, state.n
    if event.on:
        rest = rest[:1]
    emit(f"{len(rest)}")


def kept(state: Any, event: Any, emit: Any) -> None:
    state.n += 1
    state.pairs.append((event.a, event.b, state.n))
    total = 0
    for first, *rest in state.pairs:
        rest.append(first % 10)
        total += max(rest)
    emit(f"{total}")


def of_several_types(state: Any, event: Any, emit: Any) -> None:
    _, *rest = event.a, event.b / 2, event.on
    emit(f"{rest[0]} {rest[1]} {len(rest)}")


def of_nothing(state: Any, event: Any, emit: Any) -> None:
    first, *rest = (event.a,)
    emit(f"{first} {len(rest)}")


def summed(state: Any, event: Any, emit: Any) -> None:
    _, *rest = event.a, event.b, 3
    (x, y), *others = [(event.a, 1), (event.b, 2)]
    emit(f"{difference(*rest)} {sum(rest)} {x} {y} {others[0][0]}")


@pytest.mark.parametrize(
    "function",
    [appended, compared, shortened, kept, of_several_types, of_nothing, summed],
    ids=lambda function: function.__name__,
)
def test_it_is_what_python_makes_of_it(function: Callable[..., None]) -> None:
    state = Plain()
    expected: list[str] = []
    for row in ROWS:
        function(state, type("Event", (), row), expected.append)
    op = ss.operator(state=Kept, event={"a": int, "b": int, "on": bool}, emits={"made": str})(
        function
    )
    with ss.Engine(op, threads=2, horizon=4) as engine:
        assert engine.process(ROWS)["made"].to_pylist() == expected
    assert op.run_sequential(ROWS).output["made"].to_pylist() == expected


def equal_to_a_tuple(state: Any, event: Any, emit: Any) -> None:
    _, *rest = event.a, event.b, state.n
    emit(rest == (event.b, state.n))


def before_a_tuple(state: Any, event: Any, emit: Any) -> None:
    emit([event.a, state.n] < (event.b, state.n))


def and_a_tuple(state: Any, event: Any, emit: Any) -> None:
    _, *rest = event.a, event.b, state.n
    emit(len(rest + (1, 2)) == 4)  # noqa: RUF005


def as_a_key(state: Any, event: Any, emit: Any) -> None:
    _, *rest = event.a, event.b, state.n
    state.keys[rest] = 1
    emit(True)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (equal_to_a_tuple, "a list is compared with a tuple, .* list"),
        (before_a_tuple, "a list is compared with a tuple"),
        (and_a_tuple, "a list is added to a tuple"),
        (as_a_key, r"a key of state\.keys is declared tuple\[int, int\] and gets list"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_a_list_is_no_tuple(function: Callable[..., None], told: str) -> None:
    op = ss.operator(state=Kept, event={"a": int, "b": int}, emits={"made": bool})(function)
    with pytest.raises(ss.CompileError, match=told):
        ss.Engine(op)
