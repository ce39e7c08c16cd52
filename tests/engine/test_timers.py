"""Timers: engine, oracle and a model in plain Python agree, however the input comes.

One file, as its parts share the operators and the model.
"""

from __future__ import annotations

import pickle
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import PATHS, partial_of
from support.engine.timed import Model, cuts, stream

import specstream as ss
from specstream.structures import increment


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
# The head runs ahead of the timers before it, and nothing else of anything.
# The shortest ring in which timers, the head and one more are told apart.
ENGINES["eager, one ahead"] = {"threads": 2, "horizon": 1, "chunk": 8, "protocol": "eager"}
ENGINES["eager, the head alone"] = {
    "threads": 3,
    "horizon": 0,
    "protocol": "eager",
    "execution": "speculate",
}


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
    chosen = output.select([*keys, "user", "a", "b", "c", "d"])
    return [tuple(row.values()) for row in chosen.to_pylist()]


def process_all(
    engine: ss.Engine, table: pa.Table, end: bool
) -> tuple[list[pa.Table], list[tuple[str, Any]]]:
    """Goes on behind what raises."""
    outputs: list[pa.Table] = []
    raised: list[tuple[str, Any]] = []
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
    for seed in range(2):
        table = stream(10 + seed, 200)
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
        assert rows(pa.concat_tables(outputs)) == model.rows, f"seed {seed}"
        assert raised == model.raised


def poll_all(engine: ss.Engine, raised: list[tuple[str, Any]]) -> list[pa.Table]:
    """All that is settled, behind what raises."""
    outputs = []
    while True:
        try:
            outputs.append(engine.poll(timeout=None))
            return outputs
        except Exception as error:
            outputs.append(partial_of(error).output)
            timer = vars(error).get("specstream_timer")
            raised.append((type(error).__name__, None if timer is None else timer[0]))


def model_by_source(table: pa.Table) -> Model:
    """Each source has sequence numbers of its own."""
    model = Model(act, fires, open={}, total=0, fired=[0] * 4)
    next_of = [0, 0]
    for row in table.to_pylist():
        source = row.pop("src")
        model.event(row.pop("t"), source, next_of[source], **row)
        next_of[source] += 1
    return model


OPEN = [name for name in ENGINES if ENGINES[name].get("execution") != "speculate"]


@pytest.mark.parametrize("name", OPEN)
def test_events_out_of_order(name: str) -> None:
    for seed in range(2):
        table = stream(20 + seed, 200)
        rng = np.random.default_rng(seed)
        model = model_by_source(table)
        raised: list[tuple[str, Any]] = []
        outputs: list[pa.Table] = []
        of_source = [table.filter(pa.array(table["src"].to_numpy() == one)) for one in (0, 1)]
        # Each source's in their order; the sources mixed.
        waiting = [cuts(rng, len(of_source[one]), 8) for one in (0, 1)]
        last = int(table["t"][-1].as_py())
        with ss.Engine(operator, keys=True, sources=[0, 1], **ENGINES[name]) as engine:
            for source in rng.permutation([0] * 8 + [1] * 8).tolist():
                begin, end = waiting[source].pop(0)
                some = of_source[source].slice(begin, end - begin)
                engine.submit(some, order_by="t", source=source)
                rest = of_source[source].slice(end)
                # A frontier at most at what comes next, which says nothing that an event would not.
                reach = int(rest["t"][0].as_py()) if len(rest) else last
                if rng.random() < 0.7:
                    engine.advance(source, reach - int(rng.integers(0, 4)))
                if rng.random() < 0.5:
                    outputs += poll_all(engine, raised)
            for source in (0, 1):
                engine.advance(source, last + 7)
            model.time(last + 7)
            # Whether somebody waits for what is due then, or the end follows at once.
            if seed == 0:
                outputs += poll_all(engine, raised)
                assert held(engine.state) == held_by(model)
            for source in (0, 1):
                engine.advance(source)
            model.end()
            outputs += poll_all(engine, raised)
            assert held(engine.state) == held_by(model)
            assert engine.stats.timers == model.fired
        assert rows(pa.concat_tables(outputs)) == model.rows, f"seed {seed}"
        assert raised == model.raised


class Chain(ss.State):
    timers = ss.timers(str)


def begins(state, event, emit):  # type: ignore[no-untyped-def]
    state.timers.set("a", event.timestamp + 5)


