"""Spark feeds an engine: same answer, nothing lost, whatever goes wrong in a batch."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.spark import streamed
from support.spark.streamed import (
    FILES,
    ROWS,
    assert_same_as_oracle,
    chain,
    feed_into,
    fragile,
)

import specstream as ss

pyspark = pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException  # noqa: E402

engine, files, oracle, start = streamed.engine, streamed.files, streamed.oracle, streamed.start

WAIT_SECONDS = 60


@pytest.mark.parametrize("per_trigger", [1, 4])
def test_the_answer_is_sequential_whatever_the_files_per_trigger(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path, per_trigger: int
) -> None:
    feed = feed_into(engine, ss.sinks.parquet_sink(tmp_path / "out"))
    start(feed, per_trigger=per_trigger).awaitTermination()
    assert_same_as_oracle(tmp_path / "out", engine, oracle)
    assert feed.stats.batches == -(-FILES // per_trigger)
    assert feed.stats.events == feed.stats.rows == FILES * ROWS


@pytest.fixture
def small_results(session: Any) -> Iterator[None]:
    """The driver takes no more than 100 KiB from the tasks of a job."""
    conf, limit = session.sparkContext._jsc.sc().conf(), "spark.driver.maxResultSize"
    conf.set(limit, "100k")
    yield
    conf.remove(limit)


def test_a_batch_above_what_the_driver_takes_names_the_setting(
    session: Any, small_results: None
) -> None:
    numbers = session.range(0, 40_000, 1, 1).selectExpr("xxhash64(id) AS x", "1.0D AS weight")
    shown = r"is bigger than spark.driver.maxResultSize \(100.0 KiB\)"
    with ss.Engine(chain) as engine:
        feed = ss.spark.foreach_batch(engine, to=print)
        with pytest.raises(
            RuntimeError, match=rf"batch 7: .*{shown}.* larger spark.driver.maxResultSize"
        ):
            feed(numbers, 7)
    with pytest.raises(RuntimeError, match=rf"operator 'chain': .*{shown}.* larger spark.driver"):
        ss.spark.apply(numbers, chain, order_by="x")


@pytest.mark.parametrize("failure", [OSError("disk full"), SystemExit(3), KeyboardInterrupt()])
def test_a_failed_batch_leaves_no_trace_and_its_replay_gives_the_same_rows(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path, failure: BaseException
) -> None:
    sink = ss.sinks.parquet_sink(tmp_path / "out")
    rows_of_failed: list[pa.Table] = []

    def failing(table: pa.Table, batch_id: int) -> None:
        if batch_id == 1:
            rows_of_failed.append(table)
            raise failure
        sink(table, batch_id)

    feed = feed_into(engine, failing)
    with pytest.raises(StreamingQueryException):
        start(feed).awaitTermination()
    assert engine.state.seen == 2 * ROWS
    if isinstance(failure, Exception):
        assert feed.error is failure
    else:
        assert isinstance(feed.error, RuntimeError)
        assert type(failure).__name__ in str(feed.error)

    start(feed_into(engine, sink)).awaitTermination()
    assert_same_as_oracle(tmp_path / "out", engine, oracle)
    assert pq.read_table(sink.file(1)).equals(rows_of_failed[0])


def test_the_error_of_a_batch_is_gone_when_it_has_succeeded(
    session: Any, engine: ss.Engine
) -> None:
    failures = [OSError("disk full")]

    def failing(table: pa.Table, batch_id: int) -> None:
        if failures:
            raise failures.pop()

    feed = ss.spark.foreach_batch(engine, to=failing)
    rows = session.range(0, 3, 1, 1).selectExpr("id AS x", "1.0D AS weight")
    with pytest.raises(OSError, match="disk full"):
        feed(rows, 0)
    assert isinstance(feed.error, OSError)
    feed(rows, 0)
    assert feed.error is None


def test_late_rows_keep_the_columns_that_nobody_reads(session: Any) -> None:
    late = ss.sinks.memory_sink("late")
    with ss.Engine(chain) as engine:
        feed = ss.spark.foreach_batch(
            engine, to=lambda *_: None, order_by="time", watermark=0, late="side", late_to=late
        )
        for batch_id, time in enumerate((10, 5)):
            rows = "id AS x", "1.0D AS weight", f"{time}L AS time", "'why' AS note"
            feed(session.range(0, 1, 1, 1).selectExpr(*rows), batch_id)
    assert late.batches[1].to_pylist() == [{"x": 0, "weight": 1.0, "time": 5, "note": "why"}]


def test_an_error_of_the_operator_restores_the_start_of_the_batch(start: Any) -> None:
    with ss.Engine(fragile, threads=2, horizon=8, chunk=8) as engine:
        batches: list[int] = []
        feed = feed_into(engine, lambda _, batch_id: batches.append(batch_id))
        with pytest.raises(StreamingQueryException):
            start(feed).awaitTermination()
        assert isinstance(feed.error, ZeroDivisionError)
        assert batches == [0]
        assert engine.state.seen == 2 * ROWS


def test_stopping_while_rows_are_fetched_loses_no_batch(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    name = str(gate)

    def hold(batches: Any) -> Any:
        with open(name) as opened:
            opened.read()  # returns when the test closes its end
        yield from batches

    feed = feed_into(engine, ss.sinks.parquet_sink(tmp_path / "out"))
    told: list[Exception] = []

    def watched(frame: Any, batch_id: int) -> None:
        try:
            feed(frame, batch_id)
        except Exception as error:
            told.append(error)
            raise

    query = start(watched, change=lambda stream: stream.mapInArrow(hold, stream.schema))
    with gate.open("w"):  # opens when Spark's worker is at the gate, hence in the middle of a fetch
        query.stop()
    # A callback that returned here could have its batch acknowledged, depending on timing.
    (error,) = told
    assert type(error) is RuntimeError
    assert "was stopped" in str(error)
    assert error.__suppress_context__
    assert not list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    assert engine.state.seen == 0

    start(feed_into(engine, ss.sinks.parquet_sink(tmp_path / "out"))).awaitTermination()
    assert_same_as_oracle(tmp_path / "out", engine, oracle)


def test_a_batch_that_was_applied_but_not_acknowledged_is_answered_from_the_record(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path
) -> None:
    feed = feed_into(engine, ss.sinks.parquet_sink(tmp_path / "out"))
    start(feed).awaitTermination()
    commits = tmp_path / "checkpoint" / "commits"
    for path in (commits / "2", commits / ".2.crc"):
        path.unlink()
    start(feed).awaitTermination()
    assert feed.stats.repeated == 1
    assert_same_as_oracle(tmp_path / "out", engine, oracle)


def test_two_queries_with_an_engine_each_run_at_the_same_time(
    start: Any, oracle: Any, tmp_path: Path
) -> None:
    meeting = threading.Barrier(2)
    with (
        ss.Engine(chain, threads=2, horizon=8, chunk=8) as first,
        ss.Engine(chain, threads=1, horizon=8, chunk=8) as second,
    ):

        def sink_of(name: str) -> Any:
            sink = ss.sinks.parquet_sink(tmp_path / name)

            def to(table: pa.Table, batch_id: int) -> None:
                if batch_id == 0:
                    meeting.wait(WAIT_SECONDS)  # passes only with both callbacks under way
                sink(table, batch_id)

            return to

        queries = [
            start(feed_into(engine, sink_of(name)), checkpoint=f"checkpoint-{name}")
            for engine, name in ((first, "one"), (second, "two"))
        ]
        for query in queries:
            query.awaitTermination()
        assert_same_as_oracle(tmp_path / "one", first, oracle)
        assert_same_as_oracle(tmp_path / "two", second, oracle)


def test_a_second_query_cannot_use_the_engine_of_a_running_one(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path
) -> None:
    inside, go_on = threading.Event(), threading.Event()
    sink = ss.sinks.parquet_sink(tmp_path / "out")

    def slow(table: pa.Table, batch_id: int) -> None:
        inside.set()
        assert go_on.wait(WAIT_SECONDS)
        sink(table, batch_id)

    first = start(feed_into(engine, slow), once=False)
    assert inside.wait(WAIT_SECONDS)
    intruder = feed_into(engine, sink)
    with pytest.raises(StreamingQueryException):  # in the middle of a batch
        start(intruder, checkpoint="other").awaitTermination()
    assert isinstance(intruder.error, ss.ConfigurationError)
    assert "busy with a batch of another query" in str(intruder.error)

    go_on.set()
    first.processAllAvailable()
    with pytest.raises(StreamingQueryException):  # between two batches
        start(intruder, checkpoint="other").awaitTermination()
    assert "still running" in str(intruder.error)
    assert_same_as_oracle(tmp_path / "out", engine, oracle)

    first.stop()
    after = feed_into(engine, lambda table, batch_id: None)
    start(after, checkpoint="another").awaitTermination()
    assert engine.state.seen == 2 * FILES * ROWS


def test_a_closed_engine_fails_the_query(start: Any) -> None:
    engine = ss.Engine(chain)
    feed = feed_into(engine, lambda table, batch_id: None)
    engine.close()
    with pytest.raises(StreamingQueryException):
        start(feed).awaitTermination()
    assert isinstance(feed.error, ss.EngineClosedError)


@pytest.mark.parametrize("option", ["order_by", "source"])
def test_a_missing_key_column_is_named(engine: ss.Engine, start: Any, option: str) -> None:
    named: dict[str, Any] = {option: "when"}
    feed = ss.spark.foreach_batch(engine, to=lambda table, batch_id: None, **named)
    with pytest.raises(StreamingQueryException):
        start(feed).awaitTermination()
    assert isinstance(feed.error, ss.InputError)
    assert f"{option}= names column 'when'" in str(feed.error)


def test_a_missing_event_column_is_named(engine: ss.Engine, start: Any) -> None:
    feed = feed_into(engine, lambda table, batch_id: None)
    with pytest.raises(StreamingQueryException):
        start(feed, change=lambda stream: stream.drop("weight")).awaitTermination()
    assert isinstance(feed.error, ss.InputError)
    assert "the operator reads column 'weight'" in str(feed.error)


def test_streaming_a_directory_raises_the_error_itself(
    session: Any, files: Path, engine: ss.Engine, tmp_path: Path
) -> None:
    feed = feed_into(engine, lambda table, batch_id: [][0])
    with pytest.raises(IndexError):
        ss.spark.stream_directory(session, files, feed, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(ss.ConfigurationError, match="files_per_trigger=0"):
        ss.spark.stream_directory(
            session, files, feed, checkpoint=tmp_path / "checkpoint", files_per_trigger=0
        )


def test_a_later_start_reads_files_that_are_older_than_those_before(
    session: Any, files: Path, engine: ss.Engine, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    shutil.copytree(files, there)
    first = sorted(there.iterdir())[0]
    rows = pq.read_table(first).num_rows
    counts: list[int] = []
    for name in (None, "old.parquet"):
        if name is not None:
            shutil.copy(first, there / name)
            os.utime(there / name, (first.stat().st_mtime - 30 * 86_400,) * 2)
        feed = feed_into(engine, lambda table, batch_id: None)
        before = engine.stats.events
        ss.spark.stream_directory(session, there, feed, checkpoint=tmp_path / "checkpoint")
        counts.append(engine.stats.events - before)
    assert counts[1] == rows


def test_streaming_a_directory_refuses_names_that_are_patterns(
    session: Any, engine: ss.Engine, tmp_path: Path
) -> None:
    (tmp_path / "in[1]").mkdir()
    with pytest.raises(ss.ConfigurationError, match=r"path=.*in\[1\]'.* for a pattern"):
        ss.spark.stream_directory(
            session,
            tmp_path / "in[1]",
            feed_into(engine, lambda table, batch_id: None),
            checkpoint=tmp_path / "checkpoint",
        )


def test_bad_options_are_named(engine: ss.Engine) -> None:
    bad: Any = "somewhere"
    with pytest.raises(ss.ConfigurationError, match="to='somewhere'"):
        ss.spark.foreach_batch(engine, order_by="time", to=bad)
    with pytest.raises(ss.ConfigurationError, match="engine='somewhere'"):
        ss.spark.foreach_batch(bad, to=print)
    number: Any = 3
    with pytest.raises(ss.ConfigurationError, match=r"keep_batches=-1.*0 keeps those of a batch"):
        ss.spark.foreach_batch(engine, to=print, keep_batches=-1)
    with pytest.raises(ss.ConfigurationError, match="keep_batches=3 keeps rows beside a check"):
        ss.spark.foreach_batch(engine, to=print, keep_batches=3)
    with pytest.raises(ss.ConfigurationError, match="rejected_rows_to='somewhere'"):
        ss.spark.foreach_batch(engine, to=print, rejected_rows_to=bad)
    with pytest.raises(
        ss.ConfigurationError, match='leaves out none: make it with rejected_rows="side"'
    ):
        ss.spark.foreach_batch(engine, to=print, rejected_rows_to=print)
    with pytest.raises(ss.ConfigurationError, match="order_by=3"):
        ss.spark.foreach_batch(engine, order_by=number, to=print)
    for cores in (0, 10**9):
        with pytest.raises(ss.ConfigurationError, match=f"cores={cores}; expected .* 1 to 1024"):
            ss.spark.local_session(cores=cores)


def test_former_names_of_options_work_and_name_the_new_ones(tmp_path: Path) -> None:
    letters = ss.sinks.memory_sink("letters")
    foreach_batch: Any = ss.spark.foreach_batch
    with ss.Engine(chain, horizon=0, rejected_rows="side") as engine:
        with pytest.warns(DeprecationWarning, match=r"rejected_rows_to=") as warned:
            feed = foreach_batch(engine, to=print, bad_rows_to=letters)
        assert Path(warned[0].filename) == Path(__file__)
        assert feed.runner.sinks.rejected_rows_to is letters
        with pytest.warns(DeprecationWarning, match=r"prefetch="):
            feed = foreach_batch(engine, to=print, checkpoint=tmp_path, ahead=True)
        assert feed.runner.options.prefetch
        feed.close()
