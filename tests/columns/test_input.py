"""Tables in: what is accepted, in which order it runs, and what is refused with which words."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import specstream as ss


class Last(ss.State):
    n = ss.scalar(int)


@ss.operator(
    state=Last,
    event={"i": int, "f": float, "b": bool, "s": str},
    emits={"i": int, "f": float, "b": bool, "s": str},
)
def echo(state, event, emit):
    state.n += 1
    emit(event.i, event.f, event.b, event.s)


@ss.operator(state=Last, event={"i": int}, emits={"i": int})
def pick(state, event, emit):
    emit(event.i)


@ss.operator(state=Last, event={"i": int}, emits={"i": int, "t": int})
def timed(state, event, emit):
    emit(event.i, event.timestamp)


COLUMNS = {"i": [1, -2], "f": [0.5, float("nan")], "b": [True, False], "s": ["x", "häh"]}


@pytest.mark.parametrize(
    "table",
    [
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
        pd.DataFrame(COLUMNS),
        {name: np.array(column) for name, column in COLUMNS.items()},
        pa.table(COLUMNS).cast(
            pa.schema(
                [("i", pa.int8()), ("f", pa.float32()), ("b", pa.bool_()), ("s", pa.large_string())]
            )
        ),
        pa.table({**COLUMNS, "s": pa.array(COLUMNS["s"]).dictionary_encode(), "more": [1, 2]}),
        pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
        pa.table(
            {
                "i": [9, 1, -2],
                "f": [9, 0.5, float("nan")],
                "b": [True, True, False],
                "s": ["z", "x", "häh"],
            }
        ).slice(1),
    ],
    ids=["table", "batch", "pandas", "dict", "narrow", "dictionary", "chunks", "slice"],
)
def test_every_form_of_a_table_is_read_the_same(table: object) -> None:
    with ss.Engine(echo, threads=2) as engine:
        output = engine.process(table)
    assert output["i"].to_pylist() == [1, -2]
    assert repr(output["f"].to_pylist()) == "[0.5, nan]"
    assert output["b"].to_pylist() == [True, False]
    assert output["s"].to_pylist() == ["x", "häh"]
    assert output.schema == echo.output_schema


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"i": None}, "no column 'i'; it has f, b, s: rename or add"),
        ({"i": [1.5, 2.0]}, "column 'i' has type double; the operator declares int: cast"),
        ({"i": ["a", "b"]}, "column 'i' has type string"),
        ({"f": [True, False]}, "column 'f' has type bool"),
        ({"b": [0, 1]}, "column 'b' has type int64; .* compare it"),
        ({"s": [1, 2]}, "column 's' has type int64"),
        ({"i": [1, None]}, "column 'i' has 1 null.*first in row 1: fill or drop"),
        ({"i": pa.array([2**64 - 1, 0], pa.uint64())}, "column 'i' of type uint64 does not fit"),
    ],
)
def test_a_column_that_does_not_fit_is_named(change: dict[str, object], message: str) -> None:
    columns = {name: column for name, column in {**COLUMNS, **change}.items() if column is not None}
    with ss.Engine(echo, horizon=0) as engine:
        with pytest.raises(ss.InputError, match=f"(?s)echo.*{message}"):
            engine.process(pa.table(columns))
        assert engine.state.n == 0
        engine.process(pa.table(COLUMNS))
        assert engine.state.n == 2


def test_the_largest_integer_of_an_unsigned_column_fits() -> None:
    largest = 2**63 - 1
    column = pa.array([largest, 0], pa.uint64())
    with ss.Engine(echo, horizon=0) as engine:
        assert engine.process({**COLUMNS, "i": column})["i"].to_pylist() == [largest, 0]


@pytest.mark.parametrize("table", [[1, 2], {"i": [1], "f": [1.0, 2.0]}, None, "path.parquet"])
def test_what_is_no_table_is_refused(table: object) -> None:
    with (
        ss.Engine(echo, horizon=0) as engine,
        pytest.raises(ss.InputError, match=r"dict of arrays|one length"),
    ):
        engine.process(table)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.array([1, 2], ">i8"), "column 'i' is big-endian.*newbyteorder"),
        (np.array([1, 2], ">u2"), "column 'i' is big-endian"),
        (np.array(["2020-01-01"], ">M8[us]"), "column 'i' is big-endian"),
        (np.array([1, 2], np.longdouble), "column 'i' is no column.*ndarray of"),
        (np.array([1, 2], complex), "column 'i' is no column"),
        (np.array(["2020-01"], "M8[M]"), "column 'i' is no column"),
        (np.zeros(2, [("a", int)]), "column 'i' is no column"),
        (np.zeros((2, 2), int), "column 'i' is no column"),
        (np.array(3), "column 'i' is no column"),
        ([2**70], "row 0: column 'i' is 1180591620717411303424, which does not fit"),
        ([1, "a"], "row 1: column 'i' is 'a'; expected int"),
        ([1, object()], "row 1: column 'i' is <object object"),
        (5, "column 'i' is no column"),
        (None, "column 'i' is no column"),
    ],
)
def test_what_arrow_cannot_hold_is_refused_with_its_column(column: object, message: str) -> None:
    with ss.Engine(pick, horizon=0) as engine:
        for run in (engine.process, pick.run_sequential):
            with pytest.raises(ss.InputError, match=message):
                run({"i": column})
            if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "iufc":
                with pytest.raises(ss.InputError, match=message):
                    run(pd.DataFrame({"i": pd.Series(column)}))
        with pytest.raises(ss.InputError, match="more than one column 'i'"):
            engine.process(pd.DataFrame([[1, 2]], columns=["i", "i"]))
        with pytest.raises(ss.InputError, match="the columns are no table"):
            engine.process({1: [1]})


@pytest.mark.parametrize(
    "times",
    [
        [3, 1, 2, 1, 3],
        [0.3, -1.5, 0.2, -1.5, 0.3],
        [float("inf"), -0.0, 1.0, 0.0, float("inf")],
        [datetime.datetime(2013, 1, 1, hour) for hour in (3, 1, 2, 1, 3)],
        [datetime.date(2013, 1, day) for day in (3, 1, 2, 1, 3)],
    ],
    ids=["int", "float", "special floats", "timestamp", "date"],
)
@pytest.mark.parametrize("sources", [["b", "b", "a", "a", "a"], [20, 20, 10, 10, 10]], ids=str)
def test_rows_run_in_the_order_of_time_source_position(
    times: list[object], sources: list[object]
) -> None:
    table = pa.table({"i": [0, 1, 2, 3, 4], "when": times, "who": sources})
    with ss.Engine(pick, threads=2, horizon=4, chunk=1, keys=True) as engine:
        output = engine.process(table, order_by="when", source="who")
    assert output["i"].to_pylist() == [3, 1, 2, 4, 0]
    assert output["sequence"].to_pylist() == [0, 1, 2, 3, 4]
    assert output["timestamp"].to_pylist() == [times[at] for at in (3, 1, 2, 4, 0)]
    assert output["source"].to_pylist() == [sources[at] for at in (3, 1, 2, 4, 0)]
    sequential = pick.run_sequential(table, order_by="when", source="who", keys=True)
    assert output.equals(sequential.output)


def test_equal_keys_keep_their_position() -> None:
    table = pa.table({"i": range(100), "when": [7] * 100})
    with ss.Engine(pick, threads=2, horizon=8, chunk=8) as engine:
        assert engine.process(table, order_by="when")["i"].to_pylist() == list(range(100))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, float("nan")], "order column 'when' has a NaN in row 1"),
        (["a", "b"], "order column 'when' has type string; expected integers, floats, timestamps"),
        ([1, None], "column 'when' has 1 null"),
    ],
)
def test_what_has_no_order_is_refused(column: list[object], message: str) -> None:
    with ss.Engine(pick, horizon=0) as engine, pytest.raises(ss.InputError, match=message):
        engine.process(pa.table({"i": [1, 2], "when": column}), order_by="when")


def test_a_missing_order_column_and_a_bad_source_are_named() -> None:
    with ss.Engine(pick, horizon=0) as engine:
        with pytest.raises(ss.InputError, match="no column 'when'"):
            engine.process({"i": [1]}, order_by="when")
        with pytest.raises(ss.InputError, match=r"source column 'who' is 0\.5; expected"):
            engine.process({"i": [1], "who": [0.5]}, source="who")


def test_the_timestamp_of_an_event() -> None:
    when = pa.array([5_000_000, 3_000_000], pa.timestamp("us"))
    with ss.Engine(timed, threads=2, horizon=8, chunk=1) as engine:
        assert engine.process({"i": [0, 1]})["t"].to_pylist() == [0, 1]
        output = engine.process(pa.table({"i": [2, 3], "when": when}), order_by="when")
        assert output["t"].to_pylist() == [3_000_000, 5_000_000]
        with pytest.raises(ss.InputError, match=r"goes by event\.timestamp.*double: cast it"):
            engine.process({"i": [0], "when": np.array([0.5])}, order_by="when")
        with pytest.raises(ss.InputError, match=r"row 0: .*'when' is 0\.5; .*event\.timestamp"):
            engine.process({"i": [0], "when": [0.5]}, order_by="when")


def test_a_string_that_was_never_met_comes_out_as_null() -> None:
    @ss.operator(state=Last, event={"s": str}, emits={"s": str})
    def previous(state, event, emit):
        emit(state.n)
        emit("literal")
        state.n = event.s

    with ss.Engine(previous, threads=2, horizon=8, chunk=1) as engine:
        output = engine.process({"s": ["a", "b"]})
    assert output["s"].to_pylist() == [None, "literal", "a", "literal"]


@pytest.mark.parametrize(
    ("values", "advised"),
    [([1, 1, 2], "decode it, pyarrow.compute.run_end_decode(x)"), (["a"], "then cast it to int64")],
)
def test_a_run_end_encoded_column_is_to_be_decoded(values: list[object], advised: str) -> None:
    encoded = pc.run_end_encode(pa.array(values))
    with ss.Engine(pick) as engine, pytest.raises(ss.InputError) as caught:
        engine.process(pa.table({"i": encoded}))
    assert str(caught.value).endswith(advised)
    with pytest.raises(ss.DeclarationError, match="declare it as what its values are"):
        ss.operator(state=Last, event={"i": encoded.type}, emits={"i": int})(
            lambda state, event, emit: None
        )
    decoded = pc.run_end_decode(encoded)
    if decoded.type == pa.int64():
        with ss.Engine(pick) as engine:
            assert engine.process(pa.table({"i": decoded})).to_pydict() == {"i": values}


@pytest.mark.parametrize(
    "values", [[[1]], [{"a": 1}], pa.array([datetime.time(1)], pa.time32("s"))], ids=str
)
def test_what_arrow_cannot_cast_nobody_is_told_to_cast(values: Any) -> None:
    with ss.Engine(pick) as engine, pytest.raises(ss.InputError) as caught:
        engine.process(pa.table({"i": values}))
    assert str(caught.value).endswith("make a column of int64 from it")


@pytest.mark.parametrize("role", ["order", "source"])
def test_a_null_in_what_events_go_by_is_not_to_be_declared(role: str) -> None:
    @ss.operator(event={"i": int, "at": ss.nullable(int)}, emits={"i": int})
    def passes(event: Any, emit: Any) -> None:
        emit(event.i)

    options: dict[str, Any] = (
        {"order_by": "at"} if role == "order" else {"order_by": "i", "source": "at"}
    )
    with ss.Engine(passes) as engine, pytest.raises(ss.InputError) as caught:
        engine.process({"i": [1, 2], "at": [1, None]}, **options)
    told = f"{role} column 'at' has 1 null(s), the first in row 1: fill or drop them before the "
    assert told in str(caught.value)
    assert "nullable" not in str(caught.value)


@pytest.mark.parametrize("asked", ["process", "run_sequential", "submit"])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"amont": 1}, {"amont": 2}], "none of 2 rows, from row 0 on, has a value of column"),
        ([{"amont": 1}], "row 0 has no value of column"),
        (pa.table({"amount": pa.nulls(3, pa.int64()), "amont": [1, 2, 3]}), "none of 3 rows"),
        (pa.table({"amount": pa.nulls(3), "amont": [1, 2, 3]}), "none of 3 rows"),
    ],
)
def test_a_column_that_no_row_has_may_be_called_otherwise(rows: Any, said: str, asked: str) -> None:
    @ss.operator(event={"amount": int}, emits={"amount": int})
    def passes(event: Any, emit: Any) -> None:
        emit(event.amount)

    def ask(engine: ss.Engine) -> None:
        if asked == "process":
            engine.process(rows)
        elif asked == "submit":
            table = pa.Table.from_pylist(rows) if isinstance(rows, list) else rows
            engine.submit(table.append_column("at", pa.array(range(len(rows)))), order_by="at")
        else:
            passes.run_sequential(rows)

    with ss.Engine(passes) as engine, pytest.raises(ss.InputError) as caught:
        ask(engine)
    message = str(caught.value)
    assert said in message or "the batch has no column 'amount'; it has amont, at" in message
    assert "(did you mean 'amont'?)" in message
    assert "rename or add" in message


def test_a_column_that_some_rows_have_is_told_by_its_nulls() -> None:
    @ss.operator(event={"x": int}, emits={"x": int})
    def passes(event: Any, emit: Any) -> None:
        emit(event.x)

    with ss.Engine(passes) as engine:
        with pytest.raises(ss.InputError, match=r"column 'x' has 1 null\(s\), the first in row 1"):
            engine.process([{"x": 1}, {"y": 2}])
        with pytest.raises(
            ss.InputError, match=r"no value for column 'x'; it has xs \(did you mean"
        ):
            engine.submit_event(1, xs=2)
    with ss.Engine(passes, rejected_rows="side") as engine:
        engine.process([{"y": 1}, {"y": 2}])
        rejected = engine.rejected_rows()
        assert rejected is not None
        assert rejected["reason"].to_pylist() == ["column 'x' is null"] * 2


@pytest.mark.parametrize("declared", [int, ss.nullable(int)])
def test_ints_that_pandas_has_made_floats_are_told_how_to_become_ints_again(declared: Any) -> None:
    @ss.operator(event={"x": ss.nullable(int)}, emits={"x": int})
    def passes(event: Any, emit: Any) -> None:
        emit(-1 if event.x is None else event.x)

    @ss.operator(event={"x": declared}, emits={"x": ss.nullable(int)})
    def looks(event: Any, emit: Any) -> None:
        emit(event.x)

    frame = pd.DataFrame({"x": [1, None, None]})
    with ss.Engine(looks) as engine, pytest.raises(ss.InputError) as caught:
        engine.process(frame)
    message = str(caught.value)
    assert "pandas makes floats of ints of which some are missing (2 here)" in message
    assert ("declare it ss.nullable(int)" in message) == (declared is int)
    # What it says works.
    with ss.Engine(passes) as engine:
        for mended in (frame.astype({"x": "Int64"}), frame.convert_dtypes()):
            assert engine.process(mended)["x"].to_pylist() == [1, -1, -1]
    with ss.Engine(looks) as engine:
        with pytest.raises(ss.InputError, match=r"cast it to int64(, or declare it float)?$"):
            engine.process(pd.DataFrame({"x": [1.0, 2.0]}))
        engine.process(frame.fillna(0).astype("int64"))


def test_the_index_of_a_frame_is_named_where_a_column_is_read() -> None:
    """It was only "no column", with the columns that there are."""
    pd = pytest.importorskip("pandas")

    @ss.operator(event={"x": int}, emits={"x": int})
    def same(event, emit):
        emit(event.x)

    frame = pd.DataFrame({"time": [1, 2], "x": [3, 4]}).set_index("time")
    with ss.Engine(same) as engine:
        said = r"'same': column 'time' is the index of the DataFrame, .* give df.reset_index\(\)"
        with pytest.raises(ss.InputError, match=said):
            engine.process(frame, order_by="time")
        assert engine.process(frame.reset_index(), order_by="time").num_rows == 2
        assert engine.process(frame).num_rows == 2
        both = frame.assign(time=[5, 6])  # a column that is called as the index is
        assert engine.process(both, order_by="time").num_rows == 2


def test_a_unit_of_times_without_a_column_of_times_is_warned_of() -> None:
    @ss.operator(event={"x": int}, emits={"at": int}, time_unit="us")
    def when(event, emit):
        emit(event.timestamp)

    with ss.Engine(when) as engine:
        with pytest.warns(
            UserWarning, match=r"declares time_unit='us' .* name the column of times"
        ):
            rows = engine.process({"x": [1, 2]})
        assert rows["at"].to_pylist() == [0, 1]


@pytest.mark.parametrize("values", [["a", "b", "a"], [1.5, 2.5, 1.5], "times", "days"])
def test_chunked_dictionaries_come_in_a_dict_as_in_a_table(values: Any) -> None:
    of = {"times": pa.timestamp("us", "UTC"), "days": pa.date32()}.get(str(values))
    given = pa.array([0, 7, 0], of) if of is not None else pa.array(values)
    parts = [given.slice(0, 1).dictionary_encode(), given.slice(1).dictionary_encode()]
    column = pa.chunked_array(parts)

    @ss.operator(event={"x": given.type}, emits={"x": given.type})
    def same(event, emit):
        emit(event.x)

    with ss.Engine(same) as engine:
        found = engine.process({"x": column})
        assert found["x"].to_pylist() == given.to_pylist()
        assert found.equals(engine.process(pa.table({"x": column})))


def test_a_missing_value_of_pandas_in_a_list_is_a_null() -> None:
    pd = pytest.importorskip("pandas")

    @ss.operator(event={"x": ss.nullable(int)}, emits={"x": bool})
    def same(event, emit):
        emit(event.is_null("x"))

    with ss.Engine(same) as engine:
        assert engine.process({"x": [1, pd.NA, 3]})["x"].to_pylist() == [False, True, False]
