"""The ways to run an operator over a stream in Spark.

Each is a streaming query over the same directory. What a batch takes is what Spark says of it: from
the listing of files to the note that the batch is done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

import specstream as ss
from bench.spark.carried import carried
from bench.spark.loads import SOURCES, Load, operator_of

__all__ = [
    "AHEAD",
    "BARE",
    "SPARK_WAYS",
    "SPECSTREAM",
    "Bare",
    "Grouped",
    "Shard",
    "Specstream",
    "Way",
]

SPECSTREAM = "specstream"
AHEAD = "specstream, prefetch"
BARE = "bare loop"
SPARK_WAYS = ("applyInPandasWithState", "transformWithState")


class Way:
    """One way; it goes on where its last query ended.

    Attributes:
        name: what the table says.
        home: a directory of its own.
    """

    name = ""

    def __init__(self, load: Load, home: Path) -> None:
        self.load, self.home = load, home
        home.mkdir(parents=True)

    def writer(self, stream: DataFrame) -> DataStreamWriter:
        """The query, but for when to run."""
        raise NotImplementedError

    def run(self, session: SparkSession, path: Path, schema: StructType) -> list[float]:
        """Takes in what is new in a directory; the seconds of each micro-batch."""
        reader = session.readStream.schema(schema).option("maxFilesPerTrigger", SOURCES)
        query = (
            self.writer(reader.parquet(str(path)))
            .option("checkpointLocation", str(self.home / "spark"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [
            progress["durationMs"]["triggerExecution"] / 1e3
            for progress in query.recentProgress
            if progress["numInputRows"]
        ]

    def close(self) -> None:
        """Ends what it has started."""


class Specstream(Way):
    """Everything switched on: order, exactly once through crashes, metrics, two threads."""

    name = SPECSTREAM
    prefetch = False

    def __init__(self, load: Load, home: Path) -> None:
        super().__init__(load, home)
        self.sink = ss.sinks.parquet_sink(home / "rows")
        self.engine = ss.Engine(operator_of(load.name), threads=2)
        self.feed = ss.spark.foreach_batch(
            self.engine,
            order_by="time",
            source="source",
            to=self.sink,
            checkpoint=home / "recorded",
            prefetch=self.prefetch,
        )
        self.metrics = (home / "metrics.jsonl").open("w")
        self.after_batch: Callable[[], object] = lambda: None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self.feed(frame, batch_id)
        self.after_batch()
        statistics = {"feed": vars(self.feed.stats), "engine": vars(self.engine.stats)}
        self.metrics.write(json.dumps(statistics, default=str) + "\n")
        self.metrics.flush()

    def writer(self, stream: DataFrame) -> DataStreamWriter:
        return stream.writeStream.foreachBatch(self)

    def run(self, session: SparkSession, path: Path, schema: StructType) -> list[float]:
        taken = super().run(session, path, schema)
        self.feed.wait()
        return taken

    def close(self) -> None:
        self.metrics.close()
        self.engine.close()
        if self.feed.checkpoint is not None:
            self.feed.checkpoint.close()


class Ahead(Specstream):
    """The same, and the next batch is fetched while one runs.

    A batch takes as long as Spark is kept, which includes waiting for the batch before it.
    """

    name = AHEAD
    prefetch = True


class Bare(Way):
    """``foreachBatch`` by hand: the rows as Arrow, the log-free clone, the same sink.

    No order, no checkpoint, no state put back when something fails.
    """

    name = BARE

    def __init__(self, load: Load, home: Path) -> None:
        super().__init__(load, home)
        self.sink = ss.sinks.parquet_sink(home / "rows")
        self.engine = ss.Engine(operator_of(load.name), threads=1, execution="log_free")

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self.sink(self.engine.process(frame.toArrow()), batch_id)

    def writer(self, stream: DataFrame) -> DataStreamWriter:
        return stream.writeStream.foreachBatch(self)

    def close(self) -> None:
        self.engine.close()


class _Stateful(Way):
    """A query whose state is in Spark's store, as bytes under one key; Spark's own Parquet sink."""

    def writer(self, stream: DataFrame) -> DataStreamWriter:
        operator = operator_of(self.load.name)
        columns = [F.col(name) for name in operator.event.names]
        keyed = stream.select(F.lit(0).alias("key"), *columns)
        rows = self.grouped(keyed, _sql(operator.emits.arrow()))
        return rows.writeStream.format("parquet").option("path", str(self.home / "rows"))

    def grouped(self, keyed: DataFrame, emits: str) -> DataFrame:
        raise NotImplementedError


class Grouped(_Stateful):
    """``applyInPandasWithState``."""

    name = SPARK_WAYS[0]

    def grouped(self, keyed: DataFrame, emits: str) -> DataFrame:
        function = partial(_grouped, self.load.name)
        return keyed.groupBy("key").applyInPandasWithState(
            function, emits, "state binary", "append", "NoTimeout"
        )


def _grouped(name: str, key: Any, frames: Iterable[pd.DataFrame], state: Any) -> Iterator[Any]:
    clone = carried(name)
    clone.begin(bytes(state.get[0]) if state.exists else None)
    for frame in frames:
        yield clone.run(frame[list(clone.columns)]).to_pandas()
    state.update((clone.end(),))


class Shard(_Stateful):
    """``transformWithStateInPandas``."""

    name = SPARK_WAYS[1]

    def grouped(self, keyed: DataFrame, emits: str) -> DataFrame:
        return keyed.groupBy("key").transformWithStateInPandas(
            _Processor(self.load.name), emits, outputMode="append", timeMode="none"
        )


class _Processor(StatefulProcessor):
    def __init__(self, name: str) -> None:
        self.name = name

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("state", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        clone = carried(self.name)
        before = self.state.get() if self.state.exists() else None
        clone.begin(None if before is None else bytes(before[0]))
        for frame in rows:
            yield clone.run(frame[list(clone.columns)]).to_pandas()
        self.state.update((clone.end(),))

    def close(self) -> None:
        pass


_SQL = {pa.int64(): "long", pa.float64(): "double", pa.bool_(): "boolean", pa.string(): "string"}


def _sql(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_SQL[field.type]}" for field in schema)
