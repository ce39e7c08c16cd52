"""Interpreted vertices beside compiled ones: the answer of one phase after the other."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import os
import pickle
import random
import signal
import threading
import traceback
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from conftest import partial_of
from hypothesis import strategies as st
from support.pipelines.graphs import events_of, random_pipeline
from support.pipelines.phases import Phases, salts
from support.stress import pipelines as stress_pipelines

import specstream as ss

SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 3, "horizon": 6, "chunk": 2, "execution": "speculate"},
    {"threads": 2, "horizon": 8, "chunk": 1, "protocol": "eager"},
]
PATIENCE = 60  # seconds; only a test that fails waits so long


@hypothesis.settings(max_examples=20)
@hypothesis.given(st.randoms(use_true_random=False), st.integers(0, 1000), st.booleans())
def test_the_oracle_and_the_witness_agree(draw: random.Random, seed: int, timed: bool) -> None:
    p = random_pipeline(draw, most=10, raising=True, in_python=0.5)
    table, each = events_of(p, 12, seed)
    seen = Phases(p, salts(p))
    for source, values in each:
        seen.phase(source, values)
    expected = p.run_sequential(table, on_error="skip")
    told = stress_pipelines.Told(p)
    told.add(expected.output)
    stress_pipelines.same_rows(told.rows, seen)
    stress_pipelines.same_state(expected.state.to_dict(), seen)
    assert [row for row, _ in expected.raised] == seen.raised


@pytest.mark.slow
@pytest.mark.parametrize("seed", [59, 47])  # with timers: of phases by time, and of events
def test_engines_agree_with_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order and out of order, with a snapshot restored in between."""
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", "")  # what is met once need not be kept
    assert stress_pipelines.in_python(seed)
    stress_pipelines.attempt(seed, engines=6, most=5)


# ---- what the event of several inputs is ----


class Joined(ss.State):
    rows = ss.scalar(int)
    last = ss.dict(str, float)


TICKS: dict[str, Any] = {"name": str, "price": float, "size": ss.nullable(int)}
NEWS: dict[str, Any] = {"name": str, "good": bool}


@ss.operator(
    state=Joined,
    inputs={"tick": TICKS, "news": NEWS},
    emits={"what": str, "price": float, "size": ss.nullable(int), "of": str},
    interpreted=True,
)
def joins(state, event, emit):
    state.rows += 1
    tick, news = event.tick, event.news
    asked = f"{event.changed('tick'):d}{event.known('tick'):d}{event.changed('news'):d}"
    asked += f"{event.known('news'):d}{tick.is_null('size'):d}{news.good:d}"
    if event.changed("tick"):
        state.last[tick.name] = tick.price
    emit(asked, state.last.get(news.name, -1.0), tick.size, f"{tick.name}|{news.name}")


def two_streams(operator: ss.Operator) -> ss.Pipeline:
    p = ss.Pipeline("two")
    p.sink("out", p.add(operator, tick=p.source("ticks", TICKS), news=p.source("news", NEWS)))
    return p


def of_two(rows: list[tuple[str, dict[str, Any]]]) -> pa.Table:
    columns: dict[str, list[Any]] = {"stream": [source for source, _ in rows]}
    for source, of in (("ticks", TICKS), ("news", NEWS)):
        for name in of:
            columns[f"{source}.{name}"] = [
                values[name] if source == own else None for own, values in rows
            ]
    kinds = {"ticks.size": pa.int64(), "ticks.price": pa.float64(), "news.good": pa.bool_()}
    return pa.table(
        {name: pa.array(of, kinds.get(name, pa.string())) for name, of in columns.items()}
    )


ROWS: list[tuple[str, dict[str, Any]]] = [
    ("news", {"name": "", "good": True}),
    ("ticks", {"name": "a", "price": 1.5, "size": None}),
    ("news", {"name": "a", "good": False}),
    ("ticks", {"name": "b", "price": 2.5, "size": 7}),
    ("news", {"name": "b", "good": True}),
]


@pytest.mark.parametrize("options", SETTINGS)
def test_an_input_without_a_row_has_its_last_values(options: dict[str, Any]) -> None:
    p, table = two_streams(joins), of_two(ROWS)
    expected = p.run_sequential(table)
    assert expected.output.to_pylist() == [
        {"what": "001111", "price": -1.0, "size": None, "of": "|"},
        {"what": "110111", "price": -1.0, "size": None, "of": "a|"},
        {"what": "011110", "price": 1.5, "size": None, "of": "a|a"},
        {"what": "110100", "price": 1.5, "size": 7, "of": "b|a"},
        {"what": "011101", "price": 2.5, "size": 7, "of": "b|b"},
    ]
    with ss.Engine(p, **options) as engine:
        assert engine.process(table).equals(expected.output)
        assert engine.state.to_dict().keys() == expected.state.to_dict().keys()


