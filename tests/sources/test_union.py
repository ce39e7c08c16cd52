"""Several sources for a pipeline with several, in the order of their times."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.sources.kafka_cluster import KafkaCluster

import specstream as ss


class Trading(ss.State):
    mood = ss.scalar(int)


@ss.operator(
    state=Trading,
    inputs={"tick": {"price": float}, "news": {"mood": int}},
    emits={"price": float, "mood": int},
)
def decide(state, event, emit):  # type: ignore[no-untyped-def]
    if event.changed("news"):
        state.mood += event.news.mood
    else:
        emit(event.tick.price, state.mood)


def desk() -> ss.Pipeline:
    pipeline = ss.Pipeline("trading")
    ticks = pipeline.source("ticks", {"price": float})
    news = pipeline.source("news", {"mood": int})
    pipeline.sink("signals", pipeline.add(decide, tick=ticks, news=news))
    pipeline.sink("prices", ticks)
    return pipeline


TICKS = [{"time": 3 * at, "price": float(at)} for at in range(200)]
NEWS = [{"time": 10 * at + 1, "mood": at} for at in range(60)]


def test_sources_of_several_kinds_give_the_sequential_answer(
    brokers: KafkaCluster, stream: str, tmp_path: Path
) -> None:
    brokers.publish(stream, NEWS)
    pq.write_table(pa.Table.from_pylist(TICKS), tmp_path / "ticks.parquet")
    sinks = {name: ss.sinks.parquet_sink(tmp_path / name) for name in ("signals", "prices")}

    class Enough(Exception):
        pass

    def run(batches: int | None) -> None:
        count = 0

        def watched(table: pa.Table, batch_id: int) -> None:
            nonlocal count
            count += 1
            if count == batches:
                raise Enough
            sinks["prices"](table, batch_id)
            if table.num_rows and table["price"].to_pylist()[-1] >= 198:
                stop.set()

        stop = threading.Event()
        from specstream.sources.options import RunOptions
        from specstream.sources.running import SourceFeed

        events = ss.sources.union(
            {
                "ticks": ss.sources.dataset(tmp_path / "ticks.parquet"),
                "news": ss.sources.kafka(brokers.servers, stream, columns={"time": int}),
            }
        )
        with ss.Engine(desk(), threads=2) as engine:
            options: Any = RunOptions(
                to={"signals": sinks["signals"], "prices": watched},
                order_by="time",
                watermark=0,
                sources=["ticks", "news"],
                checkpoint=tmp_path / "recorded",
                max_rows=20,
            )
            feed = SourceFeed(engine, events, options)
            try:
                feed.run(stop)
            finally:
                feed.close()

    with pytest.raises(Enough):
        run(4)
    news_end = {"time": 10**6, "mood": 0}
    brokers.publish(stream, [news_end])
    run(None)
    oracle = desk().run_sequential({"ticks": TICKS, "news": [*NEWS, news_end]}, order_by="time")
    for name in sinks:
        paths = sorted((tmp_path / name).glob("part-*.parquet"))
        found = pa.concat_tables(map(pq.read_table, paths))
        assert found.num_rows >= 199
        assert found.equals(oracle.output[name].slice(0, found.num_rows))


def test_a_source_for_each_is_needed() -> None:
    events = ss.sources.union({"ticks": ss.sources.iterate([])})
    with (
        ss.Engine(desk()) as engine,
        pytest.raises(ss.ConfigurationError, match="has the sources ticks, news, and the union"),
    ):
        ss.sources.run(
            engine, events, to={"signals": print, "prices": lambda *_: None}, order_by="time"
        )
    same = ss.sources.iterate([])
    with pytest.raises(ss.ConfigurationError, match="two of a, b are the same source"):
        ss.sources.union({"a": same, "b": same})
    with pytest.raises(ss.ConfigurationError, match="expected sources by name"):
        ss.sources.union({})


def test_a_bad_message_names_its_source() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def send() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(json.dumps({"time": 1, "mood": "good"}).encode() + b"\n")

    threading.Thread(target=send, daemon=True).start()
    port = server.getsockname()[1]
    events = ss.sources.union(
        {
            "ticks": ss.sources.iterate([], columns={"time": int}),
            "news": ss.sources.tcp("127.0.0.1", port, columns={"time": int}),
        }
    )
    told = (
        rf"source 'news': line 0 of tcp://127.0.0.1:{port}: column 'mood' is 'good'; expected int"
    )
    with ss.Engine(desk()) as engine, pytest.raises(ss.InputError, match=told):
        ss.sources.run(
            engine, events, to={"signals": print, "prices": lambda *_: None}, order_by="time"
        )
    server.close()
