"""Phases by time and durability, without Spark: watermarks, checkpoints, restarts, replays."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed
from support.pipelines.graphs import random_pipeline
from test_phases import rows
from test_phases_by_time import DAY, failing_pipeline, meeting, timed, witnessed
from test_pipelines_in_checkpoints import Kept

import specstream as ss
from specstream.checkpoint.inspect.replay import replay

BATCHES = 6


def disordered(p: ss.Pipeline, seed: int, count: int = 150) -> tuple[list[pa.Table], Any]:
    """Batches of events that are up to 30 late, and what the witness makes of all."""
    draw = random.Random(seed)
    table, each = timed(p, count, seed, 40)
    # Of one time and source they keep their order.
    slots = sorted(range(count), key=lambda at: table["time"][at].as_py() + draw.randint(0, 10))
    of: dict[Any, list[int]] = {}
    columns = [table[one].to_pylist() for one in ("time", "stream") if one in table.column_names]
    keys = list(zip(*columns, strict=True))
    for at in range(count):
        of.setdefault(keys[at], []).append(at)
    late = table.take([of[keys[at]].pop(0) for at in slots])
    size = -(-count // BATCHES)
    return [late.slice(at, size) for at in range(0, count, size)], witnessed(p, each)


def feed_of(p: ss.Pipeline, home: Path, sinks: dict[str, Kept], **options: Any) -> Fed:
    engine = ss.Engine(p, **options)
    names = list(p._graph.sources) if len(p._graph.sources) > 1 else []
    return Fed(
        engine, order_by="time", to=sinks, checkpoint=home / "recorded", keep_batches=BATCHES + 1,
        watermark=30, sources=names,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_with_a_watermark_that_is_started_again(seed: int, tmp_path: Path) -> None:
    p = random_pipeline(seed, most=4, sources=1 + seed, phases="time")
    batches, seen = disordered(p, seed)
    sinks = {name: Kept() for name in p._graph.sinks}
    options: dict[str, Any] = {"threads": 2, "horizon": 4, "chunk": 2}
    feed = feed_of(p, tmp_path, sinks, **options)
    for batch_id, batch in enumerate(batches):
        feed.send(batch_id, batch)
        if batch_id % 2:  # with events that wait
            assert feed.engine.stats.pending > 0
            feed.close()
            feed = feed_of(p, tmp_path, sinks, **options)
    feed.runner.finish()
    assert feed.engine.stats.pending == 0
    found = {name: [tuple(row.values()) for row in sink.rows] for name, sink in sinks.items()}
    assert found == seen.rows
    feed.close()
    for batch_id in range(len(batches) + 1):
        replayed = replay(tmp_path / "recorded", batch_id)
        assert replayed.is_recorded
        assert replayed.difference is None, str(replayed.difference)


def test_a_phase_that_raises_fails_its_batch_and_is_replayed(tmp_path: Path) -> None:
    p = failing_pipeline(2)
    batches, seen = disordered(p, 1)
    assert seen.raised
    feed = feed_of(p, tmp_path, {name: Kept() for name in p._graph.sinks})
    failed = None
    for batch_id, batch in enumerate(batches):
        try:
            feed.send(batch_id, batch)
        except ValueError as error:
            failed = batch_id, error.specstream_phase  # type: ignore[attr-defined]
            break
    feed.close()
    assert failed is not None
    replayed = replay(tmp_path / "recorded", failed[0])
    assert replayed.difference is None, str(replayed.difference)
    assert isinstance(replayed.error, ValueError)
    assert replayed.raised is not None
    assert (replayed.raised.event, replayed.raised.type) == (replayed.done, "ValueError")


def test_without_a_watermark_it_is_refused(tmp_path: Path) -> None:
    with ss.Engine(meeting()) as engine:
        for order_by, asked in ((None, "give order_by=.*watermark="), ("time", "give watermark=")):
            with pytest.raises(ss.ConfigurationError, match=f"phases by time.*{asked}"):
                Fed(engine, order_by=order_by, to={"met": Kept()})


def test_late_rows_go_aside(tmp_path: Path) -> None:
    late = Kept()
    sink = Kept()
    p = meeting()
    table = p.events_table(DAY, "the day", ("time",))
    with ss.Engine(p) as engine:
        feed = Fed(
            engine, order_by="time", to={"met": sink}, watermark=1, late="side", late_to=late,
            sources=["ticks", "news"],
        )  # fmt: skip
        feed.send(0, table)
        feed.send(1, table.filter(pa.array([True, *[False] * 6])))
        feed.runner.finish()
        assert late.rows[0]["time"] == 1
        assert engine.stats.late == 1
    assert sink.rows == [
        dict(zip(("tick", "news", "both"), row, strict=True))
        for row in rows(p, p.run_sequential(DAY, order_by="time").output)["met"]
    ]


def test_a_stream_goes_on_with_the_phases_that_it_began_with(tmp_path: Path) -> None:
    table = meeting().events_table(DAY, "the day", ("time",))
    feed = feed_of(meeting("event"), tmp_path, {"met": Kept()})
    feed.send(0, table)
    feed.close()
    with pytest.raises(ss.SnapshotError, match="phases was 'event' and is now 'time'"):
        feed_of(meeting(), tmp_path, {"met": Kept()})
    feed_of(meeting("event"), tmp_path, {"met": Kept()}).close()
