"""Phases of all events of one timestamp: engine, oracle and witness agree, however events come."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import invoke
from support.pipelines.graphs import events_of, random_pipeline
from support.pipelines.phases import RAISED, Phases, salts
from support.pipelines.vertices import (
    SOURCE,
    TIMED_BY_TIME,
    VERTICES,
    Tally,
    always,
    both,
    failing,
    keyed,
    several,
)
from test_phases import SETTINGS, assert_same_state, rows, tables

import specstream as ss

Each = list[tuple[int, str, dict[str, Any]]]
PLAIN: dict[str, Any] = {"threads": 1, "horizon": 0}
SUBMITTED = [*SETTINGS, {"threads": 3, "horizon": 16, "chunk": 4}]


def timed(p: ss.Pipeline, count: int, seed: int, times: int) -> tuple[pa.Table, Each]:
    """Events of few distinct times: as a table, and one by one in the order of their keys."""
    draw = random.Random(seed)
    table, each = events_of(p, count, seed)
    of = [3 * draw.randrange(times) for _ in each]
    in_order = sorted(zip(of, each, strict=True), key=lambda one: (one[0], one[1][0]))
    return table.append_column("time", pa.array(of, pa.int64())), [(t, *e) for t, e in in_order]


def witnessed(p: ss.Pipeline, each: Each) -> Phases:
    seen = Phases(p, salts(p))
    for time, group in itertools.groupby(each, key=lambda one: one[0]):
        seen.phase_of_time(time, [(source, values) for _, source, values in group])
    seen.end()
    return seen


def joined(p: ss.Pipeline, parts: list[Any]) -> dict[str, pa.Table]:
    return {
        name: pa.concat_tables([tables(p, part)[name] for part in parts]) for name in p._graph.sinks
    }


def polled(engine: ss.Engine, parts: list[Any]) -> int:
    """Takes all rows below the frontier; how many phases have raised."""
    raised = 0
    while True:
        try:
            parts.append(engine.poll(timeout=None))
            return raised
        except RAISED as error:
            parts.append(error.specstream_partial.output)  # type: ignore[union-attr]
            raised += 1


def processed(p: ss.Pipeline, table: pa.Table, options: dict[str, Any]) -> tuple[Any, Any]:
    """By ``process``; behind a phase that raises with the rest of the events."""
    names = [(name, "ascending") for name in ("time", "stream") if name in table.column_names]
    rest, parts = table.sort_by(names), []
    with ss.Engine(p, **options) as engine:
        while True:
            try:
                parts.append(engine.process(rest, order_by="time", end=True))
                return parts, engine.state
            except RAISED as error:
                partial = error.specstream_partial  # type: ignore[union-attr]
                # What a timer raises is of no event.
                _, events = getattr(error, "specstream_phase", (None, 0))
                parts.append(partial.output)
                rest = rest.slice(partial.consumed + events)


def submitted(
    p: ss.Pipeline, table: pa.Table, seed: int, options: dict[str, Any]
) -> tuple[Any, Any, int]:
    """Out of order, polled now and then, restored now and then from a snapshot."""
    draw = random.Random(seed)
    source = "stream" if "stream" in table.column_names else None
    names = list(p._graph.sources) if source else [0]
    engine = ss.Engine(p, sources=names, **options)
    parts: list[Any] = []
    raised = 0
    try:
        for arrival in ss.testing.arrivals(
            table,
            order_by="time",
            source=source,
            seed=seed,
            rows=draw.choice([1, 3, 10]),
            disorder=draw.choice([0, 4, 50]),
        ):
            if draw.random() < 0.8:
                arrival.submit_to(engine)
            else:  # one by one
                for row in arrival.table.to_pylist():
                    of = row.get("stream", 0)
                    values = {name: row[name] for name in p.event.names}
                    engine.submit_event(row["time"], of, **values)
                for of, to in arrival.frontiers.items():
                    engine.advance(of, to)
            if draw.random() < 0.5:
                raised += polled(engine, parts)
            if draw.random() < 0.2:
                pending = engine.stats.pending
                snapshot = engine.snapshot()
                engine.close()
                engine = ss.Engine(p, sources=names, restore=snapshot, **options)
                assert engine.stats.pending <= pending
        for name in names:
            engine.advance(name)
        raised += polled(engine, parts)
        assert engine.stats.pending == 0
        return parts, engine.state, raised
    finally:
        engine.close()


def check(p: ss.Pipeline, count: int, seed: int, times: int) -> Phases:
    """All agree; what the witness has seen."""
    table, each = timed(p, count, seed, times)
    seen = witnessed(p, each)
    expected = p.run_sequential(table, order_by="time", on_error="skip", end=True)
    assert rows(p, expected.output) == seen.rows
    assert [row for row, _ in expected.raised] == seen.raised
    whole = tables(p, expected.output)
    for options in SETTINGS:
        parts, state = processed(p, table, options)
        assert {name: of.equals(whole[name]) for name, of in joined(p, parts).items()} == (
            dict.fromkeys(whole, True)
        ), options
        assert_same_state(state, expected.state)
    for at, options in enumerate(SUBMITTED):
        parts, state, raised = submitted(p, table, seed + at, options)
        assert {name: of.equals(whole[name]) for name, of in joined(p, parts).items()} == (
            dict.fromkeys(whole, True)
        ), options
        assert_same_state(state, expected.state)
        assert raised == len(seen.raised)
    return seen


@pytest.mark.parametrize("seed", range(5))
def test_a_random_pipeline(seed: int) -> None:
    p = random_pipeline(seed, most=4, sources=1 + seed % 3, raising=seed > 2, phases="time")
    check(p, 60, seed, times=12)


@pytest.mark.parametrize("seed", range(302, 306))
def test_a_random_pipeline_with_timers(seed: int) -> None:
    of = [*VERTICES, *(5 * TIMED_BY_TIME)]
    p = random_pipeline(seed, most=5, sources=1 + seed % 2, of=of, phases="time")
    check(p, 60, seed, times=12)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", [101])
def test_a_larger_random_pipeline(seed: int) -> None:
    check(random_pipeline(seed, most=10, raising=True, phases="time"), 200, seed, times=30)


@pytest.mark.slow
@pytest.mark.long
def test_a_pipeline_of_many_vertices() -> None:
    """Those that have a message are found by their bits."""
    few = [always, keyed, both, several]
    p = random_pipeline(201, most=75, least=70, of=few, phases="time")
    check(p, 30, 201, times=10)


def failing_pipeline(sources: int) -> ss.Pipeline:
    p = ss.Pipeline("failing", phases="time")
    streams = [p.source(f"s{n}", SOURCE) for n in range(sources)]
    first = p.add(always, streams[0])
    second = p.add(failing, first)
    p.sink("all", p.add(keyed, p.add(both, a=first, b=second, name="meet")))
    for one in streams[1:]:
        p.sink(f"of_{one.name}", p.add(both, a=second, b=one, name=f"with_{one.name}"))
    p.sink("first", first)
    p.sink("raw", streams[0])
    return p


@pytest.mark.long
@pytest.mark.parametrize("sources", [1, 3])
def test_phases_that_raise_are_applied_nowhere(sources: int) -> None:
    assert len(check(failing_pipeline(sources), 120, 1, times=60).raised) > 1


def test_an_error_names_vertex_path_and_phase() -> None:
    p = failing_pipeline(1)
    table, each = timed(p, 120, 1, 60)
    seen = witnessed(p, each)
    first = seen.raised[0]
    time = each[first][0]
    count = sum(one[0] == time for one in each)
    with pytest.raises(ValueError, match="four") as of_oracle:
        p.run_sequential(table, order_by="time")
    with ss.Engine(p) as engine, pytest.raises(ValueError, match="four") as of_batch:
        engine.process(table, order_by="time", end=True)
    with ss.Engine(p) as engine:
        engine.submit(table, order_by="time")
        engine.advance(0)
        with pytest.raises(ValueError, match="four") as of_poll:
            engine.poll(timeout=None)
    for raised in (of_oracle, of_batch, of_poll):
        assert raised.value.specstream_phase == (time, count)  # type: ignore[attr-defined]
        notes = " ".join(raised.value.__notes__)
        assert "vertex 'failing' of pipeline 'failing', path (" in notes
    assert of_batch.value.specstream_partial.consumed == first  # type: ignore[attr-defined]
    for raised in (of_batch, of_poll):
        notes = " ".join(raised.value.__notes__)
        assert (
            f"raised by pipeline 'failing' in the phase of time {time}, of {count} event" in notes
        )
        assert f"s0 0: x={each[first][2]['x']}" in notes


# ---- what meets whom ----


@ss.operator(
    state=Tally,
    inputs={"tick": {"x": int}, "news": {"x": int}},
    emits={"tick": int, "news": int, "both": bool},
)
def meet(state, event, emit):
    state.count += 1
    emit(event.tick.x, event.news.x, event.changed("tick") and event.changed("news"))


def meeting(phases: Any = "time") -> ss.Pipeline:
    p = ss.Pipeline("meeting", phases=phases)
    ticks, news = p.source("ticks", {"x": int}), p.source("news", {"x": int})
    p.sink("met", p.add(meet, tick=ticks, news=news))
    return p


DAY = {
    "ticks": {"time": [1, 1, 1, 3], "x": [1, 2, 3, 4]},
    "news": {"time": [1, 1, 2], "x": [10, 20, 30]},
}
MET = [(1, 10, True), (2, 20, True), (3, 20, False), (3, 30, False), (4, 30, False)]


def test_the_first_of_each_source_meet_and_then_the_second() -> None:
    p = meeting()
    found = p.run_sequential(DAY, order_by="time").output
    assert rows(p, found)["met"] == MET
    with ss.Engine(p) as engine:
        assert engine.process(DAY, order_by="time", end=True).equals(found)


def test_with_phases_of_one_event_they_do_not_meet() -> None:
    p = meeting("event")
    assert not any(row[2] for row in rows(p, p.run_sequential(DAY, order_by="time").output)["met"])


def test_one_row_at_each_time_of_one_source_is_a_phase_of_one_event() -> None:
    """But for random numbers, which go by other keys."""
    of = [always, several, keyed, both]
    by_event = random_pipeline(3, most=5, sources=1, of=of)
    by_time = random_pipeline(3, most=5, sources=1, of=of, phases="time")
    table, _ = events_of(by_event, 50, 3)
    table = table.append_column("time", pa.array(range(50)))
    one, other = (p.run_sequential(table, order_by="time") for p in (by_event, by_time))
    assert rows(by_event, one.output) == rows(by_time, other.output)


def test_the_events_of_a_pipelines_source_are_numbered_over_the_engines_sources() -> None:
    """What the engine calls a source breaks ties; the number is among all events of the input."""
    p = meeting()
    table = {
        "time": [1, 1, 1, 1],
        "stream": ["ticks", "news", "ticks", "news"],
        "ticks.x": [1, None, 2, None],
        "news.x": [None, 10, None, 20],
        "origin": ["b", "a", "a", "b"],
    }
    found = p.run_sequential(table, order_by="time", source="origin").output
    assert rows(p, found)["met"] == [(2, 10, True), (1, 20, True)]
    with ss.Engine(p, sources=["a", "b"]) as engine:
        engine.submit(table, order_by="time", source_column="origin")
        engine.advance("a")
        engine.advance("b")
        assert engine.poll(timeout=None).equals(found)


@ss.operator(state=Tally, event={"x": int, "s": str}, emits={"s": str, "y": float})
def derives(state, event, emit):
    emit(event.s.upper() + f"{event.x + event.timestamp}", event.random(0))


def test_derived_strings_are_those_of_the_event() -> None:
    p = ss.Pipeline("derived", phases="time")
    a, b = p.source("a", {"x": int, "s": str}), p.source("b", {"s": str, "x": int})
    p.sink("a", p.add(derives, a, name="of_a"))
    p.sink("b", p.add(derives, b, name="of_b"))
    data = {
        "a": {"time": [5, 5, 6], "x": [1, 2, 3], "s": ["k", "l", "m"]},
        "b": {"time": [5, 6, 6], "x": [4, 5, 6], "s": ["n", "o", "p"]},
    }
    expected = p.run_sequential(data, order_by="time").output
    assert [name for name, _ in rows(p, expected)["a"]] == ["K6", "L7", "M9"]
    assert [name for name, _ in rows(p, expected)["b"]] == ["N9", "O11", "P12"]
    for options in SETTINGS:
        with ss.Engine(p, sources=["a", "b"], **options) as engine:
            for name, table in data.items():
                engine.submit(table, order_by="time", source=name)
                engine.advance(name)
            found = engine.poll(timeout=None)
        assert {name: of.equals(expected[name]) for name, of in found.items()} == {
            "a": True,
            "b": True,
        }


# ---- frontiers ----


def test_a_time_waits_until_all_sources_have_passed_it() -> None:
    p = meeting()
    with ss.Engine(p, sources=["ticks", "news"], keys=True) as engine:
        for name, table in DAY.items():
            engine.submit(table, order_by="time", source=name)
        engine.advance("ticks", 9)
        assert (engine.poll(timeout=None).num_rows, engine.stats.pending) == (0, 7)
        engine.advance("news", 1)
        assert (engine.poll(timeout=None).num_rows, engine.stats.pending) == (0, 7)
        engine.advance("news", 2)  # now nothing of time 1 comes any more
        found = engine.poll(timeout=None)
        assert (found.num_rows, engine.stats.pending) == (3, 2)
        # Rows have the key of the first event of their phase.
        keys = [tuple(row.values())[-3:] for row in found.to_pylist()]
        assert keys == [(1, "news", 0)] * 3
        engine.advance("news", 50)  # a gap; the silent source ends
        assert engine.poll(timeout=None).num_rows == 2
        assert (engine.stats.pending, engine.stats.events) == (0, 3)


def test_ordered_holds_back_the_last_time() -> None:
    p = meeting()
    with ss.Engine(p, sources=["ticks", "news"]) as engine:
        for name, table in DAY.items():
            engine.submit(table, order_by="time", source=name, ordered=True)
        assert engine.poll(timeout=None).num_rows == 3  # news is at 2
        engine.advance("news")
        assert engine.poll(timeout=None).num_rows == 1  # ticks may have more of 3
        engine.advance("ticks")
        assert engine.poll(timeout=None).num_rows == 1


def test_late_events() -> None:
    p = meeting()
    with ss.Engine(p, sources=["ticks", "news"], late="side") as engine:
        engine.submit_event(5, "ticks", x=1)
        engine.advance("ticks", 6)
        engine.submit_event(5, "ticks", x=2)  # late, though its time still waits for news
        engine.submit_event(5, "news", x=3)
        engine.advance("news", 6)
        assert rows(p, engine.poll(timeout=None))["met"] == [(1, 3, True)]
        late = engine.late()
        assert late is not None
        assert (late.num_rows, engine.stats.late) == (1, 1)


def test_a_source_that_comes_after_the_end_does_not_come_into_a_phase_that_was() -> None:
    p = ss.Pipeline("single", phases="time")
    p.sink("out", p.add(always, p.source("s", SOURCE)))
    values: dict[str, Any] = {"x": 1, "y": 0.5, "s": "a", "n": None}
    with ss.Engine(p, late="drop") as engine:
        engine.submit_event(7, 1, **values)
        engine.advance(1)
        assert engine.poll(timeout=None).num_rows == 1
        engine.submit_event(7, 2, **values)
        engine.submit_event(8, 2, **values)
        engine.advance(2)
        assert engine.poll(timeout=None).num_rows == 1
        assert engine.stats.late == 1


def test_a_savepoint_has_the_events_that_wait() -> None:
    p = meeting()
    with ss.Engine(p, sources=["ticks", "news"]) as engine:
        for name, table in DAY.items():
            engine.submit(table, order_by="time", source=name)
            engine.advance(name, 2)
        savepoint = engine.savepoint()
        for _ in range(2):
            assert engine.poll(timeout=None).num_rows == 3
            engine.advance("ticks")
            engine.advance("news")
            assert engine.poll(timeout=None).num_rows == 2
            engine.rollback(savepoint)
            assert engine.stats.pending in (2, 7)  # the first phase may be in it


def test_floats_and_dates_are_times() -> None:
    p = meeting()
    for times in (
        [0.5, 0.5, 1.5, 1.5],
        pa.array([1, 1, 2, 2], pa.timestamp("ms", "UTC")),
        pa.array([1, 1, 2, 2], pa.date32()),
    ):
        data = {
            "ticks": {"time": times, "x": [1, 2, 3, 4]},
            "news": {"time": times, "x": [5, 6, 7, 8]},
        }
        with ss.Engine(p, sources=["ticks", "news"], keys=True) as engine:
            for name, table in data.items():
                engine.submit(table, order_by="time", source=name)
                engine.advance(name)
            found = engine.poll(timeout=None)
        expected = p.run_sequential(data, order_by="time", keys=True).output
        assert found.drop(["sequence"]).equals(expected.drop(["sequence"]))
        assert [row["both"] for row in found.to_pylist()] == [True] * 4


# ---- what is refused, and what else takes a pipeline ----


def test_a_batch_that_could_cut_a_time_in_two_is_refused() -> None:
    with (
        ss.Engine(meeting()) as engine,
        pytest.raises(ss.InputError, match=r"pipeline 'meeting' has phases by time.*submit\(\)"),
    ):
        engine.process(DAY, order_by="time")


def test_times_are_needed() -> None:
    p = ss.Pipeline("single", phases="time")
    p.sink("out", p.add(always, p.source("s", SOURCE)))
    table = {"x": [1], "y": [0.5], "s": ["a"], "n": [1]}
    for run in (p.run_sequential, ss.Engine(p).process):
        with pytest.raises(ss.InputError, match="has phases by the time of the events: give order"):
            run(table)


def test_hooks_are_refused() -> None:
    with pytest.raises(ss.ConfigurationError, match="phases by time, and hooks"):
        ss.Engine(meeting(), on_commit=print)


@ss.operator(state=Tally, event={"x": int}, emits={"x": int})
def numbered(state, event, emit):
    emit(event.sequence)


def test_a_phase_has_no_sequence_number() -> None:
    p = ss.Pipeline("numbered", phases="time")
    p.sink("out", p.add(numbered, p.source("s", {"x": int})))
    with pytest.raises(ss.DeclarationError, match=r"'numbered' reads event\.sequence, and with"):
        ss.Engine(p)


def test_it_is_described() -> None:
    by_event, by_time = (meeting(phases).describe() for phases in ("event", "time"))
    assert (by_event.by_time, by_time.by_time) == (False, True)
    assert "a phase is all events of one time" in str(by_time)
    assert "a phase is all events of one time" in str(meeting().explain())
    assert "a phase is all events of one time" in str(meeting()._repr_svg_())
    assert (by_event.vertices[0].several_rows, by_time.vertices[0].several_rows) == (False, True)


def test_there_are_two_kinds_of_phases() -> None:
    with pytest.raises(ss.DeclarationError, match="phases"):
        ss.Pipeline("p", phases="batch")  # type: ignore[arg-type]


def test_it_is_pickled() -> None:
    p = pickle.loads(pickle.dumps(meeting()))
    assert rows(p, p.run_sequential(DAY, order_by="time").output)["met"] == MET


@pytest.mark.long
def test_check_takes_it() -> None:
    table, _ = timed(failing_pipeline(2), 60, 5, 20)
    assert ss.testing.check(failing_pipeline(2), table, order_by="time").raised


def test_commands_take_it(tmp_path: Path) -> None:
    (tmp_path / "day.py").write_text(
        "import specstream as ss\n"
        "class Seen(ss.State):\n    count = ss.scalar(int)\n"
        '@ss.operator(state=Seen, event={"x": int}, emits={"x": int})\n'
        "def count(state, event, emit):\n    state.count += 1\n    emit(event.x)\n"
        'p = ss.Pipeline("day", phases="time")\n'
        'p.sink("out", p.add(count, p.source("s", {"x": int})))\n'
    )
    (tmp_path / "events").mkdir()
    table = pa.table({"time": [at // 3 for at in range(300)], "x": range(300)})
    pq.write_table(table, tmp_path / "events" / "0.parquet")
    given = [f"{tmp_path / 'day.py'}:p", "--input", tmp_path / "events", "--order-by", "time"]
    profiled = invoke("profile", *given, "--json")
    assert profiled.exit_code == 0, profiled.output
    assert '"events": 100' in profiled.output  # phases
    for command in ("tune", "bench"):
        found = invoke(command, *given, "--seconds", 0.1, "--threads", 2, "--json")
        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout)["events"] == 300
    for command, *options in (
        ("tune", "--seconds", 0.1, "--cores", 4),
        ("run", "--output", tmp_path / "out"),  # without a watermark
    ):
        refused = invoke(command, *given, *options)
        assert refused.exit_code == 1
        assert "pipeline 'day' has phases by time" in refused.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_it_goes_on_after_a_batch_of_its_own() -> None:
    """A table that is whole, and then events of later times."""
    p = meeting()
    with ss.Engine(p, sources=["ticks", "news"]) as engine:
        assert engine.process(DAY, order_by="time", end=True).num_rows == 5
        engine.submit_event(9, "news", x=5)
        engine.advance("ticks")
        engine.advance("news")
        assert rows(p, engine.poll(timeout=None))["met"] == [(4, 5, False)]
        assert engine.process(DAY, order_by="time", end=True).num_rows == 5
