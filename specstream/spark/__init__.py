"""Feeding an engine from Spark Structured Streaming.

::

    query = (stream.writeStream
             .foreachBatch(ss.spark.foreach_batch(
                 engine, order_by="time", source="origin", to=ss.spark.parquet_sink(path)))
             .option("checkpointLocation", checkpoint)
             .start())
"""

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(
        'specstream.spark needs PySpark 4.3: pip install "specstream[spark]"'
    ) from error

from specstream.spark.apply import Applied, apply
from specstream.spark.directory import stream_directory
from specstream.spark.feed import BatchFeed, FeedStats, foreach_batch
from specstream.spark.java import Java, find_java
from specstream.spark.listener import ProgressListener, watch
from specstream.spark.session import local_session
from specstream.spark.sharded import sharded
from specstream.spark.sink import ParquetSink, parquet_sink

__all__ = [
    "Applied",
    "BatchFeed",
    "FeedStats",
    "Java",
    "ParquetSink",
    "ProgressListener",
    "apply",
    "find_java",
    "foreach_batch",
    "local_session",
    "parquet_sink",
    "sharded",
    "stream_directory",
    "watch",
]
