"""A run with a checkpoint is killed, and the same command goes on with it."""

from __future__ import annotations

import json
from pathlib import Path

import crash_driver
import pytest
from commands import invoke
from run_again import parts, run, uninterrupted

pytestmark = pytest.mark.spark

FILES, ROWS = 6, 40


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that was killed behind the record of batch 2."""
    directory = tmp_path_factory.mktemp("run")
    crash_driver.write_events(directory / "events", FILES, ROWS)
    run(directory, "--keep-batches", 2, crash="before-commit@2")
    return directory


def test_a_killed_run_goes_on_and_ends_as_if_never_interrupted(killed: Path) -> None:
    expected, _ = uninterrupted(killed)
    assert [path.name for path in sorted((killed / "out").glob("part*"))] == [
        "part-00000000.parquet",
        "part-00000001.parquet",
    ]
    done = run(killed, "--threads", 1, "--horizon", 0, "--keep-batches", 2)
    assert done.returncode == 0, done.stderr
    assert parts(killed / "out") == expected
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["after_batch"] == 2
    assert summary["rows_in"] == (FILES - 3) * ROWS

    found = json.loads(invoke("replay", killed / "checkpoint", "--json").stdout)
    assert found["batch"] == FILES - 1
    assert found["difference"] is None
