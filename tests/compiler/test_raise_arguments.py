"""What stands behind ``raise`` is what Python makes of it, also of strings of the state.

PYTEST_DONT_REWRITE: the assertions of operators are their own.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import decimal
import functools
import hashlib
import json
import operator as operators
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss

LIMIT = "the limit"


class S(ss.State):
    name = ss.scalar(str)
    names = ss.array(str, 3)
    a = ss.array(int, 3)
    d = ss.dict(str, int)
    seen = ss.set(str)
    row = ss.list(int)


class Refused(Exception):
    def __init__(self, name, *, of):
        super().__init__(f"{name.title()} of {of}")


def doubled(x):
    return 2 * x


def is_first(name, names):
    return name == names[0]


def refused(state, event, emit):
    n = event.name
    state.name = n
    state.names[event.x % 3] = n
    state.a[event.x % 3] += 1
    state.d[n] = event.x
    state.seen.add(n)
    state.row.append(event.x)
    if event.x == 1:
        raise ValueError("no " + n)
    if event.x == 2:
        raise ValueError(state.name + "!", len(n), n[0], n[1:], n == "gamma", n != LIMIT)
    if event.x == 3:
        raise ValueError(n.upper(), n.replace("a", LIMIT), n.startswith("d"), "l" in n)
    if event.x == 4:
        raise LookupError(", ".join([n, state.name]), ", ".join(x for x in [n, n[::-1]]))
    if event.x == 5:
        raise ValueError(f"{n!r:>9} {len(n)} {n.upper()} {'<' + n:>8}")
    if event.x == 6:
        raise KeyError(
            state.d, state.row, state.d[n], state.d.get("nobody", -1), n in state.d, n not in "b"
        )
    if event.x == 7:
        raise ValueError(sorted([n, LIMIT, "a"]), max(n, "b"), n < "h", {n: 1}, (n, [n]))
    if event.x == 8:
        raise Refused(n, of=doubled(event.x)) from ValueError("because " + n)
    if event.x == 9:
        raise ValueError(is_first(n, state.names), state.names[0] + state.names[1], n * 2)
    if event.x == 10:
        raise ValueError(str(state.a), [one + "." for one in state.names], event.name + "?")
    if event.x == 11:
        raise ValueError(f"{state.d} {state.row}", "%s of %d" % (n, 2), *[n, n + n])  # noqa: UP031
    assert event.x != 12, n + " is twelve"
    assert event.x != 13, (n, n.center(9, "*"))
    emit(event.x)


operator = ss.operator(state=S, event={"name": str, "x": int}, emits={"x": int})(refused)

NAMES = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi".split()  # noqa: SIM905


def rows(failed: pa.Table | None) -> list[dict[str, Any]]:
    assert failed is not None
    return list(failed.to_pylist())


def messages(failed: pa.Table | None) -> list[str]:
    return [row["message"] for row in rows(failed)]


def what_python_says() -> list[tuple[str, str, str]]:
    """The same function over Python's own objects; an event that raises leaves nothing."""
    said = []
    for x, name in enumerate(NAMES):
        state = SimpleNamespace(
            name="", names=["", "", ""], a=np.zeros(3, int), d={}, seen=set(), row=[]
        )
        state.names[0] = NAMES[0]
        state.a[0] = 1
        state.d = {NAMES[0]: 0}
        state.row = [0]
        try:
            refused(state, SimpleNamespace(name=name, x=x), lambda x: None)
        except Exception as error:
            cause = error.__cause__
            said.append((type(error).__name__, str(error), str(cause)))
    return said


def test_an_event_fails_with_what_python_says() -> None:
    """The first event leaves a state, of which the others that fail each begin."""
    table = {"name": NAMES, "x": range(len(NAMES))}
    expected = what_python_says()
    assert len(expected) == 13
    found = rows(operator.run_sequential(table, errors="side").failed_events)
    assert [(one["error"], one["message"]) for one in found] == [one[:2] for one in expected]
    assert "ValueError: because theta" not in found[0]["traceback"]
    assert f"ValueError: {expected[7][2]}" in found[7]["traceback"]
    settings: list[dict[str, Any]] = [{"threads": 1}, {"threads": 2, "horizon": 4, "chunk": 1}]
    for options in settings:
        with ss.Engine(operator, errors="side", **options) as engine:
            engine.process(table)
            assert rows(engine.failed_events()) == found


