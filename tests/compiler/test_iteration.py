"""Ranges, bounds of slices and enumerate: with CPython's items, and its errors."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle

import specstream as ss

MIN, MAX = -(2**63), 2**63 - 1
HALF = 2**62


class S(ss.State):
    a = ss.array(int, 8)
    n = ss.scalar(int)


EVENT = {"start": int, "stop": int, "step": int, "unsigned": bool}


@ss.operator(state=S, event=EVENT, emits={"item": int})
def items(state, event, emit):
    """The first items, and how many there are if they are few."""
    if event.unsigned:
        u, v, w = np.uint64(event.start), np.uint64(event.stop), np.uint64(event.step)
        count = 0
        for i in range(u, v, w):
            if count < 4:
                emit(np.int64(i))
            count += 1
            if count == 20:
                break
        emit(count)
        return
    count = 0
    for k in range(event.start, event.stop, event.step):
        if count < 4:
            emit(k)
        count += 1
        if count == 20:
            break
    emit(count)


@ss.operator(state=S, event=EVENT, emits={"length": int})
def lengths(state, event, emit):
    if event.unsigned:
        u, v, w = np.uint64(event.start), np.uint64(event.stop), np.uint64(event.step)
        emit(len(range(u, v, w)))
    else:
        emit(len(range(event.start, event.stop, event.step)))


@ss.operator(state=S, event={"a": int, "b": int}, emits={"any": int, "all": int})
def columns_of_rows(state, event, emit):
    rows = [[event.a + state.n, event.b], [event.b, state.n]]
    emit(
        sum([1 for column in zip(*rows) if any(column)]),  # noqa: B905
        sum([1 for column in zip(*rows) if all(column)]),  # noqa: B905
    )


SIGNED = [MIN, MIN + 1, -HALF, -7, -1, 0, 1, 5, HALF, MAX - 2, MAX - 1, MAX]
UNSIGNED = [0, 1, 7, HALF, 2**63 - 1, 2**63, 2**64 - 3, 2**64 - 1]
STEPS = [MIN, -HALF, -3, -1, 1, 2, 3, HALF, MAX]
PAIRS = [
    *((*three, False) for three in itertools.product(SIGNED, SIGNED, STEPS)),
    *((*three, True) for three in itertools.product(UNSIGNED, UNSIGNED, (1, 2, 2**63, 2**64 - 1))),
]


def table_of(rows: list[tuple[int, int, int, bool]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    words = [np.array([one % 2**64 for one in column], np.uint64) for column in columns[:3]]
    names = ("start", "stop", "step")
    table = {name: column.view(np.int64) for name, column in zip(names, words, strict=True)}
    return pa.table({**table, "unsigned": np.array(columns[3])})


def as_int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def test_a_range_has_pythons_items() -> None:
    expected = []
    for start, stop, step, _ in PAIRS:
        first = list(itertools.islice(range(start, stop, step), 20))
        expected += [*map(as_int64, first[:4]), len(first)]
    table = table_of(PAIRS)
    found = run_oracle(items, table)
    assert found.output["item"].to_pylist() == expected
    assert_identical(run_engine(items, table, horizon=0), found)


def test_any_and_all_of_the_columns_of_rows_are_pythons() -> None:
    table = pa.table({"a": [0, 1, 2], "b": [0, 0, 3]})
    found = run_oracle(columns_of_rows, table)
    assert found.output.to_pydict() == {"any": [0, 1, 2], "all": [0, 0, 1]}
    assert_identical(run_engine(columns_of_rows, table, horizon=0), found)


def test_the_length_of_a_range_is_pythons_or_its_error() -> None:
    rows = [(MIN, MAX, 1, False), (MAX, MIN, -1, False), (0, 2**64 - 1, 1, True), *PAIRS[::7]]
    rows += [(0, 5, 0, False), (0, 5, 0, True)]
    expected: list[int] = []
    raised: list[tuple[int, str]] = []
    for number, (start, stop, step, _) in enumerate(rows):
        try:
            expected.append(len(range(start, stop, step)))
        except (OverflowError, ValueError) as error:
            raised.append((number, type(error).__name__))
    assert {kind for _, kind in raised} == {"OverflowError", "ValueError"}
    table = table_of(rows)
    found = run_oracle(lengths, table)
    assert found.output["length"].to_pylist() == expected
    assert [(row, kind) for row, kind, _ in found.raised] == raised
    assert_identical(run_engine(lengths, table, horizon=0), found)


FAR = np.uint64(2**63 + 5)


@ss.operator(state=S, event={"i": int, "on": bool}, emits={"x": int})
def positions(state, event, emit):
    """Bools and uint64 as ends of ranges, bounds of slices and starts of enumerate."""
    for k in range(event.on, event.i):
        emit(k)
    for k in range(event.on):
        emit(k)
    state.a[event.on :] = 7
    state.a[np.uint64(event.i) :] = event.i
    state.a[: np.uint64(event.i) : np.uint64(event.i + 1)] = 5
    state.a[FAR:] = 6
    state.a[1:FAR:FAR] = 4
    state.a[event.i : MIN : MIN] += 1
    state.a[MIN:9223372036854775808:3] += 2
    state.a[::MAX] -= 1
    for value in state.a:
        emit(value)
    for k, value in enumerate(state.a[6:], event.on):
        emit(k * value)
    for k, value in enumerate(state.a[:2], np.uint64(event.i)):
        emit(k - value)
    r = range(event.i, 2, -1)
    for k in r:
        for j in r:
            emit(k * 10 + j + len(r))


def test_bools_and_unsigned_integers_are_positions() -> None:
    table = pa.table({"i": [0, 3, 5, 9, 2], "on": [False, True, True, False, True]})
    rows: list[int] = []
    state = SimpleNamespace(a=np.zeros(8, np.int64))
    for event in table.to_pylist():
        positions.function(state, SimpleNamespace(**event), lambda x: rows.append(int(x)))
    expected = run_oracle(positions, table)
    assert expected.output["x"].to_pylist() == rows
    assert expected.raised == ()
    assert_identical(run_engine(positions, table, horizon=0), expected)


def range_of_floats(state, event, emit):
    for _ in range(event.i / 2):
        state.n += 1


def steps_by_floats(state, event, emit):
    for _ in range(0, event.i, 0.5):
        state.n += 1


def range_of_an_array(state, event, emit):
    for _ in range(state.a):
        state.n += 1


def range_of_nothing(state, event, emit):
    for _ in range():
        state.n += 1


def range_of_two_types(state, event, emit):
    for _ in range(event.i, np.uint64(event.i)):
        state.n += 1


def item_of_a_range(state, event, emit):
    state.n = range(event.i)[0]


def slice_from_a_float(state, event, emit):
    state.n = sum(state.a[event.i / 2 :])


def stores_to_a_slice_of_floats(state, event, emit):
    state.a[: event.i / 2] = 0


def updates_a_slice_of_floats(state, event, emit):
    state.a[1 : 4 : event.i * 0.5] += 1


def enumerates_from_a_float(state, event, emit):
    for k, value in enumerate(state.a, 1.5):
        state.n += k * value


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (range_of_floats, r"range takes integers, and gets float64; write int\(x\)"),
        (steps_by_floats, r"range takes integers, and gets float64; write int\(x\)"),
        (range_of_an_array, "range takes integers, and gets an array"),
        (range_of_nothing, r"range takes 1 to 3 integers, and gets 0; write range\(start, stop"),
        (range_of_two_types, r"range mixes uint64 and int64.*np\.uint64\(x\) or np\.int64\(x\)"),
        (item_of_a_range, r"an item of a range cannot be taken; write start \+ i \* step"),
        (slice_from_a_float, r"a slice takes integers, and gets float64; write int\(x\)"),
        (stores_to_a_slice_of_floats, r"a slice takes integers, and gets float64; write int"),
        (updates_a_slice_of_floats, r"a slice takes integers, and gets float64; write int"),
        (enumerates_from_a_float, "the start of enumerate takes integers, and gets float64"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_is_no_position_is_refused(function: Callable[..., None], message: str) -> None:
    """Under Python nearly each raises TypeError, at its event."""
    operator = ss.operator(state=S, event={"i": int})(function)
    with pytest.raises(ss.CompileError, match=message) as caught:
        ss.Engine(operator, horizon=0)
    assert caught.value.filename == __file__
    if function is not range_of_two_types:
        with pytest.raises(TypeError):
            operator.run_sequential({"i": [3]})


def stuck(x):
    while True:
        x = x + 1


def stuck_beyond(x):
    if x >= 100:
        while 1:
            for k in range(3):
                if k == 1:
                    break
                x += k
    return x


def endless(state, event, emit):
    x = 0
    if event.k > 100:
        while True:
            x = x + 1
    for i in range(event.k):
        if i > 100:
            y = i
            while True:
                y += 1
        elif i > 200:
            while True:
                x = y = i
    if event.k > 300:
        stuck(x)
    emit(x + stuck_beyond(event.k))


class Unused(ss.State):
    n = ss.scalar(int)


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_loop_without_a_way_out_compiles_where_nobody_gets_into_it(protocol: str) -> None:
    operator = ss.operator(state=Unused, event={"k": int}, emits={"x": int})(endless)
    table = {"k": [1, 2, 3, 4]}
    expected = operator.run_sequential(table).output
    for horizon in (0, 4):
        with ss.Engine(operator, horizon=horizon, chunk=1, protocol=protocol) as engine:
            assert engine.process(table).equals(expected)
