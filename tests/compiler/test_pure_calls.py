"""Calls of functions marked as pure: what they raise is raised where the call stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import specstream as ss

EVENT = {"text": str, "on": bool, "a": int}
ROWS = [
    {"text": "7", "on": True, "a": 1},
    {"text": "?", "on": False, "a": 1},
    {"text": "?", "on": True, "a": 0},
    {"text": "4", "on": False, "a": 0},
]


class Sum(ss.State):
    total = ss.scalar(int)


@ss.pure
def number(text: str) -> int:
    return int(text)


@ss.pure
def pair(text: str) -> tuple[int, str]:
    return int(text), text


@ss.pure(batch=True)
def numbers(texts: Any) -> int:
    return [int(text) for text in texts.to_pylist()]  # type: ignore[return-value]


def chosen(event: Any, emit: Any) -> None:
    emit(str(number(event.text) if event.on else -1))


def named(event: Any, emit: Any) -> None:
    x = number(event.text) if event.on else -1
    emit(f"{x}!")


def joined(event: Any, emit: Any) -> None:
    emit(str(event.on and number(event.text) > 3))


def chained(event: Any, emit: Any) -> None:
    emit(str(event.a < 1 < number(event.text)))


def unpacked(event: Any, emit: Any) -> None:
    n, text = pair(event.text) if event.text.isdigit() else (0, "none")
    emit(f"{n} {text.upper()}")


def in_order(event: Any, emit: Any) -> None:
    try:
        emit(f"{1 // event.a} {number(event.text)}")
    except ZeroDivisionError:
        emit("zero")
    except ValueError:
        emit("value")


def inside(event: Any, emit: Any) -> None:
    emit(str(number(str(number(event.text)) + "0") if event.on else -1))


def told(event: Any, emit: Any) -> None:
    if event.on:
        raise KeyError("of " + str(number(event.text) if event.text.isdigit() else -1))
    emit("off")


def expected(function: Callable[..., None]) -> list[str]:
    """What plain Python gives; where it raises the name of the class."""
    rows: list[str] = []
    for row in ROWS:
        event = type("Event", (), row)
        try:
            function(event, rows.append)
        except Exception as error:
            rows.append(f"{type(error).__name__}: {error}")
    return rows


@pytest.mark.parametrize(
    "function",
    [chosen, named, joined, chained, unpacked, in_order, inside, told],
    ids=lambda function: function.__name__,
)
def test_it_raises_where_python_would(function: Callable[..., None]) -> None:
    op = ss.operator(event=EVENT, emits={"made": str})(function)
    with ss.Engine(op, errors="side") as engine:
        made = [
            engine.process([row])["made"].to_pylist() or _failed(engine.failed_events())
            for row in ROWS
        ]
    assert [one for (one,) in made] == expected(function)
    ran = op.run_sequential(ROWS, errors="side")
    passed = [one for one in expected(function) if "Error" not in one]
    assert ran.output["made"].to_pylist() == passed


def _failed(events: pa.Table | None) -> list[str]:
    assert events is not None
    return [f"{row['error']}: {row['message']}" for row in events.to_pylist()]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_which_events_fail_does_not_depend_on_the_batch(size: int) -> None:
    @ss.operator(state=Sum, event={"text": str}, emits={"total": int})
    def add(state: Any, event: Any, emit: Any) -> None:
        if event.text != "?":
            state.total += numbers(event.text)
        emit(state.total)

    texts = ["7", "?", "5", "x", "1"]
    totals: list[int] = []
    failed: list[str] = []
    with ss.Engine(add, errors="side") as engine:
        for at in range(0, len(texts), size):
            totals += engine.process({"text": texts[at : at + size]})["total"].to_pylist()
            failed += _failed(events) if (events := engine.failed_events()) is not None else []
    assert totals == [7, 7, 12, 13]
    assert failed == ["ValueError: invalid literal for int() with base 10: 'x'"]
