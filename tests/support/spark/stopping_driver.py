"""The driver process that tests of SIGTERM stop: a query whose source always has another batch.

``stopping_driver DIRECTORY BATCH``: in that batch the sink makes the file ``inside``, waits for
a signal, makes ``requested``, and goes on when somebody has opened the pipe ``gate``.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pyarrow as pa

import specstream as ss
from support.spark.crash_driver import LIFE_SECONDS, chain


def main(directory: Path, slow: int) -> None:
    session = ss.spark.local_session("stopping", settings={"spark.log.level": "OFF"})
    sink = ss.sinks.parquet_sink(directory / "out")
    armed = threading.Event()

    def to(table: pa.Table, batch_id: int) -> None:
        if batch_id == slow:
            assert armed.wait(LIFE_SECONDS)
            (directory / "inside").touch()
            assert stop.requested.wait(LIFE_SECONDS)
            (directory / "requested").touch()
            (directory / "gate").read_bytes()
        sink(table, batch_id)

    engine = ss.Engine(chain, threads=2, horizon=4, chunk=4)
    feed = ss.spark.foreach_batch(
        engine, order_by="time", source="origin", to=to, checkpoint=directory / "recorded"
    )
    events = str(directory / "events")
    query = (
        session.readStream.schema(session.read.parquet(events).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(events)
        .writeStream.foreachBatch(feed)
        .option("checkpointLocation", str(directory / "spark"))
        .start()
    )
    stop = ss.spark.stop_on_signal(query, close=[engine])
    armed.set()
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
