"""The driver process that crash tests kill: a streaming query over files, with a checkpoint.

``crash_driver DIRECTORY`` reads ``DIRECTORY/events``, one file per micro-batch, and ends when
all of them are processed. Everything that must outlive it lies in the same directory; ``final`` is
there when it has come to the end. Where there is a file ``watermark``, files overlap in time, and
events wait as long as it says; some come too late. Where there is a file ``pipeline``, the operator
is a vertex of a pipeline with two sinks, and of its phases the file says what they are. Where there
is a file ``early``, early results go into a table of the SQLite database ``desk``. Where there is a
file ``poison``, some events raise, of one batch as many as it says.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import specstream as ss
from specstream.checkpoint.inspect.difference import first_difference
from support import processes

CELLS = 20_000
POISON = -1e6
LIFE_SECONDS = 180
LONG_AGO = -1000


class Cells(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    cells = ss.array(float, CELLS)


class Tally(ss.State):
    hash = ss.scalar(int)


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


@ss.operator(
    state=Cells,
    event={"x": int, "weight": float, "origin": str},
    emits={"x": int, "origin": str, "hash": int, "cell": float},
)
def poisoned(state, event, emit):
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.x
    at = state.hash % CELLS
    state.cells[at] += event.weight
    emit(event.x, event.origin, state.hash, state.cells[at])
    if event.weight == POISON:
        raise ValueError(f"{event.x} is poison")


@ss.operator(state=Tally, event={"x": int, "hash": int}, emits={"x": int, "hash": int})
def audit(state, event, emit):
    # Behind the chain: what it has emitted, and in which order, is in this hash as well.
    state.hash = state.hash * 2862933555777941757 + event.hash
    if event.x % 3:
        emit(event.x, state.hash)


@ss.operator(state=Cells, event={"x": int}, emits={"seen": int})
def count_events(state, event, emit):
    # Not of any crash: another operator over the same files.
    state.seen += 1
    emit(state.seen)


def operator_of(directory: Path) -> ss.Operator:
    """What runs over the events of a directory."""
    if (directory / "poison").exists():
        return poisoned
    if not (directory / "pipeline").exists():
        return chain
    return desk((directory / "pipeline").read_text())


def desk(phases: Any = "event") -> ss.Pipeline:
    """The pipeline."""
    p = ss.Pipeline("chain and audit", phases=phases)
    events = p.source("events", {"x": int, "weight": float, "origin": str})
    chained = p.add(chain, events)
    p.sink("out", chained)
    p.sink("audit", p.add(audit, chained))
    return p


def write_events(
    directory: Path,
    files: int,
    rows: int,
    seed: int = 7,
    watermark: bool = False,
    pipeline: bool = False,
    phases: str = "event",
    poison: int = 0,
) -> None:
    """Files in the order of time, each with its rows in no order; origins come up bit by bit.

    No two files have an event at the same time: a kill while Spark plans a micro-batch can make it
    put two files into the next one, in any order (docs/explanations/exactly-once.md).
    """
    rng = np.random.default_rng(seed)
    directory.mkdir(parents=True)
    raising = np.zeros(files * rows, bool)
    raising[np.random.default_rng(seed).choice(files * rows, poison, replace=False)] = True
    if poison:
        (directory.parent / "poison").write_text(str(poison))
    if pipeline:
        (directory.parent / "pipeline").write_text(phases)
    if watermark:
        # Of a file's times the latest lie among those of the whole next one.
        (directory.parent / "watermark").write_text(str(2 * rows))
    for number in range(files):
        times = rng.integers(0, 2 * rows if watermark else rows // 3, rows) + number * rows
        times = 2 * times + number % 2
        table = pa.table(
            {
                "time": times,
                "origin": [f"origin {at}" for at in rng.integers(0, 3 + number, rows)],
                "x": np.arange(rows) + number * rows,
                "weight": rng.normal(size=rows),
            }
        )
        if watermark and _has_late(number):
            late = {"time": [LONG_AGO], "origin": ["origin 0"], "x": [-number], "weight": [1.0]}
            table = pa.concat_tables([table, pa.table(late)])
        if poison:
            here = pa.array(raising[number * rows : (number + 1) * rows])
            weight = pc.if_else(here, POISON, table["weight"])
            table = table.set_column(table.column_names.index("weight"), "weight", weight)
        path = directory / f"{number:05d}.parquet"
        pq.write_table(table.take(rng.permutation(table.num_rows)), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def _has_late(number: int) -> bool:
    """Whether a file has an event that comes too late; in the first ones nothing is."""
    return number > 2 and number % 2 == 1


def events_of(directory: Path) -> Any:
    """The events of all files in their order, without those that come too late."""
    parts = [pq.read_table(path) for path in sorted((directory / "events").iterdir())]
    rows = pa.concat_tables(parts).to_pandas()
    rows = rows[rows["time"] != LONG_AGO]
    return rows.sort_values(["time", "origin"], kind="stable")


def sequential(directory: Path) -> Any:
    """The plain Python run over them."""
    errors: Any = "side" if (directory / "poison").exists() else "raise"
    return operator_of(directory).run_sequential(
        events_of(directory), order_by="time", source="origin", errors=errors
    )


def sinks_of(directory: Path) -> tuple[str, ...]:
    """Names of the directories of emitted rows."""
    return operator_of(directory).sinks or ("out",)


def rows_of(sink: Path) -> pa.Table:
    """What a sink has, in the order of batches."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(sink.glob("part-*.parquet")))