def goes_on(state, timer, emit):  # type: ignore[no-untyped-def]
    emit(timer.key, timer.at)
    if timer.key == "a":
        state.timers.set("b", timer.at + 2)
    elif timer.key == "b":
        state.timers.set("c", 60)
    else:
        state.timers.set("d", 70)


chain = ss.operator(state=Chain, event={"x": int}, emits={"key": str, "at": int}, on_timer=goes_on)(
    begins
)


@pytest.mark.parametrize("between", ["nothing", "poll", "snapshot", "snapshot at the end"])
def test_what_is_due_at_the_frontier_is_so_at_the_end(between: str) -> None:
    """However far the workers are when the next call comes."""
    for _ in range(20):
        found = []
        snapshot = None
        with ss.Engine(chain, sources=["A"], threads=1, horizon=0) as engine:
            engine.submit_event(0, "A", x=1)
            engine.advance("A", 50)
            if between == "poll":
                found += engine.poll_rows(timeout=None)
            if between == "snapshot at the end":
                engine.advance("A")
            if between.startswith("snapshot"):
                snapshot = engine.snapshot()
            else:
                engine.advance("A")
                found += engine.poll_rows(timeout=None)
                assert dict(engine.state.timers) == {"d": 70}
        if snapshot is not None:
            with ss.Engine(chain, sources=["A"], threads=1, horizon=0, restore=snapshot) as engine:
                if between == "snapshot":
                    engine.advance("A")
                found += engine.poll_rows(timeout=None)
                assert dict(engine.state.timers) == {"d": 70}
        assert found == [("a", 5), ("b", 7), ("c", 60)]


@pytest.mark.parametrize("way", ["nothing", "snapshot", "rollback", "restore", "process"])
def test_an_end_is_once_until_a_source_has_joined(way: str) -> None:
    """Whatever is called in between, and whether it has the open job begin again."""
    nothing: dict[str, list[int]] = {"t": [], "x": []}

    def between(engine: ss.Engine) -> ss.Engine:
        if way == "snapshot":
            engine.snapshot()
        if way == "rollback":
            engine.rollback(engine.savepoint())
        if way == "process":
            assert len(engine.process(nothing, order_by="t")) == 0
        if way != "restore":
            return engine
        snapshot = engine.snapshot()
        engine.close()
        return ss.Engine(chain, sources=["A"], threads=1, horizon=0, restore=snapshot)

    engine = ss.Engine(chain, sources=["A"], threads=1, horizon=0)
    engine.submit_event(0, "A", x=1)
    engine.advance("A")
    assert engine.poll_rows(timeout=None) == [("a", 5)]
    for _ in range(2):
        engine = between(engine)
        # Of sources that have ended, or that have sent nothing.
        engine.advance("A")
        engine.submit(nothing, order_by="t", source="B")
        assert engine.poll_rows(timeout=None) == []
        engine.advance("none")
        assert engine.poll_rows(timeout=None) == []
        assert dict(engine.state.timers) == {"b": 7}
    # One joins, and the input has another end.
    engine.submit_event(50, "B", x=0)
    assert engine.poll_rows(timeout=None) == []
    engine = between(engine) if way != "process" else engine  # which is refused while events wait
    engine.advance("B", 55)
    assert engine.poll_rows(timeout=None) == [("b", 7), ("a", 55)]
    assert dict(engine.state.timers) == {"c": 60, "b": 57}
    engine = between(engine)
    engine.advance("B")
    assert engine.poll_rows(timeout=None) == [("b", 57)]
    assert dict(engine.state.timers) == {"c": 60}
    engine = between(engine)
    engine.advance("B")
    assert engine.poll_rows(timeout=None) == []
    assert len(engine.process(nothing, order_by="t", end=True)) == 1  # which says so itself
    engine.close()


def sets_three(state, event, emit):  # type: ignore[no-untyped-def]
    for key in ("x", "bad", "y"):
        state.timers.set(key, 5)


def one_is_bad(state, timer, emit):  # type: ignore[no-untyped-def]
    emit(timer.key, timer.at)
    if timer.key == "bad":
        raise KeyError(timer.sequence)
    if timer.key == "x":
        state.timers.set("later", 6)


three = ss.operator(
    state=Chain, event={"x": int}, emits={"key": str, "at": int}, on_timer=one_is_bad
)(sets_three)


