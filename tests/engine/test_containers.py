"""Containers of the state on the way: batches, snapshots and savepoints, out of order."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import contents
from support.engine.journeys import Piece, run_journey, run_submitted
from support.operators.container_families import CONTAINERS
from support.operators.families import events

import specstream as ss

PATHS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 4},
    {"threads": 3, "horizon": 16, "chunk": 1, "execution": "speculate"},
    {"threads": 2, "horizon": 4, "chunk": 2, "protocol": "eager"},
    {"threads": 4, "horizon": 32, "chunk": 8, "protocol": "eager", "record_shift": 3},
]
each = pytest.mark.parametrize("operator", CONTAINERS, ids=lambda operator: operator.name)
TABLE = events(500, 5)


@pytest.mark.slow
@each
def test_put_aside_and_taken_back_they_are_what_they_were(operator: ss.Operator) -> None:
    expected = run_oracle(operator, TABLE, seed=3)
    for dice in range(12):
        assert_identical(run_journey(operator, TABLE, PATHS, dice, seed=3), expected)


@pytest.mark.slow
@each
def test_out_of_order_they_are_what_they_are_in_order(operator: ss.Operator) -> None:
    rng = np.random.default_rng(11)
    timed = TABLE.append_column("time", pa.array(rng.integers(0, 90, TABLE.num_rows)))
    pieces: list[Piece] = [
        ("ab"[at % 2], timed.slice(at, 23), ("advance", "poll", "nothing")[rng.integers(3)])
        for at in rng.permutation(np.arange(0, TABLE.num_rows, 23)).tolist()
    ]
    expected = run_submitted(operator, pieces, [{"horizon": 0}], None, seed=3)
    for dice in range(8):
        assert_identical(run_submitted(operator, pieces, PATHS, dice, seed=3), expected)


@pytest.mark.slow
@each
def test_batch_by_batch_they_go_on(operator: ss.Operator) -> None:
    """Each engine begins where another one has ended, on another path."""
    expected = run_oracle(operator, TABLE, seed=3)
    raising = [row for row, _, _ in expected.raised]
    table = TABLE.take(pa.array([row for row in range(TABLE.num_rows) if row not in raising]))
    expected = run_oracle(operator, table, seed=3)
    if expected.raised:  # what raised before has kept others from it
        return
    snapshot, parts = None, []
    for number, at in enumerate(range(0, table.num_rows, 61)):
        with ss.Engine(operator, seed=3, **PATHS[number % len(PATHS)]) as engine:
            if snapshot is not None:
                engine.restore(snapshot)
            parts.append(engine.process(table.slice(at, 61)))
            snapshot, state = engine.snapshot(), contents.of_view(engine.state)
    assert pa.concat_tables(parts).equals(expected.output)
    assert {name: state[name] for name in state if isinstance(state[name], list)} == {
        name: value for name, value in expected.state.items() if isinstance(value, list)
    }


class Filled(ss.State):
    d = ss.dict(int, int)


@pytest.mark.parametrize("count", range(12, 20))
def test_the_order_is_kept_however_many_there_are(count: int) -> None:
    """Entries are taken by the dozen, the last of them first, and then all of them are used."""

    @ss.operator(state=Filled, event={"k": int}, emits={})
    def put(state, event, emit):  # type: ignore[no-untyped-def]
        state.d[event.k] = event.k

    with ss.Engine(put, horizon=0) as engine:
        engine.process({"k": [*range(count)]})
        assert list(engine.state.d) == [*range(count)]
        engine.rollback(engine.savepoint())
        engine.restore(engine.snapshot())
        assert list(engine.state.d) == [*range(count)]


@each
def test_two_ways_to_a_state_give_the_same_bytes(operator: ss.Operator) -> None:
    """A snapshot says what is held, and not how it came there."""
    table = TABLE.slice(0, 150)
    found = []
    for path in (PATHS[0], PATHS[2]):
        with ss.Engine(operator, seed=3, **path) as engine:
            with contextlib.suppress(ValueError, OverflowError):
                engine.process(table)
            found.append(engine.snapshot())
    assert found[0] == found[1]
    assert_identical(
        run_engine(operator, table, seed=3, **PATHS[1]), run_oracle(operator, table, seed=3)
    )
