"""What a run on the command line says of itself while it goes on."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import json
import threading
from typing import Any

import pyarrow as pa
from support.checkpoint.fed import Fed

import specstream as ss
from specstream.monitoring.live import JsonLines
from specstream.monitoring.watch import Watch


class Alarms(ss.State):
    timers = ss.timers(int)


def ring(state, timer, emit):
    if timer.key != 3:
        raise KeyError(timer.key)


@ss.operator(state=Alarms, event={"x": int}, emits={}, on_timer=ring)
def alarms(state, event, emit):
    state.timers.set(event.x, event.timestamp)
    if event.x == 2:
        raise ValueError("two")


def test_timers_that_fail_are_no_rows_of_the_input() -> None:
    """Each event but one sets a timer, which fires before the next event, and fails but for one."""
    looks: list[dict[str, Any]] = []
    enough = threading.Event()

    def write(line: str) -> None:
        looks.append(json.loads(line))
        if looks[-1]["rows_in"]:
            enough.set()

    rows = pa.table({"time": range(6), "x": [1, 2, 3, 4, 5, 6]})
    with ss.Engine(alarms, errors="side", horizon=0) as engine:
        fed: Any = Fed(engine, order_by="time", to=lambda table, batch: None)
        with Watch(
            engine, fed, rows=10, newest=None, to=JsonLines(write), every=0.001
        ) as watch:  # fmt: skip
            fed.apply(0, rows)
            watch.begin()
            assert enough.wait(60)
        stats = engine.stats
    # The last timer is still set.
    assert (stats.failed_events, stats.failed_timers, stats.timers) == (1 + 3, 3, 4)
    assert stats.to_dict()["failed_timers"] == 3
    found = {name: looks[-1][name] for name in ("rows_in", "rows_pending", "failed")}
    assert found == {"rows_in": 5, "rows_pending": 10 - 6, "failed": 4}


def test_events_that_wait_are_pending_also_of_a_source_that_does_not_say_its_rows() -> None:
    looks: list[dict[str, Any]] = []
    seen = threading.Event()

    def write(line: str) -> None:
        looks.append(json.loads(line))
        seen.set()

    with ss.Engine(alarms) as engine:
        fed: Any = Fed(engine, order_by="time", to=lambda table, batch: None)
        engine.submit({"time": [1, 2], "x": [3, 3]}, order_by="time")
        with Watch(engine, fed, rows=0, newest=None, to=JsonLines(write), every=0.001) as watch:
            watch.begin()
            assert seen.wait(60)
    assert (looks[0]["rows_in"], looks[0]["rows_pending"]) == (0, 2)


def test_a_rollback_takes_the_count_of_timers_back_and_a_restored_engine_begins_anew() -> None:
    rows = {"time": [1, 2], "x": [4, 3]}
    with ss.Engine(alarms, errors="side", horizon=0) as engine:
        savepoint = engine.savepoint()
        engine.process(rows, order_by="time")
        assert engine.stats.failed_timers == 1
        assert engine.failed_events() is not None
        assert engine.stats.failed_timers == 1  # also when they were fetched
        snapshot = engine.snapshot()
        engine.rollback(savepoint)
        assert engine.stats.failed_timers == 0
    with ss.Engine(alarms, errors="side", restore=snapshot) as engine:
        assert (engine.stats.failed_events, engine.stats.failed_timers) == (0, 0)
