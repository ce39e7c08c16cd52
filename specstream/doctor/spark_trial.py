"""The trial of Spark: two micro-batches with a checkpoint, in a temporary directory."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from specstream.doctor.engine_trial import totals
from specstream.engine.engine import Engine
from specstream.sinks.parquet import parquet_sink
from specstream.spark.directory import stream_directory
from specstream.spark.feed import foreach_batch
from specstream.spark.session import local_session

__all__ = ["main"]

EVENTS = 1_000


def main() -> None:
    """Prints what Spark is and whether the answer was right."""
    warnings.simplefilter("ignore")
    n = np.arange(EVENTS)
    table = pa.table({"time": n, "account": n * 7919 % 50, "amount": n * 31 % 100})
    with tempfile.TemporaryDirectory(prefix="specstream-doctor-") as name:
        place = Path(name)
        source = place / "source"
        source.mkdir()
        for number in range(2):
            part = table.slice(number * EVENTS // 2, EVENTS // 2)
            pq.write_table(part, source / f"{number}.parquet")
        print("starting a Spark session", flush=True)
        session = local_session("specstream doctor")
        with Engine(totals, threads=2) as engine:
            sink = parquet_sink(place / "rows")
            feed = foreach_batch(engine, order_by="time", to=sink, checkpoint=place / "checkpoint")
            print("running two micro-batches", flush=True)
            stream_directory(
                session, str(source), feed, checkpoint=place / "spark", files_per_trigger=1
            )
            account = engine.state.account.copy()
            batches = feed.stats.batches
        rows = session.read.parquet(str(place / "rows")).count()
        version = session.version
        session.stop()
    expected = totals.run_sequential(table, order_by="time")
    same = rows == expected.output.num_rows and (account == expected.state.account).all()
    print(json.dumps({"same": bool(same), "version": version, "rows": rows, "batches": batches}))
