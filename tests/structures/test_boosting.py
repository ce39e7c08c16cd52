"""Boosted structures: whatever runs at once, they are what the sequential run makes of them."""

# Operators carry no types, as those of users do not, or only where specstream needs one.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

from __future__ import annotations

import pickle
from time import monotonic, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import Path, Result, assert_identical, run_engine, run_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.engine.ahead import run_ahead
from support.engine.journeys import run_journey

import specstream as ss
from specstream.structures import (
    boosted,
    boosted_set,
    contains,
    hash_set,
    insert,
    remove,
    sorted_contains,
    sorted_insert,
    sorted_list,
    sorted_remove,
)

pytestmark = pytest.mark.slow

CAPACITY = 24


def deposit(balances, account, amount: float):
    """Returns the balance, which later deposits to the account change."""
    balances[account % 5] += amount
    return balances[account % 5]


def withdraw(balances, account, amount: float):
    balances[account % 5] -= amount


def exchange(latest, key, value):
    before = latest[key % 6]
    latest[key % 6] = value
    return before


def put_back(latest, key, value, before):
    latest[key % 6] = before


def note(latest, key, value):
    """Raises in the middle of its work."""
    latest[key % 6] = value
    if value % 7 == 0:
        raise ValueError(f"{key} is {value}")
    latest[key % 6] += 1


def forget(latest, key, value):
    latest[key % 6] -= value + 1


class Boosted(ss.State):
    hot = ss.scalar(int)
    members = boosted_set(CAPACITY)
    seen = ss.array(int, 4)
    # Amounts that are sums of powers of two: taking one away leaves what was there.
    balances = boosted(ss.array(float, 5), deposit=(deposit, withdraw))
    latest = boosted(ss.array(int, 6), exchange=(exchange, put_back))


EVENT = {"what": int, "key": int, "value": int}
OPERATIONS = 8


@ss.operator(state=Boosted, event=EVENT, emits={"result": float}, name="several")
def several(state, event, emit):
    """Operations on boosted fields between ordinary reads and writes, and events that raise."""
    what = event.what
    key = event.key
    before = state.seen[key % 4]
    if what in (0, 1):
        emit(float(state.members.insert(key)))
    elif what == 2:
        emit(float(state.members.remove(key)))
    elif what == 3:
        emit(float(state.members.contains(key)))
        emit(float(state.members.contains(key + 1)))
    elif what == 4:
        emit(state.balances.deposit(key % 5, float(event.value)))
        emit(float(state.latest.exchange(key, event.value)))
    elif what == 5:
        # All that was done is taken back when the event raises.
        state.members.insert(key)
        state.members.remove(key + 2)
        state.latest.exchange(key, -1)
        if event.value % 5 == 0:
            raise ValueError(f"no {event.value}")
    elif what == 6:
        # Reads early, writes late: of two that run at once, the later one is dropped.
        hot = state.hot
        emit(float(state.members.insert(key)))
        state.balances.deposit(key, 0.5)
        state.hot = hot + 1
    else:
        emit(float(state.members.remove(event.value % 3)))
        emit(float(state.members.insert(event.value % 3)))
    if event.value % 3 == 0:
        state.seen[key % 4] = before + 1


def events(count: int, seed: int, keys: int = 30) -> pa.Table:
    dice = np.random.default_rng(seed)
    return pa.table(
        {
            "what": dice.integers(0, OPERATIONS, count),
            "key": dice.integers(0, keys, count),
            "value": dice.integers(0, 100, count),
        }
    )


@pytest.mark.parametrize("keys", [3, 30])
def test_every_path_gives_the_answer_of_the_sequential_run(path: Path, keys: int) -> None:
    """With 30 keys the set is full at times, and its insert raises."""
    table = events(1500, 1, keys)
    assert_identical(path(several, table), run_oracle(several, table))


