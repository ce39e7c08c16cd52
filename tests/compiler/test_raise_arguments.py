"""What stands behind ``raise`` is what Python makes of it, also of strings of the state.

PYTEST_DONT_REWRITE: the assertions of operators are their own.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

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
