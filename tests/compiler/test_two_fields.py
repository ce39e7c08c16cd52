"""A name stands for one container of the state: what could be one or another is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import specstream as ss


class Two(ss.State):
    x = ss.dict(int, int)
    y = ss.dict(int, int)
    one = ss.set(int)
    other = ss.set(int)
    word = ss.dict(str, int)


def chosen(state, event, emit):  # type: ignore[no-untyped-def]
    (state.x if event.a % 2 else state.y)[event.a] = 1


def named(state, event, emit):  # type: ignore[no-untyped-def]
    held = state.one
    if event.a > 1:
        held = state.other
    held.add(event.a)


def in_a_loop(state, event, emit):  # type: ignore[no-untyped-def]
    held = state.x
    for i in range(2):
        held[i] = 1
        held = state.y


def either(state, event, emit):  # type: ignore[no-untyped-def]
    held = state.x or state.y
    held[event.a] = 1


def _pick(x, y, first):  # type: ignore[no-untyped-def]
    if first:
        return x
    return y


def returned(state, event, emit):  # type: ignore[no-untyped-def]
    _pick(state.x, state.y, event.a > 1)[event.a] = 1  # type: ignore[no-untyped-call]


def listed(state, event, emit):  # type: ignore[no-untyped-def]
    for held in [state.x, state.y]:
        held[event.a] = 1


def string_key(state, event, emit):  # type: ignore[no-untyped-def]
    state.x["a"] = 1


def number_key(state, event, emit):  # type: ignore[no-untyped-def]
    state.word[event.a] = 1


def tuple_key(state, event, emit):  # type: ignore[no-untyped-def]
    state.x[event.a, 1] = 1


def no_method(state, event, emit):  # type: ignore[no-untyped-def]
    state.x.add(event.a)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (chosen, "one field of the state here and another elsewhere"),
        (named, "one field of the state here and another elsewhere"),
        (in_a_loop, "held is one field of the state here and another elsewhere"),
        (either, "one field of the state here and another elsewhere"),
        (returned, "a function returns one field of the state here and another there"),
        (listed, r"a list cannot hold a dict of the state.*state\.x"),
        (string_key, r"a key of state\.x is declared int and gets string; declare it"),
        (number_key, r"a key of state\.word is declared str and gets int64; declare it"),
        (tuple_key, r"a key of state\.x is declared int and gets a tuple of 2; declare it"),
        (no_method, "a dict of the state has no method 'add'; it has clear, copy, get"),
    ],
)
def test_it_is_refused_with_what_to_write(function: Callable[..., None], said: str) -> None:
    operator = ss.operator(state=Two, event={"a": int}, emits={})(function)
    with pytest.raises(ss.CompileError, match=said):
        ss.Engine(operator, horizon=0)