@settings(max_examples=share_of(40))
@given(
    seed=st.integers(0, 2**32),
    keys=st.sampled_from([1, 2, 8, 26]),
    threads=st.integers(1, 4),
    horizon=st.integers(1, 40),
    chunk=st.integers(1, 9),
    execution=st.sampled_from(["ordered", "speculate"]),
    protocol=st.sampled_from(["value", "eager"]),
)
def test_any_operations_under_any_setting(seed: int, keys: int, **options: Any) -> None:
    table = events(400, seed, keys)
    expected = run_oracle(several, table)
    assert_identical(run_engine(several, table, **options), expected)
    if seed % 4 == 0:
        paths = [options, {"horizon": 0}, {"threads": 2, "horizon": 8, "chunk": 2}]
        assert_identical(run_journey(several, table, paths, seed), expected)


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_submitted_events(protocol: str) -> None:
    """They have all run before the first one commits."""
    table = events(600, 5, 9)
    calm = table.filter(pc.not_equal(table["what"], 5))
    stats, state = run_ahead(several, calm, protocol)
    assert stats.aborts["locked"] + stats.aborts["stolen"] > 0
    expected = run_oracle(several, calm)
    assert not expected.raised
    assert_identical(Result(expected.output, state, ()), expected)


# ---- what is declared wrongly ----


def first_free(row, key):
    """Operations of different keys do not commute: each takes the next place."""
    at = row[0]
    row[0] = at + 1
    return at


def nothing(row, key):
    """No inverse at all."""


def backwards(row, key):
    """An inverse that raises."""
    if row[0] > 0:
        raise ValueError("never")


@pytest.mark.parametrize("inverse", [nothing, backwards], ids=lambda one: one.__name__)
@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_wrong_declarations_cost_reruns_and_no_result(inverse: Any, protocol: str) -> None:
    class Places(ss.State):
        row = boosted(ss.array(int, 2), take=(first_free, inverse))
        hot = ss.scalar(int)

    @ss.operator(state=Places, event={"key": int}, emits={"at": int})
    def places(state, event, emit):
        hot = state.hot
        emit(state.row.take(event.key))
        if event.key % 3 == 0:
            state.hot = hot + 1

    table = pa.table({"key": np.random.default_rng(4).integers(0, 50, 3000)})
    for execution in ("ordered", "speculate"):
        found = run_engine(
            places,
            table,
            threads=3,
            horizon=8,
            chunk=2,
            protocol=protocol,
            execution=execution,
        )
        assert_identical(found, run_oracle(places, table))


def test_an_operation_that_raises_halfway_changes_nothing(path: Path) -> None:
    class Latest(ss.State):
        latest = boosted(ss.array(int, 6), note=(note, forget))

    @ss.operator(state=Latest, event={"key": int, "value": int}, emits={"key": int})
    def noted(state, event, emit):
        state.latest.note(event.key, event.value)
        emit(event.key)

    table = events(800, 9).drop_columns(["what"])
    assert_identical(path(noted, table), run_oracle(noted, table))


def turns(row, key, count):
    """Works for as long as it is told to."""
    total = 0
    for turn in range(count):
        total += turn
    row[key % 4] += 1
    return total


def turn_back(row, key, count):
    row[key % 4] -= 1


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_an_operation_that_a_speculative_run_calls_with_nonsense_is_ended(protocol: str) -> None:
    class Clock(ss.State):
        row = boosted(ss.array(int, 4), turn=(turns, turn_back))
        one = ss.scalar(int)
        other = ss.scalar(int)

    @ss.operator(state=Clock, event={"key": int}, emits={"total": int})
    def clock(state, event, emit):
        # They are equal between two events, and in no other case is this short.
        count = (state.one - state.other) * 2**50 + 3
        emit(state.row.turn(event.key, count))
        state.one += 1
        for _ in range(50):
            count += 1
        state.other += 1

    table = pa.table({"key": np.arange(4000)})
    found = run_engine(clock, table, threads=3, horizon=8, chunk=1, protocol=protocol)
    assert_identical(found, run_oracle(clock, table))


# ---- state that comes and goes ----


