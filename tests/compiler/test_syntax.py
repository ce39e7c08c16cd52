"""Python's syntax in operators: engine, oracle and the unrewritten function agree about it."""

# What people write, and a linter would have them write otherwise.
# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: B020, B905, C400, C401, C402, C416, C419, E731, F841

from __future__ import annotations

import functools
import importlib.util
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness
from support.compiler import other_module

import specstream as ss

PATHS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate", "protocol": "eager"},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate", "profile": True},
]


class State(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 6, fill=2)
    f = ss.array(float, 5, fill=0.5)
    m = ss.array(int, (3, 4), fill=7)


TABLE = pa.table(
    {
        "i": [0, 1, 2, 3, 4, 5, 6, -1, 7, 2, 3, 9],
        "x": [0.5, -1.5, 2.0, 0.0, -0.0, 3.5, 1e300, 0.1, 7.0, -2.5, 4.0, 1.0],
        "on": [True, False, False, True, True, False, True, False, True, True, False, False],
        "s": ["a", "b", "", "buy", "sell", "a", "b", "buy", "sell", "one", "two", "c"],
    }
)


def operator_of(function: Callable[..., None]) -> ss.Operator:
    return ss.operator(
        state=State,
        event={"i": int, "x": float, "on": bool, "s": str},
        emits={"k": int, "v": float},
    )(function)


def agree(function: Callable[..., None], *paths: dict[str, Any], raises: int = 0) -> ss.Operator:
    """All see the same; so many of the events raise."""
    operator = operator_of(function)
    assert witness.assert_agrees(operator, TABLE) == TABLE.num_rows
    expected = run_oracle(operator, TABLE)
    assert len(expected.raised) == raises
    for path in paths or PATHS:
        assert_identical(run_engine(operator, TABLE, **path), expected)
    return operator


# ---- helpers ----

BASE = 100


def weighed(state: Any, value: int, /, by: int = BASE, *, plus: int, note: str = "none") -> int:
    state.n = (state.n * 7 + value) % 1009
    return value * by + plus + (1000 if note == "sell" else 0)


BASE = 5  # the default above was read when the function was defined


def nested_results(a: int, b: float = 0.25) -> tuple[tuple[int, float], int]:
    return (a + 1, b * 2.0), a * 3


def by_module(value: int) -> int:
    return other_module.scaled(value, shift=1) + other_module.RATE


tripled = lambda value, by=BASE - 2: value * by
lighter = functools.partial(weighed, by=-2, plus=10)
heavier = functools.partial(lighter, plus=20)


def calls(state, event, emit):
    emit(tripled(event.i) + tripled(1, 2), 0.0)
    emit(lighter(state, event.i) + heavier(state, 2, plus=t(state, 1)), 0.0)
    emit(weighed(state, event.i, plus=state.n), 0.0)
    emit(weighed(state, event.i, 2, note=event.s, plus=weighed(state, 3, plus=1)), 1.0)
    emit(weighed(state, event.i, note="sell", plus=state.n, by=BASE), 2.0)
    (a, b), c = nested_results(event.i)
    emit(a + c, b)
    (a, b), c = nested_results(b=event.x, a=c)
    emit(a + c, b)
    emit(by_module(event.i) + other_module.scaled(by=2, value=4), float(other_module.RATE))
    if event.s in other_module.NAMES:
        emit(-1, 0.5)


def test_helpers_take_what_pythons_functions_take() -> None:
    agree(calls)


# ---- assignments ----


def t(state: Any, value: int) -> int:
    """Its number, and a trace of what was called before."""
    state.n = (state.n * 31 + value) % 1000003
    return value


def inside_expressions(state, event, emit):
    if (k := t(state, event.i)) > 2 and (j := k * 2) != 10:
        emit(k + j, 0.0)
    elif k < 0 or (v := t(state, 5)) > event.i:
        emit(k, 1.0)
    else:
        emit(v, 2.0)
    while (n := t(state, k)) < 4:
        k += 1
    emit(n + (y := n + 1) * y, float(z := 3) + z)
    at = 3
    state.a[(at := event.i % 6)] = at + (at := 1) + at
    emit(at, (w := event.x) if (is_large := event.x > 1.0) else float(is_large))
    p = ((q := 4), q + (r := k))[1]
    emit(p + q + r, 0.0)


