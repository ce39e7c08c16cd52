"""A bool of a nullable column, kept in a name: None where it is asked, and else False."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import pytest

import specstream as ss

EVENT = {"v": int, "b": ss.nullable(bool)}
TABLE = {"v": [1, 2, 3, 4], "b": [None, True, False, None]}


class Kept(ss.State):
    flag = ss.scalar(bool)
    flags = ss.array(bool, 3)
    seen = ss.dict(bool, int)
    by_value = ss.dict(int, bool)
    last = ss.list(bool)


def given(e):
    return e.b


def chosen(e):
    return None if e.v == 4 else e.b


def pair(e):
    return e.b, e.v


def number(x):
    return None if x is None else 1 + x


def run(function: Any, of: Any, expected: list[Any]) -> None:
    """A function of the event's kept bool and the state, and what it emits."""

    @ss.operator(state=Kept, event=EVENT, emits={"y": ss.nullable(of)}, name="kept")
    def made(state, event, emit):
        b = event.b
        found = function(state, b, event)
        emit(None if found is None else found)

    got = ss.testing.check(made, TABLE).output["y"].to_pylist()
    assert got == expected


@pytest.mark.parametrize(
    ("function", "of", "expected"),
    [
        (lambda state, b, event: b, bool, [None, True, False, None]),
        (lambda state, b, event: given(event), bool, [None, True, False, None]),
        (lambda state, b, event: chosen(event), bool, [None, True, False, None]),
        (lambda state, b, event: pair(event)[0], bool, [None, True, False, None]),
        (lambda state, b, event: number(b), int, [None, 2, 1, None]),
        (lambda state, b, event: not b, bool, [True, False, True, True]),
        (lambda state, b, event: b + 1, int, [1, 2, 1, 1]),
        (lambda state, b, event: b * 2.5, float, [0.0, 2.5, 0.0, 0.0]),
        (lambda state, b, event: b == False, bool, [True, False, True, True]),  # noqa: E712
        (lambda state, b, event: b & True, bool, [False, True, False, False]),
        (lambda state, b, event: b | (event.v > 3), bool, [False, True, False, True]),
        (lambda state, b, event: True ^ b, bool, [True, False, True, True]),
        (lambda state, b, event: int(b), int, [0, 1, 0, 0]),
        (lambda state, b, event: max(b, event.v > 3), bool, [False, True, False, True]),
        (lambda state, b, event: b + True, int, [1, 2, 1, 1]),
        (
            lambda state, b, event: b if b is not None else event.v > 3,
            bool,
            [False, True, False, True],
        ),
    ],
)
def test_a_null_bool_is_none_when_asked_and_else_false(
    function: Any, of: Any, expected: list[Any]
) -> None:
    run(function, of, expected)


def test_a_null_bool_is_stored_as_false() -> None:
    @ss.operator(state=Kept, event=EVENT, emits={"n": int, "any": bool, "text": str})
    def storing(state, event, emit):
        b = event.b
        is_null = b is None
        state.flag = b
        state.flags[event.v % 3] = b
        state.seen[b] = state.seen.get(b, 0) + 1
        state.by_value[event.v] = b
        state.last.append(b)
        emit(state.seen[b], state.flag or is_null, f"{b}")

    run = ss.testing.check(storing, TABLE)
    assert run.output.to_pylist() == [
        {"n": 1, "any": True, "text": "None"},
        {"n": 1, "any": True, "text": "True"},
        {"n": 2, "any": False, "text": "False"},
        {"n": 3, "any": True, "text": "None"},
    ]
    assert run.state.last == [False, True, False, False]
    assert run.state.seen == {False: 3, True: 1}