@pytest.mark.parametrize("to", [5, None])
@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_one_that_raised_unheard_is_kept(protocol: str, to: int | None) -> None:
    """Whoever goes on from a snapshot or a savepoint hears of it, and all else is as without."""

    def told(engine: ss.Engine) -> tuple[Any, ...]:
        raised: list[tuple[str, Any]] = []
        outputs = pa.concat_tables(poll_all(engine, raised))
        # As a checkpoint has it, which looks without asking the job.
        assert not engine.durable.pending.due
        rows = [tuple(row.values()) for row in outputs.to_pylist()]
        return rows, raised, list(engine.state.timers.items()), engine.snapshot()

    options: dict[str, Any] = {"sources": ["A"], "threads": 1, "keys": True, "protocol": protocol}
    for fired in (0, 1, 2, 2):
        with ss.Engine(three, **options) as engine:
            engine.submit_event(0, "A", x=1)
            engine.advance("A", to)
            while engine.stats.timers < fired:
                pass
            snapshot = engine.snapshot()
            savepoint = engine.savepoint()
            expected = told(engine)
            engine.rollback(savepoint)
            assert told(engine) == expected
        assert expected[1] == [("KeyError", "bad")]
        assert [row[:2] for row in expected[0]] == [("x", 5), ("y", 5)]
        assert expected[2] == [("later", 6)]
        with ss.Engine(three, restore=snapshot, **options) as engine:
            assert told(engine) == expected
        with ss.Engine(three, restore=snapshot, **options) as engine:
            if fired == 2:
                assert list(engine.state.timers) == ["bad", "y", "later"]
                with pytest.raises(ss.InputError, match=r"timers are due.*poll\(\) first"):
                    engine.process({"x": [1], "t": [9]}, order_by="t")
            with pytest.raises(KeyError, match="1"):  # so many had fired before it
                engine.poll(timeout=None)


def test_snapshots_hold_the_timers_and_the_clock() -> None:
    """Cut at random, each part by an engine of its own; and snapshots are the same, whoever made
    them."""
    table = stream(30, 150)
    model = model_of(table)
    model.end()
    found: list[bytes] = []
    for number, options in enumerate(ENGINES.values()):
        rng = np.random.default_rng(number)
        outputs: list[pa.Table] = []
        snapshot: bytes | None = None
        for first, last in [*cuts(rng, len(table), 4), (len(table), len(table))]:
            with ss.Engine(operator, keys=True, restore=snapshot, **options) as engine:
                some = table.slice(first, last - first)
                outputs += process_all(engine, some, first == len(table))[0]
                kept = engine.savepoint()
                before = engine.snapshot()
                process_all(engine, stream(31, 20), True)
                engine.rollback(kept)
                snapshot = engine.snapshot()
                assert snapshot == before
        assert rows(pa.concat_tables(outputs)) == model.rows
        assert snapshot is not None
        found.append(snapshot)
    assert len(set(found)) == 1


class Many(ss.State):
    timers = ss.timers(int)


def sets_by_key(state, event, emit):  # type: ignore[no-untyped-def]
    state.timers.set(event.x, event.timestamp + 5)


def emits_many(state, timer, emit):  # type: ignore[no-untyped-def]
    for one in range(timer.key):
        emit(one)
    if timer.key % 2:
        raise KeyError(timer.key)


many = ss.operator(
    state=Many, event={"x": int}, emits={"n": int}, name="many", on_timer=emits_many
)(sets_by_key)


@pytest.mark.parametrize("name", ENGINES)
def test_one_that_emits_more_than_there_is_room_for(name: str) -> None:
    """The rows of one firing, among which the buffer grows several times, are all its own."""
    events = pa.table({"x": [4000, 3001, 70, 0, 9000], "t": [0, 1, 2, 30, 31]})
    found: list[tuple[Any, ...]] = []
    raised = []
    with ss.Engine(many, keys=True, **ENGINES[name]) as engine:
        while True:
            try:
                output = engine.process(events, order_by="t", end=True)
            except KeyError as error:
                output = partial_of(error).output
                events = events.slice(partial_of(error).consumed)
                raised.append(vars(error)["specstream_timer"])
                found += [tuple(row.values()) for row in output.to_pylist()]
                continue
            found += [tuple(row.values()) for row in output.to_pylist()]
            break
    # Fires, how many rows; of the one between them only that it was the second.
    expected = [(5, 0, 4000), (7, 2, 70), (36, 4, 9000)]
    assert raised == [(3001, 6)]
    assert found == [
        (n, time, None, number) for time, number, count in expected for n in range(count)
    ]


class Counted(ss.State):
    timers = ss.timers(int)
    n = ss.scalar(int)


