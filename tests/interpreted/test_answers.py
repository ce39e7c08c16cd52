"""Engines give what the sequential run of an interpreted operator gives, on every path."""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import operator
import pickle
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import PATHS, Result, assert_identical, partial_of
from operators_by_hand import everything, stream
from support import contents

import specstream as ss
import specstream.testing
from specstream.structures import boosted_set, sorted_insert, sorted_list

PATIENCE = 60  # seconds; only a test that fails waits so long


def run_engine(table: pa.Table, **options: Any) -> Result:
    parts: list[pa.Table] = []
    raised: list[tuple[int, str, str]] = []
    offset = 0
    with ss.Engine(everything, keys=True, seed=7, **options) as engine:
        while True:
            try:
                parts.append(engine.process(table.slice(offset), order_by="time"))
                break
            except Exception as error:
                partial = partial_of(error)
                parts.append(partial.output)
                offset += partial.consumed
                raised.append((offset, type(error).__name__, str(error)))
                offset += 1
        return Result(pa.concat_tables(parts), contents.of_view(engine.state), tuple(raised))


def run_sequential(table: pa.Table) -> Result:
    run = everything.run_sequential(table, order_by="time", keys=True, seed=7, on_error="skip")
    raised = tuple((-1 if row is None else row, type(e).__name__, str(e)) for row, e in run.raised)
    return Result(run.output, contents.of_view(run.state), raised)


ENGINES = [options for options in PATHS.values() if options is not None]


@pytest.mark.parametrize("options", ENGINES, ids=[name for name in PATHS if name != "oracle"])
def test_all_that_a_state_can_hold_is_the_sequential_runs(options: dict[str, Any]) -> None:
    table = stream(120, 5)
    expected = run_sequential(table)
    assert expected.raised
    assert_identical(run_engine(table, **options), expected)