def starred(state, event, emit):
    three = (event.i, event.x, 7)
    first, *rest = three
    emit(first + rest[1], rest[0])
    *most, last = three
    emit(most[0] + last, most[1])
    a, *none, (b, *c) = 1, (2, 3, event.i)  # type: ignore[var-annotated]
    emit(a * 100 + b * 10 + c[0] + len(none) + len(c) + sum_of(c), 0.0)
    state.a[1], *middle, state.x = t(state, 4), t(state, 5), t(state, 6), event.x
    emit(middle[0] + len(middle), state.x)


def sum_of(values: Any) -> int:
    total = 0
    for value in values:
        total += value
    return total


def targets(state, event, emit):
    for state.a[state.n % 6] in range(3):
        state.n += 1
    for state.n in (4, 3):
        t(state, state.n)
    for at, (state.x, state.a[at]) in enumerate(zip(state.f, state.m[1])):
        emit(at, state.x)
    for state.a[0], *pair in ((1, 2, event.i), (t(state, 3), 4, 5)):
        emit(pair[0] * 10 + pair[1] + state.a[0], 0.0)
    [p, q] = event.i, 3
    (r, [s, u]), state.m[t(state, 1), t(state, 0)] = (p, (q, 5)), t(state, 8)
    x = y = p, q
    emit(r + s * u + x[0] + y[1], 0.0)
    del x, (p, q)
    p = 3
    for k in range(3):
        once = k + p
        emit(once, 0.0)
        del once


def loops(state, event, emit):
    for k in range(event.i % 5):
        if k == 2:
            break
        emit(k, 0.0)
    else:
        emit(-2, 0.0)
    k = 0
    while k < 3:
        if k == event.i:
            break
        k += 1
    else:
        emit(k, 1.0)
    while True:
        k += 1
        for j in range(4):
            while 1:
                state.n += 1
                if state.n % 3 == 0:
                    break
            if j == event.i % 4:
                emit(last_of(state, k), 0.0)
                return


def last_of(state: Any, start: int) -> int:
    while True:
        start += 1
        if start % 7 == 0:
            return start


@pytest.mark.parametrize("function", [inside_expressions, starred, targets, loops])
def test_assignments_and_loops_are_pythons(function: Callable[..., None]) -> None:
    agree(function)


# ---- functions inside ----


def nested_functions(state, event, emit):
    factor = 3
    offset: int = event.i

    def scaled(value: int, by: int = 2, *, plus: int = offset + 1) -> int:
        return value * by * factor + plus

    def twice(value):
        total = 0
        for factor in range(2):  # another one
            total += scaled(value, factor) + t(state, factor)
        return total

    square = lambda v, /, w=factor: v * v + w
    emit(scaled(event.i), 0.0)
    emit(scaled(by=5, value=t(state, 2), plus=t(state, 3)), 1.0)
    factor = 4
    emit(twice(event.i) * 1000 + scaled(1), square(event.x, 0.5))
    emit(square(factor) + (lambda v: v + factor)(event.i), 2.0)

    def gives(k):
        if k > 3:
            emit(k, event.x)
            return
        state.a[k] += 1

    gives(event.i % 6)
    gives(5)
    emit(state.a[event.i % 6], 0.0)


factor = 1000  # not the one inside


def test_nested_functions_read_what_is_around_them() -> None:
    agree(nested_functions)


# ---- generators ----

LIMIT = 3


def generators(state, event, emit):
    x = event.i
    if any(x > LIMIT for x in state.a) or any(v == x for v in range(2, 5)):
        emit(x, 0.0)
    if all(t(state, v) < event.i for v in range(t(state, 3))):
        emit(x, 1.0)
    emit(sum(v * x for v in state.a), sum(v * event.x for v in state.f))
    emit(sum(1 for v in state.f if v > event.x if v < 3.0), float(sum(v > 1 for v in state.a)))
    emit(sum((v for v in state.a if v > 100), x), sum((v for v in state.f), start=event.x))
    emit(min(v - x for v in state.a), max(v * event.x for v in state.f[1:4]))
    emit(max((v for v in state.a if v > x), default=-7), 2.0)
    emit(min((v for v in range(x, 5)), key=lambda v: (v - 2) ** 2, default=t(state, 9)), 3.0)
    emit(max(state.a, key=lambda v: v * x % 5), min(state.f, key=abs))
    emit(sum(a * b + at for at, (a, b) in enumerate(zip(state.a, state.m[1]), x)), 4.0)
    emit(sum(w for v in range(3) for w in range(v, x % 4) if (v + w) % 2), 5.0)
    emit(sum(max(v + w for w in (x, 2, 3)) for v in state.m[x % 3]), 6.0)
    emit(sum([v for v in state.a]) + len(state.a), float(any([t(state, v) > 2 for v in range(4)])))
    last = -1
    found = any((last := v) * 3 > x for v in range(4))
    emit(last, float(found))
    emit(sum(last := last + v for v in state.a) + last, float(all(state.a) and any(state.f)))
    emit(sum(scaled_by(v, x) for v in range(2)) + (1 if all(v for v in (x, 1)) else 0), 7.0)
    state.a[x % 6] = t(state, x)


