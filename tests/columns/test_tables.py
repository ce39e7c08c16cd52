"""Tables of other libraries and lists of rows are read as the Arrow table of the same rows."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import specstream as ss
from specstream.columns.tables import as_table, one_array


class Counted(ss.State):
    n = ss.scalar(int)


TIMES = [datetime.datetime(2026, 1, 1, hour, tzinfo=datetime.UTC) for hour in (1, 2, 3)]
COLUMNS: dict[str, list[Any]] = {
    "t": TIMES,
    "i": [1, -2, 3],
    "f": [0.5, float("nan"), -0.0],
    "b": [True, False, True],
    "s": ["x", "häh", ""],
    "o": [None, 7, None],
}


@ss.operator(
    state=Counted,
    event={"t": datetime.datetime, "i": int, "f": float, "b": bool, "s": str, "o": int | None},
    emits={"t": datetime.datetime, "i": int, "f": float, "b": bool, "s": str, "o": int | None},
)
def echo(state, event, emit):
    state.n += 1
    emit(event.t, event.i, event.f, event.b, event.s, None if event.is_null("o") else event.o)


@dataclasses.dataclass
class Row:
    t: datetime.datetime
    i: int
    f: float
    b: bool
    s: str
    o: int | None


class Named(NamedTuple):
    t: datetime.datetime
    i: int
    f: float
    b: bool
    s: str
    o: int | None


class OneBatch:
    """What speaks the interface of arrays, not that of streams."""

    def __arrow_c_array__(self, requested: object = None) -> Any:
        return pa.RecordBatch.from_pydict(COLUMNS).__arrow_c_array__(requested)


def rows() -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]


def of_duckdb() -> Any:
    events = pa.table(COLUMNS)  # which the query finds by its name
    return duckdb.connect().sql("select * from events") if events else None


FORMS: dict[str, Callable[[], Any]] = {
    "table": lambda: pa.table(COLUMNS),
    "batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "reader": lambda: pa.table(COLUMNS).to_reader(max_chunksize=2),
    "array interface": OneBatch,
    "polars": lambda: pl.DataFrame(COLUMNS),
    "duckdb": of_duckdb,
    "pandas": lambda: pd.DataFrame(COLUMNS).astype({"o": "Int64"}),
    "columns of pandas": lambda: dict(pd.DataFrame(COLUMNS).astype({"o": "Int64"})),
    "columns": lambda: COLUMNS,
    "dicts": rows,
    "without what is null": lambda: [
        {name: value for name, value in row.items() if value is not None} for row in rows()
    ],
    "dataclass": lambda: [Row(**row) for row in rows()],
    "named tuples": lambda: tuple(Named(**row) for row in rows()),
    "mixed": lambda: [rows()[0], Row(**rows()[1]), Named(**rows()[2])],
}


def processed(table: Any) -> pa.Table:
    with ss.Engine(echo, threads=2) as engine:
        return engine.process(table, order_by="t")


def submitted(table: Any) -> pa.Table:
    with ss.Engine(echo, threads=2) as engine:
        engine.submit(table, order_by="t")
        engine.advance(0)
        return engine.poll(timeout=None)


def sequential(table: Any) -> pa.Table:
    return echo.run_sequential(table, order_by="t").output


@pytest.mark.parametrize("run", [processed, submitted, sequential])
@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_every_form_is_read_as_the_table_of_the_same_rows(
    form: Callable[[], Any], run: Callable[[Any], pa.Table]
) -> None:
    expected = echo.run_sequential(pa.table(COLUMNS)).output
    assert repr(run(form()).to_pydict()) == repr(expected.to_pydict())


def test_a_nan_of_pandas_is_a_number_in_a_frame_and_in_a_column() -> None:
    frame = pd.DataFrame({"x": [1.0, float("nan")]})
    for form in (frame, {"x": frame["x"]}):
        read = as_table(form, "operator")["x"]
        assert read.null_count == 0
        assert math.isnan(read[1].as_py())


def test_in_objects_of_pandas_a_nan_is_a_number_among_floats_and_missing_among_strings() -> None:
    @ss.operator(
        event={"x": ss.nullable(float), "s": ss.nullable(str), "n": ss.nullable(int)},
        emits={"x": bool, "s": bool, "n": bool},
    )
    def which(event: Any, emit: Any) -> None:
        emit(event.x is None, event.s is None, event.n is None)

    missing = [None, math.nan]
    columns = {"x": [1.5, *missing], "s": ["a", *missing], "n": [7, *missing]}
    frame = pd.DataFrame({name: pd.Series(of, dtype=object) for name, of in columns.items()})
    with ss.Engine(which) as engine:
        found = engine.process(frame).to_pydict()
    assert found == {"x": [False, True, False], "s": [False, True, True], "n": [False, True, True]}


@pytest.mark.parametrize("run", [processed, submitted, sequential])
@pytest.mark.parametrize("nothing", [[], (), pl.DataFrame(COLUMNS).head(0)])
def test_of_no_rows_nothing_comes(run: Callable[[Any], pa.Table], nothing: Any) -> None:
    assert run(nothing).num_rows == 0


@pytest.mark.parametrize("keys", [False, True])
def test_a_source_column_of_no_rows_has_no_type(keys: bool) -> None:
    nothing: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, "from")}
    rows = pa.table(COLUMNS).append_column("from", pa.array(["a"] * len(COLUMNS["i"])))
    with ss.Engine(echo, keys=keys) as engine:
        assert engine.process(nothing, order_by="t", source="from").num_rows == 0
        assert engine.process(rows, order_by="t", source="from").num_rows == rows.num_rows
        engine.submit(nothing, order_by="t", source_column="from")
    assert echo.run_sequential(nothing, order_by="t", source="from").output.num_rows == 0


class Broken:
    def __arrow_c_stream__(self, requested: object = None) -> object:
        raise RuntimeError("the connection was closed")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([{"i": 1}, 2], "row 1 of the list is 2, which does not name its columns; expected"),
        ([(1, 2.0)], r"row 0 of the list is \(1, 2\.0\), which does not name"),
        (Row(**rows()[0]), "got Row; expected a table of pyarrow"),
        (Named(**rows()[0]), "got Named; expected a table of pyarrow"),
        (iter([]), "got list_iterator; expected"),
        (pl.DataFrame(COLUMNS).lazy(), r"LazyFrame of polars, .* before \.collect\(\)"),
        (pl.Series("i", [1, 2]), "the Series gives no table"),
        (Broken(), "the Broken gives no table .*the connection was closed"),
        ([{"i": 1}, {"i": "a"}], "row 1: column 'i' is 'a'; expected int"),
        ([{1: 1}], "the columns are no table"),
    ],
)
def test_what_is_no_table_is_refused_with_what_it_is(table: Any, message: str) -> None:
    with pytest.raises(ss.InputError, match=f"(?s)operator 'echo': .*{message}"):
        echo.run_sequential(table)


def test_a_row_that_lacks_a_column_is_named_by_its_place() -> None:
    with pytest.raises(ss.InputError, match=r"column 'i' has 1 null.*first in row 1"):
        echo.run_sequential([rows()[0], {**rows()[1], "i": None}])


@ss.operator(event={"k": str, "x": ss.nullable(int)}, emits={"k": str, "x": int})
def passes(event, emit):
    emit(event.k, -1 if event.x is None else event.x)


def test_what_rows_of_a_list_lack_does_not_depend_on_the_other_rows() -> None:
    rows: list[dict[str, Any]] = [{"k": "a", "t": 1}, {"k": "b", "x": 1, "t": 2}, {"t": 3}]
    expected = [{"k": "a", "x": -1}, {"k": "b", "x": 1}]
    reason = "column 'k' is null"
    for parts in ([rows], [[row] for row in rows], [rows[:1], rows[1:]]):
        with ss.Engine(passes, rejected_rows="side") as engine:
            found = [row for part in parts for row in engine.process(part).to_pylist()]
            aside = engine.rejected_rows()
        assert found == expected
        assert aside is not None
        assert [(row["t"], row["reason"]) for row in aside.to_pylist()] == [(3, reason)]
        with ss.Engine(passes, rejected_rows="side") as engine:
            for part in parts:
                engine.submit(part, order_by="t")
            engine.advance(0)
            assert engine.poll(timeout=None).to_pylist() == expected
            assert engine.stats.rejected_rows == 1
    assert passes.run_sequential(rows[:1]).output.to_pylist() == expected[:1]
    with ss.Engine(passes) as engine:
        lacking: list[list[dict[str, int]]] = [[{}], [{"x": 1}], [{}, {}]]
        for empty in lacking:
            with pytest.raises(
                ss.InputError, match=r"row 0 (has no|on, has a) value of column 'k'"
            ):
                engine.process(empty)
        with pytest.raises(ss.InputError, match="column 'when' has 1 null"):
            engine.process(rows[:1], order_by="when")
        # Of a table it is the column that is missing.
        for table in ({"k": ["a"]}, pa.table({"k": ["a"]})):
            with pytest.raises(ss.InputError, match="no column 'x'; it has k: rename or add"):
                engine.process(table)


def test_what_rows_of_a_source_lack_is_null() -> None:
    pipeline = ss.Pipeline("two")
    one = pipeline.source("one", {"k": str, "x": ss.nullable(int)})
    two = pipeline.source("two", {"k": str, "x": ss.nullable(int)})
    pipeline.sink("ones", pipeline.add(passes, one, name="first"))
    pipeline.sink("twos", pipeline.add(passes, two, name="second"))
    with ss.Engine(pipeline) as engine:
        given = {"one": [{"k": "a", "t": 1}], "two": [{"k": "b", "t": 2}]}
        found = engine.process(given, order_by="t")
        with pytest.raises(ss.InputError, match="column 'k' has 1 null"):
            engine.process({"one": [{"t": 1}]}, order_by="t")
    assert found["ones"].to_pylist() == [{"k": "a", "x": -1}]
    assert found["twos"].to_pylist() == [{"k": "b", "x": -1}]


LONG = "a text of more than twelve bytes"
VIEW = pa.string_view()


@pytest.mark.parametrize(
    "texts",
    [
        pa.array(["a", LONG, LONG, "a"], VIEW),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0]), pa.array(["a", LONG, None], VIEW)),
    ],
)
def test_rows_are_taken_out_of_views(texts: pa.Array) -> None:
    table = pa.table(
        {
            "k": texts,
            "x": [1, 2, 3, 4],
            "t": pa.array([1, None, 3, 4]),
            "octets": pa.array([b"a", LONG.encode(), b"", b"c"], pa.binary_view()),
            "lists": pa.array([["a"], [LONG], None, [None]], pa.list_(VIEW)),
        }
    )
    with ss.Engine(passes, rejected_rows="side") as engine:
        output = engine.process(table, order_by="t")
        restored = ss.Engine(passes, rejected_rows="side", restore=engine.snapshot())
    assert output["k"].to_pylist() == ["a", LONG, "a"]
    with restored:
        aside = restored.rejected_rows()
    assert aside is not None
    assert aside.drop(["reason"]).to_pylist() == table.slice(1, 1).to_pylist()
    for late in ("drop", "side"):
        with ss.Engine(passes, late=late, rejected_rows="side") as engine:
            engine.advance(0, 3)
            engine.submit(table, order_by="t")
            engine.advance(0)
            assert engine.poll(timeout=None)["k"].to_pylist() == [LONG, "a"]
            below = engine.late()
        if late == "side":
            assert below is not None
            assert below.to_pylist() == table.slice(0, 1).to_pylist()


def test_dictionaries_of_views_with_nulls_and_many_values() -> None:
    def encoded(at: Any, values: list[str | None]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(at, pa.int8()), pa.array(values, VIEW))

    nulls = pa.chunked_array([encoded([0, 1], ["a", None]), encoded([0, None, 1], [None, LONG])])
    many = pa.chunked_array(
        [encoded(range(100), [f"{letter}{at}" for at in range(100)]) for letter in "ab"]
    )

    @ss.operator(event={"k": ss.nullable(str)}, emits={"k": ss.nullable(str)})
    def same(event, emit):
        emit(event.k)

    with ss.Engine(same) as engine:
        for column in (nulls, many):
            found = engine.process(pa.table({"k": column}))["k"].to_pylist()
            assert found == column.to_pylist()


def test_views_are_put_out_of_order() -> None:
    table = pa.table({"t": [1, 2, 3], "k": pa.array(["a", LONG, ""], VIEW)})
    found = ss.testing.shuffled(table, order_by="t", disorder=3, seed=1)
    assert found.sort_by("t")["k"].to_pylist() == ["a", LONG, ""]


@pytest.mark.parametrize(
    "of",
    [pa.string_view(), pa.decimal128(10, 2), pa.date32(), pa.timestamp("us", "UTC"), pa.int64()],
    ids=str,
)
@pytest.mark.parametrize("chunks", [0, 1])
def test_a_dictionary_column_without_rows_is_one_of_no_rows(of: pa.DataType, chunks: int) -> None:
    empty = pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), pa.array([], of))
    array = one_array(pa.chunked_array([empty] * chunks, empty.type))
    assert len(array) == 0
