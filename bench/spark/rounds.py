"""Rounds of micro-batches: every way takes in the same files, one after the other, in turns.

The ways of one round share what else the machine does in it. Of each query the first batch is left
out, in which Spark plans the query and starts what it needs. Before all that, each way takes in
many small batches, for which nothing is noted: a streaming query runs for weeks, and Spark's own
part of a batch takes twice as long while the JVM has not compiled it.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import specstream as ss
from bench.spark.beside import BYTEWAX, PYTHON, bytewax_seconds, has_bytewax, python_seconds
from bench.spark.loads import Load, operator_of, write_files
from bench.spark.ways import BARE, SPECSTREAM, Ahead, Bare, Grouped, Shard, Specstream, Way

__all__ = ["Effort", "Measurement", "Row", "measure", "own_share", "spent", "warm_up"]

WAYS: tuple[type[Way], ...] = (Specstream, Ahead, Bare, Grouped, Shard)
WARM_ROWS = 5_000


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        sizes: rows of a micro-batch.
        rounds: how often each way has its turn.
        batches: micro-batches of a turn that count; one more comes before them.
        warm: small micro-batches that each way takes in before everything.
        python_seconds: given to the plain Python function.
    """

    sizes: tuple[int, ...]
    rounds: int
    batches: int
    warm: int
    python_seconds: float


@dataclass
class Measurement:
    """Of one way.

    Attributes:
        latency: median seconds of a micro-batch.
        rate: rows per second at that.
        ratio: speed relative to the bare loop, of the medians.
        low, high: quartiles of the same in single rounds.
        turns: mean seconds of a micro-batch in each turn.
    """

    latency: float = 0.0
    rate: float = 0.0
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    turns: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """One operator with batches of one size.

    Attributes:
        measured: by way.
        parts: what specstream's batches spent where, in seconds a batch; see :func:`spent`.
    """

    load: str
    title: str
    rows: int
    measured: dict[str, Measurement]
    parts: dict[str, float]


def measure(
    load: Load,
    rows: int,
    effort: Effort,
    session: SparkSession,
    home: Path,
    say: Callable[[str], None],
) -> Row:
    """All ways of one operator with micro-batches of one size.

    Raises:
        AssertionError: specstream did not give the sequential answer.
    """
    stream = home / "stream"
    stream.mkdir(parents=True)
    ways: list[Way] = [
        kind(load, home / kind.name.replace(", ", "-").replace(" ", "-")) for kind in WAYS
    ]
    batches: dict[str, list[float]] = {way.name: [] for way in ways}
    turns: dict[str, list[float]] = {way.name: [] for way in ways}
    batch_files: list[list[Path]] = []
    parts: list[dict[str, float]] = []
    for number in range(effort.rounds):
        begin = len(batch_files)
        files = [
            write_files(load, rows, at, stream) for at in range(begin, begin + 1 + effort.batches)
        ]
        batch_files += files
        schema = session.read.parquet(str(files[0][0])).schema
        for way in random.Random(number).sample(ways, len(ways)):
            say(f"{load.title}, {rows:,} rows, round {number + 1}: {way.name}")
            before = spent(way) if isinstance(way, Specstream) else {}
            taken = way.run(session, stream, schema)
            assert len(taken) == len(files), f"{way.name} made {len(taken)} batches"
            batches[way.name] += taken[1:]
            turns[way.name].append(statistics.fmean(taken[1:]))
            if isinstance(way, Specstream) and way.name == SPECSTREAM:
                parts.append(_shares(before, spent(way), sum(taken), len(taken)))
        if has_bytewax():
            say(f"{load.title}, {rows:,} rows, round {number + 1}: {BYTEWAX}")
            taken = bytewax_seconds(load, files, _made(home / f"bytewax-{number}"))
            batches.setdefault(BYTEWAX, []).extend(taken)
            turns.setdefault(BYTEWAX, []).append(statistics.fmean(taken))
    say(f"{load.title}, {rows:,} rows: {PYTHON}")
    bare = next(way for way in ways if isinstance(way, Bare))
    seconds = python_seconds(load, bare.engine, _read(files[-1]), effort.python_seconds) * rows
    batches[PYTHON], turns[PYTHON] = [seconds], [seconds] * effort.rounds
    for way in ways:
        if isinstance(way, Specstream):
            _check(load, batch_files, way)
        way.close()
    base = statistics.median(batches[BARE])
    measured = {of: _measurement(rows, batches[of], base, turns[of], turns[BARE]) for of in batches}
    mean = {name: statistics.median(part[name] for part in parts) for name in parts[0]}
    return Row(load.name, load.title, rows, measured, mean)


