"""None, ints meant as floats, and containers of a module: engine, oracle and Python agree."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

# What people write, and a linter would have them write otherwise.
# ruff: noqa: E711

from __future__ import annotations

import collections
import dataclasses
import enum
import math
import pickle
import time
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss

PATHS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate", "protocol": "eager"},
]


class State(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 6, fill=2)
    f = ss.array(float, 5, fill=0.5)


TABLE = pa.table(
    {
        "i": [0, 1, 2, 3, 4, 5, 6, -1, 7, 2, 3, 9],
        "x": [0.5, -1.5, 2.0, 0.0, -0.0, 3.5, 6.0, 0.1, 7.0, -2.5, 4.0, 1.0],
        "s": ["a", "b", "", "buy"] * 3,
    }
)
NULLS = pa.table(
    {
        "i": [0, 1, 2, 3, 4, 5],
        "x": [0.5, None, 2.0, None, -0.0, 3.5],
        "j": [None, 1, 2, None, 5, 0],
        "on": [True, None, False, None, True, False],
        "s": ["a", None, "b", None, "", "a"],
    }
)
EMITS = {"k": ss.nullable(int), "v": ss.nullable(float)}


def operator_of(function: Callable[..., None], emits: Any = None) -> ss.Operator:
    event = {"i": int, "x": float, "s": str}
    return ss.operator(state=State, event=event, emits=emits or EMITS)(function)


def agree(function: Callable[..., None], raises: int = 0) -> ss.Operator:
    """All see the same; so many of the events raise."""
    operator = operator_of(function)
    assert witness.assert_agrees(operator, TABLE) == TABLE.num_rows
    expected = run_oracle(operator, TABLE)
    assert len(expected.raised) == raises
    for path in PATHS:
        assert_identical(run_engine(operator, TABLE, **path), expected)
    return operator


def refused(function: Callable[..., None], emits: Any = None) -> str:
    """What is said of a function that is no operator."""
    with pytest.raises(ss.CompileError) as caught:
        ss.Engine(operator_of(function, emits), horizon=0)
    assert caught.value.filename == __file__
    line = str(caught.value).split(": ", 1)[1]
    assert "; " in line, line  # the problem, and a way out
    return line


# ---- None ----

NOTHING = None


def find(state, wanted):
    for i in range(6):
        if state.a[i] == wanted:
            return i
    return None


def limited(x: Any, limit: Any = None, scale: float | None = None) -> Any:
    if limit is None:
        limit = 3
    if scale is not None:
        return min(x, limit) * scale
    return min(x, limit) * 1.0


def total_of(values=None, factor=None):
    if values is None:
        return None
    total = 0
    for value in values:
        total += value
    return total if factor is None else total * factor


def nones(state, event, emit):
    best = None
    where = None
    for i in range(6):
        state.a[i] = (state.a[i] * 7 + event.i + i) % 13
        if state.a[i] > 3 and (best is None or state.a[i] > best):
            best, where = state.a[i], i
    emit(best, None if best is None else best * 0.5)
    if where is not None:
        state.a[where] += 1
        emit(state.a[where], 0.0)
    if not where:
        emit(-1, None)
    if best == None or where != None:
        emit(7, None)
    if best == 12 or best == NOTHING:
        emit(12, 1.0)
    if best and where:
        emit(1, 2.0)
    emit(best or 5, 1.0)
    k = find(state, event.i)
    emit(k, None)
    if k is not None:
        state.a[k] = 0
    emit(1, limited(event.i))
    emit(2, limited(event.i, 2))
    emit(3, limited(event.i, k))
    emit(4, limited(event.i, scale=0.5))
    emit(5, total_of())
    emit(6, total_of(state.f, 2.0))
    if NOTHING is not None and event.i > NOTHING:
        emit(8, None)
    first = None
    for i, value in enumerate(state.f):
        if first is None or value + i < first[1]:
            first = (i, value + i)
    emit(first[0], first[1])
    at, value = first
    emit(at, value)
    match find(state, 5):
        case None:
            emit(9, None)
        case at:
            emit(at, None)
    if (again := find(state, 2)) is not None:
        emit(again, None)
    flag = event.i > 3
    if flag is True or flag is not False:
        emit(10, None)
    mine = {1: 2}
    emit(mine.get(event.i), None)
    items = [1, 2, 3]
    at = 1 if event.i > 2 else None
    if at is not None:
        items.append(at)
        emit(items[at], None)
        for _ in range(at):
            emit(11, None)


def test_none_is_a_value_like_others() -> None:
    agree(nones)


def none_operands(state, event, emit):
    j = event.i if event.i % 2 else None
    if event.i == 0:
        emit(j + 1, None)
    if event.i == 2:
        emit(state.a[j], None)
    if event.i == 4:
        state.a[0] = j
    if event.i == 6:
        state.x = j
    if event.i == 9:
        emit(-j, float(j))
    emit(1 if j is None else 2, None)


def none_compared(state, event, emit):
    j = event.i if event.i % 2 else None
    try:
        emit(1 if j > 3 else 2, None)
    except TypeError:
        emit(-1, None)


def test_none_where_a_value_has_to_be_raises_type_error() -> None:
    operator = agree(none_operands, raises=5)
    names = {name for _, name, _ in run_oracle(operator, TABLE).raised}
    assert names == {"TypeError"}
    agree(none_compared)


def emits_none(state, event, emit):
    k = event.i if event.i > 2 else None
    emit(k)


def test_none_is_not_emitted_into_a_column_that_has_no_nulls() -> None:
    operator = operator_of(emits_none, {"k": int})
    expected = run_oracle(operator, TABLE)
    assert {name for _, name, _ in expected.raised} == {"TypeError"}
    assert_identical(run_engine(operator, TABLE, horizon=0), expected)


def first_or(value, default=None):
    return 7 if default is None else value + default


def without_none(state, event, emit):
    """What a conditional expression, or the other branch, has left is a value like others."""
    j = event.j
    at = -1 if j is None else j
    xs = [3, 1, 2]
    n = len(xs)
    if at < n <= n:
        emit(len(xs[:at]), None)
    xs.append(at)
    ys = {at: [at]}
    if j is None or event.i > 7:
        emit(len(ys) + first_or(at), None)
    else:
        xs.append(j)
        ys[j] = [j, j]
    price = event.x
    pairs = [(at, price if price is not None else 0.5)]
    best = state.a[2] if j is None and event.on else None
    pairs.append((0 if best is None else best, 1.0))
    emit(sum(xs) + len(ys[at]) + first_or(3, at), max(pairs)[1])


def kept(j, price):
    if j is None:
        return -100
    return -200 if price is None else j


def or_five(price):
    return 5.0 if price is None else price


def nulls(state, event, emit):
    price = event.x
    emit(0 if price is None else 1, price)
    emit(2 if event.j is None else 3, event.x)
    if event.on is None and event.is_null("on"):
        emit(4, 1.0)
    if event.s is None:
        emit(5, None)
    name = event.s
    if name is not None and name == "a":
        emit(6, None)
    j = event.j
    q = j if event.i > 2 else None
    emit(-5 if q is None else q, price * 2.0 + 1.0)
    emit(kept(j, price), or_five(event.x))
    emit(state.a[j], None)  # unasked, a null reads 0
    least = min(j, 3)
    emit(7 if least is None else 8, None)
    if price == None:
        price = 1.0
    emit(9, price)
    state.x = price


def test_where_a_test_has_left_a_value_it_may_be_put_into_a_list() -> None:
    event = {"i": int, **{name: ss.nullable(of) for name, of in (("x", float), ("j", int))}}
    event["on"] = ss.nullable(bool)
    operator = ss.operator(state=State, event=event, emits=EMITS)(without_none)
    expected = run_oracle(operator, NULLS)
    assert not expected.raised
    assert witness.assert_agrees(operator, NULLS, are_none=True) == NULLS.num_rows
    for path in PATHS[:2]:
        assert_identical(run_engine(operator, NULLS, **path), expected)


def test_a_null_that_is_kept_tells_the_truth() -> None:
    columns = {"x": float, "j": int, "on": bool, "s": str}
    event = {"i": int, **{name: ss.nullable(kind) for name, kind in columns.items()}}
    operator = ss.operator(state=State, event=event, emits=EMITS)(nulls)
    expected = run_oracle(operator, NULLS)
    assert not expected.raised
    rows = [(row["k"], row["v"]) for row in expected.output.to_pylist()]
    first = [(1, 0.5), (2, 0.5), (6, None), (-5, 2.0), (-100, 0.5), (2, None), (8, None), (9, 0.5)]
    second = [(0, 0.0), (3, 0.0), (4, 1.0), (5, None), (-5, 1.0), (-200, 5.0), (2, None)]
    assert rows[:17] == [*first, *second, (8, None), (9, 1.0)]
    for path in PATHS:
        assert_identical(run_engine(operator, NULLS, **path), expected)


# ---- ints that are meant as floats ----


def scaled(x, i):
    if i > 3:
        return 0
    return x * 0.5


def both(x):
    if x > 1.0:
        return 0, 1
    return x, x / 2


def joined(state, event, emit):
    total = 0
    for value in state.f:
        total += value
    emit(1, total // 2)
    emit(2, total % 0.3)
    best, n = 0, 0
    while n < 3:
        best = max(best, state.f[n] * 2)
        n += 1
    emit(n, best)
    emit(3, 0 if event.i > 2 else 0.5)
    emit(4, min(0, state.x))
    emit(5, scaled(state.x, event.i))
    emit(6, both(state.x)[0])
    xs = [0] * 3
    for i in range(3):
        xs[i] += state.f[i]
    xs.append(1)
    emit(7, xs[0] + sum(xs))
    last = 0
    if event.i > 2:
        last = math.sqrt(4.0)
    state.x = last
    found = {}
    found["a"] = 0.5
    emit(8, found.get("b", 0))
    left = 0
    left -= event.i / 3
    emit(9, -1 if event.i > 3 else left)
    emit(10, max([value for value in state.f if value > 100.0], default=0))
    zero = 0
    zero = zero + left if event.i > 4 else zero
    emit(11, 1 / zero if zero else zero)


def test_an_int_literal_that_begins_a_float_is_one() -> None:
    agree(joined)


def mixed(state, event, emit):
    x = event.i
    if event.i > 2:
        x = 0.5
    emit(1, x)


def a_float_now(state, event, emit):
    x = 0
    if event.i > 2:
        x = 0.5
    emit(x, 1.0)


def test_other_mixtures_are_refused() -> None:
    assert "x is int here and float elsewhere; write 0.0" in refused(mixed)
    assert "gets float64; write int(x)" in refused(a_float_now)


# ---- containers of a module ----


class Side(enum.Enum):
    BUY = 1
    SELL = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Word(enum.StrEnum):
    A = "a"


class Config:
    LIMIT = 3
    RATES: typing.ClassVar = [1.5, 2.5]


@dataclasses.dataclass(frozen=True)
class Rule:
    low: int
    high: int
    fee: float = 0.5
    tag: str = "a"


class Point(typing.NamedTuple):
    x: float
    y: int


LIMITS = [3, 5, 8]
RATES = {"a": 0.5, "b": 2.0, "buy": 1.0}
BY_ID = {1: 10, 2: 20, -1: 5}
PAIRS = {(0, "a"): (1, 2.0), (3, "buy"): (2, 3.0)}
KNOWN = {2, 3, 7}
NAMES = frozenset({"a", "zz"})
NESTED = [[1, 2], [3], []]
BY_NAME = {"fees": {"a": 0.5}, "other": {"b": 1.5, "c": 2.0}}
WEIGHTS = np.array([0.5, 1.5, -2.0, 8.0])
MATRIX = np.arange(6).reshape(2, 3)
RULES = [Rule(0, 3), Rule(3, 9, 1.5, "b")]
RULE = Rule(1, 2)
POINT = Point(1.5, 2)


def taken(values, i):
    return values[i % len(values)]


def reads(state, event, emit):
    i = event.i
    emit(LIMITS[i % 3], RATES.get(event.s, 0.25))
    emit(BY_ID.get(i, -7), RATES["a"])
    emit(BY_ID.get(i), RATES.get(event.s))
    emit(i in KNOWN, 1.0 if event.s in NAMES else 0.0)
    emit(i in LIMITS, WEIGHTS[i % 4] + MATRIX[1, i % 3] + MATRIX[i % 2][2])
    emit(sum(LIMITS) + max(LIMITS) + len(WEIGHTS), WEIGHTS[-1])
    for key, value in BY_ID.items():
        emit(key, value)
    for value in WEIGHTS:
        emit(0, value)
    for row in MATRIX:
        emit(row[0], row[1])
    emit(NESTED[0][1], sum(sum(part) for part in NESTED))
    emit(len(LIMITS[1:]), BY_NAME["other"]["b"])
    ordered = sorted(LIMITS, reverse=True)
    ordered.append(i)
    emit(ordered[0], ordered[-1])
    part = LIMITS[:2]
    part[0] = i
    emit(part[0], LIMITS[0])
    emit(PAIRS.get((i, "buy"), (0, 0.5))[0], None)
    emit(taken(LIMITS, i), taken(WEIGHTS, i))
    state.f[:4] = WEIGHTS


def named(state, event, emit):
    i = event.i
    emit(Config.LIMIT + Level.HIGH, Config.RATES[i % 2])
    emit(RULE.low, RULE.fee)
    emit(POINT.y, POINT.x)
    for rule in RULES:
        if rule.low <= i < rule.high and rule.tag == "a":
            emit(rule.low, rule.fee)
    side = Side.BUY if i > 2 else Side.SELL
    if side is Side.BUY:
        emit(side.value, None)
    emit(Side(1 + i % 2).value, None)
    if Level(1) == Level.LOW and Side["SELL"] == Side.SELL:
        emit(Side.SELL.value, None)
    for one in Side:
        emit(one.value, len(Side))
    if event.s == Word.A:
        emit(77, None)


def missing_keys(state, event, emit):
    if event.i < 2:
        emit(BY_ID[event.i], None)
    if event.i == 4:
        emit(Side(event.i).value, None)
    if event.i == 5:
        emit(LIMITS[event.i], None)
    try:
        emit(0, RATES[event.s])
    except KeyError:
        emit(-1, None)


def test_containers_of_a_module_are_read() -> None:
    operator = agree(reads)
    shipped = pickle.loads(pickle.dumps(operator))
    assert shipped.program.fingerprint == operator.program.fingerprint
    assert_identical(run_engine(shipped, TABLE, horizon=0), run_oracle(operator, TABLE))


def test_enums_records_and_classes_are_read() -> None:
    shipped = pickle.loads(pickle.dumps(agree(named)))
    assert_identical(run_engine(shipped, TABLE, horizon=0), run_oracle(shipped, TABLE))


def test_what_is_not_there_raises_as_in_python() -> None:
    operator = agree(missing_keys, raises=3)
    names = [name for _, name, _ in run_oracle(operator, TABLE).raised]
    assert names == ["KeyError", "ValueError", "IndexError"]


CHANGING: list[int] = [1, 2]


def reads_changing(state, event, emit):
    emit(CHANGING[0] + len(CHANGING), None)


def test_they_are_frozen_by_a_copy_when_the_operator_is_declared() -> None:
    CHANGING[:] = [1, 2]
    operator = operator_of(reads_changing)
    before = operator.program.fingerprint
    CHANGING[:] = [5, 6, 7]
    for run in (run_oracle, run_engine):
        assert run(operator, TABLE).output["k"].to_pylist() == [3] * TABLE.num_rows
    assert operator_of(reads_changing).program.fingerprint != before


def appends(state, event, emit):
    LIMITS.append(1)


def assigns(state, event, emit):
    WEIGHTS[0] = 1.0


def by_another_name(state, event, emit):
    mine = LIMITS
    mine += [1]


def inside(state, event, emit):
    NESTED[0].sort()


def sets(state, event, emit):
    BY_ID[1] += 1


def adds(state, event, emit):
    KNOWN.add(1)


def removes(state, event, emit):
    del BY_ID[1]


@pytest.mark.parametrize(
    "function", [appends, assigns, by_another_name, inside, sets, adds, removes]
)
def test_changing_one_is_refused(function: Callable[..., None]) -> None:
    assert "of a module is frozen, and is changed here; copy it first" in refused(function)
    with pytest.raises(ss.CompileError):
        run_oracle(operator_of(function), TABLE)


UNKNOWN = [1, object()]


def reads_objects(state, event, emit):
    emit(UNKNOWN[0], None)


def test_what_cannot_be_frozen_is_refused() -> None:
    with pytest.raises(ss.CompileError, match="'UNKNOWN': it holds object"):
        run_oracle(operator_of(reads_objects), TABLE)


LARGE = {7 * i: i for i in range(10_000)}
LONG = np.arange(1_000_000, dtype=np.float64)


def reads_large(state, event, emit):
    emit(LARGE.get(event.i * 7, -1), LONG[event.i * 1000])


def reads_small(state, event, emit):
    emit(BY_ID.get(event.i * 7, -1), WEIGHTS[event.i % 4])


@pytest.mark.slow
def test_large_ones_take_no_room_in_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their data lie outside of it, so its size says that compiling takes no longer."""
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", "")
    agree(reads_large)
    started = time.process_time()
    assert len(operator_of(reads_large).program.fingerprint) < 50_000
    assert time.process_time() - started < 3.0, "10 times what it should take"


