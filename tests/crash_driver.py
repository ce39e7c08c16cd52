"""The driver process that crash tests kill: a streaming query over files, with a checkpoint.

``crash_driver.py DIRECTORY`` reads ``DIRECTORY/events``, one file per micro-batch, and ends when
all of them are processed. Everything that must outlive it lies in the same directory; ``final`` is
there when it has come to the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss

CELLS = 20_000
LIFE_SECONDS = 180


class Cells(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    cells = ss.array(float, CELLS)


@ss.operator(
    state=Cells,
    event={"x": int, "weight": float, "origin": str},
    emits={"x": int, "origin": str, "hash": int, "cell": float},
)
def chain(state, event, emit):
    # Every order of the same events gives another hash; a lost or repeated one gives another, too.
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.x
    at = state.hash % CELLS
    state.cells[at] += event.weight
    emit(event.x, event.origin, state.hash, state.cells[at])


def write_events(directory: Path, files: int, rows: int, seed: int = 7) -> None:
    """Files in the order of time, each with its rows in no order; origins come up bit by bit."""
    rng = np.random.default_rng(seed)
    directory.mkdir(parents=True)
    for number in range(files):
        table = pa.table(
            {
                "time": rng.integers(0, rows // 3, rows) + number * rows,
                "origin": [f"origin {at}" for at in rng.integers(0, 3 + number, rows)],
                "x": np.arange(rows) + number * rows,
                "weight": rng.normal(size=rows),
            }
        )
        path = directory / f"{number:05d}.parquet"
        pq.write_table(table.take(rng.permutation(rows)), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def sequential(directory: Path) -> Any:
    """The plain Python run over the events of all files in their order."""
    parts = [pq.read_table(path) for path in sorted(directory.iterdir())]
    rows = pa.concat_tables(parts).to_pandas()
    return chain.run_sequential(rows.sort_values(["time", "origin"], kind="stable"))


def compare(directory: Path) -> dict[str, int]:
    """What a run that came to its end has lost, repeated, or put elsewhere: all 0, or a bug."""
    oracle = sequential(directory / "events")
    expected = oracle.output
    parts = [pq.read_table(path) for path in sorted((directory / "out").glob("part-*.parquet"))]
    found = pa.concat_tables(parts)
    ids, counts = np.unique(found["x"].to_numpy(), return_counts=True)
    place = {x: at for at, x in enumerate(expected["x"].to_pylist())}
    order = np.array([place[x] for x in found["x"].to_pylist()])
    with ss.Engine(chain, horizon=0, restore=(directory / "final").read_bytes()) as engine:
        state, wanted = engine.state.to_dict(), oracle.state.to_dict()
    return {
        "lost": len(set(place) - set(ids.tolist())),
        "duplicated": int((counts - 1).sum()),
        "reordered": int((np.diff(order) < 0).sum()),
        "different": int(not found.equals(expected)),
        "fields": sum(state[name].tobytes() != wanted[name].tobytes() for name in wanted),
    }


def begin(directory: Path, crash: str | None = None) -> subprocess.Popen[bytes]:
    """A driver process, leader of a group of its own; its JVM ends when it has ended."""
    environment = dict(os.environ)
    if crash is not None:
        environment["SPECSTREAM_CRASH"] = crash
        environment["SPECSTREAM_CRASH_LOG"] = str(directory / "crashes")
    with (directory / "errors").open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, __file__, directory],
            env=environment,
            start_new_session=True,
            stdout=errors,
            stderr=errors,
        )


def end(process: subprocess.Popen[bytes]) -> int:
    """Waits for a driver; what is left of its group goes with it."""
    try:
        return process.wait(LIFE_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main(directory: Path) -> None:
    from specstream.spark import checkpoint

    checkpoint.INCREMENTS = 3
    os.environ["PYSPARK_PYTHON"] = sys.executable
    sink = ss.spark.parquet_sink(directory / "out")

    def log(name: str, **values: object) -> None:
        with (directory / name).open("a") as file:
            file.write(json.dumps(values) + "\n")

    def watched(table: pa.Table, batch_id: int) -> None:
        content = hashlib.sha256(repr(table.to_pydict()).encode()).hexdigest()
        log("calls", batch=batch_id, rows=table.num_rows, content=content)
        sink(table, batch_id)

    with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
        feed = ss.spark.foreach_batch(
            engine, order_by="time", source="origin", to=watched, checkpoint=directory / "images"
        )
        answered = 0

        def done(batch_id: int) -> None:
            nonlocal answered
            log("batches", batch=batch_id, repeated=feed.stats.repeated > answered)
            answered = feed.stats.repeated

        ss.spark.stream_directory(
            ss.spark.local_session("crash", settings={"spark.log.level": "OFF"}),
            directory / "events",
            feed,
            checkpoint=directory / "spark",
            files_per_trigger=1,
            on_batch=done,
        )
        hidden = directory / ".final"
        hidden.write_bytes(engine.snapshot())
        hidden.rename(directory / "final")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
