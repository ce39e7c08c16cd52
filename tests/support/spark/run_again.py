"""``specstream run`` in processes of their own, killed at a step of a batch and started again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss
from support import processes
from support.spark import crash_driver

DRIVER = Path(crash_driver.__file__)
LIFE_SECONDS = 400
CHECKPOINT = "checkpoint"


def run(
    directory: Path, *options: object, target: str = "chain", crash: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs ``target`` of the crash driver over ``directory/events``, with a checkpoint.

    Args:
        directory: with ``events``; the output is in ``out``, the checkpoint in ``checkpoint``.
        options: more of them.
        target: name of the operator in the driver.
        crash: where the process is to be killed; it has to be.
    """
    environment = processes.environment()
    if crash is not None:
        environment["SPECSTREAM_CRASH"] = crash
        environment["SPECSTREAM_CRASH_LOG"] = str(directory / "crashes")
    given = (
        "run", f"{DRIVER}:{target}", "--input", directory / "events", "--order-by", "time",
        "--source", "origin", "--output", directory / "out",
        "--checkpoint", directory / CHECKPOINT, "--max-files-per-trigger", 1, "--json", *options,
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "specstream.cli", *map(str, given)],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIFE_SECONDS,
        env=environment,
    )
    if crash is not None:
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert (directory / "crashes").read_text().splitlines()[-1] == crash
    return done


def uninterrupted(directory: Path) -> tuple[list[pa.Table], dict[str, Any]]:
    """The output of each batch, one file each, and the state at the end: nobody was killed."""
    with ss.Engine(crash_driver.chain, horizon=0) as engine:
        parts = [
            engine.process(pq.read_table(path), order_by="time", source="origin")
            for path in sorted((directory / "events").iterdir())
        ]
        return parts, engine.state.to_dict()


def parts(directory: Path) -> list[pa.Table]:
    """What was written, by batch; there is nothing else in the directory."""
    files = sorted(directory.iterdir())
    assert [file.name for file in files] == [f"part-{n:08d}.parquet" for n in range(len(files))]
    return [pq.read_table(file) for file in files]
