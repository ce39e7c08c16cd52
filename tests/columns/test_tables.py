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
from specstream.columns.tables import as_table


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
