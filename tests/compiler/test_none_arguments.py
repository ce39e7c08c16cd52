"""What may be None where a method or a builtin takes it, and what is raised where it does not."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import heapq
import math
import operator
from collections.abc import Callable
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss


class State(ss.State):
    xs = ss.list(int)
    last = ss.deque(int, maxlen=3)
    all = ss.deque(int)
    d = ss.dict(str, int)
    pairs = ss.dict(str, (int, int))
    on = ss.scalar(bool)
    f = ss.array(float, 3, fill=0.5)


EVENT = {"k": str, "n": int}
TABLE = pa.table({"k": ["a", "b", "a", "b", "a"], "n": [5, 2, 4, 1, 2]})
PATHS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
]
AGREEING: list[Callable[..., None]] = []


def agreeing(function: Callable[..., None]) -> Callable[..., None]:
    AGREEING.append(function)
    return function


def declared(function: Callable[..., None]) -> ss.Operator:
    made: ss.Operator = ss.operator(state=State, event=EVENT, emits={"t": str, "n": int})(function)
    return made


@agreeing
def looks_for_it(state, event, emit):
    w = state.d.get(event.k)
    state.d[event.k] = event.n
    own = [4, event.n]
    state.xs += own
    state.last.extend(own)
    emit("", state.xs.count(w) * 100 + state.last.count(w) * 10 + own.count(w))
    try:
        emit("", state.xs.index(w))
    except ValueError as error:
        emit(str(error), 0)
    try:
        emit("", state.last.index(w, 0))
    except ValueError as error:
        emit(str(error), 0)
    try:
        state.last.remove(w)
    except ValueError as error:
        emit(str(error), len(state.last))
    try:
        own.remove(w)
        state.xs.remove(w)
    except ValueError as error:
        emit(str(error), len(state.xs))
    emit("", own.index(w))  # or the event is not applied


@agreeing
def leaves_it_out(state, event, emit):
    w = state.d.get(event.k)
    state.d[event.k] = event.n
    state.xs.append(event.n)
    state.xs.append(9)
    few = 2 if event.n > 3 else None
    emit("", pow(event.n, 2, w) * 100 + pow(3, event.n, None))
    emit("", round(event.n * 11, w) + round(event.n * 11, None) + round(event.n / 2, None))
    emit("", math.perm(5, w) * 1000 + math.perm(4, None))
    emit("", sum(islice(state.xs, few)) * 100 + sum(islice([1, 2, 4], few, None)))
    emit("", sum(islice(state.xs, few, 3)) * 100 + sum(islice([1, 2, 4], 1, few)))
    for x in heapq.nsmallest(2, state.xs, lambda x: -x):
        emit("largest", x)
    for x in heapq.nlargest(2, state.xs, None):
        emit("largest", x)


@agreeing
def says_what_python_says(state, event, emit):
    w = state.d.get(event.k)
    state.d[event.k] = event.n
    state.xs.append(event.n)
    state.all.append(event.n)
    own = [event.n, 7]
    for at in range(31):
        try:
            r = 0
            if at == 0:
                r = w + event.n
            elif at == 1:
                r = event.n * w
            elif at == 2:
                r = 1 if w < event.n else 2
            elif at == 3:
                r = min(3, w)
            elif at == 4:
                r = sum(own, w)
            elif at == 5:
                r = pow(2, w)
            elif at == 6:
                r = pow(w, 2, 5)
            elif at == 7:
                r = round(w, 1)
            elif at == 8:
                r = divmod(7, w)[0]
            elif at == 9:
                r = math.gcd(w, 2)
            elif at == 10:
                r = math.comb(4, w)
            elif at == 11:
                state.xs[w] = 1
            elif at == 12:
                del state.xs[w]
            elif at == 13:
                r = state.xs.pop(w)
            elif at == 14:
                r = len([0] * w)
            elif at == 15:
                state.all.rotate(w)
            elif at == 16:
                state.xs.insert(w, 1)
            elif at == 17:
                state.all.insert(w, 1)
            elif at == 18:
                r = state.xs.index(event.n, w)
            elif at == 19:
                r = own.index(event.n, 0, w)
            elif at == 20:
                r = state.all[w]
            elif at == 21:
                state.all[w] = 3
            elif at == 22:
                r = own[w]
            elif at == 23:
                r = -w
            elif at == 24:
                r = w**2
            elif at == 25:
                r = sum(islice(state.xs, -event.n % 3 - 2))
            elif at == 26:
                r = sum(islice(own, 0, -event.n % 3 - 2))
            elif at == 27:
                r = sum(islice(own, -1, None))
            elif at == 28:
                heapq.heappush(own, event.n)
                r = 1 if w > own[0] else 2
            elif at == 29:
                r = w // event.n
            else:
                r = event.n << w
            emit("", r)
        except TypeError as error:
            emit(str(error), at)
        except ValueError as error:
            emit(str(error), at)
        except IndexError as error:
            emit(str(error), at)


@agreeing
def is_written_otherwise(state, event, emit):
    pair = state.pairs.get(event.k)
    state.pairs[event.k] = (event.n, 7)
    try:
        emit("", pair[0] + pair[-1])
    except TypeError as error:
        emit(str(error), -1)
    state.xs += [event.n, 1, 2, 3]
    state.xs[1:3] = []
    own = [1, 2, event.n]
    own[1:] = []
    state.f[0] = operator.truediv(operator.add(event.n, 1), 2)
    less = operator.lt(operator.neg(event.n), len(own))
    emit("", operator.mul(len(state.xs), 10) + (1 if less else 0))
    emit("", (lambda u, v: u * len(event.k) + v)(event.n, state.xs[0]) + (lambda: len(own))())


@agreeing
def raises_with_what_it_has(state, event, emit):
    state.last.append(event.n)
    state.all.append(event.n)
    if event.n > 3:
        raise ValueError(f"{state.last} {state.all}", state.last)
    emit("", state.d[event.k] + len(state.last))


@pytest.mark.parametrize("function", AGREEING)
def test_all_see_the_same(function: Callable[..., None]) -> None:
    one = declared(function)
    assert witness.assert_agrees(one, TABLE) == TABLE.num_rows
    expected = run_oracle(one, TABLE)
    for path in PATHS:
        assert_identical(run_engine(one, TABLE, **path), expected)


def test_a_deque_is_shown_with_its_length() -> None:
    texts = [text for _, _, text in run_oracle(declared(raises_with_what_it_has), TABLE).raised]
    assert "deque([5], maxlen=3) deque([5])" in texts[0]


def digits_of_a_float(state, event, emit):
    emit("", int(round(event.n / 3, state.d.get(event.k))))


def too_many_arguments(state, event, emit):
    emit("", heapq.nsmallest(2)[0])


def of_one_less(state, event, emit):
    emit("", int(state.f.std(ddof=1)))


def an_int_for_a_bool(state, event, emit):
    state.on = state.d.get(event.k)


def of_several(state, event, emit):
    emit(operator.add(event.n), 0)


def in_letters(n):
    out = ""
    for value, letters in ((5, "V"), (1, "I")):
        out += letters * (n // value)
        n %= value
    return out


def of_letters(state, event, emit):
    emit("", len(in_letters(event.n)))


REFUSED = [
    (of_one_less, r"std of an array takes nothing in an operator; write x.std\(\)"),
    (an_int_for_a_bool, "field 'on' is declared bool and gets int64"),
    (of_several, r"operator.add\(event.n\) is an operator's function; write x \+ y"),
    (of_letters, r"'out' is assigned in two places, .* @ss.pure above def in_letters"),
    (digits_of_a_float, r"the last argument of round may be None, .*round\(x\) where it is None"),
    (too_many_arguments, r"heapq.nsmallest\(2\) cannot be used in an operator"),
]


@pytest.mark.parametrize(("function", "said"), REFUSED)
def test_what_is_refused_says_why(function: Callable[..., None], said: str) -> None:
    with pytest.raises(ss.CompileError, match=said):
        ss.Engine(declared(function), horizon=0)
