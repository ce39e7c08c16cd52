"""Phases by time and real Spark: micro-batches that cut times in two, a watermark, a back-test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.commands import invoke
from support.pipelines.desk import assert_same_state, desk, tables, whole
from support.processes import TESTS

import specstream as ss

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException

SINKS = ("trades", "mixed")
FILES = 4


def by_time() -> ss.Pipeline:
    return desk(phases="time")


def events() -> dict[str, pa.Table]:
    """Of each source, with ties within it and between the two."""
    found = {}
    for name, table in tables(0, 90).items():
        times = pc.divide(table["time"], 4)
        at = table.column_names.index("time")
        found[name] = table.set_column(at, "time", times).sort_by("time")
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of each source; each file but the last ends in the midst of a time."""
    home = tmp_path_factory.mktemp("events")
    for name, table in events().items():
        (home / name).mkdir()
        size = -(-table.num_rows // FILES)
        for number in range(FILES):
            path = home / name / f"{number}.parquet"
            pq.write_table(table.slice(number * size, size), path)
            os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    return home


@pytest.fixture(scope="module")
def oracle() -> Any:
    found = by_time().run_sequential(events(), order_by="time")
    apart = desk().run_sequential(events(), order_by="time")
    assert not found.output["mixed"].equals(apart.output["mixed"])
    return found


def test_a_stream_with_a_watermark_that_is_started_again(
    session: Any, files: Path, oracle: Any, tmp_path: Path
) -> None:
    sinks = {name: ss.sinks.parquet_sink(tmp_path / name) for name in SINKS}

    def failing(table: pa.Table, batch_id: int) -> None:
        if batch_id == 2:
            raise OSError("the disk is full")
        sinks["mixed"](table, batch_id)

    def start(feed: Any) -> Any:
        frames = {
            name: session.readStream.schema(session.read.parquet(str(files / name)).schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(files / name))
            for name in ("ticks", "news")
        }
        query = ss.spark.union(frames, shared=["time"]).writeStream.foreachBatch(feed)
        query = query.option("checkpointLocation", str(tmp_path / "spark"))
        return query.trigger(availableNow=True).start()

    def feed_of(engine: ss.Engine, **more: Any) -> Any:
        return ss.spark.foreach_batch(
            engine, order_by="time", to={**sinks, **more}, watermark=5,
            sources=["news", "ticks"], checkpoint=tmp_path / "recorded", keep_batches=9,
        )  # fmt: skip

    with ss.Engine(by_time(), threads=2, horizon=4, chunk=2) as engine:
        feed = feed_of(engine, mixed=failing)
        with pytest.raises(StreamingQueryException):
            start(feed).awaitTermination()
    with ss.Engine(by_time(), threads=2, horizon=4, chunk=2) as engine:
        feed = feed_of(engine)
        start(feed).awaitTermination()
        assert (feed.stats.repeated, feed.stats.batches) == (1, FILES - 3)
        assert engine.stats.pending > 0
        feed.finish()
        assert engine.stats.pending == 0
        assert_same_state(engine.state, oracle.state)
    for name in SINKS:
        found = pyarrow.dataset.dataset(tmp_path / name, format="parquet").to_table()
        assert found.to_pylist() == oracle.output[name].to_pylist(), name
    for batch_id in range(FILES + 1):
        replayed = ss.spark.replay(tmp_path / "recorded", batch_id)
        assert replayed.difference is None, str(replayed.difference)


def test_without_a_watermark_a_feed_is_refused(session: Any) -> None:
    with (
        ss.Engine(by_time()) as engine,
        pytest.raises(ss.ConfigurationError, match=r"'desk' has phases by time.*watermark="),
    ):
        ss.spark.foreach_batch(engine, order_by="time", to=dict.fromkeys(SINKS, print))


def test_shards_are_refused(session: Any, files: Path) -> None:
    frame = session.readStream.schema("time bigint, x bigint").parquet(str(files / "news"))
    p = ss.Pipeline("one", phases="time")
    p.sink("out", p.source("s", {"x": int}))
    with pytest.raises(ss.ConfigurationError, match=r"'one' has phases by time.*foreach_batch"):
        ss.spark.sharded(frame, p, by="x", order_by="time")


def test_a_back_test_has_whole_times(session: Any, files: Path, oracle: Any) -> None:
    """Whatever partitions Spark sorts the rows into."""
    frames = {name: session.read.parquet(str(files / name)) for name in ("ticks", "news")}
    whole_day = ss.spark.union(frames, shared=["time"])
    settings = {"spark.sql.shuffle.partitions": "9", "spark.sql.adaptive.enabled": "false"}
    before = {name: session.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        applied = ss.spark.apply(whole_day, by_time(), order_by="time", threads=2)
    finally:
        for name, value in before.items():
            session.conf.set(name, value)
    assert applied.events == sum(table.num_rows for table in events().values())
    for name in SINKS:
        assert applied.output[name].to_pylist() == oracle.output[name].to_pylist(), name
    assert_same_state(applied.state, oracle.state)
    nothing = ss.spark.apply(whole_day.where("time < 0"), by_time(), order_by="time")
    assert [table.num_rows for table in nothing.output.values()] == [0, 0]


# Last, as the command stops the session.
def test_the_command_needs_a_watermark(session: Any, oracle: Any, tmp_path: Path) -> None:
    given, output = tmp_path / "events", tmp_path / "output"
    given.mkdir()
    table = whole(events())
    table = table.take(pc.sort_indices(table, sort_keys=[("time", "ascending")]))
    for number in range(2):
        path = given / f"{number}.parquet"
        pq.write_table(table.slice(60 * number, 60), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    module = tmp_path / "by_time.py"
    module.write_text(
        f"import sys\nsys.path.insert(0, {str(TESTS)!r})\nfrom support.pipelines.desk import desk\n"
        'p = desk(phases="time")\n'
    )
    command = ["run", f"{module}:p", "--input", given, "--order-by", "time"]
    command += ["--output", output, "--max-files-per-trigger", 1]
    refused = invoke(*command)
    assert refused.exit_code == 1
    assert "--watermark" in refused.output
    result = invoke(*command, "--watermark", "0")
    assert result.exit_code == 0, result.output
    for name in SINKS:
        found = pyarrow.dataset.dataset(output / name, format="parquet").to_table()
        assert found.to_pylist() == oracle.output[name].to_pylist(), name
