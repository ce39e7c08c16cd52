"""What an operator evaluates, how often, and in which order: as Python does, in every position.

The oracle and native code come from one rewritten tree, and may be wrong together. So both are
compared with the function as it was written, run by Python over NumPy arrays.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import generated

import specstream as ss

# `t` gives its number back and leaves its trace in `state.n`, which depends on all calls before and
# is read in between. `tf`, `tb` and `low` do the same for a float, a bool and an index.
HEADER = """
import math

import numpy as np

import specstream as ss
from specstream.structures import add, boosted, increment, maximum


def deposit(balances, key, amount):
    balances[key % 4] += amount
    return balances[key % 4]


def withdraw(balances, key, amount):
    balances[key % 4] -= amount


class State(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float, fill=0.5)
    a = ss.array(int, 8, fill=2)
    m = ss.array(int, (3, 4), fill=5)
    f = ss.array(float, 8, fill=1.5)
    balances = boosted(ss.array(int, 4), deposit=(deposit, withdraw))
    locks = ss.locks(4)


def t(state, value):
    state.n = (state.n * 31 + value) % 1000003
    return value


def tf(state, value):
    return float(t(state, value))


def tb(state, value):
    return t(state, value) % 2 == 1


def low(state, value):
    return t(state, value) % 3


def three(first, second, third):
    return first * 100 + second * 10 + third


def itself(state, value):
    t(state, value)
    return state


def pair(state, value):
    return t(state, value), t(state, value + 1)


