"""The Dockerfile copies what there is and installs extras that there are; its job runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import specstream as ss

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "docker"


def test_the_dockerfile_names_files_and_extras_that_there_are() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(?:--chown=\S+ )?(\S+) ", text, re.MULTILINE)
    assert [path for path in copied if not (ROOT / path).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.findall(r"\[([\w,]+)\]\"", text)
    assert found
    for extras in found:
        assert set(extras.split(",")) <= project["optional-dependencies"].keys()


@pytest.mark.spark
@pytest.mark.slow
def test_its_job_sets_rows_aside_and_ends_with_its_source(tmp_path: Path) -> None:
    begin = datetime(2026, 1, 5, tzinfo=UTC)
    times = [begin + timedelta(seconds=n) for n in range(100)]
    rows = {
        "time": pa.array(times, pa.timestamp("us", "UTC")),
        "item": [n % 9 if n != 50 else None for n in range(100)],
    }
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "in" / "1.parquet")
    done = subprocess.run(
        [sys.executable, FOLDER / "job.py"],
        cwd=tmp_path,
        env={**os.environ, "DATA": str(tmp_path), "ONCE": "1", "PORT": "0"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    assert pq.read_table(tmp_path / "rejected").num_rows == 1
    assert pq.read_table(tmp_path / "rows").num_rows > 0
    state = ss.checkpoint_state(tmp_path / "checkpoint")
    assert state.batch_id == 0
