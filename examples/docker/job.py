"""The job of the image: the most frequent items of Parquet files that come into /data/in.

Rows go to ``/data/rows``, events whose function raises to ``/data/failed``, rows that cannot be
events to ``/data/rejected``; both checkpoints are in ``/data``. Prometheus reads port 9000.
In the environment, ``DATA`` names another directory and ``PORT`` another port; ``ONCE=1`` ends the
job when it has read what is there.
"""

from __future__ import annotations

import os
from pathlib import Path

import prometheus_client

import specstream as ss
from specstream.operators import top_k

DATA = Path(os.environ.get("DATA", "/data"))


def main() -> None:
    """Runs until SIGTERM; the batch in flight is finished first."""
    session = ss.spark.local_session("top")
    engine = ss.Engine(top_k(k=5), threads=2, rejected_rows="side", errors="side")
    feed = ss.spark.foreach_batch(
        engine,
        order_by="time",
        to=ss.sinks.parquet_sink(DATA / "rows"),
        rejected_rows_to=ss.sinks.parquet_sink(DATA / "rejected"),
        errors_to=ss.sinks.parquet_sink(DATA / "failed"),
        errors_limit=1000,
        checkpoint=DATA / "checkpoint",
        keep_batches=10,
    )
    ss.metrics.watch(feed)
    prometheus_client.start_http_server(int(os.environ.get("PORT", "9000")))
    rows = (
        session.readStream.schema("time timestamp, item long")
        .option("maxFilesPerTrigger", 10)
        .parquet(str(DATA / "in"))
    )
    writer = rows.writeStream.foreachBatch(feed).option("checkpointLocation", str(DATA / "spark"))
    if os.environ.get("ONCE"):
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime="5 seconds")
    query = writer.start()
    with ss.spark.stop_on_signal(query, close=[feed]):
        query.awaitTermination()


if __name__ == "__main__":
    main()
