"""Ten thousand events that raise, through Spark and kills: each reaches its sink once, and what is
left is the run without them."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import json
import random
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import specstream as ss
from specstream.checkpoint.inspect.difference import first_difference, first_difference_of_states

pytest.importorskip("pyspark")

from support.spark import crash_driver
from support.stress.spark import cut_short, one_life

FILES, ROWS, POISON, KILLS = 100, 1000, 10_000, 12
# Random kills seldom fall where the rows are in their sink and the failed events are not.
BETWEEN_SINKS = 3


class Cells(list[float]):
    """A list that knows what it had where it was last changed."""

    def __setitem__(self, at: Any, value: Any) -> None:
        self.before = at, self[at]
        super().__setitem__(at, value)


class Plain:
    """A plain state, whose integer wraps as it does in 64 bits."""

    def __init__(self) -> None:
        self.seen = 0
        self._hash = 0
        self.cells = Cells([0.0] * crash_driver.CELLS)

    @property
    def hash(self) -> int:
        return self._hash

    @hash.setter
    def hash(self, value: int) -> None:
        self._hash = (value + 2**63) % 2**64 - 2**63


def plainly(events: list[Any]) -> tuple[Plain, list[tuple[Any, ...]], list[tuple[int, str]]]:
    """State, rows and failed events of the function itself, under plain Python."""
    state = Plain()
    rows: list[tuple[Any, ...]] = []
    failed: list[tuple[int, str]] = []
    for event in events:
        seen, hash, count = state.seen, state.hash, len(rows)
        try:
            crash_driver.poisoned.function(state, event, lambda *values: rows.append(values))
        except ValueError as error:
            state.seen, state.hash = seen, hash
            at, cell = state.cells.before
            state.cells[at] = cell
            del rows[count:]
            failed.append((event.x, str(error)))
    return state, rows, failed


@pytest.mark.long
def test_killed_at_random_each_of_ten_thousand_failed_events_is_delivered_once(
    tmp_path: Path,
) -> None:
    dice, seen = random.Random(3), collections.Counter[str]()
    crash_driver.write_events(tmp_path / "events", FILES, ROWS, poison=POISON)
    tables = [pq.read_table(path) for path in sorted((tmp_path / "events").iterdir())]
    of_files = [table["weight"].to_pylist().count(crash_driver.POISON) for table in tables]
    assert sum(of_files) == POISON
    # Of the worst file one too many: that batch fails, until somebody allows it.
    limit = tmp_path / "poison"
    limit.write_text(str(max(of_files) - 1))
    life = crash_driver.begin(tmp_path, f"between-sinks@{BETWEEN_SINKS}")
    assert crash_driver.end(life) == -signal.SIGKILL, (tmp_path / "errors").read_text()
    part = f"part-{BETWEEN_SINKS:08d}.parquet"
    assert [(tmp_path / name / part).exists() for name in ("out", "failed")] == [True, False]
    while True:
        try:
            end = one_life(tmp_path, seen["kills"] < KILLS, dice)
        except RuntimeError:
            assert f": {max(of_files)} event(s) have failed" in (tmp_path / "errors").read_text()
            assert limit.read_text() != str(POISON)
            worst = of_files.index(max(of_files))
            assert not (tmp_path / "failed" / f"part-{worst:08d}.parquet").exists()
            # A kill while Spark plans can put two files into one batch.
            limit.write_text(str(POISON))
            seen["refused"] += 1
            continue
        if end == "end":
            break
        seen["kills"] += 1
        seen[cut_short(tmp_path)] += 1
    assert (seen["refused"], seen["kills"]) == (1, KILLS)
    assert not any(crash_driver.compare(tmp_path).values())

    # The run without them, in which nothing fails.
    events = crash_driver.events_of(tmp_path)
    left = crash_driver.poisoned.run_sequential(
        events[events["weight"] != crash_driver.POISON], order_by="time", source="origin"
    )
    rows, told = (crash_driver.rows_of(tmp_path / name) for name in ("out", "failed"))
    assert rows.num_rows == FILES * ROWS - POISON
    assert first_difference(left.output, rows) is None
    # And plain Python, which has the events that raise found out by itself.
    state, plain_rows, failed = plainly(list(events.itertuples()))
    assert [tuple(row.values()) for row in rows.to_pylist()] == plain_rows
    assert list(zip(told["x"].to_pylist(), told["message"].to_pylist(), strict=True)) == failed
    assert len(failed) == POISON
    final = (tmp_path / "final").read_bytes()
    with ss.Engine(crash_driver.poisoned, horizon=0, restore=final) as engine:
        assert first_difference_of_states(left.state, engine.state) is None
        assert (engine.state.seen, engine.state.hash) == (state.seen, state.hash)
        assert engine.state.cells.tolist() == state.cells

    # Each life has counted those of its own batches, and all calls for a batch have the same rows.
    batches = list(map(json.loads, (tmp_path / "batches").read_text().splitlines()))
    for line in batches:
        assert line["failed"] == (0 if line["repeated"] else of_files[line["batch"]])
    assert BETWEEN_SINKS in [line["batch"] for line in batches if line["repeated"]]
    calls = list(map(json.loads, (tmp_path / "calls").read_text().splitlines()))
    assert len({(call["sink"], call["batch"], call["content"]) for call in calls}) == 2 * FILES
    print(f"{dict(seen)}; {len(failed)} failed events, {rows.num_rows} rows, {len(calls)} calls")
