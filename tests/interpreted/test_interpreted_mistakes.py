"""A mistake in an interpreted operator is the same error on every setting: with the operator, the
field or column, what was expected, what to write, and the user's line."""

# Operators carry no types; these are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from specstream.structures import add, increment, maximum, minimum


class Order(ss.Record):
    price: float
    tag: str = "x"


class Desk(ss.State):
    total = ss.scalar(int)
    on = ss.scalar(bool)
    word = ss.scalar(str)
    small = ss.scalar(np.int8)
    level = ss.scalar(float)
    a = ss.array(int, 4)
    bytes = ss.array(np.uint8, 4)
    grid = ss.array(float, (2, 3))
    flags = ss.array(bool, 3)
    last = ss.scalar(Order)
    orders = ss.array(Order, 3)
    held = ss.dict(int, float)
    seen = ss.set(int)
    lately = ss.list(int)
    window = ss.deque(int, maxlen=4)
    best = ss.priority_queue(int)
    timers = ss.timers(int)


EVENT: dict[str, Any] = {"time": int, "x": int, "maybe": ss.nullable(float)}
EMITS: dict[str, Any] = {"n": int, "y": float, "maybe": ss.nullable(float)}
TABLE = pa.table(
    {"time": [1, 2, 3, 4], "x": [0, 1, 7, 2], "maybe": pa.array([1.0, None, None, 2.0])}
)
SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 1},
    {"threads": 2, "horizon": 4, "chunk": 2, "protocol": "eager"},
]


def fires(state, timer, emit):
    pass


