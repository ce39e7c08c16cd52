"""Which loops poll: those that what has been read may make long."""

from __future__ import annotations

import ast
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import specstream as ss
from specstream.compiler.lowering import control_flow
from specstream.compiler.lowering.native_rewriter import NativeRewriter
from specstream.compiler.lowering.trip_counts import TripCounts

CONSTANTS: dict[str, Any] = {
    "range": range,
    "enumerate": enumerate,
    "reversed": reversed,
    "FIVE": 5,
    "PAIRS": ((1, 2), (3, 4)),
}


def trips_of(loop: str) -> int | None:
    expression = ast.parse(loop, mode="eval").body
    return TripCounts(CONSTANTS.get).of(expression)


@pytest.mark.parametrize(
    ("loop", "trips"),
    [
        ("range(7)", 7),
        ("range(FIVE)", 5),
        ("range(2, FIVE + 1)", 4),
        ("range(FIVE, 0, -2)", 3),
        ("range(3, 1)", 0),
        ("PAIRS", 2),
        ("(event.a, event.b)", 2),
        ("enumerate(PAIRS)", 2),
        ("reversed(range(FIVE))", 5),
        ("range(event.n)", None),
        ("range(n)", None),
        ("range(3, n)", None),
        ("range(0, 3, n)", None),
        ("range(1, 3, 0)", None),
        ("(*event.a, 1)", None),
        ("state.values", None),
        ("zip(PAIRS, state.values)", None),
    ],
)
def test_trips_of_a_loop(loop: str, trips: int | None) -> None:
    assert trips_of(loop) == trips


numbers = st.integers(-4, 6)
ends = st.one_of(numbers.map(str), st.builds("{} + {}".format, st.just("i"), numbers))
ends = st.one_of(ends, st.builds("{} - i".format, numbers))
steps = st.sampled_from(("1", "2", "-1", "-3"))


@given(outer=st.tuples(numbers, numbers, steps), inner=st.tuples(ends, ends, steps))
def test_inner_loops_turn_no_more_often_than_is_thought(
    outer: tuple[int, int, str], inner: tuple[str, str, str]
) -> None:
    low, high, step = outer
    text = f"for i in range({low}, {high}, {step}):\n  for j in range({', '.join(inner)}): pass"
    loop = ast.parse(text).body[0]
    assert isinstance(loop, ast.For)
    within = loop.body[0]
    assert isinstance(within, ast.For)
    trips = TripCounts(CONSTANTS.get)
    trips.within = trips.variables(loop)
    most = trips.of(within.iter)
    assert most is not None
    for i in range(low, high, int(step)):
        start, stop, by = (eval(part, {"i": i}) for part in inner)
        assert len(range(start, stop, by)) <= most


@pytest.mark.parametrize("body", ["i = 5", "(i := 5)", "for i in (1, 2): pass", "[i, k] = 1, 2"])
def test_a_variable_that_the_loop_sets_is_not_bounded(body: str) -> None:
    for text in (f"for i in range(3):\n  {body}", f"for i in range(3): pass\nelse:\n  {body}"):
        loop = ast.parse(text).body[0]
        assert isinstance(loop, ast.For)
        assert TripCounts(CONSTANTS.get).variables(loop) == {}


class Words(ss.State):
    words = ss.array(int, 8)


def short(state: Any, event: Any, emit: Any) -> None:
    for i in range(8):
        for j in range(i, 0, -1):
            state.words[j - 1] += state.words[j] + event.x


def long(state: Any, event: Any, emit: Any) -> None:
    for i in range(event.x):
        for j in range(8):
            state.words[j] += i


def wide(state: Any, event: Any, emit: Any) -> None:
    for _ in range(20):
        for j in range(20):
            state.words[j % 8] += event.x


@pytest.mark.parametrize(("function", "polls"), [(short, 0), (long, 1), (wide, 1)])
def test_loops_that_end_by_themselves_do_not_poll(
    function: Any, polls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled: list[Any] = []

    def loop(rewriter: NativeRewriter, node: Any, poll: Any) -> Any:
        if poll is not None:
            polled.append(poll)
        return rewritten(rewriter, node, poll)

    rewritten = control_flow.loop
    monkeypatch.setattr(control_flow, "loop", loop)
    operator = ss.operator(state=Words, event={"x": int}, emits={})(function)
    events = pa.table({"x": [3, 1, 2]})
    with ss.Engine(operator, threads=2, horizon=4) as engine:
        engine.process(events)
        native = engine.state.words.tolist()
    assert len(polled) == polls
    assert native == operator.run_sequential(events).state.words.tolist()
