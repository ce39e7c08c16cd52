"""Files that Spark streams, an operator whose answer tells their order, and queries on them."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import specstream as ss

FILES, ROWS = 6, 50


class Chain(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    sums = ss.array(float, 7)


@ss.operator(state=Chain, event={"x": int, "weight": float}, emits={"hash": int, "sum": float})
def chain(state, event, emit):
    # Every order of the same events gives another hash.
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.x
    at = event.x % 7
    state.sums[at] += event.weight
    emit(state.hash, state.sums[at])


@ss.operator(state=Chain, event={"x": int, "weight": float}, emits={"hash": int})
def fragile(state, event, emit):
    state.seen += 1
    state.hash = 1000 // (event.x - 130)
    emit(state.hash)


def events() -> pa.Table:
    """Two sources with many equal times; file after file, later in time."""
    rng = np.random.default_rng(7)
    rows = FILES * ROWS
    return pa.table(
        {
            "time": np.sort(rng.integers(0, rows // 3, rows)) + np.arange(rows) // ROWS * 1000,
            "origin": pa.array(rng.choice(["EWR", "JFK"], rows)),
            "x": np.arange(rows),
            "weight": rng.normal(size=rows),
        }
    )


def write_files(directory: Path) -> Path:
    """The events as files, each with its rows in no order of time."""
    table = events()
    for number in range(FILES):
        part = table.slice(number * ROWS, ROWS).take(
            np.random.default_rng(number).permutation(ROWS)
        )
        path = directory / f"{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    return directory


def sequential(files: Path) -> Any:
    """The sequential run over the rows in their order, worked out apart from specstream."""
    rows = pa.concat_tables(pq.read_table(files / f"{n}.parquet") for n in range(FILES)).to_pandas()
    return chain.run_sequential(rows.sort_values(["time", "origin"], kind="stable"))


@contextmanager
def queries_on(session: Any, files: Path, directory: Path) -> Iterator[Callable[..., Any]]:
    """Starts a streaming query the way a user does; stops what is left at the end."""
    queries: list[Any] = []
    schema = session.read.parquet(str(files)).schema

    def start(
        feed: Any, checkpoint: str = "checkpoint", per_trigger: int = 2, once: bool = True,
        change: Callable[[Any], Any] = lambda stream: stream,
    ) -> Any:  # fmt: skip
        stream = (
            session.readStream.schema(schema)
            .option("maxFilesPerTrigger", per_trigger)
            .parquet(str(files))
        )
        writer = (
            change(stream)
            .writeStream.foreachBatch(feed)
            .option("checkpointLocation", str(directory / checkpoint))
        )
        query = (writer.trigger(availableNow=True) if once else writer).start()
        queries.append(query)
        return query

    try:
        yield start
    finally:
        for query in queries:
            query.stop()


def feed_into(engine: ss.Engine, to: Any) -> Any:
    return ss.spark.foreach_batch(engine, order_by="time", source="origin", to=to)


def assert_same_as_oracle(output: Path, engine: ss.Engine, oracle: Any) -> None:
    found = pyarrow.dataset.dataset(output, format="parquet").to_table()
    assert found.equals(oracle.output)
    assert {name: value.tobytes() for name, value in engine.state.to_dict().items()} == {
        name: value.tobytes() for name, value in oracle.state.to_dict().items()
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("events"))


@pytest.fixture(scope="module")
def oracle(files: Path) -> Any:
    return sequential(files)


@pytest.fixture
def engine() -> Iterator[ss.Engine]:
    with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
        yield engine


@pytest.fixture
def start(session: Any, files: Path, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    with queries_on(session, files, tmp_path) as start:
        yield start