def scaled_by(v: int, by: int) -> int:
    return v * by


def empty(state, event, emit):
    emit(min(v for v in state.a if v > event.i), 0.5)


def test_generators_are_pythons() -> None:
    agree(generators)
    agree(empty, {"horizon": 0}, raises=9)


# ---- match ----


def matches(state, event, emit):
    match event.s:
        case "buy" | "sell":
            emit(1, 0.0)
        case "a":
            emit(2, 0.0)
        case "":
            emit(3, 0.0)
    match t(state, event.i):
        case 0 | 1:
            emit(0, 1.0)
        case other_module.RATE:
            emit(30, 1.0)
        case -1:
            emit(-1, 1.0)
        case k if t(state, k) % 2 == 0 and k > 4:
            emit(k, 1.0)
        case (5 | 7) as k:
            emit(k * 10, 1.0)
        case _:
            emit(99, 1.0)
    match event.on, event.i, event.x:
        case True, 0 | 3 as j, x:
            emit(j, x)
        case (False, j, 2.0 | 0.1 as x) if j < 3:
            emit(j + 100, x)
        case [_, 5, *_]:
            emit(55, 2.0)
        case (*_, on, 7, _) | (on, _, 4.0):
            emit(77, float(on))
    match (event.i % 2, (event.s, event.x)), event.on:
        case (0, ("one" | "a", x)), True:
            emit(1000, x)
        case (parity, (_, 0.0 | 1.0)), (True | False as on):
            emit(parity, float(on))
        case _, False:
            emit(2000, 3.0)
    emit(kind_of(event.i, event.s), 4.0)
    for v in range(6):
        match v:
            case 1:
                continue
            case 4:
                break
            case w:
                emit(w, 5.0)


def kind_of(i: int, s: str) -> int:
    match s, i:
        case "a", 0:
            return 1
        case "sell", v if v > 4:
            return v
        case pair:
            return pair[1] * 3


def test_match_is_pythons() -> None:
    agree(matches)


# ---- pickled ----


@pytest.mark.parametrize("function", [calls, nested_functions, generators, matches])
def test_a_pickled_operator_takes_all_of_it_along(function: Callable[..., None]) -> None:
    operator = operator_of(function)
    copy = pickle.loads(pickle.dumps(operator))
    again = pickle.loads(pickle.dumps(copy))
    assert again.program.fingerprint == operator.program.fingerprint
    expected = run_oracle(operator, TABLE)
    assert_identical(run_oracle(again, TABLE), expected)


