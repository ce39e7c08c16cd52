"""The process that tests kill: batches with a checkpoint, of which events fail, and timers.

``failing_driver DIRECTORY`` takes batch after batch, from the one that was not acknowledged on,
as Spark does. Emitted rows are in ``DIRECTORY/out``, failed events in ``DIRECTORY/failed``, and
``DIRECTORY/final`` is there when it has come to the end.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss
from support import processes
from support.checkpoint.fed import Fed

BATCHES, ROWS, DISORDER = 6, 40, 30
ORDER: dict[str, Any] = {"order_by": "time", "source": "origin"}


class Sums(ss.State):
    hash = ss.scalar(int)
    alarms = ss.timers(int, limit=64)


def ring(state, timer, emit):
    state.hash = state.hash * 31 + timer.key
    emit(-1, state.hash)
    if timer.key % 4 == 1:
        raise KeyError(timer.key)


@ss.operator(
    state=Sums, event={"x": int, "name": str}, emits={"x": int, "hash": int}, on_timer=ring
)
def sums(state, event, emit):
    # Every order of the same events gives another hash; so does one that fails and is applied.
    state.hash = state.hash * 6364136223846793005 + event.x
    state.alarms.set(event.x % 50, event.timestamp + 5)
    emit(event.x, state.hash)
    if event.name == "poison":
        raise ValueError(f"{event.x} is poison")


def rows_of(batch_id: int) -> pa.Table:
    """Events of two sources, some of which belong among those of the next batch."""
    rng = np.random.default_rng(batch_id)
    x = np.arange(batch_id * ROWS, (batch_id + 1) * ROWS)
    names = np.where(rng.random(ROWS) < 0.3, "poison", "food")
    origin = rng.choice(["a", "b"], ROWS)
    time = 4 * x + rng.permutation(ROWS) % DISORDER
    return pa.table({"time": time, "origin": origin, "x": x, "name": names})


def sequential() -> ss.SequentialRun:
    rows = pa.concat_tables(map(rows_of, range(BATCHES)))
    return sums.run_sequential(rows, **ORDER, errors="side", keys=True, end=True)


def found(directory: Path) -> pa.Table:
    """What a sink has, in the order of batches."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(directory.glob("*.parquet")))


def life(directory: Path, crash: str | None = None) -> int:
    """A process, and the status that it has ended with."""
    environment = processes.environment()
    if crash is not None:
        environment["SPECSTREAM_CRASH"] = crash
        environment["SPECSTREAM_CRASH_LOG"] = str(directory / "crashes")
    command = processes.command("support.checkpoint.failing_driver", directory)
    return subprocess.run(command, env=environment, timeout=300, check=False).returncode


def main(directory: Path) -> None:
    acknowledged = directory / "acknowledged"
    with ss.Engine(sums, threads=2, horizon=4, chunk=4, errors="side", keys=True) as engine:
        fed = Fed(
            engine,
            to=ss.sinks.parquet_sink(directory / "out"),
            errors_to=ss.sinks.parquet_sink(directory / "failed"),
            checkpoint=directory / "recorded",
            keep_batches=2,
            watermark=4 * DISORDER,
            **ORDER,
        )
        for batch_id in range(
            int(acknowledged.read_text()) if acknowledged.exists() else 0, BATCHES
        ):
            fed.send(batch_id, rows_of(batch_id))
            acknowledged.write_text(str(batch_id + 1))
        fed.runner.finish()
        (directory / "final").write_bytes(engine.snapshot())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
