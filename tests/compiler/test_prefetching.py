"""Which keys are looked up before their events run, and that it changes no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specstream as ss
from specstream.compiler.frontend.program import LookUp

SETTINGS = (
    {"threads": 1, "horizon": 0},
    {"threads": 1, "execution": "log_free"},
    {"threads": 1, "horizon": 16, "chunk": 8, "execution": "speculate"},
    {"threads": 2, "horizon": 16, "chunk": 8},
    {"threads": 2, "horizon": 16, "chunk": 8, "protocol": "eager"},
    {"threads": 2, "horizon": 4, "chunk": 1},
)


class State(ss.State):
    seen = ss.set(str)
    count = ss.dict(int, int)
    by_both = ss.dict((str, int), float)
    flagged = ss.dict((str, bool), int)
    total = ss.array(int, 4)


EVENT = {"user": str, "item": int, "flag": bool}
EMITS = {"n": int}


@ss.operator(state=State, event=EVENT, emits=EMITS)
def everything(state, event, emit):  # type: ignore[no-untyped-def]
    key = event.user, event.item
    count = state.count
    if event.user in state.seen:
        emit(count.get(event.item, 0))
    state.seen.add(event.user)
    state.by_both[key] = state.by_both.get(key, 0.0) + 1.0
    count[event.item] = count.get(event.item, 0) + 1
    if count[event.item] > 3:
        del count[event.item]


@ss.operator(state=State, event=EVENT, emits=EMITS)
def behind_a_return(state, event, emit):  # type: ignore[no-untyped-def]
    if event.item in state.count:
        return
    state.seen.add(event.user)
    state.count[event.item] = 1


@ss.operator(state=State, event=EVENT, emits=EMITS)
def now_and_then(state, event, emit):  # type: ignore[no-untyped-def]
    if event.flag:
        state.seen.add(event.user)
    for _ in range(event.item):
        state.count[event.item] = state.count.get(event.item, 0) + 1


@ss.operator(state=State, event=EVENT, emits=EMITS)
def of_no_column(state, event, emit):  # type: ignore[no-untyped-def]
    item = event.item
    item += 1
    state.count[item] = 1
    state.count[event.item + 2] = state.total[event.item % 4]
    state.flagged[event.user, event.flag] = 1


@ss.operator(state=State, event=EVENT, emits=EMITS)
def first_of_two(state, event, emit):  # type: ignore[no-untyped-def]
    state.by_both[event.user, event.item] = 1.0
    state.by_both[event.user, event.sequence] = 1.0
    emit(len(state.by_both))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (
            everything,
            {("seen", ("user",)), ("by_both", ("user", "item")), ("count", ("item",))},
        ),
        (behind_a_return, {("count", ("item",))}),
        (now_and_then, set()),
        (of_no_column, set()),
        (first_of_two, {("by_both", ("user", "item"))}),
    ],
    ids=lambda one: one.name if isinstance(one, ss.Operator) else "",
)
def test_what_is_looked_up(operator: ss.Operator, expected: set[LookUp]) -> None:
    assert set(operator.program.look_ups) == expected


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    "operator", [everything, behind_a_return, first_of_two], ids=lambda one: one.name
)
def test_answers(operator: ss.Operator, settings: dict[str, object]) -> None:
    """Entries come, go and are taken by other keys while hints of them are there."""
    random = np.random.default_rng(7)
    for keys in (5, 400):
        events: dict[str, Any] = {
            "user": [f"u{n}" for n in random.integers(0, keys, 3000)],
            "item": random.integers(0, keys, 3000),
            "flag": random.integers(0, 2, 3000).astype(bool),
        }
        expected = operator.run_sequential(events)
        rows = []
        with ss.Engine(operator, **settings) as engine:  # type: ignore[arg-type]
            for part in range(0, 3000, 700):
                some = {name: of[part : part + 700] for name, of in events.items()}
                rows += engine.process(some)["n"].to_pylist()
            assert rows == expected.output["n"].to_pylist()
            for name in ("seen", "count", "by_both"):
                assert getattr(engine.state, name) == getattr(expected.state, name)
