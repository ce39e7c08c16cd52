"""Spark feeds an engine with a checkpoint: batches come again, or are fetched ahead."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.checkpoint.fed import Fed
from support.spark import streamed
from support.spark.streamed import (
    FILES,
    ROWS,
    assert_same_as_oracle,
    chain,
    events,
    feed_into,
    fragile,
)

import specstream as ss

pyspark = pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException  # noqa: E402

engine, files, oracle, start = streamed.engine, streamed.files, streamed.oracle, streamed.start

WAIT_SECONDS = 60


def kept_feed(engine: ss.Engine, to: Any, path: Path) -> Any:
    return ss.spark.foreach_batch(
        engine, order_by="time", source="origin", to=to, checkpoint=path / "recorded"
    )


def test_a_field_of_the_recorded_state_is_a_dataframe(session: Any, tmp_path: Path) -> None:
    place = tmp_path / "recorded"
    with ss.Engine(chain, horizon=0) as engine:
        fed = Fed(engine, order_by="time", source="origin", to=lambda *_: None, checkpoint=place)
        fed.apply(0, events())
        fed.checkpoint.close()
        frame = ss.spark.checkpoint_state(session, place, "sums", batch=0)
        assert frame.toArrow().to_pydict() == engine.state.table("sums").to_pydict()
    with pytest.raises(
        ss.ConfigurationError, match="has no such field after batch 0; it has: seen, hash"
    ):
        ss.spark.checkpoint_state(session, place, "other")


def test_a_new_engine_goes_on_from_the_checkpoint_and_answers_a_repeated_batch_from_it(
    start: Any, oracle: Any, tmp_path: Path
) -> None:
    sink = ss.sinks.parquet_sink(tmp_path / "out")
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
    feed = kept_feed(engine, ss.sinks.parquet_sink(tmp_path / "out"), tmp_path)
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
    sink = ss.sinks.parquet_sink(tmp_path / "out")
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
    sink = ss.sinks.parquet_sink(tmp_path / "out")
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
    sink = ss.sinks.parquet_sink(tmp_path / "out")
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
    sink = ss.sinks.parquet_sink(tmp_path / "out")
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


@ss.operator(state=streamed.Chain, event={"x": int}, emits={"x": int, "seen": int})
def number(state, event, emit):  # type: ignore[no-untyped-def]
    state.seen += 1
    emit(event.x, state.seen)


def waiting_feed(engine: ss.Engine, path: Path, **options: Any) -> Any:
    return ss.spark.foreach_batch(
        engine, order_by="time", watermark=8, checkpoint=path / "recorded",
        **{"to": ss.sinks.parquet_sink(path / "out"), **options},
    )  # fmt: skip


def numbered(path: Path) -> list[int]:
    rows: list[int] = pyarrow.dataset.dataset(path / "out").to_table()["x"].to_pylist()
    return rows


def test_the_end_takes_no_id_that_spark_may_have_given(
    start: Any, tmp_path: Path, session: Any
) -> None:
    with ss.Engine(number) as engine:
        feed = waiting_feed(engine, tmp_path)
        start(feed).awaitTermination()
        assert feed.checkpoint.recorded.batch_id == 2
        feed.close()
    before = numbered(tmp_path)
    newest = max((tmp_path / "recorded").glob("0000000002.*"))
    newest.write_bytes(newest.read_bytes()[:60])
    with ss.Engine(number) as engine:
        with pytest.warns(RuntimeWarning, match="going on from the state after batch 1"):
            feed = waiting_feed(engine, tmp_path)
        start(feed).awaitTermination()  # without a batch
        for _ in range(2):
            with pytest.raises(
                ss.ConfigurationError, match=r"after batch 1.* up to batch 2 cannot be used"
            ):
                feed.finish()
        assert numbered(tmp_path) == before
        # Taken back to batch 1, Spark sends batch 2 again.
        (tmp_path / "checkpoint" / "commits" / "2").unlink()
        (tmp_path / "checkpoint" / "commits" / ".2.crc").unlink(missing_ok=True)
        start(feed).awaitTermination()
        feed.finish()
        assert feed.checkpoint.recorded.batch_id == 3
        assert sorted(numbered(tmp_path)) == list(range(FILES * ROWS))
        feed.close()


@pytest.mark.parametrize("sent", [0, 2])
def test_a_stream_has_no_end_while_its_query_runs_and_has_sent_nothing_yet(
    start: Any, tmp_path: Path, sent: int
) -> None:
    if sent:
        with ss.Engine(number) as engine:
            feed = waiting_feed(engine, tmp_path)
            start(feed).awaitTermination()
            feed.close()
    with ss.Engine(number) as engine:
        feed = waiting_feed(engine, tmp_path)
        change: Any = lambda stream: stream  # noqa: E731
        if not sent:
            change = lambda stream: stream.where("x < 0")  # noqa: E731
        gate = threading.Event()

        def later(frame: Any, batch_id: int) -> None:
            assert gate.wait(WAIT_SECONDS)
            feed(frame, batch_id)

        query = start(later, once=False, change=change)
        with pytest.raises(
            ss.ConfigurationError, match=rf"finish\(\) while the query {query.id} runs: stop it"
        ):
            feed.finish()
        gate.set()
        query.processAllAvailable()
        query.stop()
        feed.finish()
        assert sorted(numbered(tmp_path)) == (list(range(FILES * ROWS)) if sent else [])
        feed.close()


def test_a_directory_in_spark_s_own_is_refused(start: Any, tmp_path: Path) -> None:
    with ss.Engine(number) as engine:
        start(feed_into(engine, lambda table, batch_id: None)).awaitTermination()
    spark = tmp_path / "checkpoint"
    before = sorted(spark.rglob("*"))
    with ss.Engine(number) as engine:
        for place, where in (
            (spark, "is"),
            (spark / "ours", "is inside"),
            (spark / "sources" / "0", "is inside"),
            (f"file://{spark}/ours", "is inside"),
        ):
            with pytest.raises(
                ss.ConfigurationError,
                match=rf"checkpoint='{spark}.*' {where} the checkpointLocation '{spark}' of Spark",
            ):
                ss.spark.foreach_batch(engine, to=print, checkpoint=place)
        assert sorted(spark.rglob("*")) == before
        ss.spark.foreach_batch(engine, to=print, checkpoint=tmp_path / "ours").close()