def counts(state, event, emit):  # type: ignore[no-untyped-def]
    emit(increment(state, "n"))
    state.timers.set(event.x, event.timestamp + 1)


def changes_it(state, timer, emit):  # type: ignore[no-untyped-def]
    state.n = state.n * 3 + timer.key
    emit(-state.n)


counted = ss.operator(
    state=Counted, event={"x": int}, emits={"n": int}, name="counted", on_timer=changes_it
)(counts)


@pytest.mark.parametrize("name", ENGINES)
def test_one_that_changes_a_counter_whose_value_is_foretold(name: str) -> None:
    """Before an event that has been foretold another one; which then has to come to an end."""
    events = pa.table({"x": [at % 7 for at in range(300)], "t": range(300)})
    expected = counted.run_sequential(events, order_by="t", end=True)
    with ss.Engine(counted, **ENGINES[name]) as engine:
        assert engine.process(events, order_by="t", end=True).equals(expected.output)
        assert engine.state.n == expected.state.n
    if name in OPEN:
        with ss.Engine(counted, sources=["A"], **ENGINES[name]) as engine:
            engine.submit(events, order_by="t", source="A")
            engine.advance("A")
            assert engine.poll(timeout=None).equals(expected.output)


# ---- what is refused, and what errors say ----


class Plain(ss.State):
    total = ss.scalar(int)


class Timed(ss.State):
    timers = ss.timers(int)


def nothing(state, event, emit):  # type: ignore[no-untyped-def]
    pass


def quiet(state, timer, emit):  # type: ignore[no-untyped-def]
    pass


def test_timers_and_on_timer_go_together() -> None:
    with pytest.raises(ss.DeclarationError, match="has on_timer=, and its state 'Plain'"):
        ss.operator(state=Plain, event={"x": int}, on_timer=quiet)(nothing)
    with pytest.raises(ss.DeclarationError, match="has no on_timer=, and its state has"):
        ss.operator(state=Timed, event={"x": int})(nothing)
    with pytest.raises(ss.DeclarationError, match=r"on_timer takes \(state, event\); expected"):
        ss.operator(state=Timed, event={"x": int}, on_timer=lambda state, event: None)(nothing)

    class Two(ss.State):
        first = ss.timers(int)
        second = ss.timers(str)

    with pytest.raises(ss.DeclarationError, match=r"'second' is a second ss.timers.*'first'"):
        ss.operator(state=Two, event={"x": int}, on_timer=quiet)(nothing)


def sets(state, event, emit):  # type: ignore[no-untyped-def]
    state.timers.set(event.x, event.timestamp + 5)


