"""Entries that expire after a duration, through Spark: with a watermark, sharded, at one go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

import specstream as ss

pytest.importorskip("pyspark")
pytest.importorskip("google.protobuf")

from pyspark.sql import functions as F

pytestmark = pytest.mark.usefixtures("rocksdb")

FILES, ROWS, SHARDS, MINUTE = 4, 60, 3, 60 * 10**6


class Recent(ss.State):
    last = ss.dict(str, int, expire_after="10 minutes")
    seen = ss.set(str, expire_after="1 hour")


@ss.operator(
    state=Recent,
    event={"user": str, "x": int},
    emits={"user": str, "x": int, "before": int, "there": bool},
)
def recent(state, event, emit):  # type: ignore[no-untyped-def]
    emit(event.user, event.x, state.last.get(event.user, -1), event.user in state.seen)
    state.last[event.user] = event.x
    if event.x % 3 == 0:
        state.seen.add(event.user)


def events() -> pa.Table:
    """In the order of arrival, which is less than five minutes from that of the times."""
    rng = np.random.default_rng(11)
    count = FILES * ROWS
    times = np.cumsum(rng.choice([0, 1, 2, 9], count)) * MINUTE + np.arange(count)  # no ties
    came = np.argsort(times + rng.integers(0, 5 * MINUTE, count), kind="stable")
    return pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "user": [f"u{n}" for n in rng.integers(0, 6, count)],
            "x": np.arange(count),
        }
    ).take(pa.array(came))


def some(table: pa.Table, users: list[str]) -> pa.Table:
    return table.filter(pa.compute.is_in(table["user"], pa.array(users)))


def test_a_duration_is_one_of_event_time(session: Any, tmp_path: Path) -> None:
    table, files = events(), tmp_path / "files"
    files.mkdir()
    for number in range(FILES):
        pq.write_table(table.slice(number * ROWS, ROWS), files / f"{number}.parquet")
        at = 1_000_000_000 + number
        os.utime(files / f"{number}.parquet", (at, at))
    schema = session.read.parquet(str(files)).schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
    oracle = recent.run_sequential(table, order_by="time")
    before = oracle.output["before"].to_pylist()
    assert 20 < before.count(-1) < len(before) - 20  # some have gone, and some have not

    def finished(writer: Any, checkpoint: str) -> None:
        query = (
            writer.option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    # With a watermark: over all batches in the order of time.
    with ss.Engine(recent, threads=2, horizon=8, chunk=4) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            watermark="5 minutes",
            to=ss.sinks.parquet_sink(tmp_path / "out"),
            checkpoint=str(tmp_path / "kept"),
            keep_batches=FILES + 1,  # and what is left
        )
        finished(stream.writeStream.foreachBatch(feed), "watermark")
        feed.finish()
        assert list(engine.state.last.items()) == list(oracle.state.last.items())
        assert list(engine.state.seen) == list(oracle.state.seen)
    found = pq.read_table(tmp_path / "out")
    assert found.sort_by("x").equals(oracle.output.sort_by("x"))
    for batch in range(FILES):
        again = ss.spark.replay(tmp_path / "kept", batch=batch)
        assert again.error is None
        assert again.difference is None

    # All at one go.
    frame = session.read.parquet(str(files))
    applied = ss.spark.apply(frame, recent, order_by="time").output
    assert applied.sort_by("x").equals(oracle.output.sort_by("x"))

    # Sharded: the events of each shard, batch after batch.
    batches: dict[int, pa.Table] = {}
    rows = ss.spark.sharded(stream, recent, by="user", shards=SHARDS, order_by="time")
    finished(
        rows.writeStream.foreachBatch(
            lambda frame, batch: batches.__setitem__(batch, frame.toArrow())
        ),
        "sharded",
    )
    users = session.createDataFrame([(f"u{n}",) for n in range(6)], "user string")
    shards: dict[int, list[str]] = {}
    for user, shard in users.select("user", F.expr(f"pmod(xxhash64(user), {SHARDS})")).collect():
        shards.setdefault(shard, []).append(user)
    assert len(shards) > 1
    for of_shard in shards.values():
        with ss.Engine(recent, horizon=0) as engine:
            expected = [
                engine.process(some(table.slice(number * ROWS, ROWS), of_shard), order_by="time")
                for number in range(FILES)
            ]
        output = pa.concat_tables(batches[number] for number in sorted(batches))
        assert some(output, of_shard).sort_by("x").equals(pa.concat_tables(expected).sort_by("x"))

    # A column of numbers is refused where the stream is declared.
    with pytest.raises(ss.InputError, match="order column 'x' has type int64"):
        ss.spark.sharded(stream, recent, by="user", shards=SHARDS, order_by="x")
