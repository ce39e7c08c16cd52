"""Sources that people use, each with the answer of the sequential run over what it has sent."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import decimal
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import specstream as ss

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

WAIT_SECONDS = 60
# What Spark's Kafka source gives.
RECORD = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
    ]
)
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class Chain(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    sums = ss.array(float, 5)


@ss.operator(
    state=Chain,
    event={"item": str, "price": float, "count": int},
    emits={"item": str, "hash": int, "sum": float},
)
def orders(state, event, emit):
    # Every order of the same events gives another hash.
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.count
    at = event.count % 5
    state.sums[at] += event.price
    emit(event.item, state.hash, state.sums[at])


@ss.operator(state=Chain, event={"value": int}, emits={"hash": int})
def numbers(state, event, emit):
    state.hash = state.hash * 6364136223846793005 + event.value
    emit(state.hash)


def record(
    value: bytes | None,
    offset: int,
    partition: int = 0,
    topic: str = "orders",
    seconds: float = 0,
    key: bytes | None = None,
) -> dict[str, Any]:
    return {
        "key": key,
        "value": value,
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": BEGIN + datetime.timedelta(seconds=seconds),
        "timestampType": 0,
    }


def kafka_files(directory: Path, batches: list[list[dict[str, Any]]]) -> Path:
    """Records as files, one for each micro-batch."""
    directory.mkdir()
    for number, records in enumerate(batches):
        path = directory / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(records, RECORD), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    return directory


def kafka_stream(session: Any, directory: Path) -> Any:
    schema = session.read.parquet(str(directory)).schema
    reader = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(directory))


def run(stream: Any, feed: Any, tmp_path: Path) -> None:
    query = (
        stream.writeStream.foreachBatch(feed)
        .option("checkpointLocation", str(tmp_path / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()


def assert_same_as_oracle(found: pa.Table, engine: ss.Engine, oracle: Any) -> None:
    assert found.equals(oracle.output)
    assert {name: value.tobytes() for name, value in engine.state.to_dict().items()} == {
        name: value.tobytes() for name, value in oracle.state.to_dict().items()
    }


# ---- Kafka ----


def order_records() -> list[list[dict[str, Any]]]:
    """Two topics of three partitions; each batch has the next offsets of some partitions."""
    rng = np.random.default_rng(3)
    offsets = {(topic, part): 0 for topic in ("orders", "returns") for part in range(3)}
    batches = []
    for _ in range(3):
        records = []
        for (topic, part), first in offsets.items():
            count = int(rng.integers(0, 20))
            for offset in range(first, first + count):
                value = {
                    "item": f"item {rng.integers(9)}",
                    "price": float(rng.normal()),
                    "count": int(rng.integers(-(2**62), 2**62)),
                    "more": [1, {"x": None}],
                }
                records.append(
                    record(
                        json.dumps(value).encode(), offset, part, topic, int(rng.integers(4)) / 1000
                    )
                )
            offsets[topic, part] = first + count
        batches.append(records)
    return batches


def decoded(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**json.loads(each["value"]), **each, "source": f"{each['topic']}-{each['partition']}"}
        for each in records
    ]


@pytest.mark.parametrize("order_by", ["offset", "timestamp"])
def test_records_of_several_topics_run_in_the_order_of_their_partitions(
    session: Any, tmp_path: Path, order_by: str
) -> None:
    batches = order_records()
    files = kafka_files(tmp_path / "records", batches)
    sink = ss.sinks.memory_sink("orders")
    with ss.Engine(orders, threads=2, horizon=4, chunk=4) as engine:
        feed = ss.spark.foreach_batch(engine, order_by=order_by, source="source", to=sink)
        run(ss.spark.from_kafka(kafka_stream(session, files), orders), feed, tmp_path)
        expected = [
            each
            for records in batches
            for each in sorted(decoded(records), key=lambda row: (row[order_by], row["source"]))
        ]
        rows = pa.Table.from_pylist([{n: e[n] for n in orders.event.names} for e in expected])
        assert_same_as_oracle(sink.to_arrow(), engine, orders.run_sequential(rows))
        assert len(sink.batches) == len(batches)
    view = sink.view(session)
    assert session.sql("select count(*) from orders").first()[0] == len(expected) == view.count()


def test_the_order_of_a_batch_does_not_depend_on_how_its_rows_lie(
    session: Any, tmp_path: Path
) -> None:
    (records,) = order_records()[:1]
    shuffled = [records[at] for at in np.random.default_rng(5).permutation(len(records))]
    outputs = []
    for name, rows in (("as sent", records), ("shuffled", shuffled)):
        files = kafka_files(tmp_path / name, [rows])
        frame = ss.spark.from_kafka(session.read.parquet(str(files)), orders)  # static, too
        applied = ss.spark.apply(frame, orders, order_by="offset", source="source")
        outputs.append(applied.output)
    assert outputs[0].num_rows == len(records)
    assert outputs[0].equals(outputs[1])


GOOD = b'{"item": "a", "price": 1, "count": 7}'
BAD = {
    "tombstone": None,
    "empty": b"",
    "no JSON": b"\x00garbage",
    "no UTF-8": b'{"item": "\xff", "price": 1, "count": 7}',
    "cut off": GOOD[:-5],
    "no object": b"[1, 2]",
    "null": b"null",
    "missing field": b'{"item": "a", "price": 1}',
    "null field": b'{"item": null, "price": 1, "count": 7}',
    "text for a number": b'{"item": "a", "price": "much", "count": 7}',
    "fraction for an int": b'{"item": "a", "price": 1, "count": 7.5}',
    "beyond int64": b'{"item": "a", "price": 1, "count": 9223372036854775808}',
}


def test_values_that_are_no_events_go_by_the_policy_of_bad_rows(
    session: Any, tmp_path: Path
) -> None:
    records = [record(GOOD, 0)]
    records += [record(value, 1 + number) for number, value in enumerate(BAD.values())]
    records.append(record(GOOD, 1 + len(BAD)))
    stream = kafka_stream(session, kafka_files(tmp_path / "records", [records]))
    stream = ss.spark.from_kafka(stream, orders)
    sink = ss.sinks.memory_sink("orders")
    with ss.Engine(orders, horizon=0, rejected_rows="side") as engine:
        feed = ss.spark.foreach_batch(engine, order_by="offset", source="partition", to=sink)
        run(stream, feed, tmp_path)
        assert engine.state.seen == sink.to_arrow().num_rows == 2
        bad = engine.rejected_rows()
        assert bad is not None
        assert sorted(bad["offset"].to_pylist()) == list(range(1, 1 + len(BAD)))
        assert all("null" in reason for reason in bad["reason"].to_pylist())
    with ss.Engine(orders, horizon=0) as engine:
        feed = ss.spark.foreach_batch(engine, order_by="offset", source="partition", to=sink)
        with pytest.raises(StreamingQueryException):
            run(stream, feed, tmp_path / "strict")
        assert isinstance(feed.error, ss.InputError)
        assert engine.state.seen == 0


@ss.operator(
    state=Chain,
    event={
        "key": ss.nullable(str),
        "topic": str,
        "partition": int,
        "offset": int,
        "time": ss.timestamp("ms", "UTC"),
        "day": datetime.date,
        "price": ss.decimal(2),
        "sure": bool,
        "note": ss.nullable(str),
    },
    emits={
        "key": str,
        "topic": str,
        "partition": int,
        "offset": int,
        "time": ss.timestamp("ms", "UTC"),
        "day": datetime.date,
        "price": ss.decimal(2),
        "sure": bool,
        "note": str,
        "empty": bool,
    },
)
def copy(state, event, emit):
    emit(
        event.key,
        event.topic,
        event.partition,
        event.offset,
        event.time,
        event.day,
        event.price,
        event.sure,
        event.note,
        event.is_null("note"),
    )


def test_all_types_and_the_records_own_columns_come_through(session: Any, tmp_path: Path) -> None:
    rest = b'"day": "2026-02-03", "sure": true'
    values = [
        b'{"time": "2026-02-03T04:05:06.789Z", "price": 12.34, "note": "x", %b}' % rest,
        b'{"time": "2026-02-03T04:05:06.789+01:00", "price": -1, "note": null, %b}' % rest,
        b'{"time": "2026-02-03T04:05:06", "price": 0.5, %b}' % rest,
        b'{"time": "2026-02-03T04:05:06Z", "price": 12.345, %b}' % rest,  # a digit too many
        b'{"time": "2026-02-03T04:05:06.0001Z", "price": 1, %b}' % rest,  # and here
        b'{"time": "2026-02-03T04:05:06Z", "price": 1, "note": 5.0, %b}' % rest,
    ]
    records = [record(v, n, partition=n % 2, key=b"k" if n else None) for n, v in enumerate(values)]
    records.append(record(values[0], len(values), key=b"\xff"))
    frame = session.read.parquet(str(kafka_files(tmp_path / "records", [records])))
    frame = ss.spark.from_kafka(frame, copy)
    assert frame.columns[: len(copy.event)] == list(copy.event.names)
    found = ss.spark.apply(frame, copy, order_by="offset", rejected_rows="side").output.to_pylist()
    assert [row["offset"] for row in found] == [0, 1, 2, 5]
    assert [row["key"] for row in found] == [None, "k", "k", "k"]
    assert [row["partition"] for row in found] == [0, 1, 0, 1]
    assert {row["topic"] for row in found} == {"orders"}
    times = [row["time"].isoformat(timespec="milliseconds") for row in found]
    assert times == [
        "2026-02-03T04:05:06.789+00:00",
        "2026-02-03T03:05:06.789+00:00",
        "2026-02-03T04:05:06.000+00:00",
        "2026-02-03T04:05:06.000+00:00",
    ]
    assert {row["day"] for row in found} == {datetime.date(2026, 2, 3)}
    assert [row["price"] for row in found] == [*map(decimal.Decimal, ("12.34", "-1", "0.5", "1"))]
    assert [row["note"] for row in found] == ["x", None, None, "5.0"]
    assert [row["empty"] for row in found] == [False, True, True, False]


def test_values_of_other_formats_are_structs_made_by_the_user(session: Any, tmp_path: Path) -> None:
    records = [record(f"a;{n}.5;{n}".encode() if n != 2 else None, n) for n in range(4)]
    frame = session.read.parquet(str(kafka_files(tmp_path / "records", [records])))
    part = F.split(F.col("value").cast("string"), ";")
    struct = F.struct(
        part[0].alias("item"),
        part[1].cast("double").alias("price"),
        part[2].cast("long").alias("count"),
    )
    events = ss.spark.from_kafka(frame, orders, value=struct)
    applied = ss.spark.apply(events, orders, order_by="offset", rejected_rows="side")
    rows = pa.table({"item": ["a"] * 3, "price": [0.5, 1.5, 3.5], "count": [0, 1, 3]})
    assert applied.output.equals(orders.run_sequential(rows).output)
    with pytest.raises(ss.InputError, match="reads field 'price', which value= has not"):
        ss.spark.from_kafka(frame, orders, value=F.struct(part[0].alias("item")))
    with pytest.raises(ss.InputError, match="a Column of string"):
        ss.spark.from_kafka(frame, orders, value=part[0])


def test_what_is_no_kafka_frame_is_named(session: Any, tmp_path: Path) -> None:
    frame = session.read.parquet(str(kafka_files(tmp_path / "records", [[record(GOOD, 0)]])))
    bad: Any = "avro"
    with pytest.raises(ss.ConfigurationError, match="value='avro'"):
        ss.spark.from_kafka(frame, orders, value=bad)
    with pytest.raises(ss.InputError, match="no column 'offset'"):
        ss.spark.from_kafka(frame.drop("offset"), orders)
    with pytest.raises(ss.InputError, match="no column 'key'"):
        ss.spark.from_kafka(frame.drop("key"), copy)
    with pytest.raises(ss.DeclarationError, match="operator="):
        ss.spark.from_kafka(frame, len)

    @ss.operator(state=Chain, event={"x": ss.nullable(int)}, emits={"x": int})
    def optional(state, event, emit):
        emit(event.x)

    with pytest.raises(ss.DeclarationError, match="only nullable columns"):
        ss.spark.from_kafka(frame, optional)


# ---- rate, socket ----


def test_the_rate_source_runs_in_the_order_of_its_values(session: Any, tmp_path: Path) -> None:
    stream = session.readStream.format("rate").option("rowsPerSecond", 2000).load()
    enough = threading.Event()
    sink = ss.sinks.memory_sink("rates")

    def to(table: pa.Table, batch_id: int) -> None:
        sink(table, batch_id)
        if sum(map(len, sink.batches.values())) >= 2000:
            enough.set()

    with ss.Engine(numbers, threads=2, horizon=4, chunk=16) as engine:
        feed = ss.spark.foreach_batch(engine, order_by="value", to=to)
        query = (
            stream.writeStream.foreachBatch(feed)
            .option("checkpointLocation", str(tmp_path / "spark"))
            .start()
        )
        try:
            assert enough.wait(WAIT_SECONDS)
        finally:
            query.stop()
        found = sink.to_arrow()
        oracle = numbers.run_sequential({"value": np.arange(len(found))})
        assert found.equals(oracle.output)


def test_lines_of_a_socket_that_carry_a_number_run_in_their_order(
    session: Any, tmp_path: Path
) -> None:
    count = 300
    sink = ss.sinks.delta_sink(tmp_path / "table", app_id="socket")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        ss.Engine(numbers, threads=2, horizon=4, chunk=4, keys=True) as engine,
    ):
        server.settimeout(WAIT_SECONDS)
        lines = (
            session.readStream.format("socket")
            .option("host", "127.0.0.1")
            .option("port", server.getsockname()[1])
            .load()
        )
        part = F.split("value", " ")
        events = lines.select(
            part[0].cast("long").alias("number"), part[1].cast("long").alias("value")
        )
        feed = ss.spark.foreach_batch(engine, order_by="number", to=sink)
        query = (
            events.writeStream.foreachBatch(feed)
            .option("checkpointLocation", str(tmp_path / "spark"))
            .start()
        )
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(WAIT_SECONDS)
                for half in (range(count // 2), range(count // 2, count)):
                    connection.sendall(b"".join(b"%d %d\n" % (n, n * n) for n in half))
                    while engine.stats.events < half.stop:
                        query.processAllAvailable()
        finally:
            query.stop()
        found = deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table().sort_by("timestamp")
        oracle = numbers.run_sequential({"value": np.arange(count) ** 2})
        assert found["hash"].to_pylist() == oracle.output["hash"].to_pylist()
