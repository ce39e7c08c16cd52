"""A time that comes out is the one that went in, whatever zone the session has."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import specstream as ss

pytest.importorskip("pyspark")
pytest.importorskip("google.protobuf")

ZONE = "spark.sql.session.timeZone"
# Over the hours in which Europe, and before it the clock of St John's, goes to summer time.
BEGIN = datetime.datetime(2026, 3, 8, 4, 30, tzinfo=datetime.UTC)
TIMES = [BEGIN + datetime.timedelta(days=7 * (n // 5), minutes=30 * n) for n in range(10)]
EVENTS = pa.table(
    {
        "at": pa.array(TIMES, pa.timestamp("us", "UTC")),
        "wall": pa.array(TIMES, pa.timestamp("us")),
        "n": list(range(10)),
    }
)
WAIT_SECONDS = 120

pytestmark = pytest.mark.usefixtures("rocksdb")


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(
    state=Seen,
    event={"at": datetime.datetime, "wall": ss.timestamp("us", None), "n": int},
    emits={
        "at": datetime.datetime,
        "wall": ss.timestamp("us", None),
        "second": ss.timestamp("s", "Europe/Berlin"),
        "n": int,
    },
)
def seen(state, event, emit):
    state.count += 1
    emit(event.at, event.wall, event.at // 1_000_000, event.n)


@pytest.fixture(
    params=[
        "America/St_Johns",
        pytest.param("UTC", marks=pytest.mark.long),
        pytest.param("Asia/Tokyo", marks=pytest.mark.long),
    ]
)
def zoned(session: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The session, in another time zone."""
    before = session.conf.get(ZONE)
    session.conf.set(ZONE, request.param)
    yield session
    session.conf.set(ZONE, before)


def test_rows_join_with_their_source_in_every_zone(zoned: Any, tmp_path: Path) -> None:
    source, batches, shards, applied = (
        str(tmp_path / name) for name in ("source", "batches", "shards", "applied")
    )
    for directory in (source, applied):
        Path(directory).mkdir()
    pq.write_table(EVENTS, f"{source}/0.parquet")
    frame = zoned.read.parquet(source)
    stream = zoned.readStream.schema(frame.schema).parquet(source)

    with ss.Engine(seen, horizon=0) as engine:
        feed = ss.spark.foreach_batch(engine, order_by="at", to=ss.sinks.parquet_sink(batches))
        queries = [stream.writeStream.foreachBatch(feed)]
        rows = ss.spark.sharded(stream, seen, by="n", shards=1, order_by="at")
        queries.append(rows.writeStream.format("parquet").option("path", shards))
        for number, query in enumerate(queries):
            started = (
                query.option("checkpointLocation", str(tmp_path / f"checkpoint {number}"))
                .trigger(availableNow=True)
                .start()
            )
            assert started.awaitTermination(WAIT_SECONDS)
    found = ss.spark.apply(frame, seen, order_by="at").output
    pq.write_table(found, f"{applied}/0.parquet")

    expected = seen.run_sequential(EVENTS, order_by="at").output
    assert found.equals(expected)
    for directory in (batches, shards, applied):
        read = zoned.read.parquet(directory)
        types = {field.name: field.dataType.simpleString() for field in read.schema}
        instants = {"at": "timestamp", "second": "timestamp", "n": "bigint"}
        assert types == {**instants, "wall": "timestamp_ntz"}
        assert read.join(frame, ["at", "wall", "n"]).count() == len(TIMES)
        in_order = read.orderBy("n").toArrow()
        for name in ("at", "wall"):
            given = in_order[name].cast(pa.int64())
            assert given.to_pylist() == expected[name].cast(pa.int64()).to_pylist()
