"""The commands, with operators that Python runs as they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.commands import invoke

from specstream.cli.target import load_operator

OPERATORS = """
import numpy as np

import specstream as ss


class Sums(ss.State):
    total = ss.array(int, 4)


@ss.operator(state=Sums, event={"x": int}, emits={"total": int}, interpreted=True)
def sums(state, event, emit):
    if event.x < 0:
        raise ValueError("negative amount")
    state.total += np.arange(4) * event.x
    emit(int(np.sum(state.total)))


@ss.operator(event={"x": int}, emits={"x": int})
def passing(event, emit):
    emit(event.x)


@ss.operator(
    state=Sums, event={"x": int}, emits={"total": int}, interpreted=True, speculate=False
)
def alone(state, event, emit):
    state.total[0] += event.x
    emit(state.total[0])


mixed = ss.Pipeline("mixed")
mixed.sink("out", mixed.add(sums, mixed.add(passing, mixed.source("in", {"x": int}))))
"""
TARGETS = ["sums", "mixed"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    directory.mkdir()
    times = np.arange(600)
    pq.write_table(pa.table({"time": times, "x": times % 7}), directory / "0.parquet")
    return directory


def called(command: str, target: str, *more: object) -> Any:
    return invoke(command, target, "--order-by", "time", *more)


@pytest.mark.parametrize("target", [pytest.param("sums", marks=pytest.mark.long), "mixed"])
def test_tune_tries_settings_and_forecasts(operators: Path, data: Path, target: str) -> None:
    given = (f"{operators}:{target}", "--input", data, "--seconds", 0.1, "--threads", 2)
    done = called("tune", *given, "--protocol", "value", "--cores", 4, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert {one["threads"] for one in report["candidates"]} == {1, 2}
    assert {one["threads"] for one in report["model"]["best"]} == {2, 4}
    assert 0.0 <= report["model"]["held"] <= 1.0


@pytest.mark.parametrize("command", ["tune", "profile"])
def test_without_speculation_there_is_nothing_to_look_for(
    operators: Path, data: Path, command: str
) -> None:
    refused = called(command, f"{operators}:alone", "--input", data)
    assert refused.exit_code == 1
    assert "declared with speculate=False" in refused.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_profile_and_bench_run_them(operators: Path, data: Path, target: str) -> None:
    given = (f"{operators}:{target}", "--input", data)
    profiled = called("profile", *given, "--threads", 2, "--json")
    assert profiled.exit_code == 0, profiled.output
    assert json.loads(profiled.stdout)["events"] == 600
    measured = called("bench", *given, "--threads", 2, "--seconds", 0.1)
    assert measured.exit_code == 0, measured.output
    assert "log-free, 1 thread" in measured.stdout
    assert "global lock" not in measured.stdout  # which is the plain run


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_run_sets_aside_what_fails_and_replay_runs_a_batch_again(
    operators: Path, tmp_path: Path, target: str
) -> None:
    directory, output, failed, checkpoint = (
        tmp_path / name for name in ("some", "out", "failed", "checkpoint")
    )
    directory.mkdir()
    table = pa.table({"time": [1, 2, 3], "x": [5, -5, 7]})
    pq.write_table(table, directory / "0.parquet")
    done = called(
        "run", f"{operators}:{target}", "--input", directory, "--output", output,
        "--checkpoint", checkpoint, "--keep-batches", 1, "--errors", failed,
        "--errors-limit", 1, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    operator = load_operator(f"{operators}:{target}", {})
    expected = operator.run_sequential(table, order_by="time", errors="side")
    assert expected.failed_events is not None
    assert pyarrow.dataset.dataset(output).to_table().equals(expected.output)
    found = pyarrow.dataset.dataset(failed).to_table()
    told = ["timestamp", "sequence", "x", "error", "message"]
    assert found.select(told).equals(expected.failed_events.select(told))
    (lines,) = found["traceback"].to_pylist()
    assert 'raise ValueError("negative amount")' in lines
    assert "specstream/" not in lines
    replayed = invoke("replay", checkpoint, "--json")
    assert replayed.exit_code == 0, replayed.output
    assert json.loads(replayed.stdout)["difference"] is None