def event_time(directory: Path) -> dict[str, Any]:
    """What a feed over these files is told of event time; nothing, where there is no watermark."""
    if not (directory / "watermark").exists():
        return {}
    watermark = int((directory / "watermark").read_text())
    return {"watermark": watermark, "idle_timeout": 2 * watermark, "late": "side"}


def errors_of(directory: Path) -> dict[str, Any]:
    """What a feed is told of events that raise; nothing, where none do."""
    if not (directory / "poison").exists():
        return {}
    limit = int((directory / "poison").read_text())
    return {"errors_to": Watched(directory, "failed"), "errors_limit": limit}


def compare(directory: Path) -> dict[str, int]:
    """What a run that came to its end has lost, repeated, or put elsewhere: all 0, or a bug."""
    oracle = sequential(directory)
    late = rows_of(directory / "late")["x"].to_pylist() if (directory / "late").exists() else []
    files = len(list((directory / "events").iterdir()))
    wanted_late = (
        [-n for n in range(files) if _has_late(n)] if (directory / "watermark").exists() else []
    )
    with ss.Engine(
        operator_of(directory), horizon=0, restore=(directory / "final").read_bytes()
    ) as engine:
        state, wanted = engine.state.to_dict(), oracle.state.to_dict()
    wrong = {
        "late": int(sorted(late) != sorted(wanted_late)),
        "fields": sum(state[name].tobytes() != wanted[name].tobytes() for name in wanted),
    }
    if (directory / "poison").exists():
        # Numbers of events are those of their arrival.
        failed = rows_of(directory / "failed").drop(["sequence"])
        wanted_failed = oracle.failed_events.drop(["sequence"])
        wrong["failed"] = int(first_difference(wanted_failed, failed) is not None)
    outputs = oracle.output if isinstance(oracle.output, dict) else {"out": oracle.output}
    for sink, expected in outputs.items():
        for what, count in _wrong_rows(rows_of(directory / sink), expected).items():
            wrong[what] = wrong.get(what, 0) + count
    return wrong


def _wrong_rows(found: pa.Table, expected: pa.Table) -> dict[str, int]:
    """Of one sink."""
    ids, counts = np.unique(found["x"].to_numpy(), return_counts=True)
    place = {x: at for at, x in enumerate(expected["x"].to_pylist())}
    order = np.array([place[x] for x in found["x"].to_pylist()])
    return {
        "lost": len(set(place) - set(ids.tolist())),
        "duplicated": int((counts - 1).sum()),
        "reordered": int((np.diff(order) < 0).sum()),
        "different": int(not found.equals(expected)),
    }