# What stands at event 7, the kind of error, and what it says.
MISTAKES: list[tuple[str, type[Exception], list[str]]] = [
    ("state.a = 3", AttributeError, ["state.a is an array", "state.a[:] = values"]),
    ("state.orders = []", AttributeError, ["state.orders is an array", "state.orders[i] = value"]),
    ("state.held = {}", AttributeError, ["state.held is a dict", "state.held.update(values)"]),
    ("state.seen = {1}", AttributeError, ["state.seen is a set", "state.seen.clear()"]),
    ("state.lately = []", AttributeError, ["state.lately is a list", "state.lately[:] = values"]),
    ("state.window = []", AttributeError, ["state.window is a deque", "state.window.extend("]),
    ("state.best = []", AttributeError, ["state.best is a priority queue", "state.best.push("]),
    ("state.timers = {}", AttributeError, ["state.timers holds timers", "state.timers.set("]),
    ("state.totl = 3", AttributeError, ["no field 'totl'", "did you mean 'total'"]),
    ("state.totl += 3", AttributeError, ["no field 'totl'", "did you mean 'total'"]),
    ("del state.total", AttributeError, ["state.total cannot be deleted", "state.total = value"]),
    ("del state.a", AttributeError, ["state.a cannot be deleted", "state.a[:] = values"]),
    ("del state.held", AttributeError, ["state.held cannot be deleted", "state.held.clear()"]),
    ("del state.totl", AttributeError, ["no field 'totl'"]),
    ("event.x = 3", AttributeError, ["event.x cannot be assigned", "only read", "local name"]),
    ("del event.x", AttributeError, ["event.x cannot be deleted", "only read"]),
    ("event.y", AttributeError, ["the event has no column 'y'", "time, x, maybe"]),
    ("event.is_null('mayb')", AttributeError, ["no column 'mayb'", "did you mean 'maybe'"]),
    ("emit(1)", TypeError, ["emit lacks 'y'", "expected emit(n, y, maybe)"]),
    ("emit()", TypeError, ["emit lacks 'n', 'y'", "expected emit(n, y, maybe)"]),
    ("emit(1, 2.0, None, 3)", TypeError, ["emit takes 3 values, got 4", "emit(n, y, maybe)"]),
    ("emit(1, 2.0, z=3)", TypeError, ["emit has no column 'z'", "expected emit(n, y, maybe)"]),
    ("emit(1, 2.0, n=3)", TypeError, ["emit gets column 'n' twice", "emit(n, y, maybe)"]),
    ("emit(1.5, 2.0)", TypeError, ["column 'n' is declared int", "1.5 (float)", "int(x)"]),
    ("emit(1, 'a')", TypeError, ["column 'y' is declared float", "'a' (str)", "float(x)"]),
    ("emit(1, None)", TypeError, ["column 'y' is declared float", "ss.nullable(float)"]),
    ("emit(1, [1.0])", TypeError, ["column 'y' is declared float", "one element at a time"]),
    ("emit(1, 10**400)", OverflowError, ["column 'y' is declared float", "no float holds"]),
    ("emit(2**63, 1.0)", OverflowError, ["column 'n' is declared int", "9223372036854775808"]),
    ("state.total = 1.5", TypeError, ["state.total is declared int", "1.5 (float)", "int(x)"]),
    ("state.total = event.maybe", TypeError, ["state.total is declared int", "test it for None"]),
    ("state.on = 1", TypeError, ["state.on is declared bool", "1 (int)", "x != 0"]),
    ("state.word = 5", TypeError, ["state.word is declared str", "5 (int)", "str(x)"]),
    ("state.small = 200", OverflowError, ["state.small is declared int8", "-128 to 127", "200"]),
    ("state.small += 125", OverflowError, ["state.small is declared int8", "gets 128"]),
    ("state.bytes[1] -= 9", OverflowError, ["state.bytes is declared uint8", "gets -8"]),
    ("state.bytes[:2] -= 9", OverflowError, ["state.bytes is declared uint8", "gets -9"]),
    ("state.a[:] /= 2", TypeError, ["state.a is declared int", "(float)", "int(x)"]),
    (
        "state.a[[0, 1]]",
        TypeError,
        ["state.a is indexed with [0, 1]", "state.a.copy()[...]"],
    ),
    ("state.a[np.array([0, 2])] = 3", TypeError, ["state.a is indexed with", "state.a[:] = x"]),
    ("state.a[state.a > 1] = 0", TypeError, ["state.a is indexed with", "x[...] = value"]),
    ("state.a[1.0]", TypeError, ["state.a is indexed with 1.0 (float)", "write int(x)"]),
    ("state.grid[0, [1]]", TypeError, ["state.grid is indexed with [1] (list)"]),
    ("state.a[9]", IndexError, ["index 9", "state.a", "length 4"]),
    ("state.orders[[0]]", TypeError, ["state.orders is indexed with [0]", "list(state.orders)"]),
    ("state.lately['a']", TypeError, ["state.lately is a list", "'a' (str)", "an int"]),
    ("state.last.prize = 3", AttributeError, ["record Order has no field 'prize'", "'price'"]),
    ("del state.last.price", AttributeError, ["field 'price' of Order cannot be deleted"]),
    ("state.last.price = 'a'", TypeError, ["field 'price' of Order is declared float", "'a'"]),
    ("state.last = 3", TypeError, ["state.last holds Order and gets 3"]),
    ("state.held['a'] = 1.0", TypeError, ["a key of state.held is declared int", "'a' (str)"]),
    ("increment(state, 'small')", TypeError, ["increment counts in state.small", "declare it int"]),
    ("increment(state.bytes, 1)", TypeError, ["increment counts in state.bytes", "uint8"]),
    ("increment(state, 'level')", TypeError, ["increment counts in state.level", "float"]),
    ("increment(state, 'a')", TypeError, ["increment works on one element", "state.a is an array"]),
    ("add(state, 'on', True)", TypeError, ["add works on numbers", "state.on", "assign to it"]),
    ("add(state, 'word', 'a')", TypeError, ["add works on numbers", "state.word is declared str"]),
    ("add(state.grid, 1, 2.0)", TypeError, ["add works on one element", "state.grid"]),
    ("minimum(state.flags, 1, False)", TypeError, ["minimum works on numbers", "state.flags"]),
    ("maximum(state.bytes, 1, 300)", OverflowError, ["state.bytes is declared uint8", "300"]),
]


def operator_of(statement: str) -> ss.Operator:
    text = (
        "def wrong(state, event, emit):\n"
        "    state.total += 1\n"
        "    state.small = 3\n"
        "    state.bytes[1] = 1\n"
        "    emit(event.x, 0.5)\n"
        "    if event.x == 7:\n"
        f"        {statement}  # <-\n"
    )
    space: dict[str, Any] = {"np": np, "Order": Order}
    space |= {"increment": increment, "add": add, "maximum": maximum, "minimum": minimum}
    exec(compile(text, "wrong.py", "exec"), space)
    return ss.operator(state=Desk, event=EVENT, emits=EMITS, interpreted=True, on_timer=fires)(
        space["wrong"]
    )


def assert_told(error: Exception, kind: type[Exception], said: list[str]) -> str:
    assert type(error) is kind, repr(error)
    for one in said:
        assert one in str(error), error
    assert any("operator 'wrong'" in note and "x=7" in note for note in error.__notes__)
    lines = [of.lineno for of in traceback.extract_tb(error.__traceback__) if of.name == "wrong"]
    assert lines == [7], "the line of the user's"
    return str(error)


