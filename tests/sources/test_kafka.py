"""Kafka as a source, by the mock brokers of librdkafka: kills, offsets, bad records."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.sources.feeding_driver import Driver, events, expected, rows_of
from support.sources.kafka_cluster import KafkaCluster
from support.sources.running import Running

import specstream as ss

pytest.importorskip("confluent_kafka")

COUNT = 600


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on_where_it_was(
    brokers: KafkaCluster, stream: str, tmp_path: Path
) -> None:
    brokers.publish(stream, events(0, COUNT // 2))
    origin = f"kafka://{brokers.servers}/{stream}"
    lives = ("before-write@2", "before-sink@4", "before-commit@5", "kill", "stop")
    with Driver(tmp_path, origin, *lives) as driver:
        driver.wait_for_rows(300)
        brokers.publish(stream, events(COUNT // 2, COUNT // 2))
        driver.signal("kill", signal.SIGKILL)  # wherever it is
        driver.wait_for_rows(COUNT)
        driver.signal("stop", signal.SIGTERM)
    assert rows_of(tmp_path).equals(expected(COUNT))


def test_partitions_are_put_in_order_by_time(brokers: KafkaCluster, stream: str) -> None:
    # Each partition is in order, and far ahead of the other or behind it.
    rows = events(0, 200)
    brokers.publish(stream, rows[:100:2] + rows[100::2], partition=0)
    brokers.publish(stream, rows[1::2], partition=1)
    options: dict[str, Any] = {"order_by": "x", "source": "source", "watermark": 0}
    options["sources"] = [f"{stream}-0", f"{stream}-1"]
    running = Running(ss.sources.kafka(brokers.servers, stream), max_rows=30, **options)
    running.wait_for(200)
    table = running.end()
    # The last ones of the partition that is ahead wait for the other.
    assert table.equals(expected(table.num_rows))
    assert table.num_rows >= 199


def test_offsets_are_told_to_a_group_when_the_rows_are_in_the_sink(
    brokers: KafkaCluster, stream: str, tmp_path: Path
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    brokers.publish(stream, events(0, 50))
    running = Running(ss.sources.kafka(brokers.servers, stream, group=f"of {stream}"))
    running.wait_for(50)
    running.end()
    consumer = Consumer({"bootstrap.servers": brokers.servers, "group.id": f"of {stream}"})
    (found,) = consumer.committed([TopicPartition(stream, 0)], timeout=10)
    consumer.close()
    assert found.offset == 50


@pytest.mark.parametrize(
    ("content", "key", "told"),
    [
        (b"{", None, "it cannot be decoded .JSONDecodeError"),
        (b'{"x": 1}', None, r"column 'name' is missing \(it has x\); expected str"),
        (None, None, "it is empty"),
        (b'{"x": 1, "name": "n"}', b"\xff", "its key is no UTF-8"),
    ],
)
def test_a_record_that_is_no_event_is_told(
    content: bytes | None,
    key: bytes | None,
    told: str,
    brokers: KafkaCluster,
    stream: str,
) -> None:
    brokers.publish(stream, events(0, 2), partition=1)
    brokers.publish(stream, [content], partition=1, key=key)
    running = Running(ss.sources.kafka(brokers.servers, stream))
    running.thread.join(60)
    with pytest.raises(
        ss.InputError, match=f"'chain': topic '{stream}', partition 1, offset 2: {told}"
    ):
        running.end()


def test_records_own_columns_and_those_that_are_set_aside(
    brokers: KafkaCluster, stream: str
) -> None:
    class Seen(ss.State):
        count = ss.scalar(int)

    @ss.operator(
        state=Seen,
        event={"x": int, "key": ss.nullable(str), "partition": int, "offset": int},
        emits={"x": int, "key": ss.nullable(str), "partition": int, "offset": int},
    )
    def named(state, event, emit):  # type: ignore[no-untyped-def]
        state.count += 1
        emit(event.x, None if event.is_null("key") else event.key, event.partition, event.offset)

    brokers.publish(stream, [{"x": 1}, b"no"], partition=2, key=b"k")
    brokers.publish(stream, [{"x": 2}], partition=2)
    rows: list[Any] = []
    rejected: list[pa.Table] = []
    engine = ss.Engine(named, rejected_rows="side")
    from specstream.sources.options import RunOptions
    from specstream.sources.running import SourceFeed

    feed = SourceFeed(
        engine,
        ss.sources.kafka(brokers.servers, stream),
        RunOptions(
            to=lambda table, _: rows.extend(table.to_pylist()),
            rejected_rows_to=lambda table, _: rejected.append(table),
        ),
    )
    import threading
    import time

    stop = threading.Event()
    thread = threading.Thread(target=feed.run, args=[stop])
    thread.start()
    while feed.stats.events < 3:
        time.sleep(0.01)
    stop.set()
    thread.join()
    feed.close()
    engine.close()
    assert rows == [
        {"x": 1, "key": "k", "partition": 2, "offset": 0},
        {"x": 2, "key": None, "partition": 2, "offset": 2},
    ]
    (found,) = pa.concat_tables(rejected).to_pylist()
    assert (found["topic"], found["partition"], found["offset"], found["raw"]) == (
        stream,
        2,
        1,
        b"no",
    )


def test_a_topic_that_was_made_anew_or_is_not_there_is_told(
    brokers: KafkaCluster, stream: str, tmp_path: Path
) -> None:
    brokers.publish(stream, events(0, 10))
    running = Running(ss.sources.kafka(brokers.servers, stream), checkpoint=tmp_path)
    running.wait_for(10)
    running.end()
    other = KafkaCluster()
    other.publish(stream, events(0, 3))
    with pytest.raises(ss.SourceError, match="read up to offset 10, and ends at 3"):
        Running(ss.sources.kafka(other.servers, stream), checkpoint=tmp_path).end()
    with pytest.raises(ss.SnapshotError, match=f"written for Kafka's topic.*{stream}, and this is"):
        Running(ss.sources.kafka(brokers.servers, f"{stream}x"), checkpoint=tmp_path).end()


def test_a_setting_that_the_client_does_not_know_is_told(
    brokers: KafkaCluster, stream: str
) -> None:
    source = ss.sources.kafka(brokers.servers, stream, config={"no.such.setting": 1})
    with pytest.raises(ss.ConfigurationError, match=r"config= of .*no\.such\.setting"):
        Running(source).end()