def test_a_null_is_none() -> None:
    @ss.operator(state=S, event={"name": ss.nullable(str), "x": ss.nullable(int)}, emits={})
    def told(state, event, emit):
        raise ValueError(event.name, event.x, event.name is None, f"{event.x}", state.names)

    found = told.run_sequential({"name": ["a", None], "x": [1, None]}, errors="side")
    assert messages(found.failed_events) == [
        "('a', 1, False, '1', array(['', '', ''], dtype='<U1'))",
        "(None, None, True, 'None', array(['', '', ''], dtype='<U1'))",
    ]


class Fee(ss.Record):
    of: str
    cents: int


class Records(ss.State):
    d = ss.dict(str, Fee)


def test_a_record_is_told_as_it_was() -> None:
    @ss.operator(state=Records, event={"name": str, "x": int}, emits={})
    def told(state, event, emit):
        state.d[event.name] = Fee(event.name, event.x)
        raise ValueError(state.d[event.name], f"{state.d[event.name]}", state.d)

    found = told.run_sequential({"name": ["a"], "x": [1]}, errors="side").failed_events
    fee = Fee("a", 1)
    assert messages(found) == [str((fee, f"{fee}", {"a": fee}))]


def test_a_container_is_told_as_it_was_and_in_order() -> None:
    @ss.operator(state=S, event={"name": str, "x": int}, emits={})
    def told(state, event, emit):
        state.seen.add(event.name)
        if event.x:
            raise ValueError(state.seen)

    table = {"name": ["c", "a", "b"], "x": [0, 0, 1]}
    with ss.Engine(told, threads=1, errors="side") as engine:
        engine.process(table)
        assert messages(engine.failed_events()) == ["{'c', 'a', 'b'}"]


RATES = {"alpha": 1, "beta": 2}
STAGES = ["new", "paid"]


class Row(ss.State):
    n = ss.scalar(int)
    name = ss.scalar(str)
    names = ss.array(str, 2)
    d = ss.dict(str, int)
    q = ss.deque(str)
    fees = ss.dict(str, Fee)


def loud(text):
    return text.upper() + "!"


def described(name, n):
    return f"{name} has {n}"


