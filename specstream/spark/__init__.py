"""Feeding an engine from Spark Structured Streaming.

::

    query = (stream.writeStream
             .foreachBatch(ss.spark.foreach_batch(
                 engine, order_by="time", source="origin", to=ss.spark.parquet_sink(path)))
             .option("checkpointLocation", checkpoint)
             .start())
"""

import importlib.util
from typing import Any

from specstream.checkpoint.compaction import Compaction, compact
from specstream.checkpoint.replay import Replay, replay
from specstream.spark.sinks import (
    DeltaSink,
    EarlyDatabaseSink,
    EarlyDeltaSink,
    ForeachSink,
    MemorySink,
    ParquetSink,
    PostgresSink,
    delta_sink,
    early_database_sink,
    early_delta_sink,
    foreach_sink,
    memory_sink,
    parquet_dataset,
    parquet_sink,
    postgres_sink,
)

# Replay, compaction and sinks need no Spark, and serve those who run without; all else here does.
if importlib.util.find_spec("pyspark") is not None:
    from specstream.spark.apply import Applied, apply
    from specstream.spark.directory import stream_directory
    from specstream.spark.feed import BatchFeed, FeedStats, foreach_batch
    from specstream.spark.java import Java, find_java
    from specstream.spark.kafka import from_kafka
    from specstream.spark.latest import latest
    from specstream.spark.listener import ProgressListener, watch
    from specstream.spark.recorded_state import checkpoint_state
    from specstream.spark.session import local_session
    from specstream.spark.sharded import sharded
    from specstream.spark.stopping import StopOnSignal, shielded_session, stop_on_signal
    from specstream.spark.union import union
else:

    def __getattr__(name: str) -> Any:
        raise ImportError(
            'specstream.spark needs PySpark 4.0 to 4.3: pip install "specstream[spark]"'
        )


__all__ = [
    "Applied",
    "BatchFeed",
    "Compaction",
    "DeltaSink",
    "EarlyDatabaseSink",
    "EarlyDeltaSink",
    "FeedStats",
    "ForeachSink",
    "Java",
    "MemorySink",
    "ParquetSink",
    "PostgresSink",
    "ProgressListener",
    "Replay",
    "StopOnSignal",
    "apply",
    "checkpoint_state",
    "compact",
    "delta_sink",
    "early_database_sink",
    "early_delta_sink",
    "find_java",
    "foreach_batch",
    "foreach_sink",
    "from_kafka",
    "latest",
    "local_session",
    "memory_sink",
    "parquet_dataset",
    "parquet_sink",
    "postgres_sink",
    "replay",
    "sharded",
    "shielded_session",
    "stop_on_signal",
    "stream_directory",
    "union",
    "watch",
]
