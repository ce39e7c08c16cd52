"""Bools, tuples and others that may be None: engine, oracle and Python agree."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss


class State(ss.State):
    flags = ss.dict(int, bool)
    ints = ss.dict(int, (int, int))
    floats = ss.dict(int, (float, float))
    words = ss.dict(int, (int, str))


EVENT = {"k": int, "x": float}
TABLE = pa.table({"k": [0, 1, 2, 3, 1, 2], "x": [-0.0, 0.0, 1.5, -2.5, -0.0, 4.0]})
PATHS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
]
AGREEING: list[Callable[..., None]] = []


def operator_of(function: Callable[..., None]) -> ss.Operator:
    emits = {"v": float}
    return ss.operator(state=State, event=EVENT, emits=emits)(function)


def agreeing(function: Callable[..., None]) -> Callable[..., None]:
    AGREEING.append(function)
    return function


# ---- is True, is False ----


def more_than_two(k):
    if k == 0:
        return None
    return k > 2


def is_true(b):
    return b is True


def number(b):
    return 1 if b is True else 2 if b is False else 3


@agreeing
def bool_of_a_function(state, event, emit):
    x = more_than_two(event.k)
    emit(1 if x is True else 2 if x is False else 3)
    emit(1 if x is not True else 2)
    emit(1 if x is not False else 2)
    emit(1 if x is None or x is False else 2)
    emit(number(x) + (1 if x == True else 0))  # noqa: E712 - people write it
    match x:
        case True:
            emit(1)
        case False:
            emit(2)
        case _:
            emit(3)


@agreeing
def bool_of_a_dict(state, event, emit):
    v = state.flags.get(1)
    emit(number(v))
    emit(1 if v is True else 2 if v is False else 3)
    emit(1 if is_true(state.flags.get(event.k)) else 0)
    emit(number(state.flags.pop(event.k - 1, None)))
    state.flags[event.k] = event.x > 0


@agreeing
def bool_of_a_loop(state, event, emit):
    best = None
    for i in range(event.k):
        best = i > 1
    emit(1 if best is True else 2 if best is False else 3)
    n = None if event.k == 1 else event.k
    emit(1 if n is True else 0)


# ---- truth ----


def truth(x=None):
    return 1 if x else 0


def truth_by_if(x):
    if not x:
        return 0
    return 2 if x else 3


def either(x, y):
    return 1 if (x and y) or (not x and not y) else 0


@agreeing
def truths_of_a_function(state, event, emit):
    emit(truth(None if event.k == 0 else (1, 2)))
    emit(truth(None if event.k == 0 else True))
    emit(truth(None if event.k == 0 else event.x))
    pair = None if event.k == 1 else (event.k, event.x)
    flag = more_than_two(event.k)
    emit(truth(pair) + truth(flag) + truth())
    emit(truth_by_if(pair) + truth_by_if(flag))
    emit(either(flag, pair))
    emit(truth(state.flags.get(event.k)))
    emit(truth(state.ints.get(event.k)))
    state.flags[event.k] = event.x > 0
    state.ints[event.k] = (1, 2)


@agreeing
def truths_in_a_tuple(state, event, emit):
    flag, other = more_than_two(event.k), more_than_two(event.k - 1)
    emit(any((flag, other)) + 2 * all((flag, other)))
    pair = None if event.k == 1 else (1, 2)
    more = None if event.k == 2 else (1, 2)
    emit(any((pair, more)) + 2 * all((pair, more)))
    for one in (pair, more):
        emit(1 if one else 0)


# ---- what stands for None ----


@agreeing
def tuples_of_a_dict(state, event, emit):
    pair = state.ints.get(event.k) or (0, 0)
    emit(pair[0])
    x, y = state.floats.get(event.k) or (0.0, 1.0)
    emit(x + y)
    n, s = state.words.pop(event.k, None) or (7, "")
    emit(n + (1 if s else 0))
    emit((state.words.get(1) or (1, ""))[0])
    found = state.ints.get(event.k - 1)
    pair = found or (5, 5)
    emit(pair[1])
    state.ints[event.k] = (3, 4)
    state.floats[event.k] = (event.x, 4.0)
    state.words[event.k] = (event.k, "a")


def longer(x=None):
    x = x or []
    x.append(4)
    return len(x)


@agreeing
def lists_or_others(state, event, emit):
    emit(longer(None if event.k == 0 else [event.k]))
    x = [1] if event.k else None
    x = x or []
    x.append(4)
    emit(len(x))


# ---- what is computed of the event alone ----


@agreeing
def negative_zeros(state, event, emit):
    emit(event.x.real)
    emit(event.x.conjugate())
    for one in [float(part) for part in str(event.x).split(",")]:
        emit(one)


# ---- behind a test that leaves ----


def first_of(k):
    return None if k == 0 else k


@agreeing
def behind_a_return(state, event, emit):
    k = first_of(event.k)
    if k is None:
        emit(-1.0)
        return
    state.ints[k] = (k, k + 1)
    emit(state.ints[k][1])


@agreeing
def behind_a_break(state, event, emit):
    for less in range(3):
        k = first_of(event.k - less)
        if k is None or k < 0:
            break
        state.floats[k] = (event.x, event.x + less)
        emit(state.floats[k][1])
    emit(9.0)


@agreeing
def behind_a_continue_and_given_again(state, event, emit):
    total = 0
    for k in range(3):
        found = first_of(k)
        if found is None:
            continue
        state.flags[found] = True
        found = first_of(event.k)
        total += 1 if found is None else found
    emit(total)


@agreeing
def behind_two(state, event, emit):
    k = first_of(event.k)
    other = first_of(event.k - 1)
    if k is None:
        return
    if other is None:
        return
    state.flags[k] = other in state.flags
    emit(k * 10 + other)


@agreeing
def filled_in_the_midst(state, event, emit):
    """The path of a trie: what is new is stored behind its assignment."""
    k, x = 0, 0.0
    for step in range(3):
        found = state.ints.get(k)
        pair = state.floats.get(event.k)
        if pair is None:
            pair = (event.x, 0.5)
            state.floats[event.k] = pair
            x += 0.25
        following = None if found is None else found[1]
        if following is None:
            following = k + event.k + step
            state.ints[k] = (step, following)
        k = following
        x += pair[0]
    emit(x + k)


@pytest.mark.parametrize("function", AGREEING)
def test_all_see_the_same(function: Callable[..., None]) -> None:
    operator = operator_of(function)
    assert witness.assert_agrees(operator, TABLE) == TABLE.num_rows
    expected = run_oracle(operator, TABLE)
    assert not expected.raised
    for path in PATHS:
        assert_identical(run_engine(operator, TABLE, **path), expected)


# ---- what is refused, in words that are true ----


def filled(x, i):
    if not x:
        x = {}
    x[i] = i
    return len(x)


def assigns_an_item(state, event, emit):
    emit(filled(None if event.k == 0 else {5: 1}, event.k))


def appends(state, event, emit):
    emit(longer())


def less(x, y):
    return x < y


def compares_lists(state, event, emit):
    emit(less([1] if event.k else None, [2]))


def compares_tuples(state, event, emit):
    emit(less((1, 2) if event.k else None, (2, 3)))


def goes_through_others(state, event, emit):
    for x in (event.k, 1, None):
        emit(1 if x is None else 2)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (assigns_an_item, "what an item is assigned to may be None here"),
        (appends, "what append is called of may be None here"),
        (compares_lists, "what < takes may be None here"),
        (compares_tuples, "what < takes may be None here"),
        (goes_through_others, "its elements are of different types"),
    ],
)
def test_what_is_refused_says_why(function: Callable[..., None], said: str) -> None:
    with pytest.raises(ss.CompileError) as caught:
        ss.Engine(operator_of(function), horizon=0)
    assert said in str(caught.value)
    assert "Optional" not in str(caught.value)
    assert ("if x is not None:" in str(caught.value)) == ("None here" in said)
