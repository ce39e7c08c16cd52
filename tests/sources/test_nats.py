"""NATS JetStream as a source, by a real server: kills, restarts, work queues, bad messages."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.sources.feeding_driver import Driver, events, expected, rows_of
from support.sources.nats_server import NatsServer
from support.sources.running import Running

import specstream as ss
from specstream.sources import jetstream
from specstream.sources.options import RunOptions
from specstream.sources.running import SourceFeed

pytest.importorskip("nats")

COUNT = 600


@pytest.mark.slow
@pytest.mark.parametrize("retention", ["limits", "workqueue"])
def test_a_process_that_is_killed_goes_on_where_it_was(
    retention: str, nats_server: NatsServer, stream: str, tmp_path: Path
) -> None:
    nats_server.make_stream(stream, [f"{stream}.>"], retention=retention)
    nats_server.publish(f"{stream}.eu", events(0, COUNT // 2))
    origin = f"{nats_server.url}/{stream}"
    lives = ("before-write@2", "before-sink@4", "before-commit@5", "kill", "stop")
    with Driver(tmp_path, origin, *lives) as driver:
        driver.wait_for_rows(300)
        nats_server.publish(f"{stream}.us", events(COUNT // 2, COUNT // 2))
        driver.signal("kill", signal.SIGKILL)  # wherever it is
        driver.wait_for_rows(COUNT)
        driver.signal("stop", signal.SIGTERM)
    assert rows_of(tmp_path).equals(expected(COUNT))
    left = nats_server.call(lambda api: api.stream_info(stream)).state.messages
    assert left == (COUNT if retention == "limits" else 0)


def test_a_server_that_is_started_again_loses_nothing(tmp_path: Path, stream: str) -> None:
    server = NatsServer(tmp_path)
    try:
        server.make_stream(stream, [stream])
        server.publish(stream, events(0, 100))
        running = Running(ss.sources.nats(server.url, stream), max_rows=16)
        running.wait_for(100)
        server.stop()
        server.start()
        server.publish(stream, events(100, 100))
        running.wait_for(200)
        assert running.end().equals(expected(200))
    finally:
        server.stop()


def test_requests_that_are_over_and_a_consumer_that_is_gone_are_made_again(
    nats_server: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream, "_REQUEST_SECONDS", 0.3)
    nats_server.make_stream(stream, [stream])
    running = Running(ss.sources.nats(nats_server.url, stream))
    nats_server.publish(stream, events(0, 10))
    running.wait_for(10)
    time.sleep(1)  # several requests end without a message
    nats_server.publish(stream, events(10, 10))
    running.wait_for(20)
    (consumer,) = nats_server.call(lambda api: api.consumers_info(stream))
    assert consumer.delivered.consumer_seq == 20  # still the first one
    nats_server.call(lambda api: api.delete_consumer(stream, consumer.name))
    nats_server.publish(stream, events(20, 10))
    running.wait_for(30)
    assert running.end().equals(expected(30))


def test_a_request_that_is_over_without_a_word_is_made_again(
    nats_server: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    came = jetstream.NatsSource._came

    async def came_but_for_ends(self: Any, generation: int, message: Any) -> None:
        # As a server does now and then, when messages come just as a request ends.
        if (message.headers or {}).get("Status") != "408":
            await came(self, generation, message)

    monkeypatch.setattr(jetstream.NatsSource, "_came", came_but_for_ends)
    monkeypatch.setattr(jetstream, "_REQUEST_SECONDS", 2.0)
    monkeypatch.setattr(jetstream, "_AGAIN_SECONDS", 0.5)
    nats_server.make_stream(stream, [stream])
    running = Running(ss.sources.nats(nats_server.url, stream))
    for at in range(0, 100, 10):  # for longer than two requests last
        nats_server.publish(stream, events(at, 10))
        running.wait_for(at + 10)
        time.sleep(0.5)  # it is time that ends a request
    (consumer,) = nats_server.call(lambda api: api.consumers_info(stream))
    assert consumer.delivered.consumer_seq == 100  # the first one: it was not taken for lost
    assert running.end().equals(expected(100))


def test_a_work_queue_has_one_run(
    nats_server: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream, "_REQUEST_SECONDS", 1.0)
    nats_server.make_stream(stream, [stream], retention="workqueue")
    running = Running(ss.sources.nats(nats_server.url, stream))
    nats_server.publish(stream, events(0, 10))
    running.wait_for(10)
    with pytest.raises(ss.SourceError, match="work queue, and another run reads from it"):
        Running(ss.sources.nats(nats_server.url, stream)).end()
    nats_server.publish(stream, events(10, 10))
    running.wait_for(20)
    assert running.end().equals(expected(20))


def test_a_slow_engine_asks_for_no_more_than_there_is_room_for(
    nats_server: NatsServer, stream: str
) -> None:
    nats_server.make_stream(stream, [stream])
    nats_server.publish(stream, events(0, 400))
    goes_on = threading.Event()
    running = Running(
        ss.sources.nats(nats_server.url, stream), to=lambda *_: goes_on.wait(60), max_rows=10
    )
    try:
        until = time.monotonic() + 30
        delivered = 0
        while time.monotonic() < until and delivered < 30:
            (consumer,) = nats_server.call(lambda api: api.consumers_info(stream)) or [None]
            delivered = 0 if consumer is None else consumer.delivered.consumer_seq
        time.sleep(0.2)
        (consumer,) = nats_server.call(lambda api: api.consumers_info(stream))
        assert 10 < consumer.delivered.consumer_seq <= 10 + 2 * 10
    finally:
        goes_on.set()
    running.wait_for(400)
    running.end()


def test_subjects_and_messages_own_columns(nats_server: NatsServer, stream: str) -> None:
    class Seen(ss.State):
        count = ss.scalar(int)

    @ss.operator(state=Seen, event={"x": int, "subject": str}, emits={"x": int, "subject": str})
    def named(state, event, emit):  # type: ignore[no-untyped-def]
        state.count += 1
        emit(event.x, event.subject)

    nats_server.make_stream(stream, [f"{stream}.>"])
    for x, of in enumerate(["a", "b", "a", "c"]):
        nats_server.publish(f"{stream}.{of}", [{"x": x}])
    rows: list[Any] = []
    with ss.Engine(named, keys=True) as engine:
        feed = SourceFeed(
            engine,
            ss.sources.nats(nats_server.url, stream, f"{stream}.a"),
            RunOptions(to=lambda table, _: rows.extend(table.to_pylist()), order_by="sequence"),
        )
        stop = threading.Event()
        thread = threading.Thread(target=feed.run, args=[stop])
        thread.start()
        while len(rows) < 2:
            time.sleep(0.01)
        stop.set()
        thread.join()
        feed.close()
    assert [(row["x"], row["subject"], row["timestamp"]) for row in rows] == [
        (0, f"{stream}.a", 1),
        (2, f"{stream}.a", 3),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "it cannot be decoded .JSONDecodeError"),
        (b'{"x": 1}', r"column 'name' is missing \(it has x\); expected str"),
        (b"", "it cannot be decoded"),
    ],
)
def test_a_message_that_is_no_event_is_told(
    content: bytes, told: str, nats_server: NatsServer, stream: str
) -> None:
    nats_server.make_stream(stream, [f"{stream}.>"])
    nats_server.publish(f"{stream}.eu", [*events(0, 2), content])
    running = Running(ss.sources.nats(nats_server.url, stream))
    running.thread.join(60)
    place = f"subject '{stream}.eu', sequence 3 of stream '{stream}'"
    with pytest.raises(ss.InputError, match=f"operator 'chain': {place}: {told}"):
        running.end()


def test_messages_that_are_gone_are_told(
    nats_server: NatsServer, stream: str, tmp_path: Path
) -> None:
    nats_server.make_stream(stream, [stream])
    nats_server.publish(stream, events(0, 10))
    running = Running(ss.sources.nats(nats_server.url, stream), checkpoint=tmp_path)
    running.wait_for(10)
    running.end()
    nats_server.publish(stream, events(10, 10))
    nats_server.call(lambda api: api.purge_stream(stream, seq=15))
    with pytest.raises(ss.SourceError, match=r'up to sequence 10, and begins at 15 now.*"skip"'):
        Running(ss.sources.nats(nats_server.url, stream), checkpoint=tmp_path).end()
    running = Running(ss.sources.nats(nats_server.url, stream, gone="skip"), checkpoint=tmp_path)
    running.wait_for(6)
    assert running.end()["x"].to_pylist()[-6:] == [14, 15, 16, 17, 18, 19]
    nats_server.call(lambda api: api.delete_stream(stream))
    nats_server.make_stream(stream, [stream])
    with pytest.raises(ss.SourceError, match="up to sequence 20, and ends at 0: it was made anew"):
        Running(ss.sources.nats(nats_server.url, stream), checkpoint=tmp_path).end()


def test_what_cannot_be_a_source_is_told(nats_server: NatsServer, stream: str) -> None:
    with pytest.raises(ss.SourceError, match=f"stream '{stream}' of NATS at .*not found"):
        Running(ss.sources.nats(nats_server.url, stream)).end()
    nats_server.make_stream(stream, [stream], retention="interest")
    with pytest.raises(ss.SourceError, match="retention interest"):
        Running(ss.sources.nats(nats_server.url, stream)).end()
    with pytest.raises(ss.ConfigurationError, match="start='now'; expected one of earliest"):
        ss.sources.nats(nats_server.url, stream, start="now")
    with pytest.raises(ss.ConfigurationError, match="options: 'usr' is none that the NATS client"):
        ss.sources.nats(nats_server.url, stream, options={"usr": "me"})


# It waits for the server for half a minute: one that is being started comes meanwhile.
@pytest.mark.long
def test_a_server_that_is_not_there_is_told(stream: str) -> None:
    nobody = ss.sources.nats("nats://127.0.0.1:1", stream, options={"connect_timeout": 0.1})
    with pytest.raises(ss.SourceError, match=r"at nats://127\.0\.0\.1:1: .*start the server"):
        Running(nobody).end()
