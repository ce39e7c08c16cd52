"""Feeding an engine from Spark Structured Streaming.

::

    query = (stream.writeStream
             .foreachBatch(ss.spark.foreach_batch(
                 engine, order_by="time", source="origin", to=ss.sinks.parquet_sink(path)))
             .option("checkpointLocation", checkpoint)
             .start())
"""

import importlib.util
from typing import Any

from specstream import sinks
from specstream.checkpoint.inspect.replay import Replay, replay
from specstream.declarations.deprecated import NEXT_GONE_WITH, renamed

# Replay needs no Spark, and serves those who run without; all else here does.
_HAS_PYSPARK = importlib.util.find_spec("pyspark") is not None
if _HAS_PYSPARK:
    from specstream.spark.apply import Applied, apply
    from specstream.spark.directory import stream_directory
    from specstream.spark.feed import BatchFeed, FeedStats, foreach_batch
    from specstream.spark.foreach_sink import ForeachSink, foreach_sink
    from specstream.spark.java import Java, find_java
    from specstream.spark.kafka import from_kafka
    from specstream.spark.listener import ProgressListener, watch
    from specstream.spark.recorded_state import checkpoint_state
    from specstream.spark.session import local_session
    from specstream.spark.sharded import sharded
    from specstream.spark.stopping import StopOnSignal, shielded_session, stop_on_signal
    from specstream.spark.union import union

__all__ = [
    "Applied",
    "BatchFeed",
    "FeedStats",
    "ForeachSink",
    "Java",
    "ProgressListener",
    "Replay",
    "StopOnSignal",
    "apply",
    "checkpoint_state",
    "find_java",
    "foreach_batch",
    "foreach_sink",
    "from_kafka",
    "local_session",
    "replay",
    "sharded",
    "shielded_session",
    "stop_on_signal",
    "stream_directory",
    "union",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in sinks.__all__:
        renamed(f"ss.spark.{name}", f"ss.sinks.{name}", gone_with=NEXT_GONE_WITH)
        return getattr(sinks, name)
    if not _HAS_PYSPARK:
        raise ImportError(
            'specstream.spark needs PySpark 4.0 to 4.3: pip install "specstream[spark]"'
        )
    raise AttributeError(f"module 'specstream.spark' has no attribute {name!r}")