def test_an_input_or_column_that_is_not_there_is_named() -> None:
    def asks(read: Callable[[Any], Any]) -> str:
        def reads(event, emit):
            read(event)

        inputs = {"tick": TICKS, "news": NEWS}
        operator = ss.operator(inputs=inputs, emits={"x": int}, interpreted=True)(reads)
        with (
            ss.Engine(two_streams(operator), threads=1) as engine,
            pytest.raises(AttributeError) as caught,
        ):
            engine.process(of_two(ROWS[:1]))
        return str(caught.value)

    assert asks(lambda event: event.trade) == (
        "the event has no input 'trade'; it has tick, news, timestamp, source, sequence"
    )
    assert asks(lambda event: event.tick.prize) == (
        "input 'tick' has no column 'prize'; it has name, price, size: did you mean 'price'?"
    )
    assert asks(lambda event: event.changed("ticks")) == (
        "the event has no input 'ticks'; it has tick, news: did you mean 'tick'?"
    )
    assert asks(lambda event: event.tick.is_null("sise")) == (
        "input 'tick' has no column 'sise'; it has name, price, size: did you mean 'size'?"
    )
    assert asks(lambda event: setattr(event, "tick", 1)) == (
        "event.tick cannot be assigned: what event has is only read; keep a value under a local "
        "name, or in the state"
    )
    assert asks(lambda event: setattr(event.tick, "price", 1.0)).startswith(
        "event.tick.price cannot be assigned: what event.tick has is only read"
    )
    assert asks(lambda event: delattr(event.tick, "price")).startswith(
        "event.tick.price cannot be deleted"
    )


def test_an_operator_with_inputs_takes_no_events_by_itself() -> None:
    with pytest.raises(ss.DeclarationError, match="takes no events by itself"):
        ss.Engine(joins)


# ---- a pipeline in which everything meets ----


class Sum(ss.State):
    total = ss.scalar(int)
    seen = ss.array(int, 8)


class Levels(ss.State):
    levels = ss.array(float, (4, 3))
    alarms = ss.timers(int)
    fired = ss.scalar(int)


python_runs: list[int] = []


@ss.operator(state=Sum, event={"x": int}, emits={"x": int, "total": int})
def adds(state, event, emit):
    state.total += event.x
    emit(event.x, state.total)
    if event.x % 5 == 1:
        emit(-event.x, state.total)


def rings(state, timer, emit):
    state.fired += 1
    if timer.key == 3 and state.fired % 2:
        raise KeyError("three")
    emit(timer.key, float(timer.at) + timer.random(1))


@ss.operator(
    state=Levels,
    event={"x": int, "total": int},
    emits={"x": int, "level": float},
    on_timer=rings,
    interpreted=True,
)
def levels(state, event, emit):
    python_runs.append(event.x)
    row = state.levels[event.x % 4]
    state.levels[event.x % 4] = np.append(row[1:], float(event.total))
    state.alarms.set(event.x % 6, event.timestamp + 3)
    if event.x == 17:
        raise ValueError("seventeen")
    for k in range(event.x % 3):
        emit(event.x + k, float(np.linalg.norm(state.levels[k])) + event.random(k))


@ss.operator(
    state=Sum,
    inputs={"row": {"x": int, "total": int}, "level": {"x": int, "level": float}},
    emits={"x": int, "level": float, "count": int},
)
def meets(state, event, emit):
    state.total += 1
    state.seen[event.level.x % 8] += 1
    if event.changed("level") and event.level.x == 24:
        raise IndexError("twenty-four")
    emit(event.row.x, event.level.level, state.total)


def mixed() -> ss.Pipeline:
    p = ss.Pipeline("mixed")
    rows = p.add(adds, p.source("in", {"x": int}))
    leveled = p.add(levels, rows)
    p.sink("out", p.add(meets, row=rows, level=leveled))
    p.sink("levels", leveled)
    return p


def events(count: int, seed: int, high: int = 40) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.choice([0, 1, 2], count))
    return pa.table({"t": times, "x": rng.integers(0, high, count)})


def same(found: Any, expected: Any) -> None:
    for name, table in expected.items():
        assert found[name].equals(table), name