# ---- the sum of nothing ----


@ss.operator(state=State, event={"x": float, "k": int}, emits={"a": float, "b": float, "c": float})
def sums_of_nothing(state, event, emit):
    kept = [event.x] if event.k > 1 else [0.5][1:]
    by_key = {}
    if event.k > 2:
        by_key[1] = event.x
    halves = [value * 0.5 for value in kept]
    emit(-sum(halves), -sum(value + 0.5 for value in halves), -sum(by_key.values()))


def test_the_sum_of_no_floats_is_a_float() -> None:
    """Which is told by the sign of its zero."""
    table = pa.table({"x": [0.5, -0.5, 2.0], "k": [1, 2, 3]})
    expected = run_oracle(sums_of_nothing, table)
    assert str(expected.output.to_pylist()[0]) == "{'a': -0.0, 'b': -0.0, 'c': -0.0}"
    for path in PATHS:
        assert_identical(run_engine(sums_of_nothing, table, **path), expected)


def doubled(value):
    return value * 2


@ss.operator(state=State, event={"x": float}, emits={"y": float})
def sums_of_nothing_by_other_ways(state, event, emit):
    groups = collections.defaultdict(list)
    groups[1].append(event.x)
    none = [event.x][1:]
    emit(-sum(groups[7]))
    emit(-sum(map(abs, none)))
    emit(-sum(map(math.sqrt, none)))
    emit(-sum(map(doubled, none)))
    emit(-sum(map(lambda value: value + 1, none)))  # noqa: C417 (what is tested)
    emit(-sum(map(lambda value, other: value * other, none, none)))
    emit(-sum(map(float, [len(none)][1:])))
    emit(-sum(sorted(map(abs, none))))
    emit(-sum(list(reversed(groups[8]))))


