"""``paid_in_time`` through Spark to Parquet, exactly once, beside its ``transformWithState``.

Each is a streaming query over the same files with a watermark of a minute: orders in the order of
time, and a last event so late that all deadlines have passed. What counts is the time of the query,
from its start to its end. Before that both have run over a few orders, so that the JVM and the
rule are compiled, and each alarm of each run is compared.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import specstream as ss
from bench.monitors import business
from bench.options import Say
from bench.rules.alone import same_rows_of
from bench.rules.beside import SEED
from bench.rules.rounds import (
    Amount,
    compared,
    interleaved,
    process,
    rule_of,
    stopped,
    table,
)

__all__ = ["through_spark"]

NAME = "paid_in_time"
UNPAID = 0.05
WITHIN = 30 * business.MINUTE
WATERMARK = "1 minute"
COLUMNS = ["order", "time", "verdict", "decided"]
SETTINGS = {
    # transformWithState needs it.
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming."
    "state.RocksDBStateStoreProvider",
    "spark.log.level": "OFF",
}
WARM = 2_000


class PaidInTime(StatefulProcessor):
    """The same in Spark: when an order was placed, and a timer at its deadline.

    An order that is paid in the batch in which it was placed asks for no state. Timers are of
    milliseconds, and so are the times of the events here.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.placed = handle.getValueState("placed", "at long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        waiting, is_kept = None, False
        for row in sorted(rows, key=lambda row: (row["at"], row["kind"] != "placed")):
            if row["kind"] == "placed":
                waiting = row["at"]
            elif row["kind"] in ("paid", "cancelled"):
                if waiting is None and (kept := self.placed.get()) is not None:
                    waiting, is_kept = kept[0], True
                if waiting is not None and row["at"] <= waiting + WITHIN:
                    if is_kept:
                        self.placed.clear()
                        self.handle.deleteTimer((waiting + WITHIN) // 1000)
                    waiting, is_kept = None, False
        if waiting is not None and not is_kept:
            self.placed.update((waiting,))
            self.handle.registerTimer((waiting + WITHIN) // 1000)
        return iter(())

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        kept = self.placed.get()
        assert kept is not None
        placed = kept[0]
        self.placed.clear()
        yield Row(order=key[0], time=placed, verdict=False, decided=placed + WITHIN)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Orders:
    """Files of orders, one for each micro-batch.

    Attributes:
        path: where they are.
        events: of all of them.
        alarms: what is to be told of them.
    """

    path: Path
    events: int
    alarms: pa.Table

    def stream(self, session: SparkSession) -> DataFrame:
        """A file for each micro-batch."""
        reader = session.readStream.schema("time timestamp, order string, kind string")
        return reader.option("maxFilesPerTrigger", 1).parquet(str(self.path))


def written(rule: ss.Operator, orders: int, files: int, path: Path) -> Orders:
    """So many orders in so many files, in the order of time, and their alarms without Spark."""
    columns = business.orders(2 * orders, SEED, UNPAID, min(10_000, orders // 10))
    last = int(np.flatnonzero(columns["kind"] == "placed")[orders - 1])
    columns = {name: column[: last + 1] for name, column in columns.items()}
    columns["time"] = columns["time"] // 1000 * 1000
    events = table(columns, "us")
    end = {"time": [int(columns["time"][-1]) + 4 * WITHIN], "order": ["end"], "kind": ["noted"]}
    end_of_time = pa.table(end).select(events.column_names).cast(events.schema)
    events = pa.concat_tables([events, end_of_time])
    path.mkdir(parents=True)
    size = -(-events.num_rows // files)
    for at in range(files):
        part = events.slice(at * size, size)
        zoned = part["time"].cast(pa.timestamp("us", "UTC"))
        file = path / f"{at:04d}.parquet"
        pq.write_table(part.set_column(part.column_names.index("time"), "time", zoned), file)
        os.utime(file, (1_700_000_000 + at, 1_700_000_000 + at))
    return Orders(path, events.num_rows, process(rule, events)[0])


def took(writer: DataStreamWriter, home: Path) -> float:
    """Seconds of a query, until all files are processed."""
    began = time.perf_counter()
    query = writer.option("checkpointLocation", str(home / "spark")).trigger(availableNow=True)
    query.start().awaitTermination()
    return time.perf_counter() - began


def ours(session: SparkSession, rule: ss.Operator, orders: Orders, home: Path) -> float:
    """Seconds of the rule, with a checkpoint; an engine of two threads."""
    with ss.Engine(rule, threads=2) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            watermark=WATERMARK,
            to=ss.sinks.parquet_sink(home / "rows"),
            checkpoint=home / "recorded",
        )
        seconds = took(orders.stream(session).writeStream.foreachBatch(feed), home)
        if feed.checkpoint is not None:
            feed.checkpoint.close()
    same_rows_of(orders.alarms, pyarrow.dataset.dataset(home / "rows").to_table(), COLUMNS)
    return seconds


def stateful(session: SparkSession, orders: Orders, home: Path) -> float:
    """Seconds of ``transformWithState``, in its form with rows."""
    events = orders.stream(session).withWatermark("time", WATERMARK)
    alarms = (
        events.select("order", "kind", "time", F.unix_micros("time").alias("at"))
        .groupBy("order")
        .transformWithState(
            PaidInTime(),
            "order string, time long, verdict boolean, decided long",
            outputMode="append",
            timeMode="eventtime",
        )
    )
    writer = alarms.writeStream.format("parquet").option("path", str(home / "rows"))
    seconds = took(writer, home)
    # Through Spark, which knows the files that count.
    found = session.read.parquet(str(home / "rows")).toArrow()
    columns = {name: found[name] for name in COLUMNS}
    for name in ("time", "decided"):
        columns[name] = columns[name].cast(orders.alarms.schema.field(name).type)
    same_rows_of(orders.alarms, pa.table(columns), COLUMNS)
    return seconds


def through_spark(amount: Amount, say: Say) -> dict[str, Any]:
    """The rule through Spark, beside ``transformWithState``: rows, then times."""
    name = {"name": f"`{NAME}` through Spark"}
    try:
        row = stopped(name, partial(_beside, amount, say))
    except PySparkException as error:
        # All other parts are measured by now.
        row = {**name, "stopped": " ".join(str(error).split())[:300]}
    return {"rounds": amount.beside, "rows": [row]}


def _beside(amount: Amount, say: Say) -> dict[str, Any]:
    text, event, options = business.RULES[NAME]
    rule = rule_of(text, NAME, event, **options)
    session = ss.spark.local_session("bench", settings=SETTINGS)
    try:
        with tempfile.TemporaryDirectory(prefix="specstream-bench-") as directory:
            home = Path(directory)
            number = itertools.count()

            def contestants(orders: Orders) -> dict[str, Callable[[], float]]:
                def ours_again() -> float:
                    say(f"{NAME} through Spark: {orders.events:,} events")
                    return ours(session, rule, orders, home / f"run-{next(number)}")

                def stateful_again() -> float:
                    say(f"transformWithState: {orders.events:,} events")
                    return stateful(session, orders, home / f"run-{next(number)}")

                return {"ours": ours_again, "other": stateful_again}

            interleaved(contestants(written(rule, WARM, 2, home / "few")), 1)
            orders = written(rule, amount.orders, amount.files, home / "orders")
            seconds = interleaved(contestants(orders), amount.beside)
    finally:
        session.stop()
    return {
        "orders": amount.orders,
        "events": orders.events,
        "violations": orders.alarms.num_rows,
        **compared(seconds["ours"], seconds["other"], orders.events),
    }
