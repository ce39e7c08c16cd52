"""Python's values that do not fit: one rule for process, submit and a sequential run."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss


class Count(ss.State):
    n = ss.scalar(int)


EVENT = {
    "x": int,
    "y": float,
    "w": str,
    "paid": ss.decimal(2),
    "day": datetime.date,
    "at": ss.nullable(datetime.datetime),
}


@ss.operator(state=Count, event=EVENT, emits={"x": int, "paid": ss.decimal(2)})
def echo(state, event, emit):
    state.n += 1
    emit(event.x, event.paid)


class Money(Decimal):
    def __str__(self) -> str:
        return "money"


GOOD: dict[str, Any] = {
    "x": 1,
    "y": 0.5,
    "w": "a",
    "paid": Money("1.25"),
    "day": datetime.date(2024, 2, 29),
    "at": None,
}
# What one row has in place of that, and what is said of it.
MISFITS: list[tuple[str, Any, str]] = [
    ("x", "text", "column 'x' is 'text'; expected int"),
    ("x", 2**70, "which does not fit int64"),
    ("x", -(2**63) - 1, "which does not fit int64"),
    ("x", 2**63, "which does not fit int64"),
    ("x", 1.5, "column 'x' is 1.5; expected int"),
    ("x", True, "column 'x' is True; expected int"),
    ("x", [1], "column 'x' is [1]; expected int"),
    ("x", object, "column 'x' is <class 'object'>; expected int"),
    ("y", "text", "column 'y' is 'text'; expected float"),
    ("y", 2**53 + 1, "which does not fit double"),
    ("w", 5, "column 'w' is 5; expected str"),
    ("w", "\ud800", "column 'w' is '\\ud800'; expected str"),
    ("w", b"a", "column 'w' is b'a'; expected str"),
    ("paid", "1.25", "column 'paid' is '1.25'; expected decimal"),
    ("paid", 1.25, "column 'paid' is 1.25; expected decimal"),
    ("paid", Decimal("NaN"), "column 'paid' is Decimal('NaN'); expected decimal"),
    ("day", "2024-02-29", "column 'day' is '2024-02-29'; expected date"),
    ("day", datetime.datetime(2024, 2, 29, 3), "expected date"),
    ("at", "noon", "column 'at' is 'noon'; expected"),
]
ROWS = [GOOD, *({**GOOD, name: value} for name, value, _ in MISFITS), {**GOOD, "x": 3}]
COLUMNS = {name: [row[name] for row in ROWS] for name in GOOD}
OUTPUT = [(1, Decimal("1.25")), (3, Decimal("1.25"))]


def check(rows: list[Any], rejected: Any) -> None:
    assert [tuple(row.values()) for row in rows] == OUTPUT
    reasons = rejected["reason"].to_pylist()
    assert len(reasons) == len(MISFITS)
    for row, (reason, (_, _, said)) in enumerate(zip(reasons, MISFITS, strict=True), 1):
        assert reason.startswith(f"row {row}: column ")
        assert said in reason
    # Of such a row the rest is as it came.
    assert rejected["x"].to_pylist() == [None] * 8 + [1] * (len(MISFITS) - 8)


@pytest.mark.parametrize("given", [ROWS, COLUMNS], ids=["rows", "columns"])
def test_rows_that_do_not_fit_are_set_aside_and_the_rest_goes_on(given: Any) -> None:
    with ss.Engine(echo, threads=2, horizon=4, rejected_rows="side") as engine:
        check(engine.process(given).to_pylist(), engine.rejected_rows())
        assert engine.state.n == 2
        assert engine.stats.rejected_rows == len(MISFITS)
    sequential = echo.run_sequential(given, rejected_rows="side")
    check(sequential.output.to_pylist(), sequential.rejected_rows)


def test_submitted_rows_are_set_aside_by_the_same_rule() -> None:
    given = [{**row, "time": at} for at, row in enumerate(ROWS)]
    with ss.Engine(echo, threads=2, rejected_rows="side") as engine:
        engine.submit(given, order_by="time")
        engine.advance(0)
        rows: list[Any] = []
        while len(rows) < len(OUTPUT):
            rows += engine.poll(timeout=None).to_pylist()
        check(rows, engine.rejected_rows())


def test_without_side_the_error_names_column_and_row() -> None:
    with ss.Engine(echo, threads=2) as engine:
        for (_, value, said), row in zip(MISFITS, ROWS[1:], strict=False):
            for run in (
                engine.process,
                echo.run_sequential,
                lambda rows: engine.submit([{**row, "t": 1} for row in rows], order_by="t"),
            ):
                with pytest.raises(ss.InputError) as caught:
                    run([GOOD, GOOD, row])
                assert "row 2: column " in str(caught.value), value
                assert said in str(caught.value), value
                assert 'rejected_rows="side"' in str(caught.value), value
        assert engine.state.n == 0
        assert engine.process([GOOD, {**GOOD, "x": 3}]).num_rows == 2


def test_a_column_of_a_wrong_type_remains_an_error() -> None:
    """As no row of it could be an event; Python's values are looked at one by one."""
    texts = {**{name: [GOOD[name]] * 2 for name in GOOD}, "x": ["a", "b"]}
    with ss.Engine(echo, rejected_rows="side") as engine:
        for wrong in (pa.array(["a", "b"]), np.array(["a", "b"]), np.array([1.0, 2.0])):
            with pytest.raises(ss.InputError, match=r"column 'x' has type (string|double)"):
                engine.process({**texts, "x": wrong})
        assert engine.rejected_rows() is None
        for values in (texts, {**texts, "x": np.array(["a", "b"], object)}):
            assert engine.process(values).num_rows == 0
        assert engine.process([{**GOOD, "x": "a"}]).num_rows == 0
        assert engine.stats.rejected_rows == 5


def test_a_column_that_is_called_as_that_of_the_reason_is_refused() -> None:
    """Whether a row is rejected or not: a file with two columns of a name cannot be read."""
    told = "beside their own, and they have one of that name: rename it"
    given = {**{name: [GOOD[name]] for name in GOOD}, "reason": ["a"]}
    with ss.Engine(echo, rejected_rows="side", sources=["a"]) as engine:
        for feed in (
            lambda: engine.process(given),
            lambda: engine.process([{**GOOD, "reason": None}]),
            lambda: engine.submit(given, order_by="x", source="a"),
        ):
            with pytest.raises(ss.InputError, match=told):
                feed()
        assert engine.rejected_rows() is None
    with pytest.raises(ss.InputError, match="'reason'"):
        echo.run_sequential(given, rejected_rows="side")
    with ss.Engine(echo) as engine:
        assert engine.process(given).num_rows == 1


@ss.operator(event={"x": int, "reason": str}, emits={"x": int})
def of_reasons(event, emit):
    emit(event.x)


def test_a_declared_column_of_that_name_is_refused_when_the_engine_is_made() -> None:
    with pytest.raises(ss.ConfigurationError, match=r"'of_reasons': rejected_rows=.*'reason'"):
        ss.Engine(of_reasons, rejected_rows="side")
    with ss.Engine(of_reasons, errors="side") as engine:
        assert engine.process({"x": [1], "reason": ["a"]}).num_rows == 1
