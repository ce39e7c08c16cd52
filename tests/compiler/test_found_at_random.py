"""What random programs found, made small: engine, oracle and Python agree."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss

LEVELS = [0, 2, 5]


class State(ss.State):
    a = ss.array(int, 4, fill=2)
    f = ss.array(float, 4, fill=0.5)
    q = ss.scratch(np.uint8, 3)
    n = ss.scalar(int)


PATHS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
]
EVENT = {"what": int, "i": int, "x": ss.nullable(float), "s": str}


def agree(
    function: Callable[..., None], cases: int, raises: set[str], by_python: bool = True
) -> None:
    """Of the cases, each with an i of 0 and of 2; all see the same."""
    operator = ss.operator(state=State, event=EVENT, emits={"y": float})(function)
    table = pa.table(
        {
            "what": [*range(cases)] * 2,
            "i": [0] * cases + [2] * cases,
            "x": [None] * cases + [2.5] * cases,
            "s": ["a", "b"] * cases,
        }
    )
    if by_python:
        assert witness.assert_agrees(operator, table) == table.num_rows
    expected = run_oracle(operator, table)
    assert {kind for _, kind, _ in expected.raised} == raises
    for path in PATHS:
        assert_identical(run_engine(operator, table, **path), expected)


def operands(state, event, emit):
    x = None
    n = None
    if event.i > 0:
        x = 2.5
        n = event.i
    match event.what:
        case 0:
            emit(np.minimum(state.f, x)[1])
        case 1:
            emit((x * state.f - x).sum())
        case 2:
            emit((state.f < x).sum())
        case 3:
            state.f[:] += x
        case 4:
            state.f[1:].fill(x)
        case 5:
            made = state.f * 2.0
            made *= x
            emit(made[0])
        case 6:
            emit(divmod(x, 2)[0] + divmod(n, 2)[1])
        case 7:
            emit(sum(range(n)))
        case 8:
            emit(event.integer(0, n, 1) + event.choice(n, 1))
        case 9:
            emit(len([1.0] * n))
        case 10:
            emit(math.frexp(x)[0] + math.modf(x)[1])
    emit(-1.0)


def test_none_where_a_number_is_needed_raises_in_each_operation() -> None:
    agree(operands, 11, {"TypeError"})


def nulls(state, event, emit):
    """Of a column that is null, where that is not asked, they have 0."""
    x = event.x
    if x is None:
        emit(-1.0)
    state.f[:] += x
    state.f[:2].fill(x)
    emit((state.f * x).sum() + np.maximum(state.f, x)[0] + divmod(x, 2)[0] + (state.f == x).sum())


def test_a_null_that_is_kept_is_a_zero_in_arrays() -> None:
    agree(nulls, 2, set(), by_python=False)


def slices(state, event, emit):
    n = None if event.i == 0 else event.i
    xs = [1, 2, 3, 4]
    emit(sum(state.a[:n]) + sum(state.a[n:]) * 10 + len(state.a[n::-1]) * 100 + len(xs[:n:-2]))
    emit(sum(xs[:n]) + sum(xs[n:]) * 10 + sum(xs[n::-1]) * 100 + sum(xs[:n:-1]) * 1000)
    state.a[:n] = 3
    xs[n:] = [7]
    ys = xs[:]
    del ys[n:]
    emit(sum(state.a) + sum(xs) * 100 + len(ys) * 10000)


def test_a_bound_of_a_slice_that_is_none_is_the_end() -> None:
    agree(slices, 2, set())


def held(state, event, emit):
    n = None if event.i == 0 else event.i
    xs, of = [0, 2], {0: 1, 2: 5}
    emit(int(n in xs) + 2 * int(n not in {0, 3}) + 4 * int(n in of) + 8 * int(n in of))
    emit(int(n in LEVELS))


def test_none_is_in_no_list() -> None:
    agree(held, 1, set())


def in_values(state, event, emit):
    of = {0: 1, 2: 5}
    emit(int(event.i in of.values()) + 2 * int((event.i, 5) in of.items()))


def test_the_sequential_run_knows_what_is_among_values() -> None:
    """Compiled code refuses it."""
    operator = ss.operator(state=State, event={"i": int}, emits={"y": float})(in_values)
    found = run_oracle(operator, pa.table({"i": [0, 1, 2, 5]}))
    assert found.output["y"].to_pylist() == [0.0, 1.0, 2.0, 1.0]


def unknown_direction(state, event, emit):
    n = None if event.i == 0 else event.i
    emit(len(state.a[n :: event.what]))


def compared(state, event, emit):
    x = None if event.i == 0 else 0.5
    emit((state.f == x).sum())


def clipped(state, event, emit):
    high = None if event.i == 0 else 0.5
    emit(np.clip(state.f, 0.0, high)[0])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (clipped, "no bound to NumPy"),
        (unknown_direction, "a step that is not known"),
        (compared, "test it for None first"),
    ],
)
def test_what_none_would_mean_is_refused(function: Callable[..., None], message: str) -> None:
    operator = ss.operator(state=State, event=EVENT, emits={"y": float})(function)
    with pytest.raises(ss.CompileError, match=message):
        ss.Engine(operator, horizon=0).close()


words = {"A", "B"}
odd = {1, 3, 5}


def sets(state, event, emit):
    """A set of the module on one side, which is of a class of its own in the oracle."""
    mine = {1, event.i, 3}
    emit(int(odd > mine) + 2 * int(odd >= {1}) + 4 * int(mine < odd))
    emit(int({1, 3, 5, 7} > odd) + 2 * int(odd <= {5, 3, 1}))
    emit(int(words > {"A"}) + 2 * int({"A", "B"} >= words))


def test_sets_of_a_module_compare_with_those_of_the_event() -> None:
    agree(sets, 2, set())


def deletes(state, event, emit):
    of = {"A": 1, "C": 2}
    del of[event.s.upper()]
    emit(len(of))


def test_what_del_removes_may_be_what_python_computes() -> None:
    agree(deletes, 2, {"KeyError"})


def extremes(state, event, emit):
    emit(max(event.i, state.n, 7, key=lambda one: one % 5))
    emit(min(state.f[0], -0.25, state.f[1] * event.what, key=abs))
    emit(len(max(event.s, "", "ccc", key=len)))


def test_max_of_several_values_takes_a_key() -> None:
    agree(extremes, 2, set())


def ranges(state, event, emit):
    emit(sum(range(event.i)) + max(range(5 - event.i)) + min(reversed(range(1, 9, 3))))


def test_sum_and_its_like_go_through_ranges() -> None:
    agree(ranges, 2, set())


def widened(state, event, emit):
    """What is made of a narrow field holds numbers."""
    made = np.maximum(state.q, state.a[:3])
    made[1] = 1000 + event.i
    made.fill(made[1] * 3)
    copied = state.q.copy()
    copied[0] = -1
    emit(made.sum() + copied[0])


def test_an_array_of_the_event_is_not_narrow() -> None:
    agree(widened, 2, set())


# ---- what people found who had only the guide ----

HIGH = ("low", "high of a tuple")
ROWS = (("z of a row", 1), ("y of a row", 2))


class Places:
    NAMES = ("k1 of a class", "k2 of a class")


def named(at, names=("a default", "another default")):
    return names[at]


class Texts(ss.State):
    n = ss.scalar(int)
    name = ss.scalar(str)
    names = ss.array(str, 4)
    zeros = ss.array(float, 4, fill=-0.0)


def of_tuples(state, event, emit):
    """Strings that stand nowhere but in a tuple of the module."""
    at = event.i % 2
    emit(HIGH[at])
    emit(named(at))
    emit(Places.NAMES[at])
    for text, number in ROWS:
        if number == at + 1:
            state.name = text
    emit(state.name)


def pair_of(i):
    if i > 1:
        return i, 2.0
    return None


def truths_of_calls(state, event, emit):
    """The same of what a function returns, asked where it is called."""
    if pair_of(event.i):
        emit("a pair")
    if pair := pair_of(event.i):
        emit(f"{pair[0]}")
    chosen = pair_of(event.i) or (9, 9.5)
    emit(f"{chosen[0]} {chosen[1]}")
    emit("few" if pair_of(event.i) and event.i < 4 else "none or many")
    while found := pair_of(event.i):
        emit(f"{found[1]}")
        break
    emit(f"{len([i for i in range(4) if pair_of(i)])}")
    if any(pair_of(i) for i in range(event.i)):
        emit("some")


def truths(state, event, emit):
    """What may be None stands as a condition, whatever else it is."""
    label = None
    if event.i > 1:
        label = "big"
    if label:
        emit(label)
    emit(label or "none")
    emit("yes" if label and event.i else "no")
    best = None
    for i in range(event.i):
        best = (i, 0.5)
    if best:
        emit(f"{best[0]}")
    if (best and best[0] > 1) or not best:
        emit("far")
    before = state.name if state.n else None
    if before:
        emit(before)
    some = next((one for one in state.names if one), None)
    while some:
        emit(some)
        some = None
    own = None
    if event.i % 3:
        own = [event.i]
    assert own or event.i % 3 == 0
    items = own or [7, 8]
    emit(f"{len(items)}")
    state.name = "p"
    state.names[event.i % 4] = "q"
    state.n += 1


def repeated(state, event, emit):
    """``*=`` changes the list, by all its names."""
    own = [1, event.i]
    other = own
    own *= 2
    emit(f"{len(other)}")
    emit(f"{state.zeros.sum()} {np.sum(state.zeros[1:3])} {state.zeros.mean()}")


@pytest.mark.parametrize("function", [of_tuples, truths, truths_of_calls, repeated])
def test_what_people_found(function: Callable[..., None]) -> None:
    operator = ss.operator(state=Texts, event={"i": int}, emits={"s": str})(function)
    table = pa.table({"i": [0, 1, 2, 3, 4]})
    assert witness.assert_agrees(operator, table) == table.num_rows
    expected = run_oracle(operator, table)
    assert None not in expected.output["s"].to_pylist()
    for path in PATHS:
        assert_identical(run_engine(operator, table, **path), expected)


def test_the_text_of_an_element_s_exception_is_its_own() -> None:
    @ss.operator(state=Texts, event={"s": str}, emits={"s": str})
    def told(state, event, emit):
        try:
            for word in event.s.split():
                state.n += int(word)
        except ValueError as error:
            emit(f"{error} {state.n}")

    table = pa.table({"s": ["1 x", "y 2", "3"]})
    expected = ss.testing.check(told, table, settings=ss.testing.settings()[:1]).output
    assert expected["s"][1].as_py() == "invalid literal for int() with base 10: 'y' 1"
    assert witness.assert_agrees(told, table) == 3
