"""Early results of what events are not all of: timers, expiry, boosted fields, hooks."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from typing import Any

import pytest
from conftest import partial_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.early.world import SETTINGS, World, ours
from support.operators import asking

import specstream as ss
from specstream.structures import boosted_set


class Sessions(ss.State):
    timers = ss.timers(int, limit=32)
    clicks = ss.dict(int, int, limit=32)
    ended = ss.scalar(int)


def ends(state, timer, emit):
    """Depends on how many have fired before, and sets others."""
    state.ended += 1
    if timer.key % 4 == 3 and state.ended % 7 == 0:
        raise ValueError(f"the seventh, of {timer.key}")
    emit(timer.key, state.clicks.pop(timer.key, 0), state.ended)
    if timer.key % 3 == 0:
        state.timers.set(timer.key + 16, timer.at + 9)


@ss.operator(
    state=Sessions,
    event={"at": int, "amount": int},
    emits={"key": int, "clicks": int, "ended": int},
    on_timer=ends,
)
def sessions(state, event, emit):
    """Timers that are set, set anew and cancelled, some for a time that has passed."""
    key = event.at % 11
    state.clicks[key] = state.clicks.get(key, 0) + 1
    if event.amount % 5 == 0:
        state.timers.cancel(key)
    else:
        state.timers.set(key, event.timestamp + event.amount - 2)
    if event.amount % 4 == 0:
        emit(key, state.clicks[key], state.ended)


class Fresh(ss.State):
    seen = ss.dict(int, int, limit=24, expire_after=20)
    last = ss.set(int, expire_after=7)


@ss.operator(state=Fresh, event={"at": int, "amount": int}, emits={"at": int, "n_": int, "m": int})
def fresh(state, event, emit):
    """Entries that go by themselves, and are written anew."""
    key = event.at % 13
    state.seen[key] = state.seen.get(key, 0) + event.amount
    if event.amount % 3 == 0:
        state.last.add(key)
    emit(event.at, state.seen[key], len(state.seen) * 100 + len(state.last))


class Both(ss.State):
    timers = ss.timers(int)
    seen = ss.dict(int, int, expire_after=15)


def counts(state, timer, emit):
    emit(timer.key, len(state.seen), timer.at)


@ss.operator(
    state=Both,
    event={"at": int, "amount": int},
    emits={"key": int, "n_": int, "m": int},
    on_timer=counts,
)
def both(state, event, emit):
    state.seen[event.at % 7] = event.amount
    if event.amount > 10:
        state.timers.set(event.at % 5, event.timestamp + event.amount)


class Boosted(ss.State):
    halted = boosted_set(capacity=100)
    latest = ss.dict(int, int, limit=64)
    total = ss.scalar(int)


@ss.operator(state=Boosted, event={"at": int, "amount": int}, emits={"at": int, "sum": int})
def halting(state, event, emit):
    key = event.at % 17
    goes = event.amount % 3 == 0
    changed = state.halted.remove(key) if goes else state.halted.insert(key)
    if event.amount % 7 == 6:
        state.latest.pop(event.amount % 5, 0)
    state.latest[key % 5] = event.amount
    if changed or state.halted.contains(3):
        state.total += event.amount
        emit(key, state.total)
    if event.amount == 19:
        raise ValueError("19")


OPERATORS = [sessions, fresh, both, halting, *asking.OPERATORS]


@pytest.mark.slow
@settings(max_examples=share_of(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    operator=st.sampled_from(OPERATORS),
    options=st.sampled_from(SETTINGS),
    seed=st.integers(0, 2**32),
)
def test_what_is_told_is_the_sequential_run_over_what_has_come(
    operator: ss.Operator, options: Any, seed: int
) -> None:
    dice = random.Random(seed)
    world = World(operator, ours, options, dice)
    with world.engine:
        world.go(dice.randrange(4, 25))


class Balance(ss.State):
    of = ss.dict(int, int)


@ss.operator(state=Balance, event={"key": int, "more": int}, emits={"key": int, "balance": int})
def balance(state, event, emit):
    state.of[event.key] = state.of.get(event.key, 0) + event.more
    emit(event.key, state.of[event.key])


class Told:
    """What hooks were told, in order, as (hook, sequence number, what else)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, Any]] = []
        self.refuses: dict[int, list[BaseException]] = {}

    def commit(self, told: ss.Notification) -> None:
        self.calls.append(("commit", told.sequence, told.rows))
        if self.refuses.get(told.sequence):
            raise self.refuses[told.sequence].pop()

    def engine(self, **options: Any) -> ss.Engine:
        return ss.Engine(
            balance,
            early=True,
            sources=["a", "b"],
            on_commit=self.commit,
            on_post_commit=lambda told: self.calls.append(("post", told.sequence, None)),
            on_abort=lambda told: self.calls.append(("abort", told.sequence, told.reason)),
            **options,
        )