def caught(state, event, emit):
    x = event.i
    try:
        emit(min(v for v in state.a if v > x), 0.0)
    except ValueError:
        emit(-1, 1.0)
    try:
        emit(sum(10 // (v - x) for v in range(4)), 2.0)
        emit(max((v for v in state.a), key=lambda v: state.m[0, v + x]), 3.0)
    except ZeroDivisionError:
        emit(-2, 4.0)
    except IndexError as error:
        emit(-3, 5.0)

    def tried(v: int) -> int:
        try:
            return int(state.a[v])
        except IndexError:
            return -v
        finally:
            state.n += 1

    emit(sum(tried(v) for v in range(x, x + 8)) + state.n, float(any(tried(x) == v for v in (2,))))


def test_exceptions_leave_generators_and_nested_functions() -> None:
    agree(caught)


# ---- comprehensions ----


def comprehensions(state, event, emit):
    x = event.i
    squares = [v * v + x for v in range(6) if v != x]
    emit(len(squares) + squares[-1], 0.0)
    for at, value in enumerate(squares):
        emit(value, float(at))
    halves = list(v / 2 for v in state.f)
    emit(sum(v for v in squares), sum(v for v in halves))
    pairs = [w * 10 + v for v in squares for w in range(v % 3)]
    emit(len(pairs), halves[x % 5])
    by_key = {v % 4: t(state, v) for v in squares}
    seen = {v % 3 for v in (x, 7, 8)}
    emit(len(by_key) * 10 + len(seen), 1.0)
    for key in by_key:
        emit(key, 2.0)
    more = dict((t(state, v), v + x) for v in range(3))
    emit(more[2] + len(set(v // 2 for v in range(5))), 3.0)
    last = 0
    total = [last := last + v for v in squares]
    emit(last + total[0], float(any(v > 30 for v in total)))
    rows = [[v + w for w in range(2)] for v in (x, 1)]
    emit(rows[0][1] * 10 + rows[1][0], float(max(len(row) for row in rows)))
    emit(max(squares, key=lambda v: -v) + min((v for v in squares), key=abs), 4.0)


def test_comprehensions_are_pythons() -> None:
    agree(comprehensions)


def module_of(path: Path, text: str) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- what is refused ----

HELPERS = """
import functools

import specstream as ss


def any_number(*values):
    return len(values)


def any_names(**named):
    return 1


def listed(x, y=[1]):
    return x


def plain(x, y=1, /, *, z=2):
    return x + y + z


def gives(n):
    yield n


class Static:
    @staticmethod
    def f(x):
        return x


class State(ss.State):
    n = ss.scalar(int)
    a = ss.array(int, 6)
    f = ss.array(float, 6)


def process(state, event, emit):
    i = event.i
    y = 1
"""

REFUSED = r"""
any_number(1, 2) -> line 7: 'any_number' takes \*values: any number.*default
any_names(a=1) -> line 11: 'any_names' takes \*\*named
plain(1, w=2) -> plain takes \(x, y=..., /, \*, z=...\), and takes 'w' not; leave it out
plain(x=1) -> takes 'x' only by position; write plain\(x\)
plain(1, 2, 3) -> gets 3 values by position; give each parameter once, those behind \* by
plain() -> plain takes .* and gets no 'x'; give each parameter once
pair = [1, 2]; emit(max(*pair)) -> a star in a call of max; write the values out
plain(**pair) -> a call with \*\*; write the arguments out
plain.calls = 1 -> 'plain' is not called, .* an attribute of it, outside the operator
f = plain -> 'plain' is not called, and is not a value; call it: plain\(...\)
for v in gives(3): emit(v) -> line 24: yield cannot be compiled; emit\(...\) gives out rows
Static.f(1) -> 'Static' is a class.*; write plain functions at module level
g = (v for v in state.a) -> a generator is not consumed where it is written; give it to any, all
for v in (w + u for w in state.a for u in state.a): emit(v) -> a loop over a generator with several
emit(sum(v for v in event.i)) -> int64 cannot be iterated over; a loop can iterate over range
emit(sum((v for v in state.a), 1, 2)) -> sum takes one generator, and sum a start; write one
emit(max((v for v in state.a), key=1)) -> a key is a function by its name, or a lambda; write key=
emit(max((v for v in state.a), key=lambda a, b: a)) -> a key is a function of one value; write
emit(max((v for v in state.a), start=1)) -> max takes no 'start' here; .* key= and default=
emit(int(sum((v for v in state.f), i))) -> a value is int here and float elsewhere; write 0.0 for 0
emit(sum(v if v > 1 else 0.5 for v in state.a)) -> a value is int here and float elsewhere
if any((last := v) > 3 for v in state.a): emit(last) -> 'last' may be undefined here; assign 'last'
emit(sum(i for i in state.a) + sum(y for y in state.f if y > z)) -> name 'z' is not defined
f = lambda x: x; g = f -> 'f' is a function and is not called here; call it, f\(...\)
f = lambda x: x; f = lambda x: x + 1 -> 'f' is a function, and is assigned more than once; give
f = lambda x: f(x); f(1) -> 'f' calls itself; write the recursion as a loop
f = lambda *x: 1; f(1) -> a lambda takes \*x: any number of arguments; name each parameter
f = lambda x: x + late; f(1); late = 1 -> 'late' may be undefined here; assign 'late'
k = (lambda: 1) if i else (lambda: 2) -> a lambda is not called here; give it a name
f = [lambda: 1] -> a lambda is not called here
global total -> a global statement cannot be compiled; keep what changes in state fields
del state.n -> state.n cannot be deleted; assign another value
del y; emit(y) -> 'y' may be undefined here
a, b, *c, d = i, 2 -> a tuple of 2 is too short for 3 names and a star; leave names out
a, b = 1, 2, i -> a tuple of 3 is unpacked into 2; write as many names .* a, \*rest = x
a, b = event.i -> int64 cannot be unpacked; only a tuple or a row can be assigned to several names
class C: pass -> a class cannot be compiled; keep data in state fields
yield 1 -> yield cannot be compiled; emit\(...\) gives out rows
emit(i @ i) -> the @ operator cannot be compiled; write the loops out
match i:|        case {"a": 1}: pass -> line 43: .* is a pattern of a dict, which
match i:|        case int(): pass -> line 43: .* is a pattern of a class, which cannot
match i:|        case (1, 2): pass -> line 43: a pattern of 2 parts meets int64, which is no
match i, 1:|        case (1, 2, 3): pass -> line 43: a pattern of 3 parts never fits a tuple of 2; l
match i, 1:|        case (1, *rest): pass -> line 43: a star with a name.*write \*_
match event.x:|        case "a": pass -> line 43: == between float64 and string is never true; compa
def f(x):|        return x if x < 1 else f(x - 1)|    f(1) -> line 43: 'f' calls itself; write the r
def f(x):|        nonlocal y|        y = x|    f(1) -> line 43: a nonlocal statement cannot be compi
@functools.cache|    def f(x):|        return 1|    f(1) -> line 43: 'f' has a decorator; leave it o
"""


@pytest.mark.parametrize("named", [False, True])
def test_many_columns_among_whose_values_is_chosen(named: bool, tmp_path: Path) -> None:
    columns = [f"c{at}" for at in range(40)]
    values = ["(y := state.n)", "y", *(f"event.i + {at} if state.n > 2 else y" for at in range(38))]
    given = [f"{name}={value}" for name, value in zip(columns, values)] if named else values
    text = "    state.n += 1\n    y = -1\n    emit(" + ", ".join(given) + ")\n"
    module = module_of(tmp_path / f"many_{named}.py", HELPERS + text)
    declare = ss.operator(
        state=module.State, event={"i": int, "x": float}, emits=dict.fromkeys(columns, int)
    )
    with ss.Engine(declare(module.process), threads=2) as engine:
        found = engine.process({"i": [5] * 4, "x": [0.0] * 4}).to_pylist()
    wanted = [[n, n, *((5 + at if n > 2 else n) for at in range(38))] for n in range(1, 5)]
    assert [list(row.values()) for row in found] == wanted


def test_what_is_refused_names_its_line_and_a_way_out(tmp_path: Path) -> None:
    for number, row in enumerate(REFUSED.strip().splitlines()):
        text, message = row.split(" -> ")
        where, _, said = message.rpartition("line ")
        line, _, said = said.partition(": ") if where or "line " in message else ("42", "", message)
        path = tmp_path / f"refused_{number}.py"
        module = module_of(path, HELPERS + "    " + text.replace("|", "\n") + "\n")
        with pytest.raises(ss.CompileError, match=rf"{path.name}:{line}: .*{said}") as caught:
            compiled(module)
        assert "; " in str(caught.value), text


def compiled(module: Any) -> None:
    declare = ss.operator(state=module.State, event={"i": int, "x": float}, emits={"k": int})
    ss.Engine(declare(module.process), horizon=0)


def steps_down(value):
    total = 0.0
    while True:
        if value < 2:
            total += 0.5
            return total
        value -= 1
        total += 1


def returns_from_within(state, event, emit):
    left, total, steps = abs(event.i), 0, (3, 5, 7)
    best = None
    emit(0, steps_down(left))
    while True:
        try:
            if best is None or left > best:
                best = left
            for place in range(4):
                if place == left:
                    total += place
                    break
            while True:
                total += 1
                if total > 2:
                    break
            if left == 7:
                raise ValueError("seven")
            if left < 2:
                total += steps[left]
                state.n += total
                emit(total + best, event.x)
                return
        finally:
            left -= 1
            total += 10


def test_endless_loops_that_return_from_within() -> None:
    """Behind them nothing can be reached; names change before the return and on the way round."""
    agree(returns_from_within, raises=2)
