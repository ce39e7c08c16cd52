"""Batches that run behind Spark's back: killed anywhere, none is lost and none is applied twice."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest
from support import processes
from support.checkpoint.fed import Fed

import specstream as ss
from specstream.sinks.memory import memory_sink
from specstream.sinks.parquet import parquet_sink

pytestmark = pytest.mark.slow

BATCHES = 5
# Of batch 2: while its rows are written, while it runs and is recorded, and around the sink. The
# steps of writing a file are reached by its rows first.
STEPS = (
    "half-written",
    "before-rename",
    "after-rename",
    "before-run",
    "before-write",
    "before-delete",
    "prepared",
    "before-sink",
    "before-commit",
    "after-sink",
)


class Chain(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)


@ss.operator(state=Chain, event={"x": int}, emits={"hash": int, "place": int})
def chain(state, event, emit):
    # Every order of the same events gives another hash.
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.x
    emit(state.hash, state.seen)


def rows_of(batch_id: int) -> pa.Table:
    return pa.table({"x": [batch_id * 10 + at for at in range(10)]})


def acknowledge(file: Path, batch_id: int) -> None:
    """Whole or not at all, as Spark does it: the process is killed at any instant."""
    written = file.with_suffix(".new")
    written.write_text(str(batch_id))
    written.replace(file)


def drive(home: Path) -> None:
    """Sends the batches as Spark does: from the one behind the last that was acknowledged on."""
    acknowledged = home / "acknowledged"
    with ss.Engine(chain, threads=2, horizon=4, chunk=2) as engine:
        feed = Fed(
            engine,
            to=parquet_sink(home / "out"),
            checkpoint=home / "checkpoint",
            prefetch=True,
        )
        done = int(acknowledged.read_text()) if acknowledged.exists() else -1
        for batch_id in range(done + 1, BATCHES):
            feed.send(batch_id, rows_of(batch_id), "query")
            acknowledge(acknowledged, batch_id)
        feed.wait()
        assert engine.state.seen == BATCHES * 10


def run(home: Path, crash: str | None) -> int:
    code = "import sys, test_ahead; from pathlib import Path; test_ahead.drive(Path(sys.argv[1]))"
    environment = processes.environment(
        Path(__file__).parent, SPECSTREAM_CRASH_LOG=str(home / "crashes")
    )
    environment.pop("SPECSTREAM_CRASH", None)
    if crash is not None:
        environment["SPECSTREAM_CRASH"] = crash
    return subprocess.run(
        [sys.executable, "-c", code, str(home)], env=environment, check=False
    ).returncode


@pytest.mark.parametrize(
    "step", [*STEPS[::2], *(pytest.param(step, marks=pytest.mark.long) for step in STEPS[1::2])]
)
def test_killed_at_any_step_nothing_is_lost_or_done_twice(step: str, tmp_path: Path) -> None:
    assert run(tmp_path, f"{step}@2") == -signal.SIGKILL
    assert (tmp_path / "crashes").read_text() == f"{step}@2\n"
    assert run(tmp_path, None) == 0
    expected = chain.run_sequential(pa.concat_tables(map(rows_of, range(BATCHES)))).output
    found = pyarrow.dataset.dataset(tmp_path / "out", format="parquet").to_table()
    assert found.equals(expected)
    assert not list((tmp_path / "checkpoint").glob("*.rows"))
    assert not list((tmp_path / "out").glob(".*"))


def test_rows_that_were_kept_are_run_without_ahead_as_well(tmp_path: Path) -> None:
    assert run(tmp_path, "before-write@2") == -signal.SIGKILL
    with ss.Engine(chain, horizon=0) as engine:
        feed = Fed(engine, to=parquet_sink(tmp_path / "out"), checkpoint=tmp_path / "checkpoint")
        seen = engine.state.seen
        # Batch 2, and batch 3 where its rows were kept by then.
        assert seen in (30, 40)
        assert feed.checkpoint.recorded is not None
        assert feed.checkpoint.recorded.batch_id == seen // 10 - 1
        (tmp_path / "checkpoint" / "0000000009.rows").write_bytes(b"")
        feed.checkpoint.close()
    with (
        ss.Engine(chain, horizon=0) as engine,
        pytest.raises(ss.ConfigurationError, match="and the rows of batch 9"),
    ):
        Fed(engine, to=print, checkpoint=tmp_path / "checkpoint")


def test_it_needs_a_checkpoint() -> None:
    with (
        ss.Engine(chain, horizon=0) as engine,
        pytest.raises(ss.ConfigurationError, match="give checkpoint= as well"),
    ):
        Fed(engine, to=print, prefetch=True)


def test_close_waits_for_the_batch_under_way(tmp_path: Path) -> None:
    engine = ss.Engine(chain, threads=2)
    sink = memory_sink("rows")
    feed = Fed(engine, to=sink, checkpoint=tmp_path / "checkpoint", prefetch=True)
    feed.send(0, rows_of(0), "query")
    feed.close()
    assert engine.closed
    assert sink.to_arrow().num_rows == rows_of(0).num_rows
    # Nothing holds the directory any more.
    with ss.Engine(chain, threads=2) as another:
        again = Fed(another, to=sink, checkpoint=tmp_path / "checkpoint")
        assert again.checkpoint is not None
        assert again.checkpoint.recorded is not None
        assert again.checkpoint.recorded.batch_id == 0
