"""Spark's progress with the figures of the engines; and never at the expense of a query."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import specstream as ss

pyspark = pytest.importorskip("pyspark")

WAIT_SECONDS = 120
FILES, ROWS = 3, 40


class Sum(ss.State):
    total = ss.scalar(int)


@ss.operator(state=Sum, event={"x": int}, emits={"total": int})
def running_total(state, event, emit):
    state.total += event.x
    emit(state.total)


@ss.operator(state=Sum, event={"x": int}, emits={"x": int})
def every_other(state, event, emit):
    state.total += 1
    if state.total % 2 == 0:
        emit(event.x)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    directory = tmp_path / "events"
    directory.mkdir()
    for number in range(FILES):
        at = np.arange(number * ROWS, (number + 1) * ROWS)
        path = directory / f"{number}.parquet"
        pq.write_table(pa.table({"time": at, "x": at}), path)
        os.utime(path, (1_000_000_000 + number,) * 2)
    return directory


def until(done: Callable[[], bool]) -> None:
    """Spark tells of a batch some time after it."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start(session: Any, files: Path, callback: Any, checkpoint: Path) -> Any:
    schema = session.read.parquet(str(files)).schema
    return (
        session.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(files))
        .writeStream.foreachBatch(callback)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def discard(table: pa.Table, batch_id: int) -> None:
    pass


def test_each_batch_of_two_queries_at_once_is_told_with_its_own_figures(
    session: Any, files: Path, tmp_path: Path
) -> None:
    records: list[dict[str, Any]] = []
    with (
        ss.Engine(running_total, threads=1) as first,
        ss.Engine(every_other, threads=1) as second,
        ss.Engine(running_total, threads=1) as third,
    ):
        alone = ss.spark.foreach_batch(first, order_by="time", to=discard)
        pair = [ss.spark.foreach_batch(e, order_by="time", to=discard) for e in (second, third)]

        def both(frame: Any, batch_id: int) -> None:
            for feed in pair:
                feed(frame, batch_id)

        listener = ss.spark.watch(session, records.append)
        queries = [
            start(session, files, alone, tmp_path / "a"),
            start(session, files, both, tmp_path / "b"),
        ]
        for query in queries:
            query.awaitTermination()
        until(lambda: len([r for r in records if r["numInputRows"]]) == 2 * FILES)
        listener.close()
    for query, operators in zip(
        queries, (["running_total"], ["every_other", "running_total"]), strict=True
    ):
        mine = [r for r in records if r["id"] == query.id and r["numInputRows"]]
        assert [record["batchId"] for record in mine] == list(range(FILES))
        assert {record["runId"] for record in mine} == {query.runId}
        for number, record in enumerate(mine):
            assert record["durationMs"]["addBatch"] >= 0, "Spark's own progress is all there"
            assert [figures["operator"] for figures in record["specstream"]] == operators
            for figures in record["specstream"]:
                rows = ROWS if figures["operator"] == "running_total" else ROWS // 2
                assert figures["batch"]["events"] == figures["batch"]["engine"]["events"] == ROWS
                assert figures["batch"]["rows"] == rows
                assert figures["feed"]["events"] == (number + 1) * ROWS
                assert figures["engine"]["events"] == (number + 1) * ROWS
                assert figures["engine"]["reached"] == (number + 1) * ROWS - 1
    assert json.loads(json.dumps(records)) == records


def test_a_callback_that_raises_costs_the_record_and_not_the_query(
    session: Any, files: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(record: dict[str, Any]) -> None:
        raise SystemExit("disk full")

    lines = tmp_path / "progress.jsonl"
    with ss.Engine(running_total, threads=1) as engine:
        feed = ss.spark.foreach_batch(engine, order_by="time", to=discard)
        with caplog.at_level(logging.ERROR, "specstream.spark"):
            listeners = [ss.spark.watch(session, broken), ss.spark.watch(session, lines)]
            query = start(session, files, feed, tmp_path / "a")
            query.awaitTermination()
            assert query.exception() is None
            until(lambda: listeners[1].records >= FILES)
            until(lambda: listeners[0].error is not None)
            # Started again it is another run of the same query, and has nothing to do.
            again = start(session, files, feed, tmp_path / "a")
            again.awaitTermination()
        assert engine.state.total == sum(range(FILES * ROWS))
    for listener in listeners:
        listener.close()
    assert isinstance(listeners[0].error, SystemExit)
    assert listeners[0].records == 0
    assert len(caplog.records) == 1, "said once, and not for each batch"
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    told = [r["batchId"] for r in records if r["runId"] == query.runId and r["specstream"]]
    assert told == list(range(FILES))
    assert not any(r["specstream"] for r in records if r["runId"] == again.runId)


def test_records_go_to_a_function_a_file_or_a_logger_only(session: Any, tmp_path: Path) -> None:
    with pytest.raises(ss.ConfigurationError, match="function of one record"):
        ss.spark.watch(session, 7)
    with pytest.raises(FileNotFoundError):
        ss.spark.watch(session, tmp_path / "missing" / "progress.jsonl")
    ss.spark.watch(session, logging.getLogger("mine")).close()
