"""Values of subclasses of str, int, float and Decimal count as what they hold, whatever their
methods say: each way by which one becomes a column, a field, a key, a row or an option."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import dataclasses
import decimal
import enum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import specstream as ss


class Side(str, enum.Enum):  # noqa: UP042 (its str() is another)
    BUY = "buy"
    SELL = "sell"


class Loud(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "LOUD"

    def __format__(self, spec: str) -> str:
        return "FORMATTED"

    def encode(self, *_: Any, **__: Any) -> bytes:
        return b"ENCODED"


class Odd(int):
    def __int__(self) -> int:
        return 99

    def __index__(self) -> int:
        return 98

    def __float__(self) -> float:
        return 97.0


class Off(float):
    def __float__(self) -> float:
        return 99.0

    def __int__(self) -> int:
        return 98


class Level(enum.IntEnum):
    LOW = 5

    def __str__(self) -> str:
        return "low"


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Price(decimal.Decimal):
    def __str__(self) -> str:
        return "7.5"


class Made(str, enum.Enum):  # noqa: UP042
    """Its value is not what it holds."""

    def __new__(cls, text: str, number: int) -> Made:
        one = str.__new__(cls, text)
        one._value_ = number
        return one

    A = ("a", 1)


class Settings:
    name, rate, count = Loud("settings"), Off(0.5), Odd(2)


@dataclasses.dataclass(frozen=True)
class Frozen:
    name: str
    count: int
    rate: float


FROZEN = Frozen(Loud("frozen"), Odd(3), Off(1.5))


class Named(NamedTuple):
    name: str
    size: int


NAMED = Named(Loud("named"), Odd(4))
TUPLE = (Loud("tuple"), Odd(5), Off(2.5))
LIST, SET = [Odd(1), Odd(2)], {Loud("one")}
DICT: dict[str, int] = {Side.SELL: Level.LOW}
KEY, COUNT, RATE, BITS = Loud("k"), Odd(4), Off(0.5), Bits.A | Bits.B
TAG, QUARTER = Loud("tag"), Off(0.25)
SIDE: Any = Loud("side")
NUMPY_TEXT, NUMPY_FLOAT = np.str_("n"), np.float64(1.5)


@ss.pure
def pairs(text: str) -> list[tuple[str, int]]:
    return [(Loud(text), Odd(1)), (Side.BUY, Level.LOW)]


@ss.pure
def several(text: str) -> tuple[str, int, float, bool]:
    return Loud(text), Odd(3), Off(1.5), np.True_  # type: ignore[return-value]


@ss.pure
def scalar(text: str) -> str:
    return Side(text) if text == "buy" else np.str_(text)


@ss.pure(batch=True)
def batch(text: Any) -> str:
    return [Loud(one) for one in text.to_pylist()]  # type: ignore[return-value]


class Count(ss.State):
    n = ss.scalar(int)


class Fields(ss.State):
    counts = ss.dict(str, int)
    rates = ss.dict(int, float)
    both = ss.dict((str, int), str)
    seen = ss.set(str)
    texts = ss.list(str)
    queue = ss.deque(int)
    text = ss.scalar(str)
    whole = ss.scalar(int)
    real = ss.scalar(float)
    wholes = ss.array(int, 4)
    reals = ss.array(float, 2)
    due = ss.timers(str)
    filled = ss.scalar(str, fill=Side.SELL)
    full = ss.scalar(int, fill=Odd(3))
    filling = ss.scalar(float, fill=Off(2.5))


EMITS = {"s": str, "i": int, "f": float}


def fired(state, timer, emit):
    emit(timer.key, 0, 0.0)


@ss.operator(state=Fields, event={"s": str, "x": int}, emits=EMITS, on_timer=fired)
def constants(state, event, emit, *, rate=QUARTER, tag=TAG):
    emit(tag, 0, rate)
    emit(Settings.name, Settings.count, Settings.rate)
    emit(FROZEN.name, FROZEN.count, FROZEN.rate)
    emit(NAMED.name, NAMED.size, 0.0)
    emit(TUPLE[0], TUPLE[1], TUPLE[2])
    emit("in" if event.s in SET else "out", LIST[event.x], 0.0)
    emit(Made.A, DICT["sell"], 0.0)
    state.counts[KEY] = COUNT
    state.text = KEY
    state.whole = COUNT
    state.real = RATE
    emit(state.text, state.counts["k"], state.real)
    emit(NUMPY_TEXT, BITS, NUMPY_FLOAT)
    emit(state.filled, state.full, state.filling)
    for one, two in pairs(event.s):
        emit(one, two, 0.0)
    a, b, c, d = several(event.s)
    emit(a, b, c if d else 0.0)
    emit(scalar(event.s), 0, 0.0)
    emit(batch(event.s), 0, 0.0)
    emit("same" if batch(event.s) == "one" else "other", state.whole, 0.0)


CONSTANTS = [
    *(("tag", 0, 0.25), ("settings", 2, 0.5), ("frozen", 3, 1.5), ("named", 4, 0.0)),
    *(("tuple", 5, 2.5), ("in", 2, 0.0), ("a", 5, 0.0), ("k", 4, 0.5), ("n", 3, 1.5)),
    *(("sell", 3, 2.5), ("one", 1, 0.0), ("buy", 5, 0.0), ("one", 3, 1.5), ("one", 0, 0.0)),
    *(("one", 0, 0.0), ("same", 4, 0.0)),
]


@ss.operator(
    state=Fields, event={"s": str, "x": int}, emits=EMITS, on_timer=fired, interpreted=True
)
def stores(state, event, emit):
    emit(Loud("k"), Odd(4), Off(0.5))
    emit(np.str_("n"), Level.LOW, np.float32(1.5))
    state.text, state.whole, state.real = Loud("q"), Odd(9), Off(0.5)
    emit(state.text, state.whole, state.real)
    state.counts[Side.BUY] = Odd(4)
    emit("in" if Side.BUY in state.counts else "out", state.counts["buy"], Odd(2))
    state.wholes[:] = [Odd(1), Odd(2), Odd(3), Level.LOW]
    state.wholes[Odd(0)] = Odd(7)
    emit("array", int("".join(map(str, state.wholes.tolist()))), 0.0)
    state.reals[:] = [Off(1.5), Odd(2)]
    emit("reals", 0, state.reals[0] + state.reals[1])
    state.texts.append(Loud("z"))
    state.texts.insert(Odd(0), Side.BUY)
    state.queue.append(Odd(3))
    state.queue.extend([Level.LOW, Odd(1)])
    state.queue.rotate(Odd(1))
    emit("+".join(state.texts), int("".join(map(str, state.queue))), 0.0)
    state.rates[Odd(5)] = Off(2.5)
    emit("rates", len(state.rates), state.rates[5])
    state.seen.add(Loud("t"))
    state.both[Side.BUY, Odd(1)] = Loud("v")
    emit(state.both["buy", 1], len(state.seen) if "t" in state.seen else -1, 0.0)
    state.due.set(Loud("late"), Odd(50))
    emit(state.filled, state.due.get("late") or -1, state.filling)


STORES = [
    *(("k", 4, 0.5), ("n", 5, 1.5), ("q", 9, 0.5), ("in", 4, 2.0), ("array", 7235, 0.0)),
    *(("reals", 0, 3.5), ("buy+z", 135, 0.0), ("rates", 1, 2.5), ("v", 1, 0.0), ("sell", 50, 2.5)),
]


@pytest.mark.parametrize(("op", "expected"), [(constants, CONSTANTS), (stores, STORES)])
def test_in_operators(op: Any, expected: Any) -> None:
    table = {"s": ["one"], "x": [1]}

    def rows(of: pa.Table) -> list[Any]:
        return [tuple(row.values()) for row in of.to_pylist()]

    assert rows(op.run_sequential(table, order_by="x").output) == expected
    with ss.Engine(op, threads=2, horizon=8, chunk=1) as engine:
        assert rows(engine.process(table, order_by=Loud("x"))) == expected
        state = engine.state
        assert state.counts[Loud("k") if op is constants else Side.BUY] == 4
        if op is stores:
            assert (state.rates[Odd(5)], state.both[Side.BUY, Odd(1)]) == (2.5, "v")
            assert Loud("t") in state.seen
    table = {"s": ["buy"], "x": [1]}
    with ss.Engine(op, threads=2) as engine:
        again = rows(engine.process(table, order_by="x"))
    if op is constants:
        assert again[-3:] == [("buy", 0, 0.0), ("buy", 0, 0.0), ("other", 4, 0.0)]


def test_an_initial_state_and_a_migrated_one() -> None:
    values = {
        "counts": {Loud("k"): Odd(4)},
        "rates": {Odd(1): Off(1.5), Level.LOW: np.float32(0.5)},
        "both": {(Side.BUY, Odd(1)): Loud("v")},
        "seen": {Loud("t")},
        "texts": [Loud("l"), Side.BUY],
        "queue": [Odd(2)],
        "text": Loud("s"),
        "whole": Odd(3),
        "real": Off(2.5),
        "wholes": [Odd(1), Odd(2), Level.LOW, 4],
        "reals": (Off(0.5), Odd(1)),
    }

    def held(engine: ss.Engine) -> list[Any]:
        state = engine.state
        return [
            *(dict(state.counts.items()), dict(state.rates.items()), dict(state.both.items())),
            *(set(state.seen), list(state.texts), list(state.queue), state.text),
            *(state.whole, state.real, list(state.wholes), list(state.reals)),
        ]

    expected = [
        *({"k": 4}, {1: 1.5, 5: 0.5}, {("buy", 1): "v"}, {"t"}, ["l", "buy"], [2], "s"),
        *(3, 2.5, [1, 2, 5, 4], [0.5, 1.0]),
    ]
    with ss.Engine(stores, initial=values) as engine:
        assert held(engine) == expected

    class Before(ss.State):
        other = ss.scalar(int)

    @ss.operator(state=Before, event={}, emits={}, interpreted=True, name="stores")
    def before(state, event, emit):
        pass

    with ss.Engine(before) as engine:
        snapshot = engine.snapshot()
    with ss.Engine(stores) as engine:
        engine.restore(snapshot, migrate=lambda old: values)
        assert held(engine) == expected


TIME = pd.Timestamp("2026-01-01 00:00:00.000000001")
COLUMNS = {"s": str, "x": int, "f": float, "p": ss.decimal(2), "t": ss.timestamp("ns")}


@ss.operator(state=Count, event=COLUMNS, emits=COLUMNS, interpreted=True)
def echo(state, event, emit):
    emit(event.s, event.x, event.f, event.p, event.t)


VALUES = {"s": Loud("a"), "x": Odd(5), "f": Off(1.5), "p": Price("1.25"), "t": TIME}
PLAIN = {"s": "a", "x": 5, "f": 1.5, "p": decimal.Decimal("1.25"), "t": TIME.value}


def read(of: pa.Table) -> list[Any]:
    at = of.schema.get_field_index("t")
    found = of.set_column(at, "t", of["t"].cast(pa.int64())).select(list(PLAIN))
    return list(found.to_pylist())


def test_columns_rows_and_sources() -> None:
    lists: dict[Any, Any] = {name: [value] for name, value in VALUES.items()}
    objects = {name: np.array(of, object) for name, of in lists.items()}
    for table in (
        lists,
        {Loud(name): of for name, of in lists.items()},
        [VALUES],
        pd.DataFrame(lists),
        pd.DataFrame({Loud(name): of for name, of in lists.items()}),
        objects,
        {name: tuple(of) for name, of in lists.items()},
        lists | {"f": [np.float32(1.5)], "s": [np.str_("a")], "x": [Level.LOW]},
    ):
        with ss.Engine(echo, threads=2) as engine:
            assert read(engine.process(table)) == [PLAIN]
        assert read(echo.run_sequential(table).output) == [PLAIN]
    got: list[Any] = []
    others = {"s": Side.BUY, "x": Level.LOW, "f": np.float32(1.5), "p": Odd(1), "t": TIME}
    with ss.Engine(echo) as engine:
        ss.sources.run(
            engine, ss.sources.iterate(iter([VALUES, others])), to=lambda t, _: got.extend(read(t))
        )
    assert got == [PLAIN, PLAIN | {"s": "buy", "p": decimal.Decimal(1)}]
    with ss.Engine(echo, sources=[Side.BUY], keys=True) as engine:
        engine.submit_event(Odd(1), Side.BUY, **VALUES)
        engine.submit(
            {**lists, "k": [Side.BUY], "at": [Odd(2)]}, order_by=Loud("at"), source_column=Loud("k")
        )
        engine.advance(Side.BUY, Odd(2))
        engine.advance(Side.BUY)
        output = engine.poll(timeout=None)
    assert read(output) == [PLAIN, PLAIN]
    assert output["source"].to_pylist() == ["buy", "buy"]
    assert output["timestamp"].to_pylist() == [1, 2]


def test_times_of_pandas_keep_their_nanoseconds() -> None:
    @ss.operator(state=Count, event={"x": int}, emits={"x": int}, interpreted=True)
    def number(state, event, emit):
        emit(event.x)

    with ss.Engine(number, sources=["a"], keys=True) as engine:
        for nanosecond in (3, 1, 2):
            engine.submit_event(pd.Timestamp(nanosecond), "a", x=nanosecond)
        engine.advance("a")
        output = engine.poll(timeout=None)
    assert output["x"].to_pylist() == [1, 2, 3]
    assert output["timestamp"].cast(pa.int64()).to_pylist() == [1, 2, 3]
    with ss.Engine(number, sources=["a"]) as engine:
        engine.submit_event(pd.Timestamp(0), "a", x=0)
        with pytest.raises(ss.InputError, match=r"time .* is no timestamp\[us\]"):
            engine.submit_event(pd.Timestamp(1), "a", x=1)


def test_options_and_declarations() -> None:

    class Order(ss.Record):
        side: str = Side.BUY
        size: int = Level.LOW

    class Orders(ss.State):
        last = ss.scalar(Order)

    @ss.operator(
        state=Orders, event={Loud("x"): int}, emits={Loud("s"): str, "i": int}, interpreted=True
    )
    def last(state, event, emit):
        state.last = Order(size=Odd(event.x))
        emit(state.last.side, state.last.size)

    with ss.Engine(last, threads=Odd(2), rejected_rows=SIDE) as engine:
        assert engine.process({"x": [7]}).to_pylist() == [{"s": "buy", "i": 7}]
