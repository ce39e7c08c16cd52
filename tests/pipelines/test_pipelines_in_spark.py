"""Pipelines and real Spark: several streams as one, several sinks, started again, back-tested."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.commands import invoke
from support.pipelines.desk import (
    BATCHES,
    assert_same_state,
    desk,
    expected,
    rows_of,
    tables,
    whole,
)
from support.processes import TESTS

import specstream as ss

pyspark = pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

DESK = TESTS / "support" / "pipelines" / "desk.py"
SINKS = ("trades", "mixed")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of each source, with one file for each batch."""
    home = tmp_path_factory.mktemp("events")
    for batch_id in range(BATCHES):
        for name, table in tables(batch_id).items():
            path = home / name / f"{batch_id}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(table, path)
            os.utime(path, (1_000_000_000 + batch_id, 1_000_000_000 + batch_id))
    return home


@pytest.fixture(scope="module")
def oracle() -> Any:
    return expected()


Start = Callable[..., Any]


@pytest.fixture
def start(session: Any, files: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a query on both sources, one file of each in a micro-batch."""
    queries: list[Any] = []

    def begin(feed: Any, **more: Any) -> Any:
        frames = {
            name: session.readStream.schema(session.read.parquet(str(files / name)).schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(files / name))
            for name in ("ticks", "news")
        }
        query = (
            ss.spark.union(frames, shared=["time"], **more)
            .writeStream.foreachBatch(feed)
            .option("checkpointLocation", str(tmp_path / "spark"))
            .trigger(availableNow=True)
            .start()
        )
        queries.append(query)
        return query

    yield begin
    for query in queries:
        query.stop()


def static(session: Any, files: Path) -> dict[str, Any]:
    return {name: session.read.parquet(str(files / name)) for name in ("ticks", "news")}


def sinks_in(path: Path) -> dict[str, Any]:
    return {name: ss.sinks.parquet_sink(path / name) for name in SINKS}


def assert_written(path: Path, engine: ss.Engine, oracle: Any) -> None:
    for name in SINKS:
        found = pyarrow.dataset.dataset(path / name, format="parquet").to_table()
        assert found.to_pylist() == oracle.output[name].to_pylist(), name
    assert_same_state(engine.state, oracle.state)


@pytest.mark.parametrize("in_python", [False, True])
def test_two_streams_and_two_sinks_are_sequential(
    start: Start, oracle: Any, tmp_path: Path, in_python: bool
) -> None:
    with ss.Engine(desk(in_python=in_python), threads=2, horizon=4, chunk=4) as engine:
        feed = ss.spark.foreach_batch(engine, order_by="time", to=sinks_in(tmp_path))
        start(feed).awaitTermination()
        assert (feed.stats.batches, feed.stats.events) == (BATCHES, 40 * BATCHES)
        assert_written(tmp_path, engine, oracle)


def test_a_query_goes_on_where_one_of_its_sinks_failed(
    start: Start, oracle: Any, tmp_path: Path
) -> None:
    def failing(table: pa.Table, batch_id: int) -> None:
        if batch_id == 2:
            raise OSError("the disk is full")
        sinks_in(tmp_path)["mixed"](table, batch_id)

    def feed_of(engine: ss.Engine, **sinks: Any) -> Any:
        return ss.spark.foreach_batch(
            engine, order_by="time", to={**sinks_in(tmp_path), **sinks},
            checkpoint=tmp_path / "recorded", keep_batches=2,
        )  # fmt: skip

    with ss.Engine(desk(), threads=2, horizon=4, chunk=4) as engine:
        feed = feed_of(engine, mixed=failing)
        with pytest.raises(StreamingQueryException):
            start(feed).awaitTermination()
        assert "raised by the sink to={'mixed': ...}" in feed.error.__notes__[0]
        assert sinks_in(tmp_path)["trades"].file(2).exists()
    with ss.Engine(desk(), threads=2, horizon=4, chunk=4) as engine:
        feed = feed_of(engine)
        start(feed).awaitTermination()
        assert (feed.stats.repeated, feed.stats.batches) == (1, 2)
        assert_written(tmp_path, engine, oracle)
    for batch_id in (3, 4):
        found = ss.spark.replay(tmp_path / "recorded", batch_id)
        assert found.difference is None, str(found.difference)
        assert found.events == 40


def test_a_watermark_goes_by_the_source(start: Start, oracle: Any, tmp_path: Path) -> None:
    """The sources of the events are the pipeline's; late rows have all columns."""
    late: list[pa.Table] = []
    with ss.Engine(desk(), threads=2, horizon=4, chunk=4) as engine:
        feed = ss.spark.foreach_batch(
            engine, order_by="time", to=sinks_in(tmp_path), watermark=500,
            sources=["news", "ticks"], late="side",
            late_to=lambda table, batch_id: late.append(table),
        )  # fmt: skip
        start(feed).awaitTermination()
        assert engine.stats.pending > 0
        feed.finish()
        assert_written(tmp_path, engine, oracle)
        assert {source.name for source in engine.durable.pending.sources} == {"news", "ticks"}
    assert not late


def test_a_stream_without_the_columns_says_how_to_make_it(session: Any, files: Path) -> None:
    frames = static(session, files)
    to: Any = {"trades": print, "mixed": repr}
    with ss.Engine(desk()) as engine:
        feed = ss.spark.foreach_batch(engine, order_by="time", to=to)
        with pytest.raises(
            ss.InputError,
            match=r"batch 0: the operator reads column 'stream', which the stream has not "
            r"\(columns: time, symbol, price\): make it with ss.spark.union\(\{\"ticks\": frame, "
            r"\"news\": frame\}, shared=\['time'\]\)",
        ):
            feed(frames["ticks"], 0)
        with pytest.raises(ss.InputError, match=r"order_by= names column 'time', which .*shared="):
            feed(ss.spark.union(frames), 0)


# ---- one DataFrame out of several ----


def test_a_union_has_the_columns_of_all(session: Any) -> None:
    day = datetime.datetime(2024, 5, 1, 12)
    ticks = session.createDataFrame(
        [(day, 1.5, "a", 7)], "time timestamp, price double, `a.b` string, stream int"
    )
    news = session.createDataFrame(
        [(day, "up", [1, 2])], "time timestamp, text string, ids array<int>"
    )
    found = ss.spark.union({"ticks": ticks, "news": news}, shared=["time"])
    assert found.columns == [
        "stream", "time", "ticks.time", "ticks.price", "ticks.a.b", "ticks.stream",
        "news.time", "news.text", "news.ids",
    ]  # fmt: skip
    rows = [list(row) for row in found.collect()]
    assert rows == [
        ["ticks", day, day, 1.5, "a", 7, None, None, None],
        ["news", day, None, None, None, None, day, "up", [1, 2]],
    ]
    types = {field.name: field.dataType.simpleString() for field in found.schema}
    assert (types["news.ids"], types["ticks.stream"]) == ("array<int>", "int")
    assert found.select("`news.text`", "`ticks.a.b`").count() == 2


def test_what_cannot_be_one_dataframe_is_named(session: Any, files: Path) -> None:
    frames = static(session, files)
    ticks, news = frames["ticks"], frames["news"]
    streaming = session.readStream.schema(news.schema).parquet(str(files / "news"))
    wrong: list[tuple[Any, Any, str]] = [
        ([ticks, news], (), r"frames=.*expected DataFrames by the names of a pipeline's sources"),
        ({"ticks": ticks}, (), r"one DataFrame, of 'ticks'; a pipeline with one source reads it"),
        ({"ticks": ticks, "the news": news}, (), r"a source is called 'the news'; expected a name"),
        ({"ticks": ticks, "news": "news"}, (), r"frames\['news'\]='news'"),
        ({"ticks": ticks, "news": streaming}, (), r"'news' is a stream and 'ticks' is static"),
        (frames, "time", r"shared='time'; expected a list of columns' names"),
        (frames, ["stream"], r"shared: 'stream'; expected the name of a column, other than"),
        (frames, ["price"], r"shared column 'price' is none of source 'news' \(columns: time,"),
    ]  # fmt: skip
    for given, shared, message in wrong:
        with pytest.raises(ss.SpecstreamError, match=message):
            ss.spark.union(given, shared=shared)
    other = news.withColumn("time", F.col("time").cast("string"))
    with pytest.raises(
        ss.InputError,
        match=r"shared column 'time' is bigint in source 'ticks' and string in source 'news': cast",
    ):
        ss.spark.union({"ticks": ticks, "news": other}, shared=["time"])


# ---- back-tests and shards ----


def test_a_back_test_of_two_sources_gives_the_rows_of_each_sink(
    session: Any, files: Path, oracle: Any
) -> None:
    events = ss.spark.union(static(session, files), shared=["time"])
    applied = ss.spark.apply(events, desk(), order_by="time", threads=2, horizon=4, chunk=4)
    assert applied.events == 40 * BATCHES
    for name in SINKS:
        assert applied.output[name].to_pylist() == oracle.output[name].to_pylist(), name
    nothing = ss.spark.apply(events.where("time < 0"), desk(), order_by="time")
    assert {name: table.num_rows for name, table in nothing.output.items()} == {
        "trades": 0, "mixed": 0,
    }  # fmt: skip
    with pytest.raises(ss.InputError, match=r"operator 'desk': .*which the DataFrame has not"):
        ss.spark.apply(static(session, files)["ticks"], desk(), order_by="time")


def test_records_of_kafka_are_of_one_source(session: Any, files: Path) -> None:
    with pytest.raises(ss.ConfigurationError, match=r"sources ticks, news, and records .*union"):
        ss.spark.from_kafka(static(session, files)["ticks"], desk())


SHARDS = 3


def test_shards_of_two_sources_run_a_pipeline_with_one_sink(
    session: Any, files: Path, rocksdb: None, tmp_path: Path
) -> None:
    pytest.importorskip("google.protobuf")
    events = ss.spark.union(
        {
            name: session.readStream.schema(frame.schema)
            .option("maxFilesPerTrigger", 2)
            .parquet(str(files / name))
            for name, frame in static(session, files).items()
        },
        shared=["time", "symbol"],
    )
    rows = ss.spark.sharded(
        events,
        desk(("mixed",), in_python=True),
        by="symbol",
        shards=SHARDS,
        order_by="time",
        threads=2,
    )
    parts: dict[int, pa.Table] = {}
    query = (
        rows.writeStream.foreachBatch(lambda frame, n: parts.update({n: frame.toArrow()}))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    found = [tuple(row.values()) for row in rows_of([parts[n] for n in sorted(parts)])]
    wanted = 0
    each = pa.concat_tables([whole(tables(batch_id)) for batch_id in range(BATCHES)])
    pairs = zip(each["ticks.symbol"].to_pylist(), each["news.symbol"].to_pylist(), strict=True)
    symbols = [one if other is None else other for one, other in pairs]
    keys = session.createDataFrame([(key,) for key in sorted(set(symbols))], "key bigint")
    shard_of = dict(keys.select("key", F.expr(f"pmod(xxhash64(key), {SHARDS})")).collect())
    for shard in range(SHARDS):
        of = each.filter(pa.array([shard_of[key] == shard for key in symbols]))
        run = desk(("mixed",)).run_sequential(of, order_by="time")
        own = [tuple(row.values()) for row in run.output.to_pylist()]
        assert own
        assert [row for row in found if row in set(own)] == own
        wanted += len(own)
    assert len(found) == wanted


def test_the_rows_of_several_sinks_are_no_sharded_stream(
    session: Any, files: Path, rocksdb: None
) -> None:
    frames = {
        name: session.readStream.schema(frame.schema).parquet(str(files / name))
        for name, frame in static(session, files).items()
    }
    events = ss.spark.union(frames, shared=["time", "symbol"])
    with pytest.raises(ss.ConfigurationError, match=r"pipeline 'desk' has the sinks trades, mixed"):
        ss.spark.sharded(events, desk(), by="symbol", order_by="time")


# Last, as the command stops the session.
def test_the_command_writes_a_directory_for_each_sink(session: Any, tmp_path: Path) -> None:
    events, output = tmp_path / "events", tmp_path / "output"
    events.mkdir()
    for batch_id in range(2):
        pq.write_table(whole(tables(batch_id)), events / f"{batch_id}.parquet")
    command = ["run", f"{DESK}:desk", "--input", events, "--order-by", "time"]
    result = invoke(*command, "--output", output, "--threads", 2)
    assert result.exit_code == 0, result.output
    wanted = expected(2).output
    for name in SINKS:
        found = pyarrow.dataset.dataset(output / name, format="parquet").to_table()
        assert found.to_pylist() == wanted[name].to_pylist()
    again = invoke(*command, "--output", output)
    assert again.exit_code == 1
    assert "trades: there are Parquet files in it already" in again.output.replace("\n", " ")
