"""Named tuples in a list that Python makes of an event: compiled code reads their fields."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    seen = ss.dict(int, float)


class Node(NamedTuple):
    id: int
    kind: str
    x: float


class Order(NamedTuple):
    id: int
    limit: float | None
    note: str | None


class Wide(NamedTuple):
    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    g: int
    h: int
    i: int
    j: int
    k: int
    l: int  # noqa: E741
    m: int
    n: int
    o: int
    p: int
    q: int


@ss.pure
def nodes(text: str) -> list[Node]:
    return [Node(int(one), "WB"[int(one) % 2], int(one) / 2) for one in text.split()]


@ss.pure
def orders(text: str) -> list[Order]:
    return [
        Order(int(one), int(one) / 2 if int(one) % 3 else None, one if int(one) % 2 else None)
        for one in text.split()
    ]


@ss.pure
def maybe(text: str) -> list[int | None]:
    return [int(one) if one.isdigit() else None for one in text.split()]


@ss.pure
def wide(text: str) -> list[Wide]:
    return [Wide(*[int(one)] * 17) for one in text.split()]


@ss.pure
def liars(text: str) -> list[Node]:
    return [Node(one, "W", 0.0) for one in text.split()]  # type: ignore[arg-type]


def near(one, other):
    return abs(one.x - other.x) < 1 and one.kind != other.kind


def shifted(node, by):
    return node.x * by + node.id


def through(state, event, emit):
    """Loops: fields by name, by place and taken apart; what Python and what helpers make of one."""
    for node in nodes(event.text):
        state.n += node.id
        state.x += shifted(node, state.n)
        if node.kind.lower() == "w" and node[0] != 3:
            emit(node.id, node.kind, node.x)
    for at, node in enumerate(nodes(event.text)):
        same = node
        state.n += at * same.id
    for number, kind, x in nodes(event.text):
        if kind == "B" and number > state.n % 4:
            emit(number, f"{kind}{number}", x)
    best = None
    for node in sorted(nodes(event.text), key=lambda one: -one.id):
        if best is None or node.x > best.x:
            best = node
    emit(0 if best is None else best.id, None, None)
    for _ in nodes(event.text):
        state.n += 1


def chosen(state, event, emit):
    """Comprehensions and quantifiers, also one in the other."""
    kept = [node for node in nodes(event.text) if node.id > state.n % 5]
    if kept:
        emit(len(kept), kept[0].kind, sum(node.x for node in kept))
    some = any(
        near(w, b) and state.seen.get(b.id, 0.0) <= w.x
        for w in nodes(event.text)
        if w.kind == "W"
        for b in nodes(event.text)
        if b.kind == "B"
    )
    every = all(
        any(near(w, b) or state.n > 40 for b in nodes(event.text) if b.kind == "B")
        for w in nodes(event.text)
        if w.kind == "W"
    )
    emit(int(some) + 2 * int(every), None, None)
    for node in nodes(event.text):
        for other in nodes(event.text):
            state.n += node == other
        state.seen[node.id] = node.x


def missing(state, event, emit):
    """Fields and elements that may be None."""
    for order in orders(event.text):
        state.n += 1
        limit = order.limit
        if limit is not None:
            state.x += limit
        emit(order.id, order.note, state.x if order.limit is None else order.limit)
    for number, limit, note in orders(event.text):
        emit(number, note if note is not None else "none", limit)
    for value in maybe(event.text):
        state.n += 0 if value is None else value
        emit(0 if value is None else value, None, None)
    for order in orders(event.text):
        if order.limit is None:
            continue
        inner = [o.limit for o in orders(event.text) if o.limit is not None and o.id < state.n]
        again = [
            sum(0.5 if order.limit is None else order.limit for order in orders(event.text))
            + sum(0.25 * state.n if order.limit is None else 0.0 for order in orders(event.text))
            for order in orders(event.text)
            if order.limit is not None and order.id != state.n
        ]
        emit(order.id, None, sum(inner) + sum(again) + order.limit)
    last = None
    for order in orders(event.text):
        for other in orders(event.text):
            state.n += lower(order, other) + (order == other)
        if last is None or last.id < order.id + state.n % 3:
            last = order
    if last is not None:
        emit(last.id, last.note, last.limit)


def lower(order, other):
    if order.limit is None or other.limit is None:
        return order.note is None
    return order.limit < other.limit


def fields(state, event, emit):
    """Only what is read takes room."""
    for one in wide(event.text):
        state.n += one.a + one.q
        emit(one.c + state.n, None, None)


EVENT = {"text": str}
EMITS = {"id": int, "note": ss.nullable(str), "x": ss.nullable(float)}


def declared(function: Callable[..., None]) -> ss.Operator:
    made: ss.Operator = ss.operator(state=S, event=EVENT, emits=EMITS)(function)
    return made


def texts(count: int = 60) -> pa.Table:
    rng = random.Random(5)
    return pa.table(
        {
            "text": [
                " ".join(str(rng.randrange(9)) for _ in range(rng.randrange(5)))
                for _ in range(count)
            ]
        }
    )


@pytest.mark.parametrize("function", [through, chosen, missing, fields])
def test_it_is_what_python_makes_of_it(function: Callable[..., None]) -> None:
    operator = declared(function)
    assert witness.assert_agrees(operator, texts()) == texts().num_rows
    expected = run_oracle(operator, texts())
    assert expected.output.num_rows > 50
    assert_identical(run_engine(operator, texts(), threads=1, horizon=0), expected)
    assert_identical(run_engine(operator, texts(), threads=2, horizon=4, chunk=2), expected)


def test_it_is_pickled_with_the_class() -> None:
    operator = pickle.loads(pickle.dumps(declared(through)))
    expected = run_oracle(declared(through), texts())
    assert_identical(run_engine(operator, texts(), threads=1, horizon=0), expected)


def of_liars(state, event, emit):
    for node in liars(event.text):
        state.n += node.id


def early(state, event, emit):
    for node in nodes(event.text):
        state.n += 1
        emit(state.n, None, 1 / (node.id - 3))


@ss.pure
def pair(word: str) -> tuple[int, str]:
    return int(word), word


def not_reached(state, event, emit):
    for word in event.text.split():
        if word == "stop":
            break
        state.n += pair(word)[0]
    for node in nodes(event.text.partition("stop")[0]):
        state.n += pair(node.kind.strip("WB") or str(node.id))[0]
    emit(state.n, None, None)


def test_what_the_loop_does_not_get_to_does_not_raise() -> None:
    table = pa.table({"text": ["1 2 stop x", "3", "x"]})
    expected = run_oracle(declared(not_reached), table)
    assert expected.output["id"].to_pylist() == [6, 12]
    assert_identical(run_engine(declared(not_reached), table, horizon=0), expected)


def test_what_is_raised_is_raised_where_python_would() -> None:
    table = pa.table({"text": ["1", "x"]})
    expected = run_oracle(declared(of_liars), table)
    text = "liars(event.text) gives '1' (str), and is declared int: annotate what it gives"
    assert expected.raised[0] == (0, "TypeError", text)
    assert_identical(run_engine(declared(of_liars), table, horizon=0), expected)
    table = pa.table({"text": ["1 3 4", "4 1", "x"]})
    expected = run_oracle(declared(early), table)
    assert [(row, kind) for row, kind, _ in expected.raised] == [
        (0, "ZeroDivisionError"),
        (2, "ValueError"),
    ]
    assert expected.output["x"].to_pylist() == [1.0, -0.5]
    assert_identical(run_engine(declared(early), table, horizon=0), expected)


def kept(state, event, emit):
    found = [one for one in orders(event.text) if one.id > state.n]
    emit(len(found), None, None)


def too_many(state, event, emit):
    for one in wide(event.text):
        for other in wide(event.text):
            state.n += one == other


def misspelt(state, event, emit):
    for node in nodes(event.text):
        state.n += node.kinds


def by_the_state(state, event, emit):
    made = nodes(event.text)
    emit(made[state.n].id, None, None)


@pytest.mark.parametrize(
    ("function", "line", "message"),
    [
        (kept, 1, "a list gets a value that may be None"),
        (too_many, 2, "17 values of each element"),
        (misspelt, 2, "'node' is a Node, which has no 'kinds'; write node.kind"),
        (by_the_state, 2, "made is a list of Node, which only Python has"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(
    function: Callable[..., Any], line: int, message: str
) -> None:
    with pytest.raises(ss.CompileError, match=message) as caught:
        ss.Engine(declared(function), horizon=0).close()
    assert f":{function.__code__.co_firstlineno + line}:" in str(caught.value)
