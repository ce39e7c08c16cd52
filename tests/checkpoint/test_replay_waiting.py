"""Batches of a stream with a watermark, replayed: what waited before them commits in its place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from support.checkpoint.fed import Fed

import specstream as ss
from specstream.checkpoint.inspect.committing import first_difference_of_waiting
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.cli import main
from specstream.engine.pending_bytes import pack_pending
from specstream.sinks.memory import memory_sink

OPERATORS = """
import specstream as ss


class Chain(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    sums = ss.array(float, 7)


def build(step=1):
    @ss.operator(
        state=Chain,
        event={"x": int, "weight": float, "name": ss.nullable(str)},
        emits={"x": int, "name": str, "hash": int, "sum": float, "luck": float, "number": int},
    )
    def chain(state, event, emit):
        if event.x < 0:
            raise ValueError("below zero")
        state.seen += step * len(f"{event.x}"[:1])  # of the event alone: 1
        state.hash = state.hash * 6364136223846793005 + event.x
        at = event.x % 7
        state.sums[at] += event.weight
        if event.x % 5:
            name = event.name
            if event.is_null("name"):
                name = "none"
            emit(event.x, name, state.hash, state.sums[at], event.random(0), event.sequence)

    return chain


chain = build()
other = build(2)
"""
BATCHES, ROWS = 8, 30
ORIGINS = ("EWR", "JFK", "LGA", "PHL")


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("operators")
    (directory / "chains.py").write_text(OPERATORS)
    sys.path.insert(0, str(directory))
    import chains

    yield chains
    sys.path.remove(str(directory))
    del sys.modules["chains"]


def rows_of(rng: np.random.Generator, batch_id: int, as_times: bool) -> pa.Table:
    """Many ties; batches overlap in time; one source is silent from the third batch on."""
    times = rng.integers(0, 40, ROWS) + 15 * batch_id
    sources = ORIGINS if batch_id < 3 else ORIGINS[:-1]
    names = [None, "a", f"batch {batch_id}"]
    return pa.table(
        {
            "time": pa.array(times, pa.int64()).cast(pa.timestamp("s") if as_times else pa.int64()),
            "origin": rng.choice(sources, ROWS),
            "x": rng.integers(0, 100, ROWS) + 1000 * batch_id,
            "weight": rng.normal(size=ROWS),
            "name": [names[at] for at in rng.integers(0, 3, ROWS)],
        }
    )


class Life:
    """A process's life with a checkpoint; Spark's part of it left out."""

    def __init__(self, operator: ss.Operator, home: Path, **options: Any) -> None:
        self.late = memory_sink("late")
        keys = options.pop("keys", False)
        self.engine = ss.Engine(operator, threads=2, horizon=8, chunk=4, seed=3, keys=keys)
        if options.get("late") == "side":
            options["late_to"] = self.late
        options = {"order_by": "time", "source": "origin", "keep_batches": 99, **options}
        self.feed: Any = Fed(
            self.engine, to=lambda table, batch_id: None, checkpoint=home, **options
        )

    def run(self, batch_id: int, rows: pa.Table) -> int:
        """How many events wait afterwards."""
        self.feed.apply(batch_id, rows)
        return self.engine.stats.pending

    def end(self) -> None:
        self.feed.close()


STREAMS: dict[str, dict[str, Any]] = {
    "numbers": {"watermark": 10, "late": "drop"},
    "times": {"watermark": "10 seconds", "idle_timeout": "20 seconds", "late": "drop"},
    "keys": {"watermark": 4, "idle_timeout": 25, "late": "side", "keys": True},
    "silent": {"watermark": 0, "idle_timeout": 30, "late": "side", "sources": ["ABE", "JFK"]},
    "one source": {"watermark": 12, "source": None, "late": "drop", "keys": True},
}


@pytest.mark.parametrize("name", STREAMS)
def test_every_batch_commits_the_same_events_and_leaves_the_same_ones(
    module: Any, tmp_path: Path, name: str
) -> None:
    options = STREAMS[name]
    rng = np.random.default_rng(len(name))
    life = Life(module.chain, tmp_path, **options)
    waited = []
    for batch_id in range(BATCHES):
        if batch_id == 5:  # a restart: what waits comes out of the file
            life.end()
            life = Life(module.chain, tmp_path, **options)
        waited.append(life.run(batch_id, rows_of(rng, batch_id, name == "times")))
    late = life.engine.stats.late
    life.end()
    committed = 0
    for batch_id in range(BATCHES):
        found = ss.spark.replay(tmp_path, batch_id)
        assert found.is_recorded
        assert found.difference is None, found.difference
        assert found.waiting == waited[batch_id]
        committed += found.events
        assert found.done == found.events
    assert 0 < max(waited) < BATCHES * ROWS
    assert committed > ROWS
    assert found.state.seen == committed
    assert committed + waited[-1] + late == BATCHES * ROWS
    assert late > 0

    changed = ss.spark.replay(tmp_path, 1, module.other)
    assert changed.difference is not None
    assert changed.difference.where in ("output", "state")


def test_what_waits_is_compared_source_by_source_and_event_by_event(
    module: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    life = Life(module.chain, tmp_path, watermark=10, late="drop")
    rows = rows_of(rng, 0, False)
    life.run(0, rows)
    recorded = pack_pending(life.engine.durable.pending)
    life.end()
    assert first_difference_of_waiting(recorded, recorded) is None
    recorded_of = {}
    for what, changed in (
        ("weights", rows.set_column(3, "weight", pa.array([-1.0] * ROWS))),
        ("fewer", rows.slice(1)),
        ("later", rows.set_column(0, "time", pa.array([t.as_py() + 1 for t in rows["time"]]))),
    ):
        life = Life(module.chain, tmp_path / what, watermark=10, late="drop")
        life.run(0, changed)
        recorded_of[what] = pack_pending(life.engine.durable.pending)
        life.end()
    found = {
        what: first_difference_of_waiting(recorded, each) for what, each in recorded_of.items()
    }
    assert str(found["weights"]).startswith("waiting events, row 0, column weight: recorded ")
    assert "next_sequence: recorded " in str(found["fewer"])
    assert ", frontier: recorded " in str(found["later"])


def test_a_batch_that_leaves_other_events_waiting_differs(module: Any, tmp_path: Path) -> None:
    rows = {"x": [1, 2], "name": ["a", "b"], "time": [0, 9]}
    for name, weight in (("one", 0.5), ("other", 0.25)):
        life = Life(module.chain, tmp_path / name, watermark=5, source=None)
        assert life.run(0, pa.table({**rows, "weight": [1.0, weight]})) == 1
        life.end()
    name = "0000000000.input"
    (tmp_path / "other" / name).write_bytes((tmp_path / "one" / name).read_bytes())
    assert ss.spark.replay(tmp_path / "one", 0).difference is None
    found = ss.spark.replay(tmp_path / "other", 0).difference
    assert str(found) == "waiting events, row 0, column weight: recorded 0.25, replayed 0.5"


@pytest.fixture
def failing(module: Any, tmp_path: Path) -> Path:
    """Two batches; an event of the first one has waited, and fails in the second."""
    life = Life(module.chain, tmp_path, watermark=10, source=None)
    rows: dict[str, list[Any]] = {"x": [1, 2, -1, 3], "weight": [0.5] * 4, "name": ["a"] * 4}
    assert life.run(0, pa.table({"time": [1, 2, 5, 11], **rows})) == 3
    late = {name: values[:3] for name, values in rows.items()}
    with pytest.raises(ValueError, match="below zero"):
        life.run(1, pa.table({"time": [4, 16, 30], **late, "x": [7, 8, 9]}))
    assert life.engine.stats.pending == 3
    life.end()
    return tmp_path


def test_an_event_that_waited_fails_in_the_batch_that_commits_it(failing: Path) -> None:
    found = ss.spark.replay(failing, 1)
    assert str(found.error) == "below zero"
    assert found.raised is not None
    # At 1 it was committed with batch 0; 2, 4, and then the event at 5.
    assert (found.raised.event, found.done) == (2, 2)
    assert found.difference is None
    assert found.output["x"].to_pylist() == [2, 7]


def test_rows_that_are_late_are_refused_again(module: Any, tmp_path: Path) -> None:
    life = Life(module.chain, tmp_path, watermark=1, source=None)
    rows = {"x": [1, 2], "weight": [0.5] * 2, "name": ["a"] * 2}
    life.run(0, pa.table({"time": [1, 20], **rows}))
    with pytest.raises(ss.InputError, match="late"):
        life.run(1, pa.table({"time": [3, 30], **rows}))
    life.end()
    found = ss.spark.replay(tmp_path, 1)
    assert isinstance(found.error, ss.InputError)
    assert found.difference is None
    assert found.events == 0


def test_a_process_that_died_in_a_batch_has_left_enough_to_run_it(
    module: Any, tmp_path: Path
) -> None:
    life = Life(module.chain, tmp_path, watermark=10, late="drop")
    rng = np.random.default_rng(2)
    life.run(0, rows_of(rng, 0, False))
    feed = life.feed
    rows = rows_of(rng, 1, False)
    feed.runner.inputs.begin(1, "q", rows, feed.checkpoint.newest)
    life.end()
    found = ss.spark.replay(tmp_path, 1)
    assert not found.is_recorded
    assert found.events == found.done > 0
    life = Life(module.chain, tmp_path, watermark=10, late="drop")
    assert life.run(1, rows) == found.waiting
    with ss.Engine(module.chain, horizon=0, seed=3) as engine:
        life.feed.checkpoint.close()
        recorded = Checkpoint(engine, tmp_path).recorded
        assert recorded is not None
        assert recorded.output.equals(found.output)
    life.end()


def test_the_command_says_how_many_events_wait(failing: Path, module: Any) -> None:
    done = CliRunner().invoke(main, ["replay", str(failing), "--batch", "0", "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["events"], report["waiting"], report["identical"]) == (1, 3, True)
    done = CliRunner().invoke(main, ["replay", str(failing), "--batch", "0"])
    assert "1 of 1 events applied, 1 rows, 3 events wait" in done.stdout
    assert "identical to the record" in done.stdout
    # Neither Spark nor pandas, of which a watermark was made, is needed.
    without = failing / "without"
    without.mkdir()
    (without / "pandas.py").write_text("raise ImportError")
    code = (
        "import sys; sys.modules['pyspark'] = None; import specstream as ss;"
        f"print(ss.spark.replay({str(failing)!r}, 0).waiting)"
    )
    environment = {"PYTHONPATH": f"{without}:{Path(module.__file__).parent}"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert run.stdout == "3\n", run.stderr
