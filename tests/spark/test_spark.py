"""Spark feeds an engine: same answer, nothing lost, whatever goes wrong in a batch."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import specstream as ss

pyspark = pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException  # noqa: E402

WAIT_SECONDS = 60
FILES, ROWS = 6, 50


class Chain(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    sums = ss.array(float, 7)


@ss.operator(state=Chain, event={"x": int, "weight": float}, emits={"hash": int, "sum": float})
def chain(state, event, emit):
    # Every order of the same events gives another hash.
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.x
    at = event.x % 7
    state.sums[at] += event.weight
    emit(state.hash, state.sums[at])


@ss.operator(state=Chain, event={"x": int, "weight": float}, emits={"hash": int})
def fragile(state, event, emit):
    state.seen += 1
    state.hash = 1000 // (event.x - 130)
    emit(state.hash)


def events() -> pa.Table:
    """Two sources with many equal times; file after file, later in time."""
    rng = np.random.default_rng(7)
    rows = FILES * ROWS
    return pa.table(
        {
            "time": np.sort(rng.integers(0, rows // 3, rows)) + np.arange(rows) // ROWS * 1000,
            "origin": pa.array(rng.choice(["EWR", "JFK"], rows)),
            "x": np.arange(rows),
            "weight": rng.normal(size=rows),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The events as files, each with its rows in no order of time."""
    directory = tmp_path_factory.mktemp("events")
    table = events()
    for number in range(FILES):
        part = table.slice(number * ROWS, ROWS).take(
            np.random.default_rng(number).permutation(ROWS)
        )
        path = directory / f"{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    return directory


@pytest.fixture(scope="module")
def oracle(files: Path) -> Any:
    """The sequential run over the rows in their order, worked out apart from specstream."""
    rows = pa.concat_tables(pq.read_table(files / f"{n}.parquet") for n in range(FILES)).to_pandas()
    return chain.run_sequential(rows.sort_values(["time", "origin"], kind="stable"))


@pytest.fixture
def engine() -> Iterator[ss.Engine]:
    with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
        yield engine


