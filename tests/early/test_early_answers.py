"""Early results of events that ask for a text which compiled code does not know."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from support.early.world import SETTINGS, World, ours
from support.operators import asking

import specstream as ss

COLUMNS = ["at", "text", "total"]


@pytest.mark.parametrize("seed", range(len(SETTINGS)))
@pytest.mark.parametrize("operator", [*asking.OPERATORS, asking.chain()], ids=lambda one: one.name)
def test_what_is_told_of_events_that_ask_is_the_sequential_run(operator: Any, seed: int) -> None:
    world = World(operator, ours, SETTINGS[seed], random.Random(seed))
    with world.engine:
        world.go(20)


@pytest.mark.parametrize("options", SETTINGS[:3])
def test_an_event_that_asks_is_applied_with_its_answer(options: Any) -> None:
    """Its row and what it has stored are in early results, and follow a late event before it."""
    rows = {"time": [10, 20, 30], "at": [1, 2, 3], "amount": [6, -4, 1]}
    late = {"time": [15], "at": [4], "amount": [11]}

    def texts(*tables: Any) -> list[Any]:
        table = pa.concat_tables([pa.table(one) for one in tables]).sort_by("time")
        run = asking.asking.run_sequential(table, order_by="time")
        return list(run.output.select(COLUMNS).to_pylist())

    assert {"math domain error", "found"} < {row["text"] for row in texts(rows)}
    assert texts(rows, late)[-2:] != texts(rows)[-2:]
    with ss.Engine(asking.asking, sources=["a", "b"], early=True, **options) as engine:
        engine.submit(rows, order_by="time", source="a")
        answer = engine.poll_early(timeout=None)
        assert answer.applied_up_to == (30, "a", 2)
        assert answer.changes.select(COLUMNS).to_pylist() == texts(rows)
        assert engine.stats.pending == 3
        engine.submit(late, order_by="time", source="b")
        log = [answer.changes, engine.poll_early(timeout=None).changes]
        assert ss.early.latest(log).select(COLUMNS).to_pylist() == texts(rows, late)
        for source in ("a", "b"):
            engine.advance(source)
        assert engine.poll(timeout=None).select(COLUMNS).to_pylist() == texts(rows, late)
