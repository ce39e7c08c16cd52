"""From an event's arrival to its row in the sink: sources without Spark, Spark's socket, Bytewax.

The first event is sent alone, and counts for nothing. The others follow when its row is in the
sink, so that what a way takes to start is left out.

A process sends events as JSON, each with the time at which it was sent, and nothing delays it: at a
given rate, for the latency, and as fast as it can, for the rate. Everybody counts with the same
operator, whose rows have that time, and hands them to the same sink, which looks at the clock. So a
latency has all that is in between: the broker or the socket, decoding, waiting for a batch, the
event, and with a checkpoint its file. Kafka is the mock cluster of librdkafka, in the sender's
process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.spark.beside import BYTEWAX, has_bytewax
from bench.spark.senders import send_kafka, send_lines, send_nats
from specstream.sources.options import RunOptions
from specstream.sources.running import SourceFeed

__all__ = ["FULL", "QUICK", "Arrivals", "Arrived", "arrivals"]

COUNTS = 100
STREAM = "EVENTS"
ENSURE_NATS = Path(__file__).parents[2] / ".ci" / "ensure-nats"
# For a way to take in everything, in seconds.
PATIENCE = 300.0


class Counts(ss.State):
    """A hundred counters."""

    counts = ss.array(int, COUNTS)


@ss.operator(state=Counts, event={"x": int, "sent": int}, emits={"sent": int, "count": int})
def count(state, event, emit):  # type: ignore[no-untyped-def]
    """Counts one of a hundred."""
    state.counts[event.x % COUNTS] += 1
    emit(event.sent, state.counts[event.x % COUNTS])


@dataclass(frozen=True)
class Arrivals:
    """How much is sent.

    Attributes:
        rate: events a second, for the latency.
        paced: so many of them.
        most: so many as fast as they can be sent.
    """

    rate: int
    paced: int
    most: int


FULL = Arrivals(rate=1_000, paced=20_000, most=200_000)
QUICK = Arrivals(rate=200, paced=60, most=500)


@dataclass(frozen=True)
class Arrived:
    """What was seen of one way.

    Attributes:
        name: of the way.
        median: milliseconds from arrival to sink, at the given rate.
        high: milliseconds that 99 of 100 do not exceed.
        rate: events a second, as fast as they were sent.
    """

    name: str
    median: float
    high: float
    rate: float


class Clock:
    """The sink: notes when rows have come, and knows when all have."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.begun, self.done = threading.Event(), threading.Event()
        self._sent: list[Any] = []
        self._came: list[int] = []
        self._rows = 0

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        if not table.num_rows:
            return
        self._came.append(time.time_ns())
        self._sent.append(table["sent"].to_numpy())
        self._rows += table.num_rows
        self.begun.set()
        if self._rows >= self.expected:
            self.done.set()

    def milliseconds(self) -> Any:
        waits = [came - sent for came, sent in zip(self._came, self._sent, strict=True)]
        return np.concatenate(waits[1:]) / 1e6

    def rate(self) -> float:
        first = min(int(sent.min()) for sent in self._sent[1:])
        return (self._rows - len(self._sent[0])) / (self._came[-1] - first) * 1e9


# Begins to send so many events at a rate, or as fast as it can (0).
Send = Callable[[int, int], None]
# Takes them in until its sink has them.
Way = Callable[[Clock, Send], None]


