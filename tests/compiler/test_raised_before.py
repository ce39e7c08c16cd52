"""Caught exceptions that Python raised before the operator ran: what they say is what they said.

PYTEST_DONT_REWRITE: the assertions of operators are their own.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import decimal
import json
import zoneinfo
from typing import Any

import pyarrow as pa
import pytest
from support import witness

import specstream as ss


class BadOrder(ValueError):
    """Makes its text."""

    def __init__(self, code):
        super().__init__(f"bad order {code}")
        self.code = code


class At(ValueError):
    def __init__(self, what, place, *, why=""):
        super().__init__(what, place)
        self.place = place
        self.why = why

    def __str__(self):
        return f"{self.args[0]} at {self.place}{self.why}"


class Shown(LookupError):
    def __repr__(self):
        return f"<{self.args[0]}>"

    def __format__(self, spec):
        return f"formatted {self.args[0]}"


class Kept(Exception):
    """Cannot be pickled, or copied."""

    def __init__(self):
        super().__init__("kept")
        self.function = lambda: 1

    def __reduce__(self):
        raise TypeError("cannot be pickled")


class Mute(Exception):
    """Has no text."""

    def __str__(self):
        raise RuntimeError("no text")


ONE = At("always the same", 0)


def raising(s):
    if s == "own":
        raise BadOrder(s)
    if s == "two":
        raise At(s, 3, why="!")
    if s == "one object":
        raise ONE
    if s == "shown":
        raise Shown(s, 2.5, None)
    if s == "kept":
        raise Kept
    if s == "group":
        raise ExceptionGroup("several", [ValueError(1), KeyError("x")])
    if s == "none":
        raise Mute.__mro__[1]()
    if s == "system":
        raise OSError(2, "No such file", "name")
    if s == "assert":
        raise AssertionError
    return


@ss.pure
def computed(s: str) -> float:
    raising(s)
    if s == "key":
        return float({"a": 1}["it's"])
    if s == "decode":
        return float(b"\xff".decode())
    if s == "encode":
        return float(len("\u00fc".encode("ascii")))
    if s == "json":
        return float(json.loads("oops"))
    if s == "zone":
        return float(len(zoneinfo.ZoneInfo("Mars/Base").key))
    if s == "signal":
        return float(decimal.Decimal("x"))
    if s == "division":
        return float(decimal.Decimal(1) / decimal.Decimal(0))
    if s == "date":
        return float(datetime.date.fromisoformat("2024-13-01").year)
    if s == "cause":
        try:
            return float(int("x"))
        except ValueError as error:
            raise KeyError("wrapped", 7) from error
    return float(s)


class S(ss.State):
    n = ss.scalar(int)


KINDS = ["own", "two", "one object", "shown", "kept", "group", "none", "system", "assert", "key"]
KINDS += ["decode", "encode", "json", "zone", "signal", "division", "date", "cause", "x", "1.5"]
TABLE = pa.table({"s": KINDS * 2})
EMITS = {"said": str, "shown": str, "of": str, "put": str}


@ss.operator(state=S, event={"s": str}, emits=EMITS)
def told(state, event, emit):
    state.n += 1
    try:
        if computed(event.s) > 0:
            state.n += 10
    except (ValueError, LookupError) as error:
        emit(str(error), repr(error), type(error).__name__, f"1 {error} {state.n} {error.args}")
    except Exception as error:
        emit(
            str(error), repr(error), type(error).__name__, f"2 {error} {state.n} {len(error.args)}"
        )


def test_it_says_what_it_said() -> None:
    settings = ss.testing.settings()
    found = ss.testing.check(told, TABLE, settings=[settings[at] for at in (0, 4, 11, -5, -2, -1)])
    assert witness.assert_agrees(told, TABLE) == TABLE.num_rows
    rows = found.output.to_pylist()
    assert rows[0]["shown"] == "BadOrder('bad order own')"
    assert rows[1]["put"] == "1 two at 3! 2 ('two', 3)"
    assert rows[KINDS.index("json")]["of"] == "JSONDecodeError"


def test_events_that_wait_and_snapshots_keep_what_was_said() -> None:
    expected = told.run_sequential(TABLE).output
    table = TABLE.append_column("time", pa.array(range(TABLE.num_rows)))
    with ss.Engine(told) as engine:
        engine.submit(table, order_by="time", source="a")
        kept = engine.snapshot()
    with ss.Engine(told, restore=kept) as engine:
        engine.advance("a")
        assert engine.poll(None).equals(expected)


@ss.pure
def mute(s: str) -> bool:
    if s:
        raise Mute(s)
    return True


@ss.operator(state=S, event={"s": str}, emits={"text": str})
def of_one_without_text(state, event, emit):
    state.n += 1
    try:
        try:
            mute(event.s)
        except Mute as error:
            if event.s == "class":
                emit(type(error).__name__)
            elif event.s == "caught":
                emit(f"never {error}")
            else:
                emit(str(error))
    except RuntimeError as error:
        if event.s != "caught":
            raise
        emit(f"then {error}")


@pytest.mark.parametrize("options", [{"threads": 1, "horizon": 0}, {"threads": 2, "horizon": 8}])
def test_one_without_text_costs_its_own_event(options: dict[str, Any]) -> None:
    table = pa.table({"s": ["", "class", "text", "caught", "", "class"]})
    expected = ["Mute", "then no text", "Mute"]
    with ss.Engine(of_one_without_text, errors="side", **options) as engine:
        assert engine.process(table)["text"].to_pylist() == expected
        failed = engine.failed_events()
        assert failed is not None
        assert failed.select(["s", "error", "message"]).to_pylist() == [
            {"s": "text", "error": "RuntimeError", "message": "no text"}
        ]
        assert engine.state.n == 5
    with ss.Engine(of_one_without_text, **options) as engine:
        with pytest.raises(RuntimeError, match="no text") as found:
            engine.process(table)
        assert found.value.specstream_partial.output["text"].to_pylist() == ["Mute"]  # type: ignore[attr-defined]
        assert engine.state.n == 2
        assert engine.process(table.slice(3))["text"].to_pylist() == ["then no text", "Mute"]
    side = of_one_without_text.run_sequential(table, errors="side")
    assert side.output["text"].to_pylist() == expected


@ss.operator(state=S, event={"s": str}, emits={"text": str})
def declared_float(state, event, emit):
    try:
        price: float = json.loads(event.s)["p"]
        emit(str(price))
    except (KeyError, ValueError) as error:
        emit(f"{type(error).__name__} {error}")


def test_a_name_that_is_annotated_float_has_a_float_for_all_who_read_it() -> None:
    table = pa.table({"s": ['{"p": 1}', "oops", "{}", '{"p": 2.5}']})
    said = ["1.0", "JSONDecodeError Expecting value: line 1 column 1 (char 0)", "KeyError 'p'"]
    assert declared_float.run_sequential(table).output["text"].to_pylist() == [*said, "2.5"]
    with ss.Engine(declared_float) as engine:
        assert engine.process(table)["text"].to_pylist() == [*said, "2.5"]


class OfItself(Exception):
    def __str__(self):
        return f"{self.args[1]} of {self.args[0]}"


@ss.operator(state=S, event={"s": str}, emits={"text": str})
def of_too_few_arguments(state, event, emit):
    state.n += 1
    try:
        if event.s == "one":
            raise OfItself(state.n)
        if event.s == "two":
            raise OfItself(state.n, "b")
        state.n //= len(event.s)
    except OfItself as error:
        emit(str(error))
    except ZeroDivisionError as error:
        emit(f"{error.args[0]} {error.args[1]}")


def test_what_is_made_of_an_exception_may_raise() -> None:
    table = pa.table({"s": ["two", "one", "", "two"]})
    failed = [
        {"s": "one", "error": "IndexError", "message": "tuple index out of range"},
        {"s": "", "error": "IndexError", "message": "tuple index out of range"},
    ]
    found = of_too_few_arguments.run_sequential(table, errors="side").output["text"].to_pylist()
    assert found == ["b of 1", "b of 2"]
    for options in ({"threads": 1, "horizon": 0}, {"threads": 2, "horizon": 8}):
        with ss.Engine(of_too_few_arguments, errors="side", **options) as engine:  # type: ignore[arg-type]
            assert engine.process(table)["text"].to_pylist() == found
            aside = engine.failed_events()
            assert aside is not None
            assert aside.select(["s", "error", "message"]).to_pylist() == failed