@pytest.mark.parametrize("options", SETTINGS)
def test_failed_events_of_all_vertices_are_set_aside(options: dict[str, Any]) -> None:
    p, table = mixed(), events(150, 1)
    expected = p.run_sequential(table, order_by="t", seed=3, errors="side", end=True)
    assert expected.failed_events is not None
    vertices = set(expected.failed_events["vertex"].to_pylist())
    assert {"levels", "meets"} <= vertices
    with ss.Engine(p, seed=3, errors="side", **options) as engine:
        found = engine.process(table, order_by="t", end=True)
        failed = engine.failed_events()
        assert failed is not None
        assert failed.drop(["traceback"]).equals(expected.failed_events.drop(["traceback"]))
        state = engine.state.to_dict()
    same(found, expected.output)
    for name, value in expected.state.to_dict().items():
        assert str(state[name]) == str(value), name
    of_python = {"levels": "raise ValueError", "meets": "raise IndexError"}
    for row in failed.to_pylist():
        if row["timer"] is None:
            assert of_python[row["vertex"]] in row["traceback"]
        else:
            assert 'raise KeyError("three")' in row["traceback"]
        assert "specstream/interpreted" not in row["traceback"]


@pytest.mark.parametrize("options", SETTINGS)
def test_what_an_interpreted_vertex_raises_has_its_line_and_its_vertex(
    options: dict[str, Any],
) -> None:
    with ss.Engine(mixed(), **options) as engine:
        with pytest.raises(ValueError, match="seventeen") as caught:
            engine.process({"t": [1, 2, 3], "x": [2, 17, 4]}, order_by="t")
        lines = traceback.extract_tb(caught.value.__traceback__)
        assert any('raise ValueError("seventeen")' in (one.line or "") for one in lines)
        notes = "\n".join(caught.value.__notes__)
        assert "raised by vertex 'levels' of pipeline 'mixed', path (0)" in notes
        assert "x=17" in notes
        assert partial_of(caught.value).consumed == 1
        assert engine.state.adds.total == 2  # of the event that failed nothing stays
        assert engine.process({"t": [4], "x": [5]}, order_by="t")["out"].num_rows > 0


@pytest.mark.parametrize("options", [SETTINGS[0], SETTINGS[1] | {"threads": 1, "horizon": 1}])
def test_a_compiled_vertex_that_raises_does_not_run_the_others_again(
    options: dict[str, Any],
) -> None:
    with ss.Engine(mixed(), **options) as engine:
        engine.process({"t": [0], "x": [2]}, order_by="t")
        python_runs.clear()
        with pytest.raises(IndexError, match="twenty-four") as caught:
            engine.process({"t": [1], "x": [23]}, order_by="t")
        ran = list(python_runs)
    assert any("vertex 'meets'" in note for note in caught.value.__notes__)
    # Speculatively and for the head, and not to find out what has been raised.
    assert ran.count(23) == (1 if options["horizon"] == 0 else 2)


def test_early_results_and_what_is_raised_ahead_of_its_turn() -> None:
    def submitted(**options: Any) -> tuple[Any, Any, Any]:
        table = events(60, 5)
        rows: list[Any] = []
        with ss.Engine(mixed(), sources=["a", "b"], errors="side", seed=3, **options) as engine:
            for at, of in itertools.product(range(0, 60, 20), "ba"):
                piece = table.slice(at, 20).take(pa.array(range("ab".index(of), 20, 2)))
                engine.submit(piece, order_by="t", source=of)
                if options.get("early"):
                    engine.poll_early(timeout=None)
            for of in "ab":
                engine.advance(of)
            rows.append(engine.poll(timeout=None))
            return rows, engine.failed_events(), engine.state.to_dict()

    expected, failed, state = submitted(threads=1, horizon=0)
    assert failed is not None
    for options in ({"early": True, "threads": 2}, {"threads": 3, "horizon": 6}):
        found, of_early, states = submitted(**options)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        assert of_early.drop(["traceback"]).equals(failed.drop(["traceback"]))
        assert {name: str(of) for name, of in states.items()} == {
            name: str(of) for name, of in state.items()
        }


def test_a_pipeline_that_was_pickled_gives_the_same() -> None:
    table, p = events(40, 2, high=16), mixed()
    again = pickle.loads(pickle.dumps(p))
    assert again.calls_python
    one, other = (of.run_sequential(table, order_by="t", errors="side") for of in (p, again))
    same(one.output, other.output)
    with ss.Engine(again, threads=2, errors="side") as engine:
        same(engine.process(table, order_by="t"), one.output)


def test_a_vertex_that_does_not_speculate_is_for_all_of_them() -> None:
    @ss.operator(event={"x": int}, emits={"x": int}, interpreted=True, speculate=False)
    def alone(event, emit):
        emit(event.x)

    p = ss.Pipeline("one")
    p.sink("out", p.add(meets_alone, p.add(alone, p.source("in", {"x": int}))))
    with ss.Engine(p, threads=3) as engine:
        engine.process({"x": np.arange(200)})
        assert engine.stats.speculative_runs == 0
    with pytest.raises(ss.ConfigurationError, match="horizon= asks for speculation"):
        ss.Engine(p, horizon=4)


