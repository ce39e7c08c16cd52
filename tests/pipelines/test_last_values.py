"""Last values of columns that may be null, and names that are taken."""

from __future__ import annotations

import pytest

import specstream as ss

NAME = {"name": ss.nullable(str), "size": ss.nullable(int)}
TOLD = {
    "name": ss.nullable(str),
    "none": bool,
    "empty": bool,
    "among": bool,
    "size": ss.nullable(int),
}


@ss.operator(inputs={"a": NAME, "b": {"x": int}}, emits=TOLD)
def tell(event, emit):  # type: ignore[no-untyped-def]
    name = event.a.name
    emit(name, name is None, name == "", name in ("", "q"), event.a.size)


class Rows(ss.State):
    rows = ss.scalar(int)


@ss.operator(state=Rows, event={"x": int}, emits={"x": int})
def count(state, event, emit):  # type: ignore[no-untyped-def]
    state.rows += 1
    emit(state.rows)


def told() -> ss.Pipeline:
    p = ss.Pipeline("told")
    p.sink("out", p.add(tell, a=p.source("a", NAME), b=p.source("b", {"x": int})))
    return p


NULL, EMPTY, TEXT = (None, True, False, False), ("", False, True, True), ("q", False, False, True)


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_last_value_that_was_null_is_null_and_no_empty_string(protocol: str) -> None:
    events = {
        "a": {"time": [2, 4, 6], "name": [None, "", "q"], "size": [None, 0, 7]},
        "b": {"time": [1, 3, 5, 7], "x": [0] * 4},
    }
    expected = [
        (*NULL, 0),  # a null number that is not asked for reads 0
        (*NULL, 0),
        (*NULL, 0),
        (*EMPTY, 0),
        (*EMPTY, 0),
        (*TEXT, 7),
        (*TEXT, 7),
    ]
    run = told().run_sequential(events, order_by="time")
    assert [tuple(row.values()) for row in run.output.to_pylist()] == expected
    with ss.Engine(told(), threads=2, horizon=4, chunk=1, protocol=protocol) as engine:
        assert engine.process(events, order_by="time").equals(run.output)
        # Over the end of a batch as well.
        again = engine.process({"b": {"time": [8], "x": [0]}}, order_by="time").to_pylist()
        assert tuple(again[0].values()) == (*TEXT, 7)


def test_a_source_may_not_be_called_like_the_column_that_names_sources() -> None:
    p = ss.Pipeline("named")
    p.sink("out", p.add(tell, a=p.source("a", NAME), b=p.source("stream", {"x": int})))
    with pytest.raises(ss.DeclarationError, match=r"a source is called 'stream', .*another name"):
        ss.Engine(p)


def test_a_table_of_one_source_may_have_a_column_of_that_name() -> None:
    with ss.Engine(told(), sources=["a", "b"]) as engine:
        engine.submit({"time": [1], "x": [3], "stream": [5]}, order_by="time", source="b")
        engine.submit_event(2, "a", name="q", size=1)
        engine.advance("a", 9)
        engine.advance("b", 9)
        rows = engine.poll(timeout=None)
    assert [row["name"] for row in rows.to_pylist()] == [None, "q"]


def test_counts_of_vertices_are_there_where_nothing_ran() -> None:
    run = told().run_sequential({"b": {"time": [], "x": []}}, order_by="time")
    assert run.vertices["tell"].runs == run.vertices["tell"].rows == 0


@pytest.mark.parametrize("name", [None, ""])
def test_a_pipeline_has_a_name(name: object) -> None:
    with pytest.raises(ss.DeclarationError, match="name="):
        ss.Pipeline(name)  # type: ignore[arg-type]


def test_the_path_of_an_error_has_a_number_for_each_level() -> None:
    row = {"x": int}

    @ss.operator(event=row, emits=row)
    def one(event, emit):  # type: ignore[no-untyped-def]
        emit(event.x)

    @ss.operator(event=row, emits=row)
    def split(event, emit):  # type: ignore[no-untyped-def]
        for number in range(event.x):
            emit(number)

    @ss.operator(event=row, emits=row)
    def invert(event, emit):  # type: ignore[no-untyped-def]
        emit(6 // (1 - event.x))

    for phases, path in (("event", "0, 1"), ("time", "0, 0, 1")):
        p = ss.Pipeline("levels", phases=phases)  # type: ignore[arg-type]
        p.sink("out", p.add(invert, p.add(split, p.add(one, p.source("s", row)))))
        with pytest.raises(ZeroDivisionError) as found:
            p.run_sequential({"time": [1], "x": [3]}, order_by="time")
        assert f"raised by vertex 'invert' of pipeline 'levels', path ({path})" in (
            found.value.__notes__
        )


def test_a_mistyped_source_is_refused_and_not_waited_for() -> None:
    with pytest.raises(
        ss.ConfigurationError, match=r"'bb' is none of the sources of .*\(it has a, b\)"
    ):
        ss.Engine(told(), sources=["a", "bb"])
    ss.Engine(told(), sources=["x", "y"]).close()  # told apart by another column
    with (
        ss.Engine(told(), sources=["a", "b"]) as engine,
        pytest.raises(
            ss.InputError, match="an event of 'zz', which is none of its sources: it has"
        ),
    ):
        engine.submit_event(1, "zz", x=1)


def test_a_vertex_that_is_gone_is_named_as_one() -> None:
    def numbered(name: str) -> ss.Pipeline:
        p = ss.Pipeline("numbered")
        p.sink("out", p.add(count, p.source("s", {"x": int}), name=name))
        return p

    with ss.Engine(numbered("first")) as engine:
        snapshot = engine.snapshot()
    with pytest.raises(
        ss.SnapshotError, match="field 'rows' of a vertex 'first', which the pipeline"
    ):
        ss.Engine(numbered("second"), restore=snapshot)
