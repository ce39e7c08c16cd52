"""Timers through Spark: sessions that end, over a stop and a new start, until the stream ends; of
an operator, and of vertices of a pipeline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import specstream as ss

pytest.importorskip("pyspark")

FILES, ROWS, MINUTE = 4, 60, 60 * 10**6


class Sessions(ss.State):
    clicks = ss.dict(str, int)
    began = ss.dict(str, int)
    timers = ss.timers((str, str))


def ends(state, timer, emit):  # type: ignore[no-untyped-def]
    user, kind = timer.key
    if kind == "end":
        emit(user, state.began.pop(user), timer.timestamp, state.clicks.pop(user), kind)
    else:
        emit(user, 0, timer.timestamp, 0, kind)
    if kind == "end" and timer.at % 3 == 0:
        state.timers.set((user, "reminder"), timer.at + 20 * MINUTE)


@ss.operator(
    state=Sessions,
    event={"user": str},
    emits={"user": str, "began": int, "ended": int, "clicks": int, "kind": str},
    on_timer=ends,
)
def sessions(state, event, emit):  # type: ignore[no-untyped-def]
    """Ten minutes without a click end a session."""
    if event.user not in state.clicks:
        state.began[event.user] = event.timestamp
    state.clicks[event.user] = state.clicks.get(event.user, 0) + 1
    state.timers.set((event.user, "end"), event.timestamp + 10 * MINUTE)
    state.timers.cancel((event.user, "reminder"))


def clicks() -> pa.Table:
    """In the order of arrival, which is less than five minutes from that of the times."""
    rng = np.random.default_rng(5)
    count = FILES * ROWS
    times = np.cumsum(rng.choice([0, 1, 2, 9], count)) * MINUTE + np.arange(count)  # no ties
    came = np.argsort(times + rng.integers(0, 5 * MINUTE, count), kind="stable")
    table = pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "user": [f"u{n}" for n in rng.integers(0, 8, count)],
        }
    )
    return table.take(pa.array(came))


def write(table: pa.Table, home: Path, number: int) -> None:
    path = home / "files" / f"{number}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table.slice(number * ROWS, ROWS), path)
    os.utime(path, (1_000_000_000 + number,) * 2)


def run(session: Any, home: Path, feed: Any) -> None:
    """One file in a micro-batch."""
    schema = session.createDataFrame([], "time timestamp, user string").schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    query = (
        stream.parquet(str(home / "files"))
        .writeStream.foreachBatch(feed)
        .option("checkpointLocation", str(home / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)


@pytest.mark.parametrize("watermark", ["5 minutes", None])
def test_every_session_is_in_the_sink_once(
    session: Any, tmp_path: Path, watermark: str | None
) -> None:
    table = clicks()
    if watermark is None:  # each batch is in order, and the next one comes later
        table = table.sort_by("time")

    def feed_of(engine: ss.Engine) -> Any:
        return ss.spark.foreach_batch(
            engine,
            order_by="time",
            watermark=watermark,
            to=ss.sinks.parquet_sink(tmp_path / "out"),
            checkpoint=str(tmp_path / "kept"),
            keep_batches=FILES + 1,
        )

    # A stop in the middle ends nothing: timers wait in the checkpoint.
    for number in range(FILES // 2):
        write(table, tmp_path, number)
    with ss.Engine(sessions, threads=2, horizon=8, chunk=4, keys=True) as engine:
        run(session, tmp_path, feed_of(engine))
        assert len(engine.state.timers) > 0
        waited = engine.state.to_dict()["timers"]
    for number in range(FILES // 2, FILES):
        write(table, tmp_path, number)
    with ss.Engine(sessions, threads=2, horizon=8, chunk=4, keys=True) as engine:
        feed = feed_of(engine)
        assert engine.state.timers == waited
        run(session, tmp_path, feed)
        before = pq.read_table(tmp_path / "out").num_rows
        feed.finish()
        fired = engine.stats.timers
        kept = engine.state.to_dict()
    # The end again, by who begins again: the same rows for the sink, under the same id.
    with ss.Engine(sessions, horizon=0, keys=True) as engine:
        feed_of(engine).finish()
        assert engine.stats.timers == 0
        assert engine.state.to_dict() == kept

    parts = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(parts) == FILES + 1
    found = pa.concat_tables([pq.read_table(part) for part in parts])
    oracle = sessions.run_sequential(table.sort_by("time"), order_by="time", keys=True, end=True)
    assert found.equals(oracle.output)
    assert kept == oracle.state.to_dict()
    # Some have fired at the end only, and some that were set there wait for ever.
    last = pq.read_table(parts[-1])
    assert found.num_rows == before + last.num_rows
    assert 0 < last.num_rows < fired
    assert set(found["kind"].to_pylist()) == {"end", "reminder"}
    assert {kind for _, kind in kept["timers"]} == {"reminder"}
    for batch in range(FILES + 1):
        again = ss.spark.replay(tmp_path / "kept", batch=batch)
        assert again.is_recorded
        assert again.difference is None


class Kinds(ss.State):
    rows = ss.dict(str, int)
    timers = ss.timers(str)


def is_quiet(state, timer, emit):  # type: ignore[no-untyped-def]
    emit(timer.key, state.rows.pop(timer.key), timer.timestamp)


@ss.operator(
    state=Kinds,
    event={"kind": str},
    emits={"kind": str, "rows": int, "quiet": int},
    on_timer=is_quiet,
)
def kinds(state, event, emit):  # type: ignore[no-untyped-def]
    """How many came one after the other, with less than half an hour between."""
    state.rows[event.kind] = state.rows.get(event.kind, 0) + 1
    state.timers.set(event.kind, event.timestamp + 30 * MINUTE)


def test_timers_of_two_vertices(session: Any, tmp_path: Path) -> None:
    def pipeline() -> ss.Pipeline:
        p = ss.Pipeline("visits")
        ended = p.add(sessions, p.source("clicks", {"user": str}))
        p.sink("ended", ended)
        p.sink("kinds", p.add(kinds, ended))
        return p

    sinks = ("ended", "kinds")
    table = clicks()
    for half in (range(FILES // 2), range(FILES // 2, FILES)):
        for number in half:
            write(table, tmp_path, number)
        with ss.Engine(pipeline(), threads=2, horizon=8, chunk=4) as engine:
            feed = ss.spark.foreach_batch(
                engine,
                order_by="time",
                watermark="5 minutes",
                to={name: ss.sinks.parquet_sink(tmp_path / name) for name in sinks},
                checkpoint=str(tmp_path / "kept"),
                keep_batches=FILES + 1,
            )
            run(session, tmp_path, feed)
            if half.stop == FILES:
                feed.finish()
            kept = engine.state.to_dict()
    oracle = pipeline().run_sequential(table.sort_by("time"), order_by="time", end=True)
    for name in sinks:
        parts = sorted((tmp_path / name).glob("*.parquet"))
        found = pa.concat_tables([pq.read_table(part) for part in parts])
        assert found.num_rows > 5
        assert found.equals(oracle.output[name]), name
    assert len(kept["sessions.timers"]) > 0
    assert all(kept[name] == value for name, value in oracle.state.to_dict().items())
    fired = set()
    for batch in range(FILES + 1):
        again = ss.spark.replay(tmp_path / "kept", batch=batch)
        assert again.difference is None
        fired |= {key[0] for key, _ in again.timers.values()}
    assert fired == {"sessions", "kinds"}
