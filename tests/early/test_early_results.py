"""Early results: what is told before it is final is the sequential run over all that has come."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.early.world import SETTINGS, World, ours, theirs
from support.engine.arriving import PATIENCE, entities
from support.operators import families

import specstream as ss


class Words(ss.State):
    counts = ss.array(int, 4)
    small = ss.array(np.int8, 8)
    grid = ss.array(int, (3, 4))
    total = ss.scalar(float)


@ss.operator(
    state=Words,
    event={"at": int, "amount": int},
    emits={"at": int, "row": int, "total": float},
)
def mixed(state, event, emit):
    """Updates that nobody reads, narrow elements, rows as a whole; none, one or several rows."""
    ss.structures.add(state.counts, event.at % 4, event.amount)
    state.small[event.at % 8] = event.amount % 100
    state.grid[event.at % 3] = state.grid[(event.at + 1) % 3]
    state.grid[event.at % 3, event.at % 4] += event.amount
    if event.amount % 3 == 0:
        state.total = state.total * 0.5 + event.amount
    for number in range(event.amount % 3):
        emit(event.at, number + state.counts[event.at % 4], state.total)


class Held(ss.State):
    balances = ss.dict(int, int, limit=64)
    latest = ss.deque(int, limit=8)
    seen = ss.set(int, limit=64)


@ss.operator(state=Held, event={"at": int, "amount": int}, emits={"at": int, "sum": int, "n_": int})
def held(state, event, emit):
    """Keys that come and go, all of them in the order of their coming, and how many there are."""
    at = event.at % 9
    if event.amount % 4 == 0 and at in state.balances:
        del state.balances[at]
        state.seen.discard(at)
    else:
        state.balances[at] = state.balances.get(at, 0) + event.amount
        state.seen.add(event.amount % 7)
    if len(state.latest) == 8:
        state.latest.popleft()
    state.latest.append(event.amount)
    if event.amount % 5 == 0:
        place = 1
        total = 0
        for key in state.balances:
            total += place * key
            place += 1
        emit(event.at, total, len(state.seen))
    elif event.amount % 2:
        emit(event.at, state.balances.get(at + 1, -1), state.latest[0])


def is_comparable(operator: ss.Operator) -> bool:
    """Of what goes by the number of an event, which is that of its arrival, the sequential run over
    a table knows nothing."""
    by_arrival = {"sequence", "random", "random_bits", "normal", "integer", "choice"}
    return "n" not in operator.emits.names and not by_arrival & set(operator.explain().columns_read)


OPERATORS = [
    *((operator, ours) for operator in (entities, mixed, held)),
    *((operator, theirs) for operator in families.FAMILY if is_comparable(operator)),
]


@pytest.mark.slow
@settings(max_examples=share_of(40, 5), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    which=st.integers(0, len(OPERATORS) - 1),
    options=st.sampled_from(SETTINGS),
    seed=st.integers(0, 2**32),
)
def test_what_is_told_is_the_sequential_run_over_what_has_come(
    which: int, options: Any, seed: int
) -> None:
    dice = random.Random(seed)
    world = World(*OPERATORS[which], options, dice)
    with world.engine:
        world.go(dice.randrange(4, 25))


def test_patience_is_bounded() -> None:
    """Nothing hangs where a source never advances: the answer is there (ER-12)."""
    with ss.Engine(entities, sources=["a", "b"], early=True, threads=2) as engine:
        for at in range(100):
            engine.submit_event(at, "a", at=at, amount=1)
        answer = engine.poll_early(timeout=PATIENCE)
        assert answer.changes.num_rows == 100
        assert answer.final_up_to is None
        assert engine.poll(timeout=None).num_rows == 0
        assert engine.stats.pending == 100


def test_what_is_submitted_waits_where_revoking_takes_too_long() -> None:
    """The latest events stay back, so that late ones find few to be taken back; nothing is lost."""
    count, late = 30_000, 400
    with ss.Engine(entities, sources=["a", "b"], early=True, threads=2) as engine:
        engine.poll_early()
        for at in range(10):
            first = at * count // 10
            times = range(first, first + count // 10)
            engine.submit(
                {"t": times, "at": times, "amount": [1] * len(times)}, order_by="t", source="a"
            )
        engine.poll_early(timeout=None)
        deadline = time.monotonic() + PATIENCE
        held = 0
        for at in range(late):
            engine.submit_event(at, "b", at=at, amount=1)
            engine.submit_event(count + at, "a", at=at, amount=1)
            engine.poll_early(timeout=None)
            held = max(held, int(engine.parts.native.early_figures().held))
            if held or time.monotonic() > deadline:
                break
        assert held > count // 2, "nothing was held back"
        come = at + 1
        engine.submit_event(count + late, "a", at=1, amount=1)
        answer = engine.poll_early(timeout=None)
        assert answer.applied_up_to is not None
        assert answer.applied_up_to[0] < count + late
        for source in ("a", "b"):
            engine.advance(source, None)
        rows = engine.poll(timeout=None)
        assert rows.num_rows == count + 2 * come + 1
        assert engine.stats.pending == 0


def test_rows_that_wait_behind_an_event_that_is_held_back_are_withdrawn() -> None:
    """One that was submitted and waits is not passed over: what stood behind it waits with it."""
    count, late = 30_000, 400
    with ss.Engine(entities, sources=["a", "b"], early=True, threads=2) as engine:
        engine.poll_early()
        table = {"t": range(count), "at": range(count), "amount": [1] * count}
        engine.submit(table, order_by="t", source="a")
        told = set()

        def look() -> Any:
            answer = engine.poll_early(timeout=None)
            for row in answer.changes.select(["timestamp", "source", "change"]).to_pylist():
                key = row["timestamp"], row["source"]
                told.discard(key) if row["change"] == "withdrawn" else told.add(key)
            return answer

        look()
        assert len(told) == count
        deadline = time.monotonic() + PATIENCE
        for at in range(late):
            engine.submit_event(at, "b", at=at, amount=1)
            look()
            if engine.parts.native.early_figures().held or time.monotonic() > deadline:
                break
        for at in range(count - 2000, count - 1, 100):
            engine.submit_event(at, "b", at=at, amount=1)
            answer = look()
            assert answer.applied_up_to is not None
            is_applied = answer.applied_up_to[:2] >= (at, "b")
            assert is_applied == ((at, "b") in told)
            assert max(told) == answer.applied_up_to[:2], "nothing behind it is told"
        for source in ("a", "b"):
            engine.advance(source, None)
        rows = engine.poll(timeout=None).num_rows
        look()
        assert len(told) == rows
        assert engine.stats.pending == 0


@pytest.mark.parametrize("revised", [False, True])
def test_a_poll_waits_for_what_an_event_that_is_gone_has_held_back(revised: bool) -> None:
    for _ in range(10):
        with ss.Engine(entities, sources=["a"], early=True, threads=3, horizon=16) as engine:
            engine.submit_event(0, "a", final=False, sequence=0, at=1, amount=5)
            times = list(range(1, 31))
            table = {"t": times, "at": times, "amount": [1] * 30}
            engine.submit(table, order_by="t", source="a")
            engine.advance("a", 20)
            if revised:
                engine.revise("a", 0, version=2, amount=6)
                engine.confirm("a")
            else:
                engine.retract("a", 0)
            assert engine.poll(timeout=None).num_rows == 20 + revised