def test_an_engine_without_a_log_gives_the_same() -> None:
    table = stream(60, 1)
    table = table.filter(pa.compute.not_equal(table["k"], 30))
    table = table.filter(pa.compute.not_equal(table["k"], 61))
    table = table.filter(pa.compute.not_equal(table["k"], 92))
    assert_identical(run_engine(table, threads=1, execution="log_free"), run_sequential(table))


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_events_out_of_order_and_a_snapshot_on_the_way_change_nothing(protocol: str) -> None:
    table = stream(90, 3).filter(pa.compute.less(pa.compute.field("k"), 30))
    expected = everything.run_sequential(table, order_by="time", seed=7)
    options: dict[str, Any] = {"threads": 3, "horizon": 8, "chunk": 2, "protocol": protocol}
    options |= {"seed": 7, "sources": [0]}
    order = np.random.default_rng(5).permutation(table.num_rows)
    # Those of one time keep their order, which is that of their sequence numbers.
    first = table.take(pa.array(np.sort(order[: len(order) // 2])))
    parts = []
    with ss.Engine(everything, **options) as engine:
        engine.submit(first.slice(0, 0), order_by="time")
        half = table.num_rows // 2
        engine.submit(table.slice(0, half), order_by="time")
        engine.advance(0, table["time"][half - 1].as_py())
        parts.append(engine.poll(timeout=None))
        snapshot = engine.snapshot()
    with ss.Engine(everything, restore=snapshot, **options) as engine:
        engine.submit(table.slice(half), order_by="time")
        engine.advance(0)
        parts.append(engine.poll(timeout=None))
        found = pa.concat_tables(parts)
        rows = expected.output.num_rows
        # At the end of all sources the timers that are left fire, too.
        assert found.slice(0, rows).equals(expected.output)


def test_early_results_are_those_of_the_final_order() -> None:
    @ss.operator(state=Sums, event={"x": int}, emits={"total": int}, interpreted=True)
    def sums(state, event, emit):
        state.total += event.x
        state.seen[event.x] = state.total
        emit(state.total)

    with ss.Engine(sums, sources=["a", "b"], early=True, threads=2) as engine:
        engine.submit({"time": [10, 30], "x": [1, 3]}, order_by="time", source="a")
        assert engine.poll_early(timeout=None).changes["total"].to_pylist() == [1, 4]
        engine.submit({"time": [20], "x": [2]}, order_by="time", source="b")
        late = engine.poll_early(timeout=None).changes
        assert late["total"].to_pylist() == [3, 6]
        engine.advance("a", 100)
        engine.advance("b", 100)
        assert engine.poll(timeout=None)["total"].to_pylist() == [1, 3, 6]
        assert dict(engine.state.seen) == {1: 1, 2: 3, 3: 6}


def test_a_column_that_is_read_where_nobody_looks_is_revised() -> None:
    @ss.operator(state=Sums, event={"x": int}, emits={"total": int}, interpreted=True)
    def sums(state, event, emit):
        state.total += operator.attrgetter("x")(event)
        emit(state.total)

    with ss.Engine(sums, sources=["a"], early=True, threads=2) as engine:
        engine.submit_event(10, "a", final=False, sequence=7, x=1)
        assert engine.poll_early(timeout=None).changes["total"].to_pylist() == [1]
        engine.revise("a", 7, version=2, x=5)
        assert engine.poll_early(timeout=None).changes["total"].to_pylist() == [5]


def test_an_operator_without_source_runs_and_is_checked_but_cannot_be_explained() -> None:
    space: dict[str, Any] = {}
    exec("def doubles(event, emit):\n    emit(2 * event.x)\n", space)
    doubles = ss.operator(event={"x": int}, emits={"y": int}, interpreted=True)(space["doubles"])
    assert ss.testing.check(doubles, {"x": [1, 2]}).output["y"].to_pylist() == [2, 4]
    with pytest.raises(ss.DeclarationError, match=r"'doubles'.*source of its function cannot be r"):
        doubles.explain()
    for p in (ss.Pipeline("by_event"), ss.Pipeline("by_time", phases="time")):
        p.sink("out", p.add(doubles, p.source("in", {"x": int})))
        table = {"time": [1, 2], "x": [1, 2]}
        output = p.run_sequential(table, order_by="time", end=True).output
        with ss.Engine(p, threads=2) as engine:
            assert engine.process(table, order_by="time", end=True).equals(output)
        assert output["y"].to_pylist() == [2, 4]


class Sums(ss.State):
    total = ss.scalar(int)
    seen = ss.dict(int, int)


def test_hooks_are_told_of_interpreted_events() -> None:
    told: list[tuple[str, int]] = []

    @ss.operator(state=Sums, event={"x": int}, emits={"total": int}, interpreted=True)
    def sums(state, event, emit):
        state.total += event.x
        emit(state.total)

    def once(notification: ss.Notification) -> None:
        told.append(("commit", notification.rows[0][0]))
        if len(told) == 1:
            raise ss.Abort

    with ss.Engine(sums, threads=2, horizon=4, on_commit=once) as engine:
        engine.process({"x": [1, 2]})
    assert told == [("commit", 1), ("commit", 1), ("commit", 3)]


def test_an_operator_that_was_pickled_gives_the_same() -> None:
    table = stream(30, 4)
    again = pickle.loads(pickle.dumps(everything))
    assert again.is_interpreted
    one, other = (
        of.run_sequential(table, order_by="time", on_error="skip") for of in (everything, again)
    )
    assert one.output.equals(other.output)


def test_conflicts_are_told_with_field_and_line() -> None:
    read, committed = threading.Event(), threading.Event()

    @ss.operator(state=Sums, event={"x": int}, emits={}, interpreted=True)
    def sums(state, event, emit):
        if event.x == 0:  # which commits when the other one has read what it changes
            assert read.wait(PATIENCE)
        before = state.total
        if event.x == 1:
            read.set()
            assert committed.wait(PATIENCE)
        state.total = before + 1

    def told(notification: ss.Notification) -> None:
        committed.set()

    options: dict[str, Any] = {"threads": 2, "horizon": 2, "chunk": 1, "on_post_commit": told}
    with ss.Engine(sums, profile=True, **options) as engine:
        engine.process({"x": [0, 1]})
        (word,) = engine.profile().words
    assert word.field == "total"
    assert [place.text.strip() for place in word.lines] == ["before = state.total"]


def test_without_speculation_events_run_one_after_the_other() -> None:
    running: list[int] = []

    @ss.operator(state=Sums, event={"x": int}, emits={}, interpreted=True, speculate=False)
    def alone(state, event, emit):
        running.append(event.x)
        state.total += event.x

    with ss.Engine(alone, threads=4) as engine:
        engine.process({"x": np.arange(500)})
        assert engine.stats.speculative_runs == 0
    assert running == list(range(500))
    with pytest.raises(ss.ConfigurationError, match="horizon= asks for speculation"):
        ss.Engine(alone, threads=4, horizon=3)


def test_each_worker_has_its_own_object() -> None:
    made: list[object] = []

    def make() -> list[int]:
        made.append(one := [0])
        return one

    mine = ss.per_worker(make)

    @ss.operator(state=Sums, event={"x": int}, emits={"y": int}, interpreted=True)
    def uses(state, event, emit):
        held = mine()
        held[0] = event.x  # nobody else writes to it meanwhile
        state.seen[event.x] = held[0]
        emit(held[0])

    table = {"x": np.arange(300)}
    with ss.Engine(uses, threads=4, horizon=16, chunk=1) as engine:
        assert engine.process(table)["y"].to_pylist() == list(range(300))
    assert 1 <= len(made) <= 4


def test_locked_execution_is_refused_with_a_way_out() -> None:
    @ss.operator(event={"x": int}, emits={"x": int}, interpreted=True)
    def passes(event, emit):
        emit(event.x)

    with pytest.raises(ss.ConfigurationError, match=r"compare compiled code.*horizon=0"):
        ss.Engine(passes, execution="locked")


def test_boosted_fields_are_refused_and_their_functions_are_the_way_out() -> None:
    class Boosted(ss.State):
        users = boosted_set(20)

    class Plain(ss.State):
        users = sorted_list(20)

    def first_visit(state, event, emit):
        if sorted_insert(state.users, event.x):
            emit(event.x)

    declared: dict[str, Any] = {"event": {"x": int}, "emits": {"x": int}}
    with pytest.raises(
        ss.DeclarationError, match=r"boosted fields \(users\).*sorted_insert\(state"
    ):
        ss.operator(state=Boosted, interpreted=True, **declared)(first_visit)
    plain = ss.operator(state=Plain, interpreted=True, **declared)(first_visit)
    with ss.Engine(plain, threads=2, horizon=4, chunk=1) as engine:
        assert engine.process({"x": [7, 5, 7, 6, 5]})["x"].to_pylist() == [7, 5, 6]


def test_a_refused_operator_names_this_way_out() -> None:
    def opens(event, emit):
        with open(str(event.x)) as file:
            emit(len(file.read()))

    with pytest.raises(ss.CompileError) as caught:
        ss.operator(event={"x": int}, emits={"x": int})(opens)
    assert any("interpreted=True" in note for note in caught.value.__notes__)


def test_what_does_not_fit_a_declaration_is_not_sent_that_way() -> None:
    def halves(state, event, emit):
        state.total = event.x / 2

    def misspelt(state, event, emit):
        state.totl = event.x

    for function, said in ((halves, "write int\\(x\\), or declare it float"), (misspelt, "'totl'")):
        with pytest.raises(ss.CompileError, match=said) as caught:
            ss.Engine(ss.operator(state=Sums, event={"x": int}, emits={})(function))
        assert not getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 2, "horizon": 4, "chunk": 1}])
def test_what_does_not_fit_its_field_raises_at_that_event(options: dict[str, Any]) -> None:
    @ss.operator(state=Sums, event={"x": int}, emits={"total": int}, interpreted=True)
    def powers(state, event, emit):
        state.total = 10**event.x
        emit(10**event.x % 7)

    with ss.Engine(powers, **options) as engine:
        with pytest.raises(OverflowError, match=r"state.total is declared int, .* gets 10{19}:"):
            engine.process({"x": [1, 18, 19, 2]})
        assert engine.state.total == 10**18
        assert engine.process({"x": [30 - 30]})["total"].to_pylist() == [1]


class Sized(ss.State):
    d = ss.dict(int, int, limit=50)
    s = ss.set(int, limit=50)
    q = ss.deque(int, limit=50)


@ss.operator(state=Sized, event={"how": int}, emits={"done": int}, interpreted=True)
def grows_in_the_last_round(state, event, emit):
    walked = (
        state.d, state.d.items(), state.d.values(), reversed(state.d), state.s, state.q,
    )[event.how]  # fmt: skip
    state.d[1], rounds = 1, 0
    state.s.add(1)
    state.q.append(1)
    for _ in walked:
        rounds += 1
        if event.how < 4:
            state.d[rounds + 1] = 1
        elif event.how == 4:
            state.s.add(2)
        else:
            state.q.append(2)
        if rounds > 1:
            break
    emit(rounds)


@pytest.mark.parametrize("how", range(6))
def test_a_container_that_grows_in_the_last_round_of_its_loop_raises(how: int) -> None:
    """As in Python, which looks once more behind the last one."""
    with (
        ss.Engine(grows_in_the_last_round) as engine,
        pytest.raises(RuntimeError, match=r"changed size during iteration|mutated during"),
    ):
        engine.process({"how": [how]})


class Pair(ss.Record):
    x: int


class Few(ss.State):
    pairs = ss.list(Pair, limit=3)
    numbers = ss.list(int, limit=3)


@ss.operator(state=Few, event={"x": int}, emits={"x": int}, interpreted=True)
def copies_and_overfills(state, event, emit):
    state.pairs[:] = [Pair(event.x), Pair(event.x + 1)]
    state.numbers[:] = [1, 2]
    state.pairs[1:2] = [state.pairs[0]]
    state.pairs[0].x = -1
    for container, four in ((state.pairs, [Pair(9)] * 4), (state.numbers, [9] * 4)):
        try:
            container[:] = four
        except OverflowError:
            emit(len(container))
    for pair in state.pairs:
        emit(pair.x)
    for number in state.numbers:
        emit(number)


def test_a_part_of_a_list_is_stored_whole_or_not_at_all_and_records_are_copied() -> None:
    expected = [2, 2, -1, 5, 1, 2]
    assert copies_and_overfills.run_sequential({"x": [5]}).output["x"].to_pylist() == expected
    settings: list[dict[str, Any]] = [{"threads": 1}, {"threads": 2, "horizon": 4, "chunk": 1}]
    for options in settings:
        with ss.Engine(copies_and_overfills, **options) as engine:
            assert engine.process({"x": [5] * 4})["x"].to_pylist() == expected * 4