@pytest.mark.parametrize("options", [{"threads": 1, "horizon": 0}, {"threads": 2, "horizon": 8}])
def test_hooks_are_called_when_an_event_is_final(options: Any) -> None:
    told = Told()
    with told.engine(**options) as engine:
        engine.submit(
            {"t": [1, 3, 5], "key": [7, 8, 7], "more": [1, 1, 1]}, order_by="t", source="a"
        )
        assert engine.poll_early(timeout=None).changes.num_rows == 3
        engine.submit_event(2, "b", key=7, more=10)
        engine.poll_early(timeout=None)
        # The event of key 8 is published again, that of key 7 has read what has changed.
        revoked = [call for call in told.calls if call[2] == "revoked"]
        assert revoked == [("abort", 2, "revoked")]
        assert engine.stats.aborts["revoked"] == 1
        engine.advance("a", 3)
        engine.advance("b", 3)
        assert engine.poll(timeout=None)["balance"].to_pylist() == [1, 11, 1]
        assert [call for call in told.calls if call[0] == "commit"] == [
            ("commit", 0, [(7, 1)]),
            ("commit", 0, [(7, 11)]),
            ("commit", 1, [(8, 1)]),
        ]
        # In any order: whoever has committed calls it when he has given the turn back.
        assert sorted(call[1] for call in told.calls if call[0] == "post") == [0, 0, 1]


@pytest.mark.parametrize("options", [{"threads": 1, "horizon": 0}, {"threads": 2, "horizon": 8}])
def test_an_event_that_on_commit_aborts_runs_again_and_so_does_what_depends_on_it(
    options: Any,
) -> None:
    told = Told()
    told.refuses[0] = [ss.Abort(), ss.Abort()]
    with told.engine(**options) as engine:
        table = {"t": [1, 2, 3], "key": [7, 8, 7], "more": [1, 2, 4]}
        engine.submit(table, order_by="t", source="a")
        engine.poll_early(timeout=None)
        engine.advance("a", None)
        engine.advance("b", None)
        assert engine.poll(timeout=None)["balance"].to_pylist() == [1, 2, 5]
        commits = [call[1] for call in told.calls if call[0] == "commit"]
        assert commits == [0, 0, 0, 1, 2]
        assert told.calls.count(("abort", 0, "hook")) == 2
        assert engine.stats.aborts["hook"] == 2


@pytest.mark.parametrize("options", [{"threads": 1, "horizon": 0}, {"threads": 2, "horizon": 8}])
def test_what_on_commit_raises_fails_the_event_and_the_others_go_on_without_it(
    options: Any,
) -> None:
    told = Told()
    told.refuses[1] = [RuntimeError("not this one")]
    with told.engine(**options) as engine:
        table = {"t": [1, 2, 3, 4], "key": [7, 7, 7, 8], "more": [1, 2, 4, 8]}
        engine.submit(table, order_by="t", source="a")
        assert engine.poll_early(timeout=None).changes["balance"].to_pylist() == [1, 3, 7, 8]
        engine.advance("a", None)
        engine.advance("b", None)
        with pytest.raises(RuntimeError, match="not this one") as caught:
            engine.poll(timeout=None)
        assert partial_of(caught.value).output["balance"].to_pylist() == [1]
        assert engine.poll(timeout=None)["balance"].to_pylist() == [5, 8]
        changes = engine.poll_early(timeout=None).changes
        told_last = {row["sequence"]: row for row in changes.to_pylist()}
        assert {at: row["change"] for at, row in told_last.items()} == {
            0: "final",
            1: "withdrawn",
            2: "final",
            3: "final",
        }
        assert told_last[2]["balance"] == 5
