"""``datetime.datetime`` comes out in UTC, also where an earlier version has kept it without."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.checkpoint.fed import Fed
from support.engine.arriving import drain, until

import specstream as ss

NAIVE, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")


class Seen(ss.State):
    count = ss.scalar(int)


def build(column: Any) -> ss.Operator:
    """Of version 0.2, ``datetime.datetime`` was ``ss.timestamp("us", None)``."""

    @ss.operator(
        name="seen",
        state=Seen,
        event={"at": column, "n": int},
        emits={"at": column, "hour": ss.nullable(column), "count": int},
    )
    def seen(state, event, emit):
        state.count += 1
        hour = event.at // 3_600_000_000 * 3_600_000_000
        emit(event.at, hour if event.n else None, state.count)

    return seen


EARLIER, NOW = build(ss.timestamp("us", None)), build(datetime.datetime)


def events(first: int, of: pa.DataType = UTC) -> pa.Table:
    times = pa.array(range(first, first + 3), pa.int64())
    return pa.table({"at": times.cast(of), "n": times, "key": times})


def expected(*firsts: int) -> pa.Table:
    return NOW.run_sequential(pa.concat_tables(map(events, firsts))).output


@pytest.mark.parametrize("of", [UTC, NAIVE, pa.timestamp("us", "Asia/Tokyo")])
def test_it_is_utc_whatever_the_events_have(of: pa.DataType) -> None:
    """As many microseconds: a time without a zone is read as it stands."""
    with ss.Engine(NOW, threads=2) as engine:
        output = engine.process(events(5, of))
    assert [output.schema.field(name).type for name in ("at", "hour")] == [UTC, UTC]
    assert output.equals(NOW.run_sequential(events(5, of)).output)
    assert output.equals(expected(5))
    without = EARLIER.run_sequential(events(5, of)).output
    assert [without.schema.field(name).type for name in ("at", "hour")] == [NAIVE, NAIVE]
    assert without.cast(output.schema).equals(output)


def test_windows_of_times_begin_and_end_in_utc() -> None:
    def add(window, event):
        window.count += event.n

    class Count(ss.Record):
        count: int = 0

    windows = ss.windows.by_time(Count, add, 2, event={"n": int}, unit=datetime.datetime)
    with ss.Engine(windows) as engine:
        output = engine.process(events(0), order_by="at", end=True)
    assert [output.schema.field(name).type for name in ("start", "end")] == [UTC, UTC]
    assert output["end"].cast(pa.int64()).to_pylist() == [2, 4]


def test_vertices_that_name_the_zone_and_that_do_not_go_together() -> None:
    def of(column):
        pipeline = ss.Pipeline("times")
        source = pipeline.source("events", {"at": datetime.datetime, "n": int})
        first = pipeline.add(NOW, source)

        @ss.operator(event={"at": column, "count": int}, emits={"at": column, "count": int})
        def last(event, emit):
            emit(event.at, event.count)

        pipeline.sink("rows", pipeline.add(last, first))
        return pipeline

    pipeline = of(ss.timestamp("us", None))
    with ss.Engine(pipeline, threads=2) as engine:
        output = engine.process(events(0))
    assert output["at"].type == NAIVE
    assert output["at"].cast(UTC).equals(expected(0)["at"])
    with pytest.raises(ss.DeclarationError, match=r"reads the column 'at' as timestamp\[ms\]"):
        of(ss.timestamp("ms", None))


@pytest.mark.parametrize("earlier", [EARLIER, build(ss.timestamp("us", "Asia/Tokyo"))])
def test_a_snapshot_with_events_and_rows_of_another_zone_goes_on_in_utc(
    earlier: ss.Operator,
) -> None:
    with ss.Engine(earlier, threads=2) as engine:
        engine.submit(events(0), order_by="key")
        engine.submit(events(3), order_by="key")
        engine.advance(0, 2)
        until(lambda: engine.stats.events == 3)
        snapshot = engine.snapshot()  # of three rows that nobody has polled, and three events
    with ss.Engine(NOW, threads=2, restore=snapshot) as engine:
        assert (engine.stats.pending, engine.state.count) == (3, 3)
        engine.advance(0)
        output, _ = drain(engine, 3)
        assert output.combine_chunks().equals(expected(0, 3))


@pytest.mark.parametrize("zone", ["Asia/Tokyo", None])
def test_a_snapshot_with_events_of_another_unit_is_refused(zone: str | None) -> None:
    with ss.Engine(EARLIER, threads=2) as engine:
        engine.submit(events(0), order_by="key")
        snapshot = engine.snapshot()
    with pytest.raises(ss.SnapshotError, match=r"holds 3 event\(s\) that are not committed"):
        ss.Engine(build(ss.timestamp("ms", zone)), restore=snapshot)


def test_a_recorded_batch_without_a_zone_comes_again_in_utc(tmp_path: Path) -> None:
    given: list[pa.Table] = []

    def to(rows: pa.Table, batch_id: int) -> None:
        given.append(rows)

    options = {"to": to, "order_by": "key", "checkpoint": tmp_path, "keep_batches": 5}
    with ss.Engine(EARLIER, threads=2) as engine:
        fed = Fed(engine, **options)
        fed.send(0, events(0))
        fed.checkpoint.close()
    assert ss.spark.replay(tmp_path, 0, NOW).difference is None
    with ss.Engine(NOW, threads=2) as engine:
        fed = Fed(engine, **options)
        fed.send(0, events(0))
        fed.send(1, events(3))
        fed.checkpoint.close()
    assert given[0]["at"].type == NAIVE
    assert pa.concat_tables(given[1:]).equals(expected(0, 3))


def test_a_directory_of_files_without_a_zone_gets_none_with_one(tmp_path: Path) -> None:
    old, new = (operator.run_sequential(events(0)).output for operator in (EARLIER, NOW))
    ss.sinks.parquet_sink(tmp_path)(old, 0)
    message = (
        r"column 'at' is timestamp\[us, tz=UTC\], and timestamp\[us\] in part-00000000.parquet.*"
        r'declare it ss.timestamp\("us", None\) to go on as before'
    )
    sink = ss.sinks.parquet_sink(tmp_path)
    for _ in range(2):  # it is not forgotten
        with pytest.raises(ss.SinkError, match=message):
            sink(new, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000000.parquet"]
    sink(old, 1)
    # The only file is that of the batch itself, which it replaces.
    (tmp_path / "part-00000001.parquet").unlink()
    ss.sinks.parquet_sink(tmp_path)(new, 0)
    assert pq.read_table(tmp_path / "part-00000000.parquet")["at"].type == UTC
    with pytest.raises(ss.SinkError, match=r'declare it ss.timestamp\("us", "UTC"\)'):
        ss.sinks.parquet_sink(tmp_path)(old, 1)