@contextmanager
def process(clock: Clock, work: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """A sender in a process of its own, which goes on when the first row has come; gives its
    pipe."""
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    sender = context.Process(target=work, args=(there, *arguments), daemon=True)
    sender.start()

    def go_on() -> None:
        clock.begun.wait()
        here.send("go on")

    threading.Thread(target=go_on, daemon=True).start()
    try:
        yield here
    finally:
        sender.terminate()
        sender.join()


def fed(source: Callable[[], ss.sources.Source], clock: Clock, checkpoint: Path | None) -> None:
    """specstream, until the sink has everything."""
    with ss.Engine(count, threads=2) as engine:
        engine.process({"x": [0], "sent": [0]})  # compiled before anything is sent
        feed = SourceFeed(engine, source(), RunOptions(to=clock, checkpoint=checkpoint))
        try:
            feed.run(clock.done)
        finally:
            feed.close()


def by_lines(run: Callable[[int], None], clock: Clock, rate: int) -> None:
    """A way that connects to a port, and gets lines there."""
    with process(clock, send_lines, clock.expected, rate) as pipe:
        run(pipe.recv())


def tcp(home: Path, clock: Clock, rate: int) -> None:
    by_lines(lambda port: fed(lambda: ss.sources.tcp("127.0.0.1", port), clock, None), clock, rate)


def iterator(home: Path, clock: Clock, rate: int) -> None:
    async def events() -> AsyncIterator[dict[str, int]]:
        yield {"x": 0, "sent": time.time_ns()}
        while not clock.begun.is_set():
            await asyncio.sleep(0.001)
        began = time.perf_counter()
        for x in range(1, clock.expected):
            if rate and (ahead := began + x / rate - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            yield {"x": x, "sent": time.time_ns()}

    fed(lambda: ss.sources.iterate(events()), clock, None)


def nats(home: Path, clock: Clock, rate: int, *, recorded: bool = False) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = subprocess.run([ENSURE_NATS], check=True, capture_output=True, text=True).stdout.strip()
    server = subprocess.Popen(
        [path, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(home / "streams")],
        stderr=subprocess.DEVNULL,
    )
    url = f"nats://127.0.0.1:{port}"
    try:
        with process(clock, send_nats, url, STREAM, clock.expected, rate) as pipe:
            assert pipe.recv() == "ready"
            fed(
                lambda: ss.sources.nats(url, STREAM), clock, home / "recorded" if recorded else None
            )
    finally:
        server.kill()
        server.wait()


def kafka(home: Path, clock: Clock, rate: int, *, recorded: bool = False) -> None:
    with process(clock, send_kafka, STREAM, clock.expected, rate) as pipe:
        servers = pipe.recv()
        fed(
            lambda: ss.sources.kafka(servers, STREAM),
            clock,
            home / "recorded" if recorded else None,
        )


def spark_socket(session: Any, home: Path, clock: Clock, rate: int) -> None:
    """Spark's source of lines, and ``foreach_batch`` with the same engine."""
    from pyspark.sql import functions as F

    def run(port: int) -> None:
        lines = (
            session.readStream.format("socket")
            .option("host", "127.0.0.1")
            .option("port", port)
            .load()
        )
        of = F.from_json("value", "x long, sent long")
        events = lines.select(of.alias("event")).select("event.x", "event.sent")
        with ss.Engine(count, threads=2) as engine:
            feed = ss.spark.foreach_batch(engine, order_by="sent", to=clock)
            query = (
                events.writeStream.foreachBatch(feed)
                .option("checkpointLocation", str(home / "spark"))
                .start()
            )
            assert clock.done.wait(PATIENCE), query.lastProgress
            query.stop()

    by_lines(run, clock, rate)


def bytewax(home: Path, clock: Clock, rate: int) -> None:
    """Bytewax: lines that have come together are an item, counted by the plain function."""
    from bench.spark.bytewax_lines import run_lines

    by_lines(lambda port: run_lines(port, clock), clock, rate)


def arrivals(
    amount: Arrivals, session: Any, home: Path, say: Callable[[str], None]
) -> list[Arrived]:
    """All ways, each with paced events and then with all at once."""
    ways: dict[str, Callable[[Path, Clock, int], None]] = {
        "specstream, iterator": iterator,
        "specstream, TCP": tcp,
        "specstream, NATS": nats,
        "specstream, NATS, checkpoint": partial(nats, recorded=True),
        "specstream, Kafka": kafka,
        "specstream, Kafka, checkpoint": partial(kafka, recorded=True),
        "Spark, socket": partial(spark_socket, session),
    }
    if has_bytewax():
        ways[f"{BYTEWAX}, TCP"] = bytewax
    found = []
    for number, (name, way) in enumerate(ways.items()):
        clocks = []
        for part, (events, rate) in enumerate(((amount.paced, amount.rate), (amount.most, 0))):
            say(f"arrivals: {name}, {events:,} events")
            place = home / f"{number}-{part}"
            place.mkdir(parents=True)
            clock = Clock(events)
            way(place, clock, rate)
            clocks.append(clock)
        paced, most = clocks
        median, high = np.quantile(paced.milliseconds(), [0.5, 0.99])
        found.append(Arrived(name, float(median), float(high), most.rate()))
    return found
