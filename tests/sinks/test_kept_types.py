"""A column that changes its type over a restart: sinks refuse it where values would change."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import decimal
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.sinks.postgres import Server
from support.sinks.postgres_dbapi import connect

import specstream as ss
from specstream.engine.early_results import EarlyAnswer
from specstream.sinks.kept_types import as_kept, kind_of

SINKS = ["delta", "early_delta", "sqlite", "parquet"]
WITH_SERVER = [*SINKS, *(pytest.param(n, marks=pytest.mark.slow) for n in ("postgres", "early_pg"))]
DAY = datetime.date(2026, 1, 5)
NOON = datetime.datetime(2026, 1, 5, 12)


class Kept:
    """A sink of one kind, made anew for each batch as a restart makes it."""

    def __init__(self, name: str, path: Path, server: Server | None) -> None:
        self.name, self.path, self.server = name, path, server
        self.table = f"kept_{abs(hash(path))}"

    def write(self, rows: pa.Table, batch_id: int) -> None:
        if not self.name.startswith(("early", "sqlite")):
            self._sink()(rows, batch_id)
            return
        count = rows.num_rows
        key = {"timestamp": [batch_id] * count, "source": ["a"] * count}
        key |= {"sequence": list(range(count)), "n": [0] * count, "version": [1 + batch_id] * count}
        for column, values in key.items():
            rows = rows.append_column(column, pa.array(values))
        rows = rows.append_column("change", pa.array(["final"] * count))
        self._sink().apply(EarlyAnswer(rows, None, None, False, 1 + batch_id), batch_id)

    def _sink(self) -> Any:
        if self.name == "delta":
            return ss.sinks.delta_sink(self.path, app_id="q")
        if self.name == "parquet":
            return ss.sinks.parquet_sink(self.path)
        if self.name == "early_delta":
            return ss.sinks.early_delta_sink(self.path)
        if self.name == "sqlite":
            return ss.sinks.early_database_sink(lambda: sqlite3.connect(self.path), "kept")
        assert self.server is not None
        uri = self.server.uri
        if self.name == "postgres":
            return ss.sinks.postgres_sink(uri, self.table)
        return ss.sinks.early_database_sink(lambda: connect(uri), self.table, placeholder="%s")

    def read(self) -> list[Any]:
        """The values of column ``y``."""
        if self.name == "postgres":
            assert self.server is not None
            return [row[0] for row in self.server.rows(f"SELECT y FROM {self.table}")]
        if self.name == "delta":
            import deltalake

            return deltalake.DeltaTable(self.path).to_pyarrow_table()["y"].to_pylist()  # type: ignore[no-any-return]
        if self.name == "parquet":
            return ss.sinks.parquet_dataset(self.path).to_table()["y"].to_pylist()  # type: ignore[no-any-return]
        return ss.sinks.latest(self._sink())["y"].to_pylist()  # type: ignore[no-any-return]


@pytest.fixture(params=WITH_SERVER)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    if "delta" in request.param:
        pytest.importorskip("deltalake")
    of_server = request.param in ("postgres", "early_pg")
    return Kept(
        request.param,
        tmp_path / "kept",
        request.getfixturevalue("server") if of_server else None,
    )


VALUES: dict[str, list[Any]] = {
    "int": [2**53 + 1, 6],
    "float": [1.0, 2.5],
    "str": ["007", "true"],
    "bool": [True, False],
}
CHANGES = [(a, b) for a in VALUES for b in VALUES if a != b]


def test_a_column_of_another_kind_is_refused(kept: Kept) -> None:
    for before, after in CHANGES:
        kept.table += "_"
        kept.path = kept.path.with_name(f"{before}_{after}")
        kept.write(pa.table({"y": VALUES[before]}), 0)
        rows = pa.table({"y": VALUES[after]})
        with pytest.raises(
            ss.SinkError, match=r"batch 1: .*'y' is .*(, or give a new|another)"
        ) as e:
            kept.write(rows, 1)
        assert str(rows["y"].type) in str(e.value)
        assert Counter(kept.read()) == Counter(VALUES[before])
        # What was emitted before goes on, under the same batch.
        kept.write(pa.table({"y": VALUES[before]}), 1)
        assert Counter(kept.read()) == Counter(VALUES[before] * 2)


def test_a_column_that_is_new_or_null(kept: Kept) -> None:
    kept.write(pa.table({"y": [1]}), 0)
    kept.write(pa.table({"y": pa.nulls(1, pa.int64())}), 1)
    more = pa.table({"y": [2], "z": ["a"]})
    if kept.name == "parquet":
        kept.write(more, 2)
        assert kept.read() == [1, None, 2]
    else:
        with pytest.raises(ss.SinkError, match=r"batch 2: .*no column 'z' \(it has y[,)].*, or"):
            kept.write(more, 2)
        assert sorted(kept.read(), key=str) == [1, None]


@pytest.mark.parametrize("name", SINKS[:2])
def test_a_narrower_table_takes_the_values_that_it_holds(name: str, tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    kept = Kept(name, tmp_path / "kept", None)
    for batch_id, of in enumerate((pa.int32(), pa.int64())):
        kept.write(pa.table({"y": pa.array([batch_id], of)}), batch_id)
    with pytest.raises(ss.SinkError, match=r"'y' is int32 in the table, .*int64, with values"):
        kept.write(pa.table({"y": [2**31]}), 2)
    assert sorted(kept.read()) == [0, 1]


MISFITS = [
    (pa.array([2**53 + 1]), pa.float64()),
    (pa.array([0.1]), pa.float32()),
    (pa.array([300]), pa.int8()),
    (pa.array([decimal.Decimal("1.25")]), pa.decimal128(9, 1)),
    (pa.array([NOON], pa.timestamp("us")), pa.timestamp("us", "UTC")),
    (pa.array([DAY]), pa.timestamp("us")),
    (pa.array(["a"]), pa.binary()),
    (pa.array([[1]]), pa.list_(pa.string())),
    (pa.array([{"a": 1}]), pa.struct({"a": pa.string()})),
]
FITS = [
    (pa.array([0.5, float("nan"), None]), pa.float32()),
    (pa.array([-128, None]), pa.int8()),
    (pa.array([7]), pa.decimal128(38, 2)),
    (pa.array([decimal.Decimal("1.20")]), pa.decimal128(9, 1)),
    (pa.array([1, 1]).dictionary_encode(), pa.int8()),
    (pa.array(["a"], pa.large_string()), pa.string()),
    (pa.array([None], pa.string()), pa.int64()),
]


@pytest.mark.parametrize(("column", "of"), MISFITS, ids=str)
def test_what_a_type_does_not_hold_is_refused(column: pa.Array, of: pa.DataType) -> None:
    with pytest.raises(ss.SinkError, match=r"it: column 'y' is .* again, or give a new table"):
        as_kept(pa.table({"y": column}), {"y": of}, "it")


@pytest.mark.parametrize(("column", "of"), FITS, ids=str)
def test_what_a_type_holds_is_taken(column: pa.Array, of: pa.DataType) -> None:
    fitting = as_kept(pa.table({"y": column}), {"y": of}, "it")["y"]
    assert str(fitting.to_pylist()) == str(column.cast(of).to_pylist())
    if kind_of(of) in ("int", "float", "decimal") and column.null_count < len(column):
        assert fitting.type == of


class Counted(ss.State):
    n = ss.scalar(int)


def test_an_operator_that_was_changed_is_refused_at_the_restart(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")

    def number(state, event, emit):
        state.n += 1
        emit(event.x)

    def text(state, event, emit):
        state.n += 1
        emit("00" + str(event.x))

    def run(of: type, f: Any, *values: int) -> None:
        operator = ss.operator(state=Counted, event={"x": int}, emits={"y": of}, name="op")(f)
        for value in values:
            pq.write_table(pa.table({"x": [value]}), tmp_path / "in" / f"{value}.parquet")
        with ss.Engine(operator, horizon=0, threads=1) as engine:
            ss.sources.run(
                engine,
                ss.sources.dataset(str(tmp_path / "in")),
                to=ss.sinks.delta_sink(tmp_path / "rows", app_id="q"),
                checkpoint=tmp_path / "cp",
            )

    (tmp_path / "in").mkdir()
    run(int, number, 3)
    with pytest.raises(ss.SinkError, match="'y' is int64 in the table, and the rows have string"):
        run(str, text, 6)
    assert deltalake.DeltaTable(tmp_path / "rows").to_pyarrow_table()["y"].to_pylist() == [3]