def rows(state, event, emit):
    emit(0, state.x, state.n)
    for i in range(8):
        emit(1, state.f[i], state.a[i])
    for i in range(12):
        emit(2, float(i), state.m[i // 4, i % 4])


@ss.operator(
    state=State,
    event={"case": int, "i": int, "x": float},
    emits={"what": int, "first": float, "second": int, "third": ss.nullable(int)},
    name="ordered",
)
def generated(state, event, emit):
    i = event.i
    j = 1
    x = event.x
    on = False
"""

CASES = """
state.a[state.n % 8] = increment(state, "n")
state.a[low(state, 1)] = t(state, 2)
state.m[low(state, 1), low(state, 2)] = t(state, 3)
state.m[low(state, 1)][low(state, 2)] = t(state, 3)
state.m[low(state, 1):, low(state, 2)] = t(state, 3)
state.a[low(state, 4):t(state, 5)] = state.a[low(state, 1):low(state, 2)][0:1]
state.a[t(state, 0):t(state, 6):t(state, 2)] = t(state, 3)
itself(state, 1).n = t(state, 2)
itself(state, 1).a[low(state, 2)] = t(state, 3)
itself(state, 1).n += t(state, 2)
itself(state, 1).a[low(state, 2)] += t(state, 3)
itself(state, 1).n **= low(state, 2)
state.a[low(state, 1)] **= low(state, 2)
state.a[low(state, 1)] += state.n * t(state, 2)
state.a[state.n % 8] += t(state, 2)
state.m[low(state, 1), low(state, 2)] *= t(state, 3)
state.m[low(state, 1)] += t(state, 3)
state.m[low(state, 1), 0:low(state, 2)] -= t(state, 3)
state.a[low(state, 1):t(state, 5)] **= low(state, 2)
state.f[low(state, 1)] /= tf(state, 2)
state.n += t(state, 2) + state.n
state.n -= state.n * t(state, 2)
j += t(state, 2) * j
j = state.a[low(state, 1)] = state.n = t(state, 4)
state.a[state.n % 8], state.a[(state.n + 1) % 8] = t(state, 5), t(state, 6)
state.a[low(state, 1)], state.a[low(state, 2)] = t(state, 3), t(state, 4)
state.n, j = t(state, 3), state.n
j, state.a[j % 8] = t(state, 3), t(state, 4)
i, j = j, i; t(state, i); t(state, j)
(i, j), state.n = (t(state, 3), t(state, 4)), t(state, 5); t(state, i); t(state, j)
state.n, (state.a[low(state, 1)], (i, j)), x = t(state, 3), (t(state, 4), (i, t(state, 5))), 0.5
state.n, (i, j), state.n = 1, (2, 3), 4; t(state, i * 10 + j)
i, j = pair(state, 1); t(state, i * 10 + j)
state.n, state.a[low(state, 2)] = pair(state, 4)
j: int = t(state, 1); state.a[low(state, j)]: int = t(state, 2)
emit(third=t(state, 1), what=t(state, 2), first=tf(state, 3), second=t(state, 4))
emit(t(state, 1), second=t(state, 2), first=tf(state, 3))
emit(t(state, 1), tf(state, 2), third=None if tb(state, 3) else t(state, 4), second=t(state, 5))
emit(second=state.n, third=t(state, 1), first=float(state.n), what=t(state, 2))
t(state, three(third=t(state, 1), first=t(state, 2), second=t(state, 3)))
t(state, three(t(state, 1), third=t(state, 2), second=t(state, 3)))
t(state, three(t(state, 1), t(state, 2), t(state, 3)))
t(state, three(first=state.n, third=t(state, 2), second=state.n))
t(state, three(state.n, t(state, 2), state.n))
t(state=itself(state, 1), value=t(state, 2))
t(value=t(state, 1), state=itself(state, 2))
on = 0 <= increment(state, "n") < 100
on = 0 <= state.balances.deposit(t(state, 1), t(state, 2)) < 100
on = 0 <= state.balances.deposit(i, 5) < 3 if tb(state, 2) else 5 > t(state, 1) > 1
on = t(state, 1) < t(state, 2) < t(state, 3) < t(state, 4)
on = t(state, 1) < t(state, 2) > t(state, 3) != t(state, 4) == t(state, 4) <= t(state, 5)
on = t(state, 1) < t(state, 0) < t(state, 3)
on = t(state, 3) < state.n < t(state, 9) < state.n
on = tf(state, 1) <= tf(state, 2) < 2.5 < tf(state, 3)
on = t(state, 1) < t(state, 2) in state.a
on = (0 < t(state, 1) < 3 < t(state, 4)) == (t(state, 3) < t(state, 2) < t(state, 3))
on = tb(state, 1) and 0 <= t(state, 2) < 5 or 0 < t(state, 4) < 3
if 0 <= t(state, 5) < 4: t(state, 6)
while 0 <= t(state, 7) - state.n < 5: t(state, 8)
on = t(state, 2) in state.a[low(state, 1):]
on = t(state, 2) not in state.m[low(state, 1)]
on = t(state, 2) in (t(state, 1), t(state, 2))
on = t(state, 1) - state.n == state.n - t(state, 1)
on = tb(state, 1) or tb(state, 3)
on = tb(state, 2) or tb(state, 3) and tb(state, 4) or tb(state, 5)
on = not tb(state, 2) and tb(state, 4) and tb(state, 3)
on = (tb(state, 1) & tb(state, 2)) | tb(state, 3)
j = t(state, 0) or t(state, 2)
j = t(state, 4) and t(state, 5); t(state, j)
j = t(state, 1) if tb(state, 2) else t(state, 3)
j = (t(state, 1) if tb(state, 3) else t(state, 3)) - state.n
j = state.n + t(state, 1) * state.n
j = state.n - (t(state, 1) - t(state, 2)) - state.n
j = t(state, 2) ** t(state, 3) // t(state, 5) % t(state, 4)
j = -t(state, 1) + ~t(state, 2) - abs(t(state, 3))
j = t(state, 1) << t(state, 2) >> low(state, 1) | t(state, 8) ^ t(state, 3) & t(state, 1)
state.x = tf(state, 5) / tf(state, 2) // state.x % tf(state, 7) ** tf(state, 2)
j = min(t(state, 3), t(state, 1), state.n)
j = max(state.n, t(state, 1), t(state, 2), state.n)
j = min(state.a[low(state, 1):t(state, 4)]) + sum(state.m[low(state, 2)]) + max(state.a)
state.x = math.atan2(tf(state, 2), tf(state, 1)) + math.pow(tf(state, 1), state.x)
state.x = math.copysign(tf(state, 2), -tf(state, 1)) + math.sqrt(tf(state, 4))
j = round(tf(state, 2)) + int(tf(state, 3)) + int(tb(state, 3)) + len(state.a[low(state, 1):])
j = state.m[low(state, 2), low(state, 1)] + state.m[low(state, 1)][low(state, 2)]
j = state.a[state.n % 8] + state.a[t(state, 1)] + state.a[state.n % 8]
j = state.a[low(state, 1):][low(state, 2):t(state, 3)][low(state, 0)]
j = state.a[low(state, 1):t(state, 7):low(state, 2)][low(state, 1)]
j = pair(state, 3)[0] + pair(state, 5)[1]
j = (t(state, 1), t(state, 2), t(state, 3))[1] + state.n
j = (state.n, t(state, 2), state.n)[2]
add(state.a, low(state, 1), t(state, 2))
add(state.a, state.n % 8, t(state, 2))
add(state.m, (low(state, 1), low(state, 2)), t(state, 3))
add(state.m[low(state, 1)], low(state, 2), t(state, 3))
add(state, "n", t(state, 2) * state.n)
maximum(itself(state, 1), "n", t(state, 2))
j = increment(state.a, low(state, 1)) - increment(state.a, low(state, 1)) + increment(state, "n")
j = increment(state.a[low(state, 1):], low(state, 2)) * state.n
state.balances.deposit(t(state, 1), t(state, 2))
j = state.balances.deposit(state.n, t(state, 2)) - state.balances.deposit(t(state, 3), state.n)
state.a[state.balances.deposit(1, 1) % 8] = state.balances.deposit(1, t(state, 3))
for v in range(t(state, 1), t(state, 6), t(state, 2)): t(state, v)
for v in range(low(state, 5)): t(state, v); state.n = v
for v in state.a[low(state, 1):t(state, 4)]: t(state, v); state.a[3] = t(state, 9)
for p, v in enumerate(state.m[low(state, 1)], t(state, 7)): t(state, p * v)
for v, w in zip(state.m[low(state, 1)], range(t(state, 2), t(state, 5))): t(state, v * w)
for v in (t(state, 1), t(state, 2)): t(state, v + 5)
for v, w in zip(range(t(state, 3)), (t(state, 1), t(state, 2))): t(state, v + w)
with state.locks[low(state, 1)], state.locks[t(state, 3)]: t(state, 2)
j = (i := t(state, 2)) + i * t(state, 1) - (i := 5); t(state, j + i)
j = three(i := t(state, 3), third=i, second=(i := t(state, 1))) + i; t(state, j)
state.a[(i := low(state, 2))] = i = t(state, 4); t(state, i)
state.n, (state.a[(i := 3)], j) = t(state, 1), (i, i + t(state, 2))
on = any(t(state, v) > 2 for v in range(low(state, 5), t(state, 6)))
on = all(t(state, v) < t(state, 3) for v in state.m[low(state, 1)])
on = any([tb(state, v) for v in range(t(state, 3))]) and all([tb(state, v) for v in (1, 2, 4)])
on = any(0 < (j := t(state, v)) < 2 for v in range(5)); t(state, j)
j = sum((t(state, v) for v in state.a[low(state, 1):]), t(state, 3))
j = sum(t(state, v * w) for v in range(low(state, 2)) for w in range(t(state, v)) if tb(state, w))
j = sum([t(state, v) for v in range(t(state, 3))]) - state.n
j = max((v * t(state, 2) for v in range(low(state, 2))), default=t(state, 4))
j = min((t(state, v) for v in state.m[1]), key=lambda v: t(state, v) % 5, default=t(state, 4))
j = max(state.a[low(state, 1):], key=lambda v: t(state, v + state.n) % 7)
j = max(min(t(state, v + w) for w in range(3)) for v in (t(state, 4), t(state, 2)))
x = sum(tf(state, v) * x for v in range(t(state, 3)))
f = lambda v, w=t(state, 4): t(state, v) * 10 + w; t(state, 9); j = f(2) + f(w=t(state, 1), v=i)
g = lambda v: t(state, v) + i; i = 7; j = g(t(state, 1)) + g(i); i = 8; t(state, g(j))
j = (lambda v, w: v * 10 + w)(t(state, 2), w=t(state, 3)); t(state, j)
part = [t(state, v) for v in range(low(state, 5)) if tb(state, v)]; t(state, len(part))
for state.n in (t(state, 1), t(state, 2)): t(state, state.n)
for state.a[low(state, 2)] in range(t(state, 3)): t(state, 4)
for state.a[low(state, 1)], *ends in ((t(state, 1), 2, 3), (4, 5, t(state, 2))): t(state, ends[1])
i, *ends = t(state, 1), t(state, 2), t(state, 3); t(state, ends[1] * 10 + i)
*ends, state.a[low(state, 1)], state.n = t(state, 1), t(state, 2), t(state, 3); t(state, len(ends))
del i; i = t(state, 1)
assert tb(state, 1), t(state, 2)
assert 0 < t(state, 1) < 2, t(state, 2)
t(state, 1); state.a[low(state, 2)]; state.n
0 < t(state, 1) < 5
"""


def cases() -> list[str]:
    return CASES.strip().splitlines()


def module_of(lines: list[str]) -> str:
    """An operator whose event says which of the lines it runs."""
    body = []
    for number, line in enumerate(lines):
        body.append(f"    {'if' if number == 0 else 'elif'} event.case == {number}:")
        body.append(f"        {line}")
    body += [f"    t(state, {name})" for name in ("i", "j", "int(on)", "int(x)")]
    body.append("    rows(state, event, emit)")
    return HEADER + "\n".join(body) + "\n"


class Boosted:
    def __init__(self, deposit: Any) -> None:
        self.balances = np.zeros(4, np.int64)
        self._deposit = deposit

    def deposit(self, key: Any, amount: Any) -> Any:
        return self._deposit(self.balances, key, amount)


class Lock:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def run_as_written(operator: ss.Operator, table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows that the function gives out under Python, over plain objects."""
    deposit = operator.function.__globals__["deposit"]
    state = SimpleNamespace(
        n=0,
        x=0.5,
        a=np.full(8, 2),
        m=np.full((3, 4), 5),
        f=np.full(8, 1.5),
        balances=Boosted(deposit),
        locks=[Lock()] * 4,
    )
    rows: list[tuple[Any, ...]] = []

    def emit(what: int, first: float, second: int, third: int | None = None) -> None:
        rows.append((int(what), float(first), int(second), third if third is None else int(third)))

    for event in table.to_pylist():
        operator.function(state, SimpleNamespace(**event), emit)
    return rows


def by_case(rows: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """The rows of each event."""
    parts: list[list[tuple[Any, ...]]] = [[]]
    for row in rows:
        parts[-1].append(row)
        if row[:2] == (2, 11.0):  # the last one that `rows` emits
            parts.append([])
    return parts[:-1]


def check(lines: list[str], folder: Path, number: int, *paths: dict[str, Any]) -> None:
    operator = generated.load(module_of(lines), folder, number)
    cases = np.arange(len(lines))
    table = pa.table({"case": cases, "i": cases % 5, "x": cases * 0.5})
    written = by_case(run_as_written(operator, table))
    expected = run_oracle(operator, table)
    assert expected.raised == ()
    results = {"oracle": expected}
    results |= {str(path): run_engine(operator, table, **path) for path in paths}
    for path, result in results.items():
        found = by_case([tuple(row.values()) for row in result.output.to_pylist()])
        for line, own, pythons in zip(lines, found, written, strict=True):
            assert own == pythons, f"{path} differs from Python at {line}"
        assert_identical(result, expected)


class Writer:
    """Writes statements in which nearly every part calls `t` or reads what it changes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pick = self.rng.choice

    def shuffled(self, *parts: str) -> str:
        return ", ".join(self.rng.sample(parts, len(parts)))

    def int_(self, depth: int) -> str:
        if depth == 0:
            return self.pick([f"t(state, {self.rng.randrange(9)})", "state.n", "i", "j"])
        a, b, c = (self.int_(self.rng.randrange(depth)) for _ in range(3))
        return self.pick(
            [
                f"({a} {self.pick('+-^|&')} {b})",
                f"(-{a})",
                f"t(state, {a})",
                f"{self.pick(['min', 'max'])}({a}, {b}, {c})",
                f"({a} if {self.bool_(depth - 1)} else {b})",
                f"({a} {self.pick(['and', 'or'])} {b})",
                f"int({self.bool_(depth - 1)})",
                f"three({a} % 9, {self.shuffled(f'third={b} % 9', f'second={c} % 9')})",
                f"three({self.shuffled(f'third={a} % 9', f'second={b} % 9', f'first={c} % 9')})",
                f"t({self.shuffled(f'value={a}', 'state=itself(state, 1)')})",
                f"state.a[{a} % 8]",
                f"state.m[{a} % 3, {b} % 4]",
                f"state.m[{a} % 3][{b} % 4]",
                f"len(state.a[{a} % 9 : {b} % 9 : {c} % 3 + 1])",
                f"({a}, {b}, {c})[{self.rng.randrange(3)}]",
                f"increment(state.a, {a} % 8)",
                f"state.balances.deposit({a} % 50, {b} % 50)",
            ]
        )

    def bool_(self, depth: int) -> str:
        if depth == 0:
            return self.pick([f"tb(state, {self.rng.randrange(9)})", "(state.n % 2 == 0)", "on"])
        a, b, c, d = (self.int_(self.rng.randrange(depth)) for _ in range(4))
        less = [self.pick(["<", "<=", ">", ">=", "==", "!="]) for _ in range(3)]
        return self.pick(
            [
                f"({a} {less[0]} {b})",
                f"({a} {less[0]} {b} {less[1]} {c})",
                f"({a} % 5 {less[0]} {b} % 5 {less[1]} {c} % 5 {less[2]} {d} % 5)",
                f"({a} {self.pick(['in', 'not in'])} state.a[{b} % 8 :])",
                f"({self.bool_(depth - 1)} {self.pick(['and', 'or', '&', '^'])} "
                f"{self.bool_(depth - 1)})",
                f"(not {self.bool_(depth - 1)})",
            ]
        )

    def target(self) -> str:
        a, b = self.int_(1), self.int_(1)
        return self.pick(
            [f"state.a[{a} % 8]", f"state.m[{a} % 3, {b} % 4]", f"state.m[{a} % 3][{b} % 4]", "i"]
        )

    def small(self) -> str:
        return f"{self.int_(2)} % 1000"

    def statement(self) -> str:
        columns = [f"what={self.small()}", f"first=float({self.small()})"]
        columns.append(f"second={self.small()}")
        return self.pick(
            [
                f"{self.target()} = {self.small()}",
                f"{self.target()} {self.pick('+-^')}= {self.small()}",
                f"{self.target()} = {self.target()} = {self.small()}",
                f"{self.target()}, {self.target()} = {self.small()}, {self.small()}",
                f"state.a[{self.int_(1)} % 8 : {self.int_(1)} % 9] = {self.small()}",
                f"state.m[{self.int_(1)} % 3] -= {self.small()}",
                f"emit({self.shuffled(*columns, f'third={self.small()}')})",
                f"emit({self.small()}, {self.shuffled(*columns[1:])})",
                f"add(state.a, {self.int_(1)} % 8, {self.small()})",
                f"on = {self.bool_(2)}",
                f"if {self.bool_(2)}: t(state, {self.small()})",
                f"for v in range({self.small()} % 3, {self.small()} % 7): t(state, v)",
            ]
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_calls_with_effects_everywhere(seed: int, tmp_path: Path) -> None:
    writer = Writer(seed)
    check([writer.statement() for _ in range(24)], tmp_path, 10_100 + seed, {"horizon": 0})


SPECULATIVE = """
state.a[state.n % 8] = increment(state, "n")
on = 0 <= increment(state, "n") < 100
on = 0 <= state.balances.deposit(i, t(state, 2)) < t(state, 100) < state.n
on = t(state, 2) in state.a[low(state, 1):]
emit(second=increment(state, "n"), first=x, what=increment(state.a, low(state, 2)))
j = three(third=increment(state, "n"), first=increment(state, "n"), second=state.n)
state.a[low(state, 1)] += t(state, 2)
"""


def test_each_protocol(tmp_path: Path) -> None:
    speculate = {"horizon": 4, "chunk": 2, "execution": "speculate"}
    check(
        SPECULATIVE.strip().splitlines(),
        tmp_path,
        10_200,
        {"threads": 2, **speculate},
        {"threads": 2, "protocol": "eager", **speculate},
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_each_position(part: int, tmp_path: Path) -> None:
    check(cases()[part::4], tmp_path, 10_000 + part, {"horizon": 0})


@ss.operator(
    state=type("Steps", (ss.State,), {"a": ss.array(int, 4, fill=3)}),
    event={"i": int},
    emits={"found": bool},
)
def number_that_began_as_a_literal(state, event, emit):
    steps = 1
    for value in state.a:
        steps = steps ^ (value + event.i)
    emit(0 < steps < event.i <= 100)


def test_a_number_that_began_as_a_literal_stands_in_a_chain(path: Any) -> None:
    table = pa.table({"i": list(range(120))})
    expected = run_oracle(number_that_began_as_a_literal, table)
    assert_identical(path(number_that_began_as_a_literal, table), expected)
    assert set(expected.output["found"].to_pylist()) == {True, False}