def test_the_sum_of_what_is_mapped_or_grouped_is_a_float() -> None:
    table = pa.table({"x": [0.5]})
    expected = run_oracle(sums_of_nothing_by_other_ways, table)
    assert list(map(str, expected.output["y"].to_pylist())) == ["-0.0"] * 9
    for path in PATHS:
        assert_identical(run_engine(sums_of_nothing_by_other_ways, table, **path), expected)


class Span(typing.NamedTuple):
    lo: int
    hi: int

    def width(self):
        return self.hi - self.lo


class Kept(ss.State):
    n = ss.scalar(int)
    kinds = ss.dict(int, str)
    met = ss.dict(str, int)


def ends(span):
    return span.lo + span.hi


@ss.operator(
    state=Kept, event={"i": int, "x": float}, emits={"n": int, "name": str, "kind": str, "w": int}
)
def reads_what_never_changes(state, event, emit):
    level = Level(1 if event.i > 1 else 3)
    state.n += level
    span = Span(event.i, 9)
    other = span
    state.n += ends(span)
    state.n += other[0] + span.width()
    state.kinds[event.i] = type(event.x).__name__
    state.met[type(event.i).__name__] = state.n
    emit(state.n, level.name, state.kinds[event.i], span.hi + len(state.met))


def test_named_tuples_and_members_of_enums_are_read_in_many_places() -> None:
    """They are no objects that a function changes by adding them to something."""
    table = TABLE.select(["i", "x"])
    expected = run_oracle(reads_what_never_changes, table)
    rows, n = [], 0
    for i in table["i"].to_pylist():
        level, span = Level(1 if i > 1 else 3), Span(i, 9)
        n += level + ends(span) + span[0] + span.width()
        rows.append({"n": n, "name": level.name, "kind": "float", "w": 10})
    assert expected.output.to_pylist() == rows
    assert_identical(run_engine(reads_what_never_changes, table, **PATHS[0]), expected)