def divides(state, timer, emit):  # type: ignore[no-untyped-def]
    emit(1 // timer.key)


timed = ss.operator(state=Timed, event={"x": int}, emits={"y": int}, on_timer=divides)(sets)


def test_times_are_needed() -> None:
    with ss.Engine(timed) as engine, pytest.raises(ss.InputError, match=r"has timers.*order_by="):
        engine.process({"x": [1]})
    with pytest.raises(ss.InputError, match=r"has timers.*order_by="):
        timed.run_sequential({"x": [1]})
    with ss.Engine(timed) as engine, pytest.raises(ss.InputError, match="cast it to an integer"):
        engine.process({"x": [1], "t": pa.array([0.5])}, order_by="t")
    with ss.Engine(timed) as engine, pytest.raises(ss.InputError, match="expected an integer, a t"):
        engine.process({"x": [1], "t": [0.5]}, order_by="t")


def test_what_cannot_be_together() -> None:
    with pytest.raises(ss.ConfigurationError, match="goes by the time of events"):
        ss.Engine(timed, execution="locked")
    with pytest.raises(ss.ConfigurationError, match="has timers, and hooks get events"):
        ss.Engine(timed, on_commit=print)


@pytest.mark.parametrize("options", [{"horizon": 0}, {"horizon": 4, "chunk": 1}])
def test_an_error_names_the_timer(options: dict[str, Any]) -> None:
    events = {"x": [3, 0, 4, 5], "t": [1, 2, 9, 20]}
    with ss.Engine(timed, threads=2, **options) as engine:
        with pytest.raises(ZeroDivisionError) as caught:
            engine.process(events, order_by="t")
        partial = partial_of(caught.value)
        assert partial.output["y"].to_pylist() == [0]
        assert partial.consumed == 2
        assert vars(caught.value)["specstream_timer"] == (0, 7)
        assert "operator 'sets' when the timer 0 fired, which was set for 7" in "".join(
            caught.value.__notes__
        )
        # The user's own line.
        assert any(frame.name == "divides" for frame in caught.traceback)
        rest = engine.process({"x": [4, 5], "t": [9, 20]}, order_by="t", end=True)
        assert rest["y"].to_pylist() == [0, 0]
        assert engine.state.timers == {}
    with pytest.raises(ZeroDivisionError, match="division") as caught:
        timed.run_sequential(events, order_by="t")
    assert vars(caught.value)["specstream_timer"] == (0, 7)


class Named(ss.State):
    timers = ss.timers(str)


MISTAKES = [
    ('state.timers["a"] = 5', "write state.timers.set(key, at)"),
    ('del state.timers["a"]', "write state.timers.cancel(key)"),
    ('emit(state.timers["a"])', "write state.timers.get(key)"),
    ("state.timers = {}", "clear() takes all away, and state.timers.set(key, at) sets one"),
    ('state.timers.add("a")', "a field of timers has no method 'add'; it has cancel, clear, get"),
    ('state.timers.sets("a", 5)', "did you mean 'set'"),
    ('state.timers.set("a")', "set takes 2 value(s) here; write set(key, at)"),
    ("state.timers.cancel()", "write cancel(key)"),
    ('state.timers.set("a", "b")', "in the unit of event.timestamp"),
    ('state.timers.set("a", 0.5)', "write int(x)"),
    ("state.timers.set(event.x, 5)", "declared str and gets int64"),
    ("state.timers.cancel(event.x)", "declared str and gets int64"),
    ("emit(event.x in state.timers)", "declared str and gets int64"),
    ("emit(timer.when)", "the timer has no 'when'; it has key, at, timestamp, sequence"),
    ("emit(timer.keys)", "did you mean 'key'"),
    ("emit(timer.choose(3))", "the timer has no"),
    ("emit(int(timer.key))", "keep in the state what a timer needs of it"),
]


def mistaken(line: str, fires: str, folder: Path) -> ss.Operator:
    """An operator of two lines."""
    path = folder / "mistaken.py"
    path.write_text(
        f"def event(state, event, emit):\n    {line}\ndef timer(state, timer, emit):\n    {fires}\n"
    )
    functions = runpy.run_path(str(path))
    return ss.operator(
        state=Named, event={"x": int}, emits={"y": int}, on_timer=functions["timer"]
    )(functions["event"])


@pytest.mark.parametrize(("line", "said"), MISTAKES)
def test_a_mistake_is_told_in_the_words_of_timers(line: str, said: str, tmp_path: Path) -> None:
    lines = ("pass", line) if "timer." in line else (line, "pass")
    with pytest.raises(ss.CompileError, match=re.escape(said)) as caught:
        ss.Engine(mistaken(*lines, tmp_path)).close()
    assert caught.value.line == 2 * lines.index(line) + 2
    assert "state_" not in str(caught.value)
    assert "_item" not in str(caught.value)


def test_timers_need_times_that_are_integers() -> None:
    events = {"x": [1], "t": pa.array([0.5])}
    with ss.Engine(timed) as engine, pytest.raises(ss.InputError, match="or has timers or entries"):
        engine.process(events, order_by="t")


def test_the_oracle_says_what_a_timer_has(tmp_path: Path) -> None:
    operator = mistaken('state.timers.set("a", event.timestamp)', "emit(timer.when)", tmp_path)
    with pytest.raises(AttributeError, match=r"the timer has no 'when'; it has key, at, timestamp"):
        operator.run_sequential({"x": [1], "t": [1]}, order_by="t", end=True)


def test_a_sequential_run_blames_no_event_for_a_timer() -> None:
    """Neither the one before which it fired, nor one behind the last."""

    def divides_too(state, event, emit):  # type: ignore[no-untyped-def]
        emit(1 // (event.x - 7))
        state.timers.set(event.x, event.timestamp + 5)

    both = ss.operator(state=Timed, event={"x": int}, emits={"y": int}, on_timer=divides)
    events = {"x": [0, 7, 4, 0], "t": [1, 2, 9, 20]}
    run = both(divides_too).run_sequential(events, order_by="t", on_error="skip", end=True)
    told = [(row, vars(error).get("specstream_timer")) for row, error in run.raised]
    assert told == [(1, None), (None, (0, 6)), (None, (0, 25))]
    assert run.output["y"].to_pylist() == [-1, -1, 0, -1]
    assert run.state.timers == {}


def test_columns_of_time_keep_their_type() -> None:
    """The time of a firing comes out as that of an event does."""
    times = pa.array([1, 2, 9, 20], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    table = pa.table({"x": [3, 1, 4, 5], "t": times})
    with ss.Engine(timed, keys=True) as engine:
        output = engine.process(table, order_by="t", end=True)
    assert output["timestamp"].type == pa.timestamp("ms", "UTC")
    assert output["timestamp"].cast(pa.int64()).to_pylist() == [6, 7, 14, 25]
    assert output["source"].to_pylist() == [None] * 4
    assert output["sequence"].to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("unit", [None, "ms"])
@pytest.mark.parametrize("restores", [False, True])
def test_a_frontier_fires_timers_of_a_batch_whether_or_not_anything_was_submitted(
    unit: str | None, restores: bool
) -> None:
    def times(*given: int) -> pa.Array:
        found = pa.array(given, pa.int64())
        return found if unit is None else found.cast(pa.timestamp(unit))

    def fired(submits: bool) -> list[pa.Table]:
        engine = ss.Engine(timed, sources=["a"], keys=True)
        if submits:
            first = pa.table({"x": [1], "t": times(1)})
            engine.submit(first, order_by="t", source="a")
            engine.advance("a", times(7)[0].as_py())
            engine.poll(timeout=None)
        engine.process(pa.table({"x": [2, 3], "t": times(10, 11)}), order_by="t")
        rows = []
        for to in (12, 15, 16, 100):
            if restores:
                snapshot = engine.snapshot()
                engine.close()
                engine = ss.Engine(timed, sources=["a"], keys=True, restore=snapshot)
            engine.advance("a", times(to)[0].as_py())
            rows.append(engine.poll(timeout=None).select(["y", "timestamp"]))
        engine.close()
        return rows

    found = fired(False)
    assert found == fired(True)
    assert [one["timestamp"].cast(pa.int64()).to_pylist() for one in found] == [[], [15], [16], []]


def test_an_operator_with_timers_travels() -> None:
    copied = pickle.loads(pickle.dumps(operator))
    table = stream(40, 100)
    runs = [
        one.run_sequential(table, order_by="t", source="src", on_error="skip", end=True)
        for one in (operator, copied)
    ]
    assert runs[0].output.equals(runs[1].output)
    assert held(runs[0].state) == held(runs[1].state)
    assert copied.program.fingerprint == operator.program.fingerprint
    timers = [one.program.on_timer for one in (operator, copied)]
    assert len({one.fingerprint for one in timers if one is not None}) == 1


def test_it_is_explained() -> None:
    told = timed.explain()
    assert [one.function for one in told.functions] == ["sets", "divides"]
    texts = [(one.action, one.text, one.function) for one in told.accesses]
    assert ("written", "timers[event.x]", "sets") in texts
    told = operator.explain()
    # A timer is never run ahead of its turn.
    of_timers = {at for at, one in enumerate(told.accesses) if one.function == "fires"}
    assert of_timers & {one.earlier for one in told.conflicts}
    assert not of_timers & {one.later for one in told.conflicts}


class Two(ss.State):
    timers = ss.timers(int, limit=2)


def tries(state, event, emit):  # type: ignore[no-untyped-def]
    try:
        state.timers.set(event.x, event.timestamp + event.x)
        emit(len(state.timers), 0)
    except OverflowError:
        emit(len(state.timers), 1)


def tries_again(state, timer, emit):  # type: ignore[no-untyped-def]
    try:
        state.timers.set(timer.key, timer.at)
    except ValueError:
        emit(timer.key, 2)
    state.timers.set(timer.key, timer.at + 100)


@pytest.mark.parametrize("options", [{"horizon": 0}, {"horizon": 4, "chunk": 2}])
def test_what_it_raises_can_be_caught(options: dict[str, Any]) -> None:
    few = ss.operator(
        state=Two, event={"x": int}, emits={"a": int, "b": int}, on_timer=tries_again
    )(tries)
    events = {"x": [9, 2, 3, 2, 4, 5, 1, 6], "t": [0, 1, 2, 3, 4, 7, 8, 30]}
    expected = few.run_sequential(events, order_by="t").output.to_pylist()
    assert {row["b"] for row in expected} == {0, 1, 2}
    for protocol in ("value", "eager"):
        with ss.Engine(few, threads=2, protocol=protocol, **options) as engine:
            assert engine.process(events, order_by="t").to_pylist() == expected
