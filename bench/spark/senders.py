"""Processes that send events, for the ways that take them in: lines over TCP, NATS, Kafka."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["send_kafka", "send_lines", "send_nats"]

# Without a rate so many are made at once.
TOGETHER = 100


def events(pipe: Any, count: int, rate: int) -> Iterator[list[bytes]]:
    """Events that are to be sent now, with the time in them: one, and behind it all others, as soon
    as the pipe says so."""
    yield [json.dumps({"x": 0, "sent": time.time_ns()}).encode()]
    pipe.recv()
    began, sent = time.perf_counter(), 1
    while sent < count:
        due = TOGETHER
        if rate:
            due = int((time.perf_counter() - began) * rate) + 1 - sent
            if due <= 0:
                # Nothing is due yet; in steps short enough that an event is sent about on time.
                time.sleep(min(1 / rate, 0.001))
                continue
        due = min(due, count - sent)
        now = time.time_ns()
        yield [json.dumps({"x": x, "sent": now}).encode() for x in range(sent, sent + due)]
        sent += due


def send_lines(pipe: Any, count: int, rate: int) -> None:
    """Tells the port, and sends lines to the first who connects to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        pipe.send(server.getsockname()[1])
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            for some in events(pipe, count, rate):
                connection.sendall(b"\n".join(some) + b"\n")
            pipe.recv()  # never: Spark would not take a connection that has ended


def send_nats(pipe: Any, url: str, stream: str, count: int, rate: int) -> None:
    """Makes a stream in memory, says that it is there, and fills it."""
    import nats
    from nats.js.api import StorageType

    async def send() -> None:
        for _ in range(100):
            try:
                client = await nats.connect(url, allow_reconnect=False)
                break
            except Exception:
                await asyncio.sleep(0.05)  # the server is starting, and says nowhere when it has
        api = client.jetstream()
        await api.add_stream(name=stream, subjects=[stream], storage=StorageType.MEMORY)
        pipe.send("ready")
        for some in events(pipe, count, rate):
            for content in some:
                await client.publish(stream, content)
            await client.flush()
        await asyncio.to_thread(pipe.recv)

    asyncio.run(send())


def send_kafka(pipe: Any, topic: str, count: int, rate: int) -> None:
    """Makes a cluster, tells where it is, and fills a topic."""
    from confluent_kafka import Producer

    producer = Producer({"test.mock.num.brokers": 1, "linger.ms": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    producer.list_topics(topic, timeout=10)  # which makes it
    pipe.send(f"{broker.host}:{broker.port}")
    for some in events(pipe, count, rate):
        # Such a cluster keeps 100,000 messages of each partition, of which it makes four.
        for at, content in enumerate(some):
            producer.produce(topic, content, partition=at % 4)
        producer.poll(0)
    producer.flush()
    pipe.recv()