def _read(files: Sequence[Path]) -> pa.Table:
    """The rows of a batch, source after source."""
    return pa.concat_tables(map(pq.read_table, files))


def _made(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def spent(way: Specstream) -> dict[str, float]:
    """Seconds so far: fetching the rows, converting and ordering them, in events, the checkpoint,
    the sink.

    The sink writes its file while the checkpoint is written; what it takes beyond that is its part,
    so that nothing counts twice.
    """
    stats, events = way.feed.stats, way.engine.stats.seconds
    return {
        "fetch": stats.reading,
        "conversion and order": stats.running - events,
        "events": events,
        "checkpoint": stats.recording,
        "sink": stats.writing,
    }


def _shares(
    before: dict[str, float], after: dict[str, float], total: float, batches: int
) -> dict[str, float]:
    """Seconds a batch by part; Spark's is all that is outside of the callback."""
    parts = {name: (after[name] - before[name]) / batches for name in after}
    return {**parts, "Spark": total / batches - sum(parts.values())}


def _measurement(
    rows: int,
    batches: Sequence[float],
    base: float,
    turns: Sequence[float],
    bare: Sequence[float],
) -> Measurement:
    latency = statistics.median(batches)
    ratios = [other / own for other, own in zip(bare, turns, strict=True)]
    low, _, high = (
        statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    )
    return Measurement(latency, rows / latency, base / latency, low, high, list(turns))


def _check(load: Load, batches: Sequence[Sequence[Path]], way: Specstream) -> None:
    """Compares what specstream has written with one sequential run over the rows in order."""
    with ss.Engine(operator_of(load.name), threads=1, horizon=0) as engine:
        for number, files in enumerate(batches):
            table = _read(files)
            order = np.lexsort((table["source"].to_numpy(), table["time"].to_numpy()))
            expected = engine.process(table.take(order))
            written = pq.read_table(way.sink.file(number))
            assert written.equals(expected.combine_chunks()), (
                f"{load.title}: what specstream has written of batch {number} differs from one "
                "sequential run"
            )


def warm_up(load: Load, batches: int, session: SparkSession, home: Path) -> None:
    """Small batches through every way, so that Spark and the workers are what they stay."""
    stream = _made(home / "stream")
    files = [write_files(load, WARM_ROWS, number, stream) for number in range(batches)]
    schema = session.read.parquet(str(files[0][0])).schema
    for kind in WAYS:
        way = kind(load, home / kind.__name__)
        way.run(session, stream, schema)
        way.close()


def own_share(
    load: Load, rows: int, batches: int, session: SparkSession, home: Path
) -> dict[str, float]:
    """Median seconds of each part of specstream's batches of that many rows."""
    stream = _made(home / "stream")
    files = [write_files(load, rows, number, stream) for number in range(1 + batches)]
    schema = session.read.parquet(str(stream)).schema
    way = Specstream(load, home / "specstream")
    after = [spent(way)]
    way.after_batch = lambda: after.append(spent(way))
    way.run(session, stream, schema)
    _check(load, files, way)
    way.close()
    return {
        name: statistics.median(
            after[at + 1][name] - after[at][name] for at in range(1, 1 + batches)
        )
        for name in after[0]
    }
