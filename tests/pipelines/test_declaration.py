"""Graphs that cannot be, and what is said about them."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from support.pipelines.vertices import SOURCE, always, both, failing

import specstream as ss


def refused(match: str, build: Callable[[ss.Pipeline, Any], object]) -> None:
    p = ss.Pipeline("p")
    ticks = p.source("ticks", SOURCE)

    def declare_and_run() -> None:
        build(p, ticks)
        p.run_sequential({})

    with pytest.raises(ss.DeclarationError, match=match):
        declare_and_run()


class Sum(ss.State):
    total = ss.scalar(float)


@ss.operator(state=Sum, event={"price": float}, emits={"total": float})
def prices(state, event, emit):
    state.total += event.price
    emit(state.total)


@ss.operator(state=Sum, event={"x": float}, emits={"total": float})
def of_floats(state, event, emit):
    state.total += event.x


@ss.operator(state=Sum, event={"n": int}, emits={})
def never_null(state, event, emit):
    state.total += event.n


@pytest.mark.parametrize(
    ("match", "build"),
    [
        (
            "vertex 'prices' reads the column 'price', which source 'ticks' does not send; it has",
            lambda p, ticks: p.add(prices, ticks),
        ),
        (
            "vertex 'of_floats' reads the column 'x' as float, and source 'ticks' sends int",
            lambda p, ticks: p.add(of_floats, ticks),
        ),
        (
            "vertex 'never_null' reads the column 'n' as int, and source 'ticks' sends nullable",
            lambda p, ticks: p.add(never_null, ticks),
        ),
        (
            "vertex 'both' gets nothing for input 'b'; write",
            lambda p, ticks: p.add(both, a=ticks),
        ),
        (
            "vertex 'both' gets a stream for 'c', which is none of its inputs",
            lambda p, ticks: p.add(both, a=ticks, b=ticks, c=ticks),
        ),
        (
            "vertex 'both' gets nothing for input 'a' and a stream without the name of an input",
            lambda p, ticks: p.add(both, ticks),
        ),
        (
            "vertex 'always' reads one stream, and gets 2",
            lambda p, ticks: p.add(always, ticks, ticks),
        ),
        (
            "vertex 'always' has the name of a vertex that is there already; give it another, with",
            lambda p, ticks: (p.add(always, ticks), p.add(always, ticks)),
        ),
        (
            "source 'ticks' has the name of a source that is there already",
            lambda p, ticks: p.source("ticks", SOURCE),
        ),
        (
            "there are two sinks 'out', of 'always' and of 'ticks'",
            lambda p, ticks: (p.sink("out", p.add(always, ticks)), p.sink("out", ticks)),
        ),
        (
            "nobody reads vertex 'always'; let a vertex read it",
            lambda p, ticks: (p.add(always, ticks), p.sink("out", ticks)),
        ),
        (
            "nobody reads source 'news'",
            lambda p, ticks: (p.source("news", SOURCE), p.sink("out", p.add(always, ticks))),
        ),
        ("it has no sink", lambda p, ticks: p.add(always, ticks)),
        (
            "vertex 'b' reads what comes from itself: a -> b -> a",
            lambda p, ticks: (
                p.sink("out", p.add(both, a=ticks, b="b", name="a")),
                p.add(always, "a", name="b"),
            ),
        ),
        (
            "input 'a' of vertex 'both' reads 'tcks', which is neither a source nor a vertex; .*"
            "did you mean 'ticks'",
            lambda p, ticks: p.sink("out", p.add(both, a="tcks", b=ticks)),
        ),
        (
            "vertex 'always' gets the stream 'ticks' of pipeline 'q'",
            lambda p, ticks: p.add(always, ss.Pipeline("q").source("ticks", SOURCE)),
        ),
        ("add takes an operator, and gets pipeline 'q'", lambda p, t: p.add(ss.Pipeline("q"), t)),
        ("vertex 'always' gets 7; expected a stream", lambda p, ticks: p.add(always, 7)),
        (
            "vertex 'table' has the name of something that engine.state has",
            lambda p, ticks: p.add(always, ticks, name="table"),
        ),
        ("a sink is called 'two words'", lambda p, ticks: p.sink("two words", ticks)),
        ("source 'news' has no columns", lambda p, ticks: p.source("news", {})),
        (
            "sink 'out' gets 'never_null', which emits no columns",
            lambda p, ticks: p.sink("out", "never_null"),
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_named_at_both_ends(
    match: str, build: Callable[[ss.Pipeline, Any], object]
) -> None:
    if "no columns" in match and "sink" in match:
        p = ss.Pipeline("p")
        ints = p.source("ints", {"n": int})
        with pytest.raises(ss.DeclarationError, match=match):
            p.sink("out", p.add(never_null, ints))
        return
    refused(match, build)


@ss.operator(state=Sum, event={"x": int}, emits={"text": str})
def formats(state, event, emit):
    state.total += 1.0
    emit(f"{state.total:.1f}")


@ss.operator(state=Sum, event={"text": str}, emits={"text": str})
def reads_text(state, event, emit):
    emit(event.text)


def test_a_formatted_string_goes_to_sinks_only() -> None:
    p = ss.Pipeline("texts")
    p.sink("out", p.add(formats, p.source("ticks", {"x": int})))
    assert p.run_sequential({"x": [1, 2]}).output["text"].to_pylist() == ["1.0", "2.0"]
    with ss.Engine(p) as engine:
        assert engine.process({"x": [1, 2]})["text"].to_pylist() == ["1.0", "2.0"]
    refused(
        "vertex 'reads_text' reads the column 'text', in which vertex 'formats' emits formatted",
        lambda p, ticks: p.sink("out", p.add(reads_text, p.add(formats, ticks))),
    )


@ss.operator(state=Sum, event={"x": int}, emits={"x": int})
def returning(state, event, emit):
    state.total += 1.0
    return 5


def test_a_vertex_that_returns_a_value_is_refused() -> None:
    p = ss.Pipeline("p")
    p.sink("out", p.add(returning, p.source("ticks", {"x": int}), name="five"))
    with pytest.raises(ss.CompileError, match=r"in vertex 'five' of .*returns a value"):
        ss.Engine(p)


@ss.operator(state=Sum, event={"x": int})
def only_counts(state, event, emit):
    state.total += event.x


def test_a_vertex_without_columns_is_there_for_its_state() -> None:
    p = ss.Pipeline("p")
    ticks = p.source("ticks", {"x": int})
    p.add(only_counts, ticks)
    p.sink("ticks", ticks)
    with ss.Engine(p) as engine:
        engine.process({"x": [1, 2]})
        assert engine.state.only_counts.total == 3.0


def test_what_was_refused_leaves_nothing_behind() -> None:
    p = ss.Pipeline("p")
    ticks = p.source("ticks", SOURCE)
    with pytest.raises(ss.DeclarationError, match="declare that first"):
        p.sink("out", "later")
    with pytest.raises(ss.DeclarationError, match="which source 'ticks' does not send"):
        p.add(prices, ticks)
    p.sink("out", p.add(always, ticks))
    assert p.run_sequential([]).output.num_rows == 0


def test_a_pipeline_in_use_is_settled() -> None:
    p = ss.Pipeline("p")
    p.sink("out", p.add(always, p.source("ticks", SOURCE)))
    assert p.run_sequential([]).output.num_rows == 0
    with pytest.raises(ss.DeclarationError, match="it is in use, and its graph is settled"):
        p.source("news", SOURCE)


def test_an_operator_with_inputs_runs_in_a_pipeline_only() -> None:
    with pytest.raises(ss.DeclarationError, match="operator 'both' has the inputs a, b"):
        ss.Engine(both)
    with pytest.raises(ss.DeclarationError, match="add it to a pipeline"):
        both.run_sequential([])


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ({}, "expected the columns of each input by its name"),
        ({"timestamp": {"x": int}}, "an input 'timestamp'; expected a Python identifier, other"),
        ({"a b": {"x": int}}, "an input 'a b'"),
        ({"a": {"x y": int}}, "inputs, 'a'= has column name 'x y'"),
    ],
)
def test_inputs_that_cannot_be_declared(inputs: Any, match: str) -> None:
    with pytest.raises(ss.DeclarationError, match=match):

        @ss.operator(state=Sum, inputs=inputs)
        def nothing(state, event, emit):
            pass


def test_event_and_inputs_exclude_each_other() -> None:
    both_of_them: dict[str, Any] = {"event": {"x": int}, "inputs": {"a": {"x": int}}}
    for given in ({}, both_of_them):
        with pytest.raises(ss.DeclarationError, match="expected one of them"):

            @ss.operator(state=Sum, **given)
            def nothing(state, event, emit):
                pass


TWO: dict[str, Any] = {"left": {"price": float}, "right": {"price": float}}


def reads_no_such_input(state, event, emit):
    state.total += event.lft.price


def reads_no_such_column(state, event, emit):
    state.total += event.left.prize


def uses_the_input(state, event, emit):
    left = event.left
    state.total += left.price


def asks_no_such_input(state, event, emit):
    if event.changed("up"):
        state.total += 1.0


def asks_a_name(state, event, emit):
    name = "left"
    if event.known(name):
        state.total += 1.0


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (reads_no_such_input, "no input 'lft'.*did you mean 'left'"),
        (reads_no_such_column, "input 'left' has no column 'prize'.*did you mean 'price'"),
        (uses_the_input, "input 'left' is used as a value.*read its columns one by one"),
        (asks_no_such_input, "no input 'up'.*it has left, right"),
        (asks_a_name, "known takes the name of one input, written out"),
    ],
)
def test_a_function_that_reads_what_is_not_there(function: Any, match: str) -> None:
    with pytest.raises(ss.CompileError, match=match) as raised:
        ss.operator(state=Sum, inputs=TWO)(function)
    assert "test_declaration.py" in str(raised.value)


def asks_the_event(state, event, emit):
    if event.is_null("price"):
        state.total += 1.0


def asks_what_is_never_null(state, event, emit):
    if event.left.is_null("price"):
        state.total += 1.0


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (asks_the_event, r'is_null is asked of an input.*write event\.left\.is_null\("x"\)'),
        (
            asks_what_is_never_null,
            r"column 'price' of input 'left' is not nullable.*inputs={'left': {'price': ss\.null",
        ),
    ],
)
def test_a_function_that_asks_what_cannot_be_asked(function: Any, match: str) -> None:
    with pytest.raises(ss.CompileError, match=match):
        ss.operator(state=Sum, inputs=TWO)(function)


def price_of(ev):
    return ev.left.price if ev.changed("left") else ev.right.price


def added(state, one, /, factor, *, other):
    state.total += price_of(one) * factor
    return other.known("right")


@ss.operator(state=Sum, inputs=TWO, emits={"total": float, "more": float})
def with_helpers(state, event, emit):
    def twice(e):
        return 2.0 * e.left.price

    same = event
    known = added(state, event, 0.5, other=same)
    half = lambda e: 0.5 * e.right.price  # noqa: E731
    emit(state.total, twice(event) + half(event) if known else same.left.price)


def test_helpers_may_call_the_event_as_they_like() -> None:
    p = ss.Pipeline("p")
    left, right = p.source("a", {"price": float}), p.source("b", {"price": float})
    p.sink("out", p.add(with_helpers, left=left, right=right))
    table = {
        "a": {"t": [1, 3], "price": [8.0, 4.0]},
        "b": {"t": [2, 4], "price": [2.0, 16.0]},
    }
    rows = p.run_sequential(table, order_by="t").output.to_pylist()
    assert [tuple(row.values()) for row in rows] == [(4, 8), (5, 17), (7, 9), (15, 16)]
    ss.testing.check(p, table, order_by="t")


def hands_on_a_list(state, event, emit):
    events = [event]
    state.total += events[0].left.price


def chooses_an_event(state, event, emit):
    same = event
    state.total += (event if state.total < 1.0 else same).left.price


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (hands_on_a_list, "a list cannot hold the event"),
        (
            chooses_an_event,
            r"an expression that is not a name for the event; write event\.left\.price",
        ),
    ],
)
def test_compile_errors_name_vertex_and_pipeline(function: Any, match: str) -> None:
    p = ss.Pipeline("trading")
    ticks = p.source("ticks", {"price": float})
    p.add(ss.operator(state=Sum, inputs=TWO)(function), left=ticks, right=ticks, name="fast")
    p.sink("out", ticks)
    where = rf"operator '{function.__name__}' in vertex 'fast' of pipeline 'trading'.*{match}"
    with pytest.raises(ss.CompileError, match=where) as raised:
        ss.Engine(p)
    assert (raised.value.vertex, raised.value.pipeline) == ("fast", "trading")


@ss.operator(state=Sum, event={"s": str}, emits={"n": int})
def reads_letters(state, event, emit):
    emit(len(event.s.upper()))


@ss.operator(state=Sum, event={"s": str}, emits={"s": str})
def hands_on(state, event, emit):
    emit(event.s)


def test_what_cannot_be_computed_behind_a_vertex_is_refused_there() -> None:
    p = ss.Pipeline("p")
    p.sink("out", p.add(reads_letters, p.add(hands_on, p.source("t", {"s": str})), name="late"))
    where = "operator 'reads_letters' in vertex 'late' of.*do it in a vertex with event= that reads"
    with pytest.raises(ss.CompileError, match=where):
        ss.Engine(p)


# ---- tables ----


def two_sources() -> ss.Pipeline:
    p = ss.Pipeline("two")
    left = p.source("left", {"x": int, "s": str})
    right = p.source("right", {"x": int, "y": float, "n": ss.nullable(int)})
    p.sink("joined", p.add(both, a=left, b=right))
    p.sink("right", right)
    return p


LEFT = pa.table({"time": [1, 4], "x": [10, 40], "s": ["a", "b"]})
RIGHT = pa.table({"time": [2, 3, 4], "x": [2, 3, 4], "y": [0.5, 1.5, 2.5], "n": [None, 7, 8]})


def test_tables_by_source_and_by_sink() -> None:
    p = two_sources()
    tables = {"left": LEFT, "right": RIGHT}
    expected = p.run_sequential(tables, order_by="time")
    with ss.Engine(p) as engine:
        found = engine.process(tables, order_by="time")
    assert list(found) == ["joined", "right"]
    for name, table in expected.output.items():
        assert found[name].equals(table)
    assert found["right"].to_pydict() == RIGHT.drop_columns("time").to_pydict()
    # The events of the left source come first at equal times, as they are given first.
    rows = [tuple(row.values()) for row in found["joined"].to_pylist()]
    assert rows == [(7, 0.5, "one", 7), (36, 1.5, "one", 8)]


def test_a_source_may_have_no_events_and_so_no_types() -> None:
    p = two_sources()
    tables = {"left": {"time": [], "x": [], "s": []}, "right": RIGHT}
    found = p.run_sequential(tables, order_by="time").output
    assert found["right"].to_pydict() == RIGHT.drop_columns("time").to_pydict()
    with ss.Engine(p) as engine:
        assert engine.process(tables, order_by="time")["right"].equals(found["right"])


def test_one_table_for_all_sources() -> None:
    p = two_sources()
    whole = pa.table(
        {
            "stream": ["right", "left"],
            "left.x": [None, 1],
            "left.s": [None, "a"],
            "right.x": pa.array([5, None], pa.int64()),
            "right.y": [0.5, None],
            "right.n": pa.array([None, None], pa.int64()),
        }
    )
    expected = p.run_sequential(whole)
    assert expected.output["right"].num_rows == 1
    with ss.Engine(p) as engine:
        assert engine.process(whole)["joined"].equals(expected.output["joined"])


@pytest.mark.parametrize(
    ("given", "order_by", "match"),
    [
        ({"left": LEFT, "right": RIGHT}, None, "2 sources have no common order: give order_by="),
        ({"left": LEFT, "up": RIGHT}, "time", "events of 'up', which is none of its sources"),
        (
            {"left": LEFT, "right": RIGHT.set_column(0, "time", pa.array([0.5, 1.5, 2.5]))},
            "time",
            "column 'time' has several types, int64 from 'left', double from 'right'",
        ),
        ({"left": RIGHT}, "time", "source 'left': the batch has no column 's'"),
        (
            {"left": {"x": [1], "s": [None]}},
            None,
            "source 'left': column 's' has 1 null.* row 0 of source 'left'",
        ),
    ],
)
def test_tables_that_do_not_fit(given: Any, order_by: str | None, match: str) -> None:
    p = two_sources()
    with pytest.raises(ss.InputError, match=match):
        p.run_sequential(given, order_by=order_by)
    with ss.Engine(p) as engine, pytest.raises(ss.InputError, match=match):
        engine.process(given, order_by=order_by)


@pytest.mark.parametrize(
    ("right", "match"),
    [
        (
            {"y": [0.5, None, None]},
            r"source 'right': column 'y' has 2 null.*row 1 of source",
        ),
        ({"time": [2, 3, None]}, r"column 'time' has 1 null.*first in row 2 of source 'right'"),
        ({"y": [1, 2, 2**60 + 1]}, r"source 'right': column 'y' .* does not fit .*row 2 of source"),
        ({"y": [0.5, 1, "c"]}, r"row 2 of source 'right': column 'y' is 'c'; expected float"),
        (
            {"y": pa.array(["a", "b", "c"])},
            r"source 'right': column 'y' has type string.* declares float:",
        ),
    ],
)
def test_rows_that_do_not_fit_are_counted_by_source(right: dict[str, Any], match: str) -> None:
    p = two_sources()
    tables = {"left": LEFT, "right": RIGHT.to_pydict() | right}
    with pytest.raises(ss.InputError, match=match):
        p.run_sequential(tables, order_by="time")
    with ss.Engine(p) as engine, pytest.raises(ss.InputError, match=match):
        engine.process(tables, order_by="time")


def test_tables_of_sources_keep_their_types() -> None:
    p = two_sources()
    left = LEFT.set_column(2, "s", LEFT["s"].combine_chunks().dictionary_encode())
    tables = {"left": left, "right": RIGHT.set_column(2, "y", pa.array([1, 2, 3], pa.int8()))}
    plain = {"left": LEFT, "right": RIGHT.set_column(2, "y", pa.array([1.0, 2.0, 3.0]))}
    expected = p.run_sequential(plain, order_by="time").output
    found = p.run_sequential(tables, order_by="time").output
    assert all(found[name].equals(table) for name, table in expected.items())


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"x": 1}, r"source 'right': column 'y' gets None: give it a value"),
        ({"x": 1, "y": None}, r"source 'right': column 'y' gets None: give it a value"),
        ({"x": 1, "y": "a"}, r"source 'right': column 'y' gets 'a'; the operator declares float"),
        ({"x": 1, "y": 0.5, "z": 1}, r"source 'right': .* a value for 'z'.*it declares x, y, n$"),
    ],
)
def test_one_event_that_does_not_fit(given: dict[str, Any], match: str) -> None:
    with ss.Engine(two_sources()) as engine:
        with pytest.raises(ss.InputError, match=match):
            engine.submit_event(1, "right", **given)
        engine.submit_event(1, "right", x=1, y=0.5, n=None)
        engine.advance("left")
        engine.advance("right")
        rows = engine.poll(timeout=5)
        assert rows["right"].to_pylist() == [{"x": 1, "y": 0.5, "n": None}]


def test_a_row_of_no_source_is_rejected() -> None:
    p = two_sources()
    whole = {
        "stream": ["left", "up"],
        "left.x": [1, 2],
        "left.s": ["a", "b"],
        "right.x": pa.nulls(2, pa.int64()),
        "right.y": pa.nulls(2, pa.float64()),
        "right.n": pa.nulls(2, pa.int64()),
    }
    with pytest.raises(ss.InputError, match="column 'stream' has 'up' in row 1; expected left, r"):
        p.run_sequential(whole)
    with ss.Engine(p, rejected_rows="side") as engine:
        engine.process(whole)
        rejected = engine.rejected_rows()
        assert rejected is not None
        assert rejected["reason"].to_pylist() == ["column 'stream' names no source"]


def test_the_rows_of_a_call_that_was_cut_short_are_by_sink() -> None:
    p = ss.Pipeline("p")
    ticks = p.source("ticks", {"x": int})
    p.sink("out", p.add(failing, ticks))
    p.sink("ticks", ticks)
    with ss.Engine(p, threads=1, horizon=0) as engine, pytest.raises(ValueError, match="four") as e:
        engine.process({"x": [1, 2, 4, 2]})
    partial = e.value.specstream_partial  # type: ignore[attr-defined]
    assert partial.consumed == 2
    counts = {name: table.num_rows for name, table in partial.output.items()}
    assert counts == {"out": 2, "ticks": 2}


def test_state_by_vertex() -> None:
    p = ss.Pipeline("p")
    p.sink("out", p.add(always, p.source("ticks", SOURCE), name="first"))
    with ss.Engine(p, initial={"first.count": 5}) as engine:
        engine.process({"x": [1], "y": [2.0], "s": ["a"], "n": [None]})
        assert engine.state.first.count == 6
        assert dir(engine.state.first) == ["count", "last"]
        assert engine.state.first.to_dict() == {"count": 6, "last": 2.0}
        assert repr(engine.state.first) == "first(count=6, last=2.0)"
        with pytest.raises(AttributeError, match=r"no field 'first\.total'"):
            _ = engine.state.first.total
        with pytest.raises(AttributeError, match="no field 'second'"):
            _ = engine.state.second


def test_inputs_may_be_called_like_the_parameters_of_add() -> None:
    @ss.operator(state=Sum, inputs={"operator": {"x": int}, "self": {"x": int}}, emits={"sum": int})
    def added(state, event, emit):
        emit(event.operator.x + event.self.x)

    p = ss.Pipeline("p")
    ticks = p.source("ticks", {"x": int})
    p.sink("rows", p.add(added, operator=ticks, self=ticks))
    assert p.run_sequential({"x": [2]}).output["sum"].to_pylist() == [4]
