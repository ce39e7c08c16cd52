"""What an engine keeps that nobody has fetched, when it goes back: as in a new engine that is
restored from the same snapshot."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import functools
from typing import Any

import pyarrow.compute as pc
import pytest
from support.engine.arriving import until

import specstream as ss
from specstream.engine.early_results import EarlyAnswer

EVENT: dict[str, Any] = {"key": str, "amount": int}
EMITS: dict[str, Any] = {"key": str, "at": int, "total": int}


class Kept(ss.State):
    total = ss.scalar(int)
    due = ss.timers(str)
    seen = ss.dict(str, int)


def ring(state, timer, emit):
    if timer.key == "bad":
        raise ValueError("a bad timer")
    emit(timer.key, timer.at, state.total)


def keep(state, event, emit):
    state.total += event.amount
    if event.amount == 13:
        raise ValueError("thirteen")
    state.seen[event.key] = state.total
    if event.amount > 0:
        state.due.set(event.key, event.timestamp + event.amount)
    emit(event.key, -1, state.total)


def await_pending(engine: ss.Engine, count: int) -> None:
    until(lambda: engine.stats.pending == count)


def await_timers(engine: ss.Engine, count: int) -> None:
    until(lambda: engine.stats.timers == count)


@functools.cache
def made(kind: str) -> Any:
    operator = ss.operator(
        state=Kept, event=EVENT, emits=EMITS, on_timer=ring, interpreted=kind == "interpreted"
    )(keep)
    if kind != "pipeline":
        return operator
    pipeline = ss.Pipeline("keeps")
    pipeline.sink("out", pipeline.add(operator, pipeline.source("in", EVENT)))
    return pipeline


def table(*rows: tuple[str, int | None, int]) -> dict[str, Any]:
    keys, amounts, times = zip(*rows, strict=True)
    return {"key": list(keys), "amount": list(amounts), "time": list(times)}


def fill(engine: ss.Engine, base: int, number: int) -> None:
    """Rows of events and timers, rejected rows, failed and late events, tentative ones, and early
    rows, of which nobody fetches any."""
    rows = [("a", 3, base), ("b", None, base + 1), ("c", 13, base + 2), ("bad", 1, base + 5)]
    engine.submit(table(*rows, ("d", 2, base + 6)), order_by="time", source="s")
    for source in ("s", "u"):
        engine.advance(source, base + 1)
    engine.submit(table(("late", 1, base - 5)), order_by="time", source="s")
    engine.submit(table(("w", 5, base + 30)), order_by="time", source="s")
    if engine.parts.options.early:
        engine.submit_event(base + 40, "u", final=False, sequence=number, key="t", amount=4)
    for source in ("s", "u"):
        engine.advance(source, base + 20)


def told(engine: ss.Engine, given: Any) -> Any:
    """What a call gives, or raises, without what tells one engine or answer from another."""
    try:
        found = given()
    except Exception as error:
        partial = getattr(error, "specstream_partial", None)
        return type(error).__name__, str(error), partial and partial.consumed
    if isinstance(found, EarlyAnswer):
        # What is final and was not told before is told, by who was there.
        rows = found.changes.drop_columns(["version"]).to_pylist()
        return [row for row in rows if row["change"] != "final"], found.applied_up_to
    return found if found is None else found.to_pylist()


def go_on(engine: ss.Engine) -> list[Any]:
    """All that can be fetched, then more of all kinds, and again."""
    early = engine.parts.options.early
    found: list[Any] = []

    def fetch() -> None:
        calls: list[Any] = [engine.poll_early] if early else []
        calls += [engine.poll, engine.poll, engine.poll, engine.poll]
        found.extend(told(engine, lambda call=call: call(timeout=None)) for call in calls)
        calls = [engine.late, engine.rejected_rows, engine.failed_events]
        found.extend(told(engine, call) for call in calls)
        found.append(engine.stats.pending)

    fetch()
    fill(engine, 500, 100)
    fetch()
    if early:
        engine.revise("u", 100, 2, amount=6)
        engine.confirm("u")
    for source in ("s", "u"):
        engine.advance(source)
    fetch()
    return found


@pytest.mark.parametrize("kind", ["compiled", "interpreted", "pipeline"])
@pytest.mark.parametrize("early", [False, True])
def test_what_nobody_has_fetched_goes_with_the_state(kind: str, early: bool) -> None:
    operator = made(kind)
    options: dict[str, Any] = {"sources": ["s", "u"], "threads": 2, "horizon": 4, "keys": True}
    options |= {"rejected_rows": "side", "late": "side", "early": early}
    for errors in ("side", "raise"):
        for back in ("restore", "rollback"):
            with ss.Engine(operator, errors=errors, **options) as engine:
                if early:
                    engine.poll_early()
                fill(engine, 100, 0)
                # The first is committed, and the one that fails keeps the others.
                await_pending(engine, 4 + early)
                snapshot, savepoint = engine.snapshot(), engine.savepoint()
                told(engine, engine.poll)
                fill(engine, 300, 50)
                if back == "restore":
                    engine.restore(snapshot)
                else:
                    engine.rollback(savepoint)
                found = go_on(engine)
            with ss.Engine(operator, errors=errors, restore=snapshot, **options) as engine:
                assert found == go_on(engine), (errors, back)


@pytest.mark.parametrize("kind", ["compiled", "interpreted", "pipeline"])
def test_a_firing_that_nobody_has_heard_of_is_forgotten(kind: str) -> None:
    """Its number is that of another one afterwards."""
    operator = made(kind)
    for back in ("restore", "rollback"):
        with ss.Engine(operator, sources=["s"], threads=1, horizon=0, keys=True) as engine:
            snapshot, savepoint = engine.snapshot(), engine.savepoint()
            rows = table(("a", 7, 1), ("z", 7, 10))
            engine.submit(rows, order_by="time", source="s", ordered=True)
            assert "a" in engine.poll(timeout=None)["key"].to_pylist()
            engine.submit(table(("b", 7, 45)), order_by="time", source="s", ordered=True)
            await_timers(engine, 2)
            if back == "restore":
                engine.restore(snapshot)
            else:
                engine.rollback(savepoint)
            rows = table(("c", 7, 46), ("d", 7, 55))
            engine.submit(rows, order_by="time", source="s", ordered=True)
            fired = engine.poll(timeout=None).filter(pc.field("at") == 53)
            assert fired["timestamp"].to_pylist() == [53]