def read(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def more(state):
    return state.n + 1


@functools.lru_cache
def title(text):
    return text.title()


def refuse(text):
    raise ValueError("refused " + json.loads(text)["p"])


def demand(holds, text):
    assert holds, "demanded: " + text.upper()


def made_of(name):
    return LookupError(name.title())


def told_by_python(state, event, emit):
    data = json.loads(event.s)
    text = f"{event.s}!"
    state.n += 1
    state.name = "alpha"
    state.names[0] = "nm"
    state.d["alpha"] = 3
    state.q.append("q0")
    state.fees["f"] = Fee("fo", 5)
    x, n, name = event.x, state.n, state.name
    if x == 0:
        raise ValueError("bad " + json.loads(event.s)["p"])
    if x == 1:
        raise ValueError(f"bad {json.loads(event.s)} {n:{STAGES[0] and 3}d} {state.name!r:>8}")
    if x == 2:
        raise ValueError("%s and %s" % (json.loads(event.s), n), "{n[a]}".format(n={"a": name}))  # noqa: UP031
    if x == 3:
        raise ValueError("no " + state.name.upper() + str(re.search("x", event.s)))
    if x == 4:
        raise ValueError(data, data["p"] + name, *data, text)
    if x == 5:
        raise ValueError(re.sub("a", "o", name), json.dumps({"a": name, "d": state.d, "n": n}))
    if x == 6:
        raise ValueError(RATES[name], RATES.get(name), name in RATES, name in data, STAGES[n % 2])
    if x == 7:
        raise ValueError(", ".join(state.names), ", ".join(f"{k}={v}" for k, v in state.d.items()))
    if x == 8:
        raise ValueError(loud(name), loud(event.s), described(name, n), more(state), title(name))
    if x == 9:
        raise ValueError(read(event.s), state.q, state.fees["f"].of.upper(), Fee(name, 3))
    if x == 10:
        raise ValueError(type(n).__name__, isinstance(name, str), max(state.d, key=state.d.get))
    if x == 11:
        raise ValueError(hashlib.md5(name.encode()).hexdigest(), decimal.Decimal("1.50") * n)
    if x == 12:
        raise ValueError(state.d.get(event.s, event.s), state.d.get(name), sorted(state.d.items()))
    if x == 13:
        raise ValueError(n if data else 0, data if n else 0, n and data, [name, data], {"s": data})
    if x == 14:
        raise ValueError(list(map(str.upper, name)), [c for c in name if c in "lp"], 2**70)
    if x == 15:
        raise ValueError("a" + 1)  # type: ignore[operator]
    if x == 16:
        raise ValueError(json.loads("{"))
    if x == 17:
        refuse(event.s)
    if x == 18:
        demand(n < 0, name)
    if x == 19:
        raise made_of(name)
    if x == 20:
        raise KeyError(data["p"]) from ValueError(json.loads(event.s))
    if x == 21:
        raise ValueError(np.array([1, 2]) * n, operators.add(n, 1), collections.OrderedDict(a=name))
    if x == 24:
        raise ValueError(
            sorted(state.names), collections.Counter(name), list(state.d), text.upper()
        )
    assert x != 22, json.loads(event.s)
    assert x != 23, f"{json.loads(event.s)['p']} {name.upper()}"
    emit(n)


def test_python_computes_whatever_stands_behind_raise() -> None:
    """Each event comes to a new state."""
    operator = ss.operator(state=Row, event={"s": str, "x": int}, emits={"n": int})(told_by_python)
    for x in range(26):
        state = SimpleNamespace(n=0, name="", names=["", ""], d={}, q=collections.deque(), fees={})
        event, table = SimpleNamespace(s='{"p": "x"}', x=x), {"s": ['{"p": "x"}'], "x": [x]}
        expected: list[Any] = []
        try:
            told_by_python(state, event, lambda n: None)
        except Exception as error:
            expected = [(type(error).__name__, str(error))]
        assert bool(expected) == (x < 25)
        with ss.Engine(operator, errors="side", threads=1) as engine:
            engine.process(table)
            sides = (
                engine.failed_events(),
                operator.run_sequential(table, errors="side").failed_events,
            )
        for side in sides:
            found = [] if side is None else rows(side)
            assert [(one["error"], one["message"]) for one in found] == expected
    with ss.Engine(operator) as engine, pytest.raises(ValueError, match="bad x"):
        engine.process({"s": ['{"p": "x"}'], "x": [0]})


def test_functions_that_only_python_calls_catch_nothing() -> None:
    """``json.loads`` has a try statement, and it is not the operator's."""

    @ss.operator(state=S, event={"name": str, "x": int}, emits={"n": int})
    def counting(state, event, emit):
        n = int(json.loads(event.name)["n"])
        state.name = "alpha"
        if n > 1:
            raise ValueError("no " + state.name.upper())
        emit(n)

    assert not counting.program.catches
    found = counting.run_sequential({"name": ['{"n": 2}'], "x": [0]}, errors="side")
    assert messages(found.failed_events) == ["no ALPHA"]


def test_what_is_caught_is_put_together_as_anywhere() -> None:
    @ss.operator(state=S, event={"name": str, "x": int}, emits={"t": str})
    def telling(state, event, emit):
        state.name = "alpha"
        try:
            if event.x == 0:
                raise ValueError("bad " + json.loads(event.name)["p"])
            if event.x == 1:
                raise ValueError(f"bad {json.loads(event.name)} {state.name}")
            if event.x == 2:
                raise ValueError("no " + state.name)
            if event.x == 3:
                raise ValueError("no %s" % state.name, 1)  # noqa: UP031
            assert event.x != 4, f"{state.name}, {event.x}"
            raise ValueError(str(event.x))
        except (ValueError, AssertionError) as error:
            emit(str(error))

    table = {"name": ['{"p": "x"}'] * 6, "x": range(6)}
    told = ["bad x", "bad {'p': 'x'} alpha", "no alpha", "('no alpha', 1)", "alpha, 4", "5"]
    assert telling.run_sequential(table).output["t"].to_pylist() == told
    with ss.Engine(telling, threads=1) as engine:
        assert engine.process(table)["t"].to_pylist() == told


def test_what_a_caught_exception_cannot_be_made_of_is_refused() -> None:
    """With a way out that compiles."""

    def telling(state, event, emit):
        try:
            raise ValueError(json.loads(event.name)["p"])
        except ValueError as error:
            emit(str(error))

    def annotated(state, event, emit):
        try:
            p: str = json.loads(event.name)["p"]
            raise ValueError(p)
        except ValueError as error:
            emit(str(error))

    declared = ss.operator(state=S, event={"name": str, "x": int}, emits={"t": str})
    with pytest.raises(
        ss.CompileError, match=r"json\.loads\(event\.name\)\['p'\] is .* annotate it"
    ):
        declared(telling)
    table = {"name": ['{"p": "x"}'], "x": [0]}
    assert declared(annotated).run_sequential(table).output["t"].to_pylist() == ["x"]