def begin(
    directory: Path, crash: str | None = None, module: str = "support.spark.crash_driver"
) -> subprocess.Popen[bytes]:
    """A driver process, leader of a group of its own; its JVM ends when it has ended."""
    environment = processes.environment()
    if crash is not None:
        environment["SPECSTREAM_CRASH"] = crash
        environment["SPECSTREAM_CRASH_LOG"] = str(directory / "crashes")
    with (directory / "errors").open("ab") as errors:
        return subprocess.Popen(
            processes.command(module, directory),
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
        until = time.monotonic() + LIFE_SECONDS
        while any(_of_group(process.pid)) and time.monotonic() < until:
            time.sleep(0.01)  # looks again


def _of_group(group: int) -> Iterator[str]:
    """Processes of a group that still run. One that was killed may be writing a file: what the
    next driver finds must not change any more."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = place.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state not in ("Z", "X"):
                yield place.parent.name


class Watched:
    """A Parquet sink that writes down what it is given to prepare and to commit."""

    def __init__(self, directory: Path, name: str = "out") -> None:
        self.directory, self.name = directory, name
        self.sink = ss.sinks.parquet_sink(directory / name)

    def prepare(self, table: pa.Table, batch_id: int) -> WatchedFile:
        content = hashlib.sha256(repr(table.to_pydict()).encode()).hexdigest()
        call = {"batch": batch_id, "sink": self.name, "rows": table.num_rows, "content": content}
        return WatchedFile(self, call, self.sink.prepare(table, batch_id))


class WatchedFile:
    def __init__(self, watched: Watched, call: dict[str, Any], file: Any) -> None:
        self.watched, self.call, self.file = watched, call, file

    def commit(self) -> None:
        log(self.watched.directory / "calls", **self.call)
        self.file.commit()

    def abort(self) -> None:
        self.file.abort()


def log(path: Path, **values: object) -> None:
    with path.open("a") as file:
        file.write(json.dumps(values) + "\n")


class Told:
    """The sink of early results, which writes down what it is given."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sink = early_sink(directory)

    def apply(self, answer: Any, batch_id: int) -> None:
        rows = answer.changes.to_pylist()
        log(self.directory / "told", batch=batch_id, reset=answer.reset, rows=rows)
        self.sink.apply(answer, batch_id)


def early_sink(directory: Path) -> Any:
    return ss.sinks.early_database_sink(lambda: sqlite3.connect(directory / "desk"), "early")


def hold_files_for_sinks() -> None:
    """Of the batch that is to be killed when it is prepared, the file does not come to be."""
    from specstream.checkpoint.format import failpoints

    crash = os.environ.get("SPECSTREAM_CRASH", "")
    step, _, batch_id = crash.partition("@")
    if step != "prepared":
        return
    hit = failpoints.hit

    def held(step: str, batch: int) -> None:
        hit(step, batch)
        if (step, batch) == ("before-rename", int(batch_id)):
            time.sleep(LIFE_SECONDS)  # until it is killed

    failpoints.hit = held  # type: ignore[assignment]


def main(directory: Path) -> None:
    from specstream.checkpoint.run import checkpoint

    checkpoint.INCREMENTS = 3
    hold_files_for_sinks()

    sinks: Any = {name: Watched(directory, name) for name in sinks_of(directory)}
    early, poison = ((directory / name).exists() for name in ("early", "poison"))
    errors: Any = "side" if poison else "raise"
    with ss.Engine(
        operator_of(directory), threads=2, horizon=4, chunk=4, early=early, errors=errors
    ) as engine:
        options = event_time(directory)
        if early:
            options["early_to"] = Told(directory)
        if options:
            options["late_to"] = ss.sinks.parquet_sink(directory / "late")
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            source="origin",
            to=sinks if len(sinks) > 1 else sinks["out"],
            checkpoint=directory / "recorded",
            **options,
            **errors_of(directory),
        )
        before = feed.stats

        def done(batch_id: int) -> None:
            nonlocal before
            failed = feed.stats.failed - before.failed
            repeated = feed.stats.repeated > before.repeated
            log(directory / "batches", batch=batch_id, repeated=repeated, failed=failed)
            before = feed.stats

        ss.spark.stream_directory(
            ss.spark.local_session("crash", settings={"spark.log.level": "OFF"}),
            directory / "events",
            feed,
            checkpoint=directory / "spark",
            files_per_trigger=1,
            on_batch=done,
        )
        if options:
            feed.finish()
        hidden = directory / ".final"
        hidden.write_bytes(engine.snapshot())
        hidden.rename(directory / "final")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
