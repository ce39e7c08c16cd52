"""What is full, or does not fit, raises at the event that meets it, also with early results."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import specstream as ss
from specstream.structures import add


class Pair(ss.Record):
    q: int


class State(ss.State):
    n = ss.scalar(int)
    table = ss.dict(int, int, limit=2)
    chosen = ss.set(int, limit=2)
    listed = ss.list(int, limit=2)
    records = ss.dict(int, Pair, limit=2)
    due = ss.timers(int, limit=2)
    line = ss.deque(int, limit=2)
    small = ss.array(np.int8, 2)


KINDS = 9


def fires(state, timer, emit):
    pass


def put(state, kind, i):
    if kind == 0:
        state.table[i] = 1
    if kind == 1:
        state.chosen.add(i)
    if kind == 2:
        state.listed.append(i)
    if kind == 3:
        state.records[i] = Pair(1)
    if kind == 4:
        state.due.set(i, 1000)
    if kind == 5:
        state.table.setdefault(i, 4)
    if kind == 6:
        state.table.update({i: 1})
    if kind == 7:
        state.line.append(i)
    if kind == 8:
        add(state.small, 0, 60)


def plainly(state, event, emit):
    put(state, event.kind, event.i)
    emit(event.i)


def caught(state, event, emit):
    try:
        state.n += 1
        put(state, event.kind, event.i)
    except OverflowError:
        state.n += 10
        emit(100)
    emit(event.i)


def outcome(operator: ss.Operator, kind: int, *, early: bool, **options: Any) -> Any:
    """Final rows, errors that were set aside, and what is left; of five events."""
    with ss.Engine(operator, early=early, errors="side", sources=["a"], **options) as engine:
        for i in range(5):
            engine.submit_event(i, "a", kind=kind, i=i)
        if early:
            engine.poll_early(timeout=None)
        engine.advance("a", 100)
        rows = engine.poll(timeout=None)["m"].to_pylist()
        failed = engine.failed_events()
        errors = None if failed is None else failed.select(["i", "error", "message"]).to_pylist()
        left = engine.state.to_dict()
        return rows, errors, {**left, "small": left["small"].tolist()}


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("function", [plainly, caught])
def test_what_is_full_raises_early_as_it_does_otherwise(
    function: Callable[..., None], interpreted: bool
) -> None:
    operator = ss.operator(
        state=State,
        event={"kind": int, "i": int},
        emits={"m": int},
        on_timer=fires,
        interpreted=interpreted,
    )(function)
    for kind in range(KINDS):
        expected = outcome(operator, kind, early=False)
        assert (expected[1] is None) == (function is caught)
        for options in ({"horizon": 0}, {"threads": 2, "horizon": 4}):
            assert outcome(operator, kind, early=True, **options) == expected, kind
