"""What one sees of a pipeline: description, explanation, profile, hooks, settings."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

import prometheus_client
import pyarrow as pa
import pytest
from support.pipelines.graphs import events_of, random_pipeline
from support.pipelines.vertices import (
    SOURCE,
    always,
    both,
    failing,
    never,
    passing,
    several,
    sometimes,
)

import specstream as ss
from specstream.profiling.advice import advise
from specstream.profiling.hot_words import HotWord
from specstream.tuning.rivals import compare
from specstream.tuning.search import search
from specstream.tuning.stream import Stream


class Sums(ss.State):
    total = ss.array(int, 64)


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Sums, event={"key": int}, emits={"total": int})
def summed(state, event, emit):
    mixed = event.key
    for _ in range(200):
        mixed = mixed * 6364136223846793005 + 1442695040888963407
    state.total[event.key] += mixed % 7 + 1
    emit(state.total[event.key])


@ss.operator(state=Sums, event={"key": int}, emits={"key": int})
def only_added(state, event, emit):
    state.total[event.key] += 1
    emit(event.key)


@ss.operator(state=Seen, event={"key": int}, emits={"sequence": int})
def numbered(state, event, emit):
    emit(event.sequence)


@ss.operator(state=Seen, event={"key": int}, emits={"key": int})
def to_zero(state, event, emit):
    emit(event.key * 0)


@ss.operator(state=Seen, inputs={"a": {"total": int}, "b": {"total": int}}, emits={"total": int})
def joined(state, event, emit):
    if event.changed("a"):
        emit(event.a.total - event.b.total)


def two_of_one() -> ss.Pipeline:
    """Two vertices of one operator: all events of the second have one key."""
    p = ss.Pipeline("planted")
    keys = p.source("keys", {"key": int})
    p.sink("cold", p.add(summed, keys, name="cold"))
    p.sink("hot", p.add(summed, p.add(to_zero, keys), name="hot"))
    return p


def two_sources() -> ss.Pipeline:
    p = ss.Pipeline("between")
    left, right = p.source("left", {"key": int}), p.source("right", {"key": int})
    a, b = p.add(summed, left, name="a"), p.add(summed, right, name="b")
    p.sink("all", p.add(joined, a=a, b=b))
    p.sink("right", right)
    return p


def crossings() -> ss.Pipeline:
    p = ss.Pipeline("crossings")
    ticks = p.source("ticks", SOURCE)
    fast, many = p.add(always, ticks, name="fast"), p.add(several, ticks, name="many")
    p.sink("signals", p.add(both, a=fast, b=many))
    p.sink("fast", fast)
    return p


# ---- description ----


def test_the_description_tells_of_sources_vertices_and_sinks() -> None:
    found = crossings().describe()
    assert [(one.name, one.columns[0]) for one in found.sources] == [("ticks", ("x", "int"))]
    told = {
        one.name: (one.operator, one.number, one.level, one.at_most_one_row, one.several_rows)
        for one in found.vertices
    }
    assert told == {
        "fast": ("always", 2, 1, True, False),
        "many": ("several", 3, 1, False, True),
        "both": ("both", 4, 2, True, True),
    }
    assert found.vertices[-1].inputs == (("a", "fast"), ("b", "many"))
    assert [(one.name, one.stream) for one in found.sinks] == [
        ("signals", "both"),
        ("fast", "fast"),
    ]
    assert json.loads(json.dumps(found.to_dict()))["vertices"][2]["inputs"][1] == ["b", "many"]
    text = str(found)
    assert (
        "  4. both, level 2, reads a = fast, b = many\n       emits at most one row a run" in text
    )
    assert "       state of 2 words\n" in text


def test_looking_does_not_settle_the_graph() -> None:
    p = crossings()
    p.describe(), p.explain(), p._repr_svg_(), p.to_dot()
    p.sink("many", "many")
    assert p.run_sequential({name: [] for name in SOURCE}).output.keys() == {
        *("signals", "fast", "many")
    }


def test_a_graph_that_cannot_be_is_not_described() -> None:
    p = ss.Pipeline("p")
    p.source("ticks", SOURCE)
    for look in (p.describe, p.explain):
        with pytest.raises(ss.DeclarationError, match="it has no sink"):
            look()


# ---- explanation ----


def test_the_explanation_goes_by_vertex() -> None:
    p = two_of_one()
    found = p.explain()
    assert list(found.vertices) == ["cold", "to_zero", "hot"]
    names = [field.name for field in found.fields]
    assert names == [field.name for field in p.layout.fields]
    for field in found.fields:
        for at in (*field.read, *field.written):
            assert found.accesses[at].field == field.name
    conflicts = [(one.field, found.accesses[one.earlier].text) for one in found.conflicts]
    assert conflicts[-1] == ("hot.total", "hot.total[event.key]")
    assert {field for field, _ in conflicts} == {"cold.total", "hot.total"}
    assert found.columns_read == ("key",)
    text = str(found)
    assert text.count("def summed(state, event, emit):") == 1
    assert "the functions of vertex 'cold'" in text
    assert text.index("vertex 'hot': operator 'summed'") > text.index("vertex 'cold'")
    assert "one writes hot.total[event.key]" in text.partition("what could conflict")[2]
    assert json.loads(json.dumps(found.to_dict()))["vertices"]["hot"]["operator"] == "summed"
    assert "hot.total[event.key]" in found._repr_html_()


def test_last_values_conflict_between_phases() -> None:
    found = two_sources().explain()
    assert [(one.input, one.stream, one.fields) for one in found.last_values] == [
        ("a", "a", ("joined.a.total",)),
        ("b", "b", ("joined.b.total",)),
    ]
    assert "a phase with a row of b writes joined.b.total, a later one" in str(found)
    assert found.columns_read == ("left.key", "right.key")
    kept = {name for last in found.last_values for name in last.fields}
    assert kept <= {field.name for field in two_sources().layout.fields}


def test_the_fields_that_are_kept_are_those_that_the_explanation_names() -> None:
    for seed in range(20):
        p = random_pipeline(seed, most=8)
        told = {name for last in p.explain().last_values for name in last.fields}
        fields = {one.name for one in p.layout.fields}
        assert told <= fields
        kept = {name for name in fields if name.count(".") > 1 and not name.endswith(".null")}
        alone = {
            name
            for name, vertex in p._graph.vertices.items()
            if len({one.stream for one in vertex.inputs}) == 1
        }
        assert {name for name in kept if name.partition(".")[0] not in alone} == told


def test_an_operator_with_inputs_tells_which_of_their_columns_it_reads() -> None:
    found = both.explain()
    asked = {"changed.a", "changed.b", "known.b"}
    assert set(found.columns_read) == {"a.x", "a.s", "b.x", "b.y", "b.n"} | asked
    assert [name for name, _ in found.event] == ["a.x", "a.s", "b.x", "b.y", "b.n"]
    assert "not read" not in str(found)


# ---- what each vertex did ----


def test_a_plain_run_counts_what_each_vertex_did() -> None:
    p = ss.Pipeline("p")
    ticks = p.source("ticks", SOURCE)
    split = p.add(several, ticks)
    p.sink("fails", p.add(failing, split))
    p.sink("passing", p.add(passing, ticks))
    p.sink("never", p.add(never, ticks))
    table: dict[str, list[Any]] = {"x": [n % 8 for n in range(40)], "y": [0.5] * 40}
    table |= {"s": ["a"] * 40, "n": pa.nulls(40, pa.int64())}
    run = p.run_sequential(table, on_error="skip")
    # A phase that raises is applied nowhere.
    done = [x for row, x in enumerate(table["x"]) if row not in [at for at, _ in run.raised]]
    assert 0 < len(done) < 40
    rows = sum(x % 4 for x in done)
    assert {name: (of.runs, of.rows) for name, of in run.vertices.items()} == {
        "several": (len(done), rows),
        "passing": (len(done), sum(x % 4 != 2 for x in done)),
        "never": (len(done), 0),
        "failing": (rows, rows),
    }
    assert "vertex several" in repr(run)
    assert run.vertices["failing"].rows == run.output["fails"].num_rows
    assert always.run_sequential(table).vertices == {}


def test_prometheus_is_told_the_conflicts_of_each_vertex() -> None:
    registry = prometheus_client.CollectorRegistry()
    labels = {"operator": "two", "engine": "1", "vertex": "hot"}
    p = two_of_one()
    options: dict[str, Any] = {"threads": 2, "horizon": 6, "chunk": 1, "execution": "speculate"}
    with ss.Engine(p, **options) as engine:
        labels["operator"] = p.name
        ss.metrics.watch(engine, registry=registry)
        process_until(
            engine,
            {"key": [n % 63 + 1 for n in range(3000)]},
            lambda found: sum(word.aborts for word in found.words if word.vertex == "hot") >= 5,
        )
        told = registry.get_sample_value("specstream_vertex_conflicts", labels)
        assert told == engine.conflicts_by_vertex()["hot"] >= 5


# ---- profile ----


def process_until(engine: ss.Engine, events: Any, seen: Callable[[ss.Profile], bool]) -> None:
    """Conflicts need two threads at once, which a busy machine gives only now and then."""
    until = time.monotonic() + 60
    while not seen(engine.profile()):
        engine.process(events)
        assert time.monotonic() < until


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_the_hot_vertex_of_two_with_one_operator_is_named_first(protocol: str, lines: bool) -> None:
    p = two_of_one()
    options: dict[str, Any] = {"threads": 2, "horizon": 6, "chunk": 1, "execution": "speculate"}
    with ss.Engine(p, profile=lines, protocol=protocol, **options) as engine:
        process_until(
            engine,
            {"key": [n % 63 + 1 for n in range(3000)]},
            lambda found: sum(word.aborts for word in found.words) >= 30,
        )
        found = engine.profile()
    hottest = found.words[0]
    assert (hottest.name, hottest.vertex, hottest.index) == ("hot.total[0]", "hot", (0,))
    assert hottest.lines
    assert hottest.lines[0].function == "hot.summed"
    assert all("state.total[event.key]" in line.text for line in hottest.lines)
    assert (hottest.lines[0].aborts is not None) == lines
    assert next(iter(found.by_vertex)) == "hot"
    assert "conflicts by vertex: hot " in found.text()
    assert found.to_dict()["by_vertex"]["hot"] > 0.5
    assert "vertex hot" in found._repr_html_()
    counts = engine.conflicts_by_vertex()
    assert next(iter(counts)) == "hot"
    assert counts["hot"] == sum(word.aborts for word in found.words if word.vertex == "hot")
    often = dataclasses.replace(found, speculative_runs=2 * found.conflicts)
    said = advise(often, p.program, 1e-5)
    assert said[0].startswith("hot.total[0] caused")
    assert "split hot.total" in said[0], "what is emitted is read, too"


def test_a_field_that_one_vertex_only_adds_to_may_have_its_name_used_by_another() -> None:
    p = ss.Pipeline("added")
    keys = p.source("keys", {"key": int})
    p.sink("all", p.add(summed, keys, name="reads"))
    p.sink("counted", p.add(only_added, keys, name="adds"))
    word = HotWord("adds.total", (1,), 5, 1.0, -1, ())
    with ss.Engine(p) as engine:
        profile = engine.profile()
    more: dict[str, Any] = {"speculative_runs": 10, "conflicts": 5, "words": (word,)}
    said = advise(dataclasses.replace(profile, **more), p.program, 1e-5)
    assert "the operator does nothing but add to adds.total" in said[0]


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_last_value_that_conflicts_names_the_line_that_reads_it(protocol: str) -> None:
    p = two_sources()
    events = pa.table({"stream": ["left", "right"] * 1500, "left.key": [1, None] * 1500,
                       "right.key": [None, 2] * 1500})  # fmt: skip
    options: dict[str, Any] = {"threads": 2, "horizon": 6, "chunk": 1, "execution": "speculate"}
    with ss.Engine(p, profile=True, protocol=protocol, **options) as engine:
        process_until(
            engine,
            events,
            lambda found: any(word.field == "joined.b.total" for word in found.words),
        )
        words = {word.field: word for word in engine.profile().words}
    reading = {'if event.changed("a"):', "emit(event.a.total - event.b.total)"}
    assert words["joined.b.total"].lines
    for name, word in words.items():
        if name.startswith("joined."):
            assert word.vertex == "joined"
            assert {line.text for line in word.lines} <= reading, "and none of another vertex"


# ---- hooks, settings, tests ----


def test_hooks_are_told_of_the_event_and_of_the_rows_as_they_are_inside() -> None:
    p = two_sources()
    told: list[ss.Notification] = []
    with ss.Engine(p, threads=2, on_commit=told.append) as engine:
        output = engine.process(
            {"left": {"key": [1, 3], "t": [0, 2]}, "right": {"key": [2], "t": [1]}}, order_by="t"
        )
    assert [one.values for one in told] == [
        {"stream": "left", "left.key": 1, "right.key": None},
        {"stream": "right", "left.key": None, "right.key": 2},
        {"stream": "left", "left.key": 3, "right.key": None},
    ]
    rows = [row for one in told for row in one.rows]
    of_all = [row[p.emits.names.index("all.total")] for row in rows if row[0] == "all"]
    assert of_all == output["all"]["total"].to_pylist()
    assert [row[0] for row in rows] == ["all", "right", "all"]


def test_a_sequential_run_shows_the_rows_of_each_sink() -> None:
    run = two_of_one().run_sequential({"key": [1, 2]})
    assert "rows of sink cold   2\n" in repr(run)
    assert "rows of sink hot" in run._repr_html_()


def test_keys_are_refused_where_a_sink_has_such_a_column() -> None:
    p = ss.Pipeline("numbers")
    keys = p.source("keys", {"key": int})
    p.sink("one", p.add(summed, keys))
    p.sink("two", p.add(numbered, keys))
    with pytest.raises(ss.ConfigurationError, match="keys=True adds the column 'sequence'"):
        ss.Engine(p, keys=True)


@pytest.mark.parametrize("build", [two_of_one, two_sources, crossings])
def test_check_compares_pipelines(build: Any) -> None:
    p = build()
    if p is not None and len(p._graph.sources) == 2:
        table = events_of_two(30)
    elif p.name == "planted":
        table = pa.table({"key": [n % 5 for n in range(30)]})
    else:
        table, _ = events_of(p, 30, 1)
    chosen = [*ss.testing.settings()[3:6], *ss.testing.settings()[-2:]]
    found = ss.testing.check(p, table, settings=chosen)
    assert found.output.keys() == p._graph.sinks.keys()
    for name, of in found.output.items():
        assert of.column_names == list(p._graph.sinks[name].columns.names)


def events_of_two(count: int) -> pa.Table:
    left = [n % 5 if n % 3 else None for n in range(count)]
    right = [None if n % 3 else n % 7 for n in range(count)]
    of = ["left" if n % 3 else "right" for n in range(count)]
    return pa.table({"stream": of, "left.key": left, "right.key": right})


def test_check_says_of_which_sink_an_answer_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    p = crossings()
    table, _ = events_of(p, 20, 1)
    rows = p.rows

    def wrong(of: pa.Table) -> Any:
        return rows(of) | {"fast": rows(of)["fast"].slice(1)}

    run = p.run_sequential(table, keys=True)
    monkeypatch.setattr(p, "run_sequential", lambda *given, **named: run)
    monkeypatch.setattr(p, "rows", wrong)
    with pytest.raises(AssertionError, match=r"sink 'fast', output row 0"):
        ss.testing.check(p, table, settings=ss.testing.settings()[:1])


def test_tune_and_bench_take_a_pipeline_of_several_sinks() -> None:
    p = two_of_one()
    stream = Stream(pa.table({"key": [n % 60 for n in range(2000)], "t": range(2000)}), "t", None)
    found = search(p, stream, 0.05, 2, ("value",))
    assert found.tried
    rivals = compare(p, None, stream, 0.05, 2)
    assert not any("lock" in name for name in rivals.measured)
    assert rivals.measured["sequential check"].speed < 1


def test_streams_of_hypothesis_fit_a_pipeline() -> None:
    from hypothesis import given, settings
    from hypothesis import strategies as st

    p = two_of_one()

    @settings(max_examples=3, deadline=None)
    @given(ss.testing.streams(p, columns={"key": st.integers(0, 60)}, max_size=5))
    def fits(table: Any) -> None:
        p.run_sequential(table)

    fits()


def test_sometimes_is_here_for_its_nulls() -> None:
    p = ss.Pipeline("nulls")
    p.sink("all", p.add(sometimes, p.source("ticks", SOURCE)))
    table, _ = events_of(p, 20, 3)
    ss.testing.check(p, table, settings=ss.testing.settings()[3:4])
