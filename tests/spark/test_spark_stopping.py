"""Stopping: a query ends where it is told to, at every phase of a batch, and goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support import processes

import specstream as ss

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException
from support.spark import crash_driver
from support.spark.crash_driver import chain, end

from specstream.checkpoint.format import failpoints

WAIT_SECONDS = 60
FILES, ROWS = 7, 40


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    crash_driver.write_events(tmp_path / "events", FILES, ROWS)
    return tmp_path


def start(session: Any, directory: Path, feed: Any, once: bool = False, name: str = "spark") -> Any:
    events = str(directory / "events")
    writer = (
        session.readStream.schema(session.read.parquet(events).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(events)
        .writeStream.foreachBatch(feed)
        .option("checkpointLocation", str(directory / name))
    )
    return (writer.trigger(availableNow=True) if once else writer).start()


def make_feed(engine: ss.Engine, directory: Path) -> Any:
    return ss.spark.foreach_batch(
        engine,
        order_by="time",
        source="origin",
        to=ss.sinks.parquet_sink(directory / "out"),
        checkpoint=directory / "recorded",
    )


def run_to_the_end(session: Any, directory: Path) -> None:
    """Goes on with what is in the directory, and compares the whole with the oracle."""
    with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
        feed = make_feed(engine, directory)
        start(session, directory, feed, once=True).awaitTermination()
        (directory / "final").write_bytes(engine.snapshot())
        feed.checkpoint.close()
    assert not any(crash_driver.compare(directory).values())


def acknowledged(directory: Path) -> list[int]:
    return sorted(int(path.name) for path in (directory / "spark" / "commits").glob("[0-9]*"))


# ---- SIGTERM ----


def begin(directory: Path, slow: int) -> subprocess.Popen[bytes]:
    """A driver process, leader of a group of its own, that waits in a batch for a signal."""
    for name in ("inside", "requested"):
        (directory / name).unlink(missing_ok=True)
    with (directory / "errors").open("ab") as errors:
        return subprocess.Popen(
            processes.command("support.spark.stopping_driver", directory, slow),
            env=processes.environment(),
            start_new_session=True,
            stdout=errors,
            stderr=errors,
        )


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 2 * WAIT_SECONDS
    while not path.exists():
        errors = path.with_name("errors").read_text()
        assert process.poll() is None, errors
        assert time.monotonic() < deadline, errors
        time.sleep(0.02)


def test_sigterm_ends_the_driver_after_the_batch_under_way(session: Any, directory: Path) -> None:
    os.mkfifo(directory / "gate")

    def finish_batch() -> None:
        with (directory / "gate").open("w"):
            pass

    for slow, send in ((1, os.kill), (3, os.killpg)):
        process = begin(directory, slow)
        try:
            wait_for(directory / "inside", process)
            send(process.pid, signal.SIGTERM)
            wait_for(directory / "requested", process)
            assert slow not in acknowledged(directory)  # in the middle of the batch
            finish_batch()
        finally:
            status = end(process)
        assert status == 0, (directory / "errors").read_text()
        assert acknowledged(directory)[-1] == slow
        assert not (directory / "spark" / "offsets" / str(slow + 1)).exists()

    assert "Traceback" not in (directory / "errors").read_text()
    run_to_the_end(session, directory)


def test_a_signal_between_two_batches_stops_the_query_at_once(
    session: Any, directory: Path
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ss.Engine(chain, horizon=0) as engine, ss.Engine(chain, horizon=0) as other:
        feed = make_feed(engine, directory)
        query = start(session, directory, feed)
        query.processAllAvailable()
        plain = ss.spark.foreach_batch(other, order_by="time", to=lambda table, batch_id: None)
        second = start(session, directory, plain, name="second")
        second.processAllAvailable()
        with ss.spark.stop_on_signal(query, second, close=[engine]) as stop:
            assert not stop.requested.is_set()
            os.kill(os.getpid(), signal.SIGTERM)
            for ending in (query, second):
                assert ending.awaitTermination(WAIT_SECONDS)
        for ended in (query, second):
            assert not ended.isActive
            assert ended.exception() is None
        with pytest.raises(ss.EngineClosedError):
            engine.snapshot()
        assert other.state.seen == FILES * ROWS
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_second_signal_does_what_the_first_would_have_done(
    session: Any, directory: Path
) -> None:
    inside, go_on = threading.Event(), threading.Event()
    signals: list[int] = []

    def slow(table: Any, batch_id: int) -> None:
        inside.set()
        assert go_on.wait(WAIT_SECONDS)

    before = signal.signal(signal.SIGTERM, lambda number, frame: signals.append(number))
    try:
        with ss.Engine(chain, horizon=0) as engine:
            query = start(session, directory, ss.spark.foreach_batch(engine, to=slow))
            with ss.spark.stop_on_signal(query) as stop:
                assert inside.wait(WAIT_SECONDS)
                os.kill(os.getpid(), signal.SIGTERM)
                assert stop.requested.wait(WAIT_SECONDS)
                assert signals == []
                os.kill(os.getpid(), signal.SIGTERM)
                assert signals == [signal.SIGTERM]
                go_on.set()
            assert query.exception() is None
        assert acknowledged(directory) == [0]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_batch_that_fails_after_the_signal_fails_the_query(session: Any, directory: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def failing(table: Any, batch_id: int) -> None:
        inside.set()
        assert go_on.wait(WAIT_SECONDS)
        raise OSError("disk full")

    with ss.Engine(chain, horizon=0) as engine:
        feed = ss.spark.foreach_batch(engine, to=failing)
        query = start(session, directory, feed)
        with ss.spark.stop_on_signal(query, close=[engine]) as stop:
            assert inside.wait(WAIT_SECONDS)
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.requested.wait(WAIT_SECONDS)
            go_on.set()
            with pytest.raises(StreamingQueryException, match="disk full"):
                query.awaitTermination()
        assert isinstance(feed.error, OSError)
        assert acknowledged(directory) == []
        with pytest.raises(ss.EngineClosedError):
            engine.snapshot()


@pytest.mark.parametrize("prefetch", [False, True])
def test_sigterm_while_a_directory_is_streamed_ends_the_program_behind_the_batch(
    session: Any, directory: Path, prefetch: bool
) -> None:
    sink = ss.sinks.parquet_sink(directory / "out")
    before = signal.getsignal(signal.SIGTERM)

    def to(table: Any, batch_id: int) -> None:
        if batch_id == 2:
            (query,) = session.streams.active
            os.kill(os.getpid(), signal.SIGTERM)
            while query.isActive:  # until the signal has told Spark's thread
                time.sleep(0.005)
        sink(table, batch_id)

    with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            source="origin",
            to=to,
            checkpoint=directory / "recorded",
            prefetch=prefetch,
        )
        with pytest.raises(SystemExit) as ended:
            ss.spark.stream_directory(
                session,
                directory / "events",
                feed,
                checkpoint=directory / "spark",
                files_per_trigger=1,
            )
        assert ended.value.code == 128 + signal.SIGTERM
        # One batch more, where Spark has handed it over by then.
        batches = feed.stats.batches
        assert batches in ((3, 4) if prefetch else (3,))
        assert len(list(sink.path.iterdir())) == batches
        # Spark may be stopped before it has noted that one, and hands it over again.
        assert acknowledged(directory) in ([0, 1, 2], list(range(batches)))
        assert feed.checkpoint is not None
        feed.checkpoint.close()
    assert signal.getsignal(signal.SIGTERM) is before
    run_to_the_end(session, directory)


def test_a_handler_of_the_users_own_stays_in_place_while_a_directory_is_streamed(
    session: Any, directory: Path
) -> None:
    signals: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: signals.append(number))
    try:
        with ss.Engine(chain, horizon=0) as engine:
            feed = ss.spark.foreach_batch(
                engine, to=lambda table, batch_id: os.kill(os.getpid(), signal.SIGTERM)
            )
            ss.spark.stream_directory(
                session, directory / "events", feed, checkpoint=directory / "spark"
            )
        assert signals == [signal.SIGTERM]
        assert feed.stats.events == FILES * ROWS
    finally:
        signal.signal(signal.SIGTERM, before)


def test_without_a_signal_handlers_are_as_they_were(session: Any, directory: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ss.Engine(chain, horizon=0) as engine:
        query = start(session, directory, make_feed(engine, directory), once=True)
        with ss.spark.stop_on_signal(query, signals=(signal.SIGTERM, signal.SIGUSR1)):
            query.awaitTermination()
        assert signal.getsignal(signal.SIGTERM) is before
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
        bad: Any = "query"
        with pytest.raises(ss.ConfigurationError, match="'query' is no streaming query"):
            ss.spark.stop_on_signal(bad)
        raised: list[Exception] = []

        def off_the_main_thread() -> None:
            try:
                ss.spark.stop_on_signal(query)
            except ss.ConfigurationError as error:
                raised.append(error)

        thread = threading.Thread(target=off_the_main_thread)
        thread.start()
        thread.join()
        assert "only the main thread" in str(raised[0])
        assert signal.getsignal(signal.SIGTERM) is before


# ---- stop() ----


def test_stopping_at_every_phase_of_a_batch_loses_and_repeats_nothing(
    session: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, stopping = threading.Event(), threading.Event()
    phase = ""

    def hit(step: str, batch_id: int) -> None:
        if step == phase:
            inside.set()
            assert stopping.wait(WAIT_SECONDS)

    # Where the crash tests kill the process, the batch waits here for stop().
    monkeypatch.setattr(failpoints, "hit", hit)

    def stop(query: Any) -> None:
        thread = threading.Thread(target=query.stop)
        thread.start()
        while query.isActive:  # until stop() has told Spark's thread
            time.sleep(0.005)
        stopping.set()
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()

    for phase in ("before-run", "before-write", "before-sink", "after-sink", "between batches"):
        inside.clear()
        stopping.clear()
        with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
            feed = make_feed(engine, directory)
            query = start(session, directory, feed)
            if phase == "between batches":
                query.processAllAvailable()
            else:
                assert inside.wait(WAIT_SECONDS)
            stop(query)
            # What is acknowledged has been applied and recorded, at whatever phase it was stopped.
            recorded = feed.checkpoint.recorded.batch_id if feed.checkpoint.recorded else -1
            assert max(acknowledged(directory), default=-1) in (recorded - 1, recorded)
            feed.checkpoint.close()
    phase = ""
    run_to_the_end(session, directory)
