"""Early results of a query: they come beside the final rows, which are what they are without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.spark import crash_driver

import specstream as ss

pytest.importorskip("pyspark")

FILES, ROWS = 4, 30


def test_final_rows_are_those_without_and_in_the_end_all_that_stands(
    session: Any, tmp_path: Path
) -> None:
    crash_driver.write_events(tmp_path / "events", FILES, ROWS, watermark=True)
    stood: list[int] = []

    def run(name: str, early_to: Any) -> None:
        early = early_to is not None
        with ss.Engine(crash_driver.chain, threads=2, early=early) as engine:
            feed = ss.spark.foreach_batch(
                engine,
                order_by="time",
                source="origin",
                to=ss.sinks.parquet_sink(tmp_path / name / "out"),
                late_to=ss.sinks.parquet_sink(tmp_path / name / "late"),
                checkpoint=tmp_path / name / "recorded",
                early_to=early_to,
                **crash_driver.event_time(tmp_path),
            )

            def look(batch_id: int) -> None:
                if early:
                    stood.append(ss.sinks.latest(early_to).num_rows)

            ss.spark.stream_directory(
                session,
                tmp_path / "events",
                feed,
                checkpoint=tmp_path / name / "spark",
                files_per_trigger=1,
                on_batch=look,
            )
            feed.finish()

    run("plain", None)
    memory = ss.sinks.memory_sink("early")
    for name, sink in (
        ("delta", ss.sinks.early_delta_sink(tmp_path / "table")),
        ("memory", memory),
    ):
        run(name, sink)
        for part in sorted((tmp_path / "plain" / "out").iterdir()):
            assert (tmp_path / name / "out" / part.name).read_bytes() == part.read_bytes()
        final = crash_driver.rows_of(tmp_path / name / "out")
        stands = ss.sinks.latest(sink)
        assert set(stands["change"].to_pylist()) == {"final"}
        assert stands.select(final.column_names).equals(final)
    # Each event emits one row, and no batch is without early ones.
    changes = [set(table["change"].to_pylist()) for table in memory.batches.values()]
    assert all("early" in one for one in changes[:-1])
    assert stood == [ROWS * (number + 1) for number in range(FILES)] * 2


def test_each_sink_of_a_pipeline_has_its_table_through_a_restart(
    session: Any, tmp_path: Path
) -> None:
    """In the midst of a batch that one sink has had, and the next one has not."""
    crash_driver.write_events(tmp_path / "events", 3, ROWS, watermark=True, pipeline=True)
    logs = [ss.sinks.memory_sink(name) for name in ("before", "behind")]
    table = ss.sinks.early_delta_sink(tmp_path / "table")
    breaks = [1]

    def audited(changes: pa.Table, batch_id: int) -> None:
        if batch_id in breaks:
            breaks.remove(batch_id)
            raise OSError("not there")
        logs[not breaks](changes, batch_id)

    def run() -> None:
        with ss.Engine(crash_driver.operator_of(tmp_path), threads=2, early=True) as engine:
            feed = ss.spark.foreach_batch(
                engine,
                order_by="time",
                source="origin",
                to={name: ss.sinks.parquet_sink(tmp_path / name) for name in ("out", "audit")},
                late_to=ss.sinks.parquet_sink(tmp_path / "late"),
                checkpoint=tmp_path / "recorded",
                early_to={"audit": audited, "out": table},
                **crash_driver.event_time(tmp_path),
            )
            ss.spark.stream_directory(
                session,
                tmp_path / "events",
                feed,
                checkpoint=tmp_path / "spark",
                files_per_trigger=1,
            )
            feed.finish()

    with pytest.raises(Exception, match="not there"):
        run()
    assert set(logs[0].batches) == {0}
    run()
    assert set(logs[1].batches) == {1, 2, 3}
    oracle = crash_driver.sequential(tmp_path)
    log = [*logs[0].batches.values(), *logs[1].batches.values()]
    for name, stands in (("out", ss.sinks.latest(table)), ("audit", ss.early.latest(log))):
        final = crash_driver.rows_of(tmp_path / name)
        assert final.num_rows == oracle.output[name].num_rows
        assert final.select(oracle.output[name].column_names).equals(oracle.output[name])
        assert set(stands["change"].to_pylist()) == {"final"}
        assert stands.select(final.column_names).equals(final)
