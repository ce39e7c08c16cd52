"""Bad rows outlive the engine: in snapshots, and in the files of a checkpoint."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import specstream as ss
from specstream.checkpoint.run.checkpoint import Checkpoint


class Seen(ss.State):
    n = ss.scalar(int)
    others = ss.array(int, 20_000)  # so that an increment is smaller than a full file


@ss.operator(state=Seen, event={"x": int}, emits={"n": int})
def count(state, event, emit):
    state.n += 1
    emit(state.n)


def engine_of(**options: Any) -> ss.Engine:
    return ss.Engine(count, horizon=0, rejected_rows="side", **options)


def rejected_by(engine: ss.Engine) -> pa.Table:
    """The rows that it has rejected, of which there are some."""
    rejected = engine.rejected_rows()
    assert rejected is not None
    return rejected


def test_a_snapshot_holds_those_that_nobody_has_fetched() -> None:
    with engine_of() as engine:
        engine.process({"x": [1, None]})
        engine.rejected_rows()
        engine.process({"x": [None, 2], "of": ["a", "b"]})
        engine.process(pa.table({"x": pa.array([2**63], pa.uint64()), "of": [3]}))
        snapshot = engine.snapshot()
        first, second = rejected_by(engine), rejected_by(engine)
    assert first.to_pylist() == [{"x": None, "of": "a", "reason": "column 'x' is null"}]
    assert second["of"].to_pylist() == [3]
    with engine_of(restore=snapshot) as engine:
        assert engine.stats.rejected_rows == 0
        assert rejected_by(engine).equals(first)
        assert rejected_by(engine).equals(second)
        assert engine.rejected_rows() is None
        engine.process({"x": [None]})
        engine.restore(snapshot)
        assert rejected_by(engine).equals(first)


def test_an_engine_without_any_writes_the_snapshot_that_it_always_wrote() -> None:
    with engine_of() as engine:
        engine.process({"x": [1]})
        assert b"bad_rows" not in engine.snapshot()


@pytest.mark.parametrize("full", [True, False])
def test_a_file_holds_those_for_the_sink_and_those_that_the_engine_keeps(
    full: bool, tmp_path: Path
) -> None:
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        output = engine.process({"x": [1, 2]})
        checkpoint.record("q", 0, output)
        if full:
            checkpoint._lengths = []
        engine.process({"x": [None], "of": ["for the sink"]})
        letters = rejected_by(engine)
        output = engine.process({"x": [3, None], "of": ["", "kept"]})
        checkpoint.record("q", 1, output, rejected=letters)
        checkpoint.close()
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        assert (tmp_path / "0000000001.full").exists() == full
        assert checkpoint.recorded is not None
        assert letters.equals(checkpoint.recorded.rejected)
        assert engine.state.n == 3
        assert rejected_by(engine)["of"].to_pylist() == ["kept"]
        checkpoint.record("q", 2, engine.process({"x": [4]}))
        checkpoint.close()
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        assert checkpoint.recorded is not None
        assert checkpoint.recorded.rejected is None
        assert engine.rejected_rows() is None
        checkpoint.close()


def test_a_batch_that_fails_forgets_its_own_and_no_others(tmp_path: Path) -> None:
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        checkpoint.record("q", 0, engine.process({"x": [1, None]}))
        engine.process({"x": [None, None]})
        engine.rollback(checkpoint.savepoint())
        assert rejected_by(engine).num_rows == 1
        checkpoint.close()