@pytest.fixture
def start(session: Any, files: Path, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Starts a streaming query the way a user does; stops what is left at the end."""
    queries: list[Any] = []
    schema = session.read.parquet(str(files)).schema

    def start(
        feed: Any, checkpoint: str = "checkpoint", per_trigger: int = 2, once: bool = True,
        change: Callable[[Any], Any] = lambda stream: stream,
    ) -> Any:  # fmt: skip
        stream = (
            session.readStream.schema(schema)
            .option("maxFilesPerTrigger", per_trigger)
            .parquet(str(files))
        )
        writer = (
            change(stream)
            .writeStream.foreachBatch(feed)
            .option("checkpointLocation", str(tmp_path / checkpoint))
        )
        query = (writer.trigger(availableNow=True) if once else writer).start()
        queries.append(query)
        return query

    yield start
    for query in queries:
        query.stop()


def feed_into(engine: ss.Engine, to: Any) -> Any:
    return ss.spark.foreach_batch(engine, order_by="time", source="origin", to=to)


def assert_same_as_oracle(output: Path, engine: ss.Engine, oracle: Any) -> None:
    found = pyarrow.dataset.dataset(output, format="parquet").to_table()
    assert found.equals(oracle.output)
    assert {name: value.tobytes() for name, value in engine.state.to_dict().items()} == {
        name: value.tobytes() for name, value in oracle.state.to_dict().items()
    }


@pytest.mark.parametrize("per_trigger", [1, 4])
def test_the_answer_is_sequential_whatever_the_files_per_trigger(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path, per_trigger: int
) -> None:
    feed = feed_into(engine, ss.spark.parquet_sink(tmp_path / "out"))
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
    sink = ss.spark.parquet_sink(tmp_path / "out")
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

    feed = feed_into(engine, ss.spark.parquet_sink(tmp_path / "out"))
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

    start(feed_into(engine, ss.spark.parquet_sink(tmp_path / "out"))).awaitTermination()
    assert_same_as_oracle(tmp_path / "out", engine, oracle)


def test_a_batch_that_was_applied_but_not_acknowledged_is_answered_from_the_record(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path
) -> None:
    feed = feed_into(engine, ss.spark.parquet_sink(tmp_path / "out"))
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
            sink = ss.spark.parquet_sink(tmp_path / name)

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
    sink = ss.spark.parquet_sink(tmp_path / "out")

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


# ---- with a checkpoint ----


def kept_feed(engine: ss.Engine, to: Any, path: Path) -> Any:
    return ss.spark.foreach_batch(
        engine, order_by="time", source="origin", to=to, checkpoint=path / "recorded"
    )


def test_a_new_engine_goes_on_from_the_checkpoint_and_answers_a_repeated_batch_from_it(
    start: Any, oracle: Any, tmp_path: Path
) -> None:
    sink = ss.spark.parquet_sink(tmp_path / "out")
    calls: list[tuple[int, pa.Table]] = []

    def failing(table: pa.Table, batch_id: int) -> None:
        calls.append((batch_id, table))
        if batch_id == 1:
            raise OSError("the sink is full")
        sink(table, batch_id)

    with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
        feed = kept_feed(engine, failing, tmp_path)
        with pytest.raises(StreamingQueryException):
            start(feed).awaitTermination()
        assert str(feed.error) == "the sink is full"
        assert engine.state.seen == 4 * ROWS  # recorded before the sink was called
    with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
        feed = kept_feed(engine, sink, tmp_path)
        assert engine.state.seen == 4 * ROWS
        start(feed).awaitTermination()
        assert (feed.stats.repeated, feed.stats.batches) == (1, 1)
        assert_same_as_oracle(tmp_path / "out", engine, oracle)
    assert pq.read_table(sink.file(1)).equals(calls[1][1])


def test_an_operator_that_raises_leaves_the_checkpoint_before_the_batch(
    start: Any, tmp_path: Path
) -> None:
    for _ in range(2):
        with ss.Engine(fragile, threads=2, horizon=8, chunk=8) as engine:
            feed = kept_feed(engine, lambda table, batch_id: None, tmp_path)
            with pytest.raises(StreamingQueryException):
                start(feed).awaitTermination()
            assert isinstance(feed.error, ZeroDivisionError)
            assert engine.state.seen == 2 * ROWS
            assert feed.checkpoint.recorded.batch_id == 0
            found = ss.spark.replay(feed.checkpoint.store.key, 1)  # beside the live engine
            assert isinstance(found.error, ZeroDivisionError)
            assert found.difference is None
            assert (found.events, found.state.seen) == (2 * ROWS, 2 * ROWS + found.done)


def test_a_batch_that_spark_sent_can_be_replayed(
    engine: ss.Engine, start: Any, tmp_path: Path
) -> None:
    directory = tmp_path / "recorded"
    feed = ss.spark.foreach_batch(
        engine, order_by="time", source="origin", to=lambda table, batch_id: None,
        checkpoint=directory, keep_batches=2,
    )  # fmt: skip
    start(feed).awaitTermination()
    assert sorted(path.name for path in directory.glob("*.input")) == [
        "0000000001.input", "0000000002.input",
    ]  # fmt: skip
    for batch_id in (1, 2):
        found = ss.spark.replay(directory, batch_id)
        assert found.is_recorded
        assert found.difference is None
        assert found.events == 2 * ROWS


def test_bad_rows_reach_their_sink_once_for_each_batch(start: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    def spoilt(stream: Any) -> Any:
        return stream.withColumn("x", F.when(F.col("x") % 40 != 0, F.col("x")))

    dead: list[tuple[int, list[Any]]] = []

    def letters(table: pa.Table, batch_id: int) -> None:
        assert table["reason"].to_pylist() == ["column 'x' is null"] * table.num_rows
        assert set(table["origin"].to_pylist()) <= {"EWR", "JFK"}  # a column that nobody reads
        dead.append((batch_id, table["weight"].to_pylist()))
        if dead[-1][0] == 1 and len(dead) == 2:
            raise OSError("no room for letters")

    def feed_of(engine: ss.Engine, rejected_rows_to: Any = letters) -> Any:
        return ss.spark.foreach_batch(
            engine, order_by="time", to=lambda table, batch_id: None,
            rejected_rows_to=rejected_rows_to, checkpoint=tmp_path / "recorded",
        )  # fmt: skip

    with ss.Engine(chain, horizon=0, rejected_rows="side") as engine:
        feed = feed_of(engine)
        with pytest.raises(StreamingQueryException):
            start(feed, change=spoilt).awaitTermination()
        assert str(feed.error) == "no room for letters"
    with ss.Engine(chain, horizon=0) as engine:
        feed = feed_of(engine, rejected_rows_to=None)
        with pytest.raises(StreamingQueryException):
            start(feed, change=spoilt).awaitTermination()
        assert "give rejected_rows_to= as before" in str(feed.error)
    with ss.Engine(chain, horizon=0, rejected_rows="side") as engine:
        feed = feed_of(engine)
        start(feed, change=spoilt).awaitTermination()
        assert feed.stats.repeated == 1
        assert engine.rejected_rows() is None
        assert engine.state.seen == FILES * ROWS - 8
    assert [batch_id for batch_id, _ in dead] == [0, 1, 1, 2]
    assert dead[1] == dead[2]
    weights = events()["weight"].to_pylist()
    unique = dict(dead)
    found = sorted(weight for given in unique.values() for weight in given)
    assert found == sorted(weights[x] for x in range(0, FILES * ROWS, 40))


def test_a_checkpoint_serves_one_running_query(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path
) -> None:
    feed = kept_feed(engine, ss.spark.parquet_sink(tmp_path / "out"), tmp_path)
    query = start(feed, once=False)
    query.processAllAvailable()
    with ss.Engine(chain) as other:
        with pytest.raises(ss.ConfigurationError, match="in use by a streaming query"):
            kept_feed(other, print, tmp_path)
        assert query.isActive
        query.stop()
        wrong = kept_feed(other, print, tmp_path)  # the first one's query has ended
        with pytest.raises(StreamingQueryException):
            start(wrong, checkpoint="another").awaitTermination()
        assert isinstance(wrong.error, ss.ConfigurationError)
        assert query.id in str(wrong.error)
        assert other.snapshot() == engine.snapshot()
        with pytest.raises(StreamingQueryException):  # fenced off
            start(feed, checkpoint="third").awaitTermination()
        assert "taken the directory over" in str(feed.error)
    assert_same_as_oracle(tmp_path / "out", engine, oracle)


def test_a_query_under_way_can_be_given_a_checkpoint(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path
) -> None:
    sink = ss.spark.parquet_sink(tmp_path / "out")
    failing = True

    def to(table: pa.Table, batch_id: int) -> None:
        if failing and batch_id == 2:
            raise OSError
        sink(table, batch_id)

    with pytest.raises(StreamingQueryException):
        start(feed_into(engine, to)).awaitTermination()
    commits = tmp_path / "checkpoint" / "commits"
    for path in (commits / "1", commits / ".1.crc"):
        path.unlink()
    for path in (tmp_path / "checkpoint" / "offsets").glob("*2*"):
        path.unlink()  # batch 1 was applied and not acknowledged
    failing = False
    feed = kept_feed(engine, to, tmp_path)
    start(feed).awaitTermination()
    assert (feed.stats.repeated, feed.stats.batches) == (1, 1)
    assert_same_as_oracle(tmp_path / "out", engine, oracle)
    assert feed.checkpoint.recorded.batch_id == 2


def test_spark_can_be_taken_back_to_the_last_file(start: Any, oracle: Any, tmp_path: Path) -> None:
    sink = ss.spark.parquet_sink(tmp_path / "out")
    with ss.Engine(chain, horizon=0) as engine:
        start(kept_feed(engine, sink, tmp_path), per_trigger=1).awaitTermination()
    for file in (tmp_path / "recorded").glob("*.*"):  # what is left is a copy made after batch 2
        if int(file.stem) > 2:
            file.unlink()
    spark = tmp_path / "checkpoint"
    # One more batch, not acknowledged, so that Spark comes back with it.
    for path in (spark / "commits").glob(f"*{FILES - 1}*"):
        path.unlink()
    with ss.Engine(chain, horizon=0) as engine:
        feed = kept_feed(engine, sink, tmp_path)
        with pytest.raises(StreamingQueryException):
            start(feed, per_trigger=1).awaitTermination()
        assert "after batch 2, and the query goes on with batch 5" in str(feed.error)
        for directory, last in (("commits", 2), ("offsets", 3)):
            for path in (spark / directory).iterdir():
                name = path.name.removeprefix(".").removesuffix(".crc")
                if name.isdigit() and int(name) > last:
                    path.unlink()
        for number in range(3, FILES):
            sink.file(number).unlink()
        start(feed, per_trigger=1).awaitTermination()
        assert_same_as_oracle(tmp_path / "out", engine, oracle)


def ahead_feed(engine: ss.Engine, to: Any, path: Path, **options: Any) -> Any:
    return ss.spark.foreach_batch(
        engine, order_by="time", source="origin", to=to, checkpoint=path / "recorded", **options
    )


def test_a_batch_is_fetched_while_the_one_before_it_runs(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path
) -> None:
    sink = ss.spark.parquet_sink(tmp_path / "out")
    fetching = [threading.Event() for _ in range(FILES // 2)]

    def to(table: pa.Table, batch_id: int) -> None:
        if batch_id + 1 < len(fetching):
            # Spark sends the next batch only when this one is acknowledged.
            assert fetching[batch_id + 1].wait(WAIT_SECONDS)
        sink(table, batch_id)

    feed = ahead_feed(engine, to, tmp_path, prefetch=True)

    def watched(frame: Any, batch_id: int) -> None:
        fetching[batch_id].set()
        feed(frame, batch_id)

    start(watched).awaitTermination()
    feed.wait()
    assert_same_as_oracle(tmp_path / "out", engine, oracle)
    assert (feed.stats.batches, feed.stats.repeated) == (3, 0)
    assert not list((tmp_path / "recorded").glob("*.rows"))


def test_what_a_batch_raises_ahead_fails_the_query_and_it_runs_again_from_the_rows_that_were_kept(
    engine: ss.Engine, start: Any, oracle: Any, tmp_path: Path
) -> None:
    sink = ss.spark.parquet_sink(tmp_path / "out")
    full = True

    def to(table: pa.Table, batch_id: int) -> None:
        if full and batch_id == 1:
            raise OSError("the sink is full")
        sink(table, batch_id)

    feed = ahead_feed(engine, to, tmp_path, prefetch=True)
    with pytest.raises(StreamingQueryException):
        start(feed).awaitTermination()
    assert str(feed.error) == "the sink is full"
    assert (tmp_path / "checkpoint" / "commits" / "1").exists()  # Spark took it for done
    assert not (tmp_path / "checkpoint" / "commits" / "2").exists()
    assert len(list((tmp_path / "recorded").glob("*.rows"))) == 2
    full = False
    start(feed).awaitTermination()
    feed.wait()
    assert_same_as_oracle(tmp_path / "out", engine, oracle)


def test_a_closed_engine_fails_the_query(start: Any) -> None:
    engine = ss.Engine(chain)
    feed = feed_into(engine, lambda table, batch_id: None)
    engine.close()
    with pytest.raises(StreamingQueryException):
        start(feed).awaitTermination()
    assert isinstance(feed.error, ss.EngineClosedError)


@pytest.mark.parametrize("option", ["order_by", "source"])
def test_a_missing_key_column_is_named(engine: ss.Engine, start: Any, option: str) -> None:
    feed = ss.spark.foreach_batch(engine, to=lambda table, batch_id: None, **{option: "when"})
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
    with pytest.raises(ss.ConfigurationError, match="cores=0"):
        ss.spark.local_session(cores=0)


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


def test_the_sink_refuses_what_is_no_local_directory(tmp_path: Path) -> None:
    with pytest.raises(ss.ConfigurationError, match="s3://bucket/rows"):
        ss.spark.parquet_sink("s3://bucket/rows")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ss.ConfigurationError, match="cannot be a directory"):
        ss.spark.parquet_sink(file)


def java_that(directory: Path, script: str) -> dict[str, str]:
    """An environment whose only Java is a shell script."""
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    return {"JAVA_HOME": str(directory), "PATH": os.defpath}


def test_java_is_found_and_a_wrong_one_is_explained(tmp_path: Path) -> None:
    assert ss.spark.find_java().version >= 17
    with pytest.raises(ss.ConfigurationError, match=r"no java on PATH.*openjdk-17"):
        ss.spark.find_java({"PATH": str(tmp_path)})
    with pytest.raises(ss.ConfigurationError, match="no Java at"):
        ss.spark.find_java({"JAVA_HOME": str(tmp_path)})
    old = java_that(tmp_path / "old", """echo 'openjdk version "1.8.0_392"' >&2""")
    with pytest.raises(ss.ConfigurationError, match="is Java 8; Spark 4 needs 17"):
        ss.spark.find_java(old)
    broken = java_that(tmp_path / "broken", "echo 'Illegal option' >&2; exit 1")
    with pytest.raises(ss.ConfigurationError, match="does not start: Illegal option"):
        ss.spark.find_java(broken)
    small = java_that(
        tmp_path / "small",
        """[ "$1" = -version ] || exit 1; echo 'openjdk version "21.0.2"' >&2""",
    )
    with pytest.raises(ss.ConfigurationError, match=r"without the module jdk\.incubator\.vector"):
        ss.spark.find_java(small)


def test_specstream_alone_imports_no_pyspark() -> None:
    code = "import sys, specstream; sys.exit('pyspark' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = "import sys; sys.modules['pyspark'] = None; import specstream as s; s.spark.apply"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert 'pip install "specstream[spark]"' in done.stderr


def test_former_names_of_options_work_and_name_the_new_ones(tmp_path: Path) -> None:
    letters = ss.spark.memory_sink("letters")
    with ss.Engine(chain, horizon=0, rejected_rows="side") as engine:
        with pytest.warns(DeprecationWarning, match=r"rejected_rows_to=") as warned:
            feed = ss.spark.foreach_batch(engine, to=print, bad_rows_to=letters)
        assert Path(warned[0].filename) == Path(__file__)
        assert feed.runner.sinks.rejected_rows_to is letters
        with pytest.warns(DeprecationWarning, match=r"prefetch="):
            feed = ss.spark.foreach_batch(engine, to=print, checkpoint=tmp_path, ahead=True)
        assert feed.runner.options.prefetch
        feed.close()