def test_batches_plain_stretches_and_other_states_in_between() -> None:
    tables = [events(300, seed, 12) for seed in range(6)]
    rows, calm = [], [table.filter(pc.not_equal(table["what"], 5)) for table in tables]
    with (
        ss.Engine(several, threads=2, horizon=8, chunk=2, execution="speculate") as engine,
        ss.Engine(several, horizon=0) as plain,
    ):
        for number, table in enumerate(calm):
            if number in (2, 4):
                mark, snapshot = engine.savepoint(), engine.snapshot()
                engine.process(table)
                engine.rollback(mark) if number == 2 else engine.restore(snapshot)
            rows.append(engine.process(table))
            assert rows[-1] == plain.process(table)
        assert_identical(
            Result(rows[-1], engine.state.to_dict(), ()),
            Result(rows[-1], plain.state.to_dict(), ()),
        )


def test_an_operator_with_operations_can_be_pickled() -> None:
    table = events(500, 3)
    copy = pickle.loads(pickle.dumps(several))
    again = pickle.loads(pickle.dumps(copy))
    expected = run_oracle(several, table)
    assert_identical(run_oracle(again, table), expected)
    found = run_engine(again, table, threads=2, horizon=8, execution="speculate")
    assert_identical(found, expected)


# ---- fewer aborts ----


class Sets(ss.State):
    listed = sorted_list(400)
    hashed = hash_set(190)  # of 256 slots
    boosted = boosted_set(400)
    work = ss.array(float, 64)


@ss.operator(
    state=Sets, event={"what": int, "key": int}, emits={"was": bool}, name="with a sorted list"
)
def with_list(state, event, emit):
    if event.what == 0:
        emit(sorted_insert(state.listed, event.key))
    elif event.what == 1:
        emit(sorted_remove(state.listed, event.key))
    else:
        emit(sorted_contains(state.listed, event.key))


@ss.operator(
    state=Sets, event={"what": int, "key": int}, emits={"was": bool}, name="with a hash set"
)
def with_hashes(state, event, emit):
    if event.what == 0:
        emit(insert(state.hashed, event.key))
    elif event.what == 1:
        emit(remove(state.hashed, event.key))
    else:
        emit(contains(state.hashed, event.key))


@ss.operator(
    state=Sets, event={"what": int, "key": int}, emits={"was": bool}, name="with a boosted set"
)
def with_boosting(state, event, emit):
    if event.what == 0:
        emit(state.boosted.insert(event.key))
    elif event.what == 1:
        emit(state.boosted.remove(event.key))
    else:
        emit(state.boosted.contains(event.key))


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_boosted_set_aborts_less_than_a_hash_set_and_that_less_than_a_list(protocol: str) -> None:
    """Sixteen events have always run before the first of them commits."""
    dice = np.random.default_rng(7)
    keys = 380  # half of them are there
    table = pa.table({"what": dice.integers(0, 3, 3000), "key": dice.integers(0, keys, 3000)})
    aborts = []
    for operator in (with_list, with_hashes, with_boosting):
        stats, _ = run_ahead(operator, table, protocol)
        aborts.append(sum(stats.aborts[why] for why in ("conflict", "locked", "stolen")))
    listed, hashed, boosting = aborts
    assert listed > 2 * hashed, aborts
    assert hashed > boosting, aborts


# ---- errors ----


def declared(**given: Any) -> Any:
    return boosted(ss.array(int, 3), **given)


def three(field, key: float):
    return 0


def pair(field, key):
    return key, key


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: boosted(ss.scalar(int), f=nothing), "expected an array of the state"),
        (lambda: boosted(ss.scratch(int, 3), f=nothing), "expected an array of the state"),
        (lambda: boosted([1, 2], f=nothing), "expected an array of the state"),
        (lambda: declared(), "given no operation"),
        (lambda: declared(acquire=nothing), "'acquire' is the name of another method"),
        (lambda: declared(f=3), "expected a plain function"),
        (lambda: declared(f=(nothing, 3)), "expected a plain function"),
        (lambda: declared(f=(None, nothing)), "has an inverse and no function"),
        (lambda: declared(f=lambda field: 0), "expected the field, the key"),
        (lambda: declared(f=three), "key 'key' of 'three' is float"),
        (lambda: declared(f=(first_free, put_back)), "has 4 parameters; expected the 2"),
    ],
)
def test_what_cannot_be_boosted(declare: Any, message: str) -> None:
    with pytest.raises(ss.DeclarationError, match=message):
        declare()


