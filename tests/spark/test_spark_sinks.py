"""Sinks: whatever comes again changes nothing, and a failure says where it was."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

import specstream as ss

pytest.importorskip("pyspark")

import deltalake


def rows(*counts: int) -> pa.Table:
    return pa.table({"count": pa.array(counts, pa.int64())})


def delta_rows(path: Path) -> list[int]:
    return sorted(deltalake.DeltaTable(path).to_pyarrow_table()["count"].to_pylist())


# ---- Delta ----


def test_a_batch_that_comes_again_is_in_the_delta_table_once(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    sink = ss.spark.delta_sink(path, app_id="counts")
    sink(rows(), 0)
    assert delta_rows(path) == []
    for batch_id in (1, 1, 2, 3, 3):
        sink(rows(batch_id, 10 * batch_id), batch_id)
    # Another process, which knows nothing of the first.
    ss.spark.delta_sink(path, app_id="counts")(rows(3, 30), 3)
    assert delta_rows(path) == [1, 2, 3, 10, 20, 30]
    version = deltalake.DeltaTable(path).version()
    sink(rows(), 4)
    assert deltalake.DeltaTable(path).version() == version
    # What a crash leaves between the rows and the commit is no part of the table.
    (path / "part-torn.parquet").write_bytes(b"PAR1")
    assert delta_rows(path) == [1, 2, 3, 10, 20, 30]


WRITER = """
import sys, pyarrow as pa, specstream as ss
sink = ss.spark.delta_sink(sys.argv[1], app_id="counts")
for batch_id in range(1000):
    print(batch_id, flush=True)
    sink(pa.table({"count": [batch_id, -batch_id]}), batch_id)
"""


@pytest.mark.parametrize("last", [0, 7])
def test_a_writer_killed_in_a_batch_leaves_a_delta_table_to_go_on_from(
    tmp_path: Path, last: int
) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "rows")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == last:
                process.kill()
                break
        rest = [int(line) for line in process.stdout]
    assert process.returncode == -signal.SIGKILL
    # The batch that was under way, stored or not, comes again; those before it are acknowledged.
    under_way = rest[-1] if rest else last
    sink = ss.spark.delta_sink(tmp_path / "rows", app_id="counts")
    for batch_id in range(under_way, under_way + 3):
        sink(rows(batch_id, -batch_id), batch_id)
    expected = [sign * batch_id for batch_id in range(under_way + 3) for sign in (1, -1)]
    assert delta_rows(tmp_path / "rows") == sorted(expected)


def test_two_queries_append_to_one_delta_table(tmp_path: Path) -> None:
    first, second = (ss.spark.delta_sink(tmp_path, app_id=name) for name in ("one", "two"))
    first(rows(1), 0)
    second(rows(2), 0)
    second(rows(2), 0)
    assert delta_rows(tmp_path) == [1, 2]


def test_a_query_begun_anew_does_not_lose_its_rows_to_the_batches_of_the_last_one(
    tmp_path: Path,
) -> None:
    sink = ss.spark.delta_sink(tmp_path, app_id="counts")
    for batch_id in range(3):
        sink(rows(batch_id), batch_id)
    with pytest.raises(ss.SinkError, match=r"batch 0: the table has batch 2 of app_id='counts'"):
        sink(rows(7), 0)
    assert delta_rows(tmp_path) == [0, 1, 2]


def test_delta_partitions_and_types(tmp_path: Path) -> None:
    sink = ss.spark.delta_sink(tmp_path, app_id="counts", partition_by=["name"])
    table = pa.table(
        {
            "name": ["a b", "ä"],
            "time": pa.array([1000, 2000], pa.timestamp("ns")),
            "price": pa.array([1, 2], pa.decimal128(19, 2)),
        }
    )
    sink(table, 0)
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("name")
    assert found["time"].cast(pa.int64()).to_pylist() == [1, 2]
    assert found["price"].to_pylist() == table["price"].to_pylist()
    late = table.set_column(1, "time", pa.array([1001, 0], pa.timestamp("ns")))
    with pytest.raises(ss.SinkError, match=r"batch 1: .*lose data"):
        sink(late, 1)


def test_a_failing_sink_names_itself_and_the_batch(tmp_path: Path) -> None:
    delta = ss.spark.delta_sink(tmp_path / "delta", app_id="counts")
    delta(rows(1), 0)
    with pytest.raises(ss.SinkError, match=r"delta_sink\('.*/delta'\), batch 1: .*schema"):
        delta(pa.table({"other": ["x"]}), 1)
    parquet = ss.spark.parquet_sink(tmp_path / "parquet")
    parquet.file(7).mkdir()  # in the way
    with pytest.raises(ss.SinkError, match=r"parquet_sink\('.*'\), batch 7: .*directory") as caught:
        parquet(rows(1), 7)
    assert isinstance(caught.value.__cause__, OSError)


def test_delta_needs_a_name(tmp_path: Path) -> None:
    for bad in (3, "", None):
        with pytest.raises(ss.ConfigurationError, match=f"app_id={bad!r}: expected a name"):
            ss.spark.delta_sink(tmp_path, app_id=bad)
    with pytest.raises(ss.ConfigurationError, match="partition_by='day'; expected a list"):
        ss.spark.delta_sink(tmp_path, app_id="a", partition_by="day")


# ---- memory ----


def test_the_memory_sink_keeps_batches_in_their_order() -> None:
    sink = ss.spark.memory_sink("counts")
    assert sink.to_arrow().num_columns == 0
    for batch_id, count in ((0, 1), (2, 5), (1, 3), (2, 4)):
        sink(rows(count), batch_id)
    assert sink.to_arrow().equals(rows(1, 3, 4))
    assert list(sink.batches) == [0, 1, 2]
    with pytest.raises(ss.ConfigurationError, match="name='no view'"):
        ss.spark.memory_sink("no view")


# ---- foreach ----


class Store:
    """A writer that stores the rows of a batch with its id, in one transaction."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path, check_same_thread=False)
        self.database.execute("create table if not exists counts (count)")
        self.database.execute("create table if not exists batches (id primary key)")
        self.database.commit()

    def open(self, partition_id: int, batch_id: int) -> bool:
        assert partition_id == 0
        if self.database.execute("select 1 from batches where id = ?", [batch_id]).fetchone():
            return False
        self.database.execute("insert into batches values (?)", [batch_id])
        return True

    def process(self, row: Any) -> None:
        if row["count"] < 0:
            raise ValueError("a count below zero")
        self.database.execute("insert into counts values (?)", [row["count"]])

    def close(self, error: BaseException | None) -> None:
        if error is None:
            self.database.commit()
        else:
            self.database.rollback()


