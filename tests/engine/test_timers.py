"""Timers: engine, oracle and a model in plain Python agree, however the input comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from tests.conftest import PATHS, partial_of
from tests.support.timed import Model, cuts, stream


class State(ss.State):
    timers = ss.timers((str, int))
    open = ss.dict(str, int)
    total = ss.scalar(int)
    fired = ss.array(int, 4)


def act(state, event, emit):  # type: ignore[no-untyped-def]
    key = (event.user, event.act % 4)
    at = event.timestamp + event.wait
    if event.act < 7:
        state.timers.set(key, at)
        state.open[event.user] = state.open.get(event.user, 0) + 1
    elif event.act == 7:
        state.timers.cancel(key)
        state.timers.cancel((event.user, 0))
    elif event.act == 8:
        state.timers.set(key, at)
        state.timers.set((event.user, 1), at + 2)
        state.timers.cancel(key)
    elif event.act == 9:
        state.timers.set(key, at)
        state.timers.cancel((event.user, 1))
        if event.wait > 8:
            raise KeyError(event.user)
    state.total += event.wait
    until = state.timers.get(key)
    if event.act == 10:
        emit(event.user, 0, len(state.timers), state.total, 0.0)
    else:
        emit(event.user, -1 if until is None else until, key in state.timers, state.fired[0], 0.5)


def fires(state, timer, emit):  # type: ignore[no-untyped-def]
    user, kind = timer.key
    state.fired[kind] += 1
    state.total -= 1
    emit(user, timer.at, timer.timestamp, timer.sequence, timer.random(kind))
    if kind == 3 and state.fired[3] % 3 == 0:
        state.timers.set((user, 0), timer.at + state.fired[3] % 2)  # raises for the same time
    if kind == 2:
        state.open[user] = state.open.get(user, 0) - 1
        state.timers.cancel((user, 1))
        if state.fired[2] % 4 == 0:
            raise ZeroDivisionError
    if kind > 0:
        state.timers.set((user, kind - 1), timer.at + 2 * kind)
        emit(user, 0, 0, len(state.timers), 1.0)


operator = ss.operator(
    state=State,
    event={"user": str, "act": int, "wait": int},
    emits={"user": str, "a": int, "b": int, "c": int, "d": float},
    name="acts",
    on_timer=fires,
)(act)

ENGINES = {name: options for name, options in PATHS.items() if options is not None}


def model_of(table: pa.Table) -> Model:
    model = Model(act, fires, open={}, total=0, fired=[0] * 4)
    for sequence, row in enumerate(table.to_pylist()):
        model.event(row.pop("t"), row.pop("src"), sequence, **row)
    return model


def held(state: Any) -> tuple[Any, ...]:
    """What a state holds."""
    timers = list(state.timers.items())
    return timers, dict(state.open), int(state.total), list(state.fired)


def held_by(model: Model) -> tuple[Any, ...]:
    state = model.state
    timers = [(key, at) for key, (at, _) in state.timers.held.items()]
    return timers, state.open, state.total, state.fired


def rows(output: pa.Table) -> list[tuple[Any, ...]]:
    """As the model has them."""
    keys = ("timestamp", "source", "sequence")
    return [tuple(row.values()) for row in output.select([*keys, *"user a b c d".split()]).to_pylist()]


def process_all(
    engine: ss.Engine, table: pa.Table, end: bool
) -> tuple[list[pa.Table], list[tuple[str, Any]]]:
    """Goes on behind what raises."""
    outputs, raised = [], []
    while True:
        try:
            outputs.append(engine.process(table, order_by="t", source="src", end=end))
            return outputs, raised
        except Exception as error:
            partial = partial_of(error)
            timer = vars(error).get("specstream_timer")
            outputs.append(partial.output)
            raised.append((type(error).__name__, None if timer is None else timer[0]))
            table = table.slice(partial.consumed + (timer is None))


@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_is_the_model(seed: int) -> None:
    table = stream(seed, 400)
    model = model_of(table)
    model.end()
    run = operator.run_sequential(
        table, order_by="t", source="src", keys=True, on_error="skip", end=True
    )
    assert rows(run.output) == model.rows
    assert held(run.state) == held_by(model)
    assert [type(error).__name__ for _, error in run.raised] == [name for name, _ in model.raised]
    # All that can happen does.
    assert {"KeyError", "ValueError", "ZeroDivisionError"} == {name for name, _ in model.raised}
    assert len({row[1] for row in model.rows}) == 3


@pytest.mark.parametrize("name", ENGINES)
def test_batches_cut_at_random(name: str) -> None:
    for seed in range(3):
        table = stream(10 + seed, 300)
        rng = np.random.default_rng(seed)
        model = model_of(table)
        model.end()
        outputs: list[pa.Table] = []
        raised: list[tuple[str, Any]] = []
        pieces = cuts(rng, len(table), 1 + 3 * seed)
        with ss.Engine(operator, keys=True, **ENGINES[name]) as engine:
            for first, last in pieces:
                is_last = (first, last) == pieces[-1] and last == len(table)
                some = process_all(engine, table.slice(first, last - first), is_last)
                outputs, raised = outputs + some[0], raised + some[1]
            assert held(engine.state) == held_by(model)
            assert engine.stats.timers == model.fired
        assert rows(pa.concat_tables(outputs)) == [
            row for row in model.rows
        ], f"seed {seed}"
        assert raised == model.raised