@pytest.mark.parametrize(("statement", "kind", "said"), MISTAKES, ids=[of[0] for of in MISTAKES])
def test_it_is_told_and_is_the_same_on_every_setting(
    statement: str, kind: type[Exception], said: list[str]
) -> None:
    operator = operator_of(statement)
    with pytest.raises(kind) as caught:
        operator.run_sequential(TABLE, order_by="time")
    told = assert_told(caught.value, kind, said)
    for options in SETTINGS:
        with ss.Engine(operator, **options) as engine:
            with pytest.raises(kind) as caught:
                engine.process(TABLE, order_by="time")
            assert assert_told(caught.value, kind, said) == told
            assert vars(caught.value)["specstream_partial"].consumed == 2
            assert engine.state.total == 2, "the event changes nothing"


@pytest.mark.parametrize("options", SETTINGS)
def test_it_can_be_caught_and_the_event_goes_on(options: dict[str, Any]) -> None:
    @ss.operator(state=Desk, event=EVENT, emits=EMITS, interpreted=True, on_timer=fires)
    def tries(state, event, emit):
        for wrong in (
            lambda: setattr(state, "a", 3),
            lambda: emit(1),
            lambda: setattr(event, "x", 3),
            lambda: state.a[[0]],
            lambda: increment(state, "small"),
        ):
            try:
                wrong()
            except (AttributeError, TypeError):
                state.total += 1
        emit(state.total, 0.5)

    with ss.Engine(tries, **options) as engine:
        rows = engine.process(TABLE, order_by="time")
    assert rows["n"].to_pylist() == [5, 10, 15, 20]
    assert rows.equals(tries.run_sequential(TABLE, order_by="time").output)


class Fields(ss.State):
    on = ss.scalar(bool)
    small = ss.scalar(np.int8)
    level = ss.scalar(float)
    bytes = ss.array(np.uint8, 4)
    grid = ss.array(float, (2, 3))
    flags = ss.array(bool, 3)


def updates_0(state, event, emit):
    increment(state, "small")


def updates_1(state, event, emit):
    increment(state.bytes, 1)


def updates_2(state, event, emit):
    increment(state, "level")


def updates_3(state, event, emit):
    add(state, "on", True)


def updates_4(state, event, emit):
    maximum(state.flags, 1, True)


def updates_5(state, event, emit):
    add(state.grid, 1, 2.0)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (updates_0, "increment counts in"),
        (updates_1, "increment counts in"),
        (updates_2, "increment counts in"),
        (updates_3, "add works on numbers"),
        (updates_4, "maximum works on numbers"),
        (updates_5, "add works on one element"),
    ],
)
def test_an_update_is_refused_alike_when_compiled_in_the_oracle_and_when_interpreted(
    function: Callable[..., None], said: str
) -> None:
    declared: dict[str, Any] = {"state": Fields, "event": {"x": int}, "emits": {}}
    compiled = ss.operator(**declared)(function)
    with pytest.raises(ss.CompileError, match=said):
        ss.Engine(compiled, threads=1).close()
    with pytest.raises(ss.CompileError, match=said):
        compiled.run_sequential({"x": [1]})
    with pytest.raises(TypeError, match=said):
        ss.operator(**declared, interpreted=True)(function).run_sequential({"x": [1]})


def test_a_function_that_would_not_run_is_refused() -> None:
    def yields(state, event, emit):
        yield event.x

    async def awaits(state, event, emit):
        emit(event.x, 0.5)

    wrong: list[tuple[Any, str]] = [
        (yields, "'yields' is a generator.*plain function: emit"),
        (awaits, "'awaits' is an async function.*leave async out"),
    ]
    for function, said in wrong:
        with pytest.raises(ss.DeclarationError, match=said):
            ss.operator(state=Fields, event=EVENT, emits=EMITS, interpreted=True)(function)


@pytest.mark.parametrize("options", SETTINGS)
def test_a_value_that_is_returned_is_refused(options: dict[str, Any]) -> None:
    @ss.operator(state=Fields, event=EVENT, emits=EMITS, interpreted=True)
    def returns(state, event, emit):
        if event.x == 7:
            return event.x, 0.5
        return emit(event.x, 0.5)

    said = r"the operator returns \(7, 0.5\); expected nothing: emit\(...\) it"
    with pytest.raises(TypeError, match=said):
        returns.run_sequential(TABLE, order_by="time")
    with ss.Engine(returns, **options) as engine, pytest.raises(TypeError, match=said) as caught:
        engine.process(TABLE, order_by="time")
    assert vars(caught.value)["specstream_partial"].consumed == 2