@ss.operator(state=Sum, event={"x": int}, emits={"x": int})
def meets_alone(state, event, emit):
    state.total += event.x
    emit(state.total)


def test_locked_execution_of_a_pipeline_that_calls_python_is_refused() -> None:
    with pytest.raises(ss.ConfigurationError, match="runs functions as Python"):
        ss.Engine(two_streams(joins), execution="locked")


# ---- runs that must not go on ----

read, committed = threading.Event(), threading.Event()
calls: list[int] = []


@pytest.fixture
def anew() -> None:
    read.clear()
    committed.clear()
    calls.clear()


class Pair(ss.State):
    left = ss.scalar(int)
    right = ss.scalar(int)


@ss.operator(state=Pair, event={"x": int}, emits={"x": int}, interpreted=True)
def sees_halves(state, event, emit):
    if event.x == 0:
        assert read.wait(PATIENCE)
        state.left = 1
        state.right = 1
    else:
        left = state.left
        read.set()
        assert committed.wait(PATIENCE)
        while left != state.right:
            pass
    emit(event.x)


@ss.operator(state=Pair, event={"x": int}, emits={}, interpreted=True)
def interrupts(state, event, emit):
    state.left += 1
    if event.x == 3 and 3 not in calls:
        if not calls:
            calls.append(0)
            os.kill(os.getpid(), signal.SIGINT)
        while 3 not in calls:  # also when an attempt is repeated before the signal is handled
            pass


@ss.operator(state=Pair, event={"x": int}, emits={}, interpreted=True)
def never_ends(state, event, emit):
    state.left += 1
    if event.x == 3:
        if state.left == 4:  # it has seen the ones before it, so that they are committed
            read.set()
        while True:
            pass


def behind_a_compiled_one(operator: ss.Operator) -> ss.Pipeline:
    p = ss.Pipeline("behind")
    passed = p.add(passes, p.source("in", {"x": int}))
    rows = p.add(operator, passed, name="last")
    p.sink("out", rows if len(operator.emits) else passed)
    return p


@ss.operator(event={"x": int}, emits={"x": int})
def passes(event, emit):
    emit(event.x)


def told(notification: ss.Notification) -> None:
    committed.set()


MEETING: dict[str, Any] = {"threads": 2, "horizon": 2, "chunk": 1, "on_post_commit": told}


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_run_on_values_that_never_existed_together_ends(protocol: str) -> None:
    with ss.Engine(behind_a_compiled_one(sees_halves), protocol=protocol, **MEETING) as engine:
        assert engine.process({"x": [0, 1]})["x"].to_pylist() == [0, 1]
        assert sum(engine.stats.aborts.values()) >= 1


@ss.operator(state=Pair, event={"x": int}, emits={"x": int}, interpreted=True)
def counts(state, event, emit):
    if event.x == 0:  # which commits when the other one has read what it changes
        assert read.wait(PATIENCE)
    before = state.left
    if event.x == 1:
        read.set()
        assert committed.wait(PATIENCE)
    state.left = before + 1
    emit(state.left)


@pytest.mark.usefixtures("anew")
def test_conflicts_are_told_with_vertex_field_and_line() -> None:
    with ss.Engine(behind_a_compiled_one(counts), profile=True, **MEETING) as engine:
        assert engine.process({"x": [0, 1]})["x"].to_pylist() == [1, 2]
        (word,) = engine.profile().words
    assert word.field == "last.left"
    assert [place.text.strip() for place in word.lines] == ["before = state.left"]


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("horizon", [0, 4])
def test_ctrl_c_ends_an_endless_vertex_and_the_engine_goes_on(horizon: int) -> None:
    p = behind_a_compiled_one(interrupts)
    with ss.Engine(p, threads=2, horizon=horizon, chunk=1) as engine:
        with pytest.raises(KeyboardInterrupt) as caught:
            engine.process({"x": np.arange(6)})
        calls.append(3)
        done = vars(caught.value)["specstream_partial"].consumed
        assert engine.state.last.left == done <= 3
        engine.process({"x": np.arange(done, 6)})
        assert engine.state.last.left == 6


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("horizon", [0, 4])
def test_an_endless_vertex_is_ended_by_close_and_leaves_no_trace(horizon: int) -> None:
    engine = ss.Engine(behind_a_compiled_one(never_ends), threads=2, horizon=horizon, chunk=1)

    def close() -> None:
        read.wait(PATIENCE)
        engine.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(ss.EngineClosedError):
        engine.process({"x": np.arange(6)})
    closer.join()
    assert engine.state.last.left == 3