def test_a_writer_that_stores_the_batch_id_gets_every_row_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    sink = ss.spark.foreach_sink(store)
    sink(rows(1, 2), 0)
    with pytest.raises(ValueError, match="below zero") as caught:
        sink(rows(3, -1), 1)
    assert caught.value.__notes__ == ["foreach_sink(Store), batch 1, row 1"]
    store.database.close()
    # The process has ended; both batches come again.
    sink = ss.spark.foreach_sink(Store(tmp_path / "store"))
    for batch_id, table in ((0, rows(1, 2)), (1, rows(3, 4)), (1, rows(3, 4))):
        sink(table, batch_id)
    found = sqlite3.connect(tmp_path / "store").execute("select count from counts").fetchall()
    assert found == [(1,), (2,), (3,), (4,)]


def test_foreach_gives_rows_to_functions_and_tells_close_of_errors() -> None:
    seen: list[Any] = []
    ss.spark.foreach_sink(seen.append)(pa.table({"a": [1, 2], "b": ["x", None]}), 0)
    assert [(row.a, row.b) for row in seen] == [(1, "x"), (2, None)]

    class Closing:
        def __init__(self, failure: Exception) -> None:
            self.failure = failure
            self.closed: list[object] = []

        def open(self, partition_id: int, batch_id: int) -> bool:
            if batch_id == 1:
                raise self.failure
            return True

        def process(self, row: Any) -> None:
            raise self.failure

        def close(self, error: object) -> None:
            self.closed.append(error)

    failure = OSError("no connection")
    writer = Closing(failure)
    for batch_id in (0, 1):
        with pytest.raises(OSError, match="no connection"):
            ss.spark.foreach_sink(writer)(rows(1), batch_id)
    assert writer.closed == [failure]  # what was never opened is not closed
    with pytest.raises(ss.ConfigurationError, match="writer=3"):
        ss.spark.foreach_sink(3)


# ---- Parquet ----


def test_the_sink_writes_a_batch_once_whole_and_for_readers(tmp_path: Path) -> None:
    sink = ss.spark.parquet_sink(tmp_path / "deep" / "out")
    schema = pa.schema([("count", pa.int64())])
    sink(schema.empty_table(), 0)
    sink(pa.table({"count": [1, 2]}), 12)
    sink(pa.table({"count": [3]}), 12)
    assert sorted(path.name for path in sink.path.iterdir()) == [
        "part-00000000.parquet",
        "part-00000012.parquet",
    ]
    # What a crash in the middle of a write leaves is invisible, and gone after the replay.
    torn = sink.path / ".part-00000012.parquet.writing"
    torn.write_bytes(b"PAR1")
    read = pyarrow.dataset.dataset(sink.path, format="parquet").to_table()
    assert read.equals(pa.table({"count": [3]}))
    sink(pa.table({"count": [3]}), 12)
    assert not torn.exists()


def test_the_sink_refuses_what_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ss.ConfigurationError, match="'nowhere://bucket/rows' is no URI that"):
        ss.spark.parquet_sink("nowhere://bucket/rows")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ss.ConfigurationError, match="cannot be a directory"):
        ss.spark.parquet_sink(file)
