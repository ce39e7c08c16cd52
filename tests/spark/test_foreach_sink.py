"""Rows given to a writer: once, if it stores the batch id with them, and as Spark gives them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import specstream as ss

pytest.importorskip("pyspark")


def rows(*counts: int) -> pa.Table:
    return pa.table({"count": pa.array(counts, pa.int64())})


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
