"""Strings that a module, a class, a closure or a default holds have their texts in exceptions.

PYTEST_DONT_REWRITE: the assertions of operators are their own.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import dataclasses
import enum
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import specstream as ss

STAGES = ["new", "paid", ""]
RATES = {"new": "free", "paid": "half"}
MOVES = {("idle", "start"): "running", ("running", "stop"): "idle"}
DEEP = {"a": [("n0", "n1"), ("n2", "n3")]}
ONE = frozenset(["solo"])
ENDS = ("left", "right")
PAIRS = [("far", 5), ("near", 3)]


class Side(str, enum.Enum):  # noqa: UP042
    BUY = "buy"


class Color(enum.Enum):
    RED = "rot"


class Names:
    ALL = ("first", "second")


@dataclasses.dataclass(frozen=True)
class Config:
    label: str
    parts: tuple[str, str]


class Kept(NamedTuple):
    name: str
    n: int


CONFIG = Config("label", ("p0", "p1"))
KEPT = [Kept("k0", 1), Kept("k1", 2)]


class Fee(ss.Record):
    of: str
    cents: int


class S(ss.State):
    n = ss.scalar(int)
    one = ss.scalar(str)
    some = ss.array(str, 3)
    d = ss.dict(str, int)
    texts = ss.dict(str, str)
    pairs = ss.dict(tuple[str, int], int)
    fees = ss.dict(str, Fee)
    q = ss.deque(str)
    seen = ss.set(str)


def same(s):
    return s


def picked(names, i):
    return names[i]


def by_default(i, names=("d0", "d1")):
    return names[i]


def through_state(state, at):
    """A string of the module that comes back from the state."""
    if at == 0:
        state.one = STAGES[state.n]
        return state.one
    if at == 1:
        state.some[1] = RATES["new"]
        return state.some[1]
    if at == 2:
        state.texts["a"] = STAGES[0]
        return state.texts["a"]
    if at == 3:
        state.q.append(MOVES["idle", "start"])
        return state.q.pop()
    if at == 4:
        state.fees["f"] = Fee(CONFIG.label, 3)
        return state.fees["f"].of
    found = ""
    if at == 5:
        state.seen.add(KEPT[1].name)
        for one in state.seen:
            found = one
    if at == 6:
        state.pairs[ENDS[1], 1] = 2
        for one, _ in state.pairs:
            found = one
    return found


def gone_through(i):
    found = ""
    if i == 0:
        for one in STAGES:
            found = one or found
    if i == 1:
        for key, value in RATES.items():
            found = key if value == "half" else found
    if i == 2:
        for _, (_, second) in enumerate(DEEP["a"]):
            found = second
    if i == 3:
        for member in Color:
            found = member.value
    match (KEPT[0].name, i):
        case (name, 4):
            found = name
    return found


def made():
    inside = ["c0", "c1"]

    def chosen(state, event, emit):
        n, i = state.n, event.way
        s = ""
        if i < 7:
            s = through_state(state, i)
        elif i < 12:
            s = gone_through(i - 7)
        elif i == 12:
            s = STAGES[n]
        elif i == 13:
            s = RATES[STAGES[n]]
        elif i == 14:
            s = MOVES["running", "stop"]
        elif i == 15:
            s = DEEP["a"][n][1]
        elif i == 16:
            s = next(iter(ONE))
        elif i == 17:
            s = ENDS[n]
        elif i == 18:
            s = Side.BUY.value
        elif i == 19:
            s = Color.RED.name
        elif i == 20:
            s = Names.ALL[n]
        elif i == 21:
            s = CONFIG.parts[n]
        elif i == 22:
            s = KEPT[n].name
        elif i == 23:
            s = same(picked(STAGES, n))
        elif i == 24:
            s = by_default(n)
        elif i == 25:
            s = inside[n]
        elif i == 26:
            s = min(PAIRS, key=lambda pair: pair[1])[0]
        elif i == 27:
            s = sorted(PAIRS, key=lambda pair: pair[1])[0][0]
        elif i == 28:
            s = [one for one in RATES.values() if one != "free"][0]  # noqa: RUF015
        elif i == 29:
            s = STAGES[event.choice(1, 0)] if n == 0 else RATES["new"]
        elif i == 30:
            s = RATES.get("none", STAGES[1])
        return s

    return chosen


def failing(state, event, emit):
    s = chosen(state, event, emit)
    if event.end == 0:
        raise ValueError(s)
    if event.end == 1:
        raise ValueError(f"bad {s!r:>9}", "no " + s.upper(), [s, (s, {s: 1})])
    if event.end == 2:
        state.d[s] += 1
    assert event.end != 3, s
    del state.pairs[s, 9]


def caught(state, event, emit):
    s = chosen(state, event, emit)
    try:
        if event.end == 0:
            raise ValueError(s)
        if event.end == 1:
            raise ValueError(f"bad {s!r:>9}")
        if event.end == 2:
            state.d[s] += 1
        assert event.end != 3, s
        state.pairs[s, 1] = 1
        raise LookupError(f"of {s}")
    except (ValueError, LookupError, AssertionError) as error:
        emit(s, str(error), f"{s}|")


chosen = made()
COUNT = 31
TABLE = {
    "way": [way for way in range(COUNT) for _ in range(5)],
    "end": [end for _ in range(COUNT) for end in range(5)],
}


def what_python_says(function: Any) -> tuple[list[Any], list[Any]]:
    rows: list[Any] = []
    failed = []
    for way, end in zip(*TABLE.values(), strict=True):
        state = SimpleNamespace(n=0, one="", some=["", "", ""], d={}, texts={}, pairs={}, fees={})
        state.q, state.seen = collections.deque(), set()
        event = SimpleNamespace(way=way, end=end, choice=lambda n, i: 0)
        try:
            function(state, event, lambda *values: rows.append(values))
        except Exception as error:
            failed.append((type(error).__name__, str(error)))
    return rows, failed


def rows_of(table: Any) -> list[Any]:
    return list(zip(*(table[name].to_pylist() for name in ("s", "t", "u")), strict=True))


def failed_of(table: Any) -> list[Any]:
    columns = (table["error"], table["message"])
    return list(zip(*(one.to_pylist() for one in columns), strict=True))


@pytest.mark.parametrize("function", [failing, caught], ids=lambda one: one.__name__)
def test_a_text_is_pythons_whatever_way_it_came(function: Any) -> None:
    emits = {"s": str, "t": str, "u": str}
    operator = ss.operator(state=S, event={"way": int, "end": int}, emits=emits)(function)
    rows, failed = what_python_says(function)
    assert len(rows) + len(failed) == len(TABLE["way"])
    assert not any(text in ("", "''") for _, text in failed)
    sequential = operator.run_sequential(TABLE, errors="side")
    with ss.Engine(operator, errors="side", threads=2, horizon=4, chunk=2) as engine:
        assert rows_of(engine.process(TABLE)) == rows == rows_of(sequential.output)
        if failed:
            assert failed_of(engine.failed_events()) == failed
            assert failed_of(sequential.failed_events) == failed
