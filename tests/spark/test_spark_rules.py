"""A rule with a deadline through Spark: its alarms are those of the ordered run, each of them once,
whatever comes out of order, and wherever the query is killed."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import specstream as ss

pytest.importorskip("pyspark")

from support.spark import rule_driver
from support.spark.crash_driver import begin, end, rows_of
from support.spark.rule_driver import (
    AT_THE_DEADLINE,
    CROSSED,
    FILES,
    SILENT,
    TARDY,
    WATERMARK,
)

DRIVER = "support.spark.rule_driver"
# Where a batch is killed, and whether its alarms are in the sink then. Its events are applied, and
# nothing of it is on disk; all is, but nobody sees the alarms; Spark does not know of it yet.
STEPS = (("before-write", False), ("before-commit", False), ("after-sink", True))
BATCH = 4
PATIENCE = 180


def events_of(directory: Path) -> list[pa.Table]:
    return [pq.read_table(path) for path in sorted((directory / "events").iterdir())]


def parts_of(directory: Path) -> list[Path]:
    return sorted((directory / "out").glob("part-*.parquet"))


def microseconds(column: pa.ChunkedArray) -> list[int]:
    return column.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def check(directory: Path) -> None:
    """All alarms of the ordered run, each once, in its order; and what came too late."""
    expected = rule_driver.sequential(directory)
    found = rows_of(directory / "out")
    assert sorted(found["order"].to_pylist()) == sorted(expected["order"].to_pylist())
    assert found.equals(expected)
    late = rows_of(directory / "late")
    assert late.select(["order", "kind"]).to_pylist() == [{"order": TARDY, "kind": "paid"}]


def test_alarms_are_those_of_the_ordered_run_and_come_when_the_watermark_has_passed(
    session: Any, tmp_path: Path
) -> None:
    rule_driver.write_orders(tmp_path / "events")
    rule_driver.stream(session, tmp_path)
    check(tmp_path)

    parts = [pq.read_table(path) for path in parts_of(tmp_path)]
    assert len(parts) == FILES + 1  # the last one is of the end of the stream
    reached: list[int] = []
    told: dict[str, tuple[int, int]] = {}
    for at, (events, rows) in enumerate(zip(events_of(tmp_path), parts, strict=False)):
        reached.append(max([*microseconds(events["time"]), *([reached[-1]] if at else [])]))
        for order, decided in zip(
            rows["order"].to_pylist(), microseconds(rows["decided"]), strict=True
        ):
            told[order] = at, decided
    # Each as soon as event time less the watermark has passed its deadline.
    for at, decided in told.values():
        assert decided < reached[at] - WATERMARK
        assert at == 0 or decided >= reached[at - 1] - WATERMARK
    # A key of which nothing more comes; at its deadline itself it is not told yet.
    silent, deadline = told[SILENT]
    assert reached[AT_THE_DEADLINE] - WATERMARK == deadline
    assert silent == AT_THE_DEADLINE + 1
    assert TARDY in told
    # All else is told by the end of the stream, which lets all time pass.
    assert parts[-1].num_rows > 0
    assert len(told) + parts[-1].num_rows == rows_of(tmp_path / "out").num_rows
    assert min(microseconds(parts[-1]["decided"])) >= reached[-1] - WATERMARK


def test_early_alarms_are_taken_back_when_a_payment_comes_out_of_order(
    session: Any, tmp_path: Path
) -> None:
    rule_driver.write_orders(tmp_path / "events")
    early = ss.sinks.memory_sink("early")
    rule_driver.stream(session, tmp_path, early)
    check(tmp_path)
    final = rows_of(tmp_path / "out")
    stands = ss.sinks.latest(early)
    assert set(stands["change"].to_pylist()) == {"final"}
    assert stands.select(final.column_names).equals(final)
    changes = pa.concat_tables(early.batches.values())
    alarms = set(final["order"].to_pylist())
    by_change: dict[str, set[str]] = {"early": set(), "withdrawn": set(), "final": set()}
    for order, change in zip(
        changes["order"].to_pylist(), changes["change"].to_pylist(), strict=True
    ):
        by_change[change].add(order)
    # What the watermark has waited for.
    assert by_change["withdrawn"] == by_change["early"] - alarms == {CROSSED}
    assert by_change["final"] == alarms


@pytest.mark.parametrize(
    ("step", "shown"),
    [pytest.param(*step, marks=[pytest.mark.long] if at else []) for at, step in enumerate(STEPS)],
)
def test_killed_no_alarm_is_lost_and_none_comes_twice(
    session: Any, tmp_path: Path, step: str, shown: bool
) -> None:
    rule_driver.write_orders(tmp_path / "events")
    status = end(begin(tmp_path, f"{step}@{BATCH}", module=DRIVER))
    assert status == -signal.SIGKILL, (tmp_path / "errors").read_text()
    assert (tmp_path / "crashes").read_text() == f"{step}@{BATCH}\n"
    assert not (tmp_path / "spark" / "commits" / str(BATCH)).exists()  # in flight
    assert len(parts_of(tmp_path)) == BATCH + shown

    # At any time: when that batch has come again, or one or two more.
    dice = random.Random()
    process = begin(tmp_path, module=DRIVER)
    try:
        began, wanted = time.monotonic(), BATCH + dice.choice((1, 2, 3))
        while process.poll() is None and len(parts_of(tmp_path)) < wanted:
            assert time.monotonic() - began < PATIENCE
            time.sleep(0.002)  # looks again
        time.sleep(dice.uniform(0, 0.1))  # so that it dies at another place each time
        process.kill()
    finally:
        status = end(process)
    assert status == -signal.SIGKILL, (tmp_path / "errors").read_text()
    assert len(parts_of(tmp_path)) < FILES

    rule_driver.stream(session, tmp_path)
    check(tmp_path)
    # The batch that was killed has alarms.
    assert pq.read_table(parts_of(tmp_path)[BATCH]).num_rows > 0