def boosted_operator(body: Any, **operations: Any) -> ss.Operator:
    class Field(ss.State):
        field = declared(**(operations or {"take": (first_free, nothing)}))

    return ss.operator(state=Field, event={"key": int, "x": float}, emits={})(body)


def reads_it(state, event, emit):
    if state.field[0] == 1:
        emit()


def writes_it(state, event, emit):
    state.field[0] = 1


def replaces_it(state, event, emit):
    state.field = 1


def two_keys(state, event, emit):
    state.field.take(event.key, event.key)


def float_key(state, event, emit):
    state.field.take(event.x)


def of_the_event(state, event, emit):
    event.take(event.key)


def takes(state, event, emit):
    state.field.take(event.key)


@pytest.mark.parametrize(
    ("body", "operations", "message"),
    [
        (reads_it, {}, "field 'field' is boosted"),
        (writes_it, {}, "field 'field' is boosted"),
        (replaces_it, {}, "field 'field' is boosted"),
        (two_keys, {}, r"state.field.take takes 1 number\(s\) and gets 2"),
        (float_key, {}, "argument 1 of state.field.take"),
        (of_the_event, {}, "has no operation 'take'"),
        (takes, {"take": pair}, "return one number"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_an_operator_cannot_do(body: Any, operations: Any, message: str) -> None:
    with pytest.raises(ss.CompileError, match=message):
        ss.Engine(boosted_operator(body, **operations), threads=2, horizon=8)


# ---- what is said of them ----


def run_one(engine: ss.Engine, at: int, key: int) -> None:
    """An event that runs, and waits for the frontier."""
    ran = engine.stats.speculative_runs
    engine.submit_event(at, key=key)
    deadline = monotonic() + 20
    while engine.stats.speculative_runs == ran:
        assert monotonic() < deadline, engine.stats
        sleep(0.0005)


def test_a_profile_names_the_field_and_says_what_helps() -> None:
    class Few(ss.State):
        members = boosted_set(100)

    @ss.operator(state=Few, event={"key": int}, emits={"was": bool})
    def few(state, event, emit):
        emit(state.members.insert(event.key))
        state.members.remove(event.key)

    with ss.Engine(few, profile=True, threads=2, horizon=8, chunk=1) as engine:
        for time in range(0, 40, 2):
            for at in (time, time + 1):  # which both run before the first one commits
                run_one(engine, at, 1)
            engine.advance(0, time + 1)
            assert engine.poll(timeout=None)["was"].to_pylist() == [True, True]
        profile = engine.profile()
    assert profile.aborts["locked"] == 20
    assert profile.words[0].field == "members"
    assert any("Operations on members with the same keys" in text for text in profile.advice)


def test_a_profile_tells_of_operations_that_do_not_commute() -> None:
    class Places(ss.State):
        row = boosted(ss.array(int, 2), take=(first_free, backwards))

    @ss.operator(state=Places, event={"key": int}, emits={"at": int})
    def places(state, event, emit):
        emit(state.row.take(event.key))

    taken: list[int] = []
    with ss.Engine(places, profile=True, threads=2, horizon=8, chunk=1) as engine:
        for time in range(0, 20, 2):
            # The later one of two comes first, and has taken a number before the earlier one comes.
            for at in (time + 1, time):
                run_one(engine, at, at)
            engine.advance(0, time + 1)
            taken += engine.poll(timeout=None)["at"].to_pylist()
        profile = engine.profile()
    assert taken == list(range(20))
    assert profile.aborts["shadow"] > 0.1 * profile.speculative_runs
    assert any("do not commute" in text for text in profile.advice)
